"""Executors of Spark on a cluster: who may be asked, what it is predicted to cost, and how one is asked."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.contract.drivers import DETAILS
from tests.unit.attach.fake_cluster import App, FakeCluster, application, container
from tests.unit.attach.test_performing import looking
from tests.unit.hadoop.replaying import Reply
from yarnctl.attach.eligibility.settings_reader import Drainable
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    Drain,
    Grow,
    ObservationRequest,
    Refused,
    TaskView,
    Unknown,
    Withheld,
)
from yarnctl.deciding.reasons.eligibility import (
    DriverStarting,
    MasterUnreachable,
    NoDrainTag,
    OtherKind,
    SettingForbidsDrain,
    SparkTooOld,
)
from yarnctl.deciding.reasons.modes import LockRanOut
from yarnctl.deciding.reasons.outcomes import AttemptUnknown, ExecutorBusy, ForeignAttempt, MasterSilent
from yarnctl.frameworks.spark import rest as spark_rest
from yarnctl.frameworks.spark.again import TasksAgain
from yarnctl.frameworks.spark.configuration import (
    ARCHIVES,
    ATTEMPTS,
    BLOCKS_MAX,
    CELEBORN_FALLBACK,
    DYNAMIC,
    DYNAMIC_MIN,
    FALLBACK,
    FILES,
    LOCAL_BLOCKS,
    PLUGIN,
    PLUGINS,
    REQUESTS,
    REQUESTS_OWNER,
    REQUIRED,
    REQUIRED_BY_SIGNAL,
    SHUFFLE_MANAGER,
    SHUFFLE_SERVICE,
    SHUFFLE_STORAGE,
    BlockPlaces,
    places_in,
)
from yarnctl.frameworks.spark.consent import judge
from yarnctl.frameworks.spark.cost import (
    CostTerms,
    DriverLook,
    ExecutorCost,
    StageNow,
    costs,
    most_near,
    rest_ms,
)
from yarnctl.frameworks.spark.observing import executor_in, name_of
from yarnctl.frameworks.spark.rest import Executor, Stage, StageOfExecutor, StageTask, left_well
from yarnctl.hadoop.wire.tags import charges_bound

BY_SIGNAL = {**REQUIRED, **REQUIRED_BY_SIGNAL, FILES: "file:/opt/a.txt,file:/opt/yarnctl-trap.sh"}
BY_PLUGIN = {**REQUIRED, PLUGINS: PLUGIN, REQUESTS: "/yarnctl/requests", REQUESTS_OWNER: "yarnctl"}
SPARK = application(7)
RECORDED = Path(__file__).parents[2] / "contract" / "recorded"
NOW_MS = 1_795_720_538_400
THREE_STAY = {DYNAMIC: "true", DYNAMIC_MIN: "3"}
IDLE_LEAVES = {DYNAMIC: "true", SHUFFLE_SERVICE: "true"}
FALLS_BACK = frozenset({"have_fallback"})
TERMS = CostTerms(move_bytes_per_ms=1000, leave_ms=2000, return_ms=10_000, order_ms=1500)


JUDGED = [
    (("yarnctl-drain:signal",), BY_SIGNAL, "4.0.1", Drainable("signal", 1)),
    (("x", "yarnctl-drain:signal", "yarnctl-min-executors:3"), BY_SIGNAL, "3.2.0", Drainable("signal", 3)),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, PLUGINS: f"a.B,{PLUGIN}"}, "4.0.1", Drainable("plugin", 1)),
    (("yarnctl-drain:plugin",), BY_PLUGIN | {FALLBACK: "hdfs:///f/"}, "4.0.1",
     Drainable("plugin", 0, traits=FALLS_BACK)),
    (("yarnctl-drain:plugin", "yarnctl-min-executors:2"), BY_PLUGIN | {FALLBACK: "hdfs:///f/"}, "4.0.1",
     Drainable("plugin", 2, traits=FALLS_BACK)),
    (("yarnctl-drain:plugin",), BY_PLUGIN | {FALLBACK: "hdfs:///f"}, "4.0.1",
     Drainable("plugin", 1, traits=FALLS_BACK)),
    (("yarnctl-drain:signal",), BY_SIGNAL | {FALLBACK: "hdfs:///f/"}, "4.0.1",
     Drainable("signal", 1, traits=FALLS_BACK)),
    (("yarnctl-drain:plugin",), BY_PLUGIN | THREE_STAY, "4.0.1", Drainable("plugin", 3)),
    (("yarnctl-drain:signal",), BY_SIGNAL | THREE_STAY, "4.0.1", Drainable("signal", 1)),
    (("yarnctl-drain:plugin",), BY_PLUGIN | IDLE_LEAVES, "4.0.1",
     Drainable("plugin", 1, traits=frozenset({"removes_idle", "leaves_idle"}))),
    (("yarnctl-drain:plugin", "yarnctl-min-executors:2"), BY_PLUGIN | IDLE_LEAVES, "4.0.1",
     Drainable("plugin", 2, traits=frozenset({"removes_idle"}))),
    ((), BY_SIGNAL, "4.0.1", NoDrainTag()),
    (("yarnctl-drain:signal",), BY_SIGNAL, "3.1.2", SparkTooOld("3.1.2")),
    (("yarnctl-drain:signal",), BY_SIGNAL, "", SparkTooOld("")),
    (("yarnctl-drain:signal",), BY_SIGNAL | {FILES: "hdfs:///a/t#yarnctl-trap.sh"}, "4.0.1",
     Drainable("signal", 1)),
    (("yarnctl-drain:signal",), BY_SIGNAL | {FILES: "file:/etc/hosts"}, "4.0.1",
     SettingForbidsDrain(FILES, "file:/etc/hosts", "yarnctl-trap.sh among them")),
    (("yarnctl-drain:signal",), BY_SIGNAL | {FILES: "/x/yarnctl-trap.sh#other"}, "4.0.1",
     SettingForbidsDrain(FILES, "/x/yarnctl-trap.sh#other", "yarnctl-trap.sh among them")),
    (("yarnctl-drain:signal",), {**BY_SIGNAL, "spark.executor.decommission.signal": "PWR"}, "4.0.1",
     SettingForbidsDrain("spark.executor.decommission.signal", "PWR", "TERM")),
    (("yarnctl-drain:signal",), {**BY_SIGNAL, "spark.executor.extraJavaOptions": "-ea -Xrs"}, "4.0.1",
     SettingForbidsDrain("spark.executor.extraJavaOptions", "-ea -Xrs", "no -Xrs")),
    (("yarnctl-drain:signal",), {**BY_SIGNAL, "spark.executor.decommission.signal": "term"}, "4.0.1",
     SettingForbidsDrain("spark.executor.decommission.signal", "term", "TERM")),
    (("yarnctl-drain:signal",), {**BY_SIGNAL, "spark.decommission.enabled": "TRUE"}, "4.0.1",
     Drainable("signal", 1)),
    *[
        (("yarnctl-drain:signal",), {**BY_SIGNAL, name: value}, "4.0.1",
         SettingForbidsDrain(name, value, "no -Xrs"))
        for name, value in [
            ("spark.executor.extraJavaOptions", "*********(redacted)"),
            ("spark.executor.extraJavaOptions", '-ea "-Xrs"'),
            ("spark.executor.defaultJavaOptions", "-XX:+ReduceSignalUsage"),
            ("spark.executorEnv.JAVA_TOOL_OPTIONS", "-Xrs"),
        ]
    ],
    (("yarnctl-drain:signal",), {**BY_SIGNAL, ARCHIVES: "file:/s/sparkr.zip#sparkr"}, "4.0.1",
     SettingForbidsDrain(ARCHIVES, "file:/s/sparkr.zip#sparkr",
                         "no package of R, because the signal ends its processes")),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, ARCHIVES: "file:/s/sparkr.zip#sparkr"}, "4.0.1",
     Drainable("plugin", 1)),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, BLOCKS_MAX: "10g"}, "4.0.1",
     SettingForbidsDrain(BLOCKS_MAX, "10g", "no limit, because blocks that exceed it are lost")),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, BLOCKS_MAX: "10g", FALLBACK: "hdfs:///f/"}, "4.0.1",
     Drainable("plugin", 0, traits=FALLS_BACK)),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, ATTEMPTS: "3"}, "4.0.1",
     SettingForbidsDrain(ATTEMPTS, "3", "at least 4, because a drain can repeat a stage")),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, ATTEMPTS: "10"}, "4.0.1", Drainable("plugin", 1)),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, PLUGINS: "a.B"}, "4.0.1",
     SettingForbidsDrain(PLUGINS, "a.B", PLUGIN)),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, REQUESTS_OWNER: "eve"}, "4.0.1",
     SettingForbidsDrain(REQUESTS_OWNER, "eve", "yarnctl")),
    (("yarnctl-drain:plugin",), {**BY_PLUGIN, REQUESTS: "/other"}, "4.0.1",
     SettingForbidsDrain(REQUESTS, "/other", "/yarnctl/requests")),
    (("yarnctl-drain:plugin",), {PLUGINS: PLUGIN}, "4.0.1",
     SettingForbidsDrain("spark.decommission.enabled", "", "true")),
]  # fmt: skip


@pytest.mark.parametrize(("tags", "settings", "version", "expected"), JUDGED)
def test_a_tag_allows_it_and_the_drivers_settings_must_hold_it(tags, settings, version, expected):
    assert judge(tags, settings, version, "/yarnctl/requests", "yarnctl") == expected


# --- what it costs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_ms", "spans_ms", "left_ms"),
    [
        (0, (7000.0, 9000.0), 7000),
        (6000, (7000.0, 9000.0), 1000),
        (8000, (7000.0, 9000.0), 1000),  # one of the slow ones
        (9500, (7000.0, 9000.0), 9500),  # slower than all but a few: as long again
        (500, (), -1),
        (-1, (7000.0, 9000.0), -1),
    ],
)
def test_the_rest_of_a_task_by_those_that_have_finished(age_ms, spans_ms, left_ms):
    assert rest_ms(age_ms, spans_ms) == left_ms


def executor(
    name: str,
    host: str = "h1",
    *,
    cached: int = 0,
    memory: int = 0,
    blocks: int = 0,
    cores: int = 1,
    active: bool = True,
) -> Executor:
    return Executor(
        name,
        f"{host}:1",
        active,
        memory_used=cached,
        memory_max=memory,
        cores=cores,
        cached_partitions=blocks,
    )


def stage(number: int, *, complete: int = 4, read: int = 0, wrote: dict[str, tuple[int, int]] | None = None):
    found = {name: StageOfExecutor(count, size) for name, (count, size) in (wrote or {}).items()}
    return Stage(number, complete=complete, shuffle_read=read, by_executor=found)


def running(*tasks: tuple[str, int]) -> tuple[StageTask, ...]:
    return tuple(StageTask(name, "RUNNING", launched(age_ms)) for name, age_ms in tasks)


def launched(age_ms: int) -> str:
    at = datetime.fromtimestamp((NOW_MS - age_ms) / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}GMT"


TWO = (executor("driver", "h0"), executor("1", "h1"), executor("2", "h2", cores=2))
SPANS = (4000.0, 6000.0)


def test_between_stages_an_executor_leaves_as_soon_as_its_blocks_have_moved():
    look = DriverLook((executor("1", cached=3_000_000), TWO[2]), (), (stage(1, wrote={"1": (4, 2_000_000)}),))
    found = costs(look, TERMS, NOW_MS)["1"]
    assert (found.room_in_ms, found.rest_ms, found.moved_bytes) == (8500, 0, 5_000_000)
    assert (found.lost_ms, found.overhead_ms) == (0, 17_000)


def test_within_a_reduce_stage_each_remaining_core_may_begin_a_task_again():
    now = StageNow(stage(2, read=9), running(("1", 1000), ("2", 1000)), SPANS)
    found = costs(DriverLook(TWO, (now,), (stage(1, wrote={"1": (4, 10)}),)), TERMS, NOW_MS)
    assert (found["1"].room_in_ms, found["1"].lost_ms, found["1"].bound_ms) == (5000, 2000, 2 * 4000)
    assert (found["2"].room_in_ms, found["2"].lost_ms, found["2"].bound_ms) == (5000, 1000, 1 * 4000)


def test_a_stage_that_reads_what_another_job_wrote_is_reducing():
    now = StageNow(stage(2, read=9), running(("1", 1000), ("2", 1000)), SPANS)
    assert costs(DriverLook(TWO, (now,), ()), TERMS, NOW_MS)["1"].bound_ms == 2 * 4000


def test_a_stage_that_has_just_begun_behind_a_shuffle_counts_as_reducing():
    now = StageNow(stage(2, complete=0), running(("2", 100)), ())
    found = costs(DriverLook(TWO, (now,), (stage(1, wrote={"1": (4, 10)}),)), TERMS, NOW_MS)
    assert found["2"].room_in_ms == -1, "no finished task tells how long it takes"
    assert found["1"].room_in_ms == 1500 + 2000


@pytest.mark.parametrize(
    ("age_ms", "tasks", "spans_ms", "room_in_ms"),
    [
        (1000, 9, SPANS, 3000 + 2000),  # its task outlasts the order's way
        (3000, 5, SPANS, 1500 + 2000),  # it ends sooner, and no task waits
        (3000, 9, SPANS, 1000 + 4000 + 2000),  # it ends sooner, and is followed by another
    ],
)
def test_a_task_that_ends_before_the_order_arrives_is_followed_by_another(
    age_ms, tasks, spans_ms, room_in_ms
):
    at = Stage(2, tasks=tasks, active=1, complete=4)
    look = DriverLook(TWO, (StageNow(at, running(("1", age_ms)), spans_ms),), ())
    assert costs(look, TERMS, NOW_MS)["1"].room_in_ms == room_in_ms


def test_an_idle_executor_of_a_stage_of_unknown_tasks_is_no_candidate():
    look = DriverLook(TWO, (StageNow(Stage(2, tasks=9, active=1), running(("2", 100)), ()),), ())
    assert costs(look, TERMS, NOW_MS)["1"].room_in_ms == -1


def mapping(*, done: int = 5, tasks: int = 40, hosts: str = "h1 h1 h2 h2") -> DriverLook:
    """Return a look into a map stage: executor 1 has finished ``done`` maps and runs one."""
    alive = tuple(executor(str(place + 1), host) for place, host in enumerate(hosts.split()))
    at = Stage(1, tasks=tasks, active=1, complete=done, indices=done, shuffle_write=9)
    at = msgspec.structs.replace(at, by_executor={"1": StageOfExecutor(done, 9)})
    return DriverLook(alive, (StageNow(at, running(("1", 0)), SPANS),), (), (), (at,))


@pytest.mark.parametrize(("done", "task_ms"), [(8, 3000), (9, 4000)])
def test_the_first_tasks_of_each_core_do_not_lengthen_the_loss_of_a_young_stage(done, task_ms):
    look = mapping(done=done)
    now = look.active[0]._replace(quarter_ms=3000.0)
    found = costs(look._replace(active=(now,)), TERMS, NOW_MS)["1"]
    assert found.lost_ms == (done + 1) * task_ms // 3
    assert found.bound_ms == most_near(done + 1, 1, 3) * task_ms


FOLDER = BlockPlaces(have_fallback=True)


@pytest.mark.parametrize(
    ("look", "places", "lost_ms", "bound_ms"),
    [
        (mapping(), LOCAL_BLOCKS, 6 * 4000 / 3, 4 * 4000),  # one of three peers is near
        (mapping(), FOLDER, 6 * 4000 / 4, 3 * 4000),  # the storage receives as many as a peer
        (mapping(), BlockPlaces(are_remote=True), 0, 0),
        (mapping(hosts="h1 h2 h3"), LOCAL_BLOCKS, 0, 0),
        (mapping(hosts="[fe80::1] [fe80::2] [fe80::3]"), LOCAL_BLOCKS, 0, 0),
        (mapping(hosts="h1 h1"), LOCAL_BLOCKS, 6 * 4000, 6 * 4000),
        (mapping(tasks=6), LOCAL_BLOCKS, 0, 4 * 4000),  # the stage ends before the executor has left
    ],
)
def test_maps_whose_blocks_stay_on_the_host_are_expected_to_run_again(look, places, lost_ms, bound_ms):
    found = costs(look, TERMS, NOW_MS, places=places)["1"]
    assert (found.lost_ms, found.bound_ms) == (lost_ms, bound_ms)


def test_blocks_on_reliable_storage_do_not_move():
    assert costs(mapping(), TERMS, NOW_MS)["1"].moved_bytes == 9
    assert costs(mapping(), TERMS, NOW_MS, places=BlockPlaces(are_remote=True))["1"].moved_bytes == 0


@pytest.mark.parametrize("blocks", [12, 100, 101])
@pytest.mark.parametrize("peers", [3, 8, 12, 30])
def test_bound_of_near_blocks_holds_in_95_of_100_moves(peers, blocks):
    """Blocks are drawn as Spark moves them: at most eight peers, drawn by chance, each takes the next."""
    draws, near, above = random.Random(peers), max(1, peers // 6), 0
    most = most_near(blocks, near, peers)
    for _ in range(2000):
        movers = draws.sample(range(peers), min(peers, 8))
        above += sum(draws.choice(movers) < near for _ in range(blocks)) > most
    assert 0.01 * 2000 <= above <= 0.07 * 2000


SERVED = BlockPlaces(removes_idle=True)


@pytest.mark.parametrize(
    ("rested_ms", "active", "idle"),
    [
        (2000, (), ["1", "2"]), (1999, (), []), (None, (), ["1", "2"]),
        (2000, (stage(2, complete=8, wrote={"2": (8, 1)}),), ["1"]),  # 2 had tasks there, and has none now
    ],
)  # fmt: skip
def test_an_executor_is_idle_when_it_had_no_task_for_the_span_of_the_option(rested_ms, active, idle):
    ended = () if rested_ms is None else (Stage(1, completed=launched(rested_ms)),)
    now = tuple(StageNow(each, (), SPANS) for each in active)
    look = DriverLook((executor("1"), executor("2")), now, (), attempts=(*ended, *active))
    found = costs(look, TERMS._replace(idle_ms=2000), NOW_MS, places=SERVED)
    assert [name for name, each in found.items() if each.is_idle] == idle


def test_an_idle_executor_with_a_shuffle_service_costs_nothing_and_moves_nothing():
    look = DriverLook(
        (executor("1"), executor("2", blocks=1)), (), (stage(1, wrote={"1": (4, 10), "2": (4, 10)}),)
    )
    found = costs(look, TERMS, NOW_MS, places=SERVED)
    assert found["1"] == ExecutorCost(1500 + 2000, 0, 0, 0, 0)
    assert found["2"].moved_bytes == 10, "cached partitions move"
    assert costs(look, TERMS, NOW_MS)["1"].overhead_ms > 0
    assert costs(mapping(), TERMS, NOW_MS, places=SERVED)["2"].overhead_ms > 0, "the next map will be its own"


def drained(look: DriverLook, again: int, *, over: bool = False) -> DriverLook:
    """Return a later look: executor 1 has left, and ``again`` tasks completed a second time."""
    at = look.attempts[0]
    at = msgspec.structs.replace(
        at, complete=at.complete + again, indices=at.complete, status="COMPLETE" if over else "ACTIVE"
    )
    gone = msgspec.structs.replace(
        look.executors[0], is_active=False, remove_reason="Executor decommission: x"
    )
    return look._replace(executors=(gone, *look.executors[1:]), attempts=(at,))


@pytest.mark.parametrize(
    ("again", "over", "later_ms", "maps"),
    [
        (0, True, 0, 4 / 6),
        (2, True, 0, 1),
        (8, True, 0, 2),
        (90, True, 0, 4),
        (8, False, 11_999, 1),  # tasks of 6 s: those that run again may not have ended
        (8, False, 12_000, 2),
    ],
)
def test_tasks_that_ran_again_correct_the_expectation(again, over, later_ms, maps):
    tasks, look = TasksAgain(), mapping()
    tasks.expect(look, costs(look, TERMS, NOW_MS))
    later = drained(look, again, over=over)
    tasks.ratios(later, NOW_MS)
    found = tasks.ratios(later, NOW_MS + later_ms)
    assert found.maps == pytest.approx(maps)
    assert found.reduces == 1
    corrected = costs(mapping(), TERMS, NOW_MS, ratios=found)["1"]
    assert corrected.lost_ms == pytest.approx(min(6, 2 * maps) * 4000, abs=1)
    assert corrected.bound_ms >= corrected.lost_ms


def test_a_stage_that_the_driver_has_forgotten_keeps_its_count():
    tasks, look = TasksAgain(), mapping()
    tasks.expect(look, costs(look, TERMS, NOW_MS))
    later = drained(look, 8, over=True)
    assert tasks.ratios(later, NOW_MS).maps == 2
    assert tasks.ratios(later._replace(attempts=()), NOW_MS).maps == 2


def test_an_executor_that_did_not_leave_by_an_order_corrects_nothing():
    tasks, look = TasksAgain(), mapping()
    tasks.expect(look, costs(look, TERMS, NOW_MS))
    later = drained(look, 9, over=True)
    lost = msgspec.structs.replace(later.executors[0], remove_reason="Executor Process Lost")
    assert tasks.ratios(later._replace(executors=(lost,)), NOW_MS) == (1, 1)


CELEBORN = {SHUFFLE_MANAGER: "org.apache.spark.shuffle.celeborn.SparkShuffleManager",
            SHUFFLE_STORAGE: "org.apache.spark.shuffle.celeborn.CelebornShuffleDataIO"}  # fmt: skip
UNIFFLE = {SHUFFLE_MANAGER: "org.apache.spark.shuffle.RssShuffleManager",
           SHUFFLE_STORAGE: "org.apache.spark.shuffle.RssShuffleDataIo"}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "version", "remote"),
    [
        ({**CELEBORN, CELEBORN_FALLBACK: "NEVER"}, "3.5.1", True),
        (CELEBORN, "3.5.1", False),  # it may fall back to Spark's own shuffle
        (UNIFFLE, "4.0.1", True),
        (UNIFFLE, "3.4.4", False),
        ({SHUFFLE_MANAGER: UNIFFLE[SHUFFLE_MANAGER]}, "4.0.1", False),
        ({}, "4.0.1", False),
    ],
)
def test_shuffle_is_remote_only_where_it_is_declared_reliable(settings, version, remote):
    assert places_in(settings, "signal", version).are_remote is remote


def test_only_the_plugin_with_a_shuffle_service_removes_idle_executors():
    served = {SHUFFLE_SERVICE: "true"}
    assert places_in(served, "plugin", "4.0.1").removes_idle
    assert not places_in(served, "signal", "4.0.1").removes_idle
    assert not places_in({}, "plugin", "4.0.1").removes_idle


@pytest.mark.parametrize(
    ("tags", "bound"),
    [((), False), (("yarnctl-charge:expected",), False), (("yarnctl-charge:BOUND",), True),
     (("yarnctl-charge:all",), True)],
)  # fmt: skip
def test_owner_of_a_job_chooses_what_a_drain_is_charged(tags, bound):
    assert charges_bound(tags) is bound


PARTITIONS = (Stage(0, complete=4, run_ms=8_000), Stage(1, complete=2, run_ms=10_000))  # of 5 s at most


def test_the_last_bears_that_the_whole_cache_is_computed_again():
    """Three partitions, by tasks of 5 s; they have room in the memory of either."""
    alive = (
        executor("1", "h1", memory=12_000_000, blocks=2),
        executor("2", "h2", cached=9_000_000, memory=12_000_000, blocks=1),
    )
    found = costs(DriverLook(alive, (), (), PARTITIONS), TERMS, NOW_MS)
    assert {name: each.lost_ms for name, each in found.items()} == {"1": 0, "2": 3 * 5_000}


@pytest.mark.parametrize(
    ("memory", "may_leave"),
    [
        (4_000_000, ["0", "1", "2"]),  # even one has room for all
        (3_100_000, ["0"]),  # each wastes the room of a partition: two have 5.5 MB, one has too little
        (1_900_000, ["0"]), (1_800_000, []), (0, []),
    ],
)  # fmt: skip
def test_an_executor_whose_partitions_find_no_memory_elsewhere_stays(memory, may_leave):
    """Nine partitions, 3 MB in all, on three executors."""
    alive = tuple(executor(str(at), f"h{at}", cached=1_000_000, memory=memory, blocks=3) for at in range(3))
    found = costs(DriverLook(alive, (), (), PARTITIONS), TERMS, NOW_MS)
    assert [name for name, each in found.items() if each.room_in_ms >= 0] == may_leave
    assert list(found)[: 3 - len(may_leave)] == [name for name, each in found.items() if each.room_in_ms < 0]


def test_an_executor_without_cached_partitions_leaves_where_memory_is_full():
    alive = (executor("1", memory=9), executor("2", "h2", cached=9, memory=9, blocks=1))
    found = costs(DriverLook(alive, (), (), PARTITIONS), TERMS, NOW_MS)
    assert found["1"].room_in_ms >= 0
    assert found["1"].lost_ms == 0


def test_who_may_not_leave_keeps_the_cache():
    """The end of executor 1 is not known: it stays."""
    alive = tuple(executor(str(at), f"h{at}", cached=9, memory=36, blocks=1) for at in (1, 2))
    now = StageNow(stage(2, complete=0), running(("1", 100)), ())
    found = costs(DriverLook(alive, (now,), (), PARTITIONS), TERMS, NOW_MS)
    assert (found["2"].room_in_ms >= 0, found["2"].lost_ms) == (True, 0)


def test_the_driver_and_executors_that_are_gone_are_no_candidates():
    look = DriverLook((*TWO, executor("3", active=False)), (), ())
    assert list(costs(look, TERMS, NOW_MS)) == ["1", "2"]


@pytest.mark.parametrize(
    ("reason", "well"),
    [("Executor decommission: spark scale down", True), ("Executor Process Lost", False),
     ("Container from a bad node: container_1 on host: h. Exit status: 143.", False),
     ("Container container_1 on host: h was preempted.", True),
     ("Executor heartbeat timed out after 120000 ms", False), ("Executor killed by driver.", True)],
)  # fmt: skip
def test_a_driver_says_whether_an_executor_left_by_itself(reason, well):
    assert left_well(reason) is well


def test_what_a_real_driver_answered_gives_predictions_of_its_length():
    """Tasks of 3.6 s: by the recorded ages and run times, not by ``duration``, which said some ms."""
    told = json.loads((RECORDED / "spark-4.0.1.json").read_text(encoding="utf-8"))["answers"]
    decoded = {path: json.dumps(answer).encode() for path, answer in told.items()}
    active = "stages/2/0"
    spans = spark_rest.QUANTILES.read(decoded[f"{active}/taskSummary?quantiles=0.5,0.95"]).spans_ms
    running = spark_rest.TASKS.read(decoded[f"{active}/taskList?status=running&offset=0&length=10000"])
    now = StageNow(spark_rest.STAGE.read(decoded[f"{active}?{DETAILS}"]), tuple(running), spans)
    written = tuple(spark_rest.STAGE.read(decoded[f"stages/{n}/0?{DETAILS}"]) for n in (1,))
    executors = tuple(spark_rest.EXECUTORS.read(decoded["allexecutors"]))
    began_ms = [each.launched for each in running]
    newest = datetime.fromisoformat(max(began_ms).removesuffix("GMT")).replace(tzinfo=UTC)
    now_ms = int(newest.timestamp() * 1000)
    found = costs(DriverLook(executors, (now,), written), TERMS, now_ms + 500)
    assert spans == (3592.0, 3666.0)
    assert len(found) == 5
    assert all(2500 < each.rest_ms < 3600 for each in found.values()), found
    assert all((each.lost_ms, each.bound_ms) == (3592, 4 * 3592) for each in found.values()), found
    cached = {each.executor: each.cached_bytes for each in executors}
    assert {found[name].moved_bytes - cached[name] for name in found} == {9040, 11222, 11278, 11286, 11294}
    assert executors[0].container.startswith("container_")


# --- on a cluster ---------------------------------------------------------------------------------------


class Driver:
    """What the driver of an application answers, to a FakeCluster."""

    def __init__(self, fake: FakeCluster, executors: int = 3, tags: str = "yarnctl-drain:signal") -> None:
        self.fake = fake
        self.app = fake.add(App(7, "research", kind="SPARK", tags=tags))
        for place in range(executors + 1):
            self.app.containers[container(7, place + 1)] = (f"n{1 + place % 2}:1", 0)
        self.settings = dict(BY_SIGNAL)
        self.version = "4.0.1"
        self.rows = [self._row(str(place + 1), container(7, place + 2)) for place in range(executors)]
        self.rows.append({"id": "driver", "hostPort": "n1:9", "isActive": True})
        self.jobs: list[dict] = []
        self.stages: list[dict] = []
        self.parts: dict[int, dict] = {}
        self.read: list[str] = []
        self.gauges: dict[str, object] = {}
        self.spans_ms: list[float] = []
        fake.drivers[self.app.id] = self.answer

    @staticmethod
    def _row(name: str, held: str) -> dict:
        return {
            "id": name, "hostPort": f"h{name}:1", "isActive": True, "memoryUsed": 0, "diskUsed": 0,
            "totalCores": 1,
            "executorLogs": {"stderr": f"http://n:8042/node/containerlogs/{held}/ann/stderr?start=-4096"},
        }  # fmt: skip

    def answer(self, path: str, query: Mapping[str, str]) -> Reply | None:
        below = path.removeprefix(f"applications/{SPARK}/")
        self.read.append(below)
        below = re.sub(r"(stages/[0-9]+)/[0-9]+", r"\1/0", below)
        if match := re.fullmatch(r"stages/(\d+)/0", below):
            return self._stage(int(match[1]), details=query.get("details", "true") == "true")
        found = {
            "version": {"spark": self.version},
            "environment": {"sparkProperties": [list(pair) for pair in self.settings.items()]},
            "allexecutors": self.rows,
            "jobs": self.jobs,
            "stages": self.stages,
            "metrics/json": {"version": "4.0.0", "gauges": self.gauges},
            "stages/1/0/taskList": [],
            "stages/1/0/taskSummary": {"executorRunTime": self.spans_ms},
        }.get(below)
        return None if found is None else Reply(json.dumps(found))

    def _stage(self, number: int, *, details: bool) -> Reply | None:
        """As Spark has it: parts by executor, and every task, with the details alone."""
        row = next((each for each in self.stages if each["stageId"] == number), None)
        if row is None:
            return None
        if not details:
            return Reply(json.dumps(row))
        return Reply(json.dumps({**row, "tasks": {}, "executorSummary": self.parts.get(number, {})}))

    def gone(self, name: str, reason: str) -> None:
        row = next(row for row in self.rows if row["id"] == name)
        row.update(isActive=False, removeReason=reason)
        del self.app.containers[container(7, int(name) + 1)]


def observed(port, *orders: str) -> dict[str, TaskView]:
    port.observe(ObservationRequest(orders=orders))
    found = port.observe(ObservationRequest(victims=(SPARK,), orders=orders))
    return {task.attempt: task for task in found.tasks.get(SPARK, ())}


def drain(name: str = "1", order: str = "o-1") -> Drain:
    attempt = name_of(SPARK, name)
    return Drain(order, SPARK, attempt, container(7, int(name) + 1), 1, (attempt,))


def test_executors_are_named_after_their_application():
    assert name_of("application_17_0003", "12") == "executor_17_0003_000012"
    assert executor_in("application_17_0003", "executor_17_0003_000012") == "12"
    assert executor_in("application_17_0004", "executor_17_0003_000012") is None
    assert executor_in("application_17_0003", "attempt_17_0003_m_000012_0") is None


def test_executors_are_shown_to_the_mix_alone_and_one_stays(fake):
    Driver(fake)
    assert observed(looking(fake)) == {}
    shown = observed(looking(fake, levers=True))
    assert [(name[-1], each.checkpointable, each.kind) for name, each in shown.items()] == [
        ("1", True, "executor"),
        ("2", True, "executor"),
        ("3", False, "executor"),
    ]
    assert {each.container for each in shown.values()} == {container(7, place) for place in (2, 3, 4)}


def test_what_an_executor_wrote_has_to_move_and_a_finished_stage_is_read_once(fake):
    driver = Driver(fake)
    driver.jobs = [{"jobId": 1, "status": "RUNNING", "stageIds": [1, 2]}]
    driver.stages = [
        {"stageId": 2, "status": "PENDING", "numTasks": 3},
        {"stageId": 1, "status": "COMPLETE", "numTasks": 3, "numCompleteTasks": 3,
         "shuffleWriteBytes": 90_000_000},
    ]  # fmt: skip
    driver.parts[1] = {"1": {"succeededTasks": 3, "shuffleWrite": 90_000_000}}
    port = looking(fake, levers=True)
    first, second = observed(port), observed(port)
    room_ms = {name[-1]: each.remaining_ms for name, each in first.items()}
    assert room_ms["1"] > room_ms["2"] == room_ms["3"], "it leaves last, for it holds every block"
    assert [each.remaining_ms for each in second.values()] == [each.remaining_ms for each in first.values()]
    assert driver.read.count("stages/1/0") == 1
    assert driver.read.count("allexecutors") >= 2


def mapping_driver(fake: FakeCluster, tags: str) -> Driver:
    """Return a driver within a map stage: executors 1 and 2 share a host, 1 has finished six maps."""
    driver = Driver(fake, tags=tags)
    driver.rows[1]["hostPort"] = "h1:2"
    driver.stages = [{"stageId": 1, "status": "ACTIVE", "numTasks": 40, "numCompleteTasks": 6,
                      "numCompletedIndices": 6, "shuffleWriteBytes": 9}]  # fmt: skip
    driver.parts[1] = {"1": {"succeededTasks": 6, "shuffleWrite": 9}}
    driver.spans_ms = [4000.0, 4000.0, 6000.0]
    return driver


@pytest.mark.parametrize(
    ("tags", "lost_ms"),
    [("yarnctl-drain:signal", 3 * 4000), ("yarnctl-drain:signal,yarnctl-charge:bound", 5 * 4000)],
)
def test_a_drain_in_a_map_stage_is_charged_what_its_owner_chose(fake, tags, lost_ms):
    mapping_driver(fake, tags)
    port = looking(fake, levers=True)
    shown = observed(port)
    assert {name[-1]: fake.now_ms - each.since_ms for name, each in shown.items()} == {
        "1": lost_ms, "2": 0, "3": 0
    }  # fmt: skip
    bound_ms = port.observe(ObservationRequest(victims=(SPARK,))).bound_ms
    assert bound_ms == {name: 5 * 4000 for name in shown if name.endswith("1")}, "none where it is 0"


def test_maps_that_ran_again_make_the_next_drain_dearer(fake):
    """Four more than expected: of the next executor's six maps all are expected to run again."""
    driver = mapping_driver(fake, "yarnctl-drain:signal")
    port = looking(fake, levers=True)
    observed(port)
    driver.gone("1", "Executor decommission: yarnctl")
    driver.rows.append(Driver._row("4", container(7, 5)) | {"hostPort": "h1:3"})
    driver.app.containers[container(7, 5)] = ("n2:1", 0)
    driver.parts[1] = {"4": {"succeededTasks": 4, "shuffleWrite": 9}}
    assert lost_of(port, fake)["4"] == 2 * 4000, "what ran again is not known yet"
    fake.now_ms += 12_000
    driver.stages[0] |= {"numCompleteTasks": 13}
    assert lost_of(port, fake)["4"] == 2 * 4000 * (4 + 7) / (4 + 3) // 1


