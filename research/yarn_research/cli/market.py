"""``yarn-research market``: replay users who buy deadlines on one server (MRM, section 6.3).

Law: everything is checked before the replay; results follow from the options alone, times do not.
"""

from __future__ import annotations

import math

import click

from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

SCHEDULERS = ("mrm", "fcfs", "priority")


@click.command("market")
@click.option("--jobs", required=True, type=click.IntRange(1, 10**7), metavar="N", help="Jobs.")
@click.option("--inter-arrival-s", required=True, type=float, metavar="S", help="Mean time between two jobs.")
@click.option("--alpha", default=2.0, show_default=True, help="Budget of sensitive jobs, times p_j.")
@click.option("--kappa", default=2.0, show_default=True, help="Factor of Eq 13.")
@click.option("--tolerant", default=1.0, show_default=True, help="Budget of tolerant jobs, times p_j.")
@click.option("--scheduler", default="mrm", show_default=True, metavar="|".join(SCHEDULERS))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32))
@click.option(
    "--choose", "choices", multiple=True, metavar="NAME=VALUE", help="Read the paper otherwise; repeat."
)
@output_option
def command(
    jobs: int,
    inter_arrival_s: float,
    alpha: float,
    kappa: float,
    tolerant: float,
    scheduler: str,
    seed: int,
    choices: tuple[str, ...],
    output: str,
) -> None:
    """Replay N jobs, half of them sensitive, and measure waits, slack, late jobs and what was paid."""
    from yarn_research.market.market_figures import as_told, cell
    from yarn_research.market.priced_jobs import MarketOrder, readings

    _bounded("--inter-arrival-s", inter_arrival_s)
    _bounded("--alpha", alpha)
    _bounded("--kappa", kappa)
    _bounded("--tolerant", tolerant)
    _known("--scheduler", scheduler, SCHEDULERS)
    asked = MarketOrder(jobs, inter_arrival_s, alpha, kappa, tolerant, scheduler, seed, readings(choices))
    told = as_told(cell(asked))
    if output == "json":
        print_json(told)
        return
    names = ("wait_s", "slack_median_s", "slack_p95_s", "jumped_ratio", "late_ratio")
    rows = [(who, *(f"{told[who][name]:.4g}" for name in names)) for who in ("sensitive", "tolerant")]
    print_table(("jobs", *names), rows, f"{jobs} jobs, one each {inter_arrival_s:g} s, {scheduler}")
    paid = told["paid_over_used"]
    click.echo(f"late {told['late_ratio']:.3%}, early by {told['earliness_s']:.1f} s, {told['wall_s']} s")
    if paid["median"] is not None:
        click.echo(f"paid over used: median {paid['median']:.3f}, 95th percentile {paid['p95']:.3f}")


def _bounded(option: str, value: float) -> None:
    if not (math.isfinite(value) and 0.001 <= value <= 10**6):
        raise BadInput(option, f"{value:g} is not from 0.001 to 1000000", "give such a number")


def _known(option: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise BadInput(option, f"{value[:40]!r} is not known", f"one of {', '.join(names)}")
