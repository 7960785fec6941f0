"""The ResourceManager and its scheduler: who is given what, on which heartbeat.

A node of ``n`` slots has n GiB and n vcores; a heartbeat is one call, so each line of a table is
one second of a real cluster.
"""

from __future__ import annotations

from typing import Any

import pytest

from emulator.cluster.entities import (
    AM,
    ENDED,
    RELEASED,
    RUNNING,
    Application,
    Ask,
    Container,
    Node,
    NodeReservation,
    QueueConfig,
)
from emulator.cluster.resource_manager import ResourceManager
from yarnctl.deciding.model import ContainerEnded, ContainerGranted
from yarnctl.units import Resources

SLOT = Resources(1024, 1)
TWO_QUEUES = (
    QueueConfig(name="production", capacity_ratio=0.75, preempting=True),
    QueueConfig(name="research", capacity_ratio=0.25),
)


class Office:
    """A ResourceManager with nobody around it: masters start at once, mail waits to be read."""

    def __init__(self, *slots: int, queues: tuple[QueueConfig, ...] = TWO_QUEUES) -> None:
        self.rm = ResourceManager(queues, self)
        self.now_ms = 0
        self.woken: list[int] = []
        for index, count in enumerate(slots):
            self.rm.register_node(Node(index, 1024 * count, count, phase_ms=index))

    def wake(self, app: Application) -> None:
        self.woken.append(app.number)

    def launch_master(self, container: Container) -> None:
        container.state = RUNNING

    def submit(self, queue: str = "research", user: str = "ann", size: Resources = SLOT) -> Application:
        number = len(self.rm.applications) + 1
        app = Application(number, self.rm.scheduler.queues[queue], user, self.now_ms, size.memory_mib)
        self.rm.submit(app, size)
        return app

    def running(self, queue: str = "research", user: str = "ann") -> Application:
        """Submit an application and let the node with the most room start its master."""
        app = self.submit(queue, user)
        self.beat(max(self.rm.nodes, key=lambda node: node.free_mib).index)
        assert app.am_container is not None
        return app

    def ask(self, app: Application, priority: int, count: int, **other: Any) -> Ask:
        size = other.get("size", SLOT)
        ask = Ask(priority, size[0], size[1], other.get("off_switch", priority in (0, 10)))
        self.rm.allocate(app, [(ask, count)])
        return ask

    def beat(self, index: int = 0, ended: tuple[Container, ...] = ()) -> list[tuple[int, int]]:
        """Let a node have a heartbeat; return the new containers as (application, priority)."""
        self.now_ms += 1000
        for container in ended:
            container.state = ENDED
        granted = self.rm.node_heartbeat(self.rm.nodes[index], list(ended), self.now_ms)
        return [(container.app.number, container.priority) for container in granted]


# --- heartbeats -------------------------------------------------------------------------------


def test_a_master_is_asked_for_on_submission_and_started_on_a_heartbeat():
    office = Office(2)
    app = office.submit()
    assert app.pending == 1
    assert office.beat() == [(1, 0)]
    assert app.am_container is not None
    assert (app.am_container.kind, app.attempt, app.pending) == (AM, 1, 0)
    assert office.woken == []  # a master has no mailbox yet


def test_one_off_switch_container_a_heartbeat():
    office = Office(6)
    app = office.running()
    office.ask(app, 10, 3)
    assert [office.beat() for _ in range(4)] == [[(1, 10)], [(1, 10)], [(1, 10)], []]


def test_containers_that_name_racks_fill_the_node_in_one_heartbeat_until_one_does_not():
    office = Office(6)
    app = office.running()
    office.ask(app, 20, 2)
    office.ask(app, 10, 2)
    office.ask(app, 3, 1)
    # Lower request priorities first; the plain reduce (10) ends the heartbeat.
    assert office.beat() == [(1, 3), (1, 10)]
    assert office.beat() == [(1, 10)]
    assert office.beat() == [(1, 20), (1, 20)]


def test_the_mailbox_wakes_the_application_once_and_is_emptied_by_its_heartbeat():
    office = Office(6)
    app = office.running()
    office.ask(app, 20, 3)
    office.beat()
    assert office.woken == [1]
    granted, ended = office.rm.allocate(app, [])
    assert ([container.priority for container in granted], ended) == ([20, 20, 20], [])
    assert office.rm.allocate(app, []) == ([], [])


