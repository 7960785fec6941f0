"""History: what a job has finished, in a file that the next attempt of its master reads.

Law: a line is appended once a task is done and its output in place; a torn last line is as if it had not been
written. What is not in the history is done again.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is done. ``index`` is a map's output; ``node`` where it ran; instants in ms."""

    kind: str
    task: int
    attempt: str
    container: str
    node: str
    node_http: str = ""
    started_at_ms: int = 0
    shuffled_at_ms: int = 0
    merged_at_ms: int = 0
    finished_at_ms: int = 0
    index: str = ""
    counters: dict[str, dict[str, int]] = {}


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    finished: Finished | None = None
    withdrawn_map: int | None = None


class History:
    """The history of one job, below its staging folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "history.jsonl"

    def read(self) -> dict[tuple[str, int], Finished]:
        """Return what is done, by kind and task; the last word on a task counts."""
        done: dict[tuple[str, int], Finished] = {}
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return done
        whole = data[: data.rfind(b"\n") + 1]
        for text in whole.splitlines():
            try:
                line = msgspec.json.decode(text, type=_Line)
            except msgspec.DecodeError:
                continue  # torn by a crash; what came after it is whole
            if line.finished is not None:
                done[line.finished.kind, line.finished.task] = line.finished
            elif line.withdrawn_map is not None:
                done.pop(("map", line.withdrawn_map), None)
        return done

    def finished(self, task: Finished) -> None:
        """Note that a task is done."""
        self._append(_Line(finished=task))

    def withdrawn(self, task: int) -> None:
        """Note that a map's output must not be used any more."""
        self._append(_Line(withdrawn_map=task))

    def _append(self, line: _Line) -> None:
        # A newline first: should the last line be torn, only that one is lost.
        torn = self._is_torn()
        with self.path.open("ab") as file:
            file.write((b"\n" if torn else b"") + msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _is_torn(self) -> bool:
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:
            return False
