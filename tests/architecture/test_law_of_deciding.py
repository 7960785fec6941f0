"""Law 1, deciding is not doing: whoever breaks it makes ``make lint`` go red.

Each test plants a breach into a copy of the project's configuration and watches the same
command line that ``make lint`` runs. The last tests look at what ruff and import-linter cannot
see: built-in functions that reach outside or differ from run to run.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
ACTORS = (ROOT / "tests/architecture/actors.txt").read_text().split()
ACTORS_CONFIG = "tests/architecture/actors-ruff.toml"
CONFIGURATION = ("pyproject.toml", "yarnctl/deciding/ruff.toml", ACTORS_CONFIG)

CLEAN = '"""A module that decides."""\n\nimport heapq\n\nPICK = heapq.heappop\n'
BANNED = (
    *("asyncio", "datetime", "logging", "multiprocessing", "os", "pathlib", "random", "requests", "secrets"),
    *("socket", "subprocess", "sys", "tempfile", "threading", "time", "uuid"),
)
BREACHES = {
    **{f"import {module}": f'"""Decides."""\n\nimport {module}\n\nUSED = {module}\n' for module in BANNED},
    "from time": '"""Decides."""\n\nfrom time import monotonic\n\nNOW = monotonic\n',
    "import urllib.request": '"""Decides."""\n\nimport urllib.request\n\nUSED = urllib.request\n',
    "import inside a function": (
        '"""Decides."""\n\n\ndef key() -> float:\n    """Return."""\n'
        "    import random\n\n    return random.random()\n"
    ),
    "numpy.random": '"""Decides."""\n\nimport numpy as np\n\nDRAW = np.random.default_rng\n',
    "open": '"""Decides."""\n\nTEXT = open("a")  # noqa: SIM115\n',
    "print": '"""Decides."""\n\nprint("here")\n',
    "eval": '"""Decides."""\n\nPICK = eval("1")\n',
}

FORBIDDEN_BUILTINS = {
    "breakpoint": "it waits for a person", "compile": "it runs text", "eval": "it runs text",
    "exec": "it runs text", "hash": "it differs from run to run for text (law 5)",
    "id": "it differs from run to run (law 5)", "input": "it waits for a person", "open": "it opens a file",
    "print": "it writes to the terminal", "__import__": "it goes round the ban on imports",
}  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a folder that holds the project's configuration and nothing else."""
    for name in CONFIGURATION:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    (tmp_path / "emulator/cluster").mkdir(parents=True)
    return tmp_path


def ruff(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(BIN / "ruff"), "check", "--no-cache", "--output-format=concise", *arguments]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def test_ruff_refuses_each_breach_in_deciding_and_in_an_actor(copy):
    """One run over a file for each breach, and one over a file without."""
    for folder, options in (("yarnctl/deciding", ()), ("emulator/cluster", ("--config", ACTORS_CONFIG))):
        (copy / folder / "clean.py").write_text(CLEAN)
        files = {f"{folder}/planted_{number}.py": breach for number, breach in enumerate(BREACHES)}
        for path, breach in files.items():
            (copy / path).write_text(BREACHES[breach])
        refused = ruff(copy, *options, folder)
        assert refused.returncode == 1
        red = {line.partition(":")[0] for line in refused.stdout.splitlines()}
        assert red & {f"{folder}/clean.py", *files} == set(files), refused.stdout


def test_elsewhere_a_clock_is_no_breach(copy):
    (copy / "yarnctl/clock.py").write_text(BREACHES["import time"])
    assert ruff(copy, "yarnctl/clock.py").returncode == 0


@pytest.fixture
def packages(copy: Path) -> Path:
    for package in ("yarnctl", "emulator"):
        shutil.copytree(
            ROOT / package,
            copy / package,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("data", "__pycache__"),
        )
    return copy


def lint_imports(folder: Path) -> str:
    """Run import-linter on a copy; return its report, with the status in front."""
    argv = [str(BIN / "lint-imports"), "--no-cache"]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return f"status {done.returncode}\n{done.stdout}{done.stderr}"


PLANTED = {
    "deciding and actors reach no clock": [
        ("yarnctl/deciding/planted.py", "import time"), ("yarnctl/errors.py", "import os"),
        ("yarnctl/traces/job.py", "import secrets"),
    ],
    "imports point one way": [
        ("yarnctl/deciding/planted.py", "import yarnctl.loop"),
        ("yarnctl/deciding/planted.py", "import yarnctl.command_line"),
    ],
    "the core knows no command line": [("yarnctl/loop.py", "import yarnctl.command_line")],
    "yarnctl never imports the emulator": [("yarnctl/cli/planted.py", "import emulator.workload")],
    "the emulator stands on the core": [
        ("emulator/planted.py", "import yarnctl.cli"), ("emulator/planted.py", "import yarnctl.hadoop"),
    ],
    "emulator: programs": [("emulator/cluster/task.py", "import emulator.cli")],
    "no reader of workloads": [("emulator/cluster/task.py", "import emulator.workload.planted")],
}  # fmt: skip
"""For each contract imports that break it. What they import last is named in its part of the report."""


def test_imports_against_the_stream_break_their_contracts(packages):
    assert lint_imports(packages).startswith("status 0")
    (packages / "emulator/workload/planted.py").write_text('"""A reader."""\n')
    for place, line in (each for group in PLANTED.values() for each in group):
        path = packages / place
        before = path.read_text() if path.exists() else '"""Planted."""\n'
        path.write_text(f"{before}\n{line}\n")
    report = lint_imports(packages)
    assert report.startswith("status 1"), report
    broken = [row for row in report.splitlines() if " BROKEN" in row]
    for contract in PLANTED:
        assert any(contract in row for row in broken), (contract, report)
    told = report.partition("Broken contracts")[2]
    for place, line in (each for group in PLANTED.values() for each in group):
        importer, imported = place.removesuffix(".py").replace("/", "."), line.removeprefix("import ")
        assert f"{importer} -> {imported}" in told, (importer, imported, told)


def test_a_module_without_a_layer_breaks_a_contract(packages):
    (packages / "yarnctl/planted.py").write_text('"""Planted."""\n')
    report = lint_imports(packages)
    assert report.startswith("status 1"), report
    assert "planted" in report


def deciding_files() -> list[Path]:
    """Return all that law 1 speaks of and that exists."""
    return sorted((ROOT / "yarnctl/deciding").rglob("*.py")) + [ROOT / name for name in ACTORS]


def builtins_called(path: Path) -> list[str]:
    """Return each call of a forbidden built-in function, with its line and the reason."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [
        f"{path.name}:{call.lineno}: {call.func.id}(): {FORBIDDEN_BUILTINS[call.func.id]}"
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in FORBIDDEN_BUILTINS
    ]


@pytest.mark.parametrize("path", deciding_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_built_in_function_reaches_outside(path):
    assert builtins_called(path) == []


def test_the_look_at_built_in_functions_sees_one(tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text("KEY = hash('a')\n")
    assert builtins_called(planted) == ["planted.py:1: hash(): it differs from run to run for text (law 5)"]


def test_make_lint_runs_all_of_it():
    makefile = (ROOT / "Makefile").read_text()
    recipe = makefile.partition("\nlint:")[2].partition("\n\n")[0]
    for command in (
        "ruff check .", ACTORS_CONFIG, "$(ACTORS)", "lint-imports", "python -m tests.architecture.house",
        "mypy", "ruff format --check",
    ):  # fmt: skip
        assert command in recipe
