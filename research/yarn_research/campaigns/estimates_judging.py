"""Durations of real jobs, predicted from one half of the rows for the other, beside MRM's Tables 2 and 3.

``python -m yarn_research.campaigns.estimates_judging research/records/estimates-hadoop-...json``

Law: pure but for reading the file; research/notes/market.md has the rule, which stood there before the run. Rows stay
as they were measured; models are fitted anew, as they are now.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from yarn_research.campaigns.estimates_set import EstimateRow
from yarn_research.papers.mrm_tables import (
    MODELS,
    MOST_OUTSIDE,
    TABLE_2,
    TABLE_3,
    Durations,
    Judged,
    compared,
)
from yarnctl.command_line import complain, print_json
from yarnctl.errors import BadInput, YarnctlError

SPANS = ("map", "reduce", "whole")
"""What is predicted; the paper has the first two."""
JUDGED = ("gp", "ols", "bin")
SEED = 1
HALVES = 100
ROWS_LEAST = 16
PAPER_RATIO = {"gp": (3.5, 0.8), "ols": (13.8, 2.4)}
"""Mean interval over the total duration, maps and reduces (MRM section 6.1)."""
COLUMNS = ("span", "model", "R^2", "paper", "% outside", "paper", "length s", "paper", "/ duration", "paper")


class Claim(msgspec.Struct, frozen=True):
    """One claim about one span, and in which share of further halves it holds (None: not tried)."""

    claim: str
    ours: str
    holds: bool
    halves_ratio: float | None


class Verdict(NamedTuple):
    """Each span's models, and the claims about them."""

    spans: dict[str, dict[str, Judged]]
    claims: tuple[Claim, ...]

    def told(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        spans = {
            span: {model: each._asdict() for model, each in models.items()}
            for span, models in self.spans.items()
        }
        return {"spans": spans, "claims": self.claims, "holds": all(claim.holds for claim in self.claims)}


def half(rows: Sequence[EstimateRow], seed: int) -> tuple[list[EstimateRow], list[EstimateRow]]:
    """Draw the half that is learned from; return it and the rest, whatever the order of the rows."""
    ordered = sorted(rows, key=lambda row: row.name)
    random.Random(f"half-{seed}").shuffle(ordered)
    return ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]


def durations(rows: Sequence[EstimateRow], span: str, seed: int) -> Durations:
    """Return what one span of one half teaches, and what is asked for, in s.

    A job that lost an attempt is not learned from (MRM section 3.2), and is asked for.
    """
    learned, asked = half(rows, seed)
    used = [row for row in learned if not row.attempts_lost]
    parts = []
    for one in (used, asked):
        parts.append(np.array([row.features for row in one], dtype=np.float64).reshape(len(one), 4))
        parts.append(np.array([_span_ms(row, span) for row in one], dtype=np.float64) / 1000)
    return Durations(*parts)


def _span_ms(row: EstimateRow, span: str) -> int:
    return {"map": row.map_ms, "reduce": row.reduce_ms, "whole": row.elapsed_ms}[span]


def judge(rows: Sequence[EstimateRow], halves: int = HALVES) -> Verdict:
    """Judge every model and span; raises BadInput for too few rows."""
    if len(rows) < ROWS_LEAST:
        raise BadInput("rows", f"{len(rows)} are too few to judge by", f"run {ROWS_LEAST} jobs or more")
    spans, claims = {}, list[Claim]()
    for span in SPANS:
        found = {model: compared(model, durations(rows, span, SEED)) for model in MODELS}
        further = [
            [holds for _, _, holds in _claims(span, _of(rows, span, seed))]
            for seed in range(SEED + 1, SEED + 1 + halves)
        ]
        spans[span] = found
        for place, (text, ours, holds) in enumerate(_claims(span, found)):
            held = sum(each[place] for each in further) / halves if halves else None
            claims.append(Claim(text, ours, holds, held))
    return Verdict(spans, tuple(claims))


def _of(rows: Sequence[EstimateRow], span: str, seed: int) -> dict[str, Judged]:
    given = durations(rows, span, seed)
    return {model: compared(model, given) for model in JUDGED}


def _claims(span: str, found: Mapping[str, Judged]) -> list[tuple[str, str, bool]]:
    """Return the claims about one span: what is claimed, what we have, whether it holds."""
    gp, ols, bins = (found[model] for model in JUDGED)
    fit = ", ".join(f"{model} {found[model].r2:.3f}" for model in JUDGED)
    length = ", ".join(f"{model} {found[model].length_ratio:.2f}" for model in JUDGED)
    return [
        (f"{span}: gp's R^2 is at least ols's less .01", fit, bool(gp.r2 >= ols.r2 - 0.01)),
        (f"{span}: gp's R^2 is above bin's", fit, bool(gp.r2 > bins.r2)),
        (
            f"{span}: gp's interval over the duration is the shortest",
            length,
            bool(gp.length_ratio < min(ols.length_ratio, bins.length_ratio)),
        ),
        (
            f"{span}: at most {MOST_OUTSIDE:g} % outside gp's interval",
            f"{gp.outside_percent:.1f} %",
            bool(gp.outside_percent <= MOST_OUTSIDE),
        ),
    ]


def table(verdict: Verdict) -> list[tuple[object, ...]]:
    """Return a row for each span and model (``COLUMNS``); None where the paper has no number."""
    found: list[tuple[object, ...]] = []
    for place, span in enumerate(SPANS):
        for model, each in verdict.spans[span].items():
            outside, length_s = TABLE_3[model][place] if model in TABLE_3 and place < 2 else (None, None)
            found.append(
                (
                    span,
                    model,
                    round(each.r2, 3),
                    TABLE_2[model][place] if place < 2 else None,
                    round(each.outside_percent, 1),
                    outside,
                    round(each.length_s, 1),
                    length_s,
                    round(each.length_ratio, 2),
                    PAPER_RATIO[model][place] if model in PAPER_RATIO and place < 2 else None,
                )
            )
    return found


def kept(path: Path) -> tuple[dict[str, Any], list[EstimateRow]]:
    """Read a kept run: its head and its rows; raises BadInput where it is something else."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        rows = msgspec.convert(document["rows"], list[EstimateRow])
    except OSError as error:
        raise BadInput(str(path), error.strerror or str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError) as error:
        told = f"is not a results file of small jobs: {error}"
        raise BadInput(str(path), told, "name research/records/estimates-hadoop-...json") from error
    return document, rows


def main(arguments: Sequence[str]) -> int:
    """Judge a kept run by the one half that counts; print what came out as JSON."""
    try:
        if len(arguments) != 1:
            raise BadInput("FILE", f"{len(arguments)} were named", "name one kept run")
        path = Path(arguments[0])
        document, rows = kept(path)
        head = {"campaign": path.stem, "commit": document.get("commit")}
        print_json({**head, **judge(rows, halves=0).told()})
    except YarnctlError as error:
        return complain(str(error), error.exit_status)
    return 0


def written(head: Mapping[str, Any], rows: Sequence[EstimateRow], verdict: Verdict) -> str:
    """Return the file that is kept: a line for each row."""
    told = {**head, **msgspec.to_builtins(verdict.told())}
    lines = ",\n".join(f"  {msgspec.json.encode(row).decode()}" for row in rows)
    return f'{json.dumps(told, indent=1, ensure_ascii=False)[:-2]},\n "rows": [\n{lines}\n ]\n}}\n'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
