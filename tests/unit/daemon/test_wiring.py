"""Wiring: every guard that is built is also asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.daemon.test_loop import busy
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment
from yarnctl.config import ClusterAddress
from yarnctl.daemon import running
from yarnctl.daemon.running import Plan, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.settings import DEFAULT, LeverSettings, LossRule


def plan(path: Path) -> Plan:
    """Return a plan that only observes; nothing listens at its addresses."""
    return Plan(
        cluster=ClusterAddress(resource_managers=("http://127.0.0.1:1",), name_nodes=("http://127.0.0.1:1",)),
        attachment=Attachment(),
        settings=DEFAULT,
        state_dir=path / "state",
        store_root="/yarnctl/ours",
    )


def test_the_port_asks_the_gate_right_before_it_ends_an_attempt(tmp_path: Path) -> None:
    cluster = busy()
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        loop, journal = make_loop(plan(tmp_path), state, cluster, None)
        assert cluster.permission.host() is None
        loop.pause("maintenance")
        assert cluster.permission.host() == Paused("maintenance")
        journal.close()


def test_the_port_knows_where_checkpoints_must_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Attachment] = []

    def attach(_cluster: ClusterAddress, attachment: Attachment, *_more: Any) -> None:
        told.append(attachment)
        raise InterruptedError

    monkeypatch.setattr(running, "attach", attach)
    with pytest.raises(InterruptedError):
        running.run(plan(tmp_path))
    assert told[0].store_root == "/yarnctl/ours"


def test_container_time_is_counted_by_the_path_of_a_budgets_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name in the file, only what is held in the default window would count."""
    told: list[Attachment] = []

    def attach(_cluster: ClusterAddress, attachment: Attachment, *_more: Any) -> None:
        told.append(attachment)
        raise InterruptedError

    def resolve_at_start(names: QueueNames, *_more: Any, **_options: bool) -> None:
        names.read(QueueTree(("root.science.research", "root.production")))

    monkeypatch.setattr(running, "attach", attach)
    monkeypatch.setattr(running, "resolve_at_start", resolve_at_start)
    rule = LossRule("queue", "research", 0.02, 7_200_000)
    levers = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500, budgets=(rule,))
    settings = msgspec.structs.replace(DEFAULT, levers=levers)
    given = msgspec.structs.replace(plan(tmp_path), attachment=Attachment(budgets=(rule,)), settings=settings)
    with pytest.raises(InterruptedError):
        running.run(given)
    assert told[0].budgets == (LossRule("queue", "root.science.research", 0.02, 7_200_000),)


def test_lock_and_folders_are_asked_within_the_bounds_of_the_loop(tmp_path: Path) -> None:
    """They are asked on the loop's own thread: ten minutes for a file would be ten minutes without a look."""
    client = running.hdfs_client(plan(tmp_path).cluster)
    for bounds in (client._bulk, client._to.limits):
        assert bounds.answer_ms <= 5_000
        assert bounds.read_timeout_ms <= 5_000
        assert bounds.retries == 0
        assert bounds.answer_bytes <= 64 << 20
