"""Consistency: what must hold inside one record, whatever the cluster looked like.

Law: each function says what is wrong, or "": a journal's numbers are checked against each other,
against the settings and against the ledger that the records before imply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from yarnctl.deciding.case import Case, Choice, prune
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.deciding.records import Decision, Header, Refusal, Trigger
from yarnctl.deciding.settings import PROFILES, Settings
from yarnctl.units import dominant

FITS_NOWHERE = "asks that fit on no node"
FULL = "the cluster is full"
NO_TASK, NO_JOB = "no task may be stopped", "no job may give"
NOT_OVER = "no victim queue is over its guarantee"


def header_problem(header: Header) -> str:
    """Check that a controller could run with these settings."""
    settings = header.settings
    if settings.profile not in PROFILES:
        return f"no profile {settings.profile!r}"
    for name in ("tick_ms", "open_tick_ms", "kill_timeout_ms", "priority_levels"):
        if getattr(settings, name) < 1:
            return f"{name} is {getattr(settings, name)}"
    for name in ("expire_ms", "settle_ms", "task_suspensions_max", "laxity_margin_ms", "refused_shown"):
        if getattr(settings, name) < 0:
            return f"{name} is {getattr(settings, name)}"
    for name in ("utilisation_tolerance_ratio", "job_open_ratio_max"):
        if not 0 <= getattr(settings, name) < float("inf"):
            return f"{name} is {getattr(settings, name)}"
    if list(header.capabilities) != sorted(set(header.capabilities)):
        return "the capabilities are not in order"
    return ""


# --- triggers ---------------------------------------------------------------------------------


def trigger_problem(trigger: Trigger, settings: Settings, ledger: Ledger) -> str:
    """Check a trigger's counts against each other and against the orders that are open."""
    pending = sum(ask.count for ask in trigger.asks)
    promised = ledger.promised(trigger.application)
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
    dying = any(order.asker == trigger.application for order in ledger.dying.values())
    exact = max(0, pending - promised) - trigger.need
    if not settings.model_scheduler and not dying and trigger.placed != exact:
        return f"{trigger.placed} placed, {exact} are neither promised nor needed"
    return ""


def asked_for_problem(decision: Decision, settings: Settings) -> str:
    """Check a decision's trigger against the needs of its case."""
    trigger, needs = decision.trigger, decision.case.needs
    if trigger.why != (FITS_NOWHERE if settings.model_scheduler else FULL):
        return f"trigger {trigger.why!r}"
    need = sum(need.containers for need in needs)
    if need != trigger.need:
        return f"need {trigger.need}, its case {need}"
    for size, containers in needs:
        asked = sum(ask.count for ask in trigger.asks if ask.size == size)
        if not 0 < containers <= asked:
            return f"needs {containers} of {tuple(size)}, asks for {asked}"
    return ""


def refusal_problem(refusal: Refusal, settings: Settings, before: str | None) -> str:
    """Check a refusal's reason; ``before`` is the last reason given to the same application."""
    trigger, why = refusal.trigger, refusal.why
    if why == before:
        return f"{why!r} has been written for {trigger.application} already"
    if why in (NO_TASK, NO_JOB):
        if trigger.need < 1 or (why == NO_JOB) != (not refusal.refused_jobs and settings.refused_shown > 0):
            return f"{why!r} with need {trigger.need} and {len(refusal.refused_jobs)} jobs refused"
        if any(job.why == "next" for job in refusal.refused_jobs):
            return "a job would have been next, and nothing was taken from it"
        if len(refusal.refused_jobs) > settings.refused_shown:
            return f"{len(refusal.refused_jobs)} jobs are shown, the settings say {settings.refused_shown}"
        due = FITS_NOWHERE if settings.model_scheduler else FULL
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


def case_problem(case: Case, choice: Choice, settings: Settings, ledger: Ledger) -> str:
    """Check a case against itself, against its choice, and against the open orders."""
    if prune(case, choice) != case:
        return "the case holds more than led to the choice"
    if choice.missing or not choice.picks:
        return "nothing was chosen, or tasks had not been observed"
    return next(_oddities(case, settings, ledger), "")


def _oddities(case: Case, settings: Settings, ledger: Ledger) -> Iterator[str]:
    names = [job.usage.application for job in case.jobs]
    if names != sorted(set(names)):
        yield "the jobs do not stand in the order of their ids"
    for application, tasks in case.tasks.items():
        for task in tasks:
            if case.barred.get(task.attempt) != ledger.barred.get(task.attempt):
                yield f"{task.attempt} of {application}: {_barred(task.attempt, case.barred, ledger)}"
    for usage, used, budget, _ in case.jobs:
        name = usage.application
        if usage.share != dominant(used, case.total):
            yield f"{name}: share {usage.share}, it uses {tuple(used)} of {tuple(case.total)}"
        if usage.releasable != usage.containers - 1 or usage.clock != 0:
            yield f"{name}: {usage.releasable} of {usage.containers} containers releasable"
        if usage.deadline_at_ms is None and usage.laxity_ms != FOREVER_MS:
            yield f"{name}: laxity {usage.laxity_ms} without a deadline"
        if settings.job_open_ratio_max == 1.0:
            freed = sum(1 for order in ledger.of_victim(name) if order.state == "freed")
            dying = sum(1 for order in ledger.dying.values() if order.victim == name)
            if not -freed <= budget - usage.containers <= dying:
                yield f"{name}: budget {budget} of {usage.containers} containers"


def _barred(attempt: str, barred: Mapping[str, str], ledger: Ledger) -> str:
    return f"{barred.get(attempt, 'free')} in the case, {ledger.barred.get(attempt, 'free')} by the orders"
