"""The paper's figures: calibrated where we say so, and reported as they come out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from emulator.experiments.results import folder
from emulator.experiments.results.runs import Comparison, RunDone, run_experiment
from emulator.experiments.results.workers import RunFailed
from emulator.scenario import prepare, setup
from emulator.virtual.run import Result as RunResult
from emulator.virtual.run import run_scheme
from emulator.virtual.schemes import SCHEMES
from tests.commands.test_progress import last_count, on_terminal
from tests.experiments.fig_4 import FIG_4
from yarn_research.cli import PROGRAM
from yarn_research.cli.paper import command
from yarn_research.papers.figures import Figure, errors, mean, quantile, row, share, stdev
from yarn_research.papers.natjam_micro import FIG3_S, Lab, figure_3, figure_4, figure_5, figures_of
from yarn_research.papers.natjam_traces import same_kind
from yarn_research.papers.paper_natjam import FIGURES
from yarn_research.studies import cells
from yarn_research.studies.cells import CELLS, PAPER, Cell, CellRuns, Plan, carry_out, identity_of
from yarnctl import command_line
from yarnctl.command_line import ProgressBar, exit_status_of
from yarnctl.errors import BadInput


def here() -> CellRuns:
    return CellRuns(None, 1, ProgressBar("runs"))


def drawn(plan: Plan[Figure]) -> Figure:
    """Carry out one figure in this process."""
    return carry_out([plan], here())[0]


def natjam(*words: str) -> Result:
    return CliRunner().invoke(command, ["natjam", "--json", *words])


def told(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "run.json").read_bytes())
    return found


def test_fig_3_is_what_the_constants_are_fitted_on():
    figure = drawn(figure_3(Lab(runs=5)))
    assert len(figure.rows) == len(FIG3_S)
    for each in figure.rows:
        assert each.relative_error is None, "what calibrates may not count as a prediction"
        assert each.ours == pytest.approx(each.paper, abs=0.3)


def test_what_only_repeats_another_figure_has_no_relative_error():
    rows = {(each.label, each.metric): each.relative_error for each in drawn(figure_5(Lab(runs=1))).rows}
    assert rows["SRT production-s", "research_s"] is None
    assert rows["LRT production-s", "research_s"] is not None


@pytest.mark.parametrize(
    ("paper", "ours", "holds"),
    [(-5.0, -8.1, True), (-5.0, 8.1, False), (-5.0, -0.4, False), (30.0, 299.0, True), (30.0, 301.0, False)],
)
def test_a_magnitude_holds_with_the_same_sign_within_a_factor_of_ten(paper, ours, holds):
    assert same_kind(paper, ours) is holds


def test_statistics_by_hand():
    values = [4.0, 1.0, 3.0, 2.0]
    assert quantile(values, 0.5) == 2.0  # two of four lie at or below
    assert quantile(values, 0.0) == 1.0
    assert quantile(values, 1.0) == 4.0
    assert share(values, 3.0) == 0.75
    assert stdev([1.0, 3.0]) == pytest.approx(2**0.5)
    assert stdev([7.0]) == 0.0


def test_errors_leave_out_what_says_nothing():
    rows = (
        row("a", "s", 100.0, [110.0]),
        row("b", "s", 100.0, [200.0], counts=False),
        row("c", "s", 50.0, [49.0]),
    )
    assert errors([Figure("x", "", rows)]) == (0.06, 0.1)
    assert errors([]) == (None, None)


def test_the_report_has_the_shape_that_other_tools_read():
    result = CliRunner().invoke(command, ["natjam", "--figure", "4", "--runs", "1", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert list(report) == [
        "paper",
        "calibrated_on",
        "figures",
        "mean_abs_relative_error",
        "worst_abs_relative_error",
    ]
    (figure,) = report["figures"]
    assert set(figure["rows"][0]) == {"label", "metric", "paper", "ours", "stdev", "runs", "relative_error"}
    assert set(figure["claims"][0]) >= {"claim", "paper", "ours", "holds"}


def test_every_figure_of_the_evaluation_is_there():
    assert list(FIGURES) == [str(number) for number in range(3, 16)]


def test_a_bar_is_the_mean_over_its_seeds():
    lab = Lab(runs=3)
    runs = [run_scheme(lab.setup(seed), lab.pair("s"), SCHEMES["natjam"]) for seed in range(3)]
    times = {
        job_class: [
            job.completion_ms / 1000 for each in runs for job in each.jobs if job.job_class == job_class
        ]
        for job_class in ("production", "research")
    }
    bars = {each.metric: each for each in drawn(figure_4(lab)).rows if each.label == "natjam"}
    assert len(set(times["production"])) > 1, "else a standard deviation says nothing"
    for job_class, spans in times.items():
        bar = bars[f"{job_class}_s"]
        assert (bar.ours, bar.stdev, bar.runs) == (round(mean(spans), 3), round(stdev(spans), 3), 3)


# --- cells ---------------------------------------------------------------------------------------


def cell(seed: int, /, **fields: Any) -> Cell:
    setup = msgspec.structs.replace(Lab().setup(seed), **fields)
    return Cell(setup, Lab().pair("s"), SCHEMES["natjam"])


def test_a_cell_is_known_by_what_decides_alone():
    assert identity_of(cell(0)) == identity_of(cell(0, validate=True))
    others = (
        cell(1),
        cell(0, seed=1),
        cell(0, nodes=7),
        msgspec.structs.replace(cell(0), scheme=SCHEMES["kill"]),
        msgspec.structs.replace(cell(0), jobs=Lab().pair("l")),
    )
    assert len({identity_of(each) for each in (cell(0), *others)}) == 6


def test_plans_are_carried_out_side_by_side_and_equal_cells_once():
    results = {
        identity_of(cell(seed)): RunResult(
            scheme="natjam",
            jobs=(),
            lost_work_ms=0,
            overhead_ms=0,
            suspensions=0,
            kills=0,
            utilisation_ratio=0.0,
            makespan_ms=seed,
            events=0,
        )
        for seed in range(5)
    }
    rounds: list[list[int]] = []

    def run(cells: Mapping[str, Cell]) -> Mapping[str, RunResult]:
        rounds.append(sorted(each.setup.seed for each in cells.values()))
        return results

    def plan(*batches: list[int]) -> Plan[list[int]]:
        seen = []
        for batch in batches:
            seen += [each.makespan_ms for each in (yield [cell(seed) for seed in batch])]
        return seen

    answers = carry_out([plan([3, 1], [4, 1]), plan([1, 2, 1]), plan()], run)
    assert answers == [[3, 1, 4, 1], [1, 2, 1], []]
    assert rounds == [[1, 2, 3], [1, 4]]


def test_workers_and_folder_change_nothing(tmp_path: Path) -> None:
    words = ("--figure", "11", "--runs", "1")  # its second half depends on what came of its first
    answers = [
        natjam(*words, "--workers", "1"),
        natjam(*words, "--workers", "1", "--out", str(tmp_path / "one")),
        natjam(*words, "--workers", "2", "--out", str(tmp_path / "two")),
    ]
    assert [each.exit_code for each in answers] == [0, 0, 0]
    assert len({each.stdout for each in answers}) == 1
    assert {each.stderr for each in answers} == {""}
    for name in ("manifest.json", CELLS, "results.json", "report.html"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    held = sorted(path.name for path in (tmp_path / "two").iterdir())
    assert held == [CELLS, "manifest.json", "report.html", "results.json", "run.json"]
    assert (tmp_path / "two/results.json").read_text() == answers[0].stdout


def test_what_may_differ_stands_in_the_run_file_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert natjam("--figure", "4", "--runs", "1", "--out", str(out)).exit_code == 0
    assert {"wall_s", "argv", "python", "yarnctl", "platform"} <= set(told(out))
    for name in (CELLS, "results.json", "report.html", "manifest.json"):
        text = (out / name).read_text()
        assert str(tmp_path) not in text
        assert "wall" not in text
        assert told(out)["platform"] not in text


# --- going on where one stopped --------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a folder with Fig 4, one run a bar."""
    out = tmp_path / "out"
    assert natjam("--figure", "4", "--runs", "1", "--workers", "1", "--out", str(out)).exit_code == 0
    assert (told(out)["ran"], told(out)["known"]) == (5, 5)
    return out


