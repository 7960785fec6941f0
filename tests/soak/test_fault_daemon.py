"""A daemon that is stopped while it starts again ends; the loop that died is not taken for the new one."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.soak import fault_daemon
from tests.soak.fault_daemon import ThreadDaemon
from yarnctl.daemon.running import Plan


class WaitingLoop:
    """A loop that runs until it is stopped, or until its process dies; it always says that it is well."""

    def __init__(self, trap: fault_daemon.Trap, running: threading.Event) -> None:
        self.running = running
        self.ended = threading.Event()
        self.lock_renewal = SimpleNamespace(lock=None)
        self.recorder = SimpleNamespace(journal=None)
        self.port = SimpleNamespace(last_observation=SimpleNamespace(cluster="quiet", as_of_ms=100))
        self._trap = trap

    def run(self) -> None:
        self.running.set()
        self.ended.wait()
        self._trap.check()

    def stop(self) -> None:
        self.ended.set()

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(reachable=True, state="running")


def test_one_that_is_stopped_while_it_starts_again_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached = threading.Event()
    starting = threading.Event()
    running = threading.Event()
    loops: list[WaitingLoop] = []

    def attach(*_: object) -> SimpleNamespace:
        starting.set()
        attached.wait()
        return SimpleNamespace(close=lambda: None)

    def make_loop(_: object, __: object, trap: fault_daemon.Trap, ___: object) -> tuple[WaitingLoop, Any]:
        loops.append(WaitingLoop(trap, running))
        return loops[-1], SimpleNamespace(file=SimpleNamespace(close=lambda: None), close=lambda: None)

    state = SimpleNamespace(journal=None, instance="")
    monkeypatch.setattr(fault_daemon, "StateDir", lambda *_: nullcontext(state))
    monkeypatch.setattr(fault_daemon, "repair", lambda _: None)
    monkeypatch.setattr(fault_daemon, "rebuild", lambda _: None)
    monkeypatch.setattr(msgspec.structs, "replace", lambda *_, **__: None)
    monkeypatch.setattr(fault_daemon, "attach", attach)
    monkeypatch.setattr(fault_daemon, "TrappedPort", lambda _, trap: trap)
    monkeypatch.setattr(fault_daemon, "TrappedJournal", lambda journal, _: journal)
    monkeypatch.setattr(fault_daemon, "make_loop", make_loop)
    plan = cast(Plan, SimpleNamespace(state_dir=tmp_path, cluster=None, attachment=None))
    daemon = ThreadDaemon(plan, Counter())
    attached.set()
    daemon.start()
    running.wait()
    assert daemon.looked_since(50) == "looked: quiet"
    daemon.kill()
    attached.clear()
    starting.clear()
    daemon.start()
    starting.wait()
    assert daemon.alive
    assert not daemon.looked_since(50)  # it did before it died
    stopping = threading.Thread(target=lambda: told.append(daemon.stop()))
    told: list[str] = []
    stopping.start()
    attached.set()
    stopping.join()
    assert told == [""]
    assert not daemon.alive
