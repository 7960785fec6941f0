"""Containers of a live ResourceManager, and how applications and their attempts end.

Law: a container is named once, and its record is dropped once its room is free. Its end goes into the mailbox
of its master's next heartbeat; one that the master never fetched is not reported. An attempt whose AM has
ended is followed by the next one until there were too many. No attempt inherits containers, and an
application that is over holds none.
"""

from __future__ import annotations

from emulator.cluster.entities import ENDED, RELEASED, Ask, Container
from emulator.live.manager.state import (
    AppRecord,
    AppState,
    AttemptRecord,
    ContainerRecord,
    ManagerState,
    NodeRecord,
)
from emulator.live.wire.messages import EXIT_ABORTED, EXIT_LOST, EndedContainer, FinalStatus

_TERMINAL_STATES = {
    0: "completed",
    EXIT_LOST: "lost",
    -105: "killed",
    -102: "killed",
    137: "killed",
    143: "killed",
}


class HeldContainers:
    """The containers that hold room; ends containers, attempts and applications."""

    def __init__(self, state: ManagerState) -> None:
        self._state = state

    def grant(self, granted: list[Container], node: NodeRecord) -> None:
        """Put containers into the mailboxes of their masters."""
        for actor in granted:
            if actor.priority:
                app = self._state.register.of(actor.app)
                attempt = app.attempts[-1]
                attempt.granted.append(self.hold(actor, app, attempt, node))

    def hold(
        self, container: Container, app: AppRecord, attempt: AttemptRecord, node: NodeRecord
    ) -> ContainerRecord:
        """Name a container and keep it. Sums of time are counted up to the grant."""
        now_ms = self._state.driver.kernel.now_ms
        held_ms = now_ms - app.counted_at_ms
        app.mib_ms += (app.actor.used_mib - container.memory_mib) * held_ms
        app.vcore_ms += (app.actor.used_vcores - container.vcores) * held_ms
        app.counted_at_ms = now_ms
        name = self._state.register.container_id(app, attempt.number, attempt.granted_count)
        attempt.granted_count += 1
        held = ContainerRecord(name, container, app, attempt.number, node)
        self._state.containers[name] = app.containers[name] = held
        return held

    def on(self, node: NodeRecord) -> list[ContainerRecord]:
        """Return the containers on a node."""
        return [one for one in self._state.containers.values() if one.node is node]

    def take(self, container: ContainerRecord, exit_status: int, why: str, now_ms: int) -> None:
        """Take a container away at once, as YARN does: its room is free, its node stops it next."""
        container.app.count(now_ms)
        self._forget(container)
        container.node.stop[container.id] = None
        if container.actor.state != RELEASED:
            self._state.actor.kill_now(container.actor, "killed", now_ms)
        attempt = container.app.attempts[container.attempt - 1]
        if not container.is_master:
            attempt.ended.append(EndedContainer(container.id, exit_status, now_ms, why))
            self._ask_again(container, attempt)

    def _ask_again(self, container: ContainerRecord, attempt: AttemptRecord) -> None:
        """A container is gone before its master fetched it: ask in its place, as YARN does.

        The master never received it, and the ask that it answered counts no more.
        (``AbstractYarnScheduler.recoverResourceRequestForContainer``: requests of what was not acquired.)
        """
        if container.acquired or container not in attempt.granted:
            return
        attempt.granted.remove(container)
        if attempt is container.app.attempt and attempt.registered:
            actor = container.actor
            labels = getattr(self._state.actor.scheduler, "labels", {})
            is_exclusive = labels.get(actor.node.label, False)
            ask = Ask(
                actor.priority,
                actor.memory_mib,
                actor.vcores,
                off_switch=actor.priority == 10,
                others=actor.others,
                label=None if not is_exclusive else actor.node.label,
            )
            self._state.actor.scheduler.ask(container.app.actor, ask, 1)

    def _forget(self, container: ContainerRecord) -> None:
        self._state.containers.pop(container.id, None)
        container.app.containers.pop(container.id, None)

    def container_gone(self, container: ContainerRecord, ended: EndedContainer, now_ms: int) -> None:
        """A container's process is gone; with an AM's its attempt fails, unless that is over.

        Its end is recorded for its master; the caller frees its resources.
        """
        attempt = container.app.attempts[container.attempt - 1]
        container.app.count(now_ms)
        self._forget(container)
        if container.actor.state != RELEASED:
            container.actor.state = ENDED
            container.actor.terminal_state = _TERMINAL_STATES.get(ended.exit_status, "failed")
        if not container.is_master:
            attempt.ended.append(ended)
            self._ask_again(container, attempt)
        elif attempt.state in ("LAUNCHED", "RUNNING"):
            story = f"AM container {container.id} exited with {ended.exit_status}: {ended.diagnostics}"
            self.attempt_failed(container.app, attempt, story.removesuffix(": "), now_ms)

    def master_silent(self, app: AppRecord, attempt: AttemptRecord, now_ms: int) -> None:
        """An AM has sent no heartbeat for too long."""
        container = self._state.containers.get(attempt.container)
        if container is not None:
            self.take(container, EXIT_ABORTED, "", now_ms)
        self.attempt_failed(app, attempt, f"AM {attempt.id} timed out", now_ms)

    def attempt_failed(self, app: AppRecord, attempt: AttemptRecord, story: str, now_ms: int) -> None:
        """An AM ended without unregistering: begin the next attempt, or end the application."""
        attempt.state, attempt.final_status, attempt.finished_at_ms = "FAILED", "FAILED", now_ms
        attempt.diagnostics = story
        for container in list(app.containers.values()):
            self.take(container, EXIT_ABORTED, "", now_ms)
        most = self._state.settings.max_attempts
        if app.submission.max_attempts > 0:
            most = min(most, app.submission.max_attempts)
        if attempt.number >= most:
            told = f"Application {app.id} failed {most} times due to {story}"
            self.end(app, "FAILED", "FAILED", told, now_ms)
            return
        app.state = "ACCEPTED"
        self._state.actor.scheduler.clear_asks(app.actor)
        self._state.after(self._state.settings.timing.am_retry_ms, self._retry, app)

    def _retry(self, app: AppRecord) -> None:
        if not app.over:
            self._state.actor.retry_master(app.actor, app.submission.am_size)

    def end(self, app: AppRecord, state: AppState, final: FinalStatus, diagnostics: str, now_ms: int) -> None:
        """End an application: it is owed nothing more, and its containers are stopped (the AM's may go)."""
        attempt = app.attempt
        app.state, app.final_status, app.diagnostics = state, final, diagnostics
        app.finished_at_ms = now_ms
        app.count(now_ms)
        if final == "SUCCEEDED":
            app.progress_ratio = 1.0
        for container in list(app.containers.values()):
            if not container.is_master or state != "FINISHED":
                self.take(container, EXIT_ABORTED, "", now_ms)
        if attempt is not None:
            attempt.finished_at_ms, attempt.final_status = attempt.finished_at_ms or now_ms, final
            if attempt.state in ("LAUNCHED", "RUNNING"):
                attempt.state = "KILLED" if state == "KILLED" else "FAILED"
            attempt.granted.clear()
            attempt.ended.clear()
        self._state.actor.finish(app.actor, now_ms)
        self._state.register.finish(app)
