"""The mix on a cluster: what is shown of maps and of jobs without the runner, and what may be ended."""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import EPOCH, FakeCluster, application, attempt, container
from tests.unit.attach.test_performing import looking, why
from yarnctl.deciding.levers import NOT_BEGUN_MS, levers_of, reduced_nothing
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    ContainerGranted,
    HeldTime,
    JobConsent,
    Kill,
    ObservationRequest,
    Suspend,
    TaskView,
    Withheld,
)
from yarnctl.deciding.settings import LeverSettings
from yarnctl.frameworks.mapreduce import known_maps
from yarnctl.frameworks.mapreduce.observing import left_ms
from yarnctl.hadoop.wire.tags import may_lose_tag_ratio

RULES = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500, commit_ms=1000, may_lose_ratio=1)
MAP = f"attempt_{EPOCH}_0001_m_000009_0"
HOUR_MS = 3_600_000
KILL_MAP = Kill("o-1", application(1), MAP, container(1, 9))
KILL_REDUCE = Kill("o-1", application(1), attempt(1, 1), container(1, 2))


def observed(cluster: FakeCluster, name: str = application(1), **settings) -> dict[str, TaskView]:
    port = looking(cluster, **settings)
    port.observe(ObservationRequest())  # the first looks read the jobs' configurations
    found = port.observe(ObservationRequest(victims=(name,)))
    assert found.unreachable == ()
    return {task.attempt: task for task in found.tasks[name]}


def kinds(task: TaskView, now_ms: int) -> list[tuple[str, int]]:
    return [(lever.kind, lever.lost_ms) for lever in levers_of(task, now_ms, RULES, -1)]


# --- what is shown ----------------------------------------------------------------------------------------


def test_maps_are_shown_to_the_mix_alone_with_what_they_would_lose(cluster):
    job = cluster.apps[application(1)]
    cluster.mapping(job, 9, "n1:1")
    assert MAP not in observed(cluster)
    shown = observed(cluster, levers=True)[MAP]
    assert (shown.kind, shown.checkpointable, shown.remaining_ms) == ("map", False, 60_000)
    assert kinds(shown, cluster.now_ms) == [("kill", 20_000)]


def test_a_map_that_will_end_in_time_is_awaited(cluster):
    cluster.mapping(cluster.apps[application(1)], 9, "n1:1", progress=95.0)
    shown = observed(cluster, levers=True)[MAP]
    assert kinds(shown, cluster.now_ms) == [("wait", 0), ("kill", 20_000)]


def test_attempts_of_the_cheapest_maps_are_read_first_and_each_once(cluster, monkeypatch):
    monkeypatch.setattr(known_maps, "READ_MAX", 2)
    job = cluster.apps[application(1)]
    for place, age_ms in enumerate((40_000, 5_000, 90_000, 20_000, 70_000), 9):
        cluster.mapping(job, place, "n1:1", progress=1.0, startTime=cluster.now_ms - age_ms)
    port = looking(cluster, levers=True)
    port.observe(ObservationRequest())
    cluster.rm.heard.clear()
    shown = []
    for _ in range(4):
        found = port.observe(ObservationRequest(victims=(application(1),))).tasks[application(1)]
        shown.append([int(task.attempt[-4:-2]) for task in found if task.kind == "map"])
    assert shown == [[10, 12], [9, 10, 12, 13], [9, 10, 11, 12, 13], [9, 10, 11, 12, 13]]
    reads = [heard.path for heard in cluster.rm.heard if "_m_" in heard.path]
    assert len(reads) == len(set(reads)) == 5


@pytest.mark.parametrize("progress", [0.0, 4.9, -1.0])
def test_too_little_progress_tells_nothing_of_the_rest(cluster, progress):
    cluster.mapping(cluster.apps[application(1)], 9, "n1:1", progress=progress)
    assert observed(cluster, levers=True)[MAP].remaining_ms == -1


def test_a_reduce_in_shuffle_has_begun_nothing_with_the_runner_and_without(cluster):
    row = cluster.attempt(1, 1)
    row.update(mergeFinishTime=0, shuffleFinishTime=0, progress=20.0, status="reduce > copy")
    shown = observed(cluster, levers=True)[attempt(1, 1)]
    assert shown.since_ms == NOT_BEGUN_MS
    assert reduced_nothing(shown, cluster.now_ms + 10_000)
    assert kinds(shown, cluster.now_ms) == [("end", 0)]
    assert shown.resume_cost_ms > 60_000, "it may have fetched for a minute"


