"""The state of tasks: running reduces by master, runner and YARN, and the first requests of starting jobs.

An attempt is shown only if YARN's own list contains its container, and counts as checkpointable only in its
reduce phase (``mergeFinishTime`` > 0) with a runner whose status shows it at work. Maps, and reduces of jobs
that are not eligible, are shown only where levers may end them (``plain_tasks``). A job whose master or whose
containers cannot be seen is unreachable as a whole. All calls are bounded in number and in time.

The first requests of a job whose master is starting are predicted by ``deciding/foresight``; this module
passes it the job's name and user, and rounds the asks' sizes as the scheduler would.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.attach.connection.application_guard import ApplicationLook, ReadAnswer
from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.observing.cluster_state import Held, LiveContainers, sizes_of
from yarnctl.attach.observing.plain_tasks import is_map, map_view, reduce_view
from yarnctl.attach.observing.resume_cost import ResumeCosts
from yarnctl.attach.observing.status_line import Progress, needs_java_counters
from yarnctl.attach.observing.victims import TASKS, ObservedVictim, Victim, victims_of
from yarnctl.deciding.foresight import Prediction
from yarnctl.deciding.model import ApplicationView, ContainerRequest, Snapshot, TaskView
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.deciding.reasons.eligibility import EligibilityReason, HoldsResource, OnLabelledNode, OtherKind
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.frameworks.mapreduce.rest import Task, TaskAttempt
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire import views, yarn
from yarnctl.journal.rendering import text
from yarnctl.units import Resources

_LOG = logging.getLogger("yarnctl.attach")

KEPT_MAX = 20_000  # The number of attempts whose progress is kept; the oldest are dropped first


COUNTERS, GROUPS = "org.apache.hadoop.mapreduce.TaskCounter", "REDUCE_INPUT_GROUPS"


class TaskPlace(NamedTuple):
    """The place of an attempt, kept for later orders."""

    application: str
    container: str
    node: str
    size: Resources


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

    def __init__(
        self,
        connection: Connection,
        live: LiveContainers,
        resume_costs: ResumeCosts,
        ineligible: Mapping[str, EligibilityReason],
    ) -> None:
        self._ineligible = ineligible
        self._master = connection.master
        self._live = live
        self._guard = connection.guard
        self._settings = connection.settings
        self._clock = connection.clock
        self.places: dict[str, TaskPlace] = {}
        self.why_not: dict[str, dict[str, str]] = {}
        self._progress: dict[str, Progress] = {}
        self._rates: dict[str, dict[str, float]] = {}
        self._resume_costs = resume_costs

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        """Observe jobs; a Problem for one that does not answer. A job of another kind shows no task."""
        foreign = [name for name in victims if isinstance(self._ineligible.get(name), OtherKind)]
        ours = [name for name in victims if name not in foreign]
        held = self._live.observe(ours)
        counters_max = max(1, self._settings.counters_max // max(1, len(ours)))
        known = {name: self._resume_costs.maps_finished.get(name, 0) for name in ours}
        looks = self._guard.read_each(
            TASKS, lambda name, look: self._look(name, look, known[name], counters_max), ours
        )
        found: dict[str, ObservedVictim] = {name: Victim((), None) for name in foreign}
        return found | victims_of(held, looks, self._victim)

    # --- one master, in a thread of the guard ---------------------------------------------------------

    def _look(
        self, application: str, look: ApplicationLook, maps_finished_at_ms: int, counters_max: int
    ) -> MasterLook | Absent:
        master, at_ms = self._master(application), self._clock()
        running = self._running(master)
        if isinstance(running, Absent):
            return running
        names = [row.task for row in running[: self._settings.tasks_max]]
        attempts: dict[str, tuple[TaskAttempt, ...]] = {}
        has_merged = False
        for task, rows in look.each(master.attempts, names).items():
            if isinstance(rows, Problem):
                return Absent(str(rows))
            if isinstance(rows, Absent):
                return rows  # the master stopped answering in the middle
            has_merged = has_merged or any(map(_merged, rows))
            attempts[task] = tuple(row for row in rows if row.running)
        if has_merged and not maps_finished_at_ms:  # a job's first reduces waited until its last map finished
            found = master.maps_finished_at_ms()
            maps_finished_at_ms = 0 if isinstance(found, Absent) else found
        groups = self._groups(master, look, attempts, counters_max)
        return MasterLook(at_ms, attempts, maps_finished_at_ms, groups)

    def _running(self, master: MasterClient) -> tuple[Task, ...] | Absent:
        rows = master.reduces()
        maps = master.maps() if self._settings.levers else ()
        if isinstance(rows, Absent) or isinstance(maps, Absent):
            return rows if isinstance(rows, Absent) else maps
        return tuple(row for row in (*rows, *maps) if row.state == "RUNNING")

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
            if _merged(row) and needs_java_counters(row, self._progress.get(row.attempt))
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
            self._resume_costs.maps_finished[application] = look.maps_finished_at_ms
        for rows in look.attempts.values():
            for row in rows:
                if row.attempt in look.groups:
                    self.note(row, look.at_ms).java_has_read(look.groups[row.attempt])
        found: list[TaskView] = []
        for task, rows in look.attempts.items():
            for row in rows:
                container = containers.get(row.container)
                if container is not None:
                    found += self._views(application, task, row, container, look.at_ms)
        kept = {one.attempt: self._progress.get(one.attempt) for one in found if not one.checkpointable}
        told = {attempt: progress.why for attempt, progress in kept.items() if progress is not None}
        self.why_not[application] = {attempt: why for attempt, why in told.items() if why}
        return Victim(tuple(sorted(found)), sizes_of(containers.values()))

    def _views(
        self, application: str, task: str, attempt: TaskAttempt, container: yarn.ContainerRow, now_ms: int
    ) -> list[TaskView]:
        """Return an attempt's view, none of a task that runs within its master's container."""
        levers, plain = self._settings.levers, application in self._ineligible
        if not levers:
            return [self._view(application, task, attempt, container, now_ms)]
        if views.kind_of(container) == "am":
            return []
        if not (is_map(attempt.attempt) or plain or attempt.merged_at_ms <= 0):
            return [self._view(application, task, attempt, container, now_ms)]
        self._remember(attempt, TaskPlace(application, container.container, container.node, container.size))
        make = map_view if is_map(attempt.attempt) else reduce_view
        return [make(attempt, container, self._resume_costs.launch_ms(application), now_ms)]

    def _view(
        self, application: str, task: str, attempt: TaskAttempt, container: yarn.ContainerRow, now_ms: int
    ) -> TaskView:
        progress = self.note(attempt, now_ms)
        self._remember(attempt, TaskPlace(application, container.container, container.node, container.size))
        usual = self._usual_rate(task, attempt.attempt, progress)
        reducing = attempt.phase == "reduce"
        return TaskView(
            attempt=attempt.attempt,
            container=container.container,
            node=container.node,
            size=container.size,
            kind="reduce",
            remaining_ms=progress.remaining_ms(attempt, now_ms, usual) if reducing else -1,
            resume_cost_ms=self._resume_costs.cost_ms(application, attempt, progress.done_bytes),
            since_ms=progress.since_ms or max(0, attempt.merged_at_ms) or attempt.started_at_ms,
            generation=progress.generation,
            checkpointable=reducing and progress.checkpointable,
            resumed=progress.generation > 0,
        )

    def note(self, attempt: TaskAttempt, now_ms: int) -> Progress:
        """Apply an observation of an attempt's status line to its kept progress.

        The reason why it cannot be suspended is logged once for each attempt: the job's owner can write it.
        """
        progress = self._progress.get(attempt.attempt)
        if progress is None:
            progress = self._progress[attempt.attempt] = Progress()
        said = progress.why
        progress.apply(attempt, now_ms)
        if progress.why and not said:
            _LOG.info(
                "%s cannot be suspended; its task runner reports: %s", attempt.attempt, ascii(progress.why)
            )
        return progress

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
        self._resume_costs.drop(gone)
        for application in gone:
            self.why_not.pop(application, None)
        for name in [one for one, place in self.places.items() if place.application in gone]:
            del self.places[name]
            self._progress.pop(name, None)


def _merged(attempt: TaskAttempt) -> bool:
    return attempt.merged_at_ms > 0


LOGGED_MAX = 256  # The maximum number of different lines that are logged


class Unmodelled:
    """Excludes tasks on nodes with a label, and tasks with a resource beside memory and vcores.

    YARN counts a container by its node's label, so freed capacity there serves no request without a label.
    The memory and vcores of a container with another resource would serve others. But its queue is guaranteed
    a part of that resource too, which is not read here, and others may get it before the task resumes.
    ``why``: application -> attempt -> why it is left alone, as last observed.
    """

    def __init__(self, live: LiveContainers) -> None:
        self._live = live
        self._labels: dict[str, str] = {}
        self._logged: set[str] = set()
        self.why: dict[str, dict[str, EligibilityReason]] = {}

    def note(self, nodes: Sequence[yarn.NodeRow], left_out: Mapping[str, NotModelled]) -> None:
        """Keep the nodes' labels; log each label, and each kind of ignored request, once."""
        labels = {node.node: views.shown_name(node.partition) for node in nodes if node.partition}
        if labels != self._labels:
            self._labels = labels
            self.why.clear()
        for label in sorted(set(labels.values())):
            if self._is_new(f"label {label}"):
                count = list(labels.values()).count(label)
                message = "ignoring %d of %d nodes, which have the label %s"
                _LOG.warning(message, count, len(nodes), label)
        for name, why in left_out.items():
            if self._is_new(text(why)):
                _LOG.warning("%s %s; yarnctl ignores such requests", name, text(why))

    def _is_new(self, line: str) -> bool:
        if line in self._logged or len(self._logged) >= LOGGED_MAX:
            return False
        self._logged.add(line)
        return True

    def modelled(self, application: str, tasks: tuple[TaskView, ...]) -> tuple[TaskView, ...]:
        """Return the tasks that may be preempted; note why the others are left alone.

        An application with workers chooses which of them leave, so all are left alone if one is.
        """
        found = {task.attempt: why for task in tasks if (why := self._objection(application, task))}
        if found and any(task.kind == "worker" for task in tasks):
            first = next(iter(found.values()))
            found = {task.attempt: found.get(task.attempt, first) for task in tasks}
        self.why.pop(application, None)
        if not found:
            return tasks
        self.why[application] = found
        return tuple(task for task in tasks if task.attempt not in found)

    def _objection(self, application: str, task: TaskView) -> EligibilityReason | None:
        label = self._labels.get(task.node)
        if label is not None:
            return OnLabelledNode(label)
        resource = self._live.holding.get(application, {}).get(task.container)
        return None if resource is None else HoldsResource(views.shown_name(resource))

    def drop(self, applications: Iterable[str]) -> None:
        """Drop the state of applications that have ended."""
        for name in applications:
            self.why.pop(name, None)


