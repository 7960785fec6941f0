"""Drain executors of a streaming query, again and again: what it wrote, and how far it fell behind.

``python -m yarn_research.campaigns.spark_streaming --output spark-streaming.json`` plays the queries that were
not played. One query is one row. Each is written down as it ends, also one that failed.

Plan, before the first judged query: four queries from the rate source (50 rows a second, a batch each 4 s) to a
sink of files, with five executors, five orders each: three by the plugin, one by the signal. An order drains
one or two executors, at a drawn moment within a trigger's time. When they are gone, the application gets as
many back. When those work, and four more batches are written, the next order follows.

A batch *covers* the seconds of the source that its rows are, in parts of the trigger's time. It is *behind* if it
covers more than 1.5. *Lag after return*: of the batches that began after all executors were back, those up to
the last one behind.

Rule.

1. rows: of the values 0 to the largest none is missing and none is there twice, by the sink's own log.
2. lag: at most two batches after each return.
3. orders: 20 were obeyed and returned from; Spark counts no failed task or executor and excludes no host.

A query that failed counts against all three.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tests import http_client
from tests.hadoop.artifacts import PY4J, SPARK, choose_spark
from tests.hadoop.attached import prepare
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, environment_of, event_log_in, plugin_in, submit_words
from yarn_research.campaigns.bench import tried
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head, machine, now
from yarn_research.campaigns.spark_events import read
from yarn_research.campaigns.spark_soak_runs import now_ms, port_to
from yarnctl.attach.port import AttachedPort
from yarnctl.command_line import print_json
from yarnctl.deciding.model import Accepted, Drain, Grow, ObservationRequest, TaskView, Withheld
from yarnctl.deciding.reasons.eligibility import AnswerLate
from yarnctl.frameworks.spark.configuration import Route

KIND = "spark-streaming"
QUERIES: tuple[Route, ...] = ("plugin", "signal", "plugin", "plugin")
ORDERS, EXECUTORS, ROWS_PER_S, TRIGGER_S, BATCHES_AFTER = 5, 5, 50, 4, 4
BEHIND, LAG_MAX = 1.5, 2
PATIENCE_S, LOOK_S = 180.0, 0.2
PROGRAM = Path(__file__).parent / "programs" / "spark_rate.py"

Row = dict[str, Any]


class Stage(NamedTuple):
    """Where queries are played."""

    cluster: Cluster
    folder: Path
    plugin: str


class Query:
    """One streaming application; use it as a context."""

    def __init__(self, stage: Stage, folder: Path, route: Route) -> None:
        self.cluster, self.folder = stage.cluster, folder
        wrap = ["--route", "plugin", "--plugin", stage.plugin] if route == "plugin" else []
        settings = [*event_log_in(str(folder / "events")), f"spark.sql.shuffle.partitions={EXECUTORS}"]
        self._words = [YARNCTL, "wrap", "--spark", *wrap, "--exec", "--"]
        self._words += [*submit_words("client", EXECUTORS, settings), str(PROGRAM), str(folder)]
        self._words += [str(ROWS_PER_S), str(TRIGGER_S), str(EXECUTORS)]
        self._log = folder / "log"
        self.application = ""

    def __enter__(self) -> Query:
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                self._words, env=environment_of(self.cluster), stdout=out, stderr=subprocess.STDOUT
            )
        return self

    def __exit__(self, *_: object) -> None:
        (self.folder / "end").touch()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def until(self, seen: Callable[[], object], what: str) -> None:
        """Wait until something is seen; raises AssertionError with the end of its log."""
        ends = time.monotonic() + PATIENCE_S
        while not seen():
            if self._process.poll() is not None or time.monotonic() > ends:
                raise AssertionError(f"never {what}: {self._log.read_text(errors='replace')[-1500:]}")
            time.sleep(LOOK_S)

    def batches(self) -> list[Row]:
        """Return the progress of the batches that are written."""
        file = self.folder / "progress"
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def find(self) -> bool:
        """Look up its id among the applications that run."""
        url = f"{self.cluster.rm_url}/ws/v1/cluster/apps?applicationTypes=SPARK&states=RUNNING"
        rows = (http_client.get(url, timeout=10).json().get("apps") or {}).get("app", [])
        self.application = max((str(row["id"]) for row in rows), default="")
        return bool(self.application)

    def working(self) -> set[str]:
        """Return its active executors, by the driver."""
        url = f"{self.cluster.rm_url}/proxy/{self.application}/api/v1/applications/{self.application}"
        try:
            rows = http_client.get(f"{url}/executors", timeout=20).json()
        except (http_client.RequestException, ValueError):
            return set()
        return {row["id"] for row in rows if row["isActive"] and row["id"] != "driver"}


def play_one(stage: Stage, number: int) -> Row:
    """Play one query; return its row. Raises AssertionError where it did not come to its end."""
    folder, draws = stage.folder / f"query-{number}", random.Random(f"{KIND}-{number}")
    (folder / "events").mkdir(parents=True)
    orders = list[Row]()
    with Query(stage, folder, QUERIES[number - 1]) as query:
        query.until(query.find, "running")
        port = port_to(stage.cluster)
        port.observe(ObservationRequest())
        query.until(lambda: len(query.batches()) >= BATCHES_AFTER, "written")
        for order in range(1, ORDERS + 1):
            time.sleep(draws.uniform(0, TRIGGER_S))  # the moment of the order within a batch is drawn
            orders.append(_order(query, port, order, draws.randint(1, 2), QUERIES[number - 1]))
        batches = query.batches()
    with next(each for each in (folder / "events").iterdir() if each.is_file()).open(
        encoding="utf-8"
    ) as lines:
        told = read(lines)
    values = Counter(written(folder / "out"))
    row = {
        "orders": [{**each, "lag": lag(batches, each["back_ms"])} for each in orders],
        "batches": len(batches),
        "covers": [covered(each) for each in batches],
        "took_ms": [each["took_ms"] for each in batches],
        "values": values.total(),
        "missing": max(values, default=0) + 1 - len(values),
        "twice": values.total() - len(values),
        "failures": [*told.task_failures(), *told.executor_failures()][:5],
        "excluded": told.excluded,
        "stage_attempts": told.stage_attempts,
        "fetch_failed": sum(each.reason == "FetchFailed" for each in told.tasks),
    }
    shutil.rmtree(folder)
    return row


def _order(query: Query, port: AttachedPort, number: int, count: int, route: Route) -> Row:
    found = list[TaskView]()

    def have_room() -> bool:
        port.observe_soon()
        views = port.observe(ObservationRequest(victims=(query.application,))).tasks.get(
            query.application, ()
        )
        found[:] = [each for each in views if each.checkpointable and each.remaining_ms >= 0]
        return len(found) >= count

    query.until(have_room, f"{count} candidates")
    before = query.working()
    leaving = sorted(found)[:count]
    mates = tuple(each.attempt for each in leaving)
    ordered_ms = now_ms()
    for place, each in enumerate(leaving):
        drain = Drain(f"o-{number}-{place}", query.application, each.attempt, each.container, number, mates)
        query.until(partial(_is_accepted, port, drain), "accepted")
    query.until(lambda: len(before - query.working()) >= count, "left")
    gone_ms = now_ms()
    if route == "plugin":
        query.until(partial(_is_accepted, port, Grow(query.application, (number,))), "grown again")
    query.until(lambda: len(query.working()) >= EXECUTORS, "back")
    back_ms = now_ms()
    batches = len(query.batches())
    query.until(lambda: len(query.batches()) >= batches + BATCHES_AFTER, "written again")
    return {
        "executors": count,
        "charged_ms": [ordered_ms - each.since_ms for each in leaving],
        "gone_s": (gone_ms - ordered_ms) / 1000,
        "back_s": (back_ms - gone_ms) / 1000,
        "back_ms": back_ms,
    }


def _is_accepted(port: AttachedPort, action: Drain | Grow) -> bool:
    """Send an action; as the daemon does, again after the next look where the driver's answer was late."""
    outcome = port.perform(action)
    if not isinstance(outcome, Accepted):
        assert isinstance(action, Grow) or outcome == Withheld(AnswerLate()), outcome
        port.observe_soon()
        port.observe(ObservationRequest(victims=(action.application,)))
    return isinstance(outcome, Accepted)


