"""Invariants of the ledger and of the controller's steps, by name.

Law: each is a function that raises :class:`InvariantBroken` with its own name and a story. They run after
every step in tests and under ``--validate``; nothing catches them. :data:`LEDGER` checks the ledger's state,
:data:`STEPS` one step; :class:`History` also compares each step with the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.lifecycle import OPEN, TABLE
from yarnctl.deciding.model import Action, DisablePreemption, Grow, Restore, SetPriority, SetQueueMaximum
from yarnctl.deciding.order import Order, order_number
from yarnctl.deciding.records import Decision, Ranking, Step, Transition
from yarnctl.deciding.settings import Settings
from yarnctl.errors import InvariantBroken


class Decider(Protocol):
    """What the invariants read of a controller."""

    settings: Settings
    ledger: Ledger
    now_ms: int

    def repeats(self, action: Action) -> bool:
        """Return whether a request was made before: its effect has not been observed."""
        ...


def _all(ledger: Ledger) -> list[Order]:
    return [*ledger.open.values(), *ledger.settled.values()]


def order_in_one_list(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """An order is open or settled, never both, and its state agrees."""
    for name in ledger.open:
        if name in ledger.settled:
            return f"{name} is both open and settled"
    for order in ledger.open.values():
        if order.state not in OPEN:
            return f"{order.order} is {order.state} but stands among the open"
    for order in ledger.settled.values():
        if order.state in OPEN:
            return f"{order.order} is {order.state} but stands among the settled"
    return ""


def one_open_order_per_container(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """No container and no attempt is under two open orders (never twice for the same task)."""
    containers: dict[str, str] = {}
    attempts: dict[str, str] = {}
    for order in ledger.open.values():
        if order.container in containers:
            return f"{order.order} and {containers[order.container]} both name {order.container}"
        if order.attempt in attempts:
            return f"{order.order} and {attempts[order.attempt]} both name {order.attempt}"
        containers[order.container] = attempts[order.attempt] = order.order
    if containers != ledger.by_container:
        return f"the index of containers {ledger.by_container} differs from the open orders {containers}"
    return ""


def ids_sequential(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """Order ids are o-000001, o-000002, ...: none is skipped, none comes twice, none is from the future."""
    for order in _all(ledger):
        if not 1 <= order_number(order.order) <= ledger.issued:
            return f"{order.order} was never issued; the last was number {ledger.issued}"
    names = list(ledger.open)
    if names != sorted(names, key=order_number):
        return f"open orders stand out of order: {names}"
    return ""


def open_counts_match(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """The indices by requester, victim and group have exactly the open orders, two more the freed ones."""
    indices = ((ledger.by_requester, "requester"), (ledger.by_victim, "victim"), (ledger.by_group, "group"))
    for index, field in indices:
        expected: dict[str, list[str]] = {}
        for order in ledger.open.values():
            expected.setdefault(getattr(order, field), []).append(order.order)
        found = {name: list(orders) for name, orders in index.items()}
        if found != expected:
            return f"by {field}: the index says {found}, the orders say {expected}"
    for index, field in ((ledger.freed_on, "node"), (ledger.freed_for, "requester")):
        freed: dict[str, list[str]] = {}
        for order in ledger.open.values():
            if order.state == "freed":
                freed.setdefault(getattr(order, field), []).append(order.order)
        if {name: sorted(orders) for name, orders in index.items()} != freed:
            return f"freed by {field}: the index says {index}, the orders say {freed}"
    return ""


def entries_retire(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """No settled order stays longer than ``expire_ms`` after the last one settled before it."""
    latest = 0
    for order in ledger.settled.values():
        latest = max(latest, order.settled_at_ms or 0)
        if latest + settings.expire_ms <= now_ms:
            return f"{order.order} settled at {order.settled_at_ms} and still stands at {now_ms}"
    return ""


def unanswered_orders_end(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """No order stays open ``kill_timeout_ms`` after the attempt was last seen alive.

    An observing controller has no open order whose predicted time has passed, but simulated ones.
    """
    if settings.observe_only:
        for group in ledger.by_group:
            mates = [ledger.open[name] for name in ledger.by_group[group]]
            running = [mate for mate in mates if mate.state == "ordered" and mate.observed]
            if running and all(mate.ordered_at_ms + mate.predicted_ms(settings) < now_ms for mate in running):
                return f"{group} is not simulated at {now_ms}"
        return ""
    for order in ledger.open.values():
        since = order.freed_at_ms if order.state == "freed" else order.progress_at_ms
        if since is None or now_ms - since >= order.limit_ms(settings):
            return f"{order.order} is {order.state} since {since} and still counts at {now_ms}"
    return ""


def instants_in_order(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """An order is freed exactly if it passed through ``freed``, and settled exactly if it is not open."""
    for order in _all(ledger):
        if (order.settled_at_ms is None) != (order.state in OPEN):
            return f"{order.order} is {order.state} with settled_at_ms {order.settled_at_ms}"
        if order.state in ("freed", "granted", "misdirected", "simulated") and order.freed_at_ms is None:
            return f"{order.order} is {order.state} and was never freed"
        if order.state in ("ordered", "suspending", "checkpointed") and order.freed_at_ms is not None:
            return f"{order.order} is {order.state} and freed at {order.freed_at_ms}"
    return ""


def under_order_is_excluded(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """Every attempt under an open order is excluded from being picked again."""
    for order in ledger.open.values():
        if ledger.excluded.get(order.attempt) != "already-ordered":
            return f"{order.attempt} is under {order.order} but may be picked"
    return ""


def excluded_is_under_order(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """An attempt is excluded as already ordered only while its order is open or snapshots may be older."""
    kept = {name for ends in ledger.recently_settled.values() for name in ends}
    for attempt, exclusion in ledger.excluded.items():
        order = ledger.bars.by[attempt]
        if exclusion == "already-ordered" and order not in ledger.open and order not in kept:
            return f"{attempt} is excluded as already ordered, and its order {order} is over"
    return ""


def groups_meet_an_ask(ledger: Ledger, settings: Settings, now_ms: int) -> str:
    """An order that is a group by itself serves at least one request; none serves a negative number."""
    for order in ledger.open.values():
        if order.serves < 0 or (order.serves == 0 and order.size == order.request_size):
            return f"{order.order} of the size asked for serves {order.serves} asks"
    return ""


def _decisions(step: Step) -> list[Decision]:
    return [record for record in step.records if isinstance(record, Decision)]


def no_am_ordered(decider: Decider, step: Step) -> str:
    """No pick is an application's master."""
    for pick in (pick for record in _decisions(step) for pick in record.picks):
        if pick.task.kind == "am":
            return f"{pick.task.container} is the master of {pick.application}"
    return ""


