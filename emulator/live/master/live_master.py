"""The live ApplicationMaster: the actor of virtual time between a real ResourceManager, nodes and tasks.

Law: what is done stays done. A message to the ResourceManager is repeated with its number until it is
answered; an attempt that was killed or failed has no effect on the output; a job is over once, after its
output is. Everything runs on one event loop; a caller first runs what is due (``around``).

What differs between tasks that are processes and modelled ones is in ``Tasks`` (``process_tasks``,
``modelled_tasks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from emulator.cluster.entities import ENDED, Application, Ask, Container, LeafQueue
from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import Timing
from emulator.live.master.attempts import (
    Attempt,
    Attempts,
    AttemptState,
    FinishedTask,
    TaskHistory,
    attempt_of,
    finished_of,
)
from emulator.live.master.job_report import job_report, progress_ratio
from emulator.live.master.live_actor import LiveActor, is_map
from emulator.live.master.task_containers import RETRY_MS, TaskContainers
from emulator.live.wire import messages
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.submitted_job import (
    DEFAULTS,
    LABEL,
    SubmittedJob,
    configuration,
    number_setting,
    others_wanted,
)
from emulator.live.wire.transports import MANAGER, MasterTransport
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job

BLAMELESS = (messages.EXIT_ABORTED, messages.EXIT_PREEMPTED)
"""A container that ends so was preempted: its attempt is KILLED. Other ends without a report are failures."""

_STATES: dict[str, AttemptState] = {"completed": "SUCCEEDED", "failed": "FAILED"}
_LOGGED = {"suspended": "Attempt killed by the user", "killed": "Attempt killed by the user"}
JobState = Literal["NEW", "RUNNING", "SUCCEEDED", "FAILED", "KILLED"]


class Tasks:
    """What runs in a job's containers. ``modelled``: timetables, without processes."""

    actor_kind: type[LiveActor] = LiveActor
    modelled = False
    job: Job
    history: TaskHistory
    _live: LiveMaster | None = None

    @property
    def live(self) -> LiveMaster:
        """The master of these tasks."""
        assert self._live is not None
        return self._live

    def prepare(self, live: LiveMaster) -> None:
        """The master is registered: get ready; BadInput fails the job."""
        self._live = live

    def recover(self, done: dict[tuple[str, int], FinishedTask]) -> dict[tuple[str, int], FinishedTask]:
        """Return which results of an earlier master are still valid."""
        raise NotImplementedError

    def launch(self, attempt: Attempt) -> messages.TaskLaunch:
        """Return what to start in the attempt's container."""
        raise NotImplementedError

    def ask_to_end(self, attempt: Attempt, ending: str) -> None:
        """The attempt is to end: tell the actor (kill, or release where its work is saved)."""
        raise NotImplementedError

    def begun(self, attempt: Attempt) -> None:
        """The actor has put the attempt into its container."""

    def ended(self, attempt: Attempt) -> None:
        """The attempt's container is gone."""

    def poll(self, attempt: Attempt) -> None:
        """The attempt's report was requested: bring its phase, position and status up to date."""

    def notify(self, container: str, signal: messages.Signal) -> None:
        """A signal has arrived at a modelled container; a doorbell is a thread dump."""

    def commit(self) -> None:
        """Put the job's output in place."""

    def abort(self) -> None:
        """The job has failed: leave no output."""

    def close(self) -> None:
        """The master ends."""


KINDS: Mapping[bool, Literal["map", "reduce"]] = {True: "map", False: "reduce"}


