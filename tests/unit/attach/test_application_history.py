"""What applications of any framework teach: by hand, as asked of a played ResourceManager, and by kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl.attach.history import application_fitting as fitting
from yarnctl.attach.history.application_fitting import ApplicationRun
from yarnctl.attach.history.finished_applications import FinishedApplications
from yarnctl.attach.history.finished_jobs import FinishedJobs
from yarnctl.attach.history.histories import Histories
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.reasons.verdicts import HistoryLost
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire.yarn import EndedApplication
from yarnctl.journal.rendering import text

APP = "application_1700000000000_0007"
BEGAN_MS = 1_700_000_000_000
TAGS = "deadline:1700000060,yarnctl-admission-adm-1-7"


def row(**more: Any) -> dict[str, Any]:
    """Return a Spark application: submitted at 0 s, its driver at 2 s, ended at 32 s; 4 GiB at the end."""
    told = {
        "id": APP, "user": "ann", "name": "daily-7", "state": "FINISHED", "finalStatus": "SUCCEEDED",
        "applicationType": "SPARK", "applicationTags": "", "startedTime": BEGAN_MS,
        "launchTime": BEGAN_MS + 2_000, "finishedTime": BEGAN_MS + 32_000, "memorySeconds": 100 * 1024,
    }  # fmt: skip
    return told | more


def ended(**more: Any) -> EndedApplication:
    return EndedApplication(
        application=APP, user="ann", name="daily-7", final_status="SUCCEEDED", kind="SPARK",
        tags=more.pop("tags", ""), submitted_at_ms=BEGAN_MS,
        launched_at_ms=more.pop("launched_at_ms", BEGAN_MS + 2_000),
        ended_at_ms=more.pop("ended_at_ms", BEGAN_MS + 32_000),
        mib_seconds=more.pop("mib_seconds", 100 * 1024), **more,
    )  # fmt: skip


def run_of(containers: int, elapsed_ms: int) -> ApplicationRun:
    computed_ms = containers * elapsed_ms
    return ApplicationRun("a", "daily", "ann", containers, elapsed_ms, computed_ms, 0, elapsed_ms, None)


# --- by hand ------------------------------------------------------------------------------------------


def test_an_application_by_hand():
    """100 GiB-seconds in 30 s are 3.3 containers of 1 GiB, so 4; its work is theirs, 120 s."""
    run = fitting.application_run(ended(), 1024)
    assert isinstance(run, ApplicationRun)
    assert (run.containers, run.elapsed_ms, run.computed_ms) == (4, 30_000, 100_000)
    assert fitting.finished_run(run, 40) == Finished(
        work_ms=120_000, tasks=4, deadline_ms=32_000, containers=4, capacity=40, ratio=1.0, met=True,
        computed_ms=100_000, ended_at_ms=BEGAN_MS + 32_000, elapsed_ms=32_000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "mib", "given_containers", "containers", "claim"),
    [({}, 2048, 0, 2, "larger containers are fewer"), ({}, 1024, 6, 6, "who knows the number says so"),
     ({"launched_at_ms": 0}, 1024, 0, 4, "older versions tell no launch: it runs from its submission")],
)  # fmt: skip
def test_how_many_containers_it_held(more, mib, given_containers, containers, claim):
    run = fitting.application_run(ended(**more), mib, given_containers)
    assert isinstance(run, ApplicationRun)
    assert run.containers == containers, claim


def test_its_tag_is_its_deadline():
    run = fitting.application_run(ended(tags=TAGS), 1024)
    assert isinstance(run, ApplicationRun)
    found = fitting.finished_run(run, 3)
    assert (found.deadline_ms, found.met, found.containers) == (60_000, True, 3)
    late = fitting.application_run(ended(tags="deadline:1700000030"), 1024)
    assert isinstance(late, ApplicationRun)
    assert (fitting.finished_run(late, 9).deadline_ms, fitting.finished_run(late, 9).met) == (30_000, False)


@pytest.mark.parametrize(
    ("more", "mib", "why"),
    [
        ({"mib_seconds": -1}, 1024, "no start, end or memory-seconds of application_1700000000000_0007"),
        ({"mib_seconds": 0}, 1024, "no start, end or memory-seconds"),
        ({"ended_at_ms": 0}, 1024, "no start, end or memory-seconds"),
        ({}, 0, "no start, end or memory-seconds"),
    ],
)
def test_what_teaches_nothing_says_why(more, mib, why):
    told = fitting.application_run(ended(**more), mib)
    assert not isinstance(told, ApplicationRun)
    assert why in text(told)


def test_an_estimate_by_hand():
    """Three executors, a driver, 30 s. On two containers: 3 x 30 s and 5 s to submit, twice held: 190 s.

    On four 4 x 35 s, on eight, which may save nothing, 8 x 35 s = 280 s. Two runs of 30 and 60 s on four:
    190 and 370 s, mean 280, standard deviation 180 / sqrt 2.
    """
    once = fitting.estimate_of_runs("daily-8", [run_of(4, 30_000)], 4, 40)
    assert once == Estimate(190_000, 0, "applications:1 run of daily-#")
    wide = fitting.estimate_of_runs("daily-8", [run_of(4, 30_000)], 8, 40)
    assert wide is not None
    assert wide.mean_ms == 280_000
    cut = fitting.estimate_of_runs("daily-8", [run_of(4, 30_000)], 8, 3)
    assert cut is not None
    assert cut.mean_ms == 190_000
    twice = fitting.estimate_of_runs("daily-8", [run_of(4, 30_000), run_of(4, 60_000)], 4, 40)
    assert twice == Estimate(280_000, 127_279, "applications:2 runs of daily-#")
    assert fitting.estimate_of_runs("daily-8", [], 4, 40) is None


@settings(max_examples=examples(200))
@given(
    st.integers(1, 30), st.integers(1, 10**7), st.integers(2, 60), st.integers(1, 100), st.integers(1, 10**8)
)
def test_an_estimate_suffices_whatever_the_gate_makes_of_it(had, elapsed_ms, most, capacity, span_ms):
    """Containers that the estimate divided by the span asks for end the run within the span, by time(c)."""
    run = run_of(had, elapsed_ms)
    reserve_ms = fitting.reserve_ms(run, most, capacity)
    containers = max(2, -(-reserve_ms // span_ms))
    if containers <= min(most, capacity if capacity > 1 else most):
        assert fitting.time_ms(run, containers) <= span_ms


def test_planted_an_estimate_that_is_work_alone_is_seen():
    """30 s on four containers are 120 s of work; in 70 s that would be two, which take 95 s."""
    run, span_ms = run_of(4, 30_000), 70_000
    assert fitting.time_ms(run, -(-run.computed_ms // span_ms)) > span_ms
    assert fitting.time_ms(run, -(-fitting.reserve_ms(run, 4, 40) // span_ms)) <= span_ms


# --- as asked of a ResourceManager --------------------------------------------------------------------


def applications(*rows: dict[str, Any]) -> Replay:
    def answered(heard: Heard) -> Reply:
        name = heard.path.rpartition("/")[2]
        if name == "apps":
            return Reply(json.dumps({"apps": {"app": list(rows)}}))
        found = [each for each in rows if each["id"] == name]
        return Reply(json.dumps({"app": found[0]})) if found else Reply("{}", 404)

    return Replay(answered)


ROWS = (
    row(id="application_1700000000000_0001", name="daily-1", finishedTime=BEGAN_MS + 12_000),
    row(id="application_1700000000000_0002", name="daily-2", finishedTime=BEGAN_MS + 22_000),
    row(id="application_1700000000000_0003", name="other"),
    row(id="application_1700000000000_0004", name="daily-3", user="bob"),
    row(id="application_1700000000000_0005", name="daily-4", applicationType="MAPREDUCE"),
    row(id="application_1700000000000_0006", name="daily-5", finalStatus="FAILED"),
    row(id="application_1700000000000_0008", name="daily-6", applicationType="TEZ"),
)


def test_estimates_are_of_a_user_s_own_name_and_no_mapreduce_job():
    with applications(*ROWS) as daemon, Transport([daemon.url]) as to:
        past = FinishedApplications(ResourceManager(to), 40, 1024)
        names = [run.name for run in past.runs("daily-9", "ann")]
        found = past.estimate("daily-9", "ann", 4)
        query = daemon.heard[0].query
    assert names == ["daily-6", "daily-2", "daily-1"], "the latest first, of any type"
    assert found is not None
    assert found.source == "applications:3 runs of daily-#"
    assert (query["states"], query["finalStatus"], query["user"]) == ("FINISHED", "SUCCEEDED", "ann")


def test_the_past_teaches_what_runs_once_and_ends():
    with applications(*ROWS) as daemon, Transport([daemon.url]) as to:
        found = FinishedApplications(ResourceManager(to), 40, 1024).recent(5)
        assert daemon.heard[0].query["finishedTimeBegin"] == "5"
    assert [one.ended_at_ms for one in found] == [BEGAN_MS + s * 1000 for s in (12, 22, 32, 32)]


def test_one_that_has_ended_is_read_by_its_id():
    with applications(*ROWS) as daemon, Transport([daemon.url]) as to:
        past = FinishedApplications(ResourceManager(to), 40, 1024)
        taught, why = past.finished(ROWS[1]["id"], 5)
        failed = past.finished(ROWS[5]["id"])
        gone = past.finished(APP)
    assert why is None
    assert taught is not None
    assert (taught.work_ms, taught.containers) == (5 * 20_000, 5)
    assert failed[0] is None
    assert failed[1] is not None
    assert "did not succeed (FAILED)" in text(failed[1])
    assert gone == (None, HistoryLost(APP))


def nobody() -> FinishedJobs:
    raise BadInput("--history", "nobody is named")


def test_without_a_history_server_other_kinds_teach_all_the_same():
    with applications(*ROWS) as daemon, Transport([daemon.url]) as to:
        past = Histories(nobody, FinishedApplications(ResourceManager(to)))
        past.capacity, past.container_mib = 40, 1024
        assert len(past.recent(0)) == 4
        assert past.estimate("daily-9", "ann", "spark", 4) is not None
        for _ in range(2):
            with pytest.raises(BadInput, match="nobody is named"):
                past.estimate("daily-9", "ann")
        taught, _ = past.finished(ROWS[0]["id"], "flink", 3)
        assert taught is not None
        assert taught.containers == 3
    with applications() as daemon, Transport([daemon.url]) as to, pytest.raises(BadInput):
        Histories(nobody, FinishedApplications(ResourceManager(to))).recent(0)


def test_job_that_never_ran_is_estimated_from_the_others_if_so_wanted():
    asked = []

    def unseen(finished, containers):
        asked.append((len(finished), containers))
        return Estimate(5_000, 1_000, "gp:4 other jobs")

    with applications(*ROWS) as daemon, Transport([daemon.url]) as to:
        manager = ResourceManager(to)
        without, past = (Histories(nobody, FinishedApplications(manager), each) for each in (None, unseen))
        for each in (without, past):
            each.capacity, each.container_mib = 40, 1024
        assert without.estimate("never", "ann", "spark", 4) is None
        assert past.estimate("never", "ann", "spark", 4) == Estimate(5_000, 1_000, "gp:4 other jobs")
        assert past.estimate("daily-9", "ann", "spark", 4) != Estimate(5_000, 1_000, "gp:4 other jobs")
    assert asked == [(4, 4)]


def test_a_history_server_that_is_away_is_asked_again_before_the_past_counts():
    def away() -> FinishedJobs:
        raise Unreachable("http://jhs")

    with applications(*ROWS) as daemon, Transport([daemon.url]) as to:
        past = Histories(away, FinishedApplications(ResourceManager(to)))
        past.container_mib = 1024
        with pytest.raises(Unreachable):
            past.recent(0)
