"""The namespace: an HDFS in a folder, with HDFS's rules for names, owners and renames (facts, section 10).

Law: no path leads out of the folder, whatever is requested: names are checked part by part, and a symbolic
link in the way does not exist. Permissions bind everybody but the superuser. All methods raise
``HttpProblem`` with HDFS's exception; there is no HTTP here.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any, BinaryIO

from emulator.live.store.permitted_paths import READ, WRITE, Owned, Owners, PermittedPaths, denied, parent
from emulator.live.wire.web import HttpProblem

BLOCK_BYTES = 128 << 20
OPEN_FOLDERS = ("/", "/tmp", "/user")  # noqa: S108  # HDFS's folder of that name
"""Folders in which all users may make folders and none may delete: an administrator would have made them."""


class Namespace:
    """Files under ``root`` with their owners. Paths are absolute, HDFS's own."""

    def __init__(self, root: Path, superuser: str) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.owners = Owners(root.with_name(root.name + "-owners.sqlite"), superuser)
        self._paths = PermittedPaths(str(root.resolve()), self.owners)
        for path in OPEN_FOLDERS:
            os.makedirs(self._paths.at(path), exist_ok=True)
            if not self.owners.known(path):
                self.owners.put(path, Owned(superuser, 0o1777))

    def status(self, user: str, path: str) -> dict[str, Any]:
        """Return FileStatus of a path."""
        self._paths.reach(user, path)
        return self._status(path, "", self._paths.must(path))

    def listing(self, user: str, path: str) -> list[dict[str, Any]]:
        """Return FileStatus of what is in a folder (of the file itself), ordered by name."""
        self._paths.reach(user, path)
        found = self._paths.must(path)
        if not stat.S_ISDIR(found.st_mode):
            return [self._status(path, "", found)]
        self._paths.may(user, path, found, READ)
        rows = []
        with os.scandir(self._paths.at(path)) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
                    rows.append((entry.name, entry.stat(follow_symlinks=False)))
        base = path.rstrip("/")
        return [
            self._status(f"{base}/{name}", name, each) for name, each in sorted(rows, key=lambda row: row[0])
        ]

    def summary(self, user: str, path: str) -> dict[str, int]:
        """Return ContentSummary: folders, files and bytes below a path."""
        self._paths.reach(user, path)
        found = self._paths.must(path)
        folders, files, size = 0, 0, 0
        if not stat.S_ISDIR(found.st_mode):
            files, size = 1, found.st_size
        else:
            self._paths.may(user, path, found, READ)
            for at, _, names in os.walk(self._paths.at(path)):
                folders += 1
                files += len(names)
                size += sum(os.lstat(os.path.join(at, name)).st_size for name in names)
        return {
            "directoryCount": folders, "fileCount": files, "length": size, "quota": -1,
            "spaceConsumed": size, "spaceQuota": -1,
        }  # fmt: skip

    def open(self, user: str, path: str) -> tuple[BinaryIO, int]:
        """Return a file to be read, and its length."""
        self._paths.reach(user, path)
        found = self._paths.must(path)
        if stat.S_ISDIR(found.st_mode):
            raise HttpProblem(404, "FileNotFoundException", f"Path is not a file: {path}")
        self._paths.may(user, path, found, READ)
        stream = open(self._paths.at(path), "rb", buffering=0)  # noqa: SIM115  # the sender closes it
        return stream, os.fstat(stream.fileno()).st_size

    def check(self, user: str, path: str, wanted: int) -> None:
        """Raise unless the user may do ``wanted`` (READ, WRITE, ENTER) with a path."""
        self._paths.reach(user, path)
        self._paths.may(user, path, self._paths.must(path), wanted)

    def may_create(self, user: str, path: str, overwrite: bool) -> None:
        """Raise unless a file could be created now."""
        found = self._paths.find(path)
        if found is not None:
            self._paths.reach(user, path)
            if stat.S_ISDIR(found.st_mode):
                raise HttpProblem(403, "FileAlreadyExistsException", f"{path} already exists as a directory")
            if not overwrite:
                raise HttpProblem(
                    403, "FileAlreadyExistsException", f"{path} for client 127.0.0.1 already exists"
                )
            self._paths.may(user, path, found, WRITE)
        self._paths.may_change_in(user, self._paths.lowest_folder(path))

    def create(self, user: str, path: str, overwrite: bool, mode: int) -> BinaryIO:
        """Create a file and the folders above it; of many callers without ``overwrite`` one succeeds."""
        self.may_create(user, path, overwrite)
        self._make_folders(user, parent(path), 0o755)
        at = self._paths.at(path)
        if overwrite and os.path.lexists(at):
            os.unlink(at)
        self.owners.put(path, Owned(user, mode & 0o1777))
        handle = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        return open(handle, "wb", buffering=0)

    def make_folders(self, user: str, path: str, mode: int) -> bool:
        """Make a folder and those above it; fine if it exists."""
        found = self._paths.find(path)
        if found is not None:
            if not stat.S_ISDIR(found.st_mode):
                raise HttpProblem(403, "FileAlreadyExistsException", f"Path is not a directory: {path}")
            return True
        self._paths.may_change_in(user, self._paths.lowest_folder(path))
        self._make_folders(user, path, mode)
        return True

    def _make_folders(self, user: str, path: str, mode: int) -> None:
        missing = []
        while self._paths.find(path) is None:
            missing.append(path)
            path = parent(path)
        for each in reversed(missing):
            inner = each != missing[0]
            self.owners.put(each, Owned(user, (mode | 0o300 if inner else mode) & 0o1777))
            os.mkdir(self._paths.at(each))

    def delete(self, user: str, path: str, recursive: bool) -> bool:
        """Delete; False if there is nothing (and for the root)."""
        found = self._paths.find(path)
        if found is None or path == "/":
            return False
        self._paths.may_take_out(user, path)
        at = self._paths.at(path)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(at)
        elif recursive:
            shutil.rmtree(at)
        else:
            try:
                os.rmdir(at)
            except OSError:
                raise HttpProblem(
                    403, "PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty"
                ) from None
        self.owners.drop(path)
        return True

    def rename(self, user: str, source: str, target: str) -> bool:
        """Rename as HDFS's first rename does: False if anything prevents it."""
        found = self._paths.find(source)
        if found is None or source == "/":
            return False
        there = self._paths.find(target)
        if there is not None and stat.S_ISDIR(there.st_mode):
            target = target.rstrip("/") + "/" + source.rpartition("/")[2]
            there = self._paths.find(target)
        above = self._paths.find(parent(target))
        inside = target == source or target.startswith(source + "/")
        if there is not None or inside or above is None or not stat.S_ISDIR(above.st_mode):
            return False
        self._paths.may_take_out(user, source)
        self._paths.may_change_in(user, parent(target))
        self._move(source, target)
        return True

    def replace(self, user: str, source: str, target: str, overwrite: bool) -> None:
        """Rename as HDFS's second rename does: an exception if anything prevents it."""
        found = self._paths.find(source)
        if found is None or source == "/":
            raise HttpProblem(404, "FileNotFoundException", f"rename source {source} is not found.")
        if target == source or target.startswith(source + "/"):
            raise HttpProblem(403, "IOException", f"Rename destination {target} is the source or under it")
        above = self._paths.find(parent(target))
        if above is None:
            raise HttpProblem(
                404, "FileNotFoundException", f"rename destination parent {parent(target)} not found."
            )
        if not stat.S_ISDIR(above.st_mode):
            raise HttpProblem(403, "ParentNotDirectoryException", f"{parent(target)} is not a directory.")
        self._paths.may_take_out(user, source)
        self._paths.may_change_in(user, parent(target))
        there = self._paths.find(target)
        if there is not None:
            self._may_replace(user, found, there, target, overwrite)
        self._move(source, target)

    def _may_replace(
        self, user: str, found: os.stat_result, there: os.stat_result, target: str, overwrite: bool
    ) -> None:
        if not overwrite:
            raise HttpProblem(
                403, "FileAlreadyExistsException", f"rename destination {target} already exists."
            )
        if stat.S_ISDIR(there.st_mode) != stat.S_ISDIR(found.st_mode):
            raise HttpProblem(403, "IOException", "Source and destination must both be directories or files")
        if stat.S_ISDIR(there.st_mode) and os.listdir(self._paths.at(target)):
            raise HttpProblem(403, "IOException", f"rename destination directory is not empty: {target}")
        self._paths.may_take_out(user, target)

    def _move(self, source: str, target: str) -> None:
        self.owners.copy(source, target)
        os.rename(self._paths.at(source), self._paths.at(target))
        self.owners.drop(source)

    def set_mode(self, user: str, path: str, mode: int) -> None:
        """Set the permission bits: the owner may."""
        owned = self._own(user, path)
        self.owners.put(path, Owned(owned.owner, mode & 0o1777))

    def set_owner(self, user: str, path: str, owner: str) -> None:
        """Change a path's owner: the superuser may."""
        owned = self._own(user, path)
        if user != self.owners.superuser:
            raise denied(user, "Non-super user cannot change owner", path)
        self.owners.put(path, Owned(owner or owned.owner, owned.mode))

    def set_modified(self, user: str, path: str, at_ms: int) -> None:
        """Set the modification time, ms since the epoch; requires write access."""
        self._paths.reach(user, path)
        found = self._paths.must(path)
        self._paths.may(user, path, found, WRITE)
        os.utime(self._paths.at(path), ns=(found.st_atime_ns, at_ms * 1_000_000))

    def _own(self, user: str, path: str) -> Owned:
        self._paths.reach(user, path)
        found = self._paths.must(path)
        owned = self.owners.of(path, stat.S_ISDIR(found.st_mode))
        if user not in (owned.owner, self.owners.superuser):
            raise denied(user, "is not the owner of inode", path)
        return owned

    def _status(self, path: str, name: str, found: os.stat_result) -> dict[str, Any]:
        is_folder = stat.S_ISDIR(found.st_mode)
        owned = self.owners.of(path, is_folder)
        return {
            "accessTime": 0 if is_folder else found.st_mtime_ns // 1_000_000,
            "blockSize": 0 if is_folder else BLOCK_BYTES,
            "childrenNum": len(os.listdir(self._paths.at(path))) if is_folder else 0,
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
