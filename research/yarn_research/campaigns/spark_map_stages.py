"""Drain an executor in a running shuffle map stage, again and again, and count which maps run again.

``python -m yarn_research.campaigns.spark_map_stages --output spark-map-stages.json`` plays what is not played
yet. One drain is one row, with all its options. Each is written down as it ends, also one that failed.

Plan, before the first judged run: every combination of shuffle service (on, off), executors on a host (one,
two), route (signal, plugin) and allocation (static, dynamic), four times, in a drawn order. The first 60 are
played. If fewer than 20 maps ran again by then, more follow, up to 120.

Parameters are fixed on other rows: ``--trial`` draws drains with two executors on a host, to a file of their
own, and nothing is judged by it.

An application maps 30 partitions for 4 s each and groups them; nothing is cached. The drain is ordered when
half of the maps have begun. With two executors on a host the drained one has a neighbour there, else none.

Rule. *Charged* is the expected loss that the daemon charges, *bound* that of the same look, *lost* the maps
that ran again, times the median map. A *task* is the median map of all rows.

1. results: the application's result is that of this machine without Spark, in every row.
2. failures: tasks and executors that Spark counts as failed, and excluded hosts: none.
3. charge: .67 x lost - one task <= charged <= 1.5 x lost + one task, both as sums over all rows.
4. held: lost <= bound in at least 54 of 60 rows (90 %).
5. width: over the rows with an expectation, the median of bound / charged is at most 3.
6. maps: at least 20 maps ran again.

A row that failed counts against 1. A row whose stage ended before the container was gone counts like others.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

import click
import msgspec

from tests.hadoop.artifacts import SPARK, spark_home
from tests.hadoop.attached import prepare
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, SparkJob, Work, event_log_in, expected_digest, plugin_in
from yarn_research.campaigns.bench import tried
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, machine, now
from yarn_research.campaigns.spark_events import NO_FAILURES, Told, read
from yarn_research.campaigns.spark_soak_runs import now_ms, port_to, until_gone
from yarn_research.campaigns.spark_soak_set import Allocation
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort
from yarnctl.command_line import print_json
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Accepted, Drain, ObservationRequest, TaskView, Withheld
from yarnctl.deciding.reasons.eligibility import AnswerLate
from yarnctl.frameworks.spark.configuration import Route, places_in
from yarnctl.frameworks.spark.cost import CostTerms, ExecutorCost, costs
from yarnctl.frameworks.spark.driver import SparkDriver
from yarnctl.frameworks.spark.observing import executor_in, look_at
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent

KIND = "spark-map-stages"
LEAST, MOST, MAPS_AGAIN, HELD_RATIO, WIDTH_MAX = 60, 120, 20, 0.9, 3.0
MAPS, MAP_S, KEYS, KEY_S = 30, 4.0, 15, 0.1
BEGUN_RATIO = 0.5
FAILURES_MAX = 6
PATIENCE_S = 120.0
SHUFFLE_SERVICE = "org.apache.spark.deploy.ExternalShuffleService"

Row = dict[str, Any]


class Drained(NamedTuple):
    """One planned drain; ``neighbours``: executors on a host, one or two."""

    number: int
    service: bool
    neighbours: int
    route: Route
    allocation: Allocation

    @property
    def executors(self) -> int:
        """Five small ones fill the rest of three hosts; two large ones fill a host each."""
        return 5 if self.neighbours == 2 else 2

    @property
    def work(self) -> Work:
        """The application."""
        return Work("scan", MAPS if self.neighbours == 2 else MAPS // 2, KEYS, MAP_S, KEY_S, reduces=KEYS)


def planned(*, trial: bool = False) -> list[Drained]:
    """Return all drains in their order."""
    near = (2,) if trial else (1, 2)
    options = list(product((False, True), near, get_args(Route), get_args(Allocation)))
    draws, found = random.Random("trial" if trial else KIND), list[tuple[Any, ...]]()
    while len(found) < MOST:
        found += draws.sample(options, len(options))
    return [Drained(place + 1, *row) for place, row in enumerate(found[:MOST])]


def service_settings(port: int) -> list[str]:
    """Return the settings with which executors leave their shuffle blocks to a shuffle service."""
    return [
        "spark.shuffle.service.enabled=true",
        "spark.shuffle.service.name=mapreduce_shuffle",  # the node's own: it takes the executor's data
        f"spark.shuffle.service.port={port}",
    ]


def settings_of(drain: Drained, events: str, service_port: int) -> list[str]:
    """Return the settings of a drain's application."""
    found = event_log_in(events)
    if drain.neighbours == 1:
        found.append("spark.executor.memoryOverhead=1536m")  # with 512 MiB of heap a whole host
    if drain.service:
        found += service_settings(service_port)
    if drain.allocation == "dynamic":
        found += [
            "spark.dynamicAllocation.enabled=true",
            f"spark.dynamicAllocation.shuffleTracking.enabled={str(not drain.service).lower()}",
            "spark.dynamicAllocation.minExecutors=1",
            f"spark.dynamicAllocation.initialExecutors={drain.executors}",
            f"spark.dynamicAllocation.maxExecutors={drain.executors}",
        ]
    return found


