"""What every test may rely on, wherever the tests are started from.

Law: a test's programs hear interrupts. Who starts the tests in the background of a shell hands them signals
that are ignored, and programs inherit that.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import signal

import pytest

from tests.thoroughness import THOROUGH, LeavingOut, choose

LONGEST_ID = 200
"""Characters of a parameter that its test's id may show."""

for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough", action="store_true", help="run every test and draw every example (make test-thorough)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, and choose how much is run before any test is imported."""
    config.addinivalue_line("markers", f"{THOROUGH}: more of the same; only with --thorough, or by its id")
    config.addinivalue_line("markers", "xdist_group(name): pytest-xdist's; named here for runs without it")
    choose(config.getoption("--thorough"))
    config.pluginmanager.register(LeavingOut(config), "leaving-out")
    gc.disable()  # while thousands of tests are collected hardly anything becomes garbage


def pytest_collection(session: pytest.Session) -> None:
    """Import a worker's share of the test modules first, so that the workers share the rewriting of asserts.

    Otherwise each worker of a fresh checkout rewrites every module, 15 s of processor time each.
    """
    given = getattr(session.config, "workerinput", None)
    if given is None:
        return
    root, ignored = session.config.rootpath, session.config.getoption("ignore") or ()
    paths = sorted(path for folder in session.config.args for path in (root / folder).rglob("test_*.py"))
    paths = [path for path in paths if not any(path.is_relative_to(root / each) for each in ignored)]
    for path in paths[int(given["workerid"].removeprefix("gw")) :: given["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection reports it
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten an id made of a whole document: each worker sends every id, and some cases are of 17 MB."""
    if not isinstance(val, str | bytes) or len(val) <= LONGEST_ID:
        return None
    start = val[:LONGEST_ID] if isinstance(val, str) else val[:LONGEST_ID].decode("latin-1")
    return f"{start.encode('unicode_escape').decode()}... ({len(val)})"


def pytest_collection_finish() -> None:
    """Take the thousands of tests that were collected out of what the garbage collector walks over."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage again, also in the process that shares the tests out, which collects no tests."""
    gc.enable()
