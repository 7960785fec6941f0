"""The model: every record that crosses the border between observing and deciding.

An *observation* goes into the controller, a *step* comes out. Records are values with units; no field is
named after a JSON key. Ids are opaque strings; every order ends in one, so that no ranking depends on a
position in memory. Rows that exist in their tens of thousands (tasks, requests) are tuples; the rest are
frozen msgspec structs, which encode to the same JSON bytes every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.reasons.demand import NotModelled, StandingAside
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.outcomes import OutcomeReason
from yarnctl.units import NOTHING, Resources

TaskKind = Literal["map", "reduce", "am", "executor", "worker"]
NAME_MAX = 200
"""Characters kept of an application's name and of its user: its owner can write anything."""

Ending = Literal["suspended", "completed", "killed", "failed", "lost"]


class ContainerRequest(NamedTuple):
    """``count`` containers of one size wanted anywhere, at one YARN request priority.

    Lower priorities are served first; MapReduce uses 0 for the AM, 3 for a resuming reduce
    (Natjam), 5 for a failed map, 10 for reduces, 20 for maps.
    """

    priority: int
    size: Resources
    count: int  # type: ignore[assignment]  # hides tuple.count


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf queue of the capacity scheduler.

    ``guaranteed`` and ``maximum`` are absolute vectors. ``user_limit`` is the most that one user may use
    (None: no limit); ``am_limit`` the most that all its masters together may use (None: no limit).
    """

    queue: str
    guaranteed: Resources
    maximum: Resources
    used: Resources
    priority: int = 0
    user_limit: Resources | None = None
    am_limit: Resources | None = None
    am_used: Resources = Resources(0, 0)


QueueOrder = Literal["utilization", "priority-utilization"]
"""How a parent orders the queues directly below it: ``ordering-policy`` of the capacity scheduler."""


class ParentView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One parent queue, root included; its path is the beginning of its children's paths.

    Vectors are absolute. ``used`` includes ``reserved``. Root's ``maximum`` is the total of the live nodes.
    ``priorities``: of the queues directly below it, by path, those that are not 0; read only where ``order``
    uses them. ``fair``: the leaves directly below it that serve the application first that uses the least
    memory, not the one with the lowest rank.
    """

    queue: str
    guaranteed: Resources
    maximum: Resources
    used: Resources
    reserved: Resources = NOTHING
    order: QueueOrder = "utilization"
    priorities: Mapping[str, int] = {}
    fair: tuple[str, ...] = ()


