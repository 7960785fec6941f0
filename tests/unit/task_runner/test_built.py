"""The shipped file is what its package builds; what would mean something else in one file is refused."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.live.jobs.streaming_job import wrapped
from emulator.live.wire.submitted_job import StreamingJob
from yarnctl.errors import BadInput
from yarnctl.task_runner import build, shipped
from yarnctl.task_runner.build import MODULES, PACKAGE, SOURCE, CannotBuild, built
from yarnctl.task_runner.shipped import EMPTY_DIGEST, RUNNER, shipped_runner
from yarnctl.task_runner.verifying import verify
from yarnctl.task_runner.wrapping import wrap

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
    assert RUNNER.read_bytes() == built().encode()
    assert os.access(RUNNER, os.X_OK)


def test_build_gives_the_same_bytes_in_another_process_and_hash_seed():
    program = "from yarnctl.task_runner.build import built; print(built(), end='')"
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        again = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
        assert again.stdout == built().encode()


def test_the_built_file_is_not_in_the_repository():
    listed = subprocess.run(["git", "ls-files", RUNNER.name], cwd=RUNNER.parent, capture_output=True)
    ignored = subprocess.run(
        ["git", "check-ignore", "-q", RUNNER.name], cwd=RUNNER.parent, capture_output=True
    )
    assert (listed.stdout, ignored.returncode) == (b"", 0)


def test_its_head_says_that_it_is_built_and_from_what():
    head = RUNNER.read_text().partition("from __future__")[0]
    assert head.startswith("#!/bin/sh\n")
    assert "BUILT from yarnctl/task_runner/runner by `python -m yarnctl.task_runner.build`" in head


def test_it_stands_alone():
    """No import of ours is left in it, whatever way it is written; the oldest Python can read it."""
    text = RUNNER.read_text()
    tree = ast.parse(text, feature_version=(3, 8))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= set(sys.stdlib_module_names) | {"__future__"}
    assert PACKAGE not in text


def test_every_statement_of_the_package_is_in_it_as_it_is_written():
    text = RUNNER.read_text()
    for name in MODULES:
        source = (SOURCE / f"{name}.py").read_text()
        nodes = [node for node in ast.parse(source).body if not isinstance(node, ast.Import | ast.ImportFrom)]
        for node in nodes[1:]:
            assert f"\n{ast.get_source_segment(source, node)}" in text


# --- its digest ------------------------------------------------------------------------------------

JOB = ("hadoop", "jar", "s.jar", "-input", "a", "-output", "b", "-mapper", "m", "-reducer", "r")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the built file and its sources, which is where the file is looked for."""
    shutil.copytree(SOURCE, tmp_path / SOURCE.name)
    shutil.copy(RUNNER, tmp_path)
    monkeypatch.setattr(shipped, "RUNNER", tmp_path / RUNNER.name)
    return tmp_path


def changed_source(tree: Path) -> None:
    path = tree / SOURCE.name / "attempt.py"
    path.write_text(path.read_text().replace("STATUS_EVERY_S = 2.0", "STATUS_EVERY_S = 3.0"))


def new_source(tree: Path) -> None:
    (tree / SOURCE.name / "more.py").write_text('"""Law."""\n')


def renamed_source(tree: Path) -> None:
    (tree / SOURCE.name / "attempt.py").rename(tree / SOURCE.name / "attempts.py")


def edited_file(tree: Path) -> None:
    path = tree / RUNNER.name
    path.write_text(path.read_text().replace("STATUS_EVERY_S = 2.0", "STATUS_EVERY_S = 3.0"))


def no_digest(tree: Path) -> None:
    path = tree / RUNNER.name
    path.write_text(path.read_text().replace(EMPTY_DIGEST, "#"))


STALE = [changed_source, new_source, renamed_source, edited_file, no_digest]


@pytest.mark.parametrize("change", STALE)
def test_runner_that_differs_from_its_sources_is_rejected_with_what_to_do(tree, change):
    assert shipped_runner() == tree / RUNNER.name
    change(tree)
    with pytest.raises(
        BadInput, match=r"digest .* differs from sha256:[0-9a-f]{16} .*; run `make runner`"
    ) as why:
        shipped_runner()
    assert why.value.where == str(tree / RUNNER.name)


def test_missing_runner_is_rejected_with_what_to_do(tree):
    (tree / RUNNER.name).unlink()
    with pytest.raises(BadInput, match="cannot be read: No such file or directory; run `make runner`"):
        shipped_runner()


def test_stale_runner_is_rejected_before_a_job_is_wrapped_or_verified(tree):
    changed_source(tree)
    sample = tree / "sample"
    sample.write_text("a\t1\nb\t2\n")
    job = StreamingJob(name="j", inputs=(), output="", mapper="cat", reducer="cat", reduces=1)
    for what in (
        lambda: wrap(JOB, True, 0, "webhdfs://nn:9870/y", []),
        lambda: wrapped(job, True, 0, {}),
        lambda: verify(sample, ["cat"]),
    ):
        with pytest.raises(BadInput, match="run `make runner`"):
            what()


def test_build_replaces_a_stale_runner_whole(tree, monkeypatch):
    edited_file(tree)
    monkeypatch.setattr(build, "BUILT", tree / RUNNER.name)
    before = set(tree.iterdir())
    assert build.main() == 0
    assert shipped_runner().read_bytes() == RUNNER.read_bytes()
    assert set(tree.iterdir()) == before
    assert os.access(tree / RUNNER.name, os.X_OK)


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
    assert build.main() == 1
    assert "cannot be built: " in capsys.readouterr().err
