"""What one look shows: the gate, the snapshot, the tasks of victims, and who cannot be seen."""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import (
    EPOCH,
    SLOT,
    App,
    FakeCluster,
    application,
    attempt,
    container,
    task,
)
from tests.unit.hadoop.replaying import Reply, page
from yarnctl.attach.observing.cluster_state import ASKS_AGE_MS
from yarnctl.deciding.model import (
    Accepted,
    ContainerRequest,
    EpochChanged,
    ManifestSeen,
    ObservationRequest,
    Refused,
    Release,
    SetPriority,
    Suspend,
    Withdraw,
)
from yarnctl.deciding.reasons.eligibility import (
    ConfigurationUnread,
    InNoPreemptableQueue,
    MasterUnreachable,
    QueueUnclear,
    RunnerSays,
)
from yarnctl.deciding.reasons.modes import ManagerSettling
from yarnctl.deciding.reasons.outcomes import OfNoPreemptableQueue
from yarnctl.journal.rendering import said
from yarnctl.units import Resources, times

HURRIED = ObservationRequest(probe_queues=("root.production",))


def paths(cluster: FakeCluster) -> list[str]:
    heard = [one.path.removeprefix("/ws/v1/cluster") for one in cluster.rm.heard]
    cluster.rm.heard.clear()
    return heard


def views(seen) -> dict:
    return {view.application: view for view in seen.snapshot.applications}


def test_a_quiet_cluster_costs_two_questions(cluster):
    cluster.apps[application(2)].asks = []
    cluster.apps[application(1)].asks = [(10, SLOT, 4)]
    port = cluster.port()
    assert paths(cluster) == []  # nothing is sent by the constructor
    assert port.observe(HURRIED).cluster == "quiet"
    assert paths(cluster) == ["/info", "/nodes", "/conf", "/scheduler-conf", "/scheduler"]
    cluster.now_ms += 2000
    seen = port.observe(HURRIED)
    assert (seen.cluster, seen.snapshot) == ("quiet", None)
    assert paths(cluster) == ["/info", "/scheduler"]
    cluster.now_ms += 1999
    port.observe(HURRIED)
    assert paths(cluster) == ["/scheduler"]
    assert port.observe(ObservationRequest()).snapshot is not None  # any queue: research waits
    assert paths(cluster)[:2] == ["/scheduler", "/info"]


def test_a_new_manager_that_is_found_after_the_probe_shows_nothing(cluster):
    port = cluster.port()
    assert port.observe(HURRIED).cluster == "seen"
    cluster.epoch += 1
    seen = port.observe(HURRIED)
    assert paths(cluster)[-2:] == ["/scheduler", "/info"]
    assert (seen.cluster, seen.snapshot) == ("unreachable", None)
    assert seen.facts == (EpochChanged(str(EPOCH + 1), cluster.now_ms),)


def test_a_scope_without_the_cluster_asks_nothing(cluster):
    assert cluster.port().observe(ObservationRequest(cluster=False)).cluster == "quiet"
    assert paths(cluster) == []


def test_queues_may_be_named_by_their_path(cluster):
    port = cluster.port(preempting_queues=("root.production",), preemptable_queues=("root.research",))
    assert port.observe(ObservationRequest(probe_queues=("root.production",))).cluster == "seen"
    assert application(1) not in port.why_not


# --- snapshot -----------------------------------------------------------------------------------


def test_the_snapshot_as_deciding_wants_it(cluster):
    cluster.nodes["n3:1"] = times(SLOT, 2)
    cluster.apps[application(1)].asks = [(10, SLOT, 2)]
    seen = cluster.port().observe(HURRIED)
    shot = seen.snapshot
    assert (shot.total, shot.largest_node) == (times(SLOT, 6), times(SLOT, 2))
    assert shot.free_by_node == {"n3:1": times(SLOT, 2)}
    assert [(queue.queue, queue.used) for queue in shot.queues] == [
        ("root.production", Resources(0, 0)),
        ("root.research", times(SLOT, 4)),
    ]
    research, production = views(seen)[application(1)], views(seen)[application(2)]
    assert production.requests == (ContainerRequest(0, SLOT, 1),)  # not three times, as its rows are
    assert research.requests == (ContainerRequest(10, SLOT, 2),)
    assert (research.runner, research.containers, research.task_size) == (True, 4, SLOT)
    assert production.runner is False
    assert (research.why_not, production.why_not) == (None, InNoPreemptableQueue())
    assert research.rank < production.rank


