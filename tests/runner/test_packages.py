"""Wheel, source archive and editable install hold the task runner, built from their own sources."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.runner.running import RUNNER
from yarnctl.task_runner.build import built

ROOT = Path(__file__).parents[2]
PACKED = (
    *("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"),
    *("yarnctl/__init__.py", "yarnctl/errors.py", "yarnctl/task_runner", "emulator/__init__.py"),
    *("release", "hadoop-conf"),
)
BUILT = "yarnctl/task_runner/yarnctl_task.py"
EDITABLE = "import sys; from hatchling import build; build.build_editable(sys.argv[1])"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a checkout without the built file; of the packages only what the build reads."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__", Path(BUILT).name)
    for name in PACKED:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def hatchling(folder: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def in_wheel(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as packed:
        return packed.read(BUILT)


def test_wheel_and_source_archive_hold_a_fresh_build(tree: Path, tmp_path: Path) -> None:
    """The second wheel comes from the source archive alone, whose own built file is removed before."""
    wheels, archives, again = tmp_path / "wheels", tmp_path / "archives", tmp_path / "again"
    hatchling(tree, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels))
    hatchling(tree, "-m", "hatchling", "build", "-t", "sdist", "-d", str(archives))
    with tarfile.open(only(archives, "*.tar.gz")) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    unpacked = only(tmp_path / "unpacked", "yarnctl-*")
    from_archive = (unpacked / BUILT).read_bytes()
    (unpacked / BUILT).unlink()
    hatchling(unpacked, "-m", "hatchling", "build", "-t", "wheel", "-d", str(again))
    assert (
        in_wheel(only(wheels, "*.whl")) == from_archive == in_wheel(only(again, "*.whl")) == built().encode()
    )
    assert RUNNER.read_bytes() == from_archive


def test_wheel_replaces_a_stale_built_file(tree: Path, tmp_path: Path) -> None:
    (tree / BUILT).write_text("#!/bin/sh\n")
    source = tree / "yarnctl/task_runner/runner/attempt.py"
    source.write_text(source.read_text().replace("STATUS_EVERY_S = 2.0", "STATUS_EVERY_S = 3.0"))
    hatchling(tree, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    assert re.search(rb"(?m)^STATUS_EVERY_S = 3.0$", in_wheel(only(tmp_path, "*.whl")))


def test_editable_install_builds_the_file_in_the_checkout(tree: Path, tmp_path: Path) -> None:
    hatchling(tree, "-c", EDITABLE, str(tmp_path))
    assert (tree / BUILT).read_bytes() == built().encode()


def test_source_that_cannot_be_built_fails_the_wheel(tree: Path, tmp_path: Path) -> None:
    with (tree / "yarnctl/task_runner/runner/attempt.py").open("a") as source:
        source.write("\nimport errno\n")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert "yarnctl_task.py cannot be built: attempt" in done.stderr
    assert not list(tmp_path.glob("*.whl"))
