"""A controller that dies at any point leaves a journal from which the next goes on, and loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.thoroughness import examples
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Action, Fact, Observation, ObservationRequest, Outcome
from yarnctl.deciding.records import Record, Resumed, State, Transition, encode
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.fold import Fold
from yarnctl.journal.rebuild import rebuild, repair
from yarnctl.journal.replay import replay
from yarnctl.loop import ClusterIdentity, ClusterPort, tick
from yarnctl.traces.job import Job
from yarnctl.units import Resources


class Killed(Exception):
    """kill -9."""


class Fuse:
    """Counts the points at which a process may die; burns through at the chosen ones."""

    def __init__(self, deaths: Sequence[int]) -> None:
        self.left = sorted(deaths)
        self.points = 0

    def point(self) -> None:
        self.points += 1
        if self.left and self.points >= self.left[0]:
            self.left.pop(0)
            raise Killed


class Fragile:
    """A journal and a port whose process may die before and after each append and each act."""

    def __init__(self, journal: JournalFile, port: ClusterPort, fuse: Fuse) -> None:
        self.journal, self.port, self.fuse = journal, port, fuse
        self.told: tuple[Fact, ...] = ()

    def append(self, records: Sequence[Record]) -> None:
        self.fuse.point()
        self.journal.append(records)
        self.fuse.point()

    def identify(self) -> ClusterIdentity:
        return self.port.identify()

    def observe(self, request: ObservationRequest) -> Observation:
        seen = self.port.observe(request)
        self.told = seen.facts
        return seen

    def perform(self, action: Action) -> Outcome:
        outcome = self.port.perform(action)
        self.fuse.point()
        return outcome


class MortalRun(Run):
    """A run whose controller dies now and then; ``restarts`` says how often it came back."""

    def begin(self, path: Path, fuse: Fuse, segment_bytes: int | None = None) -> MortalRun:
        self.path, self.fuse, self.restarts, self.segment_bytes = path, fuse, 0, segment_bytes
        self._open()
        return self

    def _open(self) -> None:
        repair(self.path)
        rebuilt = rebuild(self.path)
        fold = None if rebuilt is None or self.segment_bytes is None else rebuilt.fold
        self.file = JournalFile(self.path, durable=False, segment_bytes=self.segment_bytes, fold=fold)
        self.fragile = Fragile(self.file, self.port, self.fuse)
        self.controller = Controller(
            self.setup.settings, validate=True, remembered=rebuilt and rebuilt.remembered
        )

    def _tick(self, grid_ms: int) -> None:
        kernel = self.cluster.kernel
        assert self.controller is not None
        try:
            wake_at_ms = tick(self.controller, self.fragile, self.fragile)
        except Killed:
            self.file.file.close()
            self.restarts += 1
            # A new port looks at the cluster anew and tells again what the dead one may have kept.
            self.cluster.rm.facts[:0] = self.fragile.told
            self._open()
            wake_at_ms = kernel.now_ms + 3000
        if self.cluster.unfinished:
            kernel.at(max(wake_at_ms, kernel.now_ms), self._tick, grid_ms)


def jobs() -> tuple[Job, ...]:
    research = Job(
        name="research", job_class="research", submitted_at_ms=0, map_ms=(5000,), reduce_ms=(90_000,) * 7,
        reduce_keys=(900,) * 7,
    )  # fmt: skip
    production = [
        Job(name=f"production-{number}", job_class="production", submitted_at_ms=30_000 + 40_000 * number,
            map_ms=(8000, 8000), reduce_ms=(9000,) * 3, reduce_keys=(30,) * 3)
        for number in range(2)
    ]  # fmt: skip
    return (research, *production)


def mortal(path: Path, deaths: Sequence[int], segment_bytes: int | None = None) -> MortalRun:
    setup = Setup(nodes=4, node_size=Resources(2048, 2), timing=HADOOP3, settings=DEFAULT, seed=3)
    return MortalRun(setup, jobs(), SCHEMES["natjam"]).begin(path, Fuse(deaths), segment_bytes)


def played(path: Path, deaths: Sequence[int], segment_bytes: int | None = None) -> MortalRun:
    run = mortal(path, deaths, segment_bytes)
    result = run.go()
    run.file.close()
    assert result.lost_work_ms == 0
    replay(read(path, closed=True), str(path))
    return run


def test_nobody_dies(tmp_path: Path) -> None:
    run = played(tmp_path / "j", ())
    assert run.restarts == 0
    assert run.result().suspensions >= 4
    assert run.fuse.points > 60, "there must be points to die at"


@settings(max_examples=examples(60))
@given(st.lists(st.integers(1, 150), min_size=1, max_size=5))
def test_dying_at_any_point_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[int]
) -> None:
    """Before or after an append, after an act, between outcomes: the same keys, each done once."""
    path = tmp_path_factory.mktemp("journal") / "j"
    run = played(path, deaths)
    resumed = [line.record for line in read(path) if isinstance(line.record, Resumed)]
    assert len(resumed) <= run.restarts


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 150), max_size=5), st.sampled_from([1, 3000]))
def test_dying_over_many_files_loses_nothing(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[int], segment_bytes: int
) -> None:
    """A state stands between any two appends: replay's fold has the same there, a restart needs no more."""
    path = tmp_path_factory.mktemp("journal") / "j"
    played(path, deaths, segment_bytes)
    states, whole = 0, Fold()
    for line in read(path):
        if isinstance(line.record, State):
            states += 1
        else:
            whole.apply(line.record)
    rebuilt = rebuild(path)
    assert states > (40 if segment_bytes == 1 else 3)
    assert rebuilt is not None
    assert encode(rebuilt.fold.state()) == encode(whole.state())


@pytest.mark.thorough
def test_every_single_point(tmp_path: Path) -> None:
    points = mortal(tmp_path / "count", ())
    points.go()
    for point in range(1, points.fuse.points + 1):
        path = tmp_path / f"j{point}"
        run = played(path, (point,))
        assert run.restarts == 1
        events = [line.record.event for line in read(path) if isinstance(line.record, Transition)]
        assert "give-up" not in events, "what may not have been sent is sent again, not waited for"


def test_a_torn_line_is_cut_off_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "j"
    played(path, ())
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    beside = repair(path)
    assert beside is not None
    assert whole.startswith(path.read_bytes())
    assert path.read_bytes() + beside.read_bytes() == whole[:-40]
    assert rebuild(path) is not None
