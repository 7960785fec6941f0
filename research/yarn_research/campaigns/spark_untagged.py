"""Each way to end one idle executor of an untagged Spark application from outside, tried on a real Hadoop.

``python -m yarn_research.campaigns.spark_untagged --output spark-untagged.json`` tries each way once, what was not tried yet.

A session of PySpark without yarnctl computes a cell and is idle. One executor is ended in one way. Spark ends
the application at its first counted failure (``spark.executor.maxNumFailures=1``, ``spark.excludeOnFailure``),
so that the next cell's result tells whether Spark counts the way. Nothing is judged: a way that Spark counts,
or that does not end the executor that was meant, is not for use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tests import http_client
from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import prepare
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, event_log_in
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head
from yarn_research.campaigns.spark_events import read
from yarn_research.campaigns.spark_sessions import Session, expected

KIND = "spark-untagged"
GONE_S, LOOK_S, EXECUTORS = 40.0, 0.2, 5
COUNTING = ("spark.executor.maxNumFailures=1", "spark.yarn.maxAppAttempts=1", "spark.excludeOnFailure.enabled=true",
            "spark.yarn.executor.launch.excludeOnFailure.enabled=true")  # fmt: skip


class Meant(NamedTuple):
    """The executor to end: its container, its node's id, and the file of nodes that the cluster excludes."""

    cluster: Cluster
    container: str
    node: str
    excluded: Path


def signal_by(name: str) -> Callable[[Meant], None]:
    """Return the way of ``yarn container -signal``, by REST."""

    def send(meant: Meant) -> None:
        url = f"{meant.cluster.rm_url}/ws/v1/cluster/containers/{meant.container}/signal/{name}"
        http_client.post(f"{url}?user.name=root", timeout=20).raise_for_status()
        _until_gone(meant)

    return send


def end_process(meant: Meant) -> None:
    """Send SIGTERM to the executor's JVM alone, on its node."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        if words[0].endswith("java") and f"CONTAINER_ID={meant.container}\0" in environment:
            os.kill(int(folder.name), signal.SIGTERM)
    _until_gone(meant)


def shrink_node(meant: Meant) -> None:
    """Lower the node's memory by one container at once, then raise it again (administrators only)."""
    _resize(meant, SHAPE.node_memory_mib - SHAPE.container_mib, 0)
    _until_gone(meant)
    _resize(meant, SHAPE.node_memory_mib, -1)


def _resize(meant: Meant, memory_mib: int, timeout_s: int) -> None:
    url = f"{meant.cluster.rm_url}/ws/v1/cluster/nodes/{meant.node}/resource?user.name=root"
    size = {"memory": memory_mib, "vCores": SHAPE.node_vcores}
    answer = http_client.post(url, json={"resource": size, "overCommitTimeout": timeout_s}, timeout=20)
    assert answer.ok, f"{answer.status_code}: {answer.text[:300]}"


def decommission_node(meant: Meant) -> None:
    """Decommission the executor's node with a time of 3 s, then take it back."""
    meant.excluded.write_text(meant.node.replace(":", " ").split()[0] + "\n", encoding="utf-8")
    meant.cluster.run("yarn", "rmadmin", "-refreshNodes", "-g", "3", "-server")
    _until_gone(meant)
    meant.excluded.write_text("", encoding="utf-8")
    meant.cluster.run("yarn", "rmadmin", "-refreshNodes")


def _until_gone(meant: Meant) -> None:
    ends = time.monotonic() + GONE_S
    while meant.container in _containers(meant.cluster, meant.container) and time.monotonic() < ends:
        time.sleep(LOOK_S)


def _containers(cluster: Cluster, container: str) -> dict[str, str]:
    """Return the live containers of a container's application, with their nodes."""
    application = "application_" + "_".join(container.removeprefix("container_").split("_")[:2])
    attempts = f"{cluster.rm_url}/ws/v1/cluster/apps/{application}/appattempts"
    found = http_client.get(attempts, timeout=20).json()["appAttempts"]["appAttempt"][-1]
    told = http_client.get(f"{attempts}/{found['appAttemptId']}/containers", timeout=20).json()
    rows = told.get("container", [])
    rows = rows if isinstance(rows, list) else [rows]  # one alone is no list
    return {row["containerId"]: row["assignedNodeId"] for row in rows if row["containerState"] != "COMPLETE"}


WAYS: dict[str, Callable[[Meant], None]] = {
    "node-resource": shrink_node,
    "graceful-shutdown": signal_by("GRACEFUL_SHUTDOWN"),
    "forceful-shutdown": signal_by("FORCEFUL_SHUTDOWN"),
    "process-term": end_process,
    "node-decommission": decommission_node,  # the last one: its NodeManager ends
}


def tried(cluster: Cluster, folder: Path, way: str, excluded: Path) -> dict[str, Any]:
    """Try a way once; return what was seen."""
    events = folder / way / "events"
    events.mkdir(parents=True)
    settings = [*event_log_in(str(events)), *COUNTING]
    row: dict[str, Any] = {"way": way}
    with (
        contextlib.suppress(AssertionError),
        Session(cluster, folder / way / "session", "pyspark", None, settings) as session,
    ):
        session.begin_cell(1)
        session.until_cell(1)
        before = session.containers()
        nodes = _containers(cluster, max(before))
        of_master = next(node for name, node in nodes.items() if name not in before)
        name = max(each for each in before if nodes[each] != of_master)
        WAYS[way](Meant(cluster, name, nodes[name], excluded))
        gone = before - session.containers()
        row |= {"meant_is_gone": name in gone, "others_gone": len(gone - {name}), "next_cell_right": False}
        session.begin_cell(2)
        row["next_cell_right"] = session.until_cell(2) == expected("pyspark", 2)
    assert "next_cell_right" in row, f"{way}: the session had no first cell"
    with next(each for each in events.iterdir() if each.is_file()).open(encoding="utf-8") as lines:
        told = read(lines)
    counts = {"executor_failures": len(told.executor_failures()), "task_failures": len(told.task_failures())}
    return {**row, **counts, "excluded": told.excluded, "removed": told.removed}


class Untagged(msgspec.Struct):
    """The whole file."""

    head: dict[str, Any]
    rows: list[dict[str, Any]] = []


@click.command(help=__doc__)
@click.option("--minutes", type=float, default=30.0, help="Try no way after this many minutes.")
@click.option("--way", "ways", type=click.Choice(list(WAYS)), multiple=True, default=list(WAYS))
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float, ways: tuple[str, ...], output: Path) -> None:
    """Try each way, and write what was seen."""
    ends_s = time.monotonic() + 60 * minutes
    kept = gone_on(output, Untagged(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))
    tried_before = {row["way"] for row in kept.rows}
    folder = Path(tempfile.mkdtemp(prefix="spark-untagged-"))
    excluded = folder / "excluded"
    excluded.touch()
    overrides = {"yarn-site": {"yarn.resourcemanager.nodes.exclude-path": str(excluded)}}
    with Cluster(replace(SHAPE, overrides=overrides)) as cluster:
        prepare(cluster)
        for way in ways:
            if way not in tried_before and time.monotonic() < ends_s:
                kept.rows.append(tried(cluster, folder, way, excluded))
                keep(output, kept)
                click.echo(kept.rows[-1], err=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    command()
