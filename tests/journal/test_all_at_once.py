"""A daemon that finds everything open at once goes on with all of it, from the lines or from the next file.

The golden journal ends with orders in every open state, requests that may not have been sent, a lowered
queue, changed priorities and reservations.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.frozen import journals
from tests.frozen.catalogue import piece
from tests.frozen.invoking import invoked
from tests.frozen.rebuilt import rebuilt
from tests.unit.daemon.test_loop import Attached
from tests.unit.daemon.test_queue_caps import RESEARCH, Queues
from tests.unit.deciding.freed_containers import decided, taken
from yarnctl.attach.connection.connection import Attachment
from yarnctl.config import ClusterAddress
from yarnctl.daemon.running import Plan, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.admission.entries import AdmissionClosed, AdmissionStarted
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
from yarnctl.deciding.reasons.orders import LeftByEarlierRun, QueueServing
from yarnctl.deciding.reasons.verdicts import EndedAs
from yarnctl.deciding.records import FORMAT, Contact, Header, Record, State, Transition, encode
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import body_of
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.fold import Fold
from yarnctl.journal.rebuild import Rebuilt, rebuild
from yarnctl.journal.segments import segments

NAME = "world-all-at-once"
STATES = {"ordered", "suspending", "checkpointed", "freed"}


def laid(folder: Path) -> Path:
    path = folder / "journal.jsonl"
    path.write_bytes(journals.raw(NAME))
    return path


def left_by(path: Path) -> Rebuilt:
    found = rebuild(path)
    assert found is not None
    return found


def begun(path: Path, fold: Fold) -> JournalFile:
    return JournalFile(path, durable=False, segment_bytes=1 << 26, fold=fold)


def in_next_file(path: Path) -> None:
    """Let the journal go on in a new file."""
    journal = JournalFile(path, durable=False, segment_bytes=1, fold=left_by(path).fold)
    journal.append([])  # it is full
    journal.file.close()


def test_the_next_file_begins_with_all_that_is_left(tmp_path: Path) -> None:
    path, was = laid(tmp_path), piece(f"journals/{NAME}").frozen()["rebuilt"]
    in_next_file(path)
    old, new = segments(path)
    assert old.read_bytes() == journals.raw(NAME)
    (head,) = new.read_bytes().splitlines(keepends=True)
    (state,) = [line.record for line in read(path) if isinstance(line.record, State)]
    assert body_of(head) == encode(state)
    assert {order.state for order in state.ledger.open} == STATES
    assert [change.target for change in state.changes] == [RESEARCH]
    assert state.book.gate is not None
    assert state.book.gate.reserved
    assert rebuilt(path) == was


def test_half_a_line_at_the_end_is_cut_off_and_kept(tmp_path: Path) -> None:
    path = laid(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:100])
    assert rebuilt(path) == piece(f"journals/{NAME}").frozen()["rebuilt"]
    assert path.read_bytes() == whole
    assert [each.name for each in tmp_path.iterdir() if "torn" in each.name] == [
        f"journal.jsonl.torn-{len(whole)}"
    ]


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
            *(
                ContainerGranted(f"{one.order}g", one.requester, one.node, one.request_size, at_ms)
                for one in orders
            )
        )
        assert {record.order for record in moved if record.target == "granted"} == {
            order.order for order in orders
        }


def end_admissions(life: Life) -> int:
    """Let whoever was let in come and end; return how many reservations there were."""
    book = life.left.book
    held = book.open("admitted", "running")
    at_ms = book.now_ms
    for each in held:
        if each.state == "admitted":
            life.write(AdmissionStarted(at_ms, each.admission, f"application_2_{each.sequence:04d}"))
        life.write(AdmissionClosed(at_ms, each.admission, "ended", EndedAs("FINISHED")))
    return len(held)


def test_what_was_open_is_known_after_a_restart_and_ends_well(tmp_path: Path) -> None:
    path = laid(tmp_path)
    life = Life(path)
    orders = list(life.left.remembered.ledger.open.values())
    assert {order.state for order in orders} == STATES
    due = {action.order for action in life.left.remembered.ledger.due if isinstance(action, Suspend)}
    life.take()
    sent = {action.order for action in life.asked if isinstance(action, Suspend)}
    assert sent == due == {"o-000012", "o-000014"}, "what may not have been sent is sent again"
    life.end_well(orders)
    assert {action.order for action in life.asked if isinstance(action, Release)} >= {
        order.order for order in orders if order.state in ("ordered", "suspending")
    }
    queues = Queues(0.05)
    assert queues.host.restorer.record(life.left.changes, QueueServing()) == ""
    queues.host.restorer.write = life.write
    queues.host.restorer.stop(LeftByEarlierRun())
    assert queues.maximum_ratio() == 0.9
    assert end_admissions(life) > 0
    life.journal.close()

    after = left_by(path)
    assert not after.remembered.ledger.open
    assert after.changes == ()
    assert after.book.gate is None or not after.book.gate.reserved


def test_a_daemon_starts_on_it(tmp_path: Path) -> None:
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        state.journal.write_bytes(journals.raw(NAME))
        plan = Plan(
            cluster=ClusterAddress(resource_managers=("http://127.0.0.1:1",)),
            attachment=Attachment(),
            settings=msgspec.structs.replace(DEFAULT, observe_only=True),
            state_dir=state.path,
        )
        loop, journal = make_loop(plan, state, Attached(1, 1, {"production": 1}), rebuild(state.journal))
        journal.file.close()
        assert {order.state for order in loop.controller.ledger.open.values()} == STATES
        assert rebuilt(state.journal) == piece(f"journals/{NAME}").frozen()["rebuilt"]


def test_a_life_after_the_next_reads_no_line_of_the_first_file(tmp_path: Path) -> None:
    """The file before is read for people only: what is acted on is the same without it."""
    path = laid(tmp_path)
    whole = encode(left_by(path).fold.state())
    in_next_file(path)
    in_next_file(path)
    first = segments(path)[0]
    first.write_bytes(b"not looked at\n" + first.read_bytes().splitlines(keepends=True)[-1])
    assert encode(left_by(path).fold.state()) == whole


def test_a_state_that_its_lines_do_not_leave_is_a_difference(tmp_path: Path) -> None:
    path = laid(tmp_path)
    fold = left_by(path).fold
    fold.changes.open.clear()
    journal = JournalFile(path, durable=False, segment_bytes=1, fold=fold)
    journal.append([])
    journal.file.close()
    answer = invoked("replay", "--open", str(path), hidden=str(path))
    assert answer["status"] == 1
    assert '"changes"' in "\n".join(answer["err"])


def test_where_freed_room_went_is_known_when_no_line_of_it_is_read(tmp_path: Path) -> None:
    """Two freed containers were misdirected, many files ago: with a third their queue is due for a pause."""
    path = tmp_path / "journal.jsonl"
    fold = Fold()
    fold.misdirection.apply([decided("etl", [1, 2, 3])])
    journal = JournalFile(path, durable=False, segment_bytes=1, fold=fold)
    journal.append([Header(FORMAT, DEFAULT, ())])
    for number in (1, 2):
        journal.append([taken(number, "misdirected")])
    for at_ms in range(5):
        journal.append([Contact(at_ms, "1")])
    journal.file.close()
    left = left_by(path)
    assert not [record for record in left.recent if isinstance(record, Transition)]
    assert left.misdirection.due() == []
    journal = begun(path, left.fold)
    journal.append([taken(3, "misdirected")])
    assert left.fold.misdirection.due() == ["etl"]
    pause = left.fold.misdirection.pause("etl", 4, None)
    journal.append([pause])
    journal.file.close()
    assert left_by(path).misdirection.standing(4) == {"etl": pause.why}


def test_a_controller_that_has_only_begun_decides_by_its_own_header_in_the_next_file(tmp_path: Path) -> None:
    path, own = tmp_path / "journal.jsonl", msgspec.structs.replace(DEFAULT, expire_ms=77)
    journal = JournalFile(path, durable=False, segment_bytes=1)
    for record in (Header(FORMAT, own, ()), Contact(1, "1"), Observed(at_ms=1, cluster="not-requested")):
        journal.append([record])
    journal.file.close()
    assert next(line.record for line in read(path) if isinstance(line.record, State)).fresh is not None
    assert left_by(path).remembered.ledger.settings == own