def again(out: Path, *words: str) -> Result:
    result = natjam(*(words or ("--figure", "4", "--runs", "1")), "--workers", "1", "--out", str(out))
    assert result.exit_code == 0, result.stderr
    return result


def test_nothing_is_run_twice(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in kept.iterdir() if path.name != "run.json"}
    run = cells.run_cell
    monkeypatch.setattr(cells, "run_cell", None)
    again(kept)
    assert {name: (kept / name).read_bytes() for name in before} == before
    assert told(kept)["ran"] == 0
    monkeypatch.setattr(cells, "run_cell", run)
    again(kept, "--figure", "5", "--runs", "1")
    assert told(kept)["ran"] == 5, "one of its six is a run of Fig 4"
    again(kept, "--figure", "4", "--runs", "2")
    assert told(kept)["ran"] == 5, "the second seed of each scheme"
    again(kept, "--alternatives", "--runs", "1")
    assert json.loads((kept / "alternatives.json").read_bytes())["alternatives"][0]["ours"]
    assert natjam("--figure", "4", "--runs", "1").stdout == again(kept).stdout


@pytest.mark.parametrize(
    ("damage", "ran"),
    [
        (lambda data: data[:-40], 1),  # torn while it was written
        (lambda data: data.replace(b'"makespan_ms":', b'"makespan_ms":1', 1), 1),
        (lambda data: data.replace(b'"identity":"', b'"identity":"0', 1), 1),
        (lambda data: b"[" * 100_000 + b"\n" + data, 0),
        (lambda data: b"\x80\n" + b"".join(reversed(data.splitlines(keepends=True))), 0),
        (lambda data: b"", 5),
    ],
)
def test_a_damaged_run_is_run_again(kept: Path, damage: Callable[[bytes], bytes], ran: int) -> None:
    whole = (kept / CELLS).read_bytes()
    damaged = damage(whole)
    assert damaged != whole
    (kept / CELLS).write_bytes(damaged)
    again(kept)
    assert told(kept)["ran"] == ran
    assert (kept / CELLS).read_bytes() == whole


