"""Recorded answers of real Hadoops: yarnctl's clients read them, and the emulator's have their form.

The recordings are made by ``python -m tests.contract.recording``; who changes the story records it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.host import Host
from tests.contract.recording import EPOCH, VERSIONS, alike, entry, load
from tests.contract.shapes import differences
from tests.contract.story import tell
from tests.contract.virtual_host import VirtualHost
from tests.unit.hadoop.replaying import Heard, Replay, Reply, routes
from yarnctl.frameworks.mapreduce.history_server import HistoryServer
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.hadoop.http.answers import Altered, Missing, Rejected
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire import views

C, APP = "/ws/v1/cluster", f"application_{EPOCH}_0007"
JOB, ATTEMPT = f"job_{EPOCH}_0007", f"appattempt_{EPOCH}_0007_000001"
NOBODYS = "application_1_0001"
Recorded = dict[str, dict[str, Any]]


@pytest.fixture(params=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorded(version: str) -> Recorded:
    return load(version)


def reply(one: dict[str, Any]) -> Reply:
    body = one["body"] if isinstance(one["body"], str) else json.dumps(one["body"])
    return Reply(body, one["status"], one["kind"])


@pytest.fixture
def manager(recorded: Recorded) -> Iterator[ResourceManager]:
    names = {
        "info": "info", "userinfo": "userinfo", "metrics": "metrics", "scheduler": "scheduler",
        "nodes": "nodes", "apps": "apps", f"apps/{APP}": "app", f"apps/{APP}/state": "state",
        f"apps/{APP}/appattempts": "appattempts",
        f"apps/{APP}/appattempts/{ATTEMPT}/containers": "containers",
        "scheduler-conf": "scheduler-conf", "scheduler-overview": "scheduler-overview",
        f"apps/{NOBODYS}": "no-application",
    }  # fmt: skip
    table = {f"{C}/{path}": reply(recorded[name]) for path, name in names.items()}
    table |= {"/conf": reply(recorded["conf"]), f"PUT {C}/apps/{APP}/state": reply(recorded["kill"])}
    table |= {f"PUT {C}/apps/{APP}/{name}": reply(recorded[f"put-{name}"]) for name in ("priority", "queue")}
    with Replay(routes({**table})) as rm, Transport([rm.url]) as to:
        yield ResourceManager(to)


# --- what the clients make of them ------------------------------------------------------------


def test_the_cluster_is_read(manager: ResourceManager, version: str) -> None:
    info = manager.identify()
    assert (info.version[:3], info.ha_state, info.epoch) == (version, "ACTIVE", int(EPOCH))
    assert manager.whoami().user == "alice"
    metrics = manager.metrics()
    assert metrics.total_mib > 0 < metrics.nodes_active
    assert metrics.pending_mib is not None
    assert manager.counted_resources() == ("memory-mb", "vcores")
    assert manager.configuration()["yarn.resourcemanager.scheduler.class"].endswith(".CapacityScheduler")
    queues = manager.scheduler_configuration()["yarn.scheduler.capacity.root.queues"]
    assert sorted(queues.split(",")) == ["production", "research"]
    total, largest, free = views.cluster_room(views.by_partition(manager.nodes())[""])
    assert (total.memory_mib, total.vcores) == (metrics.total_mib, metrics.total_vcores)
    assert largest.memory_mib > 0 < len(free)


def test_the_queues_are_read(manager: ResourceManager) -> None:
    leaves = {one.path: one.queue for one in views.leaves(manager.root_queue())}
    assert {path: one.guaranteed_percent for path, one in leaves.items()} == {
        "root.production": 95,
        "root.research": 5,
    }
    research = leaves["root.research"]
    assert (research.maximum_percent, research.preemption_disabled, research.state) == (100, True, "RUNNING")
    assert research.guaranteed is not None
    assert research.maximum is not None
    assert research.maximum.memory_mib > research.guaranteed.memory_mib > 0
    assert research.used.memory_mib > 0
    assert research.am_limit is not None
    assert research.am_used.memory_mib > 0
    assert research.users is not None
    assert [one.user for one in research.users.rows] == ["alice"]
    assert leaves["root.production"].priority > research.priority


def test_an_application_is_read(manager: ResourceManager) -> None:
    (listed,), app = manager.applications(), manager.application(APP)
    assert (listed.application, listed.allocated_mib) == (APP, app.allocated_mib)
    assert (app.user, app.state, app.kind, app.containers) == ("alice", "RUNNING", "MAPREDUCE", 2)
    assert app.queue.removeprefix("root.") == "research"
    assert app.submitted_at_ms == int(EPOCH)
    assert views.pending(app).memory_mib == 0
    assert views.activated(app)
    assert manager.state(APP) == "RUNNING"
    (attempt,) = manager.app_attempts(APP)
    assert (attempt.number, attempt.attempt) == (1, ATTEMPT)
    held = manager.containers(APP, attempt.attempt)
    assert sorted(str(views.kind_of(one)) for one in held) == ["am", "reduce"]
    assert sum(one.memory_mib for one in held) == app.allocated_mib
    assert attempt.container in {one.container for one in held}
    assert {one.state for one in held} == {"RUNNING"}


def test_changes_are_read(manager: ResourceManager) -> None:
    manager.set_priority(APP, 1)
    with pytest.raises(Altered):
        manager.set_priority(APP, 8)  # the recording says 1
    manager.move(APP, "research")
    assert manager.kill(APP)
    with pytest.raises(Missing):
        manager.application(NOBODYS)


def test_the_master_is_read(recorded: Recorded) -> None:
    root = f"/proxy/{APP}/ws/v1/mapreduce"
    (running,) = listed(recorded["am-attempts"]["body"], "taskAttempts", "taskAttempt")
    attempt = str(running["id"])
    task = attempt.replace("attempt_", "task_", 1).rpartition("_")[0]
    below = {
        f"jobs/{JOB}/tasks": "am-tasks", f"jobs/{JOB}/counters": "am-job-counters",
        f"jobs/{JOB}/tasks/{task}/attempts": "am-attempts", f"jobs/{JOB}/conf": "am-job-conf",
        f"jobs/{JOB}/tasks/{task}/attempts/{attempt}/counters": "am-attempt-counters",
    }  # fmt: skip
    table = {f"{root}/{path}": reply(recorded[name]) for path, name in below.items()}
    table[f"PUT {root}/jobs/{JOB}/tasks/{task}/attempts/{attempt}/state"] = reply(recorded["am-kill"])
    with Replay(routes({**table})) as rm, Transport([rm.url]) as to:
        master = MasterClient(to, APP)
        reduces, attempts = master.reduces(), master.attempts(task)
        configuration = master.configuration()
        master.kill(task, attempt)
    assert not isinstance(reduces, Absent)
    assert sorted(one.state for one in reduces) == ["RUNNING", "SUCCEEDED"]
    assert not isinstance(attempts, Absent)
    assert [(one.attempt, one.phase, one.running) for one in attempts] == [(attempt, "reduce", True)]
    assert not isinstance(configuration, Absent)
    assert configuration["mapreduce.job.queuename"] == "research"


def listed(body: Any, root: str, item: str) -> list[dict[str, Any]]:
    rows = body[root][item]
    return rows if isinstance(rows, list) else [rows]


def test_hdfs_and_history_are_read(recorded: Recorded) -> None:
    def answer(heard: Heard) -> Reply:
        if heard.path.startswith("/webhdfs"):
            name = {"GETFILESTATUS": "status", "LISTSTATUS": "list", "RENAME": "rename-onto"}
            return reply(recorded[name[heard.query["op"]]])
        return reply(recorded["history-job"])

    with Replay(answer) as daemon, Transport([daemon.url]) as to:
        hdfs = WebHdfs([daemon.url])
        status, rows = hdfs.status("/contract/story/a"), hdfs.listing("/contract/story")
        end = HistoryServer(to).job(JOB)
    assert (status.kind, status.length, status.owner) == ("FILE", 5, "alice")
    assert [(one.name, one.kind) for one in rows] == [("a", "FILE"), ("b", "FILE")]
    assert (end.state, end.user, end.finished_at_ms) == ("SUCCEEDED", "alice", int(EPOCH))


def test_a_no_to_a_change_is_a_no_whatever_its_number(recorded: Recorded) -> None:
    """Hadoop says 503 to what it cannot read or does not know; its body tells that it has understood."""
    with (
        Replay(reply(recorded["no-queue"])) as rm,
        Transport([rm.url]) as to,
        pytest.raises(Rejected) as told,
    ):
        ResourceManager(to).move(APP, "nowhere")
    assert told.value.remote == "UndeclaredThrowableException"


# --- what the emulator says to the same questions ---------------------------------------------


@pytest.fixture(scope="module", params=list(VERSIONS))
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recorded, Recorded]:
    """Return what a real Hadoop said and what the emulator says, to the same story."""
    host: Host = VirtualHost(tmp_path_factory.mktemp("story"), request.param)
    try:
        told = {one[0]: entry(one) for one in tell(host)}
    finally:
        host.close()
    return load(request.param), told


def test_the_emulator_tells_the_same_story(both: tuple[Recorded, Recorded]) -> None:
    real, emulated = both
    assert list(emulated) == list(real)
    assert {name: one["status"] for name, one in emulated.items()} == {
        name: one["status"] for name, one in real.items()
    }


def test_the_emulators_answers_have_the_form_of_the_recorded_ones(both: tuple[Recorded, Recorded]) -> None:
    real, emulated = both
    found = [line for name in real for line in differences(name, real[name]["body"], emulated[name]["body"])]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("real", "other", "said"),
    [({"a": 1}, {}, "x.a: missing"), ({}, {"a": 1}, "x.a: not in Hadoop"),
     ({"a": 1}, {"a": "1"}, "x.a: number became text"),
     ({"a": [{"b": 1}]}, {"a": {"b": 1}}, "x.a: list became object"),
     ({"a": [{"b": 1}, {"c": 1}]}, {"a": [{"b": 1}]}, "x.a[].c: missing"),
     ({"a": [1]}, {"a": []}, "x.a[]: none"), ({"a": True}, {"a": 1}, "x.a: truth became number"),
     ({"a": {}}, {"a": None}, "x.a: object became null")],
)  # fmt: skip
def test_what_is_planted_is_found(real: Any, other: Any, said: str) -> None:
    assert differences("x", real, real) == []
    assert [line for line in differences("x", real, other) if line.startswith(said)], said


def test_a_recording_is_free_of_chance() -> None:
    for version in VERSIONS:
        kept = load(version)
        assert alike(kept) == kept
        text = json.dumps(kept)
        assert str(Path.home()) + "/" not in text
        assert len(text) < 400_000
