"""Upgrade and back: each version continues from the other's journal, and restores what it had lowered."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.lowered_live import ROOT, Daemon, Queue
from tests.live.test_all_in_one import wait_until

OLDER = "59462c59e4e413f7c3838f9ce7a9366cd09fd16b"
"""The version before this one. A release raises it to the tag of the release before."""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sources of the older version, from git."""
    folder = tmp_path_factory.mktemp("older")
    packed = subprocess.run(["git", "archive", OLDER, "yarnctl"], cwd=ROOT, capture_output=True)
    if packed.returncode:
        pytest.skip(f"no history with {OLDER[:8]}: {packed.stderr.decode()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    subprocess.run([sys.executable, "-m", "yarnctl.task_runner.build"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("is_upgrade", [True, False], ids=["upgrade", "back"])
def test_journal_and_records_of_one_are_read_by_the_other(
    older: Path, tmp_path: Path, is_upgrade: bool
) -> None:
    before, after = (older, ROOT) if is_upgrade else (ROOT, older)
    state = tmp_path / "state"
    with closing(Queue(tmp_path / "cluster")) as rig:
        rig.renew()
        first = Daemon(rig.url, state, *rig.options, tree=before)
        rig.demand()
        wait_until(lambda: "change done" in rig.trap.passed, "the queue is lowered")
        wait_until(lambda: "-> ordered" in first.said or "decision 1 " in first.said, "a task is chosen")
        first.kill()
        first.ended()
        assert rig.value() != rig.before
        assert len(rig.records) == 1
        written = (state / "journal.jsonl").read_bytes()
        second = Daemon(rig.url, state, *rig.options, tree=after)
        wait_until(lambda: "open orders continue from the journal" in second.said, "the journal is read")
        wait_until(lambda: "-> freed" in second.said, "a container is freed by an order")
        assert second.end() == 0, second.said
        assert (rig.value(), rig.records) == (rig.before, []), second.said
    assert (state / "journal.jsonl").read_bytes().startswith(written[: written.rindex(b"\n") + 1])
    assert "Traceback" not in second.said
