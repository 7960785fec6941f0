"""A nested capacity-scheduler.xml, served live: what yarnctl's snapshot says is what the scheduler has."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from emulator.cluster.entities import ParentConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import application_id
from emulator.live.manager.manager_settings import ManagerSettings
from emulator.live.manager.state import RequestRefused
from emulator.live.rest.site import ManagerSite
from emulator.live.wire.web import Web
from emulator.scenario.scheduler_file import read_scheduler_file
from tests import http_client
from tests.hadoop.background import Background
from tests.live.rm_playing import Played
from tests.unit.hadoop.replaying import PATIENT
from tests.unit.scheduler_files import NESTED, write_file
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.guarantees import guarantee_shares
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.preemptor import DemandInput, demand
from yarnctl.deciding.settings import Settings
from yarnctl.frameworks.mapreduce.ordering import MapReduce
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.units import Resources

GUARANTEES = Settings(mode="guarantees", preempting_queues=(), preemptable_queues=())
PATHS = Settings(preempting_queues=("root.eng.prod",), preemptable_queues=("root.res",))


class Nested:
    """A served manager with the queues of a file; everything happens on the server's thread."""

    def __init__(self, path: Path) -> None:
        leaves, parents, keys = read_scheduler_file(path)
        self.played = Played(ManagerSettings(queues=leaves, parents=parents, keys=keys))
        scheduler = self.played.manager.actor.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler = scheduler

        def build(url: str) -> Web:
            return ManagerSite(self.played.manager, url).web

        self.background = Background(build)

    def snapshot(self, settings: Settings = PATHS) -> Snapshot:
        transport = Transport([self.background.url], limits=PATIENT)
        port = AttachedPort(
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
        port.observe(Controller(settings).to_observe)
        found = port.observe_soon()
        assert found is not None, port.last_problem
        return found

    def check(self) -> Snapshot:
        """Compare yarnctl's snapshot with the scheduler's own state."""
        seen, nodes = self.snapshot(), self.scheduler.nodes
        parents = {node.path: node for node in nodes.values() if node.leaf is None}
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
