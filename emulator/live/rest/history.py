"""History: what the MapReduce history server tells of jobs that have ended (facts, section 2.2).

Law: read only. A job is in the history once it is over, if it ever had a master: one that was killed while it
waited is not. Unlike the real one it forgets with the ResourceManager, and knows nothing of tasks.
"""

from __future__ import annotations

import re
from typing import Any

from emulator.live.records import AppRecord
from emulator.live.rest.asking import bad, missing
from emulator.live.rest.dialect import Dialect
from emulator.live.service import LiveResourceManager
from emulator.live.web import Reply, Request, Web

ROOT = "/ws/v1/history"
_JOB = re.compile(r"job_[0-9]{1,20}_[0-9]{4,9}")


class History:
    """The history server's REST on ``web``."""

    def __init__(self, manager: LiveResourceManager, dialect: Dialect, web: Web) -> None:
        self._manager = manager
        self._dialect = dialect
        for path in (ROOT, f"{ROOT}/info"):
            web.add("GET", path, self._info)
        web.add("GET", f"{ROOT}/mapreduce/jobs", self._jobs)
        web.add("GET", f"{ROOT}/mapreduce/jobs/{{}}", self._job)

    def _info(self, _: Request) -> Reply:
        version = self._dialect.hadoop_version
        told = {
            "startedOn": self._wall(self._manager.started_at_ms),
            "hadoopVersion": version,
            "hadoopBuildVersion": f"{version} from the emulator of yarnctl",
            "hadoopVersionBuiltOn": "1970-01-01T00:00Z",
        }
        return self._dialect.natural("historyInfo", told)

    def _jobs(self, _: Request) -> Reply:
        self._manager.now_ms()
        rows = [self._row(app) for app in self._manager.finished.values() if app.attempts]
        if len(rows) == 1 and self._dialect.version == "3.5":  # the history server of 3.5.0 writes so
            return self._dialect.natural("jobs", {"job": rows[0]})
        return self._dialect.listed("jobs", "job", rows)

    def _job(self, request: Request) -> Reply:
        name = request.values[0]
        if not _JOB.fullmatch(name):
            raise bad(f"JobId string : {name[:60]} is not properly formed")
        self._manager.now_ms()
        app = self._manager.finished.get(name.replace("job_", "application_", 1))
        if app is None or not app.attempts:
            raise missing(f"job, {name}, is not found")
        more = {"uberized": False, "diagnostics": app.diagnostics}
        return self._dialect.natural("job", self._row(app) | more)

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
        }

    def _wall(self, at_ms: int) -> int:
        return self._manager.pace.wall_of(at_ms) if at_ms else 0
