"""Run one pass of the loop: observe, step, write the journal, then act; three hosts use this one body.

Records are in the journal before the first action they explain is performed. The controller does not
distinguish the hosts (virtual time, live emulator, real cluster): what a host cannot do is in its
capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Protocol

import msgspec

from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Action, Observation, ObservationRequest, Outcome
from yarnctl.deciding.records import Record


class ClusterIdentity(msgspec.Struct, frozen=True):
    """Which cluster answers. ``epoch`` changes with every new ResourceManager.

    Capabilities: ``releases-itself`` (a checkpointed task ends its own container, as in Natjam's
    patched Hadoop; the controller then never sends Release).
    """

    epoch: str
    node_count: int
    capabilities: frozenset[str] = frozenset()


class ClusterPort(Protocol):
    """A cluster. Calls may block for a bounded time; none raises for a fault of the cluster."""

    def identify(self) -> ClusterIdentity:
        """Return which cluster answers and what it can do."""

    def observe(self, request: ObservationRequest) -> Observation:
        """Observe what ``request`` names; return it with the facts since the last call, in order."""

    def perform(self, action: Action) -> Outcome:
        """Perform one action; only a later fact proves its effect."""


class Journal(Protocol):
    """The destination of records. ``append`` returns when they are safe."""

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""


Performer = Callable[[Sequence[Action]], Generator[Outcome, None, None]]
"""Performs the actions of a step and yields their outcomes, in the order of the actions."""


def one_by_one(port: ClusterPort) -> Performer:
    """Return what performs actions one after the other: each when the outcome before it was taken."""
    return lambda actions: (port.perform(action) for action in actions)


def tick(
    controller: Controller, port: ClusterPort, journal: Journal, performer: Performer | None = None
) -> int:
    """Run one step against a port; return when to call again (ms of its clock; not later: at once).

    ``performer`` performs the step's actions (None: one after the other).
    """
    step = controller.step(port.observe(controller.to_observe))
    if step.records:
        journal.append(step.records)
    with closing((performer or one_by_one(port))(step.actions)) as outcomes:
        for action, outcome in zip(step.actions, outcomes, strict=True):
            journal.append(controller.settle(action, outcome))
    return step.wake_at_ms
