"""Experiments: scenarios with an identity, runs that resume, folders that are whole or absent."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from emulator.cluster.faults import NodeLost, StoreDown
from emulator.experiments.results import folder as folders
from emulator.experiments.results import runs
from emulator.experiments.results.runs import compare_json, results_json, run_experiment
from emulator.experiments.results.summary import median_ms, percentile_ms, summary_of
from emulator.experiments.results.workers import RunFailed
from emulator.scenario import Prepared, Scenario, Tuning, jobs, prepare, read_scenario, settings, setup
from emulator.virtual.run import JobResult, Result
from emulator.virtual.schemes import SCHEMES
from emulator.workload.spec import load
from yarnctl.errors import BadInput
from yarnctl.traces.parquet import write_parquet

ROOT = Path(__file__).parents[2]

SMALL = Scenario(
    nodes=3,
    slots=5,
    production="synthetic:production-s",
    research="synthetic:research-s",
    schemes=("soft-cap", "kill", "natjam"),
)


@pytest.fixture(scope="module")
def small() -> Prepared:
    return prepare(SMALL)


def changed(**fields: object) -> Scenario:
    return msgspec.structs.replace(SMALL, **fields)


def test_identity_is_stable(small: Prepared) -> None:
    assert re.fullmatch("[0-9a-f]{64}", small.identity)
    assert prepare(SMALL).identity == small.identity


@pytest.mark.parametrize(
    "other",
    [changed(nodes=4), changed(slots=6), changed(seed=1), changed(load=2.0),
     changed(production="synthetic:production-m"), changed(research_peak=1.5), changed(job_policy="LR"),
     changed(task_policy="LRT"), changed(profile="paper"), changed(timing="paper"), changed(mode="deadlines"),
     changed(shares=(0.9, 0.1)), changed(caps=(0.7, 0.3)), changed(am_ratio=0.4),
     changed(faults=(StoreDown(1000, 2000),)), changed(tuning=Tuning(kill_timeout_ms=9000))],
)  # fmt: skip
def test_identity_changes_with_whatever_decides(small: Prepared, other: Scenario) -> None:
    assert prepare(other).identity != small.identity


def test_identity_holds_no_path_and_no_choice_of_schemes(small: Prepared, tmp_path: Path) -> None:
    source = ROOT / "emulator/data/fb2009/FB-2009_samples_24_times_1hr_0.hours-18-and-21.tsv"
    copy = tmp_path / "elsewhere.tsv"
    copy.write_bytes(source.read_bytes())
    stored = tmp_path / "elsewhere.parquet"
    write_parquet(load(f"swim:{source}@21-22", "research").jobs, stored)
    specs = (f"swim:{source}@21-22", f"swim:{copy}@21-22", "packaged:fb2009@21-22", f"parquet:{stored}")
    assert len({prepare(changed(research=spec)).identity for spec in specs}) == 1
    assert prepare(changed(schemes=("ideal",))).identity == small.identity


def test_a_scenario_is_a_value() -> None:
    assert hash(SMALL) == hash(changed())
    assert jobs(SMALL) == prepare(SMALL).jobs
    assert setup(SMALL).node_size == (5 * 1024, 5)


# --- reading ---------------------------------------------------------------------------------


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return path


WHOLE = 'production = "synthetic:production-s"\nnodes = 3\nslots = 5\n'


def test_reads_everything(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        WHOLE
        + 'schemes = ["natjam"]\nshares = [0.9, 0.1]\n'
        + '[[faults]]\ntype = "node-lost"\nat_ms = 5\nnode = 1\n[tuning]\nkill_timeout_ms = 7000\n',
    )
    scenario, where = read_scenario(path)
    assert scenario.schemes == ("natjam",)
    assert scenario.faults == (NodeLost(5, 1),)
    assert settings(scenario).kill_timeout_ms == 7000
    assert settings(scenario).settle_ms == 30_000
    assert where("nodes") == f"{path}:2, field nodes"


@pytest.mark.parametrize("path", sorted((ROOT / "docs/scenarios").glob("*.toml")), ids=lambda path: path.stem)
def test_sample_scenarios_can_be_read(path: Path) -> None:
    assert read_scenario(path)[0].nodes


def fault(kind: str, **fields: object) -> str:
    lines = [f'type = "{kind}"', *(f"{name} = {value}" for name, value in fields.items())]
    return "\n".join(["[[faults]]", *lines, ""])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (WHOLE + "nodez = 4\n", r":4, field nodez: .*unknown field"),
        (WHOLE.replace("nodes = 3", 'nodes = "3"'), r":2, field nodes: .*Expected `int`"),
        (WHOLE.replace("nodes = 3", "nodes = 0"), r":2, field nodes: 0 is not within"),
        (WHOLE.replace("slots = 5\n", ""), r"field slots: the node size is missing"),
        (WHOLE + "node_vcores = 3\n", r":3, field slots: slots and a node size exclude each other"),
        (WHOLE.replace("nodes = 3", "nodes ="), r":2: not TOML"),
        (WHOLE + "load = nan\n", r":4, field load: nan is not a positive number"),
        (WHOLE + "load = inf\n", r":4, field load: inf"),
        (WHOLE + 'schemes = ["natjim"]\n', r":4, field schemes: unknown: 'natjim'"),
        (WHOLE + 'schemes = ["natjam", "natjam"]\n', r":4, field schemes: a scheme is named twice"),
        (WHOLE + 'job_policy = "XX"\n', r":4, field job_policy: unknown: 'XX'"),
        (WHOLE + 'mode = "queue"\n', r":4, field mode: Invalid enum value"),
        (WHOLE + "shares = [0.9, 0.2]\n", r":4, field shares: "),
        (WHOLE + "am_ratio = 0\n", r":4, field am_ratio: "),
        (WHOLE + fault("node-lost", at_ms=-5, node=1),
         r":6, \[\[faults\]\] 1, field at_ms: -5 is not within"),
        (WHOLE + fault("node-lost", at_ms=10**15, node=1), r":6, \[\[faults\]\] 1, field at_ms: "),
        (WHOLE + fault("node-lost", at_ms=5, node=3),
         r":7, \[\[faults\]\] 1, field node: 3 is not within 0 to 2"),
        (WHOLE + fault("node-lost", at_ms=5, node=-1), r"field node: -1 is not within"),
        (WHOLE + fault("node-lost", at_ms=5, node=1, nod=1),
         r":8, \[\[faults\]\] 1, field nod: .*unknown field"),
        (WHOLE + fault("node-lost", at_ms='"x"', node=1),
         r":6, \[\[faults\]\] 1, field at_ms: Expected `int`"),
        (WHOLE + fault("node-lost", at_ms=5, node=1) * 2 + fault("node-lost", at_ms=5),
         r":12, \[\[faults\]\] 3, field node: .*missing required"),
        (WHOLE + fault("node-gone"),
         r":5, \[\[faults\]\] 1, field type: .*node-gone.*; use one of node-lost, "),
        (WHOLE + fault("store-down", at_ms=5, until_ms=5),
         r":7, \[\[faults\]\] 1, field until_ms: 5 is not after"),
        (WHOLE + fault("node-slow", at_ms=5, until_ms=6, node=1, ratio=1e308),
         r":9, .*field ratio: 1e\+308 is not"),
        (WHOLE + fault("node-slow", at_ms=5, until_ms=6, node=1, ratio=0),
         r":9, .*field ratio: 0.0 is not above"),
        (WHOLE + fault("node-slow", at_ms=5, until_ms=6, node=1, ratio="nan"),
         r":9, .*field ratio: nan is not"),
        (WHOLE + "[tuning]\ntick_ms = 0\n", r":5, \[tuning\], field tick_ms: 0 is not"),
        (WHOLE + '[tuning]\ntick_ms = "x"\n', r":5, \[tuning\], field tick_ms: Expected `int"),
        (WHOLE + "tuning.tick_ms = 0\n", r":4, \[tuning\], field tick_ms: 0 is not"),
        (WHOLE + "[tuning]\nsettle_ms = 999999999999999\n", r"\[tuning\], field settle_ms: 9+ is not within"),
        (WHOLE + "[tuning]\njob_open_ratio_max = 1e308\n",
         r"field job_open_ratio_max: 1e\+308 is not within"),
        (WHOLE + "[tuning]\nutilisation_tolerance_ratio = inf\n", r"utilisation_tolerance_ratio: inf is not"),
        (WHOLE + "[tuning]\ntock_ms = 0\n", r":5, \[tuning\], field tock_ms: .*unknown field.* has tick_ms"),
        (WHOLE + f"seed = {'9' * 5000}\n", r": not TOML: a number has too many digits"),
        (WHOLE + f"seed = 0x{'9' * 5000}\n", r"seed: .*out of range|seed: a number this large"),
        (WHOLE + f"load = 0x{'9' * 5000}\n", r"out of range|too many digits"),
        (WHOLE + f"seed = {'[' * 20000}\n", r": not TOML: nested too deeply"),
        ("slots = 1\n", r"missing required field `nodes`"),
    ],
)  # fmt: skip
def test_refuses_with_file_line_and_field(tmp_path: Path, text: str, named: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput, match=named) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_skipped_and_other_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert read_scenario(path)[0].nodes == 3
    path.write_bytes(WHOLE.encode("utf-16"))
    with pytest.raises(BadInput, match=r"scenario\.toml: not UTF-8 text"):
        read_scenario(path)


def test_a_fault_must_hit_a_job_that_there_is(tmp_path: Path) -> None:
    path = written(
        tmp_path, WHOLE + fault("master-dead", at_ms=5, job=0) + fault("task-dead", at_ms=5, pick=0, job=1)
    )
    with pytest.raises(BadInput, match=r":12, \[\[faults\]\] 2, field job: 1: the workload has 1 jobs"):
        prepare(*read_scenario(path))


def test_the_percentile_is_the_nearest_rank() -> None:
    spans = [ms * 1000 for ms in range(1, 21)]
    assert percentile_ms(spans, 95) == 19_000
    assert percentile_ms([*spans, 21_000], 95) == 20_000
    assert percentile_ms([5], 95) == 5
    assert median_ms([1, 2, 4]) == 2
    assert median_ms([1, 2, 4, 8]) == 3


def test_a_class_without_jobs_has_no_times() -> None:
    result = Result(
        scheme="natjam",
        jobs=(
            JobResult("p-a", "production", 0, 1500, None, 0),
            JobResult("p-b", "production", 9, 2500, None, 0),
        ),
        lost_work_ms=0,
        overhead_ms=1234,
        suspensions=1,
        kills=0,
        utilisation_ratio=1 / 3,
        makespan_ms=2509,
        events=7,
    )
    summary = summary_of(result)
    assert msgspec.to_builtins(summary.production) == {
        "jobs": 2,
        "mean_s": 2.0,
        "median_s": 2.0,
        "p95_s": 2.5,
    }
    assert msgspec.to_builtins(summary.research) == {
        "jobs": 0,
        "mean_s": None,
        "median_s": None,
        "p95_s": None,
    }
    assert (summary.overhead_s, summary.utilisation_ratio) == (1.234, 0.333333)


# --- running ---------------------------------------------------------------------------------


class Heard:
    """Remembers which schemes were run, and which had been done."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.kept: list[str] = []

    def __call__(self, scheme: str, wall_s: float | None) -> None:
        (self.kept if wall_s is None else self.ran).append(scheme)


