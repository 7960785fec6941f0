"""YARN's own preemption in a live ResourceManager: its kills go through the records of containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emulator.cluster.entities import Application, Container, LeafQueue
from emulator.cluster.preemption import CapacityPreemption, PreemptionConfig
from emulator.cluster.scheduler import CapacityScheduler
from emulator.live.manager.held_containers import HeldContainers
from emulator.live.manager.state import ManagerState
from emulator.live.wire.messages import EXIT_PREEMPTED
from yarnctl.units import Resources

WHY = "Container preempted by scheduler"


class PreemptedManager:
    """The cluster that the policy observes, and its ResourceManager."""

    unfinished = True

    def __init__(self, state: ManagerState, held: HeldContainers) -> None:
        self._state = state
        self._held = held
        self.kernel = state.driver.kernel
        self.rm = self.sweep = self

    @property
    def total(self) -> Resources:
        """The size of the nodes that count."""
        return self._state.actor.total

    @property
    def scheduler(self) -> CapacityScheduler:
        """The scheduler."""
        return self._state.actor.scheduler

    @property
    def applications(self) -> Mapping[int, Application]:
        """The applications, by number."""
        return self._state.actor.applications

    def begin(self) -> None:
        """Nodes report what is free with their next heartbeat."""

    def kill_now(self, container: Container, _: str, now_ms: int) -> None:
        """Take a container away."""
        app = self._state.register.of(container.app)
        held = next((one for one in app.containers.values() if one.actor is container), None)
        if held is not None:
            self._held.take(held, EXIT_PREEMPTED, WHY, now_ms)


def own_preemption(
    state: ManagerState, held: HeldContainers, config: PreemptionConfig, is_excused: Callable[[str], bool]
) -> CapacityPreemption:
    """Return the policy of a live ResourceManager; ``is_excused`` by a leaf's path below root."""

    def excuses(queue: LeafQueue) -> bool:
        return is_excused(queue.name)

    return CapacityPreemption(PreemptedManager(state, held), config, excuses)
