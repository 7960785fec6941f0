"""A change is told by its place, and what is new is allowed; and what ``python -m tests.frozen`` does."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.frozen import __main__ as program
from tests.frozen import answers, journals
from tests.frozen.catalogue import piece
from tests.frozen.comparing import differences
from tests.frozen.invoking import utc
from tests.frozen.pieces import DATA, Piece, as_json
from tests.frozen.recording import record
from tests.frozen.schemas import lines
from yarnctl.errors import BadInput

JOURNAL = "virtual-natjam"


def planted(name: str, now: Any) -> list[str]:
    """Return what a piece says of another value than today's."""
    return differences(piece(name).frozen(), as_json(now), piece(name).rule)


def test_kept_allows_what_is_new_and_nothing_else() -> None:
    frozen = {"a": {"b": 1}, "empty": {}, "many": ["x", "y"]}
    assert differences(frozen, {"a": {"b": 1, "c": 2}, "empty": {"d": 1}, "many": ["x", "y"]}, "kept") == []
    assert differences(frozen, {"a": {"b": 1.0}, "empty": {}, "many": ["x"]}, "kept") == [
        "- .a.b = 1",
        "+ .a.b = 1.0",
        '- .many[1] = "y"',
    ]


def test_same_tells_what_is_new_too() -> None:
    assert differences({"a b": 1}, {"a b": 1, "c": [2]}) == ["+ .c[0] = 2"]
    assert differences({"a b": 1}, {}) == ['- ["a b"] = 1', "+ . = {}"]


def test_a_type_that_changes_is_reported() -> None:
    optional = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    before = lines({"type": "object", "properties": {"deadline_ms": {"type": "integer"}}}, {})
    after = lines({"type": "object", "properties": {"deadline_ms": optional}}, {})
    assert differences(before, after, "kept") == [
        '- [".deadline_ms"] = "integer"',
        '+ [".deadline_ms"] = "integer|null"',
    ]


def test_one_byte_of_a_golden_journal_is_reported() -> None:
    data = journals.raw(JOURNAL)
    spoilt = data.replace(b'"unmet":0', b'"unmet":1', 1)
    assert spoilt != data
    now = {**piece("journals").frozen(), JOURNAL: journals._facts(spoilt)}
    assert [line.partition(" = ")[0] for line in planted("journals", now)] == [
        f"- .{JOURNAL}.sha256",
        f"+ .{JOURNAL}.sha256",
    ]
    found = planted(f"journals/{JOURNAL}", journals.outcome_of(spoilt))
    assert "- .replay.status = 0" in found
    assert "+ .replay.status = 1" in found
    assert any(line.startswith("+ .rebuilt.refused = ") and "the chain breaks" in line for line in found)


def test_the_commands_answer_as_the_service_does() -> None:
    """What is frozen of both is the same: the one is no copy that could age."""
    over_http, typed = piece("answers").frozen(), piece("command-answers").frozen()
    for words, address in (
        ("decisions", "/v1/decisions"),
        ("apps", "/v1/applications"),
        ("snapshot", "/v1/snapshot"),
    ):
        assert json.loads("\n".join(typed["busy"][words]["out"])) == over_http["busy"][address]["body"]
    assert typed["busy"]["decisions 4711"]["status"] == 1


# --- writing ------------------------------------------------------------------------------------


def test_write_prints_what_changed_and_check_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"options": {"--rm": "url"}}
    one = Piece("one", lambda: value, packed=True)
    assert program.write([one], tmp_path) == 0
    assert "one: new" in capsys.readouterr().out
    first = one.path(tmp_path).read_bytes()
    assert program.check([one], tmp_path) == 0
    capsys.readouterr()

    other = one._replace(make=lambda: {"options": {"--manager": "url"}})
    assert program.check([other], tmp_path) == 1
    said = capsys.readouterr().out
    assert '- .options.--rm = "url"' in said
    assert "CHANGELOG.md" in said
    assert "python -m tests.frozen write one" in said

    assert program.write([other], tmp_path) == 0
    said = capsys.readouterr().out
    assert '- .options.--rm = "url"' in said
    assert '+ .options.--manager = "url"' in said
    assert "CHANGELOG.md" in said
    program.write([one], tmp_path)
    assert one.path(tmp_path).read_bytes() == first, "the same bytes whenever it is written"


def test_a_golden_journal_is_never_made_again(tmp_path: Path) -> None:
    path = record("tiny-default", folder=tmp_path)
    with pytest.raises(BadInput, match="never made again"):
        record("tiny-default", folder=tmp_path)
    assert gzip.decompress(path.read_bytes()).startswith(b'{"type":"header"')
    with pytest.raises(BadInput, match="has no recipe"):
        record("nothing", folder=tmp_path)


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["write", "nothing"]) == 2
    assert capsys.readouterr().err.startswith("error: nothing: is not frozen")
    assert DATA.is_dir()


def test_local_time_is_utc_only_meanwhile() -> None:
    import time

    before = time.tzname
    with utc():
        assert time.tzname == ("UTC", "UTC")
    assert time.tzname == before


def test_answers_do_not_depend_on_when_they_are_asked() -> None:
    with answers.served() as server:
        assert (
            server.ask("/healthz")
            == server.ask("/healthz")
            == {"status": 200, "body": {"age_ms": answers.LATE_MS, "loop_state": "running", "status": "ok"}}
        )
