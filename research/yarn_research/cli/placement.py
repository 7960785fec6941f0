"""``yarn-research placement``: place applications that exist for several frameworks (ORiON, section V).

Law: everything is checked before the replay; the same options and seed give the same answer.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarn_research.placement.placement_replay import PlacementFigures
    from yarnctl.deciding.admission.mechanisms.orion import OrionChoices


@click.command("placement")
@click.option("--applications", required=True, type=click.IntRange(1, 100_000), metavar="N")
@click.option("--inter-arrival-s", required=True, type=float, metavar="S", help="Mean time between two.")
@click.option("--mechanism", default="orion", show_default=True, metavar="orion|least_loaded|literal")
@click.option(
    "--late", "told_late", default="0.05", show_default=True, metavar="R", help="Chance to exceed a bound."
)
@click.option("--pools", type=click.Path(path_type=Path), help="TOML with [[pool]] tables.  [three of 7]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32))
@click.option("--choose", "chosen", multiple=True, metavar="NAME=VALUE", help="Read Alg 2 otherwise; repeat.")
@click.option("--alternatives", "open_choices", is_flag=True, help="Play it under each reading of Alg 2.")
@output_option
def command(
    applications: int,
    inter_arrival_s: float,
    mechanism: str,
    told_late: str,
    pools: Path | None,
    seed: int,
    chosen: tuple[str, ...],
    open_choices: bool,
    output: str,
) -> None:
    """Place N applications of ORiON's Table II on pools of Flink, Spark and TensorFlow."""
    from yarn_research.placement.placement_readings import READINGS, orion_choices
    from yarn_research.placement.placement_replay import MECHANISMS, PlacementReplay, measured
    from yarn_research.placement.placement_set import POOLS, read_pools, submissions

    if not (math.isfinite(inter_arrival_s) and 0.001 <= inter_arrival_s <= 10**6):
        told = f"{inter_arrival_s:g} is not from 0.001 to 1000000"
        raise BadInput("--inter-arrival-s", told, "give such a number")
    late = _chance(told_late)
    known = next((each for each in MECHANISMS if each == mechanism), None)
    if known is None:
        raise BadInput("--mechanism", f"{mechanism[:40]!r} is not known", f"one of {', '.join(MECHANISMS)}")
    choices = orion_choices(chosen)
    _read_by_orion(mechanism, chosen, open_choices)
    used, changes = (POOLS, ()) if pools is None else read_pools(pools)
    coming = submissions(applications, inter_arrival_s, seed)

    def played(choices: OrionChoices) -> PlacementFigures:
        return measured(PlacementReplay(used, known, late, choices, changes).play(coming), used)

    title = f"{applications} applications, {inter_arrival_s:g} s apart, {mechanism}"
    if open_choices:
        _show_alternatives({name: played(each) for name, each in READINGS.items()}, title, output)
        return
    found = played(choices)
    if output == "json":
        print_json(found.told())
        return
    print_table(("figure", "value"), _shown(found), title)


def _chance(text: str) -> float:
    try:
        ratio = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        ratio = math.nan
    if not (0 < ratio < 1 and 0 < 1 - ratio < 1):
        raise BadInput("--late", f"{text[:40]!r} is not between 0 and 1", "give for example 0.05 or 5%")
    return ratio


def _read_by_orion(mechanism: str, chosen: tuple[str, ...], open_choices: bool) -> None:
    """Refuse readings where nothing reads Alg 2, and both at once."""
    if mechanism != "orion" and (chosen or open_choices):
        where = "--choose" if chosen else "--alternatives"
        raise BadInput(where, f"{mechanism} has no readings", "use --mechanism orion")
    if chosen and open_choices:
        raise BadInput("--choose", "alternatives are each reading by itself", "leave one of the two out")


def _shown(found: PlacementFigures) -> list[tuple[str, str]]:
    return [(name, _words(value)) for name, value in found.told().items()]


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{kind} {count}" for kind, count in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _show_alternatives(found: dict[str, PlacementFigures], title: str, output: str) -> None:
    if output == "json":
        alternatives = [
            {"choice": name, "ours": name == "ours", **each.told()} for name, each in found.items()
        ]
        print_json({"alternatives": alternatives})
        return
    columns = ("reading", *(name for name, _ in _shown(found["ours"])))
    rows = [(name, *(value for _, value in _shown(each))) for name, each in found.items()]
    print_table(columns, rows, title)
