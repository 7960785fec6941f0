"""Track orders: report what has happened to each attempt under order, as facts, each once.

Facts have the time of the poll, ends before grants. A manifest is reported only if the task's next attempt
would resume from it (``saved_work``). An end is reported only when YARN's list of live containers lacks the
container, with the terminal state that the master shows. An unknown fact is reported later, not guessed.

The reported generation is never above the requested one: a broken upload may use numbers up, so the runner's
own number can be higher. ``TrackedOrder.manifest_generation`` keeps the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

import msgspec

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import CheckpointStore, Connection
from yarnctl.attach.eligibility.job_reader import EligibilityReader
from yarnctl.attach.eligibility.job_rules import Eligibility
from yarnctl.attach.observing.cluster_state import Held, LiveContainers
from yarnctl.attach.observing.resume_cost import ResumeCosts, attempts_of
from yarnctl.attach.observing.status_line import SAVING, parse
from yarnctl.attach.observing.task_state import TaskObserver
from yarnctl.attach.observing.victims import LeavingObserver, Removal, RemoveReason
from yarnctl.attach.orders.saved_work import (
    UNCHANGED,
    answer_name,
    is_ordered,
    manifests_of,
    read_answer,
    safe_manifest,
    task_of,
)
from yarnctl.deciding.model import (
    ApplicationEnded,
    ContainerEnded,
    ContainerGranted,
    Ending,
    Fact,
    ManifestSeen,
    UploadProgressed,
)
from yarnctl.frameworks.mapreduce.rest import TaskAttempt
from yarnctl.hadoop.proxied import Absent
from yarnctl.task_runner.runner.protocol.manifests import Manifest, TaskId
from yarnctl.task_runner.runner.protocol.stores import Entry, Unusable

UNDER_ORDER = "attempts"  # The guard's purpose for reading attempts under order
LINGER_MS = 60_000  # The time for which a killed attempt is polled after its order: its container ends later


class TrackedOrder(msgspec.Struct):
    """One order and the facts reported about it. Times in ms of the port's clock, 0: not yet.

    ``name`` is the order's on the cluster (``Attachment.name_of``).
    ``absent_at_ms``: the start of the last poll that found nothing; ``release_wait_from_ms``: the earliest
    start of the attempt's release wait. ``others``: container -> node of all containers at the time of the
    order, where the application chooses which leave; ``left``: the one that has fulfilled it ("": none yet).
    """

    order: str
    name: str
    application: str
    attempt: str
    container: str
    node: str
    generation: int
    task: TaskId
    verb: str = "suspend"
    requested: bool = False
    ordered_at_ms: int = 0
    manifest_at_ms: int = 0
    manifest_generation: int = 0
    absent_at_ms: int = 0
    release_wait_from_ms: int = 0
    released_at_ms: int = 0
    killed_at_ms: int = 0
    ended_seen_at_ms: int = 0
    ended: bool = False
    answer: str = ""
    answered_at_ms: int = 0
    signature: tuple[object, ...] = ()
    polled_at_ms: int = 0
    row: TaskAttempt | None = None
    known_names: frozenset[str] = frozenset()
    left: str = ""
    others: dict[str, str] = {}


NO_TASK = TaskId("", "", "")  # The task of a drain order, which has none


class OrderTracking:
    """All tracked orders, and the facts about them.

    ``observer_of``: the observer of an application's framework. ``may_leave``: whether an application and a
    name of an order belong together.
    """

    def __init__(
        self,
        connection: Connection,
        live: LiveContainers,
        tasks: TaskObserver,
        resume_costs: ResumeCosts,
        eligibility: EligibilityReader,
        observer_of: Callable[[str], LeavingObserver | None],
        may_leave: Callable[[str, str], bool],
    ) -> None:
        self._observer_of, self._may_leave = observer_of, may_leave
        self._connection = connection
        self._live = live
        self._tasks = tasks
        self._resume_costs = resume_costs
        self._eligibility = eligibility
        self._calls = connection.calls
        self._settings = connection.settings
        self._clock = connection.clock
        self.orders: dict[str, TrackedOrder] = {}
        self.notes: dict[str, str] = {}
        self._ended_applications: set[str] = set()

    def begin(
        self, order: str, application: str, attempt: str, container: str, generation: int, verb: str
    ) -> TrackedOrder | None:
        """Track an order, or return the tracked one; None if the ids do not belong together."""
        known = self.orders.get(order)
        if known is not None:
            same = (known.application, known.attempt, known.container) == (application, attempt, container)
            return known if same else None
        task = self._task_of(application, attempt, verb)
        if task is None:
            return None
        place = self._tasks.places.get(attempt)
        node = place.node if place is not None else ""
        name = self._settings.name_of(order)
        watched = TrackedOrder(order, name, application, attempt, container, node, generation, task, verb)
        watched.ordered_at_ms = self._clock()
        self.orders[order] = watched
        return watched

    def _task_of(self, application: str, attempt: str, verb: str) -> TaskId | None:
        if verb == "drain":
            return NO_TASK if self._may_leave(application, attempt) else None
        return task_of(application, attempt, "mr" if verb == "kill" and self._settings.levers else "r")

    def are_leaving(self, application: str) -> bool:
        """Return whether executors of an application are under order and have not ended."""
        return any(
            one.verb == "drain" and not one.ended
            for one in self.orders.values()
            if one.application == application
        )

    def retain(self, open_orders: Iterable[str]) -> None:
        """Stop tracking settled orders, except those of killed attempts that have not ended yet."""
        wanted, now_ms = set(open_orders), self._clock()
        for name in [name for name in self.orders if name not in wanted]:
            one = self.orders[name]
            if one.ended or not one.killed_at_ms or now_ms - one.killed_at_ms > LINGER_MS:
                del self.orders[name]
                self.notes.pop(name, None)

    def poll(self, tracked: Iterable[str], new: Iterable[str]) -> list[Fact]:
        """Return the facts since the last poll. ``tracked``: applications to poll for containers."""
        running = [one for one in self.orders.values() if not one.ended]
        victims = list(dict.fromkeys(one.application for one in running))
        names = list(dict.fromkeys([*tracked, *victims]))
        seen = self._live.observe(names)
        grants = self._live.grants(seen, new)
        if grants and victims:
            # A grant may use a container that ended after its application was polled.
            seen = {**seen, **self._live.observe(victims)}
        facts: list[Fact] = []
        self._poll_attempts([one for one in running if one.verb != "drain" and self._is_due(one, seen)])
        facts += self._store_facts(running)
        facts += self._terminal_states(running, seen)
        now_ms = self._clock()
        for application, container in grants:
            facts.append(
                ContainerGranted(container.container, application, container.node, container.size, now_ms)
            )
        facts += self._ended(seen)
        return facts

    def _ended(self, seen: Mapping[str, Held | Problem]) -> list[Fact]:
        now_ms, facts = self._clock(), list[Fact]()
        for name, held in sorted(seen.items()):
            if isinstance(held, Held) and held.ended and name not in self._ended_applications:
                self._ended_applications.add(name)
                facts.append(ApplicationEnded(name, now_ms))
        return facts

    def _is_due(self, tracked: TrackedOrder, seen: Mapping[str, Held | Problem]) -> bool:
        held = seen.get(tracked.application)
        gone = isinstance(held, Held) and tracked.container not in held.containers
        late = self._clock() - tracked.polled_at_ms >= self._settings.attempt_poll_ms
        return late or gone or bool(tracked.released_at_ms or tracked.killed_at_ms)

    def _poll_attempts(self, due: Sequence[TrackedOrder]) -> None:
        answers = attempts_of(
            self._connection, UNDER_ORDER, [(one.application, one.task.task) for one in due]
        )
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

    def _store_facts(self, running: Sequence[TrackedOrder]) -> list[Fact]:
        waiting = [one for one in running if one.verb == "suspend" and not one.manifest_at_ms]
        found = self._calls.each(self._poll_one, (one.order for one in waiting))
        facts: list[Fact] = []
        # The first attempt to save is released first and resumes first; names decide if that is unknown.
        for one in sorted(waiting, key=lambda one: _saved_at_ms(found[one.order])):
            answer = found[one.order]
            if isinstance(answer, Problem):
                self.notes[one.order] = str(answer)
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

    def find_manifest(self, tracked: TrackedOrder) -> None:
        """Search for the manifest of an order, if none has been seen; raises as the store does."""
        manifest = None if tracked.manifest_at_ms else self._poll_one(tracked.order)[0]
        if manifest is not None:
            self._note_manifest(tracked, manifest, self._clock())

    @staticmethod
    def _note_manifest(tracked: TrackedOrder, manifest: Manifest, now_ms: int) -> None:
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

    def _poll_one(self, order: str) -> tuple[Manifest | None, tuple[object, ...]]:
        one = self.orders[order]
        began_ms = self._clock()
        status = parse(one.row.status) if one.row is not None else None
        phase = status.phase if status is not None and status.phase in SAVING else ""
        place = self._eligibility.store_of(one.application)
        if place is None:
            return None, (phase, ())
        store, eligibility = place
        entries = store.list(one.task.folder)
        manifest = self._manifest(one, store, eligibility, entries, began_ms)
        mine = [entry for entry in entries if one.attempt in entry.name and "answer-" not in entry.name]
        new = [(entry.name, entry.bytes) for entry in mine if entry.name not in one.known_names]
        if not one.signature:
            # Files that the attempt saved before this order do not count as progress of this order.
            one.known_names = frozenset(entry.name for entry in mine)
            new = []
        return manifest, (phase, tuple(new))

    def _manifest(
        self,
        tracked: TrackedOrder,
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
            self.notes[tracked.order] = str(why)
            return None
        if manifest is not None and is_ordered(manifest, tracked.task, tracked.name):
            return manifest
        tracked.absent_at_ms = began_ms
        return None

    def _answered(
        self,
        tracked: TrackedOrder,
        store: CheckpointStore,
        eligibility: Eligibility,
        entries: Sequence[Entry],
    ) -> Manifest | None:
        """Return an older manifest that the runner declared valid for this order; None for other answers."""
        answer = read_answer(store, tracked.task, tracked.name, entries, eligibility)
        tracked.answer = answer.kind
        self.notes[tracked.order] = f"{answer.kind}: {answer.reason}"
        if answer.kind != UNCHANGED or answer.generation < 1:
            return None
        tracked.answered_at_ms = store.written_at_ms(
            f"{tracked.task.folder}/{answer_name(tracked.name, tracked.attempt)}"
        )
        manifest = safe_manifest(store, tracked.task, eligibility)
        return manifest if manifest.generation == answer.generation else None

    def _terminal_states(
        self, running: Sequence[TrackedOrder], seen: Mapping[str, Held | Problem]
    ) -> list[Fact]:
        # Where the application chooses which container leaves, orders name containers by their ids.
        if by_number := [one for one in running if one.attempt == one.container]:
            for one in by_number:
                held = seen.get(one.application)
                if isinstance(held, Held) and not (one.others or one.left):  # of a daemon before this one
                    one.others = {row.container: row.node for row in held.containers.values()}
            bind(by_number, seen)
        gone = [one for one in running if self._is_over(one, seen.get(one.application))]
        if not gone:
            return []
        rejoining = self._connection.is_rejoining
        nodes = None if rejoining else self._calls.each(lambda _key: self._connection.node_names(), [0])[0]
        reasons = self._remove_reasons([one for one in gone if one.verb == "drain"])
        facts: list[Fact] = []
        for one in gone:
            now_ms = self._clock()
            # While nodes register again, a container that is not listed may live: its master knows.
            one.ended_seen_at_ms = now_ms if rejoining else one.ended_seen_at_ms or now_ms
            why = reasons.get(one.order)
            ending = self._terminal_state(one, now_ms, nodes if isinstance(nodes, frozenset) else None, why)
            if ending is not None:
                one.ended = True
                if ending == "suspended" and one.verb == "suspend":
                    leave_ms = one.ended_seen_at_ms - one.ordered_at_ms
                    self._resume_costs.began(
                        one.order,
                        one.application,
                        one.task.task,
                        one.attempt,
                        leave_ms,
                        one.row,
                        one.manifest_generation,
                    )
                facts.append(
                    ContainerEnded(
                        one.left or one.container,
                        one.application,
                        one.node,
                        ending,
                        now_ms,
                        one.order if one.left not in ("", one.container) else "",
                    )
                )
        return facts

    def _is_over(self, tracked: TrackedOrder, held: Held | Problem | None) -> bool:
        if not isinstance(held, Held) or held.ended:
            return False
        container = held.containers.get(tracked.left or tracked.container)
        if container is not None:
            tracked.node = tracked.node or container.node
            tracked.ended_seen_at_ms = 0
        return container is None

    def _remove_reasons(self, gone: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        observers = {one.order: self._observer_of(one.application) for one in gone}
        found: dict[str, RemoveReason] = {}
        for observer in dict.fromkeys(observers.values()):
            if observer is not None:
                mine = {one.order: one for one in gone if observers[one.order] is observer}
                reasons = observer.remove_reasons([(one.application, one.attempt) for one in mine.values()])
                found |= {order: reasons[one.application, one.attempt] for order, one in mine.items()}
        return found

    def _terminal_state(
        self, tracked: TrackedOrder, now_ms: int, nodes: frozenset[str] | None, reason: RemoveReason
    ) -> Ending | None:
        """Return an attempt's terminal state, None if not known yet. ``reason``: the driver's."""
        if tracked.verb == "drain":
            return self._executor_ended(tracked, now_ms, nodes, reason)
        state = tracked.row.state if tracked.row is not None else ""
        if state == "SUCCEEDED":
            return "completed"
        if nodes is not None and tracked.node and tracked.node not in nodes:
            return "lost"
        if state == "FAILED":
            return "failed"
        if state == "KILLED":
            return "suspended" if tracked.released_at_ms else "killed"
        return "lost" if now_ms - tracked.ended_seen_at_ms >= self._settings.terminal_state_wait_ms else None

    def _executor_ended(
        self, tracked: TrackedOrder, now_ms: int, nodes: frozenset[str] | None, reason: RemoveReason
    ) -> Ending | None:
        """Return how an executor ended; "suspended" if its driver's reason shows that it was drained."""
        if nodes is not None and tracked.node and tracked.node not in nodes:
            return "lost"
        if isinstance(reason, Removal):
            self.notes[tracked.order] = reason.why[:200]
            return "suspended" if tracked.released_at_ms and reason.is_drained else "failed"
        return "lost" if now_ms - tracked.ended_seen_at_ms >= self._settings.terminal_state_wait_ms else None


