"""Records of YARN's REST answers, with the fields that are needed.

A field has our name with its unit and carries Hadoop's spelling beside it. Fields that identify a thing have
no default, so that an error page in JSON is never taken for an answer. Sources: the DAO classes of Hadoop 3.3
to
3.5. Spans and instants are milliseconds since the epoch, memory MiB, shares percent (0 to 100).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import field

from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder
from yarnctl.units import NOTHING, Resources

MASTER = 1  # Containers of an application's master


MODELLED = frozenset({"memory-mb", "vcores"})  # The names of the resources that a vector's own fields hold


class Amount(msgspec.Struct, frozen=True, gc=False):
    """One row of resourceInformation."""

    name: str
    value: int = 0


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """``resourceInformations`` of a vector: every resource by its name."""

    rows: tuple[Amount, ...] = field(name="resourceInformation", default=())


_AMOUNTS = OneDecoder(Amounts)


@lru_cache(maxsize=4096)
def _counts(raw: bytes) -> Mapping[str, int]:
    """Return the amounts of the resources beside memory and vcores of which there are some, by name."""
    rows = _AMOUNTS.read(raw).rows if raw else ()
    return {row.name: row.value for row in rows if row.value > 0 and row.name not in MODELLED}


class Vector(msgspec.Struct, frozen=True, gc=False):
    """ResourceInfo: a resource vector. ``amounts``: all by name, read when needed; none before 3.0."""

    memory_mib: int = field(name="memory", default=0)
    vcores: int = field(name="vCores", default=0)
    amounts: msgspec.Raw = field(name="resourceInformations", default=msgspec.Raw())

    @property
    def resources(self) -> Resources:
        """The vector of memory and vcores alone."""
        return Resources(self.memory_mib, self.vcores)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the resources beside memory and vcores of which it has some, in order."""
        return tuple(sorted(_counts(bytes(self.amounts))))

    def of(self, names: Sequence[str]) -> Resources:
        """Return the vector with the amounts of these other resources, in their order."""
        if not names:
            return self.resources
        counts = _counts(bytes(self.amounts))
        return Resources(self.memory_mib, self.vcores, *(counts.get(name, 0) for name in names))


def label_in(text: str | None) -> str | None:
    """Return an expression's label, "" for the default (also ``<DEFAULT_PARTITION>``), None if not given."""
    label = None if text is None else text.strip()
    return "" if label is not None and label.startswith("<") else label


def other_names(vectors: Iterable[Vector]) -> tuple[str, ...]:
    """Return the names of the resources beside memory and vcores of which one of the vectors has some."""
    found: set[str] = set()
    last: msgspec.Raw | None = None
    for vector in vectors:
        if last is None or vector.amounts != last:  # most nodes are alike; a comparison copies nothing
            last = vector.amounts
            found.update(_counts(bytes(last)))
    return tuple(sorted(found))


class SubCluster(msgspec.Struct, frozen=True):
    """One cluster of a federation."""

    name: str = field(name="subClusterId")


class ClusterInfo(msgspec.Struct, frozen=True):
    """GET /info: which ResourceManager answers. ``epoch`` is the instant at which it began.

    ``clusters``: those of a federation, if a Router answers without the root element. That is the default of
    Jersey (tried with the jars of 3.4.2, without a Router).
    """

    epoch: int = field(name="id")
    state: str = field(name="state", default="")
    ha_state: str = field(name="haState", default="")
    version: str = field(name="hadoopVersion", default="")
    clusters: tuple[SubCluster, ...] = field(name="subCluster", default=())


class ClusterMetrics(msgspec.Struct, frozen=True):
    """GET /metrics: the counters of the cluster. ``pending_mib`` is None before 3.3.0 (YARN-9464)."""

    total_mib: int = field(name="totalMB")
    available_mib: int = field(name="availableMB", default=0)
    allocated_mib: int = field(name="allocatedMB", default=0)
    reserved_mib: int = field(name="reservedMB", default=0)
    pending_mib: int | None = field(name="pendingMB", default=None)
    total_vcores: int = field(name="totalVirtualCores", default=0)
    containers: int = field(name="containersAllocated", default=0)
    applications_pending: int = field(name="appsPending", default=0)
    nodes_active: int = field(name="activeNodes", default=0)


