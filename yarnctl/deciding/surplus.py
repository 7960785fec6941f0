"""Surplus: orders that their askers will not need.

Law: picks that are not needed are handed back, but never while another asker is due the same room:
withdrawing here and asking there would stop two tasks where one is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from yarnctl.deciding.effects import Effects
from yarnctl.deciding.forecast import Room, model_queues, place_pending
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lifecycle import RECALLABLE, RUNNING
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.order import Order, order_number
from yarnctl.deciding.preemptor import DemandInput, is_preempting, pending_count
from yarnctl.deciding.reasons.orders import AskerHasRoom, NobodyWaits, RoomElsewhere
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import Settlement


class ExcessOrders(NamedTuple):
    """Orders whose asker will not need them: ``moves`` to others who will, the rest to take back."""

    moves: tuple[tuple[Order, str], ...]
    excess: tuple[Order, ...]


def excess_orders(look: DemandInput, ledger: Ledger, settings: Settings) -> ExcessOrders:
    """Compare what is coming for each asker with what it would be given of it.

    The modelled scheduler serves everybody from the free room, then from the free and the coming
    room; the difference is what each asker is *due*. Who has more coming than is due passes it on to
    whoever is due more, and what is left over is taken back, the youngest first: picks that are not
    needed are handed back. With the modelled scheduler only (Natjam never takes a request back).
    """
    coming = list(ledger.expected_room(look.as_of_ms))
    without = model_queues(look.snapshot, ())
    placed = place_pending(without, Room(look.snapshot.free_by_node))
    with_coming = model_queues(look.snapshot, coming)
    placed_later = place_pending(with_coming, Room(look.snapshot.free_by_node, coming))
    due = {
        view.application: placed_later.get(view.application, 0) - placed.get(view.application, 0)
        for view in look.snapshot.applications
        if view.asks and is_preempting(view, settings)
    }
    for order in ledger.recently_settled_room(look.as_of_ms):  # what has been met since is not due again
        if order.asker in due:
            due[order.asker] -= order.serves
    return beyond(due, look.as_of_ms, ledger)


def beyond(due: Mapping[str, int], as_of_ms: int, ledger: Ledger) -> ExcessOrders:
    """Return what to do with the orders beyond what each asker is due; ``due`` in serving order."""
    lacking = dict(due)
    excess: list[Order] = []
    for asker in list(ledger.by_asker):
        mine = [order for order in ledger.of_asker(asker) if _is_coming(order, as_of_ms)]
        over = sum(order.serves for order in mine) - max(0, due.get(asker, 0))
        lacking[asker] = -over
        for order in reversed(mine):
            if 0 < order.serves <= over and order.state in RUNNING:
                over -= order.serves
                excess.append(order)
    moves: list[tuple[Order, str]] = []
    needless: list[Order] = []
    for order in sorted(excess, key=_age):
        taker = next((name for name, count in lacking.items() if count >= order.serves), None)
        if taker is not None:
            lacking[taker] -= order.serves
            moves.append((order, taker))
        elif order.state in RECALLABLE:
            needless += [mate for mate in ledger.group_of(order) if mate.state in RECALLABLE]
    return ExcessOrders(tuple(moves), tuple(reversed(needless)))


def _is_coming(order: Order, as_of_ms: int) -> bool:
    return order.state != "freed" or (order.freed_at_ms or 0) > as_of_ms


def _age(order: Order) -> int:
    return order_number(order.order)


def settle_needless(work: Settlement, snapshot: Snapshot | None, as_of_ms: int, now_ms: int) -> Effects:
    """Hand back what is not needed any more (no snapshot: nobody hurried waits for anything)."""
    effects, ledger, settings = Effects(), work.ledger, work.settings
    work.pending = None
    if not settings.model_scheduler or not ledger.open:
        return effects
    why = NobodyWaits() if snapshot is None else RoomElsewhere()
    if snapshot is None:
        pending: dict[str, int] = {}
        found = beyond({}, as_of_ms, ledger)
    else:
        pending = {view.application: pending_count(view) for view in snapshot.applications}
        found = excess_orders(DemandInput(snapshot, as_of_ms, now_ms), ledger, settings)
    for order, asker in found.moves:
        effects.add(work.transfer(order, asker, now_ms, AskerHasRoom(order.asker)))
    for order in found.excess:
        effects.add(work.recall(order, "not-needed", now_ms, why))
    work.pending = pending
    effects.add(work.forget_unwanted(pending, now_ms, as_of_ms))
    return effects
