"""The border: all that the controller may see of a cluster, and all it may do to one.

Law: three hosts (virtual time, live emulator, real cluster) stand behind this one protocol and
the controller cannot tell them apart. What a host cannot do is said in its capabilities, never
found out by asking for its class.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from yarnctl.deciding.model import Action, Observation, Outcome, Scope


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
        ...

    def observe(self, scope: Scope) -> Observation:
        """Look at what ``scope`` names, and hand over the facts since the last call, in order."""
        ...

    def perform(self, action: Action) -> Outcome:
        """Carry out one action; only a later fact proves its effect."""
        ...
