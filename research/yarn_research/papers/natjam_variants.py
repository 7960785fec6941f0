"""Variants: where Natjam's own code differs from its paper, or the paper leaves a choice; for comparison.

Law: nothing uses a variant unless it is named. A plain ``Timing`` makes a plain cluster and a plain port; a
``VariantTiming`` names the choices, and each is one place in which the actor below differs from its parent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from emulator.cluster.app_master import AppMaster
from emulator.cluster.cluster import Cluster
from emulator.cluster.entities import Application, Container
from emulator.cluster.pending_tasks import PendingTasks
from emulator.cluster.task import key_end_ms, keys_done
from emulator.cluster.timing import Timing
from emulator.virtual.port import VirtualPort
from emulator.virtual.run import CLUSTERS, PORTS
from yarnctl.traces.job import Job

ResumeOrder = Literal["suspended first", "suspended last", "longest", "index"]
Estimate = Literal["exact", "legacy", "none"]


class VariantTiming(Timing, frozen=True, kw_only=True):
    """Spans with two more choices.

    ``resume_order``: which suspended reduce of a job resumes first: the one suspended first (as in
    section 3.2), last, the one with most work left, or by its index. ``estimate``: what a task's remaining
    time is taken for: exact; Hadoop's LegacyTaskRuntimeEstimator, elapsed time / progress with copy and sort
    as two thirds of it (facts, section 3); or not known, so that all tasks tie.
    """

    resume_order: ResumeOrder = "suspended first"
    estimate: Estimate = "exact"


def variant(
    timing: Timing, resume_order: ResumeOrder = "suspended first", estimate: Estimate = "exact"
) -> VariantTiming:
    """Return the same spans with other choices."""
    return VariantTiming(**msgspec.structs.asdict(timing), resume_order=resume_order, estimate=estimate)


class VariantPending(PendingTasks):
    """Brings suspended reduces back in another order."""

    __slots__ = ("_job", "_order", "_store")

    def __init__(self, master: AppMaster, ask: Callable[[int, int], object], order: ResumeOrder) -> None:
        super().__init__(ask, master.timing.resume_priority, master.store)
        self._job = master.job
        self._store = master.store
        self._order = order

    def add_reduce(self, task: int) -> None:
        """Ask for a reduce whose attempt has ended; queue its task by that order."""
        super().add_reduce(task)
        if task not in self._store or self._order == "suspended first":
            return
        waiting = self.unassigned[self._resume_priority]
        if self._order == "suspended last":
            waiting.rotate(1)
            return
        key = self._left_ms if self._order == "longest" else None
        ordered = sorted(waiting, key=key, reverse=key is not None)
        waiting.clear()
        waiting.extend(ordered)

    def _left_ms(self, task: int) -> int:
        """Return the work that a suspended reduce has left."""
        length_ms, keys = self._job.reduce_ms[task], self._job.reduce_keys[task]
        done = self._store[task].keys_done if task in self._store else 0
        return length_ms - key_end_ms(done, keys, length_ms)


class VariantMaster(AppMaster):
    """An AM that brings suspended reduces back in another order."""

    __slots__ = ()

    def __init__(self, job: Job, app: Application, host: Cluster, order: ResumeOrder) -> None:
        super().__init__(job, app, host)
        self.pending = VariantPending(self, self._ask, order)


class VariantCluster(Cluster):
    """A cluster whose masters are ``VariantMaster``."""

    timing: VariantTiming

    def master_of(self, job: Job, app: Application) -> AppMaster:
        """Return a new application's master."""
        return VariantMaster(job, app, self, self.timing.resume_order)


class VariantPort(VirtualPort):
    """A port that shows an estimate of a reduce's remaining time instead of the true one."""

    def _remaining_ms(self, container: Container, now_ms: int, keys: int) -> int:
        timing = self.cluster.timing
        assert isinstance(timing, VariantTiming)
        if timing.estimate == "exact":
            return super()._remaining_ms(container, now_ms, keys)
        if timing.estimate == "none":
            return 0
        return legacy_remaining_ms(container, now_ms, keys)


def legacy_remaining_ms(container: Container, now_ms: int, keys: int) -> int:
    """Return elapsed / progress - elapsed; copy and sort are two thirds of the progress once work begins."""
    elapsed_ms = max(0, now_ms - container.launched_at_ms)
    progress = (2 + keys_done(container, now_ms, keys) / keys) / 3 if now_ms >= container.work_at_ms else 1e-4
    return round(elapsed_ms / progress) - elapsed_ms


# Whoever has a VariantTiming has imported this module, a worker process that was sent one as well.
CLUSTERS[VariantTiming] = VariantCluster
PORTS[VariantTiming] = VariantPort
