"""Run one pass of the loop: observe, step, write the journal, then act; three hosts use this one body.

Records are in the journal before the first action they explain is performed. The controller does not
distinguish the hosts (virtual time, live emulator, real cluster): what a host cannot do is in its
capabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def tick(controller: Controller, port: ClusterPort, journal: Journal) -> int:
    """Run one step against a port; return when to call again (ms of its clock; not later: at once)."""
    step = controller.step(port.observe(controller.to_observe))
    if step.records:
        journal.append(step.records)
    for action in step.actions:
        journal.append(controller.settle(action, port.perform(action)))
    return step.wake_at_ms
