"""A fresh host: a container of Debian with Python, in a network that reaches the emulator and nothing else.

It gets the files of a release and runs the commands of docs/install.md as they stand there. systemd does not
run in a container: ``systemctl`` is played by the unit's own settings.
"""

from __future__ import annotations

import re
import secrets
import shlex
from contextlib import ExitStack
from pathlib import Path

from tests.docker.composed import until
from tests.docker.engine import IMAGE_MADE_S, Engine
from tests.release.playing import ROOT, settings

HOST_IMAGE = "yarnctl-fresh-host:test"
PAGE = ROOT / "docs" / "install.md"
PLACES = {"%d": "/run/credentials", "%S": "/var/lib", "%C": "/var/cache"}
READ = """
import json, urllib.request
ask = lambda path: urllib.request.urlopen(f"http://127.0.0.1:8188{path}", timeout=30).read()
try:
    page, loop = ask("/"), json.loads(ask("/v1/snapshot"))["loop"]
    print(loop["enforce"], loop["reachable"], b"<title>" in page)
except OSError as error:
    print("not yet:", error)
"""


def commands_of(heading: str) -> list[str]:
    """Return the commands of the first block below a heading of docs/install.md, without their comments."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")[2]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, f"docs/install.md has no commands below {heading}"
    lines = block[1].replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+#.*", "", line).strip() for line in lines if line.strip()]


class Network:
    """A network without the internet, with the emulator as ``rm.example``."""

    def __init__(self, engine: Engine, image: str) -> None:
        self.engine, self.image = engine, image
        self.name = f"fresh-{secrets.token_hex(4)}"
        self._stack = ExitStack()

    def __enter__(self) -> Network:
        self.docker("network", "create", "--internal", self.name)
        self._stack.callback(self.docker, "network", "rm", self.name)
        words = ("yarn-emulator", "serve", "--host=0.0.0.0", "--port=8088", "--allow-host=rm.example")
        more = ("--nodes=2", "--containers=modelled", "--work=/work/cluster")
        emulator = self.start("--network-alias=rm.example", self.image, *words, *more)
        until(lambda: " answers, " in self.docker("logs", emulator), "the emulator answers")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def docker(self, *words: str) -> str:
        """Run a client command; return what it prints."""
        return self.engine.run("docker", *words).stdout

    def start(self, *words: str) -> str:
        """Start a container that lives as long as the network; return its id."""
        container = self.docker("run", "--detach", f"--network={self.name}", *words).strip()
        self._stack.callback(self.docker, "rm", "--force", "--volumes", container)
        return container

    def host(self, files: list[Path]) -> Host:
        """Start a fresh host with these files in its working directory."""
        image = str(Path(__file__).parent / "fresh_host_image")
        self.engine.run("docker", "build", "--quiet", "--tag", HOST_IMAGE, image, timeout_s=IMAGE_MADE_S)
        container = self.start("--workdir=/root", HOST_IMAGE, "sleep", "infinity")
        for file in files:
            self.docker("cp", str(file), f"{container}:/root/{file.name}")
        return Host(self, container)

    def seen_from(self, container: str) -> Host:
        """Return a container that runs already."""
        return Host(self, container)


class Host:
    """A container in which commands of the page are typed."""

    def __init__(self, network: Network, container: str) -> None:
        self.network, self.container = network, container

    def type(self, command: str) -> None:
        """Run one command of the page as root; the daemon's goes to the background."""
        if command.startswith("systemctl"):
            self._play_systemd()
        elif " run " in command:
            self.network.docker("exec", "--detach", self.container, "sh", "-c", command)
        else:
            # 1: "config init" has written the file, and a finding of "check" is open
            accept = "; [ $? -le 1 ]" if "config init" in command else ""
            self.network.docker("exec", self.container, "sh", "-c", command + accept)

    def printed(self, command: str) -> str:
        """Return what a command as root prints, with its errors, whatever its status."""
        return self.network.docker("exec", self.container, "sh", "-c", f"{{ {command}; }} 2>&1 || true")

    def _play_systemd(self) -> None:
        unit = settings()
        credential, source = unit["LoadCredential"][0].split(":")
        folder, user = PLACES["%d"], unit["User"][0]
        made = [f"install -d -o {user} -m 700 {folder} /var/lib/{user} /var/cache/{user}"]
        made += [f"install -o {user} -m 400 {source} {folder}/{credential}"]
        self.network.docker("exec", self.container, "sh", "-c", " && ".join(made))
        given = {"CREDENTIALS_DIRECTORY": folder, "HOME": "/nonexistent"}
        given |= dict(word.split("=", 1) for line in unit["Environment"] for word in _filled(line).split())
        options = [f"--env={name}={value}" for name, value in given.items()]
        words = shlex.split(_filled(unit["ExecStart"][0]))
        self.network.docker("exec", "--detach", f"--user={user}", *options, self.container, *words)

    def wait_observing(self) -> None:
        """Wait until the page is there, and the daemon sees the cluster and only observes."""
        until(lambda: self.seen() == "False True True", "a page that observes")

    def user(self) -> str:
        """Return the number of the account that the container runs as."""
        return self.network.docker("exec", self.container, "id", "-u").strip()

    def seen(self) -> str:
        """Return whether the daemon enforces, whether it sees the cluster, and whether the page is one."""
        return self.network.docker("exec", self.container, "python3", "-c", READ).strip()


def _filled(text: str) -> str:
    for specifier, place in PLACES.items():
        text = text.replace(specifier, place)
    return text