class PartitionUse(msgspec.Struct, frozen=True, gc=False):
    """One row of resourceUsagesByPartition; partition "" is the unlabelled one."""

    partition: str = field(name="partitionName", default="")
    used: Vector = Vector()
    pending: Vector = Vector()
    reserved: Vector = Vector()


class Uses(msgspec.Struct, frozen=True, gc=False):
    """``resourceInfo`` of an application, ``resources`` of a queue."""

    partitions: tuple[PartitionUse, ...] = field(name="resourceUsagesByPartition", default=())

    def pending(self) -> Resources:
        """The demand that is not yet granted, over all partitions."""
        return _sum(tuple(row.pending for row in self.partitions))

    def of(self, label: str) -> PartitionUse:
        """Return the row of the nodes with a label ("": none); one of nothing if there is none."""
        return next((row for row in self.partitions if row.partition == label), _NO_USE)

    @property
    def labelled(self) -> tuple[PartitionUse, ...]:
        """The rows of nodes with a label."""
        return tuple(row for row in self.partitions if row.partition)


_NO_USE = PartitionUse()


class ExecutionRequest(msgspec.Struct, frozen=True, gc=False):
    """``executionTypeRequest`` of a request."""

    kind: str = field(name="executionType", default="")


class ResourceRequest(msgspec.Struct, frozen=True, gc=False):
    """One row of resourceRequests: a node's, a rack's or ``*``, which is the sum of all of them.

    A SchedulingRequest (3.1 and later) has no location. ``constraint``: its own placement constraint; the
    application may have registered others, which YARN does not show.
    """

    location: str | None = field(name="resourceName", default=None)
    count: int = field(name="numContainers", default=0)
    priority: int = 0
    size: Vector = field(name="capability", default=Vector())
    label: str | None = field(name="nodeLabelExpression", default=None)
    execution: ExecutionRequest | None = field(name="executionTypeRequest", default=None)
    constraint: str | None = field(name="placementConstraint", default=None)

    @property
    def is_constrained(self) -> bool:
        """Whether its containers may depend on what runs on a node."""
        return self.location is None or bool(self.constraint)

    @property
    def is_opportunistic(self) -> bool:
        """Whether its containers queue at a node, outside the queue's guarantee."""
        return self.execution is not None and self.execution.kind == "OPPORTUNISTIC"


class AppInfo(msgspec.Struct, frozen=True, gc=False):
    """GET /apps and /apps/{id}; fields in Hadoop's order, which decodes fastest.

    ``uses`` is None just after submission (seen in 3.4.2). ``label`` is that of the requests that name none,
    ``am_label`` that of its master (None: not set). Fields that need the right VIEW_APP (all from
    ``submitted_at_ms`` on) keep their default without it.
    """

    application: str = field(name="id")
    user: str = ""
    name: str = ""
    queue: str = ""
    state: str = ""
    progress_percent: float = field(name="progress", default=0.0)
    diagnostics: str = ""
    kind: str = field(name="applicationType", default="")
    tags: str = field(name="applicationTags", default="")
    priority: int = 0
    submitted_at_ms: int = field(name="startedTime", default=0)
    elapsed_ms: int = field(name="elapsedTime", default=0)
    allocated_mib: int = field(name="allocatedMB", default=0)
    allocated_vcores: int = field(name="allocatedVCores", default=0)
    reserved_mib: int = field(name="reservedMB", default=0)
    reserved_vcores: int = field(name="reservedVCores", default=0)
    containers: int = field(name="runningContainers", default=0)
    mib_seconds: int = field(name="memorySeconds", default=0)
    requests: tuple[ResourceRequest, ...] = field(name="resourceRequests", default=())
    label: str | None = field(name="appNodeLabelExpression", default=None)
    am_label: str | None = field(name="amNodeLabelExpression", default=None)
    uses: Uses | None = field(name="resourceInfo", default=None)


