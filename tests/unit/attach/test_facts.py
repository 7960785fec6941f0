"""Facts about open orders: each once, ends before grants, endings as the master tells them."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from tests.unit.attach.fake_cluster import EPOCH, SLOT, App, application, attempt, container, task
from tests.unit.hadoop.replaying import page
from yarnctl.attach.port import REJOINING_MS
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    ContainerEnded,
    ContainerGranted,
    Ending,
    EpochChanged,
    Kill,
    ManifestSeen,
    ObservationRequest,
    Release,
    Suspend,
    UploadProgressed,
)
from yarnctl.deciding.order import Order
from yarnctl.frameworks.mapreduce import saved_work, tracking

NAMES = (application(1), attempt(1, 1), container(1, 2))
LOOK = ObservationRequest(cluster=False, orders=("o-1",))


def asked(cluster, **settings):
    """Return a port that has sent one request and looked at it once."""
    made = cluster.port(allow_kill=True, **settings)
    made.observe(ObservationRequest())
    made.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    assert made.perform(Suspend("o-1", *NAMES, 1, EPOCH)) == Accepted()
    assert made.observe(LOOK).facts == ()
    return made


@pytest.fixture
def port(cluster):
    return asked(cluster)


def facts(cluster, port, after_ms: int = 1000) -> tuple:
    cluster.now_ms += after_ms
    return port.observe(LOOK).facts


def ended(cluster, ending: Ending) -> ContainerEnded:
    return ContainerEnded(container(1, 2), application(1), "n1:1", ending, cluster.now_ms)


# --- saving -------------------------------------------------------------------------------------


def test_a_manifest_is_told_once(cluster, port):
    cluster.save(1, 1, "o-1", groups=77)
    assert facts(cluster, port) == (ManifestSeen("o-1", attempt(1, 1), 1, 77, cluster.now_ms),)
    assert facts(cluster, port) == ()


def test_who_saved_first_is_told_first(cluster, port):
    """The order in which they are released, and so resume; names would not say it."""
    second = Suspend("o-2", application(1), attempt(1, 2), container(1, 3), 1, EPOCH)
    assert port.perform(second) == Accepted()
    cluster.save(1, 2, "o-2")
    cluster.now_ms += 10
    cluster.save(1, 1, "o-1")
    cluster.now_ms += 1000
    seen = port.observe(ObservationRequest(cluster=False, orders=("o-1", "o-2"))).facts
    assert [fact.order for fact in seen if isinstance(fact, ManifestSeen)] == ["o-2", "o-1"]


def test_a_generation_above_the_one_asked_for_is_told_as_asked_and_released_all_the_same(cluster, port):
    cluster.save(1, 1, "o-1", generation=4)  # torn uploads have used 1 to 3 up
    (fact,) = facts(cluster, port)
    assert (type(fact), fact.generation) == (ManifestSeen, 1)
    assert port.perform(Release("o-1", *NAMES, 1)) == Accepted()


def test_unchanged_with_a_valid_generation_is_as_good(cluster, port):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", "unchanged", 1)
    cluster.attempt(1, 1)["status"] = "yarnctl phase=hold groups=50 gen=1 order=o-1"
    assert [type(fact) for fact in facts(cluster, port)] == [ManifestSeen]
    assert port.perform(Release("o-1", *NAMES, 1)) == Accepted()


@pytest.mark.parametrize(
    ("word", "generation"), [("unchanged", 0), ("unchanged", 3), ("refused", 1), ("completing", 1)]
)
def test_other_answers_are_noted_and_never_a_manifest(cluster, port, word, generation):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", word, generation)
    assert not [fact for fact in facts(cluster, port) if isinstance(fact, ManifestSeen)]
    assert "because" in port.notes["o-1"] or "generation" in port.notes["o-1"]
    assert port.perform(Release("o-1", *NAMES, 1)) != Accepted()


def test_a_foreign_answer_is_not_believed(cluster, port):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", "unchanged", 1)
    folder = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}"
    cluster.hdfs.owners[f"{folder}/answer-o-1-{attempt(1, 1)}.json"] = ("eve", "600")
    assert not [fact for fact in facts(cluster, port) if isinstance(fact, ManifestSeen)]


HOSTILE = {
    "endless": b'{"order":"o-1","attempt":"%s","answer":"unchanged","generation":1e999,"reason":""}',
    "deep": b"[" * 50_000, "deep and long": b"[" * 200_000, "a list": b"[1]", "no text": b"\xff\xfe",
    "words": b'{"order":"o-1","attempt":"%s","answer":"unchanged","generation":"x","reason":""}',
}  # fmt: skip


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("file", ["answer", "manifest"])
def test_whatever_an_owner_writes_is_no_answer_and_ends_nothing(cluster, port, kind, file):
    cluster.save(1, 1, "o-1")
    folder = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}"
    name = f"answer-o-1-{attempt(1, 1)}.json"
    if file == "answer":
        cluster.answered(1, 1, "o-1", "unchanged", 1)
    else:
        name = f"gen-000001-{attempt(1, 1)}.manifest.json"
    cluster.hdfs.files[f"{folder}/{name}"] = HOSTILE[kind].replace(b"%s", attempt(1, 1).encode())
    assert not [fact for fact in facts(cluster, port) if isinstance(fact, ManifestSeen)]
    assert port.notes["o-1"]
    assert not isinstance(port.perform(Release("o-1", *NAMES, 1)), Accepted)


def test_what_was_said_can_be_shown_and_written_anywhere(cluster, port):
    cluster.answered(1, 1, "o-1", "refused")
    folder = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}"
    name = f"{folder}/answer-o-1-{attempt(1, 1)}.json"
    cluster.hdfs.files[name] = cluster.hdfs.files[name].replace(b"because", b"\\ud800" + b"x" * 3000)
    facts(cluster, port)
    assert len(port.notes["o-1"].encode("utf-8")) < 500


def test_what_nobody_foresaw_in_one_job_hides_no_other(cluster, port, monkeypatch):
    second = Suspend("o-2", application(1), attempt(1, 2), container(1, 3), 1, EPOCH)
    assert port.perform(second) == Accepted()
    cluster.save(1, 1, "o-1")
    cluster.save(1, 2, "o-2")
    whole = saved_work.safe_manifest

    def odd(store, task, proof):
        if task.attempt == attempt(1, 1):
            raise ZeroDivisionError
        return whole(store, task, proof)

    monkeypatch.setattr(tracking, "safe_manifest", odd)
    seen = port.observe(ObservationRequest(cluster=False, orders=("o-1", "o-2"))).facts
    assert [fact.order for fact in seen if isinstance(fact, ManifestSeen)] == ["o-2"]
    assert "ZeroDivisionError" in port.notes["o-1"]


@pytest.mark.parametrize("count", [40, 400])
def test_one_look_reads_so_much_and_no_more(cluster, port, count):
    """However many manifests, or bytes, an owner puts into a task's folder."""
    cluster.save(1, 1, "o-9")
    folder = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}"
    for number in range(count):
        name = f"{folder}/gen-{number + 2:06d}-{attempt(1, 1)}.manifest.json"
        cluster.hdfs.files[name], cluster.hdfs.owners[name] = b"[]", ("ann", "600")
    cluster.hdfs.replay.heard.clear()
    facts(cluster, port)
    assert len(cluster.hdfs.replay.heard) <= 40