def test_an_interrupted_paper_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, run, begun = tmp_path / "out", cells.run_cell, []

    def interrupted(order: tuple[str, Cell]) -> RunDone:
        begun.append(order)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return run(order)

    monkeypatch.setattr(cells, "run_cell", interrupted)
    assert natjam("--figure", "4", "--runs", "1", "--workers", "1", "--out", str(out)).exit_code == 1
    assert sorted(path.name for path in out.iterdir()) == [CELLS, "manifest.json"]
    monkeypatch.setattr(cells, "run_cell", run)
    resumed = again(out)
    assert told(out)["ran"] == 2
    assert resumed.stdout == natjam("--figure", "4", "--runs", "1").stdout
    assert natjam("--figure", "4", "--runs", "1", "--out", str(tmp_path / "at-once")).exit_code == 0
    assert (out / CELLS).read_bytes() == (tmp_path / "at-once" / CELLS).read_bytes()


def test_a_failure_before_the_first_run_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> RunResult:
        raise BadInput("job 7", "cannot be")

    monkeypatch.setattr(cells, "run_scheme", failing)
    result = natjam("--figure", "4", "--workers", "1", "--out", str(tmp_path / "a/out"))
    assert isinstance(result.exception, RunFailed)
    assert result.exception.exit_status == 2
    assert str(result.exception).endswith(": job 7: cannot be")
    assert "scheme " in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line_and_keeps_what_is_whole(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            with opened(kept / CELLS, "ab") as file:
                file.write(data[: len(data) // 2])
            raise OSError(28, "No space left on device")

    def full(path: Path, mode: str = "r", *more: Any) -> Any:
        return Full() if mode == "ab" else opened(path, mode, *more)

    opened = Path.open
    monkeypatch.setattr(Path, "open", full)
    result = natjam("--figure", "4", "--runs", "2", "--workers", "1", "--out", str(kept))
    assert str(result.exception) == f"{kept / CELLS}: cannot be written: No space left on device"
    monkeypatch.setattr(Path, "open", opened)
    again(kept)
    assert (told(kept)["ran"], told(kept)["known"]) == (0, 5)


def test_other_sources_run_everything_again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "code_digest", lambda: "another program")
    again(kept)
    assert told(kept)["ran"] == 5


def test_only_one_writes_into_a_folder_and_only_into_its_own(kept: Path, tmp_path: Path) -> None:
    holder = folder.Folder(kept, "another paper", PAPER)
    words = ("--figure", "4", "--runs", "1", "--out")
    holder._take_lock()
    assert "another run is writing here" in str(natjam(*words, str(kept)).exception)
    holder._unlock()
    with pytest.raises(BadInput, match="holds the results of another scenario"), holder.opened():
        raise AssertionError
    with pytest.raises(BadInput, match="not results of this program"):
        folder.Folder(kept, "a comparison").require_ours()
    run_experiment(prepare(OURS), workers=1, out=tmp_path / "compared")
    assert "not results of this program" in str(natjam(*words, str(tmp_path / "compared")).exception)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/thesis.tex").write_text("ten years of work")
    assert "not results of this program: thesis.tex" in str(
        natjam(*words, str(tmp_path / "thesis")).exception
    )


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "run_cell", None)
    for path in (tmp_path, tmp_path / "none/page.html"):
        result = natjam("--figure", "4", "--html", str(path))
        assert str(result.exception).startswith(f"--html {path}: is a folder, or lies in none")


def test_the_page_is_the_same_beside_and_in_the_folder(kept: Path, tmp_path: Path) -> None:
    again(kept, "--figure", "4", "--runs", "1", "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert page == (kept / "report.html").read_text()
    assert page.count("<svg") == 1
    assert "Figs 4 to 6: mean absolute relative error" in page


# --- a run that is one of the paper's ---------------------------------------------------------------

OURS = msgspec.structs.replace(FIG_4, schemes=("yarn", "natjam"))
"""Fig 4, and yarn with it."""


def paper_figures(outcome: Comparison) -> tuple[Figure, ...]:
    """Return the figures of the paper of which an outcome is a run."""
    return figures_of(setup(outcome.prepared.scenario), outcome.prepared.jobs, outcome.results)


def test_a_run_of_the_paper_shows_the_paper_s_numbers() -> None:
    seeded = msgspec.structs.replace(OURS, seed=2)
    outcome = run_experiment(prepare(seeded), workers=1)
    (figure,) = paper_figures(outcome)
    lab = Lab()
    result = run_scheme(lab.setup(2), lab.pair("s"), SCHEMES["natjam"])
    times = {f"{job.job_class}_s": job.completion_ms / 1000 for job in result.jobs}
    assert figure.figure == "4"
    assert [(each.label, each.metric, each.paper, each.ours) for each in figure.rows] == [
        ("natjam", "production_s", 75.6, times["production_s"]),
        ("natjam", "research_s", 197.0, times["research_s"]),
    ]
    assert figure.claims == ()
    assert paper_figures(run_experiment(prepare(seeded)._replace(validate=True), workers=1)) == (figure,)


def test_fig_4_whole_has_its_claims_and_fig_5_is_known_by_its_policy() -> None:
    lab = Lab(runs=1)
    results = {name: run_scheme(lab.setup(0), lab.pair("s"), SCHEMES[name]) for name in SCHEMES}
    assert figures_of(lab.setup(0), lab.pair("s"), results) == (drawn(figure_4(lab)),)
    random = lab.setup(0, task_policy="random")
    result = run_scheme(random, lab.pair("l"), SCHEMES["natjam"])
    (figure,) = figures_of(random, lab.pair("l"), {"natjam": result})
    assert [(each.label, each.paper) for each in figure.rows] == [
        ("random production-l", 75.0),
        ("random production-l", 244.2),
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": 7},
        {"profile": "default"},
        {"caps": (0.8, 0.2)},
        {"job_policy": "PR"},
        {"schemes": ("yarn",)},
    ],
)
def test_a_run_that_differs_is_not_the_paper_s(other: dict[str, Any]) -> None:
    scenario = msgspec.structs.replace(OURS, **{"schemes": ("natjam",), **other})
    assert paper_figures(run_experiment(prepare(scenario), workers=1)) == ()


def test_a_paper_shows_its_runs_and_no_line_per_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    words = ["paper", "natjam", "--figure", "4", "--runs", "2", "--workers", "1", "--json"]
    assert exit_status_of(PROGRAM, words) == 0
    assert last_count(terminal) == (10, 10)  # five schemes, two seeds
    assert "figure" not in terminal.drawn()
    assert capsys.readouterr().out.startswith("{")
