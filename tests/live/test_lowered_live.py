"""A real ``yarnctl run`` that has lowered a queue is killed, cannot write, or loses its host."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.lowered_live import POINTS, ROOT, Daemon, LoweringCluster, lowering
from tests.live.test_all_in_one import wait_until
from yarnctl.journal.file import read
from yarnctl.journal.rebuild import repair
from yarnctl.journal.replay import replay

SERVING = ("--cap-queue", "--in-flight-least", "4")
FEW = {("change made", "kill"), ("held", "full-disk")}
"""Those that are always played; the others are more of the same.

A lost host is always played by ``tests/unit/daemon/test_lowered_queue.py``: here its lease has to run out.
"""

CASES = [
    pytest.param(point, kind, marks=[] if (point, kind) in FEW else [pytest.mark.thorough])
    for kind in ("kill", "full-disk", "lost-host")
    for point in POINTS
]


def checked(url: str) -> str:
    """Return what ``yarnctl check`` says to do about a lowered queue, "" if it names none."""
    words = [sys.executable, "-c", "from yarnctl.cli import main; main()", "check", "--rm", url, "--json"]
    told = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    (found,) = [one for one in json.loads(told.stdout)["findings"] if one["id"] == "lowered"]
    return str(found["fix"]) if found["severity"] in ("warn", "fail") else ""


def struck(whole: LoweringCluster, daemon: Daemon, point: str, kind: str) -> None:
    """Run until the point, and let it happen there."""
    whole.at = point
    whole.strike = daemon.fill_disk if kind == "full-disk" else daemon.kill
    late = ("back", "delete")
    if point == "held" or point.startswith(late):
        wait_until(lambda: "change made" in whole.passed, "the queue is lowered")
    if point == "held":
        whole.strike()
    elif point.startswith(late):
        daemon.process.terminate()
    daemon.ended()
    assert point == "held" or point in whole.passed


@pytest.mark.parametrize(("point", "kind"), CASES)
def test_it_is_back_or_named_and_the_next_daemon_puts_it_back(tmp_path: Path, point: str, kind: str) -> None:
    state = tmp_path / "state"
    with lowering(tmp_path) as whole:
        before = whole.maximum
        daemon = Daemon(whole.url, state, *SERVING)
        struck(whole, daemon, point, kind)
        if kind == "full-disk":
            assert whole.maximum == before, daemon.said
            assert daemon.process.returncode == 2 or point.startswith(("back", "delete")), daemon.said
        elif whole.maximum != before:
            assert f"yarn schedulerconf -update root.research:maximum-capacity={before}" in checked(whole.url)
        assert kind == "full-disk" or whole.maximum == before or "yarnctl restore --all" in checked(whole.url)
        if kind == "lost-host":
            shutil.rmtree(state)
        again = Daemon(whole.url, state)  # without --cap-queue: it only puts back what it finds
        wait_until(lambda: "running (enforce)" in again.said, "the next daemon may act")
        wait_until(lambda: whole.maximum == before and not whole.records, "back, and no record left")
        assert again.end() == 0, again.said
        assert (whole.maximum, whole.records) == (before, [])
    repair(state / "journal.jsonl")
    replay(read(state / "journal.jsonl"), "journal", closed=False)


def restore(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``yarnctl restore``."""
    command = [sys.executable, "-c", "from yarnctl.cli import main; main()", "restore", "--rm", url, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_restore_works_without_a_daemon_and_leaves_a_running_one_alone(tmp_path: Path) -> None:
    with lowering(tmp_path) as whole:
        before = whole.maximum
        assert restore(whole.url).stdout == "yarnctl has lowered no setting that is not restored\n"
        daemon = Daemon(whole.url, tmp_path / "state", *SERVING)
        wait_until(lambda: "change made" in whole.passed, "the queue is lowered")
        busy = restore(whole.url, "--all")
        assert (busy.returncode, "holds the lock" in busy.stderr) == (3, True), busy
        assert whole.maximum != before
        daemon.kill()
        daemon.ended()
        (row,) = json.loads(restore(whole.url, "-o", "json").stdout)["settings"]
        assert (row["kind"], row["target"], row["state"]) == ("queue", "root.research", "lowered")
        wrong = restore(whole.url, "root.resaerch")
        assert (wrong.returncode, "did you mean root.research?" in wrong.stderr) == (2, True), wrong
        watching = Daemon(whole.url, tmp_path / "watching", enforce=False)
        wait_until(lambda: "yarnctl restore --all" in watching.said, "an observing daemon lists it")
        watching.end()
        done = restore(whole.url, "root.research", "-o", "json")
        assert done.returncode == 0, done
        (row,) = json.loads(done.stdout)["settings"]
        assert row["state"] == "the value before the change was read back"
        assert (whole.maximum, whole.records) == (before, [])


def test_a_state_directory_that_is_emptied_ends_it_with_the_path_and_the_next_step(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with lowering(tmp_path) as whole:
        before = whole.maximum
        daemon = Daemon(whole.url, state, *SERVING)
        wait_until(lambda: "change made" in whole.passed, "the queue is lowered")
        for each in state.iterdir():
            each.unlink()
        assert daemon.ended() == 2
        assert whole.maximum == before
        last = daemon.said.splitlines()[-1]
        assert last.startswith(f"error: {state}/")
        assert "start yarnctl again" in last
        requests_folder = whole.whole.work / "hdfs/yarnctl/requests"
        asked = [one.name.split(".")[0] for one in requests_folder.rglob("*.request*")]
        withdrawn = [one.name.split(".")[0] for one in requests_folder.rglob("*.withdrawn")]
        assert asked
        assert set(withdrawn) <= set(asked)