def lost_of(port, fake: FakeCluster) -> dict[str, int]:
    return {name[-1]: fake.now_ms - each.since_ms for name, each in observed(port).items()}


def test_as_many_stay_as_the_submitter_said(fake):
    Driver(fake, tags="yarnctl-drain:signal,yarnctl-min-executors:3")
    assert not any(each.checkpointable for each in observed(looking(fake, levers=True)).values())


@pytest.mark.parametrize(
    ("more", "may_leave"),
    [
        ({}, [True, True, True]),
        ({DYNAMIC: "true", DYNAMIC_MIN: "0"}, [True, True, True]),
        ({DYNAMIC: "true", DYNAMIC_MIN: "1"}, [True, True, False]),  # Spark would request it again at once
    ],
)
def test_all_may_leave_where_the_job_may_be_suspended_whole(fake, more, may_leave):
    driver = Driver(fake, tags="yarnctl-drain:plugin")
    driver.settings = {**BY_PLUGIN, FALLBACK: "hdfs:///spark/fallback/", **more}
    shown = observed(looking(fake, levers=True))
    assert [each.checkpointable for each in shown.values()] == may_leave


@pytest.mark.parametrize(
    ("more", "blocks", "may_leave"),
    [
        (IDLE_LEAVES, 0, [True, True, True]),
        (IDLE_LEAVES, 1, [True, True, False]),  # one has a cached partition: as many stay as always
        (
            {SHUFFLE_SERVICE: "true"},
            0,
            [True, True, False],
        ),  # the next task would wait for the order to return
        ({DYNAMIC: "true"}, 0, [True, True, False]),
    ],
)
def test_an_idle_application_gives_all_executors_where_spark_requests_them_by_itself(
    fake, more, blocks, may_leave
):
    driver = Driver(fake, tags="yarnctl-drain:plugin")
    driver.settings = {**BY_PLUGIN, **more}
    driver.rows[2]["rddBlocks"] = blocks
    shown = observed(looking(fake, levers=True))
    assert [each.checkpointable for each in shown.values()] == may_leave


