"""A short week played on a real Hadoop: its jobs submitted when they are due, watched to their end.

Law: what is noted of a job is the ResourceManager's own, and what a daemon foretold of it while it ran.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from tests import http_client
from tests.hadoop.artifacts import spark_home
from tests.hadoop.configuration import free_ports
from tests.hadoop.history import counters_of
from tests.hadoop.jobs import FINAL, Job, applications, streaming_words, write_input
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import PROGRAM, environment_of, event_log_in, submit_words
from yarn_research.campaigns.spark_map_stages import service_settings
from yarn_research.campaigns.study_jobs import JavaJob
from yarn_research.campaigns.week_load import WeekJob
from yarnctl.attach.bill.oversized import TASK_COUNTERS

LOOK_S = 1.0
PATIENCE_S = 55 * 60.0
KNOWN_S, HISTORY_S = 180.0, 120.0
"""How long a client may take until the ResourceManager knows its job, and Spark's history a job that ended."""
FORETOLD_S = 30.0
"""An interval counts that is given so soon after a job is first shown."""
EXECUTORS = 3
SMALL_MIB = ("480m", "32m")
"""Heap and overhead of everything of Spark: one slot. The least heap that Spark accepts is 450 MiB."""
HISTORY_SERVER = "org.apache.spark.deploy.history.HistoryServer"

Noted = dict[str, Any]


class Services(NamedTuple):
    """What a part needs beside its jobs. ``plugin``: the jar, ``events``: where Spark logs."""

    cluster: Cluster
    folder: Path
    plugin: str
    shuffle_port: int
    events: Path
    spark_history_url: str


class StreamingWeekJob(Job):
    """A streaming job whose name recurs: it is known by a tag."""

    def words(self, source: str) -> list[str]:
        """Write the input; return the command line."""
        write_input(self.hdfs, self.plan, source)
        own = {"mapreduce.job.name": self.plan.name, "mapreduce.job.tags": self.name, **self.plan.settings}
        plan = self.plan._replace(settings=own)
        return streaming_words(self.cluster, plan, self.name, source, self.output, self.groups)

    def is_this(self, row: dict[str, Any]) -> bool:  # type: ignore[override]  # a row is a dict
        """Say whether an application has the tag."""
        return self.name.lower() in row["applicationTags"].split(",")


