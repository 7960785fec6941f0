"""The namespace: an HDFS in a folder, with HDFS's rules for names, owners and renames (facts, section 10).

Law: no path leads out of the folder, whatever is asked for: names are checked part by part, and a symbolic
link in the way does not exist. Permissions bind everybody but the superuser. All methods raise ``Problem``
with HDFS's exception; nothing here speaks HTTP.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any, BinaryIO

from emulator.live.store.owners import Owned, Owners
from emulator.live.wire.web import Problem

READ, WRITE, ENTER = 4, 2, 1
STICKY = 0o1000
LONGEST_PATH, LONGEST_NAME_BYTES = 4000, 255
BLOCK_BYTES = 128 << 20
OPEN_FOLDERS = ("/", "/tmp", "/user")  # noqa: S108  # HDFS's folder of that name
"""What everybody may make folders in and nobody may empty: an administrator would have made them."""


class Namespace:
    """Files under ``root`` with their owners. Paths are absolute, HDFS's own."""

    def __init__(self, root: Path, superuser: str) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = str(root.resolve())
        self.owners = Owners(root.with_name(root.name + "-owners.sqlite"), superuser)
        for path in OPEN_FOLDERS:
            os.makedirs(self._at(path), exist_ok=True)
            if not self.owners.known(path):
                self.owners.put(path, Owned(superuser, 0o1777))

    # --- looking ------------------------------------------------------------------------------

    def status(self, user: str, path: str) -> dict[str, Any]:
        """Return FileStatus of a path."""
        self._reach(user, path)
        return self._status(path, "", self._must(path))

    def listing(self, user: str, path: str) -> list[dict[str, Any]]:
        """Return FileStatus of what is in a folder (of the file itself), ordered by name."""
        self._reach(user, path)
        found = self._must(path)
        if not stat.S_ISDIR(found.st_mode):
            return [self._status(path, "", found)]
        self._may(user, path, found, READ)
        rows = []
        with os.scandir(self._at(path)) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
                    rows.append((entry.name, entry.stat(follow_symlinks=False)))
        base = path.rstrip("/")
        return [
            self._status(f"{base}/{name}", name, each) for name, each in sorted(rows, key=lambda row: row[0])
        ]

    def summary(self, user: str, path: str) -> dict[str, int]:
        """Return ContentSummary: folders, files and bytes below a path."""
        self._reach(user, path)
        found = self._must(path)
        folders, files, size = 0, 0, 0
        if not stat.S_ISDIR(found.st_mode):
            files, size = 1, found.st_size
        else:
            self._may(user, path, found, READ)
            for at, _, names in os.walk(self._at(path)):
                folders += 1
                files += len(names)
                size += sum(os.lstat(os.path.join(at, name)).st_size for name in names)
        return {
            "directoryCount": folders, "fileCount": files, "length": size, "quota": -1,
            "spaceConsumed": size, "spaceQuota": -1,
        }  # fmt: skip

    def open(self, user: str, path: str) -> tuple[BinaryIO, int]:
        """Return a file to be read, and its length."""
        self._reach(user, path)
        found = self._must(path)
        if stat.S_ISDIR(found.st_mode):
            raise Problem(404, "FileNotFoundException", f"Path is not a file: {path}")
        self._may(user, path, found, READ)
        stream = open(self._at(path), "rb", buffering=0)  # noqa: SIM115  # whoever sends it closes it
        return stream, os.fstat(stream.fileno()).st_size

    def check(self, user: str, path: str, wanted: int) -> None:
        """Raise unless the user may do ``wanted`` (READ, WRITE, ENTER) with a path."""
        self._reach(user, path)
        self._may(user, path, self._must(path), wanted)

    # --- changing -----------------------------------------------------------------------------

    def may_create(self, user: str, path: str, overwrite: bool) -> None:
        """Raise unless a file could be created now."""
        found = self._find(path)
        if found is not None:
            self._reach(user, path)
            if stat.S_ISDIR(found.st_mode):
                raise Problem(403, "FileAlreadyExistsException", f"{path} already exists as a directory")
            if not overwrite:
                raise Problem(
                    403, "FileAlreadyExistsException", f"{path} for client 127.0.0.1 already exists"
                )
            self._may(user, path, found, WRITE)
        self._may_change_in(user, self._lowest_folder(path))

    def create(self, user: str, path: str, overwrite: bool, mode: int) -> BinaryIO:
        """Create a file and the folders above it; of many callers without ``overwrite`` one succeeds."""
        self.may_create(user, path, overwrite)
        self._make_folders(user, _parent(path), 0o755)
        at = self._at(path)
        if overwrite and os.path.lexists(at):
            os.unlink(at)
        self.owners.put(path, Owned(user, mode & 0o1777))
        handle = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        return open(handle, "wb", buffering=0)

    def make_folders(self, user: str, path: str, mode: int) -> bool:
        """Make a folder and those above it; fine if it exists."""
        found = self._find(path)
        if found is not None:
            if not stat.S_ISDIR(found.st_mode):
                raise Problem(403, "FileAlreadyExistsException", f"Path is not a directory: {path}")
            return True
        self._may_change_in(user, self._lowest_folder(path))
        self._make_folders(user, path, mode)
        return True

    def _make_folders(self, user: str, path: str, mode: int) -> None:
        missing = []
        while self._find(path) is None:
            missing.append(path)
            path = _parent(path)
        for each in reversed(missing):
            inner = each != missing[0]
            self.owners.put(each, Owned(user, (mode | 0o300 if inner else mode) & 0o1777))
            os.mkdir(self._at(each))

    def delete(self, user: str, path: str, recursive: bool) -> bool:
        """Delete; False if there is nothing (and for the root)."""
        found = self._find(path)
        if found is None or path == "/":
            return False
        self._may_take_out(user, path)
        at = self._at(path)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(at)
        elif recursive:
            shutil.rmtree(at)
        else:
            try:
                os.rmdir(at)
            except OSError:
                raise Problem(
                    403, "PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty"
                ) from None
        self.owners.drop(path)
        return True

    def rename(self, user: str, source: str, target: str) -> bool:
        """Rename as HDFS's first rename does: False for whatever stands against it."""
        found = self._find(source)
        if found is None or source == "/":
            return False
        there = self._find(target)
        if there is not None and stat.S_ISDIR(there.st_mode):
            target = target.rstrip("/") + "/" + source.rpartition("/")[2]
            there = self._find(target)
        above = self._find(_parent(target))
        inside = target == source or target.startswith(source + "/")
        if there is not None or inside or above is None or not stat.S_ISDIR(above.st_mode):
            return False
        self._may_take_out(user, source)
        self._may_change_in(user, _parent(target))
        self._move(source, target)
        return True

    def replace(self, user: str, source: str, target: str, overwrite: bool) -> None:
        """Rename as HDFS's second rename does: an exception for whatever stands against it."""
        found = self._find(source)
        if found is None or source == "/":
            raise Problem(404, "FileNotFoundException", f"rename source {source} is not found.")
        if target == source or target.startswith(source + "/"):
            raise Problem(403, "IOException", f"Rename destination {target} is the source or under it")
        above = self._find(_parent(target))
        if above is None:
            raise Problem(
                404, "FileNotFoundException", f"rename destination parent {_parent(target)} not found."
            )
        if not stat.S_ISDIR(above.st_mode):
            raise Problem(403, "ParentNotDirectoryException", f"{_parent(target)} is not a directory.")
        self._may_take_out(user, source)
        self._may_change_in(user, _parent(target))
        there = self._find(target)
        if there is not None:
            self._may_replace(user, found, there, target, overwrite)
        self._move(source, target)

    def _may_replace(
        self, user: str, found: os.stat_result, there: os.stat_result, target: str, overwrite: bool
    ) -> None:
        if not overwrite:
            raise Problem(403, "FileAlreadyExistsException", f"rename destination {target} already exists.")
        if stat.S_ISDIR(there.st_mode) != stat.S_ISDIR(found.st_mode):
            raise Problem(403, "IOException", "Source and destination must both be directories or files")
        if stat.S_ISDIR(there.st_mode) and os.listdir(self._at(target)):
            raise Problem(403, "IOException", f"rename destination directory is not empty: {target}")
        self._may_take_out(user, target)

    def _move(self, source: str, target: str) -> None:
        self.owners.copy(source, target)
        os.rename(self._at(source), self._at(target))
        self.owners.drop(source)

    def set_mode(self, user: str, path: str, mode: int) -> None:
        """Set the permission bits: the owner may."""
        owned = self._own(user, path)
        self.owners.put(path, Owned(owned.owner, mode & 0o1777))

    def set_owner(self, user: str, path: str, owner: str) -> None:
        """Give a path to somebody: the superuser may."""
        owned = self._own(user, path)
        if user != self.owners.superuser:
            raise _denied(user, "Non-super user cannot change owner", path)
        self.owners.put(path, Owned(owner or owned.owner, owned.mode))

    def _own(self, user: str, path: str) -> Owned:
        self._reach(user, path)
        found = self._must(path)
        owned = self.owners.of(path, stat.S_ISDIR(found.st_mode))
        if user not in (owned.owner, self.owners.superuser):
            raise _denied(user, "is not the owner of inode", path)
        return owned

    # --- inside -------------------------------------------------------------------------------

    def _at(self, path: str) -> str:
        return self._root + ("" if path == "/" else path)

    def _find(self, path: str) -> os.stat_result | None:
        """Return what is at a path; a link, a device and what lies behind them is nothing."""
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

    def _must(self, path: str) -> os.stat_result:
        found = self._find(path)
        if found is None:
            raise Problem(404, "FileNotFoundException", f"File does not exist: {path}")
        return found

    def _status(self, path: str, name: str, found: os.stat_result) -> dict[str, Any]:
        is_folder = stat.S_ISDIR(found.st_mode)
        owned = self.owners.of(path, is_folder)
        return {
            "accessTime": 0 if is_folder else found.st_mtime_ns // 1_000_000,
            "blockSize": 0 if is_folder else BLOCK_BYTES,
            "childrenNum": len(os.listdir(self._at(path))) if is_folder else 0,
            "fileId": found.st_ino,
            "group": "supergroup",
            "length": 0 if is_folder else found.st_size,
            "modificationTime": found.st_mtime_ns // 1_000_000,
            "owner": owned.owner,
            "pathSuffix": name,
            "permission": f"{owned.mode:o}",
            "replication": 0 if is_folder else 1,
            "storagePolicy": 0,
            "type": "DIRECTORY" if is_folder else "FILE",
        }

    def _may(self, user: str, path: str, found: os.stat_result, wanted: int) -> None:
        """Raise unless owner's or others' bits allow it (nobody but the superuser is in the group)."""
        owned = self.owners.of(path, stat.S_ISDIR(found.st_mode))
        bits = owned.mode >> 6 if user == owned.owner else owned.mode
        if user != self.owners.superuser and bits & wanted != wanted:
            kind = {READ: "READ", WRITE: "WRITE", ENTER: "EXECUTE"}.get(wanted, f"{wanted}")
            detail = f'access={kind}, inode="{path}":{owned.owner}:supergroup:{owned.mode:o}'
            raise Problem(403, "AccessControlException", f"Permission denied: user={user}, {detail}")

    def _reach(self, user: str, path: str) -> None:
        """Raise unless the user may enter all folders above a path."""
        if user == self.owners.superuser or path == "/":
            return
        at = ""
        for part in ["", *path.split("/")[1:-1]]:
            at = f"{at.rstrip('/')}/{part}"
            found = self._find(at)
            if found is None:
                return
            if not stat.S_ISDIR(found.st_mode):
                raise Problem(403, "ParentNotDirectoryException", f"{at} (is not a directory)")
            self._may(user, at, found, ENTER)

    def _lowest_folder(self, path: str) -> str:
        """Return the lowest folder above a path that exists."""
        while True:
            path = _parent(path)
            found = self._find(path)
            if found is not None:
                if not stat.S_ISDIR(found.st_mode):
                    raise Problem(
                        403, "ParentNotDirectoryException", f"Parent path is not a directory: {path}"
                    )
                return path

    def _may_change_in(self, user: str, folder: str) -> None:
        self._reach(user, folder.rstrip("/") + "/x")
        self._may(user, folder, self._must(folder), WRITE)

    def _may_take_out(self, user: str, path: str) -> None:
        """Raise unless the user may remove a name: write to its folder, and own it where that is sticky."""
        folder = _parent(path)
        self._may_change_in(user, folder)
        above = self.owners.of(folder, is_folder=True)
        own = self.owners.of(path, is_folder=stat.S_ISDIR(self._must(path).st_mode))
        if above.mode & STICKY and user not in (above.owner, own.owner, self.owners.superuser):
            raise _denied(user, "sticky bit set", path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _denied(user: str, why: str, path: str) -> Problem:
    return Problem(403, "AccessControlException", f'Permission denied by {why}: user={user}, path="{path}"')


def checked_path(text: str) -> str:
    """Return an absolute path in its plain form. Raises Problem (400) for what could lead elsewhere."""
    parts = [part for part in text.split("/") if part]
    odd = any(part in (".", "..") or len(part.encode()) > LONGEST_NAME_BYTES for part in parts)
    if odd or not text.startswith("/") or "\0" in text or len(text) > LONGEST_PATH or ":" in text:
        raise Problem(400, "IllegalArgumentException", f"Invalid path name: {text[:200]!r}")
    return "/" + "/".join(parts)