class TrackedApplication(msgspec.Struct, frozen=True):
    """GET /apps: the address of an application's page. ``unmanaged`` None: not in this version."""

    application: str = field(name="id")
    state: str = ""
    submitted_at_ms: int = field(name="startedTime", default=0)
    tracking_url: str = field(name="trackingUrl", default="")
    unmanaged: bool | None = field(name="unmanagedApplication", default=None)


class ApplicationOutcome(msgspec.Struct, frozen=True):
    """GET /apps/{id}: how it ended. ``ended_at_ms`` is 0 without the right VIEW_APP (facts, section 1.2)."""

    application: str = field(name="id")
    state: str = ""
    user: str = ""
    ended_at_ms: int = field(name="finishedTime", default=0)


class EndedApplication(msgspec.Struct, frozen=True):
    """GET /apps and /apps/{id}: an application that has ended, and the memory that it held over its time.

    Instants are 0, and ``mib_seconds`` is negative or 0, without the right VIEW_APP. ``launched_at_ms`` is
    when its master got its container.
    """

    application: str = field(name="id")
    user: str = ""
    name: str = ""
    state: str = ""
    final_status: str = field(name="finalStatus", default="")
    kind: str = field(name="applicationType", default="")
    tags: str = field(name="applicationTags", default="")
    submitted_at_ms: int = field(name="startedTime", default=0)
    launched_at_ms: int = field(name="launchTime", default=0)
    ended_at_ms: int = field(name="finishedTime", default=0)
    mib_seconds: int = field(name="memorySeconds", default=0)


class BilledApplication(msgspec.Struct, frozen=True, gc=False):
    """GET /apps: what an application used, and what YARN's own preemption took from it.

    MiB-seconds and numbers of containers; negative without the right VIEW_APP. ``ended_at_ms`` 0: it runs.
    ``launched_at_ms`` 0: it never had a master, or YARN does not say (before 3.3).
    """

    application: str = field(name="id")
    user: str = ""
    name: str = ""
    queue: str = ""
    kind: str = field(name="applicationType", default="")
    tags: str = field(name="applicationTags", default="")
    state: str = ""
    final_status: str = field(name="finalStatus", default="")
    submitted_at_ms: int = field(name="startedTime", default=0)
    launched_at_ms: int = field(name="launchTime", default=0)
    ended_at_ms: int = field(name="finishedTime", default=0)
    mib_seconds: int = field(name="memorySeconds", default=-1)
    vcore_seconds: int = field(name="vcoreSeconds", default=-1)
    preempted_mib_seconds: int = field(name="preemptedMemorySeconds", default=-1)
    preempted_containers: int = field(name="numNonAMContainerPreempted", default=-1)
    preempted_masters: int = field(name="numAMContainerPreempted", default=-1)


class AppAttempt(msgspec.Struct, frozen=True):
    """GET /apps/{id}/appattempts: one attempt of the application's master."""

    number: int = field(name="id")
    attempt: str = field(name="appAttemptId", default="")
    container: str = field(name="containerId", default="")
    started_at_ms: int = field(name="startTime", default=0)


class AllocatedRow(msgspec.Struct, frozen=True, gc=False):
    """One entry of allocatedResources."""

    key: str = ""
    value: int = 0


class AllocatedRows(msgspec.Struct, frozen=True, gc=False):
    """``allocatedResources`` of a container: every resource by its name."""

    entries: tuple[AllocatedRow, ...] = field(name="entry", default=())


