"""``yarn-research study``: options, the JSON, bad input in one line, and a study that was interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.cli import PROGRAM as EMULATOR
from emulator.experiments.results.runs import RunDone
from yarn_research.cli import PROGRAM
from yarn_research.studies import study_runs
from yarn_research.studies.cells import Cell
from yarnctl.command_line import exit_status_of

HOURS = (0, 1, 3, 4)
"""The hours with work of the trace below: hour 2 is empty, and two jobs come 3 s into hour 5."""

CLUSTER = ["--nodes", "2", "--slots", "4", "--workers", "1"]
ENTRY_KEYS = ["production_hour", "research_hour", "seed", "schemes"]
SCHEME_KEYS = [
    "production_mean_s",
    "research_mean_s",
    "lost_work_s",
    "refetch_s",
    "overhead_s",
    "suspensions",
    "kills",
    "waiting",
]
SUMMARY_KEYS = {
    "pairs",
    "production_mean_s",
    "research_mean_s",
    "lost_work_s",
    "refetch_s",
    *(f"{head}_over_tuned" for head in ("production", "research", "lost")),
    *(f"{head}_over_soft_cap" for head in ("production", "research", "lost")),
    *(f"{head}_over_natjam" for head in ("production", "research", "lost")),
    "production_over_tuned_by_pair",
    "research_over_tuned_by_pair",
    "production_at_most_102_ratio",
    "production_at_most_102_soft_cap_ratio",
    "research_at_most_tuned_ratio",
    "research_at_most_worse_ratio",
    "research_at_most_102_better_ratio",
}


def trace_text(jobs_per_hour: int = 4) -> str:
    """Return a SWIM trace: small jobs, some of them with a reduce."""
    rows = []
    for hour in HOURS:
        for job in range(jobs_per_hour):
            at_s = hour * 3600 + 60 * job
            shuffle = 30_000_000 * (job % 2)
            rows.append(f"h{hour}j{job}\t{at_s}\t60\t{(job + 1) * 40_000_000}\t{shuffle}\t1000000")
    rows += [f"over{job}\t{5 * 3600 + job}\t1\t1000\t0\t0" for job in (2, 3)]
    return "\n".join(rows) + "\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "day.tsv"
    path.write_text(trace_text())
    return path


def words(trace: Path, *more: str) -> list[str]:
    """Return a study's command line without ``--out``."""
    return ["study", "--production", f"swim:{trace}", "--research", f"swim:{trace}", *CLUSTER, *more]


