"""The driver's plugin reads an order again after any failure: no application stays small because of one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.spark_plugin.stubs import SOURCES
from yarnctl import frameworks

PLUGIN = Path(frameworks.__file__).parent / "spark" / "plugin" / "Leave.java"
FAULTS = ("list", "status", "open", "read", "request")


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK (Debian: openjdk-17-jdk-headless)")
def test_executors_are_as_before_whichever_call_fails_once_and_three_times(tmp_path: Path) -> None:
    for name, source in {**SOURCES, "yarnctl/Leave.java": PLUGIN.read_text("utf-8")}.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, "utf-8")
    sources = sorted(map(str, (tmp_path / "src").rglob("*.java")))
    classes = str(tmp_path / "classes")
    subprocess.run(["javac", "-nowarn", "-d", classes, *sources], check=True, capture_output=True, text=True)
    done = subprocess.run(
        ["java", "-Xshare:auto", "-cp", classes, "yarnctl.Play"], check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    told = [line.split() for line in lines if not line.startswith(("idle", "batch"))]
    found = {tuple(words[:3]): words[3:] for words in told if words}
    expected = {(d, call, times) for d in ("false", "true") for call in FAULTS for times in ("0", "1", "3")}
    answers = ["1,2", "2,4"]  # the last order that is done with, and the executors: after leave, after back
    assert found == {case: ["4", *answers] for case in expected}
    others = "decommission [2, 4, 5]"  # what is cached moves, and a task ends first
    every = "[decommission [2, 3, 4, 5]]"
    only = "[kill [3]{}falsefalse]"  # an order of the kind idle: 3 alone still has no task, and is counted
    assert [line.split("|", 1)[1] for line in lines if line.startswith("idle")] == [
        *(f"false|{least}|[kill [3]truefalsefalse, {others}]|1>5" for least in (0, 4, 5)),
        f"true|0|[kill [3]falsefalsefalse, {others}]|2>5",
        f"true|4|[kill [3]falsefalsefalse, {others}]|2>5",
        f"true|5|{every}|1>5",
        f"false|no-service|{every}|1>5",
        f"false|other-spark|{every}|1>5",
        f"only|false|{only.format('true')}|4>5",
        f"only|true|{only.format('false')}|5>5",  # the target is of Spark's own manager
        "only|no-service|[]|5>5",
        "only|other-spark|[]|5>5",
    ]
    left = "[decommission [3]]"
    waited, late, other = next(line.split("|", 1)[1] for line in lines if line.startswith("batch")).split("|")
    assert waited == f"[]{left}", "an order waits for the end of the micro-batch"
    assert late == f"{left}{left}", "not longer than it may"
    assert other == f"{left}{left}", "and for no other job"
