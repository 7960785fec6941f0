"""Observe the tasks of MapReduce jobs: running reduces by master, runner and YARN.

An attempt is shown only if YARN's own list contains its container, and counts as checkpointable only in its
reduce phase (``mergeFinishTime`` > 0) with a runner whose status shows it at work. Maps, and reduces of jobs
that are not eligible, are shown only where levers may end them (``plain_view``). A job whose master or whose
containers cannot be seen is unreachable as a whole. All calls are bounded in number and in time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from yarnctl.attach.connection.application_guard import ApplicationLook, ReadAnswer
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.observing.cluster_state import Held, sizes_of
from yarnctl.attach.observing.victims import TASKS, ObservedVictim, Victim, victims_of
from yarnctl.attach.orders.connected import Removal, RemoveReason, TrackedOrder
from yarnctl.deciding.levers import NOT_BEGUN_MS
from yarnctl.deciding.model import TaskView
from yarnctl.frameworks.framework import Parts
from yarnctl.frameworks.mapreduce.cost import ResumeCosts
from yarnctl.frameworks.mapreduce.known_maps import KnownMaps
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.frameworks.mapreduce.rest import Task, TaskAttempt
from yarnctl.frameworks.mapreduce.saved_work import TrackedTask
from yarnctl.frameworks.mapreduce.status_line import Progress, needs_java_counters
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire import views, yarn

_LOG = logging.getLogger("yarnctl.attach")

KEPT_MAX = 20_000  # The number of attempts whose progress is kept; the oldest are dropped first
KNOWN_RATIO = 0.05  # With less of Java's progress than this the remaining time is unknown
REDUCE_PHASE = 2 / 3  # Java's progress of a reduce when it begins to reduce
ENDED = {
    "SUCCEEDED": Removal("", is_drained=False, otherwise="completed"),
    "FAILED": Removal("", is_drained=False),
    "KILLED": Removal("", is_drained=True, otherwise="killed"),
}
COUNTERS, GROUPS = "org.apache.hadoop.mapreduce.TaskCounter", "REDUCE_INPUT_GROUPS"


class TaskPlace(NamedTuple):
    """The application and node of an attempt, kept for later orders."""

    application: str
    node: str


class MasterLook(NamedTuple):
    """A master's answer at ``at_ms``: running attempts by task, Java's counter of groups by attempt.

    ``maps_finished_at_ms`` 0: not asked, or none has.
    """

    at_ms: int
    attempts: dict[str, tuple[TaskAttempt, ...]]
    maps_finished_at_ms: int
    groups: dict[str, int]


class TaskObserver:
    """Observes preemptable jobs; ``places`` by attempt; ``why_not``: the runner's reasons by attempt."""

    def __init__(self, parts: Parts, master: Callable[[str], MasterClient]) -> None:
        connection = parts.connection
        self._ineligible, self._live, self.master = parts.reasons, parts.live, master
        self._guard, self._settings, self._clock = connection.guard, connection.settings, connection.clock
        self.places: dict[str, TaskPlace] = {}
        self.why_not: dict[str, dict[str, str]] = {}
        self._progress: dict[str, Progress] = {}
        self._rates: dict[str, dict[str, float]] = {}
        self.resume_costs = ResumeCosts(parts, master)
        self._known_maps = KnownMaps()

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        """Observe jobs; a Problem for one that does not answer."""
        held = self._live.observe(victims)
        counters_max = max(1, self._settings.counters_max // max(1, len(victims)))
        known = {name: self.resume_costs.maps_finished.get(name, 0) for name in victims}
        containers = {name: each.containers if isinstance(each, Held) else {} for name, each in held.items()}
        looks = self._guard.read_each(
            TASKS,
            lambda name, look: self._look(name, look, known[name], counters_max, containers[name]),
            victims,
        )
        return victims_of(held, looks, self._victim)

    def remove_reasons(self, wanted: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        """Return order -> how its attempt ended, by the last answer of its master about it."""
        rows = {one.order: one.row if isinstance(one, TrackedTask) else None for one in wanted}
        return {order: ENDED.get("" if row is None else row.state) for order, row in rows.items()}

    # --- one master, in a thread of the guard ---------------------------------------------------------

    def _look(
        self,
        application: str,
        look: ApplicationLook,
        maps_finished_at_ms: int,
        counters_max: int,
        containers: Mapping[str, yarn.ContainerRow],
    ) -> MasterLook | Absent:
        master, at_ms = self.master(application), self._clock()
        reduces = master.reduces()
        maps = master.maps() if self._settings.levers else ()
        if isinstance(reduces, Absent) or isinstance(maps, Absent):
            return reduces if isinstance(reduces, Absent) else maps  # type: ignore[return-value]
        tasks_max = self._settings.tasks_max
        running = [row.task for row in reduces if row.state == "RUNNING"][:tasks_max]
        running_maps = sorted(
            (row for row in maps if row.state == "RUNNING"), key=lambda row: (price_ms(row, at_ms), row.task)
        )
        maps_seen = self._known_maps.look(application, running_maps, containers, at_ms)
        has_merged = False
        answers = look.each(master.attempts, running)
        read_maps = look.each(master.attempts, maps_seen.to_read, self._settings.look_wait_ms // 2)
        for task, rows in read_maps.items():  # kept also where a later one fails: the next look reads less
            if not isinstance(rows, Problem | Absent):
                self._known_maps.note(application, task, [row for row in rows if row.running])
        attempts = maps_seen.known
        for task, rows in (answers | read_maps).items():
            if isinstance(rows, Problem):
                return Absent(str(rows))
            if isinstance(rows, Absent):
                return rows  # the master stopped answering in the middle
            has_merged = has_merged or any(row.merged_at_ms > 0 for row in rows)
            attempts[task] = tuple(row for row in rows if row.running)
        shown = (*running, *(row.task for row in running_maps if row.task in attempts))
        attempts = {task: attempts[task] for task in shown[:tasks_max]}
        if has_merged and not maps_finished_at_ms:  # a job's first reduces waited until its last map finished
            found = master.maps_finished_at_ms()
            maps_finished_at_ms = 0 if isinstance(found, Absent) else found
        groups = self._groups(master, look, attempts, counters_max)
        return MasterLook(at_ms, attempts, maps_finished_at_ms, groups)

    def _groups(
        self,
        master: MasterClient,
        look: ApplicationLook,
        attempts: Mapping[str, Sequence[TaskAttempt]],
        counters_max: int,
    ) -> dict[str, int]:
        """Read Java's counters of reduces whose buffers are a large part of the input, a few at a time."""
        wanted = [
            (task, row.attempt)
            for task, rows in attempts.items()
            for row in rows
            if row.merged_at_ms > 0 and needs_java_counters(row, self._progress.get(row.attempt))
        ][:counters_max]
        answers = look.each(lambda key: master.attempt_counters(*key), wanted)
        return {
            attempt: counters.get(COUNTERS, {}).get(GROUPS, 0)
            for (_, attempt), counters in answers.items()
            if isinstance(counters, dict)
        }

    def _victim(self, application: str, held: Held, answer: ReadAnswer[MasterLook]) -> Victim:
        look, containers = answer.value, held.containers
        if look.maps_finished_at_ms:
            self.resume_costs.maps_finished[application] = look.maps_finished_at_ms
        for rows in look.attempts.values():
            for row in rows:
                if row.attempt in look.groups:
                    self.note(row, look.at_ms).java_has_read(look.groups[row.attempt])
        found: list[TaskView] = []
        for task, rows in look.attempts.items():
            for row in rows:
                if row.container in containers:
                    found += self._views(application, task, row, containers[row.container], look.at_ms)
        kept = {one.attempt: self._progress.get(one.attempt) for one in found if not one.checkpointable}
        told = {attempt: progress.why for attempt, progress in kept.items() if progress is not None}
        self.why_not[application] = {attempt: why for attempt, why in told.items() if why}
        return Victim(tuple(sorted(found)), sizes_of(containers.values()))

    def _views(
        self, application: str, task: str, attempt: TaskAttempt, container: yarn.ContainerRow, now_ms: int
    ) -> list[TaskView]:
        """Return an attempt's view, none of a task that runs within its master's container."""
        levers, plain = self._settings.levers, application in self._ineligible
        if levers and views.kind_of(container) == "am":
            return []
        self._remember(attempt, TaskPlace(application, container.node))
        if levers and (is_map(attempt.attempt) or plain or attempt.merged_at_ms <= 0):
            return [plain_view(attempt, container, self.resume_costs.launch_ms(application), now_ms)]
        return [self._view(application, task, attempt, container, now_ms)]

    def _view(
        self, application: str, task: str, attempt: TaskAttempt, container: yarn.ContainerRow, now_ms: int
    ) -> TaskView:
        progress = self.note(attempt, now_ms)
        usual = self._usual_rate(task, attempt.attempt, progress)
        reducing = attempt.phase == "reduce"
        return TaskView(
            attempt=attempt.attempt,
            container=container.container,
            node=container.node,
            size=container.size,
            kind="reduce",
            remaining_ms=progress.remaining_ms(attempt, now_ms, usual) if reducing else -1,
            resume_cost_ms=self.resume_costs.cost_ms(application, attempt, progress.done_bytes),
            since_ms=progress.since_ms or max(0, attempt.merged_at_ms) or attempt.started_at_ms,
            generation=progress.generation,
            checkpointable=reducing and progress.checkpointable,
            resumed=progress.generation > 0,
        )

    def note(self, attempt: TaskAttempt, now_ms: int) -> Progress:
        """Apply an observation of an attempt's status line to its kept progress.

        The reason why it cannot be suspended is logged once for each attempt: the job's owner can write it.
        """
        progress = self._progress.setdefault(attempt.attempt, Progress())
        said = progress.why
        progress.apply(attempt, now_ms)
        if progress.why and not said:
            _LOG.info(
                "%s cannot be suspended; its task runner reports: %s", attempt.attempt, ascii(progress.why)
            )
        return progress

    def bell_of(self, attempt: str) -> str:
        """Return where a datagram wakes an attempt's runner, in its own words; "": not known."""
        progress = self._progress.get(attempt)
        return "" if progress is None else progress.bell

    def group_ms(self, attempt: str) -> int:
        """Return how long an attempt works on one key group, by its runner's words; 0: not known."""
        progress = self._progress.get(attempt)
        return 0 if progress is None else progress.group_ms()

    def _usual_rate(self, task: str, attempt: str, progress: Progress) -> float:
        """Return the rate of earlier attempts at a task (0.0: none), and note this one's."""
        mine = progress.rate()
        before = self._rates.get(task, {})
        if mine:
            before = self._rates[task] = {**before, attempt: mine}
            if len(self._rates) > KEPT_MAX:
                del self._rates[next(iter(self._rates))]
        return next((rate for name, rate in reversed(before.items()) if name != attempt), 0.0)

    def _remember(self, attempt: TaskAttempt, place: TaskPlace) -> None:
        self.places.pop(attempt.attempt, None)
        self.places[attempt.attempt] = place
        while len(self.places) > KEPT_MAX:
            oldest = next(iter(self.places))
            del self.places[oldest]
            self._progress.pop(oldest, None)

    def drop(self, applications: Iterable[str]) -> None:
        """Drop the attempts of applications that have ended."""
        gone = set(applications)
        self.resume_costs.drop(gone)
        self._known_maps.drop(gone)
        for application in gone:
            self.why_not.pop(application, None)
        for name in [one for one, place in self.places.items() if place.application in gone]:
            del self.places[name]
            self._progress.pop(name, None)


def is_map(attempt: str) -> bool:
    """Return whether an attempt is a map's, by its id (``attempt_1_2_m_000003_0``)."""
    return "_m_" in attempt


def price_ms(task: Task, now_ms: int) -> int:
    """Return about what a running map's container costs: the work so far, or the wait for its end."""
    worked_ms = max(0, now_ms - task.started_at_ms)
    remaining_ms = left_ms(worked_ms, task.progress_percent / 100)
    return worked_ms if remaining_ms < 0 else min(worked_ms, remaining_ms)


def plain_view(attempt: TaskAttempt, container: yarn.ContainerRow, launch_ms: int, now_ms: int) -> TaskView:
    """Return a map, or a reduce without a runner or that has begun nothing; it is not checkpointable.

    The work of a map is the time since its start. A reduce has begun nothing, and repeats its fetches, until
    its master knows that its input is merged, by a report of the task (every 3 s,
    mapreduce.task.progress-report.interval). ``launch_ms``: the time from a new container until it works
    again.
    """
    done_ratio, again_ms = attempt.progress_percent / 100, 0
    since_ms, worked_ms = min(attempt.started_at_ms, now_ms), attempt.elapsed_ms(now_ms)
    if not is_map(attempt.attempt):
        done_ratio, again_ms = (done_ratio - REDUCE_PHASE) / (1 - REDUCE_PHASE), worked_ms
        begun = attempt.merged_at_ms > 0
        since_ms = attempt.merged_at_ms if begun else NOT_BEGUN_MS
        worked_ms = max(0, now_ms - attempt.merged_at_ms) if begun else 0
    return TaskView(
        attempt=attempt.attempt,
        container=container.container,
        node=container.node,
        size=container.size,
        kind="map" if is_map(attempt.attempt) else "reduce",
        remaining_ms=left_ms(worked_ms, done_ratio),
        resume_cost_ms=launch_ms + again_ms,
        since_ms=since_ms,
        generation=0,
        checkpointable=False,
        resumed=False,
    )


def left_ms(worked_ms: int, done_ratio: float) -> int:
    """Return the remaining time at the speed so far; -1: unknown."""
    if worked_ms <= 0 or done_ratio < KNOWN_RATIO:
        return -1
    return int(worked_ms * max(0.0, 1 - done_ratio) / done_ratio)
