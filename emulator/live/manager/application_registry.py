"""The register of applications: ids, what runs, and the last that are over.

Law: an id is given out once and in order; what is over stays listed up to a number, as with YARN's
max-completed-applications, and never comes back.
"""

from __future__ import annotations

from emulator.cluster.entities import Application
from emulator.live.manager.state import AppRecord


class Refused(Exception):
    """A client's request that YARN refuses, in YARN's words."""


class Register:
    """``unfinished`` and ``finished`` are by id, in the order of submission and of ending."""

    def __init__(self, epoch: int, finished_kept: int) -> None:
        self.unfinished: dict[str, AppRecord] = {}
        self.finished: dict[str, AppRecord] = {}
        self._epoch = epoch
        self._kept = finished_kept
        self._next_number = 1
        self._of_number: dict[int, AppRecord] = {}

    def new_id(self) -> str:
        """Return an application id that nobody has."""
        number = self._next_number
        self._next_number += 1
        return f"application_{self._epoch}_{number:04d}"

    def number_of(self, application: str) -> int:
        """Return the number in an id that was given out here. Raises Refused."""
        head, _, tail = application.rpartition("_")
        number = int(tail) if tail.isascii() and tail.isdigit() and len(tail) < 10 else 0
        given = 0 < number < self._next_number and tail == f"{number:04d}"
        if head != f"application_{self._epoch}" or not given:
            raise Refused(f"{application} was not given out by this ResourceManager")
        return number

    def add(self, app: AppRecord) -> None:
        """Take in an application."""
        self.unfinished[app.id] = self._of_number[app.number] = app

    def finish(self, app: AppRecord) -> None:
        """An application is over; the oldest of too many is forgotten."""
        del self.unfinished[app.id]
        self.finished[app.id] = app
        while len(self.finished) > self._kept:
            oldest = next(iter(self.finished))
            del self._of_number[self.finished.pop(oldest).number]

    def find(self, application: str) -> AppRecord | None:
        """Return an application, finished or not."""
        return self.unfinished.get(application) or self.finished.get(application)

    def of(self, actor: Application) -> AppRecord:
        """Return the record of the actor's application."""
        return self._of_number[actor.number]

    def attempt_id(self, app: AppRecord, attempt: int) -> str:
        """Return an attempt's id as YARN writes it."""
        return f"appattempt_{self._epoch}_{app.number:04d}_{attempt:06d}"

    def container_id(self, app: AppRecord, attempt: int, number: int) -> str:
        """Return a container's id as YARN writes it."""
        return f"container_{self._epoch}_{app.number:04d}_{attempt:02d}_{number:06d}"