def test_why_an_application_is_left_alone_is_said(fake):
    driver = Driver(fake)
    driver.settings["spark.decommission.enabled"] = "false"
    port = looking(fake, levers=True)
    assert observed(port) == {}
    assert port.why_not[SPARK] == SettingForbidsDrain("spark.decommission.enabled", "false", "true")
    plain = looking(fake)
    observed(plain)
    assert plain.why_not[SPARK] == OtherKind("SPARK")


@pytest.mark.parametrize(("elapsed_ms", "kind"), [(59_999, DriverStarting), (60_000, MasterUnreachable)])
def test_a_starting_driver_need_not_answer_yet(fake, elapsed_ms, kind):
    Driver(fake)
    fake.drivers.pop(SPARK)
    (spark,) = [each for each in fake.apps.values() if each.id == SPARK]
    spark.elapsed_ms = elapsed_ms
    assert isinstance(looking(fake, levers=True).why_not[SPARK], kind)


def test_a_driver_that_refuses_is_not_starting_for_good_while_its_row_does_not_change(fake):
    Driver(fake)
    fake.drivers.pop(SPARK)
    (spark,) = [each for each in fake.apps.values() if each.id == SPARK]
    spark.elapsed_ms = 30_000
    port = looking(fake, levers=True)
    assert isinstance(port.why_not[SPARK], DriverStarting)
    fake.now_ms += 30_000
    observed(port)
    assert isinstance(port.why_not[SPARK], MasterUnreachable)


