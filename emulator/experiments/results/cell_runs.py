"""Running cells: over all cores, each once, whoever asks for it, and kept as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Mapping

from emulator.experiments.results.cells import Cell
from emulator.experiments.results.folder import Folder
from emulator.experiments.results.runs import Done, NoJournal
from emulator.experiments.results.store import CellStore, Store
from emulator.experiments.results.workers import spread
from emulator.virtual.run import Result, run_scheme
from yarnctl.command_line import ProgressBar


def run_cell(order: tuple[str, Cell]) -> Done:
    """Run one cell."""
    identity, cell = order
    begun = time.perf_counter()
    result = run_scheme(cell.setup, cell.jobs, cell.scheme, NoJournal())
    return Done(identity, result, time.perf_counter() - begun)


def _named(order: tuple[str, Cell]) -> str:
    _, cell = order
    return f"scheme {cell.scheme.name}, seed {cell.setup.seed}"


class CellRuns:
    """Runs cells for ``carry_out``; remembers every result, in a folder too if there is one.

    ``ran`` counts the cells run now, ``cells_s`` the seconds they took together.
    """

    def __init__(self, folder: Folder | None, workers: int | None, progress: ProgressBar) -> None:
        self.store: Store = CellStore(folder) if folder else Store()
        self.workers = workers
        self.progress = progress
        self.ran = 0
        self.cells_s = 0.0

    def __call__(self, cells: Mapping[str, Cell]) -> Mapping[str, Result]:
        """Run what is not known yet, the longest first; return the results of all. Raises RunFailed."""
        left = [item for item in cells.items() if item[0] not in self.store.known]
        left.sort(key=lambda item: (-item[1].tasks, item[0]))
        self.progress.expect(len(cells))
        self.progress.step(by=len(cells) - len(left))
        for done in spread(run_cell, left, self.workers, _named):
            self.store.keep(done.name, done.result)
            self.ran, self.cells_s = self.ran + 1, self.cells_s + done.wall_s
            self.progress.step()
        if left and isinstance(self.store, CellStore):
            self.store.settle()
        return self.store.known
