"""Decisions and explanations as they are shown.

Law: an explanation is read off the records, by the same code that reads it off a journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge

import msgspec

from yarnctl.api.decision_answers import (
    AskOut,
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
from yarnctl.deciding.case import Pick, RefusedJob, RefusedTask
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import Accepted, ApplicationView, Withheld
from yarnctl.deciding.order import ORDER_VERBS
from yarnctl.deciding.reasons.eligibility import RunnerSays
from yarnctl.deciding.records import Performed, Record, Refusal, Transfer, Transition, Trigger
from yarnctl.deciding.releaser import REASONS
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.explaining.explain import Explanation, explain, in_words
from yarnctl.journal.rendering import instant, said, text
from yarnctl.service.answers.from_view import (
    application_of,
    counted,
    open_entries,
    read_off,
    reason,
    size,
    would_order,
)


def summary(decided: Decided) -> DecisionSummary:
    """Show a decision in a line."""
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
        shortfall=trigger.need,
        chosen=len(record.picks),
        victims=list(dict.fromkeys(pick.application for pick in record.picks)),
        states=counted(decided.states),
        withheld=len(_withheld(decided)),
    )


def _withheld(decided: Decided) -> set[str]:
    """Return the orders that were decided and not sent: yarnctl observed, or the request never left."""
    records = (logged.record for logged in decided.log)
    return {
        record.order
        for record in records
        if isinstance(record, Performed)
        and record.action in ORDER_VERBS
        and isinstance(record.outcome, Withheld)
    }


def detail(decided: Decided) -> DecisionDetail:
    """Show a decision with all that was written about it."""
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


def refusal(record: Refusal) -> RefusalOut:
    """Show a trigger that led to nothing."""
    return RefusalOut(
        at_ms=record.at_ms,
        why=text(record.why),
        reason=reason(record.why),
        trigger=trigger(record.trigger),
        refused_jobs=[_refused(each) for each in record.refused_jobs],
        refused_tasks=[_refused(each) for each in record.refused_tasks],
    )


def trigger(seen: Trigger) -> TriggerOut:
    """Show what called for a decision."""
    asks = [read_off(AskOut, ask, size=size(ask.size)) for ask in seen.asks]
    return read_off(
        TriggerOut, seen, asks=asks, shortfall=seen.need, why=text(seen.why), reason=reason(seen.why)
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


def _transition(record: Transition) -> TransitionOut:
    keys_done = record.keys_done if record.keys_done >= 0 else None
    why = record.why
    return read_off(TransitionOut, record, why=said(why), keys_done=keys_done, reason=reason(why))


def _transfer(record: Transfer) -> str:
    return (
        f"{instant(record.at_ms)} {record.order} from {record.source} to {record.target}: {text(record.why)}"
    )


def _performed(record: Performed) -> PerformedOut:
    outcome = record.outcome
    why = None if isinstance(outcome, Accepted) else outcome.why
    told = {
        "order": record.order or None,
        "action": record.action,
        "outcome": outcome.__struct_config__.tag,
        "why": said(why),
        "at_ms": record.at_ms,
    }
    return msgspec.convert(told | {"reason": reason(why)}, PerformedOut)


# --- explanations -------------------------------------------------------------------------------------


def explained(found: Explanation) -> Explained:
    """Show an explanation in words and as data."""
    return read_off(Explained, found, text=in_words(found))


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
    """Return all that is known of an application, container, attempt or order id, or a decision's number.

    A job's id is taken for its application's.
    """
    if wanted.startswith("job_"):
        wanted = f"application_{wanted.removeprefix('job_')}"
    found = explain(recent(view), wanted)
    known = () if view.snapshot is None else view.snapshot.applications
    for each in known:
        if each.application == wanted:
            found.rendered.append(_now(each, view))
            found.roles = found.roles or ["application"]
    for attempt, why in sorted(view.left_alone.items()):
        if wanted in (attempt, application_of(attempt)):
            told = f"its runner says: {said(why)!a}" if isinstance(why, RunnerSays) else said(why)
            found.rendered.append(f"now: {attempt} cannot be suspended, {told}")
            found.roles = found.roles or ["attempt"]
    return found


def _now(each: ApplicationView, view: View) -> str:
    """Describe an unfinished application: its user and containers, and what is ordered for it, or of it.

    Nothing is ordered for the requests that are left out.
    """
    kind = role_of(each, view.settings)
    left_out = None if view.snapshot is None else view.snapshot.left_out.get(each.application)
    held = f"{each.user}'s in queue {each.queue} ({kind}), holds {each.containers} containers"
    waits = f", waits for {pending_of(each)}" if pending_of(each) else ""
    if left_out is not None:
        waits += f", {text(left_out)}: no container is freed for that"
    if kind == "preempting":
        ordered = _ordered_for(each, view) if each.asks else ""
        return f"now: {held}{waits}{ordered}"
    may = "may be suspended" if each.runner else f"left alone: {said(each.why_not)}"
    return f"now: {held}{waits}; {may}"


def _ordered_for(each: ApplicationView, view: View) -> str:
    """Return what is ordered for an application that waits, or why nothing is."""
    name = each.application
    if count := sum(entry.order.serves for entry in open_entries(view) if entry.order.asker == name):
        return f"; {count} {_containers(count)} ordered for it"
    if count := would_order(view)[name]:
        return f"; yarnctl would order {count} {_containers(count)} (observing: no request is sent)"
    newest = next((one.record for one in view.refusals if _is_for(one.record, name)), None)
    return "; no order is open" + (f": {text(newest.why)}" if isinstance(newest, Refusal) else "")


def _is_for(record: Record, application: str) -> bool:
    return isinstance(record, Refusal) and record.trigger.application == application


def _containers(count: int) -> str:
    return "container" if count == 1 else "containers"
