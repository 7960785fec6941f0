"""One run of the soak of Spark: an application, one order to some or all of its executors, what came of it.

Law: yarnctl's own port predicts and asks. What is computed twice is counted by user code; when a container is
gone, by YARN's list; tasks and failures are read from Spark's event log.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests import http_client
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import Marks, SparkJob, expected_digest
from yarn_research.campaigns.spark_events import Told, read
from yarn_research.campaigns.spark_soak_set import EXECUTORS, TASKS_BEGUN, Planned, settings_of
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Accepted, Drain, Grow, ObservationRequest, TaskView
from yarnctl.frameworks.spark.observing import executor_in

LOOK_S = 0.1
PATIENCE_S = 90.0
FALLBACK = "/spark/fallback/"
TOLD = re.compile(r"requested a total number of ([0-9]+) executor")
LOSES_MS = 1000
"""A prediction of less lost work than this is none: it is told as an instant, and a look takes its time."""


def now_ms() -> int:
    """Return the present instant, ms since the epoch."""
    return time.time_ns() // 1_000_000


class Stage(NamedTuple):
    """Where runs are played; ``plugin``: the jar."""

    cluster: Cluster
    folder: Path
    plugin: str


def port_to(cluster: Cluster) -> AttachedPort:
    """Return yarnctl's own port, which may act."""
    to = ClusterAddress(resource_managers=(cluster.rm_url,), name_nodes=(cluster.hdfs_url,), user="yarnctl")
    return attach(to, Attachment(enforce=True, levers=True, stable_observations=1), now_ms)


def run_once(stage: Stage, run: Planned) -> dict[str, Any]:
    """Play one run; return what was seen. Raises AssertionError where it did not come to its end."""
    folder = stage.folder / f"run-{run.number:03d}"
    events = folder / "events"
    events.mkdir(parents=True)
    wrap = ["--plugin", stage.plugin] if run.route == "plugin" else []
    wrap += ["--fallback", f"hdfs://{FALLBACK}"] if run.is_whole else []
    job = SparkJob(
        stage.cluster,
        folder / "job",
        wrap=wrap,
        settings=settings_of(run, str(events)),
        cluster_mode=run.mode == "cluster",
        executors=EXECUTORS,
        work=run.work,
        pauses=run.when == "between",
    )
    with job:
        asked = ask(stage.cluster, run, job) if run.leaving else {"executors_asked": [], "predicted": {}}
        job.go_on()
        digest = job.until_over()
    with next(events.iterdir()).open(encoding="utf-8") as lines:
        told = read(lines)
    right = expected_digest(run.program, run.work.maps, run.work.keys)
    for each in asked["executors_asked"]:
        each["rest_s"] = told.rest_ms(each["executor"], asked["ordered_ms"]) / 1000
        each["last_task_s"] = told.last_end_ms(each["executor"], asked["ordered_ms"]) / 1000
    seen = {**asked, **counted(job.counted(), told), "identical": digest == right}
    seen |= {"wanted": wanted(stage.cluster, job.application) if run.leaving else []}
    seen |= {"ended_ms": told.ended_ms}
    shutil.rmtree(folder)
    return seen


def ask(cluster: Cluster, run: Planned, job: SparkJob) -> dict[str, Any]:
    """Order executors to leave, wait until they are gone, and let the application grow again."""
    if run.when == "within":
        job.until_marked("key", TASKS_BEGUN)
    else:
        job.until_marked("pause", 1)
    port = port_to(cluster)
    candidates = until_known(port, run, job)
    looked_ms = now_ms()
    chosen = random.Random(f"{run.number}").sample(candidates, run.leaving)
    cached = sum(row["rddBlocks"] for row in job.driver("allexecutors") if row["isActive"])
    mates = tuple(sorted(each.attempt for each in chosen))
    began_ms = now_ms()
    for number, each in enumerate(chosen):
        order = Drain(f"o-{number}", job.application, each.attempt, each.container, run.number, mates)
        outcome = port.perform(order)
        assert outcome == Accepted(), outcome
    gone_s = until_gone(cluster, job, chosen, began_ms)
    if run.route == "plugin":
        until_told(port, Grow(job.application, (run.number,)))
    grown_ms = now_ms()
    loses = any(looked_ms - each.since_ms > LOSES_MS for each in chosen)
    staying = 0 if run.is_whole else EXECUTORS - run.leaving
    return {
        "ordered_ms": began_ms,
        "grown_ms": grown_ms,
        "executors_asked": [
            {
                "executor": executor_in(job.application, each.attempt),
                "room_in_s": each.remaining_ms / 1000,
                "gone_s": gone_s.get(each.container),
            }
            for each in chosen
        ],
        "predicted": {"tasks_again": staying if loses else 0, "maps_again": cached if run.is_whole else 0},
    }


