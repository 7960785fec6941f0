"""Which queues ``--preempting``, ``--preemptable`` and ``--mode`` give to the daemon."""

from __future__ import annotations

import pytest

from tests.daemon_plans import plan_for
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.daemon.named_queues import named_in, with_paths
from yarnctl.deciding.queue_names import QueueTree, resolved
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
