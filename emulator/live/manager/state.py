"""Records: nodes, applications, attempts and containers as the live ResourceManager keeps them.

Law: a record mirrors one object of the ResourceManager's actor and adds what only the live side knows: ids as
YARN writes them, addresses, mailboxes, instants for REST. What the scheduler counts is read from the actor
and never kept twice. Instants are kernel time in ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from emulator.cluster.resource_manager import MessageHost as ActorHost
from emulator.cluster.resource_manager import ResourceManager
from emulator.live.manager.manager_settings import ManagerSettings
from emulator.live.wire.messages import (
    Allocated,
    Doorbell,
    EndedContainer,
    FinalStatus,
    JobTold,
    MasterLaunch,
    NodeOrders,
)
from emulator.live.wire.real_time_driver import Pace
from yarnctl.units import Resources

if TYPE_CHECKING:
    from emulator.cluster.entities import Application, Container, Node

AppState = Literal["ACCEPTED", "RUNNING", "FINISHED", "FAILED", "KILLED"]
AttemptState = Literal["SCHEDULED", "LAUNCHED", "RUNNING", "FINISHED", "FAILED", "KILLED"]
FINAL: tuple[AppState, ...] = ("FINISHED", "FAILED", "KILLED")


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What a client submits. ``job`` is the text for the AM, unread; tags are kept as YARN keeps them."""

    application: str
    queue: str
    user: str
    name: str = ""
    kind: str = "YARN"
    priority: int = 0
    tags: tuple[str, ...] = ()
    am_size: Resources = Resources(1024, 1)
    max_attempts: int = 0
    job: msgspec.Raw = msgspec.Raw(b"{}")


class NodeRecord:
    """One life of a node: from its registration until it is lost or registers again."""

    __slots__ = (
        "actor",
        "address",
        "answer",
        "heard_at_ms",
        "id",
        "masters",
        "number",
        "rack",
        "registered_at_ms",
        "running",
        "signals",
        "stop",
    )

    def __init__(self, node_id: str, actor: Node, address: str, rack: str, now_ms: int) -> None:
        self.id = node_id
        self.actor = actor
        self.address = address
        self.rack = rack
        self.registered_at_ms = self.heard_at_ms = now_ms
        self.number: int | None = None
        self.answer = NodeOrders(number=0)
        self.masters: list[MasterLaunch] = []
        self.signals: list[Doorbell] = []
        self.stop: dict[str, None] = {}
        self.running: tuple[str, ...] = ()

    @property
    def http_address(self) -> str:
        """Return host:port of where the node answers HTTP."""
        return self.address.partition("://")[2].partition("/")[0] or self.id


class ContainerRecord:
    """A container that holds room. ``attempt`` is that of the application's master it belongs to."""

    __slots__ = ("acquired", "actor", "app", "attempt", "id", "node")

    def __init__(
        self, container_id: str, actor: Container, app: AppRecord, attempt: int, node: NodeRecord
    ) -> None:
        self.id = container_id
        self.actor = actor
        self.app = app
        self.attempt = attempt
        self.node = node
        self.acquired = False

    @property
    def is_master(self) -> bool:
        """Whether an AM runs in it."""
        return self.actor.priority == 0


class AttemptRecord:
    """One life of an application's master, with the mailbox for its next heartbeat."""

    __slots__ = (
        "answer",
        "container",
        "diagnostics",
        "ended",
        "final_status",
        "finished_at_ms",
        "granted",
        "granted_count",
        "heard_at_ms",
        "id",
        "node",
        "number",
        "seen_number",
        "started_at_ms",
        "state",
        "tracking_url",
    )

    def __init__(self, attempt_id: str, number: int, container: str, node: NodeRecord, now_ms: int) -> None:
        self.id = attempt_id
        self.number = number
        self.container = container
        self.node = node
        self.started_at_ms = self.heard_at_ms = now_ms
        self.finished_at_ms = 0
        self.state: AttemptState = "LAUNCHED"
        self.final_status = "UNDEFINED"
        self.diagnostics = ""
        self.tracking_url = ""
        self.granted: list[ContainerRecord] = []
        self.granted_count = 1
        self.ended: list[EndedContainer] = []
        self.seen_number: int | None = None
        self.answer = Allocated(number=0)

    @property
    def registered(self) -> bool:
        """Whether the AM is up and this attempt is not over."""
        return self.state == "RUNNING"