class ApplicationView(msgspec.Struct, frozen=True, kw_only=True):
    """One unfinished application.

    ``rank`` is its position in the queue's own serving order (the lowest is served first): the deciding half
    never re-derives FIFO or priority order. ``containers`` and ``used`` include the AM's container.
    ``activated`` is False while the queue's AM limit keeps its AM from being scheduled. ``runner``: its
    reduces carry the task runner and can be suspended (None: not known, its master cannot be reached);
    ``why_not``: why they cannot (None: they can, or it was not checked). ``predicted`` of its requests are
    predicted demand (:mod:`yarnctl.deciding.foresight`). ``left_alone``: it opts out, so nothing is
    taken. ``name`` is the job's: nothing is decided by it.
    """

    application: str
    queue: str
    user: str
    submitted_at_ms: int
    rank: int
    containers: int
    used: Resources
    am_size: Resources
    task_size: Resources
    requests: tuple[ContainerRequest, ...] = ()
    activated: bool = True
    runner: bool | None = True
    priority: int = 0
    deadline_at_ms: int | None = None
    progress_ratio: float = 0.0
    why_not: EligibilityReason | None = None
    predicted: int = 0
    name: str = ""
    left_alone: bool = False


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one instant: its nodes without a label, and in ``labelled`` those of each label.

    ``free_by_node`` has only nodes with free capacity. ``total`` is the sum over live nodes; ``largest_node``
    the largest single node. ``reserved_by_node`` names the application with a reservation on a node: it is
    given all capacity that becomes free there. ``left_out``: application -> what its pending requests want
    that is not modelled, which is not among its requests. ``aside``: queue -> why no container is freed for
    it now. ``node_count``: live nodes, those with a label included, for display.

    ``parents``: every parent queue with leaves below it, by path; empty where the tree is *flat*: all
    leaves are directly below root, which orders them by utilization, none is fair, nothing
    is reserved, no leaf has requests of several sizes, and the cluster has neither labels nor other resource
    types.
    ``reserved_free``: node -> what is free on it, of the nodes that ``free_by_node`` lacks because they are
    reserved.
    ``reserved_priority``: node -> priority of the request that reserves it, where YARN's record names it.
    ``reserved``: application -> what is reserved for its requests, which is in the ``used`` of its queue and
    its ancestors. ``user_limits``: queue -> user -> the limit that the ResourceManager shows, where it is
    lower than the queue's maximum and not its ``user_limit``. ``active_limits``: the same of every user,
    NOTHING without pending requests of activated applications; read in mode ``guarantees`` only.
    ``held_back``: the applications that are not activated because of ``max-parallel-apps``.
    ``heartbeat_ms``: the interval of a node's heartbeats (0: not known). ``located``: application -> how
    many heartbeats its requests, which name hosts, wait for these before they are granted elsewhere.
    ``smallest``: the smallest container, where limits of users are computed (:class:`UserLimits`).
    ``user_percents``: of these queues the percentages below 100 of ``minimum-user-limit-percent``; a user's
    limit follows what all users of the queue hold. Both only in a tree, of nodes without a label.

    ``labelled``: label -> the same of its nodes, with the applications that use or request some;
    ``left_out``, ``aside``, ``held_back``, ``heartbeat_ms`` and ``located`` are not repeated there. Only
    these have ``nodes``, their live nodes by name, and ``is_shared``: requests without a label
    may use what is idle there.
    ``resource_names``: the components of vectors after memory and vcores. ``node_totals``: in a tree with
    such types, the sizes of the nodes that are not like ``largest_node``.

    ``cluster_total``, ``active_elsewhere``, ``elsewhere_mib`` and ``unlabelled`` are only in one partition's
    own snapshot (:func:`yarnctl.deciding.partitions.part_of`): the total of all partitions, queue -> the
    users with pending requests for nodes of others, or of a kind that is not modelled, application -> what it
    uses of others, and beside a partition with a label the one without.
    """

    total: Resources
    largest_node: Resources
    queues: tuple[QueueView, ...]
    applications: tuple[ApplicationView, ...]
    free_by_node: Mapping[str, Resources]
    reserved_by_node: Mapping[str, str] = {}
    reserved_free: Mapping[str, Resources] = {}
    reserved_priority: Mapping[str, int] = {}
    left_out: Mapping[str, NotModelled] = {}
    aside: Mapping[str, StandingAside] = {}
    node_count: int | None = None
    parents: tuple[ParentView, ...] = ()
    reserved: Mapping[str, Resources] = {}
    user_limits: Mapping[str, Mapping[str, Resources]] = {}
    active_limits: Mapping[str, Mapping[str, Resources]] = {}
    held_back: tuple[str, ...] = ()
    heartbeat_ms: int = 0
    located: Mapping[str, int] = {}
    smallest: Resources = NOTHING
    user_percents: Mapping[str, float] = {}
    labelled: Mapping[str, Snapshot] = {}
    nodes: tuple[str, ...] = ()
    is_shared: bool = False
    resource_names: tuple[str, ...] = ()
    node_totals: Mapping[str, Resources] = {}
    cluster_total: Resources = NOTHING
    active_elsewhere: Mapping[str, frozenset[str]] = {}
    elsewhere_mib: Mapping[str, int] = {}
    unlabelled: Snapshot | None = None


class TaskView(NamedTuple):
    """One running task attempt of a victim job, as its AM and its runner report it.

    ``remaining_ms`` is the true remaining work (-1 unknown). ``resume_cost_ms`` is the predicted resume cost
    of a suspension now: the sum of the parts that :class:`CameBack` measures. ``checkpointable`` is False in
    shuffle, while skipping or replaying, and without a ready runner. ``since_ms`` is when this attempt last
    started or resumed work on new keys.

    Of an executor (Spark) ``remaining_ms`` is how long it takes to leave, ``resume_cost_ms`` the cost of
    leaving and returning, the time since ``since_ms`` the work that would be repeated; ``checkpointable``: it
    may be drained now. A worker is an executor of an application that receives a number and chooses which
    leave: its work and costs are those of the whole application, paid once however many leave.
    """

    attempt: str
    container: str
    node: str
    size: Resources
    kind: TaskKind
    remaining_ms: int
    resume_cost_ms: int
    since_ms: int
    generation: int
    checkpointable: bool
    resumed: bool


# --- facts: what has happened, in order, reported by the port ---------------------------------


class ManifestSeen(msgspec.Struct, frozen=True, tag="manifest-seen"):
    """A valid manifest names this order and attempt: the work up to ``keys_done`` is safe."""

    order: str
    attempt: str
    generation: int
    keys_done: int
    at_ms: int


class UploadProgressed(msgspec.Struct, frozen=True, tag="upload-progressed"):
    """The attempt is alive and saving: time-outs count from here."""

    order: str
    at_ms: int


class ContainerEnded(msgspec.Struct, frozen=True, tag="container-ended", omit_defaults=True):
    """A container of an open order has ended and its capacity is free again.

    ``order``: the order that it answers where the application chose which of its containers leaves.
    """

    container: str
    application: str
    node: str
    ending: Ending
    at_ms: int
    order: str = ""


class ContainerGranted(msgspec.Struct, frozen=True, tag="container-granted"):
    """The scheduler gave ``container`` on ``node`` to ``application``."""

    container: str
    application: str
    node: str
    size: Resources
    at_ms: int


class CameBack(msgspec.Struct, frozen=True, tag="came-back"):
    """``attempt`` does new keys from the end of the checkpoint of ``order`` on: the measured resume cost.

    ``launch_ms``: from the grant of its container to its start; ``shuffle_ms``: its process's start, shuffle
    and merge; ``skip_ms``: from there to the first new key. The time without a container is no cost: the
    preemption gave that time to the requester.
    """

    order: str
    attempt: str
    launch_ms: int
    shuffle_ms: int
    skip_ms: int
    at_ms: int


class CameBackWithout(msgspec.Struct, frozen=True, tag="came-back-without"):
    """``attempt`` began with less than the checkpoint of ``order`` has saved: saved work is done again.

    ``keys_lost``: the keys in that checkpoint, -1 if not known; fewer are lost if an older one was used.
    ``generation_found`` is what the attempt began from (0: nothing), ``generation_expected`` what was saved.
    """

    order: str
    attempt: str
    keys_lost: int
    generation_expected: int
    generation_found: int
    at_ms: int


class ApplicationEnded(msgspec.Struct, frozen=True, tag="application-ended"):
    """The application reached a terminal state."""

    application: str
    at_ms: int


class EpochChanged(msgspec.Struct, frozen=True, tag="epoch-changed"):
    """Another ResourceManager answers, or the same one after a restart; tasks may live on."""

    epoch: str
    at_ms: int


_TaskFact = ManifestSeen | UploadProgressed | CameBack | CameBackWithout
Fact = _TaskFact | ContainerEnded | ContainerGranted | ApplicationEnded | EpochChanged


# --- what the port is to observe --------------------------------------------------------------


class ObservationRequest(msgspec.Struct, frozen=True):
    """What the controller needs in the next observation.

    ``cluster``: a snapshot, which the port may leave out (None) when the demand probe shows that no
    queue in ``probe_queues`` (empty: any queue) has pending demand. ``victims``: the tasks of
    these applications. ``orders``: facts about these open orders' containers, and ``requesters`` the
    applications on whose behalf they were made: grants to these matter most.
    """

    cluster: bool = True
    probe_queues: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    requesters: tuple[str, ...] = ()


class HeldTime(NamedTuple):
    """Container time that a payer held in a window of its budgets (:mod:`yarnctl.deciding.held_windows`).

    ``payer``: a queue, whose tagged jobs do not count; a tagged job's id; or ``user:NAME``.
    """

    payer: str
    window_ms: int
    mib_ms: int


class JobConsent(NamedTuple):
    """What a job's own tag allows to be lost. It has a budget of its own, and its time is not its queue's."""

    application: str
    user: str
    may_lose_ratio: float


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What was observed. ``as_of_ms`` <= ``now_ms`` is the instant of the snapshot.

    * ``cluster``: why there is no snapshot although one was requested. "quiet": the demand probe shows no
      pending request of a preempting application. "unreachable": the cluster's state is unknown, so no action
      is allowed. With a snapshot it counts as "seen".
    * ``tasks`` has an entry for every requested victim that answered; ``unreachable`` names those whose AM
      did not, ``late`` those whose answer had not come when the observation ended.
    * ``held``: what each payer held in the windows that end at ``now_ms``, where the settings have levers.
      ``consents``: of each unfinished job whose tag allows a loss. Both also without a snapshot.
    * ``group_ms``: attempt -> how long it works on one key group, at whose end it can be suspended. Those for
      which it is unknown or short are left out.
    * ``bound_ms``: attempt -> the lost work that is not exceeded with a chance of 95 % when it is drained,
      where that is more than 0. No choice depends on it.
    """

    now_ms: int
    as_of_ms: int
    snapshot: Snapshot | None = None
    cluster: Literal["seen", "quiet", "unreachable"] = "quiet"
    tasks: Mapping[str, tuple[TaskView, ...]] = {}
    unreachable: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    held: tuple[HeldTime, ...] = ()
    consents: tuple[JobConsent, ...] = ()
    group_ms: Mapping[str, int] = {}
    bound_ms: Mapping[str, int] = {}


