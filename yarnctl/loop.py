"""The loop body: observe, step, write down, then do.

Law: this is the only body. The virtual kernel calls it as an event, the daemon after waiting;
records are in the journal before the first action they explain is performed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from yarnctl.deciding.controller import Controller
from yarnctl.deciding.records import Record
from yarnctl.port import ClusterPort


class Journal(Protocol):
    """Where records go. ``append`` returns when they are safe."""

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""
        ...


def tick(controller: Controller, port: ClusterPort, journal: Journal) -> int:
    """Run one step against a port; return when to call again, in ms of the port's clock.

    A return value that is not later than the observation's own instant means "at once".
    """
    step = controller.step(port.observe(controller.scope))
    if step.records:
        journal.append(step.records)
    for action in step.actions:
        journal.append(controller.settle(action, port.perform(action)))
    return step.wake_at_ms
