"""Which applications are polled for containers while orders are open.

Law: a container is a grant if an earlier poll of its application did not list it. So the first poll of who
may be given room comes before the room can be free: a kill frees it within one heartbeat, before the next
poll; a suspension and the leaving of an executor take longer than that.
"""

from __future__ import annotations

from collections.abc import Iterable

from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.observing.cluster_state import LiveContainers
from yarnctl.attach.orders.tracking import OrderTracking


class PolledApplications:
    """The applications whose containers were listed by the last poll: none while no order is open."""

    def __init__(self, link: Connection, live: LiveContainers, tracking: OrderTracking) -> None:
        self._link = link
        self._live = live
        self._tracking = tracking
        self._born: frozenset[str] = frozenset()
        self.names: tuple[str, ...] = ()

    def clear(self) -> None:
        """Stop polling."""
        self.names = ()
        self._live.drop()

    def renew(self, askers: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the applications to poll now, and which of them are new since others were polled."""
        wanted = self._wanted(askers)
        new = self._new(wanted)
        self._live.drop(wanted)
        self.names = wanted
        return wanted, new

    def list_before_kill(self) -> None:
        """List the containers of those that may be given the room of a kill and are not polled yet."""
        unlisted = tuple(name for name in self._wanted(()) if name not in self.names)
        self._live.grants(self._live.observe(unlisted), ())
        self._born = frozenset(self._link.rows)
        self.names += unlisted

    def _wanted(self, askers: Iterable[str]) -> tuple[str, ...]:
        """Return victims, askers, then others with pending asks.

        Askers are polled however many they are: their grants settle the orders.
        """
        settings = self._link.settings
        victims = dict.fromkeys(one.application for one in self._tracking.orders.values())
        rows = self._link.rows.values()
        is_preempting = self._link.queues.is_preempting
        hurried = [row.application for row in rows if is_preempting(row.queue)]
        waiting = [row.application for row in rows if row.uses is not None and row.uses.pending() > (0, 0)]
        gone = [name for name in self.names if name not in self._link.rows]  # end not reported yet
        first = dict.fromkeys([*victims, *askers, *gone])
        most = max(settings.tracked_max, len(first))
        return tuple(dict.fromkeys([*first, *hurried, *waiting]))[:most]

    def _new(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Return those that did not exist while others were polled already: all their containers are new."""
        born, self._born = self._born, frozenset(self._link.rows)
        if not self.names:
            return ()
        return tuple(name for name in wanted if name not in born and name not in self.names)
