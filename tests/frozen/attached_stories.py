"""Stories of the attached host, for golden journals: it asks a scripted ResourceManager, masters and HDFS."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, container
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import tick
from yarnctl.units import Resources

TICKS = 60
PATHS = msgspec.structs.replace(
    DEFAULT, preempting_queues=("root.production",), preemptable_queues=("root.research",)
)


class Story:
    """A research job with three reduces on two nodes, and a production job that waits for two containers."""

    def __init__(self, fake: FakeCluster) -> None:
        self.fake, self.journal = fake, MemoryJournal()
        two = Resources(2048, 2)
        fake.nodes = {"n1:1": two, "n2:1": two}
        fake.research(1, ["n1:1", "n1:1", "n2:1", "n2:1"])
        self.port: AttachedPort = fake.port()
        self.controller = Controller(PATHS, validate=True)
        self.requester = fake.add(
            App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, 2)],
                submitted_at_ms=fake.now_ms)
        )  # fmt: skip

    def until(self, condition: Callable[[], object]) -> None:
        """Tick until something holds."""
        for _ in range(TICKS):
            self.fake.now_ms = max(self.fake.now_ms, tick(self.controller, self.port, self.journal))
            if condition():
                return
        raise AssertionError(f"it never came to that: {self.port.notes} {self.port.why_not}")

    def states(self) -> list[str]:
        ledger = self.controller.ledger
        return [order.state for order in {**ledger.settled, **ledger.open}.values()]

    def suspend(self) -> None:
        """Let orders be made and their tasks be saved."""
        self.until(lambda: self.fake.changes)
        for order in self.controller.ledger.open.values():
            self.fake.save(1, int(order.attempt.split("_")[4]), order.order)

    def grant(self) -> None:
        """Let the requester be given the room that is free."""
        self.until(lambda: set(self.states()) == {"freed"})
        for place, order in enumerate(self.controller.ledger.open.values(), start=1):
            self.requester.containers[container(2, place)] = (order.node, 0 if place == 1 else 20)
        self.requester.asks, self.requester.state = [], "RUNNING"
        self.until(lambda: set(self.states()) == {"granted"})


def granted() -> list[Record]:
    with FakeCluster() as fake:
        story = Story(fake)
        story.suspend()
        story.grant()
        return story.journal.records


def under_way() -> list[Record]:
    """Return a story that stops when a task is saved and its room is not free yet."""
    with FakeCluster(mapped=True) as fake:
        story = Story(fake)
        fake.on_kill = lambda attempt: None  # the master has not ended it yet
        story.suspend()
        story.until(lambda: "checkpointed" in story.states())
        return story.journal.records
