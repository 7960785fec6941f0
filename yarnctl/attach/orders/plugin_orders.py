"""Orders to the plugin in a driver of Spark: numbered files in the daemon's own folder in HDFS.

An order is written to a temporary file and renamed. Its name has its number, its kind and its decision, so
that the same order is written once even if it is performed repeatedly. The folder's name has the start time
of the driver: a later attempt never reads it (``submitting/spark_plugin/Leave.java``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from yarnctl.hadoop.http.answers import ExistsAlready, Missing
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire.spark_rest import START

FOLDER_MODE, FILE_MODE = 0o755, 0o644
_ORDER = re.compile(r"([0-9]{9})-([a-z]+)-([A-Za-z0-9._-]{1,80})\.order")
_START = re.compile(r"[0-9]{1,19}")
TRIES = 3  # Attempts to write an order: another request of the daemon may use a number first


class PluginOrders:
    """Writes orders below ``root``; raises as the client of HDFS does."""

    def __init__(self, hdfs: WebHdfs, root: str) -> None:
        self._hdfs = hdfs
        self._root = root.rstrip("/")

    def leave(
        self,
        application: str,
        start: str,
        executors: Sequence[str],
        decision: str,
        may_write: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Order executors, by their numbers, to leave together; ``may_write`` is asked right before.

        False: it may not, and no order was written.
        """
        text = f"leave {' '.join(executors)}\n"
        return self._write(application, start, "leave", decision, text, may_write)

    def back(self, application: str, start: str, decisions: Sequence[str]) -> None:
        """Order the driver to request as many executors as left by these decisions."""
        text = f"back {' '.join(decisions)}\n"
        self._write(application, start, "back", decisions[-1], text, lambda: True)

    def has_back(self, application: str, start: str, decisions: Sequence[str]) -> bool:
        """Return whether the order to request executors again is written."""
        names = self._names(f"{self._root}/{application}/driver-{start}")
        return any(name.endswith(f"-back-{decisions[-1]}.order") for name in names)

    def _write(
        self,
        application: str,
        start: str,
        kind: str,
        decision: str,
        text: str,
        may_write: Callable[[], bool],
    ) -> bool:
        folder = f"{self._root}/{application}/driver-{start}"
        self._hdfs.make_directories(folder, FOLDER_MODE)
        beside = f"{folder}/.{kind}-{decision}.tmp"
        for _ in range(TRIES):
            found = [match for name in self._names(folder) if (match := _ORDER.fullmatch(name))]
            if any((match[2], match[3]) == (kind, decision) for match in found):
                return True
            number = max((int(match[1]) for match in found), default=0) + 1
            self._hdfs.create(beside, text.encode("ascii"), mode=FILE_MODE, overwrite=True)
            if not may_write():
                break
            try:
                self._hdfs.rename(beside, f"{folder}/{number:09d}-{kind}-{decision}.order")
                return True
            except ExistsAlready:
                continue
        self._hdfs.delete(beside)
        if not may_write():
            return False
        raise ExistsAlready(f"{folder}: another daemon writes orders here; {TRIES} attempts failed")

    def _names(self, folder: str) -> list[str]:
        try:
            return [row.name for row in self._hdfs.listing(folder)]
        except Missing:
            return []


def start_of(settings: Mapping[str, str]) -> str:
    """Return the start time of a driver by its settings, as text in ms; "" if they do not have it."""
    start = settings.get(START, "")
    return start if _START.fullmatch(start) else ""
