"""A tag, a user or a queue opts out: the reason is shown, and no lever is used on the application."""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import EPOCH, FakeCluster, application, attempt, container
from tests.unit.attach.test_performing import SUSPEND, looking
from yarnctl.deciding.model import (
    Drain,
    Kill,
    ObservationRequest,
    Outcome,
    Refused,
    SetPriority,
    SetQueueMaximum,
)
from yarnctl.deciding.queue_names import NamedQueues, QueueTree, resolved
from yarnctl.deciding.reasons.eligibility import InNoPreemptableQueue, LeftAlone
from yarnctl.deciding.reasons.queue_naming import BudgetOfNoPreemptableQueue, EveryQueueLeftAlone, NoLeafQueue
from yarnctl.hadoop.wire.tags import leave_alone_tag

NAMES = (application(1), attempt(1, 1), container(1, 2))
LEVERS = (
    SUSPEND, Kill("o-1", *NAMES),
    Kill("o-1", application(1), f"attempt_{EPOCH}_0001_m_000009_0", container(1, 9)),
    Drain("o-1", *NAMES, 1, ()), SetPriority(application(1), 3),
)  # fmt: skip
WAYS = {
    "tag": (LeftAlone("tag", "yarnctl-leave-alone"), {}),
    "user": (LeftAlone("user", "ann"), {"left_alone_users": ("carl", "ann")}),
}


@pytest.mark.parametrize("mode", ["queues", "deadlines"])
@pytest.mark.parametrize("way", WAYS)
def test_no_lever_is_used_on_what_opts_out_and_the_reason_is_shown(
    cluster: FakeCluster, way: str, mode: str
) -> None:
    why, settings = WAYS[way]
    cluster.apps[application(1)].tags = "team-a,yarnctl-leave-alone" if way == "tag" else "team-a"
    both = ("production", "research") if mode == "deadlines" else ("research",)
    port = looking(
        cluster,
        levers=True,
        allow_kill=True,
        allow_priority=True,
        mode=mode,
        preemptable_queues=both,
        **settings,
    )
    (view,) = [each for each in shown(port) if each.application == application(1)]
    assert (view.left_alone, view.runner, view.why_not) == (True, False, why)
    assert [each.left_alone for each in shown(port) if each.application != application(1)] == [False]
    outcomes: list[Outcome] = [port.perform(lever) for lever in LEVERS]
    assert outcomes == [Refused(why)] * len(LEVERS)
    assert cluster.changes == []


def shown(port):
    return port.observe(ObservationRequest()).snapshot.applications


def test_a_queue_that_opts_out_is_not_preemptable_and_not_capped(cluster: FakeCluster) -> None:
    queues = {"preemptable_queues": ("research", "other"), "left_alone_queues": ("research",)}
    cluster.queues["other"] = 0.0
    port = looking(cluster, levers=True, allow_kill=True, allow_queue_cap=True, allow_priority=True, **queues)
    why = LeftAlone("queue", "root.research")
    assert {each.application: each.why_not for each in shown(port)}[application(1)] == why
    assert [port.perform(lever) for lever in LEVERS] == [Refused(why)] * len(LEVERS)
    assert isinstance(port.perform(SetQueueMaximum("root.research", 0.1)), Refused)
    assert cluster.changes == []


def test_what_is_not_left_alone_has_its_own_reason(cluster: FakeCluster) -> None:
    port = looking(cluster, levers=True, left_alone_users=("bobby",))
    assert {each.application: each.why_not for each in shown(port)} == {
        application(1): None,
        application(2): InNoPreemptableQueue(),
    }


def test_what_is_left_alone_adds_nothing_to_its_queues_budget(cluster: FakeCluster) -> None:
    port = cluster.port(levers=True, left_alone_users=("ann",))
    for _ in range(3):
        cluster.apps[application(1)].mib_seconds += 60_000
        cluster.now_ms += 60_000
        held = port.observe(ObservationRequest()).held
    assert held == ()


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (("a", "yarnctl-leave-alone"), "yarnctl-leave-alone"),
        (("YARNCTL-LEAVE-ALONE",), "YARNCTL-LEAVE-ALONE"),
        (("yarnctl:leave_allone",), "yarnctl:leave_allone"), (("yarnctl-leave",), "yarnctl-leave"),
        (("leave-alone",), None), (("my-yarnctl-leave-alone",), None), (("yarnctl-drain:signal",), None),
        ((), None),
    ],
)  # fmt: skip
def test_a_misspelt_tag_opts_out_too(tags: tuple[str, ...], found: str | None) -> None:
    assert leave_alone_tag(tags) == found


TREE = QueueTree(("root.prod", "root.research.etl", "root.research.ml"), ("root", "root.research"))


@pytest.mark.parametrize(
    ("names", "preemptable", "problem"),
    [
        (("etll",), ("etl", "ml"), NoLeafQueue),
        (("prod",), ("etl", "ml"), BudgetOfNoPreemptableQueue),
        (("etl", "research.ml"), ("etl", "ml"), EveryQueueLeftAlone),
        (("etl",), ("etl", "ml"), None),
    ],
)
def test_names_to_leave_alone_stand_for_preemptable_queues(
    names: tuple[str, ...], preemptable: tuple[str, ...], problem: type | None
) -> None:
    named = NamedQueues(("prod",), preemptable, budgets=names, left_alone=names)
    found = resolved(named, TREE)
    assert [type(each) for each in found.problems] == ([] if problem is None else [problem])
    if problem is None:
        assert found.preemptable(named) == ("root.research.ml",)
    if problem is NoLeafQueue:
        assert found.problems[0].nearest == ("root.research.etl",)
