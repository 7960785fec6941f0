"""The commands that ``yarn-emulator serve`` prints: they run as they are, and preempt research."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from emulator.live.jobs.example_jobs import next_commands, write_example
from emulator.live.jobs.submission_client import Client
from yarnctl.deciding.records import Transition, decode
from yarnctl.errors import YarnctlError
from yarnctl.journal.chain import body_of

PATIENCE_S = 120.0
NODES, SLOTS = 1, 4


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll until a condition is met; files and REST have nothing to wait on."""
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, f"not within {PATIENCE_S:g} s: {what}"
        time.sleep(0.2)


def environment(folder: Path) -> dict[str, str]:
    """Return a newcomer's environment: both programs on the path, a state folder of their own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("YARNCTL_")}
    programs = str(Path(sys.executable).parent)
    return {**kept, "PATH": f"{programs}:{kept['PATH']}", "XDG_STATE_HOME": str(folder / "state")}


@contextmanager
def running(command: str, folder: Path, log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a shell of its own while the block lasts."""
    with log.open("w") as said:
        program = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"], stdout=said, stderr=subprocess.STDOUT, cwd=folder,
            env=environment(folder), text=True,
        )  # fmt: skip
        try:
            yield program
        finally:
            program.terminate()
            program.wait(PATIENCE_S)


def printed_commands(text: str) -> list[str]:
    """Return the indented commands; a line that is indented further goes on with the one before."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("    "):
            found[-1] += f"\n{line}"
        elif line.startswith("  "):
            found.append(line.strip())
    return found


def containers_of(client: Client, name: str) -> int:
    """Return how many containers an application holds, its master's included; 0 while it is not there."""
    try:
        rows = client.applications()
    except YarnctlError:
        return 0
    return next((row["runningContainers"] for row in rows if row["name"] == name), 0)


def granted(folder: Path) -> int:
    """Return how many orders of the journal gave production a container."""
    journals = list(folder.rglob("journal.jsonl"))
    lines = [line for path in journals for line in path.read_bytes().splitlines()]
    records = [decode(body_of(line) or line) for line in lines if line.startswith(b'{"type":"transition"')]
    return sum(isinstance(record, Transition) and record.target == "granted" for record in records)


def test_the_printed_commands_run_as_they_are(tmp_path: Path) -> None:
    work = f"--nodes {NODES} --slots {SLOTS} --port 0 --work work"
    serve_log, daemon_log = tmp_path / "serve.log", tmp_path / "yarnctl.log"
    with ExitStack() as stack:
        stack.enter_context(running(f"yarn-emulator serve {work}", tmp_path, serve_log))
        wait_until(lambda: len(printed_commands(serve_log.read_text())) == 3, "the next commands")
        attach, research, production = printed_commands(serve_log.read_text())
        # 8188, the default, may be in use where tests run beside each other
        stack.enter_context(running(f"{attach} --listen off", tmp_path, daemon_log))
        wait_until(lambda: "running (enforce)" in daemon_log.read_text(), "yarnctl")
        shell = ["/bin/sh", "-c"]
        client = Client(attach.split()[3], "newcomer")
        subprocess.run([*shell, research], cwd=tmp_path, env=environment(tmp_path), check=True)
        wait_until(lambda: containers_of(client, "research-1") == NODES * SLOTS, "a full cluster")
        subprocess.run(
            [*shell, production], cwd=tmp_path / "work/example", env=environment(tmp_path), check=True
        )
        parts = sorted((tmp_path / "work/example/production-1").glob("part-*"))
        assert sum(len(part.read_text().splitlines()) for part in parts) == NODES * SLOTS * 120
        assert granted(tmp_path / "state") >= 2
        assert "WARNING" not in daemon_log.read_text()


@pytest.mark.parametrize(("containers", "reduces"), [(1, (1, 1)), (2, (1, 1)), (12, (11, 6))])
def test_next_commands_fill_the_cluster_and_take_half_of_it(
    tmp_path: Path, containers: int, reduces: tuple[int, int]
) -> None:
    folder = tmp_path / "a folder"
    write_example(folder, containers)
    attach, research, production = next_commands("http://rm:8088", folder, containers)
    assert attach == "yarnctl run --rm http://rm:8088 --state-dir state --enforce"
    assert f"--reduces {reduces[0]} --restartable --no-wait" in research
    assert research.startswith(f"cd '{folder}' && ")
    assert f"--reduces {reduces[1]} --no-runner" in production
    (folder / "production-1").mkdir()
    assert "--output research-2" in next_commands("http://rm:8088", folder, containers)[1]
