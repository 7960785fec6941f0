"""Read routes: reclaim lists, decisions, checkpoints, the cluster; each as a list and one by one.

A short form of an id (``…1346_0001``, as in tables) stands for an id if exactly one id in the view ends with
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from fastapi import APIRouter, Query
from fastapi import Path as PathParameter

from yarnctl.api.cluster_answers import Application, OccupancySample, SnapshotOut
from yarnctl.api.decision_answers import DecisionDetail, Explained, RefusalOut
from yarnctl.api.order_answers import BudgetOut, CheckpointOut, DecisionSummary, ReclaimList, TimeLostOut
from yarnctl.api.paged import Page
from yarnctl.api.report_answers import ReportOut
from yarnctl.api.status_answers import StatusOut
from yarnctl.daemon.view.occupancy import role_of
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.recent_orders import Decided
from yarnctl.daemon.view.reporting import Reporting
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.model import ApplicationView
from yarnctl.deciding.order import order_number
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.queue_naming import AmbiguousQueue
from yarnctl.deciding.records import Refusal, Trigger
from yarnctl.journal.explaining.explain import ids_of
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.rendering import sentence_and_remedy
from yarnctl.service.answers import explanations, from_view
from yarnctl.service.answers.describing import AnswerRoute
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.paging import (
    ApplicationsQuery,
    BudgetsQuery,
    CheckpointsQuery,
    DecisionsQuery,
    EntriesQuery,
    OccupancyQuery,
    Parameters,
    ReclaimsQuery,
    RefusalsQuery,
    ReportQuery,
    TimeLostQuery,
    ViewQuery,
    by_name,
    by_number,
    matches,
    within,
)
from yarnctl.short_ids import ending, ids_in, resolved

Source = Callable[[], View]
Id = Annotated[str, PathParameter(min_length=1, max_length=200, examples=["application_1700000000000_0001"])]
Filters = TypeVar("Filters", bound=Parameters)
NAMED_MAX = 3
DAY_MS = 86_400_000
Number = Annotated[int, PathParameter(ge=1, le=2**53 - 1, examples=[2])]


def reading_routes(source: Source, journal: Path | None) -> APIRouter:
    """Return the read routes."""
    router = APIRouter(prefix="/v1", tags=["reading"], responses=responses(401, 421), route_class=AnswerRoute)
    _add_reclaims(router, source)
    _add_decisions(router, source, journal)
    _add_whys(router, source, journal)
    _add_cluster(router, source)
    _add_history(router, source)
    return router


def no_longer_kept(what: str, journal: Path | None) -> ApiProblem:
    """Return the error for an id that the daemon does not know, or no longer keeps."""
    place = "PATH" if journal is None else str(journal)
    remedy = (
        "list ids with yarnctl apps, decisions or reclaims --retired; for older ones run"
        f" yarnctl explain --journal {place} ID"
    )
    return ApiProblem(404, "not-found", f"{what} does not exist or is no longer kept", remedy)


def in_full(view: View, wanted: str) -> str:
    """Return the id that ``wanted`` stands for, else ``wanted``; raises ApiProblem (404) for several."""
    if ending(wanted) is None:
        return wanted
    found = resolved(wanted, known_ids(view))
    if len(found) > 1:
        named = ", ".join(found[:NAMED_MAX]) + (", ..." if len(found) > NAMED_MAX else "")
        raise ApiProblem(404, "not-found", f"{wanted} is ambiguous: {named}", "give the whole id")
    return found[0] if found else wanted


def known_ids(view: View) -> Iterator[str]:
    """Yield the ids of applications, attempts and containers in the view; some repeat."""
    if view.snapshot is not None:
        yield from (each.application for each in view.snapshot.applications)
    for story in explanations.stories_of(view):
        yield from (name for role, name in ids_of(story) if role != "decision")
    for each in explanations.recent(view):
        yield from ids_in(msgspec.json.encode(each.record).decode())


def paths_in(view: View) -> list[str]:
    """Return the leaf queues of the newest snapshot."""
    return [] if view.snapshot is None else [each.queue for each in view.snapshot.queues]


def with_queue(query: Filters, paths: Iterable[str]) -> Filters:
    """Return filters with the queue's path (unknown: as it is); ApiProblem (404) if ambiguous."""
    name: str | None = getattr(query, "queue", None)
    if name is None:
        return query
    found = QueueTree(dict.fromkeys(paths)).resolve(name)
    if isinstance(found, AmbiguousQueue):
        raise ApiProblem(404, "not-found", *sentence_and_remedy(found))
    return query.model_copy(update={"queue": found}) if isinstance(found, str) else query


def with_full_ids(view: View, query: Filters, *names: str) -> Filters:
    """Return filters with short ids replaced by the full ids."""
    given = {name: getattr(query, name) for name in names}
    return query.model_copy(update={name: text and in_full(view, text) for name, text in given.items()})