def _saved_at_ms(answer: tuple[Manifest | None, object] | Problem) -> float:
    manifest = None if isinstance(answer, Problem) else answer[0]
    return (manifest and _instant(manifest.raw.get("created_at_ms"))) or inf


def _instant(value: object) -> int:
    """Return a time that a job's owner wrote, in ms; 0 if the value is not a positive integer."""
    return value if type(value) is int and value > 0 else 0


def bind(orders: Sequence[TrackedOrder], seen: Mapping[str, Held | Problem]) -> None:
    """Assign a container that has ended to each order whose application chooses which containers leave.

    If the container that an order names has ended, it fulfils the order. Otherwise another container that
    the application held at the time of the order does, if no other order names it; one fulfils one order.
    """
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        if one.container not in held.containers:
            fulfil(one, one.container, orders)
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        named = {each.container for each in orders if not each.left}
        gone = sorted(one.others.keys() - held.containers.keys() - named)
        if gone:
            fulfil(one, gone[0], orders)


def fulfil(tracked: TrackedOrder, container: str, orders: Sequence[TrackedOrder]) -> None:
    """Let a container fulfil one order, and no other order."""
    tracked.left, tracked.node = container, tracked.others.get(container, tracked.node)
    for each in orders:
        each.others.pop(container, None)
