"""Planning: from wishes to decisions, as values.

Law: a plan changes nothing. All wishes of one look are decided one after the other on overlays
("less what was picked already"); if tasks of a job that was hit have not been observed, the plan
only says so (``missing``) and is thrown away; otherwise the controller commits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.deciding.case import Candidate, Case, Choice
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Action, Release, Suspend, TaskView
from yarnctl.deciding.preemptor import (
    ApplicationDemand,
    ClusterDemand,
    DemandInput,
    after_picks,
    candidates,
    closed_jobs,
    is_preemptable,
    preemptable,
)
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources


def in_suspend_order(actions: Sequence[Action], ledger: Ledger, settings: Settings) -> tuple[Action, ...]:
    """Return a step's actions; in the places of its suspensions and releases, who would end last is first."""
    if not settings.model_scheduler:
        return tuple(actions)
    found = list(actions)
    for kind in (Suspend, Release):
        places = [place for place, action in enumerate(found) if isinstance(action, kind)]
        if len(places) > 1:
            ordered = sorted((found[place] for place in places), key=lambda one: -_ends_at_ms(one, ledger))
            for place, action in zip(places, ordered, strict=True):
                found[place] = action
    return tuple(found)


def _ends_at_ms(action: Action, ledger: Ledger) -> int:
    """Return when an action's task would have ended, as seen when it was chosen; 0: nobody knows."""
    order = ledger.open.get(action.order) if isinstance(action, Suspend | Release) else None
    return order.asked_at_ms + order.remaining_ms if order is not None and order.remaining_ms >= 0 else 0


class Planned(NamedTuple):
    """One wish, the case it made, and the choice (perhaps empty)."""

    demand: ApplicationDemand
    case: Case
    choice: Choice


class Plan(NamedTuple):
    """Decisions in serving order; ``missing`` jobs must be observed before they can be trusted.

    ``touched`` are the attempts without which the plan would be another: those that any choice has picked,
    also one that was thrown away (more would have been in flight than may be); of a plan that counts also
    those shown.
    """

    planned: tuple[Planned, ...]
    missing: tuple[str, ...]
    touched: frozenset[str] = frozenset()


class ObservedTasks(NamedTuple):
    """The tasks observed for this look, and the jobs that cannot be observed, with the reason."""

    tasks: Mapping[str, tuple[TaskView, ...]]
    unanswered: Mapping[str, Reason]


def make_plan(
    demand: ClusterDemand,
    look: DemandInput,
    ledger: Ledger,
    settings: Settings,
    seen: ObservedTasks,
    first_number: int,
) -> Plan:
    """Decide every wish of ``demand``; numbers are given to choices with picks only."""
    if not demand.applications:
        return Plan((), ())
    views = preemptable(look, settings, demand.preemptable_queues)
    jobs = candidates(look, ledger, settings, views)
    closed = closed_jobs(views, settings, seen.unanswered)
    barred, room = dict(ledger.excluded), dict(demand.room)
    planned: list[Planned] = []
    missing: dict[str, None] = {}
    number = first_number
    flight = InFlight(look, ledger, settings, demand.preemptable_queues)
    for wanted in demand.applications:
        case = Case(
            number=number,
            now_ms=look.now_ms,
            total=look.snapshot.total,
            needs=wanted.shortfalls,
            room=room,
            jobs=is_preemptable(jobs, look, settings, wanted.application),
            tasks=seen.tasks,
            barred=barred,
            closed=closed,
            reserved=_reserved_for_others(look, wanted),
        )
        wish, case, choice = flight.limit(wanted, case, settings)
        if not wish.shortfalls:
            continue  # as many are in flight as may be: the next look asks again
        planned.append(Planned(wish, case, choice))
        missing.update(dict.fromkeys(choice.missing))
        if choice.picks:
            number += 1
            flight.begun += len(choice.picks)
            if wanted is not demand.applications[-1]:
                jobs, barred, room = _overlay(jobs, barred, room, choice, look.snapshot.total)
    touched = flight.touched
    if not missing:
        touched.update(each.attempt for one in planned for each in one.choice.refused_tasks)
    return Plan(tuple(planned), tuple(sorted(missing)), frozenset(touched))


class InFlight:
    """How many suspensions may begin in one look: a bound on the harm that a wrong decision can do.

    ``begun`` counts the orders whose container has not ended, those of this plan included. Room for
    one ask is never refused while nothing is in flight, however many containers it takes.
    """

    def __init__(
        self, look: DemandInput, ledger: Ledger, settings: Settings, victim_queues: tuple[str, ...]
    ) -> None:
        self.begun = ledger.count_running()
        self.touched: set[str] = set()
        self.most: int | None = None
        if settings.in_flight_ratio_max < 1:
            queues = victim_queues or None
            held = sum(
                view.containers
                for view in look.snapshot.applications
                if queues is None or view.queue in queues
            )
            self.most = max(settings.in_flight_least, int(held * settings.in_flight_ratio_max))

    def limit(self, wish: ApplicationDemand, case: Case, settings: Settings) -> Planned:
        """Choose for as many of the wish's containers as may be in flight (none: empty needs)."""
        left = None if self.most is None else max(self.most - self.begun, 0)
        containers = sum(need.containers for need in wish.shortfalls)
        if left is not None and containers > left:
            containers = left if self.begun else max(left, 1)
            wish, case = _fewer(wish, case, containers)
        choice = self._chosen(case, settings)
        while left is not None and len(choice.picks) > left and containers > (0 if self.begun else 1):
            containers -= 1
            wish, case = _fewer(wish, case, containers)
            choice = self._chosen(case, settings)
        return Planned(wish, case, choice)

    def _chosen(self, case: Case, settings: Settings) -> Choice:
        choice = choose(case, settings)
        self.touched.update(pick.task.attempt for pick in (*choice.picks, *choice.handed_back))
        return choice


def _fewer(wish: ApplicationDemand, case: Case, containers: int) -> tuple[ApplicationDemand, Case]:
    """Return wish and case for the first ``containers`` of what is needed."""
    needs = []
    left = containers
    for need in wish.shortfalls:
        if left > 0:
            needs.append(need._replace(containers=min(left, need.containers)))
            left -= need.containers
    trigger = msgspec.structs.replace(wish.trigger, need=containers)
    wish = wish._replace(shortfalls=tuple(needs), trigger=trigger)
    return wish, msgspec.structs.replace(case, needs=wish.shortfalls)


def _reserved_for_others(look: DemandInput, wish: ApplicationDemand) -> dict[str, str]:
    asker = wish.application.application
    return {node: name for node, name in look.snapshot.reserved_by_node.items() if name != asker}


def _overlay(
    jobs: list[Candidate],
    barred: dict[str, Reason],
    room: dict[str, Resources],
    choice: Choice,
    total: Resources,
) -> tuple[list[Candidate], dict[str, Reason], dict[str, Resources]]:
    """Return jobs, barred attempts and free room as they stand after a choice."""
    taken: dict[str, list[Resources]] = {}
    for pick in choice.picks:
        taken.setdefault(pick.application, []).append(pick.task.size)
    ordered: dict[str, Reason] = {pick.task.attempt: "already-ordered" for pick in choice.picks}
    return after_picks(jobs, taken, total), {**barred, **ordered}, {**room, **choice.room}