def test_an_application_is_in_the_queue_that_its_row_names_by_path_or_by_name(cluster):
    for cluster.says_paths in (True, False):
        shown = views(cluster.port().observe(HURRIED))
        queues = [shown[application(number)].queue for number in (1, 2)]
        assert queues == ["root.research", "root.production"]


def test_an_application_of_an_unclear_queue_is_left_alone_with_the_reason(cluster):
    """Before Hadoop 3.4 a row has the leaf's name, and here two leaves have it."""
    cluster.queues = {"production": 90.0, "research": 5.0, "root.b.research": 5.0}
    port = cluster.port(preemptable_queues=("root.research",))
    row = views(port.observe(HURRIED))[application(1)]
    assert (row.queue, row.why_not, row.runner) == ("research", QueueUnclear("research"), False)
    suspend = Suspend("o-1", application(1), attempt(1, 1), container(1, 2), 1, cluster.now_ms)
    assert port.perform(suspend) == Refused(OfNoPreemptableQueue("research"))
    cluster.says_paths = True
    row = views(port.observe(HURRIED))[application(1)]
    assert (row.queue, row.why_not, row.runner) == ("root.research", None, True)


def test_what_others_wait_for_is_asked_once(cluster):
    cluster.apps[application(1)].asks = [(10, SLOT, 2)]
    port = cluster.port()
    port.observe(HURRIED)
    assert {f"/apps/{application(1)}", f"/apps/{application(2)}"} <= set(paths(cluster))
    port.observe(HURRIED)
    assert f"/apps/{application(1)}" not in paths(cluster)
    cluster.apps[application(1)].asks = [(10, SLOT, 3)]
    assert views(port.observe(HURRIED))[application(1)].requests == (ContainerRequest(10, SLOT, 3),)


def test_new_requests_with_the_sum_of_earlier_ones_are_read(cluster):
    research, port = cluster.apps[application(1)], cluster.port()
    for asks in ([(10, SLOT, 2)], [], [(10, times(SLOT, 2), 1)]):
        research.asks = asks
        shown = views(port.observe(HURRIED))[application(1)]
        assert shown.requests == tuple(ContainerRequest(*ask) for ask in asks)


def test_requests_of_a_preempting_application_are_read_again_when_they_may_have_changed(cluster):
    page, port = f"/apps/{application(2)}", cluster.port()

    def is_read() -> bool:
        cluster.rm.heard.clear()
        port.observe(HURRIED)
        return page in paths(cluster)

    assert is_read()
    assert not is_read()
    cluster.now_ms += ASKS_AGE_MS
    assert is_read()
    cluster.apps[application(2)].asks = [(10, SLOT, 7)]
    assert is_read()
    cluster.apps[application(2)].containers[container(2, 77)] = ("n1:1", 10)
    assert is_read()
    assert not is_read()


def test_beyond_the_bounds_asks_are_supposed_from_the_sum(cluster):
    for number in range(3, 9):
        cluster.add(App(number, "research", asks=[(10, SLOT, 5)], submitted_at_ms=EPOCH + number))
    seen = cluster.port(others_max=2).observe(HURRIED)
    asked = [path for path in paths(cluster) if path.startswith("/apps/")]
    assert len([path for path in asked if path != f"/apps/{application(2)}"]) == 2
    assert views(seen)[application(8)].requests == (ContainerRequest(10, SLOT, 5),)