def _wanted(stories: Iterable[OrderStory], query: ReclaimsQuery | EntriesQuery) -> list[OrderStory]:
    return [
        story
        for story in stories
        if matches(query, victim=story.victim, state=story.state)
        and within(story.ordered_at_ms, query.since_ms, query.until_ms)
    ]


def _all_entries(view: View, retired: bool) -> list[OrderStory]:
    if not retired:
        return list(view.entries)
    return sorted((*view.entries, *view.ended), key=lambda story: order_number(story.order))


def _observed(view: View) -> dict[str, ApplicationView]:
    return {} if view.snapshot is None else {each.application: each for each in view.snapshot.applications}


def _lists(view: View, query: ReclaimsQuery) -> list[tuple[str, ApplicationView | None, list[OrderStory]]]:
    seen = _observed(view)
    by_requester: dict[str, list[OrderStory]] = {}
    for story in _wanted(_all_entries(view, query.retired), query):
        by_requester.setdefault(story.requester, []).append(story)
    filtered = (query.victim, query.state, query.since_ms, query.until_ms) != (None,) * 4
    if not filtered:  # also waiting applications without an order
        for name, each in seen.items():
            if each.requests and role_of(each, view.settings) == "preempting":
                by_requester.setdefault(name, [])
    rows = [(name, seen.get(name), stories) for name, stories in sorted(by_requester.items())]
    if query.queue is None:
        return rows
    known = [from_view.name_in(*row) for row in rows]
    return [row for row, name in zip(rows, known, strict=True) if name and name.queue == query.queue]


def _add_reclaims(router: APIRouter, source: Source) -> None:
    @router.get("/reclaims", responses=responses(404))
    def reclaims(query: Annotated[ReclaimsQuery, Query()]) -> Page[ReclaimList]:
        """The reclaim list of each preempting application that has orders or pending requests."""
        view = source()
        query = with_queue(with_full_ids(view, query, "victim"), paths_in(view))
        rows = _lists(view, query)
        part = by_name(rows, lambda row: row[0], query)
        return from_view.page(
            view, len(rows), part, lambda row: from_view.reclaim_list(row[0], row[1], row[2], view)
        )

    @router.get("/reclaims/{application_id}", responses=responses(404))
    def reclaims_of(application_id: Id, query: Annotated[EntriesQuery, Query()]) -> ReclaimList:
        """One application's reclaim list, with recently retired orders."""
        view = source()
        application_id = in_full(view, application_id)
        query = with_full_ids(view, query, "victim")
        seen = _observed(view).get(application_id)
        entries = [each for each in _all_entries(view, True) if each.requester == application_id]
        if seen is None and not entries:
            message = f"application {application_id} does not exist or is no longer kept"
            raise ApiProblem(404, "not-found", message, "GET /v1/reclaims and /v1/applications list ids")
        left = () if query.retired else {story.order for story in view.ended}
        entries = [each for each in entries if each.order not in left]
        return from_view.reclaim_list(application_id, seen, _wanted(entries, query), view)


def _of_trigger(query: DecisionsQuery | RefusalsQuery, trigger: Trigger) -> bool:
    return matches(query, application=trigger.application, queue=trigger.queue)


def _is_wanted(decided: Decided, query: DecisionsQuery) -> bool:
    trigger = decided.record.trigger
    return (
        _of_trigger(query, trigger)
        and (query.state is None or any(story.state == query.state for story in decided.orders))
        and within(decided.record.at_ms, query.since_ms, query.until_ms)
        and (query.victim is None or any(pick.application == query.victim for pick in decided.record.picks))
    )


def _add_decisions(router: APIRouter, source: Source, journal: Path | None) -> None:
    @router.get("/decisions", responses=responses(404))
    def decisions(query: Annotated[DecisionsQuery, Query()]) -> Page[DecisionSummary]:
        """The newest decisions, newest first."""
        view = source()
        past = [decided.record.trigger.queue for decided in view.decisions]
        query = with_queue(with_full_ids(view, query, "application", "victim"), [*paths_in(view), *past])
        found = [decided for decided in view.decisions if _is_wanted(decided, query)]
        part = by_number(found, lambda decided: decided.record.number, query)
        return from_view.page(view, len(found), part, explanations.summary)

    @router.get("/decisions/{decision_id}", responses=responses(404))
    def decision(decision_id: Number, _: Annotated[ViewQuery, Query()]) -> DecisionDetail:
        """One decision: its cause, the chosen tasks, the others with reasons, and the outcome."""
        for decided in source().decisions:
            if decided.record.number == decision_id:
                return explanations.detail(decided)
        raise no_longer_kept(f"decision {decision_id}", journal)


