"""Whether the pages of applications, and the DataNodes, are reached: what ``yarnctl check`` tries."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.unit.attach.test_web_proxy import KEY, ProxiedCluster
from tests.unit.hadoop.little_hdfs import remote
from tests.unit.hadoop.replaying import Heard, Reply, closed_port
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of

UNKNOWN = "1566bb80c4dc.invalid"


class Checked(ProxiedCluster):
    """A cluster whose DataNode is at ``data`` (host:port); ``tells_in_json``: nothing is redirected."""

    data = ""
    tells_in_json = False

    def __enter__(self) -> Checked:
        super().__enter__()
        self.configuration[KEY] = self.at
        self.hdfs.folders |= {"/yarnctl", "/yarnctl/checkpoints", "/yarnctl/requests"}
        answer = self.hdfs.answer

        def redirecting(heard: Heard) -> Reply:
            if "op" not in heard.query:
                return remote("NotFoundException", 404)
            if heard.query["op"] != "CREATE" or "datanode" in heard.query:
                return answer(heard)
            base = f"http://{self.data}" if self.data else self.hdfs.replay.url
            where = f"{base}{heard.path}?op=CREATE&delegation=SECRET&datanode=1"
            if self.tells_in_json:
                return Reply(json.dumps({"Location": where}))
            return Reply(b"", 307, headers=(("Location", where),))

        self.hdfs.replay.answer = redirecting
        return self

    def check(self, capfd: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str, str]]:
        """Return the findings of ``yarnctl check`` by id."""
        files = dict(self.hdfs.files)
        words = ["check", "--rm", self.rm.url, "--name-node", self.hdfs.replay.url, "--json"]
        exit_status_of(PROGRAM, words)
        printed = capfd.readouterr().out
        assert "SECRET" not in printed
        assert self.hdfs.files == files
        assert self.changes == []
        assert not [heard for heard in self.hdfs.replay.heard if "datanode" in heard.query]
        return {
            one["id"]: (one["severity"], one["seen"], one["fix"]) for one in json.loads(printed)["findings"]
        }


@pytest.fixture
def cluster() -> Iterator[Checked]:
    with Checked() as fake:
        yield fake


def test_check_names_a_data_node_that_does_not_resolve(
    cluster: Checked, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.data = f"{UNKNOWN}:9864"
    severity, seen, fix = cluster.check(capfd)["datanodes"]
    assert (severity, seen) == ("fail", f"this host cannot resolve {UNKNOWN}")
    assert all(word in fix for word in ("DNS", "hosts", "dfs.datanode.hostname"))


@pytest.mark.parametrize("tells_in_json", [True, False])
def test_check_names_a_data_node_that_refuses(
    cluster: Checked, tells_in_json: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.data, cluster.tells_in_json = f"127.0.0.1:{closed_port()}", tells_in_json
    severity, seen, _ = cluster.check(capfd)["datanodes"]
    assert (severity, seen) == ("fail", f"{cluster.data}: connection refused")


def test_check_finds_a_data_node_that_answers(cluster: Checked, capfd: pytest.CaptureFixture[str]) -> None:
    found = cluster.check(capfd)["datanodes"]
    assert found == ("ok", f"{cluster.hdfs.replay.url.removeprefix('http://')} answers", "")


def test_check_finds_the_page_of_an_application(cluster: Checked, capfd: pytest.CaptureFixture[str]) -> None:
    severity, seen, _ = cluster.check(capfd)["proxy"]
    assert (severity, cluster.proxy.url in seen) == ("ok", True)


@pytest.mark.parametrize(
    ("host", "words"),
    [(f"{UNKNOWN}:20888", f"this host cannot resolve {UNKNOWN}"), ("", "connection refused")],
)
def test_check_names_a_proxy_that_is_not_reached(
    cluster: Checked, host: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    at = host or f"127.0.0.1:{closed_port()}"
    cluster.configuration[KEY] = at
    severity, seen, fix = cluster.check(capfd)["proxy"]
    assert (severity, words in seen, f"http://{at}" in seen or UNKNOWN in at) == ("fail", True, True)
    assert KEY in fix


def test_check_judges_no_proxy_where_no_application_runs(
    cluster: Checked, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.apps.clear()
    assert cluster.check(capfd)["proxy"][:2] == ("unknown", "not checked: no application is running")
