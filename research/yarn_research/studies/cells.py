"""Cells: the single runs that figures are made of, each a frozen record with an identity.

Law: a figure is a plan. It asks for cells, is given their results in the order in which it asked,
may then ask for more, and ends with what it shows. It runs nothing itself, so what it shows does not
depend on the figure that ran its cells, when, on how many cores, or whether an earlier figure had run them.

Running cells: over all cores, each once, for all figures, and kept as soon as it is done.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from emulator.experiments.results.folder import (
    UNREADABLE,
    Folder,
    ResultsLayout,
    unwritable,
    write_whole,
)
from emulator.experiments.results.runs import NoJournal, RunDone
from emulator.experiments.results.store import ResultStore
from emulator.experiments.results.workers import spread
from emulator.virtual.run import Result, Setup, run_scheme
from emulator.virtual.schemes import Scheme
from yarnctl.command_line import ProgressBar
from yarnctl.traces.job import Job

CELLS = "cells.jsonl"
"""Every finished run: its identity, a digest, its result."""

PAPER = ResultsLayout(
    kind="yarn-research paper",
    files=("manifest.json", CELLS, "results.json", "alternatives.json", "run.json", "report.html"),
    folders=(),
    kept=(CELLS,),
)
STUDY = ResultsLayout(
    kind="yarn-research study",
    files=("manifest.json", CELLS, "results.json", "run.json"),
    folders=(),
    kept=(CELLS,),
)

Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)


class Cell(msgspec.Struct, frozen=True):
    """One run: the cluster with its rules and seed, the jobs, the scheme."""

    setup: Setup
    jobs: tuple[Job, ...]
    scheme: Scheme

    @property
    def tasks(self) -> int:
        """How many tasks there are to run: the longer runs have more."""
        return sum(len(job.map_ms) + len(job.reduce_ms) for job in self.jobs)


Plan = Generator[Sequence[Cell], Sequence[Result], Answer]
"""Asks for cells, is sent their results, returns an answer."""

Runner = Callable[[Mapping[str, Cell]], Mapping[str, Result]]
"""Runs cells; both sides are keyed by the cells' identity."""


def identity_of(cell: Cell) -> str:
    """Return sha256 over the canonical JSON of all that decides, as hexadecimal digits.

    Whether invariants are checked on the way decides nothing.
    """
    decides = msgspec.structs.replace(cell, setup=msgspec.structs.replace(cell.setup, validate=False))
    return hashlib.sha256(msgspec.json.encode(decides, order="sorted")).hexdigest()


def gather(groups: Mapping[Key, Sequence[Cell]]) -> Plan[dict[Key, list[Result]]]:
    """Ask for the cells of all groups at once; return the results group by group."""
    results = iter((yield [cell for group in groups.values() for cell in group]))
    return {key: [next(results) for _ in group] for key, group in groups.items()}


def carry_out(plans: Sequence[Plan[Answer]], run: Runner) -> list[Answer]:
    """Carry out plans side by side; return their answers in order.

    All that is asked for at one time is run together, equal cells once.
    """
    answers: dict[int, Answer] = {}
    asked: dict[int, list[str]] = {}
    results: Mapping[str, Result] = {}
    going = dict(enumerate(plans))
    while going:
        cells: dict[str, Cell] = {}
        for place, plan in list(going.items()):
            try:
                known = asked.get(place)
                wanted = next(plan) if known is None else plan.send([results[name] for name in known])
            except StopIteration as ended:
                answers[place] = ended.value
                del going[place]
                continue
            asked[place] = [identity_of(cell) for cell in wanted]
            cells.update(zip(asked[place], wanted, strict=True))
        results = run(cells) if cells else results
    return [answers[place] for place in range(len(plans))]


def run_cell(order: tuple[str, Cell]) -> RunDone:
    """Run one cell."""
    identity, cell = order
    begun = time.perf_counter()
    result = run_scheme(cell.setup, cell.jobs, cell.scheme, NoJournal())
    return RunDone(identity, result, time.perf_counter() - begun)


RunOneCell = Callable[[tuple[str, Cell]], RunDone]
"""Runs the cell of an identity."""


def _named(order: tuple[str, Cell]) -> str:
    _, cell = order
    return f"scheme {cell.scheme.name}, seed {cell.setup.seed}"


class CellStore(ResultStore):
    """The results of cells in a paper's folder: the file grows by one line a cell."""

    def __init__(self, folder: Folder) -> None:
        self._path = folder.path / CELLS
        super().__init__(_read(self._path))

    def keep(self, identity: str, result: Result) -> None:
        """Append a line."""
        try:
            with self._path.open("ab") as file:
                file.write(_line(identity, result))
        except OSError as error:
            raise unwritable(self._path, error) from None
        super().keep(identity, result)

    def settle(self) -> None:
        """Put the lines in the order of the identities: the same file, whichever cell was done first."""
        write_whole(self._path, _text(self.known))


class _KeptCell(msgspec.Struct, frozen=True):
    """A line of ``cells.jsonl``; the digest is over identity and result."""

    identity: str
    sha256: str
    result: msgspec.Raw


def _digest(identity: str, result: bytes) -> str:
    return hashlib.sha256(identity.encode() + b"\0" + result).hexdigest()


def _line(identity: str, result: Result) -> bytes:
    data = msgspec.json.encode(result)
    return msgspec.json.encode(_KeptCell(identity, _digest(identity, data), msgspec.Raw(data))) + b"\n"


def _text(cells: Mapping[str, Result]) -> bytes:
    return b"".join(_line(name, cells[name]) for name in sorted(cells))


def _read(path: Path) -> dict[str, Result]:
    """Return the whole cells of a file, and leave no others in it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unwritable(path, error) from None
    found = dict(_whole(data))
    if data != _text(found):
        write_whole(path, _text(found))
    return found


def _whole(data: bytes) -> Iterator[tuple[str, Result]]:
    for line in data.splitlines():
        try:
            kept = msgspec.json.decode(line, type=_KeptCell)
            if kept.sha256 == _digest(kept.identity, bytes(kept.result)):
                yield kept.identity, msgspec.json.decode(kept.result, type=Result)
        except UNREADABLE:
            continue


class CellRuns:
    """Runs cells for ``carry_out``; keeps every result, in a folder too if there is one.

    ``work`` runs one cell (a module's function; None: ``run_cell``). ``ran`` counts the cells run now,
    ``cells_s`` the seconds they took together.
    """

    def __init__(
        self,
        folder: Folder | None,
        workers: int | None,
        progress: ProgressBar,
        work: RunOneCell | None = None,
    ) -> None:
        self.store: ResultStore = CellStore(folder) if folder else ResultStore()
        self.workers = workers
        self.progress = progress
        self.work = work
        self.ran = 0
        self.cells_s = 0.0

    def __call__(self, cells: Mapping[str, Cell]) -> Mapping[str, Result]:
        """Run what is not known yet, the longest first; return the results of all. Raises RunFailed."""
        left = [item for item in cells.items() if item[0] not in self.store.known]
        left.sort(key=lambda item: (-item[1].tasks, item[0]))
        self.progress.expect(len(cells))
        self.progress.step(by=len(cells) - len(left))
        for done in spread(self.work or run_cell, left, self.workers, _named):
            self.store.keep(done.name, done.result)
            self.ran, self.cells_s = self.ran + 1, self.cells_s + done.wall_s
            self.progress.step()
        if left and isinstance(self.store, CellStore):
            self.store.settle()
        return self.store.known