class ContainerRow(msgspec.Struct, frozen=True, gc=False):
    """GET .../containers: a live container. MapReduce encodes its kind in the priority."""

    container: str = field(name="containerId")
    memory_mib: int = field(name="allocatedMB", default=0)
    vcores: int = field(name="allocatedVCores", default=0)
    node: str = field(name="assignedNodeId", default="")
    priority: int = 0
    started_at_ms: int = field(name="startedTime", default=0)
    finished_at_ms: int = field(name="finishedTime", default=0)
    state: str = field(name="containerState", default="")
    exit_status: int = field(name="containerExitStatus", default=0)
    allocated: AllocatedRows | None = field(name="allocatedResources", default=None)
    others_size: tuple[int, ...] = field(name="yarnctl-others-size", default=())

    @property
    def size(self) -> Resources:
        """The container's size, with other resources once :meth:`with_others` has put them in order."""
        return Resources(self.memory_mib, self.vcores, *self.others_size)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the resources beside memory and vcores of which it has some."""
        rows = () if self.allocated is None else self.allocated.entries
        return tuple(sorted({row.key for row in rows if row.value > 0} - MODELLED))

    def with_others(self, names: Sequence[str]) -> ContainerRow:
        """Return the row with the amounts of these other resources in its size."""
        if not names or not self.others:
            return self
        rows = () if self.allocated is None else self.allocated.entries
        counts = {row.key: row.value for row in rows}
        sizes = tuple(counts.get(name, 0) for name in names)
        return msgspec.structs.replace(self, others_size=sizes)


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """GET /nodes: one NodeManager, with what is read of it: a cluster has thousands.

    ``capacity`` is None in older versions: used + available then.
    """

    node: str = field(name="id")
    state: str = ""
    used_mib: int = field(name="usedMemoryMB", default=0)
    available_mib: int = field(name="availMemoryMB", default=0)
    used_vcores: int = field(name="usedVirtualCores", default=0)
    available_vcores: int = field(name="availableVirtualCores", default=0)
    available: Vector | None = field(name="availableResource", default=None)
    capacity: Vector | None = field(name="totalResource", default=None)
    labels: tuple[str, ...] = field(name="nodeLabels", default=())

    @property
    def partition(self) -> str:
        """The node's label; "" for the default partition. YARN allows one label a node."""
        if not self.labels:
            return ""
        return next((label for text in self.labels if (label := label_in(text))), "")

    @property
    def host(self) -> str:
        """The host of its address."""
        return self.node.rpartition(":")[0] or self.node

    @property
    def free(self) -> Resources:
        """The free capacity; never negative (a node may be shrunk below its use)."""
        return Resources(max(0, self.available_mib), max(0, self.available_vcores))

    @property
    def pair(self) -> tuple[int, int]:
        """The node's memory and vcores."""
        capacity = self.capacity
        if capacity is not None and capacity.memory_mib > 0:
            return capacity.memory_mib, capacity.vcores
        return self.used_mib + self.available_mib, self.used_vcores + self.available_vcores

    @property
    def total(self) -> Resources:
        """The node's size."""
        return Resources(*self.pair)

    def total_of(self, names: Sequence[str]) -> Resources:
        """Return the node's size with these other resources."""
        return _with_others(self.total, self.capacity, names)

    def free_of(self, names: Sequence[str]) -> Resources:
        """Return the free capacity with these other resources."""
        return _with_others(self.free, self.available, names)


class LabelRow(msgspec.Struct, frozen=True):
    """GET /get-node-labels. Requests without a label may use idle nodes of one that is not exclusive."""

    name: str
    is_exclusive: bool = field(name="exclusivity", default=True)


def _with_others(size: Resources, vector: Vector | None, names: Sequence[str]) -> Resources:
    if not names or vector is None:
        return size
    return Resources(*size, *vector.of(names)[2:])


class QueueUser(msgspec.Struct, frozen=True):
    """One row of a leaf queue's users. ``is_active``: it has pending requests (older versions: not shown).

    ``limit`` includes ``weight``, by which a user's limit in the queue differs from the others'.
    """

    user: str = field(name="username")
    used: Vector = field(name="resourcesUsed", default=Vector())
    limit: Vector | None = field(name="userResourceLimit", default=None)
    is_active: bool = field(name="isActive", default=True)
    weight: float = field(name="userWeight", default=1.0)


