"""Requests per second of ``yarnctl run --eviction mix`` while one job runs 500 maps and production keeps coming.

The live emulator with modelled tasks serves all addresses; a relay in this process counts what yarnctl sends
through it, by path without ids. Production submits a small job every few seconds, so that there is always
something to decide: an idle daemon sends far less.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import Case, program, read_records, told
from yarn_research.bench.row import Row
from yarnctl.deciding.model import Kill
from yarnctl.deciding.records import Requests

LIMIT_PER_S = 15.0
NODES, SLOTS, MAPS = 17, 30, 509
EVERY_S, LEAD_S = 8.0, 25.0
"""Production submits a job so often, and the first one when research has filled the cluster."""

LONG_S = 3_600.0
HEAD = re.compile(rb"(?:^|\n)(?:GET|PUT|POST|DELETE) (\S+) HTTP/1\.1\r\n")
IDS = re.compile(r"\d{2,}[\d_rm]*")


class Relay:
    """Passes connections on to ``url``; ``seen`` counts requests by method's path, ids left out."""

    def __init__(self, url: str) -> None:
        self._to = (urlsplit(url).hostname, urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.seen = Counter[str]()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                client, _ = self._listener.accept()
                server = socket.create_connection(self._to)
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()
                continue
            return

    def _pass(self, source: socket.socket, target: socket.socket, is_counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_counted:  # a request of this size comes in one piece
                    self.seen.update(_shown(path) for path in HEAD.findall(data))
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()


def _shown(path: bytes) -> str:
    plain, _, query = path.decode("ascii", "replace").partition("?")
    kind = next((word for word in query.split("&") if word.startswith(("type=", "op="))), "")
    return IDS.sub("*", plain) + (f"?{kind}" if kind else "")


@contextlib.contextmanager
def relayed(case: Case, folder: Path) -> Iterator[tuple[str, Relay, Path]]:
    """Run the cluster, and yarnctl with the mix behind a relay; yield the cluster's address."""
    cluster = ("serve", "--nodes", str(case.nodes), "--slots", str(case.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--work", str(folder / "work"))
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        relay = Relay(url)
        options = (*told(case, relay.url, folder / "state"), "--eviction", "mix", "--may-lose", "100%")
        with program("yarnctl.cli", "run", *options, log=folder / "yarnctl.log"):
            yield url, relay, folder / "state" / "journal.jsonl"
        relay.close()


def measure(maps: int, nodes: int, slots: int, seconds: float, lead_s: float) -> dict[str, Any]:
    """Return requests per second while ``maps`` maps run and production waits, and what they were."""
    count = int(seconds // EVERY_S) + 1
    jobs = (
        job("research", 0, [LONG_S] * maps, [5]),
        *(job(f"production{at}", lead_s + EVERY_S * at, [6, 6, 6], [3]) for at in range(count)),
    )
    case = Case("requests", nodes, slots, jobs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with relayed(case, folder) as (url, relay, journal):
            client = Client(url, "harness")
            player = threading.Thread(target=play, args=(client, jobs), kwargs={"wait": False}, daemon=True)
            player.start()
            time.sleep(lead_s + EVERY_S)
            rows = [row for row in client.applications() if row["state"] == "RUNNING"]
            running = max(row["runningContainers"] for row in rows) - 1
            before, began_s = Counter(relay.seen), time.monotonic()
            time.sleep(seconds)
            took_s, seen = time.monotonic() - began_s, relay.seen - before
            player.join(EVERY_S)
            records = read_records(journal)
        actions = [act for each in records if isinstance(each, Requests) for act in each.actions]
    return {
        "running_maps": running,
        "requests_per_s": round(sum(seen.values()) / took_s, 2),
        "kills": sum(isinstance(act, Kill) for act in actions),
        "by_path_per_s": {path: round(count / took_s, 2) for path, count in seen.most_common()},
    }


def requests_row(
    maps: int = MAPS, nodes: int = NODES, slots: int = SLOTS, seconds: float = 60.0, lead_s: float = LEAD_S
) -> Row:
    """Measure at one size; there is no rival, so the baseline is the limit."""
    details = measure(maps, nodes, slots, seconds, lead_s)
    rate = details["requests_per_s"]
    return Row(
        name="requests",
        what=f"requests of yarnctl under mix with {details['running_maps']} running maps, production waiting",
        ours=rate,
        baseline=LIMIT_PER_S,
        ratio=LIMIT_PER_S / rate,
        target=f"<= {LIMIT_PER_S:.0f} /s",
        holds=rate <= LIMIT_PER_S,
        unit="/s",
        details=details,
    )
