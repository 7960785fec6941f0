"""Planning: from wishes to decisions, as values.

Law: a plan changes nothing. All wishes of one look are decided one after the other on overlays
("less what was picked already"); if tasks of a job that was hit have not been observed, the plan
only says so (``missing``) and is thrown away; otherwise the controller commits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from yarnctl.deciding.case import Candidate, Case, Choice
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.preemptor import Demand, Look, Wish, after_picks, candidates, closed_jobs, may_give
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources


class Planned(NamedTuple):
    """One wish, the case it made, and the choice (perhaps empty)."""

    wish: Wish
    case: Case
    choice: Choice


class Plan(NamedTuple):
    """Decisions in serving order; ``missing`` jobs must be observed before they can be trusted."""

    planned: tuple[Planned, ...]
    missing: tuple[str, ...]


class Seen(NamedTuple):
    """The tasks observed for this look, and the jobs that cannot be observed, with the reason."""

    tasks: Mapping[str, tuple[TaskView, ...]]
    silent: Mapping[str, str]


def make_plan(
    demand: Demand, look: Look, ledger: Ledger, settings: Settings, seen: Seen, first_number: int
) -> Plan:
    """Decide every wish of ``demand``; numbers are given to choices with picks only."""
    if not demand.wishes:
        return Plan((), ())
    jobs = candidates(look, ledger, settings, demand.victim_queues)
    barred, room = dict(ledger.barred), dict(demand.room)
    planned: list[Planned] = []
    missing: dict[str, None] = {}
    number = first_number
    for wish in demand.wishes:
        case = Case(
            number=number,
            now_ms=look.now_ms,
            total=look.snapshot.total,
            needs=wish.needs,
            room=room,
            jobs=may_give(jobs, look, settings, wish.application),
            tasks=seen.tasks,
            barred=barred,
            closed=closed_jobs(look, settings, wish.application, seen.silent),
            reserved=_reserved_for_others(look, wish),
        )
        choice = choose(case, settings)
        planned.append(Planned(wish, case, choice))
        missing.update(dict.fromkeys(choice.missing))
        if choice.picks:
            number += 1
            if wish is not demand.wishes[-1]:
                jobs, barred, room = _overlay(jobs, barred, room, choice, look.snapshot.total)
    return Plan(tuple(planned), tuple(sorted(missing)))


def _reserved_for_others(look: Look, wish: Wish) -> dict[str, str]:
    asker = wish.application.application
    return {node: name for node, name in look.snapshot.reserved_by_node.items() if name != asker}


def _overlay(
    jobs: list[Candidate],
    barred: dict[str, str],
    room: dict[str, Resources],
    choice: Choice,
    total: Resources,
) -> tuple[list[Candidate], dict[str, str], dict[str, Resources]]:
    """Return jobs, barred attempts and free room as they stand after a choice."""
    taken: dict[str, list[Resources]] = {}
    for pick in choice.picks:
        taken.setdefault(pick.application, []).append(pick.task.size)
    ordered = {pick.task.attempt: "already-ordered" for pick in choice.picks}
    return after_picks(jobs, taken, total), {**barred, **ordered}, {**room, **choice.room}
