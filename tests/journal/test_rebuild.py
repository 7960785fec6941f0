"""Going on from a journal: what was decided stays decided, however this program would decide."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.frozen.invoking import invoked
from tests.journal.test_restart import mortal
from tests.unit.deciding.controller_world import unlike
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger import NO_DETAILS, Ledger, oldest_freed
from yarnctl.deciding.ledger_state import LedgerState
from yarnctl.deciding.order import Order
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.orders import Unclaimed
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import (
    Decision,
    FreedContainer,
    Header,
    Requester,
    Transition,
)
from yarnctl.deciding.settlement import Settlement
from yarnctl.errors import BadInput, Different
from yarnctl.journal.chain import Chain, body_of
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.fold import ledger_of, state_of
from yarnctl.journal.rebuild import rebuild, repair
from yarnctl.journal.replay import Replay, replay
from yarnctl.units import Resources, decode_vector


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal in which a controller died four times."""
    path = tmp_path_factory.mktemp("journal") / "j"
    run = mortal(path, (20, 47, 71, 90))
    run.go()
    run.file.close()
    assert run.restarts == 4
    return path


def cut(journal: Path, beside: Path, lines: int) -> Path:
    with JournalFile(beside, durable=False) as file:
        file.append([line.record for line in read(journal) if line.number <= lines])
    return beside


def test_what_is_folded_is_what_decides(journal: Path) -> None:
    """After every step of an honest journal the fold is the ledger of the controller that is fed with it."""
    state, compared = Replay("j"), 0
    for line in read(journal):
        if isinstance(line.record, Observed) and state.controller is not None and state._header is None:
            compared += 1
            assert unlike(state.controller, state.fold) == "", line.number
        state.line(line)
    assert compared > 30


def test_a_mended_policy_keeps_no_daemon_from_starting(
    journal: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def other(*_):
        raise AssertionError("nothing is decided again")

    before = rebuild(journal)
    monkeypatch.setattr("yarnctl.deciding.controller.make_plan", other)
    monkeypatch.setattr("yarnctl.deciding.controller.JOB_POLICIES", {})
    after = rebuild(journal)
    assert before is not None
    assert after is not None
    assert after.remembered.ledger.decisions == before.remembered.ledger.decisions > 0
    assert after.remembered.ledger.open == before.remembered.ledger.open
    assert caplog.records == []


@pytest.mark.parametrize("part", [0.3, 0.5, 0.7, 0.9])
def test_a_mended_settlement_keeps_no_daemon_from_starting(
    journal: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    part: float,
) -> None:
    """It goes on with the orders as they were told."""
    lines = sum(1 for _ in read(journal))
    path = cut(journal, tmp_path / "j", int(lines * part))
    before = rebuild(path)
    move = Settlement._move

    def otherwise(self, effects, order_id, event, at_ms, details=NO_DETAILS):
        details = details._replace(why=ClientFault(f"{details.why}!"))
        return move(self, effects, order_id, event, at_ms, details)

    monkeypatch.setattr(Settlement, "_move", otherwise)
    with pytest.raises(Different):
        replay(read(path), str(path))
    after = rebuild(path)
    assert before is not None
    assert after is not None
    assert state_of(after.remembered.ledger) == state_of(before.remembered.ledger)
    assert caplog.records == []


def test_a_journal_that_makes_no_sense_at_all_is_gone_on_from(journal: Path, tmp_path: Path) -> None:
    """Every second transition is gone: nothing raises, and no more orders are open than were made."""
    path = tmp_path / "j"
    records = [line.record for line in read(journal)]
    dropped = [
        record for place, record in enumerate(records) if place % 2 or not isinstance(record, Transition)
    ]
    with JournalFile(path, durable=False) as file:
        file.append(dropped)
    with pytest.raises(Different):
        replay(read(path), str(path))
    rebuilt = rebuild(path)
    assert rebuilt is not None
    made = {order for record in records if isinstance(record, Decision) for order in record.orders}
    assert set(rebuilt.remembered.ledger.open) <= made


def test_a_broken_chain_is_still_a_broken_chain(journal: Path, tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = journal.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10] + lines[11:]))
    with pytest.raises(Different):
        rebuild(path)


