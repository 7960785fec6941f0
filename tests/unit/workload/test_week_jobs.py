"""Jobs of a week: what each asked of the cluster, from the containers that it held."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.cluster.timing import HADOOP3
from emulator.experiments.week.as_it_was import AsItWas, PreemptedTime, ReplayedWeekJob, scheme_of
from emulator.experiments.week.week_comparison import Deviation, deviation
from emulator.experiments.week.week_scenario import measured_timing, nodes_of
from emulator.virtual.run import Result
from emulator.workload.week_jobs import week_jobs
from yarnctl.errors import BadInput
from yarnctl.traces.job import ONE_SLOT, Job
from yarnctl.traces.week.week_folder import WeekNodes
from yarnctl.traces.week.week_rows import ImportedJob, WeekContainer, WeekJob, WeekTask
from yarnctl.units import Resources


def held(kind: Any, began_s: int, ended_s: int, **more: Any) -> WeekContainer:
    given: dict[str, Any] = {"memory_mib": 2048, "vcores": 2, "state": "SUCCEEDED"} | more
    return WeekContainer(
        job="a", container="c", kind=kind, started_at_ms=began_s * 1000, ended_at_ms=ended_s * 1000, **given
    )


def lived(
    *containers: WeekContainer, tasks: tuple[WeekTask, ...] = (), ended_s: int = 60, **more: Any
) -> ImportedJob:
    given: dict[str, Any] = {"state": "SUCCEEDED", "submitted_at_ms": 10_000} | more
    row = WeekJob(
        job="a", kind="MAPREDUCE", queue="etl", user="al ice", name="n", ended_at_ms=ended_s * 1000, **given
    )
    return ImportedJob(row, tasks, containers)


def only(imported: ImportedJob) -> Job:
    ((job,), _) = week_jobs([imported], lambda _: "research")
    return job


def test_week_job_has_the_lengths_of_attempts_that_succeeded():
    job = only(
        lived(
            held("master", 11, 60, memory_mib=1536, vcores=1),
            held("map", 15, 20, state="KILLED", ended_by="preempted"),
            held("map", 21, 33),
            held("map", 15, 25),
            held("reduce", 18, 50, memory_mib=4096, vcores=1, merged_at_ms=36_000),
        )
    )
    assert (job.map_ms, job.reduce_ms) == ((12_000, 10_000), (14_000,))
    assert job.shuffle_ms == 3000  # from the last map's end to the end of the merge
    assert (job.am_size, job.map_size, job.reduce_size) == (
        Resources(1536, 1), Resources(2048, 2), Resources(4096, 1),
    )  # fmt: skip
    assert (job.queue, job.user, job.submitted_at_ms) == ("etl", "al_ice", 0)


def test_week_job_that_failed_counts_every_attempt():
    containers = (held("map", 15, 20, state="FAILED"), held("map", 21, 33, state="KILLED"))
    assert only(lived(*containers, state="FAILED")).map_ms == (5000, 12_000)


def test_week_job_of_spark_runs_the_tasks_of_its_stages():
    stages = (
        WeekTask(job="a", task="stage 0.0", kind="stage", count=4, started_at_ms=19_000, work_ms=8000),
        WeekTask(job="a", task="stage 1.0", kind="stage", count=0, work_ms=0),
    )
    executors = (held("executor", 15, 40), held("executor", 16, 30), held("executor", 30, 50))
    job = only(lived(*executors, tasks=stages))
    assert job.map_ms == (2000,) * 4
    assert job.spark
    assert (job.spark.executors, job.spark.cores, job.spark.start_ms) == (2, 2, 4000)


@pytest.mark.parametrize(("held_mib_s", "maps"), [(None, 1), (1024 * 50, 1), (1024 * 50 * 5, 4)])
def test_week_job_of_sums_holds_as_much(held_mib_s: int | None, maps: int):
    job = only(lived(detail="sums", held_mib_s=held_mib_s))
    assert len(job.map_ms) == maps
    assert job.map_size == ONE_SLOT
    assert job.map_ms[0] < 50_000


def test_week_jobs_names_what_it_left_out():
    never = lived(ended_s=0)
    late = lived(held("map", 1, 2), submitted_at_ms=400 * 86_400_000, ended_s=401 * 86_400)
    running = ImportedJob(WeekJob(job="r", kind="X", queue="q", user="u", name="n", submitted_at_ms=0))
    jobs, notes = week_jobs([lived(held("map", 20, 30)), never, late, running], lambda _: "research")
    assert len(jobs) == 1
    assert [note[:8] for note in notes] == ["1 jobs h", "1 jobs c"]


def test_measured_timing_takes_the_quarter_that_waited_least():
    week = [
        lived(held("map", 10 + lag_s, 40), held("reduce", 30, 50), ended_s=50 + commit_s)
        for lag_s, commit_s in ((8, 1), (9, 2), (30, 3), (90, 9))
    ]
    timing = measured_timing(week)
    assert (timing.am_start_ms, timing.job_commit_ms) == (9000 - 1500 - 200, 2000)
    assert (timing.submit_ms, timing.task_commit_ms) == (0, 0)
    assert timing.nm_heartbeat_ms == HADOOP3.nm_heartbeat_ms
    assert measured_timing([]).am_start_ms == HADOOP3.am_start_ms


def test_nodes_of_different_sizes_count_by_memory():
    groups = [WeekNodes(nodes=3, memory_mib=8192, vcores=8), WeekNodes(nodes=1, memory_mib=16_384, vcores=8)]
    count, size, note = nodes_of(groups)
    assert (count, size) == (5, Resources(8192, 8))
    assert "2 sizes" in note
    with pytest.raises(BadInput, match="--nodes"):
        nodes_of([])


def row(measured_ms: int, replayed_ms: int) -> ReplayedWeekJob:
    return ReplayedWeekJob("j", "q", "u", "n", measured_ms, replayed_ms)


def as_it_was(offs: tuple[int, ...], preempted: tuple[PreemptedTime, ...] = ()) -> AsItWas:
    empty = Result(
        scheme="yarn", jobs=(), lost_work_ms=0, overhead_ms=0, suspensions=0, kills=0, utilisation_ratio=0.0,
        makespan_ms=0, events=0,
    )  # fmt: skip
    return AsItWas("yarn", tuple(row(1000, 1000 + off) for off in offs), preempted, empty)


@pytest.mark.parametrize(
    ("offs", "preempted", "reproduced"),
    [
        ((0, 50, 900), (), True),
        ((0, -51, 900), (), False),
        ((0, 0), (PreemptedTime("a", 1000, 1050),), True),
        ((0, 0), (PreemptedTime("a", 1000, 1051),), False),
        ((0, 0), (PreemptedTime("a", 0, 1),), False),
        ((0, 0), (PreemptedTime("a", 0, 9), PreemptedTime("b", 5, 5), PreemptedTime("c", 5, 5)), True),
    ],
)
def test_week_is_reproduced_within_five_percent_in_the_median(
    offs: tuple[int, ...], preempted: tuple[PreemptedTime, ...], reproduced: bool
):
    assert as_it_was(offs, preempted).is_reproduced is reproduced


def test_scheme_of_a_week_is_yarns_own_preemption_if_it_took_anything():
    assert scheme_of([lived(held("map", 1, 2))]) == "soft-cap"
    assert scheme_of([lived(held("map", 1, 2, ended_by="preempted"))]) == "yarn"
    assert scheme_of([lived(held("map", 1, 2), preempted_containers=1)]) == "yarn"


def test_deviation_has_nine_of_ten_jobs_between():
    assert deviation([row(90, 100)] + [row(100, 100)] * 18 + [row(120, 100)]) == Deviation(900, 1000, 1000)
    assert deviation([row(90, 100), row(120, 100)]) == Deviation(900, 900, 1200)
