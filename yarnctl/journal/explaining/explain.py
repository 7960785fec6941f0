"""Explain: why a task was chosen and others not, which application got its container, the cost.

An explanation is made of the journal's records in one pass and adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from yarnctl.deciding import records
from yarnctl.deciding.case import RefusedJob, RefusedTask
from yarnctl.deciding.levers import Lever
from yarnctl.deciding.model import Accepted, Refused, Withheld
from yarnctl.deciding.order import ORDER_VERBS, verb_of
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.records import Record
from yarnctl.deciding.settings import Settings
from yarnctl.journal.explaining.admission_story import AdmissionStories
from yarnctl.journal.explaining.explanation_text import in_words, key_words, why_words
from yarnctl.journal.explaining.story import (
    CameBackStory,
    Explanation,
    NextTask,
    OrderStory,
    PriorityStory,
    Ran,
    RefusalStory,
    SavedLostStory,
    Tally,
)
from yarnctl.journal.rendering import containers, instant, said, text

NOT_SENT = "not sent"
NUMBER_DIGITS_MAX = 16
"""The largest number of a decision that JSON represents exactly."""

__all__ = ["Explanation", "explain", "in_words"]


class _Orders:
    """Follows every order from its decision to its end."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.open: dict[str, OrderStory] = {}
        self.stories: list[OrderStory] = []
        self.answered: OrderStory | None = None
        self.released: dict[str, None] = {}
        self._before = self.open, self.released

    def begin(self, header: records.Header) -> None:
        """A controller starts: without earlier orders, unless the next record is ``Resumed``."""
        self._before = self.open, self.released
        self.settings, self.open, self.answered, self.released = header.settings, {}, None, {}

    def resumed(self) -> None:
        """The controller continues the orders of the one before."""
        self.open, self.released = self._before

    def decided(self, record: records.Decision) -> None:
        """Add the orders of a decision."""
        for name, pick, pull in zip(record.orders, record.picks, record.pulls, strict=True):
            task, settings = pick.task, self.settings
            story = OrderStory(
                order=name,
                decision=record.number,
                requester=record.trigger.application,
                first_requester=record.trigger.application,
                trigger=text(record.trigger.why),
                shortfall=record.trigger.shortfall,
                victim=pick.application,
                attempt=task.attempt,
                container=task.container,
                node=task.node,
                order_verb=verb_of(task, settings, None),
                ordered_at_ms=record.at_ms,
                generation=task.generation + 1,
                job_policy=settings.job_policy,
                job_key=pick.job_key,
                task_policy=settings.task_policy,
                task_key=pick.task_key,
                remaining_ms=task.remaining_ms,
                predicted_cost_ms=task.resume_cost_ms,
                total=record.total,
                # A task without new keys has the instant of the snapshot there.
                working_since_ms=task.since_ms if task.since_ms < record.at_ms else None,
                next_jobs=tuple(job for job in record.refused_jobs if job.application != pick.application),
                next_tasks=tuple(
                    NextTask(other.application, other.attempt, other.key, other.why)
                    for other in record.refused_tasks
                    if other.application == pick.application
                ),
                transfers=[],
            )
            if pull is not None:
                story.lever = pull.lever
                story.order_verb = verb_of(pick.task, self.settings, pull)
            self.open[name] = story
            self.stories.append(story)

    def transferred(self, record: records.Transfer) -> None:
        """An order is transferred, perhaps in exchange for a container that another application received."""
        story = self.open.get(record.order)
        if story is None:
            return
        story.requester = record.target
        story.transfers.append(f"{instant(record.at_ms)} to {record.target}: {text(record.why)}")
        given = self.answered
        exchanged = (record.at_ms, record.source, record.target)
        if given is not None and exchanged == (
            given.settled_at_ms,
            given.receiver_application,
            given.requester,
        ):
            given.exchanged_for = record.order

    def moved(self, record: records.Transition) -> None:
        """An order moved to its next state."""
        story = self.open.get(record.order)
        if story is None:
            return
        story.state = record.target
        if record.target == "checkpointed":
            story.checkpointed_at_ms = record.at_ms
            story.keys_done = record.keys_done if record.keys_done >= 0 else None
        elif record.target == "freed":
            story.freed_at_ms = record.at_ms
            if record.left:
                story.left, story.left_node = record.left, record.left_node
            self._ended(story, record)
        elif record.target == "simulated":
            story.settled_why = said(record.why)
        elif record.target != "suspending":
            self._settled(story, record)

    def _settled(self, story: OrderStory, record: records.Transition) -> None:
        story.settled_at_ms = record.at_ms
        story.settled_why = said(record.why) or ("" if record.event == record.target else record.event)
        story.receiver_container = record.container
        story.receiver_application = record.application
        if record.target == "granted":
            self.answered = story
        elif record.event == "completed":
            story.verb, story.lost_work_ms = "", 0
        elif record.event == "ended-otherwise":
            story.verb = "ended"
            self._lose(story, record.at_ms)
        elif record.event == "epoch-changed" and not story.verb:
            story.lost_work_ms = None

    def _ended(self, story: OrderStory, record: records.Transition) -> None:
        if story.order_verb == "suspend":
            story.verb = "released" if story.order in self.released else "suspended"
        elif story.order_verb == "drain":
            story.verb = "left"
            story.lost_work_ms = story.lever.lost_ms if isinstance(story.lever, Lever) else 0
        elif not story.verb:  # it was unknown whether the kill was delivered
            story.verb = "killed"
            self._lose(story, record.at_ms)

    @staticmethod
    def _lose(story: OrderStory, ended_at_ms: int) -> None:
        if story.checkpointed_at_ms is not None:
            story.lost_work_ms = None  # none if it waited for its release, else the work since its checkpoint
        elif story.working_since_ms is not None:
            story.lost_work_ms = max(0, ended_at_ms - story.working_since_ms)

    def returned(self, record: records.Return) -> None:
        """A task resumed after this order, which can be one of an earlier controller."""
        story = self._newest(record.order)
        if story is not None:
            story.came_back = msgspec.convert(record, CameBackStory, from_attributes=True)

    def saved_lost(self, record: records.SavedLost) -> None:
        """A checkpoint was not used; the journal does not record the working time of its keys."""
        story = self._newest(record.order)
        if story is not None:
            lost = msgspec.convert(record, SavedLostStory, from_attributes=True)
            if record.keys_lost < 0:
                lost = msgspec.structs.replace(lost, keys_lost=story.keys_done)
            story.saved_lost = lost
            story.lost_work_ms = None

    def _newest(self, order: str) -> OrderStory | None:
        return next((story for story in reversed(self.stories) if story.order == order), None)

    def performed(self, record: records.Performed) -> None:
        """An action was performed, or was refused."""
        if record.action in ORDER_VERBS and isinstance(record.outcome, Withheld):
            if record.order in self.open:
                self.open[record.order].withheld = True
            return
        if record.action not in ("release", "kill") or isinstance(record.outcome, Refused):
            return
        story = self.open.get(record.order)
        if record.action == "release":
            self.released[record.order] = None
        elif story is not None and isinstance(record.outcome, Accepted):
            # A kill is never withdrawn: later moves of the order change nothing.
            story.verb = "killed"
            self._lose(story, record.at_ms)