class QueueUsers(msgspec.Struct, frozen=True):
    """The wrapper round a leaf queue's users."""

    rows: tuple[QueueUser, ...] = field(name="user", default=())


class QueueList(msgspec.Struct, frozen=True):
    """The wrapper round a parent queue's children."""

    rows: tuple[QueueInfo, ...] = field(name="queue", default=())


class PartitionShare(msgspec.Struct, frozen=True):
    """A row of queueCapacitiesByPartition: a queue's part of labelled nodes in percent; vectors or None."""

    partition: str = field(name="partitionName", default="")
    guaranteed_percent: float = field(name="absoluteCapacity", default=0.0)
    maximum_percent: float = field(name="absoluteMaxCapacity", default=0.0)
    guaranteed: Vector | None = field(name="effectiveMinResource", default=None)
    maximum: Vector | None = field(name="effectiveMaxResource", default=None)


class PartitionShares(msgspec.Struct, frozen=True):
    """``capacities`` of a queue."""

    rows: tuple[PartitionShare, ...] = field(name="queueCapacitiesByPartition", default=())


class QueueAcl(msgspec.Struct, frozen=True):
    """One right in a queue, as in the queue's key: "users groups"."""

    right: str = field(name="accessType", default="")
    listed: str = field(name="accessControlList", default="")


class QueueAcls(msgspec.Struct, frozen=True):
    """``queueAcls`` of a queue."""

    rows: tuple[QueueAcl, ...] = field(name="queueAcl", default=())


