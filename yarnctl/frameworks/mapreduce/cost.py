"""Measure what suspending a task has cost, and predict the cost of the next suspension.

Law: measured from recorded instants (YARN's, the master's, the runner's own clock), so that a late poll costs
no accuracy; reported once for each order. A part not measured yet is predicted by the job's own spans, else
by those of other jobs, else by a setting::

    leave    from the order to the container's end: doorbell, group, drain, upload, kill
    launch   from the grant of the new container to the attempt's start
    shuffle  process start, shuffle and merge as the attempt itself had them, without the wait for the job's
             maps; for a first attempt times the measured ratio of a resumed one (it shuffled beside all)
    skip     the runner from its start to the first new key: a fixed part, and the bytes that are done

Waiting for a container is not a cost. The median of the newest measurements counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from statistics import median_low

import msgspec

from yarnctl.attach.connection.application_guard import LATE, values
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.observing.cluster_state import Held
from yarnctl.deciding.model import CameBack, CameBackWithout
from yarnctl.frameworks.framework import Parts
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.frameworks.mapreduce.rest import TaskAttempt
from yarnctl.frameworks.mapreduce.status_line import WORKING, parse
from yarnctl.hadoop.proxied import Absent
from yarnctl.task_runner.runner.protocol.manifests import attempt_number

KEPT = 9  # Spans of a kind kept of each job, and jobs kept for those without a span of their own
RESUMED = "resumed"  # The guard's purpose for reading attempts that may have resumed a task
POLLS_MAX = 4  # The most suspended tasks polled in one observation
SUSPENDED_MAX = 5000
LAUNCH_MAX_MS = 600_000  # A longer launch is ignored: a clock is wrong
SLOWER_MAX = 10_000  # The maximum ratio of a resumed attempt's shuffle to the first one's, in thousandths
LARGE_BYTES = 16 << 20  # A skip of this many bytes measures the rate; a shorter one the fixed part


class Spans:
    """Spans of one kind in ms (or thousandths, or bytes per ms): a job's newest, and the last of some jobs.

    A job counts once for the others, even if it has resumed repeatedly: its owner can influence its spans.
    """

    def __init__(self, prior: int) -> None:
        self._prior = prior
        self._of: dict[str, deque[int]] = {}
        self._last: dict[str, int] = {}

    def add(self, job: str, span: int) -> None:
        """Add a measured span."""
        mine = self._of.setdefault(job, deque(maxlen=KEPT))
        mine.append(span)
        self._last.pop(job, None)
        self._last[job] = median_low(mine)
        if len(self._last) > KEPT:
            del self._last[next(iter(self._last))]

    def usual(self, job: str) -> int:
        """Return the median of the job's spans, else of other jobs' spans, else the setting."""
        seen = self._of.get(job) or self._last.values()
        return median_low(seen) if seen else self._prior

    def drop(self, job: str) -> None:
        """Drop one job's own spans; its last median still counts for others."""
        self._of.pop(job, None)


class SuspendedTask(msgspec.Struct):
    """A task that an order stopped, not at new keys since; ``generation``, ``groups``: saved, 0 unknown."""

    order: str
    application: str
    task: str
    attempt: str
    shuffle_ms: int
    polled_at_ms: int = 0
    generation: int = 0
    groups: int = 0


