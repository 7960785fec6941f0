"""Trying: each mutant against the tests that execute its line, quickest first.

Law: in a child of a process that has imported everything, with the tests that execute the line. What runs at
import cannot be changed there: such a mutant is tried in a fresh process, with all tests of the files that
execute the line. Sources are never written.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

from tests.mutants.cold import FAILED
from tests.mutants.population import Mutant
from tests.mutants.results import Result
from tests.mutants.shipped import MARK, end_marked, is_shipped

TIMES, LEAST_CPU_S = 10, 20
"""A mutant may use so many times the processor time of what it replaces, and this at least."""
LEAST_WALL_S = 30
"""Of the task runner a test may take TIMES as long as it did, and this besides: one may wait for ever."""
WALL_S = 3600


class Broken(Exception):
    """The tests do not pass without a mutant, or their process has ended."""


class Trials:
    """All that is needed to try mutants: which test executes what, and warm processes."""

    def __init__(self, root: Path, target: str, tests: Sequence[str], workers: int, kept: Path) -> None:
        self.root, self.tests, self.workers = root, list(tests), workers
        if not kept.exists():
            kept.write_text(_baseline(root, target, tests))
        told = json.loads(kept.read_text())
        self.seconds: dict[str, float] = told["tests"]
        self.walls: dict[str, float] = told.get("walls", {}) if is_shipped(root / target) else {}
        self.lines: dict[str, dict[str, list[str]]] = told["lines"]
        self._idle: queue.SimpleQueue[Warm] = queue.SimpleQueue()

    def run(self, mutants: Sequence[Mutant]) -> Iterator[Result]:
        """Yield results as they come."""
        warm = [Warm(self.root, self.tests) for _ in range(min(self.workers, len(mutants)))]
        for each in warm:
            self._idle.put(each)
        try:
            with ThreadPoolExecutor(len(warm)) as pool:
                for done in as_completed([pool.submit(self._try, mutant) for mutant in mutants]):
                    yield done.result()
        finally:
            for each in warm:
                each.close()

    def _try(self, mutant: Mutant) -> Result:
        source = mutant.make()
        assert source is not None
        began_s = time.monotonic()
        change = _change((self.root / mutant.path).read_text(), source)
        outcome, by = self._judge(mutant, source)
        return Result(mutant.identity, outcome, by, change, round(time.monotonic() - began_s, 1))

    def _judge(self, mutant: Mutant, source: str) -> tuple[str, str]:
        chosen, at_import = self.tests_of(mutant.path, mutant.line)
        if not chosen and not at_import:
            return "survived", "no test executes it"
        wanted = {
            "path": str(self.root / mutant.path),
            "source": source,
            "tests": chosen,
            "cpu_s": self._cpu_s(chosen),
            "walls_s": {
                name: TIMES * self.walls[name] + LEAST_WALL_S for name in chosen if name in self.walls
            },
        }
        if chosen and not at_import:
            warm = self._idle.get()
            try:
                told = warm.ask(wanted)
            finally:
                self._idle.put(warm)
            if told["outcome"] == "killed":
                return "killed", told["by"]
            if told["outcome"] == "survived":
                return "survived", f"{len(chosen)} tests execute it"
        return self._cold(wanted, chosen)

    def _cold(self, wanted: dict[str, Any], chosen: Sequence[str]) -> tuple[str, str]:
        """Try in a fresh process: the quickest files first, one process for all.

        What runs at import may be noticed by any test, not only by the one that happened to import it.
        """
        files = dict.fromkeys([*(name.split("::")[0] for name in chosen), *self.tests])
        wanted = wanted | {"tests": list(files), "cpu_s": self._cpu_s(list(self.seconds))}
        mark = f"cold-{os.getpid()}-{threading.get_ident()}"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.mutants.cold"],
                cwd=self.root,
                env={**_environment(), MARK: mark},
                input=json.dumps(wanted),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=self._wall_s(list(files)),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "killed", "time or memory"
        finally:
            end_marked(mark)
        if done.returncode == 0:
            return "survived", f"{len(chosen)} tests execute it"
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
        if done.returncode == FAILED:
            return "killed", failed[0].split()[1] if failed else "the tests cannot be collected"
        return "killed", "time or memory" if done.returncode < 0 else "the process ended"

    def tests_of(self, path: str, line: int) -> tuple[list[str], bool]:
        """Return the tests that execute a line's statement, quickest first, and whether it runs at import."""
        lines = self.lines.get(path, {})
        first, last = _statement(self.root / path, line)
        names = {name for each in range(first, last + 1) for name in lines.get(str(each), [])}
        chosen = [name for name in names if name in self.seconds]
        return sorted(chosen, key=lambda name: (self.seconds[name], name)), "" in names

    def _wall_s(self, places: Sequence[str]) -> float:
        """Return how long all tests of some files or folders may take."""
        walls_s = [
            wall_s
            for name, wall_s in self.walls.items()
            if any(Path(name.split("::")[0]).is_relative_to(place.split("::")[0]) for place in places)
        ]
        return TIMES * sum(walls_s) + LEAST_WALL_S if walls_s else WALL_S

    def _cpu_s(self, tests: Sequence[str]) -> int:
        return int(TIMES * sum(self.seconds[name] for name in tests)) + LEAST_CPU_S


def _baseline(root: Path, target: str, tests: Sequence[str]) -> str:
    """Return which test executes which line, and its time: minutes, for everything is traced."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutants.baseline", target, *tests],
        cwd=root,
        env=_environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",  # what tests print besides
        check=False,
    )
    if done.returncode:
        raise Broken(f"the tests do not pass without a mutant: {done.stderr[-2000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Return the environment in which this package is found, whatever folder is tried."""
    here = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}


@cache
def _statement(path: Path, line: int) -> tuple[int, int]:
    """Return the lines of the innermost statement that a line belongs to, without those of its body."""
    found = (line, line)
    for node in ast.walk(ast.parse(path.read_text())):  # what is inside comes later
        if isinstance(node, ast.stmt | ast.ExceptHandler) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", [])
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found = (node.lineno, max(node.lineno, last))
    return found


class Warm:
    """A process that has imported everything; one mutant at a time."""

    def __init__(self, root: Path, tests: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.warm", *tests],
            cwd=root,
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._hear()

    def ask(self, wanted: dict[str, Any]) -> dict[str, str]:
        """Send a mutant, return what became of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Broken("the process that runs the tests has ended")
        return dict(json.loads(line))

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _change(before: str, now: str) -> str:
    """Return the lines that differ, as - and + lines in one."""
    rows = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
    kept = [row for row in rows if row[:1] in "+-" and row[:3] not in ("+++", "---") and row[1:].strip()]
    return " | ".join(" ".join(row.split()) for row in kept)