@contextlib.contextmanager
def shuffle_service(folder: Path) -> Iterator[int]:
    """Run Spark's shuffle service for all hosts of the cluster; give its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    words = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    # Spark 3.5.9 rejects executors whose folders, the node managers', are not below its own.
    words += [f"-Dspark.local.dir={tempfile.gettempdir()}", "-Dspark.shuffle.service.enabled=true"]
    words.append("-Dspark.shuffle.service.db.enabled=false")
    words += [f"-Dspark.shuffle.service.port={port}", "-cp", f"{spark_home()}/jars/*", SHUFFLE_SERVICE]
    with (folder / "service.log").open("wb") as log:
        service = subprocess.Popen(
            words,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPARK_LOCAL_IP": "0.0.0.0"},
        )
    try:
        _until_open(port, service, folder / "service.log")
        yield port
    finally:
        service.terminate()
        service.wait(30)


def _until_open(port: int, service: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends and service.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(f"the shuffle service does not answer: {log.read_text(errors='replace')[-2000:]}")


class Stage(NamedTuple):
    """Where drains are played."""

    cluster: Cluster
    folder: Path
    plugin: str
    service_port: int


class Chosen(NamedTuple):
    """The executor that is drained, its prediction, and how many executors are on its host and in all."""

    view: TaskView
    executor: str
    cost: ExecutorCost
    near: int
    peers: int


def play_one(stage: Stage, drain: Drained) -> Row:
    """Play one drain; return its row. Raises AssertionError where it did not come to its end."""
    folder = stage.folder / f"drain-{drain.number:03d}"
    events = folder / "events"
    events.mkdir(parents=True)
    settings = settings_of(drain, str(events), stage.service_port)
    wrap = ["--plugin", stage.plugin] if drain.route == "plugin" else []
    job = SparkJob(
        stage.cluster,
        folder / "job",
        wrap=wrap,
        settings=settings,
        executors=drain.executors,
        work=drain.work,
    )
    with job:
        job.until_marked("map", int(drain.work.maps * BEGUN_RATIO))
        port = port_to(stage.cluster)
        chosen = until_chosen(stage, port, drain, job)
        began_ms = now_ms()
        mates = (chosen.view.attempt,)
        order = Drain("o-1", job.application, chosen.view.attempt, chosen.view.container, drain.number, mates)
        order_until_sent(port, order)
        gone_s = until_gone(stage.cluster, job, [chosen.view], began_ms)
        digest = job.until_over()
    with next(each for each in events.iterdir() if each.is_file()).open(encoding="utf-8") as lines:
        told = read(lines)
    row = {
        "executor": chosen.executor,
        "near": chosen.near,
        "peers": chosen.peers,
        "charged_ms": chosen.cost.lost_ms,
        "bound_ms": chosen.cost.bound_ms,
        "expected": [list(each) for each in chosen.cost.again],
        "room_in_s": chosen.cost.room_in_ms / 1000,
        "gone_s": gone_s.get(chosen.view.container),
        "identical": digest == expected_digest("scan", drain.work.maps, drain.work.keys),
        **counted(told),
        "maps_again_by_marks": job.counted().maps_twice,
    }
    shutil.rmtree(folder)
    return row


def order_until_sent(port: AttachedPort, drain: Drain) -> None:
    """Send an order; as the daemon does, again after the next look where the driver's answer was late."""
    ends = time.monotonic() + PATIENCE_S
    while (outcome := port.perform(drain)) == Withheld(AnswerLate()) and time.monotonic() < ends:
        port.observe_soon()
        port.observe(ObservationRequest(victims=(drain.application,)))
    assert outcome == Accepted(), outcome


def counted(told: Told) -> Row:
    """Return what an event log tells: maps beyond once, their lost work, and failures."""
    ended = [each for each in told.tasks if each.reason == "Success" and each.stage == 0]
    times = Counter(each.partition for each in ended)
    again = sum(times.values()) - len(times)
    task_ms = median([each.ended_ms - each.began_ms for each in ended]) if ended else 0.0
    return {
        "maps_again": again,
        "map_ms": task_ms,
        "lost_ms": again * task_ms,
        "failures": [*told.task_failures(), *told.executor_failures()][:5],
        "excluded": told.excluded,
        "odd_ends": sorted({each.reason for each in told.tasks} - set(NO_FAILURES)),
        "removed": told.removed,
    }


