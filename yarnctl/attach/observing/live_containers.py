"""The live containers of applications, and who was given a new one since the last look.

Law: the ResourceManager's list is what counts: a container that is not in it is gone and its room is free
again. An application whose list is empty is asked for its state, so that "ended" is never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from yarnctl.attach.connection.connection import Connection, Problem
from yarnctl.hadoop.http.problems import Missing
from yarnctl.hadoop.resource_manager import ENDED
from yarnctl.hadoop.wire import yarn

RESERVED = "RESERVED"


class Held(NamedTuple):
    """What an application holds. ``ended``: it has reached a terminal state."""

    containers: dict[str, yarn.ContainerRow]
    ended: bool = False


class Grant(NamedTuple):
    """A container that is new."""

    application: str
    container: yarn.ContainerRow


class LiveContainers:
    """Asks for live containers; remembers each application's current attempt."""

    def __init__(self, link: Connection) -> None:
        self._manager = link.manager
        self._calls = link.calls
        self._attempts: dict[str, str] = {}
        self._known: dict[str, set[str]] = {}

    def look(self, applications: Iterable[str]) -> dict[str, Held | Problem]:
        """Return what each application holds now."""
        return self._calls.each(self.of, applications)

    def of(self, application: str) -> Held:
        """Return what one application holds now; raises as the client does."""
        rows: tuple[yarn.ContainerRow, ...] = ()
        attempt = self._attempts.get(application)
        if attempt is not None:
            rows = self._listed(application, attempt)
        if not rows:
            newest = self._newest(application)
            if newest is not None and newest != attempt:
                self._attempts[application] = newest
                rows = self._listed(application, newest)
        if rows:
            return Held({row.container: row for row in rows if row.state != RESERVED})
        return Held({}, ended=self._ended(application))

    def _listed(self, application: str, attempt: str) -> tuple[yarn.ContainerRow, ...]:
        try:
            return self._manager.containers(application, attempt)
        except Missing:
            return ()

    def _newest(self, application: str) -> str | None:
        try:
            attempts = self._manager.app_attempts(application)
        except Missing:
            return None
        return attempts[-1].attempt if attempts else None

    def _ended(self, application: str) -> bool:
        try:
            return self._manager.state(application) in ENDED
        except Missing:
            return False  # unknown is not finished

    # --- what is new --------------------------------------------------------------------------

    def grants(self, seen: dict[str, Held | Problem], new: Iterable[str]) -> list[Grant]:
        """Return the containers that were not there at the last look, by application and id.

        The first look at an application only remembers, unless it is one of ``new``, which did not
        exist while others were watched: whatever those hold is new.
        """
        fresh = set(new)
        found: list[Grant] = []
        for application, held in sorted(seen.items()):
            if isinstance(held, Problem):
                continue
            before = self._known.get(application)
            if before is None and application in fresh:
                before = set()
            if before is not None:
                added = sorted(set(held.containers) - before)
                found += [Grant(application, held.containers[name]) for name in added]
            self._known[application] = set(held.containers)
        return found

    def forget(self, keep: Iterable[str] = ()) -> None:
        """Stop watching all but ``keep``."""
        kept = set(keep)
        self._known = {name: held for name, held in self._known.items() if name in kept}

    def forget_attempts(self, applications: Iterable[str]) -> None:
        """Forget the attempts of applications that are no more."""
        for name in applications:
            self._attempts.pop(name, None)
