"""What a master's REST shows: jobs, tasks, attempts and counters in Hadoop's own spelling.

Law: only reading; every number comes from the master's records at this instant. Nothing here knows HTTP.
"""

from __future__ import annotations

from typing import Any

from emulator.live.master.attempts import Attempt
from emulator.live.master.job_report import GROUP, job_counters
from emulator.live.master.live_master import LiveMaster

Counters = dict[str, dict[str, int]]


class MasterViews:
    """The views of one master. ``task_of_id``: id -> (whether a map, number), maps first."""

    def __init__(self, live: LiveMaster) -> None:
        self.live = live
        job = live.tasks.job
        keys = [(True, task) for task in range(len(job.map_ms))]
        keys += [(False, task) for task in range(len(job.reduce_ms))]
        self.task_of_id = {live.attempts.task_id(*key): key for key in keys}

    def _wall(self, at_ms: int) -> int:
        return self.live.pace.wall_of(at_ms) if at_ms else 0

    def _now(self) -> int:
        return self._wall(self.live.kernel.now_ms)

    # --- the job --------------------------------------------------------------------------

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
        """Return what a job's view says of its maps, or of its reduces."""
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
            live.tasks.look(latest)
            done += 1.0 if latest.state == "SUCCEEDED" else 0.0 if latest.over else latest.progress_ratio
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

    # --- tasks and attempts -----------------------------------------------------------------

    def task(self, is_map: bool, task: int) -> dict[str, Any]:
        """GET /jobs/{job}/tasks/{task}."""
        live = self.live
        attempts = live.attempts.of_task.get((is_map, task), [])
        done = next((one for one in reversed(attempts) if one.state == "SUCCEEDED"), None)
        latest = done or (attempts[-1] if attempts else None)
        state, progress = "SCHEDULED", 0.0
        if latest is not None:
            live.tasks.look(latest)
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
        self.live.tasks.look(attempt)
        began_ms, ended_ms = self._wall(attempt.started_at_ms), self._wall(attempt.finished_at_ms)
        shown: dict[str, Any] = {
            "startTime": began_ms,
            "finishTime": ended_ms,
            "elapsedTime": max(0, (ended_ms or self._now()) - began_ms) if began_ms else 0,
            "progress": 100.0 * (1.0 if attempt.state == "SUCCEEDED" else attempt.progress_ratio),
            "id": attempt.id,
            "rack": "/default-rack",
            "state": attempt.state,
            "status": attempt.status,
            "nodeHttpAddress": attempt.node_http,
            "diagnostics": attempt.diagnostics,
            "type": "MAP" if attempt.is_map else "REDUCE",
            "assignedContainerId": attempt.container_id,
        }
        if not attempt.is_map:
            shown.update(self._reduce_spans(attempt, ended_ms))
            if not attempt.over:
                shown["elapsedTime"] = 0  # facts, section 2: Hadoop says 0 while it runs
        return shown

    def _reduce_spans(self, attempt: Attempt, ended_ms: int) -> dict[str, int]:
        began_ms = self._wall(attempt.started_at_ms)
        shuffled_ms, merged_ms = self._wall(attempt.shuffled_at_ms), self._wall(attempt.merged_at_ms)
        return {
            "shuffleFinishTime": shuffled_ms,
            "mergeFinishTime": merged_ms,
            "elapsedShuffleTime": max(0, shuffled_ms - began_ms) if shuffled_ms else 0,
            "elapsedMergeTime": max(0, merged_ms - shuffled_ms) if merged_ms else 0,
            "elapsedReduceTime": max(0, ended_ms - merged_ms) if ended_ms and merged_ms else 0,
        }

    # --- counters -----------------------------------------------------------------------------

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
        own = job_counters(live.tasks.job, live.attempts.all.values(), live.pace.wall_of)
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
