"""Order stories: the one fold of a journal's records into what happened to each order.

``yarnctl explain`` folds a journal, the running daemon each record that it writes; API, page and commands
show these stories. The fold changes its own stories: copy one that is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from yarnctl.deciding import records
from yarnctl.deciding.case import RefusedTask
from yarnctl.deciding.levers import Lever
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import Accepted, Unknown
from yarnctl.deciding.order import ORDER_VERBS, SIGNS_OF_LIFE, Order, verb_of
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.records import ApplicationName, Record
from yarnctl.deciding.settings import Settings
from yarnctl.journal.explaining.story import CameBackStory, OrderStory, SavedLostStory, Sent, named
from yarnctl.journal.rendering import instant, on_label, said, text


class OrderStories:
    """Follows every order from its decision to its end; ``most``: how many of the newest are kept."""

    def __init__(self, most: int | None = None) -> None:
        self.settings = Settings()
        self.newest: dict[str, OrderStory] = {}
        self._fresh = False
        self._most = most
        self._earlier: list[dict[str, OrderStory]] = []
        self._names: dict[str, ApplicationName] = {}
        self._answered: OrderStory | None = None
        self._released: dict[str, None] = {}

    def all(self) -> list[OrderStory]:
        """Return the stories of all controllers, oldest first."""
        return [story for stories in (*self._earlier, self.newest) for story in stories.values()]

    def apply(self, record: Record) -> Sequence[OrderStory]:
        """Apply the next record; return the stories that it changed."""
        if isinstance(record, records.Header):
            self.settings, self._fresh = record.settings, True
        elif isinstance(record, records.State):
            header = record.fresh or record.header
            self.settings = self.settings if header is None else header.settings
        elif isinstance(record, records.Resumed):  # it continues the orders of the controller before
            self._fresh = False
        elif self._fresh:
            self._begin()
        if isinstance(record, records.Decision):
            return self._decided(record)
        elif isinstance(record, records.Return | records.SavedLost):
            return self._resumed(record)
        if (
            isinstance(record, records.Transition | records.Transfer | records.Progressed | records.Performed)
            and (story := self.newest.get(record.order)) is not None
        ):
            if isinstance(record, records.Transfer):
                return self._transferred(story, record)
            if isinstance(record, records.Transition):
                self._moved(story, record)
            elif isinstance(record, records.Performed):
                self._performed(story, record)
            else:
                story.progress_at_ms = max(story.progress_at_ms, record.at_ms)
            return (story,)
        return ()

    def adopt(self, order: Order) -> OrderStory:
        """Return the story of an order whose decision was not among the records: what its ledger knows."""
        return self.newest.setdefault(
            order.order,
            OrderStory(
                order=order.order,
                decision=order.decision,
                requester=order.requester,
                first_requester=order.requester,
                names=_those_of(self._names, order.requester, order.victim),
                victim=order.victim,
                attempt=order.attempt,
                container=order.container,
                node=order.node,
                size=order.size,
                serves=order.serves,
                group=order.group,
                order_verb=order.verb,
                observed=order.observed,
                ordered_at_ms=order.ordered_at_ms,
                progress_at_ms=order.progress_at_ms,
                generation=order.generation,
                remaining_ms=order.remaining_ms,
                predicted_cost_ms=order.resume_cost_ms,
                state=order.state,
                freed_at_ms=order.freed_at_ms,
                settled_at_ms=order.settled_at_ms,
            ),
        )

    def _begin(self) -> None:
        """A controller starts without the orders of the one before."""
        self._earlier = [*(self._earlier if self._most is None else ()), self.newest]
        self.newest, self._answered, self._fresh = {}, None, False

    def _decided(self, record: records.Decision) -> Sequence[OrderStory]:
        self._names.update(record.names)
        settings, requester = self.settings, record.trigger.application
        next_tasks: dict[str, list[RefusedTask]] = {}
        for other in record.refused_tasks:
            next_tasks.setdefault(other.application, []).append(other)
        for name, group, pick, pull in zip(
            record.orders, record.groups, record.picks, record.pulls, strict=True
        ):
            view = pick.task
            self._released.pop(name, None)
            self.newest[name] = OrderStory(
                order=name,
                decision=record.number,
                requester=requester,
                first_requester=requester,
                names=_those_of(record.names, requester, pick.application),
                trigger=text(record.trigger.why) + on_label(record.trigger.label),
                shortfall=record.trigger.shortfall,
                victim=pick.application,
                attempt=view.attempt,
                container=view.container,
                node=view.node,
                size=view.size,
                serves=pick.serves,
                group=group,
                order_verb=verb_of(view, settings, pull),
                observed=settings.observe_only,
                ordered_at_ms=record.at_ms,
                progress_at_ms=record.at_ms,
                generation=view.generation + 1,
                job_policy=settings.job_policy,
                job_key=pick.job_key,
                task_policy=settings.task_policy,
                task_key=pick.task_key,
                remaining_ms=view.remaining_ms,
                predicted_cost_ms=view.resume_cost_ms,
                total=record.total,
                # A task without new keys has the instant of the snapshot there.
                working_since_ms=view.since_ms if view.since_ms < record.at_ms else None,
                next_jobs=tuple(job for job in record.refused_jobs if job.application != pick.application),
                next_tasks=tuple(next_tasks.get(pick.application, ())),
                lever=msgspec.UNSET if pull is None else pull.lever,
                bound_ms=record.bound_ms.get(name, msgspec.UNSET),
            )
        kept: tuple[dict[str, OrderStory], dict[str, ApplicationName]] = self.newest, self._names
        for each in kept:
            while self._most is not None and len(each) > max(self._most, len(record.orders)):
                del each[next(iter(each))]
        return [self.newest[name] for name in record.orders]

    def _transferred(self, story: OrderStory, record: records.Transfer) -> Sequence[OrderStory]:
        """An order is transferred, perhaps in exchange for a container that another application received."""
        story.requester = record.target
        story.names = {**_those_of(self._names, record.target), **story.names}
        line = f"{instant(record.at_ms)} to {named(record.target, story.names)}: {text(record.why)}"
        story.transfers = (*story.transfers, line)
        given = self._answered
        exchanged = (record.at_ms, record.source, record.target)
        if given is not None and exchanged == (
            given.settled_at_ms,
            given.receiver_application,
            given.requester,
        ):
            given.exchanged_for = record.order
            return (story, given)
        return (story,)

    def _moved(self, story: OrderStory, record: records.Transition) -> None:
        story.state, story.why = record.target, said(record.why) or record.event
        story.reason_code = record.event if record.why is None else code(record.why)
        if record.event in SIGNS_OF_LIFE:
            story.progress_at_ms = max(story.progress_at_ms, record.at_ms)
        if record.target == "checkpointed":
            story.checkpointed_at_ms = record.at_ms
            story.keys_done = record.keys_done if record.keys_done >= 0 else None
        elif record.target == "freed":
            story.freed_at_ms = record.at_ms
            if record.left:
                story.left, story.left_node = record.left, record.left_node
            self._ended(story, record)
        elif record.target not in OPEN:
            self._settled(story, record)

    def _settled(self, story: OrderStory, record: records.Transition) -> None:
        story.settled_at_ms = record.at_ms
        story.receiver_container = record.container
        story.receiver_application = record.application
        story.names = {**_those_of(self._names, record.application), **story.names}
        if record.target == "granted":
            self._answered = story
        elif record.event == "completed":
            story.verb, story.lost_work_ms = "", 0
        elif record.event == "ended-otherwise":
            story.verb = "ended"
            _lose(story, record.at_ms)
        elif record.event == "epoch-changed" and not story.verb:
            story.lost_work_ms = None

    def _ended(self, story: OrderStory, record: records.Transition) -> None:
        if story.order_verb == "suspend":
            story.verb = "released" if story.order in self._released else "suspended"
        elif story.order_verb == "drain":
            story.verb = "left"
            story.lost_work_ms = story.lever.lost_ms if isinstance(story.lever, Lever) else 0
        elif not story.verb:  # it was unknown whether the kill was delivered
            story.verb = "killed"
            _lose(story, record.at_ms)

    def _resumed(self, record: records.Return | records.SavedLost) -> Sequence[OrderStory]:
        """A task resumed after this order, which can be one of an earlier controller; or began anew."""
        name, controllers = record.order, (self.newest, *reversed(self._earlier))
        story = next((each[name] for each in controllers if name in each), None)
        if story is None:
            return ()
        if isinstance(record, records.Return):
            story.came_back = msgspec.convert(record, CameBackStory, from_attributes=True)
        else:  # the journal does not record the working time of its keys
            lost = msgspec.convert(record, SavedLostStory, from_attributes=True)
            if record.keys_lost < 0:
                lost = msgspec.structs.replace(lost, keys_lost=story.keys_done)
            story.saved_lost, story.lost_work_ms = lost, None
        return (story,)

    def _performed(self, story: OrderStory, record: records.Performed) -> None:
        """An action was performed, or was refused. A kill can follow a request that was sent before."""
        outcome = record.outcome
        if record.action in ORDER_VERBS and story.sent in ("", "withheld"):
            story.sent, story.sent_at_ms = cast(Sent, outcome.__struct_config__.tag), record.at_ms
            story.sent_why = "" if isinstance(outcome, Accepted) else said(outcome.why)
        if record.action == "release" and isinstance(outcome, Accepted | Unknown):
            self._released[record.order] = None
        elif record.action == "kill" and isinstance(outcome, Accepted):
            # A kill is never withdrawn: later moves of the order change nothing.
            story.verb = "killed"
            _lose(story, record.at_ms)


def _lose(story: OrderStory, ended_at_ms: int) -> None:
    if story.checkpointed_at_ms is not None:
        story.lost_work_ms = None  # none if it waited for its release, else the work since its checkpoint
    elif story.working_since_ms is not None:
        story.lost_work_ms = max(0, ended_at_ms - story.working_since_ms)


def _those_of(names: Mapping[str, ApplicationName], *applications: str) -> dict[str, ApplicationName]:
    return {name: names[name] for name in applications if name in names}
