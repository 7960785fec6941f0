"""The figures of a study: each pair of hours under each scheme, and the summary over all pairs.

Law: research/notes/levers.md, "How unseen hours are judged", has every figure. A pair's figure is the mean over its
seeds, a scheme's the mean over its pairs; a figure against what was not played, or against zero, is None.
Rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.experiments.results.summary import levers_of, summary_of, waiting_s
from emulator.virtual.run import Result
from yarn_research.papers.figures import mean, share
from yarn_research.studies.hour_pairs import HourPair
from yarn_research.studies.study_runs import Results, Study

TUNED, SOFT_CAP, NATJAM = "yarn-tuned", "soft-cap", "natjam"
AGAINST = {"tuned": TUNED, "soft_cap": SOFT_CAP, "natjam": NATJAM}
"""What a scheme is compared with, by the word in the figures' names."""

MARGIN = 1.02
COUNTED = ("production_mean_s", "research_mean_s", "lost_work_s", "refetch_s")
COMPARED = {"production": "production_mean_s", "research": "research_mean_s", "lost": "lost_work_s"}

Entry = Mapping[str, Any]
"""One pair of hours with one seed, as ``pairs`` of the JSON has it."""

Columns = Mapping[str, list[Any]]
"""One scheme: name of a figure -> its value in each pair (None where it was not counted)."""


def scheme_entry(result: Result) -> dict[str, Any]:
    """Return what one run came to; without levers ``refetch_s`` is 0, and no lever is told."""
    one = summary_of(result)
    return {
        "production_mean_s": one.production.mean_s,
        "research_mean_s": one.research.mean_s,
        "lost_work_s": one.lost_work_s,
        "refetch_s": 0.0,
        "overhead_s": one.overhead_s,
        "suspensions": one.suspensions,
        "kills": one.kills,
        **levers_of(result),
        "waiting": waiting_s(result),
    }


def study_json(study: Study, results: Results) -> dict[str, Any]:
    """Return what ``study --json`` prints: every pair with every seed, and the summary."""
    runs: dict[tuple[HourPair, int], dict[str, Any]] = {}
    for played, result in results.items():
        runs.setdefault((played.pair, played.seed), {})[played.row] = scheme_entry(result)
    entries = [
        {
            "production_hour": pair.production,
            "research_hour": pair.research,
            "seed": seed,
            "schemes": schemes,
        }
        for (pair, seed), schemes in runs.items()
    ]
    return {"pairs": entries, "summary": summary(entries), "identity": study.identity}


# --- the summary -------------------------------------------------------------------------------


def summary(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """Return each scheme's figures over all pairs, from the entries of the pairs."""
    played = columns_of(entries)
    return {
        scheme: {
            "pairs": len(own["production_mean_s"]),
            **{name: _short(_mean(own[name]), 3) for name in COUNTED},
            **_ratios_of_means(own, played),
            **_by_pair(own, played.get(TUNED)),
            **_shares(own, played),
        }
        for scheme, own in played.items()
    }


def columns_of(entries: Sequence[Entry]) -> dict[str, Columns]:
    """Return each scheme's figures, pair by pair: the means over a pair's seeds."""
    pairs: dict[tuple[int, int], list[Entry]] = {}
    for entry in entries:
        pairs.setdefault((entry["production_hour"], entry["research_hour"]), []).append(entry["schemes"])
    schemes = entries[0]["schemes"] if entries else ()
    return {
        scheme: {
            name: [_mean([each[scheme][name] for each in seeds]) for seeds in pairs.values()]
            for name in COUNTED
        }
        for scheme in schemes
    }


def _ratios_of_means(own: Columns, played: Mapping[str, Columns]) -> dict[str, float | None]:
    """Return ``production_over_tuned`` and so on: the mean over all pairs divided by the other scheme's."""
    return {
        f"{head}_over_{word}": _short(_over(_mean(own[name]), _mean(played[scheme][name])))
        if scheme in played
        else None
        for word, scheme in AGAINST.items()
        for head, name in COMPARED.items()
    }


def _by_pair(own: Columns, tuned: Columns | None) -> dict[str, float | None]:
    """Return the means of the pairs' own ratios against tuned YARN."""
    names = {f"{head}_over_tuned_by_pair": COMPARED[head] for head in ("production", "research")}
    if tuned is None:
        return dict.fromkeys(names)
    return {
        figure: _short(_mean([_over(*both) for both in zip(own[name], tuned[name], strict=True)]))
        for figure, name in names.items()
    }


def _shares(own: Columns, played: Mapping[str, Columns]) -> dict[str, float | None]:
    """Return the shares of pairs in which a class is at most as slow as a limit."""
    production, research = "production_mean_s", "research_mean_s"
    return {
        "production_at_most_102_ratio": _share(own, production, played, MARGIN, max, TUNED),
        "production_at_most_102_soft_cap_ratio": _share(own, production, played, MARGIN, max, SOFT_CAP),
        "research_at_most_tuned_ratio": _share(own, research, played, 1.0, max, TUNED),
        "research_at_most_worse_ratio": _share(own, research, played, 1.0, max, TUNED, NATJAM),
        "research_at_most_102_better_ratio": _share(own, research, played, MARGIN, min, TUNED, NATJAM),
    }


def _share(
    own: Columns,
    name: str,
    played: Mapping[str, Columns],
    margin: float,
    pick: Callable[[Sequence[float]], float],
    *against: str,
) -> float | None:
    """Return the share of pairs with a figure <= ``margin`` x the picked one of ``against``."""
    if not all(scheme in played for scheme in against):
        return None
    others = zip(*(played[scheme][name] for scheme in against), strict=True)
    over = [value / pick(limits) for value, limits in zip(own[name], others, strict=True)]
    return _short(share(over, margin))


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if a value is missing."""
    there = [value for value in values if value is not None]
    return mean(there) if there and len(there) == len(values) else None


def _over(value: float | None, other: float | None) -> float | None:
    return value / other if value is not None and other else None


def _short(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)


# --- the table ---------------------------------------------------------------------------------

TABLE_COLUMNS = (
    "scheme",
    "production s",
    "research s",
    "lost h",
    "refetch h",
    "production / tuned",
    "research / tuned",
    "lost / tuned",
    "production <= 1.02 tuned",
    "production <= 1.02 soft cap",
    "research <= tuned",
)


def table_rows(found: Mapping[str, Mapping[str, Any]]) -> list[tuple[object, ...]]:
    """Return the summary as rows of the table that is printed."""
    return [
        (
            scheme,
            *(_short(one[name], 1) for name in ("production_mean_s", "research_mean_s")),
            *(_hours(one[name]) for name in ("lost_work_s", "refetch_s")),
            *(_short(one[f"{head}_over_tuned"], 3) for head in COMPARED),
            _percent(one["production_at_most_102_ratio"]),
            _percent(one["production_at_most_102_soft_cap_ratio"]),
            _percent(one["research_at_most_tuned_ratio"]),
        )
        for scheme, one in found.items()
    ]


def _hours(span_s: float | None) -> float | None:
    return None if span_s is None else round(span_s / 3600, 2)


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.0%}"
