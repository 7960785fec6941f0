"""The web proxy as a daemon of its own: masters are reached where the cluster has it, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import shared_cases
from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt
from tests.unit.hadoop.replaying import Heard, Replay, Reply, closed_port, routes
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Kill, ObservationRequest
from yarnctl.deciding.preemptor import closed_jobs
from yarnctl.deciding.settings import Settings
from yarnctl.journal.rendering import text

FAULT = pytest.mark.xfail(strict=True)
APP = application(1)
KEY = "yarn.web-proxy.address"
NOT_FOUND = Reply('{"servlet":"default","message":"Not Found","url":"/proxy","status":"404"}', 404)
EVERYTHING = ObservationRequest(victims=(APP,))


class ProxiedCluster(FakeCluster):
    """A cluster whose ResourceManager serves no /proxy: the web proxy is a daemon of its own."""

    tracking: Callable[[str], Mapping[str, Any]] = staticmethod(lambda name: {})

    def __enter__(self) -> ProxiedCluster:
        super().__enter__()
        self.proxy = Replay(super().answer)
        self.proxy.__enter__()
        self.nodes = {"n1:1": SLOT, "n2:1": SLOT, "n3:1": SLOT}
        self.research(1, ["n1:1", "n2:1"])
        self.add(App(2, "production", user="bob", asks=[(10, SLOT, 4)]))
        return self

    def __exit__(self, *_: object) -> None:
        self.proxy.__exit__()
        super().__exit__()

    def answer(self, heard: Heard) -> Reply:
        if heard.path.startswith("/proxy/"):
            return NOT_FOUND
        return super().answer(heard)

    def _app(self, app: Any, whole: bool = False) -> dict:
        return super()._app(app, whole) | self.tracking(app.id)

    @property
    def at(self) -> str:
        return self.proxy.url.removeprefix("http://")

    def attached(self, conf: Path | None = None, **more: Any) -> AttachedPort:
        """Return the port that yarnctl makes of a configuration."""
        cluster = ClusterAddress(
            resource_managers=(self.rm.url,),
            name_nodes=(self.hdfs.replay.url,),
            user="yarnctl",
            hadoop_conf_dir=str(conf or ""),
        )
        told = Attachment(enforce=True, stable_observations=1, **more)
        return attach(cluster, told, lambda: self.now_ms)


def tracked(url: str, **more: Any) -> Callable[[str], Mapping[str, Any]]:
    """Return what rows say of where an application's page is; ``ID`` in the URL is the application's."""
    return lambda name: {"trackingUrl": url.replace("ID", name), "unmanagedApplication": False, **more}


def why(port: AttachedPort, name: str = APP) -> str:
    said = port.why_not.get(name)
    return "" if said is None else text(said)


@FAULT
def test_masters_are_read_and_tasks_ended_at_the_address_of_the_configuration() -> None:
    with ProxiedCluster() as fake:
        fake.configuration |= {KEY: fake.at, "yarn.http.policy": "HTTP_ONLY"}
        port = fake.attached(levers=True)
        seen = port.observe(EVERYTHING)
        assert (why(port), len(seen.tasks[APP])) == ("", 1)
        port.perform(Kill("d1-1", APP, attempt(1, 1), seen.tasks[APP][0].container))
        assert fake.changes == [f"KILL {attempt(1, 1)}"]
        assert not [heard for heard in fake.rm.heard if heard.path.startswith("/proxy")]


@FAULT
def test_masters_are_reached_at_the_address_of_yarn_site_where_conf_is_not_shown(tmp_path: Path) -> None:
    with ProxiedCluster() as fake:
        fake.break_("GET /conf", Reply("", 403))
        (tmp_path / "yarn-site.xml").write_text(
            f"<configuration><property><name>{KEY}</name><value>{fake.at}</value></property></configuration>"
        )
        port = fake.attached(tmp_path)
        port.observe(EVERYTHING)
        assert why(port) == ""


@FAULT
def test_masters_are_reached_at_the_address_before_proxy_of_a_tracking_url() -> None:
    with ProxiedCluster() as fake:
        fake.tracking = tracked(f"{fake.proxy.url}/proxy/ID/")
        port = fake.attached()
        port.observe(EVERYTHING)
        assert why(port) == ""


@FAULT
def test_a_master_that_cannot_be_reached_is_no_job_without_a_runner() -> None:
    """The recorded answers of a cluster whose proxy is at an address that does not answer."""
    dead = f"127.0.0.1:{closed_port()}"
    with Replay(recorded(dead)) as rm:
        cluster = ClusterAddress(resource_managers=(rm.url,), user="yarnctl")
        port = attach(cluster, Attachment(stable_observations=1), lambda: 1_790_000_000_000)
        seen = port.observe(ObservationRequest())
        name = "application_1790000000000_0001"
        assert why(port, name).startswith(
            f"its master cannot be reached at http://{dead}: connection refused"
        )
        assert seen.snapshot is not None
        assert closed_jobs(seen.snapshot.applications, Settings(), {})[name] == "unreachable"


def recorded(at: str) -> Callable[[Heard], Reply]:
    told = json.dumps(shared_cases.answers("c21-proxy-of-its-own")).replace("127.0.0.1:20888", at)
    table = {path: json.dumps(body) for path, body in json.loads(told).items()}
    rows = json.loads(table["/ws/v1/cluster/apps"])["apps"]["app"]
    own = {f"/ws/v1/cluster/apps/{row['id']}": json.dumps({"app": row}) for row in rows}
    return routes({**table, **own})
