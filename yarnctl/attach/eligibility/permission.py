"""Check whether an action may be sent now, and return why not.

Law: there is one check, made twice: before anything is read for an action, and again right before an attempt
is killed, since reading may take long. An action is permitted only if all of these hold:

* the settings enforce,
* it concerns a named queue,
* neither its tag, its user nor its queue opts out,
* the job is eligible (a lever may also kill a map, or a reduce that has begun nothing, of every MapReduce job
  there: that framework runs a killed task again),
* YARN itself does not preempt there (an unknown configuration counts as preempting; facts, section 6), or
  ``--yarn-preemption beside`` accepts that it does,
* the ResourceManager has answered for a while, and HDFS can be written.

Withdrawing a request, and restoring a queue or a priority, need only the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.application_rows import kind_of
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.settings_reader import NOT_YET, Readers
from yarnctl.deciding.model import (
    Action,
    DisablePreemption,
    Drain,
    Grow,
    Kill,
    Outcome,
    Refused,
    Release,
    Restore,
    SetPriority,
    SetQueueMaximum,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.eligibility import AnswerLate, OtherKind
from yarnctl.deciding.reasons.modes import (
    HdfsUnwritable,
    ManagerSettling,
    ModeReason,
    PreemptionOn,
    PreemptionUnknown,
    YarnPreempts,
    YarnPreemptsSomewhere,
    YarnPreemptsWithin,
)
from yarnctl.deciding.reasons.outcomes import (
    HoldNotAllowed,
    KillNotAllowed,
    MasterSilent,
    NoPreemptableQueue,
    Observing,
    OfNoPreemptableQueue,
    OutcomeReason,
    PriorityNotAllowed,
    QueueNotNamed,
    SwitchNotAllowed,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import Unreachable
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.journal.rendering import text

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
INTRA_QUEUE = "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.enabled"
OBSERVE_ONLY = "yarn.resourcemanager.monitor.capacity.preemption.observe_only"
POLICY = "ProportionalCapacityPreemptionPolicy"


def preempted_by_yarn(
    configuration: Mapping[str, str] | None, leaves: Iterable[Leaf], queues: QueueNames
) -> ModeReason | None:
    """Return why no order may be sent, None if orders may be. ``configuration``: the ResourceManager's."""
    if configuration is None:
        return PreemptionUnknown()
    if not policy_is_on(configuration):
        return None
    victims = [leaf for leaf in leaves if queues.is_preemptable(leaf.path)]
    if not victims:
        return YarnPreemptsSomewhere(MONITOR)
    for leaf in victims:
        if leaf.queue.preemption_disabled is not True:
            return YarnPreempts(leaf.path, MONITOR)
        if _is_on(configuration, INTRA_QUEUE) and leaf.queue.intra_queue_preemption_disabled is not True:
            return YarnPreemptsWithin(leaf.path, INTRA_QUEUE)
    return None


def switch_by_hand(queues: Iterable[str]) -> str:
    """Return how an operator switches where the scheduler's store is a file."""
    keys = ", ".join(f"yarn.scheduler.capacity.{path}.disable_preemption" for path in queues)
    return (
        f"set {keys} to true (capacity-scheduler.xml), run yarn rmadmin -refreshQueues, and use"
        " --yarn-preemption off; when yarnctl is down for long, remove the keys and refresh again"
    )


def policy_is_on(configuration: Mapping[str, str]) -> bool:
    """Return whether a ResourceManager's configuration lets YARN itself preempt."""
    if not _is_on(configuration, MONITOR) or POLICY not in configuration.get(POLICIES, POLICY):
        return False
    return not _is_on(configuration, OBSERVE_ONLY)


def _is_on(configuration: Mapping[str, str], name: str) -> bool:
    return configuration.get(name, "false").strip().lower() == "true"


STORE_RETRY_MS = 5_000  # After a failed request none is written; the lock's holder has noticed by then


