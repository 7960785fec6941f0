"""``make bench-spark-overhead``: what the settings by which executors can leave cost when nobody asks.

Law: the same application with and without the settings, in pairs of alternating order (ABBA). Processor time
is what the NodeManagers' own counts of their ended children say: all processes of all containers.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click
import msgspec

from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import prepare
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, environment_of, submit_words
from yarn_research.campaigns.provenance import head, load
from yarn_research.campaigns.spark_overhead_judging import judged
from yarnctl.command_line import print_json

KIND = "spark-overhead"
PROGRAM = Path(__file__).parent / "programs" / "spark_burn.py"
EXECUTORS, ROWS, TIMES = 4, 40_000_000, 2
PAIRS = 12


def children_s(cluster: Cluster) -> float:
    """Return the processor time of all ended descendants of the NodeManagers, s."""
    total = 0
    for place in range(SHAPE.nodes):
        stat = Path(f"/proc/{cluster.pid(f'nodemanager-{place}')}/stat").read_text(encoding="ascii")
        total += sum(map(int, stat.rpartition(")")[2].split()[13:15]))
    return total / 100


def run_once(cluster: Cluster, *, wrapped: bool) -> dict[str, Any]:
    """Run the application; return its processor time and what it printed."""
    before_s = children_s(cluster)
    words = submit_words("client", EXECUTORS, ("spark.sql.shuffle.partitions=8",))
    wrap = [YARNCTL, "wrap", "--spark", "--exec", "--"] if wrapped else []
    told = subprocess.run(
        [*wrap, *words, str(PROGRAM), str(ROWS), str(TIMES)],
        env=environment_of(cluster), capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    cluster.wait_for_rest()
    return {"processor_s": children_s(cluster) - before_s, "printed": told.stdout.strip(), "load": load()}


@click.command(help=__doc__)
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(output: Path) -> None:
    """Play the pairs, then judge."""
    found: dict[str, Any] = {"head": head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"]), "pairs": []}
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        run_once(cluster, wrapped=False)
        for number in range(PAIRS):
            order = (False, True) if number % 2 == 0 else (True, False)
            pair = {
                ("with" if wrapped else "without"): run_once(cluster, wrapped=wrapped) for wrapped in order
            }
            found["pairs"].append(pair)
            output.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
            click.echo(f"{number + 1}/{PAIRS} {judged(found['pairs'])}", err=True)
    print_json({"claims": judged(found["pairs"])})


if __name__ == "__main__":
    command()
