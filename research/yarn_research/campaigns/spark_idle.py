"""Sessions of Spark that sit idle beside production in bursts: how soon idle executors leave, and what it costs.

``python -m yarn_research.campaigns.spark_idle --output spark-idle.json`` plays the sessions that were not
played. One session is one row. Each is written down as it ends, also one that failed.

Plan, before the first judged session: the five of ``SESSIONS``, with yarnctl's plugin and a shuffle service on
six containers, of which a session has one and its five executors the rest. A session computes a cell. Then
production comes three times: a MapReduce job with a master and three maps of 20 s. A cell begins when it has all its
containers, another one when it has ended. Both must be right. Before each burst no cell has run for
``IDLE_S``, so that all executors that are there are idle. The daemon runs with ``OPTIONS``.

A *request* appears when what production waits for exceeds the free containers by more than before, by
YARN's list, in two looks. It counts for as many executors as it needs, at most those that are there. An
executor is *given* when its container is gone from YARN's list, the earliest to the earliest request.

Rule.

1. given: at least 90 % of the executors within 5 s of the request.
2. cells: every one is what this machine computes without Spark.
3. failures: tasks and executors that Spark counts as failed, and excluded hosts: none.

A session that failed counts against all three.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tests import http_client
from tests.hadoop.artifacts import PY4J, SPARK, choose_spark
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.jobs import FINAL, Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, event_log_in, plugin_in
from tests.hadoop.spark_records import asked
from yarn_research.campaigns.bench import tried
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, machine, now
from yarn_research.campaigns.schemes import MUTABLE
from yarn_research.campaigns.spark_events import read
from yarn_research.campaigns.spark_map_stages import service_settings, shuffle_service
from yarn_research.campaigns.spark_sessions import Session, SessionKind, expected
from yarn_research.campaigns.spark_soak_set import Allocation
from yarnctl.command_line import print_json

KIND = "spark-idle"
EXECUTORS, BURSTS, IDLE_S, LOOK_S, PATIENCE_S = 5, 3, 2.0, 0.1, 240.0
WITHIN_S, GIVEN_RATIO = 5.0, 0.9
OPTIONS = (*QUEUES, "--eviction", "mix", "--room-within", "15s", "--may-lose", "2%", "--cap-queue")
CLUSTER = replace(SHAPE, overrides={"yarn-site": MUTABLE})
PRODUCTION = Plan("burst", "production", (), maps=3, mapper="sleep 20", user="bob")
SESSIONS: tuple[tuple[SessionKind, Allocation], ...] = (
    ("spark-shell", "static"),
    ("thrift-server", "dynamic"),
    ("pyspark", "dynamic"),
    ("pyspark", "static"),
    ("spark-shell", "dynamic"),
)

Row = dict[str, Any]


class Stage(NamedTuple):
    """Where sessions are played."""

    cluster: Cluster
    folder: Path
    plugin: str
    service_port: int


def settings_of(allocation: Allocation, events: Path, service_port: int) -> list[str]:
    """Return the settings of a session; with dynamic allocation Spark itself keeps idle executors."""
    found = [*event_log_in(str(events)), *service_settings(service_port)]
    if allocation == "dynamic":
        found += [
            "spark.dynamicAllocation.enabled=true",
            "spark.dynamicAllocation.minExecutors=0",
            f"spark.dynamicAllocation.initialExecutors={EXECUTORS}",
            f"spark.dynamicAllocation.maxExecutors={EXECUTORS}",
            "spark.dynamicAllocation.executorIdleTimeout=3600s",
        ]
    return found


class Watch:
    """What production waits for and which executors leave, look by look."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, int]] = []
        self.gone: list[float] = []
        self._live: set[str] | None = None
        self._more = 0
        self._since_s = 0.0

    def look(self, at_s: float, need: int, live: set[str]) -> None:
        """Note a look: the containers that production needs beyond the free ones, and the executors."""
        before = live if self._live is None else self._live
        self.gone += [at_s] * len(before - live)
        self._live = live
        owed = max(0, sum(count for _, count in self.requests) - len(self.gone))
        more = min(need, len(live)) - owed
        if more > 0 and more == self._more:
            self.requests.append((self._since_s, more))
            more = 0
        self._more, self._since_s = more, at_s

    def given_s(self) -> list[float | None]:
        """Return, for each executor of each request, after which time one was given (None: never)."""
        left, found = list(self.gone), list[float | None]()
        for at_s, count in self.requests:
            for _ in range(count):
                at = next((each for each in left if each >= at_s), None)
                found.append(None if at is None else round(at - at_s, 2))
                if at is not None:
                    left.remove(at)
        return found


def need_of(cluster: Cluster, name: str) -> tuple[str, int, int]:
    """Return an application's state, its containers, and how many more it needs than are free."""
    rows = http_client.get(f"{cluster.rm_url}/ws/v1/cluster/apps", timeout=20).json()
    row = next((each for each in (rows.get("apps") or {}).get("app", []) if each["name"] == name), None)
    if row is None:
        return "", 0, 0
    uses = (row.get("resourceInfo") or {}).get("resourceUsagesByPartition") or []
    pending_mib = sum(each["pending"]["memory"] for each in uses)
    metrics = http_client.get(f"{cluster.rm_url}/ws/v1/cluster/metrics", timeout=20).json()["clusterMetrics"]
    need = (pending_mib - metrics["availableMB"]) // SHAPE.container_mib
    return row["state"], row["runningContainers"], max(0, need)


