"""Is YARN itself preempting the victims? Then we stand aside: two hands on one lever only lose work.

Law: pure. What is not known counts as "it may be": not acting is always allowed (facts, section 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.attach.connection.settings import Attachment
from yarnctl.hadoop.wire.views import Leaf

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
INTRA_QUEUE = "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.enabled"
OBSERVE_ONLY = "yarn.resourcemanager.monitor.capacity.preemption.observe_only"
POLICY = "ProportionalCapacityPreemptionPolicy"


def why_aside(configuration: Mapping[str, str] | None, leaves: Iterable[Leaf], attachment: Attachment) -> str:
    """Return why nothing may be changed; "": free to act. ``configuration`` is the daemon's /conf."""
    if configuration is None:
        return "whether YARN preempts by itself is not known: its /conf has not been read"
    if not _is_on(configuration, MONITOR) or POLICY not in configuration.get(POLICIES, POLICY):
        return ""
    if _is_on(configuration, OBSERVE_ONLY):
        return ""
    victims = [leaf for leaf in leaves if attachment.is_victim(leaf.name)]
    if not victims:
        return f"YARN itself preempts ({MONITOR} is true), and which queues is not known: none has been seen"
    for leaf in victims:
        if leaf.queue.preemption_disabled is not True:
            return (
                f"YARN itself preempts {leaf.path} ({MONITOR} is true); set disable_preemption=true for "
                "that queue, or the monitor to false"
            )
        if _is_on(configuration, INTRA_QUEUE) and leaf.queue.intra_queue_preemption_disabled is not True:
            return (
                f"YARN itself preempts within {leaf.path} ({INTRA_QUEUE} is true); set "
                "intra-queue-preemption.disable_preemption=true for that queue"
            )
    return ""


def _is_on(configuration: Mapping[str, str], name: str) -> bool:
    return configuration.get(name, "false").strip().lower() == "true"