def said(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the program that has the command; return what it prints on stdout."""
    program = EMULATOR if words[0] == "compare" else PROGRAM
    status = exit_status_of(program, list(words))
    out, err = capfd.readouterr()
    assert status == 0, err
    return out


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the program on bad input; return its one line."""
    status = exit_status_of(PROGRAM, list(words))
    out, err = capfd.readouterr()
    assert (status, out, len(err.splitlines())) == (2, "", 1), err
    return err.removeprefix("error: ").strip()


def played(answer: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(one["production_hour"], one["research_hour"], one["seed"]) for one in answer["pairs"]]


def test_the_json_has_every_pair_with_every_seed(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    text = said(capfd, *words(trace, "--seeds", "2", "--json", "--out", str(out)))
    answer = json.loads(text)
    assert list(answer) == ["pairs", "summary", "identity"]
    assert played(answer) == [(p, r, s) for p, r in ((0, 4), (1, 0), (3, 1), (4, 3)) for s in (1, 2)]
    for entry in answer["pairs"]:
        assert list(entry) == ENTRY_KEYS
        assert list(entry["schemes"]) == ["soft-cap", "yarn-tuned", "natjam"]
        for scheme in entry["schemes"].values():
            assert list(scheme) == SCHEME_KEYS
            assert set(scheme["waiting"]) == {"production", "research"}
    assert list(answer["summary"]) == ["soft-cap", "yarn-tuned", "natjam"]
    for scheme in answer["summary"].values():
        assert set(scheme) == SUMMARY_KEYS
        assert scheme["pairs"] == 4
    assert answer["summary"]["yarn-tuned"]["production_over_tuned"] == 1.0
    assert json.loads((out / "results.json").read_bytes()) == answer
    assert json.loads((out / "run.json").read_bytes())["ran"] == 4 * 2 * 3


def test_a_run_is_what_compare_runs(capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    options = ["--schemes", "natjam", "--json"]
    study = words(trace, "--hours", "1", "--seeds", "2", "--out", f"{tmp_path}/out")
    answer = json.loads(said(capfd, *study, *options))
    hours = ["--production", f"swim:{trace}@1-2", "--research", f"swim:{trace}@0-1"]
    peaks = ["--production-peak", "1.0", "--research-peak", "1.5", "--seed", "2"]
    compared = said(capfd, "compare", *hours, *CLUSTER, *peaks, *options)
    theirs, ours = json.loads(compared)["schemes"]["natjam"], answer["pairs"][1]["schemes"]["natjam"]
    assert answer["pairs"][1]["seed"] == 2
    assert ours["production_mean_s"] == theirs["production"]["mean_s"]
    assert ours["research_mean_s"] == theirs["research"]["mean_s"]
    assert {name: ours[name] for name in ("waiting", "lost_work_s", "suspensions")} == {
        name: theirs[name] for name in ("waiting", "lost_work_s", "suspensions")
    }


def test_a_table_is_printed_by_default(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    table = said(capfd, *words(trace, "--hours", "0,3", "--seeds", "1", "--out", str(tmp_path / "out")))
    assert table.startswith("Means over 2 pairs of hours, seeds 1 to 1")
    assert "production / tuned" in table
    assert f"every pair: {tmp_path / 'out' / 'results.json'}" in table


# --- kept and continued ------------------------------------------------------------------------


def ran(out: Path) -> int:
    return int(json.loads((out / "run.json").read_bytes())["ran"])


def test_more_hours_schemes_and_seeds_add_to_a_folder(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kept = ["--json", "--out", str(out)]
    first = said(capfd, *words(trace, "--hours", "0", "--seeds", "1", "--schemes", "soft-cap", *kept))
    assert ran(out) == 1
    more = ["--hours", "0,1", "--seeds", "2", "--schemes", "soft-cap,yarn-tuned"]
    wider = json.loads(said(capfd, *words(trace, *more, *kept)))
    assert ran(out) == 2 * 2 * 2 - 1
    assert wider["pairs"][0]["schemes"]["soft-cap"] == json.loads(first)["pairs"][0]["schemes"]["soft-cap"]
    assert said(capfd, *words(trace, "--hours", "0", "--seeds", "1", "--schemes", "soft-cap", *kept)) == first
    assert ran(out) == 0


def test_an_interrupted_study_goes_on_to_the_same_bytes(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--hours", "0,4", "--seeds", "1", "--json", "--out"]
    whole = said(capfd, *words(trace, *options, str(tmp_path / "whole")))
    made = study_runs.run_counted
    count = 0

    def interrupted(order: tuple[str, Cell]) -> RunDone:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return made(order)

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(study_runs, "run_counted", interrupted)
        assert exit_status_of(PROGRAM, words(trace, *options, str(out))) == 130
    assert capfd.readouterr().out == ""
    assert not (out / "results.json").exists()
    cells = out / "cells.jsonl"
    lines = cells.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    cells.write_bytes(b"".join(lines[:2]) + lines[2][:100])  # and the last line was torn
    assert said(capfd, *words(trace, *options, str(out))) == whole
    assert ran(out) == 4
    for name in ("cells.jsonl", "results.json", "manifest.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_folder_of_another_study_is_refused(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    kept = ["--hours", "0", "--seeds", "1", "--schemes", "soft-cap", "--out", str(tmp_path / "out")]
    said(capfd, *words(trace, *kept))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for other in (["--nodes", "3"], ["--research-peak", "1.2"]):
        assert "holds the results of another scenario" in refused(capfd, *words(trace, *kept, *other))
    trace.write_text(trace_text(5))
    assert "holds the results of another scenario" in refused(capfd, *words(trace, *kept))
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_folder_of_something_else_is_refused(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    line = refused(capfd, *words(trace, "--out", str(tmp_path)))
    assert line.startswith(f"--out {tmp_path}: holds something that is not results of this program")


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            ["--hours", "2"],
            "--hours: 2: production's trace has no work in this hour; all, or some of 0, 1, 3",
        ),
        (["--hours", "5"], "--hours: 5: production's trace has no work"),
        (["--hours", "0-4"], "--hours: '0-4' is not an hour"),
        (["--hours", "0,"], "--hours: '' is not an hour"),
        (["--hours", "1,1"], "--hours: an hour stands twice"),
        (["--seeds", "0"], "Invalid value for '--seeds': 0 is not in the range"),
        (["--schemes", "natjam,mixed"], "--schemes: unknown: 'mixed'"),
        (["--schemes", ","], "--schemes: no scheme"),
        (["--may-lose", "2%"], "--may-lose: the scheme mix is not played"),
        (["--room-within", "3s"], "--room-within: the scheme mix is not played"),
        (["--nodes", "0"], "--nodes: 0 is not within"),
        (["--production-peak", "nan"], "--production-peak: nan is not a positive number"),
        (["--production", "synthetic:steady"], "--production: 'synthetic:steady' is generated"),
        (["--research", "packaged:fb2009@18-19"], "--research: 'packaged:fb2009@18-19' names hours"),
        (["--research", "hive:x"], "SPEC 'hive:x': not a workload"),
        (["--research", "swim:none.tsv"], "none.tsv: cannot be read"),
    ],
)
def test_bad_input_is_refused_by_name(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path, more: list[str], line: str
) -> None:
    assert line in refused(capfd, *words(trace, "--out", str(tmp_path / "out"), *more))
    assert not (tmp_path / "out").exists()


def test_a_trace_of_one_hour_has_no_pairs(
    capfd: pytest.CaptureFixture[str], trace: Path, tmp_path: Path
) -> None:
    trace.write_text("a\t0\t0\t1000\t0\t0\n")
    line = refused(capfd, *words(trace, "--out", str(tmp_path / "out")))
    assert "no hour with work can be paired" in line
