"""The checkpoint store as the runner's own code reads it, through our WebHDFS client.

Law: reading only. The runner's functions (``find_checkpoint``, ``read_manifest``) work on its ``Store``; this
one answers them from :class:`WebHdfs`, which knows standbys, Kerberos and bounds. Sizes are bounded: of one
file, of a listing (by the client), and of all that is read in one look.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from yarnctl.errors import YarnctlError
from yarnctl.hadoop.http.problems import Missing
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs
from yarnctl.task_runner.runner.protocol.failures import StoreError, Unusable
from yarnctl.task_runner.runner.protocol.stores import SMALL_FILE_BYTES, Entry, Store


class SeenStore(Store):
    """The folder ``root`` of an HDFS, for looking. ``look_bytes``: so much is read of it in all."""

    def __init__(self, hdfs: WebHdfs, root: str, look_bytes: int | None = None) -> None:
        self.root = root.rstrip("/")
        self._hdfs = hdfs
        self._left_bytes = look_bytes

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
        """Give a small file's bytes; Unusable if the look has read enough already."""
        limit = SMALL_FILE_BYTES if self._left_bytes is None else min(SMALL_FILE_BYTES, self._left_bytes)
        if limit <= 0:
            raise Unusable(f"{path}: not read, there is too much to look at")
        try:
            data = self._hdfs.read(self._at(path), limit)
        except YarnctlError as error:
            raise StoreError(str(error)) from error
        if self._left_bytes is not None:
            self._left_bytes -= len(data)
        yield data

    def written_at_ms(self, path: str) -> int:
        """Return when a file was written, by the NameNode's clock; 0 if there is none or it does not say."""
        try:
            found = self._hdfs.find(self._at(path))
        except YarnctlError as error:
            raise StoreError(str(error)) from error
        return 0 if found is None else found.modified_at_ms

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root or "/"


def _entry(row: FileStatus, name: str) -> Entry:
    return Entry(name, row.length, row.owner, row.mode, row.kind == "DIRECTORY")
