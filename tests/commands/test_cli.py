"""The commands of ``yarn-emulator``: options, JSON shapes, exit statuses, bad input in one line."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import click
import msgspec
import pytest

from emulator import scenario
from emulator.cli import PROGRAM
from emulator.cli.demo import MIX_HOURS, PRODUCTION_HOUR, RESEARCH_HOUR
from emulator.demo import live_act
from emulator.demo.live_act import LiveOutcome
from emulator.experiments import showing
from emulator.experiments.results import runs
from emulator.scenario.preparing import setup
from emulator.virtual.schemes import SCHEMES
from emulator.workload.spec import load
from yarnctl.command_line import exit_status_of
from yarnctl.errors import BadInput
from yarnctl.traces.parquet import read_parquet, write_parquet
from yarnctl.units import Resources

ROOT = Path(__file__).parents[2]

SMALL = ["--production", "synthetic:production-s", "--research", "synthetic:research-s"]
CLUSTER = ["--nodes", "3", "--slots", "5", "--workers", "1"]
PACKAGED = "packaged:fb2009@21-22"

CLASS_KEYS = ["jobs", "mean_s", "median_s", "p95_s"]
SCHEME_KEYS = [
    "production", "research", "lost_work_s", "overhead_s", "suspensions", "kills", "utilisation_ratio",
    "makespan_s", "events", "waiting", "time_lost", "wall_s",
]  # fmt: skip


def said(capfd: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """Run the program; return what it says on stdout."""
    answered = exit_status_of(PROGRAM, list(words))
    out, err = capfd.readouterr()
    assert answered == status, err
    return out


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the program on bad input; return its one line."""
    answered = exit_status_of(PROGRAM, list(words))
    out, err = capfd.readouterr()
    assert answered == 2
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert err.startswith("error: ")
    return err.removeprefix("error: ").strip()


# --- compare ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [["--json"], ["-o", "json"]])
def test_compare_has_the_exact_shape(capfd: pytest.CaptureFixture[str], form: list[str]) -> None:
    answer = json.loads(said(capfd, "compare", *SMALL, *CLUSTER, "--schemes", "natjam,ideal", *form))
    assert list(answer) == ["schemes", "identity"]
    assert list(answer["schemes"]) == ["ideal", "natjam"]
    for name, scheme in answer["schemes"].items():
        assert list(scheme) == [key for key in SCHEME_KEYS if name == "natjam" or key != "time_lost"]
        assert list(scheme["production"]) == list(scheme["research"]) == CLASS_KEYS
        assert scheme["production"]["jobs"] == 1
        assert isinstance(scheme["wall_s"], float)
    assert answer["schemes"]["natjam"]["lost_work_s"] == 0
    assert answer["schemes"]["natjam"]["suspensions"] > 0


def test_compare_runs_all_schemes_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(said(capfd, "compare", *SMALL, *CLUSTER, "--json"))
    assert list(answer["schemes"]) == list(SCHEMES)
    named = json.loads(
        said(capfd, "compare", *SMALL, *CLUSTER, "--schemes", "mix", "--may-lose", "2%", "--json")
    )
    assert named["identity"] == answer["identity"], "the mix may lose 2 % where nothing else is given"


