"""``make bench-spark``: executors of a real Spark are asked at random; results and counts (research/notes/spark.md).

Law: the plan stands before the first run. Each run is written down as it ends, also one that failed, and none
is played twice; a file is gone on with at the same commit only.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import prepare
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, plugin_in
from yarn_research.campaigns.bench import tried
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, machine, now
from yarn_research.campaigns.spark_soak_judging import judged, table
from yarn_research.campaigns.spark_soak_runs import FALLBACK, Stage, run_once
from yarn_research.campaigns.spark_soak_set import EXECUTORS, Planned, planned
from yarnctl.command_line import print_json

KIND = "spark-soak"
FAILURES_MAX = 6


class Soak(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting, each run names its own."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []


def opened(file: Path) -> Soak:
    """Return the soak to go on with, else a new one; raises BadInput where it was another commit's."""
    return gone_on(file, Soak(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))


def play(stage: Stage, soak: Soak, file: Path, ends_s: float) -> None:
    """Play the runs that were not played, while there is time to begin one."""
    played, failed = {run["number"] for run in soak.runs}, 0
    for run in planned():
        if run.number in played:
            continue
        if time.monotonic() > ends_s:
            click.echo("no time is left: no further run begins", err=True)
            return
        began_s = time.monotonic()
        plan = {**run._asdict(), "executors": EXECUTORS}
        row = tried(plan, len(soak.sittings), partial(run_once, stage, run))
        failed += "failed" in row
        soak.runs.append({**row, "took_s": round(time.monotonic() - began_s, 1)})
        keep(file, soak)
        _progress(soak.runs[-1], run)
        if failed == FAILURES_MAX:
            raise SystemExit(f"{failed} runs failed: the soak ends; {file} keeps what ran")


def _progress(row: dict[str, Any], run: Planned) -> None:
    told = row.get("failed") or f"identical {row['identical']}, twice {row['twice']}, gone " + ", ".join(
        f"{each['gone_s']} s" for each in row["executors_asked"]
    )
    named = f"{run.program} {run.mode} {run.allocation} {run.route} {run.when} {run.leaving}"
    click.echo(f"{run.number}/{len(planned())} {named}: {told} ({row['took_s']:.0f} s)", err=True)


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no run after this many minutes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    soak = opened(output)
    soak.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-soak-"))
    jar = plugin_in(folder)
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        Hdfs(cluster.hdfs_url, "root").make(FALLBACK, "1777")
        play(Stage(cluster, folder, jar), soak, output, ends_s)
    shutil.rmtree(folder)
    print_json({"claims": judged(soak.runs), "kinds": table(soak.runs)})


if __name__ == "__main__":
    command()
