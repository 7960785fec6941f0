"""Apache Knox in front of a cluster, as its service definitions route: HTTP Basic over TLS, a path before."""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import shared_cases
from tests.runner.test_https import make_certificate
from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt
from tests.unit.hadoop.replaying import Heard, Replay, Reply, page
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.config import ClusterAddress, load_cluster
from yarnctl.daemon.running import Plan, with_hdfs
from yarnctl.deciding.model import Kill, ObservationRequest
from yarnctl.deciding.settings import Settings
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.auth import Identity, Password, read_password
from yarnctl.hadoop.http.gateway import USE_YARN_UI
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.journal.rendering import text

TOPOLOGY = "/gateway/default"
PASSWORD = "s3cret-of-the-gateway"  # the test's own
SIGNED = "Basic " + base64.b64encode(f"yarnctl:{PASSWORD}".encode()).decode()
EVERYTHING = ObservationRequest(victims=(application(1),))


class Knox:
    """The gateway: the services YARNUI, RESOURCEMANAGER and WEBHDFS before a scripted cluster."""

    def __init__(self, cluster: FakeCluster, certificate: Path, password_file: Path) -> None:
        self.cluster = cluster
        self.certificate, self.password_file = certificate, password_file
        self.replay = Replay(self.answer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_name("key.pem"))
        self.replay.server.socket = context.wrap_socket(self.replay.server.socket, server_side=True)
        self.at = self.replay.url.replace("http:", "https:") + TOPOLOGY
        self.cookies: list[str] = []

    def answer(self, heard: Heard) -> Reply:
        self.cookies.append(heard.headers.get("Cookie", ""))
        if heard.headers.get("Authorization") != SIGNED:
            return Reply("<html>", 401, "text/html", (("WWW-Authenticate", 'Basic realm="application"'),))
        path = heard.path.removeprefix(TOPOLOGY)
        if match := re.fullmatch("/yarn(/ws/.*|/proxy/.*|/conf)", path):
            return self.cluster.answer(heard._replace(path=match[1]))
        if match := re.fullmatch("/resourcemanager(/v1/cluster.*)", path):
            reply = self.cluster.answer(heard._replace(path="/ws" + match[1]))
            if match[1].endswith("/nodes"):
                reply = reply._replace(body=re.sub(r"n(\d):1", r"cRyPt\1", str(reply.body)))
            return reply
        if path.startswith("/webhdfs/data/v1/"):
            inside = heard._replace(path=path.replace("/data", "", 1))
            return self.cluster.hdfs.answer(inside)
        if path.startswith("/webhdfs/v1/"):
            reply = self.cluster.hdfs.answer(heard._replace(path=path))
            inner = dict(reply.headers).get("Location", "")
            moved = f"{self.at}/webhdfs/data{re.sub('^http://[^/]+/webhdfs', '', inner)}"
            return reply._replace(headers=(("Location", moved),)) if inner else reply
        return page(status=404)

    def cluster_address(self, service: str = "/yarn") -> ClusterAddress:
        return load_cluster(
            None,
            {
                "YARNCTL_RM": self.at + service,
                "YARNCTL_NAME_NODE": self.at,
                "YARNCTL_USER": "yarnctl",
                "YARNCTL_PASSWORD_FILE": str(self.password_file),
                "YARNCTL_CA_FILE": str(self.certificate),
            },
        )

    def attached(self, service: str = "/yarn", **more: Any) -> AttachedPort:
        told = Attachment(
            enforce=True, stable_observations=1, name_nodes=(self.cluster.hdfs.replay.url,), **more
        )
        return attach(self.cluster_address(service), told, lambda: self.cluster.now_ms)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def knox(certificate: Path, password_file: Path) -> Iterator[Knox]:
    with FakeCluster() as cluster:
        cluster.nodes = {"n1:1": SLOT, "n2:1": SLOT, "n3:1": SLOT}
        cluster.research(1, ["n1:1", "n2:1"])
        cluster.add(App(2, "production", user="bob", asks=[(10, SLOT, 4)]))
        cluster.configuration["yarn.web-proxy.address"] = "inside:20888"
        gateway = Knox(cluster, certificate, password_file)
        with gateway.replay:
            yield gateway


