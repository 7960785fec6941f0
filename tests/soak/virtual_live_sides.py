"""The two sides of virtual against live: a case run in virtual time, and lived through by clock.

Law: both sides get the same jobs, queues, timing, phases and settings. Live, the cluster is ``yarn-emulator
serve --containers modelled``; at speed 1 yarnctl is the very program ``yarnctl run``, at another speed the
same daemon with its spans shortened by as much.

Identical phases: a ``Phasing`` says when in each second nodes beat and jobs come, counted from yarnctl's
tick, and virtual time is given the one that was live. Nothing may hang on what comes first within a few ms,
because wires take some: the seed is one whose nodes (and the AMs, half a second later) beat 100 ms apart at
least, yarnctl is started anew if its tick comes just before a beat, and jobs come well before the next beat.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest import mock

import msgspec

from emulator.cluster.timing import HADOOP3
from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.daemon_plans import plan_for
from yarnctl.deciding.draws import uniform
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.records import Decision, Record, Stance, decode
from yarnctl.deciding.settings import LeverSettings
from yarnctl.hadoop.lock import LockFile
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import ONE_SLOT, Job
from yarnctl.units import times

ROOT = Path(__file__).resolve().parents[2]
AM_RATIO = 0.5
"""That of the live emulator's two default queues."""

SEED = 115
"""Nodes beat at 469, 322, 197 and 74 ms."""

TICK_MARGIN_MS = 100
"""So long after yarnctl's tick no node beats: what it does takes effect with the beat of virtual time."""

STARTS = 10
PATIENCE_S = 60.0
PATIENT_MS = 150_000
"""How long the daemon's lock lasts; a real one's lasts 15 s."""

AHEAD_S = 2.0
"""The workload begins so long after everything is up."""

UNSCALED = (
    "kill_timeout_ms", "look_age_max_ms", "silent_ms", "configuration_age_ms", "eligibility_retry_ms",
    "look_ms", "look_wait_ms", "order_wait_ms", "answer_age_ms",
)  # fmt: skip
"""Spans that bound waiting for answers: a wire is no faster because modelled time is."""


class Case(NamedTuple):
    """One scenario: a cluster, its jobs, the policies."""

    name: str
    nodes: int
    slots: int
    jobs: tuple[Job, ...]
    job_policy: str = "MR"
    task_policy: str = "SRT"


class Victim(NamedTuple):
    """One pick: of which decision, which attempt, and how much the tasks in its case still had to do (ms)."""

    decision: int
    attempt: str
    remaining_ms: int
    seen: Mapping[str, int]


class Phasing(NamedTuple):
    """When in each second of modelled time nodes beat and jobs are submitted; ms after yarnctl's tick."""

    nodes_ms: tuple[int, ...]
    jobs_ms: int = 0


class Ran(NamedTuple):
    """What came of one side: completion time of each job (ms, -1 unfinished), victims in order.

    Live: ``phasing`` is the one that was, ``held_up_ms`` the longest that this machine kept somebody waiting
    who was due (with a full machine nothing can be compared).
    """

    completion_ms: dict[str, int]
    victims: tuple[Victim, ...]
    phasing: Phasing
    held_up_ms: int = 0


# --- virtual time -------------------------------------------------------------------------------


def told(case: Case, url: str, state: Path) -> tuple[str, ...]:
    where = ("--rm", url, "--enforce", "--listen", "off", "--state-dir", str(state))
    return (*where, "--policy", case.job_policy, "--task-policy", case.task_policy)


