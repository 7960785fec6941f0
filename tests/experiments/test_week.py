"""``yarn-emulator compare --week``: what a cluster lived through, as it was and under other schemes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from emulator.cli import PROGRAM
from tests.experiments.virtual_week import VirtualWeek
from tests.soak.virtual_live import job
from yarnctl.command_line import exit_status_of
from yarnctl.traces.job import Job
from yarnctl.traces.week.week_folder import WeekWriter, read_week
from yarnctl.traces.week.week_rows import ImportedJob, WeekContainer, WeekJob, WeekTask


def drawn(count: int, seed: int) -> list[Job]:
    """Return jobs of both classes, one every 30 s on the mean."""
    draw, found, at_s = random.Random(seed), [], 0.0
    for number in range(count):
        at_s += draw.expovariate(1 / 30)
        name = f"{draw.choice(('production', 'research', 'research'))}-{number}"
        maps = [draw.uniform(5, 40) for _ in range(draw.randint(1, 12))]
        found.append(job(name, at_s, maps, [draw.uniform(10, 60) for _ in range(draw.choice((0, 1, 4)))]))
    return found


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> VirtualWeek:
    lived = VirtualWeek(tmp_path_factory.mktemp("week"))
    lived.live(drawn(24, seed=3))
    add_spark(lived.folder)
    return lived


def add_spark(folder: Path) -> None:
    """Add an application of Spark that had the cluster to itself: two executors, four tasks of 20 s."""
    at_ms = max(one.job.ended_at_ms or 0 for one in read_week(folder)) + 60_000
    row = WeekJob(
        job="application_9_0001", kind="SPARK", queue="root.research", user="ann", name="scan",
        submitted_at_ms=at_ms, started_at_ms=at_ms, ended_at_ms=at_ms + 50_000, state="SUCCEEDED",
    )  # fmt: skip
    stage = WeekTask(
        job=row.job, task="stage 0.0", kind="stage", count=4, started_at_ms=at_ms + 11_000, work_ms=80_000
    )
    executors = [
        WeekContainer(
            job=row.job, container=name, kind="executor", memory_mib=1024, vcores=1,
            started_at_ms=at_ms + 9_000, ended_at_ms=at_ms + 50_000,
        )
        for name in ("1", "2")
    ]  # fmt: skip
    with WeekWriter(folder) as week:
        week.add(ImportedJob(row, (stage,), tuple(executors)))


def compared(
    capfd: pytest.CaptureFixture[str], week: VirtualWeek, *words: str
) -> tuple[int, str, dict[str, Any]]:
    """Return the exit status, the error and the JSON of a comparison."""
    place = ("--week", str(week.folder), "--scheduler-xml", str(week.scheduler_xml), "--workers", "1")
    status = exit_status_of(PROGRAM, ["compare", *place, "-o", "json", *words])
    out, err = capfd.readouterr()
    return status, err, json.loads(out) if out else {}


def test_week_is_reproduced_and_compared_by_queue(
    capfd: pytest.CaptureFixture[str], week: VirtualWeek
) -> None:
    status, _, found = compared(capfd, week, "--schemes", "as-it-was,natjam,yarn-tuned")
    assert status == 0
    was = found["as_it_was"]
    assert (was["reproduced"], was["scheme"], len(was["jobs"])) == (True, "soft-cap", 25)
    (spark,) = (one for one in was["jobs"] if one["name"] == "scan")
    assert abs(spark["replayed_ms"] - spark["measured_ms"]) <= 0.05 * spark["measured_ms"]
    assert was["completion_off_ratio"] <= 0.05
    assert {(row["queue"], row["scheme"]) for row in found["queues"]} == {
        (queue, scheme)
        for queue in ("production", "research")
        for scheme in ("as-it-was", "natjam", "yarn-tuned")
    }
    for row in found["queues"]:
        assert row["least_ms"] <= row["mean_ms"] <= row["most_ms"]
        assert row["least_ms"] < row["most_ms"]
        assert (row["waited"] is not None) == (row["queue"] == "production")
        times = [row["lost"]] if row["waited"] is None else [row["lost"], row["waited"]]
        for time in times:
            # as the queue's completion times
            assert time["least_ms"] * row["mean_ms"] == pytest.approx(
                time["predicted_ms"] * row["least_ms"], rel=0.01, abs=0
            )
            assert time["least_ms"] <= time["predicted_ms"] <= time["most_ms"]
    lost = {(row["queue"], row["scheme"]): row["lost"]["predicted_ms"] for row in found["queues"]}
    assert lost["research", "yarn-tuned"] > 0
    assert lost["production", "yarn-tuned"] == lost["research", "as-it-was"] == 0
    predicted = {row["job"]: row["predicted_ms"] for row in found["jobs"] if row["scheme"] == "natjam"}
    assert predicted.keys() == {row["job"] for row in was["jobs"]}
    for row in found["queues"]:
        if row["scheme"] == "natjam":
            spans_ms = [predicted[one["job"]] for one in was["jobs"] if one["queue"] == row["queue"]]
            assert abs(sum(spans_ms) / len(spans_ms) - row["mean_ms"]) < 2
    assert {row["queue"] for row in found["enrol"].get("natjam", [])} <= {"research"}


def test_week_on_other_nodes_is_not_reproduced_and_no_comparison_is_printed(
    capfd: pytest.CaptureFixture[str], week: VirtualWeek
) -> None:
    words = ("--nodes", "2", "--slots", "3", "--schemes", "as-it-was,natjam")
    status, _, found = compared(capfd, week, *words)
    assert status == 1
    assert found["as_it_was"]["reproduced"] is False
    assert "queues" not in found
    assert found["worst"][0]["replayed_ms"] > found["worst"][0]["measured_ms"]
    place = ["--week", str(week.folder), "--scheduler-xml", str(week.scheduler_xml)]
    assert exit_status_of(PROGRAM, ["compare", *place, *words]) == 1
    text = capfd.readouterr().out
    assert "Completion times by queue" in text
    assert "natjam" not in text


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--production", "synthetic:production-s"), "--production: has no effect with --week"),
        (("--schemes", "natjm"), "--schemes: unknown: 'natjm'"),
        (("--schemes", "ideal"), "--schemes: unknown: 'ideal'"),
        (("--production-queue", "prod"), "names no leaf queue"),
        (("--out", "results"), "--out: has no effect with --week"),
    ],
)
def test_week_refuses_what_it_cannot_use(
    capfd: pytest.CaptureFixture[str], week: VirtualWeek, words: tuple[str, ...], named: str
) -> None:
    status, err, found = compared(capfd, week, *words)
    assert (status, found) == (2, {})
    assert named in err


def test_week_needs_the_queues_and_a_folder(
    capfd: pytest.CaptureFixture[str], week: VirtualWeek, tmp_path: Path
) -> None:
    assert exit_status_of(PROGRAM, ["compare", "--week", str(week.folder)]) == 2
    assert "give --scheduler-xml" in capfd.readouterr().err
    place = ["--scheduler-xml", str(week.scheduler_xml)]
    assert exit_status_of(PROGRAM, ["compare", "--week", str(tmp_path), *place]) == 2
    assert "holds no week" in capfd.readouterr().err
