"""``python -m yarn_research.campaigns.fidelity``: the emulator against the real cluster, scenario by scenario.

Law: the emulator's spans are read off *one* scenario's recorded attempts (``spans.py``). Which one is
written down in ``research/records/calibration.json`` before the runs that it predicts, and stays. Every other
scenario of every campaign is predicted with them, and its deviation is listed; no completion time is fitted
on. Two means are given: over all scenarios, and over those with yarnctl attached. What is not in the
calibration (suspending, resuming, the task runner's own start) is what ``HADOOP3`` says, or costs nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from emulator.virtual.run import Setup, run_scheme
from emulator.virtual.schemes import SCHEMES, Scheme
from yarn_research.campaigns.bench import SHAPE, production, research
from yarn_research.campaigns.campaign import FOLDER, JOBS, Campaign, all_of, named
from yarn_research.campaigns.schemes import Scheme as Benched
from yarn_research.campaigns.spans import Fit, fit
from yarnctl.deciding.settings import DEFAULT
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job
from yarnctl.units import Resources

IN_FLIGHT_RATIO = 0.1
"""``yarnctl run``'s default of ``--in-flight``."""

LEAST_AS_RUN = 1
"""The default of ``--in-flight-least`` in the recorded campaigns; it is 4 since."""

SLOT = Resources(256, 1)
SEEDS = 21
"""Draws of the heartbeats' phases; a prediction is their median, as the cluster's figure is its runs'."""


def twin(benched: Benched) -> Scheme:
    """Return the emulator's scheme for one of the bench's."""
    if benched.attached:
        return SCHEMES["natjam"]
    if benched.monitored:
        return SCHEMES["yarn-tuned" if benched.settings else "yarn"]
    return SCHEMES["hard-cap" if benched.research_most < 100 else "soft-cap"]


def jobs_of(fitted: Fit, benched: Benched, arrives_ms: int) -> tuple[Job, ...]:
    """Return the two jobs of the bench (or the one that runs alone) as the emulator takes them."""
    made: list[Job] = []
    for plan in (research(attached=False), production()):
        hurried = plan.name == "production"
        if not (benched.with_production if hurried else benched.with_research):
            continue
        wrapped = benched.attached and not hurried
        group_ms = plan.key_s * 1000 * (fitted.wrapped_ratio if wrapped else fitted.plain_ratio)
        made.append(
            Job(
                name=plan.name,
                job_class="production" if hurried else "research",
                submitted_at_ms=arrives_ms if hurried and benched.with_research else 0,
                map_ms=(fitted.map_ms,) * plan.maps,
                reduce_ms=tuple(round(count * group_ms) for count in plan.groups),
                reduce_keys=plan.groups,
                shuffle_ms=0,  # read off together with the launch: a resumed attempt shuffles again
                am_size=SLOT,
                map_size=SLOT,
                reduce_size=SLOT,
            )
        )
    return tuple(sorted(made, key=lambda job: (job.submitted_at_ms, job.name)))


def setup_of(fitted: Fit, benched: Benched, seed: int) -> Setup:
    """Return the bench's cluster in virtual time, under one scheme of the bench."""
    shares = (benched.production / 100, benched.research / 100)
    settings = msgspec.structs.replace(
        DEFAULT,
        in_flight_ratio_max=IN_FLIGHT_RATIO,
        in_flight_least=int(benched.option("--in-flight-least", str(LEAST_AS_RUN))),
        task_policy=benched.option("--task-policy", DEFAULT.task_policy),
        seed=seed,
    )
    return Setup(
        nodes=SHAPE.nodes,
        node_size=Resources(SHAPE.node_memory_mib, SHAPE.node_vcores),
        timing=fitted.timing,
        settings=settings,
        shares=shares,
        caps=shares,
        am_ratio=0.5,
        seed=seed,
        hold=bool({"--cap-queue", "--hold-queue"} & set(benched.options)),
        ahead_max=int(benched.option("--predicted-demand", benched.option("--ahead", "0"))),
    )


def predict(fitted: Fit, benched: Benched, arrives_ms: int, seed: int) -> dict[str, float]:
    """Return each job's completion in the emulator, s."""
    jobs = jobs_of(fitted, benched, arrives_ms)
    result = run_scheme(setup_of(fitted, benched, seed), jobs, twin(benched))
    return {job.name: job.completion_ms / 1000 for job in result.jobs}


class Calibration(NamedTuple):
    """One scenario of one campaign, from which the spans are read off."""

    campaign: str
    scheme: str


def calibration(path: Path = FOLDER / "calibration.json") -> Calibration:
    """Return the calibration that was named before the runs."""
    found = json.loads(path.read_bytes())
    return Calibration(found["campaign"], found["scheme"])


def fitted_on(campaign: Campaign, scheme: str) -> Fit:
    """Return the spans that a campaign's runs of one scheme show; raises BadInput where there is none."""
    runs = with_timetables(campaign, scheme)
    if not runs:
        remedy = f"recorded are {', '.join(campaign.schemes()) or 'none'}"
        raise BadInput(campaign.name, f"no run of {scheme} with its timetable is recorded", remedy)
    return fit(runs)


def with_timetables(campaign: Campaign, scheme: str) -> list[dict[str, Any]]:
    """Return the counted runs of a scheme whose timetables are known."""
    return [run for run in campaign.of(scheme) if any(f"{job}_timetable" in run for job in JOBS)]


def with_any_timetable(campaign: Campaign) -> bool:
    """Say whether anything of a campaign can be held against the emulator."""
    return any(with_timetables(campaign, scheme) for scheme in campaign.schemes())