def test_room_is_free_when_the_node_says_so_and_is_offered_on_the_same_heartbeat():
    office = Office(2)
    app = office.running()
    office.ask(app, 10, 2)
    office.beat()
    (first,), _ = office.rm.allocate(app, [])
    assert office.beat() == []  # full
    assert office.beat(0, (first,)) == [(1, 10)]
    assert first.state == RELEASED
    assert first.released_at_ms == office.now_ms


def test_a_kill_at_the_rm_frees_the_room_at_once_and_tells_the_application_later():
    office = Office(2)
    app = office.running()
    office.ask(app, 10, 1)
    office.beat()
    (container,), _ = office.rm.allocate(app, [])
    office.rm.kill_now(container, "killed", office.now_ms)
    assert (office.rm.nodes[0].free_mib, container.state, container.terminal_state) == (
        1024,
        RELEASED,
        "killed",
    )
    assert office.rm.allocate(app, []) == ([], [container])
    office.rm.kill_now(container, "killed", office.now_ms)  # twice is once
    assert office.rm.nodes[0].free_mib == 1024


# --- queues and applications ------------------------------------------------------------------


def test_the_queue_that_uses_least_of_its_guarantee_is_served_first():
    office = Office(20)
    research, production = office.running("research"), office.running("production")
    office.ask(research, 10, 9)
    office.ask(production, 10, 9)
    served = [office.beat()[0][0] for _ in range(8)]
    # Guarantees 5 and 15, one master each. used/guaranteed after each grant, research : production
    #   1/5 : 1/15 -> p   1/5 : 2/15 -> p   1/5 : 3/15 -> the first configured, p
    #   1/5 : 4/15 -> r   2/5 : 4/15 -> p   2/5 : 5/15 -> p   2/5 : 6/15 -> p   2/5 : 7/15 -> r
    assert served == [2, 2, 2, 1, 2, 2, 2, 1]


def test_the_dominant_resource_decides():
    office = Office(20)
    research, production = office.running("research"), office.running("production")
    office.ask(production, 20, 1, size=Resources(1024, 9))
    assert office.beat() == [(2, 20)]  # production: 2/15 of the memory, but 10/15 of the vcores
    office.ask(production, 10, 5)
    office.ask(research, 10, 5)
    assert [office.beat()[0][0] for _ in range(3)] == [1, 1, 1]


def test_inside_a_queue_first_come_first_served_unless_priorities_differ():
    office = Office(9)
    first, second = office.running(), office.running()
    for app in (second, first):
        office.ask(app, 10, 4)
    assert office.beat() == [(1, 10)]
    office.rm.scheduler.reprioritise(second, 5)
    assert [office.beat()[0][0] for _ in range(2)] == [2, 2]
    office.rm.scheduler.reprioritise(first, 6)
    assert office.beat() == [(1, 10)]


def test_a_hard_cap_is_never_passed_though_the_cluster_is_empty():
    office = Office(8, queues=(QueueConfig(name="research", capacity_ratio=0.5, maximum_ratio=0.5),))
    app = office.running()
    office.ask(app, 20, 7)
    assert office.beat() == [(1, 20)] * 3
    assert office.beat() == []
    assert app.used_mib == 4096


def test_what_does_not_fit_a_maximum_does_not_stop_the_next_queue():
    capped = QueueConfig(name="research", capacity_ratio=0.5, maximum_ratio=0.25)
    office = Office(8, queues=(capped, QueueConfig(name="production", capacity_ratio=0.5)))
    research, production = office.running("research"), office.running("production")
    office.ask(research, 20, 4)
    office.ask(production, 20, 2)
    assert office.beat() == [(1, 20), (2, 20), (2, 20)]


@pytest.mark.parametrize(
    ("factor", "held"),
    [
        (0.5, 3),  # 2 GiB: the third container crosses the limit and is given, as in YARN
        (0.25, 2),  # 1 GiB: the master takes it all, and one task crosses
        (1.0, 5),
        (None, 8),
    ],
)
def test_a_user_is_given_the_container_that_crosses_the_limit_and_no_more(factor, held):
    office = Office(8, queues=(QueueConfig(name="research", capacity_ratio=0.5, user_limit_factor=factor),))
    app = office.running()
    office.ask(app, 20, 9)
    office.beat()
    assert app.used_mib == 1024 * held