class QueueInfo(msgspec.Struct, frozen=True):
    """GET /scheduler: one queue of the capacity scheduler, root included.

    ``guaranteed`` and ``maximum`` (min/maxEffectiveCapacity) are None in the root and where a
    version lacks them; shares are then the percentages of the whole cluster. ``user_limit_percent`` is
    minimum-user-limit-percent; ``used_percent`` (-1: not shown) is the share of the cluster that the
    resource calculator makes of ``used``; ``ordering_policy`` ("": not shown) is that of a leaf's
    applications, or of a parent's children.
    ``default_label`` is the label of a leaf's containers that ask for none. ``capacity_percent`` and
    ``capacity_max_percent`` are parts of the parent's; ``am_ratio`` is the part of a leaf that masters may
    use; ``acls`` are shown from 3.3 on. ``created`` is "dynamicLegacy" or "dynamicFlexible" for a queue that
    YARN made for a job; ``is_created``: the same for a leaf of the first kind, before 3.4.
    """

    name: str = field(name="queueName")
    kind: str = field(name="type", default="")
    queue_type: str = field(name="queueType", default="")
    guaranteed_percent: float = field(name="absoluteCapacity", default=100.0)
    maximum_percent: float = field(name="absoluteMaxCapacity", default=100.0)
    used_percent: float = field(name="absoluteUsedCapacity", default=-1.0)
    guaranteed: Vector | None = field(name="minEffectiveCapacity", default=None)
    maximum: Vector | None = field(name="maxEffectiveCapacity", default=None)
    used: Vector = field(name="resourcesUsed", default=Vector())
    state: str = ""
    priority: int = field(name="queuePriority", default=0)
    pending_containers: int = field(name="pendingContainers", default=0)
    applications: int = field(name="numApplications", default=0)
    applications_active: int = field(name="numActiveApplications", default=0)
    applications_pending: int = field(name="numPendingApplications", default=0)
    user_limit_factor: float = field(name="userLimitFactor", default=1.0)
    user_limit_percent: float | None = field(name="userLimit", default=None)
    ordering_policy: str = field(name="orderingPolicyInfo", default="")
    am_limit: Vector | None = field(name="AMResourceLimit", default=None)
    am_used: Vector = field(name="usedAMResource", default=Vector())
    preemption_disabled: bool | None = field(name="preemptionDisabled", default=None)
    intra_queue_preemption_disabled: bool | None = field(name="intraQueuePreemptionDisabled", default=None)
    uses: Uses | None = field(name="resources", default=None)
    users: QueueUsers | None = None
    shares: PartitionShares | None = field(name="capacities", default=None)
    default_label: str | None = field(name="defaultNodeLabelExpression", default=None)
    capacity_percent: float = field(name="capacity", default=0.0)
    capacity_max_percent: float = field(name="maxCapacity", default=100.0)
    weight: float = 0.0
    mode: str = ""
    is_absolute: bool = field(name="isAbsoluteResource", default=False)
    am_ratio: float | None = field(name="configuredMaxAMResourceLimit", default=None)
    parallel_max: int | None = field(name="maxParallelApps", default=None)
    acls: QueueAcls | None = field(name="queueAcls", default=None)
    created: str = field(name="creationMethod", default="")
    is_created: bool = field(name="isAutoCreatedLeafQueue", default=False)
    below: QueueList | None = field(name="queues", default=None)

    @property
    def children(self) -> tuple[QueueInfo, ...]:
        """The queues below this one; empty for a leaf."""
        return self.below.rows if self.below is not None else ()

    @property
    def unit(self) -> str:
        """How its capacity is given: "percentage", "weight", "absolute" (before 3.4: by a flag) or "mixed".

        Mixed (from 3.4, without the legacy queue mode): one resource in percent, another by weight.
        """
        return self.mode or ("absolute" if self.is_absolute else "percentage")

    @property
    def order(self) -> Literal["fifo", "fair", "other"]:
        """How a leaf serves its applications, by the policy's name or, before 3.4, its class."""
        policy = self.ordering_policy.strip().lower()
        if policy.startswith("fair"):
            return "fair"
        return "fifo" if policy.startswith("fifo") or not policy else "other"

    @property
    def template(self) -> str:
        """The prefix of this queue's keys at its parent, from whose template YARN made it; "": own keys."""
        if self.created == "dynamicFlexible":
            return "auto-queue-creation-v2.leaf-template"
        return "leaf-queue-template" if self.created == "dynamicLegacy" or self.is_created else ""

    @property
    def administrators(self) -> str | None:
        """The own list of who may administer it, "users groups"; None: not shown."""
        rows = () if self.acls is None else self.acls.rows
        return next((row.listed for row in rows if row.right == "ADMINISTER_QUEUE"), None)

    def pending(self) -> Resources:
        """The pending sum of its applications, over all partitions."""
        return self.uses.pending() if self.uses is not None else NOTHING

    @property
    def held_back(self) -> int:
        """How many applications of a leaf wait because of max-parallel-apps (facts, section 5)."""
        return max(0, self.applications - self.applications_active - self.applications_pending)

    def used_of(self, label: str, names: Sequence[str] = ()) -> Resources:
        """Return what its applications use of the nodes with a label ("": none), reserved included."""
        if not label:
            return self.used.of(names)
        return self.uses.of(label).used.of(names) if self.uses is not None else NOTHING

    def reserved_of(self, label: str, names: Sequence[str] = ()) -> Resources:
        """Return what is reserved for its applications there."""
        return self.uses.of(label).reserved.of(names) if self.uses is not None else NOTHING

    def share_of(self, label: str) -> PartitionShare | None:
        """Return the queue's row of the nodes with a label ("": none); None if that is not shown."""
        rows = self.shares.rows if self.shares is not None else ()
        return next((row for row in rows if row.partition == label), None)


class UserInfo(msgspec.Struct, frozen=True):
    """GET /userinfo: the user that the ResourceManager authenticates."""

    user: str = field(name="requestedUser")


class SchedulerKind(msgspec.Struct, frozen=True):
    """GET /scheduler: the type of any scheduler's answer, as in ``fairScheduler``; "": none is shown.

    ``typed`` is its name in answers made with MOXy, and in those before Hadoop 3.1.
    """

    named: str = field(name="type", default="")
    typed: str = field(name="@xsi.type", default="")

    @property
    def kind(self) -> str:
        """The type, by either name."""
        return self.named or self.typed


