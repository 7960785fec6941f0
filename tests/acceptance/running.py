"""Running the rows: each command once, its output kept, each figure judged.

Law: a command that several rows share runs once. A row is ``holds``, ``missed`` (it ran, the
target is not reached), ``stale`` (its recorded figures would hold, but are of another version, or
of an unknown one) or ``broken`` (a command failed, or a figure is not there). Only a broken or
absent row makes the whole fail; a missed target and a stale record are printed, not hidden.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from tests.acceptance.figures import NotFound, holds, text_of, value_of
from tests.acceptance.records import Changed, Record, changed_since
from tests.acceptance.rows import ROOT, Figure, Row, paths_of

LIMIT_S = 5400.0
"""After this long a command counts as one that does not run."""

CLOSING_LINE = re.compile(r"=+ (?P<counts>.*\d+ (?:passed|failed|error).*?) in [\d.:smh() ]+=+")

Verdict = Literal["holds", "missed", "stale", "broken", "planned"]
VERDICTS = get_args(Verdict)


class Broken(Exception):
    """A command does not run, or does not answer as it should."""


class Result(msgspec.Struct, frozen=True):
    """What a row showed."""

    row: Row
    verdict: Verdict
    measured: str

    def record(self) -> dict[str, object]:
        """Return the row as ``acceptance.json`` holds it; ``holds`` is null if it did not run."""
        words = [list(words) for words in self.row.commands]
        return {
            "id": self.row.id,
            "title": self.row.title,
            "target": self.row.target,
            "measured": self.measured,
            "holds": {"holds": True, "missed": False, "stale": False}.get(self.verdict),
            "verdict": self.verdict,
            "command": words[0] if len(words) == 1 else words,
        }


class Commands:
    """Runs commands at the project's root, each once, and keeps what they print."""

    def __init__(self, root: Path = ROOT, limit_s: float = LIMIT_S) -> None:
        self.root = root
        self.limit_s = limit_s
        self.environment: dict[str, str] = {}
        self.outputs: dict[tuple[str, ...], str | Broken] = {}

    def output(self, words: tuple[str, ...]) -> str:
        """Return what a command prints; raise ``Broken`` if it fails."""
        if words not in self.outputs:
            self.outputs[words] = self.run(words)
        answer = self.outputs[words]
        if isinstance(answer, Broken):
            raise answer
        return answer

    def run(self, words: tuple[str, ...]) -> str | Broken:
        """Run a command now."""
        shown = " ".join(words)
        try:
            done = subprocess.run(
                [program(words[0]), *words[1:]],
                cwd=self.root,
                # Under CI a test fails where the machine lacks what it needs: a skipped one shows nothing.
                env={**os.environ, **self.environment, "COLUMNS": "120", "NO_COLOR": "1", "CI": "true"},
                capture_output=True,
                text=True,
                timeout=self.limit_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Broken(f"{shown}: {type(error).__name__}")
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            return Broken(f"{shown}: exit status {done.returncode}: {last.strip('= ')}")
        return done.stdout


def program(name: str) -> str:
    """Return a program of this environment, else one on the path."""
    if name == "python":
        return sys.executable
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


def run_row(row: Row, commands: Commands, changed: Changed = changed_since) -> Result:
    """Run one row and judge it. ``changed`` says which files differ from a record's commit."""
    if row.state == "planned":
        return Result(row, "planned", "planned")
    try:
        outputs = [commands.output(words) for words in row.commands]
        values = [
            (figure, value_of(figure, documents(figure, outputs, commands.root))) for figure in row.figure
        ]
        record = record_of(row, outputs, commands.root, changed)
    except (Broken, NotFound) as error:
        return Result(row, "broken", f"does not run: {error}")
    measured = [text_of(figure, value) for figure, value in values] or [summary(text) for text in outputs]
    kept = all(holds(figure, value) for figure, value in values)
    verdict: Verdict = "missed" if not kept else "stale" if record and record.stale else "holds"
    return Result(row, verdict, ", ".join(([record.said] if record else []) + measured))


def record_of(row: Row, outputs: Sequence[str], root: Path, changed: Changed) -> Record | None:
    """Return what is to be said of a row's record; None where all of its figures are measured now."""
    if row.recorded is None:
        return None
    where = Figure("record", "commit", of=row.recorded.of, answer=0 if row.recorded.of else 1)
    (document,) = documents(where, outputs, root)
    if not isinstance(document, dict):
        raise Broken(f"{row.recorded.of or 'output'} says nothing of a commit")
    name = str(document.get("campaign") or Path(row.recorded.of).name)
    return Record.of(name, document.get("commit"), changed, paths_of(row.recorded.depends), root)


def documents(figure: Figure, outputs: Sequence[str], root: Path) -> list[object]:
    """Return the JSON a figure is read from: a file, or what the commands printed."""
    try:
        if figure.of:
            return [msgspec.json.decode((root / figure.of).read_bytes())]
        if figure.answer:
            return [msgspec.json.decode(outputs[figure.answer - 1])]
        return [msgspec.json.decode(text) for text in outputs if text.lstrip().startswith(("{", "["))]
    except (OSError, IndexError, msgspec.DecodeError) as error:
        raise Broken(f"{figure.of or 'output'} is no JSON: {error}") from error


def summary(text: str) -> str:
    """Return what a command without figures shows: pytest's counts (without the time), or success."""
    closing = CLOSING_LINE.findall(text)
    return str(closing[-1]).strip() if closing else "exit status 0"
