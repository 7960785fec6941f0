"""A played run for tests of what is shown: research fills a small cluster, production takes room back.

The run is one in virtual time; its port and its journal feed a publisher as the daemon's do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from emulator.cluster.timing import HADOOP3
from emulator.virtual.port import VirtualPort
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job
from yarnctl.daemon.view.published import LoopStatus, Publisher, View
from yarnctl.deciding.model import Observation, ObservationRequest
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import DEFAULT
from yarnctl.units import Resources

SETUP = Setup(
    nodes=3, node_size=Resources(4096, 4), timing=HADOOP3,
    settings=msgspec.structs.replace(DEFAULT, cost_guard=False, settle_ms=0), caps=(1.0, 1.0),
    shares=(0.7, 0.3), seed=5,
)  # fmt: skip
JOBS = (
    job("r", "research", 0, 2, 9, reduce_ms=tuple(range(60_000, 69_000, 1000))),
    job("p", "production", 20_000, 2, 6),
)
Look = Callable[[View], None]


class Recording:
    """A journal that keeps its records, and hands them on to a publisher."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self.records: list[Record] = []

    def append(self, records: Sequence[Record]) -> None:
        self.records += records
        self.publisher.record(records)


class PublishedRun(Run):
    """A run that publishes a view after each tick; ``look`` is called with each."""

    def __init__(
        self, look: Look = lambda _: None, setup: Setup = SETUP, jobs=JOBS, scheme: str = "natjam"
    ) -> None:
        self.publisher = Publisher()
        self.look = look
        self.ticks = 0
        self.seen: Observation | None = None
        self.recording = Recording(self.publisher)
        super().__init__(setup, jobs, SCHEMES[scheme], self.recording)
        self.port.observe = self._observe  # type: ignore[method-assign]

    def _observe(self, request: ObservationRequest) -> Observation:
        self.seen = VirtualPort.observe(self.port, request)
        return self.seen

    def _tick(self, grid_ms: int) -> None:
        self.seen = None
        super()._tick(grid_ms)
        if self.seen is None:
            return
        self.ticks += 1
        assert self.controller is not None
        status = LoopStatus(
            mode="enforce", state="running", reachable=True, ticks=self.ticks, tick_ms=1.5,
            cluster=self.port.identify(),
        )  # fmt: skip
        self.publisher.tick(self.controller, self.seen, status)
        self.look(self.publisher.view)


@cache
def whole() -> tuple[tuple[View, ...], tuple[Record, ...]]:
    """Return the views of the whole run, in order, and its records."""
    seen: list[View] = []
    run = PublishedRun(seen.append)
    run.go(until_ms=10 * 60_000)
    return tuple(seen), tuple(run.recording.records)


def views() -> tuple[View, ...]:
    return whole()[0]


def busy() -> View:
    """Return the view in which most orders are open and some are settled already."""

    def rank(view: View) -> tuple[int, int]:
        return len({entry.state for entry in view.entries}), len(view.entries)

    return max(views(), key=rank)


def last() -> View:
    return views()[-1]
