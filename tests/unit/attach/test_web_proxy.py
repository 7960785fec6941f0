"""The web proxy as a daemon of its own: masters are reached where the cluster has it, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import shared_cases
from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt
from tests.unit.hadoop.replaying import Heard, Replay, Reply, closed_port, routes
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.connection.web_proxy import find_proxy, tracked_base
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Kill, ObservationRequest
from yarnctl.deciding.preemptor import closed_jobs
from yarnctl.deciding.settings import Settings
from yarnctl.hadoop.wire.yarn import TrackedApplication
from yarnctl.journal.rendering import text

APP = application(1)
KEY = "yarn.web-proxy.address"
NOT_FOUND = Reply('{"servlet":"default","message":"Not Found","url":"/proxy","status":"404"}', 404)
EVERYTHING = ObservationRequest(victims=(APP,))


class ProxiedCluster(FakeCluster):
    """A cluster whose ResourceManager serves no /proxy: the web proxy is a daemon of its own."""

    tracking: Callable[[str], dict[str, Any]] = staticmethod(lambda name: {})

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
        return {**super()._app(app, whole), **self.tracking(app.id)}

    @property
    def at(self) -> str:
        return self.proxy.url.removeprefix("http://")

    def attached(self, conf: Path | None = None, **more: Any) -> AttachedPort:
        cluster = ClusterAddress(
            resource_managers=(self.rm.url,),
            name_nodes=(self.hdfs.replay.url,),
            user="yarnctl",
            hadoop_conf_dir=str(conf or ""),
        )
        told = Attachment(enforce=True, stable_observations=1, **more)
        return attach(cluster, told, lambda: self.now_ms)


def tracked(url: str, **more: Any) -> Callable[[str], dict[str, Any]]:
    """Return what rows say of where an application's page is; ``ID`` in the URL is the application's."""
    return lambda name: {"trackingUrl": url.replace("ID", name), "unmanagedApplication": False, **more}


def why(port: AttachedPort, name: str = APP) -> str:
    said = port.why_not.get(name)
    return "" if said is None else text(said)


def test_masters_are_read_and_tasks_ended_at_the_address_of_the_configuration() -> None:
    with ProxiedCluster() as fake:
        fake.configuration |= {KEY: fake.at, "yarn.http.policy": "HTTP_ONLY"}
        port = fake.attached(allow_kill=True)
        seen = port.observe(EVERYTHING)
        assert (why(port), len(seen.tasks[APP])) == ("", 1)
        port.perform(Kill("d1-1", APP, attempt(1, 1), seen.tasks[APP][0].container))
        assert fake.changes == [f"KILL {attempt(1, 1)}"]
        assert not [heard for heard in fake.rm.heard if heard.path.startswith("/proxy")]


def test_masters_are_reached_at_the_address_of_yarn_site_where_conf_is_not_shown(tmp_path: Path) -> None:
    with ProxiedCluster() as fake:
        fake.break_("GET /conf", Reply("", 403))
        (tmp_path / "yarn-site.xml").write_text(
            f"<configuration><property><name>{KEY}</name><value>{fake.at}</value></property></configuration>"
        )
        port = fake.attached(tmp_path)
        port.observe(EVERYTHING)
        assert why(port) == ""


def test_masters_are_reached_at_the_address_before_proxy_of_a_tracking_url() -> None:
    with ProxiedCluster() as fake:
        fake.tracking = tracked(f"{fake.proxy.url}/proxy/ID/")
        port = fake.attached()
        port.observe(EVERYTHING)
        assert why(port) == ""


def test_drivers_and_job_managers_are_reached_at_the_same_address() -> None:
    with ProxiedCluster() as fake:
        fake.configuration[KEY] = fake.at
        spark = fake.add(App(7, "research", kind="SPARK", tags="yarnctl-drain:plugin"))
        flink = fake.add(App(8, "research", kind="Apache Flink", tags="yarnctl-drain:rescale"))
        fake.attached(levers=True).observe(EVERYTHING)
        asked = {heard.path.split("/")[2] for heard in fake.proxy.heard}
        assert asked == {APP, spark.id, flink.id}


def test_a_proxy_that_is_one_of_two_resource_managers_is_not_moved() -> None:
    """With HA both serve /proxy: after a failover the other one is asked."""
    with ProxiedCluster() as fake, Replay(Reply("", 503)) as other:
        fake.break_("GET /proxy", Reply("<html>moved</html>", 302, "text/html"))
        fake.configuration |= {
            "yarn.resourcemanager.ha.enabled": "true",
            "yarn.resourcemanager.ha.rm-ids": "a,b",
            "yarn.resourcemanager.webapp.address.a": "ra:8088",
            "yarn.resourcemanager.webapp.address.b": "rb:8088",
            KEY: "rb:8088",
        }
        managers = (fake.rm.url, other.url)
        cluster = ClusterAddress(resource_managers=managers)
        found = find_proxy(cluster, cluster.resource_manager(), fake.configuration, fake.rm.url)
        assert found.addresses == managers


def test_a_proxy_of_its_own_serves_two_resource_managers() -> None:
    with ProxiedCluster() as fake, Replay(Reply("", 503)) as other:
        fake.configuration |= {"yarn.resourcemanager.ha.enabled": "true", KEY: "0.0.0.0:20888"}
        cluster = ClusterAddress(resource_managers=(other.url, fake.rm.url))
        found = find_proxy(cluster, cluster.resource_manager(), fake.configuration, "https://rm1:8090")
        assert found.addresses == ("http://rm1:20888",)


def test_the_address_is_looked_for_again_with_each_new_configuration() -> None:
    with ProxiedCluster() as fake:
        fake.configuration[KEY] = dead = f"127.0.0.1:{closed_port()}"
        port = fake.attached(configuration_age_ms=10_000)
        port.observe(EVERYTHING)
        assert why(port).startswith(
            f"the application master cannot be reached at http://{dead}: connection refused"
        )
        fake.configuration[KEY] = fake.at
        fake.now_ms += 10_000
        port.observe(EVERYTHING)
        assert why(port) == ""


def test_a_proxy_that_nothing_names_is_looked_for_again() -> None:
    with ProxiedCluster() as fake:
        port = fake.attached()
        port.observe(EVERYTHING)
        assert why(port).startswith(f"the application master cannot be reached at {fake.rm.url}: HTTP 404")
        fake.tracking = tracked(f"{fake.proxy.url}/proxy/ID/")
        fake.now_ms += 5_000
        port.observe(EVERYTHING)
        assert why(port) == ""


def test_a_yarn_site_that_cannot_be_used_is_passed_over(tmp_path: Path) -> None:
    with ProxiedCluster() as fake:
        (tmp_path / "yarn-site.xml").write_text("<configuration><property>")
        fake.tracking = tracked(f"{fake.proxy.url}/proxy/ID/")
        port = fake.attached(tmp_path)
        port.observe(EVERYTHING)
        assert why(port) == ""


# --- an owner chooses no address --------------------------------------------------------------

MANAGER, GOOD = "http://rm:8088", "http://proxy:20888/proxy/application_1_1/"


def row(url: str, name: str = "application_1_1", **more: Any) -> TrackedApplication:
    told = {"state": "RUNNING", "submitted_at_ms": 1, "unmanaged": False, **more}
    return TrackedApplication(name, tracking_url=url, **told)


TRACKED = [
    ("http://proxy:20888", [row(GOOD)], "the ResourceManager's own words"),
    ("http://proxy:20888", [row(GOOD.rstrip("/"))], "without a slash"),
    ("http://[::1]:20888", [row("http://[::1]:20888/proxy/application_1_1/")], "a literal address"),
    ("https://proxy:20888", [row(GOOD.replace("http", "https"))], "the scheme is kept"),
    ("http://proxy:20888", [row(GOOD), row("http://N/A", "application_1_2")], "one has none"),
    (
        "http://proxy:20888",
        [row(GOOD), row("http://evil:1/proxy/application_1_2/", "application_1_2", unmanaged=True)],
        "an unmanaged one beside it",
    ),
    ("", [row(GOOD, unmanaged=True)], "an unmanaged master's own words"),
    ("", [row(GOOD, submitted_at_ms=0)], "not seen: without the right every flag is false"),
    ("", [row(GOOD, unmanaged=None)], "a version that does not say it, and another host"),
    ("http://rm:20888", [row(GOOD.replace("proxy:", "rm:"), unmanaged=None)], "the ResourceManager's host"),
    ("", [row(GOOD), row("http://evil:1/proxy/application_1_2/", "application_1_2")], "two addresses"),
    ("", [row(GOOD, "application_1_11")], "another application's page"),
    ("", [row(GOOD.replace("_1/", "_1x/"))], "a longer id"),
    ("", [row("http://proxy:20888/proxy/redirect/application_1_1/")], "another path"),
    ("", [row("http://a@proxy:20888/proxy/application_1_1/")], "user info"),
    ("", [row("http://proxy:20888/x/proxy/application_1_1/")], "a prefix"),
    ("", [row("http://proxy:20888?/proxy/application_1_1/")], "a query"),
    ("", [row("ftp://proxy:20888/proxy/application_1_1/")], "another scheme"),
    ("", [row("http://proxy:99999/proxy/application_1_1/")], "no port"),
    ("", [row("http://proxy:20888\n/proxy/application_1_1/")], "a line's end"),
    ("", [row("http://proxy/jobhistory/job/job_1_1", state="FINISHED")], "ended: the history server"),
    ("", [row(GOOD, state="ACCEPTED")], "not running yet"),
    ("", [row(GOOD.replace("proxy:20888", "alias:8088"))], "another name of the ResourceManager"),
    ("", [row("")], "not told"),
    ("", [], "no application"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "rows", "claim"), TRACKED)
def test_tracked_base(base: str, rows: list[TrackedApplication], claim: str) -> None:
    assert tracked_base(rows, [MANAGER]) == base, claim


def test_with_kerberos_no_tracking_url_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket goes only to hosts that options, files or the ResourceManager's configuration name."""
    monkeypatch.setattr("yarnctl.hadoop.http.transport.session_auth", lambda identity: None)
    with ProxiedCluster() as fake:
        fake.tracking = tracked(f"{fake.proxy.url}/proxy/ID/")
        cluster = ClusterAddress(resource_managers=(fake.rm.url,), authentication="kerberos")
        manager = cluster.resource_manager()
        assert find_proxy(cluster, manager, {}, fake.rm.url).addresses == (fake.rm.url,)
        assert fake.rm.heard == []
        assert find_proxy(cluster, manager, {KEY: fake.at}, fake.rm.url).addresses == (fake.proxy.url,)


