"""``python -m yarn_research.campaigns.restoring --output FILE``: faults while settings are lowered on a real Hadoop.

The rule, written before the first run (ARCHITECTURE, "One reversible change"):

* Thirty faults: 15 beside a Spark application (executors by the plugin, and the maximum of its queue), 15
  beside a Flink job (bounds, and the maximum of its queue). At each, yarnctl is killed by SIGKILL at a point of
  ``POINTS``, then what ``THEN`` says follows; points and successors change in turn.
* A fault counts as played if a record of a lowered setting lay in HDFS when yarnctl was killed.
* It passes if each setting has its value before, and no record is left: within 60 s of the first moment at
  which that can be, plus the 15 s that a daemon waits after its last order. That moment is the later of the
  end of the production job and the start of the successor. An observing daemon must name the command, and
  the command must restore within 60 s.
* Executors are back if as many work as before, or no task waits. The result of each application must be what
  it is without a fault, and Spark counts no failure.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import click
import msgspec

from tests import http_client
from tests.hadoop import flink_rescaling, spark_draining
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.flink_rescaling import WORKERS, FlinkJob, faults_of, install
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import YARNCTL, Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SparkJob, Work, expected_digest, plugin_in
from tests.hadoop.spark_records import asked
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarnctl.command_line import print_json

KIND = "restoring"
POINTS = ("recorded", "asked", "freed", "granted")
THEN = ("restart", "other-host", "without-mix", "observe")
FAULTS_OF_A_JOB = 3
WITHIN_S, AFTER_LAST_ORDER_S, WATCHED_S = 60.0, 15.0, 180.0
MIX = (*QUEUES, "--eviction", "mix", "--may-lose", "50%", "--in-flight", "1", "--cap-queue")
PRODUCTION = Plan("burst", "production", (5,), key_s=0.2, maps=1, user="bob")
EXECUTORS, KEYS, KEY_S = 5, 480, 4.0
NUMBERS, NUMBER_MS = 400_000, 5


class Beside(Protocol):
    """An application that gives, and what yarnctl lowers of it."""

    options: tuple[str, ...]

    def until_working(self) -> None:
        """Wait until it is whole."""

    def is_back(self) -> bool:
        """Say whether its setting has its value before."""


class BesideSpark(SparkJob):
    """A Spark application with the plugin."""

    options: tuple[str, ...] = (*MIX, "--room-within", "30s")

    def until_working(self) -> None:
        """Wait until all executors work."""
        ends_s = time.monotonic() + WATCHED_S
        self.until_marked("key", 5)
        while not self.is_back():
            assert time.monotonic() < ends_s, self.driver("allexecutors")
            time.sleep(1)  # how exactly a beginning is seen

    def is_back(self) -> bool:
        """As many executors work as before, or no task waits."""
        rows = self.driver("allexecutors")
        if sum(each["isActive"] and each["id"] != "driver" for each in rows) >= EXECUTORS:
            return True
        stages = [each for each in self.driver("stages") if each["status"] in ("ACTIVE", "PENDING")]
        return not sum(
            each["numTasks"] - each["numCompleteTasks"] - each["numActiveTasks"] for each in stages
        )


class BesideFlink(FlinkJob):
    """A Flink job."""

    options: tuple[str, ...] = (*MIX, "--room-within", "12s")

    def is_back(self) -> bool:
        """The upper bounds are as before."""
        return self.uppers() == {WORKERS}


class Restorings(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting, each row is a fault."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []


def records(cluster: Cluster) -> list[str]:
    """Return the records of lowered settings in HDFS."""
    names = Hdfs(cluster.hdfs_url, "yarnctl").names("/yarnctl/lock")
    return [name for name in names if name.startswith("changes-")]


def maximum(cluster: Cluster) -> float:
    """Return the maximum of the queue research, in percent."""
    answer = http_client.get(f"{cluster.rm_url}/ws/v1/cluster/scheduler", timeout=30).json()
    rows = answer["scheduler"]["schedulerInfo"]["queues"]["queue"]
    return float(next(row["maxCapacity"] for row in rows if row["queueName"] == "research"))


def reached(cluster: Cluster, daemon: Attached, point: str) -> bool:
    """Return whether a daemon has come to a point."""
    if point == "recorded":
        return bool(records(cluster))
    return bool(asked(daemon)) if point == "asked" else bool(daemon.reached(point))


def until(seen: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is seen; return whether it was."""
    ends_s = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > ends_s:
            return False
        time.sleep(0.5)  # how exactly it is seen
    return True


