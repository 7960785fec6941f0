"""Figures of a campaign: medians against each job alone, what was lost, whether every output was the same.

Law: nothing is measured here, and every ratio uses the campaign's own runs of each job alone. A sum says that
it is one; what cannot be known from the campaign is None.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from yarn_research.campaigns.campaign import JOBS, Campaign


def figures(campaign: Campaign) -> dict[str, Any]:
    """Return the figures of every scheme of a campaign."""
    return {
        "campaign": campaign.name,
        "commit": campaign.commit,
        "schemes": {
            scheme: of_scheme(campaign, scheme) for scheme in [*campaign.schemes(), *campaign.ranges]
        },
    }


def of_scheme(campaign: Campaign, scheme: str) -> dict[str, Any]:
    """Return the figures of one scheme; from a range only how many runs it spans, the least and the most."""
    if scheme in campaign.ranges and not campaign.of(scheme):
        return dict(campaign.ranges[scheme])
    runs = campaign.of(scheme)
    found: dict[str, Any] = {"runs": len(runs), "left_out": _left_out(campaign, scheme)}
    for job in JOBS:
        times = campaign.times_s(scheme, job)
        found[f"{job}_s"] = statistics.median(times) if times else None
        found[f"{job}_least_s"] = min(times, default=None)
        found[f"{job}_most_s"] = max(times, default=None)
        found[f"{job}_ratio"] = campaign.ratio(scheme, job)
    costs = [sum(run["overhead_s"]) for run in runs if run.get("overhead_s")]
    return found | {
        "suspensions_sum": _sum(run.get("suspensions") for run in runs),
        "killed_sum": _sum(_killed(run) for run in runs),
        "groups_twice_sum": _sum(_twice(run) for run in runs),
        "overhead_s": statistics.median(costs) if costs else None,
        "am_wait_s": _median([run.get("production_am_wait_s") for run in runs]),
        "identical": identical(campaign, scheme),
    }


def identical(campaign: Campaign, scheme: str) -> bool | None:
    """Say whether every output of a scheme was the undisturbed one's; None where none was compared."""
    compared = [
        run[f"{job}_digests"] == reference
        for job in JOBS
        for reference in [_reference(campaign, job)]
        for run in campaign.of(scheme)
        if reference and f"{job}_digests" in run
    ]
    return all(compared) if compared else None


def _reference(campaign: Campaign, job: str) -> Any:
    """Return the digests of a job that ran alone in the campaign."""
    found = (run.get(f"{job}_digests") for run in campaign.of(f"{job}-alone"))
    return next((each for each in found if each), None)


def _left_out(campaign: Campaign, scheme: str) -> int:
    return sum(bool(run.get("left_out")) for run in campaign.runs if run["scheme"] == scheme)


def _killed(run: dict[str, Any]) -> Any:
    return run.get("research_killed", _none_of_research(run))


def _twice(run: dict[str, Any]) -> Any:
    return run.get("research_twice", _none_of_research(run))


def _none_of_research(run: dict[str, Any]) -> int | None:
    """Return 0 where research did not run; what became of it is not known otherwise."""
    return 0 if run["scheme"] == "production-alone" else None


def _sum(values: Any) -> int | None:
    """Return a sum; None where a part of it is not known."""
    known = list(values)
    return None if None in known else sum(known)


def _median(values: Sequence[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def told(campaign: Campaign) -> str:
    """Return the lines that people read when a campaign ends."""
    lines = [f"{campaign.name}: medians in s (least to most), and against each job alone in this campaign"]
    for scheme, found in figures(campaign)["schemes"].items():
        cells = [f"{scheme:18}", *(f"{job} {_cell(found, job):34}" for job in JOBS)]
        cells.append(f"runs {found['runs']}  twice {found['groups_twice_sum']} (sum)")
        cells.append(f"killed {found['killed_sum']} (sum)")
        cells.append({True: "identical", False: "OUTPUT DIFFERS"}.get(found["identical"], "not compared"))
        lines.append("  ".join(cells))
    return "\n".join(lines)


def beside(campaign: Campaign, earlier: Campaign) -> str:
    """Return a line for each job of each scheme that both have: is its median in the earlier one's range?"""
    lines = []
    for scheme in (name for name in campaign.schemes() if name in earlier.schemes()):
        for job in JOBS:
            median_s, times_s = campaign.median_s(scheme, job), earlier.times_s(scheme, job)
            if median_s is not None and times_s:
                least_s, most_s = min(times_s), max(times_s)
                place = "faster" if median_s < least_s else "slower" if median_s > most_s else "inside"
                lines.append(
                    f"{scheme:18} {job:10} {median_s:6.1f} s  {place} {least_s:.1f} to {most_s:.1f} s"
                    f" of {earlier.name}"
                )
    return "\n".join(lines)


def _cell(found: dict[str, Any], job: str) -> str:
    if found[f"{job}_s"] is None:
        return "    - -"
    ratio = f"{found[f'{job}_ratio']:5.2f}" if found[f"{job}_ratio"] else "    -"
    return f"{ratio} {found[f'{job}_s']:6.1f} ({found[f'{job}_least_s']:.1f} to {found[f'{job}_most_s']:.1f})"