def test_a_master_that_cannot_be_reached_is_no_job_without_a_runner() -> None:
    """The recorded answers of a cluster whose proxy is at an address that does not answer."""
    dead = f"127.0.0.1:{closed_port()}"
    with Replay(recorded(dead)) as rm:
        cluster = ClusterAddress(resource_managers=(rm.url,), user="yarnctl")
        port = attach(cluster, Attachment(stable_observations=1), lambda: 1_790_000_000_000)
        seen = port.observe(ObservationRequest())
        name = "application_1790000000000_0001"
        assert why(port, name).startswith(
            f"the application master cannot be reached at http://{dead}: connection refused"
        )
        assert seen.snapshot is not None
        assert closed_jobs(seen.snapshot.applications, Settings(), {}, 0)[name] == "unreachable"


def recorded(at: str) -> Callable[[Heard], Reply]:
    told = json.dumps(shared_cases.answers("c21-proxy-of-its-own")).replace("127.0.0.1:20888", at)
    table = {path: json.dumps(body) for path, body in json.loads(told).items()}
    rows = json.loads(table["/ws/v1/cluster/apps"])["apps"]["app"]
    own = {f"/ws/v1/cluster/apps/{row['id']}": json.dumps({"app": row}) for row in rows}
    return routes({**table, **own})
