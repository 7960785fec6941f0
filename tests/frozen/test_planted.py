"""Each check sees what it is there for: a planted change is told by its place, and what is new is allowed."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.frozen import __main__ as program
from tests.frozen import answers, configuration, environment, interface, journals, recorded
from tests.frozen.catalogue import piece
from tests.frozen.commands import facts_of
from tests.frozen.comparing import differences
from tests.frozen.invoking import utc
from tests.frozen.pieces import DATA, Piece, as_json
from tests.frozen.recording import record
from tests.frozen.schemas import lines, shape
from tests.unit.service.played import busy
from yarnctl.cli import PROGRAM
from yarnctl.deciding import releaser
from yarnctl.errors import BadInput
from yarnctl.service.app import make_app

ROOT = Path(__file__).parents[2]
JOURNAL = "virtual-natjam"


def planted(name: str, now: Any) -> list[str]:
    """Return what a piece says of another value than today's."""
    return differences(piece(name).frozen(), as_json(now), piece(name).rule)


def test_kept_allows_what_is_new_and_nothing_else() -> None:
    frozen = {"a": {"b": 1}, "empty": {}, "many": ["x", "y"]}
    assert differences(frozen, {"a": {"b": 1, "c": 2}, "empty": {"d": 1}, "many": ["x", "y"]}, "kept") == []
    assert differences(frozen, {"a": {"b": 1.0}, "empty": {}, "many": ["x"]}, "kept") == [
        "- .a.b = 1",
        "+ .a.b = 1.0",
        '- .many[1] = "y"',
    ]


def test_same_tells_what_is_new_too() -> None:
    assert differences({"a b": 1}, {"a b": 1, "c": [2]}) == ["+ .c[0] = 2"]
    assert differences({"a b": 1}, {}) == ['- ["a b"] = 1', "+ . = {}"]


# --- names --------------------------------------------------------------------------------------


def changed_run(change: Callable[[click.Command], None]) -> list[str]:
    """Return what is said when ``yarnctl run`` takes something else."""
    context = click.Context(PROGRAM)
    run = PROGRAM.get_command(context, "run")
    assert run is not None
    other = copy.copy(run)
    other.params = [copy.copy(param) for param in run.params]
    change(other)
    now = copy.deepcopy(piece("commands").frozen())
    now["yarnctl"]["commands"]["run"] = facts_of(other)
    return planted("commands", now)


def option(command: click.Command, name: str) -> click.Option:
    return next(each for each in command.params if isinstance(each, click.Option) and name in each.opts)


def test_an_option_that_is_renamed_is_reported() -> None:
    def rename(command: click.Command) -> None:
        option(command, "--cap-queue").opts = ["--lower-queue"]

    found = changed_run(rename)
    assert found
    assert all(line.startswith("- .yarnctl.commands.run.options.--cap-queue.") for line in found)


def test_an_option_may_be_given_another_name_beside_its_own() -> None:
    def alias(command: click.Command) -> None:
        option(command, "--cap-queue").opts = ["--cap-queue", "--lower-queue"]

    assert changed_run(alias) == []


def test_another_default_and_another_thing_that_must_be_given_are_reported() -> None:
    def change(command: click.Command) -> None:
        option(command, "--policy").default = "LR"
        option(command, "--state-dir").required = True

    found = changed_run(change)
    assert '+ .yarnctl.commands.run.options.--policy.default = "LR"' in found
    assert '+ .yarnctl.commands.run.required = "--state-dir"' in found


