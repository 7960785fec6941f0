"""The keys of a capacity-scheduler.xml that the emulator reads, and the values that mean what it does."""

from __future__ import annotations

import re

PREFIX = "yarn.scheduler.capacity."
KEPT = ("acl_", "disable_preemption", "intra-queue-preemption.disable_preemption")
"""Beginnings of keys that grant no container: they are shown. ``disable_preemption`` is read as well."""

CREATION = "auto-queue-creation-v2."
EXPIRY = f"{CREATION}queue-expiration-time"
CREATED_MAX = 1000
"""Most queues on demand: Hadoop's default."""

CALCULATOR = "resource-calculator"
_CALCULATORS = "org.apache.hadoop.yarn.util.resource."
DOMINANT = f"{_CALCULATORS}DominantResourceCalculator"
MEMORY_ALONE = f"{_CALCULATORS}DefaultResourceCalculator"

GENERAL = {
    "maximum-am-resource-percent": None,
    CALCULATOR: (DOMINANT, MEMORY_ALONE),
    "node-locality-delay": ("-1", "0", "40"),
    "rack-locality-additional-delay": ("-1", "0"),
    "maximum-applications": None,
    "user-limit-factor": ("1", "1.0"),
    "minimum-user-limit-percent": ("100",),
    "per-node-heartbeat.multiple-assignments-enabled": ("true",),
    "per-node-heartbeat.maximum-offswitch-assignments": ("1",),
    "per-node-heartbeat.maximum-container-assignments": ("-1", "100"),
    "reservations-continue-look-all-nodes": ("true",),
    "schedule-asynchronously.enable": ("false",),
    "application.fail-fast": ("false",),
    "queue-mappings": None,
    "queue-mappings-override.enable": ("true", "false"),
    EXPIRY: None,
    "workflow-priority-mappings": ("",),
    "workflow-priority-mappings-override.enable": ("false",),
    "max-parallel-apps": ("2147483647",),
    "user.max-parallel-apps": ("2147483647",),
    "legacy-queue-mode.enabled": ("true",),
    "user-metrics.enable": None,
}
"""General keys, and the values that mean what the emulator does (None: read, or kept without effect)."""

BOTH = {
    "capacity": None,
    "maximum-capacity": None,
    "ordering-policy": None,
    "priority": None,
    "state": None,
    "maximum-am-resource-percent": None,
    "minimum-user-limit-percent": None,
    "user-limit-factor": None,
    "accessible-node-labels": None,
    "default-node-label-expression": None,
    "max-parallel-apps": ("2147483647",),
    "maximum-applications": None,
    "maximum-application-lifetime": None,
    "default-application-lifetime": None,
    "default-application-priority": None,
    "ordering-policy.fair.enable-size-based-weight": ("false",),
    "auto-create-child-queue.enabled": ("false",),
    "auto-queue-creation-v2.enabled": ("true", "false"),
    "auto-queue-creation-v2.maximum-queue-depth": None,
    "auto-queue-creation-v2.max-queues": ("1000",),
    "auto-queue-creation-v2.queue-auto-removal.enable": ("true", "false"),
    "allow-zero-capacity-sum": ("false",),
    "reservable": ("false",),
    "queues": None,
}
"""Keys of one queue, and the values that mean what the emulator does (None: read, or kept without effect)."""

TEMPLATE = re.compile(
    r"^auto-queue-creation-v2\.(leaf-|parent-)?template\."
    r"(?!queues|auto-(?!queue-creation-v2\.queue-auto-removal\.enable$))"
)
"""The beginning of a key that a parent sets for queues that it creates."""

LABEL_KEY = re.compile(r"accessible-node-labels\.([A-Za-z0-9_-]{1,255})\.(maximum-)?capacity")

INSTEAD = {
    "mapping-rule-format": "use queue-mappings (u:USER:QUEUE,g:GROUP:QUEUE)",
    "mapping-rule-json": "use queue-mappings (u:USER:QUEUE,g:GROUP:QUEUE)",
    "auto-create-child-queue.enabled": "use auto-queue-creation-v2.enabled, with weights",
    "leaf-queue-template": "use auto-queue-creation-v2.leaf-template, with weights",
    "maximum-allocation": "remove it: no container larger than a node is granted",
}
"""What to do about keys, by their beginning without the queue, that the emulator does not model."""

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
TOLERANCE_PERCENT = 1e-3
