"""c20 (../shared/CASES.md): each key of a site's file is read by the emulator, or rejected by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.cli import PROGRAM
from emulator.scenario.scheduler_file import read_scheduler_file
from tests.shared_cases import folder
from yarnctl.command_line import exit_status_of

REJECTED = {
    "root.users.auto-create-child-queue.enabled": "'true' is not modelled by the emulator; use auto-queue",
    "root.users.leaf-queue-template.capacity": "is not modelled by the emulator, or its queue is in no",
    "root.users.maximum-capacity": "10 % of the cluster is below the capacity, 20 %",
}
"""Queues on demand of the first kind (3.3 and older), and what Hadoop itself rejects."""


def site() -> Path:
    return folder("c20-emulator-leaves-out-silently") / "capacity-scheduler.xml"


def test_serve_rejects_by_name_what_is_not_modelled(capfd: pytest.CaptureFixture[str]) -> None:
    assert exit_status_of(PROGRAM, ["serve", "--port", "0", "--scheduler-xml", str(site())]) == 2
    said = capfd.readouterr().err
    assert f"{len(REJECTED)} keys cannot be used" in said
    for key, problem in REJECTED.items():
        assert f"yarn.scheduler.capacity.{key}: {problem}" in said


def test_the_other_keys_are_read(tmp_path: Path) -> None:
    lines = site().read_text().splitlines(keepends=True)
    left = [line for line in lines if not any(f".{key}<" in line for key in REJECTED)]
    assert len(lines) - len(left) == len(REJECTED)
    file = tmp_path / "capacity-scheduler.xml"
    file.write_text("".join(left))
    leaves = {leaf.name: leaf for leaf in read_scheduler_file(file).leaves}
    production, research = leaves["production"], leaves["research"]
    assert (production.fair, production.user_percent) == (True, 25)
    # All of root's part, and the file gives root none: YARN's default is 0, and a maximum of all
    assert (production.labels, production.accessible) == ({"gpu": (0.0, 1.0)}, ("gpu",))
    assert {name: leaf.stopped for name, leaf in leaves.items()} == {
        "production": False,
        "research": True,
        "users": False,
    }
    assert {name: leaf.capacity_ratio for name, leaf in leaves.items()} == {
        "production": 0.6,
        "research": 0.2,
        "users": 0.2,
    }
    assert not research.fair
