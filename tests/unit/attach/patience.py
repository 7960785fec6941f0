"""Looks that end by what has answered, and not by a clock."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from typing import Any

from yarnctl.attach.port import AttachedPort


class Hangs:
    """From now on the looks of a port wait for all but what one application is read for, or changed in.

    ``kind``: the first word of that; "": whatever it is.
    """

    def __init__(self, port: AttachedPort, application: str, kind: str = "") -> None:
        self.guard = port._connection.guard
        self.guard.wait = self.wait
        self.application = application
        self.kind = kind

    def wait(self, futures: Collection[Future[Any]], _span_ms: int) -> object:
        hanging = self.futures(lambda one, purpose: one == self.application and purpose.startswith(self.kind))
        return wait([each for each in futures if each not in hanging])

    def futures(self, chosen: Callable[[str, str], bool]) -> list[Future[Any]]:
        """Return what is under way of applications and purposes."""
        with self.guard._lock:
            applications = list(self.guard._applications.values())
            reads = [
                (one.name, read.purpose, read.done) for one in applications for read in one.reads.values()
            ]
            changes = [
                (one.name, purpose, each.sent)
                for one in applications
                for purpose, each in one.changes.items()
            ]
        return [future for name, purpose, future in (*reads, *changes) if chosen(name, purpose)]

    def until_idle(self) -> None:
        wait(self.futures(lambda _name, _purpose: True))
