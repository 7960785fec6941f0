"""Foreign Hosts, Origins and content types: refused on every port on which the live emulator speaks HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from emulator.live.programs.master_program import MasterProgram
from emulator.live.programs.node_program import NodePlan, NodeProcess
from emulator.live.wire.http_server import guarded, name_in
from emulator.live.wire.messages import PATHS, MasterLaunch
from emulator.live.wire.submitted_job import ENTRY, StreamingJob, write_job
from emulator.live.wire.web import Reply, Web
from tests.hadoop.background import Background
from tests.live.test_all_in_one import Client, cluster

EVIL = "evil.example"
SITE = (
    "/ws/v1/cluster/info", "/conf", "/webhdfs/v1/?op=LISTSTATUS", "/ws/v1/history/info", "/proxy/x/y", "/",
)  # fmt: skip
WRITES = ("/ws/v1/cluster/apps/new-application", *PATHS.values())


def asked(
    url: str, path: str, method: str = "GET", body: object = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    """Ask once with just these headers (``_`` for ``-``); Host is told by hand."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    data = b"" if body is None else json.dumps(body).encode()
    given = {"Host": urlsplit(url).netloc, **{name.replace("_", "-"): text for name, text in headers.items()}}
    for name, text in given.items():
        if text:
            connection.putheader(name, text)
    connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data)
    answer = connection.getresponse()
    told = answer.read()
    connection.close()
    found = json.loads(told) if told[:1] == b"{" else {}
    return answer.status, found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with cluster(tmp_path_factory.mktemp("doors")) as (client, _):
        yield client


def submission(client: Client, application: str, mark: Path) -> dict[str, Any]:
    """Return a submission whose mapper writes a file."""
    script = client.folder / "touch.py"
    script.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).touch()\nsys.stdin.read()\n")
    job = StreamingJob(
        name="touch", inputs=(str(client.input),), output=str(client.folder / mark.with_suffix(".out").name),
        mapper=f"{sys.executable} -S {script} {mark}", reducer="cat", reduces=1, user="alice",
        queue="research",
    )  # fmt: skip
    return {
        "application-id": application,
        "application-name": "touch",
        "queue": "research",
        "resource": {"memory": 1024, "vCores": 1},
        "am-container-spec": {"environment": {"entry": [{"key": ENTRY, "value": write_job(job)}]}},
    }


def test_a_rebound_name_runs_no_command(whole: Client, tmp_path: Path) -> None:
    """Both requests of a page whose name was pointed here (it may then send JSON)."""
    rebound = {"Host": f"{EVIL}:8088", "Origin": f"http://{EVIL}:8088", "Content_Type": "application/json"}
    new = "/ws/v1/cluster/apps/new-application?user.name=alice"
    status, told = asked(whole.url, new, "POST", **rebound)
    assert status == 421
    assert "--allow-host" in told["RemoteException"]["message"]
    mark = tmp_path / "written"
    known = str(whole.post("apps/new-application").json()["application-id"])
    body = submission(whole, known, mark)
    apps = "/ws/v1/cluster/apps?user.name=alice"
    assert asked(whole.url, apps, "POST", body, **rebound)[0] == 421
    assert (
        asked(whole.url, apps, "POST", body, Content_Type="application/json", Origin=f"http://{EVIL}")[0]
        == 403
    )
    assert asked(whole.url, f"/ws/v1/cluster/apps/{known}")[0] == 404
    assert not mark.exists()
    assert asked(whole.url, apps, "POST", body, Content_Type="application/json")[0] == 202
    assert whole.over(known)[0] == "SUCCEEDED"  # the very same, asked by the right name, does run
    assert mark.exists()


@pytest.mark.parametrize("path", SITE)
def test_reading_is_refused_too(whole: Client, path: str) -> None:
    assert asked(whole.url, path)[0] not in (403, 421)
    assert asked(whole.url, path, Host=EVIL)[0] == 421
    assert asked(whole.url, path, Origin="null")[0] == 403


@pytest.mark.parametrize("path", WRITES)
@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_what_a_form_can_send_is_no_call(whole: Client, path: str, kind: str) -> None:
    if path == WRITES[0]:
        path, body = "/ws/v1/cluster/apps", {"application-id": "application_1_0001"}
        refused: tuple[int, ...] = (415, 503)  # 503: as Hadoop 3.4 tells a 415
    else:
        body, refused = {}, (415, 503, 404)
    assert asked(whole.url, path, "POST", body, Content_Type=kind)[0] in refused


def test_a_call_of_the_seam_has_to_be_json() -> None:
    heard: list[object] = []

    def keep(told: object) -> object:
        heard.append(told)
        return told

    web = Web()
    web.call("/emulator/v1/x", dict, keep)
    with Background(lambda _: web) as server:
        for kind in ("", "text/plain", "application/json-x", "text/plain, application/json"):
            assert asked(server.url, "/emulator/v1/x", "POST", {}, Content_Type=kind)[0] == 415
        assert heard == []
        for kind in ("application/json", "Application/JSON; charset=utf-8"):
            assert asked(server.url, "/emulator/v1/x", "POST", {}, Content_Type=kind)[0] == 200


