"""Which queues ``--preempting``, ``--preemptable`` and ``--mode`` give to the daemon."""

from __future__ import annotations

import pytest

from tests.daemon_plans import plan_for
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.daemon.named_queues import named_in, with_paths
from yarnctl.deciding.queue_names import NamedQueues, QueueTree, resolved
from yarnctl.deciding.reasons.queue_naming import AmbiguousQueue, ParentQueue, QueueInBothRoles, QueueProblem
from yarnctl.deciding.settings import Settings
from yarnctl.errors import BadInput

RM = ("--rm", "http://127.0.0.1:1", "--name-node", "http://127.0.0.1:1")
TREE = QueueTree(("root.default", "root.eng.prod", "root.eng.lab"), ("root", "root.eng"))


def names_for(*words: str) -> tuple[QueueNames, Settings]:
    """Return the resolved names of a daemon, and the settings of its controller."""
    plan = plan_for(*RM, *words)
    named = named_in(plan.attachment, plan.settings, plan.admitting, plan.optional_queues)
    names = QueueNames(named)
    names.read(TREE)
    assert names.problems == ()
    return names, with_paths(plan.settings, named, resolved(named, TREE))


@pytest.mark.parametrize("role", ["--preempting", "--preemptable"])
def test_with_deadlines_a_queue_named_in_one_role_has_both(role: str) -> None:
    """Else every order for its own tasks would be rejected."""
    names, settings = names_for("--mode", "deadlines", role, "default")
    assert (settings.preempting_queues, settings.preemptable_queues) == (("root.default",),) * 2
    assert names.is_preemptable("root.default")
    assert not names.is_preemptable("root.eng.lab"), "tasks of a queue that is not named are left alone"


def test_with_deadlines_two_roles_stay_apart() -> None:
    _, settings = names_for("--mode", "deadlines", "--preempting", "prod", "--preemptable", "lab")
    assert settings.preempting_queues == ("root.eng.prod",)
    assert settings.preemptable_queues == ("root.eng.lab",)


ON_DEMAND = QueueTree(
    ("root.default", "root.users.x.bob", "root.users.alice"),
    ("root", "root.users", "root.users.x", "root.lab", "root.lab.x"),
)


def of(*words: str, tree: QueueTree = ON_DEMAND) -> tuple[QueueNames, Settings]:
    """Return the names of a daemon in this tree, and its settings as far as they are resolved."""
    plan = plan_for(*RM, *words)
    names = QueueNames(named_in(plan.attachment, plan.settings, plan.admitting, plan.optional_queues))
    names.read(tree)
    settings = with_paths(plan.settings, names.named, names.found) if names.found else plan.settings
    return names, settings


def test_a_parent_stands_for_all_leaves_below_it_in_one_order() -> None:
    names, settings = of("--preempting", "default", "--preemptable", "users")
    assert settings.preemptable_queues == ("root.users.alice", "root.users.x.bob")
    assert names.is_preemptable("root.users.x.bob")
    assert not names.is_preemptable("root.default")
    assert names.may_be_lowered("root.users")
    assert of("--preempting", "default", "--preemptable", "users.x")[1].preemptable_queues == (
        "root.users.x.bob",
    )


def test_a_parent_keeps_its_path_and_follows_its_leaves() -> None:
    names, _ = of("--preempting", "default", "--preemptable", "users")
    assert not names.regrouped
    names.read(QueueTree((*ON_DEMAND.leaves[:2], "root.a.users"), ON_DEMAND.parents))
    assert names.regrouped
    assert names.preemptable == {"root.users.x.bob"}
    names.regrouped = False
    names.read(QueueTree(ON_DEMAND.leaves[:2][::-1], ON_DEMAND.parents))
    assert not names.regrouped, "YARN's order is no change"


@pytest.mark.parametrize("mode", ["queues", "guarantees"])
def test_a_parent_without_a_leaf_means_none_and_no_problem(mode: str) -> None:
    names, settings = of("--mode", mode, "--preempting", "default", "--preemptable", "lab")
    assert names.problems == ()
    assert names.why_nothing is None
    for path in ON_DEMAND.leaves:
        assert not names.is_preemptable(path)
        assert not settings.may_be_preempted(path)


@pytest.mark.parametrize(
    ("preempting", "preemptable", "problem"),
    [
        ("alice", "users", QueueInBothRoles("root.users.alice", ("alice", "users"))),
        ("users", "users.alice", QueueInBothRoles("root.users.alice", ("users", "users.alice"))),
        ("root.users", "users.x", QueueInBothRoles("root.users.x", ("root.users", "users.x"))),
        ("lab", "lab.x", QueueInBothRoles("root.lab.x", ("lab", "lab.x"))),
        ("default", "x", AmbiguousQueue("x", ("root.users.x", "root.lab.x"), 2)),
    ],
    ids=["leaf, parent", "parent, leaf", "nested", "no leaf yet", "two parents"],
)
def test_a_leaf_in_both_roles_and_a_name_of_two_parents_are_problems(
    preempting: str, preemptable: str, problem: QueueProblem
) -> None:
    assert of("--preempting", preempting, "--preemptable", preemptable)[0].problems == (problem,)


def test_admission_and_budgets_need_a_leaf() -> None:
    named = NamedQueues(("default",), ("users",), gate=("users",))
    [problem] = resolved(named, ON_DEMAND).problems
    assert isinstance(problem, ParentQueue)


def test_a_parent_with_later_leaves_is_not_left_alone_as_a_whole() -> None:
    named = NamedQueues(
        ("default",), ("lab", "alice"), budgets=("root.users.alice",), left_alone=("root.users.alice",)
    )
    found = resolved(named, ON_DEMAND)
    assert found.problems == ()
    settings = with_paths(plan_for(*RM).settings, named, found)
    assert not any(map(settings.may_be_preempted, ON_DEMAND.leaves))


def test_with_guarantees_no_name_means_every_leaf() -> None:
    names, settings = names_for("--mode", "guarantees")
    assert (settings.preempting_queues, settings.preemptable_queues) == ((), ())
    for path in TREE.leaves:
        assert names.is_preempting(path)
        assert names.is_preemptable(path)
        assert settings.may_preempt(path)
        assert settings.may_be_preempted(path)
    assert not names.may_be_lowered("root.default")
    assert names.why_nothing is None


def test_with_guarantees_names_restrict_a_role() -> None:
    names, settings = names_for(
        "--mode", "guarantees", "--preemptable", "lab", "--preempting", "lab", "--preempting", "prod"
    )
    assert [path for path in TREE.leaves if names.is_preemptable(path)] == ["root.eng.lab"]
    assert [path for path in TREE.leaves if settings.may_be_preempted(path)] == ["root.eng.lab"]
    assert [path for path in TREE.leaves if names.is_preempting(path)] == ["root.eng.prod", "root.eng.lab"]


@pytest.mark.parametrize("words", [("--cap-queue",), ("--cap-queue", "--predicted-demand", "4")])
def test_with_guarantees_no_queue_is_lowered(words: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="--cap-queue: works only with --mode queues"):
        plan_for(*RM, "--mode", "guarantees", *words)


def test_with_guarantees_a_queue_that_does_not_exist_is_named() -> None:
    plan = plan_for(*RM, "--mode", "guarantees", "--preemptable", "nowhere")
    names = QueueNames(named_in(plan.attachment, plan.settings, plan.admitting, plan.optional_queues))
    names.read(TREE)
    assert names.problems
    assert names.why_nothing is not None
    assert not names.is_preemptable("root.default"), "as long as the names are not resolved"
