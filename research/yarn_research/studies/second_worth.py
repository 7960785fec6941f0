"""The judging of the price of a second, by research/notes/plan-second-worth.md: pairs of hours 12 to 23.

The mix is played as shipped, with the governor.

``python -m yarn_research.studies.second_worth --trace FB-2009_samples_24_times_1hr_0.tsv --kept DIR --output
FILE [--minutes N] [--clusters 50x8]`` plays the plan's steps in their order, until the time is over, and writes FILE. What DIR
holds is not played again. A run begins only before the end of the time.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from emulator.scenario import Scenario
from emulator.virtual.schemes import SCHEMES
from yarn_research.campaigns.provenance import head
from yarn_research.studies.hour_pairs import HourPair
from yarn_research.studies.study_figures import scheme_entry
from yarn_research.studies.study_rows import SchemeRow, rows_of
from yarn_research.studies.study_runs import Results, Study, prepare_study, run_study
from yarnctl.command_line import ProgressBar
from yarnctl.deciding.waiting_worth import KILLS_MAX, SECOND_WORTH_RATIO

PAIRS = tuple(HourPair(hour, hour + 6 if hour < 18 else hour - 6) for hour in range(12, 24))
"""The next hour but five, of the hours 12 to 23."""

SMALL, MIDDLE, LARGE = (6, 12), (12, 8), (50, 8)
MAIN, MORE = (0.02, 0.0), (0.05, 0.1, 0.2)
TUNED, SOFT = "yarn-tuned", "soft-cap"
DRAWS = 10_000


class JudgingStep(NamedTuple):
    """All pairs on one cluster with one seed; ``budgets`` of the mix, with the two rivals (or without)."""

    cluster: tuple[int, int]
    seed: int
    budgets: tuple[float, ...]
    with_rivals: bool


def plan() -> Iterator[JudgingStep]:
    """Yield the steps in the order of the plan: the large cluster last, its runs are the longest."""
    for clusters, seeds in (
        ((SMALL, MIDDLE), (1,)),
        ((SMALL, MIDDLE), (2, 3)),
        ((LARGE,), (1,)),
        ((LARGE,), (2, 3)),
    ):
        yield from (JudgingStep(each, seed, MAIN, True) for each in clusters for seed in seeds)
        yield from (
            JudgingStep(each, seed, MORE, False) for each in clusters if each != MIDDLE for seed in seeds
        )


def rows(step: JudgingStep) -> tuple[SchemeRow, ...]:
    """Return the rows of a step."""
    rivals = tuple(SchemeRow(name, SCHEMES[name]) for name in (SOFT, TUNED) if step.with_rivals)
    return rivals + rows_of(("mix",), step.budgets, None, SECOND_WORTH_RATIO, KILLS_MAX)


def scenario_of(cluster: tuple[int, int], trace: str) -> Scenario:
    """Return the cluster and the rules of a study's runs."""
    nodes, slots = cluster
    source = f"swim:{trace}"
    return Scenario(
        nodes=nodes,
        slots=slots,
        production=source,
        research=source,
        production_peak=1.0,
        research_peak=1.5,
        schemes=(SOFT, TUNED, "mix"),
    )


def play(
    trace: str,
    kept: Path,
    until_s: float,
    clock: Callable[[], float] = time.monotonic,
    clusters: Sequence[tuple[int, int]] = (SMALL, MIDDLE, LARGE),
) -> list[dict[str, Any]]:
    """Play the plan until an instant of the clock; return an entry for each cluster, pair and seed."""
    entries: dict[tuple[Any, ...], dict[str, Any]] = {}
    studies: dict[tuple[int, int], Study] = {}
    for step in (step for step in plan() if step.cluster in clusters):
        if step.cluster not in studies:
            studies[step.cluster] = prepare_study(scenario_of(step.cluster, trace), (), 1, None, PAIRS)
        whole, (nodes, slots) = studies[step.cluster], step.cluster
        for pair, jobs in whole.jobs.items():
            if clock() >= until_s:
                return list(entries.values())
            one = whole._replace(rows=rows(step), seeds=(step.seed,), jobs={pair: jobs})
            with ProgressBar(
                f"{nodes} x {slots} {pair.production}/{pair.research} seed {step.seed}"
            ) as progress:
                found = run_study(one, kept / f"{nodes}x{slots}", 1, progress, _entries)
            entry = entries.setdefault(
                (step.cluster, pair, step.seed),
                {"nodes": nodes, "slots": slots, **pair._asdict(), "seed": step.seed, "schemes": {}},
            )
            entry["schemes"].update(found)
    return list(entries.values())


def _entries(results: Results) -> dict[str, Any]:
    return {played.row: scheme_entry(result) for played, result in results.items()}


# --- the figures ------------------------------------------------------------------------------

