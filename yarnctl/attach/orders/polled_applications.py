"""Choose the applications that are polled for containers while orders are open.

A container is a grant if an earlier poll of its application did not list it, so applications that may get one
are polled before it can be free. A kill frees it within one heartbeat; suspensions and drains take longer.
A preempting application that waits for nothing is polled only if its number of containers has changed. So a
container that it is given in the place of another one, within one look, is not seen as a grant.
"""

from __future__ import annotations

from collections.abc import Iterable

from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.observing.cluster_state import LiveContainers
from yarnctl.attach.orders.tracking import OrderTracking


class PolledApplications:
    """The applications with containers in the last poll; none while no order is open."""

    def __init__(self, connection: Connection, live: LiveContainers, tracking: OrderTracking) -> None:
        self._connection = connection
        self._live = live
        self._tracking = tracking
        self._born: frozenset[str] = frozenset()
        self._lately: list[str] = []
        self.names: tuple[str, ...] = ()

    def clear(self) -> None:
        """Stop polling."""
        self.names = ()
        self._live.drop()

    def renew(self, requesters: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the applications to poll now, and those of them that are new since the last poll."""
        wanted, rows, lately = self._wanted(requesters), self._connection.rows, self._lately
        new = self._new(wanted)
        self._lately = self._waiting()
        victims = (one.application for one in self._tracking.orders.values())
        asking = {*victims, *requesters, *lately, *self._lately}
        polled = tuple(
            name
            for name in wanted
            if name in asking or name not in rows or rows[name].containers != self._live.count(name)
        )
        self._live.drop(wanted)
        self.names = wanted
        return polled, new

    def list_before_kill(self) -> None:
        """List the containers of applications that may get a killed container and are not polled yet."""
        unlisted = tuple(name for name in self._wanted(()) if name not in self.names)
        self._live.remember(self._live.observe(unlisted))
        self._born = frozenset(self._connection.rows)
        self.names += unlisted

    def _wanted(self, requesters: Iterable[str]) -> tuple[str, ...]:
        """Return victims, all requesters (their grants settle orders), then others that wait or did lately.

        One that has stopped waiting since the last poll may have been granted what an order freed.
        """
        settings = self._connection.settings
        victims = dict.fromkeys(one.application for one in self._tracking.orders.values())
        rows = self._connection.rows.values()
        is_preempting = self._connection.queues.is_preempting
        preempting = [row.application for row in rows if is_preempting(row.queue)]
        gone = [name for name in self.names if name not in self._connection.rows]  # end not reported yet
        first = dict.fromkeys([*victims, *requesters, *gone])
        most = max(settings.tracked_max, len(first))
        return tuple(dict.fromkeys([*first, *preempting, *self._lately, *self._waiting()]))[:most]

    def _waiting(self) -> list[str]:
        """Return the applications with pending requests; one whose master waits has no ``uses`` in 3.4."""
        return [
            row.application
            for row in self._connection.rows.values()
            if (row.containers <= 0 if row.uses is None else row.uses.pending() > (0, 0))
        ]

    def _new(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        born, self._born = self._born, frozenset(self._connection.rows)
        if not self.names:
            return ()
        return tuple(name for name in wanted if name not in born and name not in self.names)
