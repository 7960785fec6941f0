"""Conclusions: which scheme a comparison recommends, and why, in plain sentences.

Invariants:

* Every figure is one of the comparison's. Nothing is said of a scheme that was not run.
* The rule does not know which schemes are yarnctl's. It recommends another scheme in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from emulator.experiments.results.summary import ClassSummary, SchemeSummary
from emulator.virtual.schemes import SCHEMES

Summaries = Mapping[str, SchemeSummary]

NEAR_RATIO = 1.02
"""Up to this ratio to the fastest scheme, production counts as equally fast."""

RULE = (
    f"Rule: of the schemes with production within {NEAR_RATIO - 1:.0%} of the fastest, the one that loses"
    " least work; where two lose the same, the one with the shorter research time."
)


class Recommendation(NamedTuple):
    """The recommended scheme, and the fastest of the other schemes for production."""

    scheme: str
    rival: str


def recommended(summaries: Summaries) -> Recommendation | None:
    """Return what ``RULE`` recommends; None with fewer than two schemes, or where a class has no jobs."""
    shared = {
        name: (one.production.mean_s, one.lost_work_s, one.research.mean_s)
        for name, one in summaries.items()
        if not SCHEMES[name].alone
    }
    times = {name: production for name, (production, _, _) in shared.items() if production is not None}
    if len(times) < 2 or any(research is None for _, _, research in shared.values()):
        return None
    fastest_s = min(times.values())
    near = [name for name, mean_s in times.items() if mean_s <= fastest_s * NEAR_RATIO]
    best = min(near, key=lambda name: shared[name][1:])
    return Recommendation(best, min((name for name in times if name != best), key=times.__getitem__))


def finding(summaries: Summaries) -> str:
    """Return the comparison in one sentence: the recommended scheme beside its rival."""
    found = recommended(summaries)
    if found is None:
        return "; ".join(f"{name}: {_figures(one)}" for name, one in summaries.items())
    best, rival = summaries[found.scheme], summaries[found.rival]
    beside = ", ".join((_mean(rival.production), _mean(rival.research), _hours(rival.lost_work_s)))
    return f"Recommended: {found.scheme}. {_figures(best).capitalize()} ({found.rival}: {beside})"


def reasons(summaries: Summaries) -> list[str]:
    """Return why a scheme is recommended, and where natjam and soft-cap differ from it; [] without one."""
    found = recommended(summaries)
    if found is None:
        return []
    best, rival = summaries[found.scheme], summaries[found.rival]
    sentences = [
        f"{found.scheme} ({SCHEMES[found.scheme].what}) is recommended.",
        f"Production takes {_compared(best.production, rival.production, found.rival)}.",
        f"Research takes {_compared(best.research, rival.research, found.rival)}.",
        f"{_hours(best.lost_work_s)} of container time are lost, under {found.rival}"
        f" {_hours(rival.lost_work_s)}.",
    ]
    return [*sentences, *_differences(summaries, found.scheme)]


def _differences(summaries: Summaries, best: str) -> list[str]:
    """Return why natjam alone is slower for production and soft-cap is kinder to research, if they are."""
    sentences = []
    natjam, soft_cap, chosen = summaries.get("natjam"), summaries.get("soft-cap"), summaries[best]
    if natjam is not None and _seconds(natjam.production) > _seconds(chosen.production) * NEAR_RATIO:
        sentences.append(
            f"natjam alone is slower for production ({_seconds(natjam.production):.0f} s): it suspends only"
            " reduces that have begun work, and waits until maps and other reduces end."
        )
    if soft_cap is not None and _seconds(soft_cap.research) < _seconds(chosen.research):
        sentences.append(
            f"soft-cap is kinder to research ({_seconds(soft_cap.research):.0f} s): it takes no container"
            " from a running task. Production pays with its waiting time"
            f" ({_seconds(soft_cap.production):.0f} s)."
        )
    return sentences


def over_ideal(summaries: Summaries, summary: SchemeSummary, job_class: str) -> float | None:
    """Return by how much the mean completion time of a class exceeds ideal's, as a ratio (0: equal)."""
    if "ideal" not in summaries:
        return None
    best: ClassSummary = getattr(summaries["ideal"], job_class)
    own: ClassSummary = getattr(summary, job_class)
    return None if not best.mean_s or own.mean_s is None else own.mean_s / best.mean_s - 1.0


def against_ideal(ratio: float | None) -> str | None:
    """Return a ratio over ideal in percent, or as a multiple from +100 % on: ``+17%``, ``2.4x``."""
    return None if ratio is None else f"{ratio:+.0%}" if ratio < 1 else f"{ratio + 1:.1f}x"


def _compared(own_summary: ClassSummary, summary: ClassSummary, name: str) -> str:
    percent = round((_seconds(own_summary) / _seconds(summary) - 1) * 100)
    if not percent:
        return f"{_seconds(own_summary):.0f} s, as long as under {name}"
    change = f"{abs(percent)} % {'more' if percent > 0 else 'less'}"
    return f"{_seconds(own_summary):.0f} s, {change} than under {name} ({_seconds(summary):.0f} s)"


def _figures(summary: SchemeSummary) -> str:
    times = f"production {_mean(summary.production)}, research {_mean(summary.research)}"
    return f"{times}, {_hours(summary.lost_work_s)} of work lost"


def _mean(summary: ClassSummary) -> str:
    return "without jobs" if summary.mean_s is None else f"{summary.mean_s:.0f} s"


def _seconds(summary: ClassSummary) -> float:
    return summary.mean_s or 0.0


def _hours(span_s: float) -> str:
    """Return a span of container time; below 6 minutes in seconds, which hours would show as 0.0."""
    return "0 h" if not span_s else f"{span_s / 3600:.1f} h" if span_s >= 360 else f"{span_s:.0f} s"