class ResumeCosts:
    """The suspended tasks with measured and predicted resume costs."""

    def __init__(self, parts: Parts, master: Callable[[str], MasterClient]) -> None:
        self._settings = settings = parts.connection.settings
        self._guard, self._live, self._clock = parts.connection.guard, parts.live, parts.connection.clock
        self._master = master
        self._leave = Spans(settings.suspend_ms)
        self._launch = Spans(settings.launch_ms)
        self._shuffle_permille = Spans(1000)
        self._skip = Spans(settings.skip_ms)
        self._skip_bytes_per_ms = Spans(settings.skip_bytes_per_ms)
        self.suspended: dict[str, SuspendedTask] = {}
        self.maps_finished: dict[str, int] = {}

    def cost_ms(self, application: str, attempt: TaskAttempt, done_bytes: int) -> int:
        """Return the predicted cost of suspending this attempt now and resuming it."""
        shuffle_ms = self.shuffle_ms(application, attempt)
        if _is_first(attempt.attempt):
            shuffle_ms = shuffle_ms * self._shuffle_permille.usual(application) // 1000
        usual_ms = self._leave.usual(application) + self._launch.usual(application)
        rate = max(1, self._skip_bytes_per_ms.usual(application))
        return usual_ms + shuffle_ms + self._skip.usual(application) + done_bytes // rate

    def launch_ms(self, application: str) -> int:
        """Return the predicted time from a container's grant to its process at work."""
        return self._launch.usual(application) + self._settings.start_ms

    def shuffle_ms(self, application: str, attempt: TaskAttempt) -> int:
        """Return the time of process start, shuffle and merge of an attempt, without the wait for maps.

        The process of an attempt that waited for maps started long before: then ``start_ms`` is added for it.
        """
        if attempt.merged_at_ms <= 0:
            return 0
        maps_ms = self.maps_finished.get(application, 0)
        if attempt.started_at_ms >= maps_ms:
            return max(0, attempt.merged_at_ms - attempt.started_at_ms)
        return max(0, attempt.merged_at_ms - maps_ms) + self._settings.start_ms

    def began(
        self,
        order: str,
        application: str,
        task: str,
        attempt: str,
        leave_ms: int,
        task_attempt: TaskAttempt | None,
        generation: int = 0,
    ) -> None:
        """Start polling a task that an order has stopped, until it has resumed. ``leave_ms`` -1: not seen.

        ``generation``: the least that is known to be saved, even if the runner's last status shows less.
        """
        if leave_ms >= 0:
            self._leave.add(application, leave_ms)
        shuffle_ms = -1 if task_attempt is None else self.shuffle_ms(application, task_attempt)
        status = None if task_attempt is None else parse(task_attempt.status)
        said, groups = (status.gen, max(0, status.groups)) if status is not None else (0, 0)
        saved = max(said, generation)
        self.suspended[order] = SuspendedTask(
            order, application, task, attempt, shuffle_ms, self._clock(), saved, groups
        )
        while len(self.suspended) > SUSPENDED_MAX:
            del self.suspended[next(iter(self.suspended))]

    def poll(self) -> list[CameBack | CameBackWithout]:
        """Return which suspended tasks have resumed, with their saved work or without it; never raises."""
        now_ms = self._clock()
        every_ms = self._settings.resume_poll_ms
        due = [one for one in self.suspended.values() if now_ms - one.polled_at_ms >= every_ms]
        due = sorted(due, key=lambda one: (one.polled_at_ms, one.order))[:POLLS_MAX]
        if not due:
            return []
        answers = self.attempts_of(RESUMED, [(one.application, one.task) for one in due])
        back: list[tuple[SuspendedTask, TaskAttempt]] = []
        without: list[CameBackWithout] = []
        for one in due:
            one.polled_at_ms = now_ms
            rows = answers[one.application, one.task]
            if isinstance(rows, Absent | Problem):
                continue
            lost, row = _returned(one, rows)
            if lost is not None:
                without.append(self._lost(one, lost))
            elif row is not None:
                back.append((one, row))
        held = self._live.observe(dict.fromkeys(one.application for one, _ in back))
        return [*without, *(self._resumed(one, row, held[one.application]) for one, row in back)]

    def attempts_of(
        self, purpose: str, wanted: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[TaskAttempt, ...] | Absent | Problem]:
        """Return the attempts at tasks, by application and task; ``purpose``: the guard's."""
        tasks: dict[str, list[str]] = {}
        for application, task in wanted:
            tasks.setdefault(application, []).append(task)
        answers = values(
            self._guard.read_each(
                purpose, lambda name, look: look.each(self._master(name).attempts, tasks[name]), tasks
            )
        )
        found: dict[tuple[str, str], tuple[TaskAttempt, ...] | Absent | Problem] = {}
        for name, names in tasks.items():
            rows = answers[name]
            for task in names:
                found[name, task] = rows if isinstance(rows, Problem) else rows.get(task, LATE)
        return found

    def _lost(self, task: SuspendedTask, attempt: TaskAttempt) -> CameBackWithout:
        """Return the fact that saved work is done again; no later attempt counts as resumed by this order."""
        status = parse(attempt.status)
        assert status is not None
        del self.suspended[task.order]
        keys = task.groups or -1
        return CameBackWithout(task.order, attempt.attempt, keys, task.generation, status.gen, self._clock())

    def _resumed(self, task: SuspendedTask, attempt: TaskAttempt, held: Held | Problem) -> CameBack:
        status = parse(attempt.status)
        assert status is not None
        del self.suspended[task.order]
        launch_ms = _launch_ms(attempt, held)
        shuffle_ms = max(0, attempt.merged_at_ms - attempt.started_at_ms)
        if launch_ms >= 0:
            self._launch.add(task.application, launch_ms)
        if task.shuffle_ms > 0 and _is_first(task.attempt):
            self._shuffle_permille.add(
                task.application, min(shuffle_ms * 1000 // task.shuffle_ms, SLOWER_MAX)
            )
        now_ms = self._clock()
        skip_ms = min(status.back, max(0, now_ms - attempt.merged_at_ms))  # the owner's figure, bounded
        if 0 <= status.base < LARGE_BYTES:
            self._skip.add(task.application, skip_ms)
        elif status.base > 0:
            moved_ms = max(1, skip_ms - self._skip.usual(task.application))
            self._skip_bytes_per_ms.add(task.application, max(1, status.base // moved_ms))
        return CameBack(task.order, attempt.attempt, max(0, launch_ms), shuffle_ms, skip_ms, now_ms)

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        gone = set(applications)
        kinds = (self._leave, self._launch, self._shuffle_permille, self._skip, self._skip_bytes_per_ms)
        for spans in kinds:
            for name in gone:
                spans.drop(name)
        for name in gone:
            self.maps_finished.pop(name, None)
        for order in [one.order for one in self.suspended.values() if one.application in gone]:
            del self.suspended[order]


def _returned(
    task: SuspendedTask, rows: Sequence[TaskAttempt]
) -> tuple[TaskAttempt | None, TaskAttempt | None]:
    number = attempt_number(task.attempt)
    later = [row for row in rows if attempt_number(row.attempt) > number and row.merged_at_ms > 0]
    later.sort(key=lambda row: attempt_number(row.attempt))
    lost = next((row for row in later if _started_lower(task, row)), None)
    row = next((row for row in later if _is_back(row)), None)
    if lost is None or row is None:
        return lost, row
    first = attempt_number(lost.attempt) <= attempt_number(row.attempt)
    return (lost, None) if first else (None, row)


def _is_back(attempt: TaskAttempt) -> bool:
    status = parse(attempt.status)
    return status is not None and status.back >= 0


def _started_lower(task: SuspendedTask, attempt: TaskAttempt) -> bool:
    status = parse(attempt.status)
    return status is not None and status.phase in WORKING and 0 <= status.gen < task.generation


def _is_first(attempt: str) -> bool:
    """Return whether it is a task's first attempt; a new master begins at the next thousand."""
    return attempt_number(attempt) % 1000 == 0


def _launch_ms(attempt: TaskAttempt, held: Held | Problem) -> int:
    """Return the time from the grant of an attempt's container to the attempt's start; -1: not known."""
    container = held.containers.get(attempt.container) if isinstance(held, Held) else None
    if container is None or container.started_at_ms <= 0:
        return -1
    span_ms = attempt.started_at_ms - container.started_at_ms
    return max(0, span_ms) if span_ms <= LAUNCH_MAX_MS else -1
