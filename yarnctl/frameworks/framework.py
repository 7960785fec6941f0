"""The interface of a framework; an order lets its containers leave."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple, Protocol, TypeVar

from yarnctl.attach.connection.application_guard import ReadAnswer
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import Permission
from yarnctl.attach.observing.cluster_state import Held, LiveContainers
from yarnctl.attach.observing.victims import TASKS, ObservedVictim, Victim, victims_of
from yarnctl.attach.orders.connected import Connected
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.hadoop.proxied import Absent
from yarnctl.restoring.restorer import Restorer

Value = TypeVar("Value")


class Parts(NamedTuple):
    """The parts of a port that a framework uses.

    ``reasons``: why applications are left alone, of all frameworks. ``are_leaving``: whether containers of an
    application are under order.
    """

    connection: Connection
    live: LiveContainers
    reasons: dict[str, EligibilityReason]
    permission: Permission
    restorer: Restorer
    are_leaving: Callable[[str], bool]


def observed(
    parts: Parts,
    allowed: Container[str],
    victims: Sequence[str],
    look: Callable[[str], Value | Absent],
    make: Callable[[str, Held, ReadAnswer[Value]], Victim],
) -> dict[str, ObservedVictim]:
    """Return each application's tasks, from what ``look`` reads; without being ``allowed`` none."""
    ours = [name for name in victims if name in allowed]
    held = parts.live.observe(ours)
    looks = parts.connection.guard.read_each(TASKS, lambda name, _: look(name), ours)
    found: dict[str, ObservedVictim] = {name: Victim((), None) for name in victims}
    return found | victims_of(held, looks, make)


class Framework(Protocol):
    """One framework. ``KIND``: YARN's type of its applications, in capitals."""

    KIND: str

    def connect(self, parts: Parts) -> Connected:
        """Return the framework on one cluster; nothing is sent."""