class LiveMaster:
    """One attempt at one application. ``gone`` is called once, when its process would end (``over``)."""

    def __init__(
        self,
        launch: messages.MasterLaunch,
        submitted: SubmittedJob,
        tasks: Tasks,
        *,
        transport: MasterTransport,
        driver: RealTimeDriver,
        timing: Timing,
        gone: Callable[[int, str], object],
    ) -> None:
        self.launch = launch
        self.submitted = submitted
        self.tasks = tasks
        self.driver = driver
        self.kernel: Kernel = driver.kernel
        self.conf = configuration(submitted)
        self._others = {is_for_maps: others_wanted(self.conf, kind) for is_for_maps, kind in KINDS.items()}
        self.timing = _with_slow_start(timing, self.conf)
        self.tracking_url = ""
        self.job_id = launch.application.replace("application_", "job_", 1)
        self.attempts = Attempts(self.job_id, (launch.attempt - 1) * 1000)
        self.state: JobState = "NEW"
        self.diagnostics = ""
        self.started_at_ms = self.finished_at_ms = 0
        number = int(launch.application.rpartition("_")[2])
        self.app = Application(number, cast(LeafQueue, None), launch.user, 0, launch.memory_mib)
        self.app.attempt = launch.attempt
        self.actor = tasks.actor_kind(tasks.job, self.app, self)
        self._transport, self._gone = transport, gone
        self._link = ManagerLink(launch, transport, self)
        self.containers = TaskContainers(self.app, transport, self.later)
        self._lost_nodes: set[str] = set()
        self._failures: dict[tuple[bool, int], int] = {}
        self.over = False

    # --- time -----------------------------------------------------------------------------

    def others_wanted(self, priority: int) -> dict[str, int]:
        """Return what a container of this priority wants beside memory and vcores, by resource type."""
        return self._others[is_map(priority)]

    def label_wanted(self, ask: Ask) -> str | None:
        """Return the node label that a request names; None: the application's."""
        if ask.label is not None:
            return ask.label
        return self.conf.get(LABEL.format(KINDS[is_map(ask.priority)]))

    def around(self, handler: Callable[[], Any]) -> Any:
        """Run what is due, then a handler, then plan the next event."""
        if self.over:
            return None
        self.driver.catch_up()
        try:
            return handler()
        finally:
            if not self.over:
                self.driver.wake()

    def later(self, span_ms: int, handler: Callable[[Any], object], argument: Any = None) -> None:
        """Call a handler after a span of kernel time."""
        self.kernel.at(self.kernel.now_ms + span_ms, handler, argument)

    # --- beginning ------------------------------------------------------------------------

    def start(self, tracking_url: str) -> None:
        """Register after ``am_start_ms``; call on the running event loop."""
        self.tracking_url = tracking_url
        self.started_at_ms = self.driver.catch_up()
        self.later(max(1, self.timing.am_start_ms), self._link.register)
        self.driver.wake()

    def registered(self) -> None:
        """The ResourceManager has registered this master: begin, or send all asks again (a restart)."""
        if self.state != "NEW":
            self.actor.ask_again()
            return
        self.state = "RUNNING"
        try:
            self.tasks.prepare(self)
            self._recover()
        except BadInput as error:
            self.fail_job(str(error))
            return
        self.actor.register(self.kernel.now_ms)
        job = self.tasks.job
        if not (job.map_ms or job.reduce_ms or job.spark):
            self.later(1, lambda _: self.finished(self.actor))

    def _recover(self) -> None:
        """Take over what an earlier attempt of this master has finished."""
        actor = self.actor
        base = self.attempts.base
        actor.reduce_attempts = [base] * len(self.tasks.job.reduce_ms)
        if not base:
            return
        for (kind, task), done in self.tasks.recover(self.tasks.history.read()).items():
            self.attempts.recover(attempt_of(done))
            if kind == "map":
                actor.map_node[task] = self.containers.node(done.node).index
                actor.maps_left -= 1
            else:
                actor.keys.commit(task, base, actor.keys.saved(task))
                actor.reduces_left -= 1

    # --- the ResourceManager --------------------------------------------------------------

    def allocate(
        self, app: Application, asks: list[tuple[Ask, int]]
    ) -> tuple[list[Container], list[Container]]:
        """Do nothing: a live actor's answers come later (``exchange``)."""
        raise AssertionError("a live actor calls exchange")

    def exchange(self, asks: list[tuple[Ask, int]]) -> None:
        """Send a heartbeat."""
        self._link.exchange(asks)

    def refused(self, why: str) -> None:
        """The ResourceManager has refused this master."""
        self._leave(1, why)

    def allocated(self, allocated: messages.Allocated) -> None:
        """Give the actor what was granted, then report what has ended."""
        now_ms = self.kernel.now_ms
        self.actor.received([self.containers.mirror(one, now_ms) for one in allocated.granted], [], now_ms)
        for ended in allocated.ended:
            self._container_ended(ended)

    def usage(self) -> Iterable[Container]:
        """Return the containers of tasks that have not been reported as ended."""
        return self.containers.held()

    # --- containers -----------------------------------------------------------------------

    def launched(self, container: Container) -> None:
        """The actor has put a task into a container: start it there."""
        granted = self.containers.granted(container)
        attempt = self.attempts.begin(container)
        attempt.container_id = granted.container
        attempt.node, attempt.node_http = granted.node, granted.node_address.partition("//")[2]
        attempt.started_at_ms = attempt.alive_at_ms = self.kernel.now_ms
        self.tasks.begun(attempt)
        self.containers.start(attempt, self.tasks.launch(attempt), granted)

    def exit(self, container: Container, at_ms: int) -> None:
        """The actor is done with a container: have it end, if it does not by itself."""
        granted = self.containers.granted(container)
        attempt = self.attempts.of_container.get(container.number)
        if attempt is None:  # nothing was ever started in it
            self._link.release.append(granted.container)
            return
        state: AttemptState = _STATES.get(container.terminal_state, "KILLED")
        self.tasks.poll(attempt)  # its last phases, if nothing has asked since
        attempt.end(state, self.kernel.now_ms, _LOGGED.get(container.terminal_state, ""))
        if state == "SUCCEEDED":
            self.tasks.history.finished(finished_of(attempt))
        if state == "SUCCEEDED" and not self.tasks.modelled:
            return  # the process ends by itself, now that its report was accepted
        status = 0 if state == "SUCCEEDED" else messages.EXIT_KILLED_BY_MASTER
        self.containers.stop(granted, status, at_ms)

    def crash(self, attempt: Attempt) -> None:
        """Inject a fault: the attempt's process is gone, unreported."""
        granted = self.containers.granted(cast(Container, attempt.container))
        self.containers.stop(granted, messages.EXIT_SIGKILL, self.kernel.now_ms)

    def _container_ended(self, ended: messages.EndedContainer) -> None:
        """The ResourceManager reports that a container is gone."""
        container = self.containers.forget(ended.container)
        if container is None:
            return
        attempt = self.attempts.of_container.get(container.number)
        container.released_at_ms = ended.at_ms
        blameless = ended.exit_status in BLAMELESS
        if attempt is None:
            if container.state != ENDED:  # taken before it was used
                self.actor.received([], [container], self.kernel.now_ms)
            return
        if not attempt.over:
            said = ended.diagnostics or f"Container exited with a non-zero exit code {ended.exit_status}"
            container.terminal_state = "killed" if blameless else "failed"
            attempt.end("KILLED" if blameless else "FAILED", self.kernel.now_ms, said)
            if not blameless and self._too_many(attempt):
                return
            self.actor.received([], [container], self.kernel.now_ms)
        self.tasks.ended(attempt)
        if blameless and "node was lost" in ended.diagnostics and attempt.node not in self._lost_nodes:
            self._lost_nodes.add(attempt.node)
            if self.tasks.modelled:  # files of processes are where all can read them
                self.actor.node_lost(self.containers.node(attempt.node).index)

    # --- attempts that end before their time ----------------------------------------------

    def kill_attempt(self, attempt: Attempt) -> None:
        """Handle a request to end an attempt (PUT state KILLED); one that is over stays as it is."""
        if not attempt.over and attempt.container is not None:
            self.tasks.ask_to_end(attempt, "killed")

    def fail_attempt(self, attempt: Attempt, why: str) -> None:
        """An attempt has failed; the job too, if it was one too many."""
        if attempt.over or attempt.container is None:
            return
        attempt.end("FAILED", self.kernel.now_ms, why)
        if self._too_many(attempt):
            attempt.container.terminal_state = "failed"
            self.exit(attempt.container, self.kernel.now_ms)
        else:
            self.actor.fail(attempt.container)

    def _too_many(self, attempt: Attempt) -> bool:
        """Count a failure; say whether the job fails by it (and let it)."""
        key = attempt.is_map, attempt.task
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        kind = "map" if attempt.is_map else "reduce"
        if failures < number_setting(self.conf, f"mapreduce.{kind}.maxattempts", 4):
            return False
        task = self.attempts.task_id(attempt.is_map, attempt.task)
        self.fail_job(f"Task failed {task}: {failures} attempts failed, the last: {attempt.diagnostics}")
        return True

    # --- the end --------------------------------------------------------------------------

    def finished(self, master: Any) -> None:
        """All tasks are done: commit the job."""
        if self.state != "RUNNING":
            return
        try:
            self.tasks.commit()
        except OSError as error:
            self.fail_job(f"Job commit failed: {error}")
            return
        self._finish("SUCCEEDED")

    def fail_job(self, why: str) -> None:
        """The job has failed: end what runs and leave no output."""
        if self.state in ("NEW", "RUNNING"):
            self.diagnostics = why
            self._finish("FAILED")
            self.tasks.abort()

    def _finish(self, state: messages.FinalStatus) -> None:
        self.state = state
        self.finished_at_ms = self.kernel.now_ms
        self.actor.die()
        self._link.unregister(
            messages.MasterUnregistration(
                application=self.launch.application,
                attempt=self.launch.attempt,
                final_status=state,
                diagnostics=self.diagnostics[:4000],
                told=job_report(self.tasks.job, self.attempts.all.values(), self.driver.wall_of),
            )
        )

    def unregistered(self) -> None:
        """The ResourceManager has recorded that the application is over: exit."""
        self.later(max(1, self.timing.exit_ms), lambda _: self._leave(0, self.diagnostics))

    def notify(self, container: str, signal: messages.Signal = "OUTPUT_THREAD_DUMP") -> None:
        """A signal has arrived at a modelled container (of this master, or of another: then nothing)."""
        if self.state == "RUNNING":
            self.around(lambda: self.tasks.notify(container, signal))

    def end(self) -> None:
        """The AM's container is to end (its node reports): all its tasks end with it."""
        if not self.over:
            if self.state in ("NEW", "RUNNING"):
                self.state = "KILLED"
            self._leave(messages.EXIT_KILLED_BY_MASTER, "the container was stopped")

    def _leave(self, exit_status: int, why: str) -> None:
        if self.over:
            return
        self.over = True
        self.actor.alive = False
        self.driver.stop()
        self.tasks.close()
        self._transport.close()
        self._gone(exit_status, why)

    # --- queries ------------------------------------------------------------

    def progress_ratio(self) -> float:
        """Return the job's progress."""
        if self.state in ("SUCCEEDED", "FAILED", "KILLED"):
            return 1.0
        if self.tasks.modelled:
            return self.actor.progress_ratio(self.kernel.now_ms)
        return progress_ratio(self.tasks.job, self.attempts)