def test_workers_and_folder_change_nothing(small: Prepared, tmp_path: Path) -> None:
    here = run_experiment(small, workers=1)
    there = run_experiment(small, workers=2, out=tmp_path / "out")
    assert results_json(here) == results_json(there)
    assert here.results == there.results
    assert list(there.results) == ["soft-cap", "kill", "natjam"]
    stored = json.loads((tmp_path / "out/results.json").read_bytes())
    assert stored == msgspec.to_builtins(results_json(here))


def test_what_the_folder_holds(small: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "a/b/out"
    outcome = run_experiment(small, workers=1, out=out)
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert files == [
        "kill/journal.jsonl", "kill/result.json", "manifest.json", "natjam/journal.jsonl",
        "natjam/result.json", "results.json", "run.json", "soft-cap/result.json", "waiting.json",
    ]  # fmt: skip
    told = json.loads((out / "run.json").read_bytes())
    assert set(told["wall_s"]) == {"soft-cap", "kill", "natjam"}
    assert told["python"]
    assert compare_json(outcome)["identity"] == small.identity


def test_natjam_suspends_and_loses_nothing(small: Prepared) -> None:
    outcome = run_experiment(small, workers=1)
    natjam, kill = outcome.results["natjam"], outcome.results["kill"]
    assert natjam.suspensions > 0
    assert natjam.lost_work_ms == 0
    assert kill.kills > 0
    assert kill.lost_work_ms > 0


def test_nothing_is_run_twice(small: Prepared, tmp_path: Path) -> None:
    out, heard = tmp_path / "out", Heard()
    only = small._replace(scenario=msgspec.structs.replace(small.scenario, schemes=("natjam",)))
    first = run_experiment(only, workers=1, out=out, progress=heard)
    before = (out / "natjam/journal.jsonl").read_bytes()
    again = run_experiment(small, workers=1, out=out, progress=heard)
    assert heard.ran == ["natjam", "soft-cap", "kill"]
    assert heard.kept == ["natjam"]
    assert again.ran == ("soft-cap", "kill")
    assert again.results["natjam"] == first.results["natjam"]
    assert again.wall_s["natjam"] == pytest.approx(first.wall_s["natjam"], abs=0.001)
    assert (out / "natjam/journal.jsonl").read_bytes() == before


def test_resumed_bytes_are_those_of_one_run(small: Prepared, tmp_path: Path) -> None:
    only = small._replace(scenario=msgspec.structs.replace(small.scenario, schemes=("kill",)))
    run_experiment(only, workers=1, out=tmp_path / "resumed")
    run_experiment(small, workers=1, out=tmp_path / "resumed")
    run_experiment(small, workers=1, out=tmp_path / "at-once")
    for name in ("results.json", "natjam/journal.jsonl", "kill/journal.jsonl", "kill/result.json"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "at-once" / name).read_bytes()


def test_results_of_other_sources_are_made_again(
    small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    run_experiment(small, workers=1, out=tmp_path / "out")
    monkeypatch.setattr(folders, "code_digest", lambda: "another program")
    run_experiment(small, workers=1, out=tmp_path / "out", progress=heard)
    assert heard.ran == ["soft-cap", "kill", "natjam"]


def test_what_differs_from_the_manifest_is_made_again(small: Prepared, tmp_path: Path) -> None:
    out, heard = tmp_path / "out", Heard()
    run_experiment(small, workers=1, out=out)
    whole = (out / "natjam/result.json").read_bytes()
    (out / "natjam/result.json").write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    (out / "kill/journal.jsonl").unlink()
    run_experiment(small, workers=1, out=out, progress=heard)
    assert heard.ran == ["kill", "natjam"]
    assert (out / "natjam/result.json").read_bytes() == whole


# --- other people's folders ------------------------------------------------------------------


def test_refuses_a_folder_of_something_else(small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("ten years of work")
    with pytest.raises(BadInput, match=r"holds something that is not results of this program: thesis\.tex"):
        run_experiment(small, out=tmp_path, replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_refuses_a_folder_that_only_looks_like_ours(small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(BadInput, match="not results of this program"):
        run_experiment(small, out=tmp_path, replace=True)


def test_refuses_results_of_another_scenario(small: Prepared, tmp_path: Path) -> None:
    run_experiment(small, workers=1, out=tmp_path)
    kept = (tmp_path / "results.json").read_bytes()
    other = prepare(changed(seed=5))
    with pytest.raises(BadInput, match="holds the results of another scenario"):
        run_experiment(other, workers=1, out=tmp_path)
    assert (tmp_path / "results.json").read_bytes() == kept
    assert run_experiment(other, workers=1, out=tmp_path, replace=True).ran == ("soft-cap", "kill", "natjam")


def test_refuses_a_file(small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(BadInput, match="folder"):
            run_experiment(small, out=out)


def test_only_our_own_temporary_names_are_swept(small: Prepared, tmp_path: Path) -> None:
    only = small._replace(scenario=msgspec.structs.replace(small.scenario, schemes=("soft-cap",)))
    run_experiment(only, workers=1, out=tmp_path)
    (tmp_path / ".kill.part-77").mkdir()
    (tmp_path / ".run.json.part-77").write_text("{")
    run_experiment(only, workers=1, out=tmp_path)
    assert not list(tmp_path.glob(".*"))
    for name in ("thesis.part-2.tex", ".natjam.part-", ".part-7", ".natjam.part-7.bak", "natjam.part-7"):
        (tmp_path / name).write_text("ten years of work")
        with pytest.raises(BadInput, match="not results of this program"):
            run_experiment(only, workers=1, out=tmp_path)
        assert (tmp_path / name).read_text() == "ten years of work"
        (tmp_path / name).unlink()


def test_the_second_run_into_a_folder_is_refused_and_harms_nothing(small: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = folders.Folder(out, small.identity)
    with first.opened():
        first.part("kill").mkdir()
        with pytest.raises(BadInput, match="out: another run is writing here") as caught:
            run_experiment(small, workers=1, out=out, replace=True)
        assert caught.value.exit_status == 2
        assert names(out) == {"manifest.json", folders.LOCK, first.part("kill").name}
    assert run_experiment(small, workers=1, out=out).ran == ("soft-cap", "kill", "natjam")
    files = {"manifest.json", "results.json", "waiting.json", "run.json"}
    assert names(out) == files | set(small.scenario.schemes)


def test_the_lock_is_held_until_the_pages_are_written(small: Prepared, tmp_path: Path) -> None:
    def pages(_: runs.Comparison) -> dict[str, str]:
        second = folders.Folder(tmp_path, small.identity)
        with pytest.raises(BadInput, match="another run is writing here"), second.opened():
            raise AssertionError
        return {"report.html": "<p>"}

    run_experiment(small, workers=1, out=tmp_path, pages=pages)
    assert (tmp_path / "report.html").read_text() == "<p>"


@pytest.mark.parametrize(
    "text",
    ['{"wall_s": 7}', '{"wall_s": {"kill": "x", "natjam": [1], "soft-cap": -1}}', "[]", "[" * 200_000,
     "\x00"],
)  # fmt: skip
def test_a_damaged_run_file_counts_as_absent(small: Prepared, tmp_path: Path, text: str) -> None:
    run_experiment(small, workers=1, out=tmp_path)
    (tmp_path / "run.json").write_text(text)
    again = run_experiment(small, workers=1, out=tmp_path)
    assert set(again.wall_s.values()) == {None}
    assert compare_json(again)["identity"] == small.identity


def test_a_damaged_manifest_is_not_ours(small: Prepared, tmp_path: Path) -> None:
    for text in ("[" * 200_000, "\x80", '{"kind": 7}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(BadInput, match=r"not results of this program: manifest\.json"):
            run_experiment(small, out=tmp_path)


@pytest.mark.parametrize("full", ["journal", "result", "report.html"])
def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(
    small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    out = tmp_path / "out"

    def timed(order: runs.RunOrder, journal: Path | None) -> tuple[Result, float]:
        if full == "journal" and order.scheme == "kill":
            raise OSError(28, "No space left on device")
        return whole(order, journal)

    def write(path: Path, data: bytes) -> int:
        if full in path.name and (full != "result" or path.parent.name.startswith(".kill")):
            write_bytes(path, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    whole, write_bytes = runs._timed, Path.write_bytes
    monkeypatch.setattr(runs, "_timed", timed)
    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises((RunFailed, BadInput), match=r"out.*: cannot be written: No space") as caught:
        run_experiment(small, workers=1, out=out, pages=lambda _: {"report.html": "<p>"})
    assert caught.value.exit_status == 2
    assert folders.PART not in str(caught.value)
    left = {"manifest.json", "soft-cap"}
    more = {"kill", "natjam", "results.json", "waiting.json", "run.json"} if full == "report.html" else set()
    assert names(out) == left | more


def test_a_nul_in_the_name_is_refused(small: Prepared, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="NUL"):
        run_experiment(small, out=tmp_path / "a\0b")
    with pytest.raises(BadInput, match="cannot be read"):
        read_scenario(tmp_path / "a\0b")


# --- interrupted -----------------------------------------------------------------------------


def names(out: Path) -> set[str]:
    return {path.name for path in out.iterdir()} if out.exists() else set()


def test_a_failure_keeps_what_is_whole_and_nothing_else(
    small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(order: runs.RunOrder, journal: Path | None) -> tuple[Result, float]:
        if order.scheme != "kill":
            return timed(order, journal)
        assert journal is not None
        journal.write_bytes(b'{"type":"head')
        raise KeyboardInterrupt

    timed = runs._timed
    monkeypatch.setattr(runs, "_timed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(small, workers=1, out=tmp_path / "out")
    assert names(tmp_path / "out") == {"manifest.json", "soft-cap"}
    monkeypatch.setattr(runs, "_timed", timed)
    assert run_experiment(small, workers=1, out=tmp_path / "out").ran == ("kill", "natjam")


def test_a_failure_before_anything_is_whole_leaves_nothing(
    small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(order: runs.RunOrder, journal: Path | None) -> tuple[Result, float]:
        raise BadInput("job 7", "cannot be")

    monkeypatch.setattr(runs, "_timed", failing)
    with pytest.raises(RunFailed, match="scheme soft-cap: job 7: cannot be") as caught:
        run_experiment(small, workers=1, out=tmp_path / "a/out")
    assert caught.value.exit_status == 2
    assert names(tmp_path) == set()


LONG = """
production = "synthetic:steady-50"
research = "synthetic:steady-50"
nodes = 50
slots = 8
schemes = ["soft-cap", "kill", "natjam"]
"""


@contextlib.contextmanager
def started(scenario: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run with two workers in a session of its own; end whatever is left of it."""
    program = [sys.executable, "-c", "from emulator.cli import main; main()"]
    process = subprocess.Popen(
        [*program, "run", str(scenario), "--out", str(out), "--workers", "2"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(out: Path, pattern: str) -> None:
    for _ in range(600):
        if any(out.glob(pattern)):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pattern} does not appear")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_killed_in_the_middle_nothing_is_half_written(tmp_path: Path, how: signal.Signals) -> None:
    scenario, out = tmp_path / "long.toml", tmp_path / "out"
    scenario.write_text(LONG)
    with started(scenario, out) as process:
        wait_for(out, ".*part*/journal.jsonl")
        os.killpg(process.pid, how)
        _, said = process.communicate(timeout=30)
    whole = {"manifest.json", *SCHEMES, *([folders.LOCK] if how == signal.SIGKILL else [])}
    assert all(name in whole for name in names(out) if folders.PART not in name)
    assert all((out / name / "result.json").stat().st_size for name in names(out) & set(SCHEMES))
    if how == signal.SIGINT:
        assert said.strip().splitlines()[-1] == "error: interrupted"
        assert "Traceback" not in said
        assert process.returncode == 130
        assert not [name for name in names(out) if folders.PART in name]
    folders.Folder(out, "another").require_ours()


def alive(group: int) -> list[str]:
    """Return the processes of a group that still run (zombies do not)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                found.append(path.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux which processes run")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    scenario, out = tmp_path / "long.toml", tmp_path / "out"
    scenario.write_text(LONG)
    with started(scenario, out) as process:
        wait_for(out, ".*part*/journal.jsonl")
        assert len(alive(process.pid)) > 1
        os.kill(process.pid, signal.SIGKILL)
        for _ in range(100):
            if not alive(process.pid):
                break
            time.sleep(0.05)
        assert not alive(process.pid)


def test_an_interrupt_while_workers_start_is_one_line(tmp_path: Path) -> None:
    scenario, out = tmp_path / "long.toml", tmp_path / "out"
    scenario.write_text(LONG)
    with started(scenario, out) as process:
        wait_for(out, "manifest.json")
        time.sleep(0.15)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "error: interrupted\n")
    assert not out.exists()