def test_one_look_reads_no_more_bytes_than_allowed(cluster):
    port = asked(cluster, observation_bytes=100_000)
    cluster.save(1, 1, "o-1")
    folder = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}"
    for number in range(10):
        name = f"{folder}/gen-{number + 2:06d}-{attempt(1, 1)}.manifest.json"
        cluster.hdfs.files[name], cluster.hdfs.owners[name] = b"[" * 60_000, ("ann", "600")
    cluster.hdfs.replay.heard.clear()
    facts(cluster, port)
    assert sum(heard.query["op"] == "OPEN" for heard in cluster.hdfs.replay.heard) <= 3
    assert not isinstance(port.perform(Release("o-1", *NAMES, 1)), Accepted)


def test_progress_is_told_when_something_moved(cluster, port):
    cluster.attempt(1, 1)["status"] = "yarnctl phase=drain groups=51 gen=0"
    assert facts(cluster, port) == (UploadProgressed("o-1", cluster.now_ms),)
    assert facts(cluster, port) == ()
    folder = f"/yarnctl/checkpoints/job_{EPOCH}_0001/{task(1, 1)}"
    cluster.hdfs.folders.update({folder})
    cluster.hdfs.files[f"{folder}/gen-000001-{attempt(1, 1)}.part"] = b"x"
    assert facts(cluster, port) == (UploadProgressed("o-1", cluster.now_ms),)
    assert facts(cluster, port) == ()
    cluster.attempt(1, 1)["status"] = "yarnctl phase=run groups=51 gen=0"  # it has given up
    assert facts(cluster, port) == ()


# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "ending"), [("SUCCEEDED", "completed"), ("FAILED", "failed"), ("KILLED", "killed")]
)
def test_an_end_is_told_once_the_room_is_free(cluster, port, state, ending):
    cluster.attempt(1, 1)["state"] = state
    assert facts(cluster, port) == ()  # YARN still holds the container
    del cluster.apps[application(1)].containers[container(1, 2)]
    assert facts(cluster, port) == (ended(cluster, ending),)
    assert facts(cluster, port) == ()


def test_killed_after_our_release_is_suspended(cluster, port):
    cluster.save(1, 1, "o-1")
    facts(cluster, port)
    assert port.perform(Release("o-1", *NAMES, 1)) == Accepted()
    assert facts(cluster, port) == (ended(cluster, "suspended"),)


def test_the_attempts_of_a_killed_task_are_read_again_when_its_container_is_gone(cluster, port):
    cluster.on_kill = lambda _attempt: None
    assert port.perform(Kill("o-1", *NAMES)) == Accepted()
    facts(cluster, port)
    cluster.rm.heard.clear()
    cluster.now_ms += 1_000
    port.observe(ObservationRequest(cluster=False, orders=("o-1",)))
    assert not [one for one in cluster.rm.heard if one.path.endswith("/attempts")]
    cluster.killed(attempt(1, 1))
    (fact,) = port.observe(ObservationRequest(cluster=False, orders=("o-1",))).facts
    assert isinstance(fact, ContainerEnded)


def test_a_kill_is_watched_until_its_room_is_free_though_its_order_is_settled(cluster, port):
    cluster.on_kill = lambda _attempt: None
    assert port.perform(Kill("o-1", *NAMES)) == Accepted()
    assert port.observe(ObservationRequest(cluster=False)).facts == ()
    cluster.killed(attempt(1, 1))
    assert port.observe(ObservationRequest(cluster=False)).facts == (ended(cluster, "killed"),)
    assert port.observe(ObservationRequest(cluster=False)).facts == ()


def test_a_lost_node_takes_its_containers_along(cluster, port):
    cluster.attempt(1, 1)["state"] = "KILLED"
    del cluster.nodes["n1:1"]
    del cluster.apps[application(1)].containers[container(1, 2)]
    assert facts(cluster, port) == (ended(cluster, "lost"),)


def test_a_container_whose_end_nobody_explains_is_lost_after_a_while(cluster, port):
    cluster.break_("GET /proxy/", page())
    del cluster.apps[application(1)].containers[container(1, 2)]
    assert facts(cluster, port) == ()
    assert facts(cluster, port, 2_999) == ()
    assert facts(cluster, port, 1) == (ended(cluster, "lost"),)


def test_the_end_of_an_application(cluster, port):
    app = cluster.apps[application(1)]
    app.state, app.containers = "FINISHED", {}
    assert facts(cluster, port) == (ApplicationEnded(application(1), cluster.now_ms),)
    assert facts(cluster, port) == ()


