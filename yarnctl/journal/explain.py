"""Explain: why was it chosen, why not the next one, who took its place, what did it cost?

Law: an explanation is read off the journal and adds nothing of its own. Instants are ms on the
host's clock, spans ms.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from yarnctl.deciding.case import Pick, RefusedJob, RefusedTask
from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.deciding.records import Decision, Header, Performed, Record, Refusal, Transfer, Transition
from yarnctl.deciding.settings import Settings


class OrderStory(msgspec.Struct, kw_only=True):
    """One order from decision to end. Keys: the smaller one is taken first."""

    order: str
    decision: int
    asker: str
    victim: str
    attempt: str
    container: str
    node: str
    asked_at_ms: int
    generation: int
    job_policy: str
    job_key: tuple[int, ...]
    task_policy: str
    task_key: tuple[int, ...]
    remaining_ms: int
    next_jobs: tuple[RefusedJob, ...]
    next_tasks: tuple[RefusedTask, ...]
    first_asker: str
    transfers: list[str]
    state: str = "asked"
    keys_done: int | None = None
    checkpointed_at_ms: int | None = None
    freed_at_ms: int | None = None
    settled_at_ms: int | None = None
    settled_why: str = ""
    room_to_container: str = ""
    room_to_application: str = ""


class RefusalStory(msgspec.Struct, kw_only=True, frozen=True):
    """One occasion on which the id was looked at and left alone, or asked in vain."""

    at_ms: int
    decision: int | None
    asker: str
    why: str
    key: tuple[int, ...] = ()


class Explanation(msgspec.Struct, kw_only=True):
    """All that a journal knows of one id; ``roles`` say as what it was found."""

    id: str
    roles: list[str]
    orders: list[OrderStory]
    refused: list[RefusalStory]

    @property
    def found(self) -> bool:
        """Say whether the journal knows the id at all."""
        return bool(self.roles)


class _Reader:
    """Collects the stories of all orders, and what was refused, in one pass."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.settings = Settings()
        self.orders: dict[str, OrderStory] = {}
        self.stories: list[OrderStory] = []
        self.refused: list[RefusalStory] = []
        self.roles: dict[str, None] = {}

    def take(self, record: Record) -> None:
        """Read one record."""
        if isinstance(record, Header):
            self.settings, self.orders = record.settings, {}
        elif isinstance(record, Decision):
            self._decision(record)
        elif isinstance(record, Transition):
            self._transition(record)
        elif isinstance(record, Transfer):
            if (story := self.orders.get(record.order)) is not None:
                story.asker = record.target
                story.transfers.append(f"{_at(record.at_ms)} to {record.target}: {record.why}")
        elif isinstance(record, Refusal):
            if record.trigger.application == self.wanted:
                self._left_alone("application", record.at_ms, None, self.wanted, record.why, ())
            self._shown(record, None, record.refused_jobs, record.refused_tasks)
        elif isinstance(record, Performed):
            pass  # what it led to stands in the transitions

    def _decision(self, record: Decision) -> None:
        for name, pick in zip(record.orders, record.picks, strict=True):
            story = self._story(record, name, pick)
            self.orders[name] = story
            self.stories.append(story)
        self._shown(record, record.number, record.refused_jobs, record.refused_tasks)
        for pick in record.handed_back:
            if self.wanted in (pick.task.attempt, pick.task.container):
                role = "attempt" if self.wanted == pick.task.attempt else "container"
                self._left_alone(
                    role,
                    record.at_ms,
                    record.number,
                    record.trigger.application,
                    "handed back: completes no room",
                    pick.task_key,
                )

    def _story(self, record: Decision, name: str, pick: Pick) -> OrderStory:
        task = pick.task
        return OrderStory(
            order=name,
            decision=record.number,
            asker=record.trigger.application,
            first_asker=record.trigger.application,
            transfers=[],
            victim=pick.application,
            attempt=task.attempt,
            container=task.container,
            node=task.node,
            asked_at_ms=record.at_ms,
            generation=task.generation + 1,
            job_policy=self.settings.job_policy,
            job_key=pick.job_key,
            task_policy=self.settings.task_policy,
            task_key=pick.task_key,
            remaining_ms=task.remaining_ms,
            next_jobs=tuple(job for job in record.refused_jobs if job.application != pick.application),
            next_tasks=tuple(
                other for other in record.refused_tasks if other.application == pick.application
            ),
        )

    def _shown(
        self,
        record: Decision | Refusal,
        number: int | None,
        jobs: tuple[RefusedJob, ...],
        tasks: tuple[RefusedTask, ...],
    ) -> None:
        asker = record.trigger.application
        for job in jobs:
            if job.application == self.wanted:
                self._left_alone("application", record.at_ms, number, asker, job.why, job.key)
        for task in tasks:
            if task.attempt == self.wanted:
                self._left_alone("attempt", record.at_ms, number, asker, task.why, task.key)

    def _left_alone(
        self, role: str, at_ms: int, number: int | None, asker: str, why: str, key: tuple[int, ...]
    ) -> None:
        self.roles[role] = None
        self.refused.append(RefusalStory(at_ms=at_ms, decision=number, asker=asker, why=why, key=key))

    def _transition(self, record: Transition) -> None:
        story = self.orders.get(record.order)
        if story is None:
            return
        story.state = record.target
        if record.target == "checkpointed":
            story.checkpointed_at_ms = record.at_ms
            story.keys_done = record.keys_done if record.keys_done >= 0 else None
        elif record.target == "freed":
            story.freed_at_ms = record.at_ms
        elif record.target != "suspending":
            story.settled_at_ms = record.at_ms
            story.settled_why = record.why or record.event
            story.room_to_container = record.container
            story.room_to_application = record.application

    def explanation(self) -> Explanation:
        """Return what concerns the wanted id."""
        concerned = []
        for story in self.stories:
            roles = [
                role
                for role, name in (
                    ("order", story.order),
                    ("application", story.victim),
                    ("application", story.asker),
                    ("application", story.first_asker),
                    ("attempt", story.attempt),
                    ("container", story.container),
                    ("container", story.room_to_container),
                )
                if name == self.wanted
            ]
            self.roles.update(dict.fromkeys(roles))
            if roles:
                concerned.append(story)
        return Explanation(id=self.wanted, roles=list(self.roles), orders=concerned, refused=self.refused)


