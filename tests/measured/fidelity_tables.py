"""Tables of how far the emulator is from the real cluster, and of everything that its predictions hang on.

Law: all of it is computed from the committed campaigns by the emulator as it is now; what was predicted
before a run is read from the file that was committed then.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.cluster.fidelity import calibration, fitted_on, rows, told
from tests.cluster.predicting import check, newest
from tests.cluster.predicting import parameters as every_parameter
from tests.measured.campaign import all_of, named
from tests.measured.tables import label, rank, short, table


@functools.cache
def document() -> dict[str, Any]:
    """Return the deviations of all campaigns."""
    fitted_from = calibration()
    fitted = fitted_on(named(fitted_from.campaign), fitted_from.scheme)
    return told(rows(all_of(), fitted, fitted_from), fitted_from)


@functools.cache
def checked() -> dict[str, Any]:
    """Return what came of the newest predictions."""
    return check(json.loads(newest().read_bytes()), all_of())


def deviations(_: Sequence[str]) -> str:
    """Return every completion time: cluster, emulator, deviation."""
    campaigns = {each.name: each for each in all_of()}
    found = sorted(
        document()["rows"],
        key=lambda row: (
            row["campaign"],
            rank(label(campaigns[row["campaign"]], row["scenario"])),
            row["job"],
        ),
    )
    head = ["campaign", "scenario", "job", "runs", "cluster (median)", "emulator (median)", "deviation"]
    return table(
        head,
        [
            [
                short(row["campaign"]),
                label(campaigns[row["campaign"]], row["scenario"])
                + (" (calibration)" if row["calibrated"] else ""),
                row["job"],
                row["runs"],
                f"{row['cluster_s']:.1f} s",
                f"{row['emulator_s']:.1f} s",
                _signed(row["deviation_ratio"]),
            ]
            for row in found
        ],
    )


def means(_: Sequence[str]) -> str:
    """Return both means, over all campaigns and for each."""
    found = document()
    shown = [["all", found, found["attached"]]]
    shown += [[short(name), each, each["attached"]] for name, each in found["by_campaign"].items()]
    head = ["campaigns", "all scenarios, mean absolute deviation", "with yarnctl attached"]
    return table(head, [[name, _mean(one), _mean(other)] for name, one, other in shown])


def _mean(found: Mapping[str, Any]) -> str:
    if not found["predicted"]:
        return "-"
    mean = f"{100 * found['mean_deviation_ratio']:.1f} %"
    return f"{mean} ({found['predicted']} times of {found['scenarios']} scenarios)"


def parameters(_: Sequence[str]) -> str:
    """Return every number that a prediction hangs on."""
    fitted_from = calibration()
    found = every_parameter(fitted_on(named(fitted_from.campaign), fitted_from.scheme), fitted_from)
    read_off = [[f"`{name}`", _number(value), "read off"] for name, value in found["fitted"].items()]
    by_hand = [[f"`{name}`", _number(value), "set"] for name, value in found["constants"].items()]
    return table(["parameter", "value", "how"], [*read_off, *by_hand])


def predictions(_: Sequence[str]) -> str:
    """Return what was predicted before it was run, and what came of it."""
    path = newest()
    found = json.loads(path.read_bytes())
    came = {(row["scenario"], row["job"]): row for row in checked()["rows"]}
    lines = [
        [
            scheme + (" (new)" if scheme in found["new"] else ""),
            job.removesuffix("_s"),
            f"{span['median']:.1f} s ({span['least']:.1f} to {span['most']:.1f})",
            *_came(came.get((scheme, job.removesuffix("_s")))),
        ]
        for scheme, jobs in found["predicted"].items()
        for job, span in jobs.items()
    ]
    head = ["scheme", "job", "predicted (all seeds)", "runs", "cluster (median)", "deviation"]
    return table(head, lines)


def _came(row: Mapping[str, Any] | None) -> list[object]:
    if row is None:
        return ["not run yet", "-", "-"]
    return [row["runs"], f"{row['cluster_s']:.1f} s", _signed(row["deviation_ratio"])]


def _signed(ratio: float) -> str:
    return f"{100 * ratio:+.1f} %"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