class AppRecord:
    """One application, also after its end."""

    __slots__ = (
        "actor",
        "attempts",
        "containers",
        "counted_at_ms",
        "diagnostics",
        "final_status",
        "finished_at_ms",
        "id",
        "launched_at_ms",
        "mib_ms",
        "number",
        "progress_ratio",
        "queue",
        "state",
        "submission",
        "submitted_at_ms",
        "told",
        "vcore_ms",
    )

    def __init__(self, submission: Submission, number: int, actor: Application, now_ms: int) -> None:
        self.id = submission.application
        self.number = number
        self.submission = submission
        self.queue = submission.queue
        self.actor = actor
        self.submitted_at_ms = self.counted_at_ms = now_ms
        self.launched_at_ms = self.finished_at_ms = 0
        self.state: AppState = "ACCEPTED"
        self.final_status: FinalStatus | Literal["UNDEFINED"] = "UNDEFINED"
        self.diagnostics = ""
        self.progress_ratio = 0.0
        self.attempts: list[AttemptRecord] = []
        self.containers: dict[str, ContainerRecord] = {}
        self.mib_ms = self.vcore_ms = 0
        self.told: JobTold | None = None
        """What its master has told at the end; None where it could not."""

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
        """Return an application id that nobody has."""
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
        """Take in an application."""
        self.unfinished[app.id] = self._of_number[app.number] = app

    def finish(self, app: AppRecord) -> None:
        """An application is over; the oldest of too many is forgotten."""
        del self.unfinished[app.id]
        self.finished[app.id] = app
        while len(self.finished) > self._kept:
            oldest = next(iter(self.finished))
            del self._of_number[self.finished.pop(oldest).number]

    def find(self, application: str) -> AppRecord | None:
        """Return an application, finished or not."""
        return self.unfinished.get(application) or self.finished.get(application)

    def of(self, actor: Application) -> AppRecord:
        """Return the record of the actor's application."""
        return self._of_number[actor.number]

    def attempt_id(self, app: AppRecord, attempt: int) -> str:
        """Return an attempt's id as YARN writes it."""
        return f"appattempt_{self._epoch}_{app.number:04d}_{attempt:06d}"

    def container_id(self, app: AppRecord, attempt: int, number: int) -> str:
        """Return a container's id as YARN writes it."""
        return f"container_{self._epoch}_{app.number:04d}_{attempt:02d}_{number:06d}"


class ManagerState:
    """What the parts of one live ResourceManager share: settings, time, the actor and the records.

    ``epoch`` (ms) names this life. ``nodes`` are those that count now; ``lost`` those that do not any more.
    """

    def __init__(self, pace: Pace, settings: ManagerSettings, epoch: int, host: ActorHost) -> None:
        self.pace = pace
        self.settings = settings
        self.epoch = epoch
        self.actor = ResourceManager(settings.queues, host, settings.locality_delay)
        self.register = Register(epoch, settings.finished_kept)
        self.nodes: dict[str, NodeRecord] = {}
        self.lost: dict[str, NodeRecord] = {}
        self.containers: dict[str, ContainerRecord] = {}
        self.driven = False
        """Whether time passes by itself."""

    def after(self, span_ms: int, handler: Callable[[Any], object], argument: Any) -> None:
        """Call a handler after a span of kernel time."""
        self.pace.kernel.at(self.pace.kernel.now_ms + span_ms, handler, argument)
        if self.driven:
            self.pace.poke()
