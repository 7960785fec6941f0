"""The live ResourceManager: the actor of virtual time, spoken to by real nodes and masters.

Law: it decides no allocation, the actor does. Here is what only a live cluster has: ids, numbered calls
whose repetition has no second effect, silence that ends in a loss, attempts of a master. Everything
runs on one event loop; whoever calls lets what is due happen first (``Pace.catch_up``).

Nothing is kept over a restart: another life is another epoch, its nodes are told to register again and to
stop what it does not know, and masters of the life before are refused and told why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from emulator.cluster.entities import ENDED, RELEASED, RUNNING, Application, Ask, Container, Node
from emulator.cluster.resource_manager import ResourceManager
from emulator.live.manager.application_registry import Refused, Register
from emulator.live.manager.liveness import Silence
from emulator.live.manager.manager_settings import QUEUES, Settings
from emulator.live.manager.state import (
    AppRecord,
    AppState,
    AttemptRecord,
    ContainerRecord,
    NodeRecord,
    Submission,
)
from emulator.live.wire.messages import (
    EXIT_ABORTED,
    EXIT_LOST,
    Allocate,
    Allocated,
    AskChange,
    Done,
    Doorbell,
    Ended,
    FinalStatus,
    Granted,
    MasterFarewell,
    MasterLaunch,
    MasterRegistration,
    MasterWelcome,
    NodeOrders,
    NodeRegistration,
    NodeReport,
    NodeWelcome,
    Signal,
)
from emulator.live.wire.real_time_driver import Pace
from yarnctl.deciding.draws import uniform
from yarnctl.units import Resources, fits

__all__ = ["QUEUES", "LiveResourceManager", "Refused", "Settings", "Submission"]


LATE_WALL_MS = 1000
"""An event that comes so much later than its instant says that this process was held up."""


class LiveResourceManager:
    """ResourceTracker and MasterService over the actor, and what REST asks and changes.

    ``epoch`` (ms) names this life. ``nodes`` are those that count now; ``lost`` those that do not any more.
    """

    def __init__(self, pace: Pace, settings: Settings | None = None, epoch: int | None = None) -> None:
        self.pace = pace
        self.settings = settings or Settings()
        self.epoch = pace.now_ms() if epoch is None else epoch
        self.started_at_ms = pace.now_ms()
        self.actor = ResourceManager(self.settings.queues, self, self.settings.locality_delay)
        self.nodes: dict[str, NodeRecord] = {}
        self.lost: dict[str, NodeRecord] = {}
        self.register = Register(self.epoch, self.settings.finished_kept)
        self.applications = self.register.unfinished
        self.finished = self.register.finished
        self.containers: dict[str, ContainerRecord] = {}
        self._driven = False
        floor_ms = int(self.settings.silence_floor_ms * pace.speed)
        self.node_expiry_ms = max(self.settings.timing.node_expiry_ms, floor_ms)
        self.am_expiry_ms = max(self.settings.am_expiry_ms, floor_ms)
        self._silence = Silence(
            self._deadlines_ms,
            self._lose_silent,
            self._after,
            now_ms=lambda: self.pace.kernel.now_ms,
            lag_ms=lambda: self.pace.now_ms() - self.pace.kernel.now_ms,
            late_ms=max(1, int(LATE_WALL_MS * pace.speed)),
            grace_ms=floor_ms,
        )

    # --- time -----------------------------------------------------------------------------

    def start(self) -> None:
        """Let time pass by itself; call on the running event loop."""
        self._driven = True
        self.pace.poke()

    def stop(self) -> None:
        """Let nothing more happen by itself."""
        self._driven = False
        self.pace.stop()

    def now_ms(self) -> int:
        """Let what is due happen; return now."""
        return self.pace.catch_up()

    def _after(self, span_ms: int, handler: Callable[[Any], object], argument: Any) -> None:
        self.pace.kernel.at(self.pace.kernel.now_ms + span_ms, handler, argument)
        if self._driven:
            self.pace.poke()

    def _deadlines_ms(self) -> Iterator[int]:
        """Yield when each node and each AM would count as gone."""
        for node in self.nodes.values():
            yield node.heard_at_ms + self.node_expiry_ms
        for _, attempt in self._watched():
            yield attempt.heard_at_ms + self.am_expiry_ms

    def _watched(self) -> list[tuple[AppRecord, AttemptRecord]]:
        """Return the attempts that must be heard of: from the AM's container on."""
        return [
            (app, app.attempts[-1])
            for app in self.applications.values()
            if app.attempts and app.attempts[-1].state in ("LAUNCHED", "RUNNING")
        ]

    def _lose_silent(self) -> None:
        now_ms = self.pace.kernel.now_ms
        for node in [one for one in self.nodes.values() if now_ms - one.heard_at_ms >= self.node_expiry_ms]:
            self._lose(node, now_ms)
        for app, attempt in self._watched():
            if now_ms - attempt.heard_at_ms >= self.am_expiry_ms:
                container = self.containers.get(attempt.container)
                if container is not None:
                    self._take(container, EXIT_ABORTED, "", now_ms)
                self._attempt_failed(app, attempt, f"AM {attempt.id} timed out", now_ms)

    # --- nodes (ResourceTracker) ----------------------------------------------------------

    def register_node(self, registration: NodeRegistration) -> NodeWelcome:
        """Take a node in; one that is known begins a new life, and keeps what it says it holds."""
        now_ms = self.now_ms()
        known = self.nodes.get(registration.node)
        phase_ms = self._phase_ms(registration, len(self.actor.nodes))
        if known is not None and self._same_shape(known, registration):
            held = set(registration.running)
            for container in self._on(known):
                if container.id in self.containers and container.id not in held:
                    self._gone(
                        container, Ended(container.id, EXIT_LOST, now_ms, "the node began anew"), now_ms
                    )
                    self.actor.release(container.actor, "lost", now_ms)
            known.address, known.rack = registration.address, registration.rack
            known.number, known.heard_at_ms = None, now_ms
            phase_ms = known.actor.phase_ms
        else:
            if known is not None:
                self._lose(known, now_ms)
            actor = Node(len(self.actor.nodes), registration.memory_mib, registration.vcores, phase_ms)
            actor.name = registration.node
            self.actor.register_node(actor)
            self.lost.pop(registration.node, None)
            self.nodes[registration.node] = NodeRecord(
                registration.node, actor, registration.address, registration.rack, now_ms
            )
        self._silence.watch()
        return NodeWelcome(
            epoch=self.epoch, heartbeat_ms=self.settings.timing.nm_heartbeat_ms, phase_ms=phase_ms
        )

    def _phase_ms(self, registration: NodeRegistration, index: int) -> int:
        """Return when in each interval the node beats: its own wish, else drawn as in virtual time."""
        interval_ms = self.settings.timing.nm_heartbeat_ms
        if registration.phase_ms is not None:
            return registration.phase_ms % interval_ms
        return uniform(self.settings.seed, 2, index) * interval_ms >> 64

    @staticmethod
    def _same_shape(known: NodeRecord, registration: NodeRegistration) -> bool:
        return (known.actor.total_mib, known.actor.total_vcores) == (
            registration.memory_mib,
            registration.vcores,
        )

    def node_heartbeat(self, report: NodeReport) -> NodeOrders:
        """Take a heartbeat: what ended is freed, the room that is left is offered."""
        now_ms = self.pace.catch_up()
        node = self.nodes.get(report.node)
        number = report.number
        if node is None or (node.number is not None and number != node.number and number != node.number + 1):
            return NodeOrders(number=number, resync=True)
        node.heard_at_ms = now_ms
        ended: list[Container] = []
        for one in report.ended:
            container = self.containers.get(one.container)
            if container is not None and container.node is node:
                ended.append(container.actor)
                self._gone(container, one, now_ms)
            node.stop.pop(one.container, None)
        if number == node.number:  # the answer was lost: what ended counts once, the answer is the same
            self.actor.node_heartbeat(node.actor, ended, now_ms) if ended else None
            return node.answer
        node.number = number
        granted = self.actor.node_heartbeat(node.actor, ended, now_ms)
        if granted:
            self._grant(granted, node)
        if report.running or node.running:
            self._compare(node, report.running)
        node.answer = self._orders(node, number)
        return node.answer

    def _grant(self, granted: list[Container], node: NodeRecord) -> None:
        for actor in granted:
            if actor.priority:
                app = self.register.of(actor.app)
                attempt = app.attempts[-1]
                attempt.granted.append(self._hold(actor, app, attempt, node))

    def _hold(
        self, actor: Container, app: AppRecord, attempt: AttemptRecord, node: NodeRecord
    ) -> ContainerRecord:
        """Name a container and keep it. Sums of time are counted up to the grant."""
        now_ms = self.pace.kernel.now_ms
        held_ms = now_ms - app.counted_at_ms
        app.mib_ms += (app.actor.used_mib - actor.memory_mib) * held_ms
        app.vcore_ms += (app.actor.used_vcores - actor.vcores) * held_ms
        app.counted_at_ms = now_ms
        name = self.register.container_id(app, attempt.number, attempt.granted_count)
        attempt.granted_count += 1
        container = ContainerRecord(name, actor, app, attempt.number, node)
        self.containers[name] = app.containers[name] = container
        return container

    def _compare(self, node: NodeRecord, running: tuple[str, ...]) -> None:
        """Have stopped what runs on a node without holding room any more."""
        node.running = running
        for name in running:
            container = self.containers.get(name)
            if container is None or container.node is not node:
                node.stop[name] = None

    @staticmethod
    def _orders(node: NodeRecord, number: int) -> NodeOrders:
        if not (node.masters or node.signals or node.stop):
            return NodeOrders(number=number)
        orders = NodeOrders(
            number=number, masters=tuple(node.masters), signals=tuple(node.signals), stop=tuple(node.stop)
        )
        node.masters.clear()
        node.signals.clear()
        node.stop.clear()
        return orders

    def _on(self, node: NodeRecord) -> list[ContainerRecord]:
        return [one for one in self.containers.values() if one.node is node]

    def _lose(self, node: NodeRecord, now_ms: int) -> None:
        """A node has been silent for too long: what it held is gone."""
        del self.nodes[node.id]
        self.lost[node.id] = node
        containers = self._on(node)
        for container in containers:
            container.app.count(now_ms)
        self.actor.lose_node(node.actor, now_ms)
        for container in sorted(containers, key=lambda one: one.is_master):
            self._gone(container, Ended(container.id, EXIT_LOST, now_ms, "the node was lost"), now_ms)

    # --- the actor's host -----------------------------------------------------------------

    def wake(self, app: Application) -> None:
        """Nothing to do: masters call by themselves."""

    def launch_master(self, container: Container) -> None:
        """Name the new attempt and have its node start the AM."""
        app = self.register.of(container.app)
        node = self.nodes[container.node.name]
        now_ms = self.pace.kernel.now_ms
        container.state = RUNNING
        number = container.app.attempt
        attempt = AttemptRecord(
            self.register.attempt_id(app, number),
            number,
            self.register.container_id(app, number, 1),
            node,
            now_ms,
        )
        app.attempts.append(attempt)
        held = self._hold(container, app, attempt, node)
        held.acquired = True
        app.launched_at_ms = app.launched_at_ms or now_ms
        self._silence.watch()
        node.masters.append(
            MasterLaunch(
                container=held.id,
                application=app.id,
                attempt=number,
                memory_mib=container.memory_mib,
                vcores=container.vcores,
                user=app.submission.user,
                job=app.submission.job,
            )
        )

    # --- containers -----------------------------------------------------------------------

    def _gone(self, container: ContainerRecord, ended: Ended, now_ms: int) -> None:
        """A container's process is gone: tell its master; the caller sees that its room is freed."""
        app = container.app
        app.count(now_ms)
        self._forget(container)
        if container.actor.state != RELEASED:
            container.actor.state = ENDED
            container.actor.ending = _ENDINGS.get(ended.exit_status, "failed")
        attempt = app.attempts[container.attempt - 1]
        if not container.is_master:
            attempt.ended.append(ended)
            self._ask_again(container, attempt)
        elif attempt.state in ("LAUNCHED", "RUNNING"):
            story = f"AM container {container.id} exited with {ended.exit_status}: {ended.diagnostics}"
            self._attempt_failed(app, attempt, story.removesuffix(": "), now_ms)

    def _ask_again(self, container: ContainerRecord, attempt: AttemptRecord) -> None:
        """A container is gone before its master fetched it: ask in its place, as YARN does.

        The master does not know it and will not miss it, and the ask that it answered counts no more.
        (``AbstractYarnScheduler.recoverResourceRequestForContainer``: requests of what was not acquired.)
        """
        if container.acquired or container not in attempt.granted:
            return
        attempt.granted.remove(container)
        if attempt is container.app.attempt and attempt.registered:
            actor = container.actor
            ask = Ask(actor.priority, actor.memory_mib, actor.vcores, off_switch=actor.priority == 10)
            self.actor.scheduler.ask(container.app.actor, ask, 1)

    def _forget(self, container: ContainerRecord) -> None:
        self.containers.pop(container.id, None)
        container.app.containers.pop(container.id, None)

    def _take(self, container: ContainerRecord, exit_status: int, why: str, now_ms: int) -> None:
        """Take a container away at once, as YARN does: its room is free, its node stops it next."""
        container.app.count(now_ms)
        self._forget(container)
        container.node.stop[container.id] = None
        if container.actor.state != RELEASED:
            self.actor.kill_now(container.actor, "killed", now_ms)
        attempt = container.app.attempts[container.attempt - 1]
        if not container.is_master:
            attempt.ended.append(Ended(container.id, exit_status, now_ms, why))
            self._ask_again(container, attempt)

    # --- masters (MasterService) ----------------------------------------------------------

    def register_master(self, registration: MasterRegistration) -> MasterWelcome:
        """Take an AM in; a repeated call changes nothing."""
        now_ms = self.now_ms()
        interval_ms = self.settings.timing.am_heartbeat_ms
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
        app = self.applications.get(name)
        if app is None:
            known = self.finished.get(name)
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
        now_ms = self.pace.catch_up()
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
        self.actor.allocate(app.actor, asks)
        for name in message.release:
            container = app.containers.get(name)
            if container is not None and not container.is_master:
                self._take(container, EXIT_ABORTED, "released by the application", now_ms)
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

    def farewell(self, message: MasterFarewell) -> Done:
        """End the application; what is late or repeated changes nothing."""
        now_ms = self.now_ms()
        app, attempt, _ = self._current(message.application, message.attempt)
        if app is not None and attempt is not None:
            attempt.state = "FINISHED"
            app.told = message.told
            state: AppState = "KILLED" if message.final_status == "KILLED" else "FINISHED"
            self._end(app, state, message.final_status, message.diagnostics, now_ms)
            container = self.containers.get(attempt.container)
            if container is not None:
                self._after(self.settings.linger_ms, self._lingers, container)
        return Done()

    def _lingers(self, container: ContainerRecord) -> None:
        """An AM that said farewell and is still there is stopped."""
        if container.id in self.containers:
            self._take(container, EXIT_ABORTED, "", self.pace.kernel.now_ms)

    # --- ends -----------------------------------------------------------------------------

    def _attempt_failed(self, app: AppRecord, attempt: AttemptRecord, story: str, now_ms: int) -> None:
        """An AM is gone without a farewell: the next attempt, or the end. No attempt inherits containers."""
        attempt.state, attempt.final_status, attempt.finished_at_ms = "FAILED", "FAILED", now_ms
        attempt.diagnostics = story
        for container in list(app.containers.values()):
            self._take(container, EXIT_ABORTED, "", now_ms)
        most = self.settings.max_attempts
        if app.submission.max_attempts > 0:
            most = min(most, app.submission.max_attempts)
        if attempt.number >= most:
            told = f"Application {app.id} failed {most} times due to {story}"
            self._end(app, "FAILED", "FAILED", told, now_ms)
            return
        app.state = "ACCEPTED"
        self.actor.scheduler.clear_asks(app.actor)
        self._after(self.settings.timing.am_retry_ms, self._retry, app)

    def _retry(self, app: AppRecord) -> None:
        if not app.over:
            self.actor.retry_master(app.actor, app.submission.am_size)

    def _end(
        self, app: AppRecord, state: AppState, final: FinalStatus, diagnostics: str, now_ms: int
    ) -> None:
        """End an application: it is owed nothing more, and its containers are stopped (the AM's may go)."""
        attempt = app.attempt
        app.state, app.final_status, app.diagnostics = state, final, diagnostics
        app.finished_at_ms = now_ms
        app.count(now_ms)
        if final == "SUCCEEDED":
            app.progress_ratio = 1.0
        for container in list(app.containers.values()):
            if not container.is_master or state != "FINISHED":
                self._take(container, EXIT_ABORTED, "", now_ms)
        if attempt is not None:
            attempt.finished_at_ms, attempt.final_status = attempt.finished_at_ms or now_ms, final
            if attempt.state in ("LAUNCHED", "RUNNING"):
                attempt.state = "KILLED" if state == "KILLED" else "FAILED"
            attempt.granted.clear()
            attempt.ended.clear()
        self.actor.finish(app.actor, now_ms)
        self.register.finish(app)

    # --- what clients ask (REST) ----------------------------------------------------------

    def find(self, application: str) -> AppRecord | None:
        """Return an application, finished or not."""
        return self.register.find(application)

    def new_application(self) -> str:
        """Return an application id that nobody has."""
        return self.register.new_id()

    def submit(self, submission: Submission) -> AppRecord:
        """Accept an application; repeated for the same id it changes nothing. Raises Refused."""
        now_ms = self.now_ms()
        known = self.register.find(submission.application)
        if known is not None:
            return known
        number = self.register.number_of(submission.application)
        queue = self.actor.scheduler.queues.get(submission.queue.removeprefix("root."))
        if queue is None:
            raise Refused(
                f"Application {submission.application} submitted by user {submission.user}"
                f" to unknown queue: {submission.queue}"
            )
        largest = self.largest_node()
        if largest.memory_mib and not fits(submission.am_size, largest):
            raise Refused(
                f"Invalid resource request! Cannot allocate containers as requested resource is greater than"
                f" maximum allowed allocation: requested {submission.am_size}, maximum {largest}"
            )
        actor = Application(number, queue, submission.user, now_ms, submission.am_size.memory_mib)
        submission = msgspec.structs.replace(submission, queue=queue.name)
        app = AppRecord(submission, number, actor, now_ms)
        actor.set_priority(min(max(0, submission.priority), self.settings.max_priority))
        self.register.add(app)
        self.actor.submit(actor, submission.am_size)
        return app

    def kill(self, app: AppRecord, diagnostics: str) -> None:
        """Kill an application; one that is over stays as it ended."""
        if not app.over:
            self._end(app, "KILLED", "KILLED", diagnostics, self.now_ms())

    def signal(self, container: str, signal: Signal) -> None:
        """Have a signal delivered at the node's next heartbeat. Raises Refused for an unknown container."""
        held = self.containers.get(container)
        if held is None:
            raise Refused(f"Trying to signal an absent container {container}")
        held.node.signals.append(Doorbell(container, signal))

    def largest_node(self) -> Resources:
        """Return the size of the largest node that counts."""
        sizes = (Resources(one.actor.total_mib, one.actor.total_vcores) for one in self.nodes.values())
        return max(sizes, default=Resources(0, 0))


_ENDINGS = {0: "completed", EXIT_LOST: "lost", -105: "killed", -102: "killed", 137: "killed", 143: "killed"}
