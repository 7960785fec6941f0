"""Owners: who owns which path of the emulated HDFS, and with what mode, kept beside the files.

Law: an answer never waits for the disk, a change is one transaction. A row may outlive its file (a crash in
between), a file may have no row (somebody put it there by hand): the first is never asked for, the second
belongs to the superuser. Paths are those of HDFS, absolute, without a slash at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
            remedy = "stop who uses it, or name another folder"
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
        """Say who owns a path."""
        self._base.execute("INSERT OR REPLACE INTO owned VALUES (?, ?, ?)", (path, *owned))
        self._rows[path] = owned

    def copy(self, old: str, new: str) -> None:
        """Say of ``new`` and all below it what is said of ``old``: before it is renamed."""
        rows = [(new + path[len(old) :], owned) for path, owned in self._under(old)]
        self._many("INSERT OR REPLACE INTO owned VALUES (?, ?, ?)", [(path, *owned) for path, owned in rows])
        self._rows.update(rows)

    def drop(self, path: str) -> None:
        """Forget a path and all below it: after it is gone."""
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
