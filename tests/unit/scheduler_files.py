"""Files of queues: the tree of docs/facts/hadoop.md, section 5, and how one is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from yarnctl.units import Resources

NESTED = {
    "maximum-am-resource-percent": "1",
    "root.queues": "eng, mkt, res",
    "root.ordering-policy": "priority-utilization",
    "root.eng.capacity": "40",
    "root.eng.queues": "prod,lab",
    "root.eng.ordering-policy": "utilization",
    "root.eng.prod.capacity": "60",
    "root.eng.prod.user-limit-factor": "10",
    "root.eng.lab.capacity": "40",
    "root.eng.lab.user-limit-factor": "10",
    "root.mkt.capacity": "30",
    "root.res.capacity": "30",
    "root.res.priority": "5",
    "root.res.ordering-policy": "fair",
    "root.res.user-limit-factor": "10",
}
"""Keys without their common beginning."""

USERS = {
    "root.queues": "eng,mkt,res,users",
    "root.mkt.capacity": "20",
    "root.users.capacity": "10",
    "root.users.auto-queue-creation-v2.enabled": "true",
}
"""A parent of 10 % that creates a queue for each user."""

LABELLED = {
    "root.accessible-node-labels.gpu.capacity": "100",
    "root.accessible-node-labels.ne.capacity": "100",
    "root.eng.accessible-node-labels.gpu.capacity": "100",
    "root.eng.prod.accessible-node-labels.gpu.capacity": "50",
    "root.eng.lab.accessible-node-labels.gpu.capacity": "50",
    "root.eng.lab.accessible-node-labels.gpu.maximum-capacity": "50",
    "root.eng.lab.default-node-label-expression": "gpu",
    "root.mkt.accessible-node-labels.ne.capacity": "100",
    "root.res.accessible-node-labels": "ne",
}
"""An exclusive partition for eng, and a shared one for mkt."""

ABSOLUTE = {
    "root.eng.capacity": "[memory=4096,vcores=4]",
    "root.eng.prod.capacity": "[memory=1000,vcores=2]",
    "root.eng.lab.capacity": "[memory=3000, vcores=2]",
    "root.mkt.capacity": "[memory=2048,vcores=4]",
    "root.res.capacity": "[memory-mb=2048,vcores=4]",
    "root.res.maximum-capacity": "[memory=3072,vcores=8]",
}


DOMINANT = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
MEMORY_ALONE = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"


def write_file(folder: Path, keys: Mapping[str, str]) -> Path:
    """Write a capacity-scheduler.xml of keys; one that begins with ``yarn.`` is written as it is.

    All resources are counted unless a key says otherwise.
    """
    keys = {"resource-calculator": DOMINANT, **keys}
    rows = "".join(
        f"\n<property><name>{key if key.startswith('yarn.') else 'yarn.scheduler.capacity.' + key}</name>"
        f"<value>{value}</value></property>"
        for key, value in keys.items()
    )
    path = folder / "capacity-scheduler.xml"
    path.write_text(f"<configuration>{rows}\n</configuration>", encoding="utf-8")
    return path


def pair(size: Resources) -> tuple[int, int]:
    """Return memory and vcores of a vector: the emulator's records take two numbers."""
    return size[0], size[1]
