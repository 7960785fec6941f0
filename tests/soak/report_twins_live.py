"""One side of ``report_twins`` on the live emulator: what production waited, and what the report says.

Law: what production waited is read from the ResourceManager (the pending containers of its queue, ten times a
second), the estimate from the daemon's journal. Modelled time is quicker, and so is the daemon
(:func:`tests.soak.virtual_live_sides.main`). The report's two spans of a Hadoop are shortened alike.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests.soak.rig import wait_until
from tests.soak.virtual_live_sides import Case, first_look_ms, program, read_records, told
from yarnctl.api.report_answers import WaitedLess
from yarnctl.daemon.view import natural_ends
from yarnctl.daemon.view.reporting import reported
from yarnctl.deciding.records import Record
from yarnctl.errors import Unreachable
from yarnctl.traces.job import Job

NODES, SLOTS = 10, 4
MIX = ("--eviction", "mix", "--may-lose", "50%")
LOOK_S = 0.1
PATIENCE_S = 600.0
DONE = ("FINISHED", "FAILED", "KILLED")


def played_live(
    jobs: Sequence[Job], speed: float, folder: Path, *, observe: bool
) -> tuple[float, WaitedLess]:
    """Return the container seconds that production waited, and the report's estimate, in modelled time."""
    case = Case("report", NODES, SLOTS, tuple(jobs))
    cluster = ("serve", "--nodes", str(NODES), "--slots", str(SLOTS), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(speed), "--work", str(folder / "work"))
    journal = folder / "state" / "journal.jsonl"
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        words = [each for each in told(case, url, folder / "state") if not (observe and each == "--enforce")]
        options = (str(speed), *words, *MIX)
        with program("tests.soak.virtual_live_sides", *options, log=folder / "yarnctl.log"):
            first_look_ms(journal)
            client = Client(url, "harness")
            with waited(client) as waited_s:
                rows = play(client, case.jobs, speed, wait=False)
                names = [each.application for each in rows if each.name.startswith("p")]
                wait_until(lambda: _are_done(client, names), "the end of production", PATIENCE_S, 1.0)
            records = read_records(journal)
    return sum(waited_s) * speed, estimated(records, speed)


def estimated(records: Sequence[Record], speed: float) -> WaitedLess:
    """Return the report's estimate from a daemon that was so much quicker, in modelled time."""
    with contextlib.ExitStack() as stack:
        for span in ("BETWEEN_MS", "HEARTBEATS_MS"):
            shortened_ms = getattr(natural_ends, span) / speed
            stack.enter_context(mock.patch.object(natural_ends, span, shortened_ms))
        found = reported(records, None).waited_less
    return WaitedLess(
        least_ms=round(found.least_ms * speed),
        estimate_ms=round(found.estimate_ms * speed),
        most_ms=round(found.most_ms * speed),
        estimated=found.estimated,
    )


def _are_done(client: Client, names: Sequence[str]) -> bool:
    return all(client.application(name)["state"] in DONE for name in names)


@contextlib.contextmanager
def waited(client: Client) -> Iterator[list[float]]:
    """Add up during the block what production's pending containers wait, in container seconds.

    Without an answer for long the sum is of what pended before and after: half of the time each.
    """
    sums, over = list[float](), threading.Event()

    def watch() -> None:
        looked_s, before = time.monotonic(), 0
        while not over.wait(LOOK_S):
            try:
                pending = _pending(client)
            except Unreachable:
                continue
            now_s = time.monotonic()
            sums.append((before + pending) / 2 * (now_s - looked_s))
            looked_s, before = now_s, pending

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield sums
    finally:
        over.set()
        watcher.join()


def _pending(client: Client) -> int:
    answer = client._json("/ws/v1/cluster/scheduler")
    queues = answer["scheduler"]["schedulerInfo"]["queues"]["queue"]
    return sum(int(each["pendingContainers"]) for each in queues if each["queueName"] == "production")
