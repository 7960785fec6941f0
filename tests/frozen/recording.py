"""Recording golden journals: small stories, each told once, under the hosts that a unit test can run.

Law: a recipe is deterministic. What it has recorded is kept under ``journals/`` and never made again
(``python -m tests.frozen record NAME`` refuses a name that is taken). Journals of live clusters were recorded
by the programs themselves; README.md says how.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from emulator.cluster.faults import StoreDown
from emulator.scenario import prepare, read_scenario, setup
from emulator.virtual.run import Run, Setup, run_scheme
from emulator.virtual.schemes import SCHEMES
from tests.frozen import admission_stories, all_at_once, attached_stories
from tests.frozen.journals import FOLDER, SUFFIX
from tests.frozen.pieces import packed
from tests.journal.test_drains import Played
from tests.journal.test_loop_and_journal import run as tiny_run
from tests.journal.test_restart import mortal
from tests.property.stories import STORIES, tell
from tests.soak import governor_scenarios, lowered_queue
from tests.unit.daemon.test_loop import PRODUCTION, Biased, Lock, daemon
from tests.unit.deciding.controller_world import Kept, kept
from tests.unit.deciding.controller_world import run as world_run
from tests.unit.deciding.random_histories import draw
from tests.unit.service.played import JOBS, SETUP
from tests.unit.two_jobs import play as held_run
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import Accepted, Change, Restore, SetQueueMaximum
from yarnctl.deciding.reasons.orders import ChangedByOthers, LeftByEarlierRun, QueueServing, ReadBack
from yarnctl.deciding.records import (
    FORMAT,
    Decision,
    Header,
    Lowering,
    Record,
    Restored,
    Restoring,
    Transition,
    performed,
)
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.errors import BadInput
from yarnctl.journal.chain import Chain, MemoryJournal
from yarnctl.journal.file import JournalFile
from yarnctl.journal.segments import segments

SCENARIOS = Path(__file__).parents[2] / "docs/scenarios"
UNTIL_MS = 10 * 60_000
HISTORIES = 2_000
KINDS = ("Transfer", "Epoch", "Return", "Ranking", "Refusal")
"""Kinds of records for each of which the first random history that has one is kept."""
FILE_BYTES = 20_000
"""How large a file of a journal in several becomes."""


def closed(records: Sequence[Record]) -> bytes:
    chain = Chain()
    return b"".join(map(chain.seal, records)) + chain.seal_end()


def open_(records: Sequence[Record]) -> bytes:
    """Return the bytes of a journal that is still written, or whose writer was killed."""
    return b"".join(map(Chain().seal, records))


# --- virtual time -------------------------------------------------------------------------------


def virtual(scheme: str = "natjam", **changes: Any) -> list[Record]:
    """Return the records of a small run: research fills three nodes, production takes room back."""
    settings = msgspec.structs.replace(SETUP.settings, **changes.pop("settings", {}))
    made: Setup = msgspec.structs.replace(SETUP, settings=settings, **changes)
    journal = MemoryJournal()
    Run(made, JOBS, SCHEMES[scheme], journal).go(until_ms=UNTIL_MS)
    return journal.records


def open_orders(records: Sequence[Record]) -> int:
    """Return how many orders are open after these records."""
    made = sum(len(record.orders) for record in records if isinstance(record, Decision))
    return made - sum(isinstance(record, Transition) and record.target not in OPEN for record in records)


def with_most_open(records: Sequence[Record]) -> list[Record]:
    sizes = [open_orders(records[: place + 1]) for place in range(len(records))]
    return list(records[: len(sizes) - sizes[::-1].index(max(sizes))])


def deadlines() -> list[Record]:
    """Return a run of three jobs in one queue, each submitted later and due earlier."""
    prepared = prepare(*read_scenario(SCENARIOS / "deadlines.toml"))
    journal = MemoryJournal()
    run_scheme(setup(prepared.scenario), prepared.jobs, SCHEMES["natjam"], journal)
    return journal.records


def mixed() -> list[Record]:
    """Return the story in which the mix pulls each lever that virtual time has."""
    run = STORIES["mix"]()
    tell(run)
    assert isinstance(run, Run)
    assert run.levers is not None
    return list(run.levers.records)


def drained() -> bytes:
    """Return the journal of a daemon that asks executors to leave, dies once, and lets them come back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        Played(path, (8,))
        return path.read_bytes()


def restarted() -> bytes:
    """Return the journal of a controller that died four times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        run = mortal(path, (20, 47, 71, 90))
        run.go()
        run.file.close()
        return path.read_bytes()


def in_files(records: Sequence[Record]) -> bytes:
    """Return a journal that went on over several files, joined: each further one begins with a state."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        with JournalFile(path, durable=False, segment_bytes=FILE_BYTES) as journal:
            for each in records:
                journal.append([each])
        return b"".join(file.read_bytes() for file in segments(path))


def until_lowered(records: Sequence[Record]) -> list[Record]:
    """Return the records up to the instant at which most orders are open while a queue is lowered."""
    first = next(place for place, record in enumerate(records) if isinstance(record, Lowering))
    back = next(place for place, record in enumerate(records) if isinstance(record, Restoring))
    sizes = [open_orders(records[: place + 1]) for place in range(first + 1, back)]
    return list(records[: first + 2 + sizes.index(max(sizes))])


