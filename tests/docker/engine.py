"""A Docker engine for the tests: the one that runs, or one that the tests start and stop themselves.

Law: nothing outside a folder of the test's own is changed, and what was started is stopped. Where no
image can be pulled, the base image is made from Debian's packages (``debootstrap``) under the name that
the Dockerfiles use, so that these stay what a user would write.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import IO

BASE = "debian:bookworm-slim"
ENGINE_STARTS_S = 60


class NoEngine(Exception):
    """There is no engine and none can be started; says what is missing."""


class Engine:
    """A running engine; ``environment`` is what clients need to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = dict(os.environ)
        self._daemon: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Engine:
        if not self._answers():
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.wait()

    def run(
        self, *words: str, timeout_s: float = 600, stdin: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a client command; raises CalledProcessError with its output in the message."""
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=timeout_s, stdin=stdin
        )
        if done.returncode:
            raise AssertionError(
                f"{' '.join(words)} left with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        return done

    def _answers(self) -> bool:
        client = shutil.which("docker")
        if client is None:
            return False
        asked = subprocess.run([client, "info"], env=self.environment, capture_output=True)
        return asked.returncode == 0

    def _start(self) -> None:
        missing = [one for one in ("docker", "dockerd") if shutil.which(one) is None]
        if missing or os.geteuid() != 0:
            reason = f"{' and '.join(missing)} not installed" if missing else "only root can start one"
            raise NoEngine(f"no Docker engine answers, and {reason} (Debian: apt install docker.io)")
        self.folder.mkdir(parents=True, exist_ok=True)
        socket = self.folder / "docker.sock"
        self.environment["DOCKER_HOST"] = f"unix://{socket}"
        log = (self.folder / "dockerd.log").open("wb")
        options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        words = [f"--{name}={self.folder / place}" for name, place in options.items()]
        self._daemon = subprocess.Popen(
            ["dockerd", f"--host=unix://{socket}", *words], stdout=log, stderr=log
        )
        deadline = time.monotonic() + ENGINE_STARTS_S
        while not self._answers():
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                story = (self.folder / "dockerd.log").read_text(errors="replace")[-2000:]
                raise NoEngine(f"dockerd does not start: {story}")
            time.sleep(0.2)  # the engine says by answering that it is up; there is nothing to wait on

    def require_base(self) -> None:
        """Have the base image: there already, pulled, or made from Debian's packages."""
        found = subprocess.run(
            ["docker", "image", "inspect", BASE], env=self.environment, capture_output=True
        )
        if found.returncode == 0:
            return
        pulled = subprocess.run(
            ["docker", "pull", "--quiet", BASE], env=self.environment, capture_output=True
        )
        if pulled.returncode == 0:
            return
        if shutil.which("debootstrap") is None:
            raise NoEngine(f"{BASE} cannot be pulled, and debootstrap is not installed")
        root = self.folder / "base"
        self.run("debootstrap", "--variant=minbase", "bookworm", str(root), *_mirror())
        self._adopt_sources(root)
        tar = subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE)
        self.run("docker", "import", "-", BASE, stdin=tar.stdout)
        tar.wait()
        shutil.rmtree(root)

    @staticmethod
    def _adopt_sources(root: Path) -> None:
        """Let apt inside the image use the package mirrors of this machine."""
        for name in ("apt.conf.d", "sources.list.d"):
            for file in sorted(Path("/etc/apt", name).glob("*")):
                if file.is_file():
                    shutil.copy(file, root / "etc/apt" / name / file.name)
        if Path("/etc/apt/sources.list").exists():
            shutil.copy("/etc/apt/sources.list", root / "etc/apt/sources.list")


def _mirror() -> tuple[str, ...]:
    """Return the mirror that this machine's own apt uses, if it names one in a way that is understood."""
    for file in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        if not file.is_file():
            continue
        for line in file.read_text(errors="replace").splitlines():
            words = line.replace("URIs:", "deb").split()
            if words[:1] == ["deb"]:
                uris = [word for word in words if word.startswith(("http://", "https://"))]
                if uris and "security" not in uris[0]:
                    return (uris[0],)
    return ()
