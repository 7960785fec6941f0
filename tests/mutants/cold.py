"""Cold: ``python -m tests.mutants.cold``: one mutant in a fresh process, imported instead of the file.

Law: the file on disk is never touched: the loader compiles the mutant's source where it would read the file,
and no bytecode is kept; of the task runner also the shipped file is another one. JSON on standard input
(``path``, ``source``, ``tests``, ``cpu_s``); exit status 0: all tests passed, 10: one failed, or they could
not even be collected.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from tests.mutants.shipped import build_mutant, is_shipped, point_to
from tests.mutants.steady import PYTEST, bound, steady
from yarnctl.task_runner.build import CannotBuild

FAILED = 10


class Loader(importlib.machinery.SourceFileLoader):
    """Loads the mutant."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        """Return the mutant's code."""
        return compile(self.source, self.path, "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the mutant where its file would be found."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Take over the one module."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin != self.path:
            return None
        spec.loader = Loader(fullname, self.path, self.source)
        spec.cached = None
        return spec


class Failures:
    """The plugin: whether anything failed, whatever pytest makes of it. ``shipped``: what tests start."""

    def __init__(self, shipped: Path | None) -> None:
        self.failed = False
        self.shipped = shipped

    def pytest_collection_finish(self) -> None:
        """Have the tests start the file with the mutant: all is imported now."""
        if self.shipped is not None:
            point_to(self.shipped)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed |= report.failed


def main() -> int:
    """Run the tests with the mutant."""
    wanted = json.load(sys.stdin)
    steady()
    if wanted["source"] is not None:
        sys.meta_path.insert(0, Finder(wanted["path"], wanted["source"]))
    bound(wanted["cpu_s"])
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        shipped = None
        if is_shipped(wanted["path"]) and wanted["source"] is not None:
            try:
                shipped = build_mutant(wanted["path"], wanted["source"], Path(folder))
            except CannotBuild:
                return FAILED
        failures = Failures(shipped)
        status = pytest.main([*PYTEST, *wanted["tests"]], plugins=[failures])
    return FAILED if failures.failed or status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
