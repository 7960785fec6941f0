"""Judging of orders in vain: grants in their order against the orders of one state."""

from __future__ import annotations

from typing import Any

from yarn_research.campaigns.in_vain import interval, judged, vain_orders
from yarnctl.deciding.order import Order
from yarnctl.units import Resources

SLOT = Resources(512, 1)


def order(number: int, requester: str, node: str, serves: int = 1, group: int = 0) -> Order:
    return Order(
        order=f"o-{number:06d}", requester=requester, victim="v", attempt=f"a{number}",
        container=f"c{number}", node=node, size=SLOT, request_size=SLOT, serves=serves,
        group=f"o-{group or number:06d}", generation=1, verb="kill", decision=1, ordered_at_ms=0,
        progress_at_ms=0,
    )  # fmt: skip


def grant(application: str, node: str, slots: int = 1) -> dict[str, Any]:
    return {
        "application": application, "node": node, "memory_mib": 512 * slots, "vcores": slots,
        "container": "new",
    }  # fmt: skip


def test_an_order_whose_requester_gets_its_container_first_is_not_in_vain() -> None:
    grants = [grant("p", "n1"), grant("v", "n1")]
    assert vain_orders([order(1, "p", "n1")], grants, {}) == {}


def test_a_container_that_the_victim_takes_back_first_is_in_vain_even_if_the_requester_is_served_later() -> (
    None
):
    grants = [grant("v", "n1"), grant("p", "n2")]
    assert vain_orders([order(1, "p", "n1")], grants, {}) == {"o-000001": "v"}


def test_a_requester_that_gets_nothing_makes_its_order_vain() -> None:
    assert vain_orders([order(1, "p", "n1")], [], {}) == {"o-000001": ""}
    assert vain_orders([order(1, "p", "n1")], [grant("q", "n1")], {}) == {"o-000001": "q"}


def test_requesters_may_swap_their_containers() -> None:
    orders = [order(1, "p", "n1"), order(2, "q", "n2")]
    assert vain_orders(orders, [grant("q", "n1"), grant("p", "n2")], {}) == {}


def test_what_was_free_before_is_not_of_the_freed_resources() -> None:
    grants = [grant("q", "n1"), grant("p", "n1", 2)]
    assert vain_orders([order(1, "p", "n1")], grants, {"n1": SLOT}) == {}
    assert vain_orders([order(1, "p", "n1")], grants, {}) == {"o-000001": "q"}


def test_orders_of_one_group_serve_one_request_together() -> None:
    orders = [order(1, "p", "n1", serves=0, group=1), order(2, "p", "n1", group=1)]
    assert vain_orders(orders, [grant("p", "n1", 2)], {}) == {}
    assert vain_orders(orders, [grant("q", "n1", 2)], {}) == {"o-000001": "q", "o-000002": "q"}


def test_of_two_orders_the_one_whose_node_served_another_is_in_vain() -> None:
    orders = [order(1, "p", "n1"), order(2, "p", "n2")]
    assert vain_orders(orders, [grant("p", "n1"), grant("q", "n2")], {}) == {"o-000002": "q"}


def test_the_sums_count_orders_and_idle_states_of_each_lever() -> None:
    row = {"short": True, "cause": "taken back"}
    kill = {"orders": 4, "vain": [row], "refused": {}}
    idle = {"idle": True, "missed": {"victim": {}}, "refused": {"p": "RoomGoesTo"}}
    told = judged([{"levers": {"kill": kill, "mix": idle}}, {"moved": "why"}])
    assert told["moved"] == 1
    assert told["kill"]["share in vain"]["ratio"] == 0.25
    assert told["kill"]["in vain, taken back"] == 1
    assert told["mix"]["missed, RoomGoesTo"] == 1
    assert told["mix"]["share missed"]["interval"] == [round(each, 4) for each in interval(1, 1)]
