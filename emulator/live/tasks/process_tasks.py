"""Tasks that are processes: their umbilical's messages, and the effect of each.

Law: only an attempt that its master counts as running may commit. A map's output counts from the instant its
process reports that it is done until the map is run again; reduces are told where it is, those that wait at
once. A task that has said nothing new for ``mapreduce.task.timeout`` has failed.
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from emulator.cluster.entities import Container
from emulator.cluster.timing import Timing
from emulator.live.master.attempts import Attempt, FinishedTask, TaskHistory
from emulator.live.master.live_actor import ProcessActor
from emulator.live.master.live_master import LiveMaster, Tasks
from emulator.live.tasks.streaming import ENTRY
from emulator.live.tasks.task_faults import TaskFaults
from emulator.live.tasks.task_specs import SOURCES, InputSplit, Staging, TaskOutput, job_record, plan_splits
from emulator.live.wire.messages import ContainerKind, MasterLaunch, TaskLaunch
from emulator.live.wire.submitted_job import StreamingJob, configuration, number_setting
from emulator.live.wire.umbilical import Report, TaskLine, TaskMessage, UmbilicalServer
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job

PROCESS_TIMING = Timing(am_start_ms=1, launch_ms=0, task_commit_ms=0, job_commit_ms=1, exit_ms=1)
"""Real processes take their own time; nothing is added."""

TIMEOUT_POLLS = 6
"""So often within one time-out a master checks for tasks that report nothing."""


class ProcessTasks(Tasks):
    """The tasks of one streaming job. ``host`` is where tasks reach this master."""

    actor_kind = ProcessActor

    def __init__(
        self, launch: MasterLaunch, job: StreamingJob, work: Path, host: str = "127.0.0.1", bind: str = ""
    ) -> None:
        self.submitted = job
        self.job_id = launch.application.replace("application_", "job_", 1)
        self.problem: BadInput | None = None
        self.splits: list[InputSplit] = []
        self._timeout_ms = 0
        self._faults = TaskFaults({})
        try:
            self.splits = plan_splits(job)
            conf = configuration(job)
            self._timeout_ms = int(number_setting(conf, "mapreduce.task.timeout", 600_000))
            self._faults = TaskFaults(conf)
        except BadInput as problem:
            self.problem = problem
        if job.reduces and not self.splits and self.problem is None:
            self.problem = BadInput("input", "no file to read", "use a folder with files")
        self.job: Job = job_record(job, self.splits)
        self.staging = Staging(work, self.job_id)
        self.history = TaskHistory(self.staging.folder)
        self.output = TaskOutput(job.output)
        self.maps: dict[int, str] = {}
        self._launch = launch
        self._host, self._bind = host, bind or host
        self._token = secrets.token_hex(16)
        self._umbilical = UmbilicalServer(self, self._token)
        self._port = 0
        self._waiting: dict[str, TaskLine] = {}

    def prepare(self, live: LiveMaster) -> None:
        """Get the folders ready and listen for tasks."""
        super().prepare(live)
        if self.problem is not None:
            raise self.problem
        try:
            self.staging.prepare(self.submitted, self.job_id, len(self.splits))
        except OSError as error:
            raise BadInput(f"staging {self.staging.folder}", error.strerror or "cannot be written") from error
        self.output.prepare(first=self._launch.attempt == 1)
        self._port = self._umbilical.start(self._bind)
        if self._timeout_ms:
            self._check_liveness(None)

    def recover(self, done: dict[tuple[str, int], FinishedTask]) -> dict[tuple[str, int], FinishedTask]:
        """Return the finished tasks whose output is still where it was."""
        kept: dict[tuple[str, int], FinishedTask] = {}
        for (kind, task), finished in done.items():
            if kind == "reduce" or not self.submitted.reduces:
                there = self.output.has(task)
            else:
                there = Path(finished.index).exists()
                self.maps[task] = finished.index
            if there and task < len(self.splits if kind == "map" else self.job.reduce_ms):
                kept[kind, task] = finished
        return kept

    def commit(self) -> None:
        """Put the output in place."""
        self.output.commit()

    def abort(self) -> None:
        """Leave no output."""
        if self._port:
            self.output.abort()

    def close(self) -> None:
        """Hang up."""
        self._umbilical.close()

    def launch(self, attempt: Attempt) -> TaskLaunch:
        """Return the launch of an attempt's process."""
        kind: ContainerKind = "map" if attempt.is_map else "reduce"
        spec = {
            "attempt": attempt.id,
            "kind": kind,
            "task": attempt.task,
            "app_attempt": self._launch.attempt,
            "job_file": str(self.staging.job_file),
            "map_folder": str(self.staging.maps),
            "umbilical": (self._host, self._port),
            "token": self._token,
            "split": self.splits[attempt.task] if attempt.is_map else None,
        }
        return TaskLaunch(
            container=attempt.container_id,
            application=self._launch.application,
            kind=kind,
            command=(sys.executable, "-S", "-m", "emulator.live.tasks.streaming"),
            environment={
                ENTRY: json.dumps(spec),
                "PYTHONPATH": SOURCES,
                "USER": self._launch.user,
                "CONTAINER_ID": attempt.container_id,
            },
        )

    def ended(self, attempt: Attempt) -> None:
        """The process is gone: delete what it has left, if it does not count."""
        self._waiting.pop(attempt.id, None)
        if attempt.state != "SUCCEEDED" and (not attempt.is_map or not self.submitted.reduces):
            self.output.drop(attempt.id)

    def ask_to_end(self, attempt: Attempt, ending: str) -> None:
        """Kill it; with a fault set, a map is run again first, so that the next attempt reads other input."""
        live = self.live
        rerun = None if attempt.is_map else self._faults.rerun_map()
        if rerun is not None and live.actor.map_node[rerun] >= 0:
            self.maps.pop(rerun, None)
            self.history.withdrawn(rerun)
            live.actor.rerun_map(rerun)
        live.actor.kill(cast(Container, attempt.container), ending, live.kernel.now_ms)

    def task_hello(self, attempt: str, line: TaskLine) -> bool:
        """A task is up."""
        return bool(self._around(lambda: self._hello(attempt, line)))

    def _around(self, handler: Callable[[], object]) -> object:
        return None if self._live is None else self._live.around(handler)

    def _hello(self, name: str, line: TaskLine) -> bool:
        attempt = self.live.attempts.all.get(name)
        if attempt is None or attempt.over:
            return False
        attempt.state, attempt.line = "RUNNING", line
        attempt.alive_at_ms = self.live.kernel.now_ms
        line.send({"welcome": True})
        if not attempt.is_map:
            self._waiting[name] = line
            for task, index in sorted(self.maps.items()):
                line.send({"map": {"task": task, "index": index}})
        self._faults.begun(attempt, self.live)
        return True

    def task_reported(self, attempt: str, message: TaskMessage, line: TaskLine) -> None:
        """A task has said something."""
        self._around(lambda: self._reported(attempt, message, line))

    def _reported(self, name: str, message: TaskMessage, line: TaskLine) -> None:
        attempt = self.live.attempts.all[name]
        if attempt.over:
            line.send({"die": f"this attempt is {attempt.state}"})
        elif message.report is not None:
            self._report(attempt, message.report)
        elif message.can_commit:
            line.send({"commit": True})
        elif message.done is not None:
            self._report(attempt, message.done)
            self._done(attempt, message.done, line)
        elif message.failed is not None:
            line.send({"bye": True})
            self.live.fail_attempt(attempt, message.failed)

    def _report(self, attempt: Attempt, report: Report) -> None:
        now_ms = self.live.kernel.now_ms
        if report.alive != attempt.alive:
            attempt.alive, attempt.alive_at_ms = report.alive, now_ms
        if report.phase != attempt.phase:
            attempt.phase = report.phase
            if report.phase in ("sort", "reduce"):
                attempt.shuffled_at_ms = attempt.shuffled_at_ms or now_ms
                self._waiting.pop(attempt.id, None)
            if report.phase == "reduce":
                attempt.merged_at_ms = now_ms
                self._faults.begun(attempt, self.live)
        attempt.progress_ratio = report.progress
        attempt.status = report.status
        attempt.counters = report.counters

    def _done(self, attempt: Attempt, report: Report, line: TaskLine) -> None:
        container = cast(Container, attempt.container)
        attempt.progress_ratio = 1.0
        if attempt.is_map and self.submitted.reduces:
            attempt.index = report.index
            self.maps[attempt.task] = report.index
            for waiting in self._waiting.values():
                waiting.send({"map": {"task": attempt.task, "index": report.index}})
        cast(ProcessActor, self.live.actor).done(container)
        line.send({"bye": True})

    def _check_liveness(self, _: object) -> None:
        live = self.live
        now_ms = live.kernel.now_ms
        for attempt in list(live.attempts.all.values()):
            if not attempt.over and now_ms - attempt.alive_at_ms > self._timeout_ms:
                live.fail_attempt(
                    attempt, f"AttemptID:{attempt.id} Timed out after {self._timeout_ms // 1000} secs"
                )
        if not live.over:
            live.later(max(1000, self._timeout_ms // TIMEOUT_POLLS), self._check_liveness)