class _Reader:
    """Collects the stories of all orders, and the occasions on which the wanted id was not chosen."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.orders = _Orders()
        self.refused: list[RefusalStory] = []
        self.priorities: list[PriorityStory] = []
        self.roles: dict[str, None] = {}
        self.ran: Ran | None = None
        self.admitted = AdmissionStories(wanted)
        self.rendered: list[str] = []
        self._unnamed: dict[str, list[RefusalStory]] = {}

    def apply(self, record: Record) -> None:
        """Read one record."""
        if isinstance(record, records.Header):
            self.orders.begin(record)
        elif isinstance(record, records.Resumed):
            self.orders.resumed()
        elif isinstance(record, records.Decision):
            self.orders.decided(record)
            self._decision(record)
        elif isinstance(record, records.Transition):
            self.orders.moved(record)
        elif isinstance(record, records.Transfer):
            self.orders.transferred(record)
        elif isinstance(record, records.Return):
            self.orders.returned(record)
        elif isinstance(record, records.SavedLost):
            self.orders.saved_lost(record)
        elif isinstance(record, records.Performed):
            self.orders.performed(record)
        elif isinstance(record, records.Refusal):
            self._refusal(record)
        elif isinstance(record, records.Ranking):
            self._ranking(record)
        else:
            self.admitted.apply(record)

    # --- not chosen, or without an order ---------------------------------------------------

    def _decision(self, record: records.Decision) -> None:
        requester, hit = record.trigger.application, {pick.application for pick in record.picks}
        self._name(record)
        # A job that was picked from is listed with its key afterwards: that is no refusal.
        jobs = tuple(job for job in record.refused_jobs if job.application not in hit or not _is_next(job))
        self._jobs(record, record.number, jobs)
        for refused in record.refused_tasks:
            if self._is_wanted(refused.attempt):
                self._left_alone(self._occasion(record, record.number, refused))
        for pick in record.handed_back:
            if self._is_wanted(pick.task.attempt):
                why = "handed back: it does not complete a container"
                self._left_alone(
                    RefusalStory(
                        at_ms=record.at_ms,
                        decision=record.number,
                        requester=requester,
                        why=why,
                        reason_code="handed-back",
                        key=pick.task_key,
                        policy=self.orders.settings.task_policy,
                    )
                )

    def _refusal(self, record: records.Refusal) -> None:
        requester = record.trigger.application
        if requester == self.wanted:
            self.roles["application"] = None
            self.refused.append(
                RefusalStory(
                    at_ms=record.at_ms,
                    decision=None,
                    requester=requester,
                    why=text(record.why),
                    reason_code=code(record.why),
                )
            )
        self._jobs(record, None, record.refused_jobs)
        for refused in record.refused_tasks:
            occasion = self._occasion(record, None, refused)
            if self._is_wanted(refused.attempt):
                self._left_alone(occasion)
            elif self.ran is None:
                # A refusal names attempts only; a later record may name the container.
                self._unnamed.setdefault(refused.attempt, []).append(occasion)

    def _occasion(
        self, record: records.Decision | records.Refusal, number: int | None, refused: RefusedTask
    ) -> RefusalStory:
        return RefusalStory(
            at_ms=record.at_ms,
            decision=number,
            requester=record.trigger.application,
            why=refused.why,
            reason_code=refused.why,
            key=refused.key,
            policy=self.orders.settings.task_policy,
        )

    def _jobs(
        self, record: records.Decision | records.Refusal, number: int | None, jobs: Iterable[RefusedJob]
    ) -> None:
        for job in jobs:
            if job.application == self.wanted:
                self.roles["application"] = None
                self.refused.append(
                    RefusalStory(
                        at_ms=record.at_ms,
                        decision=number,
                        requester=record.trigger.application,
                        why=job.why,
                        reason_code=job.why,
                        key=job.key,
                        policy=self.orders.settings.job_policy,
                        total=record.total if isinstance(record, records.Decision) else None,
                    )
                )

    def _left_alone(self, story: RefusalStory) -> None:
        container = self.ran is not None and self.ran.container == self.wanted
        self.roles["container" if container else "attempt"] = None
        self.refused.append(story)

    # --- names --------------------------------------------------------------------------------

    def _name(self, record: records.Decision) -> None:
        """Find in a decision the attempt of the wanted container, or the container of the attempt."""
        if self.ran is not None:
            return
        named = [
            Ran(pick.application, pick.task.attempt, pick.task.container, pick.task.node)
            for pick in (*record.picks, *record.handed_back)
        ]
        named += [Ran(one.application, one.attempt, one.container, one.node) for one in record.refused_tasks]
        for ran in named:
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
            if ranked.application != self.wanted:
                continue
            self.roles["application"] = None
            if not self.priorities or self.priorities[-1].priority != ranked.priority:
                self.priorities.append(
                    PriorityStory(
                        at_ms=record.at_ms,
                        place=place,
                        urgency_ms=ranked.urgency_ms,
                        priority=ranked.priority,
                    )
                )

    # --- the answer -----------------------------------------------------------------------------

    def explanation(self) -> Explanation:
        """Return what concerns the wanted id."""
        concerned = []
        for story in self.orders.stories:
            roles = [role for role, name in _names(story) if name == self.wanted]
            self.roles.update(dict.fromkeys(roles))
            if roles:
                concerned.append(story)
        sent = [story for story in concerned if not story.withheld or story.verb]
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


class _DecisionReader(_Reader):
    """Collects the results of one decision: its orders, and the jobs and tasks that it passed over."""

    def __init__(self, number: int) -> None:
        super().__init__(str(number))
        self.number = number

    def apply(self, record: Record) -> None:
        """Read one record; of the decisions only the wanted one."""
        if isinstance(record, records.Decision) and record.number == self.number:
            self.roles["decision"] = None
            self.rendered += _decision_in_words(record, self.orders.settings)
        if not isinstance(record, records.Refusal | records.Ranking):
            super().apply(record)

    def _decision(self, record: records.Decision) -> None:
        """Nothing: only ids have occasions."""

    def explanation(self) -> Explanation:
        """Return what concerns the decision."""
        found = super().explanation()
        found.orders = [story for story in self.orders.stories if story.decision == self.number]
        found.admissions = []
        return found


def _decision_in_words(record: records.Decision, settings: Settings) -> list[str]:
    trigger, orders = record.trigger, len(record.orders)
    lines = [
        f"{instant(record.at_ms)} for {trigger.application} in queue {trigger.queue}:"
        f" {containers(trigger.shortfall)} short ({text(trigger.why)}), {orders} chosen, {record.unmet} unmet"
    ]
    if not orders:  # otherwise each order lists those not chosen
        for job in record.refused_jobs:
            key = key_words(settings.job_policy, job.key, record.total)
            lines.append(f"not {job.application}: {why_words(job.why)} ({key})")
        for task in record.refused_tasks:
            key = key_words(settings.task_policy, task.key, None)
            lines.append(f"not {task.attempt}: {why_words(task.why)} ({key})")
    return lines


def _names(story: OrderStory) -> tuple[tuple[str, str], ...]:
    return (
        ("order", story.order),
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
    received = Tally(role="requester", others={}, states={}, verbs={})
    lost = Tally(role="victim", others={}, states={}, verbs={})
    for story in stories:
        for tally, own, other in (
            (received, story.requester, story.victim),
            (lost, story.victim, story.requester),
        ):
            if own != wanted:
                continue
            tally.orders += 1
            for counts, name in (
                (tally.others, other),
                (tally.states, story.state),
                (tally.verbs, story.verb or "not stopped"),
            ):
                counts[name] = counts.get(name, 0) + 1
            tally.lost_work_ms += story.lost_work_ms or 0
    return [tally for tally in (received, lost) if tally.orders]


def explain(records: Iterable[Record], wanted: str) -> Explanation:
    """Return the explanation of an application, container, attempt or order id, or a decision's number.

    The id of a job stands for its application's.
    """
    if wanted.startswith("job_"):
        wanted = f"application_{wanted.removeprefix('job_')}"
    is_number = wanted.isascii() and wanted.isdecimal() and len(wanted) <= NUMBER_DIGITS_MAX
    reader = _DecisionReader(int(wanted)) if is_number else _Reader(wanted)
    for record in records:
        reader.apply(record)
    return reader.explanation()


def _is_next(job: RefusedJob) -> bool:
    return job.why == "next"
