"""The file of settings: each option in file, environment and flag; faults by key; precedence; show and check.

Law: options are read from the command, so an option that is added later is tested without an edit here.
"""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from yarnctl.attach.check.next_steps import NextSteps
from yarnctl.attach.check.preflight import CheckResult, Severity
from yarnctl.cli import PROGRAM, settings_file
from yarnctl.cli import config as config_command
from yarnctl.cli.config import toml_text
from yarnctl.cli.grouped_help import first_sentence
from yarnctl.cli.run import RELOADED, command
from yarnctl.cli.settings_file import settings_of, variable_of
from yarnctl.command_line import exit_status_of
from yarnctl.config import ENVIRONMENT, ClusterAddress
from yarnctl.errors import BadInput

OPTIONS = settings_of(command)
BROKEN = 500


@pytest.fixture(autouse=True)
def _no_settings_of_this_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in (*map(variable_of, OPTIONS), *ENVIRONMENT, settings_file.PLACE_ENV):
        monkeypatch.delenv(variable, raising=False)
    for module in (settings_file, config_command):
        monkeypatch.setattr(module, "PLACE", tmp_path / "none.toml")


def value_of(option: click.Option, chosen: random.Random) -> Any:
    """Return a value that the option accepts and that is not its default."""
    kind = option.type
    if option.multiple:
        return [f"http://a{chosen.randrange(9)}", "b"]
    if option.is_flag:
        return option.default is not True
    if isinstance(kind, click.Choice):
        return chosen.choice([one for one in kind.choices if one != option.default])
    if isinstance(kind, click.types.IntParamType):
        least = max(getattr(kind, "min", None) or 0, 7)
        most = min(getattr(kind, "max", None) or least + 90, least + 90)
        return chosen.choice([one for one in range(least, most + 1) if one != option.default])
    if isinstance(kind, click.types.FloatParamType):
        return 0.25
    return f"/a/b{chosen.randrange(9)}"


def values() -> dict[str, Any]:
    chosen = random.Random(7)
    return {key: value_of(option, chosen) for key, option in OPTIONS.items()}


