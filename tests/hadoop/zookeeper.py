"""A real ZooKeeper on loopback, from the jars of a version of Hadoop, which has it.

Law: it has ZooKeeper's own ``tickTime`` unless a test says otherwise, and is ready when ``srvr`` names its
version: ``ruok`` and the open port say nothing (a server without snappy answers them and serves no session).
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from tests.hadoop.artifacts import jars

TICK_MS = 2_000
READY_S = 120.0
NAMES = ("zookeeper", "snappy-java", "metrics-core", "netty", "commons-io", "slf4j", "reload4j")


class ZooKeeper:
    """One server with its data in ``folder``; ``address`` is HOST:PORT. A context manager.

    ``more``: lines of its settings.
    """

    def __init__(self, folder: Path, version: str = "3.4.2", tick_ms: int = TICK_MS, more: str = "") -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._folder, self._version, self._tick_ms, self._more = folder, version, tick_ms, more
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server, and wait until it serves sessions."""
        self._folder.mkdir(parents=True, exist_ok=True)
        options = self._folder / "zoo.cfg"
        options.write_text(
            f"tickTime={self._tick_ms}\ndataDir={self._folder / 'data'}\nclientPortAddress=127.0.0.1\n"
            f"clientPort={self.port}\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n{self._more}"
        )
        found = [one for one in jars(self._version).glob("*.jar") if one.name.startswith(NAMES)]
        words = ["java", "-Xmx128m", "-cp", ":".join(map(str, found))]
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*words, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(options)],
                stdout=log,
                stderr=log,
            )
        ends_s = time.monotonic() + READY_S
        while "Zookeeper version" not in self.said():
            assert self.process.poll() is None, (self._folder / "log").read_text()[-2000:]
            assert time.monotonic() < ends_s, (self._folder / "log").read_text()[-2000:]
            time.sleep(0.1)  # how exactly its start is seen

    def said(self) -> str:
        """Return what ``srvr`` answers, "" if nothing does."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as to:
            to.sendall(b"srvr")
            to.settimeout(5)
            return b"".join(iter(lambda: to.recv(4096), b"")).decode()
        return ""

    def stop(self) -> None:
        """Kill the server; its data stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
