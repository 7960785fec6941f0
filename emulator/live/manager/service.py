"""The live ResourceManager: ids, numbered calls, losses by missing heartbeats, attempts of a master.

The actor decides allocations. A repeated call of a master changes nothing and is answered as before.
Everything runs on one event loop; a caller first runs what is due (``RealTimeDriver.catch_up``).

Nothing is kept over a restart: each start is a new epoch, its nodes are told to register again and to
stop what it does not know, and masters of the epoch before are refused with the reason.

Liveness is one event for all. A heartbeat only records its instant; the event checks all and comes back
when the one whose last heartbeat is oldest would be due, so that a loss is reported at its very instant.
When *this* process was held up (it stood still, the machine slept), what others sent meanwhile still waits to
be read: nothing is lost then, and all get some time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from emulator.cluster.entities import RUNNING, Application, Ask, Container
from emulator.cluster.queue_tree import TreeScheduler
from emulator.live.manager.held_containers import HeldContainers
from emulator.live.manager.manager_settings import QUEUES, ManagerSettings, others_in
from emulator.live.manager.node_tracker import NodeTracker
from emulator.live.manager.own_preemption import own_preemption
from emulator.live.manager.state import (
    AppRecord,
    AppState,
    AttemptRecord,
    ContainerRecord,
    ManagerState,
    RequestRefused,
    Submission,
)
from emulator.live.wire import messages
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.scenario.scheduler_file import leaf_of
from yarnctl.units import Resources, fits


class MasterCalls:
    """Takes the calls of masters."""

    def __init__(self, state: ManagerState, held: HeldContainers) -> None:
        self._state = state
        self._held = held

    def register_master(self, registration: messages.MasterRegistration) -> messages.MasterRegistered:
        """Take an AM in; a repeated call changes nothing."""
        now_ms = self._state.driver.catch_up()
        interval_ms = self._state.settings.timing.am_heartbeat_ms
        app, attempt, why = self._current(registration.application, registration.attempt)
        if app is None or attempt is None:
            return messages.MasterRegistered(heartbeat_ms=interval_ms, refused=why)
        attempt.tracking_url = registration.tracking_url
        attempt.state = "RUNNING"
        attempt.heartbeat_at_ms = now_ms
        app.state = "RUNNING"
        return messages.MasterRegistered(heartbeat_ms=interval_ms)

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

    def allocate(self, message: messages.Allocate) -> messages.Allocated:
        """Handle an AM's heartbeat: apply its asks, return what was granted and what ended."""
        now_ms = self._state.driver.catch_up()
        app, attempt, why = self._current(message.application, message.attempt)
        number = message.number
        if app is None or attempt is None:
            return messages.Allocated(number=number, refused=why)
        if not attempt.registered:
            return messages.Allocated(number=number, resync=True)
        attempt.heartbeat_at_ms = now_ms
        if number == attempt.seen_number:
            return attempt.answer
        if attempt.seen_number is not None and number != attempt.seen_number + 1:
            return messages.Allocated(number=number, resync=True)
        attempt.seen_number = number
        app.progress_ratio = min(1.0, max(0.0, message.progress_ratio))
        types = self._state.actor.scheduler.types
        unknown = {name for one in message.asks for name in one.others}.difference(types)
        refused = [self._state.label_refused(app.actor.queue, one.label or "") for one in message.asks]
        if unknown or any(refused):
            story = max(refused)
            if unknown:
                story = f"Invalid resource request: unknown resource type {min(unknown)[:64]!r}"
            self._held.attempt_failed(app, attempt, story, now_ms)
            return messages.Allocated(number=number, refused=story)
        asks = [
            (
                Ask(
                    one.priority,
                    one.memory_mib,
                    1 if self._state.counts_memory_alone else one.vcores,  # as Hadoop normalises it
                    off_switch=one.priority == 10,
                    others=others_in(types, one.others),
                    label=one.label,
                ),
                one.count,
            )
            for one in message.asks
            if one.priority > 0 and one.memory_mib > 0 and one.vcores > 0  # priority 0 is the AM's own
        ]
        if message.blacklist is not None:
            app.actor.blacklist = frozenset(message.blacklist)
        self._state.actor.allocate(app.actor, asks)
        for name in message.release:
            container = app.containers.get(name)
            if container is not None and not container.is_master:
                self._held.take(container, messages.EXIT_ABORTED, "released by the application", now_ms)
        attempt.answer = self._mail(attempt, number)
        return attempt.answer

    @staticmethod
    def _mail(attempt: AttemptRecord, number: int) -> messages.Allocated:
        granted = []
        for container in attempt.granted:
            container.acquired = True
            actor = container.actor
            granted.append(
                messages.Granted(
                    container=container.id,
                    node=container.node.id,
                    node_address=container.node.address,
                    memory_mib=actor.memory_mib,
                    vcores=actor.vcores,
                    priority=actor.priority,
                )
            )
        answer = messages.Allocated(number=number, granted=tuple(granted), ended=tuple(attempt.ended))
        attempt.granted.clear()
        attempt.ended.clear()
        return answer

    def unregister(self, message: messages.MasterUnregistration) -> messages.Acknowledged:
        """End the application; what is late or repeated changes nothing."""
        now_ms = self._state.driver.catch_up()
        app, attempt, _ = self._current(message.application, message.attempt)
        if app is not None and attempt is not None:
            attempt.state = "FINISHED"
            app.job_report = message.told
            state: AppState = "KILLED" if message.final_status == "KILLED" else "FINISHED"
            self._held.end(app, state, message.final_status, message.diagnostics, now_ms)
            container = self._state.containers.get(attempt.container)
            if container is not None:
                self._state.after(self._state.settings.linger_ms, self._lingers, container)
        return messages.Acknowledged()

    def _lingers(self, container: ContainerRecord) -> None:
        """Stop an AM that has unregistered and still runs."""
        if container.id in self._state.containers:
            self._held.take(container, messages.EXIT_ABORTED, "", self._state.driver.kernel.now_ms)


