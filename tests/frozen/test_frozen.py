"""Nothing that others call or read has changed unseen; what changes on purpose is told in CHANGELOG.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.frozen import answers, journals
from tests.frozen.catalogue import PIECES, piece
from tests.frozen.interface import operations
from tests.frozen.pieces import DATA, Piece, canonical
from tests.unit.service.played import busy
from yarnctl.service.app import make_app


@pytest.mark.parametrize(
    "each",
    [pytest.param(each, id=each.name, marks=[pytest.mark.thorough] if each.slow else []) for each in PIECES],
)
def test_nothing_that_others_use_has_changed(each: Piece) -> None:
    complaint = each.complaint(each.make())
    assert not complaint, complaint


def test_every_frozen_file_is_in_the_catalogue() -> None:
    there = set(DATA.rglob("*.json*"))
    assert there == {each.path() for each in PIECES}


@pytest.mark.parametrize("each", [each for each in PIECES if not each.packed], ids=lambda each: each.name)
def test_frozen_files_are_written_canonically(each: Piece) -> None:
    assert each.path().read_bytes() == canonical(each.frozen())


def test_every_kind_of_record_is_in_a_golden_journal() -> None:
    frozen = piece("records").frozen()
    kinds = set(re.findall(r"^<([a-z-]+)>", "\n".join(frozen), re.MULTILINE))
    held = {kind for each in piece("journals").frozen().values() for kind in each["records"]}
    assert len(kinds) > 20
    assert kinds - held == set()


@pytest.mark.parametrize("name", journals.names())
def test_a_golden_journal_replays(name: str) -> None:
    assert piece(f"journals/{name}").frozen()["replay"]["status"] == 0


def test_golden_journals_leave_all_that_a_restart_must_carry_over() -> None:
    found = [piece(f"journals/{name}").frozen()["rebuilt"] for name in journals.names()]
    gates = [each["admissions"]["gate"] or {} for each in found]
    for part in ("due", "sent", "changes"):
        assert any(each[part] for each in found), part
    for part in ("open", "barred_attempts", "tries", "suspended_not_back"):
        assert any(each["orders"][part] for each in found), part
    for part in ("reserved", "waiting"):
        assert any(each.get(part) for each in gates), part


def test_each_host_has_a_golden_journal() -> None:
    hosts = {name.partition("-")[0] for name in journals.names()}
    assert {"virtual", "attached", "live"} <= hosts


@pytest.mark.parametrize("name", journals.names())
def test_a_golden_journal_names_no_machine(name: str) -> None:
    text = journals.raw(name).decode()
    assert str(Path(__file__).parents[2]) not in text
    assert "/tmp/" not in text


def test_every_address_that_can_be_read_is_asked() -> None:
    """A new GET without a frozen answer fails."""
    patterns = [
        re.compile(re.sub(r"\{\w+\}", "[^/?]+", name.partition(" ")[2]) + r"(\?.*)?")
        for name in operations(make_app(busy).openapi())["operations"]
        if name.startswith("GET ")
    ]
    asked = [address for view in answers.views().values() for address in answers.addresses(view)]
    assert len(patterns) >= 15
    assert [each.pattern for each in patterns if not any(map(each.fullmatch, asked))] == []


def test_frozen_answers_show_orders_refusals_and_admissions_in_several_states() -> None:
    frozen = piece("answers").frozen()
    bodies = frozen["busy"]["/v1/decisions"]["body"]["items"]
    assert bodies
    assert frozen["busy"]["/v1/refusals"]["body"]["items"]
    states = {each["state"] for each in frozen["gate"]["/v1/admissions"]["body"]["items"]}
    assert states >= {"waiting", "admitted", "running", "ended", "withdrawn", "expired", "rejected"}