def covered(batch: Row) -> float:
    """Return how many trigger times of the source a batch covers."""
    return round(float(batch["rows"]) / (ROWS_PER_S * TRIGGER_S), 2)


def lag(batches: Sequence[Row], back_ms: int) -> int:
    """Return how many batches that began after an instant passed up to the last one that was behind."""
    after = [each for each in batches if datetime.fromisoformat(each["at"]).timestamp() * 1000 >= back_ms]
    behind = [place for place, each in enumerate(after[:BATCHES_AFTER], 1) if covered(each) > BEHIND]
    return max(behind, default=0)


def written(out: Path) -> list[int]:
    """Return the values in a sink's files, by its own log (``FileStreamSinkLog``)."""
    logs = {file.stem if file.suffix == ".compact" else file.name: file for file in (out / "_spark_metadata").iterdir()
            if file.name[0] != "."}  # fmt: skip
    compact = [int(name) for name, file in logs.items() if file.suffix == ".compact"]
    begin, found = max(compact, default=0), list[int]()
    for number in sorted(int(name) for name in logs if int(name) >= begin):
        for line in logs[str(number)].read_text(encoding="utf-8").splitlines()[1:]:
            text = Path(json.loads(line)["path"].removeprefix("file://")).read_text(encoding="utf-8")
            found += [json.loads(each)["value"] for each in text.splitlines()]
    return found


