"""A view as one user may see it: the user's own applications, and what other applications did to them.

Other applications appear by id only, as the requester or the victim of an order. What is about the whole
cluster's applications (decisions, rankings, sums over time) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.recent_events import LoggedEvent, LoopChanged
from yarnctl.deciding.records import Refusal, Transition
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.service.answers.explanations import stories_of
from yarnctl.service.answers.from_view import application_of


def own_view(view: View, user: str) -> View:
    """Return the view of one user."""
    own = _own(view, user)

    def mine(stories: Iterable[OrderStory]) -> tuple[OrderStory, ...]:
        return tuple(_hidden(each, own) for each in stories if own & {each.requester, each.victim})

    snapshot = view.snapshot
    if snapshot is not None:
        applications = tuple(each for each in snapshot.applications if each.application in own)
        snapshot = replace(snapshot, applications=applications, labelled={})
    return replace(
        view,
        loop=replace(view.loop, last_error=""),  # the text of an exception may name any application
        snapshot=snapshot,
        entries=mine(view.entries),
        ended=mine(view.ended),
        decisions=(),
        refusals=tuple(
            replace(each, record=replace(each.record, refused_jobs=(), refused_tasks=()))
            for each in view.refusals
            if isinstance(each.record, Refusal) and each.record.trigger.application in own
        ),
        rankings=(),
        checkpoints=tuple(
            replace(each, order=_hidden(each.order, own))
            for each in view.checkpoints
            if each.order.victim in own
        ),
        occupancy=(),
        unreachable=tuple(each for each in view.unreachable if each in own),
        left_alone={name: why for name, why in view.left_alone.items() if application_of(name) in own},
        budgets=tuple(
            each for each in view.budgets if each.kind != "queue" and user in (each.user, each.name)
        ),
        waiting={name: replace(why, causes=()) for name, why in view.waiting.items() if name in own},
        time_lost=(),
        reporting=None,
        events=tuple(each for each in view.events if _is_own(each, own)),
    )


def _own(view: View, user: str) -> frozenset[str]:
    seen = () if view.snapshot is None else view.snapshot.applications
    found = {each.application for each in seen if each.user == user}
    for story in stories_of(view):
        found.update(name for name, about in story.names.items() if about.user == user)
    return frozenset(found)


def _is_own(event: LoggedEvent, own: frozenset[str]) -> bool:
    if isinstance(event.record, LoopChanged):
        return True
    if event.story is not None:
        return bool(own & {event.story.requester, event.story.victim})
    return not isinstance(event.record, Transition) and event.record.trigger.application in own


def _hidden(story: OrderStory, own: frozenset[str]) -> OrderStory:
    names = {name: about for name, about in story.names.items() if name in own}
    return replace(story, names=names, next_jobs=(), next_tasks=())
