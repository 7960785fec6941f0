"""``yarn-emulator placement``: place applications that exist for several frameworks (ORiON, section V).

Law: everything is checked before the replay; the same options and seed give the same answer.
"""

from __future__ import annotations

import math
from pathlib import Path

import click

from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput


@click.command("placement")
@click.option("--applications", required=True, type=click.IntRange(1, 100_000), metavar="N")
@click.option("--inter-arrival-s", required=True, type=float, metavar="S", help="Mean time between two.")
@click.option("--mechanism", default="orion", show_default=True, metavar="orion|least_loaded|literal")
@click.option("--late", default=0.05, show_default=True, type=float, help="Chance to exceed an upper bound.")
@click.option("--pools", type=click.Path(path_type=Path), help="TOML with [[pool]] tables.  [three of 7]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32))
@output_option
def command(
    applications: int,
    inter_arrival_s: float,
    mechanism: str,
    late: float,
    pools: Path | None,
    seed: int,
    output: str,
) -> None:
    """Place N applications of ORiON's Table II on pools of Flink, Spark and TensorFlow."""
    from emulator.placement.placement_replay import MECHANISMS, PlacementReplay, measured
    from emulator.placement.placement_set import POOLS, read_pools, submissions

    if not (math.isfinite(inter_arrival_s) and 0.001 <= inter_arrival_s <= 10**6):
        told = f"{inter_arrival_s:g} is not from 0.001 to 1000000"
        raise BadInput("--inter-arrival-s", told, "give such a number")
    if not 0 < late < 1:
        raise BadInput("--late", f"{late:g} is no chance", "give more than 0 and less than 1")
    chosen = next((each for each in MECHANISMS if each == mechanism), None)
    if chosen is None:
        raise BadInput("--mechanism", f"{mechanism[:40]!r} is not known", f"one of {', '.join(MECHANISMS)}")
    used = POOLS if pools is None else read_pools(pools)
    found = measured(
        PlacementReplay(used, chosen, late).play(submissions(applications, inter_arrival_s, seed)), used
    )
    if output == "json":
        print_json(found.told())
        return
    shown = [
        (name, f"{value:.4g}" if isinstance(value, float) else str(value))
        for name, value in found.told().items()
    ]
    print_table(
        ("figure", "value"), shown, f"{applications} applications, {inter_arrival_s:g} s apart, {mechanism}"
    )