def test_a_reduce_without_the_runner_that_has_begun_has_no_lever_but_waiting(cluster):
    job = cluster.apps[application(1)]
    job.configuration = {"mapreduce.job.reduces": "3"}
    cluster.attempt(1, 1).update(progress=99.2, status="reduce > reduce")
    cluster.attempt(1, 2).update(progress=70.0, status="reduce > reduce")
    found = observed(cluster, levers=True)
    near, far = found[attempt(1, 1)], found[attempt(1, 2)]
    assert (near.remaining_ms, kinds(near, cluster.now_ms)) == (1229, [("wait", 0)])
    assert (far.remaining_ms, kinds(far, cluster.now_ms)) == (450_000, [])


def test_a_merged_reduce_that_is_behind_its_merge_foretells_nothing(cluster):
    """Its progress is of an earlier report."""
    cluster.apps[application(1)].configuration = {"mapreduce.job.reduces": "3"}
    cluster.attempt(1, 1).update(progress=60.0, status="reduce > sort")
    assert observed(cluster, levers=True)[attempt(1, 1)].remaining_ms == -1


def test_a_status_line_in_the_runners_words_makes_no_other_job_checkpointable(cluster):
    cluster.apps[application(1)].configuration = {"mapreduce.job.reduces": "3"}
    assert not observed(cluster, levers=True)[attempt(1, 1)].checkpointable


def test_a_reduce_with_the_runner_is_shown_as_before(cluster):
    assert observed(cluster, levers=True)[attempt(1, 1)] == observed(cluster)[attempt(1, 1)]


@pytest.mark.parametrize(
    ("levers", "may", "shown"),
    [
        (True, 1, {attempt(1, 1): 6500, attempt(1, 3): 1000}),  # those of 6 ms are short
        (True, 0, {attempt(1, 3): 1000}),
        (False, 1, {}),
    ],
)
def test_how_long_key_groups_take_is_shown_of_what_can_be_suspended(cluster, levers, may, shown):
    words = f"done=5000 known=100000 all=1 gen=0 can={may} ran=26000 base=0"
    for number, groups in ((1, 4), (2, 4000)):
        cluster.attempt(1, number).update(status=f"yarnctl phase=run groups={groups} {words}")
    port = looking(cluster, levers=levers)
    port.observe(ObservationRequest())
    assert port.observe(ObservationRequest(victims=(application(1),))).group_ms == shown


def test_what_runs_within_the_master_is_not_shown(cluster):
    job = cluster.apps[application(1)]
    cluster.mapping(job, 9, "n1:1")
    job.containers[container(1, 9)] = ("n1:1", 0)  # an uber job: its tasks run in the master's container
    assert MAP not in observed(cluster, levers=True)


def test_another_framework_s_job_shows_no_task_and_is_not_asked(cluster):
    cluster.apps[application(1)].kind = "SPARK"
    cluster.rm.heard.clear()
    assert observed(cluster, levers=True) == {}
    assert not any("/mapreduce/" in heard.path for heard in cluster.rm.heard)


def test_progress_makes_the_rest() -> None:
    assert left_ms(30_000, 0.75) == 10_000
    assert left_ms(30_000, 1.5) == 0
    assert left_ms(0, 0.5) == left_ms(30_000, 0.04) == -1


# --- what tags say (what was held: test_held_time.py) -------------------------------------------------


def test_a_job_with_a_tag_is_counted_by_itself(cluster):
    job = cluster.apps[application(1)]
    job.tags, job.mib_seconds = "nightly,yarnctl-may-lose:2%", 100
    cluster.research(3, ["n1:1"], mib_seconds=0)
    port = looking(cluster, levers=True)
    job.mib_seconds, cluster.apps[application(3)].mib_seconds = 700, 50
    cluster.now_ms += 10_000
    found = port.observe(ObservationRequest())
    assert found.consents == (JobConsent(application(1), "ann", 0.02),)
    assert found.held == (
        HeldTime(application(1), HOUR_MS, 600_000),
        HeldTime("root.research", HOUR_MS, 50_000),
    )
    del cluster.apps[application(1)]
    cluster.now_ms += 10_000
    found = port.observe(ObservationRequest())
    assert (found.consents, found.held) == ((), (HeldTime("root.research", HOUR_MS, 50_000),)), "it has ended"
    assert looking(cluster).observe(ObservationRequest()).held == (), "without levers nothing is counted"


@pytest.mark.parametrize(
    ("tags", "ratio"),
    [
        ("", None),
        ("nightly", None),
        ("yarnctl-may-lose:2%", 0.02),
        ("YARNCTL-MAY-LOSE:0.5%", 0.005),
        ("yarnctl-may-lose:0.25", 0.25),
        ("yarnctl-may-lose:0", 0.0),
        ("yarnctl-may-lose:100%", 1.0),
        ("yarnctl-may-lose:", 0.0),  # what cannot be read lets nothing be lost
        ("yarnctl-may-lose:some", 0.0),
        ("yarnctl-may-lose:-2%", 0.0),
        ("yarnctl-may-lose:101%", 0.0),
        ("yarnctl-may-lose:nan", 0.0),
        ("yarnctl-may-lose:9,yarnctl-may-lose:1%", 0.0),
        ("yarnctl-may-lose:9%,yarnctl-may-lose:1%", 0.01),  # the least counts
    ],
)
def test_what_a_tag_says(tags, ratio):
    assert may_lose_tag_ratio(tags.split(",")) == ratio


