"""Which resource calculator answers show, and answers where it counts memory alone."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from yarnctl.hadoop.wire.calculator import KEY, Calculator, by_memory, shown_calculator
from yarnctl.hadoop.wire.views import cluster_room, parent_views, queue_views
from yarnctl.hadoop.wire.yarn import NodeRow, QueueInfo, QueueList, Vector
from yarnctl.units import Resources, dominant, fits, is_by_memory, minus, shares

JAVA = "org.apache.hadoop.yarn.util.resource."


def leaf(used_percent: float, memory_mib: int, vcores: int, name: str = "a") -> QueueInfo:
    return QueueInfo(
        name,
        kind="capacitySchedulerLeafQueueInfo",
        used_percent=used_percent,
        used=Vector(memory_mib, vcores),
        guaranteed=Vector(4096, 1),
        maximum=Vector(8192, 1),
        am_limit=Vector(1024, 1),
    )


def root(*leaves: QueueInfo) -> QueueInfo:
    return QueueInfo("root", below=QueueList(leaves))


def node(used: tuple[int, int] = (0, 0), size: tuple[int, int] = (8192, 8)) -> NodeRow:
    return NodeRow(
        "n1:1",
        state="RUNNING",
        used_mib=used[0],
        available_mib=size[0] - used[0],
        used_vcores=used[1],
        available_vcores=size[1] - used[1],
        capacity=Vector(*size),
    )


@pytest.mark.parametrize(
    ("scheduler_keys", "configuration", "calculator"),
    [
        ({KEY: f"{JAVA}DominantResourceCalculator"}, {}, "dominant"),
        ({KEY: f" {JAVA}DefaultResourceCalculator"}, {}, "memory"),
        ({}, {}, "memory"),  # Hadoop's default
        ({}, {KEY: f"{JAVA}DominantResourceCalculator"}, "dominant"),
        ({KEY: "com.example.OwnCalculator"}, {}, None),
        (None, {"a": "b"}, None),  # /conf lacks the keys of capacity-scheduler.xml
        (None, {KEY: f"{JAVA}DefaultResourceCalculator"}, "memory"),
        (None, None, None),
    ],
)
def test_shown_calculator_by_the_key(
    scheduler_keys: dict[str, str] | None, configuration: dict[str, str] | None, calculator: Calculator | None
) -> None:
    assert shown_calculator(root(), [node()], scheduler_keys, configuration) == calculator


@pytest.mark.parametrize(
    ("leaves", "calculator"),
    [
        ([leaf(25.0, 2048, 6)], "memory"),
        ([leaf(75.0, 2048, 6)], "dominant"),
        ([leaf(25.0, 2048, 2)], None),  # both calculators say so
        ([leaf(25.0, 2048, 1)], None),
        ([leaf(40.0, 2048, 6)], None),  # read while a node went
        ([leaf(-1.0, 2048, 6)], None),  # not shown
        ([leaf(25.0, 2048, 6), leaf(37.5, 1024, 3, "b")], None),  # they contradict each other
        ([leaf(25.0, 2048, 6), leaf(12.5, 1024, 1, "b")], "memory"),
    ],
)
def test_shown_calculator_by_the_shares_of_queues(
    leaves: list[QueueInfo], calculator: Calculator | None
) -> None:
    assert shown_calculator(root(*leaves), [node((2048, 6))], None) == calculator


def test_shown_calculator_by_use_wins_over_a_key_that_waits_for_a_restart() -> None:
    keys = {KEY: f"{JAVA}DominantResourceCalculator"}
    assert shown_calculator(root(leaf(25.0, 2048, 6)), [node()], keys) == "memory"


def test_shown_calculator_by_a_node_with_more_vcores_in_use_than_it_has() -> None:
    assert shown_calculator(root(), [node(), node((4096, 11))], None) == "memory"
    assert shown_calculator(root(), [node(), node((4096, 8))], None) is None
    keys = {KEY: f"{JAVA}DominantResourceCalculator"}  # then it was made smaller
    assert shown_calculator(root(), [node((4096, 11))], keys) == "dominant"


def test_shown_calculator_of_nodes_that_were_made_smaller() -> None:
    """Answers of 3.4.2 with the DominantResourceCalculator, after ``rmadmin -updateNodeResource``."""
    whole = node((3072, 3), (4096, 4))
    used = root(leaf(100.0, 6144, 6))
    assert shown_calculator(used, [whole, node((3072, 3), (2048, 2))], None) is None
    assert shown_calculator(used, [whole, node((3072, 3), (4096, 1))], None) == "dominant", "6 of 5 vcores"
    by_default = root(leaf(75.0, 6144, 6))  # the same nodes with the DefaultResourceCalculator
    assert shown_calculator(by_default, [whole, node((3072, 3), (4096, 1))], None) == "memory"


def test_shown_calculator_by_a_resource_type_with_which_the_default_does_not_start() -> None:
    amounts = Raw(b'{"resourceInformation":[{"name":"yarn.io/gpu","value":2}]}')
    with_gpus = replace(node((4096, 11)), capacity=Vector(8192, 8, amounts))
    assert shown_calculator(root(), [node(), with_gpus], None) == "dominant"


def test_by_memory_no_capacity_limits_vcores() -> None:
    queues, nodes = by_memory(root(leaf(25.0, 2048, 11)), [node((2048, 11))])
    total, largest, free = cluster_room(nodes)
    assert [each[0] for each in (total, largest, free["n1:1"])] == [8192, 8192, 6144]
    [view] = queue_views(queues, total)
    assert view.used == Resources(2048, 11)
    request = Resources(2048, 64)
    assert fits(request, free["n1:1"])
    assert view.am_limit is not None
    assert fits(Resources(1024, 9), view.am_limit)
    assert fits(Resources(4096, 4000), view.guaranteed)
    assert not fits(Resources(4097, 1), view.guaranteed)
    assert fits(Resources(8192, 8000), view.maximum)
    assert not fits(Resources(8193, 1), view.maximum)
    assert is_by_memory(total)
    assert dominant(request, total) * 4 == dominant(total, total) == dominant(view.guaranteed, total) * 2
    assert shares(Resources(512, 9), total) == shares(Resources(512, 1), total)
    assert shares(Resources(512, 9), total) < shares(Resources(513, 1), total)
    [parent] = parent_views(queues, total, nodes, simple=False)
    assert fits(Resources(6144, 6000), minus(parent.maximum, parent.used))