def world(history: Kept) -> bytes:
    return closed(world_run(history.settings(), history.moves, history.own).records)


def first_with(kind: str) -> bytes:
    """Return the journal of the first random history that holds a kind of record."""
    for number in range(HISTORIES):
        history = draw(1, number)
        records = world_run(history.settings(), history.moves, history.own).records
        if any(type(record).__name__ == kind for record in records):
            return closed(records)
    raise BadInput(kind, f"is in none of {HISTORIES} random histories")


# --- what only records say ----------------------------------------------------------------------


def holds() -> list[Record]:
    """Return queues that this daemon and an earlier one lowered, restored, and changed by others."""
    ours = Change("queue", "root.research", "0.9", "0.05")
    found = Change("queue", "root.etl", "1.0", "0.2")
    return [
        Header(FORMAT, DEFAULT, ()), Lowering(1_000, (ours,), QueueServing()),
        performed(1_000, SetQueueMaximum("root.research", 0.05), Accepted()),
        Restored(2_000, "queue", "root.research", "0.5", ChangedByOthers()),
        Lowering(3_000, (found,), LeftByEarlierRun()), Restoring(4_000, found, LeftByEarlierRun()),
        performed(4_000, Restore(found), Accepted()),
        Restored(5_000, "queue", "root.etl", "1.0", ReadBack()),
    ]  # fmt: skip


def lost_host(folder_name: str) -> bytes:
    """Return the journal of a daemon whose host was lost while a queue was lowered, or of the next one."""
    for case in lowered_queue.cases():
        if case.kind != "lost-host":
            continue
        with tempfile.TemporaryDirectory() as folder:
            if lowered_queue.play(case, Path(folder)).lowered_at_fault:
                return (Path(folder) / folder_name / "journal.jsonl").read_bytes()
    raise BadInput("lost-host", "no case lowered the queue")


def queue_paused() -> list[Record]:
    """Return the records of a daemon that pauses queue etl; an operator ends the pause."""
    cluster = Biased(serving_ms=60_000, then_ms=99_000)
    loop, journal = daemon(cluster, lock=Lock(), preempting=PRODUCTION)
    cluster.then = lambda: loop.resume("etl")
    loop.run(420)
    return journal.records


def governed() -> Sequence[Record]:
    """Return a run whose levers the governor stops: no checkpoint can be written."""
    stored = next(each for each in governor_scenarios.SCENARIOS if each.name == "no-store")
    return governor_scenarios.play(stored).journal.records


def recipes() -> dict[str, Callable[[], bytes]]:
    """Return every journal that this program can record, by name."""
    down = StoreDown(at_ms=20_000, until_ms=60_000)
    killing = {"on_timeout": "kill", "kill_timeout_ms": 4_000}
    return {
        "virtual-natjam": lambda: closed(virtual()),
        "virtual-natjam-open-orders": lambda: open_(with_most_open(virtual())),
        "virtual-kill": lambda: closed(virtual("kill")),
        "virtual-store-down": lambda: closed(virtual(faults=(down,), settings={"kill_timeout_ms": 4_000})),
        "virtual-killed-on-timeout": lambda: closed(virtual(faults=(down,), settings=killing)),
        "virtual-deadlines": lambda: closed(deadlines()),
        "virtual-held": lambda: closed(held_run()[1].records),
        "virtual-held-lowered": lambda: open_(until_lowered(held_run()[1].records)),
        "virtual-restarted": restarted,
        "virtual-in-files": lambda: in_files(virtual()),
        "virtual-mix": lambda: closed(mixed()),
        "virtual-governed": lambda: closed(governed()),
        "tiny-default": lambda: tiny_run()[1].encoded(),
        "tiny-paper": lambda: tiny_run(PAPER)[1].encoded(),
        "gate-closed": lambda: closed(admission_stories.ended()),
        "gate-reservations": lambda: open_(admission_stories.with_reservations()),
        "gate-clock-set-back": lambda: open_(admission_stories.clock_set_back()),
        "gate-market": lambda: open_(admission_stories.at_a_price()),
        "attached": lambda: closed(attached_stories.granted()),
        "attached-open-orders": lambda: open_(attached_stories.under_way()),
        "daemon-drains": drained,
        "daemon-queue-paused": lambda: closed(queue_paused()),
        "daemon-lost-host": lambda: lost_host("here"),
        "daemon-after-lost-host": lambda: lost_host("elsewhere"),
        "records-queues-held": lambda: closed(holds()),
        "world-all-at-once": lambda: open_(all_at_once.open_at_once()),
        "world-priorities-put-back": lambda: closed(all_at_once.priorities_put_back()),
        **{f"world-{name}": partial(world, history) for name, history in kept().items()},
        **{f"world-with-{kind.lower()}": partial(first_with, kind) for kind in KINDS},
    }


def record(name: str, source: Path | None = None, folder: Path = FOLDER) -> Path:
    """Record a journal, or keep one that was recorded elsewhere; a name that is taken is refused."""
    path = folder / f"{name}{SUFFIX}"
    if path.exists():
        raise BadInput(
            name, "is recorded already, and a golden journal is never made again", "give another name"
        )
    if source is None and name not in recipes():
        raise BadInput(name, "has no recipe", f"give its file, or one of {', '.join(recipes())}")
    data = recipes()[name]() if source is None else source.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(data))
    return path
