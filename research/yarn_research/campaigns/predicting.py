"""``python -m yarn_research.campaigns.predicting``: completion times on a real Hadoop, predicted before they are run.

Law: ``make`` writes a file that is committed before the runs, with the calibration, every parameter and how
it will be judged; ``check`` compares it with campaigns that began later, and never writes. A scheme counts
only where it was told the same in both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.campaigns.campaign import FOLDER, JOBS, Campaign, all_of, named
from yarn_research.campaigns.fidelity import (
    IN_FLIGHT_RATIO,
    SEEDS,
    Calibration,
    calibration,
    commit_of,
    fitted_on,
    means,
    predict,
)
from yarn_research.campaigns.judging import NOT_RUN
from yarn_research.campaigns.provenance import commit, now, uncommitted
from yarn_research.campaigns.recording import ELSEWHERE
from yarn_research.campaigns.schemes import ALL
from yarn_research.campaigns.spans import FITTED, ONLY_ATTACHED, Fit
from yarnctl.errors import BadInput, YarnctlError

KIND = "prediction"
JUDGED = (
    "deviation_ratio = predicted median / median of the campaign's counted runs - 1, for each job of each "
    "scheme here that a later campaign ran with the same options; the target is a mean absolute deviation of "
    "at most 0.03 over the schemes named under new; the same over all, and over those with yarnctl attached, is "
    "reported beside it; nothing is fitted again before"
)


def make(schemes: Sequence[str]) -> dict[str, Any]:
    """Return the document: what each scheme's jobs will take, with everything it was computed from."""
    fitted_from = calibration()
    fitted = fitted_on(named(fitted_from.campaign), fitted_from.scheme)
    found = {
        "kind": KIND,
        "made": now(),
        "commit": commit(),
        "uncommitted": uncommitted(ELSEWHERE),
        "judged": JUDGED,
        "calibration": fitted_from._asdict(),
        "seeds": SEEDS,
        "parameters": parameters(fitted, fitted_from),
        "arrival": "as the scheme says (arrives_s after research), not as it will turn out",
        "schemes": {name: ALL[name]._asdict() for name in schemes},
        "new": [name for name in schemes if not any(each.of(name) for each in all_of())],
        "predicted": {name: predicted(fitted, name) for name in schemes},
    }
    return msgspec.json.decode(msgspec.json.encode(found), type=dict[str, Any])


def parameters(fitted: Fit, fitted_from: Calibration) -> dict[str, Any]:
    """Return every number that a prediction hangs on: what was read off, and what was set by hand."""
    attached = ALL[fitted_from.scheme].attached
    names = FITTED if attached else tuple(name for name in FITTED if name not in ONLY_ATTACHED)
    timing = {name: getattr(fitted.timing, name) for name in fitted.timing.__struct_fields__}
    every = {**timing, **{name: value for name, value in fitted._asdict().items() if name != "timing"}}
    every |= {"in_flight_ratio": IN_FLIGHT_RATIO}
    every.pop("launch_error_ratio")
    return {
        "fitted": {name: every.pop(name) for name in names},
        "constants": every,
        "launch_error_ratio": fitted.launch_error_ratio,
    }


def predicted(fitted: Fit, scheme: str) -> dict[str, Any]:
    """Return the median, the least and the most of every job's completion over all seeds, s."""
    benched = ALL[scheme]
    arrives_ms = round(benched.arrives_s * 1000)
    drawn = [predict(fitted, benched, arrives_ms, seed) for seed in range(SEEDS)]
    return {
        f"{job}_s": {
            "median": round(statistics.median(times), 1),
            "least": round(min(times), 1),
            "most": round(max(times), 1),
        }
        for job in JOBS
        if (times := [each[job] for each in drawn if job in each])
    }


def check(document: Mapping[str, Any], campaigns: Sequence[Campaign]) -> dict[str, Any]:
    """Return a row for each predicted time that was run since, and their mean absolute deviation."""
    rows = [
        _row(campaign, scheme, job, span["median"])
        for campaign in campaigns
        if campaign.began and campaign.began > document["made"]
        for scheme, jobs in document["predicted"].items()
        if campaign.configuration["schemes"].get(scheme) == document["schemes"][scheme]
        for job, span in ((name.removesuffix("_s"), span) for name, span in jobs.items())
        if campaign.times_s(scheme, job)
    ]
    run = {row["scenario"] for row in rows}
    judged = [each for each in campaigns if any(row["campaign"] == each.name for row in rows)]
    return {
        "made": document["made"],
        "predicted_at": document["commit"],
        "campaign": ", ".join(each.name for each in judged),
        "commit": commit_of(judged),
        **_means(rows),
        "attached": _means([row for row in rows if row["attached"]]),
        "new": _means([row for row in rows if row["scenario"] in document["new"]]),
        "not_run": [scheme for scheme in document["predicted"] if scheme not in run],
        "rows": rows,
    }


def _means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = means(rows)
    return found if rows else found | {"mean_deviation_ratio": NOT_RUN}


def _row(campaign: Campaign, scheme: str, job: str, predicted_s: float) -> dict[str, Any]:
    times = campaign.times_s(scheme, job)
    real = statistics.median(times)
    return {
        "campaign": campaign.name,
        "scenario": scheme,
        "attached": campaign.configuration["schemes"][scheme]["attached"],
        "job": job,
        "runs": len(times),
        "cluster_s": round(real, 1),
        "predicted_s": predicted_s,
        "deviation_ratio": round(predicted_s / real - 1, 4),
        "noise_ratio": round(statistics.stdev(times) / len(times) ** 0.5 / real, 4) if times[1:] else None,
    }


def main(arguments: Sequence[str]) -> int:
    """Make a file of predictions, or check one."""
    parser = argparse.ArgumentParser(prog="python -m yarn_research.campaigns.predicting")
    actions = parser.add_subparsers(dest="action", required=True)
    making = actions.add_parser("make", help="predict schemes and write the file, which must not be there")
    making.add_argument("file", type=Path)
    making.add_argument("schemes", nargs="+", choices=sorted(ALL), metavar="SCHEME")
    checking = actions.add_parser("check", help="compare the newest file (or one) with what was run since")
    checking.add_argument("file", type=Path, nargs="?")
    given = parser.parse_args(arguments)
    try:
        if given.action == "make":
            _write(given.file, make(given.schemes))
        else:
            document = json.loads((given.file or newest()).read_bytes())
            print(json.dumps(check(document, all_of()), indent=1))
    except YarnctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def newest(folder: Path = FOLDER) -> Path:
    """Return the newest file of predictions."""
    found = sorted(folder.glob("predictions-*.json"))
    if not found:
        raise BadInput(
            folder.name,
            "holds no predictions",
            "python -m yarn_research.campaigns.predicting make FILE SCHEME",
        )
    return found[-1]


def _write(path: Path, document: Mapping[str, Any]) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=1) + "\n")
    except FileExistsError:
        raise BadInput(
            path.name, "is there already", "give another name: a prediction is never changed"
        ) from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
