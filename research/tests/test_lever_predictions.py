"""Levers that were predicted: the figures of a study, from pairs that are written down."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import msgspec

from yarn_research.campaigns.lever_predictions import predicted, pulled
from yarnctl.deciding.records import Transition, decode

JOURNAL = Path(__file__).parents[2] / "tests/frozen/journals/virtual-mix.jsonl.gz"


def test_what_came_late_and_what_was_lost_beyond_the_prediction_is_counted() -> None:
    mix = {
        "levers": {"wait": 6, "kill": 4},
        "levers_in_time": {"wait": 6, "kill": 3},
        "predicted_lost_s": 90.0,
        "lost_work_s": 100.0,
    }
    natjam = {"lost_work_s": 7.0}
    found = predicted([{"schemes": {"mix-2": mix, "natjam": natjam}}, {"schemes": {"mix-2": mix}}])
    assert found == {"levers": 20, "in_time_ratio": 0.9, "predicted_over_lost": 0.9, "deviation_ratio": 0.1}


def test_levers_of_a_journal_are_those_whose_containers_were_freed() -> None:
    records = []
    for line in gzip.decompress(JOURNAL.read_bytes()).splitlines():
        with suppress(msgspec.DecodeError):  # the first and the last line are no records
            records.append(decode(line))
    found = pulled(records)
    freed = [each for each in records if isinstance(each, Transition) and each.target in ("freed", "killed")]
    assert len(found) == len({each.order for each in freed})
    assert {each.kind for each in found} == {"end", "kill", "suspend"}
    assert all(each.took_ms >= 0 and each.predicted_ms > 0 for each in found)