def written(file: Path, run: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    lines = ["[run]", *(f"{key} = {toml_text(value)}" for key, value in run.items())]
    lines += ["[cluster]", *(f"{key} = {toml_text(value)}" for key, value in (cluster or {}).items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def parsed(*words: str) -> dict[str, Any]:
    with command.make_context("run", list(words)) as context:
        return {key: value for key, value in context.params.items() if key != "config"}


def flags(key: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else list(OPTIONS[key].secondary_opts)
    return [
        word for each in (value if isinstance(value, list) else [value]) for word in (f"--{key}", str(each))
    ]


def text_of(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return str(int(value) if isinstance(value, bool) else value)


@pytest.mark.parametrize("key", OPTIONS)
def test_option_means_the_same_in_file_environment_and_flag(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = values()[key]
    by_default, by_flag = parsed(), parsed(*flags(key, value))
    by_file = parsed("--config", str(written(tmp_path / "y.toml", {key: value})))
    monkeypatch.setenv(variable_of(key), text_of(value))
    assert parsed() == by_file == by_flag
    assert by_flag != by_default


def three(option: click.Option) -> tuple[Any, Any, Any]:
    """Return values for file, environment and flag; each differs from that before it."""
    kind = option.type
    if option.is_flag:
        is_on = option.default is True
        return not is_on, is_on, not is_on
    if option.multiple:
        return ["http://a1", "b"], ["http://a2"], ["http://a3", "b"]
    if isinstance(kind, click.Choice):
        return kind.choices[1], kind.choices[0], kind.choices[1]
    if isinstance(kind, click.types.IntParamType):
        high = min(33, getattr(kind, "max", None) or 33)
        return high - 2, high - 1, high
    return (0.25, 0.5, 0.75) if isinstance(kind, click.types.FloatParamType) else ("/a", "/b", "/c")


@pytest.mark.parametrize("key", OPTIONS)
def test_flag_precedes_environment_precedes_file(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = OPTIONS[key]
    low, middle, high = three(option)
    monkeypatch.setenv("YARNCTL_CONFIG", str(written(tmp_path / "y.toml", {key: low})))
    assert found(option) == (flagged(key, low), "file")
    monkeypatch.setenv(variable_of(key), text_of(middle))
    assert found(option) == (flagged(key, middle), "environment")
    assert found(option, *flags(key, high)) == (flagged(key, high), "flag")
    monkeypatch.delenv(variable_of(key))
    monkeypatch.delenv("YARNCTL_CONFIG")
    assert found(option)[1] == "default"


def found(option: click.Option, *words: str) -> tuple[Any, str]:
    with command.make_context("run", list(words)) as context:
        return context.params[str(option.name)], settings_file.given(context, option).origin


def flagged(key: str, value: Any) -> Any:
    """Return what the option itself makes of a value, without file and environment."""
    option = OPTIONS[key]
    alone = click.Command("run", params=[option])
    return alone.make_context("run", flags(key, value)).params[str(option.name)]


# --- 500 broken files ---------------------------------------------------------------------------


def broken(seed: int, file: Path) -> tuple[str, str]:
    """Write a good file with one fault; return its kind, and the key or table that must be named."""
    chosen = random.Random(seed)
    run = values()
    del run["user"]
    cluster: dict[str, Any] = {"user": "yarnctl", "connect_ms": 3000, "authentication": "simple"}
    key = chosen.choice(sorted(run))
    option, kind = (
        OPTIONS[key],
        chosen.choice(
            ("typo", "underscore", "type", "range", "table", "place", "top", "twin", "cluster", "control")
        ),
    )
    named = f"run.{key}"
    if kind == "typo":
        at = chosen.randrange(len(key))
        typo = key[:at] + chosen.choice("qxz9") + key[at + chosen.randrange(2) :]
        run[typo] = run.pop(key)
        named = f"run.{typo}"
    elif kind == "underscore":
        key = chosen.choice([one for one in run if "-" in one])
        run[key.replace("-", "_")] = run.pop(key)
        named = f"run.{key.replace('-', '_')}"
    elif kind == "type":
        wrong = [17, "x", True, [1], [], 1.5, ["a", 2]]
        good = {int: isinstance(option.type, click.types.IntParamType | click.types.FloatParamType),
                float: isinstance(option.type, click.types.FloatParamType), bool: option.is_flag,
                str: not option.multiple and not option.is_flag}  # fmt: skip
        run[key] = chosen.choice([one for one in wrong if not good.get(type(one), False)])
        if run[key] == "x" and not isinstance(option.type, click.Choice | click.Path):
            run[key] = []
    elif kind == "range":
        bounded = [one for one in run if getattr(OPTIONS[one].type, "max", None) is not None or
                   getattr(OPTIONS[one].type, "min", None) is not None]  # fmt: skip
        key = chosen.choice(bounded)
        top = getattr(OPTIONS[key].type, "max", None)
        run[key] = -3 if top is None or chosen.random() < 0.5 else top + 1
        named = f"run.{key}"
    elif kind == "table":
        table = chosen.choice(("Run", "runs", "daemon", "yarnctl", "clusters"))
        written(file, run, cluster)
        file.write_text(file.read_text() + f"[{table}]\nenforce = true\n")
        return kind, f": {table}: "
    elif kind == "place":
        cluster[key] = run.pop(key)
        if key in ClusterAddress.__struct_fields__:
            return broken(seed + 10_000, file)
        named = f"cluster.{key}"
    elif kind == "top":
        written(file, run, cluster)
        file.write_text(f"{key} = {toml_text(run[key])}\n" + file.read_text())
        return kind, f": {key}: "
    elif kind == "twin":
        cluster["resource_managers"] = ["http://other:1"]
        named = "run.rm"
    elif kind == "cluster":
        key = chosen.choice(("connect_ms", "authentication", "conect_ms"))
        cluster[key] = {"connect_ms": 0, "authentication": "none"}.get(key, 3)
        named = key
    else:
        key = chosen.choice([one for one in run if isinstance(run[one], str)])
        written(file, run, cluster)
        good_line = f"{key} = {toml_text(run[key])}"
        bad = chosen.choice(('""', '"a\\u0007b"', '"  "', '"a\\nb"', '"http://u:secret@h/x"'))
        file.write_text(file.read_text().replace(f"\n{good_line}\n", f"\n{key} = {bad}\n"))
        return kind, f"run.{key}"
    written(file, run, cluster)
    return kind, named


def test_500_broken_files_are_each_rejected_by_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = values()
    del good["user"]
    file = written(tmp_path / "y.toml", good, {"user": "yarnctl"})
    assert list(settings_file.file_faults(file, tomllib.loads(file.read_text()), OPTIONS)) == []
    seen: dict[str, int] = {}
    for seed in range(BROKEN):
        kind, named = broken(seed, file)
        seen[kind] = seen.get(kind, 0) + 1
        with pytest.raises(BadInput) as refused:
            parsed("--config", str(file))
        said = str(refused.value)
        assert said.startswith(f"{file}: "), said
        assert named in said, (seed, kind, named, said)
        assert "secret" not in said
    assert len(seen) == 10, seen
    assert min(seen.values()) >= 20, seen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[run]\nenforse = true", "run.enforse: unknown key; did you mean enforce?"),
        ("[run]\ncap_queue = true", "run.cap_queue: unknown key; use cap-queue"),
        ("[run]\nresource_managers = ['http://h:1']", "unknown key; write it below [cluster]"),
        ("[cluster]\nenforce = true", "cluster.enforce: unknown key; write it below [run]"),
        ("enforce = true", "enforce: unknown key; write it below [run]"),
        ("[rum]\nenforce = true", "rum: unknown table; did you mean run?"),
        ("run = 3", "run: is not a table"),
        ("[run]\nin-flight = nan", "run.in-flight: nan is not a number from 0 to 1"),
        ("[run]\nin-flight-least = true", "True is not a whole number from 1"),
        ("[run]\ntoken-file = 'token'", "'token' is not an absolute path"),
        ("[run]\nmode = 'queue'", "'queue' is not one of queues, guarantees, deadlines"),
        (f"[run]\nmode = '{'q' * 99}'", f"run.mode: '{'q' * 79} is not one of"),
        ("[run]\nrm = 'http://h:1'", 'is not a list of texts, for example ["a", "b"]'),
        ("[run]\nrm = ['http://u:secret@h:1']", "contains a user or a password"),
        ("[cluster]\nresource_managers = ['http://u:secret@h:1']", "contains a user or a password"),
        ("[run", "invalid TOML"),
    ],
)  # fmt: skip
def test_fault_names_key_and_remedy(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "y.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        parsed("--config", str(file))
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_table_run_with_enforce_is_used(tmp_path: Path) -> None:
    assert parsed("--config", str(written(tmp_path / "y.toml", {"enforce": True})))["enforce"] is True


@pytest.mark.parametrize("text", ["yes", "2", "on"])
def test_environment_rejects_an_unclear_truth(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARNCTL_ENFORCE", text)
    with pytest.raises(BadInput, match=r"YARNCTL_ENFORCE: .* is not true or false"):
        parsed()


def test_error_of_a_value_names_the_file_or_the_variable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "y.toml", {"rm": ["http://127.0.0.1:1"], "policy": "FIFO"})
    assert exit_status_of(PROGRAM, ["run", "--config", str(file)]) == 2
    assert f"error: {file}: run.policy: unknown policy 'FIFO'" in capsys.readouterr().err
    monkeypatch.setenv("YARNCTL_POLICY", "LIFO")
    assert exit_status_of(PROGRAM, ["run", "--config", str(file)]) == 2
    assert "error: YARNCTL_POLICY: unknown policy 'LIFO'" in capsys.readouterr().err


# --- other commands -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["check", "restore", "bill", "profile"])
def test_other_commands_read_the_cluster_of_run_and_reject_faults(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"profile": ["x.toml"]}.get(name, [])
    file = written(tmp_path / "y.toml", {"rm": ["http://127.0.0.1:1"], "enforse": True})
    assert exit_status_of(PROGRAM, [name, *words, "--config", str(file)]) == 2
    assert "run.enforse: unknown key; did you mean enforce?" in capsys.readouterr().err
    made = PROGRAM.get_command(click.Context(PROGRAM), name)
    assert made is not None
    file = written(tmp_path / "y.toml", {"rm": ["http://127.0.0.1:1"], "store": "/other", "enforce": True})
    program = click.Context(PROGRAM)
    with made.make_context(name, [*words, "--config", str(file)], parent=program) as context:
        assert context.params["managers"] == ("http://127.0.0.1:1",)
        assert context.params.get("store") == ("/other" if name == "check" else None) or name == "profile"


# --- show and check -----------------------------------------------------------------------------


def test_show_has_every_setting_and_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = tmp_path / "token"
    token.write_text("a-secret-of-16-characters\n")
    file = written(tmp_path / "y.toml", {"token-file": str(token)}, {"connect_ms": 4})
    words = ["config", "show", "--config", str(file), "--rm", "http://u:secret@h:1"]
    for form in ((), ("-o", "json")):
        assert exit_status_of(PROGRAM, [*words, *form]) == 0
        out = capsys.readouterr().out
        assert "secret" not in out
        assert str(token) in out
    settings = json.loads(out)["settings"]
    keys = [row["key"] for row in settings]
    assert [key for key in keys if key.startswith("run.")] == [f"run.{key}" for key in OPTIONS]
    twins = {ENVIRONMENT.get(variable_of(key)) for key in OPTIONS}
    assert {key.removeprefix("cluster.") for key in keys if key.startswith("cluster.")} == {
        *ClusterAddress.__struct_fields__
    } - twins
    row = next(row for row in settings if row["key"] == "cluster.connect_ms")
    assert row == {
        "key": "cluster.connect_ms",
        "value": 4,
        "origin": "file",
        "place": f"{file}: cluster.connect_ms",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example:8443/services/T0/secret?key=secret", "https://hooks.example:8443/***"),
        ("https://ann:secret@hooks.example#secret", "https://hooks.example/***"),
        ("hooks.example/secret", "***"),
        ("https://[secret", "***"),
    ],
)
def test_show_has_scheme_and_host_of_a_webhook(
    url: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ((), ("-o", "json")):
        assert exit_status_of(PROGRAM, ["config", "show", "--webhook", url, *form]) == 0
        out = capsys.readouterr().out
        assert "secret" not in out
        assert shown in out


def test_show_names_the_environment_of_the_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARNCTL_CA_FILE", "/ca.pem")
    file = written(tmp_path / "y.toml", {}, {"resource_managers": ["http://h:1"]})
    assert exit_status_of(PROGRAM, ["config", "show", "--config", str(file), "-o", "json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)["settings"]}
    assert (rows["cluster.ca_file"]["origin"], rows["cluster.ca_file"]["place"]) == (
        "environment",
        "YARNCTL_CA_FILE",
    )
    assert rows["cluster.resource_managers"]["origin"] == "file"


def test_check_prints_every_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad: dict[str, Any] = {"enforse": True, "in-flight": 3, "mode": "x", "rm": ["http://127.0.0.1:1"]}
    file = written(tmp_path / "y.toml", bad, {"usr": "x"})
    assert exit_status_of(PROGRAM, ["config", "check", str(file)]) == 2
    found = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[2] for line in found] == [
        "run.enforse",
        "run.in-flight",
        "run.mode",
        "cluster.usr",
    ]


def test_check_prints_every_fault_between_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"rm": ["http://127.0.0.1:1"], "policy": "FIFO", "may-lose": "2%", "admission-kappa": 2.0,
           "listen": "0.0.0.0:8188", "budgets": str(tmp_path / "none")}  # fmt: skip
    file = written(tmp_path / "y.toml", bad)
    assert exit_status_of(PROGRAM, ["config", "check", str(file)]) == 2
    found = capsys.readouterr().err.splitlines()
    keys = [line.split(": ")[2].split(" ")[0] for line in found]
    assert sorted(keys) == sorted(f"run.{key}" for key in bad if key != "rm")
    good = written(
        tmp_path / "good.toml", {"rm": ["http://127.0.0.1:1"], "eviction": "mix", "may-lose": "2%"}
    )
    assert exit_status_of(PROGRAM, ["config", "check", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: no fault; 3 settings\n"


def test_check_without_a_file_names_the_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status_of(PROGRAM, ["config", "check"]) == 2
    assert "none.toml: no such file; run yarnctl config init" in capsys.readouterr().err
    written(tmp_path / "none.toml", {"rm": ["http://127.0.0.1:1"]})
    assert exit_status_of(PROGRAM, ["config", "check"]) == 0


@pytest.mark.parametrize(("severity", "status"), [("warn", 0), ("fail", 1)])
def test_init_names_the_checks_that_fail(
    severity: Severity, status: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    steps = NextSteps("", ("yarnctl", "run", "--rm", "http://h:1"))
    results = {"queues": CheckResult(severity, "")}
    monkeypatch.setattr("yarnctl.cli.check.examined", lambda *given: (results, steps))
    words = ["config", "init", "--rm", "http://h:1", "--file", str(tmp_path / "y.toml")]
    assert exit_status_of(PROGRAM, words) == status
    assert ("checks that fail: queues; run" in capsys.readouterr().out) is bool(status)


def test_written_file_is_whole_and_replaces_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "etc" / "y.toml"
    config_command.written_file(file, "a = 1\n", force=False)
    with pytest.raises(BadInput, match="exists; use --force"):
        config_command.written_file(file, "a = 2\n", force=False)
    assert file.read_text() == "a = 1\n"
    config_command.written_file(file, "a = 3\n", force=True)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        config_command.written_file(file, "a = 4\n", force=True)
    assert (file.read_text(), [one.name for one in file.parent.iterdir()]) == ("a = 3\n", ["y.toml"])


# --- help ---------------------------------------------------------------------------------------


def test_help_is_grouped_and_help_all_has_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status_of(PROGRAM, ["run", "--help"]) == 0
    short = capsys.readouterr().out
    assert exit_status_of(PROGRAM, ["run", "--help-all"]) == 0
    whole = capsys.readouterr().out
    for heading in (
        "Cluster:",
        "Queues:",
        "Preemption:",
        "Folders in HDFS:",
        "Page and API:",
        "Other options:",
    ):
        assert f"\n{heading}\n" in short
    assert [key for key in OPTIONS if f"  --{key}" not in whole] == []
    assert "--admission-kappa" not in short
    assert "--help-all" in short
    assert len(short.splitlines()) < 0.7 * len(whole.splitlines())


@pytest.mark.parametrize(
    ("text", "shown"), [("One. Two.  [x]  [y]", "One.  [x]  [y]"), ("No stop  [x]", "No stop  [x]"), ("", "")]
)
def test_short_help_has_the_first_sentence_and_the_default(text: str, shown: str) -> None:
    assert first_sentence(text) == shown


def test_reloaded_options_exist() -> None:
    assert set(OPTIONS) >= RELOADED


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/install.md", "hadoop-conf/dual-queue/yarnctl.toml"])
def test_file_of_the_manual_can_be_used(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".md"):
        (text,) = [part.partition("```")[0] for part in text.split("```toml\n")[1:] if "[run]" in part]
    file = tmp_path / "y.toml"
    file.write_text(text, encoding="utf-8")
    assert parsed("--config", str(file))["state_dir"] == Path("/var/lib/yarnctl")