def test_tasks_are_read_signalled_and_killed_through_yarn_ui(knox: Knox) -> None:
    port = knox.attached(allow_kill=True)
    seen = port.observe(EVERYTHING)
    assert port.why_not.get(application(1)) is None
    container = seen.tasks[application(1)][0].container
    port.perform(Kill("d1-1", application(1), attempt(1, 1), container))
    assert knox.cluster.changes == [f"KILL {attempt(1, 1)}"]
    knox.cluster_address().resource_manager().signal(container, "OUTPUT_THREAD_DUMP")
    assert knox.cluster.changes[1:] == [f"OUTPUT_THREAD_DUMP {container}"]
    assert not [heard for heard in knox.replay.heard if "user.name" in heard.query]


def test_files_are_written_and_read_through_webhdfs(knox: Knox) -> None:
    hdfs = knox.cluster_address().store()
    hdfs.make_directories("/yarnctl/x")
    hdfs.create("/yarnctl/x/file", b"bytes")
    assert hdfs.read("/yarnctl/x/file") == b"bytes"
    assert hdfs.data_address("/yarnctl/x") == knox.at.removesuffix(TOPOLOGY)
    assert {heard.headers.get("Authorization") for heard in knox.replay.heard} == {SIGNED}


def test_a_redirect_to_another_host_gets_no_password(knox: Knox) -> None:
    """A gateway that does not rewrite the address of a DataNode."""
    with Replay(Reply(b"bytes", kind="application/octet-stream")) as elsewhere:
        moved = Reply("", 307, headers=(("Location", f"{elsewhere.url}/webhdfs/v1/file?op=OPEN"),))
        knox.cluster.hdfs.answer = lambda heard: moved  # type: ignore[method-assign]
        knox.at = elsewhere.url  # no rewriting
        base = knox.replay.url.replace("http:", "https:") + TOPOLOGY
        knox.answer = lambda heard: moved  # type: ignore[method-assign]
        knox.replay.answer = knox.answer
        identity = Identity("yarnctl", "basic", password_file=str(knox.password_file))
        hdfs = WebHdfs([base], identity, ca_file=str(knox.certificate))
        assert hdfs.read("/file") == b"bytes"
        assert "Authorization" not in elsewhere.heard[0].headers