class FederationInfo(msgspec.Struct, frozen=True):
    """GET /info of a Router (YARN-11445) with the root element: the clusters of a federation."""

    clusters: tuple[SubCluster, ...] = field(name="subCluster")


class StateAnswer(msgspec.Struct, frozen=True):
    """``{"state": ...}`` of an application or of a task attempt."""

    state: str


class PriorityAnswer(msgspec.Struct, frozen=True):
    """``{"priority": ...}`` of an application."""

    priority: int


class SchedulerOverview(msgspec.Struct, frozen=True):
    """GET /scheduler-overview (from 3.4.0): the scheduler's resource types, as text in brackets."""

    resource_types: str = field(name="schedulingResourceType", default="")


class QueueAnswer(msgspec.Struct, frozen=True):
    """``{"queue": ...}`` of an application."""

    queue: str


class Property(msgspec.Struct, frozen=True):
    """One configuration entry of scheduler-conf and of a job's configuration."""

    name: str
    value: str = ""


class DaemonProperty(msgspec.Struct, frozen=True):
    """One configuration entry of a daemon's /conf."""

    name: str = field(name="key")
    value: str = ""
    final: bool = field(name="isFinal", default=False)


class NameNodeState(msgspec.Struct, frozen=True):
    """GET /jmx of a NameNode, bean FSNamesystemState: "Operational", or "safeMode"."""

    state: str = field(name="FSState", default="")


class RemoteException(msgspec.Struct, frozen=True):
    """The error body of YARN and of WebHDFS."""

    exception: str = ""
    message: str = ""


CLUSTER_INFO = OneDecoder(ClusterInfo, "clusterInfo")
FEDERATION = OneDecoder(FederationInfo, "federationClusterInfo")
CLUSTER_METRICS = OneDecoder(ClusterMetrics, "clusterMetrics")
SCHEDULER = OneDecoder(QueueInfo, "scheduler", "schedulerInfo")
SCHEDULER_KIND = OneDecoder(SchedulerKind, "scheduler", "schedulerInfo")
APPLICATIONS = ListDecoder(AppInfo, "apps", "app")
TRACKED_APPLICATIONS = ListDecoder(TrackedApplication, "apps", "app")
APPLICATION = OneDecoder(AppInfo, "app")
APPLICATION_END = OneDecoder(ApplicationOutcome, "app")
ENDED_APPLICATIONS = ListDecoder(EndedApplication, "apps", "app")
BILLED_APPLICATIONS = ListDecoder(BilledApplication, "apps", "app")
ENDED_APPLICATION = OneDecoder(EndedApplication, "app")
APP_ATTEMPTS = ListDecoder(AppAttempt, "appAttempts", "appAttempt")
CONTAINERS = ListDecoder(ContainerRow, "containers", "container")
NODES = ListDecoder(NodeRow, "nodes", "node")
NODE_LABELS = ListDecoder(LabelRow, "nodeLabelsInfo", "nodeLabelInfo")
CALLER = OneDecoder(UserInfo, "clusterUserInfo")
APPLICATION_STATE = OneDecoder(StateAnswer, "appstate")
APPLICATION_PRIORITY = OneDecoder(PriorityAnswer, "applicationpriority")
APPLICATION_QUEUE = OneDecoder(QueueAnswer, "appqueue")
SCHEDULER_OVERVIEW = OneDecoder(SchedulerOverview, "scheduler")
SCHEDULER_CONFIGURATION = ListDecoder(Property, "configuration", "property")
DAEMON_CONFIGURATION = ListDecoder(DaemonProperty, "properties")
NAME_NODE_STATE = ListDecoder(NameNodeState, "beans")
REMOTE_EXCEPTION = OneDecoder(RemoteException, "RemoteException")


def _sum(vectors: tuple[Vector, ...]) -> Resources:
    return Resources(sum(one.memory_mib for one in vectors), sum(one.vcores for one in vectors))
