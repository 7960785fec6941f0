"""Request to manifest: how long a suspension of a working reduce takes, leg by leg, on a live emulated cluster;
and ten suspensions of one decision.

The programs are those of a user: ``yarn-emulator serve`` with Hadoop's heartbeats, a streaming job whose
reducer takes ``PAUSE_S`` for a key, the shipped task runner, and yarnctl's port over HTTP. A round sends a
Suspend, polls until the manifest is seen, and withdraws the order, so that the reduce continues in place.
The naive side lets YARN's signal alone wake the task runner, and polls at the loop's ticks alone. Rounds of
both sides alternate and begin at random instants within a heartbeat.

Legs, in ms: ``request`` (HDFS holds the request, and it was signalled), ``wake`` (until the task runner
serves it), ``drain`` (the key is finished, the reducer has ended), ``save`` (until the manifest has its name),
``seen`` (until the port reports it).
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from emulator.demo.live_act import SCRIPTS, write_documents
from emulator.demo.programs import Programs
from emulator.live.jobs.submission_client import CHECKPOINTS, Client
from emulator.live.programs.manager_program import SUPERUSER
from yarn_research.bench.row import Row, spread
from yarnctl.attach.connection.connection import Attachment, CheckpointStore
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.config import ClusterAddress
from yarnctl.daemon.at_once import AT_ONCE, OrdersAtOnce
from yarnctl.daemon.loop import NEWS_MS
from yarnctl.daemon.running import clock_ms
from yarnctl.deciding.model import (
    Accepted,
    ManifestSeen,
    ObservationRequest,
    Suspend,
    TaskView,
    Withdraw,
)
from yarnctl.deciding.settings import DEFAULT
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.hadoop.http.transport import Transport
from yarnctl.task_runner.runner.protocol.manifests import TaskId, read_manifest

PAUSE_S = 0.08
T = TypeVar("T")
ROUNDS = 12
TARGET_MS = 400.0
PATIENCE_S = 150.0
ORDERS, HDFS_MS, ORDERS_TARGET_MS = 10, 20, 300.0
LEGS = ("request", "wake", "drain", "save", "seen")


class Round(NamedTuple):
    """One suspension: its legs, and the whole from before the order to the fact, in ms."""

    legs: tuple[float, ...]
    whole_ms: float


class Stage:
    """A cluster with one working job, and yarnctl's port onto it."""

    def __init__(self, port: AttachedPort, application: str, config: ClusterAddress) -> None:
        self.port, self.application = port, application
        self.store = CheckpointStore(config.store(), CHECKPOINTS)
        self.bells = port._connected[KIND].orders._bells  # type: ignore[attr-defined]
        self.orders = 0
        self._chance = random.Random(44)

    def tasks(self) -> list[TaskView]:
        """Return the reduces that can be suspended now."""
        seen = self.port.observe(ObservationRequest(victims=(self.application,)))
        return [task for task in seen.tasks.get(self.application, ()) if task.checkpointable]

    def round(self, quick: bool) -> Round:
        """Suspend the next reduce, wait for its manifest, and let it go on; ``quick``: as the daemon does."""
        task = _until(lambda: self.tasks()[self.orders % 2 :], "a reduce at work")[0]
        self.orders += 1
        order = f"o-{self.orders}"
        self.bells.address_of = _here if quick else _nowhere
        time.sleep(self._chance.uniform(0.3, 1.3))
        names = (order, self.application, task.attempt, task.container)
        began_ms = _now_ms()
        outcome = self.port.perform(Suspend(*names, task.generation + 1, clock_ms() + 60_000))
        assert isinstance(outcome, Accepted), outcome
        asked_ms = _now_ms()
        fact = self._seen(order, quick)
        seen_ms = _now_ms()
        legs = self._legs(task, fact.order)
        serve_ms, saving_ms, named_ms = legs
        self.port.perform(Withdraw(*names))
        self.port.observe(ObservationRequest(cluster=False))
        marks = (began_ms, asked_ms, serve_ms, saving_ms, named_ms, seen_ms)
        return Round(tuple(b - a for a, b in itertools.pairwise(marks)), seen_ms - began_ms)

    def many(self, at_once: int) -> float:
        """Suspend all reduces, withdraw that, and return how many ms the orders took to go out."""
        tasks = _until(lambda: found if len(found := self.tasks()) == ORDERS else (), "all reduces at work")
        performing = OrdersAtOnce(self.port.perform, self.port.announce, at_once)
        orders: list[Suspend] = []
        for task in tasks:
            self.orders += 1
            names = (f"o-{self.orders}", self.application, task.attempt, task.container)
            orders.append(Suspend(*names, task.generation + 1, clock_ms() + 60_000))
        began_ms = _now_ms()
        outcomes = list(performing.each(orders))
        took_ms = _now_ms() - began_ms
        assert outcomes == [Accepted()] * ORDERS, outcomes
        for each in orders:
            self.port.perform(Withdraw(each.order, each.application, each.attempt, each.container))
        self.port.observe(ObservationRequest(cluster=False))
        performing.close()
        return took_ms

    def _seen(self, order: str, quick: bool) -> ManifestSeen:
        deadline_s = time.monotonic() + PATIENCE_S
        tick_s = DEFAULT.open_tick_ms / 1000
        while time.monotonic() < deadline_s:
            next_s = time.monotonic() + tick_s
            while (left_s := next_s - time.monotonic()) > 0:
                time.sleep(min(left_s, NEWS_MS / 1000) if quick else left_s)
                if quick and self.port.has_news():
                    break
            seen = self.port.observe(ObservationRequest(cluster=False, orders=(order,)))
            for fact in seen.facts:
                if isinstance(fact, ManifestSeen):
                    return fact
        raise TimeoutError(f"no manifest within {PATIENCE_S:g} s: {self.port.notes.get(order)}")

    def _legs(self, task: TaskView, order: str) -> tuple[float, float, float]:
        """Return when the runner served the order, began to save, and named the manifest."""
        job = self.application.replace("application_", "job_", 1)
        folder = TaskId(job, task.attempt.rpartition("_")[0].replace("attempt_", "task_", 1), task.attempt)
        for entry in reversed(self.store.list(folder.folder)):
            if entry.name.endswith(".manifest.json") and not entry.name.startswith("."):
                manifest = read_manifest(self.store, folder, entry.name)
                if manifest.order == order:
                    created_ms = float(str(manifest.raw["created_at_ms"]))
                    named_ms = self.store.written_at_ms(f"{folder.folder}/{entry.name}")
                    drain_ms = float(manifest.raw["took_ms"]["drain"])
                    return created_ms - drain_ms, created_ms, named_ms
        raise LookupError(order)


