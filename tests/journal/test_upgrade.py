"""A daemon that finds a journal of an older format goes on from it in a new file, and loses nothing.

The golden journals of formats 4 and 5 end with orders in every open state, requests that may not have been
sent, a lowered queue, changed priorities and (format 5) reservations. Each is upgraded, gone on from to the
good end of all of them, and killed at each call of the operating system on the way into the new file.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from tests.frozen import journals
from tests.frozen.catalogue import piece
from tests.frozen.invoking import invoked
from tests.frozen.rebuilt import rebuilt
from tests.journal.test_full_disk import full
from tests.journal.test_segments import Died, Steps
from tests.unit.daemon.test_holding import RESEARCH, Queues, holder_of
from tests.unit.daemon.test_loop import Attached, taken
from yarnctl.attach.connection.connection import Attachment
from yarnctl.config import ClusterAddress
from yarnctl.daemon.priority_restoring import PriorityRestoring
from yarnctl.daemon.running import Plan, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.admission.entries import AdmissionClosed, AdmissionTaken
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    ContainerGranted,
    Fact,
    ManifestSeen,
    Observation,
    Release,
    Suspend,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.verdicts import EndedAs
from yarnctl.deciding.records import FORMAT, Contact, Header, Record, State, Transition, encode
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import body_of
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.fold import Fold
from yarnctl.journal.rebuild import Rebuilt, rebuild
from yarnctl.journal.replay import replay
from yarnctl.journal.segments import segments

WHOLE = ("format-4-all-at-once", "format-5-all-at-once")
STATES = {"asked", "suspending", "checkpointed", "freed"}


def laid(name: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "journal.jsonl"
    path.write_bytes(journals.raw(name))
    return path


def left_by(path: Path) -> Rebuilt:
    found = rebuild(path)
    assert found is not None
    return found


def begun(path: Path, fold: Fold) -> JournalFile:
    return JournalFile(path, durable=False, segment_bytes=1 << 26, fold=fold)


@pytest.mark.parametrize("name", WHOLE)
def test_the_old_file_is_set_aside_as_it_is_and_the_new_one_begins_with_all_that_it_leaves(
    name: str, tmp_path: Path
) -> None:
    path, was = laid(name, tmp_path), piece(f"journals/{name}").frozen()["rebuilt"]
    begun(path, left_by(path).fold).file.close()
    old, new = segments(path)
    assert (old.name, new.name) == ("journal.000001.jsonl", "journal.jsonl")
    assert old.read_bytes() == journals.raw(name)
    (head,) = new.read_bytes().splitlines(keepends=True)
    (state,) = [line.record for line in read(path) if isinstance(line.record, State)]
    assert body_of(head) == encode(state)
    assert state.format == FORMAT
    assert {order.state for order in state.ledger.open} == STATES
    assert [record.queue for record in state.lowered] == [RESEARCH]
    assert bool(state.book.gate and state.book.gate.reserved) is name.startswith("format-5")
    assert rebuilt(path) == was
    begun(path, left_by(path).fold).file.close()  # once is enough
    assert segments(path) == (old, new)
    assert new.read_bytes() == head


@pytest.mark.parametrize("name", WHOLE)
def test_whoever_dies_on_the_way_into_the_new_file_has_lost_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was = piece(f"journals/{name}").frozen()["rebuilt"]
    found: set[tuple[str, ...]] = set()
    for fatal in range(1, 100):
        path = laid(name, tmp_path / f"{fatal}")
        fold = left_by(path).fold
        with monkeypatch.context() as patched:
            watch = Steps(patched, fatal)
            with suppress(Died):
                begun(path, fold).file.close()
        found.add(tuple(sorted(each.name for each in path.parent.iterdir())))
        assert rebuilt(path) == was
        begun(path, left_by(path).fold).file.close()
        assert [each.name for each in segments(path)] == ["journal.000001.jsonl", "journal.jsonl"]
        assert segments(path)[0].read_bytes() == journals.raw(name)
        assert rebuilt(path) == was
        if watch.count < fatal:
            break
    assert {
        ("journal.jsonl",),
        ("journal.jsonl", "journal.jsonl.next"),
        ("journal.000001.jsonl", "journal.jsonl.next"),
        ("journal.000001.jsonl", "journal.jsonl"),
    } == found


def test_half_a_line_of_the_old_format_is_cut_off_first(tmp_path: Path) -> None:
    path = laid("format-5-all-at-once", tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:100])
    begun(path, left_by(path).fold).file.close()
    assert segments(path)[0].read_bytes() == whole
    assert rebuilt(path) == piece("journals/format-5-all-at-once").frozen()["rebuilt"]


# --- to a good end --------------------------------------------------------------------------------


class Life:
    """A controller on a journal: takes facts, and every request is accepted."""

    def __init__(self, path: Path) -> None:
        self.left = left_by(path)
        self.journal = begun(path, self.left.fold)
        self.controller = Controller(DEFAULT, validate=True, remembered=self.left.remembered)
        self.asked: list[object] = []
        self.now_ms = self.left.remembered.now_ms

    def write(self, record: Record) -> None:
        self.journal.append([record])

    def take(self, *facts: Fact) -> list[Transition]:
        """Take one step a moment later; return which orders moved."""
        self.now_ms += 250
        seen = Observation(now_ms=self.now_ms, as_of_ms=self.now_ms, cluster="unreachable", facts=facts)
        step = self.controller.step(seen)
        self.journal.append(step.records)
        made: list[Record] = [*step.records]
        for action in step.actions:
            self.asked.append(action)
            records = self.controller.settle(action, Accepted())
            self.journal.append(records)
            made += records
        return [record for record in made if isinstance(record, Transition)]

    def end_well(self, orders: Sequence[Order]) -> None:
        """Let each checkpoint be complete, each container end, and who asked get the room."""
        at_ms = self.now_ms
        running = [order for order in orders if order.state != "freed"]
        saving = [order for order in running if order.state != "checkpointed"]
        self.take(*(ManifestSeen(one.order, one.attempt, one.generation, 5, at_ms) for one in saving))
        self.take(
            *(ContainerEnded(one.container, one.victim, one.node, "suspended", at_ms) for one in running)
        )
        moved = self.take(
            *(ContainerGranted(f"{one.order}g", one.asker, one.node, one.ask, at_ms) for one in orders)
        )
        assert {record.order for record in moved if record.target == "granted"} == {
            order.order for order in orders
        }


def end_admissions(life: Life) -> int:
    """Let whoever was let in come and end; return how many reservations there were."""
    book = life.left.book
    held = book.open("admitted", "taken")
    at_ms = book.now_ms
    for each in held:
        if each.state == "admitted":
            life.write(AdmissionTaken(at_ms, each.admission, f"application_2_{each.sequence:04d}"))
        life.write(AdmissionClosed(at_ms, each.admission, "ended", EndedAs("FINISHED")))
    return len(held)


@pytest.mark.parametrize("name", WHOLE)
def test_what_was_open_is_known_after_the_upgrade_and_ends_well(name: str, tmp_path: Path) -> None:
    path = laid(name, tmp_path)
    life = Life(path)
    orders = list(life.left.remembered.ledger.open.values())
    assert {order.state for order in orders} == STATES
    due = {action.order for action in life.left.remembered.ledger.due if isinstance(action, Suspend)}
    life.take()
    sent = {action.order for action in life.asked if isinstance(action, Suspend)}
    assert sent == due == {"o-000012", "o-000014"}, "what may not have been sent is sent again"
    life.end_well(orders)
    assert {action.order for action in life.asked if isinstance(action, Release)} >= {
        order.order for order in orders if order.state in ("asked", "suspending")
    }
    queues = Queues(0.05)
    holder_of(queues, life.left.held, enabled=False).reconcile(life.write, life.now_ms, 0, False, None)
    assert queues.maximum_ratio == life.left.held[RESEARCH].before_ratio == 0.9
    PriorityRestoring(lambda action: Accepted(), life.left.priorities).reconcile(life.write, life.now_ms)
    assert (end_admissions(life) > 0) is name.startswith("format-5")
    life.journal.close()

    after = left_by(path)
    assert not after.remembered.ledger.open
    assert after.held == {}
    assert after.priorities == {}
    assert after.book.gate is None or not after.book.gate.reserved
    assert replay(read(path, closed=True), str(path)).steps == 4, "all of today's format is decided again"
    told = invoked("explain", "--journal", str(path), orders[0].order, hidden=str(path))
    assert told["status"] == 0


@pytest.mark.parametrize("name", WHOLE)
def test_a_life_after_the_next_reads_no_line_of_the_old_format(name: str, tmp_path: Path) -> None:
    """The file before is read for people only: what is acted on is the same without it."""
    path = laid(name, tmp_path)
    life = Life(path)
    life.take()
    life.journal.close()
    whole = Fold()
    for record in (line.record for line in read(path)):
        if not isinstance(record, State):
            whole.apply(record)
    assert encode(left_by(path).fold.state()) == encode(whole.state())
    journal = JournalFile(path, durable=False, segment_bytes=1, fold=left_by(path).fold)
    journal.append([])  # it is full: the next file begins
    journal.file.close()
    old = segments(path)[0]
    old.write_bytes(b"not looked at\n" + old.read_bytes().splitlines(keepends=True)[-1])
    assert encode(left_by(path).fold.state()) == encode(whole.state())


def test_a_state_that_its_lines_do_not_leave_is_a_difference(tmp_path: Path) -> None:
    path = laid("format-5-all-at-once", tmp_path)
    fold = left_by(path).fold
    fold.queues.held.clear()
    begun(path, fold).file.close()
    answer = invoked("replay", "--open", str(path), hidden=str(path))
    assert answer["status"] == 1
    assert '"lowered"' in "\n".join(answer["err"])


def test_a_daemon_upgrades_when_it_starts(tmp_path: Path) -> None:
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        state.journal.write_bytes(journals.raw("format-5-all-at-once"))
        plan = Plan(
            cluster=ClusterAddress(resource_managers=("http://127.0.0.1:1",)),
            attachment=Attachment(),
            settings=msgspec.structs.replace(DEFAULT, observe_only=True),
            state_dir=state.path,
        )
        loop, journal = make_loop(plan, state, Attached(1, 1, {"production": 1}), rebuild(state.journal))
        journal.file.close()
        assert {order.state for order in loop.controller.ledger.open.values()} == STATES
        assert [each.name for each in segments(state.journal)] == ["journal.000001.jsonl", "journal.jsonl"]
        assert rebuilt(state.journal) == piece("journals/format-5-all-at-once").frozen()["rebuilt"]


def test_where_freed_room_went_is_known_when_no_line_of_it_is_read(tmp_path: Path) -> None:
    """Two releases that were misdirected, many files ago: with a third the loop stands aside."""
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, durable=False, segment_bytes=1)
    journal.append([Header(FORMAT, DEFAULT, ())])
    for number in (1, 2):
        journal.append([taken(number, "taken")])
    for at_ms in range(5):
        journal.append([Contact(at_ms, "1")])
    journal.file.close()
    left = left_by(path)
    assert not [record for record in left.recent if isinstance(record, Transition)]
    assert left.misdirection.why is None
    left.misdirection.apply([taken(3, "taken")])
    assert left.misdirection.why is not None
    journal = begun(path, left.fold)
    journal.append([taken(3, "taken")])
    journal.file.close()
    assert left_by(path).misdirection.why == left.misdirection.why


def test_a_controller_that_has_only_begun_decides_by_its_own_header_in_the_next_file(tmp_path: Path) -> None:
    path, own = tmp_path / "journal.jsonl", msgspec.structs.replace(DEFAULT, expire_ms=77)
    journal = JournalFile(path, durable=False, segment_bytes=1)
    for record in (Header(FORMAT, own, ()), Contact(1, "1"), Observed(at_ms=1, cluster="not-asked")):
        journal.append([record])
    journal.file.close()
    assert next(line.record for line in read(path) if isinstance(line.record, State)).fresh is not None
    assert left_by(path).remembered.ledger.settings == own


def test_a_disk_that_is_full_is_told_and_the_old_file_stays_as_it_is(tmp_path: Path) -> None:
    path = laid("format-5-all-at-once", tmp_path)
    fold = left_by(path).fold
    with full(100), pytest.raises(OSError, match="start again") as told:
        begun(path, fold)
    assert told.value.filename == str(path)
    assert path.read_bytes() == journals.raw("format-5-all-at-once")
    begun(path, left_by(path).fold).file.close()
    assert rebuilt(path) == piece("journals/format-5-all-at-once").frozen()["rebuilt"]
