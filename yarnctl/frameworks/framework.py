"""The interface of a framework; an order lets its containers leave.

MapReduce is not one of them: its tasks are suspended by the task runner (:mod:`yarnctl.attach`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from yarnctl.attach.connection.application_guard import ReadAnswer
from yarnctl.attach.connection.connection import Attachment, Connection
from yarnctl.attach.eligibility.permission import Permission
from yarnctl.attach.eligibility.settings_reader import Consent, ExecutorReader
from yarnctl.attach.observing.cluster_state import Held, LiveContainers
from yarnctl.attach.observing.victims import TASKS, LeavingObserver, ObservedVictim, Victim, victims_of
from yarnctl.attach.orders.performing import LeavingOrders
from yarnctl.deciding.model import ChangeKind
from yarnctl.hadoop.proxied import Absent
from yarnctl.restoring.restorer import Restorer, ReversibleSetting

Value = TypeVar("Value")


class Parts(NamedTuple):
    """The parts of a port that a framework uses.

    ``reader``: the results of the framework's consent. ``are_leaving``: whether containers of an application
    are under order.
    """

    connection: Connection
    live: LiveContainers
    reader: ExecutorReader
    permission: Permission
    restorer: Restorer
    are_leaving: Callable[[str], bool]


def observed(
    parts: Parts,
    victims: Sequence[str],
    look: Callable[[str], Value | Absent],
    make: Callable[[str, Held, ReadAnswer[Value]], Victim],
) -> dict[str, ObservedVictim]:
    """Return each application's tasks, from what ``look`` reads; one left alone shows no task."""
    ours = [name for name in victims if name in parts.reader.allowed]
    held = parts.live.observe(ours)
    looks = parts.connection.guard.read_each(TASKS, lambda name, _: look(name), ours)
    found: dict[str, ObservedVictim] = {name: Victim((), None) for name in victims}
    return found | victims_of(held, looks, make)


class Connected(NamedTuple):
    """A framework on one cluster; ``settings``: what it lowers for a while, by the kind of the change."""

    observer: LeavingObserver
    orders: LeavingOrders
    settings: Mapping[ChangeKind, ReversibleSetting]


class Framework(Protocol):
    """One framework. ``KIND``: YARN's type of its applications, in capitals."""

    KIND: str

    def consent(self, attachment: Attachment) -> Consent:
        """Return the rules by which its applications may have containers drained."""

    def is_name(self, application: str, name: str) -> bool:
        """Return whether a name of an order is that of a container, or executor, of an application."""

    def connect(self, parts: Parts) -> Connected:
        """Return the framework on one cluster; nothing is sent."""