@pytest.mark.parametrize("word", ["read", "written"])
def test_another_host_with_tls_gets_no_password(knox: Knox, certificate: Path, word: str) -> None:
    """The second request of a write is no redirect to the library, which signs each request."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    elsewhere = Replay(lambda heard: Reply(b"bytes", 200 if heard.method == "GET" else 201))
    elsewhere.server.socket = context.wrap_socket(elsewhere.server.socket, server_side=True)
    with elsewhere:
        place = elsewhere.url.replace("http:", "https:")
        moved = Reply("", 307, headers=(("Location", f"{place}/webhdfs/v1/file?op=OPEN"),))
        knox.replay.answer = lambda heard: moved
        identity = Identity("yarnctl", "basic", password_file=str(knox.password_file))
        hdfs = WebHdfs([knox.at], identity, ca_file=str(certificate))
        if word == "read":
            hdfs.read("/file")
        else:
            hdfs.create("/file", b"bytes")
        assert knox.replay.heard[0].headers.get("Authorization") == SIGNED
        assert elsewhere.heard
        assert not [heard for heard in elsewhere.heard if "Authorization" in heard.headers]


@pytest.mark.parametrize("service", ["/resourcemanager", "/resourcemanager/v1", "/resourcemanager/v1/"])
def test_the_api_role_is_observed_and_never_acted_through(knox: Knox, service: str) -> None:
    port = knox.attached(service)
    port.observe(EVERYTHING)
    seen = port.observe_soon()
    assert seen is not None
    assert {row.application for row in seen.applications} == {application(1), application(2)}
    said = port.why_not[application(1)]
    assert "Knox's RESOURCEMANAGER service does not route /proxy" in text(said)
    plan = Plan(
        cluster=knox.cluster_address(service),
        attachment=Attachment(enforce=True),
        settings=Settings(),
        state_dir=Path("unused"),
    )
    with pytest.raises(BadInput, match="encrypts the ids of nodes") as refused:
        with_hdfs(plan)
    assert refused.value.remedy == USE_YARN_UI


def test_the_hdfs_of_jobs_is_known_by_its_names_behind_the_gateway(knox: Knox) -> None:
    knox.cluster.configuration["fs.defaultFS"] = "hdfs://nn:8020"
    plan = Plan(
        cluster=knox.cluster_address(),
        attachment=Attachment(enforce=True),
        settings=Settings(),
        state_dir=Path("unused"),
    )
    assert with_hdfs(plan).attachment.name_nodes == ("http://nn:9870",)


def test_addresses_of_the_cluster_are_not_asked_behind_a_gateway(knox: Knox, capfd: Any) -> None:
    del knox.cluster.configuration["yarn.web-proxy.address"]
    found = checked(knox, capfd, "--rm", f"{knox.at}/yarn")
    assert found["webhdfs"]["seen"].endswith(
        "not set, and the addresses in /conf are behind the gateway; "
        "set it to https://HOST:8443/gateway/TOPOLOGY"
    )


def checked(knox: Knox, capfd: Any, *options: str) -> dict[str, dict[str, str]]:
    return {one["id"]: one for one in printed(knox, capfd, *options)["findings"]}


def printed(knox: Knox, capfd: Any, *options: str) -> dict[str, Any]:
    """Return what ``yarnctl check --json`` prints; the password is not in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARNCTL_PASSWORD_FILE", str(knox.password_file))
        patch.setenv("YARNCTL_CA_FILE", str(knox.certificate))
        capfd.readouterr()
        exit_status_of(PROGRAM, ["check", *options, "--json"])
    both = capfd.readouterr()
    assert PASSWORD not in both.out + both.err
    assert SIGNED.split()[1] not in both.out + both.err
    found: dict[str, Any] = json.loads(both.out)
    return found


def test_the_printed_run_command_names_the_gateways_addresses(knox: Knox, capfd: Any) -> None:
    words = printed(knox, capfd, "--rm", f"{knox.at}/yarn", "--name-node", knox.at)["next"]["run"]
    assert words[:6] == ["yarnctl", "run", "--rm", f"{knox.at}/yarn", "--name-node", knox.at]


@pytest.mark.parametrize(
    ("service", "severity", "words"),
    [
        ("/yarn", "warn", "WEBHDFS service routes neither /jmx nor /conf of the NameNode"),
        ("/resourcemanager/v1", "fail", "routes neither /conf nor the pages of applications"),
    ],
)
def test_check_names_what_the_gateway_does_not_route(
    knox: Knox, capfd: Any, service: str, severity: str, words: str
) -> None:
    found = checked(knox, capfd, "--rm", knox.at + service, "--name-node", knox.at)
    assert found["gateway"]["severity"] == severity
    assert words in found["gateway"]["seen"]
    assert found["proxy"]["severity"] == ("ok" if service == "/yarn" else "warn")


def test_without_a_password_the_remedy_is_named(knox: Knox) -> None:
    with (
        Transport([f"{knox.at}/yarn"], ca_file=str(knox.certificate)) as to,
        pytest.raises(Rejected, match="set user and password_file: this gateway requires HTTP Basic"),
    ):
        to.fetch("/ws/v1/cluster/info")


