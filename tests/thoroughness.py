"""How much of the tests is run: all of them, or of what repeats itself only the first.

Law: without ``--thorough`` fewer examples are drawn and tests marked ``thorough`` are left out, and the last
lines say how many (a function with parameters counts once). What is asked for by its own id, or by
``-m thorough``, is run. Nothing may be marked that is the only test of a promise: a marked test repeats, with
more of the same, what an unmarked one shows. ``slow.txt`` lists tests whose processor time is too much for
``make test``; ``make test-thorough`` runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FunctionType

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

QUICK, THOROUGH = "quick", "thorough"
SLOW = frozenset(Path(__file__).with_name("slow.txt").read_text(encoding="utf-8").splitlines())
"""Tests that ``make test`` leaves out for their processor time: ids without parameters, a line each."""

QUICK_EXAMPLES, THOROUGH_EXAMPLES = 25, 100
"""Examples of a test that does not name a number itself."""


def is_thorough() -> bool:
    """Return whether everything is asked for; known once pytest is configured, before tests are imported."""
    return settings().max_examples >= THOROUGH_EXAMPLES


def choose(thorough: bool) -> None:
    """Choose how many examples are drawn. No example has a deadline: a busy machine is no error."""
    name, count = (THOROUGH, THOROUGH_EXAMPLES) if thorough else (QUICK, QUICK_EXAMPLES)
    settings.register_profile(name, settings(), max_examples=count, deadline=None)
    settings.load_profile(name)


def examples(count: int) -> int:
    """Return how many of ``count`` examples to draw: all of them, or as many as fit the quick profile."""
    share = QUICK_EXAMPLES / THOROUGH_EXAMPLES
    return count if is_thorough() else max(min(count, QUICK_EXAMPLES), round(count * share))


def more(values: Iterable[object]) -> list[ParameterSet]:
    """Return parameters of a test that repeat others: they are marked ``thorough``."""
    return [pytest.param(each, marks=pytest.mark.thorough) for each in values]


class LeavingOut:
    """The plugin: leaves out what is marked, counts it, and tells it at the end, for all workers of xdist."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.left_out = 0
        self.asked = [argument for argument in config.args if "::" in argument]
        self.all = is_thorough() or THOROUGH in (config.option.markexpr or "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Collector, name: str, obj: object) -> object:
        """Leave out a function that is marked or slow before its parameters are made: thousands of tests."""
        if self.all or self.asked or not isinstance(obj, FunctionType) or not name.startswith("test"):
            return None
        marked = any(mark.name == THOROUGH for mark in getattr(obj, "pytestmark", ()))
        if not marked and f"{collector.nodeid}::{name}" not in SLOW:
            return None
        self.left_out += 1
        return []

    @pytest.hookimpl(tryfirst=True)  # before xdist writes the group into the id
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is marked and was not asked for by its id."""
        if self.all:
            return
        out = [item for item in items if _is_thorough(item) and not _named(item, self.asked)]
        if out:
            self.left_out += len(out)
            left = set(out)
            items[:] = [item for item in items if item not in left]
            self.config.hook.pytest_deselected(items=out)

    def pytest_sessionfinish(self) -> None:
        """Tell the process that shares the tests out how many were left out (each worker sees them all)."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["thorough_left_out"] = self.left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Hear it from a worker."""
        output: dict[str, int] = getattr(node, "workeroutput", {})
        self.left_out = max(self.left_out, output.get("thorough_left_out", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if is_thorough():
            return
        tests = "1 thorough test" if self.left_out == 1 else f"{self.left_out or 'no'} thorough tests"
        said = f"{tests} left out, and fewer random examples drawn; `make test-thorough` runs all"
        terminalreporter.write_line(said, yellow=True)


def _is_thorough(item: pytest.Item) -> bool:
    """Return whether a test is marked as thorough or listed as slow."""
    return item.get_closest_marker(THOROUGH) is not None or item.nodeid.partition("[")[0] in SLOW


def _named(item: pytest.Item, asked: Sequence[str]) -> bool:
    """Return whether a test was asked for by its own id, as ``path::name``."""
    own = item.nodeid.partition("::")[2]
    for path, _, name in (each.partition("::") for each in asked):
        here = (item.config.invocation_params.dir / path).resolve() == item.path.resolve()
        if here and (own == name or own.startswith((f"{name}[", f"{name}::"))):
            return True
    return False
