"""Faults as scenario data: what goes wrong, where and when.

Law: a fault is a value with a time; the cluster plays it like any other event, so that a
scenario with faults is as repeatable as one without.
"""

from __future__ import annotations

import msgspec


class NodeLost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="node-lost"):
    """The node fails at ``at_ms`` and does not return."""

    at_ms: int
    node: int


class NodeSlow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="node-slow"):
    """Attempts launched on the node from ``at_ms`` to ``until_ms`` take ``ratio`` times as long."""

    at_ms: int
    until_ms: int
    node: int
    ratio: float


class HeartbeatLost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="heartbeat-lost"):
    """The node's heartbeats between ``at_ms`` and ``until_ms`` do not arrive.

    The node is not lost, however long: that is another fault.
    """

    at_ms: int
    until_ms: int
    node: int


class TaskDead(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="task-dead"):
    """At ``at_ms`` one running attempt of the job fails: the ``pick``-th, counted round."""

    at_ms: int
    job: int
    pick: int


class MasterDead(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="master-dead"):
    """The job's AM fails at ``at_ms`` and is started again."""

    at_ms: int
    job: int


class StoreDown(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="store-down"):
    """Checkpoints cannot be written between ``at_ms`` and ``until_ms``."""

    at_ms: int
    until_ms: int


Fault = NodeLost | NodeSlow | HeartbeatLost | TaskDead | MasterDead | StoreDown