def test_a_driver_that_does_not_answer_is_asked_again_later(fake):
    Driver(fake)
    answer = fake.drivers.pop(SPARK)
    port = looking(fake, levers=True)
    assert isinstance(port.why_not[SPARK], MasterUnreachable)
    fake.drivers[SPARK] = answer
    fake.now_ms += 5000
    assert len(observed(port)) == 3
    fake.drivers.pop(SPARK)
    assert port.observe(ObservationRequest(victims=(SPARK,))).unreachable == (SPARK,)


def test_an_executor_is_asked_once_by_a_signal_to_its_container(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    assert [port.perform(drain()), port.perform(drain())] == [Accepted(), Accepted()]
    assert fake.changes == [f"GRACEFUL_SHUTDOWN {container(7, 2)}"]


def test_drain_asks_for_permission_again_right_before_the_signal(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    answers = [None, LockRanOut()]
    port.permission.host = lambda: answers.pop(0)
    assert port.perform(drain()) == Withheld(LockRanOut())
    assert (answers, fake.changes) == ([], [])


def test_while_some_leave_no_other_is_a_candidate(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    assert any(each.checkpointable for each in observed(port).values())
    port.perform(drain())
    assert not any(each.checkpointable for each in observed(port, "o-1").values())


def test_an_executor_that_has_not_left_by_its_order_does_not_count_as_one_that_stays(fake):
    """Spark takes no order back: of the other two one stays, and the first is no candidate."""
    Driver(fake)
    port = looking(fake, levers=True)
    observed(port)
    port.perform(drain("3"))
    assert {name[-1]: each.checkpointable for name, each in observed(port).items()} == {"1": True, "2": False}


def test_an_executor_with_an_idle_order_that_had_a_task_again_stays_a_candidate(plugged):
    port = looking(plugged.fake, levers=True)
    observed(port)
    port.perform(msgspec.structs.replace(drain("3"), idle=True))
    assert {name[-1] for name in observed(port)} == {"1", "2", "3", "4"}


@pytest.mark.parametrize(("attempt", "shown"), [(0, 3), (1, 3), (2, 0)])
def test_a_stage_that_was_repeated_twice_is_left_alone(fake, attempt, shown):
    """Spark ends a job at the fourth attempt at a stage, and each order in a reduce stage may use one."""
    driver = Driver(fake)
    driver.stages = [{"stageId": 1, "attemptId": attempt, "status": "ACTIVE", "numTasks": 40,
                      "shuffleReadBytes": 9, "numCompleteTasks": 4}]  # fmt: skip
    driver.spans_ms = [4000.0, 4000.0, 6000.0]
    assert len(observed(looking(fake, levers=True))) == shown


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda d: d.gone("1", "Executor decommission"), Refused(ExecutorBusy("Executor decommission"))),
        (lambda d: d.rows.pop(0), Refused(ExecutorBusy("unknown"))),
        (
            lambda d: d.rows[0]["executorLogs"].update(stderr=f"http://n/{container(7, 9)}/x"),
            Refused(ExecutorBusy(f"in {container(7, 9)}")),
        ),
    ],
)
def test_an_executor_that_is_not_there_any_more_is_not_asked(fake, change, outcome):
    driver = Driver(fake)
    port = looking(fake, levers=True)
    observed(port)
    change(driver)
    assert port.perform(drain()) == outcome
    assert fake.changes == []


