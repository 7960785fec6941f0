"""systemd's side of the unit, played: its settings, the environment that it gives, and what it hears."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "release/share/systemd/system/yarnctl.service"
PATIENCE_S = 60.0


def settings() -> dict[str, list[str]]:
    """Return the values of each setting of ``[Service]``, in their order."""
    section = UNIT.read_text().partition("[Service]\n")[2].partition("\n[Install]")[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


class Played:
    """A service manager: ``environment`` is what the unit's processes get, below ``folder`` instead of /."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unit = settings()
        self.places = {"%d": folder / "credentials", "%S": folder / "state", "%C": folder / "cache"}
        for place in self.places.values():
            place.mkdir(mode=0o700)
        (folder / "state/yarnctl").mkdir(mode=0o700)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self.heard: list[str] = []

    def __enter__(self) -> Played:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of ``ExecStart``."""
        given = [word for line in self.unit["Environment"] for word in line.split()]
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("YARNCTL_")},
            **dict(self.filled(word).partition("=")[::2] for word in given),
            "CREDENTIALS_DIRECTORY": str(self.places["%d"]),
            "NOTIFY_SOCKET": str(self.folder / "notify"),
            "PYTHONPATH": str(ROOT),
        }

    def filled(self, text: str) -> str:
        """Return a setting with its specifiers replaced."""
        for specifier, place in self.places.items():
            text = text.replace(specifier, str(place))
        return text

    def words(self, setting: str) -> list[str]:
        """Return the words of a command of the unit, behind the program."""
        (line,) = self.unit[setting]
        program, *words = self.filled(line).split()
        assert program.lstrip("-") == "/opt/yarnctl/bin/yarnctl"
        return words

    def hear(self, what: str) -> None:
        """Wait until a message has a line that starts with ``what``."""
        while not any(line.startswith(what) for line in self.next_message()):
            pass

    def next_message(self, patience_s: float = PATIENCE_S) -> list[str]:
        """Return the lines of the next message; none if ``patience_s`` passes without one."""
        self._socket.settimeout(patience_s)
        try:
            lines = self._socket.recv(4096).decode().splitlines()
        except TimeoutError:
            assert patience_s < PATIENCE_S, f"nothing more; heard: {self.heard[-5:]}"
            return []
        self.heard += lines
        return lines

    def drain(self) -> None:
        """Take the messages that were sent until now."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.next_message(0.01):
            assert time.monotonic() < deadline_s