class Permission:
    """Permits or refuses every action; ``host`` returns why the host may not act now (None: it may).

    ``term`` returns the last term of the lock that this process held: orders are written below its folder.
    """

    def __init__(self, connection: Connection, readers: Readers) -> None:
        self._connection = connection
        self._settings = connection.settings
        self._queues = connection.queues
        self._readers = readers
        self._unwritable: HdfsUnwritable | None = None
        self._unwritable_until_ms = 0
        self.host: Callable[[], ModeReason | None] = lambda: None
        self.term: Callable[[], int] = lambda: 0

    def may_act(self, action: Action) -> Outcome | None:
        """Return the outcome of an action that may not be sent, None if it may be. Raises Unreachable."""
        if not self._settings.enforce:
            return Withheld(Observing())
        match action:
            case Suspend() | Release():
                return self._now(action) or self._of_application(action.application, "suspend")
            case Kill():
                if not (self._settings.levers or self._settings.allow_kill):
                    return Refused(KillNotAllowed())
                return self._now(action) or self._of_application(action.application, "kill")
            case Drain():
                return self._now(action) or self._of_application(action.application, "drain")
            case SetPriority():
                return self._of_priority(action.application)
            case SetQueueMaximum():
                return self._of_maximum(action.queue)
            case DisablePreemption():
                return self._of_preemption(action.queue)
            case Withdraw() | Grow() | Restore():
                return None

    def why_nothing(self) -> ModeReason | None:
        """Return why no action may be sent now, None if some may be.

        A daemon that only observes simulates its orders beside YARN's own preemption.
        """
        if self._connection.settling:
            return ManagerSettling()
        if self._connection.clock() < self._unwritable_until_ms:
            return self._unwritable
        why = self._queues.why_nothing
        mode = self._settings.yarn_preemption
        if why or not self._settings.enforce or mode == "beside":
            return why
        why = preempted_by_yarn(self._connection.configuration, self._connection.leaves, self._queues)
        return PreemptionOn(why.queue) if mode == "switch" and isinstance(why, YarnPreempts) else why

    def preempted_queues(self) -> tuple[str, ...]:
        """Return the preemptable leaf queues in which YARN itself may preempt, as last observed."""
        configuration = self._connection.configuration
        if configuration is None or not policy_is_on(configuration):
            return ()
        return tuple(
            leaf.path
            for leaf in self._connection.leaves
            if self._queues.is_preemptable(leaf.path) and leaf.queue.preemption_disabled is not True
        )

    def is_preemptable(self, queue: str) -> bool:
        """Return whether a queue's applications are preemptable."""
        return self._queues.is_preemptable(queue)

    def store_failed(self, problem: Exception) -> None:
        """Note that a request could not be written; none is written for ``STORE_RETRY_MS``."""
        self._unwritable = HdfsUnwritable(str(problem)[:FAULT_MAX])
        self._unwritable_until_ms = self._connection.clock() + STORE_RETRY_MS

    def store_works(self) -> None:
        """Note that a request was written."""
        self._unwritable, self._unwritable_until_ms = None, 0

    def _now(self, action: Action) -> Outcome | None:
        why = self.host() or self.why_nothing()
        return later(action, why) if why else None

    def _of_application(self, application: str, verb: str) -> Outcome | None:
        """Refuse an order to an application that does not allow it. Raises Unreachable: not known yet."""
        row = self._connection.row(application)
        if (out := self._connection.left_alone(row)) is not None:
            return Refused(out)
        if not self._queues.is_preemptable(row.queue):
            return Refused(OfNoPreemptableQueue(row.queue))
        reader = self._readers.of_kind.get(kind_of(row))
        if reader is None or verb not in reader.verbs:
            return Refused(OtherKind(row.kind[:40]))
        if (verb == "kill" and self._settings.levers) or reader.judged(row) is not None:
            return None
        why = reader.reasons.get(application, NOT_YET)
        if not reader.is_settled(application):
            raise Unreachable(text(why))
        return Refused(why)

    def _of_priority(self, application: str) -> Outcome | None:
        if not self._settings.allow_priority:
            return Refused(PriorityNotAllowed())
        row = self._connection.row(application)
        if (out := self._connection.left_alone(row)) is not None:
            return Refused(out)
        queue = row.queue
        is_named = self._queues.is_preemptable(queue) or self._queues.is_preempting(queue)
        return None if is_named else Refused(QueueNotNamed(queue))

    def _of_preemption(self, queue: str) -> Outcome | None:
        if self._settings.yarn_preemption != "switch":
            return Refused(SwitchNotAllowed())
        return None if self._queues.is_preemptable(queue) else Refused(NoPreemptableQueue(queue))

    def _of_maximum(self, queue: str) -> Outcome | None:
        if not self._settings.allow_queue_cap:
            return Refused(HoldNotAllowed())
        return None if self._queues.may_be_lowered(queue) else Refused(NoPreemptableQueue(queue))


def unread(problem: Absent | Problem) -> OutcomeReason:
    """Return why an application's own program gave no answer."""
    if isinstance(problem, LateAnswer):
        return AnswerLate()
    return MasterSilent((problem if isinstance(problem, Problem) else problem.why)[:FAULT_MAX])


def later(action: Action, why: OutcomeReason) -> Outcome:
    """Return the outcome of an action that cannot be sent now.

    The controller retries an action that ends a suspension: Refused would leave an attempt in its release
    wait, or about to stop, without an order. An unsent Suspend does not count as a failure of its attempt.
    """
    if isinstance(action, Release | Withdraw | Grow | Restore):
        return Unknown(why)
    return Withheld(why) if isinstance(action, Suspend | Drain) else Refused(why)