def victims_are_not_the_requester(decider: Decider, step: Step) -> str:
    """No application is its own victim."""
    for record in _decisions(step):
        for pick in record.picks:
            if pick.application == record.trigger.application:
                return f"{pick.application} would give {pick.task.container} to itself"
    return ""


def suspending_pays(decider: Decider, step: Step) -> str:
    """No victim would be done sooner than suspended, or has worked for less than its resume cost."""
    settings = decider.settings
    if not settings.cost_guard or settings.eviction == "kill":
        return ""
    for record in _decisions(step):
        for pick, pull in zip(record.picks, record.pulls, strict=True):
            task = pick.task
            if task.kind != "reduce" or (pull is not None and pull.lever.kind != "suspend"):
                continue
            worked_ms, cost_ms = record.at_ms - task.since_ms, task.resume_cost_ms
            if task.remaining_ms <= cost_ms:
                return f"{task.attempt} has {task.remaining_ms} ms left, and coming back costs {cost_ms} ms"
            if task.resumed and worked_ms < cost_ms and pull is None:
                return f"{task.attempt} has worked {worked_ms} ms, and coming back costs {cost_ms} ms"
    return ""


def never_more_than_needed(decider: Decider, step: Step) -> str:
    """A decision serves at most its need, and need is at most what is pending and not promised."""
    for record in _decisions(step):
        trigger, serves = record.trigger, sum(pick.serves for pick in record.picks)
        if serves > trigger.shortfall:
            return f"decision {record.number} serves {serves} asks of {trigger.shortfall}"
        if trigger.shortfall > trigger.pending - trigger.promised:
            return (
                f"decision {record.number} needs {trigger.shortfall} with {trigger.pending} pending"
                f" and {trigger.promised} promised"
            )
    return ""


