"""Baseline: ``python -m tests.mutants.baseline TARGET TEST...``: which test executes which line.

Law: the tests must pass without any mutant. Lines that run at import have the context "" and belong to all.
The answer is one line of JSON on standard output: {"tests": {id: seconds}, "lines": {file: {line: [ids]}}}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

from tests.mutants.steady import PYTEST, steady


class Recorder:
    """The plugin: names each test to the coverage that runs, and times it."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self.cover = cover
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record one test."""
        self.cover.switch_context(item.nodeid)
        began_s = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - began_s, 4)
            self.cover.switch_context("")


def main(target: str, tests: list[str]) -> int:
    """Run the tests under coverage; write what they execute."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    steady()
    root = Path.cwd()
    include = [str(root / target), str(root / target / "*")]
    cover = coverage.Coverage(data_file=None, config_file=False, include=include, messages=False)
    recorder = Recorder(cover)
    cover.start()
    status = pytest.main([*PYTEST, *tests], plugins=[recorder])
    cover.stop()
    if status != 0:
        print("the tests do not pass without a mutant", file=sys.stderr)
        return int(status)
    data = cover.get_data()
    lines = {
        Path(name).relative_to(root).as_posix(): data.contexts_by_lineno(name)
        for name in data.measured_files()
    }
    json.dump({"tests": recorder.seconds, "lines": lines}, out)
    out.write("\n")
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
