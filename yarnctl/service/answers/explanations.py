"""Decisions and explanations as the API shows them, made of records as for a journal file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

import msgspec

from yarnctl.api.decision_answers import (
    ContainerRequestOut,
    DecisionDetail,
    Explained,
    PerformedOut,
    PickOut,
    RefusalOut,
    RefusedOut,
    TransitionOut,
    TriggerOut,
)
from yarnctl.api.order_answers import DecisionSummary
from yarnctl.api.paged import ReasonOut
from yarnctl.daemon.view.occupancy import pending_of, role_of
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.reclaim_lists import Decided, RankedRecord
from yarnctl.daemon.view.why_waiting import cause_meaning, cause_sentence, sentence
from yarnctl.deciding.case import Pick, RefusedJob, RefusedTask
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import Accepted, ApplicationView, Withheld
from yarnctl.deciding.order import ORDER_VERBS
from yarnctl.deciding.reasons.eligibility import RunnerSays
from yarnctl.deciding.records import Performed, Record, Refusal, Transfer, Transition, Trigger
from yarnctl.deciding.releaser import REASONS
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.explaining.explain import Explanation, explain, in_words
from yarnctl.journal.rendering import containers, instant, said, text
from yarnctl.service.answers.from_view import (
    application_of,
    counted,
    read_off,
    reason,
    size,
)


def summary(decided: Decided) -> DecisionSummary:
    """Return a decision in short."""
    record = decided.record
    trigger = record.trigger
    return read_off(
        DecisionSummary,
        trigger,
        record,
        id=record.number,
        at_ms=record.at_ms,
        why=text(trigger.why),
        reason=reason(trigger.why),
        shortfall=trigger.shortfall,
        chosen=len(record.picks),
        victims=list(dict.fromkeys(pick.application for pick in record.picks)),
        states=counted(decided.states),
        withheld=len(_withheld(decided)),
    )


def _withheld(decided: Decided) -> set[str]:
    """Return the orders that were not sent: yarnctl only observed, or sending failed."""
    records = (logged.record for logged in decided.log)
    return {
        record.order
        for record in records
        if isinstance(record, Performed)
        and record.action in ORDER_VERBS
        and isinstance(record.outcome, Withheld)
    }


def detail(decided: Decided) -> DecisionDetail:
    """Return a decision with all its records."""
    record = decided.record
    settings = DEFAULT if decided.header is None else decided.header.settings
    records = [logged.record for logged in decided.log]
    rows = zip(record.picks, record.orders, decided.states, strict=True)
    return read_off(
        DecisionDetail,
        record,
        settings,
        id=record.number,
        trigger=trigger(record.trigger),
        chosen=[_pick(pick, order, state) for pick, order, state in rows],
        handed_back=[_pick(pick, None, None) for pick in record.handed_back],
        refused_jobs=[_refused(each) for each in record.refused_jobs],
        refused_tasks=[_refused(each) for each in record.refused_tasks],
        transitions=[_transition(each) for each in records if isinstance(each, Transition)],
        transfers=[_transfer(each) for each in records if isinstance(each, Transfer)],
        actions=[_performed(each) for each in records if isinstance(each, Performed)],
        explanation=explained(explain(_with_header(decided), record.trigger.application)),
    )


def refusal(refused: Refusal) -> RefusalOut:
    """Return a trigger without a decision."""
    return RefusalOut(
        at_ms=refused.at_ms,
        why=text(refused.why),
        reason=reason(refused.why),
        trigger=trigger(refused.trigger),
        refused_jobs=[_refused(each) for each in refused.refused_jobs],
        refused_tasks=[_refused(each) for each in refused.refused_tasks],
    )


def trigger(trigger: Trigger) -> TriggerOut:
    """Return the cause of a decision."""
    requests = [read_off(ContainerRequestOut, each, size=size(each.size)) for each in trigger.requests]
    return read_off(
        TriggerOut,
        trigger,
        requests=requests,
        shortfall=trigger.shortfall,
        why=text(trigger.why),
        reason=reason(trigger.why),
    )


def _pick(pick: Pick, order: str | None, state: State | None) -> PickOut:
    return read_off(
        PickOut,
        pick,
        pick.task,
        order=order,
        victim=pick.application,
        size=size(pick.task.size),
        job_key=list(pick.job_key),
        task_key=list(pick.task_key),
        state=state,
    )


def _refused(each: RefusedJob | RefusedTask) -> RefusedOut:
    return RefusedOut(
        application=each.application,
        attempt=each.attempt if isinstance(each, RefusedTask) else None,
        key=list(each.key),
        why=each.why,
        meaning=REASONS.get(each.why, ""),
        reason=ReasonOut(code=each.why, text=REASONS.get(each.why, "")),
    )


def _transition(transition: Transition) -> TransitionOut:
    keys_done = transition.keys_done if transition.keys_done >= 0 else None
    why = transition.why
    return read_off(TransitionOut, transition, why=said(why), keys_done=keys_done, reason=reason(why))


def _transfer(transfer: Transfer) -> str:
    return (
        f"{instant(transfer.at_ms)} {transfer.order} from {transfer.source} "
        f"to {transfer.target}: {text(transfer.why)}"
    )


def _performed(performed: Performed) -> PerformedOut:
    outcome = performed.outcome
    why = None if isinstance(outcome, Accepted) else outcome.why
    fields = {
        "order": performed.order or None,
        "action": performed.action,
        "outcome": outcome.__struct_config__.tag,
        "why": said(why),
        "at_ms": performed.at_ms,
        "reason": reason(why),
    }
    return msgspec.convert(fields, PerformedOut)


def explained(explanation: Explanation) -> Explained:
    """Return an explanation as text and as data."""
    return read_off(Explained, explanation, text=in_words(explanation))


def _with_header(decided: Decided) -> Iterator[Record]:
    if decided.header is not None:
        yield decided.header
    for logged in decided.log:
        yield logged.record


def recent(view: View) -> Iterator[Record]:
    """Yield all records that the view holds, in the order of the journal."""
    logs: list[Iterable[RankedRecord]] = [decided.log for decided in view.decisions]
    logs += [reversed(view.refusals), reversed(view.rankings)]
    header = next((decided.header for decided in view.decisions), None)
    if header is not None:
        yield header
    for logged in merge(*logs, key=lambda logged: logged.rank):
        yield logged.record


def everything_about(view: View, wanted: str) -> Explanation:
    """Return all that the view has about an application (or job), container, attempt, order or decision."""
    if wanted.startswith("job_"):
        wanted = f"application_{wanted.removeprefix('job_')}"
    found = explain(recent(view), wanted)
    known = () if view.snapshot is None else view.snapshot.applications
    for each in known:
        if each.application == wanted:
            found.rendered.append(_now(each, view))
            found.rendered += _not_chosen(each, view)
            found.roles = found.roles or ["application"]
    for attempt, why in sorted(view.left_alone.items()):
        if wanted in (attempt, application_of(attempt)):
            because = f"its task runner reports: {said(why)!a}" if isinstance(why, RunnerSays) else said(why)
            found.rendered.append(f"now: {attempt} cannot be suspended: {because}")
            found.roles = found.roles or ["attempt"]
    return found


def _now(application: ApplicationView, view: View) -> str:
    kind = role_of(application, view.settings)
    left_out = None if view.snapshot is None else view.snapshot.left_out.get(application.application)
    held = f"user {application.user}, queue {application.queue} ({kind}), "
    held += f"holds {containers(application.containers)}"
    waits = f", requests {pending_of(application)} more" if pending_of(application) else ""
    if kind == "preempting":
        waiting = view.waiting.get(application.application)
        return f"now: {held}{waits}" + (f"; {sentence(waiting)}" if waiting is not None else "")
    if left_out is not None:
        waits += f"; {text(left_out)}; no container is freed for these requests"
    may = "can be suspended" if application.runner else f"cannot be suspended: {said(application.why_not)}"
    return f"now: {held}{waits}; {may}"


def _not_chosen(application: ApplicationView, view: View) -> list[str]:
    """Return a line for each cause why no task frees a container for an application, and what would help."""
    waiting = view.waiting.get(application.application)
    lines = []
    for cause in () if waiting is None else waiting.causes:
        remedy = cause_meaning(cause)[1]
        lines.append(f"now: {cause_sentence(cause)}" + (f"; to free them: {remedy}" if remedy else ""))
    return lines
