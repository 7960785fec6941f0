"""``make bench-spark-versions``: executors leave on another Spark, or another Hadoop (research/notes/spark.md).

Law: the plan stands before the first run. Eight runs of the soak's kind for each pair of versions, each
written down as it ends, also one that failed.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
import traceback
from itertools import product
from pathlib import Path
from typing import Any

import click

from tests.hadoop.artifacts import PY4J, VERSIONS, choose_spark
from tests.hadoop.attached import prepare
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, plugin_in
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import keep
from yarn_research.campaigns.provenance import head, load, now
from yarn_research.campaigns.spark_soak_runs import FALLBACK, Stage, run_once
from yarn_research.campaigns.spark_soak_set import EXECUTORS, Planned
from yarn_research.campaigns.spark_versions_judging import pair_of
from yarnctl.command_line import print_json

KIND = "spark-versions"


def planned() -> list[Planned]:
    """Return the runs of a pair: two programs, both routes, between and within stages; two leave."""
    found: list[Planned] = []
    for program, route, when in product(("groups", "sql"), ("signal", "plugin"), ("between", "within")):
        found.append(Planned._make((len(found) + 1, program, "client", "static", route, when, 2)))
    return found


@click.command(help=__doc__)
@click.option("--spark", required=True, type=click.Choice(sorted(PY4J)))
@click.option("--hadoop", default=SHAPE.version, show_default=True, type=click.Choice(VERSIONS))
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(spark: str, hadoop: str, output: Path) -> None:
    """Play the runs of one pair of versions, then judge."""
    choose_spark(spark)
    told: dict[str, Any] = {"head": head(KIND, hadoop=hadoop, spark=spark), "runs": []}
    folder = Path(tempfile.mkdtemp(prefix="spark-soak-"))
    with Cluster(dataclasses.replace(SHAPE, version=hadoop)) as cluster:
        prepare(cluster)
        Hdfs(cluster.hdfs_url, "root").make(FALLBACK, "1777")
        stage = Stage(cluster, folder, plugin_in(folder))
        for run in planned():
            began_s = time.monotonic()
            row: dict[str, Any] = {
                **run._asdict(),
                "executors": EXECUTORS,
                "began": now(),
                "load_before": load(),
            }
            try:
                row |= run_once(stage, run)
            except Exception as problem:
                row["failed"] = failure(problem)
                traceback.print_exc()
            told["runs"].append({**row, "took_s": round(time.monotonic() - began_s, 1)})
            keep(output, told)
            click.echo(f"{run.number}/8 {row.get('failed') or row['identical']}", err=True)
    shutil.rmtree(folder)
    print_json(pair_of(told))


if __name__ == "__main__":
    command()
