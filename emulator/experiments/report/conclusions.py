"""The reading: what the numbers of a comparison say, in plain sentences.

Law: every word follows from the numbers; nothing is claimed of a scheme that was not run, and
a result against our schemes is reported in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping

from emulator.experiments.results.summary import ClassSummary, SchemeSummary
from emulator.virtual.schemes import SCHEMES

Summaries = Mapping[str, SchemeSummary]


def finding(summaries: Summaries) -> str:
    """Return the finding in one sentence."""
    if "natjam" not in summaries:
        return "Schemes side by side: " + ", ".join(summaries)
    natjam = summaries["natjam"]
    losing = [name for name in ("kill", "yarn", "yarn-tuned") if name in summaries]
    lost = [f"{name} {_hours(summaries[name].lost_work_s)}" for name in losing if summaries[name].lost_work_s]
    said = f"natjam: {_delay(summaries, 'natjam')}, {_loss(natjam)}"
    return f"{said}; lost under {', '.join(lost)}" if lost else said


def reading(summaries: Summaries) -> list[str]:
    """Return one sentence per scheme: what production pays, what research pays."""
    return [_sentence(summaries, name) for name in summaries]


def _sentence(summaries: Summaries, name: str) -> str:
    one = summaries[name]
    said = [f"{name} ({SCHEMES[name].what})"]
    if name == "ideal":
        return f"{said[0]}: production {_mean(one.production)}, research {_mean(one.research)} on average."
    said.append(f"production {_against(summaries, one, 'production')}")
    said.append(f"research {_against(summaries, one, 'research')}")
    if one.suspensions or one.kills or one.lost_work_s:
        counts = [f"{one.suspensions} suspensions"] if one.suspensions else []
        counts += [f"{one.kills} kills"] if one.kills else []
        counts.append(_loss(one))
        said.append(", ".join([*counts, f"{_hours(one.overhead_s)} spent on coming back"]))
    return f"{said[0]}: {'; '.join(said[1:])}."


def _against(summaries: Summaries, one: SchemeSummary, job_class: str) -> str:
    ours: ClassSummary = getattr(one, job_class)
    ratio = over_ideal(summaries, one, job_class)
    return _mean(ours) if ratio is None else f"{_mean(ours)} ({against_ideal(ratio)})"


def over_ideal(summaries: Summaries, one: SchemeSummary, job_class: str) -> float | None:
    """Return by how much the mean completion time of a class exceeds ideal's, as a ratio (0: equal)."""
    if "ideal" not in summaries:
        return None
    best: ClassSummary = getattr(summaries["ideal"], job_class)
    ours: ClassSummary = getattr(one, job_class)
    return None if not best.mean_s or ours.mean_s is None else ours.mean_s / best.mean_s - 1.0


def against_ideal(ratio: float) -> str:
    """Say a ratio over ideal: in percent, or as a multiple where that reads better."""
    return f"{_percent(ratio)} against ideal" if ratio < 1 else f"{ratio + 1:.1f} times ideal"


def _delay(summaries: Summaries, name: str) -> str:
    one = summaries[name]
    ratio = over_ideal(summaries, one, "production")
    if ratio is None:
        return f"production {_mean(one.production)} on average"
    return f"production {_percent(ratio)} over ideal"


def _loss(one: SchemeSummary) -> str:
    return "research loses nothing" if one.lost_work_s == 0 else f"{_hours(one.lost_work_s)} of work lost"


def _percent(ratio: float) -> str:
    percent = round(ratio * 100)
    return f"{'+' if percent >= 0 else '-'}{abs(percent)} %"


def _mean(summary: ClassSummary) -> str:
    return "no jobs" if summary.mean_s is None else f"{summary.mean_s:.0f} s"


def _hours(span_s: float) -> str:
    return f"{span_s / 3600:.1f} container hours" if span_s >= 360 else f"{span_s:.1f} container seconds"
