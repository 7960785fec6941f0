"""An application of Spark in virtual time: what leaves, what is done twice, what is lost, what comes back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import QueueConfig
from emulator.cluster.executors.spark_master import ASK_AGAIN_MS, SparkMaster
from emulator.cluster.executors.spark_stages import SparkExecutor, cut
from emulator.cluster.resource_manager import application_id, container_id
from emulator.cluster.timing import HADOOP3, Timing
from emulator.experiments.results.runs import run_experiment
from emulator.scenario.from_toml import read_scenario
from emulator.scenario.preparing import prepare
from emulator.virtual.port import VirtualPort
from emulator.virtual.run import cluster_of
from yarnctl.deciding.model import Accepted, Drain, Grow, ObservationRequest, Refused
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job, SparkShape
from yarnctl.traces.parquet import write_parquet
from yarnctl.units import Resources

QUEUES = (
    QueueConfig(name="production", capacity_ratio=0.5, preempting=True),
    QueueConfig(name="research", capacity_ratio=0.5),
)
MAPS, REDUCES = 8, 40
SHAPE = SparkShape(executors=4, block_mib=20, move_mib_per_s=20, start_ms=1000)
ROOT = Path(__file__).parents[2]


def spark(**shape) -> Job:
    """Return an application of two stages, of 1 s and 2 s tasks."""
    return Job(
        name="s", job_class="research", submitted_at_ms=0, map_ms=(1000,) * MAPS, reduce_ms=(2000,) * REDUCES,
        reduce_keys=(1,) * REDUCES, spark=msgspec.structs.replace(SHAPE, **shape),
    )  # fmt: skip


class Stage:
    """One application on a cluster of three nodes, with the port through which it is asked."""

    def __init__(self, job: Job, nodes: int = 3, slots: int = 4) -> None:
        size = Resources(1024 * slots, slots)
        self.cluster = Cluster(
            nodes=nodes, node_size=size, queues=QUEUES, jobs=(job,), timing=HADOOP3, seed=1
        )
        self.port = VirtualPort(self.cluster)
        self.port.drains = True

    def until(self, at_ms: int) -> SparkMaster:
        self.cluster.kernel.run(at_ms)
        (master,) = self.cluster.masters
        assert isinstance(master, SparkMaster)
        return master

    def in_stage(self, stage: int) -> SparkMaster:
        """Play until tasks of a stage run and some of them are done."""
        master = self.until(self.cluster.kernel.now_ms + 5000)
        while master.stages.places[stage].count(-1) > len(master.stages.places[stage]) - 2:
            master = self.until(self.cluster.kernel.now_ms + 100)
        return master

    def ask(
        self, master: SparkMaster, *executors: SparkExecutor, decision: int = 1, idle: bool = False
    ) -> list:
        name = application_id(master.app)
        self.port._applications[name] = master.app
        mates = tuple(f"executor_1_000001_{each.number:09d}" for each in executors)
        return [
            self.port.perform(
                Drain(
                    f"o-{decision}{place}",
                    name,
                    mates[place],
                    container_id(each.container),
                    decision,
                    mates,
                    idle or msgspec.UNSET,
                )
            )
            for place, each in enumerate(executors)
        ]

    def end(self) -> SparkMaster:
        self.cluster.run()
        return self.until(self.cluster.kernel.now_ms)


def first(master: SparkMaster, count: int = 1) -> list[SparkExecutor]:
    return list(master.executors.values())[:count]


def test_alone_it_takes_as_long_as_its_stages_on_its_cores_one_after_the_other():
    stage = Stage(spark())
    master = stage.end()
    begins_ms = min(each for each in (HADOOP3.launch_ms + SHAPE.start_ms,))
    work_ms = MAPS // 4 * 1000 + REDUCES // 4 * 2000
    spent_ms = (master.app.finished_at_ms or 0) - HADOOP3.submit_ms - HADOOP3.am_start_ms
    assert begins_ms + work_ms < spent_ms < begins_ms + work_ms + 6 * 1000, "and a few heartbeats"
    assert (master.lost_ms, master.again_ms, master.drained) == (0, 0, 0)


def test_twice_the_cores_take_about_half_as_long():
    one, two = (Stage(spark(cores=cores)).end().app.finished_at_ms or 0 for cores in (1, 2))
    assert one - two == (MAPS // 4 * 1000 + REDUCES // 4 * 2000) // 2


@pytest.mark.parametrize(
    ("lengths_ms", "most_ms", "tasks_ms"),
    [((10, 3), 0, (10, 3)), ((10, 3), 4, (3, 3, 4, 3)), ((8,), 8, (8,)), ((0,), 5, (0,)), ((), 5, ())],
)
def test_work_is_cut_into_even_tasks(lengths_ms, most_ms, tasks_ms):
    assert cut(lengths_ms, most_ms) == tasks_ms


# --- leaving ------------------------------------------------------------------------------------------


def test_executors_leave_when_their_tasks_have_ended_and_their_blocks_have_moved():
    stage = Stage(spark())
    master = stage.in_stage(1)
    one, two = first(master, 2)
    held = master.stages.places[0].count(one.number)
    asked_ms, rest_ms = stage.cluster.kernel.now_ms, master.rest_ms(one, stage.cluster.kernel.now_ms)
    assert stage.ask(master, one, two) == [Accepted(), Accepted()]
    while one.number in master.executors:
        master = stage.until(stage.cluster.kernel.now_ms + 10)
    took_ms = stage.cluster.kernel.now_ms - asked_ms
    assert max(1000, rest_ms) + held * 1000 <= took_ms <= max(1000, rest_ms) + 2000 + held * 1000 + 1600
    assert one.number not in master.stages.places[0], "its blocks are with the others"
    assert stage.end().lost_ms == 0


@pytest.mark.parametrize(
    ("reduce_ms", "again_ms", "why"),
    [
        ((2000,) * REDUCES, 0, "all end at once: none runs when the next one looks"),
        ((2000, 2600) * (REDUCES // 2), 2600, "one runs on, once, although two have left"),
    ],
    ids=["in step", "out of step"],
)
def test_what_runs_when_the_next_task_looks_for_a_moved_block_is_begun_twice(reduce_ms, again_ms, why):
    stage = Stage(msgspec.structs.replace(spark(), reduce_ms=reduce_ms))
    master = stage.in_stage(1)
    stage.ask(master, *first(master, 2))
    master = stage.end()
    assert master.drained == 2
    assert master.again_ms == again_ms, why


def test_within_the_map_stage_only_blocks_that_stay_on_the_host_are_made_again():
    long = msgspec.structs.replace(spark(executors=3), map_ms=(1000,) * 80)
    apart, together = Stage(long, nodes=4, slots=1), Stage(long, nodes=1)
    for stage in (apart, together):
        master = stage.in_stage(0)
        (gone,) = [
            each
            for each in master.executors.values()
            if each.number == max(place for place in master.stages.places[0] if place != -1)
        ]
        stage.ask(master, gone)
    assert together.end().again_ms > apart.end().again_ms == 0


def test_a_plugin_lowers_the_target_until_it_is_told_to_grow_and_once_only():
    stage = Stage(spark())
    master = stage.in_stage(1)
    stage.ask(master, *first(master, 2), decision=7)
    master = stage.until(stage.cluster.kernel.now_ms + 12_000)
    assert len(master.executors) == master.target == 2
    for _ in range(2):
        assert stage.port.perform(Grow(application_id(master.app), (7,))) == Accepted()
    master = stage.until(stage.cluster.kernel.now_ms + 6000)
    assert len(master.executors) == master.target == 4


def test_by_the_signal_spark_asks_again_by_itself():
    stage = Stage(spark(route="signal"))
    master = stage.in_stage(1)
    (gone,) = first(master)
    stage.ask(master, gone)
    while gone.number in master.executors:
        master = stage.until(stage.cluster.kernel.now_ms + 100)
    assert len(master.executors) == 3
    master = stage.until(stage.cluster.kernel.now_ms + ASK_AGAIN_MS + 3000)
    assert len(master.executors) == 4


def test_it_is_asked_once_and_what_is_not_there_is_refused():
    stage = Stage(spark())
    master = stage.in_stage(1)
    (one,) = first(master)
    assert stage.ask(master, one) == [Accepted()]
    assert stage.ask(master, one) == [Accepted()], "the same order again"
    assert isinstance(stage.ask(master, one, decision=2)[0], Refused), "another one for it"
    stage.end()
    assert master.drained == 1


def shown(stage: Stage, master: SparkMaster) -> list[tuple[str, bool]]:
    stage.port._applications[application_id(master.app)] = master.app
    look = stage.port.observe(ObservationRequest(cluster=False, victims=(application_id(master.app),)))
    views = look.tasks[application_id(master.app)]
    assert list(views) == sorted(views, key=lambda each: (each.remaining_ms, each.container))
    return [(each.kind, each.checkpointable) for each in views]


@pytest.mark.parametrize(("least", "may_leave"), [(1, 3), (3, 1), (9, 0), (0, 4)])
def test_as_many_stay_as_the_submitter_said(least, may_leave):
    stage = Stage(spark(min_executors=least))
    found = shown(stage, stage.in_stage(1))
    assert [able for _, able in found].count(True) == may_leave
    assert {kind for kind, _ in found} == {"executor"}


def test_while_some_are_leaving_no_other_is_a_candidate():
    stage = Stage(spark())
    master = stage.in_stage(1)
    stage.ask(master, *first(master))
    assert not any(able for _, able in shown(stage, master))


def test_executors_are_shown_to_the_mix_alone():
    stage = Stage(spark())
    stage.port.drains = False
    assert shown(stage, stage.in_stage(1)) == []


def test_an_idle_executor_that_gets_a_task_before_the_order_is_read_stays():
    """Three of four are idle until the second stage begins: two get a task, and the third leaves."""
    job = msgspec.structs.replace(spark(), map_ms=(1000,) * 3 + (9000,), reduce_ms=(30_000,) * 2)
    stage = Stage(job)
    master = stage.until(5000)
    while not (last := [run for each in master.executors.values() for run in each.runs]) or len(last) > 1:
        master = stage.until(stage.cluster.kernel.now_ms + 100)
    stage.until(last[0].ends_ms - 500)
    idle = [each for each in master.executors.values() if not each.runs]
    assert len(idle) == 3
    assert stage.ask(master, *idle, decision=7, idle=True) == [Accepted()] * 3
    assert (master.target, master.gone) == (1, {7: 3})
    master = stage.until(last[0].ends_ms + 600)
    stayed = [each for each in idle if each.runs]
    assert [(each.decision, each.leaves) for each in stayed] == [(0, False)] * 2
    assert (master.target, master.gone) == (3, {7: 1}), "what stays is not counted as gone"
    master = stage.until(stage.cluster.kernel.now_ms + 6000)
    assert (len(master.executors), master.drained, master.overhead_ms) == (3, 1, 0)
    for _ in range(2):
        assert stage.port.perform(Grow(application_id(master.app), (7,))) == Accepted()
    master = stage.until(stage.cluster.kernel.now_ms + 6000)
    assert len(master.executors) == master.target == 4
    master = stage.end()
    assert (master.again_ms, master.lost_ms) == (0, 0), "its blocks are served without it"


def test_an_executor_that_stays_after_its_application_has_grown_is_not_requested_twice():
    stage = Stage(spark())
    master = stage.in_stage(1)
    stage.ask(master, *first(master), decision=7, idle=True)
    assert stage.port.perform(Grow(application_id(master.app), (7,))) == Accepted()
    master = stage.until(stage.cluster.kernel.now_ms + 1500)
    assert (master.target, master.gone) == (4, {})


def test_a_killed_executor_takes_its_blocks_with_it():
    stage = Stage(spark())
    master = stage.in_stage(1)
    (one,) = first(master)
    held, now_ms = master.stages.places[0].count(one.number), stage.cluster.kernel.now_ms
    ran_ms = sum(now_ms - run.began_ms for run in one.runs)
    assert held > 0
    master.kill(one.container, "killed", now_ms + 350)
    assert master.lost_ms == ran_ms + held * 1000
    assert stage.end().drained == 0


def test_the_sample_takes_executors_for_production():
    prepared = prepare(*read_scenario(ROOT / "docs/scenarios/spark.toml"))
    assert [bool(job.spark) for job in prepared.jobs if job.job_class == "research"] == [True]
    assert not any(job.spark for job in prepared.jobs if job.job_class == "production")
    found = run_experiment(prepared, workers=1).summaries()
    took_s = {
        name: (round(each.production.mean_s or 0), round(each.research.mean_s or 0))
        for name, each in found.items()
    }  # as the sample's comment says
    assert took_s == {"soft-cap": (129, 173), "yarn-tuned": (80, 179), "mix": (82, 178)}
    assert found["mix"].lost_work_s == found["mix"].kills == 0 < found["yarn-tuned"].lost_work_s


@pytest.mark.parametrize(
    ("line", "told"),
    [("executors = 0", "field spark: executors: 0"), ("cores = 0", "field spark: cores: 0"),
     ("task_ms = -1", "field spark: task_ms: -1"), ("min_executors = -1", "field spark: min_executors: -1"),
     ('route = "shout"', "spark"), ("cpus = 2", "cpus")],
)  # fmt: skip
def test_an_application_that_cannot_be_is_refused_by_its_field(tmp_path, line, told):
    text = 'nodes = 2\nslots = 4\n[[workloads]]\nspec = "synthetic:research-m"\n[workloads.spark]\n'
    file = tmp_path / "spark.toml"
    file.write_text(text + line)
    with pytest.raises(BadInput) as refused:
        prepare(*read_scenario(file))
    assert told in str(refused.value)


class OtherTiming(Timing, frozen=True):
    """Spans of a kind that knows no Spark."""


def test_what_does_not_know_spark_refuses_it_instead_of_playing_mapreduce(tmp_path):
    with pytest.raises(BadInput, match="job s"):
        write_parquet((spark(),), tmp_path / "jobs.parquet")
    with pytest.raises(BadInput, match="job s"):
        cluster_of(
            timing=OtherTiming(),
            nodes=2,
            node_size=Resources(4096, 4),
            queues=QUEUES,
            jobs=(spark(),),
            seed=1,
        )
