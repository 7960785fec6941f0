"""What settings cost that nobody uses: the claim, from pairs that are written down."""

from __future__ import annotations

from typing import Any

import pytest

from yarn_research.campaigns.spark_overhead_judging import judged


def pair(ratio: float, printed: str = "1") -> dict[str, Any]:
    return {
        "with": {"processor_s": 20 * ratio, "printed": printed},
        "without": {"processor_s": 20.0, "printed": "1"},
    }


def test_the_median_of_pairs_and_its_interval() -> None:
    found = judged([pair(1.0 + number / 100) for number in range(11)])
    assert (found["pairs"], found["other results"]) == (11, 0)
    assert found["median"] == pytest.approx(1.05)
    assert 1.0 < found["low"] < 1.05 < found["high"] < 1.1


def test_another_result_is_counted() -> None:
    assert judged([pair(1.0), pair(1.0, "2")])["other results"] == 1