def _late_hdfs(url: str, delay_ms: int) -> None:
    """Have the emulated HDFS answer later: on a real one a change waits for the edit log and a DataNode."""
    body = msgspec.json.encode({"delay_ms": delay_ms})
    Transport([url]).change("PUT", "/emulator/v1/faults", body)


def _here(_: str) -> str:
    """Return where the emulated nodes are: their names do not resolve."""
    return "127.0.0.1"


def _nowhere(host: str) -> str:
    raise OSError(f"{host} is not asked for")


def _now_ms() -> float:
    return time.time() * 1000


def _until(look: Callable[[], T], what: str) -> T:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        found = look()
        if found:
            return found
        time.sleep(0.2)
    raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}")


@contextlib.contextmanager
def stage(words: int = 2000, reduces: int = 2, delay_ms: int = 0) -> Iterator[Stage]:
    """Start a cluster and a job whose reduces work for some minutes; end all of it.

    ``delay_ms``: HDFS answers so much later, from when the reduces work.
    """
    with tempfile.TemporaryDirectory(prefix="yarnctl-bench-") as name, Programs(Path(name)) as programs:
        folder = Path(name)
        write_documents(folder / "in", words)
        serve = programs.start(
            "yarn-emulator", "serve", "--nodes", "2", "--slots", str(reduces // 2 + 2), "--port", "0",
            "--faults", "--work", str(folder / "work"), "--json",
        )  # fmt: skip
        url = str(msgspec.json.decode(serve.first_line())["url"])
        submit = programs.start(
            "yarn-emulator", "submit", "--rm", url, "--name", "research", "--queue", "research",
            "--input", str(folder / "in"), "--output", str(folder / "out"), "--reduces", str(reduces),
            "--mapper", f"{sys.executable} -S {SCRIPTS / 'words_of.py'}",
            "--reducer", f"{sys.executable} -S {SCRIPTS / 'count_words.py'}",
            "--restartable", "--cmdenv", f"PAUSE_S={PAUSE_S}", "--json",
        )  # fmt: skip
        client = Client(url, SUPERUSER)
        config = ClusterAddress(
            resource_managers=(url,), name_nodes=(f"http://{client.webhdfs()}",), user=SUPERUSER
        )
        port = attach(config, Attachment(enforce=True), clock_ms)
        try:

            def is_permitted() -> bool:
                port.observe(ObservationRequest())
                return not port.permission.why_nothing()

            _until(is_permitted, "leave")
            rows = _until(
                lambda: [] if submit.over() else client.rows("/ws/v1/cluster/apps", "apps", "app"), "the job"
            )
            found = Stage(port, str(rows[0]["id"]), config)
            _until(lambda: len(found.tasks()) == reduces, "all reduces at work")
            if delay_ms:
                _late_hdfs(url, delay_ms)
            yield found
        finally:
            port.close()


def manifest_row(rounds: int = ROUNDS) -> Row:
    """Request to manifest: both sides, one round of each in turn."""
    sides: dict[str, list[Round]] = {"ours": [], "naive": []}
    with stage() as found:
        for _ in range(rounds):
            for side, taken in sides.items():
                taken.append(found.round(quick=side == "ours"))
    wholes = {side: spread([each.whole_ms for each in taken]) for side, taken in sides.items()}
    ours, baseline = wholes["ours"]["median"], wholes["naive"]["median"]
    return Row(
        name="manifest",
        what=f"request to manifest of a reduce with {PAUSE_S * 1000:.0f} ms a key, beside YARN's signal and ticks"
        " alone",
        ours=ours,
        baseline=baseline,
        ratio=baseline / ours,
        target=f"<= {TARGET_MS:.0f} ms",
        holds=ours <= TARGET_MS,
        unit="ms",
        details=wholes
        | {
            f"{side}_{leg}": spread([each.legs[place] for each in taken])
            for side, taken in sides.items()
            for place, leg in enumerate(LEGS)
        },
    )


def ten_orders_row(rounds: int = ROUNDS) -> Row:
    """Ten suspensions of one decision, together and one after the other; HDFS answers after some ms."""
    times: dict[str, list[float]] = {"ours": [], "naive": []}
    # A word takes a reduce PAUSE_S: each has 160 s of work, more than all rounds take.
    with stage(words=2000 * ORDERS, reduces=ORDERS, delay_ms=HDFS_MS) as found:
        for _ in range(rounds):
            for side, taken in times.items():
                taken.append(found.many(AT_ONCE if side == "ours" else 1))
    ours, baseline = (spread(times[side])["median"] for side in times)
    return Row(
        name="ten-orders",
        what=f"{ORDERS} suspensions of one decision, HDFS answers after {HDFS_MS} ms, beside one after the other",
        ours=ours,
        baseline=baseline,
        ratio=baseline / ours,
        target=f"<= {ORDERS_TARGET_MS:.0f} ms",
        holds=ours <= ORDERS_TARGET_MS,
        unit="ms",
        details={side: spread(taken) for side, taken in times.items()},
    )
