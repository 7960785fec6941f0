"""Verdicts: what the newest decision found for each preempting application with pending requests.

Law: a verdict decides nothing and is in no journal; a controller that is replayed finds the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from yarnctl.deciding.mix import Mixing
from yarnctl.deciding.model import ApplicationView, Snapshot, TaskKind
from yarnctl.deciding.planning import Plan, Planned
from yarnctl.deciding.preemptor import ClusterDemand, is_preempting, served_before
from yarnctl.deciding.reasons.demand import NoJobMayGive, NoTaskMayStop, PriorityPending, TriggerReason
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.releaser import Reason, objections
from yarnctl.deciding.settings import Settings

CauseCode = Reason | Literal["too-small", "ends-soon", "starting"]
"""Why tasks were not chosen: the codes of the releaser, and those that only a whole choice can give."""

OWN_CAUSES = {
    "too-small": "what may be stopped on its node makes no container that is large enough",
    "ends-soon": "ends by itself in time",
    "starting": (
        "no running task of it was observed: it starts or ends,"
        " or runs a map, which yarnctl reads with --eviction mix only"
    ),
}
"""The sentences of the codes that the releaser does not have."""


class Cause(NamedTuple):
    """``tasks`` tasks of one application that were not chosen, and why.

    ``kind`` "task": the application's tasks were not observed. ``why_not``: why none of its tasks can be
    suspended, for ``why`` "no-runner" and "left-alone".
    """

    application: str
    name: str
    kind: TaskKind | Literal["task"]
    tasks: int
    why: CauseCode
    why_not: EligibilityReason | None = None


_Key = tuple[str, TaskKind | Literal["task"], CauseCode]
"""Application, kind of task, and reason."""


class WaitingVerdict:
    """The result of the newest decision for one application.

    ``found`` "placed": all its requests fit into free or expected capacity. "ordered": orders were made.
    "awaited": tasks end by themselves in time. "in-flight": too many orders are open. Else: the reason why
    there is no order; ``planned`` is its case, if tasks were compared. ``fitting``: how many containers of
    all applications fit, for "placed". ``label``: of the requested nodes.
    """

    def __init__(
        self,
        found: Literal["placed", "ordered", "awaited", "in-flight"] | TriggerReason,
        snapshot: Snapshot,
        settings: Settings,
        planned: Planned | None = None,
        fitting: int = 0,
        label: str = "",
    ) -> None:
        self.found = found
        self.label = label
        self.snapshot = snapshot
        self.planned = planned
        self.fitting = fitting
        self._settings = settings

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """Why no task was chosen, by application, kind and reason; the sums are the applications' tasks."""
        planned = self.planned
        if planned is None or not isinstance(self.found, NoTaskMayStop):
            return ()
        views = {view.application: view for view in self.snapshot.applications}
        counts = _not_chosen(planned, views, self._settings)
        causes = []
        for (name, kind, code), tasks in counts.items():
            view = views[name]
            why_not = view.why_not if code in ("no-runner", "left-alone") else None
            causes.append(Cause(name, view.name, kind, tasks, code, why_not))
        return tuple(sorted(causes, key=lambda each: (-each.tasks, each.application, each.kind, each.why)))


def _not_chosen(planned: Planned, views: Mapping[str, ApplicationView], settings: Settings) -> Counter[_Key]:
    """Count the running tasks of the candidates, of which none was chosen, by job, kind and reason."""
    case = planned.case
    mixed = {} if planned.mix is None else _mixed(planned, settings)
    objection = objections(case.now_ms, settings, case.barred, case.reserved)
    counts: Counter[_Key] = Counter()
    for job in case.jobs:
        name, tasks = job.usage.application, case.tasks.get(job.usage.application)
        otherwise: CauseCode = "too-small" if job.budget > 0 or planned.mix is not None else "job-budget"
        held = views[name].containers - 1
        if name not in case.closed and tasks is not None:
            running = [task for task in tasks if task.kind != "am"]
            for task in running:
                counts[name, task.kind, mixed.get(task.attempt) or objection(task) or otherwise] += 1
            # Of an application that yarnctl cannot shrink (Spark without the tag) no task is observed.
            is_unfit = not running and views[name].why_not is not None
            unseen: CauseCode = "no-runner" if is_unfit else "starting"
            counts[name, "task", unseen] += max(0, held - len(running))
            continue
        left = max(0, job.usage.releasable)
        why = case.closed.get(name, "not-observed" if job.budget > 0 else "job-budget")
        counts[name, "task", why] += left
        counts[name, "task", "already-ordered"] += held - left
    return +counts


