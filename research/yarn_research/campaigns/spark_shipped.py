"""Production beside Spark research, in map and reduce stages, with yarnctl as it is shipped.

``python -m yarn_research.campaigns.spark_shipped --output spark-shipped.json`` plays the rounds that were not
played. A run is that of ``spark_beside``: eight executors on nine containers, production of three containers
when a third of research's tasks have begun. Each run is written down as it ends. A sitting begins with a run of
production alone that does not count: the history server has it for ``--predicted-demand``.

Plan, before the first judged round: four loads (tasks of 2 s and of 10 s, in a map stage and in a reduce
stage), five rounds each. A round has every scheme once, in a drawn order: each job alone (production alone with the
first load only, as it has no load beside it), a soft cap of 33 and 67 %, YARN's preemption tuned, yarnctl by the
plugin with ``SHIPPED`` and by the signal, and ``killed``, which follows the plugin: without yarnctl, the executors
that it ordered in this round are killed, each as long after production came as the order. A round counts whole or
not at all. Loads and rounds begin with the first. Research is three quarters of that of ``spark_beside``, so that
a round takes a quarter of an hour: production still ends before it.

Rule, for the plugin, in each load; ratios are paired within rounds, medians of five rounds.

1. production: at most 1.00 times its time under tuned YARN.
2. research: less than its time under tuned YARN.
3. again: the time of tasks that ran twice is at most half of that under tuned YARN.
4. results: of all research, that of this machine without Spark; the plugin's runs have no failure that Spark counts.

The signal, the soft cap and ``killed`` are told beside it.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import msgspec

from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import prepare
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import Work, plugin_in
from yarn_research.campaigns.bench import failure
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, load, machine, now
from yarn_research.campaigns.schemes import MUTABLE
from yarn_research.campaigns.spark_beside import ROUNDS, SCHEMES, SHAPE, Beside, Ended, Stage, run_once
from yarnctl.command_line import print_json

KIND = "spark-shipped"
LOADS = {
    "map-2s": Work("scan", 180, 24, 2.0, 0.1, reduces=24),
    "map-10s": Work("scan", 36, 24, 10.0, 0.1, reduces=24),
    "reduce-2s": Work("groups", 24, 360, 0.2, 1.0, reduces=180),
    "reduce-10s": Work("groups", 24, 360, 0.2, 1.0, reduces=36),
}
SHIPPED = ("--preempting", "production", "--preemptable", "research", "--eviction", "mix", "--may-lose", "20%",
           "--room-within", "15s", "--cap-queue", "--predicted-demand", "8")  # fmt: skip
"""The daemon as docs/spark.md has it for administrators, but for the budget: 2 % there is of an hour, and a
daemon of this campaign has seen research for a minute. 20 % of that minute is less than 2 % of an hour."""
SET = {
    **SCHEMES,
    "signal": SCHEMES["signal"]._replace(settings=MUTABLE, options=SHIPPED),
    "plugin": SCHEMES["plugin"]._replace(settings=MUTABLE, options=SHIPPED),
    "killed": SCHEMES["plugin"]._replace(name="killed", settings=MUTABLE, attached=False, options=()),
}

Run = dict[str, Any]


def schemes_of(name: str) -> set[str]:
    """Return the schemes of a load's rounds."""
    return set(SET) - (set() if name == next(iter(LOADS)) else {"production-alone"})


def order_of(name: str, number: int) -> list[str]:
    """Return the schemes of a round in their order; ``killed`` follows the plugin."""
    found = [scheme for scheme in SET if scheme in schemes_of(name) - {"killed"}]
    random.Random(f"{KIND}-{name}-{number}").shuffle(found)
    found.insert(found.index("plugin") + 1, "killed")
    return found


def play(stage: Stage, beside: Beside, ends_s: float) -> None:
    """Play the rounds that are not whole, while there is time to begin one."""
    for number in range(1, ROUNDS + 1):
        for name in LOADS:
            if {run["scheme"] for run in beside.of_round(name, number)} == schemes_of(name):
                continue
            if time.monotonic() > ends_s:
                return
            beside.leave_out(name, number, "its round was not finished in its sitting")
            _round(stage, beside, name, number)


def _round(stage: Stage, beside: Beside, name: str, number: int) -> None:
    ended: list[Ended] = []
    for scheme in order_of(name, number):
        run: Run = {"load": name, "round": number, "scheme": scheme, "began": now()}
        run |= {"sitting": len(beside.sittings), "load_before": load()}
        at = f"{len(beside.runs) + 1:03d}"
        try:
            run |= run_once(stage, LOADS[name], SET[scheme], at, ended if scheme == "killed" else ())
            ended = run["ended"] if scheme == "plugin" else ended
        except Exception as problem:
            run["left_out"] = failure(problem)
            traceback.print_exc()
        beside.runs.append(run)
        if "left_out" in run:
            beside.leave_out(name, number, "a run of its round failed")
        keep(stage.file, beside)
        click.echo(f"{name} {number}/{ROUNDS} {scheme}: {run}", err=True)
        if "left_out" in run:
            return


class ShippedClaim(msgspec.Struct, frozen=True):
    """A claim of the rule on a load; ``ours`` is compared with ``bound``."""

    load: str
    claim: str
    bound: float
    ours: float | None
    rounds: int
    holds: bool


def rounds_of(runs: Sequence[Run], name: str) -> list[dict[str, Run]]:
    """Return the whole rounds of a load: scheme -> run."""
    found: dict[int, dict[str, Run]] = {}
    for run in runs:
        if run["load"] == name and "left_out" not in run:
            found.setdefault(run["round"], {})[run["scheme"]] = run
    return [each for each in found.values() if each.keys() == schemes_of(name)]


def judged(runs: Sequence[Run]) -> list[ShippedClaim]:
    """Judge the rounds by the rule in this module's docstring."""
    found = []
    for name in LOADS:
        rounds = rounds_of(runs, name)

        def middle(value: Callable[[Run], float], rounds: list[dict[str, Run]] = rounds) -> float | None:
            told = [value(each["plugin"]) / max(value(each["yarn-tuned"]), 0.001) for each in rounds]
            return median(told) if told else None

        ratios = [
            ("production", 1.0, middle(lambda run: run["production"]["took_s"])),
            ("research", 1.0, middle(lambda run: run["research"]["took_s"])),
            ("again", 0.5, middle(lambda run: run["research"]["again_s"])),
        ]
        for claim, bound, ours in ratios:
            within = ours is not None and (ours < bound if claim == "research" else ours <= bound)
            found.append(
                ShippedClaim(name, claim, bound, ours, len(rounds), within and len(rounds) >= ROUNDS)
            )
        wrong = sum(
            not run["research"]["identical"] for each in rounds for run in each.values() if "research" in run
        ) + sum(each["plugin"]["research"]["failures"] for each in rounds)
        is_right = wrong == 0 and len(rounds) >= ROUNDS
        found.append(ShippedClaim(name, "results", 0, wrong, len(rounds), is_right))
    return found


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no round after this many minutes.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    beside = gone_on(output, Beside(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))
    beside.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-shipped-"))
    jar = plugin_in(folder)
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        stage = Stage(cluster, folder, jar, output)
        run_once(stage, LOADS["map-2s"], SET["production-alone"], "000")
        play(stage, beside, ends_s)
    shutil.rmtree(folder)
    print_json({"claims": judged(beside.runs)})


if __name__ == "__main__":
    command()
