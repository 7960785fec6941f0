"""Observe the executors of Spark applications that may be drained, as tasks with a container each.

An executor is shown only if YARN's own list has its container. The submitter's number of executors stays:
those that would take longest to leave. While executors of an application are leaving, no other is a
candidate. One that has not left by its order is shown no more: it takes no block and no task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from yarnctl.attach.connection.application_guard import ReadAnswer, values
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.eligibility.settings_reader import ExecutorReader
from yarnctl.attach.observing.cluster_state import Held, sizes_of
from yarnctl.attach.observing.victims import ObservedVictim, Victim
from yarnctl.attach.orders.connected import Removal, RemoveReason, TrackedOrder
from yarnctl.deciding.model import TaskView
from yarnctl.frameworks.framework import Parts, observed
from yarnctl.frameworks.spark.again import TasksAgain
from yarnctl.frameworks.spark.configuration import ATTEMPTS_OF_SPARK
from yarnctl.frameworks.spark.consent import CHARGES_BOUND, LEAVES_IDLE, places_of
from yarnctl.frameworks.spark.cost import CostTerms, DriverLook, ExecutorCost, StageNow, costs
from yarnctl.frameworks.spark.driver import SparkDriver
from yarnctl.frameworks.spark.rest import ActiveJob, Executor, PluginAnswer, Stage, left_well
from yarnctl.hadoop.proxied import Absent

ACTIVE_MAX, WRITTEN_MAX = 4, 16  # Stages that are read; with more active ones it is left alone
ATTEMPT_MAX = ATTEMPTS_OF_SPARK - 3
"""The last attempt at a stage, from 0, that an order may repeat: two are left for faults of others."""
ROWS_MAX = 10_000  # An application with more active executors, or more running tasks, is left alone

ID_DIGITS_MAX = 9
_NAME = re.compile(r"executor_([0-9]+_[0-9]+)_([0-9]{1,9})")


def name_of(application: str, executor: str) -> str:
    """Return the name of an executor among all attempts: ``executor_<time>_<number>_<executor>``."""
    return f"{application.replace('application_', 'executor_', 1)}_{executor.zfill(6)}"


def executor_in(application: str, name: str) -> str | None:
    """Return the executor's id within its application; None if it belongs to another application."""
    match = _NAME.fullmatch(name)
    if match is None or f"application_{match[1]}" != application:
        return None
    return str(int(match[2]))


def active_in(rows: Iterable[Executor]) -> int:
    """Return the number of active executors, without the driver."""
    return sum(row.is_active and not row.is_driver for row in rows)


