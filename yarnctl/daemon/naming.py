"""Naming: orders under names that no other yarnctl uses.

Law: a controller counts its orders from 1; on the cluster, in requests and manifests, each carries the
name of the daemon's own state directory in front, so that a checkpoint made for another daemon (or for
this one before its journal was lost) is never taken for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from yarnctl.deciding.ledger import Order
from yarnctl.deciding.model import (
    Action,
    CameBack,
    CameBackWithout,
    Fact,
    ManifestSeen,
    Observation,
    Outcome,
    Scope,
    SetPriority,
    SetQueueMaximum,
    Snapshot,
    UploadProgressed,
)
from yarnctl.deciding.queue_hold import QueueLimits
from yarnctl.port import ClusterIdentity, ClusterPort


class AdoptingPort(ClusterPort, Protocol):
    """A ClusterPort that can take over orders made before it began."""

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        """Take orders over."""
        ...

    def expect(self, orders: Iterable[Order]) -> None:
        """Look for the return of tasks that left by these orders."""
        ...

    def standing_aside(self) -> str:
        """Say why nothing may be changed now, or ""."""
        ...

    def ask_again(self, still: Callable[[], str]) -> None:
        """Have ``still`` asked right before an attempt is ended: why nothing may be done, or ""."""
        ...

    def look(self) -> Snapshot | None:
        """Show the cluster for people's sake; None if it cannot be seen."""
        ...

    def queue_limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Return a victim queue's path and configured limits, or why they cannot be known."""
        ...

    def queue_stands(self, path: str) -> float | str | None:
        """Return a queue's configured maximum, None if there is no such queue, or why it cannot be known."""
        ...


class NamedPort:
    """A port on which every order is called ``instance-order``."""

    def __init__(self, port: AdoptingPort, instance: str) -> None:
        self.port = port
        self._prefix = f"{instance}-"

    def identify(self) -> ClusterIdentity:
        """Say who answers."""
        return self.port.identify()

    def standing_aside(self) -> str:
        """Say why nothing may be changed now, or ""."""
        return self.port.standing_aside()

    def ask_again(self, still: Callable[[], str]) -> None:
        """Have ``still`` asked right before an attempt is ended: why nothing may be done, or ""."""
        self.port.ask_again(still)

    def look(self) -> Snapshot | None:
        """Show the cluster for people's sake; None if it cannot be seen."""
        return self.port.look()

    def queue_limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Return a victim queue's path and configured limits, or why they cannot be known."""
        return self.port.queue_limits(queue)

    def queue_stands(self, path: str) -> float | str | None:
        """Return a queue's configured maximum, None if there is no such queue, or why it cannot be known."""
        return self.port.queue_stands(path)

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        """Take over orders that were made before."""
        named = [msgspec.structs.replace(order, order=self._prefix + order.order) for order in orders]
        self.port.adopt(named, epoch)

    def expect(self, orders: Iterable[Order]) -> None:
        """Look for the return of tasks that left by orders that were made before."""
        self.port.expect([msgspec.structs.replace(one, order=self._prefix + one.order) for one in orders])

    def observe(self, scope: Scope) -> Observation:
        """Look; facts come back under our own names."""
        names = tuple(self._prefix + order for order in scope.orders)
        seen = self.port.observe(msgspec.structs.replace(scope, orders=names))
        return msgspec.structs.replace(seen, facts=tuple(self._ours(fact) for fact in seen.facts))

    def perform(self, action: Action) -> Outcome:
        """Act under the order's name on the cluster."""
        if isinstance(action, SetPriority | SetQueueMaximum):
            return self.port.perform(action)
        return self.port.perform(msgspec.structs.replace(action, order=self._prefix + action.order))

    def _ours(self, fact: Fact) -> Fact:
        if isinstance(fact, ManifestSeen | UploadProgressed | CameBack | CameBackWithout):
            return msgspec.structs.replace(fact, order=fact.order.removeprefix(self._prefix))
        return fact
