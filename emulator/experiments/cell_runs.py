"""Running cells: over all cores, each kept as soon as it is done.

A paper's folder holds::

    manifest.json      which paper, and a digest of the code
    cells.jsonl        every finished run: its identity, a digest, its result
    results.json       the paper's figures beside ours (alternatives.json: what it leaves open)
    run.json           wall-clock, versions, command line: everything that may differ
    report.html        the same, drawn

Law: a cell is run once. ``cells.jsonl`` grows by one line a cell; a line that is torn or damaged is
dropped and its cell run again. At the end the lines stand in the order of the identities, so that
finished folders are the same whoever was faster.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from emulator.experiments.cells import Cell
from emulator.experiments.folder import Folder, Layout, unwritable, write_whole
from emulator.experiments.runs import NoJournal
from emulator.experiments.workers import RunFailed, spread
from emulator.virtual_host import Result, run_scheme
from yarnctl.command_line import Progress
from yarnctl.errors import YarnctlError

if TYPE_CHECKING:
    from pathlib import Path

CELLS = "cells.jsonl"
PAPER = Layout(
    kind="yarn-emulator paper",
    files=("manifest.json", CELLS, "results.json", "alternatives.json", "run.json", "report.html"),
    folders=(),
    kept=(CELLS,),
)


class KeptCell(msgspec.Struct, frozen=True):
    """A line of ``cells.jsonl``; the digest is over identity and result."""

    identity: str
    sha256: str
    result: msgspec.Raw


class Done(NamedTuple):
    """What came of one cell: a result, or the error it ended with; s it took."""

    identity: str
    result: Result | None
    wall_s: float
    failure: tuple[str, int] | None = None


def run_cell(order: tuple[str, Cell]) -> Done:
    """Run one cell; errors come back as words."""
    identity, cell = order
    begun = time.perf_counter()
    try:
        result = run_scheme(cell.setup, cell.jobs, cell.scheme, NoJournal())
    except YarnctlError as error:
        said = f"scheme {cell.scheme.name}, seed {cell.setup.seed}: {error}"
        return Done(identity, None, 0.0, (said, error.exit_status))
    return Done(identity, result, time.perf_counter() - begun)


class CellRuns:
    """Runs cells for ``carry_out``; remembers every result, in a folder too if there is one.

    ``ran`` counts the cells run now, ``cells_s`` the seconds they took together.
    """

    def __init__(self, folder: Folder | None, workers: int | None, progress: Progress) -> None:
        self.folder = folder
        self.workers = workers
        self.progress = progress
        self.ran = 0
        self.cells_s = 0.0
        self.known: dict[str, Result] = {}
        if folder is not None:
            self.known = _read(folder.path / CELLS)

    def __call__(self, cells: Mapping[str, Cell]) -> Mapping[str, Result]:
        """Run what is not known yet, the longest first; return the results of all. Raises RunFailed."""
        left = [item for item in cells.items() if item[0] not in self.known]
        left.sort(key=lambda item: (-item[1].tasks, item[0]))
        self.progress.expect(len(cells))
        self.progress.step(by=len(cells) - len(left))
        for done in spread(run_cell, left, self.workers):
            self._take(done)
        if self.folder is not None and left:
            _write(self.folder.path / CELLS, self.known)
        return self.known

    def _take(self, done: Done) -> None:
        """Keep a result, on disk first."""
        if done.result is None:
            assert done.failure is not None
            raise RunFailed(*done.failure)
        if self.folder is not None:
            _append(self.folder.path / CELLS, _line(done.identity, done.result))
        self.known[done.identity] = done.result
        self.ran, self.cells_s = self.ran + 1, self.cells_s + done.wall_s
        self.progress.step()


# --- the file --------------------------------------------------------------------------------


def _digest(identity: str, result: bytes) -> str:
    return hashlib.sha256(identity.encode() + b"\0" + result).hexdigest()


def _line(identity: str, result: Result) -> bytes:
    data = msgspec.json.encode(result)
    return msgspec.json.encode(KeptCell(identity, _digest(identity, data), msgspec.Raw(data))) + b"\n"


def _read(path: Path) -> dict[str, Result]:
    """Return the whole cells of a file, and leave no others in it; in their order."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unwritable(path, error) from None
    found = dict(_whole(data))
    if data != _text(found):
        _write(path, found)
    return found


def _whole(data: bytes) -> Iterator[tuple[str, Result]]:
    for line in data.splitlines():
        try:
            kept = msgspec.json.decode(line, type=KeptCell)
            if kept.sha256 == _digest(kept.identity, bytes(kept.result)):
                yield kept.identity, msgspec.json.decode(kept.result, type=Result)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line)
    except OSError as error:
        raise unwritable(path, error) from None


def _write(path: Path, cells: Mapping[str, Result]) -> None:
    write_whole(path, _text(cells))


def _text(cells: Mapping[str, Result]) -> bytes:
    return b"".join(_line(name, cells[name]) for name in sorted(cells))
