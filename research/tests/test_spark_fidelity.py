"""The emulator against a cluster that is the emulator: the spans are found again, and nothing deviates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarn_research.campaigns import spark_ahead, spark_fidelity
from yarn_research.campaigns.spark_beside import LOADS
from yarn_research.campaigns.spark_fidelity import (
    AHEAD_MAX,
    TWINS,
    Fit,
    compared,
    completions_s,
    main,
    predicted_s,
    production,
    research,
)

ARRIVED_S = 40.0
TRUE = Fit(launch_ms=2600, start_ms=3700, task_ms=90)


@pytest.fixture(autouse=True)
def two_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_fidelity, "SEEDS", 2)


def run(load: str, scheme: str, told_s: dict[str, float]) -> dict[str, Any]:
    return {"load": load, "scheme": scheme, **{job: {"took_s": took_s} for job, took_s in told_s.items()}}


def played() -> list[dict[str, Any]]:
    found = []
    for load in LOADS:
        found.append(run(load, "production-alone", completions_s((production(0),), "", TRUE)))
        found.append(run(load, "research-alone", completions_s((research(load, TRUE, ""),), "", TRUE)))
        found += [
            run(load, scheme, predicted_s(load, scheme, TRUE, ARRIVED_S)) | {"arrived_s": ARRIVED_S}
            for scheme in TWINS
        ]
    return found


def test_the_spans_are_found_again_and_every_completion_is_predicted() -> None:
    runs = played()
    late = run("2s", "plugin", {"production": 1e6, "research": 1e6}) | {"left_out": "it failed"}
    told = compared([*runs, late])
    found = Fit(**told["fitted"])
    assert abs(found.launch_ms - TRUE.launch_ms) < 500, found
    assert abs(found.task_ms - TRUE.task_ms) < 40, found
    assert abs(found.start_ms - TRUE.start_ms) < 1000, found
    assert len(told["rows"]) == 2 * len(TWINS) * 2
    assert told["mean_deviation_ratio"] < 0.02, told["rows"]


def test_a_cluster_that_is_slower_than_emulated_deviates() -> None:
    runs = played()
    for each in runs:
        if each["scheme"] == "plugin":
            each["production"] = {"took_s": 2 * each["production"]["took_s"]}
    rows = {
        (row["load"], row["scheme"], row["job"]): row["deviation_ratio"] for row in compared(runs)["rows"]
    }
    for load in LOADS:
        assert rows[load, "plugin", "production"] == pytest.approx(-0.5, abs=0.05)


def test_a_kept_file_is_compared_by_its_name_and_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "spark-production-2026-11-27.json"
    kept.write_text(json.dumps({"head": {"commit": "abc"}, "runs": played()}))
    assert main([str(kept)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["campaign"], told["commit"]) == (kept.stem, "abc")
    assert told["mean_deviation_ratio"] < 0.02
    kept.write_text(json.dumps({"head": {"commit": "abc"}, "runs": []}))
    assert main([str(kept)]) == 2
    assert "is not a results file of spark-production" in capsys.readouterr().err


def ahead() -> list[dict[str, Any]]:
    load = spark_ahead.LOAD
    told_s = {
        scheme: predicted_s(spark_ahead.AS, scheme, TRUE, ARRIVED_S, AHEAD_MAX.get(scheme, 0))
        for scheme in ("yarn-tuned", "signal", "plugin")
    }
    return [run(load, scheme, each) | {"arrived_s": ARRIVED_S} for scheme, each in told_s.items()]


def test_rounds_with_predicted_demand_are_compared_by_the_spans_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "spark-production-1.json", tmp_path / "spark-ahead-1.json"
    first.write_text(json.dumps({"head": {"commit": "abc"}, "runs": played()}))
    second.write_text(json.dumps({"head": {"commit": "def"}, "runs": ahead()}))
    assert main([str(first), str(second)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["campaign"], told["commit"]) == (second.stem, "def")
    assert [(row["scheme"], row["job"]) for row in told["rows"]] == [
        (scheme, job) for scheme in ("plugin", "signal", "yarn-tuned") for job in ("production", "research")
    ]
    assert told["mean_deviation_ratio"] < 0.02, told["rows"]
    assert main([str(tmp_path / "none.json"), str(second)]) == 2
    assert "is not a results file of spark-ahead" in capsys.readouterr().err


def test_predicted_demand_lets_production_in_sooner() -> None:
    with_it, without = (predicted_s("2s", "plugin", TRUE, ARRIVED_S, most) for most in (2, 0))
    assert with_it["production"] < without["production"]