def every_pick_completes_room(decider: Decider, step: Step) -> str:
    """Every pick performed belongs to a group that serves at least one request."""
    for record in _decisions(step):
        served: dict[str, int] = {}
        for pick, group in zip(record.picks, record.groups, strict=True):
            served[group] = served.get(group, 0) + pick.serves
        for group, count in served.items():
            if count == 0:
                return f"decision {record.number}: group {group} completes no room"
    return ""


def lifecycle_legal(decider: Decider, step: Step) -> str:
    """Every transition is a cell of the table."""
    for record in step.records:
        if isinstance(record, Transition) and TABLE[record.source].get(record.event) != record.target:
            return f"{record.order}: {record.source} x {record.event} does not lead to {record.target}"
    return ""


def actions_are_explained(decider: Decider, step: Step) -> str:
    """Every action is explained by a record of the same step; a repeated one by an earlier record."""
    explained: dict[str, None] = {}
    ranked: dict[tuple[str, int], None] = {}
    for record in step.records:
        if isinstance(record, Decision):
            explained.update(dict.fromkeys(record.orders))
        elif isinstance(record, Transition):
            explained[record.order] = None
        elif isinstance(record, Ranking):
            ranked.update(((row.application, row.priority), None) for row in record.order)
    for action in step.actions:
        if isinstance(action, SetPriority):
            if (action.application, action.priority) not in ranked:
                return f"{action} has no record"
        elif isinstance(action, Grow):
            if action.application not in decider.ledger.regrowing.shrunk:
                return f"{action} has no record"
        elif isinstance(action, SetQueueMaximum | DisablePreemption | Restore):
            return f"{action} is not for the controller to ask for"
        elif action.order not in explained and not decider.repeats(action):
            return f"{action} has no record"
    return ""


def wakes_in_time(decider: Decider, step: Step) -> str:
    """The next step is never in the past, never later than a tick, and soon while tasks are leaving."""
    settings, now_ms = decider.settings, decider.now_ms
    latest = now_ms + (settings.open_tick_ms if decider.ledger.count_running() else settings.tick_ms)
    if not now_ms <= step.wake_at_ms <= max(latest, now_ms + 1):
        return f"wakes at {step.wake_at_ms}, now is {now_ms}"
    if step.wake_at_ms == now_ms and not step.to_observe.victims:
        return "wakes at once and wants to see nothing"
    return ""


LEDGER: dict[str, Callable[[Ledger, Settings, int], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        order_in_one_list,
        one_open_order_per_container,
        ids_sequential,
        open_counts_match,
        entries_retire,
        unanswered_orders_end,
        instants_in_order,
        under_order_is_excluded,
        excluded_is_under_order,
        groups_meet_an_ask,
    )
}

STEPS: dict[str, Callable[[Decider, Step], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        no_am_ordered,
        victims_are_not_the_requester,
        suspending_pays,
        never_more_than_needed,
        every_pick_completes_room,
        lifecycle_legal,
        actions_are_explained,
        wakes_in_time,
    )
}

SETTLED_IS_FINAL = "settled-is-final"


class History:
    """The settled orders of the last check: they must never change."""

    def __init__(self) -> None:
        self.settled: dict[str, Order] = {}

    def check(self, ledger: Ledger) -> None:
        """Compare with the last check; raises InvariantBroken."""
        for name, order in self.settled.items():
            now = ledger.settled.get(name)
            if name in ledger.open or (now is not None and now != order):
                raise InvariantBroken(
                    SETTLED_IS_FINAL, f"{name} was {order.state}, is {now or ledger.open[name]}"
                )
        self.settled = dict(ledger.settled)


def check_ledger(ledger: Ledger, settings: Settings, now_ms: int) -> None:
    """Check the ledger's state; raises InvariantBroken."""
    for name, story_of in LEDGER.items():
        if story := story_of(ledger, settings, now_ms):
            raise InvariantBroken(name, story)


def check(decider: Decider, step: Step | None = None, history: History | None = None) -> None:
    """Check everything that can be checked; raises InvariantBroken with name and story."""
    check_ledger(decider.ledger, decider.settings, decider.now_ms)
    for name, story_of in STEPS.items():
        if step is not None and (story := story_of(decider, step)):
            raise InvariantBroken(name, story)
    if history is not None:
        history.check(decider.ledger)