class SparkWeekJob(Job):
    """An application of Spark in client mode; its marks and its result lie in ``groups``."""

    def __init__(self, services: Services, job: WeekJob, number: str) -> None:
        self._services, self._job = services, job
        super().__init__(services.cluster, job.plan, services.folder, number)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the client that submits it."""
        return {**super().environment, **environment_of(self.cluster)}

    def words(self, source: str) -> list[str]:
        """Return the command line."""
        work = self._job.spark
        assert work is not None
        (self.groups / "go").touch()
        settings = [
            "spark.sql.adaptive.enabled=false",
            f"spark.sql.shuffle.partitions={work.reduce_tasks}",
            "spark.ui.enabled=true",
            *(f"spark.{what}={SMALL_MIB[0]}" for what in ("executor.memory", "yarn.am.memory")),
            *(f"spark.{what}Overhead={SMALL_MIB[1]}" for what in ("executor.memory", "yarn.am.memory")),
            *event_log_in(str(self._services.events)),
            *(service_settings(self._services.shuffle_port) if self._job.kind == "spark-service" else ()),
        ]
        words = submit_words("client", EXECUTORS, settings)
        words[words.index("--name") + 1] = self.name
        folder, result = str(self.groups), str(self.groups / "result")
        return [*words, str(PROGRAM), work.program, folder, *work.words(), result]


def submitted(services: Services, job: WeekJob, part: str) -> Job:
    """Submit a job of a part."""
    number = f"{part}-{job.number}"
    if job.spark:
        return SparkWeekJob(services, job, number)
    kind = JavaJob if job.kind == "java" else StreamingWeekJob
    return kind(services.cluster, job.plan, services.folder, number)


@contextlib.contextmanager
def spark_history(folder: Path, events: Path) -> Iterator[str]:
    """Run Spark's history server over a folder of event logs; give its address."""
    (port,) = free_ports(1)
    words = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    words += [f"-Dspark.history.fs.logDirectory=file://{events}", "-Dspark.history.fs.update.interval=2s"]
    words += [f"-Dspark.history.ui.port={port}", "-cp", f"{spark_home()}/jars/*", HISTORY_SERVER]
    with (folder / "spark-history.log").open("wb") as log:
        server = subprocess.Popen(
            words, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


class Watched(NamedTuple):
    """A job that was submitted, and what is noted of it."""

    job: Job
    since_s: float
    noted: Noted


def play(services: Services, jobs: Sequence[WeekJob], part: str, daemon_url: str = "") -> list[Noted]:
    """Play all jobs; return what is noted of each, by number. Raises AssertionError where one never ends."""
    began_s = time.monotonic()
    due, watched, ended = deque(jobs), list[Watched](), list[Noted]()
    try:
        while due or len(ended) < len(watched):
            if time.monotonic() - began_s > PATIENCE_S:
                raise AssertionError(f"{len(watched) - len(ended)} jobs of {part} do not end")
            while due and time.monotonic() - began_s >= due[0].at_s:
                watched.append(_begun(services, due.popleft(), part))
            rows = applications(services.cluster.rm_url)
            for each in watched:
                if "ended_ms" not in each.noted and _look(each, rows):
                    ended.append(each.noted)
                    _progress(part, each.noted, len(ended), len(jobs))
            if daemon_url:
                _foretold(daemon_url, [each.noted for each in watched if "ended_ms" not in each.noted])
            time.sleep(LOOK_S)  # how exactly ends are told on; instants are the ResourceManager's
        for each in watched:
            each.job.wait()  # its client too: Spark's closes its event log last
    finally:
        for each in watched:
            each.job.stop()
    return sorted(ended, key=lambda noted: str(noted["number"]))


def _begun(services: Services, job: WeekJob, part: str) -> Watched:
    noted: Noted = {"number": job.number, "kind": job.kind, "queue": job.plan.queue, "name": job.plan.name}
    noted["requested_mib"] = int(job.plan.settings.get("mapreduce.reduce.memory.mb", 0))
    return Watched(submitted(services, job, part), time.monotonic(), noted)


def _look(watched: Watched, rows: Sequence[dict[str, Any]]) -> bool:
    """Note an application as the ResourceManager lists it; say whether it has ended."""
    row = next((row for row in rows if watched.job.is_this(row)), None)
    if row is None:
        if time.monotonic() - watched.since_s > KNOWN_S:
            raise AssertionError(f"{watched.job.name} was not submitted: {watched.job.said()}")
        return False
    watched.noted["application"] = row["id"]
    if row["state"] not in FINAL:
        return False
    watched.noted.update(
        submitted_ms=row["startedTime"],
        launched_ms=row["launchTime"],
        ended_ms=row["finishedTime"],
        state=row["finalStatus"],
    )
    return True


def _foretold(url: str, running: Sequence[Noted]) -> None:
    """Note when a daemon first shows each job, and its first intervals of start and end."""
    try:
        answer = http_client.get(f"{url}/v1/applications", timeout=10)
        items = answer.json()["items"] if answer.ok else []
    except http_client.RequestException:
        return  # the next look asks again; a job that is shown late has no interval
    shown, now_ms = {item["application"]: item for item in items}, time.time_ns() // 1_000_000
    for noted in running:
        item = shown.get(noted.get("application", ""))
        if item is None:
            continue
        noted.setdefault("shown_ms", now_ms)
        if now_ms - noted["shown_ms"] > FORETOLD_S * 1000:
            continue
        for target in ("starts", "ends"):
            found = (item.get("when") or {}).get(target)
            if found and target not in noted:
                noted[target] = {**found, "given_ms": now_ms}


def _progress(part: str, noted: Noted, count: int, jobs: int) -> None:
    took_s = (noted["ended_ms"] - noted["submitted_ms"]) / 1000
    told = f"{noted['kind']} {noted['name']} {noted['state']} ({took_s:.0f} s)"
    click.echo(f"{part} {count}/{jobs}: {told}", err=True)


def until_in_histories(services: Services, played: Sequence[Noted]) -> None:
    """Wait until the history servers know every job that succeeded; note its largest reduce, MiB."""
    ends = time.monotonic() + HISTORY_S
    for noted in played:
        if noted["state"] != "SUCCEEDED":
            continue
        if not noted["kind"].startswith("spark"):
            job = noted["application"].replace("application_", "job_", 1)
            counters = counters_of(services.cluster, job)[TASK_COUNTERS]
            noted["peak_mib"] = -(-counters["REDUCE_PHYSICAL_MEMORY_BYTES_MAX"] >> 20)
            continue
        url = f"{services.spark_history_url}/api/v1/applications/{noted['application']}"
        while not _is_complete(url):
            if time.monotonic() > ends:
                raise AssertionError(f"Spark's history does not know {noted['application']}")
            time.sleep(LOOK_S)


def _is_complete(url: str) -> bool:
    try:
        answer = http_client.get(url, timeout=30)
    except http_client.RequestException:
        return False
    return answer.ok and bool(answer.json()["attempts"][0]["completed"])


def note_sums(services: Services, played: Sequence[Noted]) -> None:
    """Note what the ResourceManager says that preemption took from each job."""
    rows = {row["id"]: row for row in applications(services.cluster.rm_url)}
    for noted in played:
        row = rows[noted["application"]]
        noted["masters"] = row["numAMContainerPreempted"]
        noted["preempted"] = row["numNonAMContainerPreempted"] + noted["masters"]
        noted["lost_mib_s"] = row["preemptedMemorySeconds"]
