"""TLS with the very program ``yarnctl run``: commands over it, SIGHUP, and an end that no client delays."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import ssl
from pathlib import Path

import pytest

from tests.live.test_settings_live import serving, until
from tests.soak.virtual_live_sides import PATIENCE_S, program
from tests.unit.service.certificates import Authority
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of

SECRET = "the secret of the operator"
URL = re.compile(r"page and API at (https://\S+)")


@pytest.mark.xdist_group("settings-live")
def test_commands_reload_and_end_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    authority, log, token = Authority(tmp_path / "authority"), tmp_path / "yarnctl.log", tmp_path / "token"
    files = authority.sign("yarnctl")
    token.touch(mode=0o600)
    token.write_text(SECRET)
    monkeypatch.setenv("YARNCTL_CA_FILE", str(authority.file))
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(token))
    words = ("--listen", "0.0.0.0:0", "--token-file", str(token), "--preemptable", "research")
    tls = ("--tls-certificate", str(files.certificate), "--tls-key", str(files.key))
    with (
        serving(tmp_path) as url,
        contextlib.ExitStack() as idle,
        program(
            "yarnctl.cli", "run", "--rm", url, *words, *tls, "--state-dir", str(tmp_path / "state"), log=log
        ) as daemon,
    ):
        until(lambda: URL.search(log.read_text()), log)
        found = URL.search(log.read_text())
        assert found is not None
        page = found[1].replace("0.0.0.0", "127.0.0.1")
        until(lambda: exit_status_of(PROGRAM, ["snapshot", "--url", page]) == 0, log)
        assert "observe" in capfd.readouterr().out
        monkeypatch.delenv("YARNCTL_CA_FILE")
        assert exit_status_of(PROGRAM, ["snapshot", "--url", page]) == 3
        assert "TLS fails" in capfd.readouterr().err
        other = authority.sign("another")
        whole = files.key.read_bytes()
        files.key.write_bytes(other.key.read_bytes())
        daemon.send_signal(signal.SIGHUP)
        until(lambda: "the old one stays in use" in log.read_text(), log)
        files.key.write_bytes(whole)
        daemon.send_signal(signal.SIGHUP)
        until(lambda: "certificate reloaded" in log.read_text(), log)
        context = ssl.create_default_context(cafile=authority.file)
        port = int(page.rpartition(":")[2])
        for _ in range(3):
            bare = idle.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
            idle.enter_context(context.wrap_socket(bare, server_hostname="127.0.0.1"))
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(PATIENCE_S) == 0
    assert SECRET not in log.read_text()