def test_compare_takes_every_option(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = (
        "--policy PR --task-policy random --seed 3 --load 2.5 --profile paper --timing paper --am-ratio 0.4"
    )
    words = [*SMALL, *CLUSTER, *options.split(), "--schemes", "natjam", "--out", str(tmp_path / "out")]
    table = said(capfd, "compare", *words, "--date", "2026-11-28")
    assert "natjam" in table
    assert f"report: {tmp_path / 'out' / 'report.html'}" in table
    assert "2026-11-28, yarnctl" in (tmp_path / "out/report.html").read_text()
    assert (tmp_path / "out/natjam/journal.jsonl").stat().st_size
    assert json.loads((tmp_path / "out/run.json").read_bytes())["scenario"]["load"] == 2.5


def test_the_report_s_command_computes_the_same(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["compare", *SMALL, *CLUSTER, "--schemes", "natjam,mix", "--am-ratio", "0.4", "--seed", "3"]
    said(capfd, *words, "--validate", "--out", str(tmp_path / "out"), "--date", "2026-11-28")
    page = (tmp_path / "out/report.html").read_text()
    command = html.unescape(re.search("<code>(.*)</code>", page)[1])  # type: ignore[index]
    assert command == (
        "yarn-emulator compare --production synthetic:production-s --research synthetic:research-s"
        " --nodes 3 --slots 5 --schemes natjam,mix --seed 3 --am-ratio 0.4"
    )
    answer = json.loads(said(capfd, *shlex.split(command)[1:], "--json"))
    assert answer["identity"] in page


@pytest.mark.parametrize("word", ["28.11.2026", "2026-02-30", "today"])
def test_a_date_that_is_none_is_refused(capfd: pytest.CaptureFixture[str], word: str) -> None:
    assert "'--date'" in refused(capfd, "compare", *SMALL, *CLUSTER, "--date", word)


def test_compare_prints_a_column_or_a_line_for_each_scheme(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["compare", *SMALL, *CLUSTER, "--schemes", "soft-cap,natjam"]
    narrow = said(capfd, *words).splitlines()
    assert narrow[0].split() == ["soft-cap", "natjam"]
    assert narrow[1] == "production s"
    assert max(map(len, narrow)) <= 80
    assert any(line.endswith("is recommended.") for line in narrow)
    wide = said(capfd, *words, "-o", "wide")
    assert [line.split()[1] for line in wide.splitlines() if line.startswith("│")][:2] == [
        "soft-cap",
        "natjam",
    ]


def test_compare_can_keep_no_journals(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [*SMALL, *CLUSTER, "--schemes", "natjam", "--out", str(tmp_path / "out"), "--no-journal"]
    answer = json.loads(said(capfd, "compare", *words, "--json"))
    assert answer["schemes"]["natjam"]["suspensions"] > 0
    assert not list(tmp_path.rglob("journal.jsonl"))


def test_load_and_seed_change_the_identity(capfd: pytest.CaptureFixture[str]) -> None:
    def identity(*words: str) -> object:
        text = said(capfd, "compare", *SMALL, *CLUSTER, "--schemes", "soft-cap", "--json", *words)
        return json.loads(text)["identity"]

    assert identity() == identity("--load", "1")
    assert len({identity(), identity("--load", "2"), identity("--seed", "1")}) == 3


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Return a folder with traces that cannot be used."""
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "torn.tsv").write_text("job1\t0\t0\t10\t10\t10\njob2\t5\t5\t10\n")
    large = load(PACKAGED, "research").jobs[0]
    values = {name: getattr(large, name) for name in large.__struct_fields__}
    write_parquet([type(large)(**{**values, "map_size": Resources(65536, 1)})], folder / "large.parquet")
    return folder


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--research", "swim:{}/torn.tsv"], r"{}/torn\.tsv:2: field \w+: the row is torn"),
        (
            ["--research", "parquet:{}/large.parquet"],
            r"job r-job\d+, field map_size: 65536 MiB .* fit on no node",
        ),
        (["--research", "swam:x"], r"SPEC 'swam:x': not a workload"),
        (["--policy", "XX"], r"Invalid value for '--policy': 'XX' is not one of 'MR'"),
        (["--task-policy", "srt"], r"Invalid value for '--task-policy': 'srt' is not one of"),
        (["--schemes", "natjam,natjim"], r"--schemes: unknown: 'natjim'; use some of ideal"),
        (["--schemes", ","], r"--schemes: no scheme"),
        (["--nodes", "0"], r"--nodes: 0 is not within 1 to"),
        (["--nodes", "two"], r"Invalid value for '--nodes': 'two' is not a valid integer"),
        (["--slots", "0"], r"--slots: 0 is not within 1 to"),
        (["--load", "nan"], r"--load: nan is not a positive number"),
        (["--research-peak", "nan"], r"--research-peak: nan is not a positive number"),
        (["--am-ratio", "nan"], r"--am-ratio: nan"),
        (["--seed", "-1"], r"--seed: -1 is not within 0 to"),
        (["--workers", "0"], r"Invalid value for '--workers'"),
        (["--profile", "x"], r"Invalid value for '--profile'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, traces: Path, words: list[str], line: str
) -> None:
    given = [word.format(traces) for word in words]
    out = tmp_path / "out"
    error = refused(capfd, "compare", *SMALL, *CLUSTER, "--out", str(out), *given)
    assert re.match(line.replace("{}", re.escape(str(traces))), error), error
    assert not out.exists()


def test_out_that_cannot_be_made(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", forbidden)
    words = [*SMALL, *CLUSTER, "--schemes", "soft-cap", "--out", str(tmp_path / "out")]
    assert "out: cannot be made: Permission denied" in refused(capfd, "compare", *words)


def test_both_workloads_are_required(capfd: pytest.CaptureFixture[str]) -> None:
    assert "'--research'" in refused(capfd, "compare", *SMALL[:2], *CLUSTER)


SCENARIO = """
production = "synthetic:production-s"
research = "synthetic:research-s"
nodes = 3
slots = 5
schemes = ["kill", "natjam"]
"""


def test_run_keeps_everything(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SCENARIO)
    words = ["run", str(tmp_path / "a.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    table = said(capfd, *words)
    assert "natjam" in table
    held = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    assert held >= {"results.json", "run.json", "report.html", "natjam/journal.jsonl", "kill/journal.jsonl"}
    answer = json.loads(said(capfd, *words, "--json"))
    results = json.loads((tmp_path / "out/results.json").read_bytes())
    waiting = json.loads((tmp_path / "out/waiting.json").read_bytes())
    for name, scheme in answer["schemes"].items():
        assert list(scheme) == SCHEME_KEYS
        assert scheme.pop("wall_s") >= 0
        assert waiting["waiting"][name] == scheme.pop("waiting")
        assert results["schemes"][name] == scheme
    assert answer["identity"] == results["identity"]


def test_run_refuses_a_missing_scenario(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    error = refused(capfd, "run", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out"))
    assert error.startswith(f"{tmp_path / 'none.toml'}: cannot be read: No such file or directory")


# --- demo, convert, workload -----------------------------------------------------------------


ACTED = LiveOutcome(
    identical=True, suspensions=4, resumed=3, request_to_manifest_s=0.62, production_s=11.9, research_s=25.9,
    bytes_compared=6500,
)  # fmt: skip


@pytest.mark.parametrize("nodes", [3, pytest.param(50, marks=pytest.mark.thorough)])
def test_demo_shows_it_all(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    """The live act itself is played in tests/live; here what is said of it. 3 nodes get 3/50 of the tasks."""
    prepare, played = scenario.prepare, []

    def prepare_on(given: scenario.Scenario) -> scenario.Prepared:
        played.append(given.nodes)
        return prepare(msgspec.structs.replace(given, nodes=nodes))

    monkeypatch.setattr(scenario, "prepare", prepare_on)
    monkeypatch.setattr(live_act, "play", lambda plan, tell: ACTED)
    out = tmp_path / "demo-out"
    text = said(capfd, "demo", "--workers", "1", "--out", str(out))
    assert played == [50]
    assert text.splitlines()[-1] == "output identical"
    assert "4 reduces of research were suspended (median 0.6 s from request to manifest) and 3 of" in text
    assert text.splitlines()[0].split() == list(SCHEMES)
    assert "yarn-tuned (YARN's own preemption, tuned) is recommended." in text
    assert "natjam alone is slower for production" in text
    assert "soft-cap is kinder to research" in text
    assert max(map(len, text.splitlines()[:-4])) <= 80
    results = json.loads((out / "results.json").read_bytes())["schemes"]
    assert results["natjam"]["suspensions"] >= (30 if nodes == 50 else 0)
    assert results["natjam"]["lost_work_s"] == 0
    assert results["natjam"]["kills"] == 0
    assert results["yarn-tuned"]["lost_work_s"] > 5 * results["mix"]["lost_work_s"] > 0
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "Repeat it: <code>yarn-emulator demo</code>" in page
    assert "No constant of the mix was chosen on these hours; studies judged it on both." in page
    for name in ("yarn", "yarn-tuned", "natjam", "mix"):
        assert f"{results[name]['suspensions']:,} suspended, {results[name]['kills']:,} killed" in page
    assert (out / "demo.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "status", "last"),
    [((), 1, "OUTPUT DIFFERS"), (("--no-live",), 0, "read"),
     (("--json",), 1, {"schemes": {}, "live": msgspec.structs.asdict(ACTED) | {"identical": False}}),
     (("--no-live", "--json"), 0, {"schemes": {}})],
)  # fmt: skip
def test_demo_ends_with_the_verdict_on_the_bytes(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    status: int,
    last: object,
) -> None:
    different = msgspec.structs.replace(ACTED, identical=False)
    monkeypatch.setattr(live_act, "play", lambda plan, tell: different)
    monkeypatch.setattr(showing, "run_shown", lambda *given, **named: None)
    monkeypatch.setattr(showing, "print_outcome", lambda *given: click.echo("read"))
    monkeypatch.setattr(runs, "compare_json", lambda outcome: {"schemes": {}})
    text = said(capfd, "demo", *words, status=status)
    assert (json.loads(text) if "--json" in words else text.splitlines()[-1]) == last


def test_the_demo_plays_the_mix_as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the loss budget and the price of a second that ``run --eviction mix`` has without options."""
    prepare, prepared = scenario.prepare, []
    small = {"nodes": 3, "production": "synthetic:production-s", "research": "synthetic:research-s"}

    def prepare_small(given: scenario.Scenario) -> scenario.Prepared:
        prepared.append(prepare(msgspec.structs.replace(given, **small)))
        raise BadInput("the demo", "is prepared", "no more is needed")

    monkeypatch.setattr(scenario, "prepare", prepare_small)
    assert exit_status_of(PROGRAM, ["demo", "--no-live"]) == 2
    played = setup(prepared[0].scenario)
    assert (played.may_lose_ratio, played.second_worth_ratio, played.kills_max) == (0.02, 1.0, 3)


def test_the_demo_s_hours_had_no_part_in_making_the_mix() -> None:
    """They are the first such pair of ``study``: research is the twelfth of the other hours with work."""
    jobs = load("packaged:fb2009-day", "production").jobs
    hours = sorted({job.submitted_at_ms // 3_600_000 for job in jobs if job.submitted_at_ms < 24 * 3_600_000})
    assert len(hours) == 23
    pairs = ((hour, hours[(place + 12) % len(hours)]) for place, hour in enumerate(hours))
    unseen = next(pair for pair in pairs if not {*pair} & {*MIX_HOURS})
    assert unseen == (PRODUCTION_HOUR, RESEARCH_HOUR)


def test_convert_and_read_back(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "hour.parquet"
    assert (
        said(capfd, "convert", PACKAGED, "--class", "research", "--out", str(path)) == f"{path}: 291 jobs\n"
    )
    assert read_parquet(path) == load(PACKAGED, "research").jobs


@pytest.mark.parametrize(
    ("spec", "out", "line"),
    [("swim:none.tsv", "a.parquet", "none.tsv: cannot be read"), (PACKAGED, "none/a.parquet", "--out"),
     (PACKAGED, ".", "--out")],
)  # fmt: skip
def test_convert_refuses(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, spec: str, out: str, line: str
) -> None:
    assert refused(capfd, "convert", spec, "--out", str(tmp_path / out)).startswith(line)
    assert list(tmp_path.iterdir()) == []


def test_workload_shows_what_a_trace_holds(capfd: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(said(capfd, "workload", PACKAGED, "--json"))
    assert (answer["jobs"], answer["maps"], answer["reduces"]) == (291, 9006, 1428)
    assert answer["source"] == PACKAGED
    assert answer["map_hours"] > 0
    assert "reduce_hours" in said(capfd, "workload", PACKAGED)


def test_workload_refuses(capfd: pytest.CaptureFixture[str]) -> None:
    assert refused(capfd, "workload", "swim:none.tsv").startswith("none.tsv: cannot be read")
