"""Baseline: ``python -m tests.mutants.baseline TARGET TEST...``: which test executes which line.

Law: the tests must pass without any mutant. Lines that run at import have the context "" and belong to all.
The answer is one line of JSON on standard output: {"tests": {id: processor seconds}, "walls": {id: seconds},
"lines": {file: {line: [ids]}}}; of the task runner also what ran in runners that the tests have started.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

from tests.mutants.shipped import LinesWritten, is_shipped
from tests.mutants.steady import PYTEST, steady


class Recorder:
    """The plugin: names each test to the coverage that runs, and times it."""

    def __init__(self, cover: coverage.Coverage, folder: Path | None) -> None:
        self.cover = cover
        self.folder = folder  # for what runners write down, if that is asked for
        self.written: LinesWritten | None = None
        self.seconds: dict[str, float] = {}
        self.walls: dict[str, float] = {}

    def pytest_collection_finish(self) -> None:
        """Have the tests start runners that write down their lines: all is imported now."""
        if self.folder is not None:
            self.written = LinesWritten(self.folder)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record one test."""
        self.cover.switch_context(item.nodeid)
        began_s, wall_s = time.process_time(), time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - began_s, 4)
            self.walls[item.nodeid] = round(time.monotonic() - wall_s, 4)
            self.cover.switch_context("")
            if self.written is not None:
                self.written.collect(item.nodeid)


def main(target: str, tests: list[str]) -> int:
    """Run the tests under coverage; write what they execute."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    steady()
    root = Path.cwd()
    include = [str(root / target), str(root / target / "*")]
    cover = coverage.Coverage(data_file=None, config_file=False, include=include, messages=False)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        recorder = Recorder(cover, Path(folder) if is_shipped(root / target) else None)
        cover.start()
        status = pytest.main([*PYTEST, *tests], plugins=[recorder])
        cover.stop()
    if status != 0:
        print("the tests do not pass without a mutant", file=sys.stderr)
        return int(status)
    data = cover.get_data()
    lines = {
        Path(name).relative_to(root).as_posix(): {
            str(line): names for line, names in data.contexts_by_lineno(name).items()
        }
        for name in data.measured_files()
    }
    if recorder.written is not None:
        for name, by_line in recorder.written.by_module().items():
            known = lines.setdefault(Path(name).relative_to(root).as_posix(), {})
            for line, names in by_line.items():
                known[line] = sorted({*known.get(line, ()), *names})
    json.dump({"tests": recorder.seconds, "walls": recorder.walls, "lines": lines}, out)
    out.write("\n")
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
