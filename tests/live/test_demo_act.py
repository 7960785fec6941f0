"""The demo's last act in small: it ends identical, tells what happens, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.demo import live_act
from emulator.demo.live_act import LivePlan, play
from emulator.demo.programs import DemoFailed, Programs
from emulator.live.node.process_supervisor import children

SMALL = LivePlan(nodes=1, slots=3, reduces=2, words=160, pause_s=0.16, speed=10.0)
PATIENCE_S = 120.0


@pytest.fixture
def own_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have temporary folders made where one can see what is left of them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_act_ends_identical_and_leaves_nothing(own_temporary: Path) -> None:
    told: list[str] = []
    before = set(children(os.getpid()))
    outcome = play(SMALL, told.append)
    assert outcome.identical
    assert outcome.bytes_compared > 0
    assert outcome.suspensions >= 1
    assert outcome.request_to_manifest_s is not None
    text = "\n".join(told)
    assert re.search(r"r_00000\d: yarnctl requests a checkpoint", text)
    assert re.search(r"r_00000\d: saved after \d+ words, \d+\.\d s from request to manifest", text)
    assert set(children(os.getpid())) == before
    assert not list(own_temporary.iterdir())


def test_a_differing_byte_is_seen(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
        (folder / "part-00000").write_bytes(b"word\t1\n")
    assert live_act.outputs(folders[0]) == live_act.outputs(folders[1])
    (folders[1] / "part-00001").write_bytes(b"")
    assert live_act.outputs(folders[0]) != live_act.outputs(folders[1])


def test_a_program_that_fails_ends_the_act_with_its_words(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        submit = programs.start("yarn-emulator", "submit", "--rm", "http://127.0.0.1:1", "--reducer", "cat")
        with pytest.raises(DemoFailed, match=r"yarn-emulator submit ended .*--input, --output"):
            submit.first_line()


def test_an_interrupt_ends_everything(tmp_path: Path) -> None:
    """Ctrl-C in the middle: no process and no folder is left."""
    code = (
        "from emulator.demo.live_act import LivePlan, play;"
        "play(LivePlan(pause_s=60.0, speed=4.0), lambda text: print(text, flush=True))"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    act = subprocess.Popen((sys.executable, "-c", code), stdout=subprocess.PIPE, text=True, env=environment)
    assert act.stdout is not None
    for line in act.stdout:
        if "fill the cluster" in line:
            break
    pids = descendants(act.pid)
    assert pids
    act.send_signal(signal.SIGINT)
    assert act.wait(PATIENCE_S) != 0
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "the end of all processes")
    assert not list(tmp_path.iterdir())


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [below for child in found for below in descendants(child)]


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(0.05)
