"""The command line's twins of the API: same data, two outputs, errors in one line."""

from __future__ import annotations

import json
import socketserver
import threading

import msgspec
import pytest

from tests.unit.service.conftest import TOKEN
from tests.unit.service.played import busy
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.reasons.modes import ClusterFault
from yarnctl.service.app import make_app
from yarnctl.service.serving import serve_in_thread

PRODUCTION = "application_1_000002"


@pytest.fixture
def say(served, capsys, monkeypatch):
    """Run a command against the served view; return status, stdout and stderr."""
    monkeypatch.setenv("YARNCTL_URL", served.url)

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = exit_status_of(PROGRAM, list(arguments))
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.mark.parametrize(
    ("command", "path"),
    [(("reclaims",), "/v1/reclaims"), (("reclaims", PRODUCTION), f"/v1/reclaims/{PRODUCTION}"),
     (("decisions",), "/v1/decisions"), (("decisions", "2"), "/v1/decisions/2"),
     (("apps",), "/v1/applications"), (("checkpoints", "seen"), "/v1/checkpoints"),
     (("snapshot",), "/v1/snapshot"), (("explain", "o-000002"), "/v1/explanations/o-000002")],
)  # fmt: skip
def test_json_is_what_the_api_answers(served, say, command, path):
    for option in (["--json"], ["-o", "json"]):
        status, out, _ = say(*command, *option)
        assert status == 0
        assert json.loads(out) == served.get(path)


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_apps_of_a_cluster_that_is_not_seen_are_not_known(served, say, option):
    away = ClusterFault("connection refused")
    view = busy()
    served.view = msgspec.structs.replace(
        view, loop=msgspec.structs.replace(view.loop, state="waiting", reachable=False, why=(away,))
    )
    status, out, err = say("apps", *option)
    assert (status, out) == (3, "")
    assert "the applications are not known: connection refused; see yarnctl snapshot" in err


def test_tables(say):
    entry, saved = busy().entries[0], busy().checkpoints[0].order
    for command, words in (
        (("reclaims",), (PRODUCTION, entry.order, entry.attempt, "checkpointed")),
        (("reclaims", PRODUCTION), (entry.order, "granted")),
        (("decisions",), (PRODUCTION, "pending requests fit on no node")),
        (("decisions", "2"), ("chosen   job first by MR", entry.order)),
        (("apps",), (PRODUCTION, "preempting", "research")),
        (("checkpoints", "seen"), (saved.order, saved.attempt, PRODUCTION)),
        (("explain", entry.attempt), ("chosen   job first by MR", entry.order)),
        (("snapshot",), ("running", "3 nodes", "production", "virtual-1")),
    ):
        status, out, err = say(*command)
        assert (status, err) == (0, "")
        for word in words:
            assert word in out


def test_a_long_list_is_fetched_page_by_page(served, say, monkeypatch):
    monkeypatch.setattr("yarnctl.client.daemon_client.PAGE_MAX", 1)
    status, out, _ = say("decisions", "--json")
    assert status == 0
    assert json.loads(out)["items"] == served.get("/v1/decisions")["items"]
    assert len(json.loads(say("decisions", "--limit", "1", "--json")[1])["items"]) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [(("reclaims", "nobody"), 1, "application nobody does not exist"),
     (("reclaims", "../snapshot"), 1, "Not Found"), (("decisions", "4711"), 1, "yarnctl explain --journal"),
     (("explain", "o-999999"), 1, "yarnctl explain --journal"),
     (("explain", "o-000002", "--journal", "x", "--url", "http://127.0.0.1"), 2, "give one of them"),
     (("explain", ".."), 2, "ID"), (("decisions", "x"), 2, "not a valid integer"),
     (("reclaims", " "), 2, "ID"), (("reclaims", "--state", "nice"), 2, "state"),
     (("apps", "--url", "ftp://x"), 2, "--url"), (("apps", "--url", "http://"), 2, "--url"),
     (("apps", "--url", "http://x:99999"), 2, "--url"),
     (("apps", "--url", "http://127.0.0.1:1"), 3, "Connection refused"),
     (("snapshot", "--url", "http://nobody.invalid"), 3, "no answer")],
)  # fmt: skip
def test_errors_in_one_line(say, arguments, status, words):
    ended, out, err = say(*arguments)
    assert (ended, out) == (status, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err or "Not Found" in err


@pytest.mark.parametrize(
    "content",
    [b"<html>hello</html>", b"[]", b"{}", b'{"items": 1}', b'{"items": [1], "now_ms": 1, "total": 1}'],
)
@pytest.mark.parametrize("status", ["200 OK", "302 Found", "500 Oops"])
def test_something_else_that_answers_is_no_daemon(capsys, content, status):
    class Other(socketserver.StreamRequestHandler):
        """Somebody else's service."""

        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            self.wfile.write(head.encode() + content)

    with socketserver.TCPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{other.server_address[1]}"
        ended = exit_status_of(PROGRAM, ["apps", "--url", url])
        other.shutdown()
        thread.join()
    err = capsys.readouterr().err
    assert ended == 3
    assert err.startswith(f"error: {url}")
    assert err.count("\n") == 1


def test_what_a_terminal_would_obey_is_not_printed(served, say):
    view = busy()
    assert view.snapshot is not None
    first = msgspec.structs.replace(view.snapshot.applications[0], user="\x1b[31mred\x07")
    snapshot = msgspec.structs.replace(view.snapshot, applications=(first,))
    served.view = msgspec.structs.replace(view, snapshot=snapshot)
    status, out, _ = say("apps")
    assert status == 0
    assert "\x1b" not in out
    assert "\\x1b[31mred" in out


def test_where_reading_needs_the_token_its_file_is_named(say, monkeypatch, tmp_path):
    handle = serve_in_thread(make_app(busy, token=TOKEN, open_reads=False), token=TOKEN)
    try:
        monkeypatch.setenv("YARNCTL_URL", handle.url)
        status, _, err = say("apps")
        assert (status, "YARNCTL_TOKEN_FILE" in err) == (2, True)
        file = tmp_path / "token"
        monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(file))
        assert say("apps")[0] == 2
        file.write_text(TOKEN + "\n")
        file.chmod(0o644)
        status, _, err = say("apps")
        assert (status, f"chmod 600 {file}" in err, TOKEN in err) == (2, True, False)
        file.chmod(0o600)
        status, out, _ = say("apps")
        assert (status, PRODUCTION in out) == (0, True)
    finally:
        handle.stop()
