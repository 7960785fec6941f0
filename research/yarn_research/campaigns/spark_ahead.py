"""``make bench-spark-ahead``: production beside Spark research, with ``--predicted-demand`` (research/notes/spark.md).

Law: that of ``spark_beside``, whose load, jobs and runs these are. Only yarnctl's options are others, so that
what they change is told beside what is shipped, and never in its place.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import click

from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import prepare
from tests.hadoop.jobs import Job
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import plugin_in
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarn_research.campaigns.schemes import MUTABLE
from yarn_research.campaigns.spark_beside import (
    LOADS,
    PRODUCTION,
    ROUNDS,
    SCHEMES,
    SHAPE,
    Beside,
    Stage,
    run_once,
)
from yarnctl.command_line import print_json

KIND = "spark-ahead"
LOAD, AS = "ahead", "2s"
"""What these rounds are called, and the load of ``spark_beside`` that they play."""
AHEAD = ("--predicted-demand", "2")
"""Production's first tasks: two maps. Its two reduce tasks take their containers over."""
SET = {
    "production-alone": SCHEMES["production-alone"],
    "yarn-tuned": SCHEMES["yarn-tuned"],
    "signal": SCHEMES["signal"]._replace(options=(*SCHEMES["signal"].options, *AHEAD)),
    "plugin": SCHEMES["plugin"]._replace(
        settings=MUTABLE, options=(*SCHEMES["plugin"].options, "--cap-queue", *AHEAD)
    ),
}


def order_of(number: int) -> list[str]:
    """Return the schemes of a round, in the order in which they run."""
    found = list(SET)
    random.Random(f"ahead-{number}").shuffle(found)
    return found


def play(stage: Stage, beside: Beside, ends_s: float) -> None:
    """Play the rounds that are not whole, while there is time to begin one."""
    for number in range(1, ROUNDS + 1):
        if {run["scheme"] for run in beside.of_round(LOAD, number)} == set(SET):
            continue
        if time.monotonic() > ends_s:
            click.echo("no time is left: no further round begins", err=True)
            return
        beside.leave_out(LOAD, number, "its round was not finished on the machine on which it began")
        _round(stage, beside, number)


def _round(stage: Stage, beside: Beside, number: int) -> None:
    for name in order_of(number):
        run: dict[str, Any] = {"load": LOAD, "round": number, "scheme": name, "began": now()}
        run |= {"options": SET[name].options, "sitting": len(beside.sittings), "load_before": load()}
        try:
            run |= run_once(stage, LOADS[AS], SET[name], f"{len(beside.runs) + 1:03d}")
        except Exception as problem:
            run["left_out"] = failure(problem)
            traceback.print_exc()
        beside.runs.append(run)
        if "left_out" in run:
            beside.leave_out(LOAD, number, "a run of its round failed")
        keep(stage.file, beside)
        click.echo(f"{number}/{ROUNDS} {name}: {run}", err=True)
        if "left_out" in run:
            return


def run_before(stage: Stage) -> None:
    """Run production once, alone and not counted; its name is that of the runs to come but for numbers."""
    stage.cluster.restart_manager(SET["production-alone"].changes())
    ended = Job(stage.cluster, PRODUCTION, stage.folder, "000").wait()
    assert ended.state == "SUCCEEDED", ended


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no round after this many minutes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, output: Path) -> None:
    """Play what is not played yet, then judge."""
    from yarn_research.campaigns.spark_beside_judging import judged, table

    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    beside = gone_on(output, Beside(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))
    beside.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-ahead-"))
    jar = plugin_in(folder)
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        stage = Stage(cluster, folder, jar, output)
        run_before(stage)
        play(stage, beside, ends_s)
    shutil.rmtree(folder)
    print_json({"claims": judged(beside.runs, (LOAD,)), "schemes": table(beside.runs, (LOAD,))})


if __name__ == "__main__":
    command()
