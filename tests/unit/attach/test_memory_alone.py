"""A scheduler that counts memory alone grants on nodes without free vcores: nothing is freed for that."""

from __future__ import annotations

import pytest

from tests.frozen.attached_stories import PATHS
from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster
from tests.unit.hadoop.test_calculator import leaf, node, root
from yarnctl.deciding.controller import Controller
from yarnctl.hadoop.wire.calculator import KEY
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import tick
from yarnctl.units import Resources

JAVA = "org.apache.hadoop.yarn.util.resource."
MEMORY, DOMINANT = {KEY: f"{JAVA}DefaultResourceCalculator"}, {KEY: f"{JAVA}DominantResourceCalculator"}


def orders_of(fake: FakeCluster, ticks: int = 4) -> list[str]:
    """Return the nodes on which a daemon has ordered containers for production after some looks."""
    port, controller, journal = fake.port(), Controller(PATHS, validate=True), MemoryJournal()
    for _ in range(ticks):
        fake.now_ms = max(fake.now_ms, tick(controller, port, journal))
    return [order.node for order in controller.ledger.open.values()]


def filled(fake: FakeCluster, memory_mib: int, vcores: int) -> None:
    """Let research hold four containers on each of two nodes; production requests one."""
    fake.nodes = {name: Resources(memory_mib, vcores) for name in ("n1:1", "n2:1")}
    fake.research(1, ["n1:1"] * 4 + ["n2:1"] * 4)
    fake.add(App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, 1)],
        submitted_at_ms=fake.now_ms))  # fmt: skip


@pytest.mark.parametrize(
    ("memory_mib", "vcores", "scheduler_keys", "orders"),
    [
        (16_384, 4, MEMORY, 0),  # no vcores are free: YARN grants at once
        (16_384, 4, {}, 0),  # Hadoop's default
        (16_384, 4, DOMINANT, 1),
        (16_384, 4, None, 1),  # unknown: all resources are counted
        (16_384, 1, None, 0),  # more vcores in use than there are: only memory is counted
        (16_384, 1, DOMINANT, 1),  # the node was made smaller
        (4_096, 1, None, 1),  # no memory is free
        (4_096, 64, MEMORY, 1),
    ],
)
def test_orders_on_nodes_without_free_vcores(
    memory_mib: int, vcores: int, scheduler_keys: dict[str, str] | None, orders: int
) -> None:
    with FakeCluster() as fake:
        fake.scheduler_keys = scheduler_keys
        filled(fake, memory_mib, vcores)
        assert len(orders_of(fake)) == orders


def test_the_calculator_is_read_anew_of_another_resource_manager() -> None:
    with FakeCluster() as fake:
        fake.scheduler_keys = MEMORY
        filled(fake, 16_384, 4)
        port, controller, journal = fake.port(), Controller(PATHS, validate=True), MemoryJournal()
        for look in range(8):
            if look == 4:
                assert not controller.ledger.open
                fake.epoch, fake.scheduler_keys = fake.epoch + 1, DOMINANT
            fake.now_ms = max(fake.now_ms, tick(controller, port, journal))
        assert len(controller.ledger.open) == 1


def test_use_shows_the_calculator_after_looks_that_do_not() -> None:
    """The key was changed after the start: the use of queues says what runs."""
    with FakeCluster() as fake:
        connection = fake.port()._connection
        connection.scheduler_keys = DOMINANT
        found = []
        for queue, row in ((leaf(0.0, 0, 0), node()), (leaf(12.5, 1024, 4), node((1024, 4)))):
            connection.note_calculator(root(queue), [row])
            found.append(connection.calculator)
        assert found == ["dominant", "memory"]


def test_what_use_has_shown_is_not_kept_of_another_resource_manager() -> None:
    with FakeCluster() as fake:
        fake.scheduler_keys = DOMINANT
        filled(fake, 16_384, 4)
        port, controller, journal = fake.port(), Controller(PATHS, validate=True), MemoryJournal()
        for look in range(8):
            fake.now_ms = max(fake.now_ms, tick(controller, port, journal))
            if look == 0:
                port._connection.is_calculator_proven = True
                fake.epoch, fake.scheduler_keys = fake.epoch + 1, MEMORY
        assert port._connection.calculator == "memory"
