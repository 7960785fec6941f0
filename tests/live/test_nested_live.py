"""A nested capacity-scheduler.xml, served live: what yarnctl's snapshot says is what the scheduler has."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from emulator.cluster.entities import NodeLabel, NodeReservation, ParentConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import application_id
from emulator.live.manager.manager_settings import ManagerSettings
from emulator.live.manager.state import AppRecord, RequestRefused
from emulator.live.rest.site import ManagerSite
from emulator.live.wire.web import Web
from emulator.scenario.scheduler_file import read_scheduler_file
from tests import http_client
from tests.hadoop.background import Background
from tests.live.rm_playing import Played
from tests.unit.hadoop.replaying import PATIENT
from tests.unit.scheduler_files import ABSOLUTE, LABELLED, NESTED, USERS, write_file
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.view.published import Publisher
from yarnctl.daemon.view.ungranted import Ungranted
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.guarantees import guarantee_shares
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.preemptor import DemandInput, demand
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.settings import Settings
from yarnctl.frameworks.mapreduce.ordering import MapReduce
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.explaining.explain import in_words
from yarnctl.service.answers.explanations import everything_about
from yarnctl.units import Resources

GUARANTEES = Settings(mode="guarantees", preempting_queues=(), preemptable_queues=())
PATHS = Settings(preempting_queues=("root.eng.prod",), preemptable_queues=("root.res",))


class Nested:
    """A served manager with the queues of a file; everything happens on the server's thread."""

    def __init__(self, path: Path, labels: tuple[NodeLabel, ...] = ()) -> None:
        file = read_scheduler_file(path)
        self.played = Played(
            ManagerSettings(queues=file.leaves, parents=file.parents, keys=file.keys, labels=labels)
        )
        scheduler = self.played.manager.actor.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler = scheduler

        def build(url: str) -> Web:
            return ManagerSite(self.played.manager, url).web

        self.background = Background(build)

    def port(self, settings: Settings = PATHS) -> AttachedPort:
        transport = Transport([self.background.url], limits=PATIENT)
        return AttachedPort(
            ResourceManager(transport),
            None,
            Attachment(
                stable_observations=1,
                preempting_queues=settings.preempting_queues,
                preemptable_queues=settings.preemptable_queues,
                mode=settings.mode,
            ),
            lambda: self.played.wall_ms,
            {KIND: MapReduce(transport)},
        )

    def observing(self) -> tuple[Publisher, Loop]:
        """Return a daemon that only observes, and what it publishes."""
        port, publisher = self.port(), Publisher()
        publisher.ungranted = Ungranted(port.activities)
        loop = Loop(
            Controller(PATHS),
            GuardedPort(port, WriteGuard(None, lambda: None, Misdirection()), enforce=False),
            MemoryJournal(),
            publisher,
            clock_ms=lambda: self.played.wall_ms,
            observe_soon=port.observe_soon,
        )
        return publisher, loop

    def beat(self, times: int = 1) -> None:
        """Let all nodes have heartbeats."""
        for _ in range(times):
            self.played.pass_ms(1_000)
            for name in self.played.beats:
                self.played.beat(name)

    def hold(self, queue: str, reduces: int) -> AppRecord:
        """Let an application of a queue hold its master and some reduces, one from each heartbeat."""
        app = self.played.submit(queue, mib=1024)
        self.beat()
        self.played.up(app)
        self.played.call(app, (10, reduces))
        self.beat(reduces)
        self.played.call(app)
        return app

    def snapshot(self, settings: Settings = PATHS) -> Snapshot:
        port = self.port(settings)
        port.observe(Controller(settings).to_observe)
        found = port.observe_soon()
        assert found is not None, port.last_problem
        return found

    def check(self) -> Snapshot:
        """Compare yarnctl's snapshot with the scheduler's own state."""
        seen, nodes = self.snapshot(), self.scheduler.nodes
        parents = {node.path: node for node in nodes.values() if node.below}
        assert [view.queue for view in seen.parents] == sorted(parents)
        for view in seen.parents:
            node = parents[view.queue]
            assert (view.used, view.guaranteed, view.maximum) == (
                (node.used_mib, node.used_vcores), node.guaranteed, node.maximum,
            ), view.queue  # fmt: skip
            assert isinstance(node.config, ParentConfig)
            assert view.order == node.config.order
            children = [each for each in nodes.values() if each.above is node]
            if view.order == "priority-utilization":
                assert view.priorities == {each.path: each.priority for each in children if each.priority}
            assert view.fair == tuple(sorted(each.path for each in children if each.fair))
        leaves = {node.path: node for node in nodes.values() if node.leaf is not None}
        assert {view.queue for view in seen.queues} == set(leaves)
        for leaf in seen.queues:
            node = leaves[leaf.queue]
            assert (leaf.used, leaf.guaranteed, leaf.maximum) == (
                (node.used_mib, node.used_vcores), node.guaranteed, node.maximum,
            ), leaf.queue  # fmt: skip
        kept = {application_id(app): self.scheduler.kept_for(app) for app in self.scheduler.kept}
        assert list(seen.reserved.values()) == list(kept.values())
        return seen


