"""Paths of the emulated HDFS: where they are in the folder, who owns them, what each user may do with them.

Owners are kept beside the files: an answer never waits for the disk, a change is one transaction. A row may
outlive its file (a crash in between), a file may have no row (somebody put it there by hand): the first is
never asked for, the second belongs to the superuser.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from emulator.live.wire.web import HttpProblem
from yarnctl.errors import BadInput

_TABLE = "CREATE TABLE IF NOT EXISTS owned (path TEXT PRIMARY KEY, owner TEXT, mode INTEGER)"


class Owned(NamedTuple):
    """Owner and permission bits (the sticky bit included)."""

    owner: str
    mode: int


class Owners:
    """The rows, in memory and in a small database at ``path``."""

    def __init__(self, path: Path, superuser: str) -> None:
        self.superuser = superuser
        try:
            self._base = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
            self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute(_TABLE)
            rows = self._base.execute("SELECT path, owner, mode FROM owned").fetchall()
        except sqlite3.Error as error:
            remedy = "stop the process that uses it, or use another folder"
            raise BadInput(str(path), f"cannot be used ({error})", remedy) from None
        self._rows = {path: Owned(owner, mode) for path, owner, mode in rows}

    def close(self) -> None:
        """Close the database."""
        self._base.close()

    def of(self, path: str, is_folder: bool) -> Owned:
        """Return a path's owner and mode."""
        return self._rows.get(path) or Owned(self.superuser, 0o755 if is_folder else 0o644)

    def known(self, path: str) -> bool:
        """Say whether anything was ever said about a path."""
        return path in self._rows

    def put(self, path: str, owned: Owned) -> None:
        """Return the owner of a path."""
        self._base.execute("INSERT OR REPLACE INTO owned VALUES (?, ?, ?)", (path, *owned))
        self._rows[path] = owned

    def copy(self, old: str, new: str) -> None:
        """Say of ``new`` and all below it what is said of ``old``: before it is renamed."""
        rows = [(new + path[len(old) :], owned) for path, owned in self._under(old)]
        self._many("INSERT OR REPLACE INTO owned VALUES (?, ?, ?)", [(path, *owned) for path, owned in rows])
        self._rows.update(rows)

    def drop(self, path: str) -> None:
        """Delete the rows of a path and all below it: after it is gone."""
        gone = [one for one, _ in self._under(path)]
        self._many("DELETE FROM owned WHERE path = ?", [(one,) for one in gone])
        for one in gone:
            del self._rows[one]

    def _under(self, path: str) -> list[tuple[str, Owned]]:
        below = path.rstrip("/") + "/"
        return [(one, owned) for one, owned in self._rows.items() if one == path or one.startswith(below)]

    def _many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        self._base.execute("BEGIN")
        self._base.executemany(statement, rows)
        self._base.execute("COMMIT")


READ, WRITE, ENTER = 4, 2, 1
STICKY = 0o1000
LONGEST_PATH, LONGEST_NAME_BYTES = 4000, 255


class PermittedPaths:
    """Paths below ``root``, with the permissions that ``owners`` keeps. Paths are absolute, HDFS's own."""

    def __init__(self, root: str, owners: Owners) -> None:
        self._root = root
        self.owners = owners

    def at(self, path: str) -> str:
        """Return where a path is on the disk."""
        return self._root + ("" if path == "/" else path)

    def find(self, path: str) -> os.stat_result | None:
        """Return what is at a path; a link, a device and what is behind them is nothing."""
        at = self._root
        found = os.lstat(at)
        for part in path.split("/"):
            if not part:
                continue
            if not stat.S_ISDIR(found.st_mode):
                return None
            at = f"{at}/{part}"
            try:
                found = os.lstat(at)
            except (FileNotFoundError, NotADirectoryError):
                return None
            if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
                return None
        return found

    def must(self, path: str) -> os.stat_result:
        """Return what is at a path; 404 if there is nothing."""
        found = self.find(path)
        if found is None:
            raise HttpProblem(404, "FileNotFoundException", f"File does not exist: {path}")
        return found

    def may(self, user: str, path: str, found: os.stat_result, wanted: int) -> None:
        """Raise unless owner's or others' bits allow it (only the superuser is in the group)."""
        owned = self.owners.of(path, stat.S_ISDIR(found.st_mode))
        bits = owned.mode >> 6 if user == owned.owner else owned.mode
        if user != self.owners.superuser and bits & wanted != wanted:
            kind = {READ: "READ", WRITE: "WRITE", ENTER: "EXECUTE"}.get(wanted, f"{wanted}")
            detail = f'access={kind}, inode="{path}":{owned.owner}:supergroup:{owned.mode:o}'
            raise HttpProblem(403, "AccessControlException", f"Permission denied: user={user}, {detail}")

    def reach(self, user: str, path: str) -> None:
        """Raise unless the user may enter all folders above a path."""
        if user == self.owners.superuser or path == "/":
            return
        at = ""
        for part in ["", *path.split("/")[1:-1]]:
            at = f"{at.rstrip('/')}/{part}"
            found = self.find(at)
            if found is None:
                return
            if not stat.S_ISDIR(found.st_mode):
                raise HttpProblem(403, "ParentNotDirectoryException", f"{at} (is not a directory)")
            self.may(user, at, found, ENTER)

    def lowest_folder(self, path: str) -> str:
        """Return the lowest folder above a path that exists."""
        while True:
            path = parent(path)
            found = self.find(path)
            if found is not None:
                if not stat.S_ISDIR(found.st_mode):
                    raise HttpProblem(
                        403, "ParentNotDirectoryException", f"Parent path is not a directory: {path}"
                    )
                return path

    def may_change_in(self, user: str, folder: str) -> None:
        """Raise unless the user may change the names in a folder."""
        self.reach(user, folder.rstrip("/") + "/x")
        self.may(user, folder, self.must(folder), WRITE)

    def may_take_out(self, user: str, path: str) -> None:
        """Raise unless the user may remove a name: write to its folder, and own it where that is sticky."""
        folder = parent(path)
        self.may_change_in(user, folder)
        above = self.owners.of(folder, is_folder=True)
        own = self.owners.of(path, is_folder=stat.S_ISDIR(self.must(path).st_mode))
        if above.mode & STICKY and user not in (above.owner, own.owner, self.owners.superuser):
            raise denied(user, "sticky bit set", path)


def parent(path: str) -> str:
    """Return the folder that a path is in."""
    return path.rpartition("/")[0] or "/"


def denied(user: str, why: str, path: str) -> HttpProblem:
    """Return HDFS's no to a user."""
    return HttpProblem(
        403, "AccessControlException", f'Permission denied by {why}: user={user}, path="{path}"'
    )


def checked_path(text: str) -> str:
    """Return an absolute path in its plain form. Raises HttpProblem (400) for what could lead elsewhere."""
    parts = [part for part in text.split("/") if part]
    odd = any(part in (".", "..") or len(part.encode()) > LONGEST_NAME_BYTES for part in parts)
    if odd or not text.startswith("/") or "\0" in text or len(text) > LONGEST_PATH or ":" in text:
        raise HttpProblem(400, "IllegalArgumentException", f"Invalid path name: {text[:200]!r}")
    return "/" + "/".join(parts)