class ManagerLink:
    """A master's messages to the ResourceManager.

    A message is repeated until it is answered, a heartbeat with its number, and one heartbeat is under way
    at a time; what has changed meanwhile goes with the next one.
    """

    def __init__(self, launch: messages.MasterLaunch, transport: MasterTransport, master: LiveMaster) -> None:
        self.release: list[str] = []
        """Containers that are given back with the next heartbeat."""
        self._launch = launch
        self._transport = transport
        self._master = master
        self._unsent: list[messages.AskChange] = []
        self._number = 0
        self._open: messages.Allocate | None = None
        self._in_flight = False

    def register(self, _: object = None) -> None:
        """Register, until that is answered."""
        message = messages.MasterRegistration(
            application=self._launch.application,
            attempt=self._launch.attempt,
            tracking_url=self._master.tracking_url,
        )
        again = lambda _: self._master.later(RETRY_MS, self.register)  # noqa: E731
        self._transport.carry(MANAGER, "register_master", message, self._registered, again)

    def _registered(self, registered: messages.MasterRegistered) -> None:
        if registered.refused:
            self._master.refused(registered.refused)
        else:
            self._master.registered()

    def exchange(self, asks: list[tuple[Ask, int]]) -> None:
        """Send a heartbeat: what changed, or what was not answered once more."""
        self._unsent += [
            messages.AskChange(
                ask.priority,
                ask.memory_mib,
                ask.vcores,
                count,
                self._master.others_wanted(ask.priority),
                self._master.label_wanted(ask),
            )
            for ask, count in asks
        ]
        if self._in_flight:
            return
        if self._open is None:
            self._open = messages.Allocate(
                application=self._launch.application,
                attempt=self._launch.attempt,
                number=self._number + 1,
                asks=tuple(self._unsent),
                release=tuple(self.release),
                progress_ratio=self._master.progress_ratio(),
            )
            self._unsent, self.release = [], []
        self._in_flight = True
        self._transport.carry(MANAGER, "allocate", self._open, self._allocated, self._unanswered)

    def _unanswered(self, _: str) -> None:
        self._in_flight = False

    def _allocated(self, allocated: messages.Allocated) -> None:
        self._in_flight = False
        if allocated.refused:
            self._master.refused(allocated.refused)
        elif allocated.resync:
            self._number, self._open = 0, None
            self.register()
        elif self._open is not None and allocated.number == self._open.number:
            self._number, self._open = allocated.number, None
            self._master.allocated(allocated)

    def unregister(self, message: messages.MasterUnregistration) -> None:
        """Report how the application ended, until that is answered."""
        self._transport.carry(
            MANAGER,
            "unregister",
            message,
            lambda _: self._master.unregistered(),
            lambda _: self._master.later(RETRY_MS, lambda _: self.unregister(message)),
        )


def _with_slow_start(timing: Timing, conf: dict[str, str]) -> Timing:
    """Return the spans with the job's own slow start, if it names another than the default."""
    name = "mapreduce.job.reduce.slowstart.completedmaps"
    text = conf[name]
    if text == DEFAULTS[name]:
        return timing
    return msgspec.structs.replace(timing, slow_start_ratio=number_setting(conf, name, 0.05))
