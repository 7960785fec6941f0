"""Attempts: the state of every attempt at every task, and the history of those that succeeded.

Law: an attempt is recorded once and kept while its master runs; states go one way
(STARTING, RUNNING, then one of SUCCEEDED, FAILED, KILLED). Instants are kernel time, 0 while the thing has
not happened. A KILLED attempt is no failure, a FAILED one counts. The history is a file that the next
attempt of the master reads: a line is appended once a task is done and its output in place; a torn last line
is as if it had not been written. What is not in the history is done again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from emulator.cluster.entities import MAP, Container
from emulator.live.wire.umbilical import TaskLine

AttemptState = Literal["STARTING", "RUNNING", "SUCCEEDED", "FAILED", "KILLED"]
OVER = ("SUCCEEDED", "FAILED", "KILLED")


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt at one task; ``container`` is the actor's mirror of the container it runs in.

    ``index`` is where a finished map's output is; ``kept`` what the model of its runner keeps (modelled
    reduces only).
    """

    id: str
    is_map: bool
    task: int
    container: Container | None
    container_id: str = ""
    node: str = ""
    node_http: str = ""
    index: str = ""
    state: AttemptState = "STARTING"
    phase: str = ""
    status: str = ""
    diagnostics: str = ""
    progress_ratio: float = 0.0
    started_at_ms: int = 0
    finished_at_ms: int = 0
    shuffled_at_ms: int = 0
    merged_at_ms: int = 0
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    alive: int = -1
    alive_at_ms: int = 0
    line: TaskLine | None = None
    kept: Any = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in OVER

    @property
    def part_done(self) -> float:
        """How far it has come, 0 to 1; one that ended otherwise than well counts for nothing."""
        return 1.0 if self.state == "SUCCEEDED" else 0.0 if self.over else self.progress_ratio

    def end(self, state: AttemptState, now_ms: int, diagnostics: str = "") -> None:
        """End it; the first end holds."""
        if not self.over:
            self.state = state
            self.finished_at_ms = now_ms
            self.diagnostics = diagnostics
            if self.line is not None and state != "SUCCEEDED":
                self.line.close()
            self.line = None


class Attempts:
    """All attempts of a job, by id, by task and by container."""

    def __init__(self, job_id: str, base: int) -> None:
        self.job_id = job_id
        self.base = base
        """Where this master's numbers begin: (attempt of the application - 1) x 1000."""
        self.all: dict[str, Attempt] = {}
        self.of_task: dict[tuple[bool, int], list[Attempt]] = {}
        self.of_container: dict[int, Attempt] = {}

    def task_id(self, is_map: bool, task: int) -> str:
        """Return a task's id."""
        return f"{self.job_id.replace('job_', 'task_', 1)}_{'m' if is_map else 'r'}_{task:06d}"

    def attempt_id(self, is_map: bool, task: int, number: int) -> str:
        """Return an attempt's id."""
        return f"{self.task_id(is_map, task).replace('task_', 'attempt_', 1)}_{number}"

    def begin(self, container: Container) -> Attempt:
        """Name the next attempt at the task that the actor has put into a container."""
        is_map = container.kind == MAP
        earlier = self.of_task.setdefault((is_map, container.task), [])
        number = self.base + sum(1 for one in earlier if one.container is not None)
        attempt = Attempt(self.attempt_id(is_map, container.task, number), is_map, container.task, container)
        self._keep(attempt)
        self.of_container[container.number] = attempt
        return attempt

    def recover(self, attempt: Attempt) -> None:
        """Add an attempt of an earlier master."""
        self.of_task.setdefault((attempt.is_map, attempt.task), [])
        self._keep(attempt)

    def _keep(self, attempt: Attempt) -> None:
        self.all[attempt.id] = attempt
        self.of_task[attempt.is_map, attempt.task].append(attempt)

    def running(self, is_map: bool, task: int) -> Attempt | None:
        """Return the attempt at a task that has not ended, if there is one."""
        return next((one for one in self.of_task.get((is_map, task), ()) if not one.over), None)


_KEPT = (
    "node",
    "node_http",
    "started_at_ms",
    "shuffled_at_ms",
    "merged_at_ms",
    "finished_at_ms",
    "index",
    "counters",
)
"""What the history keeps of an attempt under the same name."""


class FinishedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is done. ``index`` is a map's output; ``node`` where it ran; instants in ms."""

    kind: str
    task: int
    attempt: str
    container: str
    node: str
    node_http: str = ""
    started_at_ms: int = 0
    shuffled_at_ms: int = 0
    merged_at_ms: int = 0
    finished_at_ms: int = 0
    index: str = ""
    counters: dict[str, dict[str, int]] = {}


def finished_of(attempt: Attempt) -> FinishedTask:
    """Return what the history keeps of an attempt that has succeeded."""
    return FinishedTask(
        kind="map" if attempt.is_map else "reduce",
        task=attempt.task,
        attempt=attempt.id,
        container=attempt.container_id,
        **{field: getattr(attempt, field) for field in _KEPT},
    )


def attempt_of(finished: FinishedTask) -> Attempt:
    """Return the attempt of an earlier master that is in the history."""
    attempt = Attempt(finished.attempt, finished.kind == "map", finished.task, None)
    attempt.state = "SUCCEEDED"
    attempt.progress_ratio = 1.0
    attempt.container_id = finished.container
    for name in _KEPT:
        setattr(attempt, name, getattr(finished, name))
    return attempt


class _HistoryLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    finished: FinishedTask | None = None
    withdrawn_map: int | None = None


class TaskHistory:
    """The history of one job, below its staging folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "history.jsonl"

    def read(self) -> dict[tuple[str, int], FinishedTask]:
        """Return what is done, by kind and task; the last report on a task counts."""
        done: dict[tuple[str, int], FinishedTask] = {}
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return done
        whole = data[: data.rfind(b"\n") + 1]
        for text in whole.splitlines():
            try:
                line = msgspec.json.decode(text, type=_HistoryLine)
            except msgspec.DecodeError:
                continue  # torn by a crash; what came after it is whole
            if line.finished is not None:
                done[line.finished.kind, line.finished.task] = line.finished
            elif line.withdrawn_map is not None:
                done.pop(("map", line.withdrawn_map), None)
        return done

    def finished(self, task: FinishedTask) -> None:
        """Note that a task is done."""
        self._append(_HistoryLine(finished=task))

    def withdrawn(self, task: int) -> None:
        """Note that a map's output must not be used any more."""
        self._append(_HistoryLine(withdrawn_map=task))

    def _append(self, line: _HistoryLine) -> None:
        # A newline first: should the last line be torn, only that one is lost.
        torn = self._is_torn()
        with self.path.open("ab") as file:
            file.write((b"\n" if torn else b"") + msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _is_torn(self) -> bool:
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:
            return False
