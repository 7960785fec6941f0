"""YARN's own preemption over a tree: what it took on a ResourceManager 3.4.2, and from which leaves."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from emulator.cluster import cluster
from emulator.cluster.preemption import TUNED, CapacityPreemption, PreemptionConfig
from tests.unit.deciding.queue_trees import waits
from tests.unit.test_tree_scheduler import Cluster

GRACE = msgspec.structs.replace(TUNED, max_wait_before_kill_ms=2000)


class Preempted:
    """A cluster of ``test_tree_scheduler`` under the policy."""

    def __init__(self, found: Cluster, config: PreemptionConfig = GRACE) -> None:
        self.found = found
        host = SimpleNamespace(rm=found.rm, sweep=SimpleNamespace(begin=found.serve))
        self.policy = CapacityPreemption(cast("cluster.Cluster", host), config)

    def marked(self) -> Counter[str]:
        """Return how many containers of each leaf are marked."""
        live = self.found.scheduler.live
        return Counter(live[number].app.queue.name for number in self.policy.marked_at_ms)

    def excuse(self, name: str, disabled: bool = True) -> None:
        leaf = self.found.scheduler.queues[name]
        leaf.config = msgspec.structs.replace(leaf.config, preemption_disabled=disabled)
        self.found.scheduler.resize(*self.found.rm.total)


def test_containers_are_marked_then_killed_and_given_to_the_leaf_that_waits():
    one = Preempted(Cluster({"res": 24}, waits("mkt", "mkt", (1, 3))))
    one.policy.run(0)
    assert (one.marked(), one.policy.kills) == ({"res": 3}, 0)
    one.policy.run(1000)
    assert one.policy.kills == 0
    one.policy.run(2000)
    assert (one.policy.kills, one.found.order) == (3, ["mkt"] * 3)


def test_only_leaves_below_a_full_parent_give_to_a_leaf_below_it():
    """The parent is at its maximum of 12 slots: res (167 %) gives nothing, lab gives 3."""
    used = {"eng.lab": 10, "eng.prod": 2, "res": 12}
    one = Preempted(Cluster(used, waits("eng.prod", "eng.prod", (1, 3)), eng_maximum=12))
    one.policy.run(0)
    assert one.marked() == {"eng.lab": 3}


def test_a_leaf_gives_to_a_cousin_whose_parent_is_below_its_guarantee():
    used = {"eng.prod": 1, "mkt": 7, "res": 16}
    one = Preempted(Cluster(used, waits("eng.lab", "eng.lab", (1, 3))))
    one.policy.run(0)
    assert one.marked() == {"res": 3}


def test_nothing_is_taken_from_an_excused_leaf_and_an_old_mark_has_no_new_wait():
    one = Preempted(Cluster({"res": 24}, waits("mkt", "mkt", (1, 3))))
    one.policy.run(0)
    one.excuse("res")
    for now_ms in (1000, 2000, 3000):
        one.policy.run(now_ms)
    assert one.policy.kills == 0
    one.excuse("res", disabled=False)
    one.policy.run(4000)
    assert one.policy.kills == 3


def test_a_mark_is_forgotten_after_twice_the_wait():
    one = Preempted(Cluster({"res": 24}, waits("mkt", "mkt", (1, 3))))
    one.policy.run(0)
    one.excuse("res")
    one.policy.run(4001)
    assert one.policy.marked_at_ms == {}


def test_a_round_takes_a_tenth_of_the_cluster_and_a_fifth_of_what_is_owed_by_default():
    """A tenth of 24 slots is 2.4; a fifth of that, rounded up, is one container."""
    one = Preempted(Cluster({"res": 24}, waits("mkt", "mkt", (1, 7))), PreemptionConfig())
    one.policy.run(0)
    assert one.marked() == {"res": 1}


def test_a_policy_that_observes_takes_nothing():
    config = msgspec.structs.replace(GRACE, observe_only=True)
    one = Preempted(Cluster({"res": 24}, waits("mkt", "mkt", (1, 3))), config)
    one.policy.run(0)
    assert one.policy.marked_at_ms == {}


def test_what_a_user_may_not_have_is_not_taken_for_it():
    """The user of mkt has 2 slots of a limit of 3: one container more within the limit counts."""
    found = Cluster({"res": 22, "mkt": 2}, waits("mkt", "mkt", (1, 5), user="u"))
    found.scheduler.queues["mkt"].user_mib = 3 * 51200
    found.scheduler.queues["mkt"].users["u"] = 2 * 51200
    one = Preempted(found)
    one.policy.run(0)
    assert one.marked() == {"res": 1}


def test_reservations_of_a_leaf_that_gives_go_first():
    found = Cluster({"res": 22}, waits("res", "large", (2, 1)), free={"n1": 1, "n2": 1})
    assert len(found.scheduler.kept) == 1
    found.submit(waits("mkt", "mkt", (1, 2)))
    one = Preempted(found)
    one.policy.run(0)
    assert not found.scheduler.kept
    assert one.marked() == {}
    assert found.order == ["mkt", "mkt"]


@pytest.mark.parametrize("fair", [False, True])
def test_the_application_that_is_served_last_gives_first(fair):
    """In a fair leaf that is the one that uses the most."""
    found = Cluster({"res": 20}, free={"n1": 4}, fair=("res",) if fair else ())
    found.submit(waits("res", "young", (1, 4)))
    found.serve()
    found.submit(waits("mkt", "mkt", (1, 2)))
    one = Preempted(found)
    one.policy.run(0)
    names = {found.names[found.scheduler.live[number].app.number] for number in one.policy.marked_at_ms}
    assert names == {"res-holds" if fair else "young"}