def test_the_limit_of_one_user_leaves_the_room_to_the_next():
    office = Office(8, queues=(QueueConfig(name="research", capacity_ratio=0.5, user_limit_factor=0.5),))
    first, second = office.running(user="ann"), office.running(user="ben")
    office.ask(first, 20, 5)
    office.ask(second, 20, 1)
    assert office.beat() == [(1, 20), (1, 20), (2, 20)]


def test_masters_wait_in_order_for_the_queues_am_share_but_the_first_never_does():
    office = Office(8, queues=(QueueConfig(name="research", capacity_ratio=1.0, am_ratio=0.25),))
    large = office.submit(size=Resources(3072, 1))
    small, third = office.submit(), office.submit()
    assert [app.activated for app in (large, small, third)] == [True, False, False]
    assert [office.beat() for _ in range(2)] == [[(1, 0)], []]
    office.rm.finish(large, office.now_ms)
    assert [app.activated for app in (small, third)] == [True, True]
    assert [office.beat() for _ in range(2)] == [[(2, 0)], [(3, 0)]]


# --- large asks -------------------------------------------------------------------------------


def crowded() -> tuple[Office, Application, Application, list[Container]]:
    """A node of four slots: the first application holds three, the second its master.

    The other node is never heard in these stories; it only keeps the queue below its maximum.
    """
    office = Office(4, 2)
    first, second = office.running(), office.running()
    office.ask(first, 20, 2)
    office.beat()
    return office, first, second, office.rm.allocate(first, [])[0]


def test_an_ask_that_does_not_fit_keeps_the_node_until_it_does():
    office, first, second, tasks = crowded()
    large = office.ask(second, 10, 1, size=Resources(2048, 2))
    office.ask(first, 20, 1)
    office.rm.scheduler.reprioritise(second, 1)
    assert office.beat(0, (tasks[0],)) == []  # one slot is free; the small ask may not have it
    kept = office.rm.nodes[0].reserved
    assert isinstance(kept, NodeReservation)
    assert (kept.app, kept.ask) == (second, large)
    assert office.beat(0, (tasks[1],)) == [(2, 10)]
    assert office.rm.nodes[0].reserved is None


def test_a_reservation_ends_with_its_ask():
    office, first, second, tasks = crowded()
    office.rm.scheduler.reprioritise(second, 1)
    office.ask(second, 10, 1, size=Resources(2048, 2))
    office.ask(first, 20, 1)
    office.beat(0, (tasks[0],))
    office.ask(second, 10, -1)
    assert office.beat() == [(1, 20)]
    assert second.reserved == {10: 0}


def test_no_more_nodes_are_kept_than_containers_are_asked_for():
    office = Office(2, 2, 2, 2)
    first = office.running()
    for index in (1, 2):
        office.ask(first, 20, 1)
        office.beat(index)
    second = office.submit(size=Resources(2048, 2))
    assert [office.beat(index) for index in (0, 1, 2)] == [[], [], []]
    assert [node.reserved is not None for node in office.rm.nodes] == [True, False, False, False]
    assert second.reserved == {0: 1}
    assert office.beat(3) == [(2, 0)]  # an empty node serves it
    office.ask(first, 20, 1)
    assert office.beat(0) == [(1, 20)]  # what was kept for it is let go as soon as somebody asks
    assert second.reserved == {0: 0}


def test_a_lost_node_takes_its_containers_and_its_share_of_every_limit():
    office = Office(4, 4)
    app = office.running()
    office.ask(app, 20, 6)
    office.beat(0)
    office.beat(1)
    queue = office.rm.scheduler.queues["research"]
    assert (queue.guaranteed.memory_mib, queue.maximum_mib, app.containers) == (2048, 8192, 7)
    lost = office.rm.lose_node(office.rm.nodes[1], office.now_ms)
    assert (queue.guaranteed.memory_mib, queue.maximum_mib, office.rm.total.vcores) == (1024, 4096, 4)
    assert app.containers == 7 - len(lost)
    assert {container.terminal_state for container in lost} == {"lost"}
    assert office.rm.allocate(app, [])[1] == lost


def test_facts_are_told_only_while_somebody_watches():
    office = Office(4)
    app = office.running("production")
    office.ask(app, 10, 2)
    office.beat()
    assert office.rm.facts == []
    office.rm.watching = True
    office.beat()
    granted, _ = office.rm.allocate(app, [])
    granted[0].order = "o-000001"
    office.beat(0, tuple(granted))
    assert [type(fact) for fact in office.rm.facts] == [ContainerGranted, ContainerEnded]
