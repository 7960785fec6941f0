"""The checkpoint store as the runner's own code reads it, through our WebHDFS client.

Law: reading only. The runner's functions (``find_checkpoint``, ``read_manifest``) work on its ``Store``; this
one answers them from :class:`WebHdfs`, which knows standbys, Kerberos and bounds. Sizes are bounded.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from yarnctl.errors import YarnctlError
from yarnctl.hadoop.problems import Missing
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs
from yarnctl.task_runner.yarnctl_task import SMALL_FILE_BYTES, Entry, Store, StoreError


class SeenStore(Store):
    """The folder ``root`` of an HDFS, for looking."""

    def __init__(self, hdfs: WebHdfs, root: str) -> None:
        self.root = root.rstrip("/")
        self._hdfs = hdfs

    def entry(self, path: str) -> Entry | None:
        """Return what is at ``path``, None if nothing."""
        try:
            found = self._hdfs.find(self._at(path))
        except YarnctlError as error:
            raise StoreError(str(error)) from error
        return None if found is None else _entry(found, path.rpartition("/")[2])

    def list(self, path: str) -> builtins.list[Entry]:
        """Return what is in a folder, nothing if there is none."""
        try:
            return [_entry(row, row.name) for row in self._hdfs.listing(self._at(path))]
        except Missing:
            return []
        except YarnctlError as error:
            raise StoreError(str(error)) from error

    def read(self, path: str) -> Iterator[bytes]:
        """Give a small file's bytes."""
        try:
            yield self._hdfs.read(self._at(path), SMALL_FILE_BYTES)
        except YarnctlError as error:
            raise StoreError(str(error)) from error

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root or "/"


def _entry(row: FileStatus, name: str) -> Entry:
    return Entry(name, row.length, row.owner, row.mode, row.kind == "DIRECTORY")
