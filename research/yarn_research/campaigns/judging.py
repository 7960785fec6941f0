"""``python -m yarn_research.campaigns.judging [CAMPAIGN]``: a campaign on a real Hadoop against the targets.

Law: nothing is measured here. The campaign that is judged is the newest whose commit is known and which has
yarnctl, YARN tuned and both jobs alone, or the one that is named; what the others show is told beside it. A
ratio uses its own campaign's jobs alone. What a campaign did not run is no figure and named as not compared.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from yarn_research.campaigns.campaign import Campaign, all_of, named
from yarn_research.campaigns.summary import of_scheme
from yarnctl.errors import BadInput, YarnctlError

WHOLE_CLUSTER = ("soft-cap", "yarn-defaults", "yarn-tuned")
"""The other schemes that let research use all there is."""

NEEDED = ("production-alone", "research-alone", "yarn-tuned", "yarnctl")
"""Without these a campaign cannot be judged."""

SHIPPED = "yarnctl-as-shipped"

NOT_RUN = "not run"
"""Instead of a figure: a row that judges it is missed."""


def judged(campaigns: Sequence[Campaign]) -> Campaign:
    """Return the newest campaign that can be judged, one with a commit before those without."""
    able = [each for each in campaigns if all(each.of(scheme) for scheme in NEEDED)]
    if not able:
        raise BadInput(
            "research/records", f"no campaign has runs of {', '.join(NEEDED)}", "make bench-hadoop"
        )
    return max(able, key=lambda campaign: (campaign.commit is not None, campaign.name))


def figures(campaign: Campaign, others: Sequence[Campaign] = ()) -> dict[str, Any]:
    """Return the figures that the rows judge, of one campaign, with those of others beside them."""
    found = {name: of_scheme(campaign, name) for name in campaign.schemes()}
    compared = [name for name in WHOLE_CLUSTER if name in found]
    least = min(found[name]["production_ratio"] for name in compared)
    ours = found["yarnctl"]
    return {
        "campaign": campaign.name,
        "commit": campaign.commit,
        "runs": min(found[name]["runs"] for name in (*NEEDED, *compared)),
        "production_ratio": rounded(ours["production_ratio"]),
        "production_below_others": ours["production_ratio"] < least,
        "production_others_least_ratio": rounded(least),
        "compared": ", ".join(compared),
        "not_compared": ", ".join(name for name in WHOLE_CLUSTER if name not in found) or "none",
        "research_ratio": rounded(ours["research_ratio"]),
        "research_defaults_ratio": _ratios(found, "research").get("yarn-defaults", NOT_RUN),
        "production_ratio_of": _ratios(found, "production"),
        "research_ratio_of": _ratios(found, "research"),
        "groups_twice": ours["groups_twice_sum"],
        "groups_twice_of": {name: each["groups_twice_sum"] for name, each in found.items()},
        "overhead_s": rounded(ours["overhead_s"], 2),
        "overhead_yarn_tuned_s": rounded(found["yarn-tuned"]["overhead_s"], 2),
        "identical": all(each["identical"] is True for each in found.values()),
        "am_wait_s": rounded(ours["am_wait_s"], 2),
        "as_shipped": _as_shipped(found.get(SHIPPED)),
        "campaigns_below_tuned": _below_tuned([campaign, *others]),
        "earlier": {each.name: beside(each) for each in others if each.name != campaign.name},
    }


def beside(campaign: Campaign) -> dict[str, Any]:
    """Return what another campaign shows of the same comparison."""
    found = {name: of_scheme(campaign, name) for name in campaign.schemes()}
    return {
        "production_ratio_of": _ratios(found, "production"),
        "research_ratio_of": _ratios(found, "research"),
        "runs_of": {name: each["runs"] for name, each in found.items()},
        "options": " ".join(campaign.configuration["schemes"].get("yarnctl", {}).get("options", [])),
    }


def _below_tuned(campaigns: Sequence[Campaign]) -> str:
    """Return in how many campaigns production was sooner with yarnctl than with YARN's tuned preemption."""
    both = {each.name: (each.median_s("yarnctl", "production"), each) for each in campaigns}
    pairs = [
        (ours, tuned)
        for ours, each in both.values()
        if ours and (tuned := each.median_s("yarn-tuned", "production"))
    ]
    return f"{sum(ours < tuned for ours, tuned in pairs)} of {len(pairs)}"


def _as_shipped(found: dict[str, Any] | None) -> dict[str, Any]:
    names = ("production_ratio", "research_ratio")
    if found is None:
        return {"runs": 0, **dict.fromkeys(names, NOT_RUN)}
    return {"runs": found["runs"], **{name: rounded(found[name]) for name in names}}


def _ratios(found: dict[str, dict[str, Any]], job: str) -> dict[str, float | None]:
    ratios = {name: each[f"{job}_ratio"] for name, each in found.items()}
    return {name: rounded(ratio) for name, ratio in ratios.items() if ratio is not None}


def rounded(value: float | None, digits: int = 3) -> float | None:
    """Return a figure to so many digits; None stays None."""
    return None if value is None else round(value, digits)


def main(arguments: Sequence[str]) -> int:
    """Print the figures as JSON."""
    try:
        campaigns = all_of()
        campaign = named(arguments[0]) if arguments else judged(campaigns)
        print(json.dumps(figures(campaign, campaigns), indent=1))
    except YarnctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
