"""A Docker engine for the tests: the one that runs, or one that the tests start and stop themselves.

Law: what was started is stopped, also when the tests are killed with -9, and what it changed outside its
folder is put back (that not, after a -9). One engine at a time: who comes second waits. Where no image can
be pulled, the base image is made from Debian's packages (``debootstrap``) under the name that the
Dockerfiles use, so that these stay what a user would write.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tests.docker.network_state import NetworkState

BASE = "debian:bookworm-slim"
IMAGE_MADE_S = 2_400
ENGINE_STARTS_S = 60
ENGINE_ENDS_S = 60


class NoEngine(Exception):
    """There is no engine and none can be started; says what is missing."""


class Engine:
    """A running engine; ``environment`` is what clients need to reach it, ``is_own`` that we started it."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)
        self.is_own = False
        self._stack = ExitStack()

    def __enter__(self) -> Engine:
        if not self._answers():
            try:
                self._start()
            except BaseException:
                self._stack.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(
        self,
        *words: str,
        timeout_s: float = 600,
        stdin: IO[bytes] | None = None,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a client command; raises AssertionError with its output if it fails."""
        done = subprocess.run(
            words, env=environment or self.environment, capture_output=True, text=True, timeout=timeout_s,
            stdin=stdin,
        )  # fmt: skip
        if done.returncode:
            raise AssertionError(
                f"{' '.join(words)} left with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        return done

    def compose_program(self) -> tuple[str, ...]:
        """Return the words of the compose command that is installed; raises NoEngine."""
        for words in (("docker", "compose"), ("docker-compose",)):
            if shutil.which(words[0]) is None:
                continue
            if subprocess.run([*words, "version"], env=self.environment, capture_output=True).returncode == 0:
                return words
        raise NoEngine(
            "neither docker compose nor docker-compose is there (Debian: apt install docker-compose)"
        )

    def _answers(self) -> bool:
        client = shutil.which("docker")
        if client is None:
            return False
        asked = subprocess.run([client, "info"], env=self.environment, capture_output=True)
        return asked.returncode == 0

    def _start(self) -> None:
        missing = [one for one in ("docker", "dockerd", "setpriv") if shutil.which(one) is None]
        if missing or os.geteuid() != 0:
            reason = f"{' and '.join(missing)} not installed" if missing else "only root can start one"
            raise NoEngine(f"no Docker engine answers, and {reason} (Debian: apt install docker.io)")
        lock = Path(tempfile.gettempdir(), "yarnctl-engine.lock").open("w")  # noqa: SIM115 - the stack closes it
        self._stack.callback(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = Path(tempfile.mkdtemp(prefix="engine-"))  # short: a socket's path has 107 bytes
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._stack.callback(_unmount_below, folder)
        self._stack.callback(NetworkState.now().put_back)
        self.is_own = True
        self.environment["DOCKER_HOST"] = f"unix://{folder / 'docker.sock'}"
        self._wait_for(self._daemon(folder), folder / "dockerd.log")

    def _daemon(self, folder: Path) -> subprocess.Popen[bytes]:
        places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        words = [f"--{name}={folder / place}" for name, place in places.items()]
        with (folder / "dockerd.log").open("wb") as log:
            daemon = subprocess.Popen(
                # it is told to end if these tests are killed
                ["setpriv", "--pdeathsig", "TERM", "dockerd", f"--host=unix://{folder / 'docker.sock'}",
                 *words],
                stdout=log,
                stderr=log,
            )  # fmt: skip
        self._stack.callback(daemon.wait, ENGINE_ENDS_S)
        self._stack.callback(daemon.terminate)
        return daemon

    def _wait_for(self, daemon: subprocess.Popen[bytes], log: Path) -> None:
        deadline_s = time.monotonic() + ENGINE_STARTS_S
        while not self._answers():
            if daemon.poll() is not None or time.monotonic() > deadline_s:
                raise NoEngine(f"dockerd does not start: {log.read_text(errors='replace')[-2000:]}")
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
        with tempfile.TemporaryDirectory(prefix="base-") as folder:
            root = Path(folder, "root")
            words = ["debootstrap", "--variant=minbase", "bookworm", str(root), *_mirror()]
            try:
                self.run(*words, timeout_s=IMAGE_MADE_S)
            finally:
                _unmount_below(Path(folder))  # a debootstrap that was ended leaves /proc there
            self._adopt_sources(root)
            with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tar:
                self.run("docker", "import", "-", BASE, stdin=tar.stdout)

    @staticmethod
    def _adopt_sources(root: Path) -> None:
        """Let apt and pip inside the image use this machine's mirrors, and trust what it trusts."""
        authorities = Path("/usr/local/share/ca-certificates")
        if authorities.is_dir():
            shutil.copytree(authorities, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
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


def _unmount_below(folder: Path) -> None:
    """Unmount what an engine or debootstrap left mounted in its folder, the innermost first."""
    lines = Path("/proc/mounts").read_text().splitlines()
    mounted = [line.split()[1] for line in lines]
    for place in sorted((one for one in mounted if one.startswith(f"{folder}/")), key=len, reverse=True):
        subprocess.run(["umount", place], check=False)