def test_what_may_not_be_asked_is_refused_and_nothing_is_sent(fake):
    driver = Driver(fake)
    foreign = Drain("o-2", SPARK, "executor_1_0001_000001", container(7, 2), 1, ())
    port = looking(fake, levers=True)
    assert port.perform(foreign) == Refused(ForeignAttempt(foreign.attempt, SPARK))
    assert port.perform(drain(order="o-3")) == Accepted()
    fake.changes.clear()
    assert looking(fake).perform(drain()) == Refused(OtherKind("SPARK"))
    assert isinstance(looking(fake, levers=True, enforce=False).perform(drain()), Withheld)
    driver.app.tags = ""
    assert looking(fake, levers=True).perform(drain()) == Refused(NoDrainTag())
    driver.app.tags, driver.app.queue = "yarnctl-drain:signal", "production"
    assert isinstance(looking(fake, levers=True).perform(drain()), Refused)
    assert fake.changes == []


def test_a_driver_that_is_silent_when_it_is_to_be_asked_delays_the_order(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    observed(port)
    fake.drivers.pop(SPARK)
    outcome = port.perform(drain())
    assert isinstance(outcome, Withheld)
    assert isinstance(outcome.why, MasterSilent)


@pytest.mark.parametrize(
    ("reason", "ending"),
    [("Executor decommission: done", "suspended"), ("Container from a bad node. Exit status: 143", "failed")],
)
def test_an_executor_is_over_when_its_container_is_gone_and_its_driver_says_how(fake, reason, ending):
    driver = Driver(fake)
    port = looking(fake, levers=True)
    port.perform(drain())
    asked = ObservationRequest(cluster=False, orders=("o-1",))
    assert port.observe(asked).facts == ()
    driver.gone("1", reason)
    (fact,) = port.observe(asked).facts
    assert isinstance(fact, ContainerEnded)
    assert (fact.container, fact.node, fact.ending) == (container(7, 2), "n2:1", ending)
    assert port.notes["o-1"] == reason


def test_an_end_that_no_driver_explains_counts_as_lost_after_a_while(fake):
    driver = Driver(fake)
    port = looking(fake, levers=True)
    port.perform(drain())
    driver.gone("1", "")
    fake.drivers.pop(SPARK)
    asked = ObservationRequest(cluster=False, orders=("o-1",))
    assert port.observe(asked).facts == ()
    fake.now_ms += 3000
    (fact,) = port.observe(asked).facts
    assert isinstance(fact, ContainerEnded)
    assert fact.ending == "lost"


# --- by the plugin --------------------------------------------------------------------------------------

ORDERS_OF_DRIVER = f"/yarnctl/requests/{SPARK}/driver-1700000000123"


@pytest.fixture
def plugged(fake):
    driver = Driver(fake, 4, "yarnctl-drain:plugin")
    driver.settings = {**BY_PLUGIN, "spark.app.startTime": "1700000000123"}
    return driver


def orders(fake: FakeCluster) -> dict[str, bytes]:
    found = {name: data for name, data in fake.hdfs.files.items() if name.startswith(ORDERS_OF_DRIVER)}
    return {name.rpartition("/")[2]: data for name, data in sorted(found.items())}


def both(decision: int = 1) -> list[Drain]:
    mates = tuple(name_of(SPARK, each) for each in ("1", "2"))
    return [
        Drain(order, SPARK, name_of(SPARK, name), container(7, int(name) + 1), decision, mates)
        for order, name in (("o-1", "1"), ("o-2", "2"))
    ]


def test_one_order_in_hdfs_names_all_executors_of_a_decision(plugged):
    port = looking(plugged.fake, levers=True, instance="d")
    plugged.read.clear()
    assert [port.perform(each) for each in both()] == [Accepted(), Accepted()]
    assert plugged.read.count("allexecutors") == 1, "who is active now, and how many are to come back"
    assert orders(plugged.fake) == {"000000001-leave-d-d1.order": b"leave 1 2\n"}
    assert plugged.fake.changes == [], "nobody is signalled"
    assert plugged.fake.hdfs.owners[f"{ORDERS_OF_DRIVER}/000000001-leave-d-d1.order"] == ("yarnctl", "644")


def test_executors_that_were_idle_have_an_order_of_their_own(plugged):
    """They are removed or skipped; their kind is in the file's name, where older plugins read none."""
    port = looking(plugged.fake, levers=True, instance="d")
    busy, idle = (msgspec.structs.replace(each, mates=(each.attempt,)) for each in both())
    idle = msgspec.structs.replace(idle, idle=True)
    assert [port.perform(each) for each in (idle, busy)] == [Accepted(), Accepted()]
    assert orders(plugged.fake) == {
        "000000001-idle-d-d1.order": b"leave 2\n",
        "000000002-leave-d-d1.order": b"leave 1\n",
    }
    plugged.fake.drivers.pop(SPARK)
    mates = [msgspec.structs.replace(each, order=f"o-{each.order}") for each in (idle, busy)]
    assert [port.perform(each) for each in mates] == [Accepted(), Accepted()], "both are written"
    assert len(orders(plugged.fake)) == 2


def test_executors_that_an_order_names_leave_also_if_the_driver_answers_no_more(plugged):
    port = looking(plugged.fake, levers=True, instance="d")
    first, second = both()
    assert port.perform(first) == Accepted()
    plugged.fake.drivers.pop(SPARK)
    assert port.perform(second) == Accepted()
    other = msgspec.structs.replace(both(2)[1], order="o-3")
    assert isinstance(port.perform(other), Withheld), "another decision asks the driver"


def test_an_application_is_told_once_which_decisions_are_undone(plugged):
    port = looking(plugged.fake, levers=True)
    for each in both(7):
        port.perform(each)
    grow = Grow(SPARK, (7,))
    again = looking(plugged.fake, levers=True)
    assert [port.perform(grow), again.perform(grow)] == [Accepted(), Accepted()]
    assert orders(plugged.fake) == {
        "000000001-leave-d7.order": b"leave 1 2\n",
        "000000002-back-d7.order": b"back d7\n",
    }


def test_without_a_plugin_nothing_is_written_because_spark_asks_by_itself(fake):
    Driver(fake)
    port = looking(fake, levers=True)
    assert port.perform(Grow(SPARK, (5, 7))) == Accepted()
    assert port.perform(Grow(application(99), (7,))) == Accepted(), "it has ended"
    assert (orders(fake), fake.changes) == ({}, [])


def test_a_driver_that_is_silent_is_told_to_grow_later(plugged):
    port = looking(plugged.fake, levers=True)
    for each in both(7):
        port.perform(each)
    plugged.fake.drivers.pop(SPARK)
    outcome = port.perform(Grow(SPARK, (7,)))
    assert isinstance(outcome, Unknown)
    assert "MasterSilent" not in str(outcome.why)


def test_a_driver_that_does_not_say_when_it_began_is_not_asked(plugged):
    plugged.settings["spark.app.startTime"] = "../../x"
    port = looking(plugged.fake, levers=True)
    assert port.perform(both()[0]) == Refused(AttemptUnknown())
    assert orders(plugged.fake) == {}