def test_a_variable_of_the_environment_that_goes_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("yarnctl", "emulator", "docker"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    for path in (tmp_path / "yarnctl").rglob("*.py"):
        path.write_text(path.read_text(encoding="utf-8").replace("YARNCTL_CA_FILE", "YARNCTL_PEM"))
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    assert planted("environment", environment.variables()) == ["- .programs.YARNCTL_CA_FILE = true"]


def test_a_key_of_a_file_that_goes_is_reported() -> None:
    now = configuration.configuration()
    del now["cluster_file"][".read_timeout_ms"]
    assert planted("configuration", now) == ['- .cluster_file[".read_timeout_ms"] = "integer"']


# --- JSON ---------------------------------------------------------------------------------------


def changed_document(change: Callable[[dict[str, Any]], object]) -> list[str]:
    """Return what is said when the service's document is another one."""
    document = copy.deepcopy(make_app(busy).openapi())
    change(document)
    now = {**piece("interface").frozen(), **interface.operations(document)}
    return planted("interface", now)


def test_a_key_of_an_answer_that_goes_is_reported() -> None:
    found = changed_document(
        lambda document: document["components"]["schemas"]["DecisionSummary"]["properties"].pop("states")
    )
    assert found
    assert all(".items[].states" in line or ".states" in line for line in found)


def test_a_key_that_is_new_in_an_answer_is_allowed_and_one_that_must_be_sent_is_not() -> None:
    def more_in_answer(document: dict[str, Any]) -> None:
        document["components"]["schemas"]["Health"]["properties"]["text"] = {"type": "string"}

    def more_to_send(document: dict[str, Any]) -> None:
        parameters = document["paths"]["/v1/decisions"]["get"].setdefault("parameters", [])
        parameters.append({"name": "why", "in": "query", "required": True, "schema": {"type": "string"}})

    assert changed_document(more_in_answer) == []
    assert '+ .operations["GET /v1/decisions"].required = "query why"' in changed_document(more_to_send)


def test_a_type_that_changes_is_reported() -> None:
    optional = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    before = lines({"type": "object", "properties": {"deadline_ms": {"type": "integer"}}}, {})
    after = lines({"type": "object", "properties": {"deadline_ms": optional}}, {})
    assert differences(before, after, "kept") == [
        '- [".deadline_ms"] = "integer"',
        '+ [".deadline_ms"] = "integer|null"',
    ]


def test_a_key_of_a_document_that_goes_is_reported() -> None:
    now = copy.deepcopy(piece("documents").frozen())
    del now["yarn-emulator compare"][".schemes"]
    assert planted("documents", now) == ['- ["yarn-emulator compare"][".schemes"] = "object"']
    assert shape({"schemes": {"natjam": [1, None]}})[".schemes.natjam[]"] == "integer|null"


# --- journals, answers, recordings, rows --------------------------------------------------------


def test_one_byte_of_a_reason_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(releaser.REASONS, "next", "could have been taken, others came firsT")
    found = planted(f"journals/{JOURNAL}", journals.outcome(JOURNAL))
    assert found
    assert all(".text.out[" in line for line in found)
    assert any("others came firsT" in line for line in found)


def test_one_byte_of_a_golden_journal_is_reported() -> None:
    data = journals.raw(JOURNAL)
    spoilt = data.replace(b'"unmet":0', b'"unmet":1', 1)
    assert spoilt != data
    now = {**piece("journals").frozen(), JOURNAL: journals._facts(spoilt)}
    assert [line.partition(" = ")[0] for line in planted("journals", now)] == [
        f"- .{JOURNAL}.sha256",
        f"+ .{JOURNAL}.sha256",
    ]
    found = planted(f"journals/{JOURNAL}", journals.outcome_of(spoilt))
    assert "- .replay.status = 0" in found
    assert "+ .replay.status = 1" in found
    assert any(line.startswith("+ .rebuilt.refused = ") and "the chain breaks" in line for line in found)


def test_another_byte_of_an_answer_is_reported() -> None:
    now = copy.deepcopy(piece("answers").frozen())
    answer = now["busy"]["/v1/decisions"]["body"]["items"][0]
    answer["chosen"] += 1
    found = planted("answers", now)
    assert len(found) == 2
    assert found[0].startswith('- .busy["/v1/decisions"].body.items[0].chosen = ')


def test_the_commands_answer_as_the_service_does() -> None:
    """What is frozen of both is the same: the one is no copy that could age."""
    over_http, typed = piece("answers").frozen(), piece("command-answers").frozen()
    for words, address in (
        ("decisions", "/v1/decisions"),
        ("apps", "/v1/applications"),
        ("snapshot", "/v1/snapshot"),
    ):
        assert json.loads("\n".join(typed["busy"][words]["out"])) == over_http["busy"][address]["body"]
    assert typed["busy"]["decisions 4711"]["status"] == 1


def test_an_edited_recording_is_reported(tmp_path: Path) -> None:
    for pattern in recorded.RECORDED:
        for path in ROOT.glob(pattern):
            target = tmp_path / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    assert planted("recorded", recorded.sums(tmp_path)) == []
    one = tmp_path / "tests/contract/recorded/3.5.json"
    one.write_bytes(one.read_bytes().replace(b"RUNNING", b"RUNNINg", 1))
    found = planted("recorded", recorded.sums(tmp_path))
    assert [line.partition(" = ")[0] for line in found] == [
        '- ["tests/contract/recorded/3.5.json"]',
        '+ ["tests/contract/recorded/3.5.json"]',
    ]


def test_a_scenario_that_comes_out_otherwise_is_reported() -> None:
    now = copy.deepcopy(piece("scenarios/small").frozen())
    now["results"]["schemes"]["natjam"]["suspensions"] += 1
    found = planted("scenarios/small", now)
    assert len(found) == 2
    assert found[0].startswith("- .results.schemes.natjam.suspensions = ")


# --- writing ------------------------------------------------------------------------------------


def test_write_prints_what_changed_and_check_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = {"options": {"--rm": "url"}}
    one = Piece("one", lambda: value, packed=True)
    assert program.write([one], tmp_path) == 0
    assert "one: new" in capsys.readouterr().out
    first = one.path(tmp_path).read_bytes()
    assert program.check([one], tmp_path) == 0
    capsys.readouterr()

    other = one._replace(make=lambda: {"options": {"--manager": "url"}})
    assert program.check([other], tmp_path) == 1
    said = capsys.readouterr().out
    assert '- .options.--rm = "url"' in said
    assert "CHANGELOG.md" in said
    assert "python -m tests.frozen write one" in said

    assert program.write([other], tmp_path) == 0
    said = capsys.readouterr().out
    assert '- .options.--rm = "url"' in said
    assert '+ .options.--manager = "url"' in said
    assert "CHANGELOG.md" in said
    program.write([one], tmp_path)
    assert one.path(tmp_path).read_bytes() == first, "the same bytes whenever it is written"


def test_a_golden_journal_is_never_made_again(tmp_path: Path) -> None:
    path = record("tiny-default", folder=tmp_path)
    with pytest.raises(BadInput, match="never made again"):
        record("tiny-default", folder=tmp_path)
    assert gzip.decompress(path.read_bytes()).startswith(b'{"type":"header"')
    with pytest.raises(BadInput, match="has no recipe"):
        record("nothing", folder=tmp_path)


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["write", "nothing"]) == 2
    assert capsys.readouterr().err.startswith("error: nothing: is not frozen")
    assert DATA.is_dir()


def test_local_time_is_utc_only_meanwhile() -> None:
    import time

    before = time.tzname
    with utc():
        assert time.tzname == ("UTC", "UTC")
    assert time.tzname == before


def test_answers_do_not_depend_on_when_they_are_asked() -> None:
    with answers.served() as server:
        assert (
            server.ask("/healthz")
            == server.ask("/healthz")
            == {"status": 200, "body": {"age_ms": answers.LATE_MS, "loop_state": "running", "status": "ok"}}
        )