@pytest.fixture
def nested(tmp_path):
    one = Nested(write_file(tmp_path, NESTED))
    with one.background:
        yield one


def test_a_snapshot_of_a_nested_cluster_is_the_schedulers_own_state(nested):
    played = nested.played

    def begin() -> None:
        for name in ("n1:1", "n2:1", "n3:1"):
            played.node(name, 8)
        for queue, maps in (("root.eng.lab", 9), ("res", 6), ("mkt", 2)):
            app = played.submit(queue, mib=1024)
            for name in ("n1:1", "n2:1", "n3:1"):
                played.beat(name)
            played.up(app)
            played.call(app, (20, maps))
            for _ in range(4):
                for name in ("n1:1", "n2:1", "n3:1"):
                    played.beat(name)
            played.call(app)

    nested.background.run(begin)
    seen = nested.check()
    assert sum(view.used.memory_mib for view in seen.queues) == 20 * 1024
    assert seen.reserved == {}

    def reserve() -> None:
        """Two slots are free on one node and four on another: a master of five reserves the first."""
        held = [each for each in played.manager.containers.values() if each.actor.priority]
        ended = [each.id for each in held if each.actor.node.index == 0][:2]
        played.beat("n1:1", *ended)
        played.submit("root.eng.prod", mib=5120)
        for name in ("n1:1", "n2:1", "n3:1"):
            played.beat(name)

    nested.background.run(reserve)
    seen = nested.check()
    assert list(seen.reserved.values()) == [Resources(5120, 1)]
    root = next(view for view in seen.parents if view.queue == "root")
    assert (root.reserved, root.used.memory_mib) == (Resources(5120, 1), 23 * 1024)