@pytest.mark.parametrize("size_bytes", [1, 70_000])
def test_of_a_file_that_holds_half_a_line_nothing_is_left(tmp_path: Path, size_bytes: int) -> None:
    """It died over its first line; that may be longer than what is read of a file at once."""
    path = tmp_path / "journal.jsonl"
    torn = b"{" * size_bytes
    path.write_bytes(torn)
    beside = repair(path)
    assert beside == tmp_path / "journal.jsonl.torn-0"
    assert (beside.read_bytes(), path.read_bytes()) == (torn, b"")
    assert repair(path) is None


def test_only_waiting_askers_make_unclaimed_room_misdirected() -> None:
    def unclaimed(why: Unclaimed) -> Transition:
        return Transition(
            order="o-000001", source="freed", event="unclaimed", target="lost", at_ms=1, why=why
        )

    for why, counts in ((Unclaimed(12_000), False), (Unclaimed(12_000, True), True)):
        watch = Misdirection(requesters={"o-000001": Requester("p-1", "root.production")})
        watch.apply([unclaimed(why)])
        assert [each.last for each in watch.queues.values()] == (
            [(FreedContainer("o-000001", "", True),)] if counts else []
        )


def test_a_fresh_controller_after_a_header_alone_begins_anew(journal: Path, tmp_path: Path) -> None:
    path = tmp_path / "j"
    records = [line.record for line in read(journal)]
    head = records[0]
    assert isinstance(head, Header)
    with JournalFile(path, durable=False) as file:
        file.append([*records[:60], head])
    left, before = rebuild(path), rebuild(cut(journal, tmp_path / "before", 60))
    assert left is not None
    assert before is not None
    assert left.remembered.ledger.open == before.remembered.ledger.open


def test_room_goes_to_who_it_came_to_first_also_after_a_restart() -> None:
    """Room on two nodes came free in turn: it goes to each requester in that order, not by node."""
    ledger = Ledger()
    for number, node in enumerate(("a", "b", "a"), start=1):
        name = f"o-{number:06d}"
        order = Order(
            order=name, requester="p1", victim="r1", attempt=f"r1.{number}", container=f"r1.{number}c",
            node=node, size=Resources(1024, 1), request_size=Resources(1024, 1), serves=1, group=name,
            generation=1, verb="suspend", decision=1, ordered_at_ms=number, progress_at_ms=number,
        )  # fmt: skip
        ledger.add(order)
        ledger.happen(name, "ended-as-ordered", 10 + number)
    copy = ledger_of(decoded(state_of(ledger)), ledger.settings)
    assert list(copy.freed_for["p1"]) == list(ledger.freed_for["p1"]) == ["o-000001", "o-000002", "o-000003"]
    for each in (ledger, copy):
        each.happen("o-000001", "granted", 20)
        found = oldest_freed(each, "p1", Resources(1024, 1))
        assert found is not None
        assert found.order == "o-000002"


def decoded(state: LedgerState) -> LedgerState:
    """Return a state as it is read back from a line."""
    return msgspec.json.decode(msgspec.json.encode(state), type=LedgerState, dec_hook=decode_vector)


@pytest.mark.parametrize(
    ("line", "story"),
    [
        (b'{"type":"header","format":7}', "the journal has format 7; this yarnctl reads format 1 only"),
        (b'{"type":"state","format":7}', "the journal has format 7; this yarnctl reads format 1 only"),
        (b'{"format":7,"type":"header"}', "no record of a yarnctl journal"),
        (b'{"type":"quoted","at_ms":5}', "records of kind 'quoted' are not known to this yarnctl"),
    ],
)
def test_another_programs_journal_is_refused_and_left_as_it_is(
    journal: Path, tmp_path: Path, line: bytes, story: str
) -> None:
    path, chain = tmp_path / "journal.jsonl", Chain()
    bodies = [body_of(each) for each in journal.read_bytes().splitlines(keepends=True)[:9]]
    sealed = [chain.seal_body(body) for body in (*bodies, line + b"\n") if body is not None]
    whole = b"".join([*sealed, b'{"type":"torn'])
    path.write_bytes(whole)
    for command in (("replay", str(path)), ("explain", "--journal", str(path), "1")):
        answer = invoked(*command, hidden=str(path))
        assert answer["status"] == 2
        assert story in "\n".join(answer["err"])
    with pytest.raises(BadInput):
        rebuild(path)
    assert path.read_bytes() == whole
    assert [each.name for each in tmp_path.iterdir()] == ["journal.jsonl"]