LEAST_KEYS = ("yarn.scheduler.minimum-allocation-mb", "yarn.scheduler.minimum-allocation-vcores")
LEAST = Resources(1024, 1)  # YARN's defaults; asks are rounded up to a multiple (vcores: at least)


class StartingJob(NamedTuple):
    """The application id, name and user of a job with a starting master."""

    application: str
    name: str
    user: str


FirstAsksOf = Callable[[StartingJob], tuple[ContainerRequest, ...]]
"""Returns a starting job's first requests in their original sizes; (): not known (yet)."""


class PredictedDemand:
    """Adds the predicted demand of starting jobs to snapshots."""

    def __init__(self, connection: Connection, first_asks: FirstAsksOf) -> None:
        settings = connection.settings
        self._connection = connection
        self._first_asks = first_asks
        self._prediction = Prediction(
            settings.predicted_max, connection.queues.is_preempting, self._predicted
        )
        self._wanted = settings.predicted_max > 0

    @property
    def expected(self) -> bool:
        """Return whether first requests are still predicted; then a snapshot is needed without demand."""
        return self._prediction.expects

    def added(self, snapshot: Snapshot, now_ms: int) -> Snapshot:
        """Return a snapshot with the predicted demand."""
        if not self._wanted:
            return snapshot
        shown = self._prediction.predict(snapshot.applications, now_ms)
        return msgspec.structs.replace(snapshot, applications=shown)

    def _predicted(self, view: ApplicationView) -> tuple[ContainerRequest, ...]:
        row = self._connection.rows.get(view.application)
        if row is None or self._has_label(row):
            return ()
        job = StartingJob(row.application, row.name, row.user)
        asks = attempt(self._first_asks, job)
        if isinstance(asks, Problem):
            return ()
        known = self._connection.configuration or {}
        return tuple(ask._replace(size=normalised(ask.size, known)) for ask in asks)

    def _has_label(self, app: yarn.AppInfo) -> bool:
        labels = views.queue_labels(self._connection.leaves)
        own = yarn.label_in(app.label)
        return bool(labels.get(app.queue, "") if own is None else own)


def normalised(size: Resources, configuration: Mapping[str, str]) -> Resources:
    """Return an ask's size as the capacity scheduler rounds it: memory to multiples of the smallest one."""
    told = [configuration.get(key, "").strip() for key in LEAST_KEYS]
    least = [
        int(text) if text.isascii() and text.isdigit() and int(text) else default
        for text, default in zip(told, LEAST, strict=True)
    ]
    return Resources(-(-size.memory_mib // least[0]) * least[0], max(size.vcores, least[1]))
