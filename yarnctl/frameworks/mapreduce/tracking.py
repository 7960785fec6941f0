"""Track tasks under order: their status lines, and whether their work is saved.

A manifest is reported only if the task's next attempt would resume from it (``saved_work``). The reported
generation is never above the requested one: a broken upload may use numbers up, so the runner's own number
can be higher. ``TrackedTask.manifest_generation`` keeps the real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import CheckpointStore
from yarnctl.attach.observing.cluster_state import Held
from yarnctl.attach.orders.connected import TrackedOrder
from yarnctl.deciding.model import Fact, ManifestSeen, UploadProgressed
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.eligibility import EligibilityReason, RunnerSays
from yarnctl.frameworks.framework import Parts
from yarnctl.frameworks.mapreduce.consent import Eligibility, EligibilityReader
from yarnctl.frameworks.mapreduce.observing import TaskObserver
from yarnctl.frameworks.mapreduce.saved_work import (
    UNCHANGED,
    TrackedTask,
    answer_name,
    is_ordered,
    manifests_of,
    read_answer,
    safe_manifest,
    task_of,
)
from yarnctl.frameworks.mapreduce.status_line import SAVING, parse
from yarnctl.hadoop.proxied import Absent
from yarnctl.task_runner.runner.protocol.manifests import Manifest
from yarnctl.task_runner.runner.protocol.stores import Entry, Unusable

NEWS_MAX = 16  # Tasks under order whose folders are listed between two ticks

UNDER_ORDER = "attempts"  # The guard's purpose for reading attempts under order


class TaskTracking:
    """The tasks under order, and those that have left and not resumed yet."""

    def __init__(self, parts: Parts, eligibility: EligibilityReader, tasks: TaskObserver) -> None:
        connection = parts.connection
        self._calls, self._settings, self._clock = connection.calls, connection.settings, connection.clock
        self._eligibility, self._tasks, self.resume_costs = eligibility, tasks, tasks.resume_costs

    def poll(self, running: Sequence[TrackedOrder], seen: Mapping[str, Held | Problem]) -> list[Fact]:
        """Return the facts about saved work since the last poll; ``seen``: live containers."""
        mine = [one for one in running if isinstance(one, TrackedTask)]
        self._poll_attempts([one for one in mine if self._is_due(one, seen)])
        return self._store_facts(mine)

    def left(self, tracked: TrackedOrder) -> None:
        """Measure the cost of a task that has been suspended, until it has resumed."""
        if isinstance(tracked, TrackedTask) and tracked.verb == "suspend":
            leave_ms, saved = tracked.ended_seen_at_ms - tracked.ordered_at_ms, tracked.manifest_generation
            task = tracked.task.task
            self.resume_costs.began(
                tracked.order, tracked.application, task, tracked.attempt, leave_ms, tracked.row, saved
            )

    def resumed(self) -> Sequence[Fact]:
        """Return which tasks have resumed, with their saved work or without it."""
        return self.resume_costs.poll()

    def expect(self, order: Order) -> None:
        """Poll for the resumption of a task that was suspended before this port began.

        A runner may have answered its order with the previous checkpoint: that generation at least is saved.
        """
        task = task_of(order.victim, order.attempt)
        if task is not None:
            saved = max(1, order.generation - 1)
            self.resume_costs.began(order.order, order.victim, task.task, order.attempt, -1, None, saved)

    def left_alone(self) -> dict[str, EligibilityReason]:
        """Return attempt -> why its runner does not suspend it, as last observed."""
        told = self._tasks.why_not.values()
        return {attempt: RunnerSays(why) for each in told for attempt, why in each.items()}

    def group_ms(self, attempt: str) -> int:
        """Return how long a reduce works on one key group; 0: not known."""
        return self._tasks.group_ms(attempt)

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        self._tasks.drop(applications)

    def _is_due(self, tracked: TrackedTask, seen: Mapping[str, Held | Problem]) -> bool:
        held = seen.get(tracked.application)
        gone = isinstance(held, Held) and tracked.container not in held.containers
        late = self._clock() - tracked.polled_at_ms >= self._settings.attempt_poll_ms
        # A killed attempt reports nothing of use until it has ended.
        return gone or (late and not tracked.killed_at_ms)

    def _poll_attempts(self, due: Sequence[TrackedTask]) -> None:
        wanted = [(one.application, one.task.task) for one in due]
        answers = self.resume_costs.attempts_of(UNDER_ORDER, wanted)
        now_ms = self._clock()
        for one in due:
            rows = answers[(one.application, one.task.task)]
            if isinstance(rows, LateAnswer):
                continue  # it is due in the next poll
            one.polled_at_ms = now_ms
            if isinstance(rows, Problem | Absent):
                continue
            one.row = next((row for row in rows if row.attempt == one.attempt), one.row)
            if one.row is not None:
                self._tasks.note(one.row, now_ms)

    def _store_facts(self, running: Sequence[TrackedTask]) -> list[Fact]:
        waiting = [one for one in running if one.verb == "suspend" and not one.manifest_at_ms]
        by_order = {one.order: one for one in waiting}
        found = self._calls.each(lambda order: self._poll_one(by_order[order]), by_order)
        facts: list[Fact] = []
        # The first attempt to save is released first and resumes first; names decide if that is unknown.
        for one in sorted(waiting, key=lambda one: _saved_at_ms(found[one.order])):
            answer = found[one.order]
            if isinstance(answer, Problem):
                one.note = str(answer)
                continue
            manifest, signature = answer
            now_ms = self._clock()
            if manifest is not None:
                self._note_manifest(one, manifest, now_ms)
                generation = min(manifest.generation, one.generation)
                facts.append(ManifestSeen(one.order, one.attempt, generation, manifest.groups_done, now_ms))
            elif signature != one.signature:
                before, one.signature = one.signature or ("", ()), signature
                if any(part and part != was for part, was in zip(signature, before, strict=True)):
                    facts.append(UploadProgressed(one.order, now_ms))
        return facts

    def has_news(self, running: Sequence[TrackedOrder]) -> bool | None:
        """Return whether a task under order has written a manifest or an answer; None: none is awaited.

        It lists their folders and reads nothing: the next poll does. Each name is news once.
        """
        waiting = [one for one in running if isinstance(one, TrackedTask) and one.requested]
        by_order = {one.order: one for one in waiting[:NEWS_MAX] if not (one.manifest_at_ms or one.ended)}
        if not by_order:
            return None
        found = self._calls.each(lambda order: self._new_names(by_order[order]), by_order)
        return any(found[order] is True for order in by_order)

    def _new_names(self, tracked: TrackedTask) -> bool:
        place = self._eligibility.store_of(tracked.application)
        if place is None:
            return False
        entries = place[0].list(tracked.task.folder)
        names = manifests_of(entries, tracked.attempt)
        answer = answer_name(tracked.name, tracked.attempt)
        names |= {entry.name for entry in entries if entry.name == answer}
        new, tracked.heard = names - tracked.heard - tracked.known_names, tracked.heard | names
        return bool(new)

    def find_manifest(self, tracked: TrackedTask) -> None:
        """Search for the manifest of an order, if none has been seen; raises as the store does."""
        manifest = None if tracked.manifest_at_ms else self._poll_one(tracked)[0]
        if manifest is not None:
            self._note_manifest(tracked, manifest, self._clock())

    @staticmethod
    def _note_manifest(tracked: TrackedTask, manifest: Manifest, now_ms: int) -> None:
        """Note a manifest, and the earliest start of its attempt's release wait.

        The port's clock bounds it by the last poll without the manifest. After a restart or a long outage of
        the store only other clocks do; if such a clock is slow, the release is refused.
        """
        tracked.manifest_at_ms, tracked.manifest_generation = now_ms, manifest.generation
        created_at_ms = (
            tracked.answered_at_ms
            if tracked.answer == UNCHANGED
            else _instant(manifest.raw.get("created_at_ms"))
        )
        tracked.release_wait_from_ms = tracked.absent_at_ms or min(now_ms, created_at_ms)

    def _poll_one(self, tracked: TrackedTask) -> tuple[Manifest | None, tuple[object, ...]]:
        began_ms = self._clock()
        status = parse(tracked.row.status) if tracked.row is not None else None
        phase = status.phase if status is not None and status.phase in SAVING else ""
        place = self._eligibility.store_of(tracked.application)
        if place is None:
            return None, (phase, ())
        store, eligibility = place
        entries = store.list(tracked.task.folder)
        manifest = self._manifest(tracked, store, eligibility, entries, began_ms)
        mine = [entry for entry in entries if tracked.attempt in entry.name and "answer-" not in entry.name]
        new = [(entry.name, entry.bytes) for entry in mine if entry.name not in tracked.known_names]
        if not tracked.signature:
            # Files that the attempt saved before this order do not count as progress of this order.
            tracked.known_names = frozenset(entry.name for entry in mine)
            new = []
        return manifest, (phase, tuple(new))

    def _manifest(
        self,
        tracked: TrackedTask,
        store: CheckpointStore,
        eligibility: Eligibility,
        entries: Sequence[Entry],
        began_ms: int,
    ) -> Manifest | None:
        manifest = None
        try:
            if answer_name(tracked.name, tracked.attempt) in {entry.name for entry in entries}:
                return self._answered(tracked, store, eligibility, entries)
            if manifests_of(entries, tracked.attempt):
                manifest = safe_manifest(store, tracked.task, eligibility)
        except Unusable as why:
            tracked.note = str(why)
            return None
        if manifest is not None and is_ordered(manifest, tracked.task, tracked.name):
            return manifest
        tracked.absent_at_ms = began_ms
        return None

    def _answered(
        self, tracked: TrackedTask, store: CheckpointStore, eligibility: Eligibility, entries: Sequence[Entry]
    ) -> Manifest | None:
        """Return an older manifest that the runner declared valid for this order; None for other answers."""
        answer = read_answer(store, tracked.task, tracked.name, entries, eligibility)
        tracked.answer = answer.kind
        tracked.note = f"{answer.kind}: {answer.reason}"
        if answer.kind != UNCHANGED or answer.generation < 1:
            return None
        tracked.answered_at_ms = store.written_at_ms(
            f"{tracked.task.folder}/{answer_name(tracked.name, tracked.attempt)}"
        )
        manifest = safe_manifest(store, tracked.task, eligibility)
        return manifest if manifest.generation == answer.generation else None


def _saved_at_ms(answer: tuple[Manifest | None, object] | Problem) -> float:
    manifest = None if isinstance(answer, Problem) else answer[0]
    return (manifest and _instant(manifest.raw.get("created_at_ms"))) or inf


def _instant(value: object) -> int:
    """Return a time that a job's owner wrote, in ms; 0 if the value is not a positive integer."""
    return value if type(value) is int and value > 0 else 0
