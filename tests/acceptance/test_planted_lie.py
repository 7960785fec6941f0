"""The planted lie: a yarnctl that suspends nothing must not be covered by what was measured earlier.

Law: the lie is put in at run time (``sitecustomize`` on PYTHONPATH, in every process that a row starts), no
file is edited. Every record is taken for one of this very version, and every command but the short run is
believed; so only what a row plays itself can tell.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.rows import SHORT_RUN, load_rows
from tests.acceptance.running import Broken, Commands, Result, run_row

LIE = """
from yarnctl.attach.orders.performing import Performing
from yarnctl.deciding.model import Refused
from yarnctl.deciding.reasons.outcomes import ClientFault

Performing.perform = lambda self, action: Refused(ClientFault("broken"))
"""
RECORDED = [row for row in load_rows() if row.recorded is not None]


class Believing(Commands):
    """Runs commands as the rows do, under an environment of its own; tests are believed to pass."""

    def __init__(self, python_path: str) -> None:
        super().__init__()
        self.environment = {"PYTHONPATH": python_path} if python_path else {}

    def run(self, words: tuple[str, ...]) -> str | Broken:
        """Run a command, unless it is a test."""
        return "1 passed" if words[0] == "pytest" else super().run(words)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Believing]:
    """Return the commands of an honest yarnctl and of a lying one, with the short run of each played."""
    folder: Path = tmp_path_factory.mktemp("lie")
    (folder / "sitecustomize.py").write_text(LIE)
    commands = {"honest": Believing(""), "lying": Believing(str(folder))}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda each: each.output(SHORT_RUN), commands.values()))
    return commands


def judged(row, commands: Believing) -> Result:
    """Judge a row as if its record were of this version."""
    return run_row(row, commands, lambda *_: [])


def test_there_are_rows_with_records():
    assert len(RECORDED) >= 9


@pytest.mark.xdist_group("planted-lie")
@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row.id)
def test_no_recorded_row_holds_for_a_yarnctl_that_refuses_everything(row, played):
    result = judged(row, played["lying"])
    assert result.verdict == "missed", result.measured
    assert "suspended 0" in result.measured


@pytest.mark.xdist_group("planted-lie")
@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row.id)
def test_what_an_honest_yarnctl_plays_holds(row, played):
    """Else the test above would be content with a short run that never works."""
    own = [figure for figure in row.figure if figure.answer and row.commands[figure.answer - 1] == SHORT_RUN]
    only_played = type(row)(row.id, row.issue, row.title, row.target, command=row.command, figure=own)
    assert own
    assert judged(only_played, played["honest"]).verdict == "holds"
