"""Playing scenarios: every event under watch, to the end, with nothing swallowed.

Law: a play ends in a result or in an exception. Time that is up counts as Stuck: whatever comes
out of ``scenarios`` can be finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy

from emulator.cluster.entities import NEVER, REDUCE, RUNNING, Container
from emulator.cluster.faults import Fault
from emulator.invariants import RunWatch, check_all, check_end
from emulator.virtual.lever_tally import LeverFigures
from emulator.virtual.run import Result, Run, cluster_of
from emulator.virtual.schemes import SCHEMES
from tests.property.scenarios import Bare, Scenario
from yarnctl.deciding.records import decode, encode
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.file import Line
from yarnctl.journal.replay import replay

UNTIL_MS = 1_800_000
"""No scenario is longer than a few virtual minutes; after half an hour it is stuck."""

Drawn = TypeVar("Drawn")


class Tally:
    """What the scenarios of one test had in them."""

    def __init__(self) -> None:
        self.played = self.events = self.checks = self.suspensions = self.kills = self.orders = 0
        self.levers: Counter[str] = Counter()

    def note(self, watch: RunWatch, kills: int = 0) -> None:
        self.played += 1
        self.events += watch.kernel.events
        self.checks += watch.checks
        self.suspensions += sum(master.suspensions for master in watch.masters)
        self.kills += kills
        self.orders += len(watch.decided)

    def noted_levers(self, result: Result) -> None:
        """Count the levers that a mix pulled."""
        assert isinstance(result.levers, LeverFigures)
        self.levers.update(result.levers.pulled)


class Meddled:
    """A bare cluster to whose containers things are done at given instants, sense or no sense."""

    def __init__(self, bare: Bare) -> None:
        self.cluster = cluster_of(
            nodes=bare.nodes, node_size=bare.node_size, queues=bare.queues, jobs=bare.jobs,
            timing=bare.timing, seed=bare.seed, faults=bare.faults,
        )  # fmt: skip
        lossy = [deed for deed in bare.meddling if deed[1] in ("kill", "preempt")]
        self.faults: tuple[Fault | tuple[int, str, int], ...] = bare.faults or tuple(lossy)
        self.orders = 0
        for deed in bare.meddling:
            self.cluster.kernel.at(deed[0], self.do, deed)

    def do(self, deed: tuple[int, str, int]) -> None:
        """Do one thing to one of the containers that masters run."""
        _, what, pick = deed
        if what == "prioritise":
            apps = list(self.cluster.rm.applications.values())
            if apps:
                self.cluster.rm.scheduler.reprioritise(apps[pick % len(apps)], pick)
            return
        running = [each for master in self.cluster.masters for each in master.running.values()]
        fitting = [each for each in running if FITS[what](each)]
        if fitting:
            self.do_to(fitting[pick % len(fitting)], what)

    def do_to(self, container: Container, what: str) -> None:
        cluster = self.cluster
        match what:
            case "suspend":
                self.orders += 1
                cluster.suspension.request(container, container.order or f"o-{self.orders}")
            case "withdraw":
                cluster.suspension.withdraw(container, container.order)
            case "release":
                cluster.suspension.release(container, container.order)
            case "kill":
                container.app.master.kill(container, "killed", cluster.kernel.now_ms + cluster.timing.exit_ms)
            case _:
                cluster.rm.kill_now(container, "killed", cluster.kernel.now_ms)
                cluster.sweep.begin()


FITS: dict[str, Callable[[Container], bool]] = {
    "suspend": lambda container: container.kind == REDUCE and container.work_at_ms != NEVER,
    "withdraw": lambda container: bool(container.order),
    "release": lambda container: bool(container.order),
    "kill": lambda container: container.state == RUNNING,
    "preempt": lambda container: True,
}


def play_bare(bare: Bare, tally: Tally) -> None:
    """Play a cluster without a controller to its end."""
    meddled = Meddled(bare)
    watch = RunWatch(meddled)
    meddled.cluster.kernel.run(UNTIL_MS, lambda: check_all(watch))
    meddled.cluster.require_done()
    check_end(watch)
    tally.note(watch)


def play(scenario: Scenario, tally: Tally) -> None:
    """Play a run of a scheme to its end; "ideal" plays each class alone."""
    setup, jobs, name = scenario
    scheme = SCHEMES[name]
    parts = [jobs]
    if scheme.alone:
        parts = [tuple(job for job in jobs if job.job_class == each) for each in ("production", "research")]
    for part in filter(None, parts):
        journal = MemoryJournal()
        run = Run(setup, part, scheme, journal if scheme.eviction else None)
        watch = RunWatch(run)
        result = run.go(partial(check_all, watch), UNTIL_MS)
        check_end(watch)
        assert result.suspensions == 0 or scheme.name in ("natjam", "mix")
        if scheme.mix:
            require_replayed(journal)
            tally.noted_levers(result)
        assert 0.0 <= result.utilisation_ratio <= 1.0
        tally.note(watch, result.kills)
    if scheme.alone and all(parts):
        tally.played -= 1


def require_replayed(journal: MemoryJournal) -> None:
    """Read each record as it would be written, and decide all of it again to the same bytes."""
    written = [encode(record) for record in journal.records]
    replay((Line(number, decode(raw), raw) for number, raw in enumerate(written, 1)), "mix")


def explore(
    strategy: SearchStrategy[Drawn], count: int, number: int, play_one: Callable[[Drawn, Tally], None]
) -> Tally:
    """Play ``count`` scenarios of ``strategy``, the same ones every time; return what they had in them."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, print_blob=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def each(drawn: Drawn) -> None:
        play_one(drawn, tally)

    each()
    return tally