def test_an_application_without_resource_info_is_asked_for_its_requests(cluster):
    cluster.apps[application(2)].has_uses = False
    assert views(cluster.port().observe(HURRIED))[application(2)].requests == (ContainerRequest(0, SLOT, 1),)


def test_jobs_are_proven_a_few_at_each_look_the_largest_first(cluster):
    for number in range(3, 7):
        cluster.nodes[f"m{number}:1"] = times(SLOT, 8)
        cluster.research(number, [f"m{number}:1"] * (number + 2))
    port = cluster.port(eligibility_reads_max=2)
    port.observe(HURRIED)
    assert {path for path in paths(cluster) if path.endswith("/conf")} == {
        "/conf", *(f"/proxy/{application(n)}/ws/v1/mapreduce/jobs/job_{EPOCH}_{n:04d}/conf" for n in (6, 5))
    }  # fmt: skip
    assert port.why_not[application(3)] == ConfigurationUnread()
    port.observe(HURRIED)
    shown = views(port.observe(HURRIED))
    assert all(shown[application(n)].runner for n in (1, 3, 4, 5, 6))
    assert sum(path.endswith("/conf") for path in paths(cluster)) == 3  # each once


def test_a_master_that_did_not_answer_is_asked_again_later(cluster):
    cluster.break_("GET /proxy/.*/conf", page())
    port = cluster.port()
    assert views(port.observe(HURRIED))[application(1)].runner is None
    assert isinstance(port.why_not[application(1)], MasterUnreachable)
    cluster.broken.clear()
    assert views(port.observe(HURRIED))[application(1)].runner is None
    cluster.now_ms += 5_000
    assert views(port.observe(HURRIED))[application(1)].runner is True


def reserving(cluster, queue: str, nodes: int):
    """Nodes of three slots with one free; somebody has reserved two slots on one of them."""
    for number in range(nodes):
        cluster.nodes[f"r{number}:1"] = times(SLOT, 3)
        cluster.research(20 + number, [f"r{number}:1", f"r{number}:1"])
    big = App(9, queue, asks=[(10, times(SLOT, 2), 1)], reserved_mib=2048, state="ACCEPTED")
    cluster.add(big)
    return cluster.port().observe(HURRIED).snapshot


def test_a_reservation_on_the_only_node_it_can_be_on(cluster):
    shot = reserving(cluster, "production", 1)
    assert shot.reserved_by_node == {"r0:1": application(9)}
    assert shot.free_by_node == {}


def test_a_foreign_reservation_protects_every_node_it_may_be_on(cluster):
    shot = reserving(cluster, "research", 2)
    assert shot.reserved_by_node == {"r0:1": application(9), "r1:1": application(9)}
    assert set(shot.free_by_node) == {"r0:1", "r1:1"}


def test_a_hurried_reservation_of_unknown_place_hinders_nobody(cluster):
    shot = reserving(cluster, "production", 2)
    assert shot.reserved_by_node == {}


# --- victims ------------------------------------------------------------------------------------


def test_the_tasks_of_a_victim(cluster):
    port = cluster.port()
    port.observe(HURRIED)
    seen = port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    first = seen.tasks[application(1)][0]
    assert first.attempt == attempt(1, 1)
    assert (first.container, first.node, first.size) == (container(1, 2), "n1:1", SLOT)
    assert first.remaining_ms == 95_000 * 50_000 // 5_000
    assert first.resume_cost_ms == 2_000 + 1_500 + 10_000 + 500
    assert (first.checkpointable, first.resumed, first.generation) == (True, False, 0)
    assert first.since_ms == cluster.now_ms - 50_000
    assert len(seen.tasks[application(1)]) == 3


def test_the_wait_for_maps_is_no_cost_of_coming_back(cluster):
    cluster.apps[application(1)].maps_finished_at_ms = cluster.now_ms - 51_500  # of 60 s to 50 s ago
    port = cluster.port()
    for _ in range(2):
        seen = port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
        assert seen.tasks[application(1)][0].resume_cost_ms == 2_000 + 1_500 + (1_500 + 2_000) + 500
    heard = [one for one in cluster.rm.heard if one.query.get("type") == "m"]
    assert len(heard) == 1


