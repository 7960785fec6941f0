"""Where the set of jobs with deadlines runs: the live emulator, or a real Hadoop; and the gate beside it.

Law: jobs go in as a user's do, by a command line, and through the gate by ``yarnctl admit`` in front of the
same command line. Nothing else differs between the runs.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.timing import Timing
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import ClusterPlan as Nodes
from emulator.live.programs.all_in_one import build
from emulator.live.programs.manager_program import Options
from tests import http_client
from tests.hadoop.background import Background
from yarn_research.campaigns.admission_set import Kind, Mix

BIN = Path(sys.executable).parent
PATIENCE_S = 120.0
LOOK_S = 0.1
QUICK = Timing(
    nm_heartbeat_ms=100, am_heartbeat_ms=100, am_start_ms=300, launch_ms=200, task_commit_ms=50, exit_ms=50
)


BY_DEADLINE = QueueConfig(name="production", capacity_ratio=1.0, am_ratio=0.8, preempting=True)


class GatedHost(Protocol):
    """A cluster beside which a gate can be kept."""

    rm: str
    history: str
    container_mib: int

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment of a client."""
        ...


class Host(GatedHost, Protocol):
    """A cluster that takes jobs, and of what its set of jobs is made."""

    name: str
    queue: str
    mix: Mix

    def words(self, kind: Kind, name: str, settings: Mapping[str, str]) -> list[str]:
        """Return the command line that submits a job and waits for its end."""
        ...


class Live:
    """The emulator at ``rm``: tasks are timetables, time is real."""

    name = "live emulator"
    queue = "production"
    container_mib = 1024
    mix = Mix(
        big=Kind("big", 22, 2.4, 4, 1.6),
        small=Kind("small", 4, 1.2, 2, 0.6),
        unit_s=8.0,
        loose_s=110.0,
        tight_s=25.0,
        hopeless=4,
    )

    def __init__(self, rm: str) -> None:
        self.rm = self.history = rm
        kept = {name: value for name, value in os.environ.items() if not name.startswith("YARNCTL_")}
        self.environment = {**kept, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}

    def words(self, kind: Kind, name: str, settings: Mapping[str, str]) -> list[str]:
        """Return the command line of ``yarn-emulator submit``."""
        tasks = f"{kind.maps}x{kind.map_s}" + (f",{kind.reduces}x{kind.reduce_s}" if kind.reduces else "")
        given = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        words = ["yarn-emulator", "submit", "--rm", self.rm, "--queue", "production", "--user", "ann"]
        return [*words, "--name", name, "--modelled", tasks, *given]


@contextmanager
def live(folder: Path, max_priority: int = 0, *, one_queue: bool = False) -> Iterator[Live]:
    """Serve three nodes of four containers, heartbeats ten times as often as usual.

    ``one_queue``: that of hadoop-conf/deadline, under the name ``production``.
    """
    settings = ManagerSettings(timing=QUICK, max_priority=max_priority)
    if one_queue:
        settings = msgspec.structs.replace(settings, queues=(BY_DEADLINE,))
    nodes = Nodes(nodes=3, memory_mib=4096, vcores=4, processes=False)
    with Background(lambda url: build(Options(work=folder / "work"), nodes, url, settings).web) as server:
        yield Live(server.url)


class Gate(NamedTuple):
    """A daemon with a gate. ``environment`` is what ``yarnctl admit`` needs of it."""

    url: str
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    log: Path

    def asked(self, path: str = "") -> Any:
        """Return what its API says of admissions."""
        status = self.process.poll()
        assert status is None, f"the daemon ended with {status}: {self.log.read_text()[-3000:]}"
        answer = http_client.get(f"{self.url}/v1/admissions{path}", timeout=30)
        answer.raise_for_status()
        return answer.json()


@contextmanager
def gate(
    host: GatedHost,
    folder: Path,
    allocator: str = "oracle",
    more: Sequence[str] = (),
    url: str = "",
    *,
    pooled: bool = False,
) -> Iterator[Gate]:
    """Run ``yarnctl run --admission`` beside a cluster until it has seen how large that is.

    ``url``: where it is to answer, if it was there before and goes on. ``pooled``: pools say their sizes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    token, log = folder / "token", folder / "daemon.log"
    if not url:
        token.write_text(secrets.token_hex(16))
        token.chmod(0o600)
    port = int(url.rpartition(":")[2]) if url else free_port()
    words = ["yarnctl", "run", "--rm", host.rm, "--listen", f"127.0.0.1:{port}", "--token-file", str(token)]
    words += ["--state-dir", str(folder / "state"), "--history", host.history, "--admission", allocator]
    words += [] if pooled else ["--admission-container-mib", str(host.container_mib)]
    words += more
    with log.open("ab") as said:
        env = {**host.environment, "HADOOP_CONF_DIR": ""}
        process = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]], env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    url = f"http://127.0.0.1:{port}"
    told = {"YARNCTL_URL": url, "YARNCTL_TOKEN_FILE": str(token)}
    found = Gate(url, told, process, log)
    try:
        _wait_for(found)
        yield found
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(found: Gate) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        if found.process.poll() is not None or time.monotonic() > ends_s:
            raise AssertionError(f"the gate does not answer: {found.log.read_text()[-3000:]}")
        try:
            told = found.asked()["gate"]
        except http_client.RequestException:
            told = None
        if told is not None and told["capacity"]:
            return
        time.sleep(LOOK_S)


def free_port() -> int:
    """Return a port that nobody has just now."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
