"""What each packed file of a release contains besides the base: the lock in ZooKeeper."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from release.dist import CONSTRAINTS, this_release
from tests.release.playing import ROOT

OPTIONAL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize(("more", "packed"), [("", {"ha"}), ("kerberos", {"ha", "kerberos"})])
def test_packed_files_have_the_lock_in_zookeeper(tmp_path: Path, more: str, packed: set[str]) -> None:
    assert Requirement(this_release(tmp_path, more).extended("yarnctl")).extras == packed


def test_image_has_the_lock_in_zookeeper() -> None:
    (extras,) = re.findall(r"'/src\[(\S+)\]'", (ROOT / "Dockerfile").read_text())
    assert "ha" in extras.split(",")


def test_versions_of_a_release_name_the_packages_of_its_extra(tmp_path: Path) -> None:
    fixed = {Requirement(line).name for line in CONSTRAINTS.read_text().splitlines() if line[:1] != "#"}
    extra = this_release(tmp_path).extras
    assert {Requirement(each).name for each in OPTIONAL[extra]} <= fixed
