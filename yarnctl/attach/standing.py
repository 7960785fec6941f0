"""Is YARN itself preempting the victims? Then we stand aside: two hands on one lever only lose work.

Law: pure. What is not known counts as "it may be": not acting is always allowed (facts, section 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.attach.settings import Attachment
from yarnctl.hadoop.views import Leaf

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
OBSERVE_ONLY = "yarn.resourcemanager.monitor.capacity.preemption.observe_only"
POLICY = "ProportionalCapacityPreemptionPolicy"


def why_aside(configuration: Mapping[str, str] | None, leaves: Iterable[Leaf], attachment: Attachment) -> str:
    """Return why nothing may be changed; "": free to act. ``configuration`` is the daemon's /conf."""
    if configuration is None:
        return "whether YARN preempts by itself is not known: its /conf has not been read"
    if configuration.get(MONITOR, "false").strip().lower() != "true":
        return ""
    policies = configuration.get(POLICIES, POLICY)
    if POLICY not in policies or configuration.get(OBSERVE_ONLY, "false").strip().lower() == "true":
        return ""
    for leaf in leaves:
        if attachment.is_victim(leaf.name) and leaf.queue.preemption_disabled is not True:
            return (
                f"YARN itself preempts {leaf.path} ({MONITOR} is true); set disable_preemption=true for "
                "that queue, or the monitor to false"
            )
    return ""
