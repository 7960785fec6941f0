"""``yarnctl run`` attached to a real cluster: started, watched by its journal, killed, stopped.

Law: what it did is read from the journal, which is what a user has. A journal goes on over restarts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from yarnctl.deciding.model import Accepted, Suspend
from yarnctl.deciding.records import Performed, Record, Requests, Stance, Transition, decode

PATIENCE_S = 180.0
LOOK_S = 0.1
QUEUES = ("--preempting", "production", "--preemptable", "research", "--in-flight-least", "4")


def prepare(cluster: Cluster, superuser: str = "root") -> None:
    """Make yarnctl's folders in HDFS, as docs/attach.md tells an administrator to."""
    hdfs = Hdfs(cluster.hdfs_url, superuser)
    hdfs.make("/yarnctl", "755", "yarnctl")
    hdfs.make("/yarnctl/requests", "755", "yarnctl")
    hdfs.make("/yarnctl/checkpoints", "1777", group="yarnctl")
    for user in ("alice", "bob"):
        hdfs.make(f"/user/{user}", "755", user)


def suspended(records: Iterable[Record]) -> list[tuple[Performed, Suspend]]:
    """Return what came of each suspension that was asked for, with the request."""
    asked, found = dict[str, Suspend](), list[tuple[Performed, Suspend]]()
    for record in records:
        if isinstance(record, Requests):
            asked |= {each.order: each for each in record.actions if isinstance(each, Suspend)}
        elif isinstance(record, Performed) and record.action == "suspend":
            found.append((record, asked[record.order]))
    return found


class Attached:
    """One daemon; use it as a context. ``state_dir`` holds journal and log."""

    def __init__(
        self,
        cluster: Cluster,
        state_dir: Path,
        options: Sequence[str] = QUEUES,
        enforce: bool = True,
        rm_url: str = "",
    ) -> None:
        self.state_dir = state_dir
        self.log = state_dir / "daemon.log"
        self._words = [YARNCTL, "run", "--rm", rm_url or cluster.rm_url, "--name-node", cluster.hdfs_url]
        self._words += ["--listen", "off", "--state-dir", str(state_dir), *options]
        self._words += ["--enforce"] if enforce else []
        self._waits_for = "enforcing" if enforce else "observing"
        self.environment = {**os.environ, "HADOOP_CONF_DIR": ""}
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it may act (or observes); raises AssertionError with what it said."""
        self.state_dir.mkdir(parents=True, exist_ok=True)
        before = len(self.records())
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self._words,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.until(lambda: self._stands(before), f"{self._waits_for}")

    def _stands(self, since: int) -> bool:
        stances = [record for record in self.records()[since:] if isinstance(record, Stance)]
        return bool(stances) and stances[-1].stance == self._waits_for

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to leave, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def until(self, seen: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until something is seen; raises AssertionError when it left, or never came to it."""
        ends = time.monotonic() + patience_s
        while not seen():
            if self.process is not None and (status := self.process.poll()) is not None:
                raise AssertionError(f"yarnctl left with {status}: {self.said()}")
            if time.monotonic() > ends:
                raise AssertionError(f"never {what}: {self.said()}")
            time.sleep(LOOK_S)

    # -- what it did ----------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        found: list[Record] = []
        for path in sorted(self.state_dir.rglob("journal*.jsonl")):
            for line in path.read_bytes().splitlines():
                try:
                    found.append(decode(line))
                except msgspec.DecodeError:  # the line that closes a journal is no record
                    continue
        return found

    def asked(self) -> list[Suspend]:
        """Return every suspension that was really asked for."""
        return [action for done, action in suspended(self.records()) if isinstance(done.outcome, Accepted)]

    def reached(self, state: str) -> list[Transition]:
        """Return every order's move into a state (``checkpointed``, ``freed``, ``granted``, ...)."""
        moves = [record for record in self.records() if isinstance(record, Transition)]
        return [move for move in moves if move.target == state and move.source != state]