# --- actions: what the port is to do ----------------------------------------------------------


class Suspend(msgspec.Struct, frozen=True, tag="suspend"):
    """Request this attempt to write generation ``generation`` of its checkpoint and stop."""

    order: str
    application: str
    attempt: str
    container: str
    generation: int
    deadline_at_ms: int


class Withdraw(msgspec.Struct, frozen=True, tag="withdraw"):
    """Withdraw the suspend request: the attempt continues (not suspending is always allowed)."""

    order: str
    application: str
    attempt: str
    container: str


class Release(msgspec.Struct, frozen=True, tag="release"):
    """Return the container: its manifest is valid, nothing is lost."""

    order: str
    application: str
    attempt: str
    container: str
    generation: int


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """End the attempt with its work lost."""

    order: str
    application: str
    attempt: str
    container: str


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Ask this executor to end its running tasks, move its blocks to others, and leave.

    ``mates``: the executors of the application that one decision drains, this one among them: they leave
    together. ``idle``: they were chosen because they had no task and nothing was charged: one that has a task
    when its driver reads the order stays. Of one decision idle executors and others have orders of their own.
    """

    order: str
    application: str
    attempt: str
    container: str
    decision: int
    mates: tuple[str, ...]
    idle: bool | msgspec.UnsetType = msgspec.UNSET


class Grow(msgspec.Struct, frozen=True, tag="grow"):
    """Let an application have again what left it by these decisions, in their order."""

    application: str
    decisions: tuple[int, ...]


class SetPriority(msgspec.Struct, frozen=True, tag="set-priority"):
    """Give the application this YARN priority (higher is served first)."""

    application: str
    priority: int


class SetQueueMaximum(msgspec.Struct, frozen=True, tag="set-queue-maximum"):
    """Lower a queue's maximum to this part of its parent."""

    queue: str
    ratio: float


