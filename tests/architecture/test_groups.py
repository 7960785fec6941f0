"""What is dear is made once: tests that carry one ``xdist_group`` run in one worker."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

TESTS = """
import os
import pytest

@pytest.mark.xdist_group("shared")
@pytest.mark.parametrize("number", range(8))
def test_shared(number):
    with open("workers", "a") as workers:
        workers.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_tests_of_a_group_run_in_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    options = ["-p", "xdist", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={tmp_path}", *options, "test_some.py"],
        cwd=tmp_path, env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == 8
    assert len(set(workers)) == 1, (
        f"pytest {version('pytest')} and pytest-xdist {version('pytest-xdist')} lose the groups: every worker"
        " starts every cluster and browser (pytest-xdist issue 1386; pytest below 9.2 keeps them)"
    )