def test_a_login_page_of_knox_is_recognised() -> None:
    login = "https://gw/gateway/knoxsso/api/v1/websso?originalUrl=" + quote("https://gw/x")
    with Replay(Reply("", 302, headers=(("Location", login),))) as replay:
        cluster = ClusterAddress(resource_managers=(f"{replay.url}/gateway/sso/yarn",))
        with pytest.raises(Exception, match="use a topology of Knox with HTTP Basic"):
            cluster.resource_manager().identify()


def test_the_recorded_gateway_is_read() -> None:
    """The case c18: the path before, and the password that its gateway wants."""
    answers = shared_cases.answers("c18-knox")

    def gateway(heard: Heard) -> Reply:
        found = answers.get(heard.path.removeprefix("/gateway/sandbox/yarn"))
        return page(status=404) if found is None else Reply(json.dumps(found))

    with Replay(gateway) as replay:
        cluster = ClusterAddress(resource_managers=(f"{replay.url}/gateway/sandbox/yarn",))
        manager = cluster.resource_manager()
        assert manager.identify().version == "3.3.6"
        assert [queue.name for queue in manager.root_queue().children] == ["production", "research"]


def test_a_program_behind_the_gateway_sets_no_cookie(knox: Knox) -> None:
    """Its path begins with the gateway's, and the cookie would be sent to the ResourceManager."""
    with Transport(
        [f"{knox.at}/yarn"],
        Identity("yarnctl", "basic", password_file=str(knox.password_file)),
        ca_file=str(knox.certificate),
    ) as to:
        cookie = (("Set-Cookie", "stolen=1; Path=/"),)
        knox.cluster.break_("GET /proxy", Reply("{}", headers=cookie))
        to.fetch(f"/proxy/{application(1)}/ws/v1/mapreduce/info")
        to.keep_cookie("checked", "true", f"/proxy/{application(1)}")
        to.fetch("/ws/v1/cluster/info")
        to.fetch(f"/proxy/{application(1)}/x")
    assert knox.cookies == ["", "", "checked=true"]


# --- the password ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"secret\n", 0o640, "other users may read it (mode 640"),
        (b"secret\n", 0o604, "other users may read it (mode 604"),
        (b"", 0o600, "empty, too long, or not one line"),
        (b"\n", 0o600, "empty, too long, or not one line"),
        (b"secret\nsecret\n", 0o600, "empty, too long, or not one line"),
        (b"s" * 5000, 0o600, "empty, too long, or not one line"),
    ],
)
def test_a_password_file_that_cannot_be_used(tmp_path: Path, content: bytes, mode: int, words: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(BadInput) as refused:
        read_password(str(file))
    assert words in str(refused.value)
    assert "secret" not in str(refused.value).replace(str(file), "")


@pytest.mark.parametrize("content", [b"secret", b"secret\n", b"secret\r\n"])
def test_a_password_is_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    file.chmod(0o600)
    assert read_password(str(file)) == b"secret"


def test_a_folder_is_no_password_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_password(str(tmp_path))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"YARNCTL_RM": "http://gw/gateway/x/yarn"}, "would receive a password unencrypted"),
        ({"YARNCTL_NAME_NODE": "http://gw/gateway/x"}, "would receive a password unencrypted"),
        ({"YARNCTL_USER": "a:b"}, "cannot be sent with HTTP Basic"),
        ({"YARNCTL_AUTHENTICATION": "kerberos"}, "authentication is kerberos, and password_file is '/p'"),
        (
            {"YARNCTL_AUTHENTICATION": "basic", "YARNCTL_PASSWORD_FILE": ""},
            "authentication is basic, and password_file is not set",
        ),
    ],
)
def test_a_password_needs_tls_and_a_user(more: dict[str, str], words: str) -> None:
    told = {"YARNCTL_RM": "https://gw/gateway/x/yarn", "YARNCTL_PASSWORD_FILE": "/p", "YARNCTL_USER": "ann"}
    with pytest.raises(BadInput) as refused:
        load_cluster(None, {**told, **more})
    assert words in str(refused.value)


