"""Wheel and source archive: the same bytes from each build, with the files that an operator installs."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from emulator.cli import PROGRAM as EMULATOR
from release.dist import Release, make_archives
from release.shared_files import generated
from tests.runner.test_packages import only, tree
from yarnctl.cli import PROGRAM as YARNCTL

__all__ = ["tree"]
EPOCH_S = 1_750_000_000
REQUESTS = {".TH", ".SH", ".PP", ".TP", ".B"}


@pytest.fixture(scope="module")
def shared() -> dict[str, str]:
    return dict(generated("0.1.0", EPOCH_S))


def release_into(folder: Path) -> Release:
    folder.mkdir()
    return Release(folder, "0.1.0", "python3.11", EPOCH_S)


def test_two_builds_have_the_same_bytes(tree: Path, shared: dict[str, str], tmp_path: Path) -> None:
    """The second is made from the source archive alone, with other times and other permissions."""
    for path, text in shared.items():
        (tree / "release/share" / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / "release/share" / path).write_text(text)
    first = make_archives(release_into(tmp_path / "first"), tree)
    with tarfile.open(first[1]) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    again = only(tmp_path / "unpacked", "yarnctl-*")
    shutil.copy(tree / ".gitignore", again)
    for each in again.rglob("*"):
        os.utime(each, (1, 1))
        each.chmod(each.stat().st_mode & ~0o077)
    second = make_archives(release_into(tmp_path / "second"), again)
    assert [each.read_bytes() for each in second] == [each.read_bytes() for each in first]


def test_wheel_has_unit_configuration_completion_and_a_page_for_each_command(
    tree: Path, shared: dict[str, str], tmp_path: Path
) -> None:
    (tree / "release/share/man/man1").mkdir(parents=True, exist_ok=True)
    (tree / "release/share/man/man1/yarnctl-run.1").write_text(shared["man/man1/yarnctl-run.1"])
    wheel, _ = make_archives(release_into(tmp_path / "made"), tree)
    with zipfile.ZipFile(wheel) as packed:
        names = {name.partition(".data/data/share/")[2] for name in packed.namelist()}
    assert {
        "systemd/system/yarnctl.service",
        "doc/yarnctl/hadoop-conf/dual-queue/capacity-scheduler.xml",
        "man/man1/yarnctl-run.1",
    } <= names


def test_each_command_has_a_page_and_each_shell_its_completion(shared: dict[str, str]) -> None:
    commands = {"yarnctl", "yarn-emulator"}
    commands |= {f"yarnctl-{name}" for name in YARNCTL.lazy} | {
        f"yarn-emulator-{name}" for name in EMULATOR.lazy
    }
    pages = {Path(path).stem for path in shared if path.startswith("man/")}
    assert commands <= pages
    assert {"yarnctl-config-init", "yarnctl-checkpoints-list"} <= pages
    for program in ("yarnctl", "yarn-emulator"):
        assert f"bash-completion/completions/{program}" in shared
        assert f"_{program}".upper().replace("-", "_") in shared[f"zsh/vendor-completions/_{program}"]
    assert "\\-\\-enforce" in shared["man/man1/yarnctl-run.1"]


def test_no_line_of_a_page_is_taken_for_a_request_of_roff(shared: dict[str, str]) -> None:
    for path, text in shared.items():
        if path.startswith("man/"):
            requests = {line.split()[0] for line in text.splitlines() if re.match(r"[.']", line)}
            assert requests <= REQUESTS, path