@pytest.mark.parametrize(
    "change",
    [{"mergeFinishTime": 0}, {"status": "yarnctl phase=skip groups=1 gen=1"},
     {"status": "yarnctl phase=hold groups=1 gen=1 order=o-3"},
     {"status": "yarnctl phase=run groups=1 done=5 known=9 all=1 gen=0 can=0"}, {"status": "Records R/W=3"}],
    ids=["in shuffle", "skipping", "holding", "unwilling", "silent"],
)  # fmt: skip
def test_what_cannot_be_checkpointed_now(cluster, change):
    cluster.attempt(1, 1).update(change)
    port = cluster.port()
    seen = port.observe(ObservationRequest(victims=(application(1),)))
    assert [row.checkpointable for row in seen.tasks[application(1)]] == [False, True, True]


def test_an_attempt_whose_container_yarn_does_not_list_is_not_shown(cluster):
    del cluster.apps[application(1)].containers[container(1, 2)]
    seen = cluster.port().observe(ObservationRequest(victims=(application(1),)))
    assert attempt(1, 1) not in {row.attempt for row in seen.tasks[application(1)]}


@pytest.mark.parametrize("state", ["SUCCEEDED", "KILLED", "FAILED"])
def test_observe_reads_the_attempts_of_running_tasks_alone(cluster, state):
    cluster.attempt(1, 1)["state"] = state
    port = cluster.port()
    port.observe(HURRIED)
    port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    read = [path for path in paths(cluster) if path.endswith("/attempts")]
    assert len(read) == 2
    assert not any(task(1, 1) in path for path in read)


@pytest.mark.parametrize(
    "broken", [r"GET /proxy/.*/tasks$", r"GET /proxy/.*/attempts$", r"GET .*/appattempts$"]
)
def test_who_cannot_be_seen_whole_is_unreachable(cluster, broken):
    cluster.break_(broken, page())
    seen = cluster.port().observe(ObservationRequest(victims=(application(1), application(77))))
    assert seen.unreachable == (application(1), application(77))
    assert seen.tasks == {}


def test_after_a_failover_nothing_is_shown_until_the_nodes_stand_still(cluster):
    port = cluster.port(stable_observations=3)
    assert port.identify().node_count == 2
    assert [port.observe(HURRIED).cluster for _ in range(3)] == ["unreachable"] * 2 + ["seen"]
    cluster.epoch += 1
    nodes = dict(cluster.nodes)
    cluster.nodes.clear()
    seen = port.observe(HURRIED)
    assert seen.facts == (EpochChanged(str(EPOCH + 1), cluster.now_ms),)
    assert (seen.cluster, seen.snapshot) == ("unreachable", None)
    assert isinstance(port.permission.why_nothing(), ManagerSettling)
    found = []
    for name in (*nodes, "", "", ""):
        if name:
            cluster.nodes[name] = nodes[name]
        found.append(port.observe(HURRIED))
    assert [one.cluster for one in found] == ["unreachable"] * 3 + ["seen"] * 2
    assert all(one.facts == () for one in found)
    assert port.identify().epoch == str(EPOCH + 1)


def test_at_the_first_contact_nothing_is_shown_until_the_nodes_stand_still(cluster):
    """ResourceManager and yarnctl may have begun together: two of thirty nodes are not the cluster."""
    port = cluster.port(stable_observations=3)
    nodes = dict(cluster.nodes)
    del cluster.nodes["n2:1"]
    assert isinstance(port.permission.why_nothing(), ManagerSettling)
    assert port.observe_soon() is None
    found = [port.observe(HURRIED)]
    cluster.nodes.update(nodes)
    found += [port.observe(HURRIED) for _ in range(3)]
    assert [one.cluster for one in found] == ["unreachable"] * 3 + ["seen"]
    assert all(one.facts == () for one in found)
    assert port.permission.why_nothing() is None