def test_addresses_of_hadoops_files_are_not_used_behind_a_gateway(tmp_path: Path) -> None:
    """On an edge node HADOOP_CONF_DIR is set, and its addresses are inside."""
    keys = {"yarn-site.xml": "yarn.resourcemanager.hostname", "hdfs-site.xml": "dfs.namenode.rpc-address"}
    for file, key in keys.items():
        row = f"<property><name>{key}</name><value>inside:8020</value></property>"
        (tmp_path / file).write_text(f"<configuration>{row}</configuration>")
    told = {"HADOOP_CONF_DIR": str(tmp_path), "YARNCTL_PASSWORD_FILE": "/p"}
    cluster = load_cluster(None, {**told, "YARNCTL_RM": "https://gw/gateway/x/yarn"})
    assert cluster.resource_managers == ("https://gw/gateway/x/yarn",)
    assert cluster.name_nodes == ()
    with pytest.raises(BadInput, match="no ResourceManager is configured"):
        load_cluster(None, told)


def test_a_rejected_password_is_not_sent_again_until_it_changes(knox: Knox) -> None:
    """A directory locks the account of a user with many rejected passwords."""
    now = [0.0]
    knox.password_file.write_text("an-old-one")
    with Transport([f"{knox.at}/yarn"], ca_file=str(knox.certificate)) as to:
        auth = Password("yarnctl", str(knox.password_file), lambda: now[0])
        for session in to._sessions.values():
            session.auth = auth
        with pytest.raises(Rejected, match="requires HTTP Basic"):
            to.fetch("/ws/v1/cluster/info")
        with pytest.raises(Rejected, match="the gateway rejected the user and the password") as refused:
            to.fetch("/ws/v1/cluster/info")
        assert "an-old-one" not in str(refused.value)
        assert len(knox.replay.heard) == 1
        now[0] = 61.0
        with pytest.raises(Rejected, match="requires HTTP Basic"):
            to.fetch("/ws/v1/cluster/info")
        knox.password_file.write_text(PASSWORD)
        assert to.fetch("/ws/v1/cluster/info").status == 200


def test_a_program_behind_the_gateway_cannot_stop_the_requests(knox: Knox) -> None:
    knox.cluster.break_("GET /proxy", Reply("", 401))
    identity = Identity("yarnctl", "basic", password_file=str(knox.password_file))
    with Transport([f"{knox.at}/yarn"], identity, ca_file=str(knox.certificate)) as to:
        with pytest.raises(Rejected):
            to.fetch(f"/proxy/{application(1)}/ws/v1/mapreduce/info")
        assert to.fetch("/ws/v1/cluster/info").status == 200


def test_nothing_is_sent_where_tls_is_missing(password_file: Path) -> None:
    with Replay(Reply("{}")) as replay:
        identity = Identity("yarnctl", "basic", password_file=str(password_file))
        with (
            Transport([replay.url], identity) as to,
            pytest.raises(Rejected, match="a password would be sent over plain HTTP"),
        ):
            to.fetch("/ws/v1/cluster/info")
        assert replay.heard == []


def test_the_user_of_the_file_counts_for_the_commands(tmp_path: Path) -> None:
    from yarnctl.cli.cluster import ClusterOptions, cluster_of

    file = tmp_path / "yarnctl.toml"
    file.write_text('[cluster]\nresource_managers = ["http://rm:8088"]\nuser = "fred"\n')
    assert cluster_of(ClusterOptions(config=file)).user == "fred"
    file.write_text('[cluster]\nresource_managers = ["http://rm:8088"]\n')
    assert cluster_of(ClusterOptions(config=file)).user == "yarnctl"
