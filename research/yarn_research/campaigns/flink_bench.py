"""``make bench-flink``: a Flink job beside production in bursts, yarnctl killed at each step (research/notes/flink.md).

Law: the plan stands before the first run. Each job is written down as it ends, also one that failed, and a
file is gone on with at the same commit only. What came of it is read from the journal and from its output.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from tests.hadoop.artifacts import FLINK
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.flink_rescaling import SHAPE, WORKERS, FlinkJob, InstalledFlink, faults_of, install
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_records import asked, grows
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.flink_judging import judged, orders_of, rescales_in
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarnctl.command_line import print_json

KIND = "flink-rescales"
MIX = (*QUEUES, "--eviction", "mix", "--may-lose", "50%", "--in-flight", "1")
PRODUCTION = Plan("burst", "production", (10,), key_s=0.5, maps=1, user="bob")
DIES = ("never", "asked", "freed", "granted", "told")
"""At which step of a burst yarnctl is killed, in turn: ``told``: that the bounds be put back."""
BURSTS, NUMBERS, NUMBER_MS = 10, 320_000, 5
ROOM_S = 10
"""Within which a container is to be free, beside the interval of checkpoints: Flink 2 waits for the next one."""


class Rescales(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting, each row is a job with its bursts."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []


def reached(daemon: Attached, step: str) -> bool:
    """Return whether a daemon, or one before it, has come to a step in this state folder."""
    if step == "asked":
        return bool(asked(daemon))
    return bool(grows(daemon)) if step == "told" else bool(daemon.reached(step))


def burst(cluster: Cluster, job: FlinkJob, folder: Path, number: int) -> dict[str, Any]:
    """Let production come once; return what the journal says, with the bounds at the end."""
    dies = DIES[number % len(DIES)]
    options = (*MIX, "--room-within", f"{ROOM_S + job.interval_s}s")
    with Attached(cluster, folder / f"state-{number}", options) as daemon:
        job.until_working()
        quick = Job(cluster, PRODUCTION, folder, f"{number}")
        if dies not in ("never", "told"):
            daemon.until(lambda: reached(daemon, dies), dies)
            daemon.kill()
            daemon.start()
        state = quick.wait().state
        daemon.until(lambda: reached(daemon, "told"), "larger bounds sent")
        if dies == "told":
            daemon.kill()
            daemon.start()
        daemon.until(lambda: job.uppers() == {WORKERS}, "bounds put back")
        bounds = sorted(job.uppers())
    records = daemon.records()
    return {
        "dies": dies,
        "production": state,
        "bounds": bounds,
        "rescales": rescales_in(records),
        "orders": orders_of(records),
    }


def play_job(
    cluster: Cluster, there: InstalledFlink, folder: Path, first: int, interval_s: int
) -> dict[str, Any]:
    """Let one job count, with bursts from number ``first`` on while it lasts long enough for another."""
    row: dict[str, Any] = {"began": now(), "load_before": load(), "interval_s": interval_s, "bursts": []}
    with FlinkJob(
        cluster, there, f"count-{first}", numbers=NUMBERS, number_ms=NUMBER_MS, interval_s=interval_s
    ) as job:
        try:
            for number in range(first, min(first + 2, BURSTS)):
                row["bursts"].append(burst(cluster, job, folder, number))
            row["ended"] = job.until_over()
            row["faults"] = faults_of(job.written(), NUMBERS)
            row["again_ms"] = job.taken_again() * NUMBER_MS
        except Exception as problem:
            row["failed"] = failure(problem)
            traceback.print_exc()
    return row


def play(cluster: Cluster, folder: Path, file: Path, kept: Rescales, ends_s: float, interval_s: int) -> None:
    """Play jobs until all bursts were, or no time is left to begin one."""
    there = install(cluster, folder)
    for first in range(0, BURSTS, 2):
        if any(row["first"] == first for row in kept.jobs):
            continue
        if time.monotonic() > ends_s:
            click.echo("no time is left: no further job begins", err=True)
            return
        began_s = time.monotonic()
        row = {"first": first, **play_job(cluster, there, folder, first, interval_s)}
        kept.jobs.append({**row, "took_s": round(time.monotonic() - began_s, 1)})
        keep(file, kept)
        told = row.get("failed") or row["faults"] or "each number once"
        click.echo(f"job {first}: {told} ({kept.jobs[-1]['took_s']:.0f} s)", err=True)


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no job after this many minutes.")
@click.option(
    "--interval-s", type=click.IntRange(1, 60), default=2, help="The job's interval of checkpoints."
)
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, interval_s: int, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    kept = gone_on(output, Rescales(head(KIND, hadoop=SHAPE.version, flink=FLINK[1])))
    kept.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="flink-rescales-"))
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        play(cluster, folder, output, kept, ends_s, interval_s)
    shutil.rmtree(folder)
    jobs: Sequence[dict[str, Any]] = kept.jobs
    print_json({"claims": judged(jobs)})


if __name__ == "__main__":
    command()