def _mixed(planned: Planned, settings: Settings) -> dict[str, CauseCode]:
    """Return why the mix did not choose each task that it has looked at."""
    assert planned.mix is not None
    mixing = Mixing(planned.case, settings, planned.mix)
    causes: dict[str, CauseCode] = {}
    place = 0
    while (option := mixing.offers.at(place)) is not None:
        place += 1
        if option.lever.kind == "wait":
            causes[option.attempt] = "ends-soon"
        else:
            causes[option.attempt] = "too-small" if mixing._allowed((option,)) else mixing.over(option)
    causes.update((task.attempt, why) for task, _, why in mixing.offers.passed)
    return causes


def verdicts_of(
    snapshot: Snapshot, demand: ClusterDemand, plan: Plan, settings: Settings
) -> dict[str, WaitingVerdict]:
    """Return the verdicts of a decision on ``snapshot``, by application.

    Of an application that requests nodes of several labels: the first for which not all of it is placed.
    """
    found: dict[str, WaitingVerdict] = {}
    for label, part in demand.by_label.items():
        here = snapshot.labelled[label] if label else snapshot
        for name, verdict in _verdicts_of(here, part, plan, settings, label).items():
            if name not in found or found[name].found == "placed":
                found[name] = verdict
    return found


def _verdicts_of(
    snapshot: Snapshot, demand: ClusterDemand, plan: Plan, settings: Settings, label: str
) -> dict[str, WaitingVerdict]:
    """Return those of one partition."""
    found: dict[str, WaitingVerdict] = {}
    waiting = [view.application for view in _waiting(snapshot, settings)]
    refused = {trigger.application: why for trigger, why in demand.refused}
    short = {wish.application.application for wish in demand.applications}
    planned = {
        one.demand.trigger.application: one for one in plan.planned if one.demand.trigger.label == label
    }
    queues = {queue.queue for queue in snapshot.queues}
    known = {view.application for view in snapshot.applications if view.queue in queues}
    for name in waiting:
        if name in planned:
            found[name] = _judged(planned[name], snapshot, settings)
        elif name in short:
            found[name] = WaitingVerdict("in-flight", snapshot, settings, label=label)
        elif name in refused:
            found[name] = WaitingVerdict(refused[name], snapshot, settings, label=label)
        elif name in known:
            found[name] = WaitingVerdict("placed", snapshot, settings, fitting=demand.fitting, label=label)
    return found


def _waiting(snapshot: Snapshot, settings: Settings) -> Sequence[ApplicationView]:
    """Return the preempting applications with pending requests, modelled or not."""
    views = [view for view in snapshot.applications if view.requests or view.application in snapshot.left_out]
    return [view for view in views if is_preempting(view, settings)]


def _judged(planned: Planned, snapshot: Snapshot, settings: Settings) -> WaitingVerdict:
    choice, label = planned.choice, planned.demand.trigger.label
    if choice.picks:
        return WaitingVerdict("ordered", snapshot, settings, planned, label=label)
    if choice.awaited and not choice.unmet:
        return WaitingVerdict("awaited", snapshot, settings, planned, label=label)
    why = why_none(planned, snapshot, settings)
    return WaitingVerdict(why, snapshot, settings, planned, label=label)


def why_none(planned: Planned, snapshot: Snapshot, settings: Settings) -> TriggerReason:
    """Return why a choice without picks has none."""
    stopped = None if planned.mix is None else planned.mix.stopped
    if stopped is not None and any(each.why == "on-trial" for each in planned.choice.refused_tasks):
        return stopped
    if planned.demand.otherwise is not None:
        return planned.demand.otherwise
    if planned.case.jobs:
        return NoTaskMayStop()
    if settings.mode == "deadlines":
        first = served_before(snapshot, planned.demand.application, planned.case.now_ms, settings)
        if first is not None:
            return PriorityPending(first)
    return NoJobMayGive()
