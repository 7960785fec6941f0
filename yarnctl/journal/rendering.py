"""Rendering: the English of reasons, for people.

Law: this is the only module that makes a sentence of a reason, and nothing reads one back: programs compare
the value, or its tag. The table in docs/design-notes.md lists every sentence; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from yarnctl.deciding.reasons import (
    demand,
    eligibility,
    modes,
    orders,
    outcomes,
    placements,
    queue_naming,
    verdicts,
)
from yarnctl.deciding.reasons.rooting import Reason


def _unmet(why: demand.Unmet) -> str:
    foreseen = f", foreseen while its master starts: {why.foreseen}" if why.foreseen else ""
    return f"asks that fit on no node{foreseen}"


def _not_modelled(why: demand.NotModelled) -> str:
    noun = "label" if len(why.labels) == 1 else "labels"
    labels = [f"nodes with the {noun} {', '.join(why.labels)}"] if why.labels else []
    count = len(why.labels) + len(why.resources)
    wanted = " and ".join([*labels, *([", ".join(why.resources)] if why.resources else [])])
    return f"requests {wanted}, which {_are(count)} not modelled"


def _unclaimed(why: orders.Unclaimed) -> str:
    waits = ", and its asker still waits" if why.asker_waits else ""
    return f"nobody was seen to get it in {why.limit_ms} ms{waits}"


def _paused(why: modes.Paused) -> str:
    return why.text


def _misdirected(why: modes.Misdirected) -> str:
    who = ", ".join(f"{order} ({application or 'unknown'})" for order, application in why.orders)
    return (
        f"the room of {len(why.orders)} of the last {why.of} releases went to somebody else:"
        f" {who}; check queue shares and priorities, then continue the loop"
    )


def _no_leaf_queue(why: queue_naming.NoLeafQueue) -> str:
    near = f" (nearest: {', '.join(why.nearest)})" if why.nearest else ""
    return f"no leaf queue {', '.join(why.names)}{near}; there are {_listed(why.leaves, why.count)}"


def _ambiguous_queue(why: queue_naming.AmbiguousQueue) -> str:
    return f"queue {why.name} is ambiguous: {_listed(why.paths, why.count)}; name one by its full path"


def _parent_queue(why: queue_naming.ParentQueue) -> str:
    below = _listed(why.leaves, why.count)
    return f"queue {why.name} is a parent queue, and no leaf; leaf queues below it: {below}"


def _listed(paths: tuple[str, ...], count: int) -> str:
    more = f" and {count - len(paths)} more" if count > len(paths) else ""
    return f"{', '.join(paths) or 'none'}{more}"


def _in_both_roles(why: queue_naming.QueueInBothRoles) -> str:
    return f"queue {why.path} is both preempting and preemptable (named {', '.join(why.names)})"


def _budget_of_no_victim(why: queue_naming.BudgetOfNoVictim) -> str:
    return f"the budget of queue {why.name}: {why.path} is not preemptable; there are {', '.join(why.paths)}"


def _named_twice(why: queue_naming.QueueNamedTwice) -> str:
    return f"queue {why.path} is named twice: {', '.join(why.names)}"


def _vanished(why: queue_naming.QueuesVanished) -> str:
    return f"no leaf queue {', '.join(why.paths)} any more"


def _attempt_over(why: outcomes.AttemptOver) -> str:
    return f"the attempt is {why.state or 'gone'} already"


def _no_streaming_reducer(why: eligibility.NoStreamingReducer) -> str:
    kind = "its reducer is a Java class, or it has none" if why.is_streaming else "a Java job"
    return f"no streaming job with a reducer of its own ({kind}): {why.key} is not set"


def _other_owner(why: eligibility.OtherOwner) -> str:
    return f"it takes requests from {' or '.join(why.owners)}, we are {why.us}"


EPOCH_LEAST_MS = 10**11
"""An instant from here on (March 1973) is one since 1970; no virtual run is that long."""


def when(at_ms: int) -> str:
    """Return an instant as local time, or in ms since the beginning of a virtual run."""
    if at_ms < EPOCH_LEAST_MS:
        return f"{at_ms} ms"
    try:
        at = datetime.fromtimestamp(at_ms // 1000)
    except (ValueError, OverflowError, OSError):  # in the journal, but outside any calendar
        return f"{at_ms} ms"
    return f"{at:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03}"


def instant(at_ms: int) -> str:
    """Return an instant as ``when`` does, after "at"."""
    return f"at {when(at_ms)}"


def counted(number: int) -> str:
    """Return a number of containers in words."""
    return "1 container" if number == 1 else f"{number} containers"


def _free_now(why: verdicts.FreeNow) -> str:
    return f"{counted(why.containers)} {_are(why.containers)} free now, and should do"


def _needs(why: verdicts.Needs) -> str:
    unknown = {"known": "", "unknown": "; when they will be, nobody can tell"}
    start = unknown.get(why.start, "; once they are, it will be too late")
    return f"{counted(why.containers)} {_are(why.containers)} needed, {why.free} are free now{start}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _more_than_it_can_use(why: verdicts.NeedsMoreThanItCanUse) -> str:
    return f"it needs {counted(why.containers)} to end by its deadline, it can use {why.usable} at once"


def _more_than_there_is(why: verdicts.NeedsMoreThanThereIs) -> str:
    return f"it needs {counted(why.containers)} to end by its deadline, the cluster has {why.capacity}"


def tokens_text(mtokens: int) -> str:
    """Say milli-tokens in tokens: ``48.2 tokens``."""
    whole, rest = divmod(mtokens, 1000)
    told = f"{whole}.{rest:03}".rstrip("0").rstrip(".")
    return f"{told} token{'' if told == '1' else 's'}"


def _paid_for(why: verdicts.PaidFor) -> str:
    return f"its deadline costs {tokens_text(why.price_mtokens)}"


def _awaits_turn(why: verdicts.AwaitsTurn) -> str:
    told = f"its deadline costs {tokens_text(why.price_mtokens)} and is promised"
    return f"{told}; it is submitted when its turn comes, at {when(why.turn_at_ms)} by the plan"


def _no_account(why: verdicts.NoAccount) -> str:
    return f"there is no account {why.account}" if why.account else "it names no account to pay from"


def _costs_more(why: verdicts.CostsMore) -> str:
    told = (
        f"for {tokens_text(why.price_mtokens)} it could be done by {when(why.deadline_at_ms)},"
        f" and {tokens_text(why.most_mtokens)} at most were agreed"
    )
    if why.within_at_ms is not None:
        told += f"; within these it could be done by {when(why.within_at_ms)}"
    return told


def _nothing_fits(why: placements.NothingFits) -> str:
    told = "no option fits at any time: it takes more containers or money than there are"
    if why.first_finish_at_ms is not None:
        told = f"no option meets its deadline; one would by {when(why.first_finish_at_ms)}"
    if why.would_do is not None:
        told += f"; {why.would_do} containers would do if they were free now"
    if why.lacking:
        told += f"; too few runs are known on {', '.join(why.lacking)}"
    return told


def _cheapest_in_time(why: verdicts.CheapestInTime) -> str:
    told = f"{why.kind} with {why.containers} containers is the cheapest that ends in time"
    return f"{told}: {tokens_text(why.cost_mtokens)}"


def _starts_later(why: verdicts.StartsLater) -> str:
    return f"{why.containers} containers of pool {why.pool} are reserved from {when(why.start_at_ms)} on"


def _ends_too_late(why: placements.EndsTooLate) -> str:
    return f"it would end at {when(why.finish_at_ms)}, after its deadline at {when(why.deadline_at_ms)}"


def _over_hourly_budget(why: placements.OverHourlyBudget) -> str:
    told = f"with it the pool would cost {tokens_text(why.needed_mtokens)} an hour"
    return f"{told}, and may {tokens_text(why.hourly_mtokens)}"


def _costs_more_than_chosen(why: placements.CostsMoreThanChosen) -> str:
    if why.cost_mtokens == why.chosen_mtokens:
        return f"it costs as much ({tokens_text(why.cost_mtokens)}), and starts no sooner"
    return f"it costs {tokens_text(why.cost_mtokens)}, what was chosen {tokens_text(why.chosen_mtokens)}"


def _cannot_pay(why: verdicts.CannotPay) -> str:
    return (
        f"for {tokens_text(why.price_mtokens)} it could be done by {when(why.deadline_at_ms)},"
        f" and its account holds {tokens_text(why.held_mtokens)}"
    )


def _lease_over(why: verdicts.LeaseOver) -> str:
    return f"nobody has asked for it for {why.lease_ms // 1000} s: nobody waits any more"


def _not_submitted(why: verdicts.NotSubmitted) -> str:
    return f"nothing was submitted with its tag within {why.held_ms // 1000} s"


def _ended_otherwise(why: verdicts.EndedOtherwise) -> str:
    return f"it ended {why.state or 'in an unknown state'}, so that its work is not known"


SENTENCES: dict[type[Reason], str] = {
    demand.ClusterFull: "the cluster is full",
    demand.NoTaskMayStop: "no task may be stopped",
    demand.NoJobMayGive: "no job may give",
    demand.NoQueueOverGuarantee: "no victim queue is over its guarantee",
    demand.QueueAtMaximum: "the queue is at its maximum",
    demand.UserAtLimit: "the user is at the limit",
    demand.NoNodeLargeEnough: "no node is large enough",
    demand.OnItsWay: "what is missing is on its way",
    demand.RoomGoesTo: "room would be given to {application} in {queue}",
    demand.QueueTakesBack: "{queue} would take its room back",
    demand.QueueBelowGuarantee: "{queue} would fall below its guarantee",
    demand.NotActivated: "the queue has not activated it",
    demand.MoreUrgentWaits: "a more urgent application waits",
    demand.OthersFirst: "others come first",
    orders.ContainerHasEnded: "container {ending}",
    orders.ApplicationHasEnded: "{application} has ended",
    orders.WithOrder: "with {order}",
    orders.NoProgress: "no progress for {limit_ms} ms",
    orders.AskGone: "the ask is gone",
    orders.RoomElsewhere: "the asker finds room elsewhere",
    orders.NobodyWaits: "nobody hurried waits",
    orders.Stopping: "yarnctl stops",
    orders.OnlyObserved: "yarnctl only observed: no request was sent",
    orders.AnotherManager: "another ResourceManager answers",
    orders.GivenRoomOf: "{application} was given the room of {order}",
    orders.AskerHasRoom: "{application} finds room elsewhere",
    orders.QueueServing: "asks are being served",
    orders.DemandOver: "nobody hurried waits any more",
    orders.LeftByEarlierRun: "an earlier run left it so",
    orders.MayNotAct: "yarnctl may not act now",
    orders.QueueGone: "there is no such queue any more",
    orders.ChangedByOthers: "somebody else has changed it",
    modes.NothingInTheWay: "nothing stands in the way",
    modes.NotEnforcing: "nothing is changed without --enforce",
    modes.Continued: "by a person",
    modes.LockHeldElsewhere: "another yarnctl holds the lock",
    modes.LockRanOut: "the lock ran out while the last tick lasted, and is taken again with the next",
    modes.HdfsUnwritable: "no order is asked while HDFS cannot be written: {fault}",
    modes.FoldersNotSeen: "our folders in HDFS have not been seen yet",
    modes.FoldersUnreachable: "our folders in HDFS cannot be seen: {fault}",
    modes.FoldersUnfit: "{seen}; {fix}",
    modes.ManagerSettling: (
        "the ResourceManager is new to us, and its number of nodes has not stood still yet"
    ),
    queue_naming.QueuesUnread: "the queues have not been read yet",
    modes.PreemptionUnknown: "whether YARN preempts by itself is not known: its /conf has not been read",
    modes.YarnPreemptsSomewhere: (
        "YARN itself preempts ({key} is true), and which queues is not known: none has been seen"
    ),
    modes.YarnPreempts: (
        "YARN itself preempts {queue} ({key} is true); set disable_preemption=true for that queue, or the"
        " monitor to false"
    ),
    modes.YarnPreemptsWithin: (
        "YARN itself preempts within {queue} ({key} is true); set"
        " intra-queue-preemption.disable_preemption=true for that queue"
    ),
    modes.ClusterFault: "{fault}",
    modes.ClusterUnseen: "the cluster cannot be seen",
    modes.AskedToStop: "asked to stop",
    modes.TicksDone: "has looked {ticks} times, as told",
    modes.LoopFailed: "failed: {kind}: {fault}",
    outcomes.Observing: "observing: nothing is changed without --enforce",
    outcomes.ClientFault: "{fault}",
    outcomes.ManifestUnusable: "{fault}",
    outcomes.NoHdfs: "no HDFS: nowhere to write the request, give --name-node",
    outcomes.ForeignAttempt: "{attempt} is no reduce of {application}, or the order is another's",
    outcomes.NeverSent: "no such order was ever sent from here",
    outcomes.ReleasedAlready: "the attempt has been released already",
    outcomes.NoRequestThere: "no request of ours lies there: nobody was asked",
    outcomes.NoSuchOrder: "no such order",
    outcomes.CheckpointsUnseen: "its checkpoints cannot be seen",
    outcomes.ManifestOfAnother: "the manifest of generation {generation} does not answer this order",
    outcomes.GoneOn: "it has gone on behind its checkpoint",
    outcomes.HoldOver: "its hold is over or nearly so (or clocks differ): it has gone on, or will",
    outcomes.NotHoldingYet: "its status does not say yet that it holds for this order",
    outcomes.KillNotAllowed: "killing is not allowed here: work would be lost",
    outcomes.ExecutorBusy: "the executor is not there to be asked: {told}",
    outcomes.BegunMeanwhile: "it has begun to reduce: its work would be lost",
    outcomes.NoReduceOf: "{attempt} is no reduce of {application}",
    outcomes.MasterSilent: "its master does not answer: {fault}",
    outcomes.AttemptUnknown: "its master does not know the attempt",
    outcomes.RunsElsewhere: "the attempt runs in {container}, not in {ordered}",
    outcomes.MasterNotReached: "its master was not reached: {fault}",
    outcomes.PriorityNotAllowed: "changing priorities is not allowed here",
    outcomes.QueueNotNamed: "its queue {queue} is neither hurried nor victim",
    outcomes.HoldNotAllowed: "holding queues is not allowed here",
    outcomes.NoVictimQueue: "{queue} is no victim queue",
    outcomes.OfNoVictimQueue: "its queue {queue} is no victim queue",
    outcomes.MasterDown: "its master is down",
    outcomes.NotInReducePhase: "not in its reduce phase, or already asked",
    outcomes.NoValidManifest: "no manifest of this order is valid",
    outcomes.EndedOrForeign: "the attempt has ended, or the order is not its own",
    outcomes.NotInVirtualTime: "in virtual time no queue's configuration is changed",
    outcomes.NoSuchContainer: "no such container runs",
    outcomes.AttemptEnded: "the attempt has ended",
    outcomes.NoSuchApplication: "no such application",
    eligibility.InNoVictimQueue: "its queue is no victim queue",
    eligibility.QueueUnclear: (
        "several leaf queues are called {queue}, and this version of YARN does not show which one is meant"
    ),
    eligibility.OtherKind: "it is no MapReduce job but {kind}",
    eligibility.ConfigurationUnread: "its configuration has not been read yet",
    eligibility.ConfigurationUnreadable: "its configuration cannot be read: {fault}",
    eligibility.MasterUnreachable: "its master cannot be reached at {at}: {fault}",
    eligibility.ConfigurationOdd: "its configuration cannot be understood ({error})",
    eligibility.NoReduces: "it has no reduces",
    eligibility.NoRunnerCarried: "its reducer does not carry the task runner",
    eligibility.RunnerOptionsOpen: "the runner's options do not end in --",
    eligibility.RunnerWithoutReducer: "the runner has no reducer to run",
    eligibility.NotInHdfs: "its {what} {url} is not in HDFS, so it cannot be seen from here",
    eligibility.OtherNameNode: "its {what} is at {at}, our NameNodes are {ours}",
    eligibility.PathOdd: "its {what} has the path {path}",
    eligibility.StoreOutside: "its store {path} is not below {root}",
    eligibility.RequestsElsewhere: "it looks for requests in {path}, we write to {ours}",
    eligibility.RunnerSays: "{text}",
    eligibility.NoDrainTag: "no tag says that its executors may be asked to leave (yarnctl wrap --spark)",
    eligibility.SettingForbidsDrain: "its driver has {name}={said}, needed is {needed} (see wrap --spark)",
    eligibility.AnswerLate: "its master or driver has not answered yet; yarnctl continues to read it",
    eligibility.SparkTooOld: "executors of Spark {version} cannot leave with their blocks (3.2 or newer can)",
    eligibility.OnLabelledNode: "its node has the label {label}, which is not modelled",
    eligibility.HoldsResource: "its container holds {resource}, which is not modelled",
    eligibility.CheckpointUnseen: (
        "its checkpoint could not be seen, so it is not asked: {fault}; give the store's folder a group that"
        " only the daemon is in"
    ),
    verdicts.Undecided: "the next round decides",
    verdicts.DeadlinePassed: "its deadline has passed",
    verdicts.NeedsTooManyByNow: (
        "after this time in the queue it needs more containers than it can use"
        " ({containers} to end by its deadline, of {usable})"
    ),
    verdicts.DeadlineUnreachable: "the deadline can no longer be met, whatever it is given",
    verdicts.WorkUnknown: "nobody knows how much it computes, and this allocator must",
    verdicts.NoDeadline: "it names no deadline, and this mechanism needs one",
    verdicts.TooEarly: "its deadline is before the earliest that breaks no promise, {earliest_at_ms} ms",
    verdicts.WithdrawnByAsker: "withdrawn by who asked",
    verdicts.EndedAs: "{state}",
    verdicts.ManagerForgot: "the ResourceManager does not know it any more",
    verdicts.NumbersImpossible: "its numbers cannot be",
    verdicts.NoneWouldDo: (
        "no number of containers would have done"
        " ({work_ms} container-ms in {deadline_ms} ms, {most} containers at most)"
    ),
    verdicts.NotInHistoryYet: "not yet: {server} does not know {job}",
    verdicts.HistoryBusy: "not yet: too many questions",
    verdicts.HistoryFault: "not yet: {fault}",
    verdicts.HistoryUnusable: "the history server's answer cannot be used: {fault}",
    verdicts.HistoryLost: "{job} is no more in the history",
    verdicts.RanInMaster: "its tasks ran inside its master, and count no containers",
    verdicts.NoSpansTold: "the history server tells no MILLIS_MAPS or MILLIS_REDUCES of {job}",
    verdicts.NoInstantsTold: "the history server tells no start and end of {job}",
    verdicts.NoUsageTold: "the ResourceManager tells no start, end or memory-seconds of {job}",
    verdicts.ApplicationsUnseen: "the applications cannot be seen: {fault}",
    verdicts.SizeUnseen: "how large the cluster is cannot be seen: {fault}",
    verdicts.NoRoomForContainer: "the cluster has no room for a container",
    placements.NoRoomThroughout: "it needs {containers} containers, {free} are free all through its run",
    placements.NoSuchPool: "no pool takes {kind}",
    verdicts.LeastLoadedPool: "pool {pool} has the fewest applications, and {containers} containers to give",
    verdicts.NoOptions: "it does not say as what it may be run, and this mechanism places applications",
}
"""A sentence by kind of reason; ``{field}`` is a field of the value."""

MADE: dict[type[Reason], Callable[..., str]] = {
    placements.NothingFits: _nothing_fits,
    placements.EndsTooLate: _ends_too_late,
    placements.OverHourlyBudget: _over_hourly_budget,
    placements.CostsMoreThanChosen: _costs_more_than_chosen,
    verdicts.CheapestInTime: _cheapest_in_time,
    verdicts.StartsLater: _starts_later,
    demand.Unmet: _unmet,
    demand.NotModelled: _not_modelled,
    orders.Unclaimed: _unclaimed,
    modes.Paused: _paused,
    modes.Misdirected: _misdirected,
    queue_naming.NoLeafQueue: _no_leaf_queue,
    queue_naming.AmbiguousQueue: _ambiguous_queue,
    queue_naming.ParentQueue: _parent_queue,
    queue_naming.QueueInBothRoles: _in_both_roles,
    queue_naming.BudgetOfNoVictim: _budget_of_no_victim,
    queue_naming.QueueNamedTwice: _named_twice,
    queue_naming.QueuesVanished: _vanished,
    outcomes.AttemptOver: _attempt_over,
    eligibility.NoStreamingReducer: _no_streaming_reducer,
    eligibility.OtherOwner: _other_owner,
    verdicts.FreeNow: _free_now,
    verdicts.Needs: _needs,
    verdicts.NeedsMoreThanItCanUse: _more_than_it_can_use,
    verdicts.NeedsMoreThanThereIs: _more_than_there_is,
    verdicts.PaidFor: _paid_for,
    verdicts.AwaitsTurn: _awaits_turn,
    verdicts.NoAccount: _no_account,
    verdicts.CostsMore: _costs_more,
    verdicts.CannotPay: _cannot_pay,
    verdicts.LeaseOver: _lease_over,
    verdicts.NotSubmitted: _not_submitted,
    verdicts.EndedOtherwise: _ended_otherwise,
}
"""Sentences whose parts depend on the fields."""


def text(why: Reason) -> str:
    """Return the sentence of a reason."""
    made = MADE.get(type(why))
    return SENTENCES[type(why)].format_map(msgspec.structs.asdict(why)) if made is None else made(why)


def joined(reasons: Iterable[Reason]) -> str:
    """Return the sentences of several reasons as one line, "" for none."""
    return "; ".join(map(text, reasons))


def said(why: Reason | None) -> str:
    """Return the sentence of a reason, "" for none."""
    return "" if why is None else text(why)
