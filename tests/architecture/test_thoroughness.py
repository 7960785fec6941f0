"""What is left out is said, ``--thorough`` leaves out nothing, and CI asks for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thoroughness import SLOW

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from hypothesis import given, strategies as st
from tests.thoroughness import examples

drawn = []

@pytest.mark.thorough
@pytest.mark.parametrize("number", [1, 2])
def test_more_of_the_same(number): pass

@given(st.integers())
def test_random(number): drawn.append(number)

def test_count(): print(f"\\ndrawn {len(drawn)}, {examples(400)} of 400, {examples(10)} of 10")
"""
LEFT_OUT = "1 thorough test left out, and fewer random examples drawn"


def ran(folder: Path, *options: str) -> str:
    """Run the tests above in a process of their own; return what pytest says."""
    path = folder / "test_some.py"
    path.write_text(TESTS)
    chosen = [f"{path}{one}" for one in options if one.startswith("::")] or [str(path)]
    words = [one for one in options if not one.startswith("::")]
    plugins = ["-p", "tests.conftest", "-p", "xdist", "-p", "no:cacheprovider", "--strict-markers", "-s"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={folder}", *plugins, *words, *chosen],
        cwd=ROOT, env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("options", "passed", "said"),
    [((), 2, (LEFT_OUT, "drawn 25, 100 of 400, 10 of 10")), (("-n", "1"), 2, (LEFT_OUT,)),
     (("--thorough",), 4, ("drawn 100, 400 of 400, 10 of 10",)),
     (("::test_more_of_the_same[1]",), 1, ("no thorough tests left out",)),
     pytest.param(("-m", "thorough"), 2, ("no thorough tests left out",), marks=pytest.mark.thorough),
     pytest.param(("::test_more_of_the_same",), 2, ("no thorough",), marks=pytest.mark.thorough)],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else None,
)  # fmt: skip
def test_what_is_left_out_is_said(tmp_path, options, passed, said):
    output = ran(tmp_path, *options)
    assert f"{passed} passed" in output
    assert all(words in output for words in said), output
    assert ("left out" in output) == ("--thorough" not in options)


def test_slow_tests_exist() -> None:
    """Otherwise a renamed test is run by ``make test`` again."""
    gone = []
    for each in sorted(SLOW):
        file, _, test = each.partition("::")
        if not (ROOT / file).exists() or f"def {test}(" not in (ROOT / file).read_text():
            gone.append(each)
    assert gone == []


def test_a_change_must_pass_the_tests_and_thorough_leaves_nothing_out():
    assert "\nmake test\n" in (ROOT / ".ci/run").read_text()
    recipe = re.search(r"^test-thorough:.*\n\t(.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert "$(TESTS) --thorough" in recipe[1]


def test_each_path_in_the_commands_of_planted_faults_exists() -> None:
    """Pytest fails at a path that is gone, and each planted fault would count as noticed."""
    files = sorted(ROOT.glob("tests/mutation/*.toml"))
    named = {word for file in files for word in re.findall(r"(?:research/)?tests/[\w./]+", file.read_text())}
    assert len(named) > len(files)
    assert not [word for word in sorted(named) if not (ROOT / word).exists()]
