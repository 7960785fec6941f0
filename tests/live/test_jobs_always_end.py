"""Whatever nodes, masters and tasks do: once all nodes are back, every job ends, and is whole.

Law: the clock is turned by hand, so that a schedule of faults is a function of its steps and a job that waits
for ever is seen as such, in virtual time.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.live.manager.state import AppRecord
from tests.live.turned_cluster import Turned, on_a_loop
from tests.soak.fault_story import story
from tests.thoroughness import examples

KINDS = ["leave", "leave", "join", "join", "join", "am", "task", "signal", "stall", "stall", "pass", "pass"]
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 40), st.integers(0, 120)), min_size=4, max_size=25
)
ENDS_WITHIN_MS = 120_000


def strike(cluster: Turned, kind: str, pick: int) -> None:
    """Let one thing happen, as in a campaign: at the wrong time, or for the second time."""
    nodes = list(cluster.nodes.values())
    node = nodes[pick % len(nodes)]
    apps = list(cluster.yarn.applications.values())
    live = cluster.master_of(apps[pick % len(apps)]) if apps else None
    if kind == "leave":
        node.leave()
    elif kind == "join":
        node.join()
    elif kind == "stall":
        cluster.turn(pick * 25)
    elif kind == "pass":
        cluster.pass_ms(pick * 20)
    elif kind == "signal":
        held = sorted(cluster.yarn.containers)
        if held:
            cluster.yarn.signal(held[pick % len(held)], "FORCEFUL_SHUTDOWN")
    elif live is not None and kind == "am":
        live.end()
    elif live is not None and kind == "task":
        running = [one for one in live.attempts.all.values() if not one.over]
        if running:
            live.around(lambda: live.kill_attempt(running[pick % len(running)]))


def assert_all_end(cluster: Turned, apps: list[AppRecord]) -> None:
    for node in cluster.nodes.values():
        if node.registration is None:
            node.join()
    ended = cluster.until(lambda: all(app.over for app in apps), ENDS_WITHIN_MS)
    assert ended, story(cluster.yarn, cluster.nodes, cluster.masters)
    assert [app.final_status for app in apps] == ["SUCCEEDED"] * len(apps)


def play(steps: list[tuple[str, int, int]], folder: Path) -> None:
    cluster = Turned(folder)
    try:
        apps = [cluster.submit("research", "research", maps=2, reduces=7, reduce_ms=1500)]
        cluster.pass_ms(1000)
        apps.append(cluster.submit("production", "production", maps=2, reduces=2, reduce_ms=300))
        for kind, pick, wait in steps:
            strike(cluster, kind, pick)
            cluster.pass_ms(wait * 10)
        assert_all_end(cluster, apps)
    finally:
        cluster.close()


def lose_a_grant(folder: Path) -> None:
    """A node registers once more while a grant on it waits to be fetched (campaign 290)."""
    cluster = Turned(folder)
    try:
        app = cluster.submit("research", "research", maps=2, reduces=4)
        held = cluster.yarn.containers
        assert cluster.until(lambda: app.state == "RUNNING", 5000)
        assert cluster.until(lambda: any(not one.acquired for one in held.values()), 5000)
        unfetched = next(one for one in held.values() if not one.acquired)
        cluster.nodes[unfetched.node.address].join()
        assert unfetched.id not in held
        assert_all_end(cluster, [app])
    finally:
        cluster.close()


def test_a_grant_lost_by_a_second_registration_is_made_up_for(tmp_path: Path) -> None:
    on_a_loop(lambda: lose_a_grant(tmp_path))


def forget_what_is_asked(folder: Path) -> None:
    """A planted bug: the manager forgets what a master has asked for, and the story tells where it hangs."""
    cluster = Turned(folder)
    try:
        app = cluster.submit("research", "research", maps=2, reduces=7)
        assert cluster.until(lambda: len(app.containers) == 6 and app.actor.pending, 5000)
        cluster.yarn.actor.scheduler.clear_asks(app.actor)
        with pytest.raises(AssertionError, match="what it waits for") as red:
            assert_all_end(cluster, [app])
        told = str(red.value)
        assert f"{app.id} RUNNING, attempt 1 RUNNING; asks (priority: count) {{}}" in told
        assert "0 maps and 2 reduces left; what it waits for (priority: tasks) {10: [5, 6]}" in told
        assert "n0:1 beats, counts" in told
    finally:
        cluster.close()


def test_a_job_that_never_ends_tells_why(tmp_path: Path) -> None:
    on_a_loop(lambda: forget_what_is_asked(tmp_path))


@given(STEPS)
@settings(max_examples=examples(40))
def test_every_job_ends_once_all_nodes_are_back(steps: list[tuple[str, int, int]]) -> None:
    # No machine crashes here, and a busy disk would be all that the test waits for.
    with TemporaryDirectory() as folder, patch("emulator.live.master.attempts.os.fsync"):
        on_a_loop(lambda: play(steps, Path(folder)))