def _add_whys(router: APIRouter, source: Source, journal: Path | None) -> None:
    @router.get("/refusals", responses=responses(404))
    def refusals(query: Annotated[RefusalsQuery, Query()]) -> Page[RefusalOut]:
        """The newest refusals: a preempting application waited and no container was ordered; newest first."""
        view = source()
        past = [one.record.trigger.queue for one in view.refusals if isinstance(one.record, Refusal)]
        query = with_queue(with_full_ids(view, query, "application"), [*paths_in(view), *past])
        found = [
            (logged.rank, logged.record)
            for logged in view.refusals
            if isinstance(logged.record, Refusal)
            and _of_trigger(query, logged.record.trigger)
            and within(logged.record.at_ms, query.since_ms, query.until_ms)
        ]
        part = by_number(found, lambda row: row[0], query)
        return from_view.page(view, len(found), part, lambda row: explanations.refusal(row[1]))

    @router.get("/explanations/{any_id}", responses=responses(404))
    def explanation(any_id: Id, _: Annotated[ViewQuery, Query()]) -> Explained:
        """All that the daemon remembers of an application, container, attempt, order, or decision number."""
        view = source()
        found = explanations.everything_about(view, in_full(view, any_id))
        if not found.found:
            raise no_longer_kept(any_id, journal)
        return explanations.explained(found)


def _add_cluster(router: APIRouter, source: Source) -> None:
    @router.get("/snapshot")
    def snapshot(_: Annotated[ViewQuery, Query()]) -> SnapshotOut:
        """A summary of the loop, the cluster and its queues."""
        return from_view.snapshot(source())

    @router.get("/status")
    def status(_: Annotated[ViewQuery, Query()]) -> StatusOut:
        """The daemon on one screen: leader, mode, lowered settings, last error, budgets."""
        return from_view.status(source())

    @router.get("/applications")
    def applications(query: Annotated[ApplicationsQuery, Query()]) -> Page[Application]:
        """The unfinished applications of the newest snapshot."""
        view = source()
        known = () if view.snapshot is None else from_view.BY_ID(view.snapshot)
        left_out = {} if view.snapshot is None else view.snapshot.left_out
        query = with_queue(query, [*paths_in(view), *(each.queue for each in known)])
        found = [
            each
            for each in known
            if matches(query, queue=each.queue, user=each.user)
            and query.waiting in (None, bool(each.requests or each.application in left_out))
        ]
        shown, following = by_name(found, lambda each: each.application, query)
        return from_view.page(
            view, len(found), (from_view.applications(view, shown), following), lambda each: each
        )


def _budget_name(standing: BudgetStanding) -> str:
    return f"{standing.kind} {standing.name}"


def _add_history(router: APIRouter, source: Source) -> None:
    @router.get("/checkpoints", responses=responses(404))
    def checkpoints(query: Annotated[CheckpointsQuery, Query()]) -> Page[CheckpointOut]:
        """The newest checkpoints that were found after orders, newest first."""
        view = source()
        query = with_full_ids(view, query, "application", "attempt")
        found = [
            each
            for each in view.checkpoints
            if matches(query, application=each.order.victim, attempt=each.order.attempt)
            and within(each.at_ms, query.since_ms, query.until_ms)
        ]
        part = by_number(found, lambda each: each.rank, query)
        return from_view.page(view, len(found), part, from_view.checkpoint)

    @router.get("/budgets")
    def budgets(query: Annotated[BudgetsQuery, Query()]) -> Page[BudgetOut]:
        """Loss budgets: allowed and lost work over the window, and the gain (only with `--eviction mix`)."""
        view = source()
        found = sorted(view.budgets, key=_budget_name)
        part = by_name(found, _budget_name, query)
        return from_view.page(view, len(found), part, lambda each: from_view.budget(view, each))

    @router.get("/time-lost")
    def time_lost(query: Annotated[TimeLostQuery, Query()]) -> Page[TimeLostOut]:
        """Where production's time went since the daemon's start, and what would have saved it."""
        view = source()
        found = sorted(view.time_lost)
        part = by_name(found, lambda each: each.cause, query)
        return from_view.page(view, len(found), part, from_view.lost)

    @router.get("/report")
    def report(query: Annotated[ReportQuery, Query()]) -> ReportOut:
        """What orders brought production and cost research; the wait without yarnctl is an estimate."""
        view = source()
        since_ms = max(0, view.now_ms - DAY_MS) if query.since_ms is None else query.since_ms
        return (view.reporting or Reporting()).report(since_ms)

    @router.get("/occupancy")
    def occupancy(query: Annotated[OccupancyQuery, Query()]) -> Page[OccupancySample]:
        """Usage by role over time, oldest first; older samples are further apart."""
        view = source()
        found = [each for each in view.occupancy if within(each.at_ms, query.since_ms, query.until_ms)]
        part = by_number(found, lambda each: each.at_ms, query, rising=True)
        return from_view.page(view, len(found), part, from_view.sample)
