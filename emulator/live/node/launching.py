"""Launching: a node's containers as real processes, their folders and environment as under YARN.

A container has a clean environment (``processes.clean_environment``), what YARN would tell it about itself,
and what its master gives it. Each has a folder of its own, with its stdout and stderr.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from emulator.live.node.node_manager import Gone, StartedContainer
from emulator.live.node.processes import Processes, clean_environment
from emulator.live.wire.messages import EXIT_SIGKILL, EXIT_SIGTERM, Doorbell, MasterLaunch, Signal, TaskLaunch

SOURCES = Path(__file__).resolve().parents[3]
"""What our own programs need on their path."""

EXIT_REFUSED = 1
"""A failure, which counts: what is refused would be refused again at each try."""

REPORTED_BYTES = 1000
"""So much of a failed container's stderr goes into its diagnostics."""


class NoContainer:
    """A container that could not be started and is over."""

    def notify(self, signal: Signal) -> None:
        """Ignored: there is no process."""

    def end(self) -> None:
        """It has ended."""


def refuse(why: str, gone: Gone) -> StartedContainer:
    """Return a container that has failed, reported to its node at once."""
    asyncio.get_running_loop().call_soon(gone, EXIT_REFUSED, why)
    return NoContainer()


class ProcessLauncher:
    """Runs tasks and AMs as processes. ``work`` is the shared folder, ``rm`` the ResourceManager's URL.

    ``tasks`` False: no process of a task is started (``--containers modelled``); AMs are all the same.
    """

    def __init__(self, work: Path, rm: str, processes: Processes, *, tasks: bool) -> None:
        self.work = work
        self.rm = rm
        self._processes = processes
        self._tasks = tasks

    def launch_task(self, node: str, launch: TaskLaunch, gone: Gone) -> StartedContainer:
        """Start a task's process."""
        if not self._tasks:
            return refuse("this node runs modelled containers only (--containers modelled)", gone)
        if not launch.command:
            return refuse("the launch names no command", gone)
        folder = self.folder(node, launch.container, launch.folder)
        environment = self.environment(node, launch.container, folder, launch.environment)
        told = with_reason(folder, gone)
        return self._processes.start(launch.container, launch.command, environment, folder, told)

    def launch_master(self, node: str, launch: MasterLaunch, gone: Gone) -> StartedContainer:
        """Start an AM: ``yarn-emulator am`` with the job in a file of its folder."""
        folder = self.folder(node, launch.container, "")
        job = folder / "job.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            job.write_bytes(bytes(launch.job))
        except OSError as error:
            return refuse(f"{error.filename}: {error.strerror}", gone)
        command = (
            *program("am"),
            *("--rm", self.rm, "--application", launch.application, "--attempt", str(launch.attempt)),
            *("--container", launch.container, "--job", str(job), "--work", str(self.work)),
            *("--user", launch.user, "--node", node),
        )
        environment = self.environment(node, launch.container, folder, {"PYTHONPATH": str(SOURCES)})
        told = with_reason(folder, gone)
        return self._processes.start(launch.container, command, environment, folder, told)

    def notify_modelled(self, doorbell: Doorbell) -> None:
        """No container is modelled in this process."""

    def folder(self, node: str, container: str, given: str) -> Path:
        """Return a container's own folder (absolute)."""
        if given:
            return Path(given).absolute()
        return (self.work / "nodes" / plain(node) / plain(container)).absolute()

    def environment(self, node: str, container: str, folder: Path, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a container: the base, YARN's variables, and what is given."""
        host, _, port = node.rpartition(":")
        told = {
            "CONTAINER_ID": container,
            "NM_HOST": host,
            "NM_PORT": port,
            "PWD": str(folder),
            "LOCAL_DIRS": str(folder),
            "LOG_DIRS": str(folder),
            "USER": os.environ.get("USER", "hadoop"),
        }
        return clean_environment({**told, **more})


def with_reason(folder: Path, gone: Gone) -> Gone:
    """Add the end of a failed container's stderr to its diagnostics, as YARN does."""

    def told(status: int, diagnostics: str) -> None:
        if status not in (0, EXIT_SIGTERM, EXIT_SIGKILL) and not diagnostics:
            diagnostics = tail(folder / "stderr")
        gone(status, diagnostics)

    return told


def tail(path: Path) -> str:
    """Return the last bytes of a file that a container wrote, as text; "" if there are none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - REPORTED_BYTES))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


def program(command: str) -> tuple[str, ...]:
    """Return the start of a command line of ``yarn-emulator``, wherever it is installed."""
    return sys.executable, "-c", "from emulator.cli import main; main()", command


def plain(name: str) -> str:
    """Return a name as one part of a path."""
    return "".join(each if each.isalnum() or each in "-_." else "_" for each in name).lstrip(".") or "_"
