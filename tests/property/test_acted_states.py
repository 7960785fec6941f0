"""Random states in which yarnctl decides and the emulator grants; faults of the model are seen.

The figures of 10,000 states: ``python -m tests.soak in-vain 10000``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.property.acted_states import act
from tests.soak.in_vain import counted, wilson
from yarnctl.deciding import tree_model
from yarnctl.deciding.forecast import QueueModel
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.deciding.tree_descent import TreeDescent
from yarnctl.units import NOTHING, Resources, fits, minus, plus

STATES = range(1, 151)


def counts_of_states(states: range = STATES) -> Counter[str]:
    counts = Counter[str]()
    for seed in states:
        counted(counts, act(seed))
    return counts


def test_freed_containers_are_granted_to_their_requesters() -> None:
    counts = counts_of_states()
    assert counts["orders"] > len(STATES) / 2
    assert counts["in vain"] <= 0.02 * counts["orders"], counts
    assert counts["below the guarantee"] == 0
    assert counts["missed"] <= 0.2 * counts["idle while production waits"], counts


SHARING = (122, 436, 509, 762, 802, 961, 1064, 1096, 1757, 2276, 2714)
"""Clusters with a label whose users share leaves by minimum-user-limit-percent."""

ALWAYS_REJECTED = 6690
"""In this state nodes find a request again and again that a limit does not allow."""


def test_containers_of_partitions_are_granted_to_their_requesters() -> None:
    counts = Counter[str]()
    for seed in (*SHARING, ALWAYS_REJECTED, *range(5001, 5051)):
        counted(counts, act(seed, labelled=True))
    assert counts["orders"] > 50
    assert counts["in vain"] == 0, counts


# --- planted faults: each must be found --------------------------------------------------------


def no_parents_maximum(patch: pytest.MonkeyPatch) -> None:
    def binding(self: QueueNode, size: Resources, own_resources: Resources = NOTHING) -> QueueNode | None:
        return None if fits(plus(self.used, minus(size, own_resources)), self.maximum) else self

    enter = TreeDescent._enter
    patch.setattr(QueueNode, "binding", binding)
    patch.setattr(TreeDescent, "_enter", lambda self, queue, _: enter(self, queue, queue.maximum))


def no_user_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QueueModel, "is_over_limit", lambda *_: False)


def no_priority(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tree_model, "_priority", lambda *_: None)


@pytest.mark.parametrize(
    ("plant", "states"),
    [
        (no_priority, STATES[:50]),
        pytest.param(no_parents_maximum, STATES[:50], marks=pytest.mark.thorough),
        pytest.param(no_user_limit, STATES, marks=pytest.mark.thorough),
    ],
)
def test_a_planted_fault_makes_orders_vain(
    plant: Callable[[pytest.MonkeyPatch], None], states: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of users binds in few states."""
    plant(monkeypatch)
    counts = counts_of_states(states)
    assert counts["in vain"] > 0.03 * counts["orders"], counts


def test_wilson_interval_of_ten_in_a_thousand() -> None:
    low, high = wilson(10, 1000)
    assert (round(low, 4), round(high, 4)) == (0.0054, 0.0183)
    assert wilson(0, 0) == (0.0, 1.0)
