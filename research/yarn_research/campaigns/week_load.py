"""The load of a short week: which jobs come when, and how large they are (rule: ``week_hadoop``).

Law: pure; the same seed gives the same jobs. A part says how they are submitted: with which memory, how long
their reduces are, and whether they are wrapped.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal, NamedTuple

from tests.hadoop.jobs import RESTARTABLE, Plan
from tests.hadoop.spark_draining import Work
from yarn_research.campaigns.study_loads import JAVA

SEED = 46
SLOT_MIB = 512
"""The container of everything but reduces."""
REQUESTED_MIB = {"research": 768, "production": 512}
"""What each reduce requests before any advice, by queue: a burst leaves room for four masters of research."""
REQUESTED_LENGTH_RATIO = 0.6
"""Reduces are so much shorter before any advice, so that the cluster is as full."""
RESEARCH_JOBS, EVERY_S = 33, 52.0
BURSTS, BURST_EVERY_S, BURST_JOBS = 11, 155.0, ("burst-orders", "burst-stock")
NAMES = {"daily-clicks": 0, "daily-sales": 40, "daily-stock": 80, "burst-orders": 0, "burst-stock": 60}
"""The streaming jobs by name, and the MiB that each of their reducers holds."""
REDUCES = {"production": 3, "research": 7}
"""The most reduces of a streaming job."""
PATTERN = ("streaming", "java", "streaming", "spark", "streaming", "java", "streaming", "streaming",
           "spark-service", "streaming", "java")  # fmt: skip
"""The kinds of research's jobs in turn: of 33 jobs 18 are streaming, nine Java, three Spark with a shuffle
service and three without."""

Kind = Literal["streaming", "java", "spark", "spark-service"]
Advice = Mapping[str, int]
"""MiB of a reduce by ``queue/name``."""


class WeekJob(NamedTuple):
    """A job: when it is submitted, s from the beginning, and what it is. ``spark``: what Spark computes."""

    number: str
    at_s: float
    kind: Kind
    plan: Plan
    spark: Work | None = None

    @property
    def is_mapreduce(self) -> bool:
        """Return whether the history server counts its memory."""
        return self.spark is None


def load_of(seed: int = SEED) -> list[WeekJob]:
    """Return all jobs by instant."""
    draw, found = random.Random(seed), list[tuple[float, Kind, Plan, Work | None]]()
    for place in range(RESEARCH_JOBS):
        kind: Kind = PATTERN[place % len(PATTERN)]  # type: ignore[assignment]
        at_s = place * EVERY_S + draw.uniform(0, 15)
        found.append((at_s, kind, *_research(kind, draw)))
    for place in range(BURSTS):
        at_s = 70.0 + place * BURST_EVERY_S + draw.uniform(0, 20)
        for name in BURST_JOBS:
            groups = tuple(draw.randint(120, 200) for _ in range(REDUCES["production"]))
            found.append((at_s, "streaming", _streaming(name, "production", "bob", groups, 1), None))
    found.sort(key=lambda each: (each[0], each[2].name))
    return [WeekJob(f"{place:02d}", round(each[0], 1), *each[1:]) for place, each in enumerate(found, 1)]


def _research(kind: Kind, draw: random.Random) -> tuple[Plan, Work | None]:
    if kind == "streaming":
        name = draw.choice([name for name in NAMES if name.startswith("daily-")])
        groups = tuple(draw.randint(600, 1000) for _ in range(draw.randint(5, REDUCES["research"])))
        return _streaming(name, "research", "alice", groups, 2), None
    if kind == "java":
        return Plan("word-count", "research", (0,), 0.0, draw.choice((8, 12)), 0, "alice", work=JAVA), None
    work = Work("groups", 9, 36, 2.0, draw.choice((2.0, 3.0, 4.0)), reduces=12)
    return Plan("daily-groups", "research", (), user="alice"), work


def _streaming(name: str, queue: str, user: str, groups: tuple[int, ...], maps: int) -> Plan:
    words = ("-cmdenv", f"HOLD_MIB={NAMES[name]}")
    return Plan(name, queue, groups, key_s=0.1, maps=maps, user=user, words=words)


def known_as(job: WeekJob) -> str:
    """Return under which name the cluster knows it: Hadoop's example has one of its own."""
    return f"{job.plan.queue}/{'word count' if job.kind == 'java' else job.plan.name}"


def submitted_as(job: WeekJob, advice: Advice | None, plugin: str = "") -> WeekJob:
    """Return a job as a part submits it: with the memory that was advised, and wrapped where yarnctl runs.

    ``advice`` None: before any; without a row for a job it requests as before. ``plugin``: the jar for Spark;
    "": nothing is wrapped.
    """
    plan = job.plan
    wrapping = ("--spark", "--plugin", plugin) if job.spark else () if job.kind == "java" else RESTARTABLE
    if not plugin or plan.queue != "research":
        wrapping = ()
    if job.is_mapreduce:
        reduce_mib = (advice or {}).get(known_as(job), REQUESTED_MIB[plan.queue])
        ratio = REQUESTED_LENGTH_RATIO if advice is None else 1.0
        groups = tuple(round(count * ratio) for count in plan.groups)
        plan = plan._replace(groups=groups, settings={"mapreduce.reduce.memory.mb": str(reduce_mib)})
    return job._replace(plan=plan._replace(wrap=wrapping))