def test_an_application_without_containers_is_asked_for_its_end_every_two_seconds(cluster, port):
    waiting = cluster.add(App(5, "production", user="bob", state="ACCEPTED"))
    request = ObservationRequest(cluster=False, orders=("o-1",), requesters=(waiting.id,))
    port.observe(request)
    cluster.rm.heard.clear()
    for step_ms in (0, 1999, 1):
        cluster.now_ms += step_ms
        port.observe(request)
    heard = [one.path.rsplit("/", 1)[1] for one in cluster.rm.heard if waiting.id in one.path]
    assert heard == ["containers", "containers", "containers", "appattempts", "state"]


def test_who_was_given_what_another_waited_for_is_told_with_that_ones_end(cluster, port):
    """The requester ends between two looks that would ask for it: the grant is not somebody's fault."""
    waiting = cluster.add(App(5, "production", user="bob", state="ACCEPTED"))
    request = ObservationRequest(cluster=False, orders=("o-1",), requesters=(waiting.id, application(2)))
    port.observe(request)
    waiting.state = "KILLED"
    cluster.killed(attempt(1, 1))
    granted(cluster, cluster.apps[application(2)], 1)
    cluster.now_ms += 1500
    told = port.observe(request).facts
    assert ApplicationEnded(waiting.id, cluster.now_ms) in told
    assert [fact.application for fact in told if isinstance(fact, ContainerGranted)] == [application(2)]


def test_an_application_that_nobody_knows_has_not_ended(cluster, port):
    del cluster.apps[application(1)]
    assert not [fact for fact in facts(cluster, port) if isinstance(fact, ApplicationEnded)]


# --- grants -------------------------------------------------------------------------------------


def granted(cluster, app: App, of: int, node: str = "n1:1") -> ContainerGranted:
    app.containers[container(app.number, of)] = (node, 10)
    return ContainerGranted(container(app.number, of), app.id, node, SLOT, cluster.now_ms + 1000)


def test_grants_are_told_after_ends_and_once(cluster, port):
    cluster.killed(attempt(1, 1))
    requester = cluster.apps[application(2)]
    fact = granted(cluster, requester, 1)
    assert facts(cluster, port) == (ended(cluster, "killed"), fact)
    assert facts(cluster, port) == ()


def test_a_grant_of_a_poll_that_fails_is_a_grant_of_the_next(cluster, port, monkeypatch):
    """Otherwise the order counts as unclaimed, though its requester has the container."""
    cluster.killed(attempt(1, 1))
    granted(cluster, cluster.apps[application(2)], 1)

    def fails(*_given):
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(tracking.TaskTracking, "poll", fails)
        assert facts(cluster, port) == ()
    assert [type(fact) for fact in facts(cluster, port)] == [ContainerEnded, ContainerGranted]


def test_a_grant_waits_until_it_is_known_how_the_container_on_its_node_ended(cluster, port):
    cluster.apps[application(1)].containers.pop(container(1, 2))  # its master has not noticed
    granted(cluster, cluster.apps[application(2)], 1)
    other = granted(cluster, cluster.apps[application(2)], 2, "n2:1")
    assert facts(cluster, port) == (other,)
    cluster.killed(attempt(1, 1))
    assert [type(fact) for fact in facts(cluster, port)] == [ContainerEnded, ContainerGranted]
    assert facts(cluster, port) == ()


def test_the_victims_own_new_container_is_a_grant(cluster, port):
    cluster.killed(attempt(1, 1))
    fact = granted(cluster, cluster.apps[application(1)], 7)
    assert facts(cluster, port)[1:] == (fact,)


def test_what_somebody_held_before_is_no_grant_but_all_that_a_new_application_holds_is(cluster, port):
    fresh = cluster.add(App(5, "production", user="bob"))
    granted(cluster, fresh, 1, "n2:1")
    cluster.now_ms += 1000
    (fact,) = port.observe(ObservationRequest(orders=("o-1",))).facts
    assert (fact.application, fact.container) == (fresh.id, container(5, 1))