# --- faults -------------------------------------------------------------------------------------

BAD = {
    "page": page(), "500": Reply("oops", 500), "garbage": Reply(b"\x00\xff{{{"),
    "another shape": Reply('{"apps":{"app":"x"},"nodes":7,"scheduler":[]}'), "null": Reply("null"),
    "deep": Reply("[" * 100_000), "cut": Reply('{"a":1}', cut=2), "no HTTP": Reply(raw=b"SSH-2.0-x\r\n"),
    "huge numbers": Reply('{"nodes":{"node":[{"id":"n","state":"RUNNING","availMemoryMB":1e999}]}}'),
}  # fmt: skip
SPOTS = ["/info", "/conf", "/scheduler", "/nodes", "/apps$", "/apps/", "/proxy/", "/containers", "/state", ""]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("spot", SPOTS)
@pytest.mark.parametrize("bad", list(BAD))
def test_no_fault_of_the_cluster_raises(cluster, spot, bad):
    port = cluster.port(allow_kill=True, allow_priority=True)
    names = (application(1), attempt(1, 1), container(1, 2))
    port.observe(ObservationRequest())
    assert port.perform(Suspend("o-1", *names, 1, EPOCH)) == Accepted()
    cluster.break_(spot, BAD[bad])
    cluster.now_ms += 100_000
    port.identify()
    for scope in (
        HURRIED,
        ObservationRequest(victims=(application(1),), orders=("o-1",)),
        ObservationRequest(cluster=False, orders=("o-1", "o-unheard-of")),
    ):
        seen = port.observe(scope)
        assert seen.as_of_ms <= seen.now_ms
    for action in (
        Suspend("o-2", application(1), attempt(1, 2), container(1, 3), 1, EPOCH),
        Release("o-1", *names, 1),
        Withdraw("o-1", *names),
        SetPriority(application(2), 3),
    ):
        assert port.perform(action) is not None


def test_a_cluster_that_is_not_there(cluster):
    port = cluster.port()
    cluster.rm.__exit__()
    seen = port.observe(HURRIED)
    assert (seen.cluster, seen.snapshot) == ("unreachable", None)
    assert port.identify().epoch == ""
    assert "127.0.0.1" in said(port.last_problem)


@pytest.mark.parametrize("hostile", ["../../etc", "application_1_1/../x", "", "application_1_1\nx"])
def test_hostile_ids_go_nowhere(cluster, hostile):
    port = cluster.port()
    port.observe(ObservationRequest())
    paths(cluster)
    seen = port.observe(ObservationRequest(cluster=False, victims=(hostile,)))
    assert seen.unreachable == (hostile,)
    assert port.perform(Suspend("o-1", hostile, attempt(1, 1), container(1, 2), 1, EPOCH)) is not None
    assert not [path for path in paths(cluster) if ".." in path or "\n" in path]
    assert cluster.hdfs.files == {}


def test_a_look_for_people_shows_a_quiet_cluster_with_its_runners(cluster):
    cluster.apps[application(2)].asks = []
    port = cluster.port()
    assert port.observe(HURRIED).cluster == "quiet"
    shown = port.observe_soon()
    assert shown is not None
    runners = {view.application: view.runner for view in shown.applications}
    assert runners == {application(1): True, application(2): False}
    assert {view.queue for view in shown.queues} == {"root.production", "root.research"}
    cluster.apps.clear()
    again = port.observe_soon()
    assert again is not None
    assert again.applications == ()


def test_a_look_at_a_cluster_that_is_away_shows_nothing(cluster):
    port = cluster.port()
    cluster.break_("GET /ws/v1/cluster/scheduler", page("gone", 500))
    assert port.observe_soon() is None
    assert port.last_problem


