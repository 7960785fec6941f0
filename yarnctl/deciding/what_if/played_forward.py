"""Play forward: which tasks does a controller choose on a changed snapshot, and when are requests served?

The controller is a copy (:meth:`yarnctl.deciding.controller.Controller.copy`), and its orders count as sent.
At each instant the model of the scheduler serves what is free; the controller decides; and the next event is
played: an order frees its container after its predicted time, or a task ends by itself. Every instant has a
least and a most value: what is between two events is not known better than that.

Only nodes without a label are played. Tasks that are not observed do not end by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from yarnctl.deciding.controller import Controller
from yarnctl.deciding.forecast import FreeCapacity, model_queues
from yarnctl.deciding.levers import LEAVING, LeverPull
from yarnctl.deciding.model import (
    Accepted,
    ApplicationView,
    ContainerEnded,
    ContainerGranted,
    ContainerRequest,
    Fact,
    HeldTime,
    JobConsent,
    ManifestSeen,
    Observation,
    Snapshot,
    TaskView,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.records import Decision, Step
from yarnctl.deciding.tree_model import placed_in
from yarnctl.deciding.what_if.supposed import (
    NEW,
    RETURNING_PRIORITY,
    TASK_PRIORITY,
    NewApplication,
    less_used,
)
from yarnctl.units import NOTHING, Resources, minus, plus

ROUNDS_MAX = 60
QUIET_ROUNDS_MAX = 6
"""So many looks in a row without an order or an event end the play."""
RESUMING_PRIORITY = 3

TasksOf = Callable[[tuple[str, ...]], Mapping[str, tuple[TaskView, ...]]]
"""Returns the tasks of applications; those that do not answer are left out."""


class Span(NamedTuple):
    """A span from now on, in ms, with its bounds."""

    least_ms: int
    expected_ms: int
    most_ms: int

    def then(self, later_span: Span) -> Span:
        """Return the sum of two spans."""
        return Span(*(mine + its for mine, its in zip(self, later_span, strict=True)))

    def and_then(self, other_span: Span) -> Span:
        """Return when both have passed."""
        return Span(*(max(mine, its) for mine, its in zip(self, other_span, strict=True)))


NOW = Span(0, 0, 0)
GRANT = Span(0, 500, 3_000)
"""From free capacity to the container: a heartbeat of the node (1 s), and of the master, which may be late
(docs/facts/hadoop.md, section 11)."""
MASTER_START = Span(500, 5_000, 20_000)
"""From a master's container to its requests: it starts a process and registers."""
SOONEST, LATEST = 0.25, 2.5
"""A predicted span may be wrong by these factors; the spreads of a few samples say less."""


class Chosen(NamedTuple):
    """A task that the controller would stop. ``lost_ms``: work computed again; ``overhead_ms``: resuming."""

    application: str
    attempt: str
    container: str
    node: str
    how: str
    requester: str
    lost_ms: int
    overhead_ms: int


class PlayedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of a supposition. Spans are from now on; None: not within the events that are known.

    ``first``: until the new application has its first container; ``whole``: until it has all.
    ``served``: how many of its containers were served, its master included.
    """

    chosen: tuple[Chosen, ...]
    first: Span | None
    whole: Span | None
    served: int
    snapshot: Snapshot


class _Event(NamedTuple):
    at: Span
    kind: str
    name: str


class Forward:
    """One play. ``tasks_of`` reads tasks when the controller needs them; nothing else leaves this object.

    ``held``, ``consents``: as last observed. ``new`` None: no application is supposed. ``require_time``
    raises once the play takes too long.
    """

    def __init__(
        self,
        controller: Controller,
        snapshot: Snapshot,
        now_ms: int,
        tasks_of: TasksOf,
        new: NewApplication | None,
        held: tuple[HeldTime, ...] = (),
        consents: tuple[JobConsent, ...] = (),
        require_time: Callable[[], None] = lambda: None,
    ) -> None:
        self._controller = controller
        self._snapshot = snapshot
        self._now_ms = now_ms
        self._tasks_of = tasks_of
        self._new = new
        self._held, self._consents = held, consents
        self._require_time = require_time
        self._tasks: dict[str, tuple[TaskView, ...]] = {}
        self._silent: set[str] = set()  # did not answer, and are not read again
        self._ended: set[str] = set()
        self._events: list[_Event] = []
        self._facts: list[Fact] = []
        self._chosen: list[Chosen] = []
        self._first: Span | None = None
        self._whole: Span | None = None
        self._served = 0
        self._grants = 0

    def play(self) -> PlayedOutcome:
        """Play until the new application has all its containers, or nothing more is known."""
        settings = self._controller.settings
        for order in self._controller.ledger.open.values():
            self._expect(order, NOW)
        at_span, quiet = NOW, 0
        for _ in range(ROUNDS_MAX):
            self._place(at_span)
            if self._whole is not None:
                break
            before = len(self._chosen)
            self._decide(at_span)
            if self._new is None and quiet and len(self._chosen) == before:
                break
            if self._events:
                event = min(self._events, key=lambda each: (each.at.expected_ms, each.kind, each.name))
                self._events.remove(event)
                at_span = at_span.and_then(event.at)
                self._happen(event, at_span)
                quiet = 0
            else:
                quiet += 1
                at_span = at_span.then(Span(settings.tick_ms, settings.tick_ms, settings.tick_ms))
            if quiet > QUIET_ROUNDS_MAX:
                break
        return PlayedOutcome(
            chosen=tuple(self._chosen),
            first=self._first,
            whole=self._whole,
            served=self._served,
            snapshot=self._snapshot,
        )

    # --- the controller -------------------------------------------------------------------------

    def _decide(self, at_span: Span) -> None:
        """Let the controller decide at an instant; it reads the tasks that it needs."""
        controller, now_ms = self._controller, self._now_ms + at_span.expected_ms
        seen = Observation(
            now_ms=now_ms,
            as_of_ms=now_ms,
            snapshot=self._snapshot,
            cluster="seen",
            facts=tuple(self._facts),
            held=self._held_at(at_span.expected_ms),
            consents=self._consents,
        )
        self._facts.clear()
        while True:
            self._require_time()
            step = controller.step(seen)
            self._note(step, at_span)
            for action in step.actions:
                controller.settle(action, Accepted())
            victims = step.to_observe.victims
            if step.wake_at_ms > now_ms or not victims:
                return
            tasks = self._observed(victims, at_span)
            silent = tuple(name for name in victims if name not in tasks)
            seen = Observation(now_ms=now_ms, as_of_ms=now_ms, tasks=tasks, unreachable=silent)

    def _held_at(self, later_ms: int) -> tuple[HeldTime, ...]:
        """Return what payers of loss budgets will have held, with what they hold now: budgets grow."""
        used_mib: Counter[str] = Counter()
        for view in self._snapshot.applications:
            for payer in (view.queue, view.application, f"user:{view.user}"):
                used_mib[payer] += view.used.memory_mib
        return tuple(
            held._replace(mib_ms=held.mib_ms + used_mib[held.payer] * later_ms) for held in self._held
        )

    def _observed(self, victims: tuple[str, ...], at_span: Span) -> dict[str, tuple[TaskView, ...]]:
        """Return tasks as they will be at an instant: those that have ended are gone, others progress."""
        missing = tuple(name for name in victims if name not in self._tasks and name not in self._silent)
        found = self._tasks_of(missing) if missing else {}
        self._silent.update(set(missing) - found.keys())
        for name, tasks in found.items():
            self._tasks[name] = tasks
            for task in tasks:
                if task.kind in ("map", "reduce") and task.remaining_ms >= 0:
                    self._events.append(_Event(_uncertain(task.remaining_ms), "end", task.attempt))
        later_ms = at_span.expected_ms
        return {
            name: tuple(
                task._replace(remaining_ms=max(0, task.remaining_ms - later_ms))
                if task.remaining_ms > 0 and task.kind not in LEAVING
                else task
                for task in self._tasks[name]
                if task.attempt not in self._ended
            )
            for name in victims
            if name in self._tasks
        }

    def _note(self, step: Step, at_span: Span) -> None:
        """Note what the controller has chosen, and when its orders free their containers."""
        tick_ms = self._controller.settings.tick_ms
        look = Span(0, tick_ms // 2, tick_ms + 2_000)
        for record in step.records:
            if not isinstance(record, Decision):
                continue
            for name, pick, pull in zip(record.orders, record.picks, record.pulls, strict=True):
                order = self._controller.ledger.open[name]
                self._chosen.append(_chosen(record, order, pick.task, pull))
                self._expect(order, at_span.then(look))

    def _expect(self, order: Order, at_span: Span) -> None:
        if order.state in ("freed", "simulated"):
            return
        predicted_ms = order.predicted_ms(self._controller.settings)
        passed_ms = max(0, self._now_ms + at_span.expected_ms - order.ordered_at_ms)
        left = _uncertain(max(0, predicted_ms - passed_ms))
        limit_ms = order.limit_ms(self._controller.settings)  # so long it may show no progress
        left = left._replace(most_ms=max(left.most_ms, limit_ms - passed_ms))
        self._events.append(_Event(at_span.then(left), "order", order.order))

    # --- the cluster ----------------------------------------------------------------------------

    def _happen(self, event: _Event, at_span: Span) -> None:
        if event.kind == "requests":
            assert self._new is not None
            request = ContainerRequest(TASK_PRIORITY, self._new.size, self._new.containers)
            self._change(NEW, requests=(request,))
        elif event.kind == "order":
            order = self._controller.ledger.open.get(event.name)
            if order is not None and order.state != "freed":
                self._free(order, self._now_ms + at_span.expected_ms)
        else:
            self._end(event.name)

    def _free(self, order: Order, at_ms: int) -> None:
        """Free an order's container; its task requests another one, unless it leaves for a while."""
        if order.verb == "suspend":
            saved = ManifestSeen(order.order, order.attempt, order.generation, 0, at_ms)
            self._facts.append(saved)
        ending = "suspended" if order.verb == "suspend" else "killed"
        self._facts.append(ContainerEnded(order.container, order.victim, order.node, ending, at_ms))  # type: ignore[arg-type]
        if order.attempt in self._ended:
            return
        self._take(order.victim, order.attempt, order.node, order.size)
        view = self._view(order.victim)
        if view is not None and order.verb != "drain":
            priority = RESUMING_PRIORITY if order.verb == "suspend" else RETURNING_PRIORITY
            request = ContainerRequest(priority, order.size, 1)
            self._change(order.victim, requests=(*view.requests, request))

    def _end(self, attempt: str) -> None:
        """Let a task end by itself, if it has not been stopped."""
        for application, tasks in self._tasks.items():
            for task in tasks:
                if task.attempt == attempt and attempt not in self._ended:
                    self._take(application, attempt, task.node, task.size)

    def _take(self, application: str, attempt: str, node: str, size: Resources) -> None:
        self._ended.add(attempt)
        view = self._view(application)
        if view is None:
            return
        self._change(application, containers=view.containers - 1, used=minus(view.used, size))
        free = dict(self._snapshot.free_by_node)
        free[node] = plus(free.get(node, NOTHING), size)
        changed = msgspec.structs.replace(self._snapshot, free_by_node=free)
        self._snapshot = less_used(changed, {view.queue: size})

    def _place(self, at_span: Span) -> None:
        """Let the scheduler serve pending requests from free capacity."""
        snapshot = self._snapshot
        free = FreeCapacity(snapshot.free_by_node)
        placed, _ = placed_in(snapshot, model_queues(snapshot, ()), free)
        if not placed:
            return
        left = {**free.free, **free.held}
        gained = {
            node: minus(size, left.get(node, NOTHING))
            for node, size in snapshot.free_by_node.items()
            if left.get(node) != size
        }
        self._snapshot = msgspec.structs.replace(
            snapshot, free_by_node={node: size for node, size in left.items() if size != NOTHING}
        )
        for name, count in placed.items():
            self._grant(name, count, gained, at_span)

    def _grant(self, name: str, count: int, gained: dict[str, Resources], at_span: Span) -> None:
        view = self._view(name)
        assert view is not None
        sizes, requests = _served(view.requests, count)
        given = NOTHING
        at_ms = self._now_ms + at_span.expected_ms
        for size, node in zip(sizes, self._nodes_for(name, sizes, gained), strict=True):
            given = plus(given, size)
            self._grants += 1
            self._facts.append(ContainerGranted(f"{NEW}-{self._grants}", name, node, size, at_ms))
        self._change(
            name, requests=requests, containers=view.containers + len(sizes), used=plus(view.used, given)
        )
        self._snapshot = less_used(self._snapshot, {view.queue: minus(NOTHING, given)})
        if name == NEW:
            self._note_served(len(sizes), at_span.then(GRANT))

    def _note_served(self, count: int, at_span: Span) -> None:
        assert self._new is not None
        self._served += count
        if self._first is None:
            self._first = at_span
            self._events.append(_Event(at_span.then(MASTER_START), "requests", NEW))
        if self._served > self._new.containers:
            self._whole = at_span

    def _nodes_for(self, name: str, sizes: Sequence[Resources], gained: dict[str, Resources]) -> list[str]:
        """Return the nodes of grants: first those where orders of this application have freed containers."""
        orders = self._controller.ledger.open.values()
        own = [order.node for order in orders if order.requester == name and order.state == "freed"]
        own += [fact.node for fact in self._facts if isinstance(fact, ContainerEnded) and fact.node in gained]
        nodes = []
        for size, alike in groupby(sizes):
            places = iter([node for node in (*own, *gained) if node in gained])
            place = next(places, "")
            for _ in alike:
                self._require_time()
                # a node without enough for a size will not have it later
                while place and size.memory_mib > gained[place].memory_mib:
                    place = next(places, "")
                if place:
                    gained[place] = minus(gained[place], size)
                nodes.append(place)
        return nodes

    def _view(self, application: str) -> ApplicationView | None:
        views = self._snapshot.applications
        return next((view for view in views if view.application == application), None)

    def _change(self, application: str, **changes: object) -> None:
        self._snapshot = msgspec.structs.replace(
            self._snapshot,
            applications=tuple(
                msgspec.structs.replace(view, **changes) if view.application == application else view
                for view in self._snapshot.applications
            ),
        )


