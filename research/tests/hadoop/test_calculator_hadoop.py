"""Both resource calculators of a real ResourceManager: what it grants, and what its answers show of them.

Each source is tried for itself: the shares of queues, the key with both kinds of store, and the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.hadoop.needing import need_hadoop, need_javac
from yarn_research.campaigns.applied_fixes import ADMIN, SITE, ConfiguredRig
from yarn_research.campaigns.scheduler_rig import TYPES, RigFailed
from yarnctl.attach.connection.connection import Attachment, Connection
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.attach.observing.cluster_state import ClusterObserver
from yarnctl.config import ClusterAddress
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.wire.calculator import DOMINANT, Calculator, calculator_in_use, shown_calculator
from yarnctl.units import Resources

pytestmark = pytest.mark.xdist_group("hadoop")

MEMORY_ALONE = DOMINANT.replace("Dominant", "Default")
SLOT, LARGE = Resources(1024, 1), Resources(16_384, 4)
QUEUES = {
    "root.queues": "a", "root.a.capacity": "100", "root.a.user-limit-factor": "10",
    "maximum-am-resource-percent": "1000",
}  # fmt: skip


class Shown(NamedTuple):
    """The calculator by each source alone, and by all of them."""

    by_shares: Calculator | None
    by_key: Calculator | None
    by_nodes: Calculator | None
    by_all: Calculator | None


@pytest.fixture(scope="module")
def rig() -> Iterator[ConfiguredRig]:
    need_hadoop("3.4.2")
    need_javac()
    with ConfiguredRig() as rig:
        yield rig


def start(
    rig: ConfiguredRig, calculator: str, store: str, size: Resources = LARGE, types: str = ""
) -> list[str]:
    """Begin a ResourceManager with two nodes."""
    rig.write_queues(QUEUES, calculator)
    rig.start_with({**SITE, "yarn.scheduler.configuration.store.class": store, TYPES: types})
    return [rig.register(f"127.0.0.{number}", size) for number in (2, 3)]


def shown(rig: ConfiguredRig) -> Shown:
    manager = ClusterAddress(resource_managers=(rig.url,), user=ADMIN).resource_manager()
    root, nodes, configuration = manager.root_queue(), manager.nodes(), manager.configuration()
    try:
        keys = manager.scheduler_configuration()
    except YarnctlError:  # a store that cannot be changed shows none
        keys = None
    return Shown(
        calculator_in_use(root, nodes),
        shown_calculator(None, (), keys, configuration),
        shown_calculator(None, nodes, None),
        shown_calculator(root, nodes, keys, configuration),
    )


def free_mib(rig: ConfiguredRig) -> int:
    """Return the memory in which a daemon sees requests served at once."""
    manager = ClusterAddress(resource_managers=(rig.url,), user=ADMIN).resource_manager()
    connection = Connection(manager, None, Attachment(), lambda: 1_000_000)
    try:
        connection.read_configuration()
        observer = ClusterObserver(connection, ActivityReader(manager.activities, connection.clock))
        observer.refresh()
        found = observer.snapshot(observer.tree(), manager.nodes(), {})
        return sum(free[0] for free in found.free_by_node.values() if free[1] > 0)
    finally:
        connection.close()


@pytest.mark.parametrize("store", ["file", "memory"])
@pytest.mark.parametrize("calculator", [MEMORY_ALONE, DOMINANT, ""])
def test_grants_and_answers_of_each_calculator(rig: ConfiguredRig, calculator: str, store: str) -> None:
    name: Calculator = "dominant" if calculator == DOMINANT else "memory"
    by_memory = name == "memory"
    by_key = name if store == "memory" else None
    nodes = start(rig, calculator, store)
    assert shown(rig) == Shown(None, by_key, None, by_key), "nothing is in use"
    application = rig.submit("root.a", "ann", 0, "one")
    rig.request(application, 1, SLOT, 3)
    assert len(rig.beat(nodes * 2)) == 3
    assert shown(rig) == Shown(name, by_key, None, name), "3 of 8 vcores"
    rig.request(application, 2, Resources(1024, 3), 1)
    [more] = rig.beat(nodes)
    assert more["vcores"] == (1 if by_memory else 3), (
        "the default calculator grants one vcore, whatever is requested"
    )
    rig.request(application, 3, SLOT, 10)
    assert len(rig.beat(nodes * 6)) == (10 if by_memory else 2), "there are 8 vcores"
    full = Shown(name, by_key, "memory" if by_memory else None, name)
    assert shown(rig) == full
    assert free_mib(rig) == (32_768 - 14 * 1024 if by_memory else 0)
    if store == "memory":
        other = DOMINANT if by_memory else MEMORY_ALONE
        assert rig.put({"resource-calculator": other}, []) == ""
        second = rig.submit("root.a", "ann", 0, "two")
        rig.request(second, 1, SLOT, 1)
        assert len(rig.beat(nodes)) == by_memory, "a changed key has no effect before a restart"
        assert shown(rig) == full._replace(by_key="dominant" if by_memory else "memory")


@pytest.mark.parametrize("calculator", [MEMORY_ALONE, DOMINANT])
def test_answers_after_a_node_was_made_smaller(rig: ConfiguredRig, calculator: str) -> None:
    name: Calculator = "dominant" if calculator == DOMINANT else "memory"
    nodes = start(rig, calculator, "file", Resources(4096, 4))
    application = rig.submit("root.a", "ann", 0, "one")
    rig.request(application, 1, SLOT, 6)
    assert len(rig.beat(nodes * 4)) == 6
    assert rig.client(f"yarn rmadmin -updateNodeResource {nodes[0]} 2048 2") == ""
    assert shown(rig) == Shown(None, None, None, None), "it lacks memory and vcores alike"
    assert rig.client(f"yarn rmadmin -updateNodeResource {nodes[0]} 4096 1") == ""
    assert shown(rig) == Shown(name, None, "memory", name), "the shares are more certain than the nodes"


def test_the_default_calculator_does_not_start_with_other_resource_types(rig: ConfiguredRig) -> None:
    with pytest.raises(RigFailed, match="RM uses DefaultResourceCalculator"):
        start(rig, MEMORY_ALONE, "file", types="yarn.io/gpu")
    start(rig, DOMINANT, "file", Resources(*LARGE, 1), types="yarn.io/gpu")
    assert shown(rig) == Shown(None, None, "dominant", "dominant")