__all__ = ["QUEUES", "LiveResourceManager", "ManagerSettings", "RequestRefused", "Submission"]


LATE_WALL_MS = 1000
"""An event that comes so much later than its instant shows that this process was held up."""


class LiveResourceManager:
    """ResourceTracker and MasterService over the actor, and what REST asks and changes (``ManagerState``)."""

    def __init__(self, driver: RealTimeDriver, settings: ManagerSettings | None = None) -> None:
        self.driver = driver
        self.settings = settings = settings or ManagerSettings()
        self.epoch = self.started_at_ms = driver.now_ms()
        self._state = state = ManagerState(driver, settings, self.epoch, self)
        self.actor, self.register = state.actor, state.register
        self.nodes, self.lost, self.containers = state.nodes, state.lost, state.containers
        self.applications, self.finished = state.register.unfinished, state.register.finished
        floor_ms = int(settings.silence_floor_ms * driver.speed)
        self.node_expiry_ms = max(settings.timing.node_expiry_ms, floor_ms)
        self.am_expiry_ms = max(settings.am_expiry_ms, floor_ms)
        self._late_ms, self._grace_ms = max(1, int(LATE_WALL_MS * driver.speed)), floor_ms
        self._due_ms: int | None = None
        self._held = HeldContainers(state)
        self.is_excused: Callable[[str], bool] = lambda _: False  # by the scheduler's keys
        self.own_preemption = (
            None
            if settings.preemption is None
            else own_preemption(state, self._held, settings.preemption, lambda name: self.is_excused(name))
        )
        self._tracker = tracker = NodeTracker(state, self._held, self._watch_liveness)
        masters = MasterCalls(state, self._held)
        self.register_node, self.node_heartbeat = tracker.register_node, tracker.node_heartbeat
        self.register_master, self.allocate = masters.register_master, masters.allocate
        self.unregister = masters.unregister
        self.find, self.new_application = state.register.find, state.register.new_id

    def start(self) -> None:
        """Let time pass by itself; call on the running event loop."""
        self._state.driven = True
        if self.own_preemption is not None:
            self.own_preemption.start()
        self._expire_later()
        self.driver.wake()

    def _expire_later(self) -> None:
        """Plan the next round of the policy that deletes queues on demand, where it runs."""
        scheduler = self.actor.scheduler
        source = scheduler.source if isinstance(scheduler, TreeScheduler) else None
        if source is not None and source.expiry_ms:
            self._state.after(source.expiry_ms, self._expire, None)

    def _expire(self, _: None) -> None:
        scheduler = self.actor.scheduler
        assert isinstance(scheduler, TreeScheduler)
        scheduler.expire(self.driver.kernel.now_ms)
        self._expire_later()

    def stop(self) -> None:
        """Let nothing more happen by itself."""
        self._state.driven = False
        self.driver.stop()

    def now_ms(self) -> int:
        """Let what is due happen; return now."""
        return self.driver.catch_up()

    def _watch_liveness(self) -> None:
        """Plan the event for the first instant of a loss; call when there is something new to watch."""
        newest_ms = self.driver.kernel.now_ms + min(self.node_expiry_ms, self.am_expiry_ms)
        if self._due_ms is not None and self._due_ms <= newest_ms:
            return  # what is new has its heartbeat now; thousands of nodes are not looked at for each one
        due_ms = min(self._deadlines_ms(), default=None)
        if due_ms is not None and (self._due_ms is None or due_ms < self._due_ms):
            self._due_ms = due_ms
            self._state.after(max(1, due_ms - self.driver.kernel.now_ms), self._check_liveness, None)

    def _check_liveness(self, _: None) -> None:
        now_ms = self.driver.kernel.now_ms
        if self._due_ms is None or now_ms < self._due_ms:
            return  # an earlier event has looked, and put a later one in
        lag_ms = self.driver.now_ms() - now_ms
        if lag_ms >= self._late_ms:
            self._due_ms = now_ms + lag_ms + self._grace_ms
            self._state.after(lag_ms + self._grace_ms, self._check_liveness, None)
            return
        self._due_ms = None
        self._lose_expired()
        self._watch_liveness()

    def _deadlines_ms(self) -> Iterator[int]:
        """Yield when each node and each AM would count as gone."""
        for node in self.nodes.values():
            yield node.heartbeat_at_ms + self.node_expiry_ms
        for _, attempt in self._watched():
            yield attempt.heartbeat_at_ms + self.am_expiry_ms

    def _watched(self) -> list[tuple[AppRecord, AttemptRecord]]:
        """Return the attempts that must send heartbeats: from the AM's container on."""
        return [
            (app, app.attempts[-1])
            for app in self.applications.values()
            if app.attempts and app.attempts[-1].state in ("LAUNCHED", "RUNNING")
        ]

    def _lose_expired(self) -> None:
        now_ms = self.driver.kernel.now_ms
        for node in [
            one for one in self.nodes.values() if now_ms - one.heartbeat_at_ms >= self.node_expiry_ms
        ]:
            self._tracker.lose(node, now_ms)
        for app, attempt in self._watched():
            if now_ms - attempt.heartbeat_at_ms >= self.am_expiry_ms:
                self._held.master_silent(app, attempt, now_ms)

    def wake(self, app: Application) -> None:
        """Nothing to do: masters call by themselves."""

    def launch_master(self, container: Container) -> None:
        """Name the new attempt and have its node start the AM."""
        app = self.register.of(container.app)
        node = self.nodes[container.node.name]
        now_ms = self.driver.kernel.now_ms
        container.state = RUNNING
        number = container.app.attempt
        attempt = AttemptRecord(
            self.register.attempt_id(app, number),
            number,
            self.register.container_id(app, number, 1),
            node,
            now_ms,
            now_ms,
        )
        app.attempts.append(attempt)
        held = self._held.hold(container, app, attempt, node)
        held.acquired = True
        app.launched_at_ms = app.launched_at_ms or now_ms
        self._watch_liveness()
        node.masters.append(
            messages.MasterLaunch(
                container=held.id,
                application=app.id,
                attempt=number,
                memory_mib=container.memory_mib,
                vcores=container.vcores,
                user=app.submission.user,
                job=app.submission.job,
            )
        )

    def submit(self, submission: Submission) -> AppRecord:
        """Accept an application; repeated for the same id it changes nothing. Raises RequestRefused."""
        now_ms = self.now_ms()
        known = self.register.find(submission.application)
        if known is not None:
            return known
        number = self.register.number_of(submission.application)
        scheduler = self.actor.scheduler
        wanted = submission.queue
        if isinstance(scheduler, TreeScheduler) and scheduler.source is not None:
            wanted = scheduler.source.placed(submission.user, wanted)
        path = leaf_of(wanted, scheduler.queues)
        if path is None and "." in wanted:  # its parent may create it
            path = wanted.removeprefix("root.")
        queue = None if path is None else scheduler.leaf_for(path)
        if path is not None and isinstance(scheduler, TreeScheduler) and scheduler.is_stopped(path):
            raise RequestRefused(
                f"Application {submission.application} submitted by user {submission.user}"
                f" to a queue that is STOPPED: root.{path}"
            )
        if queue is None:
            raise RequestRefused(
                f"Application {submission.application} submitted by user {submission.user}"
                f" to unknown queue: {submission.queue}"
            )
        largest = self.largest_node()
        if largest.memory_mib and not fits(submission.am_size, largest):
            raise RequestRefused(
                f"Invalid resource request! Cannot allocate containers as requested resource is greater than"
                f" maximum allowed allocation: requested {submission.am_size}, maximum {largest}"
            )
        label = submission.label or queue.default_label
        if refused := self._state.label_refused(queue, label):
            raise RequestRefused(refused)
        actor = Application(number, queue, submission.user, now_ms, submission.am_size.memory_mib)
        actor.label = label
        submission = msgspec.structs.replace(submission, queue=queue.name)
        priority = min(max(0, submission.priority), self.settings.max_priority)
        app = AppRecord(submission, number, actor, now_ms, now_ms, submission.queue, priority, priority)
        actor.set_priority(priority)
        self.register.add(app)
        self.actor.submit(actor, submission.am_size)
        return app

    def kill(self, app: AppRecord, diagnostics: str) -> None:
        """Kill an application; one that is over stays as it ended."""
        if not app.over:
            self._held.end(app, "KILLED", "KILLED", diagnostics, self.now_ms())

    def signal(self, container: str, signal: messages.Signal) -> None:
        """Have a signal delivered at the node's next heartbeat; RequestRefused for an unknown container."""
        held = self.containers.get(container)
        if held is None:
            raise RequestRefused(f"Trying to signal an absent container {container}")
        held.node.signals.append(messages.Doorbell(container, signal))

    def largest_node(self) -> Resources:
        """Return the size of the largest node that counts."""
        sizes = (Resources(one.actor.total_mib, one.actor.true_vcores) for one in self.nodes.values())
        return max(sizes, default=Resources(0, 0))
