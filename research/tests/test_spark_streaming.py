"""The campaign of drains of streaming queries: what a sink holds, the lag, and its rule."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from yarn_research.campaigns.spark_streaming import ORDERS, QUERIES, covered, judged, lag, written


def rows(**changes: Any) -> list[dict[str, Any]]:
    row = {
        "values": 9,
        "missing": 0,
        "twice": 0,
        "orders": [{"lag": 2}] * ORDERS,
        "failures": [],
        "excluded": 0,
    }
    return [{**row, **changes} for _ in QUERIES]


def broken(found: list[dict[str, Any]]) -> list[str]:
    return [each.claim for each in judged(found) if not each.holds]


def test_queries_within_the_rule_hold():
    assert broken(rows()) == []
    assert broken(rows()[1:]) == ["rows", "lag", "orders"], "a stopped campaign claims nothing"


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"missing": 1}, ["rows"]),
        ({"twice": 1}, ["rows"]),
        ({"values": 0}, ["rows"]),
        ({"orders": [{"lag": 3}] * ORDERS}, ["lag"]),
        ({"orders": [{"lag": 0}]}, ["orders"]),
        ({"failures": ["x"]}, ["orders"]),
        ({"excluded": 1}, ["orders"]),
        ({"failed": "x"}, ["rows", "lag", "orders"]),
    ],
)
def test_queries_outside_of_the_rule_are_named(changes, claims):
    assert broken(rows(**changes)) == claims


def test_the_lag_counts_batches_that_began_after_the_return_up_to_the_last_behind():
    begun = [{"at": f"2026-11-30T00:00:{4 * place:02d}.000Z", "rows": 200} for place in range(8)]
    begun[0]["rows"] = begun[3]["rows"] = 301
    assert [covered(each) for each in begun[:2]] == [1.5, 1.0]
    begun[0]["rows"] = begun[3]["rows"] = 400
    assert lag(begun, instant_ms("2026-11-30T00:00:01")) == 3
    assert lag(begun, instant_ms("2026-11-30T00:00:13")) == 0


def instant_ms(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def test_a_file_that_the_sink_did_not_commit_does_not_count(tmp_path: Path):
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    names = ["a", "b", "c", "stray"]
    for place, name in enumerate(names):
        (tmp_path / name).write_text(f'{{"value":{2 * place}}}\n{{"value":{2 * place + 1}}}\n')
    told = [json.dumps({"path": f"file://{tmp_path}/{name}", "action": "add"}) for name in names]
    (log / "0").write_text(f"v1\n{told[0]}\n")
    (log / "1.compact").write_text(f"v1\n{told[0]}\n{told[1]}\n")
    (log / "2").write_text(f"v1\n{told[2]}\n")
    (log / ".2.crc").write_text("x")
    assert written(tmp_path) == [0, 1, 2, 3, 4, 5]
