"""Open the state directory: a daemon's files on its own disk, for one daemon at a time.

A lock that the operating system releases when the process ends ensures it; only the owner can read.
``instance`` is the directory's name, a part of every order's name on the cluster: two daemons never use each
other's requests.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from yarnctl.errors import BadInput, YarnctlError
from yarnctl.journal.file import JOURNAL
from yarnctl.journal.segments import require_same

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class InUse(YarnctlError):
    """Another daemon uses this state directory."""


class StateDir:
    """An opened state directory and context manager; close it so that another daemon can open it."""

    def __init__(self, path: Path, new_name: Callable[[], str]) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadInput(f"--state-dir {path}", f"cannot be used ({error.strerror})") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise InUse(
                f"--state-dir {path}: another yarnctl uses it; stop that one, or use another directory"
            ) from None
        self.instance = self._instance(new_name)

    @property
    def journal(self) -> Path:
        """The path of the journal."""
        return self.path / JOURNAL

    @property
    def journal_path(self) -> str:
        """The locked file's id by boot and file; "": unknown. A copy of the directory has another."""
        try:
            boot = BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError):
            return ""
        file = os.fstat(self._lock)
        return f"{boot}:{file.st_dev}:{file.st_ino}" if boot else ""

    def _instance(self, new_name: Callable[[], str]) -> str:
        file = self.path / "instance"
        if file.exists():
            name = file.read_text(encoding="ascii", errors="replace").strip()
            if name.isalnum() and 4 <= len(name) <= 32:
                return name
            raise BadInput(str(file), "invalid instance name", "remove the file")
        name = new_name()
        beside = self.path / "instance.new"
        beside.write_text(name + "\n", encoding="ascii")
        beside.rename(file)
        return name

    def require_in_place(self) -> None:
        """Raise OSError if the file at the lock's path is not the one that this process has locked."""
        require_same(self.path / "lock", self._lock)

    def close(self) -> None:
        """Release the directory."""
        os.close(self._lock)

    def __enter__(self) -> StateDir:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def default_path(cluster: str, environment: Mapping[str, str]) -> Path:
    """Return the default state directory of a daemon for a cluster (host:port)."""
    root = environment.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    safe = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in cluster)
    return Path(root) / "yarnctl" / safe