@contextlib.contextmanager
def attached(case: Case, folder: Path, speed: float, *words: str) -> Iterator[str]:
    """Run a case's cluster with modelled containers, and yarnctl with the mix; yield its address.

    It has looked at the cluster by then: on a busy machine it starts more slowly than a workload ends.
    """
    cluster = ("serve", "--nodes", str(case.nodes), "--slots", str(case.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(speed), "--work", str(folder / "work"))
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        options = (*told(case, url, folder / "state"), "--eviction", "mix", *words)
        with program("tests.soak.virtual_live_sides", str(speed), *options, log=folder / "yarnctl.log"):
            first_look_ms(folder / "state" / "journal.jsonl")
            yield url


def drawn_phases(nodes: int) -> tuple[int, ...]:
    """Return when in each second the nodes of a cluster beat, live and in virtual time."""
    interval_ms = HADOOP3.nm_heartbeat_ms
    return tuple(uniform(SEED, 2, index) * interval_ms >> 64 for index in range(nodes))


def phasing_of(nodes: int, tick_phase_ms: int = 0) -> Phasing:
    """Return the phasing for a tick at that instant of a second; jobs come just behind a beat.

    The beat is the one that the longest pause follows.
    """
    interval_ms = HADOOP3.nm_heartbeat_ms
    phases = tuple((phase_ms - tick_phase_ms) % interval_ms for phase_ms in drawn_phases(nodes))
    ordered = sorted(phases)
    following = (*ordered[1:], ordered[0] + interval_ms)
    _, behind_ms = max((after - beat, beat) for beat, after in zip(ordered, following, strict=True))
    return Phasing(phases, (behind_ms + 10) % interval_ms)


def run_virtual(case: Case, phasing: Phasing) -> Ran:
    """Run a case in virtual time, where yarnctl ticks at whole seconds."""
    setup = Setup(
        nodes=case.nodes, node_size=times(ONE_SLOT, case.slots), timing=HADOOP3,
        settings=plan_for(*told(case, "http://127.0.0.1:1", Path("unused"))).settings, am_ratio=AM_RATIO,
        seed=SEED,
    )  # fmt: skip
    journal = MemoryJournal()
    jobs = tuple(
        msgspec.structs.replace(job, submitted_at_ms=job.submitted_at_ms + phasing.jobs_ms)
        for job in case.jobs
    )
    run = Run(setup, jobs, SCHEMES["natjam"], journal)
    manager = run.cluster.rm
    for node, phase_ms in zip(manager.nodes, phasing.nodes_ms, strict=True):
        node.phase_ms = phase_ms
    manager.open_nodes[:] = sorted((node.phase_ms, node.index) for node in manager.nodes)
    result = run.go()
    completions = {one.name: one.completion_ms for one in result.jobs}
    return Ran(completions, victims_of(journal.records, case.jobs), phasing)


_ATTEMPT = re.compile(r"attempt_\d+_(\d+)_([mr])_(\d+)_(\d+)")


def victims_of(records: Sequence[Record], jobs: Sequence[Job], speed: float = 1.0) -> tuple[Victim, ...]:
    """Return the picks of all decisions, under names that do not depend on the cluster."""

    def named(attempt: str) -> str:
        found = _ATTEMPT.fullmatch(attempt)
        assert found is not None, attempt
        number, kind, task, again = found.groups()
        return f"{jobs[int(number) - 1].name} {kind}{int(task)} attempt {int(again)}"

    def remaining(task: TaskView) -> int:
        return round(task.remaining_ms * speed)

    victims, look = [], dict[str, TaskView]()
    for record in records:
        if isinstance(record, Observed):
            look = look if record.change is None else {}
            look |= {task.attempt: task for row in record.tasks.values() for task in row}
        elif isinstance(record, Decision):
            named_here = [pick.task.attempt for pick in (*record.picks, *record.handed_back)]
            named_here += [task.attempt for task in record.refused_tasks]
            seen = {named(name): remaining(look[name]) for name in sorted(named_here) if name in look}
            victims += [
                Victim(record.number, named(pick.task.attempt), remaining(pick.task), seen)
                for pick in record.picks
            ]
    return tuple(victims)


# --- live ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def program(module: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run one of our programs; end it in order at the end of the block."""
    command = (sys.executable, "-c", f"from {module} import main; main()", *arguments)
    with log.open("w") as said:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.stdout.close()


def run_live(case: Case, speed: float, folder: Path) -> Ran:
    """Live through a case. Logs and journal stay in the folder."""
    folder.mkdir(parents=True)
    cluster = ("serve", "--nodes", str(case.nodes), "--slots", str(case.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(speed), "--seed", str(SEED))
    serving = program(
        "emulator.cli", *cluster, *how, "--work", str(folder / "work"), log=folder / "serve.log"
    )
    with serving as serve, watched() as held_up:
        assert serve.stdout is not None
        said = json.loads(serve.stdout.readline())
        with well_phased(case, said["url"], said["epoch"], speed, folder) as (origin_ms, journal, phasing):
            began_s = beginning(origin_ms, phasing.jobs_ms, speed)
            rows = play(Client(said["url"], "harness"), case.jobs, speed, began_s=began_s)
    completions = {row.name: row.completion_ms if row.final_status == "SUCCEEDED" else -1 for row in rows}
    return Ran(completions, victims_of(read_records(journal), case.jobs, speed), phasing, max(held_up))


@contextlib.contextmanager
def well_phased(
    case: Case, url: str, epoch_ms: int, speed: float, folder: Path
) -> Iterator[tuple[int, Path, Phasing]]:
    """Run yarnctl, started anew until no node beats just after its tick; yield its first look's instant."""
    for start in range(1, STARTS + 1):
        state = folder / f"state-{start}"
        with daemon(case, url, speed, state, folder / f"yarnctl-{start}.log"):
            origin_ms = first_look_ms(state / "journal.jsonl")
            kernel_ms = epoch_ms + round((origin_ms - epoch_ms) * speed)
            phasing = phasing_of(case.nodes, kernel_ms % HADOOP3.nm_heartbeat_ms)
            if start == STARTS or min(phasing.nodes_ms) >= TICK_MARGIN_MS:
                yield origin_ms, state / "journal.jsonl", phasing
                return


@contextlib.contextmanager
def watched() -> Iterator[list[int]]:
    """Watch during the block how late this machine wakes somebody who is due; ms."""
    late_ms, over = [0], threading.Event()

    def watch() -> None:
        while True:
            due_s = time.monotonic() + 0.05
            if over.wait(0.05):
                return
            late_ms.append(round((time.monotonic() - due_s) * 1000))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield late_ms
    finally:
        over.set()
        watcher.join()


def daemon(
    case: Case, url: str, speed: float, state: Path, log: Path
) -> contextlib.AbstractContextManager[object]:
    """Run yarnctl against a cluster."""
    if speed == 1.0:
        return program("yarnctl.cli", "run", *told(case, url, state), log=log)
    return program("tests.soak.virtual_live_sides", str(speed), *told(case, url, state), log=log)


def main() -> None:
    """Be ``yarnctl run`` in a quicker world: the first argument is how much quicker, the others its own.

    Nobody else wants the lock, and a busy machine can take longer for a tick than the lock would last.
    """
    from yarnctl.daemon import daemon_lock, running

    speed, plan = float(sys.argv[1]), plan_for(*sys.argv[2:])
    settings, attachment = scaled(plan.settings, speed), scaled(plan.attachment, speed)
    with mock.patch.object(daemon_lock, "LockFile", functools.partial(LockFile, ttl_ms=PATIENT_MS)):
        running.run(msgspec.structs.replace(plan, settings=settings, attachment=attachment))


Settings = TypeVar("Settings", bound=msgspec.Struct)


def scaled(settings: Settings, speed: float) -> Settings:
    """Return settings with every span shortened, those of levers too."""
    spans: dict[str, Any] = {
        name: max(1, round(getattr(settings, name) / speed))
        for name in settings.__struct_fields__
        if name.endswith("_ms") and not name.endswith("_per_ms") and name not in UNSCALED
    }
    levers = getattr(settings, "levers", None)
    if isinstance(levers, LeverSettings):
        spans["levers"] = scaled(levers, speed)
    return msgspec.structs.replace(settings, **spans)


def first_look_ms(journal: Path) -> int:
    """Wait for yarnctl's first look at the cluster; return its instant, on which its grid of ticks lies."""
    deadline_s = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while time.monotonic() < deadline_s:
        for record in read_records(journal):
            if isinstance(record, Stance):
                return record.at_ms
        pause.wait(0.05)
    raise AssertionError("yarnctl has not looked at the cluster")


def beginning(origin_ms: int, phase_ms: int, speed: float) -> float:
    """Return an instant ahead, in s, that lies ``phase_ms`` behind a tick in modelled time."""
    begin_ms = origin_ms + phase_ms / speed
    passed = int((time.time() + AHEAD_S - begin_ms / 1000) * speed) + 1
    return begin_ms / 1000 + passed / speed


def read_records(journal: Path) -> list[Record]:
    """Return the whole records of a journal that may still be written."""
    if not journal.exists():
        return []
    data = journal.read_bytes()
    records = []
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            records.append(decode(line))
    return records