def commit_of(campaigns: Sequence[Campaign]) -> str | None:
    """Return the commit of the compared campaigns; None where they have several, or one is unknown."""
    commits = {each.commit for each in campaigns if with_any_timetable(each)}
    return commits.pop() if len(commits) == 1 else None


def scheme_of(campaign: Campaign, name: str) -> Benched:
    """Return a scheme as the campaign was told it; the same name meant other options at other times."""
    told = campaign.configuration["schemes"][name]
    return Benched(**{**told, "options": tuple(told["options"])})


def rows(
    campaigns: Sequence[Campaign], fitted: Fit, fitted_from: Calibration, seeds: int = SEEDS
) -> list[dict[str, Any]]:
    """Return a row for each completion time: real median, predicted median, deviation."""
    return [
        row
        for campaign in campaigns
        for scheme in campaign.schemes()
        if (runs := with_timetables(campaign, scheme))
        for row in _rows(fitted, campaign, scheme, runs, seeds, fitted_from == (campaign.name, scheme))
    ]


def _rows(
    fitted: Fit,
    campaign: Campaign,
    scheme: str,
    runs: Sequence[Mapping[str, Any]],
    seeds: int,
    calibrated: bool,
) -> list[dict[str, Any]]:
    benched = scheme_of(campaign, scheme)
    both = [
        run["production_started_ms"] - run["research_started_ms"]
        for run in runs
        if all(f"{name}_s" in run for name in JOBS)
    ]
    arrives_ms = round(statistics.median(both)) if both else 0
    predictions = [predict(fitted, benched, arrives_ms, seed) for seed in range(seeds)]
    found = []
    for name in JOBS:
        if f"{name}_s" not in runs[0]:
            continue
        head = {"campaign": campaign.name, "scenario": scheme, "job": name, "attached": benched.attached}
        times = [run[f"{name}_s"] for run in runs]
        found.append(head | _row(times, [each[name] for each in predictions], calibrated))
    return found


def _row(times: Sequence[float], predicted: Sequence[float], calibrated: bool) -> dict[str, Any]:
    """Return one completion time's row.

    ``spread_ratio`` is half the range of the runs, ``noise_ratio`` how far their median must be expected to
    lie from the true one (standard deviation over the root of their number), both against the median.
    """
    real, emulated = statistics.median(times), statistics.median(predicted)
    several = len(times) > 1
    return {
        "runs": len(times),
        "cluster_s": round(real, 1),
        "spread_ratio": round((max(times) - min(times)) / 2 / real, 4) if several else None,
        "noise_ratio": round(statistics.stdev(times) / len(times) ** 0.5 / real, 4) if several else None,
        "emulator_s": round(emulated, 1),
        "emulator_spread_ratio": round((max(predicted) - min(predicted)) / 2 / emulated, 4),
        "deviation_ratio": round(emulated / real - 1, 4),
        "calibrated": calibrated,
    }


def told(found: Sequence[Mapping[str, Any]], fitted_from: Calibration) -> dict[str, Any]:
    """Return the document: both means over all completion times that were not fitted on, and every row."""
    free = [row for row in found if not row["calibrated"]]
    campaigns = dict.fromkeys(row["campaign"] for row in free)
    return {
        "calibration": fitted_from.scheme,
        "calibration_campaign": fitted_from.campaign,
        **means(free),
        "attached": means([row for row in free if row["attached"]]),
        "by_campaign": {
            name: {
                **means([row for row in free if row["campaign"] == name]),
                "attached": means([row for row in free if row["campaign"] == name and row["attached"]]),
            }
            for name in campaigns
        },
        "rows": list(found),
    }


def means(free: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean absolute deviation of some rows, and how many they are; None where there is none."""
    noise = [row["noise_ratio"] for row in free if row["noise_ratio"] is not None]
    sizes = [abs(row["deviation_ratio"]) for row in free]
    return {
        "mean_deviation_ratio": round(statistics.mean(sizes), 4) if sizes else None,
        "mean_noise_ratio": round(statistics.mean(noise), 4) if noise else None,
        "predicted": len(free),
        "scenarios": len({(row["campaign"], row["scenario"]) for row in free}),
    }


def by_calibration(campaigns: Sequence[Campaign], seeds: int = SEEDS) -> dict[str, Any]:
    """Return both means for each scenario of each campaign as calibration in turn."""
    found = {}
    for campaign in campaigns:
        for scheme in campaign.schemes():
            if with_timetables(campaign, scheme):
                each = Calibration(campaign.name, scheme)
                document = told(rows(campaigns, fitted_on(campaign, scheme), each, seeds), each)
                found[f"{campaign.name} {scheme}"] = {
                    "all": document["mean_deviation_ratio"],
                    "attached": document["attached"]["mean_deviation_ratio"],
                }
    return found


def main(arguments: Sequence[str]) -> int:
    """Print every deviation and both means as JSON."""
    parser = argparse.ArgumentParser(prog="python -m yarn_research.campaigns.fidelity")
    parser.add_argument("campaigns", nargs="*", help="names of campaigns; all, if none is given")
    parser.add_argument("--each", action="store_true", help="calibrate on each scenario in turn as well")
    given = parser.parse_args(arguments)
    fitted_from = calibration()
    campaigns = [named(name) for name in given.campaigns] or all_of()
    fitted = fitted_on(named(fitted_from.campaign), fitted_from.scheme)
    answer = {
        "campaign": ", ".join(each.name for each in campaigns if with_any_timetable(each)),
        "commit": commit_of(campaigns),
        **told(rows(campaigns, fitted, fitted_from), fitted_from),
    }
    if given.each:
        answer["mean_deviation_ratio_by_calibration"] = by_calibration(campaigns)
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