def wanted(cluster: Cluster, application: str) -> list[int]:
    """Return how many executors in all the driver asked the application's master for, one after the other."""
    logs = sorted(cluster.folder.glob(f"nm-*/logs/{application}/*_000001/stderr"))
    text = "".join(each.read_text(encoding="utf-8", errors="replace") for each in logs)
    return [int(number) for number in TOLD.findall(text)]


def until_told(port: AttachedPort, grow: Grow) -> None:
    """Tell an application to grow until that is accepted, as the daemon does."""
    ends = time.monotonic() + PATIENCE_S
    while (outcome := port.perform(grow)) != Accepted():
        assert time.monotonic() < ends, outcome
        time.sleep(LOOK_S)  # the driver did not answer in time


def until_known(port: AttachedPort, run: Planned, job: SparkJob) -> list[TaskView]:
    """Wait until as many executors as are to leave are candidates with a prediction."""
    ends = time.monotonic() + PATIENCE_S
    port.observe(ObservationRequest())
    found: list[TaskView] = []
    while time.monotonic() < ends:
        port.observe_soon()  # nobody waits for room, so the loop's own look would end at the queues
        look = port.observe(ObservationRequest(victims=(job.application,)))
        found = [each for each in look.tasks.get(job.application, ()) if each.checkpointable]
        if len([each for each in found if each.remaining_ms >= 0]) >= run.leaving:
            return [each for each in found if each.remaining_ms >= 0]
        time.sleep(LOOK_S)  # the port's own pace of looks
    raise AssertionError(f"{len(found)} candidates of {job.application}: {job.said()[-300:]}")


def until_gone(
    cluster: Cluster, job: SparkJob, chosen: Sequence[TaskView], began_ms: int
) -> dict[str, float]:
    """Wait until containers are gone from YARN's list; return when, s from the order (late ones: never)."""
    wanted = {each.container for each in chosen}
    attempts = f"{cluster.rm_url}/ws/v1/cluster/apps/{job.application}/appattempts"
    name = http_client.get(attempts, timeout=20).json()["appAttempts"]["appAttempt"][-1]["appAttemptId"]
    found: dict[str, float] = {}
    while wanted - found.keys() and now_ms() < began_ms + PATIENCE_S * 1000:
        told = http_client.get(f"{attempts}/{name}/containers", timeout=20).json().get("container", [])
        rows = told if isinstance(told, list) else [told]  # one alone is no list
        held = {row["containerId"] for row in rows if row["containerState"] != "COMPLETE"}
        for gone in wanted - held - found.keys():
            found[gone] = (now_ms() - began_ms) / 1000
        time.sleep(LOOK_S)  # how exactly an end is seen
    return found


def counted(marks: Marks, told: Told) -> dict[str, Any]:
    """Return what user code counted, and what the event log tells."""
    return {
        "twice": {"maps": marks.maps_twice, "keys": marks.keys_twice, "tasks": marks.tasks_twice},
        "failures": {
            "tasks": len(told.task_failures()),
            "executors": len(told.executor_failures()),
            "excluded": told.excluded,
            "why": [*told.task_failures(), *told.executor_failures()][:5],
        },
        "stage_attempts": told.stage_attempts,
        "fetch_failed": sum(each.reason == "FetchFailed" for each in told.tasks),
    }
