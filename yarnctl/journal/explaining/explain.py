"""Explain: why a task was chosen and others not, which application got its container, the cost.

An explanation is made of the journal's records in one pass and adds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from yarnctl.deciding import records
from yarnctl.deciding.case import RefusedJob, RefusedTask
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import Settings
from yarnctl.journal.explaining.admission_story import AdmissionStories
from yarnctl.journal.explaining.explanation_text import in_words, key_words, why_words
from yarnctl.journal.explaining.order_stories import OrderStories
from yarnctl.journal.explaining.story import (
    Explanation,
    OrderStory,
    PriorityStory,
    Ran,
    RefusalStory,
    Tally,
    named,
)
from yarnctl.journal.rendering import containers, instant, on_label, text

NOT_SENT = "not sent"
NUMBER_DIGITS_MAX = 16
"""The largest number of a decision that JSON represents exactly."""

__all__ = ["Explanation", "explain", "in_words"]


class IdReader:
    """Collects the occasions on which the wanted id was not chosen; the orders come from their fold."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.refused: list[RefusalStory] = []
        self.priorities: list[PriorityStory] = []
        self.roles: dict[str, None] = {}
        self.ran: Ran | None = None
        self.admitted = AdmissionStories(wanted)
        self.rendered: list[str] = []
        self._unnamed: dict[str, list[RefusalStory]] = {}

    def apply(self, record: Record, settings: Settings) -> None:
        """Read one record; ``settings``: those of the controller that wrote it."""
        if isinstance(record, records.Decision):
            if str(record.number) == self.wanted:
                self.rendered += _decision_in_words(record, settings)
                self.roles["decision"] = None
            self._decision(record, settings)
        elif isinstance(record, records.Refusal):
            self._refusal(record, settings)
        elif isinstance(record, records.Ranking):
            self._ranking(record)
        else:
            self.admitted.apply(record)

    # --- not chosen, or without an order ---------------------------------------------------

    def _decision(self, record: records.Decision, settings: Settings) -> None:
        requester, hit = record.trigger.application, {pick.application for pick in record.picks}
        self._name(record)
        # A job that was picked from is listed with its key afterwards: that is no refusal.
        jobs = tuple(job for job in record.refused_jobs if job.application not in hit or not _is_next(job))
        self._jobs(record, record.number, jobs, settings)
        for refused in record.refused_tasks:
            if self._is_wanted(refused.attempt):
                self._left_alone(self._occasion(record, record.number, refused, settings))
        for pick in record.handed_back:
            if self._is_wanted(pick.task.attempt):
                self._left_alone(
                    RefusalStory(
                        at_ms=record.at_ms,
                        decision=record.number,
                        requester=requester,
                        why="handed back: it does not complete a container",
                        reason_code="handed-back",
                        key=pick.task_key,
                        policy=settings.task_policy,
                    )
                )

    def _refusal(self, record: records.Refusal, settings: Settings) -> None:
        if record.trigger.application == self.wanted:
            self._note(
                "application",
                RefusalStory(
                    at_ms=record.at_ms,
                    decision=None,
                    requester=self.wanted,
                    why=text(record.why),
                    reason_code=code(record.why),
                ),
            )
        self._jobs(record, None, record.refused_jobs, settings)
        for refused in record.refused_tasks:
            occasion = self._occasion(record, None, refused, settings)
            if self._is_wanted(refused.attempt):
                self._left_alone(occasion)
            elif self.ran is None:
                # A refusal names attempts only; a later record may name the container.
                self._unnamed.setdefault(refused.attempt, []).append(occasion)

    def _occasion(
        self,
        record: records.Decision | records.Refusal,
        number: int | None,
        refused: RefusedTask,
        settings: Settings,
    ) -> RefusalStory:
        return RefusalStory(
            at_ms=record.at_ms,
            decision=number,
            requester=record.trigger.application,
            why=refused.why,
            reason_code=refused.why,
            key=refused.key,
            policy=settings.task_policy,
        )

    def _jobs(
        self,
        record: records.Decision | records.Refusal,
        number: int | None,
        jobs: Iterable[RefusedJob],
        settings: Settings,
    ) -> None:
        for job in jobs:
            if job.application == self.wanted:
                self._note(
                    "application",
                    RefusalStory(
                        at_ms=record.at_ms,
                        decision=number,
                        requester=record.trigger.application,
                        why=job.why,
                        reason_code=job.why,
                        key=job.key,
                        policy=settings.job_policy,
                        total=record.total if isinstance(record, records.Decision) else None,
                    ),
                )

    def _left_alone(self, story: RefusalStory) -> None:
        container = self.ran is not None and self.ran.container == self.wanted
        self._note("container" if container else "attempt", story)

    def _note(self, role: str, story: RefusalStory) -> None:
        self.roles[role] = None
        self.refused.append(story)

    # --- names --------------------------------------------------------------------------------

    def _name(self, record: records.Decision) -> None:
        """Find in a decision the attempt of the wanted container, or the container of the attempt."""
        if self.ran is not None:
            return
        picks = (*record.picks, *record.handed_back)
        for ran in (
            *(Ran(one.application, one.task.attempt, one.task.container, one.task.node) for one in picks),
            *(Ran(one.application, one.attempt, one.container, one.node) for one in record.refused_tasks),
        ):
            if self.wanted in (ran.attempt, ran.container):
                self.ran = ran
                for occasion in self._unnamed.get(ran.attempt, ()):
                    self._left_alone(occasion)
                self._unnamed.clear()
                return

    def _is_wanted(self, attempt: str) -> bool:
        return attempt == self.wanted or (self.ran is not None and attempt == self.ran.attempt)

    def _ranking(self, record: records.Ranking) -> None:
        for place, ranked in enumerate(record.order, 1):
            if ranked.application == self.wanted:
                self.roles["application"] = None
            if ranked.application == self.wanted and (
                not self.priorities or self.priorities[-1].priority != ranked.priority
            ):
                self.priorities.append(
                    PriorityStory(
                        at_ms=record.at_ms,
                        place=place,
                        urgency_ms=ranked.urgency_ms,
                        priority=ranked.priority,
                    )
                )

    # --- the answer -----------------------------------------------------------------------------

    def explanation(self, stories: Iterable[OrderStory]) -> Explanation:
        """Return what concerns the wanted id; ``stories``: all that are known, oldest first."""
        concerned = []
        for story in stories:
            roles = [role for role, name in ids_of(story) if name == self.wanted]
            self.roles.update(dict.fromkeys(roles))
            if roles:
                concerned.append(story)
        sent = [story for story in concerned if story.sent != "withheld" or story.verb]
        if (withheld := len(concerned) - len(sent)) and "application" in self.roles:
            self.rendered.append(f"{withheld} {'order was' if withheld == 1 else 'orders were'} {NOT_SENT}")
        if self.admitted.stories:
            own = self.admitted.stories[0].admission == self.wanted
            self.roles["admission" if own else "application"] = None
        return Explanation(
            id=self.wanted,
            roles=list(self.roles),
            ran=self.ran,
            tallies=_tallies(sent, self.wanted),
            orders=concerned,
            refused=self.refused,
            priorities=self.priorities,
            admissions=self.admitted.stories,
            rendered=self.rendered,
        )


