"""One cell of section 6.3 as figures: waits, slack, late jobs, jumps, earliness, what was paid.

Law: a wait is the time in the system less the duration; a job jumps if it ends before one that came
before it; earliness is that of jobs that are not late.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from yarn_research.market.market_replay import Sold, replay
from yarn_research.market.priced_jobs import MarketOrder, PricedJobs, jobs

if TYPE_CHECKING:
    from numpy.typing import NDArray


class UserFigures(NamedTuple):
    """What became of the sensitive jobs, or of the tolerant ones."""

    wait_s: float
    wait_p05_s: float
    wait_p95_s: float
    slack_median_s: float
    slack_p95_s: float
    jumped_ratio: float
    jumped_of_those_who_could_ratio: float
    late_ratio: float
    paid_median: float | None
    paid_p95: float | None


class MarketFigures(NamedTuple):
    """One replay: ``paid`` is over used, median and 95th percentile; None where nothing is priced."""

    late_ratio: float
    sensitive: UserFigures
    tolerant: UserFigures
    earliness_s: float
    paid_median: float | None
    paid_p95: float | None
    wall_s: float


def cell(asked: MarketOrder) -> MarketFigures:
    """Draw, replay and measure."""
    begun = time.perf_counter()
    drawn = jobs(asked)
    found = replay(asked, drawn)
    return _measured(drawn, found, asked.scheduler == "mrm", begun)


def _measured(drawn: PricedJobs, found: Sold, priced: bool, begun: float) -> MarketFigures:
    late = found.ended_ms > found.deadline_ms
    before_ms = np.concatenate([[0], np.maximum.accumulate(found.ended_ms)[:-1]])
    columns = {
        "wait_ms": found.ended_ms - drawn.arrived_ms - drawn.duration_ms,
        "slack_ms": found.slack_ms,
        "late": late,
        "jumped": before_ms > found.ended_ms,
        "could": found.saw_tolerant,
        "paid": found.price / drawn.duration_ms,
    }
    groups = [_group(columns, mask, priced) for mask in (drawn.sensitive, ~drawn.sensitive)]
    early_ms = (found.deadline_ms - found.ended_ms)[~late]
    paid = _paid(columns["paid"], priced)
    return MarketFigures(
        float(late.mean()),
        groups[0],
        groups[1],
        float(early_ms.mean()) / 1000 if len(early_ms) else 0.0,
        *paid,
        round(time.perf_counter() - begun, 4),
    )


def _group(columns: dict[str, NDArray[Any]], mask: NDArray[np.bool_], priced: bool) -> UserFigures:
    own = {name: values[mask] for name, values in columns.items()}
    if not len(own["late"]):
        return UserFigures(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None)
    could = own["jumped"][own["could"]]
    return UserFigures(
        float(own["wait_ms"].mean()) / 1000,
        float(np.quantile(own["wait_ms"], 0.05)) / 1000,
        float(np.quantile(own["wait_ms"], 0.95)) / 1000,
        float(np.median(own["slack_ms"])) / 1000,
        float(np.quantile(own["slack_ms"], 0.95)) / 1000,
        float(own["jumped"].mean()),
        float(could.mean()) if len(could) else 0.0,
        float(own["late"].mean()),
        *_paid(own["paid"], priced),
    )


def _paid(ratios: NDArray[Any], priced: bool) -> tuple[float | None, float | None]:
    if not priced:
        return None, None
    return float(np.median(ratios)), float(np.quantile(ratios, 0.95))


def as_told(found: MarketFigures) -> dict[str, Any]:
    """Return what ``yarn-research market --json`` prints."""
    return {
        "late_ratio": found.late_ratio,
        "sensitive": _group_told(found.sensitive),
        "tolerant": _group_told(found.tolerant),
        "earliness_s": found.earliness_s,
        "paid_over_used": {"median": found.paid_median, "p95": found.paid_p95},
        "wall_s": found.wall_s,
    }


def _group_told(group: UserFigures) -> dict[str, Any]:
    told = group._asdict()
    paid = {"median": told.pop("paid_median"), "p95": told.pop("paid_p95")}
    return {**told, "paid_over_used": paid}
