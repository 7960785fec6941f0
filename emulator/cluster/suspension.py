"""Suspending in the emulator: what happens between the request and the freed container.

Law: the attempt finishes the key it is in, saves everything before that border, and only then
may its container go. Until the manifest is written nothing is given up; a request that is
withdrawn, or never followed by a release, leaves the attempt working.

::

    asked ── next report / heartbeat ──► draining ── key ends, upload ──► holding ──► released
      └── withdrawn: continues            └── withdrawn: saves,             ├── withdrawn, or wait over:
                                              then continues              │   restarted in place
                                                                            └── (releases itself: Natjam)

A task runner reads a withdrawal as it reads the request: when the doorbell is rung, at its node's next
heartbeat. It does not break off what it is saving: its child has ended by then, and must be restarted anyway.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from emulator.cluster import entities
from emulator.cluster.app_master import AppMaster
from emulator.cluster.kernel import Kernel
from emulator.cluster.resource_manager import ResourceManager, attempt_id
from emulator.cluster.task import SavedReduce, checkpointable, drained
from emulator.cluster.timing import Timing
from yarnctl.deciding.draws import uniform
from yarnctl.deciding.model import Accepted, ManifestSeen, Outcome, Refused, UploadProgressed
from yarnctl.deciding.reasons.outcomes import EndedOrForeign, MasterDown, NotInReducePhase, NoValidManifest

STORE_RETRY_MS = 1000


class SuspendRequest(NamedTuple):
    """One suspend of one container; ``token`` distinguishes it from an earlier one that was withdrawn."""

    container: entities.Container
    token: int


class SuspensionHost(Protocol):
    """What the task runners need of the cluster that they run in: ``cluster.Cluster`` is one."""

    seed: int
    kernel: Kernel
    timing: Timing
    rm: ResourceManager

    def store_down(self, now_ms: int) -> bool:
        """Return whether the checkpoint store is unavailable."""


class Suspension:
    """The task runners of a cluster, as far as suspending goes."""

    def __init__(self, host: SuspensionHost) -> None:
        self.host = host
        self.kernel = host.kernel
        self.timing = host.timing
        self.checkpoints = 0
        self._withdrawn: set[str] = set()
        self._recalled: set[str] = set()

    def request(self, container: entities.Container, order: str) -> Outcome:
        """Ask an attempt to save and stop."""
        master: AppMaster = container.app.master
        now_ms = self.kernel.now_ms
        if container.order == order:
            return Accepted()
        if not master.alive:
            return Refused(MasterDown())
        if not checkpointable(container, now_ms, self.timing.task_commit_ms):
            return Refused(NotInReducePhase())
        container.order = order
        container.stage = entities.REQUESTED
        container.release_wait_token += 1
        container.node.watched = True
        if container.node.dead:
            return Accepted()  # The node's failure is not detected yet; the request is never delivered.
        at_ms = self._notified_at_ms(container, master, now_ms)
        self.kernel.at(at_ms, self._notified, SuspendRequest(container, container.release_wait_token))
        return Accepted()

    def _notified_at_ms(self, container: entities.Container, master: AppMaster, now_ms: int) -> int:
        timing = self.timing
        if timing.trigger == "signal":
            node: entities.Node = container.node
            return node.next_beat_ms(now_ms + 1, timing.nm_heartbeat_ms)
        interval_ms = timing.am_heartbeat_ms
        beat_ms = now_ms + interval_ms - (now_ms - master.phase_ms) % interval_ms
        return beat_ms + (uniform(self.host.seed, 1, container.number) * timing.suspend_poll_ms >> 64)

    def _notified(self, request: SuspendRequest) -> None:
        container = request.container
        if container.release_wait_token != request.token or container.state != entities.RUNNING:
            return
        master: AppMaster = container.app.master
        keys, now_ms = master.job.reduce_keys[container.task], self.kernel.now_ms
        to_key, drained_ms = drained(container, now_ms, self.timing.drain_ms, keys)
        if to_key >= keys:
            return  # Nothing is left to save: it completes by itself.
        container.stage = entities.DRAINING
        container.to_key = to_key
        container.finish_at_ms = entities.NEVER
        self.host.rm.facts.append(UploadProgressed(container.order, now_ms))
        self.kernel.at(drained_ms + self.timing.upload_ms, self._save, request)

    def _save(self, request: SuspendRequest) -> None:
        container = request.container
        if container.release_wait_token != request.token or container.state != entities.RUNNING:
            return
        now_ms = self.kernel.now_ms
        if self.host.store_down(now_ms):
            if container.order in self._recalled:
                self._go_on(container)
                return
            self.kernel.at(now_ms + STORE_RETRY_MS, self._save, request)
            return
        master: AppMaster = container.app.master
        task = container.task
        master.keys.save(task, container.attempt, container.log_from_key, container.to_key)
        container.log_from_key = container.to_key
        generation = master.store[task].generation + 1 if task in master.store else 1
        master.store[task] = SavedReduce(generation, container.to_key)
        container.stage = entities.RELEASE_WAIT
        self.checkpoints += 1
        self.host.rm.facts.append(
            ManifestSeen(container.order, attempt_id(container), generation, container.to_key, now_ms)
        )
        if self.timing.releases_itself:
            master.suspended(container, now_ms + self.timing.exit_ms)
        elif container.order in self._recalled:
            self._go_on(container)
        else:
            self.kernel.at(now_ms + self.timing.release_wait_ms, self._release_wait_over, request)

    def release(self, container: entities.Container, order: str) -> Outcome:
        """The AM ends an attempt whose manifest is valid: nothing is lost."""
        if container.state != entities.RUNNING and container.order == order:
            return Accepted()
        if container.order != order or container.stage != entities.RELEASE_WAIT:
            return Refused(NoValidManifest())
        if not container.app.master.alive:
            return Refused(MasterDown())
        container.app.master.suspended(container, self.kernel.now_ms + self.timing.exit_ms)
        return Accepted()

    def withdraw(self, container: entities.Container, order: str) -> Outcome:
        """Withdraw a request; the attempt continues."""
        if container.order != order or container.state != entities.RUNNING:
            return Refused(EndedOrForeign())
        if container.stage == entities.REQUESTED or self.timing.trigger == "umbilical":
            self._go_on(container)
        elif order not in self._withdrawn and not container.node.dead:
            self._withdrawn.add(order)
            at_ms = container.node.next_beat_ms(self.kernel.now_ms + 1, self.timing.nm_heartbeat_ms)
            self.kernel.at(at_ms, self._recall, SuspendRequest(container, container.release_wait_token))
        return Accepted()

    def _recall(self, request: SuspendRequest) -> None:
        """The runner reads that its order is withdrawn."""
        container = request.container
        if container.node.dead:
            return
        if container.release_wait_token != request.token or container.state != entities.RUNNING:
            return
        if container.stage == entities.RELEASE_WAIT:
            self._go_on(container)
        else:
            self._recalled.add(container.order)

    def _release_wait_over(self, request: SuspendRequest) -> None:
        container = request.container
        if container.release_wait_token == request.token and container.state == entities.RUNNING:
            self._go_on(container)

    def _go_on(self, container: entities.Container) -> None:
        """Restart the child in place behind the last key it finished."""
        stage, container.stage = container.stage, entities.NOT_REQUESTED
        container.order = ""
        container.release_wait_token += 1
        if stage == entities.REQUESTED:
            return
        container.app.master.launching.restart_in_place(container, self.kernel.now_ms)
