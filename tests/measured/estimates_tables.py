"""The tables of durations that were predicted on a real Hadoop, beside MRM's Tables 2 and 3.

Law: figures are those that were kept when the run ended; the paper's stand beside them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from emulator.experiments.papers.mrm_tables import Judged
from tests.cluster.estimates_judging import COLUMNS, Claim, Verdict
from tests.cluster.estimates_judging import table as rows_of
from tests.measured.campaign import FOLDER
from tests.measured.tables import table


def verdict(name: str) -> Verdict:
    """Return the verdict that a kept run has."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_bytes())
    spans = {
        span: {model: Judged(**each) for model, each in models.items()}
        for span, models in document["spans"].items()
    }
    return Verdict(spans, tuple(Claim(**each) for each in document["claims"]))


def models(words: Sequence[str]) -> str:
    """Return every model's figures by span; a dash where the paper has none."""
    rows = [["-" if cell is None else cell for cell in row] for row in rows_of(verdict(words[0]))]
    return table(COLUMNS, rows)


def claims(words: Sequence[str]) -> str:
    """Return every claim, what was measured, and in how many of the further halves it holds."""
    rows = [
        (
            one.claim,
            one.ours,
            "holds" if one.holds else "**does not**",
            f"{100 * (one.halves_ratio or 0):.0f} %",
        )
        for one in verdict(words[0]).claims
    ]
    return table(("claim", "ours", "by the half that counts", "of further halves"), rows)