def until_chosen(stage: Stage, port: AttachedPort, drain: Drained, job: SparkJob) -> Chosen:
    """Wait until an executor with as many neighbours as planned has a prediction; draw one."""
    to = ClusterAddress(resource_managers=(stage.cluster.rm_url,), user="yarnctl")
    driver = SparkDriver(Transport(to.resource_managers, to.identity), job.application)
    held = Attachment()
    terms = CostTerms(
        held.spark_move_bytes_per_ms, held.spark_leave_ms, held.spark_return_ms, held.spark_order_ms
    )
    settings, version = driver.settings(), driver.version()
    assert not isinstance(settings, Absent), settings
    assert not isinstance(version, Absent), version
    port.observe(ObservationRequest())
    ends, seen = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < ends:
        port.observe_soon()
        views = port.observe(ObservationRequest(victims=(job.application,))).tasks.get(job.application, ())
        look = look_at(driver, {})
        if isinstance(look, Absent):
            seen = str(look)
            continue
        found = costs(look, terms, now_ms(), places=places_in(settings, drain.route, version))
        hosts = Counter(
            each.host.partition(":")[0] for each in look.executors if each.is_active and not each.is_driver
        )
        host_of = {each.executor: each.host.partition(":")[0] for each in look.executors}
        ready = [
            Chosen(view, name, found[name], hosts[host_of[name]] - 1, sum(hosts.values()) - 1)
            for view in views
            if view.checkpointable
            and (name := executor_in(job.application, view.attempt)) in found
            and found[name].room_in_ms >= 0
            and hosts[host_of[name]] == drain.neighbours
        ]
        seen = f"{len(views)} shown, {dict(hosts)}, {len(ready)} ready"
        if ready:
            return random.Random(f"{KIND}-{drain.number}").choice(ready)
    raise AssertionError(f"no executor can be drained: {seen}; {job.said()[-300:]}")


class MapStages(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    rows: list[Row] = []


def is_enough(rows: Sequence[Row]) -> bool:
    """Return whether the plan is played."""
    again = sum(row.get("maps_again", 0) for row in rows)
    return len(rows) >= MOST or (len(rows) >= LEAST and again >= MAPS_AGAIN)


class MapStageClaim(msgspec.Struct, frozen=True):
    """A claim of the rule and what the rows say."""

    claim: str
    holds: bool
    found: dict[str, float]


def judged(rows: Sequence[Row]) -> list[MapStageClaim]:
    """Judge the rows by the rule in this module's docstring."""
    played = [row for row in rows if "failed" not in row]
    task_ms = median([row["map_ms"] for row in played]) if played else 0.0
    lost_ms, charged_ms = (sum(row[name] for row in played) for name in ("lost_ms", "charged_ms"))
    low_ms, high_ms = 0.67 * lost_ms - task_ms, 1.5 * lost_ms + task_ms
    held = sum(row["lost_ms"] <= row["bound_ms"] for row in played)
    widths = [row["bound_ms"] / row["charged_ms"] for row in played if row["charged_ms"]]
    width = median(widths) if widths else math.inf
    failures = sum(len(row["failures"]) + row["excluded"] for row in played)
    again = sum(row["maps_again"] for row in played)
    right = sum(bool(row["identical"]) for row in played)
    sums = {"lost_s": lost_ms / 1000, "charged_s": charged_ms / 1000, "task_s": task_ms / 1000}
    return [
        MapStageClaim("results", bool(rows) and right == len(rows), {"right": right, "rows": len(rows)}),
        MapStageClaim("failures", failures == 0, {"failures": failures}),
        MapStageClaim("charge", low_ms <= charged_ms <= high_ms, sums),
        MapStageClaim("held", held >= HELD_RATIO * len(rows), {"held": held, "rows": len(rows)}),
        MapStageClaim("width", width <= WIDTH_MAX, {"median": width, "rows": len(widths)}),
        MapStageClaim("maps", again >= MAPS_AGAIN, {"maps_again": again}),
    ]


def play(stage: Stage, kept: MapStages, file: Path, drains: Sequence[Drained], ends_s: float) -> None:
    """Play the drains that were not played, while there is time to begin one."""
    played, failed = {row["number"] for row in kept.rows}, 0
    for drain in drains:
        if drain.number in played:
            continue
        if is_enough(kept.rows) or time.monotonic() > ends_s:
            return
        began_s = time.monotonic()
        row = tried(drain._asdict(), len(kept.sittings), partial(play_one, stage, drain))
        failed += "failed" in row
        kept.rows.append({**row, "took_s": round(time.monotonic() - began_s, 1)})
        keep(file, kept)
        told = {
            name: row[name] for name in ("charged_ms", "bound_ms", "maps_again", "identical") if name in row
        }
        click.echo(f"{drain}: {row.get('failed') or told}", err=True)
        if failed == FAILURES_MAX:
            raise SystemExit(f"{failed} drains failed: the campaign ends; {file} keeps what ran")


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no drain after this many minutes.")
@click.option("--trial", is_flag=True, help="Play drains to fix parameters by.")
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, trial: bool, output: Path) -> None:
    """Play what is not played yet, then judge."""
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    kind = f"{KIND}-trial" if trial else KIND
    kept = gone_on(output, MapStages(head(kind, hadoop=SHAPE.version, spark=SPARK["pyspark"])))
    kept.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-maps-"))
    jar = plugin_in(folder)
    with shuffle_service(folder) as service_port, Cluster(SHAPE) as cluster:
        prepare(cluster)
        play(Stage(cluster, folder, jar, service_port), kept, output, planned(trial=trial), ends_s)
    shutil.rmtree(folder)
    print_json({"enough": is_enough(kept.rows), "claims": judged(kept.rows)})


if __name__ == "__main__":
    command()
