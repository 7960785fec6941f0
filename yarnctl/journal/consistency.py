"""Consistency: what must hold inside one record, whatever the cluster looked like.

Law: each function says what is wrong, or "": a journal's numbers are checked against each other,
against the settings and against the ledger that the records before imply.
"""

from __future__ import annotations

from collections.abc import Iterator

from yarnctl.deciding.case import Case, Choice, prune
from yarnctl.deciding.foresight import UNMET, is_unmet
from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.deciding.records import Decision, Header, Refusal, Trigger
from yarnctl.deciding.settings import PROFILES, Settings, validate
from yarnctl.errors import BadInput
from yarnctl.journal.implied import Implied
from yarnctl.units import dominant

FULL = "the cluster is full"
NO_TASK, NO_JOB = "no task may be stopped", "no job may give"
NOT_OVER = "no victim queue is over its guarantee"


def header_problem(header: Header) -> str:
    """Check that a controller could run with these settings."""
    settings = header.settings
    if settings.profile not in PROFILES:
        return f"no profile {settings.profile!r}"
    try:
        validate(settings)
    except BadInput as error:
        return str(error)
    if list(header.capabilities) != sorted(set(header.capabilities)):
        return "the capabilities are not in order"
    return ""


# --- triggers ---------------------------------------------------------------------------------


def trigger_problem(trigger: Trigger, at_ms: int, work: Implied) -> str:
    """Check a trigger's counts against each other and against the orders that are open."""
    settings, as_of_ms = work.settings, trigger.as_of_ms
    pending = sum(ask.count for ask in trigger.asks)
    if as_of_ms is None or as_of_ms > at_ms:
        return f"seen at {as_of_ms} ms, decided at {at_ms} ms"
    promised = work.ledger.promised(trigger.application, as_of_ms)
    if trigger.pending != pending:
        return f"{trigger.pending} pending, its asks are {pending}"
    if trigger.promised != promised:
        return f"{trigger.promised} promised, the open orders are for {promised}"
    if min(trigger.need, trigger.placed, *(ask.count for ask in trigger.asks)) < 0:
        return "a count is negative"
    if trigger.placed + trigger.need > pending:
        return f"{trigger.placed} placed and {trigger.need} needed of {pending} pending"
    if trigger.need > max(0, pending - promised):
        return f"{trigger.need} needed, {promised} of {pending} promised"
    if settings.mode == "queues" and trigger.queue not in settings.hurried_queues:
        return f"queue {trigger.queue} is not hurried"
    dying = work.ledger.dying_for(trigger.application, as_of_ms) if work.complete else 0
    exact = max(0, pending - promised - dying) - trigger.need
    known = work.complete or not work.killed
    limited = (
        settings.in_flight_ratio_max < 1 and trigger.placed < exact
    )  # less is made room for than is needed
    if not settings.model_scheduler and known and not limited and trigger.placed != exact:
        return f"{trigger.placed} placed, {exact} are neither promised nor needed"
    return ""


def asked_for_problem(decision: Decision, settings: Settings) -> str:
    """Check a decision's trigger against the needs of its case."""
    trigger, needs = decision.trigger, decision.case.needs
    if not _is_due(trigger, settings):
        return f"trigger {trigger.why!r}"
    need = sum(need.containers for need in needs)
    if need != trigger.need:
        return f"need {trigger.need}, its case {need}"
    for size, containers in needs:
        asked = sum(ask.count for ask in trigger.asks if ask.size == size)
        if not 0 < containers <= asked:
            return f"needs {containers} of {tuple(size)}, asks for {asked}"
    return ""


def _is_due(trigger: Trigger, settings: Settings) -> bool:
    """Say whether room is made for the reason that these settings know."""
    return is_unmet(trigger.why, trigger.pending) if settings.model_scheduler else trigger.why == FULL


def refusal_problem(refusal: Refusal, settings: Settings) -> str:
    """Check a refusal's reason."""
    trigger, why = refusal.trigger, refusal.why
    if why in (NO_TASK, NO_JOB):
        if trigger.need < 1 or (why == NO_JOB) != (not refusal.refused_jobs and settings.refused_shown > 0):
            return f"{why!r} with need {trigger.need} and {len(refusal.refused_jobs)} jobs refused"
        if any(job.why == "next" for job in refusal.refused_jobs):
            return "a job would have been next, and nothing was taken from it"
        if len(refusal.refused_jobs) > settings.refused_shown:
            return f"{len(refusal.refused_jobs)} jobs are shown, the settings say {settings.refused_shown}"
        return "" if _is_due(trigger, settings) else f"trigger {trigger.why!r}, due is {UNMET!r} or {FULL!r}"
    else:
        if refusal.refused_jobs or refusal.refused_tasks:
            return f"{why!r} concerns no job or task"
        if (trigger.need > 0) == settings.model_scheduler:
            return f"need {trigger.need}"
        if not settings.model_scheduler and why != NOT_OVER:
            return f"reason {why!r}"
        due = why if settings.model_scheduler else FULL
    return "" if trigger.why == due else f"trigger {trigger.why!r}, due is {due!r}"


# --- cases ------------------------------------------------------------------------------------


def case_problem(case: Case, choice: Choice, work: Implied) -> str:
    """Check a case against itself, against its choice, and against the orders so far."""
    if prune(case, choice) != case:
        return "the case holds more than led to the choice"
    if choice.missing or not choice.picks:
        return "nothing was chosen, or tasks had not been observed"
    return next(_oddities(case, work), "")


def _oddities(case: Case, work: Implied) -> Iterator[str]:
    names = [job.usage.application for job in case.jobs]
    if names != sorted(set(names)):
        yield "the jobs do not stand in the order of their ids"
    for tasks in case.tasks.values():
        for task in tasks:
            if problem := _bar_problem(task.attempt, case.barred.get(task.attempt), work):
                yield problem
    for usage, used, _, _ in case.jobs:
        name = usage.application
        if usage.share != dominant(used, case.total):
            yield f"{name}: share {usage.share}, it uses {tuple(used)} of {tuple(case.total)}"
        if usage.releasable != usage.containers - 1 or usage.clock != 0:
            yield f"{name}: {usage.releasable} of {usage.containers} containers releasable"
        if usage.deadline_at_ms is None and usage.laxity_ms != FOREVER_MS:
            yield f"{name}: laxity {usage.laxity_ms} without a deadline"


def _bar_problem(attempt: str, said: str | None, work: Implied) -> str:
    """Compare why an attempt may not be touched with what the orders imply.

    Not in the journals of older programs: when an application was last seen (its attempts' failed tries
    are forgotten with it), and the end of a container that was killed (then its attempt is
    "already-ordered").
    """
    implied = work.ledger.barred.get(attempt)
    if work.complete:
        same = said == implied
    elif implied == "already-ordered" or said == "already-ordered":
        same = said == implied or (said is not None and attempt in work.killed)
    else:
        same = said is None or implied is not None
    return "" if same else f"{attempt}: {said or 'free'} in the case, {implied or 'free'} by the orders"
