"""What idle nodes of a shared partition leave of the requests without a label."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import app, cluster, size
from tests.unit.deciding.queue_trees import tree, waits
from yarnctl.deciding.forecast import FreeCapacity, model_queues
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.shared_partitions import ServedPartition


def test_what_is_left_keeps_its_application_and_each_of_its_sizes() -> None:
    wants = msgspec.structs.replace(
        app("p1", "production", containers=3),
        requests=(ContainerRequest(10, size(1), 4), ContainerRequest(10, size(2), 5)),
    )
    here = cluster(wants, app("r1", "research", containers=10), total=13)
    queues = model_queues(here, ())
    idle = cluster(free={"label-1": 6}, total=6)
    placed = ServedPartition(idle, model_queues(idle, ()), FreeCapacity(idle.free_by_node)).serve_idle(queues)
    left = queues["production"].waiting()
    assert {each.application for each in left} == {wants}
    counts = {each.size: each.containers for each in left}
    assert sum(counts.values()) == 9 - placed["p1"]
    assert placed["p1"] > 0
    assert counts[size(2)] > 0


@pytest.mark.parametrize(("own", "first"), [((), "old"), (((1, 1),), "new")])
def test_a_fair_leaf_counts_what_was_granted_there_before(
    own: tuple[tuple[int, int], ...], first: str
) -> None:
    line = [waits("res", "old", (1, 1)), waits("res", "new", (1, 1), rank=1)]
    here = tree({}, *line, fair=("root.res",))
    there = tree({}, waits("res", "old", *own), waits("res", "new"), fair=("root.res",))
    free = FreeCapacity(tree({}, free={"x1": 1 + len(own)}).free_by_node)
    idle = ServedPartition(there, model_queues(there, ()), free)
    assert idle.serve_idle(model_queues(here, ())) == {first: 1}


@pytest.mark.parametrize(("pending", "more"), [(1, {}), (2, {"old": 1})])
def test_a_reservation_of_a_request_without_a_label_is_filled_before_requests_for_the_label(
    pending: int, more: dict[str, int]
) -> None:
    """Two slots are free on the reserved node, one on the other one."""
    here = tree({}, waits("res", "old", (1, pending)))
    there = msgspec.structs.replace(
        tree({"res": 1}, waits("res", "old"), waits("mkt", "new", (1, 1)), reserved={"old": 1}),
        reserved_by_node={"x1": "old"},
        reserved_priority={"x1": 0},
        unlabelled=here,
    )
    free = FreeCapacity(tree({}, free={"x1": 2, "x2": 0.5 + len(more)}).free_by_node)
    part, queues = ServedPartition(there, model_queues(there, ()), free), model_queues(here, ())
    assert part.placed == {"old": 1, "new": 1}
    assert part.serve_idle(queues) == more
    assert queues["root.res"].waiting() == []
