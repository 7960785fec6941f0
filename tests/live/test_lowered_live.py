"""A real ``yarnctl run`` that has lowered a setting is killed, cannot write, or loses its state directory.

All cases are played by ``python -m tests.soak lowered-kinds``; here are a few of each kind of setting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.live.lowered_live import KINDS, Daemon, LoweringCluster, Preemption, Queue
from tests.live.test_all_in_one import wait_until
from tests.soak.lowered_kinds import Case, Life, command

CASES = (
    Case("queue", "change done", "restart"),
    Case("queue", "held 1", "full-disk"),
    Case("preemption", "change done", "restart"),
    Case("preemption", "held 1", "pause"),
    Case("preemption", "back sent", "freeze"),
    Case("priority", "change done", "without"),
    Case("executors", "held 1", "observe"),
    Case("bounds", "change done", "owner"),
)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_it_is_back_or_named_and_the_next_daemon_puts_it_back(tmp_path: Path, case: Case) -> None:
    with closing(KINDS[case.kind](tmp_path / "cluster")) as rig, closing(Life(rig, case, tmp_path)) as life:
        rig.renew()
        life.play()


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[LoweringCluster]:
    with closing(Queue(tmp_path / "cluster")) as rig:
        rig.renew()
        yield rig


def test_restore_works_without_a_daemon_and_leaves_a_running_one_alone(
    whole: LoweringCluster, tmp_path: Path
) -> None:
    def restore(*words: str) -> str:
        return command("restore", "--rm", whole.url, *words).stdout

    assert restore() == "yarnctl has lowered no setting that is not restored\n"
    daemon = Daemon(whole.url, tmp_path / "state", *whole.options)
    whole.demand()
    wait_until(lambda: "change done" in whole.trap.passed, "the queue is lowered")
    busy = command("restore", "--rm", whole.url, "--all")
    assert (busy.returncode, "holds the lock" in busy.stderr) == (3, True), busy
    assert whole.value() != whole.before
    daemon.kill()
    daemon.ended()
    (row,) = json.loads(restore("-o", "json"))["settings"]
    assert (row["kind"], row["target"], row["state"]) == ("queue", "root.research", "lowered")
    wrong = command("restore", "--rm", whole.url, "root.resaerch")
    assert (wrong.returncode, "did you mean root.research?" in wrong.stderr) == (2, True), wrong
    done = command("restore", "--rm", whole.url, "root.research", "-o", "json")
    assert done.returncode == 0, done
    (row,) = json.loads(done.stdout)["settings"]
    assert row["state"] == "the value before the change was read back"
    assert (whole.value(), whole.records) == (whole.before, [])


def test_net_is_back_at_once_after_a_kill_and_yarn_preempts_nothing_before(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with closing(Preemption(tmp_path / "cluster")) as rig:
        rig.renew()
        daemon = Daemon(rig.url, state, *rig.options)
        wait_until(lambda: "change done" in rig.trap.passed, "YARN's preemption is switched off")
        rig.demand()
        wait_until(lambda: "checkpointed -> freed" in daemon.said, "a container is freed")
        assert rig.preempted == 0, "YARN preempted while yarnctl acted"
        daemon.kill()
        daemon.ended()
        assert (rig.value(), len(rig.records)) == ("true", 1)
        done = command("restore", "--rm", rig.url, "--all", "--state-dir", str(state))
        assert (done.returncode, "waiting up to" in done.stderr) == (0, False), done
        assert (rig.value(), rig.records) == ("", [])


def test_a_state_directory_that_is_emptied_ends_it_with_the_path_and_the_next_step(
    whole: LoweringCluster, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    daemon = Daemon(whole.url, state, *whole.options)
    whole.demand()
    wait_until(lambda: "change done" in whole.trap.passed, "the queue is lowered")
    for each in state.iterdir():
        each.unlink()
    assert daemon.ended() == 2
    assert whole.value() == whole.before
    last = daemon.said.splitlines()[-1]
    assert last.startswith(f"error: {state}/")
    assert "start yarnctl again" in last
    requests_folder = whole.whole.work / "hdfs/yarnctl/requests"
    asked = [one.name.split(".")[0] for one in requests_folder.rglob("*.request*")]
    withdrawn = [one.name.split(".")[0] for one in requests_folder.rglob("*.withdrawn")]
    assert asked
    assert set(withdrawn) <= set(asked)
