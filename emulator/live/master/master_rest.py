"""A master's REST, as the MapReduce AM of Hadoop answers it (facts, hadoop.md section 2).

It changes one thing only: an attempt's state to KILLED. ``elapsedTime`` of a reduce attempt is 0 while it
runs, as it is in Hadoop; progress is what went into the command's pipe, in %. Instants are the wall clock's,
in ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from emulator.live.master.attempts import Attempt
from emulator.live.master.job_report import GROUP, attempt_row, job_counters
from emulator.live.master.live_master import LiveMaster
from emulator.live.wire.web import JSON, HttpProblem, Reply, Web, WebRequest, json_reply

Counters = dict[str, dict[str, int]]


ROOT = "/ws/v1/mapreduce"


class _Wanted(msgspec.Struct):
    state: str


class MasterRest:
    """The views of one master, and their routes. ``task_of_id``: id -> (is it a map, number), maps first."""

    def __init__(self, live: LiveMaster, web: Web) -> None:
        self.live = live
        self.web = web
        keys = [(True, task) for task in range(len(live.tasks.job.map_ms))]
        keys += [(False, task) for task in range(len(live.tasks.job.reduce_ms))]
        self.task_of_id = {live.attempts.task_id(*key): key for key in keys}
        job, task = f"{ROOT}/jobs/{{job}}", f"{ROOT}/jobs/{{job}}/tasks/{{task}}"
        attempt = task + "/attempts/{attempt}"
        self._get("/", lambda _: {"info": self.info()})
        self._get(ROOT, lambda _: {"info": self.info()})
        self._get(f"{ROOT}/info", lambda _: {"info": self.info()})
        self._get(f"{ROOT}/jobs", lambda _: {"jobs": {"job": [self.job()]}})
        self._get(job, lambda _: {"job": self.job()})
        self._get(f"{job}/conf", lambda _: {"conf": self.conf()})
        self._get(f"{job}/counters", lambda _: {"jobCounters": self.job_counters()})
        self._get(f"{job}/jobattempts", lambda _: {"jobAttempts": {"jobAttempt": [self.job_attempt()]}})
        self._get(f"{job}/tasks", self._tasks)
        self._get(task, lambda asked: {"task": self.task(*self._task(asked))})
        self._get(
            f"{task}/counters", lambda asked: {"jobTaskCounters": self.task_counters(*self._task(asked))}
        )
        self._get(f"{task}/attempts", self._attempts)
        self._get(attempt, lambda asked: {"taskAttempt": self.attempt(self._attempt(asked))})
        self._get(
            f"{attempt}/counters",
            lambda asked: {"jobTaskAttemptCounters": self.attempt_counters(self._attempt(asked))},
        )
        self._get(f"{attempt}/state", lambda asked: {"state": self._attempt(asked).state})
        self.web.add("PUT", f"{attempt}/state", self._kill)

    def _get(self, path: str, answer: Callable[[WebRequest], object]) -> None:
        def handle(request: WebRequest) -> Reply:
            if request.values and request.values[0] != self.live.job_id:
                raise HttpProblem(404, "NotFoundException", f"job, {request.values[0]}, is not found")
            found: Reply = self.live.around(lambda: json_reply(answer(request)))
            if found is None:
                raise HttpProblem(404, "NotFoundException", "this master has ended")
            return found

        self.web.add("GET", path, handle)

    def _task(self, request: WebRequest) -> tuple[bool, int]:
        name = request.values[1]
        key = self.task_of_id.get(name)
        if key is None:
            raise HttpProblem(404, "NotFoundException", f"task not found with id {name}")
        return key

    def _attempt(self, request: WebRequest) -> Attempt:
        is_map, task = self._task(request)
        attempt = self.live.attempts.all.get(request.values[2])
        if attempt is None or (attempt.is_map, attempt.task) != (is_map, task):
            raise HttpProblem(
                404, "NotFoundException", f"Error getting info on task attempt id {request.values[2]}"
            )
        return attempt

    def _tasks(self, request: WebRequest) -> dict[str, Any]:
        kind = request.query.get("type", "")
        if kind not in ("", "m", "r"):
            raise HttpProblem(400, "BadRequestException", "tasktype must be either m or r")
        rows = [
            self.task(is_map, task)
            for is_map, task in self.task_of_id.values()
            if not kind or is_map == (kind == "m")
        ]
        return {"tasks": {"task": rows} if rows else {}}

    def _attempts(self, request: WebRequest) -> dict[str, Any]:
        key = self._task(request)
        rows = [self.attempt(one) for one in self.live.attempts.of_task.get(key, ())]
        return {"taskAttempts": {"taskAttempt": rows} if rows else {}}

    def _kill(self, request: WebRequest) -> Reply:
        kind = request.header("content-type").partition(";")[0].strip()
        if kind != JSON:
            raise HttpProblem(503, "WebApplicationException", "")  # as 3.4.2 answers
        if request.values[0] != self.live.job_id:
            raise HttpProblem(404, "NotFoundException", f"job, {request.values[0]}, is not found")
        attempt = self._attempt(request)
        wanted = msgspec.json.decode(request.body, type=_Wanted).state
        if wanted == attempt.state:
            return json_reply({"state": wanted})  # nothing to do, whatever it is
        if wanted != "KILLED":
            raise HttpProblem(400, "BadRequestException", "Only 'KILLED' is allowed as a target state.")
        self.live.around(lambda: self.live.kill_attempt(attempt))
        return json_reply({"state": "KILLED"})

    def _wall(self, at_ms: int) -> int:
        return self.live.driver.wall_of(at_ms) if at_ms else 0

    def _now(self) -> int:
        return self._wall(self.live.kernel.now_ms)

    def info(self) -> dict[str, Any]:
        """GET /info."""
        live = self.live
        began_ms = self._wall(live.started_at_ms)
        return {
            "appId": live.launch.application,
            "name": live.conf["mapreduce.job.name"],
            "user": live.launch.user,
            "startedOn": began_ms,
            "elapsedTime": self._now() - began_ms,
        }

    def job(self) -> dict[str, Any]:
        """GET /jobs/{job}."""
        live = self.live
        job = live.tasks.job
        began_ms, ended_ms = self._wall(live.started_at_ms), self._wall(live.finished_at_ms)
        shown: dict[str, Any] = {
            "startTime": began_ms,
            "finishTime": ended_ms,
            "elapsedTime": (ended_ms or self._now()) - began_ms,
            "id": live.job_id,
            "name": live.conf["mapreduce.job.name"],
            "queue": f"root.{live.conf['mapreduce.job.queuename'].removeprefix('root.')}",
            "user": live.launch.user,
            "state": "INITED" if live.state == "NEW" else live.state,
            "uberized": False,
            "diagnostics": live.diagnostics,
        }
        for is_map, kind, total in ((True, "map", len(job.map_ms)), (False, "reduce", len(job.reduce_ms))):
            shown.update(self._side(is_map, kind, total))
        return shown

    def _side(self, is_map: bool, kind: str, total: int) -> dict[str, Any]:
        """Return the fields of a job's view about its maps, or its reduces."""
        live = self.live
        states: dict[str, int] = {}
        completed = running = 0
        done = 0.0
        for (map_too, _), attempts in live.attempts.of_task.items():
            if map_too is not is_map:
                continue
            for one in attempts:
                states[one.state] = states.get(one.state, 0) + 1
            latest = attempts[-1]
            completed += latest.state == "SUCCEEDED"
            running += not latest.over
            live.tasks.poll(latest)
            done += latest.part_done
        title = f"{kind.capitalize()}Attempts"
        pending = max(0, total - completed - running)
        return {
            f"{kind}sTotal": total,
            f"{kind}sCompleted": completed,
            f"{kind}sPending": pending,
            f"{kind}sRunning": running,
            f"{kind}Progress": 100.0 * done / total if total else 100.0,
            f"new{title}": states.get("STARTING", 0),
            f"running{title}": states.get("RUNNING", 0),
            f"failed{title}": states.get("FAILED", 0),
            f"killed{title}": states.get("KILLED", 0),
            f"successful{title}": states.get("SUCCEEDED", 0),
        }

    def conf(self) -> dict[str, Any]:
        """GET /jobs/{job}/conf."""
        rows = [
            {"name": name, "value": value, "source": ["job.xml"]}
            for name, value in sorted(self.live.conf.items())
        ]
        return {"path": f"/tmp/hadoop-yarn/staging/{self.live.job_id}/job.xml", "property": rows}  # noqa: S108

    def job_attempt(self) -> dict[str, Any]:
        """GET /jobs/{job}/jobattempts."""
        live = self.live
        return {
            "id": live.launch.attempt,
            "startTime": self._wall(live.started_at_ms),
            "containerId": live.launch.container,
            "nodeHttpAddress": "",
            "nodeId": "",
            "logsLink": "",
        }

    def task(self, is_map: bool, task: int) -> dict[str, Any]:
        """GET /jobs/{job}/tasks/{task}."""
        live = self.live
        attempts = live.attempts.of_task.get((is_map, task), [])
        done = next((one for one in reversed(attempts) if one.state == "SUCCEEDED"), None)
        latest = done or (attempts[-1] if attempts else None)
        state, progress = "SCHEDULED", 0.0
        if latest is not None:
            live.tasks.poll(latest)
            state = "SUCCEEDED" if done else "SCHEDULED" if latest.over else latest.state
            progress = 0.0 if latest.over and not done else 100.0 * latest.progress_ratio
        if live.state in ("FAILED", "KILLED") and done is None:
            state = live.state
        began_ms = self._wall(min((one.started_at_ms for one in attempts), default=0))
        ended_ms = self._wall(done.finished_at_ms) if done else 0
        return {
            "startTime": began_ms,
            "finishTime": ended_ms,
            "elapsedTime": max(0, (ended_ms or self._now()) - began_ms) if began_ms else 0,
            "progress": 100.0 if done else progress,
            "id": live.attempts.task_id(is_map, task),
            "state": state if state != "STARTING" else "SCHEDULED",
            "type": "MAP" if is_map else "REDUCE",
            "successfulAttempt": done.id if done else "",
            "status": latest.status if latest is not None else "",
        }

    def attempt(self, attempt: Attempt) -> dict[str, Any]:
        """GET .../attempts/{attempt}."""
        self.live.tasks.poll(attempt)
        began_ms, ended_ms = self._wall(attempt.started_at_ms), self._wall(attempt.finished_at_ms)
        shown: dict[str, Any] = attempt_row(attempt, self.live.driver.wall_of) | {
            "elapsedTime": max(0, (ended_ms or self._now()) - began_ms) if began_ms else 0,
            "progress": 100.0 * (1.0 if attempt.state == "SUCCEEDED" else attempt.progress_ratio),
        }
        if not attempt.is_map:
            shown.update(self._reduce_spans(attempt, ended_ms))
            if not attempt.over:
                shown["elapsedTime"] = 0  # facts, section 2: Hadoop answers 0 while it runs
        return shown

    def _reduce_spans(self, attempt: Attempt, ended_ms: int) -> dict[str, int]:
        began_ms = self._wall(attempt.started_at_ms)
        shuffled_ms, merged_ms = self._wall(attempt.shuffled_at_ms), self._wall(attempt.merged_at_ms)
        return {
            "elapsedShuffleTime": max(0, shuffled_ms - began_ms) if shuffled_ms else 0,
            "elapsedMergeTime": max(0, merged_ms - shuffled_ms) if merged_ms else 0,
            "elapsedReduceTime": max(0, ended_ms - merged_ms) if ended_ms and merged_ms else 0,
        }

    def _of_task(self, is_map: bool, task: int) -> Counters:
        """Return a task's counters: those of the attempt that counts, or that runs."""
        attempts = self.live.attempts.of_task.get((is_map, task), [])
        done = next((one for one in reversed(attempts) if one.state == "SUCCEEDED"), None)
        latest = done or (attempts[-1] if attempts and not attempts[-1].over else None)
        return latest.counters if latest is not None else {}

    def job_counters(self) -> dict[str, Any]:
        """GET /jobs/{job}/counters."""
        sides: dict[bool, Counters] = {True: {}, False: {}}
        for is_map, task in self.task_of_id.values():
            for group, inside in self._of_task(is_map, task).items():
                total = sides[is_map].setdefault(group, {})
                for name, value in inside.items():
                    total[name] = total.get(name, 0) + value
        groups = sorted(set(sides[True]) | set(sides[False]))
        rows = [_job_group(group, sides) for group in groups]
        live = self.live
        own = job_counters(live.tasks.job, live.attempts.all.values(), live.driver.wall_of)
        return {"id": live.job_id, "counterGroup": [own_group(own), *rows]}

    def task_counters(self, is_map: bool, task: int) -> dict[str, Any]:
        """GET .../tasks/{task}/counters."""
        name = self.live.attempts.task_id(is_map, task)
        return {"id": name, "taskCounterGroup": _groups(self._of_task(is_map, task))}

    def attempt_counters(self, attempt: Attempt) -> dict[str, Any]:
        """GET .../attempts/{attempt}/counters."""
        return {"id": attempt.id, "taskAttemptCounterGroup": _groups(attempt.counters)}


def _groups(counters: Counters) -> list[dict[str, Any]]:
    return [
        {
            "counterGroupName": group,
            "counter": [{"name": name, "value": value} for name, value in sorted(inside.items())],
        }
        for group, inside in sorted(counters.items())
    ]


def own_group(counters: dict[str, int]) -> dict[str, Any]:
    """Return MapReduce's own counters of a job: they have totals only, of neither side."""
    rows = [
        {"name": name, "totalCounterValue": value, "mapCounterValue": 0, "reduceCounterValue": 0}
        for name, value in counters.items()
    ]
    return {"counterGroupName": GROUP, "counter": rows}


def _job_group(group: str, sides: dict[bool, Counters]) -> dict[str, Any]:
    maps, reduces = sides[True].get(group, {}), sides[False].get(group, {})
    rows = [
        {
            "name": name,
            "totalCounterValue": maps.get(name, 0) + reduces.get(name, 0),
            "mapCounterValue": maps.get(name, 0),
            "reduceCounterValue": reduces.get(name, 0),
        }
        for name in sorted(set(maps) | set(reduces))
    ]
    return {"counterGroupName": group, "counter": rows}
