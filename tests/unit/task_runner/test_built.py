"""The shipped file is what its package builds; what would mean something else in one file is refused."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from yarnctl.task_runner import build
from yarnctl.task_runner.build import BUILT, MODULES, PACKAGE, SOURCE, CannotBuild, built
from yarnctl.task_runner.wrapping import RUNNER

LOW = '"""Law."""\n\nimport os\n\nLEAST = os.sep\n'
HIGH = f'"""Law."""\n\nfrom {PACKAGE}.low import LEAST\n\nMOST = LEAST\n'


@pytest.fixture
def package(tmp_path: Path):
    """Return what writes a package of two modules and builds it."""

    def build_it(low: str = LOW, high: str = HIGH, modules: tuple[str, ...] = ("low", "high")) -> str:
        (tmp_path / build.HEAD).write_text("#!/bin/sh\n")
        (tmp_path / "low.py").write_text(low)
        (tmp_path / "high.py").write_text(high)
        return built(tmp_path, modules)

    return build_it


# --- the shipped file ----------------------------------------------------------------------------


def test_the_shipped_file_is_byte_for_byte_what_its_package_builds():
    assert BUILT.read_bytes() == built().encode()
    assert BUILT == RUNNER
    assert os.access(BUILT, os.X_OK)


def test_a_clone_has_it_and_may_run_it():
    listed = subprocess.run(
        ["git", "ls-files", "-s", BUILT.name], cwd=BUILT.parent, capture_output=True, text=True
    )
    assert listed.stdout.startswith("100755 "), listed


def test_its_head_says_that_it_is_built_and_from_what():
    head = BUILT.read_text().partition("from __future__")[0]
    assert head.startswith("#!/bin/sh\n")
    assert "BUILT from yarnctl/task_runner/runner by `python -m yarnctl.task_runner.build`" in head


def test_it_stands_alone():
    """No import of ours is left in it, whatever way it is written; the oldest Python can read it."""
    text = BUILT.read_text()
    tree = ast.parse(text, feature_version=(3, 8))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names) | {"__future__"}
    assert PACKAGE not in text


def test_every_statement_of_the_package_is_in_it_as_it_is_written():
    text = BUILT.read_text()
    for name in MODULES:
        source = (SOURCE / f"{name}.py").read_text()
        nodes = [node for node in ast.parse(source).body if not isinstance(node, ast.Import | ast.ImportFrom)]
        for node in nodes[1:]:
            assert f"\n{ast.get_source_segment(source, node)}" in text


def test_a_changed_file_fails_the_check_and_a_build_mends_it(tmp_path, monkeypatch, capsys):
    file = tmp_path / "yarnctl_task.py"
    shutil.copy(BUILT, file)
    monkeypatch.setattr(build, "BUILT", file)
    assert build.main(["--check"]) == 0
    with file.open("a") as opened:
        opened.write("\n")
    assert build.main(["--check"]) == 1
    assert "run `make runner`" in capsys.readouterr().err
    assert build.main([]) == 0
    assert build.main(["--check"]) == 0


# --- how modules become one ------------------------------------------------------------------------


def test_modules_become_one_file_in_their_order(package):
    found = package(high=HIGH.replace("from", "import errno\nimport os\n\nfrom", 1))
    assert found.startswith("#!/bin/sh\n#\n# BUILT from")
    assert found.count("import os\n") == 1
    assert found.index("# Law.\n\n\nLEAST = os.sep\n\n\n# --") < found.index("# Law.\n\n\nMOST = LEAST\n")
    assert PACKAGE not in found


def test_a_comment_above_the_first_statement_stays(package):
    assert "\n# why\nLEAST" in package(low=LOW.replace("LEAST", "# why\nLEAST", 1))


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (LOW, HIGH.replace("LEAST\n\n", "OTHER\n\n"), "OTHER is not defined by low"),
        (LOW, HIGH.replace("MOST", "LEAST"), "LEAST means something else in low"),
        (LOW, HIGH.replace("MOST", "os"), "os means something else in an import"),
        (LOW, HIGH.replace("MOST", "list"), "list means something else"),
        (LOW, HIGH.replace("LEAST\n\n", "LEAST as BOUND\n\n"), "an import renames"),
        (LOW, HIGH + "import errno\n", "imports stand first"),
        (LOW.replace("import os", "import msgspec"), HIGH, "msgspec is not of the standard library"),
        (LOW, HIGH.replace(f"{PACKAGE}.low", "yarnctl.errors"), "yarnctl.errors is not of"),
        (LOW, f'"""Law."""\n\nimport {PACKAGE}.low\n\nMOST = 1\n', "is not of the standard library"),
        (LOW.replace('"""Law."""\n', ""), HIGH, "does not open with its law"),
        ('"""Law."""\n', HIGH, "nothing in it"),
    ],
)
def test_what_would_mean_something_else_is_refused(package, low, high, says):
    assert package()
    with pytest.raises(CannotBuild, match=says):
        package(low, high)


def test_an_import_of_what_comes_later_is_refused(package):
    with pytest.raises(CannotBuild, match="LEAST is not defined by low, or only later"):
        package(modules=("high", "low"))


def test_a_module_that_is_not_put_together_is_refused(package):
    with pytest.raises(CannotBuild, match="high: in the package or in MODULES"):
        package(modules=("low",))


def test_what_cannot_be_built_is_said(monkeypatch, capsys):
    monkeypatch.setattr(build, "built", lambda: built(SOURCE, MODULES[::-1]))
    assert build.main(["--check"]) == 1
    assert "cannot be built: " in capsys.readouterr().err