def play_one(stage: Stage, number: int) -> Row:
    """Play one session; return its row. Raises AssertionError where it did not come to its end."""
    kind, allocation = SESSIONS[number - 1]
    folder = stage.folder / f"session-{number}"
    events = folder / "events"
    events.mkdir(parents=True)
    settings = settings_of(allocation, events, stage.service_port)
    wrap = ["--route", "plugin", "--plugin", stage.plugin]
    bursts, cells = list[Row](), list[Row]()
    with (
        Attached(stage.cluster, folder / "state", OPTIONS) as daemon,
        Session(stage.cluster, folder / "session", kind, wrap, settings) as session,
    ):
        cells.append(_cell(session, 1))
        for burst in range(1, BURSTS + 1):
            _until_there(session)
            bursts.append(_burst(stage, session, f"{number}-{burst}", cells))
        drains = asked(daemon)
    with next(each for each in events.iterdir() if each.is_file()).open(encoding="utf-8") as lines:
        told = read(lines)
    shutil.rmtree(folder)
    return {
        "cells": cells,
        "bursts": bursts,
        "drains": len(drains),
        "failures": [*told.task_failures(), *told.executor_failures()][:5],
        "excluded": told.excluded,
        "removed": told.removed,
    }


def _cell(session: Session, cell: int) -> Row:
    began_s = time.monotonic()
    session.begin_cell(cell)
    return _result(session, cell, began_s)


def _result(session: Session, cell: int, began_s: float) -> Row:
    found = session.until_cell(cell)
    right = found == expected(session.kind, cell)
    row: Row = {"cell": cell, "right": right, "took_s": round(time.monotonic() - began_s, 1)}
    return row if right else {**row, "found": found[:200]}


def _until_there(session: Session) -> None:
    ends = time.monotonic() + PATIENCE_S
    while len(session.containers()) < EXECUTORS:
        assert time.monotonic() < ends, f"not all executors are there again: {session.said()[-500:]}"
        time.sleep(LOOK_S)
    time.sleep(IDLE_S)  # so long an executor has no task before it counts as idle


def _burst(stage: Stage, session: Session, name: str, cells: list[Row]) -> Row:
    watch, began_s, cell_began_s = Watch(), time.monotonic(), 0.0
    job = Job(stage.cluster, PRODUCTION, stage.folder, name)
    ends = time.monotonic() + PATIENCE_S
    while True:
        state, held, need = need_of(stage.cluster, job.name)
        at_s = time.monotonic() - began_s
        if not cell_began_s:
            watch.look(at_s, need, session.containers())
        if held == PRODUCTION.maps + 1 and not cell_began_s:
            cell_began_s = time.monotonic()
            session.begin_cell(len(cells) + 1)
        if state in FINAL:
            break
        assert time.monotonic() < ends, f"{job.name} does not end: {job.said()[-500:]}"
        time.sleep(LOOK_S)
    ended = job.wait()
    assert ended.state == "SUCCEEDED", f"{job.name} {ended.state}: {job.said()[-500:]}"
    assert cell_began_s, f"{job.name} never had its containers at once"
    cells.append(_result(session, len(cells) + 1, cell_began_s))
    cells.append(_cell(session, len(cells) + 1))
    return {"requests": watch.requests, "given_s": watch.given_s(), "production_s": ended.took_s}


class Idle(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    rows: list[Row] = []


class IdleClaim(msgspec.Struct, frozen=True):
    """A claim of the rule and what the rows say."""

    claim: str
    holds: bool
    found: dict[str, float]


def judged(rows: Sequence[Row]) -> list[IdleClaim]:
    """Judge the rows by the rule in this module's docstring."""
    played = [row for row in rows if "failed" not in row]
    is_whole = len(played) == len(rows) == len(SESSIONS)
    given_s = [each for row in played for burst in row["bursts"] for each in burst["given_s"]]
    in_time = sum(each is not None and each <= WITHIN_S for each in given_s)
    cells = [cell["right"] for row in played for cell in row["cells"]]
    failures = sum(len(row["failures"]) + row["excluded"] for row in played)
    return [
        IdleClaim(
            "given",
            is_whole and bool(given_s) and in_time >= GIVEN_RATIO * len(given_s),
            {"in_time": in_time, "wanted": len(given_s)},
        ),
        IdleClaim("cells", is_whole and all(cells), {"right": sum(cells), "cells": len(cells)}),
        IdleClaim("failures", is_whole and failures == 0, {"failures": failures}),
    ]


def play(stage: Stage, kept: Idle, file: Path, ends_s: float) -> None:
    """Play the sessions that were not played, while there is time to begin one."""
    played = {row["number"] for row in kept.rows}
    for number, (kind, allocation) in enumerate(SESSIONS, 1):
        if number in played:
            continue
        if time.monotonic() > ends_s:
            return
        plan = {"number": number, "kind": kind, "allocation": allocation}
        row = tried(plan, len(kept.sittings), partial(play_one, stage, number))
        kept.rows.append(row)
        keep(file, kept)
        bursts = [burst["given_s"] for burst in row.get("bursts", [])]
        click.echo(f"{number} {kind} {allocation}: {row.get('failed') or bursts}", err=True)


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no session after this many minutes.")
@click.option("--spark", default=SPARK["pyspark"], show_default=True, type=click.Choice(sorted(PY4J)))
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, spark: str, output: Path) -> None:
    """Play what is not played yet, then judge."""
    choose_spark(spark)
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    kept = gone_on(output, Idle(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))
    kept.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-idle-"))
    jar = plugin_in(folder)
    with shuffle_service(folder) as service_port, Cluster(CLUSTER) as cluster:
        prepare(cluster)
        play(Stage(cluster, folder, jar, service_port), kept, output, ends_s)
    shutil.rmtree(folder)
    print_json({"claims": judged(kept.rows)})


if __name__ == "__main__":
    command()
