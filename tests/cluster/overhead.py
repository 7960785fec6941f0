"""What it costs a task to be interrupted, from what the cluster itself recorded.

Law: an interruption's cost is work that is not done though a container is held: from the end of the last
key group to the end of the old attempt, and from the start of the next one to its first group; what is
computed again counts on top. Instants are Hadoop's (history server) and the reducer's own log, one clock.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import requests

from tests.cluster.jobs import Job


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
        worked = [row for row in task if (job.groups / str(row["id"])).exists()]
        for old, new in itertools.pairwise(worked):
            found.append(_interruption(job, old, new))
    return found


def reduces(job: Job, history_url: str) -> list[list[dict[str, Any]]]:
    """Return the attempts at each reduce of a finished job, in order."""
    name = job.application.replace("application_", "job_", 1)
    root = f"{history_url}/ws/v1/history/mapreduce/jobs/{name}/tasks"
    tasks = requests.get(f"{root}?type=r", timeout=60).json()["tasks"]["task"]
    answers = [requests.get(f"{root}/{task['id']}/attempts", timeout=60).json() for task in tasks]
    rows = [answer["taskAttempts"]["taskAttempt"] for answer in answers]
    return [sorted(task, key=lambda row: int(row["id"].rpartition("_")[2])) for task in rows]


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
    lines = (line.split(" ") for line in path.read_text(encoding="ascii").splitlines())
    return [(key, float(at_s)) for key, at_s in lines]
