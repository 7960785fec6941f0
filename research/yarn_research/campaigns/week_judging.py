"""What a short week shows: the claims of ``week_hadoop``, from its parts as they are kept.

``python -m yarn_research.campaigns.week_judging FILE`` judges one. Pure but for that.

Law: a claim whose parts are not there does not hold, and has no figure.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean, median
from typing import Any

import msgspec

from yarn_research.campaigns.kept_file import tell
from yarn_research.campaigns.tree_order import interval
from yarn_research.studies.when_ending import Judged, figures

BILL_OFF_MAX, WEEK_OFF_MAX, PREDICTED_OFF_MAX = 0.02, 0.05, 0.08
SLACK_LEAST, WHEN_LEAST = 0.7, 50
COVERED_LEAST, COVERED_MOST, WIDTH_MOST = 0.87, 0.93, 0.7
BOUNDED_RUNS = 19
"""From so many earlier jobs on a 90 % interval ends at one of them; with fewer at twice the longest."""
TWICE = ("yarn-1", "yarn-2")
BILLS, FRAMEWORKS = ("bill", "bill_forgotten"), ("MapReduce", "Spark")

Parts = Mapping[str, dict[str, Any]]
Noted = dict[str, Any]


class WeekClaim(msgspec.Struct, frozen=True):
    """A claim of the rule; ``count``: how many jobs it is about. ``rows``: each job, where jobs are judged.

    ``holds``: None where the figure is told only.
    """

    claim: str
    target: str
    ours: float | None
    count: int
    holds: bool | None
    rows: list[dict[str, Any]] = []


def judged(parts: Parts) -> list[WeekClaim]:
    """Judge what was played."""
    bills = [_bill(parts, *each) for each in product(TWICE, BILLS, FRAMEWORKS)]
    return [
        _succeeded(parts),
        *bills,
        *_oversized(parts),
        *_as_it_was(parts),
        _predicted(parts),
        *_when(parts),
    ]


def _succeeded(parts: Parts) -> WeekClaim:
    jobs = [(part, job) for part in (*TWICE, "mix") for job in parts.get(part, {}).get("jobs", ())]
    failed = [{"part": part, **job} for part, job in jobs if job["state"] != "SUCCEEDED"]
    return WeekClaim("jobs that failed", "0", len(failed), len(jobs), bool(jobs) and not failed, failed)


def _bill(parts: Parts, part: str, which: str, framework: str) -> WeekClaim:
    """Compare a bill with the ResourceManager's sums, for each job that either knows as preempted."""
    name, target = f"{which} of {part}: {framework}", "each job's work within 2 %, its containers equal"
    if which not in parts.get(part, {}):
        return WeekClaim(name, target, None, 0, False)
    billed = {row["keys"][0]: row for row in parts[part][which]["rows"]}
    unknown = billed.keys() - {job["application"] for job in parts[part]["jobs"]}
    rows = []
    for job in parts[part]["jobs"]:
        row = billed.get(job["application"], {"lost_mib_s": 0, "containers": 0, "unattributed": 0})
        is_of_it = job["kind"].startswith("spark") == (framework == "Spark")
        if is_of_it and (job["preempted"] or row["containers"]):
            off = abs(row["lost_mib_s"] - job["lost_mib_s"]) / max(1, job["lost_mib_s"])
            told = {
                key: job[key] for key in ("application", "kind", "name", "lost_mib_s", "preempted", "masters")
            }
            told |= {"billed_mib_s": row["lost_mib_s"], "billed": row["containers"]}
            rows.append({**told, "unattributed": row["unattributed"], "off_ratio": round(off, 4)})
    worst = max((row["off_ratio"] for row in rows), default=None)
    is_whole = not unknown and all(row["billed"] == row["preempted"] for row in rows)
    is_near = worst is not None and worst <= BILL_OFF_MAX
    return WeekClaim(name, target, worst, len(rows), is_near and is_whole, rows)


def _oversized(parts: Parts) -> list[WeekClaim]:
    """Compare what ``yarn-2`` requested by advice with what it used, for each job that had advice."""
    first, second = (parts.get(part, {}).get("jobs", ()) for part in TWICE)
    before = {job["number"]: job["requested_mib"] for job in first}
    rows = [
        {
            "number": job["number"],
            "name": job["name"],
            "before_mib": before[job["number"]],
            "advised_mib": job["requested_mib"],
            "peak_mib": job["peak_mib"],
        }
        for job in second
        if "peak_mib" in job and job["number"] in before
    ]
    advised = sum(row["advised_mib"] < row["before_mib"] for row in rows)
    undershot = sum(row["peak_mib"] > row["advised_mib"] for row in rows)
    slack = sum(max(0, row["before_mib"] - row["peak_mib"]) for row in rows)
    found = sum(row["before_mib"] - row["advised_mib"] for row in rows) / slack if slack else None
    is_found = found is not None and found >= SLACK_LEAST
    return [
        WeekClaim("peaks undershot", "0", undershot, len(rows), advised > 0 and not undershot, rows),
        WeekClaim("slack found", f">= {SLACK_LEAST:.0%}", found, len(rows), is_found),
    ]