def end(cluster: Cluster, job: Job) -> str:
    """Let a production job end, by force after a minute; return its final status."""
    if not until(lambda: job.row()["state"] in ("FINISHED", "FAILED", "KILLED"), 60):
        url = f"{cluster.rm_url}/ws/v1/cluster/apps/{job.application}/state?user.name=bob"
        http_client.put(url, json={"state": "KILLED"}, timeout=20)
    return job.wait().state


def restore(cluster: Cluster) -> int:
    """Run ``yarnctl restore --all``; return its exit status."""
    words = [YARNCTL, "restore", "--rm", cluster.rm_url, "--name-node", cluster.hdfs_url, "--all"]
    return subprocess.run([*words, "--wait", "120"], check=False).returncode


def fault(cluster: Cluster, job: Beside, folder: Path, number: int) -> dict[str, Any]:
    """Let production come, kill yarnctl at a point, and let its successor work; return what was seen."""
    point, then = POINTS[number % 4], THEN[number // 4 % 4]
    row: dict[str, Any] = {"point": point, "then": then, "load": load()}
    before, state = maximum(cluster), folder / f"state-{number}"
    with Attached(cluster, state, job.options) as daemon:
        job.until_working()
        quick = Job(cluster, PRODUCTION, folder, f"{number}")
        daemon.until(lambda: reached(cluster, daemon, point), point)
        daemon.kill()
    row["records"], row["maximum"] = len(records(cluster)), maximum(cluster)
    options = QUEUES if then in ("without-mix", "observe") else job.options
    next_state = state if then in ("restart", "without-mix") else folder / f"state-{number}-next"
    with Attached(cluster, next_state, options, enforce=then != "observe") as successor:
        started_s = time.monotonic()
        row["production"] = end(cluster, quick)
        can_s = max(started_s, time.monotonic())
        if then == "observe":
            row["listed"] = until(lambda: "yarnctl restore --all" in successor.said(), 30)
            row["restore_status"] = restore(cluster)
        within_s = WITHIN_S + (0 if then == "observe" else AFTER_LAST_ORDER_S)
        row["back"] = until(
            lambda: job.is_back() and maximum(cluster) == before and not records(cluster), WATCHED_S
        )
        row["back_s"] = round(time.monotonic() - can_s, 1)
    is_listed = then != "observe" or (row["listed"] and row["restore_status"] == 0)
    row["passes"] = row["back"] and row["back_s"] <= within_s and is_listed
    return row


def play_job(
    cluster: Cluster,
    job: Beside,
    folder: Path,
    kind: str,
    numbers: Sequence[int],
    kept: Restorings,
    file: Path,
) -> None:
    """Play the faults of one application; a fault that fails to be played is written down as well."""
    for number in numbers:
        began_s = time.monotonic()
        row: dict[str, Any] = {"kind": kind, "number": number, "began": now()}
        try:
            row |= fault(cluster, job, folder, number)
        except Exception as problem:
            row |= {"failed": failure(problem), "passes": False}
            if records(cluster):
                row["restore_status"] = restore(cluster)
        kept.faults.append({**row, "took_s": round(time.monotonic() - began_s, 1)})
        keep(file, kept)
        click.echo(f"{kind} {number}: {kept.faults[-1]}", err=True)


def next_of(numbers: Sequence[int], kept: Restorings, kind: str) -> list[int]:
    """Return the faults beside the next application: those of ``numbers`` that are not played yet."""
    played = {row["number"] for row in kept.faults if row["kind"] == kind}
    return [number for number in numbers if number not in played][:FAULTS_OF_A_JOB]


def beside_spark(folder: Path, kept: Restorings, file: Path, faults: Sequence[int], ends_s: float) -> None:
    """Play the faults beside Spark that are not played yet."""
    plugin = plugin_in(folder)
    with Cluster(mutable(spark_draining.SHAPE)) as cluster:
        prepare(cluster)
        while (numbers := next_of(faults, kept, "spark")) and time.monotonic() < ends_s:
            first = numbers[0]
            work = Work(maps=24, keys=KEYS, map_s=0.2, key_s=KEY_S, reduces=KEYS // 2)
            spark = BesideSpark(
                cluster, folder / f"spark-{first}", wrap=("--plugin", plugin), executors=EXECUTORS, work=work
            )
            with spark:
                play_job(cluster, spark, folder, "spark", numbers, kept, file)
                (spark.marks / "hurry").touch()
                digest = spark.until_over()
            right = digest == expected_digest(maps=24, keys=KEYS)
            kept.jobs.append({"kind": "spark", "first": first, "right": right, "failures": spark.failures()})
            keep(file, kept)


def beside_flink(folder: Path, kept: Restorings, file: Path, faults: Sequence[int], ends_s: float) -> None:
    """Play the faults beside Flink that are not played yet."""
    with Cluster(mutable(flink_rescaling.SHAPE)) as cluster:
        prepare(cluster)
        there = install(cluster, folder)
        while (numbers := next_of(faults, kept, "flink")) and time.monotonic() < ends_s:
            first = numbers[0]
            job = BesideFlink(cluster, there, f"count-{first}", numbers=NUMBERS, number_ms=NUMBER_MS)
            with job:
                play_job(cluster, job, folder, "flink", numbers, kept, file)
                ended = job.until_over()
                wrong = faults_of(job.written(), NUMBERS)
            kept.jobs.append({"kind": "flink", "first": first, "ended": ended, "faults": wrong})
            keep(file, kept)


def mutable(shape: Shape) -> Shape:
    """Return a shape whose scheduler's configuration can be changed by REST."""
    site = {"yarn.scheduler.configuration.store.class": "memory"}
    return dataclasses.replace(shape, overrides={"yarn-site": site})


def judged(kept: Restorings) -> dict[str, Any]:
    """Return how many faults were played and passed, and the slowest return."""
    rows = [row for row in kept.faults if row.get("records")]
    return {
        "played": len(rows),
        "not_played": len(kept.faults) - len(rows),
        "passed": sum(row["passes"] for row in rows),
        "back_s_max": max((row["back_s"] for row in rows if "back_s" in row), default=None),
        "applications_wrong": sum(
            not job.get("right", not job.get("faults")) or bool(job.get("failures")) for job in kept.jobs
        ),
    }


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no application after this many minutes.")
@click.option("--kind", type=click.Choice(["spark", "flink"]), multiple=True, default=("spark", "flink"))
@click.option("--faults", type=click.IntRange(1), default=15, show_default=True, help="Faults of each kind.")
@click.option("--then", type=click.Choice(THEN), multiple=True, default=THEN, help="What follows the kill.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(
    minutes: float | None, kind: tuple[str, ...], faults: int, then: tuple[str, ...], output: Path
) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    kept = gone_on(output, Restorings(head(KIND, hadoop=spark_draining.SHAPE.version)))
    kept.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="restoring-"))
    numbers = [number for number in range(faults) if THEN[number // 4 % 4] in then]
    for name in kind:
        (beside_spark if name == "spark" else beside_flink)(folder, kept, output, numbers, ends_s)
    shutil.rmtree(folder)
    print_json(judged(kept))


if __name__ == "__main__":
    command()
