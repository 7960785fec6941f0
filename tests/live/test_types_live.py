"""Resource types in the live emulator: from a site's file over jobs to yarnctl's order for a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from emulator.live.jobs.submission_client import Client as Submitter
from emulator.live.programs.all_in_one import AllInOne, ClusterPlan, build
from emulator.live.programs.manager_program import Options, settings_of
from emulator.live.wire.submitted_job import ModelledJob
from tests.hadoop.background import Background
from tests.live.test_all_in_one import QUICK, Client, wait_until
from tests.unit.hadoop.replaying import PATIENT
from tests.unit.scheduler_files import write_file
from tests.unit.test_resource_type_files import types_file
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.settings import LeverSettings, Settings
from yarnctl.frameworks.mapreduce.ordering import MapReduce
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.traces.job import Job
from yarnctl.units import Resources

GPU = "yarn.io/gpu"
QUEUES = {
    "maximum-am-resource-percent": "0.5",
    "root.queues": "production,research",
    "root.production.capacity": "75",
    "root.production.user-limit-factor": "10",
    "root.research.capacity": "25",
    "root.research.user-limit-factor": "10",
}
TYPES = {"yarn.resource-types": GPU, f"yarn.nodemanager.resource-type.{GPU}": "2"}
RULES = Settings(
    preempting_queues=("root.production",),
    preemptable_queues=("root.research",),
    levers=LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500, may_lose_ratio=1.0),
)
"""Maps may be killed, whatever is lost."""


@contextlib.contextmanager
def typed(folder: Path, speed: float = 20.0) -> Iterator[tuple[Client, AllInOne]]:
    """Two nodes of 4 slots and 2 GPUs."""
    made: list[AllInOne] = []

    def web(url: str) -> Any:
        options = Options(
            work=folder / "work",
            speed=speed,
            scheduler_xml=write_file(folder, QUEUES),
            resource_types=types_file(folder, TYPES),
        )
        settings = msgspec.structs.replace(settings_of(options), timing=QUICK, am_expiry_ms=20_000)
        made.append(build(options, ClusterPlan(nodes=2, processes=False), url, settings))
        return made[0].web

    with Background(web) as server:
        yield Client(server.url, folder), made[0]


def submitted(client: Client, queue: str, maps: int, map_ms: int, settings: dict[str, str]) -> str:
    job = Job(
        name=queue, job_class="research", submitted_at_ms=0, map_ms=(map_ms,) * maps, user="alice",
        queue=queue,
    )  # fmt: skip
    modelled = ModelledJob(job=job, runner=False, settings=settings)
    return Submitter(client.url, "alice").submit(modelled, queue)


def gpus(rows: list[dict[str, Any]]) -> int:
    found = [entry for row in rows for entry in row["allocatedResources"]["entry"]]
    return sum(int(entry["value"]) for entry in found if entry["key"] == GPU)


def amount(vector: dict[str, Any]) -> int:
    rows = vector["resourceInformations"]["resourceInformation"]
    return sum(row["value"] for row in rows if row["name"] == GPU)


def test_a_job_runs_as_many_maps_at_once_as_there_are_gpus(tmp_path: Path) -> None:
    with typed(tmp_path) as (client, whole):
        application = submitted(client, "research", 6, 60_000, {f"mapreduce.map.resource.{GPU}": "1"})
        wait_until(lambda: len(client.containers(application)) == 5, "a master and four maps")
        assert gpus(client.containers(application)) == 4
        nodes = client.get("nodes")["nodes"]["node"]
        assert [(amount(row["totalResource"]), amount(row["availableResource"])) for row in nodes] == [
            (2, 0),
            (2, 0),
        ]
        app = client.app(application)
        assert {amount(row["capability"]) for row in app["resourceRequests"]} == {1}
        [uses] = app["resourceInfo"]["resourceUsagesByPartition"]
        assert (amount(uses["used"]), amount(uses["pending"])) == (4, 2)
        root = client.get("scheduler")["scheduler"]["schedulerInfo"]
        research = next(row for row in root["queues"]["queue"] if row["queueName"] == "research")
        assert [amount(research[key]) for key in ("minEffectiveCapacity", "maxEffectiveCapacity")] == [1, 4]
        assert (amount(research["resourcesUsed"]), research["usedCapacity"]) == (4, 400.0)
        assert GPU in client.get("scheduler-overview")["schedulingResourceType"]
        assert client.over(application) == ("SUCCEEDED", "")
        assert {node.actor.free_others for node in whole.site.manager.nodes.values()} == {Resources(0, 0, 2)}


def test_a_request_for_an_unknown_type_fails_its_application(tmp_path: Path) -> None:
    with typed(tmp_path) as (client, _):
        application = submitted(client, "research", 1, 1000, {"mapreduce.map.resource.disk": "1"})
        status, why = client.over(application)
    assert status == "FAILED"
    assert "unknown resource type 'disk'" in why


def attached(client: Client, whole: AllInOne) -> AttachedPort:
    transport = Transport([client.url], limits=PATIENT)
    driver = whole.site.manager.driver
    return AttachedPort(
        ResourceManager(transport),
        None,
        Attachment(
            stable_observations=1,
            preempting_queues=RULES.preempting_queues,
            preemptable_queues=RULES.preemptable_queues,
            levers=True,
            allow_kill=True,
        ),
        lambda: driver.wall_of(driver.now_ms()),
        {KIND: MapReduce(transport)},
    )


def test_yarnctl_sees_the_types_and_orders_a_container_that_holds_a_gpu(tmp_path: Path) -> None:
    """Research holds all GPUs with memory left; production requests a map with one."""
    with typed(tmp_path, speed=1.0) as (client, whole):
        research = submitted(client, "research", 4, 3_600_000, {f"mapreduce.map.resource.{GPU}": "1"})
        wait_until(lambda: gpus(client.containers(research)) == 4, "four GPUs")
        waiting = submitted(client, "production", 1, 60_000, {f"mapreduce.map.resource.{GPU}": "1"})
        wait_until(lambda: client.app(waiting).get("resourceRequests"), "a request")
        port, controller = attached(client, whole), Controller(RULES, validate=True)
        seen: list[Snapshot] = []

        def ordered() -> bool:
            answered = port.observe(controller.to_observe)
            controller.step(answered)
            if answered.snapshot is not None:
                seen.append(answered.snapshot)
            return bool(controller.ledger.open)

        wait_until(ordered, "an order")
        [order] = controller.ledger.open.values()
    size = Resources(1024, 1, 1)
    assert (order.victim, order.requester, order.request_size) == (research, waiting, size)
    snapshot = seen[-1]
    assert (snapshot.resource_names, snapshot.total) == ((GPU,), Resources(8192, 8, 4))
    assert {view.queue: view.guaranteed for view in snapshot.queues} == {
        "root.production": Resources(6144, 6, 3),
        "root.research": Resources(2048, 2, 1),
    }


def test_root_has_what_all_nodes_have(tmp_path: Path) -> None:
    with typed(tmp_path) as (client, whole):
        wait_until(lambda: len(client.get("nodes")["nodes"]["node"]) == 2, "two nodes")
        tree = whole.site.manager.actor.scheduler
        assert tree.types == (GPU,)
        root = client.get("scheduler")["scheduler"]["schedulerInfo"]
        [share] = root["capacities"]["queueCapacitiesByPartition"]
        assert amount(share["effectiveMaxResource"]) == 4


@pytest.mark.parametrize("word", ["serve", "rm"])
def test_help_names_the_option(word: str, capfd: Any) -> None:
    from emulator.cli import PROGRAM
    from yarnctl.command_line import exit_status_of

    assert exit_status_of(PROGRAM, [word, "--help"]) == 0
    assert "--resource-types FILE" in capfd.readouterr().out
