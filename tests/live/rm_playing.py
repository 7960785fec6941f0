"""A live ResourceManager by a clock that the test turns: nodes and masters are calls."""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.live.manager.service import LiveResourceManager, ManagerSettings
from emulator.live.manager.state import AppRecord, Submission
from emulator.live.wire.messages import (
    Allocate,
    Allocated,
    AskChange,
    EndedContainer,
    MasterRegistration,
    MasterUnregistration,
    NodeOrders,
    NodeRegistration,
    NodeReport,
)
from emulator.live.wire.real_time_driver import RealTimeDriver
from yarnctl.units import Resources

EPOCH = 1_700_000_000_000


class Played:
    """One manager and what its nodes and masters count."""

    def __init__(self, settings: ManagerSettings | None = None) -> None:
        self.wall_ms = EPOCH
        self.pace = RealTimeDriver(Kernel(), 1.0, lambda: self.wall_ms)
        self.manager = LiveResourceManager(self.pace, settings)
        self.beats: dict[str, int] = {}
        self.calls: dict[tuple[str, int], int] = {}

    def pass_ms(self, span_ms: int) -> None:
        self.wall_ms += span_ms
        self.manager.now_ms()

    def node(self, name: str = "n1:1", slots: int = 4, **more: Any):
        self.beats[name] = 0
        return self.manager.register_node(
            NodeRegistration(
                node=name, address=f"http://{name}", memory_mib=1024 * slots, vcores=slots, phase_ms=0, **more
            )
        )

    def beat(self, name: str = "n1:1", *ended: str, exit_status: int = 0, running: tuple[str, ...] = ()):
        self.beats[name] += 1
        return self.again(name, *ended, exit_status=exit_status, running=running)

    def again(
        self, name: str = "n1:1", *ended: str, exit_status: int = 0, running: tuple[str, ...] = ()
    ) -> NodeOrders:
        gone = tuple(EndedContainer(one, exit_status, self.wall_ms) for one in ended)
        return self.manager.node_heartbeat(
            NodeReport(node=name, number=self.beats[name], ended=gone, running=running)
        )

    def submit(self, queue: str = "research", user: str = "ann", mib: int = 1024, **more: Any) -> AppRecord:
        return self.manager.submit(
            Submission(application=self.manager.new_application(), queue=queue, user=user,
                am_size=Resources(mib, 1), job=msgspec.Raw(b'{"kind":"x"}'), **more)
        )  # fmt: skip

    def up(self, app: AppRecord, attempt: int = 1, url: str = "http://am"):
        return self.manager.register_master(
            MasterRegistration(application=app.id, attempt=attempt, tracking_url=url)
        )

    def call(
        self,
        app: AppRecord,
        *asks: tuple[int, int],
        attempt: int = 1,
        release: tuple[str, ...] = (),
        blacklist: tuple[str, ...] | None = None,
    ) -> Allocated:
        """An AM's heartbeat; asks are (priority, count) of one slot each."""
        key = (app.id, attempt)
        self.calls[key] = self.calls.get(key, 0) + 1
        return self.manager.allocate(
            Allocate(application=app.id, attempt=attempt, number=self.calls[key],
                asks=tuple(AskChange(priority, 1024, 1, count) for priority, count in asks), release=release,
                blacklist=blacklist)
        )  # fmt: skip

    def bye(self, app: AppRecord, status: Any = "SUCCEEDED", attempt: int = 1):
        return self.manager.unregister(
            MasterUnregistration(
                application=app.id, attempt=attempt, final_status=status, diagnostics="said so"
            )
        )

    def running(
        self, queue: str = "research", maps: int = 2, node: str = "n1:1"
    ) -> tuple[AppRecord, list[str]]:
        """An application that runs, with containers; returns their names without the AM's."""
        app = self.submit(queue)
        self.beat(node)
        self.up(app)
        self.call(app, (20, maps))
        self.beat(node)
        return app, [one.container for one in self.call(app).granted]

    def free_mib(self) -> int:
        return sum(node.actor.free_mib for node in self.manager.nodes.values())

    def check_sums(self) -> None:
        """What queues, users, applications and nodes hold is the sum of the containers."""
        held = list(self.manager.containers.values())
        for queue in self.manager.actor.scheduler.queues.values():
            own = [one for one in held if one.app.actor.queue is queue]
            assert queue.used_mib == sum(one.actor.memory_mib for one in own)
            if queue.user_mib is not None:
                users = {one.app.submission.user for one in own}
                for user in users | set(queue.users):
                    theirs = [one.actor.memory_mib for one in own if one.app.submission.user == user]
                    assert queue.users.get(user, 0) == sum(theirs)
        for node in self.manager.nodes.values():
            own = [one for one in held if one.node is node]
            assert node.actor.free_mib == node.actor.total_mib - sum(one.actor.memory_mib for one in own)
            assert len(node.actor.containers) == len(own)
        for app in self.manager.applications.values():
            assert app.actor.used_mib == sum(one.actor.memory_mib for one in app.containers.values())
        assert set(self.manager.containers) == {
            name
            for app in [*self.manager.applications.values(), *self.manager.finished.values()]
            for name in app.containers
        }
