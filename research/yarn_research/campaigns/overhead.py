"""What it costs a task to be interrupted, from what the cluster itself recorded.

Law: an interruption's cost is work that is not done though a container is held: from the end of the last
key group to the end of the old attempt, and from the start of the next one to its first group; what is
computed again counts on top. Instants are Hadoop's (history server) and the reducer's own log, one clock.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

from tests.hadoop.history import asked_at
from tests.hadoop.jobs import Job


class Interruption(NamedTuple):
    """One attempt that was ended early and the next one; spans in seconds.

    ``stopping_s``: last group done to attempt's end. ``starting_s``: next attempt's start to its first key
    group. ``again_s``: work that the next attempts did again.
    """

    attempt: str
    stopping_s: float
    starting_s: float
    again_s: float

    @property
    def overhead_s(self) -> float:
        """The whole cost."""
        return self.stopping_s + self.starting_s + self.again_s


def interruptions(job: Job, history_url: str) -> list[Interruption]:
    """Return every interruption of a finished job's reduces that had begun to work."""
    found = []
    for task in reduces(job, history_url):
        worked = [row for row in task if _log(job.groups / str(row["id"]))]
        for old, new in itertools.pairwise([*_forgotten(job, task), *worked]):
            found.append(_interruption(job, old, new))
    return found


def _forgotten(job: Job, task: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the attempts of a task that died with their master: the history has none of them.

    When they ended nobody tells; their last group is taken for it, so that stopping costs nothing here.
    """
    known = {str(row["id"]) for row in task}
    stem = str(task[0]["id"]).rpartition("_")[0]
    paths = sorted(path for path in job.groups.glob(f"{stem}_*") if path.name not in known and _log(path))
    return [
        {"id": path.name, "finishTime": round((_log(path)[-1][1] + job.plan.key_s) * 1000)} for path in paths
    ]


def reduces(job: Job, history_url: str) -> list[list[dict[str, Any]]]:
    """Return the attempts at each reduce of a finished job, in order."""
    return attempts(job, history_url, "r")


def timetable(job: Job, history_url: str) -> dict[str, Any]:
    """Return when everything of a finished job happened, ms since the ResourceManager took it.

    ``master_ms`` is the start of its master, ``maps`` are (start, end), ``reduces`` by task: (start,
    shuffled, merged, first group, last group's end, end, state); -1 where nothing happened.
    """
    zero_ms = job.row()["startedTime"]
    maps = attempts(job, history_url, "m")
    return {
        "master_ms": _history(job, history_url, "")["job"]["startTime"] - zero_ms,
        "maps": [(row["startTime"] - zero_ms, row["finishTime"] - zero_ms) for task in maps for row in task],
        "reduces": [[_spans(job, row, zero_ms) for row in task] for task in reduces(job, history_url)],
        "ended_ms": job.row()["finishedTime"] - zero_ms,
    }


def _spans(job: Job, row: dict[str, Any], zero_ms: int) -> tuple[int | str, ...]:
    begun = _log(job.groups / str(row["id"]))
    first, last = (begun[0][1], begun[-1][1] + job.plan.key_s) if begun else (-1.0, -1.0)
    seen = (row["startTime"], row.get("shuffleFinishTime", 0), row.get("mergeFinishTime", 0))
    spans = (*seen, round(first * 1000), round(last * 1000), row["finishTime"])
    return (*(at_ms - zero_ms if at_ms > 0 else -1 for at_ms in spans), str(row["state"]))


def attempts(job: Job, history_url: str, kind: str) -> list[list[dict[str, Any]]]:
    """Return the attempts at each task of a finished job of a kind (``m``, ``r``), in order."""
    tasks = _history(job, history_url, f"/tasks?type={kind}")["tasks"]["task"]
    answers = [_history(job, history_url, f"/tasks/{task['id']}/attempts") for task in tasks]
    rows = [answer["taskAttempts"]["taskAttempt"] for answer in answers]
    return [sorted(task, key=lambda row: int(row["id"].rpartition("_")[2])) for task in rows]


def _history(job: Job, history_url: str, path: str) -> dict[str, Any]:
    return asked_at(history_url, job.application.replace("application_", "job_", 1), path.lstrip("/"))


def _interruption(job: Job, old: dict[str, Any], new: dict[str, Any]) -> Interruption:
    before, after = _log(job.groups / str(old["id"])), _log(job.groups / str(new["id"]))
    done = {key for key, _ in before}
    again = sum(key in done for key, _ in after)
    last_done_s = before[-1][1] + job.plan.key_s
    first_s = after[0][1] if after else new["finishTime"] / 1000
    return Interruption(
        str(old["id"]),
        max(0.0, old["finishTime"] / 1000 - last_done_s),
        first_s - new["startTime"] / 1000,
        again * job.plan.key_s,
    )


def _log(path: Path) -> list[tuple[str, float]]:
    """Return an attempt's key groups and their begins; none of one that was stopped before its first."""
    if not path.exists():
        return []
    lines = (line.split(" ") for line in path.read_text(encoding="ascii").splitlines())
    return [(key, float(at_s)) for key, at_s in lines]
