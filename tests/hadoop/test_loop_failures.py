"""The whole loop on a real Hadoop while something dies: yarnctl, a master, a node, the NameNode.

Law: whatever dies, jobs end with the output of an undisturbed run, and what was saved is not done again.
What the cluster itself loses (an attempt whose master or node died) is not ours to save.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests import http_client
from tests.hadoop import daemons
from tests.hadoop.launcher import Cluster
from tests.hadoop.scenarios import Running, Scenario, play, production, replays, research, twice_by_task
from yarnctl.hadoop.site_xml import load

STEADY = research("steady", *range(150, 480, 30))
QUICK = production("quick", 6, 6, 6, 6)


def kill_yarnctl_again_and_again(running: Running) -> None:
    """Kill yarnctl when it has asked, when a task has saved, and when room is free; start it each time."""
    for state in ("suspending", "checkpointed", "freed"):
        running.until(lambda state=state: running.daemon.reached(state), f"an order {state}")  # type: ignore[misc]
        running.daemon.kill()
        running.daemon.start()


def test_yarnctl_killed_at_any_point_goes_on_where_it_was(loop_cluster: Cluster, tmp_path: Path) -> None:
    scenario = Scenario("killed", (STEADY,), (QUICK,), disturb=kill_yarnctl_again_and_again)
    ran = play(loop_cluster, scenario, tmp_path)
    assert len(ran.freed("steady")) >= 3, ran.story()
    assert ran.daemon.reached("granted"), ran.story()
    assert ran.jobs["steady"].groups_twice() == 0
    assert replays(ran.daemon)


def kill_the_master(running: Running) -> None:
    """Kill the patient job's master once two of its tasks are stopped and wait for room."""
    running.until(lambda: len(running.waiting("steady")) >= 2, "two tasks stopped")
    (running.folder / "stopped").write_text("\n".join(sorted(running.waiting("steady"))), encoding="ascii")
    (pid,) = masters(running.cluster, running.jobs["steady"].application)
    os.kill(pid, signal.SIGKILL)


def masters(cluster: Cluster, application: str) -> Iterator[int]:
    for pid in daemons.of_cluster(cluster.folder):
        with contextlib.suppress(OSError):  # it has left meanwhile
            told = Path(f"/proc/{pid}/cmdline").read_bytes()
            is_java = told.partition(b"\0")[0].endswith(b"java")
            if is_java and b"MRAppMaster" in told and application.encode() in told:
                yield pid


def test_a_master_that_dies_has_its_successor_take_the_checkpoints_up(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    ran = play(loop_cluster, Scenario("master", (STEADY,), (QUICK,), disturb=kill_the_master), tmp_path)
    steady = ran.jobs["steady"]
    attempts = http_client.get(
        f"{loop_cluster.rm_url}/ws/v1/cluster/apps/{steady.application}/appattempts", timeout=30
    ).json()["appAttempts"]["appAttempt"]
    assert len(attempts) == 2, "the master was not killed"
    stopped = (ran.folder / "stopped").read_text(encoding="ascii").split()
    assert {task: twice_by_task(steady)[task] for task in stopped} == dict.fromkeys(stopped, 0)
    assert replays(ran.daemon)


def kill_a_node(running: Running) -> None:
    """Kill a NodeManager that holds no master, wait until it is lost, and start it again."""
    running.until(lambda: len(running.freed("steady")) >= 2, "two tasks stopped")
    running.until(lambda: running.jobs["quick"].row().get("amHostHttpAddress"), "the hurried job's master")
    cluster = running.cluster
    held = {port_of(job.row()["amHostHttpAddress"]) for job in running.jobs.values()}
    name = next(name for name, address in nodes(cluster).items() if port_of(address) not in held)
    (running.folder / "stopped").write_text("\n".join(sorted(running.waiting("steady"))), encoding="ascii")
    cluster.kill(name)
    cluster.wait_for_nodes(cluster.shape.nodes - 1)
    cluster.start(name)
    cluster.wait_for_nodes(cluster.shape.nodes)


def port_of(address: str) -> str:
    """Return an address's port: all nodes are on this host, by whatever name."""
    return address.rpartition(":")[2]


def nodes(cluster: Cluster) -> dict[str, str]:
    """Return the web address of every NodeManager by the launcher's name of it."""
    return {
        name: str(
            load(cluster.folder / f"conf-nm-{name.rpartition('-')[2]}").text(
                "yarn.nodemanager.webapp.address"
            )
        )
        for name in cluster.daemons
        if name.startswith("nodemanager-")
    }


def test_a_node_that_dies_costs_only_what_ran_on_it(loop_cluster: Cluster, tmp_path: Path) -> None:
    ran = play(loop_cluster, Scenario("node", (STEADY,), (QUICK,), disturb=kill_a_node), tmp_path)
    assert len(ran.freed("steady")) >= 2, ran.story()
    again = twice_by_task(ran.jobs["steady"])
    assert len(again) <= loop_cluster.shape.node_memory_mib // loop_cluster.shape.container_mib, again
    assert replays(ran.daemon)


def restart_the_name_node(running: Running) -> None:
    """Kill the NameNode as soon as a task was asked to save, and start it again."""
    running.until(lambda: running.daemon.asked(), "a task asked")
    running.cluster.kill("namenode")
    running.cluster.start("namenode")
    running.cluster.wait_for_hdfs()


def test_a_name_node_that_restarts_during_a_checkpoint_costs_no_work(
    loop_cluster: Cluster, tmp_path: Path
) -> None:
    scenario = Scenario("names", (STEADY,), (QUICK,), disturb=restart_the_name_node)
    ran = play(loop_cluster, scenario, tmp_path)
    assert ran.freed("steady"), ran.story()
    assert ran.jobs["steady"].groups_twice() == 0
    assert replays(ran.daemon)
