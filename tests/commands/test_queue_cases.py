"""Queues by name on recorded clusters: ``yarnctl check`` and ``yarnctl run`` on cases from the field.

The cases are looked for at ``../shared/cases`` from the project's root: their answers, served as recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of

CASES = Path(__file__).parents[3] / "shared" / "cases"
TICKS = "6"


@contextmanager
def served(case: str) -> Iterator[str]:
    """Serve a recorded case; yield the address of its ResourceManager and NameNode."""
    [file] = CASES.glob(f"{case}-*.json")
    words = [sys.executable, str(CASES / "answer.py"), str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("yarnctl.cli.run"), "OBSERVATION_AGE_MS", 10)


def queues(preempting: str, preemptable: str) -> list[str]:
    return ["--preempting", preempting, "--preemptable", preemptable]


class Daemon:
    """What ``yarnctl run`` left: its exit status, standard error and journal."""

    def __init__(self, url: str, state: Path, capfd: pytest.CaptureFixture[str], *words: str) -> None:
        given = ["--rm", url, "--name-node", url, "--state-dir", str(state), "--ticks", TICKS]
        self.status = exit_status_of(PROGRAM, ["run", *given, "--listen", "off", *words])
        self.err = capfd.readouterr().err
        journal = state / "journal.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        self.records: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.records if kind in (one.get("type"), one.get("kind"))]


def checked(url: str, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status of ``yarnctl check`` and its findings by id."""
    given = ["check", "--rm", url, "--name-node", url, "-o", "json", *words]
    status = exit_status_of(PROGRAM, given)
    return status, {one["id"]: one for one in json.loads(capfd.readouterr().out)["findings"]}


def test_an_ambiguous_name_is_refused_with_the_paths(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with served("c02") as url:
        words = queues("root.prod.default", "default")
        status, findings = checked(url, capfd, *words)
        daemon = Daemon(url, tmp_path, capfd, *words)
    assert (status, findings["queues"]["severity"]) == (1, "fail")
    for said in (findings["queues"]["seen"], daemon.err):
        assert "default" in said
        assert "root.prod.default, root.dev.default" in said
    assert daemon.status == 2
    assert not daemon.records


@pytest.mark.parametrize("preemptable", ["prod.default", "root.prod.default"])
def test_a_queue_that_is_preempting_and_preemptable_is_refused_in_every_spelling(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], preemptable: str
) -> None:
    with served("c02") as url:
        words = ["--preempting", "root.prod.default", "--preempting", "root.dev.default"]
        words += ["--preemptable", preemptable]
        status = exit_status_of(PROGRAM, ["check", "--rm", url, "--name-node", url, *words])
        capfd.readouterr()
        daemon = Daemon(url, tmp_path, capfd, *words)
    assert status in (1, 2)
    assert daemon.status == 2
    assert "root.prod.default" in daemon.err


def test_queues_that_are_not_there_are_refused_with_those_that_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with served("c16") as url:
        status, findings = checked(url, capfd)
        daemon = Daemon(url, tmp_path, capfd)
    assert status == 1
    for said in (findings["queues"]["seen"], daemon.err):
        assert "no leaf queue production, research; leaf queues (1): root.default" in said
    assert daemon.status == 2
    assert not daemon.records


def test_a_gate_alone_needs_no_preempting_and_no_preemptable_queue(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with served("c16") as url:
        gate = ("--admission", "pythia", "--admission-queue")
        daemon = Daemon(url, tmp_path, capfd, *gate, "default", "--ticks", "40")
        wrong = Daemon(url, tmp_path, capfd, *gate, "sales")
    assert daemon.status == 0
    assert "preemption disabled: no leaf queue production, research" in caplog.text
    assert [pool["queues"] for one in daemon.of("gate-set") for pool in one["pools"]] == [["root.default"]]
    assert wrong.status == 2
    assert "--admission-queue: no leaf queue sales; leaf queues (1): root.default" in wrong.err
