"""The client of a job's MapReduce master, through YARN's web proxy (facts, section 2).

A master that does not answer (not started, ended, restarting) gives ``Absent``, never an exception. Any
answer that is not JSON, and every redirect, means Absent: for a master that has ended, the proxy returns its
own pages. Only a refused or uncertain *change* raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.answers import HttpAnswer, Missing, Rejected, Uncertain, decoded, explain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire import mapreduce as wire
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder

Counters = dict[str, dict[str, int]]  # Group -> counter -> value

ATTEMPTS_MAX = 1_000
Made = TypeVar("Made")

_APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")
_INNER = re.compile(r"(?:job|task|attempt)_[0-9]+_[0-9]+(?:_[mr]_[0-9]+(?:_[0-9]+)?)?")


class Absent(msgspec.Struct, frozen=True):
    """Why a master has not answered, as text; ``at``: addresses that could not be reached, ``fault``: why."""

    why: str
    at: str = ""
    fault: str = ""


def absent(to: Transport, problem: Unreachable | Rejected) -> Absent:
    """Return the reason of a failed request to a master."""
    return Absent(str(problem), " and ".join(to.addresses), problem.fault or str(problem))


def approved(transport: Transport, application: str) -> dict[str, str]:
    """Return the query that passes the proxy's warning page; raises BadInput for an invalid id."""
    if _APPLICATION.fullmatch(application) is None:
        raise BadInput(
            f"id {application[:60]!r}", "not an application id", "use the form application_<time>_<number>"
        )
    if transport.identity.method != "kerberos":
        return {}
    transport.keep_cookie(f"checked_{application}", "true", f"/proxy/{application}")
    return {"proxyapproved": "true"}  # else the proxy warns all but the owner


class ProxiedClient:
    """An application's own program, at a path behind YARN's web proxy. The constructor sends nothing."""

    def __init__(self, transport: Transport, application: str, path: str) -> None:
        self._query = approved(transport, application)
        self.application = application
        self._to = transport
        self._root = f"/proxy/{application}{path}"

    def _read(
        self, path: str, decoder: OneDecoder[Any] | ListDecoder[Any], query: dict[str, str] | None = None
    ) -> Any:
        try:
            return self._to.read(self._root + path, decoder, {**self._query, **(query or {})})
        except (Unreachable, Rejected) as problem:
            return absent(self._to, problem)

    def _made(self, to: Callable[[Any], Made], answer: Any) -> Made | Absent:
        """Return an answer of ``_read`` converted by ``to``."""
        return answer if isinstance(answer, Absent) else to(answer)

    def _put(self, path: str, body: bytes) -> HttpAnswer | Absent:
        """Send a change; Absent: it was not made. Raises Rejected and Uncertain."""
        try:
            answer = self._to.change("PUT", self._root + path, body, query=self._query)
        except Uncertain:
            raise
        except (Missing, Unreachable) as problem:
            return Absent(str(problem))
        if answer.status >= 300 or "html" in answer.kind:
            return Absent(explain(answer.url, f"HTTP {answer.status} {answer.kind}", "the program's JSON"))
        return answer


class MasterClient(ProxiedClient):
    """The master of one application."""

    def __init__(self, transport: Transport, application: str) -> None:
        super().__init__(transport, application, "/ws/v1/mapreduce")
        self.job_id = application.replace("application_", "job_", 1)

    def jobs(self) -> tuple[wire.JobRow, ...] | Absent:
        """Return the job of the application (one, as a tuple)."""
        return self._made(tuple, self._read("/jobs", wire.JOBS))

    def job(self) -> wire.JobRow | Absent:
        """Return the application's job."""
        rows = self.jobs()
        if isinstance(rows, Absent):
            return rows
        return next((row for row in rows if row.job == self.job_id), Absent("the job has not started"))

    def reduces(self) -> tuple[wire.Task, ...] | Absent:
        """Return the reduce tasks, finished ones included, ordered by id."""
        return self._tasks("r", "REDUCE")

    def maps(self) -> tuple[wire.Task, ...] | Absent:
        """Return the map tasks, finished ones included, ordered by id."""
        return self._tasks("m", "MAP")

    def _tasks(self, short: str, kind: str) -> tuple[wire.Task, ...] | Absent:
        rows = self._read(f"/jobs/{self.job_id}/tasks", wire.TASKS, {"type": short})
        if isinstance(rows, Absent):
            return rows
        return tuple(sorted((row for row in rows if row.kind in (kind, "")), key=lambda row: row.task))

    def maps_finished_at_ms(self) -> int | Absent:
        """Return when the last finished map finished (0: none has): a shuffle ends after that."""
        rows = self.maps()
        return rows if isinstance(rows, Absent) else max((row.finished_at_ms for row in rows), default=0)

    def attempts(self, task: str) -> tuple[wire.TaskAttempt, ...] | Absent:
        """Return the attempts at one task, ordered by id."""
        rows = self._read(f"/jobs/{self.job_id}/tasks/{_id(task)}/attempts", wire.ATTEMPTS)
        if not isinstance(rows, Absent) and len(rows) > ATTEMPTS_MAX:
            return Absent(f"more than {ATTEMPTS_MAX} attempts at a task")
        return rows if isinstance(rows, Absent) else tuple(sorted(rows, key=lambda row: row.attempt))

    def job_counters(self) -> Counters | Absent:
        """Return the counters of the whole job."""
        return self._counters("", wire.JOB_COUNTERS)

    def task_counters(self, task: str) -> Counters | Absent:
        """Return the counters of one task."""
        return self._counters(f"/tasks/{_id(task)}", wire.TASK_COUNTERS)

    def attempt_counters(self, task: str, attempt: str) -> Counters | Absent:
        """Return the counters of one attempt, a streaming reducer's own ones included."""
        return self._counters(f"/tasks/{_id(task)}/attempts/{_id(attempt)}", wire.ATTEMPT_COUNTERS)

    def configuration(self) -> dict[str, str] | Absent:
        """Return the job's whole configuration (job.xml as it is in effect)."""
        return self._made(
            lambda rows: {row.name: row.value for row in rows},
            self._read(f"/jobs/{self.job_id}/conf", wire.JOB_CONFIGURATION),
        )

    def kill(self, task: str, attempt: str) -> str | Absent:
        """Kill one attempt; it does not count as failed, and a new one is scheduled.

        Returns the echoed word KILLED at once, while the kill itself happens later (facts, section
        2.1). Absent: the master did not get the request. Raises Rejected and Uncertain.
        """
        path = f"/jobs/{self.job_id}/tasks/{_id(task)}/attempts/{_id(attempt)}/state"
        answer = self._put(path, b'{"state":"KILLED"}')
        if isinstance(answer, Absent):
            return answer
        return str(decoded(msgspec.structs.replace(answer, status=200), wire.ATTEMPT_STATE).state)

    def _counters(self, below: str, decoder: OneDecoder[Any]) -> Counters | Absent:
        path = f"/jobs/{self.job_id}{below}/counters"
        return self._made(lambda found: wire.counters(found.groups), self._read(path, decoder))


def _id(given: str) -> str:
    if not _INNER.fullmatch(given):
        raise BadInput(f"id {given[:60]!r}", "not an id of MapReduce", "use an id task_... or attempt_...")
    return given
