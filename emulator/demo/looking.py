"""Looking: what the act's programs are doing, by what anybody can see of them: REST and the journal.

Law: it only reads. What does not answer yet is nothing seen; whoever waits has a deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from emulator.live.jobs.submission_client import Client
from yarnctl.deciding.model import Accepted, Suspend
from yarnctl.deciding.records import Performed, Record, Requests, Transition, decode
from yarnctl.errors import YarnctlError
from yarnctl.journal.rendering import said

SAID = {
    "freed": "stopped, nothing lost",
    "granted": "its container is production's now",
    "taken": "its container went to somebody else",
}
"""What is said of an order that reaches a state, where its name would not do."""

Tell = Callable[[str], object]


class DemoCluster:
    """The live emulator as its users see it."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, "demo")

    def application(self, name: str) -> str:
        """Return the id of the application of that name, "" if it is not there yet."""
        rows = self._rows("/ws/v1/cluster/apps", "apps", "app")
        return next((str(row["id"]) for row in rows if row.get("name") == name), "")

    def attempts(self, application: str, task: str) -> list[dict[str, Any]]:
        """Return the attempts at a task, the first one first."""
        return self._rows(f"{self._job(application)}/tasks/{task}/attempts", "taskAttempts", "taskAttempt")

    def reduces_at_work(self, application: str) -> int:
        """Return how many reduces have begun with their keys."""
        tasks = self._rows(f"{self._job(application)}/tasks?type=r", "tasks", "task")
        running = [str(row["id"]) for row in tasks if row.get("state") == "RUNNING"]
        return sum(any(map(at_work, self.attempts(application, task))) for task in running)

    def _job(self, application: str) -> str:
        job = application.replace("application_", "job_", 1)
        return f"/proxy/{application}/ws/v1/mapreduce/jobs/{job}"

    def _rows(self, path: str, outer: str, inner: str) -> list[dict[str, Any]]:
        """Return the rows of a list; none where nothing answers yet, or nothing any more."""
        try:
            return self._client.rows(path, outer, inner)
        except YarnctlError:
            return []


def at_work(attempt: dict[str, Any]) -> bool:
    """Say whether an attempt works on keys, as its runner tells."""
    return attempt.get("state") == "RUNNING" and "phase=run" in str(attempt.get("status"))


class Suspended(msgspec.Struct):
    """One order, from the request on. Instants in ms since the epoch."""

    attempt: str
    asked_at_ms: int
    saved_at_ms: int = 0
    keys_done: int = -1
    resumed: bool = False

    @property
    def task(self) -> str:
        """The task's id."""
        return self.attempt.rpartition("_")[0].replace("attempt_", "task_", 1)

    @property
    def short(self) -> str:
        """What people call the task: r_000002."""
        return self.task[-8:]

    @property
    def took_s(self) -> float:
        """Seconds from the request to the manifest."""
        return (self.saved_at_ms - self.asked_at_ms) / 1000


class Orders:
    """Follows the daemon's journal while it is written; tells what happens to each order."""

    def __init__(self, journal: Path, tell: Tell) -> None:
        self.by_order: dict[str, Suspended] = {}
        self._asked: dict[str, str] = {}
        self._journal = journal
        self._tell = tell
        self._read_bytes = 0

    def look(self) -> None:
        """Take in the whole lines that are new."""
        if not self._journal.exists():
            return
        with self._journal.open("rb") as file:
            file.seek(self._read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            try:
                self._take(decode(line))
            except msgspec.DecodeError:  # the line that closes a journal is no record
                continue

    def _take(self, record: Record) -> None:
        if isinstance(record, Requests):
            asked = [action for action in record.actions if isinstance(action, Suspend)]
            self._asked.update((action.order, action.attempt) for action in asked)
        elif isinstance(record, Performed) and record.action == "suspend":
            if isinstance(record.outcome, Accepted):
                one = Suspended(self._asked[record.order], record.at_ms)
                self.by_order[record.order] = one
                self._tell(f"  {one.short} is asked to save itself and stop")
        elif isinstance(record, Transition) and record.order in self.by_order:
            self._moved(record, self.by_order[record.order])

    def _moved(self, record: Transition, one: Suspended) -> None:
        if record.event == "manifest":
            one.saved_at_ms, one.keys_done = record.at_ms, record.keys_done
            keys = f" {record.keys_done} words" if record.keys_done >= 0 else ""
            self._tell(f"  {one.short} has saved{keys}: {one.took_s:.1f} s from request to manifest")
        elif record.event not in ("accepted", "progress"):
            story = (
                SAID.get(record.target) or f"{record.target.replace('_', ' ')} {said(record.why)}".rstrip()
            )
            self._tell(f"  {one.short}: {story}")

    @property
    def saved(self) -> list[Suspended]:
        """Those that have saved themselves."""
        return [one for one in self.by_order.values() if one.saved_at_ms]
