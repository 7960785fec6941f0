"""The desk where applications are placed: options in, a plan out, runs back; refusals by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.daemon.at_the_desk import MINUTE, AtTheDesk, Past, asking
from yarnctl.cli.admissions import _plan_words
from yarnctl.daemon.admission.late_desk import SeenProgress
from yarnctl.daemon.admission.placement_desk import PlacementPredictions, placed_runs
from yarnctl.daemon.admission.pool_files import PoolSettings, read_pools
from yarnctl.daemon.notices.webhook import Event, promise_event
from yarnctl.deciding.admission.book import Admission
from yarnctl.deciding.admission.entries import AdmissionRound, GateSet
from yarnctl.deciding.admission.placement_options import Alternatives, PlacementOption
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.reasons.placements import NoRoomThroughout, NothingFits
from yarnctl.deciding.reasons.verdicts import CheapestInTime, StartsLater
from yarnctl.errors import BadInput
from yarnctl.prediction.application_runs import KnownRun
from yarnctl.service.routes.admissions import admission as admission_answer

POOLS = (
    PoolSettings(name="fast", queue="root.fast", kinds=("spark", "flink"), capacity=4, cost_mtokens=2000),
    PoolSettings(name="slow", queue="root.slow", kinds=("mapreduce",), capacity=6),
)
SPARK = PlacementOption("spark", 3, 2 * MINUTE, 3 * MINUTE, (("spark.shuffle.compress", "true"),), "", 0.05)
APPLICATION = "application_1_0001"
HADOOP = PlacementOption("mapreduce", 4, 5 * MINUTE, 6 * MINUTE)


def desk(**fields: Any) -> AtTheDesk:
    return AtTheDesk("orion", pools=POOLS, history=False, **fields)


def place(there: AtTheDesk, minutes: float, *options: PlacementOption, **fields: Any) -> Admission:
    found = Alternatives(options or (SPARK, HADOOP), "wordcount", (("input_mib", 64.0),))
    known: dict[str, Any] = {"queue": "", "alternatives": found, **fields}
    return there.ask(max(each.containers for each in found.options), minutes, **known)


def test_the_cheapest_that_ends_in_time_is_admitted_and_waits_where_there_is_no_room() -> None:
    there = desk()
    loose, tight, behind = place(there, 20), place(there, 4), place(there, 9, SPARK)
    assert (loose.state, loose.plan.kind, loose.plan.pool) == ("admitted", "spark", "fast")
    assert loose.plan.reason == CheapestInTime("spark", 3, 2 * 3 * 2 * 60_000)
    assert tight.state == "rejected", "the fast pool is taken, and the slow one too slow"
    assert isinstance(tight.plan.reason, NothingFits)
    assert tight.plan.reason.would_do == 3
    assert NoRoomThroughout(3, 1) in [each.reason for each in tight.plan.refused]
    assert behind.state == "waiting"
    assert isinstance(behind.plan.reason, StartsLater)
    assert behind.plan.start_at_ms == loose.plan.finish_at_ms
    there.submit(loose, queue="root.fast")
    there.go(5_000)
    assert there.state(loose) == "running"
    there.yarn.end("application_1_0001")
    there.go(5_000)
    assert (there.state(loose), there.state(behind)) == ("ended", "admitted"), "it begins sooner than planned"


def test_only_in_its_pools_queue_an_application_takes_its_admission() -> None:
    there = desk()
    found = place(there, 20)
    there.submit(found, "application_1_0007", queue="root.slow")
    there.go(3_000)
    assert there.state(found) == "admitted"
    there.submit(found, "application_1_0008", queue="root.fast")
    there.go(3_000)
    assert there.book.admissions[found.admission].application == "application_1_0008"


def test_each_pool_has_its_own_backlog() -> None:
    there = desk()
    there.yarn.run("application_9_0001", 3, user="bob", queue="root.fast")
    there.yarn.run("application_9_0002", 5, user="bob", queue="root.elsewhere")
    found = place(there, 20)
    assert (found.plan.kind, found.plan.pool) == ("mapreduce", "slow")
    rounds = [each for each in there.records if isinstance(each, AdmissionRound)]
    assert rounds[-1].loads == ()
    assert isinstance(rounds[-1].pool_loads, tuple)
    assert [(name, [load.containers for load in loads]) for name, loads in rounds[-1].pool_loads] == [
        ("fast", [3])
    ]
    assert [pool.capacity for each in there.records if isinstance(each, GateSet) for pool in each.pools] == [
        4,
        6,
    ]


def test_a_placed_application_that_ended_is_a_run() -> None:
    past = Past()
    there = AtTheDesk("orion", pools=POOLS, past=past)
    found = place(there, 20)
    there.go(1_000)
    there.submit(found, queue="root.fast")
    there.go(2_000)
    there.yarn.end("application_1_0001")
    past.jobs["application_1_0001"] = Finished(1, 3, 1, 3, 4, 1.0, met=True, elapsed_ms=100_000)
    there.go(20_000)
    assert past.given["application_1_0001"] == ("yarn", 3)
    (kept,) = placed_runs(there.book)
    assert kept.user == "ann"
    assert 100_000 <= kept.run.elapsed_ms <= 104_000, "from its start, not from its submission"
    settings = {"spark.shuffle.compress": "true"}
    source = "journal:application_1_0001"
    expected = KnownRun("wordcount", "spark", {"input_mib": 64.0}, settings, 3, kept.run.elapsed_ms, source)
    assert kept.run == expected
    again = AtTheDesk("orion", pools=POOLS, records=there.records, now_ms=there.now_ms)
    assert placed_runs(again.book) == (kept,)


def test_one_command_with_an_estimate_has_options_in_its_queues_pool() -> None:
    there = desk()
    found = there.ask(4, 10, queue="root.fast", kind="spark", estimate=Estimate(8 * MINUTE, 0, "me"))
    assert (found.state, found.plan.kind, found.plan.pool, found.plan.containers) == (
        "admitted",
        "spark",
        "fast",
        2,
    )
    tight = there.ask(4, 3, queue="root.fast", kind="spark", estimate=Estimate(8 * MINUTE, 0, "me"))
    assert tight.state == "rejected"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"queue": "root.fast", "kind": "spark"}, "no-options"),
        ({"queue": "root.fast", "kind": "mapreduce", "estimate": Estimate(9, 0, "me")}, "no-pool"),
        ({"queue": "root.other", "kind": "spark"}, "queue-not-gated"),
        ({"queue": "", "alternatives": Alternatives((), "wordcount")}, "no-options"),
        (
            {"queue": "", "alternatives": Alternatives((msgspec.structs.replace(SPARK, kind="tez"),))},
            "no-pool",
        ),
        (
            {"queue": "", "alternatives": Alternatives((msgspec.structs.replace(SPARK, pool="slow"),))},
            "no-pool",
        ),
        ({"queue": "root.slow", "alternatives": Alternatives((SPARK,))}, "no-pool"),
    ],
)
def test_what_cannot_be_placed_is_refused_and_not_written_down(fields: dict[str, Any], code: str) -> None:
    there = desk()
    there.go(1_000)
    assert there.refused(asking(4, 10, **fields)) == code
    assert there.book.admissions == {}


def test_a_gate_that_places_nothing_refuses_options() -> None:
    there = AtTheDesk("justice", history=False)
    assert there.refused(asking(4, 10, alternatives=Alternatives((SPARK,)))) == "no-placement"


def test_a_restart_goes_on_with_what_waits_for_its_start() -> None:
    there = desk()
    first, second = place(there, 20, SPARK), place(there, 20, SPARK)
    again = AtTheDesk("orion", pools=POOLS, history=False, records=there.records, now_ms=there.now_ms)
    assert again.state(second) == "waiting"
    again.submit(first, queue="root.fast")
    again.go(1_000)
    again.yarn.end("application_1_0001")
    again.go(4_000)
    assert again.state(second) == "admitted"


# --- files of pools ---------------------------------------------------------------------------------------

POOL = '[[pool]]\nname = "fast"\nqueue = "root.fast"\n'


def test_a_file_of_pools_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pools.toml"
    file.write_text(POOL + 'kinds = ["spark"]\ncapacity = 4\nhourly_mtokens = 99\n')
    assert read_pools(file) == (
        PoolSettings(name="fast", queue="root.fast", kinds=("spark",), capacity=4, hourly_mtokens=99),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 [[pool]] tables"),
        ("pool = 7", "0 [[pool]] tables"),
        ("[[pool]", "invalid TOML"),
        ("x = 1\n" + POOL, "unknown key 'x'"),
        (POOL + "size = 3\n", "pool 1: unknown key 'size'"),
        ('[[pool]]\nqueue = "root.fast"\n', "pool 1: name is missing"),
        ('[[pool]]\nname = "fast"\n', "pool 1: queue is missing"),
        (POOL + "capacity = 0\n", "invalid capacity 0"),
        (POOL + "capacity = true\n", "invalid capacity True"),
        (POOL + "capacity = 1000000000001\n", "invalid capacity 1000000000001"),
        (POOL + "cost_mtokens = -1\n", "invalid cost_mtokens -1"),
        (POOL + "hourly_mtokens = nan\n", "invalid hourly_mtokens nan"),
        (POOL + 'kinds = "spark"\n', "kinds is not a list"),
        (POOL + 'label = "a,b"\n', "invalid label 'a,b'"),
        (POOL + "label = 7\n", "invalid label 7"),
        (POOL + POOL, "same name or queue as pool 'fast'"),
        (POOL + POOL.replace("fast", "quick", 1), "same name or queue as pool 'fast'"),
        ("#" * 70_000, "exceeds 64 KiB"),
    ],
)
def test_what_is_no_file_of_pools_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "pools.toml"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        read_pools(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


# --- the daemon's own runs ----------------------------------------------------------------------------------


def test_a_file_of_runs_that_turned_ill_is_refused_by_its_name_and_not_by_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    predictions = PlacementPredictions(file)
    assert predictions.known(()) == ()
    for content, said in ((b"\xff\xfe", "cannot be read"), (b"{}\n", "line 1")):
        file.write_bytes(content)
        with pytest.raises(BadInput) as refused:
            predictions.known(())
        assert said in str(refused.value)
        assert "runs.jsonl" in str(refused.value)
        assert str(tmp_path) not in str(refused.value)


def test_alternatives_come_from_the_runs_of_the_named_application() -> None:
    """Each of three applications has run with a framework of its own."""
    applications = {"join": "flink", "sort": "spark", "wordcount": "mapreduce"}
    journal = [
        KnownRun(name, kind, {"input_mib": 64.0}, {}, 2, MINUTE + each, f"{name}:{each}")
        for name, kind in applications.items()
        for each in range(3)
    ]
    found = PlacementPredictions().alternatives("sort", {"input_mib": 64.0}, 0.05, journal)
    assert {option.kind for option in found.options} == {"spark"}
    assert found.lacking == ()
    with pytest.raises(BadInput, match="no run is known"):
        PlacementPredictions().alternatives("grep", {"input_mib": 64.0}, 0.05, journal)


def test_what_a_late_job_delays_is_quoted_anew_once_and_the_webhook_hears_of_both() -> None:
    there = desk(lease_ms=10**9)
    option = PlacementOption("mapreduce", 6, MINUTE, 10 * MINUTE)
    first, second = place(there, 10.5, option), place(there, 21, option)
    there.submit(first, queue="root.slow")
    there.go(1_000)
    assert (there.state(first), there.state(second)) == ("running", "waiting")
    told = list[Event]()
    there.desk.late_desk.report = lambda admission, news: told.append(promise_event(admission, news))
    begun_ms = there.now_ms
    for passed_s in range(1, 501):  # it needs 20 minutes
        there.now_ms += 1_000
        seen = SeenProgress(there.now_ms, {APPLICATION: passed_s / 1_200})
        there.desk.after_tick(there.write, there.now_ms, progress=seen)
    assert [each.event for each in told] == ["will-be-late", "quoted-anew"]
    assert [each.admission for each in told] == [first.admission, second.admission]
    assert told[0].deadline_at_ms == pytest.approx(begun_ms + 20 * MINUTE, abs=20_000)
    assert told[1].deadline_at_ms == pytest.approx(begun_ms + 30 * MINUTE, abs=20_000)
    assert first.admission in told[1].text
    delayed = there.desk.shown().delayed[second.admission]
    assert (delayed.deadline_at_ms, delayed.delayed_by) == (told[1].deadline_at_ms, (first.admission,))
    waiting = there.book.admissions[second.admission]
    shown = admission_answer(waiting, there.desk.shown())
    assert shown.delayed is not None
    assert shown.delayed.deadline_at_ms == delayed.deadline_at_ms
    assert f"delayed by {first.admission}: a deadline 10 min later" in _plan_words(shown, there.now_ms)
    there.desk.late_desk.look(SeenProgress(there.now_ms + 1_000, {}), None, ())
    assert there.desk.shown().delayed == {}
