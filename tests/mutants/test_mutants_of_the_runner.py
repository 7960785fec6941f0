"""Mutants of the task runner: tried in the file that tests start, and its lines belong to those tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import shipped
from tests.mutants.__main__ import PARTS, RINGS
from tests.mutants.population import population
from tests.mutants.steady import PYTEST
from tests.mutants.trying import LEAST_WALL_S, TIMES, WALL_S, Trials
from yarnctl.task_runner import build
from yarnctl.task_runner import shipped as shipped_file
from yarnctl.task_runner.build import BUILT, SOURCE, built

ROOT = Path(__file__).parents[2]
TEST = "tests/runner/test_orders.py::test_every_line_of_a_hold_names_the_order"


def test_every_part_has_its_tests() -> None:
    for target in PARTS.values():
        assert (ROOT / target).is_dir()
        assert all((ROOT / test).exists() for test in RINGS[target])


@pytest.mark.parametrize("part", PARTS)
def test_the_tests_of_a_part_are_collected_with_the_drivers_options(part: str) -> None:
    """It runs without pytest-xdist, whose marker some of them have."""
    command = [sys.executable, "-m", "pytest", *PYTEST, "--collect-only", *RINGS[PARTS[part]]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_what_compares_the_shipped_file_is_not_asked() -> None:
    """It would notice every mutant, whatever that does."""
    tests = [test for ring in RINGS.values() for test in ring]
    assert not any("test_built" in test or test == "tests/unit/task_runner" for test in tests)


def test_a_line_of_the_shipped_file_is_that_of_its_module() -> None:
    lines = built().splitlines()
    found = shipped.sources_of_lines()
    assert len({path for path, _ in found.values()}) == len(list(SOURCE.rglob("*.py"))) - 2  # two __init__
    for number, (path, line) in found.items():
        assert lines[number - 1] == path.read_text().splitlines()[line - 1]


def test_a_mutant_is_built_beside_the_shipped_file(tmp_path: Path) -> None:
    before, path = BUILT.read_bytes(), SOURCE / "attempt.py"
    source = path.read_text().replace("STATUS_EVERY_S = 2.0", "STATUS_EVERY_S = 3.0")
    after = shipped.build_mutant(str(path), source, tmp_path).read_bytes()
    pairs = zip(before.splitlines(), after.splitlines(), strict=True)
    assert [(old, new) for old, new in pairs if old != new][1:] == [  # the first is the digest
        (b"STATUS_EVERY_S = 2.0", b"STATUS_EVERY_S = 3.0")
    ]
    assert BUILT.read_bytes() == before


def test_modules_are_pointed_to_another_file_and_the_builder_is_not(tmp_path: Path) -> None:
    old, new = Path(str(BUILT)), tmp_path / "yarnctl_task.py"  # BUILT in this module is changed, too
    shipped.point_to(new)
    assert shipped_file.RUNNER == BUILT == new
    assert old == build.BUILT
    for module in list(sys.modules.values()):  # back: other tests of this process start the runner
        for name, value in list(vars(module).items()):
            if isinstance(value, Path) and value == new:
                setattr(module, name, old)


def test_mutants_are_killed_by_tests_that_start_the_runner(tmp_path: Path) -> None:
    """One in a function that only a runner of that test has executed; one that nobody executes survives."""
    target = "yarnctl/task_runner/runner/attempt.py"
    wanted = ("StatusLines.for_order::dropped::return", "AttemptState.cannot::dropped::expr")
    mutants = [one for one in population(ROOT, target) if any(name in one.identity for name in wanted)]
    trials = Trials(ROOT, target, [TEST], 1, tmp_path / "baseline.json")
    by = {result.identity.split("::")[1]: (result.outcome, result.by) for result in trials.run(mutants)}
    assert by == {
        "StatusLines.for_order": ("killed", TEST),
        "AttemptState.cannot": ("survived", "no test executes it"),
    }


def test_a_cold_trial_has_time_for_the_tests_of_a_folder(tmp_path: Path) -> None:
    """Else a mutant that no test notices would count as killed by time."""
    walls = {"tests/runner/test_a.py::test_one": 40.0, "tests/unit/test_b.py::test_two[3]": 2.0}
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps({"tests": walls, "walls": walls, "lines": {}}))
    trials = Trials(ROOT, PARTS["runner"], [], 1, baseline)
    assert trials._wall_s(["tests/runner", "tests/unit/test_b.py"]) == TIMES * 42.0 + LEAST_WALL_S
    assert trials._wall_s(["tests/unit/test_b.py"]) == TIMES * 2.0 + LEAST_WALL_S
    assert trials._wall_s(["tests/run"]) == WALL_S


def test_what_a_trial_leaves_running_is_ended() -> None:
    mark, sleep = f"test-{os.getpid()}", ["sleep", "600"]
    with (
        subprocess.Popen(sleep, env={**os.environ, shipped.MARK: mark}) as left,
        subprocess.Popen(sleep) as other,
    ):
        while left.pid not in shipped.marked(mark):  # until it has become sleep
            pass
        shipped.end_marked(mark)
        assert left.wait() == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