def test_who_waits_for_nothing_is_polled_when_its_number_of_containers_changes(cluster, port):
    idle = cluster.add(App(5, "production", user="bob"))
    granted(cluster, idle, 1)
    port.observe(ObservationRequest(orders=("o-1",)))
    fact = granted(cluster, idle, 2)
    cluster.rm.heard.clear()
    assert port.observe(ObservationRequest(cluster=False, orders=("o-1",))).facts == ()
    assert not [one for one in cluster.rm.heard if idle.id in one.path]
    cluster.now_ms += 1000
    assert port.observe(ObservationRequest(orders=("o-1",))).facts == (fact,)


def test_a_grant_of_room_that_came_free_during_the_look_comes_after_its_end(cluster, port):
    """The requester is listed before the victim; what it was given a moment later is not lost."""
    requester, real = cluster.apps[application(2)], cluster.answer

    def answer(heard):
        reply = real(heard)
        if f"{application(1)}/appattempts/" in heard.path and container(2, 1) not in requester.containers:
            cluster.killed(attempt(1, 1))  # just after the victim was listed
            granted(cluster, requester, 1)
        return reply

    cluster.rm.answer = answer
    told = [*facts(cluster, port), *facts(cluster, port)]
    assert [type(fact) for fact in told] == [ContainerEnded, ContainerGranted]


def order(state: State) -> Order:
    return Order(
        order="o-1", requester=application(2), victim=application(1), attempt=attempt(1, 1),
        container=container(1, 2), node="n1:1", size=SLOT,
        request_size=SLOT, serves=1, group="o-1", generation=1,
        verb="suspend", decision=1, ordered_at_ms=EPOCH, progress_at_ms=EPOCH, state=state,
    )  # fmt: skip


def test_orders_of_an_earlier_life_are_adopted(cluster):
    cluster.save(1, 1, "o-1")
    port = cluster.port()
    port.adopt([order("suspending")])
    assert [type(fact) for fact in port.observe(ObservationRequest(orders=("o-1",))).facts] == [ManifestSeen]
    assert port.perform(Release("o-1", *NAMES, 1)) == Accepted()
    assert port.observe(LOOK).facts == (ended(cluster, "suspended"),)


def test_a_release_that_an_earlier_life_sent_is_known_by_its_end(cluster):
    cluster.save(1, 1, "o-1")
    cluster.killed(attempt(1, 1))
    port = cluster.port()
    port.adopt([order("checkpointed")])
    facts_seen = port.observe(LOOK).facts
    assert facts_seen[-1] == ended(cluster, "suspended")


def test_orders_that_were_only_observed_are_not_polled(cluster):
    """No task was ordered to leave, so its end is no fact about an order."""
    port = cluster.port(enforce=False)
    port.adopt([msgspec.structs.replace(order("ordered"), observed=True)])
    cluster.killed(attempt(1, 1))
    assert port.observe(LOOK).facts == ()
    port.adopt([order("ordered")])
    assert port.observe(LOOK).facts == (ended(cluster, "killed"),)


def test_a_failover_while_yarnctl_was_away_is_told(cluster):
    port = cluster.port()
    port.adopt([order("suspending")], epoch=str(EPOCH - 5))
    assert EpochChanged(str(EPOCH), cluster.now_ms) in port.observe(ObservationRequest(orders=("o-1",))).facts


# --- after a restart of the ResourceManager -----------------------------------------------------


def restarted(cluster, missing: tuple[str, ...]) -> Callable[[], None]:
    """Start another ResourceManager that misses these nodes; the result lets them register again."""
    nodes, held = dict(cluster.nodes), {name: dict(app.containers) for name, app in cluster.apps.items()}
    cluster.epoch += 1
    for node in missing:
        del cluster.nodes[node]
    for app in cluster.apps.values():
        app.containers = {name: row for name, row in app.containers.items() if row[0] not in missing}

    def back() -> None:
        cluster.nodes.update(nodes)
        for name, app in cluster.apps.items():
            app.containers = {**held[name], **app.containers}

    return back


