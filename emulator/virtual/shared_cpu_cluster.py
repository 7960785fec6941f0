"""A small real cluster in virtual time: its nodes stand on few machines, whose launches share their cores.

Law: nothing is decided here either; what differs from ``Cluster`` is when messages are sent. Large clusters
pay nothing for it: whoever has a plain ``Timing`` and no ``CrowdedTiming`` gets a plain ``Cluster``.
"""

from __future__ import annotations

from typing import Any

from emulator.cluster.app_master import AppMaster
from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import RELEASED, Application, Container
from emulator.cluster.timing import CrowdedTiming, Timing
from emulator.virtual.natjam_variants import VariantCluster, VariantTiming
from emulator.virtual.shared_cpu_master import CrowdedMaster, crowds
from emulator.workload.job import Job


class CrowdedCluster(Cluster):
    """A cluster whose ``timing`` is a ``CrowdedTiming``; all else is as for ``Cluster``."""

    def __init__(self, *, nodes: int, timing: CrowdedTiming, **other: Any) -> None:
        super().__init__(nodes=nodes, timing=timing, **other)
        self.small = timing
        self.linger_ms = timing.am_linger_ms
        self.crowds = crowds(self.kernel, timing, nodes)

    def master_of(self, job: Job, app: Application) -> AppMaster:
        """Return a new application's master."""
        return CrowdedMaster(job, app, self, self.small, self.crowds)

    def exit(self, container: Container, at_ms: int) -> None:
        """A process is gone at ``at_ms``: its node says so at its next heartbeat, or has one at once."""
        node = container.node
        silent = node.dead or node.lost or at_ms < node.silent_until_ms
        if not self.small.beats_at_exit or silent or container.state == RELEASED:
            super().exit(container, at_ms)
            return
        container.exit_at_ms = at_ms
        node.exited += (container,)
        # What ends at the very instant of a beat that has been is told by the next one.
        self._at(max(at_ms, node.beat_at_ms + 1), self._on_beat, node)


def cluster_of(timing: Timing, **other: Any) -> Cluster:
    """Return the cluster that such spans are of; ``other``: as for ``Cluster``."""
    if isinstance(timing, VariantTiming):
        return VariantCluster(timing=timing, **other)
    if isinstance(timing, CrowdedTiming):
        return CrowdedCluster(timing=timing, **other)
    return Cluster(timing=timing, **other)