def test_what_nobody_foresaw_is_a_cluster_that_cannot_be_seen_and_hides_no_order(cluster, monkeypatch):
    port = cluster.port()
    assert port.observe(HURRIED).cluster == "seen"
    assert (
        port.perform(Suspend("o-1", application(1), attempt(1, 1), container(1, 2), 1, EPOCH)) == Accepted()
    )
    cluster.save(1, 1, "o-1")

    def odd(*_):
        raise OverflowError("cannot convert float infinity to integer")

    monkeypatch.setattr(port._observer, "snapshot", odd)
    seen = port.observe(ObservationRequest(orders=("o-1",)))
    assert (seen.cluster, [type(fact) for fact in seen.facts]) == ("unreachable", [ManifestSeen])
    assert "OverflowError" in said(port.last_problem)
    assert port.observe_soon() is None


# --- what Java still holds ----------------------------------------------------------------------


def begun(cluster, number: int, text: str) -> None:
    cluster.attempt(1, number)["status"] = f"yarnctl phase=run groups=10 done=10000 known=10000 {text}"


def test_a_small_reduces_input_is_known_by_javas_own_counters(cluster):
    """Its runner has seen 10 groups of 1,000 bytes; Java has read 60, and that is all."""
    begun(cluster, 1, "all=0 gen=0 can=1 ran=1000 base=0")
    begun(cluster, 2, "all=1 gen=0 can=1 ran=1000 base=0")
    cluster.groups_read = {attempt(1, 1): 60, attempt(1, 2): 60}
    port = cluster.port()
    port.observe(HURRIED)
    seen = port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    first, second, _ = seen.tasks[application(1)]
    assert (first.remaining_ms, second.remaining_ms) == (5_000, 0)
    asked = [one.path for one in cluster.rm.heard if one.path.endswith("/counters")]
    assert len(asked) == 1
    assert attempt(1, 1) in asked[0]


def test_without_its_counters_what_is_known_counts(cluster):
    begun(cluster, 1, "all=0 gen=0 can=1 ran=1000 base=0")
    port = cluster.port()
    port.observe(HURRIED)
    seen = port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    assert seen.tasks[application(1)][0].remaining_ms == 0  # it will be left to finish


def test_only_so_many_counters_are_asked_for_in_a_look(cluster):
    for number in (1, 2, 3):
        begun(cluster, number, "all=0 gen=0 can=1 ran=1000 base=0")
    port = cluster.port(counters_max=2)
    port.observe(HURRIED)
    port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    assert len([one for one in cluster.rm.heard if one.path.endswith("/counters")]) == 2


def test_why_a_task_cannot_be_suspended_is_logged_once_in_its_runners_words(cluster, caplog):
    caplog.set_level("INFO", logger="yarnctl.attach")
    port = cluster.port()
    row = cluster.attempt(1, 1)
    for groups in (3, 4):
        row["status"] = f"yarnctl phase=run groups={groups} gen=0 can=0 why=side files: a\x1b[1mb > reduce"
        cluster.now_ms += 1000
        port.observe(ObservationRequest())
        port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    told = [line.getMessage() for line in caplog.records if "its task runner reports" in line.getMessage()]
    assert told == [f"{attempt(1, 1)} cannot be suspended; its task runner reports: 'side files: a\\x1b[1mb'"]
    assert port.left_alone() == {attempt(1, 1): RunnerSays("side files: a\x1b[1mb")}
    row["status"] = "yarnctl phase=run groups=5 gen=0 can=1 > reduce"
    port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    assert port.left_alone() == {}


@pytest.mark.parametrize("enforce", [True, False])
def test_yarns_own_preemption_blocks_enforcing_and_not_observing(cluster, enforce):
    cluster.configuration["yarn.resourcemanager.scheduler.monitor.enable"] = "true"
    cluster.preemption_disabled = False
    port = cluster.port(enforce=enforce)
    assert port.observe(HURRIED).cluster == "seen"
    assert (port.permission.why_nothing() is not None) is enforce