class Streaming(msgspec.Struct):
    """The whole file: ``head`` is of its first sitting."""

    head: dict[str, Any]
    sittings: list[dict[str, Any]] = []
    rows: list[Row] = []


class StreamingClaim(msgspec.Struct, frozen=True):
    """A claim of the rule and what the rows say."""

    claim: str
    holds: bool
    found: dict[str, float]


def judged(rows: Sequence[Row]) -> list[StreamingClaim]:
    """Judge the rows by the rule in this module's docstring."""
    played = [row for row in rows if "failed" not in row]
    is_whole = len(played) == len(rows) == len(QUERIES)
    missing, twice, values = (sum(row[name] for row in played) for name in ("missing", "twice", "values"))
    orders = [order for row in played for order in row["orders"]]
    most = max((order["lag"] for order in orders), default=0)
    failures = sum(len(row["failures"]) + row["excluded"] for row in played)
    return [
        StreamingClaim(
            "rows",
            is_whole and missing == twice == 0 < values,
            {"values": values, "missing": missing, "twice": twice},
        ),
        StreamingClaim("lag", is_whole and most <= LAG_MAX, {"most": most}),
        StreamingClaim(
            "orders",
            is_whole and len(orders) == ORDERS * len(QUERIES) and failures == 0,
            {"orders": len(orders), "failures": failures},
        ),
    ]


def play(stage: Stage, kept: Streaming, file: Path, ends_s: float) -> None:
    """Play the queries that were not played, while there is time to begin one."""
    played = {row["number"] for row in kept.rows}
    for number, route in enumerate(QUERIES, 1):
        if number in played:
            continue
        if time.monotonic() > ends_s:
            return
        row = tried({"number": number, "route": route}, len(kept.sittings), partial(play_one, stage, number))
        kept.rows.append(row)
        keep(file, kept)
        told = {name: row[name] for name in ("values", "missing", "twice", "stage_attempts") if name in row}
        lags = [order["lag"] for order in row.get("orders", [])]
        click.echo(f"{number} {route}: {row.get('failed') or (told, lags)}", err=True)


@click.command(help=__doc__)
@click.option("--minutes", type=float, help="Start no query after this many minutes.")
@click.option("--spark", default=SPARK["pyspark"], show_default=True, type=click.Choice(sorted(PY4J)))
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
def command(minutes: float | None, spark: str, output: Path) -> None:
    """Play what is not played yet, then judge."""
    choose_spark(spark)
    ends_s = time.monotonic() + 60 * minutes if minutes else math.inf
    kept = gone_on(output, Streaming(head(KIND, hadoop=SHAPE.version, spark=SPARK["pyspark"])))
    kept.sittings.append({"began": now(), "machine": machine()})
    folder = Path(tempfile.mkdtemp(prefix="spark-streaming-"))
    jar = plugin_in(folder)
    with Cluster(SHAPE) as cluster:
        prepare(cluster)
        play(Stage(cluster, folder, jar), kept, output, ends_s)
    shutil.rmtree(folder)
    print_json({"claims": judged(kept.rows)})


if __name__ == "__main__":
    command()
