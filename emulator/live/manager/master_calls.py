"""The calls of ApplicationMasters to a live ResourceManager (``MasterService``).

Law: a repeated call changes nothing and is answered as before; masters of attempts that are over, and of the
life before, are refused and told why.
"""

from __future__ import annotations

from emulator.cluster.entities import Ask
from emulator.live.manager.held_containers import ApplicationEnds, HeldContainers
from emulator.live.manager.state import AppRecord, AppState, AttemptRecord, ContainerRecord, ManagerState
from emulator.live.wire.messages import (
    EXIT_ABORTED,
    Acknowledged,
    Allocate,
    Allocated,
    AskChange,
    Granted,
    MasterFarewell,
    MasterRegistration,
    MasterWelcome,
)


class MasterCalls:
    """Takes the calls of masters."""

    def __init__(self, state: ManagerState, held: HeldContainers, ends: ApplicationEnds) -> None:
        self._state = state
        self._held = held
        self._ends = ends

    def register_master(self, registration: MasterRegistration) -> MasterWelcome:
        """Take an AM in; a repeated call changes nothing."""
        now_ms = self._state.pace.catch_up()
        interval_ms = self._state.settings.timing.am_heartbeat_ms
        app, attempt, why = self._current(registration.application, registration.attempt)
        if app is None or attempt is None:
            return MasterWelcome(heartbeat_ms=interval_ms, refused=why)
        attempt.tracking_url = registration.tracking_url
        attempt.state = "RUNNING"
        attempt.heard_at_ms = now_ms
        app.state = "RUNNING"
        return MasterWelcome(heartbeat_ms=interval_ms)

    def _current(self, name: str, number: int) -> tuple[AppRecord | None, AttemptRecord | None, str]:
        """Return an unfinished application and its current attempt, or why it is not that."""
        app = self._state.register.unfinished.get(name)
        if app is None:
            known = self._state.register.finished.get(name)
            return (
                None,
                None,
                f"{name} is {known.state}" if known is not None else f"{name} is not known here",
            )
        attempt = app.attempt
        if attempt is None or attempt.number != number or attempt.state not in ("LAUNCHED", "RUNNING"):
            current = attempt.number if attempt is not None else "none"
            return None, None, f"attempt {number} of {name} is over, the current one is {current}"
        return app, attempt, ""

    def allocate(self, message: Allocate) -> Allocated:
        """Take an AM's heartbeat: its wishes in, what it was given and what ended out."""
        now_ms = self._state.pace.catch_up()
        app, attempt, why = self._current(message.application, message.attempt)
        number = message.number
        if app is None or attempt is None:
            return Allocated(number=number, refused=why)
        if not attempt.registered:
            return Allocated(number=number, resync=True)
        attempt.heard_at_ms = now_ms
        if number == attempt.seen_number:
            return attempt.answer
        if attempt.seen_number is not None and number != attempt.seen_number + 1:
            return Allocated(number=number, resync=True)
        attempt.seen_number = number
        app.progress_ratio = min(1.0, max(0.0, message.progress_ratio))
        asks = [
            (Ask(one.priority, one.memory_mib, one.vcores, off_switch=one.priority == 10), one.count)
            for one in message.asks
            if self._sane(one)
        ]
        self._state.actor.allocate(app.actor, asks)
        for name in message.release:
            container = app.containers.get(name)
            if container is not None and not container.is_master:
                self._held.take(container, EXIT_ABORTED, "released by the application", now_ms)
        attempt.answer = self._mail(attempt, number)
        return attempt.answer

    def _sane(self, ask: AskChange) -> bool:
        """Whether an ask may enter the scheduler (priority 0 is the AM's own)."""
        return ask.priority > 0 and ask.memory_mib > 0 and ask.vcores > 0

    @staticmethod
    def _mail(attempt: AttemptRecord, number: int) -> Allocated:
        granted = []
        for container in attempt.granted:
            container.acquired = True
            actor = container.actor
            granted.append(
                Granted(
                    container=container.id,
                    node=container.node.id,
                    node_address=container.node.address,
                    memory_mib=actor.memory_mib,
                    vcores=actor.vcores,
                    priority=actor.priority,
                )
            )
        answer = Allocated(number=number, granted=tuple(granted), ended=tuple(attempt.ended))
        attempt.granted.clear()
        attempt.ended.clear()
        return answer

    def farewell(self, message: MasterFarewell) -> Acknowledged:
        """End the application; what is late or repeated changes nothing."""
        now_ms = self._state.pace.catch_up()
        app, attempt, _ = self._current(message.application, message.attempt)
        if app is not None and attempt is not None:
            attempt.state = "FINISHED"
            app.told = message.told
            state: AppState = "KILLED" if message.final_status == "KILLED" else "FINISHED"
            self._ends.end(app, state, message.final_status, message.diagnostics, now_ms)
            container = self._state.containers.get(attempt.container)
            if container is not None:
                self._state.after(self._state.settings.linger_ms, self._lingers, container)
        return Acknowledged()

    def _lingers(self, container: ContainerRecord) -> None:
        """An AM that said farewell and is still there is stopped."""
        if container.id in self._state.containers:
            self._held.take(container, EXIT_ABORTED, "", self._state.pace.kernel.now_ms)
