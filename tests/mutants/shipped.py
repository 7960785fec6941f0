"""Shipped: mutants of the task runner, which tests start as the one file that is built from its package.

Law: a mutant is tried in both forms: its functions are replaced in the imported package, and the file is
built with it in a folder of its own, to which every module that names the shipped file is pointed. Neither
the package nor the shipped file is written. A line belongs to the tests in whose runners it ran as well: the
baseline starts a copy that writes down its lines. What a trial leaves running is ended, by its id.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from yarnctl.task_runner import build
from yarnctl.task_runner.build import BUILT, MODULES, SOURCE, CannotBuild, built, taken_apart
from yarnctl.task_runner.shipped import EMPTY_DIGEST, signed

MARK = "YARNCTL_TRIAL"
LINES = "YARNCTL_LINES"
SIGNED = re.compile(f"{EMPTY_DIGEST}[0-9a-f]+")
MAIN = '\n\nif __name__ == "__main__":\n'
TRACER = """

import dis

def _write_lines_down() -> None:
    log = os.open(os.environ["YARNCTL_LINES"], os.O_WRONLY | os.O_APPEND)
    here, rest = sys._getframe().f_code.co_filename, {}

    def local(frame, event, _):
        lines = rest[frame.f_code]
        if frame.f_lineno in lines:
            lines.discard(frame.f_lineno)
            os.write(log, b"%d\\n" % frame.f_lineno)
        return local if lines else None

    def called(frame, event, _):
        code = frame.f_code
        if code.co_filename != here:
            return None
        if code not in rest:
            rest[code] = {line for _, line in dis.findlinestarts(code)}
        return local(frame, event, None)

    sys.settrace(called)
    threading.settrace(called)
"""


def is_shipped(path: str | Path) -> bool:
    """Say whether a file is a module of the task runner's package."""
    return Path(path).resolve().is_relative_to(SOURCE)


def build_mutant(path: str, source: str, folder: Path) -> Path:
    """Return the one file, built below ``folder`` with another source of one module; or raise CannotBuild."""
    package = folder / SOURCE.name
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / Path(path).resolve().relative_to(SOURCE)).write_text(source, encoding="utf-8")
    return _write(folder, built(package))


def build_traced(folder: Path) -> Path:
    """Return the one file that writes down its lines, with the numbers that they have in the shipped one."""
    text = built()
    if text.count(MAIN) != 1:
        raise CannotBuild(f"{MAIN!r} stands in it {text.count(MAIN)} times")
    package = folder / SOURCE.name  # the digest is checked against the sources beside the file
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    text = text.replace(MAIN, f"{TRACER}{MAIN}    _write_lines_down()\n")
    return _write(folder, signed(SIGNED.sub(EMPTY_DIGEST, text, count=1), package))


def _write(folder: Path, text: str) -> Path:
    file = folder / BUILT.name
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)
    return file


def point_to(file: Path) -> None:
    """Have every imported module that names the shipped file, or what it was compiled to, use another one."""
    builders = (__name__, build.__name__)  # they go on from what is shipped
    for module in [module for name, module in sys.modules.items() if name not in builders]:
        for name, value in list(vars(module).items()):
            if isinstance(value, Path) and value == BUILT:
                setattr(module, name, file)
    running = sys.modules.get("tests.runner.running")
    if running is not None:
        running.compiled.cache_clear()


def sources_of_lines() -> dict[int, tuple[Path, int]]:
    """Return, for each line of the shipped file that a module gave it, that module and the line there."""
    text, found = built(), {}
    for name in MODULES:
        path = SOURCE / f"{name}.py"
        source = path.read_text(encoding="utf-8")
        body = taken_apart(name, source).body
        shipped = text[: text.index(body)].count("\n") + 1
        first = source[: source.index(body)].count("\n") + 1
        for number in range(body.count("\n")):
            found[shipped + number] = path, first + number
    return found


class LinesWritten:
    """The lines that runners write down, by test: ``{module: {line: [test]}}``."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "lines"
        self._by_test: dict[str, set[int]] = defaultdict(set)
        self._log.touch()
        os.environ[LINES] = str(self._log)
        point_to(build_traced(folder))

    def collect(self, test: str) -> None:
        """Note what was written since the last call."""
        self._by_test[test].update(map(int, self._log.read_text().split()))
        self._log.write_text("")

    def by_module(self) -> dict[str, dict[str, list[str]]]:
        """Return all of it, lines as they are in the package."""
        sources = sources_of_lines()
        found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for test, lines in self._by_test.items():
            for path, line in filter(None, map(sources.get, lines)):
                found[str(path)][str(line)].append(test)
        return found


def marked(mark: str) -> Iterator[int]:
    """Yield the ids of the processes with this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except OSError:  # it has ended, or is somebody else's
            continue


def end_marked(mark: str) -> None:
    """End what a trial has left running."""
    for pid in list(marked(mark)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
