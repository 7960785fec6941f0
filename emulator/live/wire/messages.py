"""Messages between ResourceManager, NodeManagers and masters in the live emulator.

Law: this is the whole seam. In one process the messages are handed over as they are, between
processes the same structs are JSON over HTTP (``PATHS``), with the same effect. Every call that
changes something carries a number, and a repeated number is answered with the same answer again: a lost
answer never doubles an effect (YARN's responseId does the same).

This is the emulator's own protocol. ``yarnctl`` uses Hadoop's REST, which is beside it.
Instants are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

Signal = Literal["OUTPUT_THREAD_DUMP", "GRACEFUL_SHUTDOWN", "FORCEFUL_SHUTDOWN"]
FinalStatus = Literal["SUCCEEDED", "FAILED", "KILLED"]
ContainerKind = Literal["am", "map", "reduce", "executor"]

PATHS = {
    "register_node": "/emulator/v1/nodes/register",
    "node_heartbeat": "/emulator/v1/nodes/heartbeat",
    "register_master": "/emulator/v1/masters/register",
    "allocate": "/emulator/v1/masters/allocate",
    "unregister": "/emulator/v1/masters/farewell",
    "start": "/emulator/v1/containers/start",
    "stop": "/emulator/v1/containers/stop",
}
"""Call -> the path that takes it by POST: the first five at the ResourceManager, the others at a node."""

# Exit statuses with a meaning of their own (YARN's ContainerExitStatus).
EXIT_ABORTED, EXIT_LOST, EXIT_PREEMPTED, EXIT_KILLED_BY_MASTER = -100, -100, -102, -105
EXIT_SIGTERM, EXIT_SIGKILL = 143, 137


# --- nodes and the ResourceManager ------------------------------------------------------------


class NodeRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """A node registers, or again. ``node`` is host:port; ``address`` the base URL masters reach it at.

    ``phase_ms``: when in each interval it sends heartbeats (None: as the answer says). ``running``: the
    containers it holds (after a ResourceManager's restart).
    """

    node: str
    address: str
    memory_mib: int
    vcores: int
    rack: str = "/default-rack"
    phase_ms: int | None = None
    running: tuple[str, ...] = ()


class NodeRegistered(msgspec.Struct, frozen=True, kw_only=True):
    """How a registered node is to behave. ``epoch`` names this start of the ResourceManager."""

    epoch: int
    heartbeat_ms: int
    phase_ms: int


class EndedContainer(msgspec.Struct, frozen=True):
    """A container's process is gone (all of its process group)."""

    container: str
    exit_status: int
    at_ms: int
    diagnostics: str = ""


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node's heartbeat. ``number`` counts up by one with each answered heartbeat."""

    node: str
    number: int
    ended: tuple[EndedContainer, ...] = ()
    running: tuple[str, ...] = ()


class MasterLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """Start an AM in this container. ``job`` is what was submitted (``emulator.live.wire.submitted_job``),
    as JSON.
    """

    container: str
    application: str
    attempt: int
    memory_mib: int
    vcores: int
    user: str
    job: msgspec.Raw


class Doorbell(msgspec.Struct, frozen=True):
    """Send this signal to the container's process group."""

    container: str
    signal: Signal


class NodeOrders(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a heartbeat.

    ``stop``: containers whose application is over or which were taken; SIGTERM, 250 ms, SIGKILL.
    ``resync``: this ResourceManager does not know the node; it registers again and keeps its containers.
    """

    number: int
    masters: tuple[MasterLaunch, ...] = ()
    signals: tuple[Doorbell, ...] = ()
    stop: tuple[str, ...] = ()
    resync: bool = False


# --- masters and the ResourceManager ----------------------------------------------------------


class MasterRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """An AM is up; ``tracking_url`` is where its REST answers (the proxy forwards to it)."""

    application: str
    attempt: int
    tracking_url: str


class MasterRegistered(msgspec.Struct, frozen=True, kw_only=True):
    """``refused``: not empty if this attempt is not the current one and must end."""

    heartbeat_ms: int
    refused: str = ""


class AskChange(msgspec.Struct, frozen=True):
    """``count`` more (negative: fewer) containers of one size wanted at one priority, anywhere.

    ``others``: what each wants beside memory and vcores, by the name of the resource type. ``label``: of the
    nodes (None: the application's).
    """

    priority: int
    memory_mib: int
    vcores: int
    count: int
    others: dict[str, int] = {}
    label: str | None = None


class Allocate(msgspec.Struct, frozen=True, kw_only=True):
    """An AM's heartbeat. ``number`` counts up by one with each answered call of this attempt.

    ``blacklist``: the nodes from which it takes no container (None: as before).
    """

    application: str
    attempt: int
    number: int
    asks: tuple[AskChange, ...] = ()
    release: tuple[str, ...] = ()
    progress_ratio: float = 0.0
    blacklist: tuple[str, ...] | None = None


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """A container for the AM to use; ``node_address`` is where it is started."""

    container: str
    node: str
    node_address: str
    memory_mib: int
    vcores: int
    priority: int


class Allocated(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to ``Allocate``. ``refused``: not empty if this attempt is over and must end."""

    number: int
    granted: tuple[Granted, ...] = ()
    ended: tuple[EndedContainer, ...] = ()
    refused: str = ""
    resync: bool = False


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a master reports of its job when it ends, for the history; spans in ms.

    ``attempts``: a row for each attempt as REST writes it, the first of a task first.
    """

    numbers: dict[str, int]
    counters: dict[str, int]
    attempts: tuple[dict[str, str | int], ...] = ()


class MasterUnregistration(msgspec.Struct, frozen=True, kw_only=True):
    """The job is over."""

    application: str
    attempt: int
    final_status: FinalStatus
    diagnostics: str = ""
    told: JobReport | None = None


class Acknowledged(msgspec.Struct, frozen=True):
    """Taken."""


class ResourceTracker(Protocol):
    """The ResourceManager's interface for nodes."""

    def register_node(self, registration: NodeRegistration) -> NodeRegistered:
        """Take a node in."""

    def node_heartbeat(self, report: NodeReport) -> NodeOrders:
        """Take a heartbeat."""


class MasterService(Protocol):
    """The ResourceManager's interface for masters."""

    def register_master(self, registration: MasterRegistration) -> MasterRegistered:
        """Take an AM in."""

    def allocate(self, allocate: Allocate) -> Allocated:
        """Take an AM's heartbeat."""

    def unregister(self, unregistration: MasterUnregistration) -> Acknowledged:
        """End the application."""


# --- masters and nodes ------------------------------------------------------------------------


class TaskLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """Start a task's process in a granted container, in its own process group.

    ``modelled``: no process; the container counts as occupied until ``stop`` reports its end. ``traps_term``:
    a SIGTERM goes to its model, as to a process that handles that signal.
    """

    container: str
    application: str
    kind: ContainerKind
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    folder: str = ""
    modelled: bool = False
    traps_term: bool = False


class TaskStop(msgspec.Struct, frozen=True, kw_only=True):
    """End a container. A process gets SIGTERM and 250 ms later SIGKILL; a modelled one ends at ``at_ms``."""

    container: str
    exit_status: int = EXIT_KILLED_BY_MASTER
    at_ms: int = 0


class ContainerService(Protocol):
    """A node's interface for masters."""

    def start(self, launch: TaskLaunch) -> Acknowledged:
        """Start a container; once per container, a repeated start changes nothing."""

    def stop(self, stop: TaskStop) -> Acknowledged:
        """End a container; fine if it is gone already."""