def _uncertain(span_ms: int) -> Span:
    return Span(int(span_ms * SOONEST), span_ms, int(span_ms * LATEST))


def _served(
    requests: Iterable[ContainerRequest], count: int
) -> tuple[list[Resources], tuple[ContainerRequest, ...]]:
    """Return the sizes of the first ``count`` requests by priority, and the requests that are left."""
    sizes: list[Resources] = []
    left: list[ContainerRequest] = []
    for request in sorted(requests):
        taken = min(request.count, count - len(sizes))
        sizes += [request.size] * taken
        if request.count > taken:
            left.append(request._replace(count=request.count - taken))
    return sizes, tuple(left)


def _chosen(decision: Decision, order: Order, task: TaskView, pull: LeverPull | None) -> Chosen:
    """Return a chosen task with what it loses: by its lever, or (of the two policies) by its verb."""
    if pull is not None:
        how, lost_ms, overhead_ms = pull.lever.kind, pull.lever.lost_ms, pull.lever.overhead_ms
    elif order.verb == "suspend":
        how, lost_ms, overhead_ms = "suspend", 0, task.resume_cost_ms
    else:
        how, lost_ms, overhead_ms = "kill", max(0, decision.at_ms - task.since_ms), 0
    return Chosen(
        order.victim,
        order.attempt,
        order.container,
        order.node,
        how,
        decision.trigger.application,
        lost_ms,
        overhead_ms,
    )