class DisablePreemption(msgspec.Struct, frozen=True, tag="disable-preemption"):
    """Exclude a leaf queue from YARN's own preemption."""

    queue: str


ChangeKind = Literal["queue", "priority", "bounds", "executors", "preemption"]
"""A queue's maximum, a YARN priority, the bounds of a job's workers, the number of its executors, and whether
YARN's own preemption leaves a queue alone."""


class Change(msgspec.Struct, frozen=True):
    """A setting of another owner, changed for a while; ``target``: the path of a queue, or an application.

    ``before`` and ``now`` are the value's text: of a queue a part of its parent ("0.7"), of a priority its
    number, of bounds the JSON of :class:`yarnctl.attach.orders.reversible.JobBounds`. Of executors
    ``before`` is their number, and ``now`` the names of the decisions that drained some ("y1-d3 y1-d4").
    Of preemption the leaf's own key ``disable_preemption`` ("" before: the key was absent).
    """

    kind: ChangeKind
    target: str
    before: str
    now: str

    @property
    def key(self) -> tuple[ChangeKind, str]:
        """The setting; at most one change of it is open."""
        return self.kind, self.target


class Restore(msgspec.Struct, frozen=True, tag="restore"):
    """Give a setting the value that it had before yarnctl changed it."""

    change: Change


OrderAction = Suspend | Withdraw | Release | Kill | Drain
"""What is done about one order."""

Action = OrderAction | Grow | SetPriority | SetQueueMaximum | DisablePreemption | Restore


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """The cluster accepted the request; its effect will show as a fact."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The cluster refused the request; it has no effect."""

    why: OutcomeReason


class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
    """It is not known whether the request arrived; only a later fact settles it."""

    why: OutcomeReason | None = None


class Withheld(msgspec.Struct, frozen=True, tag="withheld"):
    """The request was not sent, which means nothing for its attempt.

    The host only observes, or is blocked.
    """

    why: OutcomeReason


Outcome = Accepted | Refused | Unknown | Withheld
