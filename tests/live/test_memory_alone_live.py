"""A served capacity-scheduler.xml with Hadoop's default calculator: memory alone limits."""

from __future__ import annotations

import pytest

from emulator.live.wire.messages import NodeRegistration
from tests import http_client
from tests.live.test_nested_live import Nested
from tests.unit.scheduler_files import ABSOLUTE, DOMINANT, MEMORY_ALONE, NESTED, write_file
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire.calculator import KEY, calculator_in_use, shown_calculator
from yarnctl.units import Resources, is_by_memory

NODES = ("n1:1", "n2:1")


def held_by(one: Nested) -> int:
    """Let a master with twelve requests run on two nodes of 8 GiB and 2 vcores; return its containers."""
    for name in NODES:
        one.played.beats[name] = 0
        one.played.manager.register_node(
            NodeRegistration(node=name, address=f"http://{name}", memory_mib=8192, vcores=2, phase_ms=0)
        )
    return len(one.hold("res", 12).containers)


@pytest.mark.parametrize(
    ("calculator", "containers", "used_percent"),
    [(MEMORY_ALONE, 13, 81.25), (DOMINANT, 4, 100.0)],
)
def test_grants_and_answers_of_both_calculators(
    tmp_path, calculator: str, containers: int, used_percent: float
) -> None:
    keys = {**NESTED, "root.res.maximum-capacity": "100", "resource-calculator": calculator}
    one = Nested(write_file(tmp_path, keys))
    with one.background:
        assert one.background.run(lambda: held_by(one)) == containers
        with Transport([one.background.url]) as to:
            manager = ResourceManager(to)
            root, rows = manager.root_queue(), manager.nodes()
            shown = manager.scheduler_configuration()
        assert shown[KEY] == calculator
        [res] = [queue for queue in root.children if queue.name == "res"]
        assert res.used_percent == used_percent
        assert calculator_in_use(root, rows) == ("memory" if calculator == MEMORY_ALONE else "dominant")
        assert sum(node.used_vcores for node in rows) == containers
        assert sum(node.available_vcores for node in rows) == 4 - containers
        assert [node.total for node in rows] == [Resources(8192, 2)] * 2
        assert res.guaranteed is not None
        assert res.guaranteed.resources == Resources(4915, 1), "30 % of 16 GiB and 4 vcores"
        metrics = http_client.get(f"{one.background.url}/ws/v1/cluster/metrics", timeout=30).json()
        assert metrics["clusterMetrics"]["totalVirtualCores"] == 4
        assert metrics["clusterMetrics"]["availableVirtualCores"] == 4 - containers
        seen = one.snapshot()
        assert is_by_memory(seen.total) == (calculator == MEMORY_ALONE)
        free_mib = 16_384 - containers * 1024 if calculator == MEMORY_ALONE else 0
        assert sum(free[0] for free in seen.free_by_node.values() if free[1] > 0) == free_mib


def test_a_file_without_the_key_counts_memory_alone_as_hadoop_does(tmp_path) -> None:
    path = write_file(tmp_path, NESTED)
    path.write_text(
        path.read_text().replace("resource-calculator", "user-metrics.enable").replace(DOMINANT, "true")
    )
    one = Nested(path)
    with one.background:
        assert one.background.run(lambda: held_by(one)) == 13
        with Transport([one.background.url]) as to:
            manager = ResourceManager(to)
            keys = manager.scheduler_configuration()
            assert KEY not in keys
            assert shown_calculator(manager.root_queue(), manager.nodes(), None) == "memory"


def test_absolute_capacities_limit_memory_alone(tmp_path) -> None:
    res = {
        "root.res.capacity": "[memory=4096,vcores=2]",
        "root.res.maximum-capacity": "[memory=6144,vcores=3]",
    }
    one = Nested(write_file(tmp_path, {**NESTED, **ABSOLUTE, **res, "resource-calculator": MEMORY_ALONE}))
    with one.background:
        assert one.background.run(lambda: held_by(one)) == 6, "6144 MiB"
