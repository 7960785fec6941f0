"""``make bench-mixed``: MapReduce, Spark and Flink research together, production in bursts (research/notes/levers.md).

Law: the plan stands before the first run. What was decided is read from the journal, what a reader is told
from ``yarnctl explain``, what was lost from the daemon's own budgets; outputs say by themselves whether they
are right.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from tests.hadoop.artifacts import FLINK, SPARK
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.configuration import Shape, free_ports
from tests.hadoop.flink_rescaling import FlinkJob, faults_of, install
from tests.hadoop.jobs import RESTARTABLE, YARNCTL, Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SparkJob, Work, expected_digest, plugin_in
from yarn_research.campaigns.kept_file import keep
from yarn_research.campaigns.mixed_judging import judged
from yarn_research.campaigns.provenance import head, load, now
from yarnctl.command_line import print_json
from yarnctl.deciding.records import Decision, Record, Transition

KIND = "mixed"
SHAPE = Shape(nodes=3, node_memory_mib=2560, container_mib=512, own_hosts=True)
"""Fifteen containers of half a GiB: Flink holds five, Spark six (its own are of 1 GiB), MapReduce four."""
MIX = (*QUEUES, "--eviction", "mix", "--room-within", "15s", "--may-lose", "20%", "--in-flight", "1")
PRODUCTION = Plan("burst", "production", (16, 16, 16, 16), key_s=0.5, maps=1, user="bob")
MINUTES, PAUSE_S = 10.0, 30.0
STEADY = Plan("steady", "research", (500, 450, 400), key_s=1.0, maps=1, wrap=RESTARTABLE)
COUNT, WORKERS = 400_000, 4
SPARK_WORK, EXECUTORS = Work("groups", 12, 120, 0.5, 6.0), 2


class Research:
    """The three research jobs."""

    def __init__(self, flink: FlinkJob, spark: SparkJob, steady: Job, expected: dict[str, str]) -> None:
        self.flink, self.spark, self.steady, self.expected = flink, spark, steady, expected

    def until_over(self) -> dict[str, str]:
        """Let them end; return what is wrong with each output (""; nothing)."""
        self.steady.hurry()
        found = {"spark": "", "flink": "", "mapreduce": ""}
        work = SPARK_WORK
        if self.spark.until_over() != expected_digest(work.program, work.maps, work.keys):
            found["spark"] = "another result"
        state = self.steady.wait(600).state
        if state != "SUCCEEDED" or self.steady.digests() != self.expected:
            found["mapreduce"] = f"{state}: another output"
        if self.flink.until_over() != "SUCCEEDED":
            found["flink"] = "did not succeed"
        found["flink"] = found["flink"] or "; ".join(faults_of(self.flink.written(), COUNT))
        return found


@contextmanager
def research(cluster: Cluster, folder: Path) -> Iterator[Research]:
    """Begin all three, and wait until they fill the cluster."""
    there, jar = install(cluster, folder), plugin_in(folder)
    alone = Job(cluster, STEADY, folder, "alone")
    alone.hurry()
    assert alone.wait().state == "SUCCEEDED"
    with ExitStack() as stack:
        flink = FlinkJob(cluster, there, "count", numbers=COUNT, most=WORKERS)
        stack.enter_context(flink)
        spark = SparkJob(
            cluster, folder / "spark", wrap=("--plugin", jar), executors=EXECUTORS, work=SPARK_WORK
        )
        stack.enter_context(spark)
        steady = Job(cluster, STEADY, folder, "1")
        flink.until_working()
        spark.until_marked("key", 2)
        while steady.at_work() < len(STEADY.groups):
            time.sleep(0.25)  # how exactly a beginning is seen
        yield Research(flink, spark, steady, alone.digests())


def told(*words: str) -> dict[str, Any]:
    """Return what a command of yarnctl prints as JSON, with its exit status."""
    done = subprocess.run([YARNCTL, *words, "--json"], capture_output=True, text=True)
    return {"status": done.returncode, "answer": json.loads(done.stdout) if done.stdout.strip() else None}


def orders_of(records: list[Record]) -> list[dict[str, Any]]:
    """Return each order: its lever, its loss as predicted, its last state."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(record, Decision):
            for order, pull, pick in zip(record.orders, record.pulls, record.picks, strict=True):
                lever = "suspend" if pull is None else pull.lever.kind
                lost = 0 if pull is None else pull.lever.lost_ms * pick.task.size[0]
                found[order] = {"order": order, "lever": lever, "lost_mib_ms": lost, "state": "ordered"}
        elif isinstance(record, Transition) and record.order in found:
            found[record.order]["state"] = record.target
    return list(found.values())


def held_mib_ms(records: list[Record]) -> int:
    """Return the container time that research held in the last hour, as the journal has it last."""
    held = {each.payer: each.mib_ms for record in records for each in getattr(record, "held", ())}
    return sum(held.values())


def play(cluster: Cluster, folder: Path, minutes: float) -> dict[str, Any]:
    """Play the bursts; return what was seen."""
    (port,) = free_ports(1)
    options = (*MIX, "--listen", f"127.0.0.1:{port}")
    url = f"http://127.0.0.1:{port}"
    found: dict[str, Any] = {"bursts": [], "budgets": []}
    with research(cluster, folder) as jobs, Attached(cluster, folder / "state", options) as daemon:
        ends_s = time.monotonic() + 60 * minutes
        while time.monotonic() < ends_s:
            burst = Job(cluster, PRODUCTION, folder, f"{len(found['bursts'])}")
            ended = burst.wait()
            found["bursts"].append(ended._asdict())
            found["budgets"].append(told("budgets", "--url", url)["answer"]["items"])
            click.echo(f"burst {len(found['bursts'])}: {ended.state} ({ended.took_s:.0f} s)", err=True)
            time.sleep(PAUSE_S)  # the plan: production comes in bursts
        found["orders"] = orders_of(daemon.records())
        found["held_mib_ms"] = held_mib_ms(daemon.records())
        journal = str(daemon.state_dir / "journal.jsonl")
        for order in found["orders"]:
            said = told("explain", order["order"], "--journal", journal)
            order["explained"] = not said["status"] and order["lever"] in json.dumps(said["answer"])
        found["wrong"] = jobs.until_over()
    found["levers"] = Counter(order["lever"] for order in found["orders"])
    return found


@click.command(help=__doc__)
@click.option("--minutes", default=MINUTES, show_default=True, help="How long production comes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float, output: Path) -> None:
    """Play once, then judge."""
    known = {"hadoop": SHAPE.version, "spark": SPARK["pyspark"], "flink": FLINK[1]}
    kept: dict[str, Any] = {"head": head(KIND, **known), "began": now(), "load_before": load()}
    with tempfile.TemporaryDirectory(prefix="mixed-") as folder, Cluster(SHAPE) as cluster:
        prepare(cluster)
        kept |= play(cluster, Path(folder), minutes)
    keep(output, kept)
    print_json({"claims": judged(kept)})


if __name__ == "__main__":
    command()
