"""The study's jobs: streaming jobs as in the other campaigns, and ``wordcount`` of Hadoop's own examples.

Law: what was lost is taken from the history server and the reducers' own logs, never from yarnctl's words.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hadoop.artifacts import examples_jar
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.overhead import attempts
from yarn_research.campaigns.study_loads import EXPANDED, JAVA, MAP_KIB

WORDS = tuple(f"word{number}" for number in range(997))
LINE_WORDS = 12


class JavaJob(Job):
    """A job of Hadoop's examples: its name is fixed there, so it is known by a tag."""

    def words(self, source: str) -> list[str]:
        """Write the text, once in a cluster; return the command line."""
        text = f"/user/{self.plan.user}/text-{self.plan.maps}"
        if len(self.hdfs.names(text)) < self.plan.maps:
            for number in range(self.plan.maps):
                self.hdfs.write(f"{text}/block-{number:02d}.txt", block(number))
        told = {
            "mapreduce.job.tags": self.name,
            "mapreduce.job.queuename": self.plan.queue,
            "mapreduce.job.reduces": str(len(self.plan.groups)),
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
            **self.plan.settings,
        }
        settings = [word for name, value in told.items() for word in ("-D", f"{name}={value}")]
        jar = str(examples_jar(self.cluster.shape.version))
        return ["hadoop", "jar", jar, "wordcount", *settings, text, self.output]

    def is_this(self, row: Mapping[str, Any]) -> bool:
        """Say whether an application has the tag."""
        return bool(row["applicationTags"] == self.name.lower())


def block(number: int) -> bytes:
    """Return a map's text: the same in each cluster."""
    chance = random.Random(number)
    lines, held = [], 0
    while held < MAP_KIB * 1024:
        lines.append(" ".join(chance.choices(WORDS, k=LINE_WORDS)))
        held += len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()


def submitted(cluster: Cluster, plan: Plan, folder: Path, number: str) -> Job:
    """Submit a job of a load."""
    if plan.work == JAVA:
        return JavaJob(cluster, plan, folder, number)
    if plan.mapper == EXPANDED:
        plan = plan._replace(mapper=f"{sys.executable} expand.py")
    return Job(cluster, plan, folder, number)


def again_s(job: Job) -> float:
    """Return the work of key groups that were begun more than once, s: of each, all but the longest begin.

    A begin lasts until the next one of its attempt; the last one of an attempt counts as a group's work.
    """
    begins = defaultdict[str, list[float]](list)
    for path in job.groups.iterdir():
        lines = [line.split(" ") for line in path.read_text(encoding="ascii").splitlines()]
        ends = (
            [float(at_s) for _, at_s in lines[1:]] + [float(lines[-1][1]) + job.plan.key_s] if lines else []
        )
        for (key, at_s), end_s in zip(lines, ends, strict=True):
            begins[key].append(end_s - float(at_s))
    return sum(sum(spans) - max(spans) for spans in begins.values())


def ended_s(job: Job, history_url: str) -> dict[str, float]:
    """Return the container time of attempts that ended without success, by kind of task (``m``, ``r``)."""
    return {
        kind: sum(
            max(0, row["finishTime"] - row["startTime"]) / 1000
            for task in attempts(job, history_url, kind)
            for row in task
            if row["state"] != "SUCCEEDED"
        )
        for kind in ("m", "r")
    }
