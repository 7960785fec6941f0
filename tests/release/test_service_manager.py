"""The daemon below systemd, which the test plays: ready, watchdog, stop, and what follows a crash."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.test_settings_live import serving
from tests.release.playing import PATIENCE_S, Played
from tests.unit.daemon.test_loop import busy, daemon
from yarnctl.service.security.tokens import read_secret
from yarnctl.service_manager import notify

SECRET = "0123456789abcdef" * 2
SETTINGS = """[run]
rm = ["{url}"]
listen = "off"
preemptable = ["research"]
enforce = {enforce}
"""


def started(manager: Played, *words: str) -> subprocess.Popen[str]:
    command = (sys.executable, "-c", "from yarnctl.cli import main; main()", *words)
    return subprocess.Popen(
        command, env=manager.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@contextmanager
def service(manager: Played, url: str, *, enforce: bool) -> Iterator[subprocess.Popen[str]]:
    """Run ``ExecStart`` until the end of the block."""
    (manager.places["%d"] / "token").write_text(SECRET)
    file = manager.folder / "yarnctl.toml"
    file.write_text(SETTINGS.format(url=url, enforce=str(enforce).lower()))
    process = started(manager, *manager.words("ExecStart"), "--config", str(file))
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.xdist_group("settings-live")
def test_ready_watchdog_stop(tmp_path: Path) -> None:
    with serving(tmp_path) as url, Played(tmp_path) as manager, service(manager, url, enforce=False) as run:
        manager.hear("READY=1")
        assert manager.heard.index("WATCHDOG=1") == manager.heard.index("READY=1") + 1
        manager.hear("WATCHDOG=1")
        run.terminate()
        manager.hear("STOPPING=1")
        assert run.wait(PATIENCE_S) == 0
        manager.drain()
        assert [line for line in manager.heard if line == "READY=1"] == ["READY=1"]
        assert any(line.startswith("STATUS=") and line.endswith("(observe)") for line in manager.heard)
        assert manager.heard.index("STOPPING=1") > len(manager.heard) - 4


@pytest.mark.xdist_group("settings-live")
def test_a_killed_daemon_is_followed_by_restore_with_its_state(tmp_path: Path) -> None:
    with serving(tmp_path) as url, Played(tmp_path) as manager, service(manager, url, enforce=True) as run:
        manager.hear("READY=1")
        manager.hear("WATCHDOG=1")
        run.kill()
        run.wait(PATIENCE_S)
        after = started(manager, *manager.words("ExecStopPost"), "--rm", url)
        told, _ = after.communicate(timeout=PATIENCE_S)
    assert after.returncode == 0, told


def test_loop_reports_each_step_also_one_without_an_answer_and_none_after_a_fault() -> None:
    cluster, heard = busy(), []
    loop, _ = daemon(cluster)
    loop._notify = lambda *lines: heard.append(lines)
    cluster.away = True
    loop.run(2)
    assert heard[1] == ("READY=1", "WATCHDOG=1")
    assert heard[0][0].startswith("STATUS=waiting: ")
    assert heard[2:4] == [("WATCHDOG=1",), ("STOPPING=1",)]

    loop, journal = daemon(busy())
    loop._notify = lambda *lines: heard.append(lines)
    journal.append = broken  # type: ignore[method-assign, assignment]
    del heard[:]
    with pytest.raises(OSError, match="planted"):
        loop.run(40)
    assert sum("WATCHDOG=1" in lines for lines in heard) == loop.ticks < 40
    assert ("STOPPING=1",) in heard


def broken(*_: object) -> None:
    raise OSError("planted")


@pytest.mark.parametrize("is_abstract", [False, True])
def test_message_is_one_datagram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_abstract: bool) -> None:
    name = f"@yarnctl-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0"))
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        assert notify("READY=1", "WATCHDOG=1")
        assert manager.recv(100) == b"READY=1\nWATCHDOG=1"


@pytest.mark.parametrize("path", ["", "/nowhere/notify", "@nobody", "a\0b"])
def test_no_manager_is_no_failure(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(os, "environ", {"NOTIFY_SOCKET": path})
    assert not notify("READY=1")


def test_a_manager_that_does_not_read_blocks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        while notify("WATCHDOG=1"):
            pass


def test_credential_with_an_access_list_is_read_and_another_file_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET)
    token.chmod(0o440)  # how a list for one user shows in the mode
    with pytest.raises(Exception, match="other users can read"):
        read_secret(token, "--token-file")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_secret(token, "--token-file") == SECRET