def explain(records: Iterable[Record], wanted: str) -> Explanation:
    """Gather all that the records say of an application, container, attempt or order id."""
    reader = _Reader(wanted)
    for record in records:
        reader.take(record)
    return reader.explanation()


# --- in words ---------------------------------------------------------------------------------


def in_words(explanation: Explanation) -> list[str]:
    """Return the explanation as lines of text."""
    lines = [f"{explanation.id} ({', '.join(explanation.roles)})"]
    for story in explanation.orders:
        lines += ["", *_order_in_words(story, explanation.id)]
    if explanation.refused:
        lines += ["", "left alone:"]
    for refused in explanation.refused:
        occasion = "no decision" if refused.decision is None else f"decision {refused.decision}"
        key = f", key {_key(refused.key)}" if refused.key else ""
        lines.append(f"  {_at(refused.at_ms)} {occasion} for {refused.asker}: {refused.why}{key}")
    return lines


def _order_in_words(story: OrderStory, wanted: str) -> list[str]:
    lines = [
        f"{story.order}: {_at(story.asked_at_ms)} decision {story.decision} for {story.first_asker}",
        f"  victim   {story.victim}, {story.attempt}, {story.container} on {story.node}",
        f"  why it   first by {story.job_policy} (key {_key(story.job_key)}), in it first by"
        f" {story.task_policy} (key {_key(story.task_key)})",
    ]
    for task in story.next_tasks:
        lines.append(f"  why not  {task.attempt}: {task.why} (key {_key(task.key)})")
    for job in story.next_jobs:
        lines.append(f"  why not  {job.application}: {job.why} (key {_key(job.key)})")
    lines += [f"  passed on {transfer}" for transfer in story.transfers]
    lines.append(f"  became   {story.state}" + (f": {story.settled_why}" if story.settled_why else ""))
    if story.room_to_application:
        took = "got its place" if story.state == "granted" else "took its place"
        lines.append(f"  room     {story.room_to_application} {took} with {story.room_to_container}")
    lines.append(f"  cost     {_cost(story)}")
    return lines


def _cost(story: OrderStory) -> str:
    parts = [f"suspension number {story.generation}"]
    if story.keys_done is not None:
        parts.append(f"{story.keys_done} keys done and kept")
    for name, at_ms in (
        ("checkpointed", story.checkpointed_at_ms),
        ("freed", story.freed_at_ms),
        (story.state, story.settled_at_ms),
    ):
        if at_ms is not None:
            parts.append(f"{name} after {at_ms - story.asked_at_ms} ms")
    return ", ".join(parts)


def _key(key: tuple[int, ...]) -> str:
    words = ["-" if part in (FOREVER_MS, -FOREVER_MS) else str(part) for part in key]
    return "/".join(words) if words else "none"


def _at(at_ms: int) -> str:
    return f"at {at_ms} ms"
