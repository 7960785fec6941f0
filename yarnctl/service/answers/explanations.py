"""Decisions and explanations as the API shows them, made of records as for a journal file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge

from yarnctl.api.decision_answers import (
    ContainerRequestOut,
    DecisionDetail,
    Explained,
    PickOut,
    RefusalOut,
    RefusedOut,
    TriggerOut,
)
from yarnctl.api.order_answers import DecisionSummary
from yarnctl.api.paged import ReasonOut
from yarnctl.daemon.view.occupancy import pending_of, role_of
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.recent_orders import Decided, RankedRecord
from yarnctl.daemon.view.why_waiting import cause_meaning, cause_sentence, sentence
from yarnctl.deciding.case import Pick, RefusedJob, RefusedTask
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.order import order_number
from yarnctl.deciding.reasons.eligibility import RunnerSays
from yarnctl.deciding.records import Refusal, Trigger
from yarnctl.deciding.releaser import REASONS
from yarnctl.journal.explaining.explain import Explanation, in_words, reader_of
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.rendering import containers, on_label, said, text
from yarnctl.service.answers import foretold
from yarnctl.service.answers.from_view import (
    application_of,
    counted,
    read_off,
    reason,
    size,
    why_untouched,
)


def summary(decided: Decided) -> DecisionSummary:
    """Return a decision in short; ``withheld``: orders that were not sent, as yarnctl observes or failed."""
    record = decided.record
    trigger = record.trigger
    return read_off(
        DecisionSummary,
        trigger,
        record,
        id=record.number,
        at_ms=record.at_ms,
        why=text(trigger.why) + on_label(trigger.label),
        reason=reason(trigger.why),
        shortfall=trigger.shortfall,
        chosen=len(record.picks),
        victims=list(dict.fromkeys(pick.application for pick in record.picks)),
        states=counted(story.state for story in decided.orders),
        withheld=sum(story.sent == "withheld" for story in decided.orders),
    )


def detail(decided: Decided) -> DecisionDetail:
    """Return a decision with its candidates, and the stories of its orders."""
    record = decided.record
    reader = reader_of(record.trigger.application)
    reader.apply(record, decided.settings)
    rows = zip(record.picks, decided.orders, strict=True)
    return read_off(
        DecisionDetail,
        record,
        decided.settings,
        id=record.number,
        trigger=trigger(record.trigger),
        chosen=[_pick(pick, story.order, story.state) for pick, story in rows],
        handed_back=[_pick(pick, None, None) for pick in record.handed_back],
        refused_jobs=[_refused(each) for each in record.refused_jobs],
        refused_tasks=[_refused(each) for each in record.refused_tasks],
        explanation=explained(reader.explanation(decided.orders)),
    )


def refusal(refused: Refusal) -> RefusalOut:
    """Return a trigger without a decision."""
    return RefusalOut(
        at_ms=refused.at_ms,
        why=text(refused.why) + on_label(refused.trigger.label),
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
        why=text(trigger.why) + on_label(trigger.label),
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


def explained(explanation: Explanation) -> Explained:
    """Return an explanation as text and as data."""
    return read_off(Explained, explanation, text=in_words(explanation))


def stories_of(view: View) -> list[OrderStory]:
    """Return the stories of all orders that the view holds, oldest first."""
    decided = (story for decided in view.decisions for story in decided.orders)
    found = {story.order: story for story in (*decided, *view.entries, *view.ended)}
    return sorted(found.values(), key=lambda story: order_number(story.order))


def recent(view: View) -> Iterator[Decided | RankedRecord]:
    """Yield the decisions, refusals and rankings that the view holds, in the order of the journal."""
    kept: tuple[Sequence[Decided | RankedRecord], ...] = view.decisions, view.refusals, view.rankings
    return iter(merge(*map(reversed, kept), key=lambda each: each.rank))


def everything_about(view: View, wanted: str) -> Explanation:
    """Return all that the view has about an application (or job), container, attempt, order or decision."""
    reader = reader_of(wanted)
    for kept in recent(view):
        reader.apply(kept.record, kept.settings)
    found, wanted = reader.explanation(stories_of(view)), reader.wanted
    known = () if view.snapshot is None else view.snapshot.applications
    for each in known:
        if each.application == wanted:
            found.rendered.append(_now(each, view))
            found.rendered += _not_chosen(each, view)
            found.rendered += foretold.in_words(each, view)
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
        waits += f"; {text(left_out)}"
    why_not = why_untouched(application, view)
    able = application.runner and why_not is None
    may = "can be suspended" if able else f"cannot be suspended: {said(why_not)}"
    return f"now: {held}{waits}; {may}"


def _not_chosen(application: ApplicationView, view: View) -> list[str]:
    """Return a line for each cause why no task frees a container for an application, and what would help."""
    waiting = view.waiting.get(application.application)
    lines = []
    for cause in () if waiting is None else waiting.causes:
        remedy = cause_meaning(cause)[1]
        lines.append(f"now: {cause_sentence(cause)}" + (f"; to free them: {remedy}" if remedy else ""))
    return lines
