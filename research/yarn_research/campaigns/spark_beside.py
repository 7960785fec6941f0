"""``make bench-spark-production``: production beside Spark research on a real Hadoop (research/notes/spark.md).

Law: the plan stands before the first run. Rounds are interleaved, their order drawn; each run is written down
as it ends, a round counts whole or not at all; a file is gone on with at the same commit only.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tests import http_client
from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SparkJob, Work, event_log_in, expected_digest, plugin_in
from tests.hadoop.spark_records import asked
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarn_research.campaigns.schemes import MUTABLE, TUNED, Scheme
from yarn_research.campaigns.spark_events import Told, read
from yarnctl.command_line import print_json
from yarnctl.deciding.model import Drain
from yarnctl.deciding.records import Decision, Record, Transition
from yarnctl.frameworks.spark.observing import executor_in
from yarnctl.frameworks.spark.rest import Executor, ExecutorLogs

KIND = "spark-production"
SHAPE = Shape(nodes=3, node_memory_mib=3072, container_mib=1024, own_hosts=True)
"""Nine containers of 1 GiB: a driver (or master) and eight executors fill them; production is three."""
EXECUTORS, ROUNDS = 8, 5
ARRIVES_RATIO = 1 / 3
"""Production comes when so much of research's keys have begun, however fast the machine is."""
LOADS = {
    "2s": Work("groups", 24, 480, 0.2, 1.0, reduces=240),
    "10s": Work("groups", 24, 480, 0.2, 1.0, reduces=48),
}
"""Research, by the length of its reduce tasks: two keys of 1 s each, or ten."""
PRODUCTION = Plan("production", "production", (300, 240), 0.1, maps=1, user="bob")
MIX = (*QUEUES, "--eviction", "mix", "--room-within", "15s", "--may-lose", "10%")
SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("production-alone", 95, 5, with_research=False),
        Scheme("research-alone", 95, 5, with_production=False),
        Scheme("soft-cap", 33, 67),
        Scheme("yarn-tuned", 95, 5, monitored=True, settings=TUNED),
        Scheme("signal", 95, 5, settings=MUTABLE, attached=True, options=(*MIX, "--cap-queue")),
        Scheme("plugin", 95, 5, attached=True, options=MIX),
    )
}


class Beside(msgspec.Struct):
    """The whole file."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []

    def of_round(self, name: str, number: int) -> list[dict[str, Any]]:
        """Return the counted runs of a round."""
        return [
            run
            for run in self.runs
            if (run["load"], run["round"]) == (name, number) and "left_out" not in run
        ]

    def leave_out(self, name: str, number: int, why: str) -> None:
        """Say of a round's runs that they do not count."""
        for run in self.of_round(name, number):
            run["left_out"] = why


class Stage(NamedTuple):
    """Where rounds are played."""

    cluster: Cluster
    folder: Path
    plugin: str
    file: Path


def opened(file: Path) -> Beside:
    """Return the campaign to go on with, else a new one; raises BadInput where it was another commit's."""
    return gone_on(file, Beside(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))


def order_of(name: str, number: int) -> list[str]:
    """Return the schemes of a round, in the order in which they run."""
    found = list(SCHEMES)
    random.Random(f"{name}-{number}").shuffle(found)
    return found


def run_once(
    stage: Stage, work: Work, scheme: Scheme, at: str, killed: Sequence[Ended] = ()
) -> dict[str, Any]:
    """Run one scheme once; return what was seen. ``killed``: executors that are killed, in their order."""
    stage.cluster.restart_manager(scheme.changes())
    if not scheme.attached:
        return _jobs(stage, work, scheme, at, killed)
    with Attached(stage.cluster, stage.folder / f"state-{at}", scheme.options) as daemon:
        seen = _jobs(stage, work, scheme, at, killed)
        freed = daemon.reached("freed")
        ended = ended_by(asked(daemon), daemon.reached("suspending"), seen.get("production_at_ms", 0))
        return {
            **seen,
            "freed": len(freed),
            "held_s": held_s(freed, daemon.reached("granted")),
            "ended": ended,
            "charged_s": charged_s(daemon.records(), {each.order for each in daemon.reached("suspending")}),
        }


def charged_s(records: Iterable[Record], sent: Collection[str]) -> float:
    """Return the loss that was predicted of the orders that were sent, s."""
    decisions = [record for record in records if isinstance(record, Decision)]
    return (
        sum(
            pull.lever.lost_ms
            for decision in decisions
            for order, pull in zip(decision.orders, decision.pulls, strict=True)
            if pull is not None and order in sent
        )
        / 1000
    )


class Ended(NamedTuple):
    """An executor that was ordered to leave, or is killed, so long after production came."""

    executor: str
    after_s: float


def ended_by(drains: Iterable[Drain], ordered: Iterable[Transition], began_ms: int) -> list[Ended]:
    """Return the executors that orders named, and when each was sent."""
    at_ms = {move.order: move.at_ms for move in ordered}
    return [
        Ended(executor_in(each.application, each.attempt) or "", (at_ms[each.order] - began_ms) / 1000)
        for each in drains
        if each.order in at_ms
    ]


