"""Rendering: the English of reasons, for people.

Law: this is the only module that makes a sentence of a reason, and nothing reads one back: programs compare
the value, or its tag. The table in docs/design-notes.md lists every sentence; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yarnctl.deciding.reasons import demand, orders, queues
from yarnctl.deciding.reasons.rooting import Reason, Said


def _unmet(why: demand.Unmet) -> str:
    foreseen = f", foreseen while its master starts: {why.foreseen}" if why.foreseen else ""
    return f"asks that fit on no node{foreseen}"


def _unclaimed(why: orders.Unclaimed) -> str:
    waits = ", and its asker still waits" if why.asker_waits else ""
    return f"nobody was seen to get it in {why.limit_ms} ms{waits}"


SENTENCES: dict[type[Reason], str] = {
    Said: "{text}",
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
    orders.OnlyObserved: "it was only observed, nobody was asked",
    orders.AnotherManager: "another ResourceManager answers",
    orders.GivenRoomOf: "{application} was given the room of {order}",
    orders.AskerHasRoom: "{application} finds room elsewhere",
    queues.QueueServing: "asks are being served",
    queues.DemandOver: "nobody hurried waits any more",
    queues.LeftByEarlierRun: "an earlier run left it so",
    queues.MayNotAct: "yarnctl may not act now",
    queues.QueueGone: "there is no such queue any more",
    queues.ChangedByOthers: "somebody else has changed it",
}
"""A sentence by kind of reason; ``{field}`` is a field of the value."""

MADE: dict[type[Reason], Callable[..., str]] = {
    demand.Unmet: _unmet,
    orders.Unclaimed: _unclaimed,
}
"""Sentences whose parts depend on the fields."""


def text(why: Reason) -> str:
    """Return the sentence of a reason."""
    made = MADE.get(type(why))
    return SENTENCES[type(why)].format_map(msgspec.structs.asdict(why)) if made is None else made(why)
