"""Records: nodes, applications, attempts and containers as the live ResourceManager keeps them.

A record mirrors one object of the actor and adds what only the live side knows. What the scheduler counts is
read from the actor and never kept twice. Instants are kernel time in ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from emulator.cluster.entities import Application, Container, LeafQueue, Node, TreeLeafConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import MessageHost as ActorHost
from emulator.cluster.resource_manager import ResourceManager
from emulator.live.manager.manager_settings import ManagerSettings, others_in
from emulator.live.wire import messages
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.scenario.scheduler_file import SchedulerFile
from yarnctl.units import Resources

AppState = Literal["ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED"]
AttemptState = Literal["SCHEDULED", "LAUNCHED", "RUNNING", "FINISHED", "FAILED", "KILLED"]
FINAL: tuple[AppState, ...] = ("FINISHED", "FAILED", "KILLED")
_NO_ORDERS, _NO_MAIL = messages.NodeOrders(number=0), messages.Allocated(number=0)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What a client submits. ``job`` is the text for the AM, unread; tags are kept as YARN keeps them.

    ``label``: the node label of all its requests ("": the queue's default).
    """

    application: str
    queue: str
    user: str
    name: str = ""
    kind: str = "YARN"
    priority: int = 0
    tags: tuple[str, ...] = ()
    am_size: Resources = Resources(1024, 1)
    label: str = ""
    max_attempts: int = 0
    job: msgspec.Raw = msgspec.Raw(b"{}")


@dataclass(slots=True, eq=False)
class NodeRecord:
    """One registration of a node: until it is lost or registers again."""

    id: str
    actor: Node
    address: str
    rack: str
    heartbeat_at_ms: int
    number: int | None = None
    answer: messages.NodeOrders = _NO_ORDERS
    masters: list[messages.MasterLaunch] = field(default_factory=list)
    signals: list[messages.Doorbell] = field(default_factory=list)
    stop: dict[str, None] = field(default_factory=dict)
    running: tuple[str, ...] = ()

    @property
    def http_address(self) -> str:
        """Return host:port of where the node answers HTTP."""
        return self.address.partition("://")[2].partition("/")[0] or self.id


@dataclass(slots=True, eq=False)
class ContainerRecord:
    """A container that holds room. ``attempt`` is that of the application's master it belongs to."""

    id: str
    actor: Container
    app: AppRecord
    attempt: int
    node: NodeRecord
    acquired: bool = False

    @property
    def is_master(self) -> bool:
        """Whether an AM runs in it."""
        return self.actor.priority == 0


@dataclass(slots=True, eq=False)
class AttemptRecord:
    """One attempt of an application's master, with the mailbox for its next heartbeat."""

    id: str
    number: int
    container: str
    node: NodeRecord
    started_at_ms: int
    heartbeat_at_ms: int
    finished_at_ms: int = 0
    state: AttemptState = "LAUNCHED"
    final_status: str = "UNDEFINED"
    diagnostics: str = ""
    tracking_url: str = ""
    granted: list[ContainerRecord] = field(default_factory=list)
    granted_count: int = 1
    ended: list[messages.EndedContainer] = field(default_factory=list)
    seen_number: int | None = None
    answer: messages.Allocated = _NO_MAIL

    @property
    def registered(self) -> bool:
        """Whether the AM is up and this attempt is not over."""
        return self.state == "RUNNING"


@dataclass(slots=True, eq=False)
class AppRecord:
    """One application, also after its end; ``job_report`` is what its master reported (None: nothing).

    ``shown_priority`` can differ from the scheduler's: YARN ignores a request for ``submitted_priority``.
    """

    submission: Submission
    number: int
    actor: Application
    submitted_at_ms: int
    counted_at_ms: int
    queue: str
    submitted_priority: int = 0
    shown_priority: int = 0
    launched_at_ms: int = 0
    finished_at_ms: int = 0
    state: AppState = "ACCEPTED"
    final_status: messages.FinalStatus | Literal["UNDEFINED"] = "UNDEFINED"
    diagnostics: str = ""
    progress_ratio: float = 0.0
    attempts: list[AttemptRecord] = field(default_factory=list)
    containers: dict[str, ContainerRecord] = field(default_factory=dict)
    mib_ms: int = 0
    vcore_ms: int = 0
    job_report: messages.JobReport | None = None

    @property
    def id(self) -> str:
        """Return the application's id."""
        return self.submission.application

    @property
    def attempt(self) -> AttemptRecord | None:
        """The current attempt, or the last one; None before the first AM container."""
        return self.attempts[-1] if self.attempts else None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL

    def count(self, now_ms: int) -> None:
        """Bring the sums of room times time up to now; call before what it holds changes."""
        passed_ms = now_ms - self.counted_at_ms
        if passed_ms > 0:
            self.mib_ms += self.actor.used_mib * passed_ms
            self.vcore_ms += self.actor.used_vcores * passed_ms
            self.counted_at_ms = now_ms


class RequestRefused(Exception):
    """A client's request that YARN refuses, in YARN's words."""