class ExecutorObserver:
    """Observes drivers; ``driver`` makes the client of one."""

    def __init__(self, parts: Parts, reader: ExecutorReader, driver: Callable[[str], SparkDriver]) -> None:
        self._parts, self._reader, self._driver = parts, reader, driver
        self._guard, self._clock = parts.connection.guard, parts.connection.clock
        self._written: dict[str, dict[tuple[int, int], Stage]] = {}
        self._again: dict[str, TasksAgain] = {}
        self._ordered: dict[str, set[str]] = {}  # application -> containers that a drain was accepted for
        settings = parts.connection.settings
        self._terms = CostTerms(
            settings.spark_move_bytes_per_ms,
            settings.spark_leave_ms,
            settings.spark_return_ms,
            settings.spark_order_ms,
            settings.spark_idle_ms,
        )

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        """Observe applications; a Problem for one that does not answer. One left alone shows no task."""
        written = self._written = {name: self._written.get(name, {}) for name in victims}
        return observed(
            self._parts,
            self._reader.allowed,
            victims,
            lambda name: look_at(self._driver(name), written[name]),
            self._seen,
        )

    def _seen(self, application: str, held: Held, look: ReadAnswer[DriverLook]) -> Victim:
        self._written[application] = {(each.stage, each.attempt): each for each in look.value.written}
        return self._victim(application, held, look.value)

    def note_order(self, application: str, container: str) -> None:
        """Note that the executor in a container leaves for good: Spark takes no order back."""
        self._ordered.setdefault(application, set()).add(container)

    def at_order(self, application: str) -> tuple[Executor, ...] | Absent | Problem:
        """Return a driver's executors as an order needs them: read anew."""
        return self._guard.read(application, "order", lambda _name, _: self._driver(application).executors())

    @staticmethod
    def still_there(rows: Sequence[Executor], application: str, name: str, container: str) -> str:
        """Return "" if an executor is active in this container by these rows, else its state in words."""
        executor = executor_in(application, name)
        row = next((each for each in rows if each.executor == executor), None)
        if row is None:
            return "unknown"
        if not row.is_active:
            return row.remove_reason[:200] or "gone"
        return "" if row.container == container else f"in {row.container}"

    def settings(self, application: str) -> dict[str, str] | Absent | Problem:
        """Return a driver's current settings."""
        return self._guard.read(application, "start", lambda _name, _: self._driver(application).settings())

    def active(self, application: str) -> int | Absent | Problem:
        """Return the number of active executors, without the driver."""
        rows = self._guard.read(application, "executors", lambda name, _: self._driver(name).executors())
        if isinstance(rows, Absent | Problem):
            return rows
        return active_in(rows)

    def plugin_answer(self, application: str) -> PluginAnswer | Absent | Problem | None:
        """Return the answer of yarnctl's plugin; None if its gauges are not shown."""
        return self._guard.read(
            application, "plugin", lambda _name, _: self._driver(application).plugin_answer()
        )

    def has_pending_task(self, application: str) -> bool | Absent | Problem:
        """Return whether a stage of the running jobs has tasks that have not started."""
        stages = self._guard.read(application, "stages", lambda name, _: self._driver(name).stages())
        if isinstance(stages, Absent | Problem):
            return stages
        return any(each.status in ("ACTIVE", "PENDING") and each.waiting for each in stages)

    def remove_reasons(self, wanted: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        """Return order -> why its executor was removed, by its driver; None: the driver still lists it."""
        names = [one.application for one in wanted]
        told = values(self._guard.read_each("removed", lambda name, _: self._driver(name).executors(), names))
        found: dict[str, RemoveReason] = {}
        for one in wanted:
            rows = told[one.application]
            if isinstance(rows, Absent | Problem):
                found[one.order] = rows
                continue
            executor = executor_in(one.application, one.attempt)
            row = next((each for each in rows if each.executor == executor), None)
            if row is None or row.is_active:
                found[one.order] = None
            else:
                found[one.order] = Removal(row.remove_reason, left_well(row.remove_reason))
        return found

    def _victim(self, application: str, held: Held, look: DriverLook) -> Victim:
        self._ordered = {name: each for name, each in self._ordered.items() if name in self._reader.allowed}
        if not self._parts.are_leaving(application):
            ordered = self._ordered.get(application, ())
            there = tuple(each for each in look.executors if each.container not in ordered)
            look = look._replace(executors=there)
        predicted = self._predicted(application, look, self._clock())
        shown = {
            each.executor: each
            for each in look.executors
            if each.executor in predicted
            and each.container in held.containers
            and each.executor.isascii()
            and each.executor.isdigit()
            and len(each.executor) <= ID_DIGITS_MAX
        }
        staying = self._staying(application, shown, predicted)
        now_ms = self._clock()
        by_bound = CHARGES_BOUND in self._reader.allowed[application].traits
        charged = {name: each.bound_ms if by_bound else each.lost_ms for name, each in predicted.items()}
        tasks = [
            _view(application, each, held, predicted[name], now_ms - charged[name], name not in staying)
            for name, each in shown.items()
        ]
        bound_ms = {
            name_of(application, name): predicted[name].bound_ms
            for name in shown
            if predicted[name].bound_ms > 0
        }
        return Victim(tuple(sorted(tasks)), sizes_of(held.containers.values()), bound_ms)

    def _predicted(self, application: str, look: DriverLook, now_ms: int) -> dict[str, ExecutorCost]:
        self._again = {name: each for name, each in self._again.items() if name in self._reader.allowed}
        again = self._again.setdefault(application, TasksAgain())
        allowed = self._reader.allowed[application]
        found = costs(
            look,
            self._terms,
            now_ms,
            places=places_of(allowed),
            ratios=again.ratios(look, now_ms),
        )
        if not self._parts.are_leaving(application):
            again.expect(look, found)
        return found

    def _staying(
        self, application: str, shown: Iterable[str], predicted: Mapping[str, ExecutorCost]
    ) -> set[str]:
        """Return the executors that are not candidates: without a prediction, or because they must stay."""
        if self._parts.are_leaving(application):
            return set(shown)
        names = [name for name in predicted if name in shown]
        unknown = [name for name in names if predicted[name].room_in_ms < 0]
        known = names[len(unknown) :]
        allowed = self._reader.allowed[application]
        are_idle = LEAVES_IDLE in allowed.traits and all(cost.is_idle for cost in predicted.values())
        keep = 0 if are_idle else max(0, allowed.min_executors - len(unknown))
        return {*unknown, *known[len(known) - min(keep, len(known)) :]}


def look_at(driver: SparkDriver, known: Mapping[tuple[int, int], Stage]) -> DriverLook | Absent:
    """Read a prediction's input: three answers, and three per stage not ``known`` as finished."""
    executors, jobs, stages = driver.executors(), driver.jobs(), driver.stages()
    if isinstance(executors, Absent):
        return executors
    if isinstance(jobs, Absent):
        return jobs
    if isinstance(stages, Absent):
        return stages
    active = [each for each in stages if each.status == "ACTIVE"]
    if len(active) > ACTIVE_MAX:
        return Absent(f"{len(active)} stages are active, at most {ACTIVE_MAX} are supported")
    if again := [each for each in active if each.attempt > ATTEMPT_MAX]:
        return Absent(
            f"stage {again[0].stage} was repeated {again[0].attempt} times; Spark ends such jobs soon"
        )
    if sum(each.is_active for each in executors) > ROWS_MAX:
        return Absent(f"more than {ROWS_MAX} executors are active")
    shown = [_stage_now(driver, each) for each in active]
    wanted = _written(jobs, stages)
    written = [known[which] if which in known else driver.stage(*which) for which in wanted]
    for part in (*shown, *written):
        if isinstance(part, Absent):
            return part
    return DriverLook(
        executors,
        tuple(each for each in shown if isinstance(each, StageNow)),
        tuple(each for each in written if isinstance(each, Stage)),
        tuple(each for each in stages if each.status == "COMPLETE"),
        stages,
    )


def _stage_now(driver: SparkDriver, stage: Stage) -> StageNow | Absent:
    detail = driver.stage(stage.stage, stage.attempt)
    running = driver.running_tasks(stage.stage, stage.attempt)
    if isinstance(detail, Absent):
        return detail
    if isinstance(running, Absent):
        return running
    if len(running) > ROWS_MAX:
        return Absent(f"more than {ROWS_MAX} tasks are running")
    spans_ms = driver.task_spans_ms(stage.stage, stage.attempt) if detail.complete else ()
    if isinstance(spans_ms, Absent) or not spans_ms:
        return StageNow(detail, running, ())
    return StageNow(detail, running, spans_ms[1:], spans_ms[0])


def _written(jobs: Sequence[ActiveJob], stages: Sequence[Stage]) -> list[tuple[int, int]]:
    wanted = {stage for job in jobs for stage in job.stages}
    found = [
        (each.stage, each.attempt)
        for each in stages
        if each.status == "COMPLETE" and each.shuffle_write > 0 and each.stage in wanted
    ]
    return sorted(found, reverse=True)[:WRITTEN_MAX]


def _view(
    application: str, executor: Executor, held: Held, cost: ExecutorCost, since_ms: int, may_leave: bool
) -> TaskView:
    container = held.containers[executor.container]
    return TaskView(
        attempt=name_of(application, executor.executor),
        container=container.container,
        node=container.node,
        size=container.size,
        kind="executor",
        remaining_ms=cost.room_in_ms,
        resume_cost_ms=cost.overhead_ms,
        since_ms=since_ms,
        generation=0,
        checkpointable=may_leave,
        resumed=False,
    )
