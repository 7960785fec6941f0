"""What the MapReduce history server answers about jobs that have ended (facts, section 2.2); read only.

A MapReduce job is in the history once it is over, if it ever had a master. Numbers and counters are those its
master reported at its end. Unlike the real one it loses its jobs with the ResourceManager's restart, and has
no counters of single tasks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import AppRecord
from emulator.live.master.master_rest import own_group
from emulator.live.rest.dialect import Dialect
from emulator.live.wire.hadoop_request import bad, missing
from emulator.live.wire.submitted_job import configuration, read_job
from emulator.live.wire.web import Reply, Web, WebRequest
from yarnctl.errors import BadInput

ROOT = "/ws/v1/history"
TOTALS = ("mapsTotal", "mapsCompleted", "reducesTotal", "reducesCompleted")
_JOB = re.compile(r"job_[0-9]{1,20}_[0-9]{4,9}")


class HistoryRest:
    """The history server's REST on ``web``."""

    def __init__(self, manager: LiveResourceManager, dialect: Dialect, web: Web) -> None:
        self._manager = manager
        self._dialect = dialect
        for path in (ROOT, f"{ROOT}/info"):
            web.add("GET", path, self._info)
        web.add("GET", f"{ROOT}/mapreduce/jobs", self._jobs)
        job = f"{ROOT}/mapreduce/jobs/{{job}}"
        web.add("GET", job, self._job)
        web.add("GET", f"{job}/counters", self._counters)
        web.add("GET", f"{job}/conf", self._conf)
        web.add("GET", f"{job}/tasks", self._tasks)
        web.add("GET", f"{job}/tasks/{{task}}/attempts", self._attempts)

    def _info(self, _: WebRequest) -> Reply:
        version = self._dialect.hadoop_version
        told = {
            "startedOn": self._wall(self._manager.started_at_ms),
            "hadoopVersion": version,
            "hadoopBuildVersion": f"{version} from the emulator of yarnctl",
            "hadoopVersionBuiltOn": "1970-01-01T00:00Z",
        }
        return self._dialect.history("historyInfo", told)

    def _jobs(self, request: WebRequest) -> Reply:
        self._manager.now_ms()
        apps = sorted(self._manager.finished.values(), key=lambda app: app.number)
        rows = [self._row(app) for app in apps if _is_kept(app)]
        rows = _filtered(rows, request.query)  # the oldest first, so that a limit cuts the newest
        alone = len(rows) == 1 and self._dialect.version == "3.5"  # the history server of 3.5.0 writes so
        return self._dialect.history("jobs", {"job": rows[0] if alone else rows} if rows else {})

    def _job(self, request: WebRequest) -> Reply:
        app = self._app(request)
        more: dict[str, Any] = {"uberized": False, "diagnostics": app.diagnostics}
        told = {} if app.job_report is None else app.job_report.numbers
        return self._dialect.history("job", self._row(app) | more | told)

    def _counters(self, request: WebRequest) -> Reply:
        app = self._app(request)
        groups = [] if app.job_report is None else [own_group(app.job_report.counters)]
        told = {"id": app.id.replace("application_", "job_", 1), "counterGroup": groups}
        return self._dialect.history("jobCounters", told)

    def _conf(self, request: WebRequest) -> Reply:
        app = self._app(request)
        job = app.id.replace("application_", "job_", 1)
        try:
            settings = configuration(read_job(app.submission.job))
        except BadInput:
            settings = {}
        settings["mapreduce.job.tags"] = ",".join(app.submission.tags)
        rows = [
            {"name": name, "value": value, "source": ["job.xml"]} for name, value in sorted(settings.items())
        ]
        path = f"/tmp/hadoop-yarn/staging/history/done/{job}_conf.xml"  # noqa: S108 - Hadoop's own place
        return self._dialect.history("conf", {"path": path, "property": rows})

    def _tasks(self, request: WebRequest) -> Reply:
        rows = [_task_row(task, attempts) for task, attempts in _by_task(self._app(request)).items()]
        return self._dialect.history("tasks", {"task": rows} if rows else {})

    def _attempts(self, request: WebRequest) -> Reply:
        attempts = _by_task(self._app(request)).get(request.values[1])
        if attempts is None:
            raise missing(f"task not found with id {request.values[1][:60]}")
        return self._dialect.history("taskAttempts", {"taskAttempt": attempts})

    def _app(self, request: WebRequest) -> AppRecord:
        name = request.values[0]
        if not _JOB.fullmatch(name):
            raise bad(f"JobId string : {name[:60]} is not properly formed")
        self._manager.now_ms()
        app = self._manager.finished.get(name.replace("job_", "application_", 1))
        if app is None or not _is_kept(app):
            raise missing(f"job, {name}, is not found")
        return app

    def _row(self, app: AppRecord) -> dict[str, Any]:
        return {
            "submitTime": self._wall(app.submitted_at_ms),
            "startTime": self._wall(app.launched_at_ms),
            "finishTime": self._wall(app.finished_at_ms),
            "id": app.id.replace("application_", "job_", 1),
            "name": app.submission.name,
            "queue": f"root.{app.queue}",
            "user": app.submission.user,
            "state": app.final_status,
            **{name: 0 if app.job_report is None else app.job_report.numbers[name] for name in TOTALS},
        }

    def _wall(self, at_ms: int) -> int:
        return self._manager.driver.wall_of(at_ms) if at_ms else 0


def _is_kept(app: AppRecord) -> bool:
    return bool(app.attempts) and app.submission.kind == "MAPREDUCE"


def _by_task(app: AppRecord) -> dict[str, list[dict[str, Any]]]:
    """Return the attempts of a job by the id of their task, maps first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in () if app.job_report is None else app.job_report.attempts:
        found.setdefault(str(row["id"]).rpartition("_")[0].replace("attempt_", "task_", 1), []).append(row)
    return dict(sorted(found.items()))


def _task_row(task: str, attempts: list[dict[str, Any]]) -> dict[str, Any]:
    done = next((row for row in attempts if row["state"] == "SUCCEEDED"), None)
    last = done or attempts[-1]
    began_ms = min((row["startTime"] for row in attempts if row["startTime"]), default=0)
    return {
        "startTime": began_ms,
        "finishTime": last["finishTime"],
        "elapsedTime": max(0, last["finishTime"] - began_ms) if began_ms else 0,
        "progress": 100.0,
        "id": task,
        "state": last["state"],
        "type": last["type"],
        "successfulAttempt": done["id"] if done else "",
    }


def _filtered(rows: list[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the jobs of a query: of a user, queue, state or span of time, the first ``limit``."""
    for name, field in (("user", "user"), ("queue", "queue"), ("state", "state")):
        if query.get(name):
            rows = [row for row in rows if row[field] == query[name]]
    for name, field in (("started", "startTime"), ("finished", "finishTime")):
        begin_ms, end_ms = _number(query, f"{name}TimeBegin"), _number(query, f"{name}TimeEnd")
        rows = [
            row
            for row in rows
            if (begin_ms is None or row[field] >= begin_ms) and (end_ms is None or row[field] <= end_ms)
        ]
    limit = _number(query, "limit")
    if limit is not None and limit <= 0:
        raise bad("limit value must be greater then 0")
    return rows if limit is None else rows[:limit]


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise bad(f'For input string: "{text[:40]}"')
    return int(text)
