"""yarnctl's own clients against the emulator's REST, through sockets, in both dialects."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import msgspec
import pytest

from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import HADOOP3
from emulator.live.manager.service import LiveResourceManager, ManagerSettings
from emulator.live.rest.site import ManagerSite
from emulator.live.wire.http_server import bind
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.web import Reply, Web
from tests.hadoop.background import Background
from tests.http_client import bare
from tests.live.rm_playing import EPOCH, Played
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import BadAnswer, Missing
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager

APP = f"application_{EPOCH}_0001"


class Served:
    """A played manager behind a server; ``there`` runs a function on the server's thread."""

    def __init__(self, dialect):
        self.played = Played()

        def build(url: str) -> Web:
            self.site = ManagerSite(self.played.manager, url, dialect=dialect)
            return self.site.web

        self.background = Background(build)

    def __enter__(self):
        self.background.__enter__()
        self.there = self.background.run
        self.url = self.background.url
        self.rm = ResourceManager(Transport([self.url], limits=CallLimits(retries=0)))
        return self

    def __exit__(self, *_):
        self.background.stop()


@pytest.fixture(params=["3.4", "3.5"])
def served(request):
    with Served(request.param) as one:
        yield one


def running(served: Served, maps: int = 2):
    def play():
        served.played.node("n1:1")
        return served.played.running("research", maps)

    return served.there(play)


def test_the_proxy_reaches_a_master_in_another_server_and_says_so_when_it_is_gone(served):
    def build(_url: str) -> Web:
        web = Web()
        web.add("GET", "/ws/v1/mapreduce/info", lambda request: Reply(200, request.header("cookie").encode()))
        web.add("PUT", "/ws/v1/mapreduce/x", lambda request: Reply(200, request.body))
        return web

    app, _ = running(served)
    with Background(build) as master:
        served.there(lambda: served.played.up(app, url=master.url))
        to = Transport([served.url], limits=CallLimits(retries=0))
        info = to.fetch(f"/proxy/{APP}/ws/v1/mapreduce/info", {"user.name": "ann"})
        assert (info.status, info.body) == (200, b"proxy-user=ann")
        assert to.change("PUT", f"/proxy/{APP}/ws/v1/mapreduce/x", b'{"a":1}').body == b'{"a":1}'
        with pytest.raises(Missing):
            to.fetch(f"/proxy/{APP}/ws/v1/mapreduce/nothing")
    with pytest.raises(BadAnswer, match="502"):
        to.fetch(f"/proxy/{APP}/ws/v1/mapreduce/info")


def test_the_proxy_gives_up_on_a_master_that_hangs(served):
    app, _ = running(served)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        served.there(lambda: served.played.up(app, url=url))
        served.site.proxy.timeout_s = 0.05
        with pytest.raises(BadAnswer, match="504"):
            Transport([served.url], limits=CallLimits(retries=0)).fetch(f"/proxy/{APP}/ws/v1/mapreduce/info")


# --- the server -------------------------------------------------------------------------------


def post(url: str, path: str, body: bytes) -> tuple[int, Any]:
    answer = bare("POST", url + path, body, {"Content-Type": "application/json"})
    return answer.status, json.loads(answer.body)


def test_the_seam_over_http():
    with Served("3.4") as served:
        register = {"node": "n1:1", "address": "http://x", "memory_mib": 1024, "vcores": 1}
        status, welcome = post(served.url, "/emulator/v1/nodes/register", json.dumps(register).encode())
        assert (status, welcome["epoch"], 0 <= welcome["phase_ms"] < 1000) == (200, EPOCH, True)
        beat = b'{"node":"n1:1","number":1}'
        assert post(served.url, "/emulator/v1/nodes/heartbeat", beat) == (
            200,
            {"number": 1, "masters": [], "signals": [], "stop": [], "resync": False},
        )
        for wrong in (b"{", b"[]", b"", b'{"node":1}', b"\xff", b"[" * 5000):
            status, said = post(served.url, "/emulator/v1/nodes/heartbeat", wrong)
            assert (status, said["RemoteException"]["exception"]) == (400, "BadRequestException")


def test_a_body_beyond_the_limit_is_refused_and_the_server_lives():
    def build(_url: str) -> Web:
        web = Web(limit_bytes=1000)
        web.add("POST", "/x", lambda request: Reply(200, b"%d" % len(request.body)))
        return web

    with Background(build) as server:
        assert post(server.url, "/x", b"a" * 1000) == (200, 1000)
        assert post(server.url, "/x", b"a" * 200_000)[0] == 413


def test_a_handler_that_fails_is_one_line_to_its_caller():
    def build(_url: str) -> Web:
        web = Web()
        web.add("GET", "/x", lambda _: Reply(1 // 0))
        return web

    with Background(build) as server:
        answer = bare("GET", server.url + "/x")
        assert (answer.status, b"Traceback" in answer.body) == (500, False)


def test_a_port_that_is_taken_is_one_clear_error():
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"127.0.0.1:{port}"):
            bind("127.0.0.1", port)


def test_hooks_run_before_the_first_answer_and_after_the_last():
    said = []

    def build(_url: str) -> Web:
        web = Web()
        web.on_start.append(lambda: said.append("start"))
        web.on_stop.append(lambda: said.append("stop"))
        web.add("GET", "/", lambda _: Reply(200, json.dumps(said).encode()))
        return web

    with Background(build) as server:
        assert json.loads(bare("GET", server.url + "/").body) == ["start"]
    assert said == ["start", "stop"]


def test_a_build_that_fails_is_told_to_whoever_starts_it():
    def build(_url: str) -> Web:
        raise BadInput("x", "cannot be built")

    with pytest.raises(BadInput, match="cannot be built"), Background(build):
        pass


def test_time_passes_by_itself_where_it_is_served():
    timing = msgspec.structs.replace(HADOOP3, node_expiry_ms=100)

    def build(url: str) -> Web:
        manager = LiveResourceManager(
            RealTimeDriver(Kernel()), ManagerSettings(timing=timing, silence_floor_ms=0)
        )
        return ManagerSite(manager, url).web

    with Background(build) as server:
        register = b'{"node":"n1:1","address":"http://x","memory_mib":1024,"vcores":1}'
        assert post(server.url, "/emulator/v1/nodes/register", register)[0] == 200
        rm = ResourceManager(Transport([server.url], limits=CallLimits(retries=0)))
        deadline = time.monotonic() + 60
        while rm.metrics().nodes_active:
            assert time.monotonic() < deadline
