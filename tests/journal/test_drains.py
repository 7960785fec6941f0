"""A daemon that dies at any point leaves no application small, and its journal replays to the byte.

The cluster is a script: an application of four executors fills it, production asks for two containers twice.
The driver obeys an order once, by the decision's number; an executor that leaves is gone after 3 s. Of
workers others leave than were named; the port says which order each answers, or ("unseen") sees none go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.tables import app, cluster, seen, size, task
from tests.journal.test_restart import Fragile, Fuse, Killed
from tests.thoroughness import examples
from tests.unit.deciding.test_mix import HELD, MIX, SHARES
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import (
    Accepted,
    Action,
    ContainerEnded,
    ContainerGranted,
    Drain,
    Fact,
    Grow,
    Observation,
    ObservationRequest,
    Outcome,
    Snapshot,
    TaskView,
)
from yarnctl.deciding.regrowing import GROW_AGAIN_MS
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import rebuild, repair
from yarnctl.journal.replay import replay
from yarnctl.loop import ClusterIdentity, tick

Kind = Literal["executor", "worker", "unseen"]
KINDS: tuple[Kind, ...] = get_args(Kind)
EXECUTORS = 4
DEATHS_MAX = 4
WAVES = ((5_000, 25_000), (90_000, 110_000))
"""When production asks for two containers, and when it gives them back."""
STEP_MS, ENDS_MS = 500, WAVES[-1][1] + (DEATHS_MAX + 1) * GROW_AGAIN_MS
"""The end lets every death fall between the write of the last "grow" and its sending."""


class Script:
    """The scripted cluster; ``target`` is how many executors the application asks for."""

    def __init__(self, kind: Kind = "executor") -> None:
        self.kind = kind
        self.asked: dict[int, list[str]] = {}
        self.now_ms = 0
        self.target = self.issued = EXECUTORS
        self.working = {f"e{number + 1}" for number in range(EXECUTORS)}
        self.leaving: dict[str, tuple[int, int]] = {}
        self.coming: list[int] = []
        self.gone: dict[int, int] = {}
        self.orders = 0
        self.production = 0
        self.facts: list[Fact] = []
        self.fewest = EXECUTORS

    def go_on(self, now_ms: int) -> None:
        """Let the cluster live until this instant."""
        self.now_ms = now_ms
        for name in [name for name, (at_ms, _) in self.leaving.items() if at_ms <= now_ms]:
            self._went(name, self.leaving.pop(name)[1])
        if not self.waits:
            self.production = 0
        while self.waits and self.free:
            self.production += 1
            name = f"p{now_ms}-{self.production}"
            self.facts.append(ContainerGranted(name, "p", "n1", size(1), now_ms))
        while len(self.working) - len(self.leaving) + len(self.coming) < self.target and self.free:
            self.coming.append(now_ms + 2000)
        for at_ms in [at_ms for at_ms in self.coming if at_ms <= now_ms]:
            self.coming.remove(at_ms)
            self.issued += 1
            self.working.add(f"e{self.issued}")
        self.fewest = min(self.fewest, len(self.working))

    def _went(self, name: str, decision: int) -> None:
        self.working.discard(name)
        orders = self.asked.get(decision, [])
        if self.kind == "unseen":
            return
        order = orders.pop(0) if self.kind == "worker" and orders else ""
        self.facts.append(ContainerEnded(f"{name}c", "r", "n1", "suspended", self.now_ms, order))

    @property
    def waits(self) -> int:
        """How many containers production waits for."""
        asks = any(begin_ms <= self.now_ms < end_ms for begin_ms, end_ms in WAVES)
        return 2 - self.production if asks else 0

    @property
    def free(self) -> int:
        return EXECUTORS - len(self.working) - len(self.coming) - self.production

    # -- as a port -------------------------------------------------------------------------------

    def identify(self) -> ClusterIdentity:
        return ClusterIdentity("1", 1)

    def observe(self, request: ObservationRequest) -> Observation:
        facts, self.facts = tuple(self.facts), []
        wanted = request.cluster and self.waits
        snapshot = self._snapshot() if wanted else None
        tasks = {"r": self._tasks()} if "r" in request.victims else {}
        look = seen(self._snapshot(), tasks, now_ms=self.now_ms)
        return msgspec.structs.replace(
            look, snapshot=snapshot, cluster="seen" if wanted else "quiet", facts=facts, held=HELD
        )

    def _snapshot(self) -> Snapshot:
        count = len(self.working) + len(self.coming) + 1
        apps = [app("r", "research", count), app("p", "production", 1 + self.production, self.waits)]
        return cluster(*apps, guaranteed=SHARES)

    def _tasks(self) -> tuple[TaskView, ...]:
        """Return executors as the attached port shows them: while some leave no other is a candidate."""
        names = sorted(self.working)
        return tuple(
            task(name, 3000, kind="executor" if self.kind == "executor" else "worker", since_ms=self.now_ms,
                able=not self.leaving and place + 1 < len(names))
            for place, name in enumerate(names)
        )  # fmt: skip

    def perform(self, action: Action) -> Outcome:
        if isinstance(action, Drain):
            self.asked.setdefault(action.decision, []).append(action.order)
            self.order(action.decision, action.mates)
        elif isinstance(action, Grow):
            self.target += sum(self.gone.get(number, 0) for number in action.decisions)
            self.gone |= dict.fromkeys(action.decisions, 0)
        return Accepted()

    def order(self, decision: int, names: tuple[str, ...]) -> None:
        """Let executors leave, once for each decision: the target falls by those that are there."""
        if decision in self.gone:
            return
        found = [name for name in names if name in self.working and name not in self.leaving]
        if self.kind != "executor":
            found = sorted(self.working)[-len(found) :] if found else []
        self.gone[decision] = len(found)
        self.orders += 1
        self.leaving |= dict.fromkeys(found, (self.now_ms + 3000, decision))
        self.target -= len(found)


class Played:
    """The script with a controller that dies at some points; ``restarts`` says how often."""

    def __init__(self, path: Path, deaths: tuple[int, ...], kind: Kind = "executor") -> None:
        self.path, self.fuse, self.restarts = path, Fuse(deaths), 0
        self.script = Script(kind)
        self._open()
        wake_ms = 0
        for now_ms in range(0, ENDS_MS, STEP_MS):
            self.script.go_on(now_ms)
            while wake_ms <= now_ms:
                wake_ms = self._tick(now_ms)
                if wake_ms <= now_ms and not self.controller.to_observe.victims:
                    break
        self.file.end()
        self.file.file.close()

    def _open(self) -> None:
        repair(self.path)
        rebuilt = rebuild(self.path)
        self.file = JournalFile(self.path, durable=False)
        self.fragile = Fragile(self.file, self.script, self.fuse)
        self.controller = Controller(MIX, validate=True, remembered=rebuilt and rebuilt.remembered)

    def _tick(self, now_ms: int) -> int:
        try:
            return tick(self.controller, self.fragile, self.fragile)
        except Killed:
            self.file.file.close()
            self.restarts += 1
            self.script.facts[:0] = self.fragile.told
            self._open()
            return now_ms + 3000


def played(path: Path, *deaths: int, kind: Kind = "executor") -> Played:
    run = Played(path, deaths, kind)
    replay(read(path, closed=True), str(path))
    return run


def whole(run: Played) -> None:
    """Assert that the application has all its executors again, and no more than it had."""
    script = run.script
    assert script.leaving == {}
    assert (script.target, len(script.working)) == (EXECUTORS, EXECUTORS)
    assert run.controller.ledger.regrowing.shrunk == {}


@pytest.mark.parametrize("kind", ["executor", "worker"])
def test_nobody_dies(tmp_path: Path, kind: Kind) -> None:
    run = played(tmp_path / "j", kind=kind)
    whole(run)
    assert run.script.fewest == EXECUTORS - 2
    assert run.script.orders == 2, "one order a wave"
    assert run.restarts == 0
    assert run.fuse.points >= 30


@settings(max_examples=examples(60))
@given(st.lists(st.integers(1, 45), min_size=1, max_size=DEATHS_MAX), st.sampled_from(KINDS))
def test_wherever_the_daemon_dies_no_application_stays_small(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[int], kind: Kind
) -> None:
    whole(played(tmp_path_factory.mktemp("journal") / "j", *deaths, kind=kind))


def test_a_daemon_that_dies_before_each_grow_is_sent_sends_it_in_the_end(tmp_path: Path) -> None:
    """Three deaths stand between the write of a grow and its sending: each costs a wait of GROW_AGAIN_MS."""
    run = played(tmp_path / "j", 27, 31, 35, 39)
    assert run.restarts == DEATHS_MAX
    whole(run)


def test_workers_that_nobody_saw_go_come_back_all_the_same(tmp_path: Path) -> None:
    run = played(tmp_path / "j", kind="unseen")
    assert run.script.orders >= 1
    whole(run)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_every_single_point(tmp_path: Path, kind: Kind) -> None:
    points = played(tmp_path / "count", kind=kind).fuse.points
    for point in range(1, points + 1):
        run = played(tmp_path / f"j{point}", point, kind=kind)
        assert run.restarts == 1
        whole(run)
