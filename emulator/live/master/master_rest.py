"""A master's REST, as the MapReduce AM of Hadoop answers it (facts, hadoop.md section 2).

Law: it tells what is, and changes one thing only: an attempt's state to KILLED. ``elapsedTime`` of a reduce
attempt is 0 while it runs, as it is in Hadoop; progress is what went into the command's pipe, in percent.
Instants are the wall clock's, in ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from emulator.live.master.attempts import Attempt
from emulator.live.master.live_master import LiveMaster
from emulator.live.master.master_views import MasterViews
from emulator.live.wire.web import JSON, Problem, Reply, Request, Web, json_reply

ROOT = "/ws/v1/mapreduce"


class _Wanted(msgspec.Struct):
    state: str


def master_web(live: LiveMaster, web: Web | None = None) -> Web:
    """Return the ASGI application of one master (the ResourceManager's proxy forwards to it)."""
    return MasterRest(live, web or Web()).web


class MasterRest:
    """The routes, and what finds a job, task or attempt by its id."""

    def __init__(self, live: LiveMaster, web: Web) -> None:
        self.live = live
        self.views = views = MasterViews(live)
        self.web = web
        job, task = f"{ROOT}/jobs/{{job}}", f"{ROOT}/jobs/{{job}}/tasks/{{task}}"
        attempt = task + "/attempts/{attempt}"
        self._get("/", lambda _: {"info": views.info()})
        self._get(ROOT, lambda _: {"info": views.info()})
        self._get(f"{ROOT}/info", lambda _: {"info": views.info()})
        self._get(f"{ROOT}/jobs", lambda _: {"jobs": {"job": [views.job()]}})
        self._get(job, lambda _: {"job": views.job()})
        self._get(f"{job}/conf", lambda _: {"conf": views.conf()})
        self._get(f"{job}/counters", lambda _: {"jobCounters": views.job_counters()})
        self._get(f"{job}/jobattempts", lambda _: {"jobAttempts": {"jobAttempt": [views.job_attempt()]}})
        self._get(f"{job}/tasks", self._tasks)
        self._get(task, lambda asked: {"task": views.task(*self._task(asked))})
        self._get(f"{task}/counters", self._task_counters)
        self._get(f"{task}/attempts", self._attempts)
        self._get(attempt, lambda asked: {"taskAttempt": views.attempt(self._attempt(asked))})
        self._get(f"{attempt}/counters", self._attempt_counters)
        self._get(f"{attempt}/state", lambda asked: {"state": self._attempt(asked).state})
        self.web.add("PUT", f"{attempt}/state", self._kill)

    def _get(self, path: str, answer: Callable[[Request], object]) -> None:
        def handle(request: Request) -> Reply:
            if request.values and request.values[0] != self.live.job_id:
                raise Problem(404, "NotFoundException", f"job, {request.values[0]}, is not found")
            found: Reply = self.live.around(lambda: json_reply(answer(request)))
            if found is None:
                raise Problem(404, "NotFoundException", "this master has ended")
            return found

        self.web.add("GET", path, handle)

    def _task(self, request: Request) -> tuple[bool, int]:
        name = request.values[1]
        key = self.views.task_of_id.get(name)
        if key is None:
            raise Problem(404, "NotFoundException", f"task not found with id {name}")
        return key

    def _attempt(self, request: Request) -> Attempt:
        is_map, task = self._task(request)
        attempt = self.live.attempts.all.get(request.values[2])
        if attempt is None or (attempt.is_map, attempt.task) != (is_map, task):
            raise Problem(
                404, "NotFoundException", f"Error getting info on task attempt id {request.values[2]}"
            )
        return attempt

    def _tasks(self, request: Request) -> dict[str, Any]:
        kind = request.query.get("type", "")
        if kind not in ("", "m", "r"):
            raise Problem(400, "BadRequestException", "tasktype must be either m or r")
        rows = [
            self.views.task(is_map, task)
            for is_map, task in self.views.task_of_id.values()
            if not kind or is_map == (kind == "m")
        ]
        return {"tasks": {"task": rows} if rows else {}}

    def _task_counters(self, request: Request) -> dict[str, Any]:
        is_map, task = self._task(request)
        return {"jobTaskCounters": self.views.task_counters(is_map, task)}

    def _attempts(self, request: Request) -> dict[str, Any]:
        key = self._task(request)
        rows = [self.views.attempt(one) for one in self.live.attempts.of_task.get(key, ())]
        return {"taskAttempts": {"taskAttempt": rows} if rows else {}}

    def _attempt_counters(self, request: Request) -> dict[str, Any]:
        return {"jobTaskAttemptCounters": self.views.attempt_counters(self._attempt(request))}

    def _kill(self, request: Request) -> Reply:
        kind = request.header("content-type").partition(";")[0].strip()
        if kind != JSON:
            raise Problem(503, "WebApplicationException", "")  # as 3.4.2 says it
        if request.values[0] != self.live.job_id:
            raise Problem(404, "NotFoundException", f"job, {request.values[0]}, is not found")
        attempt = self._attempt(request)
        wanted = msgspec.json.decode(request.body, type=_Wanted).state
        if wanted == attempt.state:
            return json_reply({"state": wanted})  # nothing to do, whatever it is
        if wanted != "KILLED":
            raise Problem(400, "BadRequestException", "Only 'KILLED' is allowed as a target state.")
        self.live.around(lambda: self.live.kill_attempt(attempt))
        return json_reply({"state": "KILLED"})