class Register:
    """The applications: ids, what runs, and the last that are over.

    An id is given out once and in order; what is over stays listed up to a number, as with YARN's
    max-completed-applications, and never comes back. ``unfinished`` and ``finished`` are by id, in the
    order of submission and of ending.
    """

    def __init__(self, epoch: int, finished_kept: int) -> None:
        self.unfinished: dict[str, AppRecord] = {}
        self.finished: dict[str, AppRecord] = {}
        self._epoch = epoch
        self._kept = finished_kept
        self._next_number = 1
        self._of_number: dict[int, AppRecord] = {}

    def new_id(self) -> str:
        """Return an application id that is not in use."""
        number = self._next_number
        self._next_number += 1
        return f"application_{self._epoch}_{number:04d}"

    def number_of(self, application: str) -> int:
        """Return the number in an id that was given out here. Raises RequestRefused."""
        head, _, tail = application.rpartition("_")
        number = int(tail) if tail.isascii() and tail.isdigit() and len(tail) < 10 else 0
        given = 0 < number < self._next_number and tail == f"{number:04d}"
        if head != f"application_{self._epoch}" or not given:
            raise RequestRefused(f"{application} was not given out by this ResourceManager")
        return number

    def add(self, app: AppRecord) -> None:
        """Add an application."""
        self.unfinished[app.id] = self._of_number[app.number] = app

    def finish(self, app: AppRecord) -> None:
        """Keep an ended application, and drop the oldest of too many."""
        del self.unfinished[app.id]
        self.finished[app.id] = app
        while len(self.finished) > self._kept:
            oldest = next(iter(self.finished))
            del self._of_number[self.finished.pop(oldest).number]

    def find(self, application: str) -> AppRecord | None:
        """Return an application, finished or not."""
        return self.unfinished.get(application) or self.finished.get(application)

    def of(self, application: Application) -> AppRecord:
        """Return the record of the actor's application."""
        return self._of_number[application.number]

    def attempt_id(self, app: AppRecord, attempt: int) -> str:
        """Return an attempt's id as YARN writes it."""
        return f"appattempt_{self._epoch}_{app.number:04d}_{attempt:06d}"

    def container_id(self, app: AppRecord, attempt: int, number: int) -> str:
        """Return a container's id as YARN writes it."""
        return f"container_{self._epoch}_{app.number:04d}_{attempt:02d}_{number:06d}"


class ManagerState:
    """What the parts of one live ResourceManager share: settings, time, the actor and the records.

    ``epoch`` (ms) names this start. ``nodes`` are those that count now; ``lost`` those that do not any more.
    """

    def __init__(
        self, driver: RealTimeDriver, settings: ManagerSettings, epoch: int, host: ActorHost
    ) -> None:
        self.driver = driver
        self.settings = settings
        self.epoch = epoch
        self.actor = ResourceManager(settings.queues, host, settings.parents)
        self.counts_memory_alone = False
        if isinstance(self.actor.scheduler, TreeScheduler) and settings.keys:
            leaves = tuple(each for each in settings.queues if isinstance(each, TreeLeafConfig))
            file = SchedulerFile(leaves, settings.parents, settings.keys)
            self.actor.scheduler.source, self.counts_memory_alone = file, file.counts_memory_alone
        if isinstance(self.actor.scheduler, TreeScheduler):
            self.actor.scheduler.set_labels({each.name: each.exclusive for each in settings.labels})
            self.actor.scheduler.types = tuple(settings.types)
        self.node_others = others_in(self.actor.scheduler.types, settings.types)
        """What each node has of the resource types beside memory and vcores."""
        self._labels = [each.name for each in settings.labels for _ in range(each.nodes)]
        self._label_of: dict[str, str] = {}
        self.register = Register(epoch, settings.finished_kept)
        self.nodes: dict[str, NodeRecord] = {}
        self.lost: dict[str, NodeRecord] = {}
        self.containers: dict[str, ContainerRecord] = {}
        self.driven = False
        """Whether time passes by itself."""

    def label_of(self, node: str) -> str:
        """Return a node's label: the next that is left when it registers first, then always the same."""
        if node not in self._label_of:
            place = len(self._label_of)
            self._label_of[node] = self._labels[place] if place < len(self._labels) else ""
        return self._label_of[node]

    def label_refused(self, queue: LeafQueue, label: str) -> str:
        """Return why applications of a queue may not request nodes with a label; empty: they may."""
        scheduler = self.actor.scheduler
        if not label or (
            isinstance(scheduler, TreeScheduler)
            and label in scheduler.labels
            and scheduler.nodes[queue.name].may_request(label)
        ):
            return ""
        return (
            f"Invalid resource request, queue={queue.name.rpartition('.')[2]} doesn't have permission to"
            f" access all labels in resource request. labelExpression of resource request={label[:100]}"
        )

    def after(self, span_ms: int, handler: Callable[[Any], object], argument: Any) -> None:
        """Call a handler after a span of kernel time."""
        self.driver.kernel.at(self.driver.kernel.now_ms + span_ms, handler, argument)
        if self.driven:
            self.driver.wake()