def kill(cluster: Cluster, research: SparkJob, executors: Sequence[Ended], began_ms: int) -> None:
    """Kill executors in their order, each so long after an instant."""
    for each in executors:
        time.sleep(
            max(0.0, began_ms / 1000 + each.after_s - time.time())
        )  # when it was ordered in another run
        rows = {row["id"]: row for row in research.driver("allexecutors")}
        container = Executor(
            each.executor, logs=ExecutorLogs(**rows[each.executor]["executorLogs"])
        ).container
        url = f"{cluster.rm_url}/ws/v1/cluster/containers/{container}/signal/FORCEFUL_SHUTDOWN"
        http_client.post(f"{url}?user.name=root", timeout=20).raise_for_status()


def held_s(freed: Iterable[Transition], granted: Iterable[Transition]) -> list[float]:
    """Return, of each order whose room was given, how long after the container's end, s."""
    ended_ms = {move.order: move.at_ms for move in freed}
    return [(move.at_ms - ended_ms[move.order]) / 1000 for move in granted if move.order in ended_ms]


def _jobs(stage: Stage, work: Work, scheme: Scheme, at: str, killed: Sequence[Ended]) -> dict[str, Any]:
    if not scheme.with_research:
        return {"production": _took(Job(stage.cluster, PRODUCTION, stage.folder, at))}
    folder = stage.folder / f"run-{at}"
    events = folder / "events"
    events.mkdir(parents=True)
    wrap = ("--plugin", stage.plugin) if scheme.name in ("plugin", "killed") else ()
    settings = event_log_in(str(events))
    found: dict[str, Any] = {}
    with SparkJob(
        stage.cluster, folder / "job", wrap=wrap, settings=settings, executors=EXECUTORS, work=work
    ) as research:
        research.until_marked("map", 1)
        began_ms = research.row()["startedTime"]  # its id is looked up among those that run: now it does
        if scheme.with_production:
            research.until_marked("map" if work.program == "scan" else "key", arriving(work))
            job = Job(stage.cluster, PRODUCTION, stage.folder, at)
            found["production_at_ms"] = job.row()["startedTime"]
            kill(stage.cluster, research, killed, found["production_at_ms"])
            found["production"] = _took(job)
            found["arrived_s"] = (found["production_at_ms"] - began_ms) / 1000
        digest = research.until_over()
    with next(events.iterdir()).open(encoding="utf-8") as lines:
        told = read(lines)
    marks = research.counted()
    found["research"] = {
        "took_s": research.took_s(),
        "identical": digest == expected_digest(work.program, work.maps, work.keys),
        "twice": {"maps": marks.maps_twice, "keys": marks.keys_twice, "tasks": marks.tasks_twice},
        "again_s": again_s(told),
        "failures": len(told.task_failures()) + len(told.executor_failures()),
    }
    shutil.rmtree(folder)
    return found


def arriving(work: Work) -> int:
    """Return how many keys (of a scan: maps) have begun when production comes."""
    return round((work.maps if work.program == "scan" else work.keys) * ARRIVES_RATIO)


def _took(job: Job) -> dict[str, Any]:
    ended = job.wait()
    if ended.state != "SUCCEEDED":
        raise AssertionError(f"{job.name} {ended.state}: {job.said()}")
    return {"took_s": ended.took_s, "am_wait_s": ended.am_wait_s}


def again_s(told: Told) -> float:
    """Return the time of all attempts at tasks but the first that succeeded of each, s.

    ``Resubmitted`` is no attempt: it tells of one that had succeeded that its output is lost.
    """
    first: dict[tuple[int, int], int] = {}
    tasks = [each for each in told.tasks if each.reason != "Resubmitted"]
    for each in sorted(tasks, key=lambda each: each.ended_ms):
        if each.reason == "Success":
            first.setdefault((each.stage, each.partition), each.ended_ms - each.began_ms)
    return (sum(each.ended_ms - each.began_ms for each in tasks) - sum(first.values())) / 1000


def play(stage: Stage, beside: Beside, ends_s: float) -> None:
    """Play the rounds that are not whole, while there is time to begin one."""
    for name in LOADS:
        for number in range(1, ROUNDS + 1):
            if {run["scheme"] for run in beside.of_round(name, number)} == set(SCHEMES):
                continue
            if time.monotonic() > ends_s:
                click.echo("no time is left: no further round begins", err=True)
                return
            beside.leave_out(name, number, "its round was not finished on the machine on which it began")
            _round(stage, beside, name, number)


def _round(stage: Stage, beside: Beside, name: str, number: int) -> None:
    for scheme in order_of(name, number):
        run: dict[str, Any] = {"load": name, "round": number, "scheme": scheme, "began": now()}
        run |= {"sitting": len(beside.sittings), "load_before": load()}
        try:
            run |= run_once(stage, LOADS[name], SCHEMES[scheme], f"{len(beside.runs) + 1:03d}")
        except Exception as problem:
            run["left_out"] = failure(problem)
            traceback.print_exc()
        beside.runs.append(run)
        if "left_out" in run:
            beside.leave_out(name, number, "a run of its round failed")
        keep(stage.file, beside)
        told = {key: run.get(key) for key in ("production", "research", "freed", "held_s", "left_out")}
        click.echo(f"{name} {number}/{ROUNDS} {scheme}: {told}", err=True)
        if "left_out" in run:
            return


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no round after this many minutes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, output: Path) -> None:
    """Play what is not played yet, then judge."""
    from yarn_research.campaigns.spark_beside_judging import judged, table

    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    beside = opened(output)
    beside.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-production-"))
    jar = plugin_in(folder)
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        play(Stage(cluster, folder, jar, output), beside, ends_s)
    shutil.rmtree(folder)
    print_json({"claims": judged(beside.runs), "schemes": table(beside.runs)})


if __name__ == "__main__":
    command()