# --- which names ----------------------------------------------------------------------------------


def status_of(host: str, names: tuple[str, ...], headers: list[tuple[bytes, bytes]]) -> int:
    """Return what a guard answers, without a server."""
    said: list[int] = []

    async def send(message: Any) -> None:
        said.append(message.get("status", 0))

    async def receive() -> Any:
        raise AssertionError("nothing is read")

    async def web(*_: Any) -> None:
        said.append(200)

    scope = {"type": "http", "headers": headers}
    asyncio.run(guarded(web, host, names)(scope, receive, send))  # type: ignore[arg-type]
    return said[0]


NAMES = [  # listens at, told, Host, answered
    ("127.0.0.1", (), b"127.0.0.1:8088", True),
    ("127.0.0.1", (), b"localhost:8088", True),
    ("127.0.0.1", (), b"LOCALHOST", True),
    ("127.0.0.1", (), b"[::1]:8088", True),
    ("127.0.0.1", (), b"10.0.0.7:8088", False),
    ("127.0.0.1", (), b"localhost.evil.example", False),
    ("127.0.0.1", (), b"", False),
    ("127.0.0.1", ("rm",), b"rm:8088", True),
    ("127.0.0.1", ("rm",), b"rm.evil.example", False),
    ("0.0.0.0", (), b"10.0.0.7:8088", True),
    ("0.0.0.0", (), b"nm1:8042", False),
    ("0.0.0.0", ("nm1",), b"NM1:8042", True),
    ("172.18.0.3", (), b"172.18.0.3:4711", True),
    ("::", (), b"[fd00::3]:8088", True),
]


@pytest.mark.parametrize(("host", "told", "named", "answered"), NAMES)
def test_names(host: str, told: tuple[str, ...], named: bytes, answered: bool) -> None:
    assert status_of(host, told, [(b"host", named)]) == (200 if answered else 421)


def test_one_host_header_and_no_second() -> None:
    assert status_of("127.0.0.1", (), []) == 421
    assert status_of("127.0.0.1", (), [(b"host", b"localhost"), (b"host", b"localhost")]) == 421


ORIGINS = [  # Host, Origin, passes
    (b"localhost:8088", b"http://localhost:8088", True),
    (b"rm:8088", b"https://rm", True),
    (b"localhost:8088", b"http://localhost:3000", False),
    (b"127.0.0.1:8088", b"http://localhost:8088", False),
    (b"localhost:8088", b"null", False),
    (b"localhost:8088", b"", False),
    (b"localhost:8088", b"file://localhost:8088", False),
    (b"localhost:8088", b"http://localhost:8088.evil.example", False),
]


@pytest.mark.parametrize(("host", "origin", "passes"), ORIGINS)
def test_origins(host: bytes, origin: bytes, passes: bool) -> None:
    headers = [(b"host", host), (b"origin", origin)]
    assert status_of("127.0.0.1", ("rm",), headers) == (200 if passes else 403)
    assert status_of("127.0.0.1", ("rm",), [*headers, (b"origin", origin)]) == 403


def test_the_name_in_a_url() -> None:
    assert name_in("http://rm:8088/x") == "rm"
    assert name_in("http://[::1]:8088") == "[::1]"
    assert name_in("") == ""


def node_web(folder: Path, allow: tuple[str, ...]) -> Web:
    """Return the application of ``yarn-emulator nm``, which has not yet begun to register."""
    plan = NodePlan(
        rm="http://127.0.0.1:9", work=folder, count=1, memory_mib=1, vcores=1, host="nm1", allow_hosts=allow
    )
    return NodeProcess(plan, 8042, lambda _: None, lambda _: None).web()


def master_web(folder: Path) -> Web:
    """Return the application of ``yarn-emulator am``, which has not yet begun to register."""
    launch = MasterLaunch(
        container="c", application="a", attempt=1, memory_mib=1, vcores=1, user="u", job=msgspec.Raw(b"{}")
    )
    url = "http://nm2:4711"
    return MasterProgram(launch, "http://127.0.0.1:9", folder, "nm2", "127.0.0.1", url, print).web()


@pytest.mark.parametrize("which", ["nm", "am"])
def test_nodes_and_masters_answer_their_own_names(tmp_path: Path, which: str) -> None:
    web = node_web(tmp_path, ("other",)) if which == "nm" else master_web(tmp_path)
    web.on_start.clear()
    web.on_stop.clear()
    web.add("GET", "/here", lambda _: Reply())
    with Background(lambda _: web) as server:
        names = {"nm": ("nm1", "other"), "am": ("nm2",)}[which]
        for name in ("localhost", *names):
            assert asked(server.url, "/here", Host=f"{name}:1")[0] == 200, name
        for name in ("nm3", EVIL):
            assert asked(server.url, "/here", Host=f"{name}:1")[0] == 421, name
        assert (
            asked(server.url, PATHS["start"], "POST", {}, Host=EVIL, Content_Type="application/json")[0]
            == 421
        )
