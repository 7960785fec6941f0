"""Controller, ledger and journal: decided, written, then done."""

from __future__ import annotations

from emulator.cluster.entities import RUNNING
from emulator.cluster.resource_manager import container_id
from emulator.invariants.watched_run import RunWatch, Stories, name_of
from yarnctl.deciding.invariants import LEDGER
from yarnctl.deciding.records import (
    Decision,
    Epoch,
    KilledEnded,
    Performed,
    Progressed,
    Requests,
    Return,
    SavedLost,
    Transfer,
    Transition,
    UnknownApplication,
)

DATED_BY_A_FACT = (
    Transition,
    Transfer,
    Return,
    SavedLost,
    Progressed,
    UnknownApplication,
    KilledEnded,
    Epoch,
)


def ledger_is_sound(watch: RunWatch) -> Stories:
    """The ledger's own invariants hold, and no settled order ever changes."""
    controller = watch.controller
    if controller is None or watch.stepped == (controller.now_ms, len(watch.records)):
        return
    watch.stepped = (controller.now_ms, len(watch.records))
    for name, holds in LEDGER.items():
        story = holds(controller.ledger, controller.settings, controller.now_ms)
        if story:
            yield f"{name}: {story}"
    settled = controller.ledger.settled
    for order_id, order in watch.settled.items():
        if order_id in controller.ledger.open or settled.get(order_id, order) != order:
            yield f"{order_id} was {order.state} and has changed"
    watch.settled = dict(settled)


def records_are_in_order(watch: RunWatch) -> Stories:
    """Records are written in the order of time; decisions are numbered without a gap."""
    for record in watch.records[watch.read :]:
        if isinstance(record, DATED_BY_A_FACT):
            continue  # it may be older
        at_ms = getattr(record, "at_ms", watch.written_at_ms)
        if not watch.written_at_ms <= at_ms <= watch.kernel.now_ms:
            yield f"a record of {at_ms} ms follows one of {watch.written_at_ms} ms"
        watch.written_at_ms = at_ms
        if isinstance(record, Decision):
            if record.number != watch.decisions + 1:
                yield f"decision {record.number} follows decision {watch.decisions}"
            watch.decisions = record.number


def journal_before_action(watch: RunWatch) -> Stories:
    """Whatever is done to a container was decided in a record that was written before."""
    records = watch.records
    for place in range(watch.read, len(records)):
        record = records[place]
        if isinstance(record, Decision):
            watch.decided.update(record.orders)
            pulls = zip(record.orders, record.pulls, strict=True)
            watch.ended.update(
                order for order, pull in pulls if pull is not None and pull.lever.kind == "end"
            )
        elif isinstance(record, Requests):
            watch.asked.extend(record.actions)
        elif isinstance(record, Performed):
            watch.may_lose |= record.action == "kill" and record.order not in watch.ended
            told = f"{record.action} {record.order}"
            if record.order and record.order not in watch.decided:
                yield f"{told} was performed, nothing decided it"
            asked = next((action for action in watch.asked if record.is_of(action)), None)
            if asked is not None:
                watch.asked.remove(asked)
            elif not record.queue and not record.back:
                yield f"{told} was performed, nothing asked for it"
    if watch.controller is None:
        return
    for container in watch.live:
        if container.order and container.order not in watch.decided:
            yield f"{name_of(container)} obeys {container.order}, not on record"


def controller_has_a_wake_up(watch: RunWatch) -> Stories:
    """While orders are open the controller steps at every tick at the least."""
    controller = watch.controller
    if controller is None or not controller.ledger.open:
        return
    if watch.kernel.now_ms - controller.now_ms > controller.settings.tick_ms:
        yield f"{len(controller.ledger.open)} orders are open, the last step was at {controller.now_ms} ms"


def containers_match_the_ledger(watch: RunWatch) -> Stories:
    """A container never works on another order than the one the ledger has open for it."""
    if watch.controller is None or not watch.controller.ledger.open:
        return
    by_container = watch.controller.ledger.by_container
    for container in watch.live:
        if container.order and container.state == RUNNING:
            order = by_container.get(container_id(container), container.order)
            if order != container.order:
                yield f"{name_of(container)} obeys {container.order}, ordered was {order}"
