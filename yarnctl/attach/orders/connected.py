"""What a connected framework gives to the port: its reader of settings, its observer and its orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.eligibility.settings_reader import SettingsReader
from yarnctl.attach.observing.cluster_state import Held
from yarnctl.attach.observing.victims import ObservedVictim
from yarnctl.deciding.model import ChangeKind, Ending, Fact, OrderAction, Outcome
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.hadoop.proxied import Absent
from yarnctl.restoring.restorer import ReversibleSetting


class TrackedOrder(msgspec.Struct):
    """One order and what has been observed of it. Times in ms of the port's clock, 0: not yet.

    ``name`` is the order's on the cluster (``Attachment.name_of``), ``kind`` its framework's, ``note`` the
    last message about it. ``others``: container -> node of all containers at the time of the order, where the
    application chooses which leave; ``left``: the one that has fulfilled it ("": none yet).
    """

    order: str
    name: str
    kind: str
    application: str
    attempt: str
    container: str
    generation: int
    verb: str
    node: str = ""
    note: str = ""
    ordered_at_ms: int = 0
    released_at_ms: int = 0
    killed_at_ms: int = 0
    ended_seen_at_ms: int = 0
    ended: bool = False
    left: str = ""
    others: dict[str, str] = {}


class Removal(NamedTuple):
    """Why a container left, in its application's words, and whether it left well, as after an order.

    ``otherwise``: how it ended if it did not leave well, or without being released.
    """

    why: str
    is_drained: bool
    otherwise: Ending = "failed"


RemoveReason = Removal | Absent | Problem | None  # None: the application still lists it


class LeavingObserver(Protocol):
    """Observes applications of one framework; an order lets their containers leave."""

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        """Observe applications; a Problem for one that does not answer. One left alone shows no task."""

    def remove_reasons(self, wanted: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        """Return order -> why its container left."""


class LeavingOrders(Protocol):
    """The orders to applications of one framework; methods raise as the clients do."""

    def is_name(self, application: str, name: str) -> bool:
        """Return whether a name of an order is that of a container, executor or task of an application."""

    def perform(self, action: OrderAction, tracked: TrackedOrder) -> Outcome:
        """Perform an action of one of the reader's verbs, once."""


class SavedWork(Protocol):
    """What happens to tasks that save their work before they leave, and resume it later."""

    def poll(self, running: Sequence[TrackedOrder], seen: Mapping[str, Held | Problem]) -> list[Fact]:
        """Return the facts about saved work since the last poll; ``seen``: live containers."""

    def has_news(self, running: Sequence[TrackedOrder]) -> bool | None:
        """Return whether a poll would find saved work; None: none is awaited."""

    def left(self, tracked: TrackedOrder) -> None:
        """Note that a task has left as it was ordered to."""

    def resumed(self) -> Sequence[Fact]:
        """Return which tasks have resumed."""

    def expect(self, order: Order) -> None:
        """Poll for the resumption of the task of an order that was made before this port began."""

    def left_alone(self) -> dict[str, EligibilityReason]:
        """Return attempt -> why its task cannot save its work, as last observed."""

    def group_ms(self, attempt: str) -> int:
        """Return how long a task works on one part of its input, at whose end it can save; 0: not known."""

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""


class Connected(NamedTuple):
    """A framework on one cluster.

    ``settings``: what it lowers for a while, by the kind of the change. ``saved_work`` None: its containers
    save none. ``record``: what is kept of an order.
    """

    reader: SettingsReader[Any]
    observer: LeavingObserver
    orders: LeavingOrders
    settings: Mapping[ChangeKind, ReversibleSetting] = {}
    saved_work: SavedWork | None = None
    record: type[TrackedOrder] = TrackedOrder
