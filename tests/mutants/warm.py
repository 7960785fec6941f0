"""Warm: ``python -m tests.mutants.warm TEST...``: a process that has imported everything, and forks.

Law: the mutant lives in the forked child only. There the code of functions is replaced in place, in every
function object that was made of it; what runs at import cannot be replaced so, and is answered with "cold".
Of the task runner the child also builds the file that tests start. For each mutant a line of JSON comes in
(``path``, ``source``, ``tests``, ``cpu_s``, ``walls_s``: how long each test may take, if that is bounded),
and one goes out (``outcome``, ``by``).
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import tempfile
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TextIO

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.shipped import MARK, build_mutant, end_marked, is_shipped, point_to
from tests.mutants.steady import PYTEST, bound, steady
from yarnctl.task_runner.build import CannotBuild

WALL_S = 600
"""A child that waits for something that never comes is ended: far off, for the machine may be busy."""


class Cold(Exception):
    """The mutant changes what has run already."""


def codes(code: CodeType, name: str = "") -> dict[tuple[str, int], CodeType]:
    """Return the code of every function in ``code``, by qualified name and first line."""
    found = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_qualname, each.co_firstlineno] = each
            found.update(codes(each))
    return found


def _runs_at_import(code: CodeType) -> list[tuple[object, ...]]:
    """Return all of a module's (or class's) code that is not inside a function."""
    plain = tuple(each for each in code.co_consts if not isinstance(each, CodeType))
    parts: list[tuple[object, ...]] = [(code.co_code, repr(plain), code.co_names, code.co_varnames)]
    for each in code.co_consts:
        if isinstance(each, CodeType) and not each.co_flags & 0x2:  # a class body: no CO_NEWLOCALS
            parts += _runs_at_import(each)
    return parts


def replace(path: str, source: str) -> int:
    """Replace the code of the functions of a file that differ; return how many; raises Cold."""
    before, now = (
        compile(text, path, "exec", dont_inherit=True) for text in (Path(path).read_text(), source)
    )
    if _runs_at_import(before) != _runs_at_import(now):
        raise Cold
    old, new = codes(before), codes(now)
    if old.keys() != new.keys():
        raise Cold
    changed = {key for key in old if old[key] != new[key]}
    replaced = 0
    gc.unfreeze()  # what was imported before a gc.freeze is not listed
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == path:
            key = (each.__code__.co_qualname, each.__code__.co_firstlineno)
            if key in changed:
                if len(each.__code__.co_freevars) != len(new[key].co_freevars):
                    raise Cold
                each.__code__ = new[key]
                replaced += 1
    if not replaced:
        raise Cold
    return replaced


class Server:
    """The plugin: instead of running the tests it waits for mutants."""

    def __init__(self, asked: TextIO, answers: TextIO) -> None:
        self.asked, self.answers = asked, answers

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve until there is no more to read."""
        items = {item.nodeid: item for item in session.items}
        self._answer({"outcome": "ready", "by": ""})
        for line in self.asked:
            self._answer(self._judged(json.loads(line), items))
        return True

    def _answer(self, told: dict[str, str]) -> None:
        self.answers.write(json.dumps(told) + "\n")
        self.answers.flush()

    def _judged(self, wanted: dict[str, Any], items: dict[str, pytest.Item]) -> dict[str, str]:
        """Fork, let the child run the tests, and say what became of it."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
                told = _in_child(wanted, items, Path(folder))
            os.write(writing, json.dumps(told).encode())
            os._exit(0)
        os.close(writing)
        raw = b""
        while select.select([reading], [], [], WALL_S)[0]:
            part = os.read(reading, 65536)
            if not part:
                break
            raw += part
        else:
            os.kill(child, signal.SIGKILL)
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if is_shipped(wanted["path"]):
            end_marked(str(child))
        if raw and not status:
            return dict(json.loads(raw))
        return {
            "outcome": "killed",
            "by": "time or memory" if os.WIFSIGNALED(status) else "the process ended",
        }


def _in_child(wanted: dict[str, Any], items: dict[str, pytest.Item], folder: Path) -> dict[str, str]:
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        if wanted["source"] is not None:
            replace(wanted["path"], wanted["source"])
            if is_shipped(wanted["path"]):
                point_to(build_mutant(wanted["path"], wanted["source"], folder))
    except Cold:
        return {"outcome": "cold", "by": ""}
    except CannotBuild as why:
        return {"outcome": "killed", "by": f"it cannot be built: {why}"}
    bound(wanted["cpu_s"])
    os.environ[MARK] = str(os.getpid())
    chosen = [items[name] for name in wanted["tests"]]
    for item, following in zip(chosen, [*chosen[1:], None], strict=True):
        signal.setitimer(signal.ITIMER_REAL, wanted["walls_s"].get(item.nodeid, 0))  # 0: no bound
        for report in runtestprotocol(item, log=False, nextitem=following):
            if report.failed:
                return {"outcome": "killed", "by": item.nodeid}
    return {"outcome": "survived", "by": ""}


def main(tests: list[str]) -> int:
    """Collect the tests and serve."""
    answers, asked = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0))
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    steady()
    return int(pytest.main([*PYTEST, *tests], plugins=[Server(asked, answers)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