Entry = Mapping[str, Any]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def ratios(entries: Sequence[Entry], scheme: str, rival: str, figure: str) -> dict[str, float]:
    """Return each pair's ratio of a figure: of the means over the seeds that were played of both."""
    found: dict[str, list[tuple[float, float]]] = {}
    for each in entries:
        ours, theirs = each["schemes"].get(scheme), each["schemes"].get(rival)
        if ours is not None and theirs is not None:
            pair = f"{each['production']}/{each['research']}"
            found.setdefault(pair, []).append((ours[figure], theirs[figure]))
    sums = {pair: [sum(side) for side in zip(*both, strict=True)] for pair, both in found.items()}
    return {pair: round(ours / theirs, 4) for pair, (ours, theirs) in sums.items() if theirs}


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the percentile interval (2.5 and 97.5 %) of the mean over pairs."""
    draw = random.Random(1)
    means = sorted(_mean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return round(means[DRAWS // 40], 4), round(means[DRAWS - DRAWS // 40 - 1], 4)


def told(values: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures of ratios by pair."""
    if not values:
        return {"pairs": 0}
    numbers = list(values.values())
    return {
        "pairs": len(numbers),
        "mean": round(_mean(numbers), 4),
        "mean_bootstrap_95": bootstrap(numbers),
        "least": min(numbers),
        "most": max(numbers),
        "at_most_100": round(_mean([number <= 1.0 for number in numbers]), 4),
        "at_most_102": round(_mean([number <= 1.02 for number in numbers]), 4),
        "by_pair": dict(values),
    }


def lost_over_tuned(entries: Sequence[Entry], scheme: str) -> float | None:
    """Return the lost work of all runs over that of tuned YARN in the same runs."""
    both = [
        (each["schemes"][scheme]["lost_work_s"], each["schemes"][TUNED]["lost_work_s"])
        for each in entries
        if {scheme, TUNED} <= each["schemes"].keys()
    ]
    theirs = sum(other for _, other in both)
    return round(sum(ours for ours, _ in both) / theirs, 4) if theirs else None


def worse_than_nothing(entries: Sequence[Entry], scheme: str) -> list[str]:
    """Return the pairs and seeds with production over soft cap + 2 %, or with both sides slower than it."""
    found = []
    for each in entries:
        ours, soft = each["schemes"].get(scheme), each["schemes"].get(SOFT)
        if ours is None or soft is None:
            continue
        production, research = (
            ours[f"{side}_mean_s"] / soft[f"{side}_mean_s"] for side in ("production", "research")
        )
        if production > 1.02 or (production > 1 and research > 1):
            found.append(
                f"{each['production']}/{each['research']} seed {each['seed']}: {production:.3f} {research:.3f}"
            )
    return found


def more_budget(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return, for each budget and the next larger one, how much production's means rise."""
    names = [f"mix-{percent}" for percent in (0, 2, 5, 10, 20)]
    found = []
    for less, more in pairwise(names):
        rises = ratios(entries, more, less, "production_mean_s")
        if rises:
            numbers = list(rises.values())
            found.append(
                {
                    "from": less,
                    "to": more,
                    "mean": round(_mean(numbers), 4),
                    "most": max(numbers),
                    "by_pair": rises,
                }
            )
    return found


def summary(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the figures of the plan, by cluster and row of the mix."""
    found: dict[str, Any] = {}
    for cluster in (SMALL, MIDDLE, LARGE):
        mine = [each for each in entries if (each["nodes"], each["slots"]) == cluster]
        names = dict.fromkeys(name for each in mine for name in each["schemes"] if name.startswith("mix"))
        if mine:
            found[f"{cluster[0]}x{cluster[1]}"] = {
                **{name: _row(mine, name) for name in names},
                "more_budget": more_budget(mine),
            }
    return found


def _row(entries: Sequence[Entry], name: str) -> dict[str, Any]:
    return {
        "production_over_tuned": told(ratios(entries, name, TUNED, "production_mean_s")),
        "research_over_tuned": told(ratios(entries, name, TUNED, "research_mean_s")),
        "production_over_soft_cap": told(ratios(entries, name, SOFT, "production_mean_s")),
        "lost_over_tuned": lost_over_tuned(entries, name),
        "worse_than_nothing": worse_than_nothing(entries, name),
    }


def main() -> None:
    """Play, and write the record."""
    parser = argparse.ArgumentParser(prog="python -m yarn_research.studies.second_worth", description=__doc__)
    parser.add_argument("--trace", required=True)
    parser.add_argument("--kept", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--minutes", type=float, default=1e6)
    named = {f"{nodes}x{slots}": (nodes, slots) for nodes, slots in (SMALL, MIDDLE, LARGE)}
    parser.add_argument("--clusters", nargs="+", choices=named, default=list(named))
    given = parser.parse_args()
    record = head("second-worth")
    begun = time.monotonic()
    clusters = [named[name] for name in given.clusters]
    entries = play(given.trace, given.kept, begun + given.minutes * 60, clusters=clusters)
    terms = {
        "trace": Path(given.trace).stem,
        "production_peak": 1.0,
        "research_peak": 1.5,
        "second_worth_ratio": SECOND_WORTH_RATIO,
        "kills_max": KILLS_MAX,
        "plan": "research/notes/plan-second-worth.md",
        "clusters": given.clusters,
        "steps_of_the_plan": len(list(plan())),
        "minutes": round((time.monotonic() - begun) / 60, 1),
    }
    record |= {"terms": terms, "summary": summary(entries), "runs": entries}
    given.output.write_text(json.dumps(record, indent=1, sort_keys=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