def _decision_in_words(record: records.Decision, settings: Settings) -> list[str]:
    trigger, orders = record.trigger, len(record.orders)
    requester = named(trigger.application, record.names)
    queue = "" if record.names else f" in queue {trigger.queue}"
    lines = [
        f"{instant(record.at_ms)} for {requester}{queue}: {containers(trigger.shortfall)} short"
        f" ({text(trigger.why)}{on_label(trigger.label)}), {orders} chosen, {record.unmet} unmet"
    ]
    if not orders:  # otherwise each order lists those not chosen
        for job in record.refused_jobs:
            key = key_words(settings.job_policy, job.key, record.total)
            lines.append(f"not {job.application}: {why_words(job.why)} ({key})")
        for task in record.refused_tasks:
            key = key_words(settings.task_policy, task.key, None)
            lines.append(f"not {task.attempt}: {why_words(task.why)} ({key})")
    return lines


def ids_of(story: OrderStory) -> tuple[tuple[str, str], ...]:
    """Return the ids in a story, each with the kind of thing that it names ("": nothing yet)."""
    return (
        ("order", story.order),
        ("decision", str(story.decision)),
        ("application", story.victim),
        ("application", story.requester),
        ("application", story.first_requester),
        ("application", story.receiver_application),
        ("attempt", story.attempt),
        ("container", story.container),
        ("container", story.receiver_container),
    )


def _tallies(stories: list[OrderStory], wanted: str) -> list[Tally]:
    """Return the sums of an application's orders: those for it, and those against it."""
    sides: dict[Literal["requester", "victim"], list[tuple[str, OrderStory]]] = {
        "requester": [(story.victim, story) for story in stories if story.requester == wanted],
        "victim": [(story.requester, story) for story in stories if story.victim == wanted],
    }
    return [
        Tally(
            role=role,
            orders=len(own),
            others=dict(Counter(other for other, _ in own)),
            states=dict(Counter(story.state for _, story in own)),
            verbs=dict(Counter(story.verb or "not stopped" for _, story in own)),
            lost_work_ms=sum(story.lost_work_ms or 0 for _, story in own),
        )
        for role, own in sides.items()
        if own
    ]


def reader_of(wanted: str) -> IdReader:
    """Return the reader for an application, container, attempt or order id, or a decision's number.

    The id of a job stands for its application's.
    """
    if wanted.startswith("job_"):
        wanted = f"application_{wanted.removeprefix('job_')}"
    is_number = wanted.isascii() and wanted.isdecimal() and len(wanted) <= NUMBER_DIGITS_MAX
    return IdReader(str(int(wanted)) if is_number else wanted)


def explain(records: Iterable[Record], wanted: str) -> Explanation:
    """Return the explanation of an id that :func:`reader_of` accepts."""
    orders, reader = OrderStories(), reader_of(wanted)
    for record in records:
        orders.apply(record)
        reader.apply(record, orders.settings)
    return reader.explanation(orders.all())


def _is_next(job: RefusedJob) -> bool:
    return job.why == "next"