def test_the_queues_that_give_in_a_snapshot_are_those_of_the_schedulers_tree(nested):
    """Nothing is named: prod asks; res holds more than its guarantee, but has the first claim on mkt's."""
    played = nested.played
    nodes = ("n1:1", "n2:1", "n3:1")

    def begin() -> None:
        for name in nodes:
            played.node(name, 8)
        for queue, maps in (("lab", 9), ("res", 11), ("prod", 9)):
            app = played.submit(queue, mib=1024)
            for name in nodes:
                played.beat(name)
            played.up(app)
            played.call(app, (20, maps))
            for _ in range(6):
                for name in nodes:
                    played.beat(name)
            played.call(app)

    nested.background.run(begin)
    seen = nested.snapshot(GUARANTEES)
    used = {view.queue: view.used.memory_mib // 1024 for view in seen.queues}
    assert used == {"root.eng.lab": 10, "root.eng.prod": 2, "root.mkt": 0, "root.res": 12}
    found = guarantee_shares(seen, (), GUARANTEES)
    assert found.victims() == ("root.eng.lab",)
    found_demand = demand(DemandInput(seen, 0, 0), Ledger(), GUARANTEES)
    assert {wish.application.queue for wish in found_demand.applications} == {"root.eng.prod"}
    kept = msgspec.structs.replace(GUARANTEES, preemptable_queues=("root.res", "root.mkt"))
    assert guarantee_shares(seen, (), kept).victims() == ()


def test_a_queue_is_changed_as_its_key_is_read(nested):
    nested.background.run(lambda: nested.played.node("n1:1", 20))

    def put(queue: str, key: str, value: str) -> int:
        body = {"update-queue": [{"queue-name": queue, "params": {"entry": [{"key": key, "value": value}]}}]}
        url = f"{nested.background.url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
        return http_client.put(url, json=body).status_code

    assert put("root.eng", "maximum-capacity", "50") == 200
    assert nested.scheduler.nodes["eng"].maximum == (10240, 10)
    assert nested.scheduler.nodes["eng.lab"].maximum == (10240, 10)
    assert put("root.eng", "maximum-capacity", "") == 200
    assert nested.scheduler.nodes["eng"].maximum == (20480, 20)
    assert put("root.eng", "maximum-capacity", "10") == 400
    assert put("root.eng", "capacity", "50") == 400  # its siblings must change with it
    assert put("root.nowhere", "capacity", "50") == 400
    assert put("root.res", "queues", "a,b") == 400
    nested.check()


def test_a_queue_is_found_by_its_path_or_by_a_name_that_no_other_has(nested):
    played = nested.played
    nested.background.run(played.node)
    for name in ("root.eng.prod", "eng.prod", "prod"):
        app = nested.background.run(lambda name=name: played.submit(name))
        assert app.submission.queue == "eng.prod"
    for name in ("eng", "root", "nowhere", "root.prod"):
        with pytest.raises(RequestRefused, match="unknown queue"):
            nested.background.run(lambda name=name: played.submit(name))


def test_a_stopped_queue_takes_no_application(tmp_path):
    one = Nested(write_file(tmp_path, {**NESTED, "root.eng.state": "STOPPED"}))
    with one.background:
        one.background.run(one.played.node)
        with pytest.raises(RequestRefused, match=r"STOPPED: root\.eng\.lab"):
            one.background.run(lambda: one.played.submit("lab"))
        one.background.run(lambda: one.played.submit("mkt"))
        answer = http_client.get(f"{one.background.url}/ws/v1/cluster/scheduler").json()
        info = answer["scheduler"]["schedulerInfo"]
        states = {row["queueName"]: row["state"] for row in info["queues"]["queue"]}
        assert states == {"eng": "STOPPED", "mkt": "RUNNING", "res": "RUNNING"}
        assert "resources" not in info
        (eng,) = [row for row in info["queues"]["queue"] if row["queueName"] == "eng"]
        assert "type" not in eng
        shares = [
            (row["queuePath"], row["capacity"], row["absoluteCapacity"]) for row in eng["queues"]["queue"]
        ]
        assert shares == [("root.eng.prod", 60.0, 24.0), ("root.eng.lab", 40.0, 16.0)]


def test_explain_shows_yarns_own_words(tmp_path):
    """The parent eng is at its 50 %; a daemon that only observes reads the node with free capacity."""
    one = Nested(write_file(tmp_path, {**NESTED, "root.eng.maximum-capacity": "50"}))
    with one.background:
        for name in ("n1:1", "n2:1"):
            one.background.run(partial(one.played.node, name, 8))
        one.background.run(lambda: one.hold("root.eng.lab", 6))
        one.background.run(lambda: one.hold("root.res", 6))
        prod = one.background.run(lambda: one.hold("root.eng.prod", 2))
        publisher, loop = one.observing()
        told = []
        for _ in range(5):
            loop._once()
            lines = in_words(everything_about(publisher.view, prod.id))
            told.append(next(line for line in lines if "now: " in line))
            one.background.run(one.beat)
    rejected = "no container is ordered: YARN would serve queue root.res first"
    assert rejected in told[0]
    assert "YARN reports" not in told[0]
    assert told[-1].endswith("YARN reports at root.eng, node n2:1: 'Queue hits max-capacity limit'")


def test_a_request_that_is_not_granted_counts_as_waiting_after_some_heartbeats(nested):
    """Its master refuses the only node with free capacity, until it does not any more."""
    played, run = nested.played, nested.background.run
    run(lambda: played.node("n1:1", 8))
    run(lambda: nested.hold("root.res", 6))
    prod = run(lambda: played.submit("root.eng.prod", mib=1024))
    run(lambda: played.beat("n1:1"))
    run(lambda: played.up(prod))
    run(lambda: played.node("n2:1", 1))
    run(lambda: played.call(prod, (10, 1), blacklist=("n2:1",)))
    publisher, loop = nested.observing()
    kinds = []
    for _ in range(6):
        run(nested.beat)
        loop._once()
        [waiting] = publisher.view.waiting.values()
        kinds.append(waiting.kind)
    assert kinds == ["fits", "fits", "fits", "rejected", "rejected", "rejected"]
    run(lambda: played.call(prod, blacklist=()))
    run(nested.beat)
    assert prod.actor.containers == 2


def put_maximum(one: Nested, queue: str, percent: str) -> int:
    entry = {"key": "maximum-capacity", "value": percent}
    body = {"update-queue": [{"queue-name": queue, "params": {"entry": [entry]}}]}
    url = f"{one.background.url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
    return http_client.put(url, json=body).status_code


def test_a_reservation_is_on_the_node_that_its_record_names(nested):
    """A lowered maximum, as ``--cap-queue`` sets it, does not break it: YARN fills it above the maximum."""

    def begin() -> AppRecord:
        for name in ("n1:1", "n2:1", "n3:1"):
            nested.played.node(name, 4)
        nested.hold("res", 7)
        large = nested.played.submit("res", mib=3072)
        nested.beat(3)
        return large

    large = nested.background.run(begin)
    (reserved,) = [each for each in nested.played.manager.actor.nodes if each.reserved is not None]
    port = nested.port()
    port.observe(Controller(PATHS).to_observe)
    found = []
    for _ in range(3):
        seen = port.observe_soon()
        assert seen is not None
        found.append(set(seen.reserved_by_node))
        port.activities.renew(())
        nested.background.run(nested.beat)
    assert found == [{"n2:1", "n3:1"}, {"n2:1", "n3:1"}, {reserved.name}]

    assert put_maximum(nested, "root.res", "30") == 200
    nested.background.run(nested.beat)
    assert isinstance(reserved.reserved, NodeReservation)

    def free() -> None:
        held = [each for each in nested.played.manager.containers.values() if each.actor.node is reserved]
        ended = [each.id for each in held if each.actor.priority][:2]
        nested.played.beat(reserved.name, *ended)
        nested.beat()

    nested.background.run(free)
    assert large.actor.containers == 1
    leaf = nested.scheduler.nodes["res"]
    assert leaf.used_mib > leaf.maximum[0]


def test_check_shows_yarns_own_words(tmp_path, capfd):
    """``yarnctl check`` on the same parent at its maximum; the nodes' heartbeats go on meanwhile."""
    one = Nested(write_file(tmp_path, {**NESTED, "root.eng.maximum-capacity": "50"}))
    with one.background:
        for name in ("n1:1", "n2:1"):
            one.background.run(partial(one.played.node, name, 8))
        one.background.run(lambda: one.hold("root.eng.lab", 6))
        words = [
            "check", "--rm", one.background.url, "--preempting", "root.eng.prod", "--preemptable", "root.res",
        ]  # fmt: skip
        exit_status_of(PROGRAM, words)
        assert "pending" not in capfd.readouterr().out
        one.background.run(lambda: one.hold("root.eng.prod", 2))
        ended = threading.Event()

        def beats() -> None:
            while not ended.wait(0.2):
                one.background.run(one.beat)

        nodes = threading.Thread(target=beats)
        nodes.start()
        exit_status_of(PROGRAM, words)
        ended.set()
        nodes.join()
        out = " ".join(capfd.readouterr().out.split())
    assert "root.eng.prod has pending requests: YARN reports at root.eng, node n2:1:" in out
    assert "'Queue hits max-capacity limit'" in out


def shown(one: Nested) -> dict[str, dict[str, Any]]:
    """Return each queue's row of GET /scheduler, by path."""
    answer = http_client.get(f"{one.background.url}/ws/v1/cluster/scheduler").json()
    rows, found = [answer["scheduler"]["schedulerInfo"]], {}
    while rows:
        row = rows.pop()
        found[row["queuePath"]] = row
        rows += row["queues"].get("queue", []) if "queues" in row else []
    return found


def test_queues_are_created_for_users_and_share_their_parents_guarantee(tmp_path):
    """The table of facts: 10 % of a parent, two users, 5 % each; the parent is empty at first."""
    one = Nested(write_file(tmp_path, {**NESTED, **USERS}))
    with one.background:
        one.background.run(lambda: one.played.node("n1:1", 20))
        users = shown(one)["root.users"]
        assert (users["queueType"], users["autoCreationEligibility"], users["queues"]) == (
            "parent", "flexible", {},
        )  # fmt: skip
        assert "type" not in users
        one.check()
        zoe = one.background.run(lambda: one.played.submit("root.users.zoe"))
        assert shown(one)["root.users.zoe"]["absoluteCapacity"] == 10.0
        yan = one.background.run(lambda: one.played.submit("root.users.yan"))
        assert (zoe.queue, yan.queue) == ("users.zoe", "users.yan")
        rows = shown(one)
        for name in ("zoe", "yan"):
            row = rows[f"root.users.{name}"]
            assert (row["creationMethod"], row["mode"], row["weight"], row["normalizedWeight"]) == (
                "dynamicFlexible", "weight", 1.0, 0.5,
            )  # fmt: skip
            assert (row["absoluteCapacity"], row["capacity"]) == (5.0, 50.0)
            assert (row["isAutoCreatedLeafQueue"], row["autoCreationEligibility"]) == (False, "off")
        assert (rows["root.users"]["creationMethod"], rows["root.mkt"]["mode"]) == ("static", "percentage")
        one.background.run(lambda: one.played.beat("n1:1"))
        seen = one.check()
        assert {"root.users.yan", "root.users.zoe"} <= {view.queue for view in seen.queues}
        keys = one.background.run(lambda: one.played.manager.settings.keys)
        assert not any("zoe" in key for key in keys)
        url = f"{one.background.url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
        entry = {"key": "capacity", "value": "3w"}
        body = {"update-queue": [{"queue-name": "root.users.zoe", "params": {"entry": [entry]}}]}
        assert http_client.put(url, json=body).status_code == 200
        assert shown(one)["root.users.yan"]["absoluteCapacity"] == 2.5
        one.check()


@pytest.mark.parametrize("queue", ["zoe", "root.mkt.zoe", "root.users.a.b.c", "root.users"])
def test_a_queue_that_no_parent_creates_is_unknown(tmp_path, queue):
    one = Nested(write_file(tmp_path, {**NESTED, **USERS}))
    with one.background:
        one.background.run(one.played.node)
        with pytest.raises(RequestRefused, match="unknown queue"):
            one.background.run(lambda: one.played.submit(queue))
        assert "root.users.a" not in shown(one)


def test_below_a_stopped_parent_no_queue_is_created(tmp_path):
    one = Nested(write_file(tmp_path, {**NESTED, **USERS, "root.users.state": "STOPPED"}))
    with one.background:
        one.background.run(one.played.node)
        with pytest.raises(RequestRefused, match=r"STOPPED: root\.users\.zoe"):
            one.background.run(lambda: one.played.submit("root.users.zoe"))
        assert "root.users.zoe" not in shown(one)


def test_a_queue_that_is_stopped_while_it_is_used_is_draining(nested):
    played = nested.played
    nested.background.run(lambda: played.node("n1:1", 20))
    nested.background.run(lambda: played.submit("lab"))
    url = f"{nested.background.url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
    entry = {"key": "state", "value": "STOPPED"}
    body = {"update-queue": [{"queue-name": "root.eng", "params": {"entry": [entry]}}]}
    assert http_client.put(url, json=body).status_code == 200
    states = {path: row["state"] for path, row in shown(nested).items() if path.startswith("root.eng")}
    assert states == {"root.eng": "DRAINING", "root.eng.lab": "DRAINING", "root.eng.prod": "STOPPED"}
    with pytest.raises(RequestRefused, match="STOPPED"):
        nested.background.run(lambda: played.submit("prod"))


def test_absolute_resources_are_shown_as_they_are(tmp_path):
    one = Nested(write_file(tmp_path, {**NESTED, **ABSOLUTE}))
    with one.background:
        one.background.run(lambda: one.played.node("n1:1", 12))  # 12288 MiB, 12 vcores
        rows = shown(one)
        res = rows["root.res"]
        assert (res["mode"], res["isAbsoluteResource"], res["absoluteCapacity"]) == (
            "absolute", True, pytest.approx(100 / 3),
        )  # fmt: skip
        assert [res[key]["memory"] for key in ("minEffectiveCapacity", "maxEffectiveCapacity")] == [
            2048,
            3072,
        ]
        assert [res[key]["vCores"] for key in ("minEffectiveCapacity", "maxEffectiveCapacity")] == [4, 8]
        assert rows["root.eng.lab"]["maxEffectiveCapacity"]["memory"] == 12288
        one.check()


def test_the_records_of_heartbeats_have_yarns_shape(tmp_path):
    """Nothing is recorded before a request; a full node shows no queue; the words are those of 3.4.2."""
    one = Nested(write_file(tmp_path, NESTED))

    def record(node: str) -> dict[str, Any]:
        url = f"{one.background.url}/ws/v1/cluster/scheduler/activities?nodeId={node}"
        found: dict[str, Any] = http_client.get(url).json()["activities"]
        assert found["nodeId"] == node
        return found

    def root_of(node: str) -> dict[str, Any]:
        (allocation,) = record(node)["allocations"]
        assert (allocation["partition"], allocation["finalAllocationState"]) == ("", "SKIPPED")
        root: dict[str, Any] = allocation["root"]
        return root

    with one.background:
        for name in ("n1:1", "n2:1"):
            one.background.run(partial(one.played.node, name, 4))
        one.background.run(lambda: one.hold("res", 5))
        large = one.background.run(lambda: one.played.submit("mkt", mib=4096))
        for node in ("n1:1", "n2:1", "n9:1"):
            assert "allocations" not in record(node)
        one.background.run(lambda: one.beat(2))
        assert "allocations" not in record("n9:1")
        assert record("n2:1")["timestamp"] == one.played.wall_ms
        rows = {row["name"]: row for row in root_of("n2:1")["children"]}
        assert rows["root.eng"]["diagnostic"] == "Queue does not need more resource"
        assert rows["root.mkt"]["diagnostic"] == (
            f"Queue does not have enough headroom for inner highest-priority request from {large.id}"
        )
        (last,) = rows["root.mkt"]["children"]
        assert last == {"name": large.id, "appPriority": 0, "allocationState": "REJECTED"}
        one.background.run(lambda: one.hold("root.eng.lab", 1))
        full = root_of("n1:1")
        assert full == {
            "name": "root", "allocationState": "REJECTED",
            "diagnostic": "Initial check: node resource is insufficient for minimum allocation",
        }  # fmt: skip


@pytest.fixture
def labelled(tmp_path):
    labels = (NodeLabel(name="gpu", nodes=1), NodeLabel(name="ne", nodes=1, exclusive=False))
    one = Nested(write_file(tmp_path, {**NESTED, **LABELLED}), labels)
    with one.background:
        for name in ("n1:1", "n2:1", "n3:1"):
            one.background.run(partial(one.played.node, name, 8))
        yield one


def get(one: Nested, path: str) -> Any:
    return http_client.get(f"{one.background.url}/ws/v1/cluster/{path}").json()


def test_nodes_labels_and_partitions_are_shown_as_a_resourcemanager_shows_them(labelled):
    nodes = {row["id"]: row.get("nodeLabels") for row in get(labelled, "nodes")["nodes"]["node"]}
    assert nodes == {"n1:1": ["gpu"], "n2:1": ["ne"], "n3:1": None}
    rows = get(labelled, "get-node-labels")["nodeLabelInfo"]
    assert [(row["name"], row["exclusivity"]) for row in rows] == [("gpu", "true"), ("ne", "false")]
    assert rows[0]["partitionInfo"]["resourceAvailable"]["memory"] == "8192"
    entries = get(labelled, "get-node-to-labels")["nodeToLabels"]["entry"]
    assert [(row["key"], row["value"]["nodeLabelInfo"]["name"]) for row in entries] == [
        ("n1:1", "gpu"), ("n2:1", "ne"),
    ]  # fmt: skip
    found = get(labelled, "metrics")["clusterMetrics"]
    assert (found["totalMB"], found["availableMB"], found["activeNodes"]) == (8192, 8192, 3)
    assert found["totalClusterResourcesAcrossPartition"]["memory"] == 3 * 8192
    queues = shown(labelled)
    assert queues["root.mkt"]["minEffectiveCapacity"]["memory"] == 2457  # 30 % of one node
    shares = {
        path: {
            row["partitionName"]: row["absoluteCapacity"]
            for row in queues[path]["capacities"]["queueCapacitiesByPartition"]
        }
        for path in ("root", "root.eng.lab", "root.mkt", "root.res")
    }
    assert shares == {
        "root": {"": 100.0, "gpu": 100.0, "ne": 100.0},
        "root.eng.lab": {"": 16.0, "gpu": 50.0, "ne": 0.0},
        "root.mkt": {"": 30.0, "gpu": 0.0, "ne": 100.0},
        "root.res": {"": 30.0, "ne": 0.0},
    }
    assert (queues["root.res"]["nodeLabels"], queues["root.mkt"]["nodeLabels"]) == (["ne"], ["*"])
    assert queues["root.eng.lab"]["defaultNodeLabelExpression"] == "gpu"
    labelled.check()


def test_requests_and_use_of_a_partition_are_shown_beside_those_of_other_nodes(labelled):
    played = labelled.played

    def play() -> tuple[str, str]:
        gpu, plain = played.submit("lab"), played.submit("res")
        for app in (gpu, plain):
            for name in ("n1:1", "n2:1", "n3:1"):
                played.beat(name)
            played.up(app)
        for app, maps in ((gpu, 6), (plain, 9)):
            played.call(app, (20, maps))
            for _ in range(40):
                for name in ("n1:1", "n2:1", "n3:1"):
                    played.beat(name)
        return gpu.id, plain.id

    gpu, plain = labelled.background.run(play)
    queues = shown(labelled)

    def use(path: str, kind: str) -> dict[str, int]:
        rows = queues[path]["resources"]["resourceUsagesByPartition"]
        return {row["partitionName"]: row[kind]["vCores"] for row in rows if row[kind]["vCores"]}

    assert use("root.eng.lab", "used") == use("root.eng", "used") == {"gpu": 4}  # its maximum is a half
    assert use("root.eng.lab", "pending") == {"gpu": 3}
    assert use("root.res", "used") == {"": 8, "ne": 2}
    assert queues["root.eng.lab"]["pendingContainers"] == 0
    assert queues["root.res"]["resourcesUsed"]["vCores"] == 8
    app = get(labelled, f"apps/{gpu}")["app"]
    assert (app["appNodeLabelExpression"], app["amNodeLabelExpression"]) == ("gpu", "gpu")
    assert {row["nodeLabelExpression"] for row in app["resourceRequests"]} == {"gpu"}
    rows = {row["partitionName"]: row for row in app["resourceInfo"]["resourceUsagesByPartition"]}
    assert (rows["gpu"]["used"]["vCores"], rows["gpu"]["pending"]["vCores"], rows[""]["used"]["vCores"]) == (
        4,
        3,
        0,
    )
    assert "appNodeLabelExpression" not in get(labelled, f"apps/{plain}")["app"]
    found = get(labelled, "metrics")["clusterMetrics"]
    assert (found["allocatedMB"], found["pendingMB"]) == (8192, 0)
    assert found["totalUsedResourcesAcrossPartition"]["vCores"] == 14


def test_a_label_that_a_queue_may_not_use_or_that_no_node_has_is_refused(labelled):
    for queue, label in (("res", "gpu"), ("mkt", "nowhere")):
        with pytest.raises(RequestRefused, match="doesn't have permission to access all labels"):
            labelled.background.run(
                lambda queue=queue, label=label: labelled.played.submit(queue, label=label)
            )
    app = labelled.background.run(lambda: labelled.played.submit("res", label="ne"))
    assert app.actor.label == "ne"
