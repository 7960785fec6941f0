"""Where time goes: how long production's containers waited, by the cause, and what would have saved it.

Law: it decides nothing. Between two looks each application waits for the cause that the newest decision
found; its pending containers times that span are added to the cause.

==========  ================================================================================================
masters     the limit on application masters, or on parallel applications, keeps it pending
limit       the maximum of its queue, of a parent or for its user, or its ideal share
budget      tasks that may be killed: no loss budget is left for them, or nothing may be lost at all
repeats     tasks that were killed as often as one task may be within the window of the loss budget
late        tasks whose containers would be free later than a lever may take
worth       tasks whose end is near: to wait for it costs less than to free their containers
unwrapped   tasks that have no task runner, or opted out
nothing     no other task, or no queue, that containers may be taken from
reserved    YARN would give the container on its node to the application that reserves it
in-flight   as many orders as allowed are in flight
lever       orders are under way, or tasks are awaited that end by themselves
governor    the governor holds levers back, or has stopped them
others      YARN would give the freed container to others, or back
grant       the requests fit: YARN grants at the nodes' heartbeats
==========  ================================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from yarnctl.deciding.reasons import demand
from yarnctl.deciding.waiting_verdicts import CauseCode, WaitingVerdict

TimeCause = Literal[
    "masters", "limit", "budget", "repeats", "late", "worth", "unwrapped", "nothing", "reserved", "in-flight",
    "lever", "governor", "others", "grant",
]  # fmt: skip
TIME_CAUSES: tuple[TimeCause, ...] = get_args(TimeCause)

SAVES: dict[TimeCause, str] = {
    "masters": "raise maximum-am-resource-percent, or max-parallel-apps, of the production queue",
    "limit": "raise the maximum, or the user limit, of the production queue",
    "budget": "raise --may-lose",
    "repeats": "run more jobs in research; kills of one task are limited",
    "late": "raise --room-within",
    "worth": "raise --second-worth; now it costs less to wait for the tasks",
    "unwrapped": "submit research jobs with yarnctl wrap",
    "reserved": "wait until YARN serves the reservation",
    "in-flight": "raise --in-flight",
    "lever": "levers take this long; --room-within limits it",
    "others": "run the daemon with --cap-queue",
}
"""What would have saved the time, by cause; a cause that is missing has no remedy."""

_LIMIT = (
    demand.QueueAtMaximum | demand.ParentAtMaximum | demand.UserAtLimit | demand.FirstRequestTooLarge
    | demand.QueueAtGuarantee | demand.QueueAtIdealShare | demand.NoNodeLargeEnough | demand.NotModelled
)  # fmt: skip
_GOVERNOR = demand.HelpsItself | demand.LeverHeldBack | demand.SuspensionsFail
_NOTHING = (
    demand.NoTaskMayStop | demand.NoJobMayGive | demand.NoQueueOverGuarantee | demand.NoQueueGives
    | demand.NoQueueHolds | demand.OutsideHours
)  # fmt: skip

_OF_TASKS: dict[CauseCode, TimeCause] = {
    "map": "budget",
    "loss-budget": "budget",
    "job-loss-budget": "budget",
    "user-loss-budget": "budget",
    "killed-lately": "repeats",
    "not-in-time": "late",
    "not-worth": "worth",
    "task-budget": "budget",
    "no-runner": "unwrapped",
    "left-alone": "unwrapped",
    "node-reserved": "reserved",
    "on-trial": "governor",
    "job-budget": "lever",
    "already-ordered": "lever",
    "ends-soon": "lever",
}


def time_cause(verdict: WaitingVerdict) -> TimeCause:
    """Return the cause under which an application's waiting counts: of tasks, that of the most of them."""
    found = verdict.found
    if found == "placed" or isinstance(found, demand.NotGranted):
        return "grant"
    if found == "in-flight":
        return "in-flight"
    if isinstance(found, str | demand.OnItsWay):
        return "lever"
    if isinstance(found, demand.NotActivated):
        return "masters"
    if isinstance(found, _LIMIT):
        return "limit"
    if isinstance(found, _GOVERNOR):
        return "governor"
    if not isinstance(found, _NOTHING):
        return "others"
    tasks: Counter[TimeCause] = Counter()
    for cause in verdict.causes:
        if cause.why in _OF_TASKS:
            tasks[_OF_TASKS[cause.why]] += cause.tasks
    return max(tasks, key=lambda each: (tasks[each], -TIME_CAUSES.index(each)), default="nothing")


class Waited(NamedTuple):
    """The container time that waited for one cause, in ms, and what would have saved it ("": nothing)."""

    cause: TimeCause
    waited_ms: int
    saves: str


GAP_MAX_MS = 60_000
"""A span between two looks counts no longer than this: the process was held up, or the clock was set."""


class TimeLost:
    """Adds up what waited, from look to look."""

    def __init__(self) -> None:
        self.waited_ms: dict[TimeCause, int] = dict.fromkeys(TIME_CAUSES, 0)
        self._waiting: dict[TimeCause, int] = {}
        self._at_ms: int | None = None

    def look(self, verdicts: Mapping[str, WaitingVerdict], now_ms: int) -> None:
        """Count the span since the last look, and take what waits from now on from the newest decision."""
        span_ms = 0 if self._at_ms is None else min(max(0, now_ms - self._at_ms), GAP_MAX_MS)
        for cause, containers in self._waiting.items():
            self.waited_ms[cause] += containers * span_ms
        self._at_ms, self._waiting = now_ms, {}
        snapshot, pending = None, dict[str, int]()
        for name, verdict in verdicts.items():
            if verdict.snapshot is not snapshot:  # of all but those of a label it is the same
                snapshot = verdict.snapshot
                pending = {
                    view.application: sum(request.count for request in view.requests)
                    for view in snapshot.applications
                    if view.requests
                }
            cause = time_cause(verdict)
            self._waiting[cause] = self._waiting.get(cause, 0) + pending.get(name, 0)

    def rows(self) -> tuple[Waited, ...]:
        """Return the causes for which anything waited, the longest first."""
        rows = [Waited(cause, span_ms, SAVES.get(cause, "")) for cause, span_ms in self.waited_ms.items()]
        return tuple(sorted((row for row in rows if row.waited_ms), key=lambda row: -row.waited_ms))
