"""The permission check: whether an action may be sent now, and why not.

Law: there is one check, and it is asked twice: before anything is read for an action, and again right before
an attempt is ended, since reading may take long. Nothing is changed unless the settings enforce; nothing
outside the queues that are named; nothing of a job without a proven runner; nothing while YARN itself
preempts, while the ResourceManager is new to us, or while HDFS cannot be written. Withdrawing a request, and
putting a queue or a priority back as it was, only needs ``enforce``. Whether YARN preempts is judged by its
configuration: what is not known counts as "it may", since not acting is always allowed (facts, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.connection.settings import Attachment
from yarnctl.attach.eligibility.job_reader import Prover
from yarnctl.attach.eligibility.job_rules import Proof
from yarnctl.deciding.model import (
    Action,
    Kill,
    Outcome,
    Refused,
    Release,
    SetPriority,
    SetQueueMaximum,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.errors import Unreachable
from yarnctl.hadoop.wire.views import Leaf
from yarnctl.journal.rendering import text

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"
POLICIES = "yarn.resourcemanager.scheduler.monitor.policies"
INTRA_QUEUE = "yarn.resourcemanager.monitor.capacity.preemption.intra-queue-preemption.enabled"
OBSERVE_ONLY = "yarn.resourcemanager.monitor.capacity.preemption.observe_only"
POLICY = "ProportionalCapacityPreemptionPolicy"


def why_aside(configuration: Mapping[str, str] | None, leaves: Iterable[Leaf], attachment: Attachment) -> str:
    """Return why nothing may be changed; "": free to act. ``configuration`` is the daemon's /conf."""
    if configuration is None:
        return "whether YARN preempts by itself is not known: its /conf has not been read"
    if not _is_on(configuration, MONITOR) or POLICY not in configuration.get(POLICIES, POLICY):
        return ""
    if _is_on(configuration, OBSERVE_ONLY):
        return ""
    victims = [leaf for leaf in leaves if attachment.is_victim(leaf.name)]
    if not victims:
        return f"YARN itself preempts ({MONITOR} is true), and which queues is not known: none has been seen"
    for leaf in victims:
        if leaf.queue.preemption_disabled is not True:
            return (
                f"YARN itself preempts {leaf.path} ({MONITOR} is true); set disable_preemption=true for "
                "that queue, or the monitor to false"
            )
        if _is_on(configuration, INTRA_QUEUE) and leaf.queue.intra_queue_preemption_disabled is not True:
            return (
                f"YARN itself preempts within {leaf.path} ({INTRA_QUEUE} is true); set "
                "intra-queue-preemption.disable_preemption=true for that queue"
            )
    return ""


def _is_on(configuration: Mapping[str, str], name: str) -> bool:
    return configuration.get(name, "false").strip().lower() == "true"


OBSERVING = "observing: nothing is changed without --enforce"
SETTLING = "the ResourceManager is new to us, and its number of nodes has not stood still yet"
UNWRITABLE = "no order is asked while HDFS cannot be written: {}"
STORE_RETRY_MS = 5_000
"""So long nobody is asked after a request that could not be written; who keeps the lock knows by then."""


class Permission:
    """Answers for every action; ``host`` says why the host may do nothing now ("": it may)."""

    def __init__(self, link: Connection, prover: Prover) -> None:
        self._link = link
        self._settings = link.settings
        self._prover = prover
        self._unwritable = ""
        self._unwritable_until_ms = 0
        self.host: Callable[[], str] = str

    def may_act(self, action: Action) -> Outcome | None:
        """Return the outcome of an action that may not be sent; None: it may. Raises Unreachable."""
        if not self._settings.enforce:
            return Withheld(OBSERVING)
        match action:
            case Suspend() | Release():
                return self._now(action) or self._of_job(action.application)
            case Kill():
                if not self._settings.allow_kill:
                    return Refused("killing is not allowed here: work would be lost")
                return self._now(action) or self._of_job(action.application)
            case SetPriority():
                return None if action.back else self._of_priority(action.application)
            case SetQueueMaximum():
                return None if action.back else self._of_maximum(action.queue)
            case Withdraw():
                return None

    def why_nothing(self) -> str:
        """Return why nothing may be changed now, whatever is asked; "": something may (if enforcing)."""
        if self._link.settling:
            return SETTLING
        if self._link.clock() < self._unwritable_until_ms:
            return self._unwritable
        return why_aside(self._link.configuration, self._link.leaves, self._settings)

    def store_failed(self, problem: Exception) -> None:
        """Note that a request could not be written: nothing is asked for a while."""
        self._unwritable = UNWRITABLE.format(problem)
        self._unwritable_until_ms = self._link.clock() + STORE_RETRY_MS

    def store_works(self) -> None:
        """Note that a request was written."""
        self._unwritable, self._unwritable_until_ms = "", 0

    def _now(self, action: Action) -> Outcome | None:
        why = self.host() or self.why_nothing()
        return later(action, why) if why else None

    def _of_job(self, application: str) -> Outcome | None:
        """Refuse what concerns an application that may not be touched. Raises Unreachable: not known yet."""
        row = self._link.row(application)
        if not self._settings.is_victim(row.queue):
            return Refused(f"its queue {row.queue} is no victim queue")
        proof = self._prover.prove(application, row.user)
        if isinstance(proof, Proof):
            return None
        if not self._prover.is_settled(application):
            raise Unreachable(text(proof))
        return Refused(text(proof))

    def _of_priority(self, application: str) -> Outcome | None:
        if not self._settings.allow_priority:
            return Refused("changing priorities is not allowed here")
        queue = self._link.row(application).queue
        is_named = self._settings.is_victim(queue) or self._settings.is_hurried(queue)
        return None if is_named else Refused(f"its queue {queue} is neither hurried nor victim")

    def _of_maximum(self, queue: str) -> Outcome | None:
        if not self._settings.allow_hold:
            return Refused("holding queues is not allowed here")
        return None if self._settings.is_victim(queue) else Refused(f"{queue} is no victim queue")


def later(action: Action, why: str) -> Outcome:
    """Return the outcome of what could not be sent now: what ends a suspension is sent again, not dropped.

    A Refused there would leave an attempt waiting, or about to stop, that nobody asks for any more. That
    a Suspend was not sent is no failure of its attempt.
    """
    if isinstance(action, Release | Withdraw):
        return Unknown(why)
    return Withheld(why) if isinstance(action, Suspend) else Refused(why)
