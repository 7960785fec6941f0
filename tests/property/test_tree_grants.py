"""yarnctl's forecast of a tree of queues against the emulator's scheduler, on random trees."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.property.tree_grants import compare
from yarnctl.deciding import tree_descent
from yarnctl.deciding.forecast import QueueModel
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.deciding.tree_descent import TreeDescent
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import NOTHING, Resources, plus, times

TREES = [seed for seed in range(40) if seed not in (17, 25)]
"""In those two a fair leaf does not count a container yet that has filled a reservation."""


@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3)])
def test_containers_go_to_the_application_that_is_foreseen(sizes):
    """Both are given the order of heartbeats."""
    counts = Counter[str]()
    told = [line for seed in TREES for line in compare(seed, sizes, counts)]
    assert counts["grants"] > 5 * len(TREES)
    assert counts["reserving"] > len(TREES) or sizes == (1,)
    assert not told


# --- planted faults: each must be found --------------------------------------------------------


def no_parents_maximum(patch: pytest.MonkeyPatch) -> None:
    enter = TreeDescent._enter
    patch.setattr(TreeDescent, "_enter", lambda self, queue, _: enter(self, queue, queue.maximum))


def leaves_across_parents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QueueNode, "in_order", lambda self: sorted(self.active, key=lambda each: each.path))


def first_request_does_not_stop(patch: pytest.MonkeyPatch) -> None:
    leaf = TreeDescent._leaf
    patch.setattr(TreeDescent, "_leaf", lambda self, *given: (leaf(self, *given)[0], None))


def reservation_not_counted(patch: pytest.MonkeyPatch) -> None:
    begin = QueueTreeModel.__init__

    def without(self: QueueTreeModel, snapshot: Snapshot, queues: Any) -> None:
        begin(self, snapshot, queues)
        for view in snapshot.applications:
            if view.application in snapshot.reserved:
                self.leaves[view.queue].add(times(snapshot.reserved[view.application], -1))

    patch.setattr(QueueTreeModel, "__init__", without)


def own_reservation_held_against_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeDescent, "_is_below", lambda self, used, limit, _: self.is_less(used, limit))


def reservation_never_given_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QueueTreeModel, "gives_up", lambda *_: False)


def user_limit_at_its_value(patch: pytest.MonkeyPatch) -> None:
    at = QueueModel.is_over_limit
    one = Resources(1, 1)
    patch.setattr(
        QueueModel, "is_over_limit", lambda self, user, more=NOTHING: at(self, user, plus(more, one))
    )


def fair_leaf_by_rank(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QueueModel, "reorder", lambda *_: None)


def shares_by_memory_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tree_descent, "shares", lambda size, total: (-size[0],))


FAULTS = [
    no_parents_maximum,
    leaves_across_parents,
    first_request_does_not_stop,
    reservation_not_counted,
    own_reservation_held_against_it,
    reservation_never_given_up,
    user_limit_at_its_value,
    fair_leaf_by_rank,
    shares_by_memory_first,
]


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert any(compare(seed, (1, 2, 3), Counter()) for seed in TREES)
