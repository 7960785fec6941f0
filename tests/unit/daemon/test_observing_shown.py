"""A daemon that observes shows what it would order, expects no container, and says so in every place."""

from __future__ import annotations

import pytest

from tests.unit.daemon.test_loop import busy, daemon
from yarnctl.cli.decisions import _orders
from yarnctl.cli.reclaims import _state
from yarnctl.daemon.view.recent_orders import RecentOrders
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Withheld
from yarnctl.deciding.order import ORDER_VERBS, OrderVerb
from yarnctl.deciding.reasons.outcomes import Observing
from yarnctl.deciding.records import Performed, Refusal
from yarnctl.journal.rendering import text
from yarnctl.service.answers.explanations import everything_about, summary
from yarnctl.service.answers.from_view import applications, reclaim_list, snapshot

ASKER = "production-1"


@pytest.mark.parametrize("verb", ORDER_VERBS)
def test_withheld_orders_of_every_verb_are_counted(verb: OrderVerb) -> None:
    loop, _ = daemon(busy(), enforce=False)
    loop.run(40)
    decided = loop.publisher.view.decisions[-1]
    (*orders,) = decided.record.orders
    recent = RecentOrders()
    recent.apply(decided.record)
    for order in orders:
        recent.apply(Performed(at_ms=1, action=verb, order=order, outcome=Withheld(Observing())))
    recent.update(Ledger())
    shown = summary(recent.decisions[0])
    assert shown.withheld == len(orders) > 0
    assert _orders(shown) == f"would order {len(orders)}"


def test_an_observing_daemon_expects_no_container() -> None:
    loop, _ = daemon(busy(), enforce=False)
    while not loop.publisher.view.entries:
        loop._once()
    view = loop.publisher.view
    count = sum(entry.serves for entry in view.entries)
    assert count > 0
    shown = {each.application: each for each in applications(view)}
    assert (shown[ASKER].expected, shown[ASKER].would_order) == (0, count)
    assert [each.suspending for each in shown.values()] == [0] * len(shown)
    listed = reclaim_list(ASKER, None, view.entries, view)
    assert (listed.expected, listed.would_order) == (0, count)
    assert {entry.observed for entry in listed.entries} == {True}
    assert snapshot(view).open_orders == 0
    assert view.counts.asked == {}
    (now,) = (line for line in everything_about(view, ASKER).rendered if line.startswith("now: "))
    assert f"would order {count} containers" in now
    assert "freed" not in now


def test_a_simulated_order_is_shown_as_what_would_have_happened() -> None:
    loop, _ = daemon(busy(), enforce=False)
    loop.run(40)
    view = loop.publisher.view
    listed = reclaim_list(ASKER, None, view.entries, view)
    assert {(entry.state, _state(entry)) for entry in listed.entries} == {("simulated", "would have freed")}
    assert (listed.expected, listed.would_order) == (0, len(listed.entries))
    assert {_orders(summary(each)) for each in view.decisions} == {f"would order {len(listed.entries)}"}
    assert view.counts.ended == {}
    assert snapshot(view).open_orders == 0


def test_nothing_is_being_freed_without_an_open_order() -> None:
    cluster = busy()
    loop, _ = daemon(cluster)
    while not loop.publisher.view.entries:
        loop._once()
    (now,) = (line for line in everything_about(loop.publisher.view, ASKER).rendered if line[:4] == "now:")
    count = sum(entry.serves for entry in loop.publisher.view.entries)
    assert f"{count} container{'s' * (count > 1)} ordered from research-" in now

    cluster = busy()
    cluster.silent = {"research-1", "research-2"}
    loop, _ = daemon(cluster)
    while not loop.publisher.view.refusals:
        loop._once()
    view = loop.publisher.view
    now, *causes = (line for line in everything_about(view, ASKER).rendered if line[:4] == "now:")
    newest = view.refusals[0].record
    assert isinstance(newest, Refusal)
    assert f"; no container is ordered: {text(newest.why)} (" in now
    assert "freed" not in now
    silent = "the job's application master does not answer"
    remedy = "check the job's application master"
    assert causes == [f"now: 9 tasks of research-{n}: {silent}; to free them: {remedy}" for n in (1, 2)]