# --- what may be ended ------------------------------------------------------------------------------------


def test_a_map_is_killed_and_its_end_is_told(cluster):
    cluster.mapping(cluster.apps[application(1)], 9, "n1:1")
    port = looking(cluster, levers=True)
    port.observe(ObservationRequest(victims=(application(1),)))
    assert port.perform(KILL_MAP) == Accepted()
    assert cluster.changes == [f"KILL {MAP}"]
    facts = port.observe(ObservationRequest(cluster=False, orders=("o-1",))).facts
    assert ContainerEnded(container(1, 9), application(1), "n1:1", "killed", cluster.now_ms) in facts
    assert port.perform(KILL_MAP) == Accepted(), "twice is once"
    assert len(cluster.changes) == 1


def test_room_that_was_killed_free_and_given_before_the_next_look_is_told(cluster):
    """A kill frees its room within a heartbeat; its grant, unseen, would count as still to come for 25 s."""
    cluster.mapping(cluster.apps[application(1)], 9, "n1:1")
    requester = cluster.apps[application(2)]
    requester.containers[container(2, 1)] = ("n2:1", 0)
    port = looking(cluster, levers=True)
    port.observe(ObservationRequest(victims=(application(1),)))
    assert port.perform(KILL_MAP) == Accepted()
    requester.containers[container(2, 2)] = ("n1:1", 10)
    look = ObservationRequest(cluster=False, orders=("o-1",), requesters=(requester.id,))
    facts = port.observe(look).facts
    given = [fact.container for fact in facts if isinstance(fact, ContainerGranted)]
    assert given == [container(2, 2)], "and not what it held before"
    assert [type(fact) for fact in facts].index(ContainerEnded) == 0
    assert port.observe(look).facts == ()


def test_a_job_without_the_runner_may_have_its_maps_killed(cluster):
    job = cluster.apps[application(1)]
    job.configuration = {"mapreduce.job.reduces": "3"}
    cluster.mapping(job, 9, "n1:1")
    assert looking(cluster, levers=True).perform(KILL_MAP) == Accepted()


def test_natjam_kills_no_map(cluster):
    cluster.mapping(cluster.apps[application(1)], 9, "n1:1")
    assert "is not a reduce" in why(looking(cluster, allow_kill=True).perform(KILL_MAP))
    assert "do not allow yarnctl to kill" in why(looking(cluster).perform(KILL_MAP))
    assert cluster.changes == []


def test_a_reduce_that_has_begun_meanwhile_goes_on(cluster):
    row = cluster.attempt(1, 1)
    row.update(mergeFinishTime=0, shuffleFinishTime=0)
    port = looking(cluster, levers=True)
    row.update(mergeFinishTime=cluster.now_ms)
    assert "has processed input meanwhile" in why(port.perform(KILL_REDUCE))
    assert cluster.changes == []
    row.update(mergeFinishTime=0)
    assert port.perform(KILL_REDUCE) == Accepted()


def test_what_was_asked_to_save_itself_is_not_killed_by_the_mix(cluster):
    port = looking(cluster, levers=True)
    names = (application(1), attempt(1, 1), container(1, 2))
    assert port.perform(Suspend("o-1", *names, 1, EPOCH)) == Accepted()
    cluster.changes.clear()
    assert "do not allow yarnctl to kill" in why(port.perform(KILL_REDUCE))
    assert cluster.changes == []


@pytest.mark.parametrize(
    ("change", "said"), [({"queue": "production"}, "is not preemptable"), ({"kind": "SPARK"}, "SPARK")]
)
def test_a_lever_ends_nothing_outside_mapreduce_jobs_of_victim_queues(cluster, change, said):
    job = cluster.apps[application(1)]
    cluster.mapping(job, 9, "n1:1")
    for name, value in change.items():
        setattr(job, name, value)
    assert said in why(looking(cluster, levers=True).perform(KILL_MAP))
    assert cluster.changes == []


def test_a_lever_ends_nothing_while_only_observing_or_while_yarn_preempts(cluster):
    cluster.mapping(cluster.apps[application(1)], 9, "n1:1")
    assert isinstance(looking(cluster, levers=True, enforce=False).perform(KILL_MAP), Withheld)
    cluster.configuration["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
    cluster.preemption_disabled = False
    assert "YARN itself preempts" in why(looking(cluster, levers=True).perform(KILL_MAP))
    assert cluster.changes == []