@pytest.mark.parametrize("missing", [("n1:1",), ("n1:1", "n2:1")])
def test_a_task_that_lives_through_a_restart_of_the_manager_is_not_lost(cluster, port, missing):
    """Nodes register late: their containers are not listed, while the masters know the tasks."""
    back = restarted(cluster, missing)
    look = ObservationRequest(orders=("o-1",), requesters=(application(2),))
    found = []
    for _ in range(8):
        cluster.now_ms += 4_000
        found += port.observe(look).facts
    back()
    cluster.now_ms += 4_000
    found += port.observe(look).facts
    assert [type(fact) for fact in found] == [EpochChanged]
    cluster.save(1, 1, "o-1")
    assert [type(fact) for fact in facts(cluster, port)] == [ManifestSeen]
    assert port.perform(Release("o-1", *NAMES, 1)) == Accepted()
    fact = granted(cluster, cluster.apps[application(2)], 1)
    assert facts(cluster, port) == (ended(cluster, "suspended"), fact)


def test_a_task_that_ends_while_nodes_register_again_ends_as_its_master_says(cluster, port):
    restarted(cluster, ("n1:1",))
    cluster.attempt(1, 1)["state"] = "SUCCEEDED"
    cluster.now_ms += 1000
    seen = port.observe(ObservationRequest(orders=("o-1",))).facts
    assert seen[-1] == ended(cluster, "completed")


def test_a_task_that_did_not_survive_the_restart_is_lost_once_the_nodes_had_their_time(cluster, port):
    restarted(cluster, ("n1:1",))
    cluster.break_("GET /proxy/", page())
    port.observe(ObservationRequest(orders=("o-1",)))
    assert facts(cluster, port, REJOINING_MS - 1) == ()
    assert facts(cluster, port, 3_000) == (ended(cluster, "lost"),)


def test_orders_nobody_told_the_port_of_are_left_alone(cluster):
    port = cluster.port()
    assert port.observe(LOOK).facts == ()


def test_a_grant_to_a_master_that_waits_in_another_queue_is_seen(cluster, port):
    """In 3.4 its row has no ``resourceInfo``, and it waits no more when its containers are listed."""
    other = cluster.add(App(5, "adhoc", asks=[(0, SLOT, 1)], submitted_at_ms=cluster.now_ms))
    real = cluster.answer

    def answer(heard):
        reply = real(heard)
        if heard.path.endswith("/cluster/apps"):
            rows = json.loads(reply.body)
            for row in rows["apps"]["app"]:
                if row["id"] == other.id and not other.containers:
                    row.pop("resourceInfo", None)
            reply = reply._replace(body=json.dumps(rows).encode())
        return reply

    cluster.rm.answer = answer
    look = ObservationRequest(orders=("o-1",))
    port.observe(look)
    granted(cluster, other, 1)
    other.asks = []
    (fact,) = port.observe(look).facts
    assert (fact.application, fact.container) == (other.id, container(5, 1))


@pytest.mark.parametrize("named", [True, False])
def test_who_the_room_is_for_is_watched_however_many_wait(cluster, named):
    """Its grant settles the order; among dozens of others that wait it would go unseen."""
    for number in range(3, 10):
        cluster.add(App(number, "production", asks=[(10, SLOT, 1)], submitted_at_ms=cluster.now_ms))
    made = asked(cluster, tracked_max=2)
    look = ObservationRequest(cluster=False, orders=("o-1",), requesters=(application(9),) if named else ())
    made.observe(look)
    cluster.apps[application(9)].containers[container(9, 1)] = ("n1:1", 0)
    seen = made.observe(look).facts
    given = [fact.application for fact in seen if isinstance(fact, ContainerGranted)]
    assert given == ([application(9)] if named else [])
