"""Workers: an application is told how many leave and chooses which; what that costs is paid once.

A worker ``w`` leaves within 3 s and its application does 2 s of work again unless said otherwise.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.mix_tables import NOW_MS, RULES, given, mix_case, mix_settings, mixed, rules, told
from tests.golden.tables import size, task
from tests.unit.deciding.test_drain import Play, executor
from tests.unit.deciding.test_mix import MIX, a_map
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.levers import levers_of
from yarnctl.deciding.model import Accepted, ContainerEnded, ContainerGranted, Ending, TaskView
from yarnctl.deciding.order import requested
from yarnctl.deciding.records import Decision, Header, Transition
from yarnctl.journal.explaining.explain import explain, in_words


def worker(name: str, room_ms: int = 3000, lost_ms: int = 2000, *, may: bool = True, **more) -> TaskView:
    return task(name, room_ms, kind="worker", since_ms=NOW_MS - lost_ms, able=may, cost_ms=30_000, **more)


@pytest.mark.parametrize(
    ("view", "expected"),
    [(worker("w"), [("rescale", 3000, 2000, 30_000)]), (worker("w", -1), []), (worker("w", may=False), [])],
)
def test_a_worker_has_one_lever_or_none(view, expected):
    levers = list(levers_of(view, NOW_MS, RULES, -1))
    assert [(each.kind, each.free_in_ms, each.lost_ms, each.overhead_ms) for each in levers] == expected


CHOICES = [
    ({"a": [worker("w1"), worker("w2")]}, 2, 2, "rescale w1 | rescale w2"),  # 2 s are lost, not 4
    ({"a": [worker("w1"), worker("w2")]}, 2, 1, "2 unmet"),
    ({"a": [worker("w1")], "b": [worker("x1")]}, 2, 2, "rescale w1 | 1 unmet"),  # another pays its own
    ({"a": [worker("w1"), worker("w2"), a_map("m1_0", 3)]}, 3, 5, "rescale w1 | rescale w2 | kill m1_0"),
    ({"a": [worker("w1", lost_ms=0), executor("e1")]}, 1, 0, "drain e1"),  # the least overhead
]


@pytest.mark.parametrize(("tasks", "asks", "kill_s", "expected"), CHOICES)
def test_what_an_application_does_again_is_paid_once_however_many_leave(tasks, asks, kill_s, expected):
    assert told(mixed(mix_case(tasks, asks), given(list(tasks), kill_s=kill_s))) == expected


def test_an_ask_of_two_containers_is_never_made_up_of_workers():
    """Which of them leave is the application's choice: they may be of two nodes."""
    tasks = {"a": [worker("w1"), worker("w2")]}
    assert told(mixed(mix_case(tasks, [(2, 1)]), given(["a"], kill_s=9))) == "1 unmet"


# --- the order ----------------------------------------------------------------------------------------


def gone(container: str, node: str, order: str = "", application: str = "r") -> ContainerEnded:
    return ContainerEnded(container, application, node, "suspended", NOW_MS + 3000, order)


def test_the_decision_says_that_the_second_costs_nothing_more():
    play = Play(worker("w1"), worker("w2"))
    (decision,) = [each for each in play.step(NOW_MS).records if isinstance(each, Decision)]
    assert [pull.lever.lost_ms for pull in decision.pulls if pull] == [2000, 0]
    assert sum(each.lost_ms for each in play.controller.ledger.losses.charges.values()) == 2000


def test_an_order_is_answered_by_the_container_that_the_application_chose():
    play = Play(worker("w1"), asks=1)
    (drain,) = play.asked()
    step = play.step(NOW_MS + 3000, gone("c-other", "n7", drain.order))
    (moved,) = [each for each in step.records if isinstance(each, Transition)]
    assert (moved.left, moved.left_node, moved.target) == ("c-other", "n7", "freed")
    ledger = play.controller.ledger
    assert ledger.by_container == {"c-other": drain.order}
    granted = ContainerGranted("c9", "p", "n7", size(1), NOW_MS + 3100)
    play.step(NOW_MS + 3200, granted, asks=0)
    assert play.state(drain.order) == "granted"
    assert ledger.by_container == {}


def test_who_left_instead_is_explained_and_its_cost_is_told_once():
    play = Play(worker("w1"), worker("w2"))
    records = [Header(6, MIX, ()), *play.step(NOW_MS).records]
    first, second = play.controller.ledger.open.values()
    for each in (first, second):
        records += play.step(NOW_MS + 3000, gone(f"c-{each.order}", "n7", each.order)).records
    told = "\n".join(in_words(explain(records, first.order)))
    assert f"c-{first.order} on n7: the application chose this container" in told
    assert "the application repeats 2 s of work" in told
    assert "another order of the decision shows the cost" in "\n".join(
        in_words(explain(records, second.order))
    )


FREED = [
    (worker("e1_0"), "rescale"),
    (executor("e1_0"), "drain"),
    (a_map("e1_0", 1), "kill"),
    (task("e1_0", 90_000, since_ms=NOW_MS, able=False), "end"),
    (task("e1_0", 90_000), "suspend"),
]


@pytest.mark.parametrize(("view", "kind"), FREED)
def test_how_late_a_container_was_free_counts_for_its_kind_of_lever_alone(view, kind):
    play, settings = Play(view, asks=1), mix_settings(rules(second_worth_ratio=10.0))
    play.controller = Controller(msgspec.structs.replace(MIX, levers=settings.levers), validate=True)
    play.step(NOW_MS)
    (order,) = play.controller.ledger.open.values()
    play.controller.settle(requested(order, settings), Accepted())
    ending: Ending = "suspended" if order.verb != "kill" else "killed"
    play.step(NOW_MS + 4000, ContainerEnded(order.container, "r", "n1", ending, NOW_MS + 4000))
    assert set(play.controller.ledger.times.by_kind) == {kind}


STRANGE = [
    (("c-other", "n7", "o-000009"), "suspending"),  # no such order
    (("c-other", "n7", "o-000001", "q"), "suspending"),  # of another application
    (("c-other", "n7"), "suspending"),
]


@pytest.mark.parametrize(("fact", "state"), STRANGE)
def test_a_foreign_end_answers_no_order(fact, state):
    play = Play(worker("w1"), asks=1)
    (drain,) = play.asked()
    play.step(NOW_MS + 3000, gone(*fact))
    assert play.state(drain.order) == state


def test_a_container_under_an_order_of_its_own_answers_that_one():
    play = Play(worker("w1"), worker("w2"))
    first, second = play.asked()
    play.step(NOW_MS + 3000, gone(second.container, "n1", first.order))
    assert (play.state(first.order), play.state(second.order)) == ("suspending", "freed")


def test_a_container_answers_one_order_alone():
    play = Play(worker("w1"), worker("w2"))
    first, second = play.asked()
    play.step(NOW_MS + 3000, gone("c-other", "n7", first.order), gone("c-other", "n7", second.order))
    assert (play.state(first.order), play.state(second.order)) == ("freed", "suspending")