def _as_it_was(parts: Parts) -> list[WeekClaim]:
    found = []
    told = parts.get("as-it-was", {})
    for what, field in (("completion", "completion_off_ratio"), ("preempted", "preempted_off_ratio")):
        week = told.get("yarn-2", {}).get("as_it_was")
        off = week and week[field]
        rows = week["jobs" if what == "completion" else "preempted"] if week else []
        holds = off is not None and off <= WEEK_OFF_MAX
        found.append(WeekClaim(f"as it was: {what}", "<= 5 % median", off, len(rows), holds, rows))
    return found


def seal_of(prediction: object) -> str:
    """Return the SHA-256 of a prediction."""
    return hashlib.sha256(msgspec.json.encode(prediction, order="sorted")).hexdigest()


def _predicted(parts: Parts) -> WeekClaim:
    """Compare the prediction from ``yarn-2`` with ``mix``, job by job of the load."""
    sealed = parts.get("sealed", {})
    name, target = "predicted under mix", "<= 8 % median, sealed before"
    target += "" if sealed.get("reproduced", True) else "; from a week that is not reproduced"
    if not sealed.get("prediction") or "mix" not in parts:
        return WeekClaim(name, target, None, 0, False)
    number_of = {job["application"]: job["number"] for job in parts["yarn-2"]["jobs"]}
    took_ms = {job["number"]: job["ended_ms"] - job["submitted_ms"] for job in parts["mix"]["jobs"]}
    rows = []
    for each in sealed["prediction"]["jobs"]:
        if each["scheme"] == "mix" and each["job"] in number_of:
            number = number_of[each["job"]]
            off = abs(each["predicted_ms"] - took_ms[number]) / took_ms[number]
            told = {"number": number, "predicted_ms": each["predicted_ms"], "took_ms": took_ms[number]}
            rows.append({**told, "off_ratio": round(off, 4)})
    off_ratio = median(row["off_ratio"] for row in rows) if rows else None
    is_sealed = seal_of(sealed["prediction"]) == sealed["sha256"] == parts["mix"]["sealed_sha256"]
    is_near = off_ratio is not None and off_ratio <= PREDICTED_OFF_MAX
    is_whole = len(rows) == len(took_ms)
    return WeekClaim(name, target, off_ratio, len(rows), is_near and is_sealed and is_whole, rows)


def _when(parts: Parts) -> list[WeekClaim]:
    """Judge the intervals of ends. Starts, and ends foretold from many earlier jobs, are told beside."""
    ends, known, starts = list[Judged](), list[Judged](), list[bool]()
    spans, rows = dict[str, list[int]](), list[Noted]()
    for part in ("yarn-2", "mix"):
        for job in parts.get(part, {}).get("jobs", ()):
            if "shown_ms" not in job:
                continue
            queue, shown_ms = f"{part}/{job['queue']}", job["shown_ms"]
            spans.setdefault(queue, []).append(job["ended_ms"] - shown_ms)
            if "starts" in job:
                starts.append(_is_inside(job["starts"], job["launched_ms"]))
            if "ends" in job:
                told = job["ends"]
                least_ms, most_ms = told["least_at_ms"] - shown_ms, told["most_at_ms"] - shown_ms
                ends.append(Judged(queue, job["ended_ms"] - shown_ms, least_ms, most_ms))
                known += ends[-1:] if told["runs"] >= BOUNDED_RUNS else []
                rows.append(
                    {"part": part, "number": job["number"], **ends[-1]._asdict(), "runs": told["runs"]}
                )
    count, inside = len(ends), sum(each.is_inside for each in ends)
    low, high = interval(inside, count) if count else (0.0, 1.0)
    width = _width(ends, spans)
    told_of = f"{low:.1%} to {high:.1%} (exact, 95 %) meets 87 to 93 %, of >= {WHEN_LEAST} jobs"
    is_covered = count >= WHEN_LEAST and low <= COVERED_MOST and high >= COVERED_LEAST
    range_of = f"<= {WIDTH_MOST} of the queue's 5-95 % range"
    is_narrow = width is not None and width <= WIDTH_MOST
    of_many, wide = f"when: ends, from {BOUNDED_RUNS} jobs on", _width(known, spans)
    return [
        WeekClaim("when: ends covered", told_of, _share(ends), count, is_covered, rows),
        WeekClaim("when: median width", range_of, width, count, is_narrow),
        WeekClaim(f"{of_many}, covered", "not judged", _share(known), len(known), None),
        WeekClaim(f"{of_many}, width", "not judged", wide, len(known), None),
        WeekClaim("when: starts covered", "not judged", fmean(starts) if starts else None, len(starts), None),
    ]


def _share(of: Sequence[Judged]) -> float | None:
    return fmean(each.is_inside for each in of) if of else None


def _width(of: list[Judged], spans: dict[str, list[int]]) -> float | None:
    """Return the median width over the queue's own range; None where a queue has no range."""
    is_ranged = bool(of) and all(len(each) > 1 for each in spans.values())
    return figures(of, spans).width_ratio if is_ranged else None


def _is_inside(foretold: Noted, at_ms: int) -> bool:
    return bool(foretold["least_at_ms"] <= at_ms <= foretold["most_at_ms"])


def main(arguments: Sequence[str]) -> int:
    """Judge a kept file; print what came out as JSON."""
    return tell(arguments, "week-hadoop", lambda held: {"claims": judged(held["parts"])})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
