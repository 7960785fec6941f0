"""The state that earlier observations leave for later ones, beside the ledger, as the controller uses it.

Law: all of it is one value, :class:`yarnctl.deciding.inputs.LookMemory`: a controller that is given that
value behaves as the one that it came from. Stale requests are part of it: requests that are shown once more
although they were just met (observed on Hadoop 3.4.2, whose MapReduce master sends its requests once a
second).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.deciding.governor import HelpMemory, SelfHelp
from yarnctl.deciding.inputs import Echo, LookMemory
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.not_granted import IN_VAIN, NotGrantedRequests
from yarnctl.deciding.prioritising import Prioritiser
from yarnctl.deciding.reasons.demand import TriggerReason
from yarnctl.deciding.records import Record, Transition
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.settlement import Effects, Settlement
from yarnctl.units import Resources

STALE_MS = 2_500
"""Two heartbeats of MapReduce's master (one second by default) and a half."""

_Requests = dict[tuple[int, Resources], int]
"""(priority, size) -> count."""


class StaleAsks:
    """Compares each observation of the preempting applications with those before. ``echoes``: its state."""

    def __init__(self) -> None:
        self.echoes: dict[str, Echo] = {}

    def update(self, views: Iterable[ApplicationView], as_of_ms: int) -> Mapping[str, int]:
        """Process an observation; return application -> how many of its requests are stale."""
        before, self.echoes = self.echoes, {}
        for view in views:
            self.echoes[view.application] = _compared(before.get(view.application), view, as_of_ms)
        return {name: echo.stale for name, echo in self.echoes.items() if echo.stale}


def _compared(echo: Echo | None, view: ApplicationView, as_of_ms: int) -> Echo:
    requests = {(request.priority, request.size): request.count for request in view.requests}
    if echo is None or as_of_ms - echo.at_ms >= STALE_MS:  # not observed for too long
        return Echo(_rows(requests), view.containers, as_of_ms)
    now_given = max(0, view.containers - echo.containers)
    until_ms = as_of_ms + STALE_MS if now_given else echo.until_ms
    due = _less(echo.due, max(0, now_given - echo.early))
    fell = sum(max(0, count - requests.get(key, 0)) for key, count in due.items())
    early = fell if not now_given else 0
    if as_of_ms >= until_ms:
        return Echo(_rows(requests), view.containers, as_of_ms, early=early)
    given = echo.given + now_given
    beyond = sum(max(0, requests.get(key, 0) - count) for key, count in due.items())
    # Another size or priority is another wave: that was never requested before, so it is not stale.
    due = {key: min(count, due.get(key, count)) for key, count in requests.items()} | {
        key: 0 for key in due if key not in requests
    }
    return Echo(_rows(due), view.containers, as_of_ms, given, until_ms, early, min(beyond, given))


def _rows(requests: _Requests) -> tuple[tuple[int, Resources, int], ...]:
    return tuple((priority, size, count) for (priority, size), count in requests.items())


def _less(due: Iterable[tuple[int, Resources, int]], given: int) -> _Requests:
    """Return requests after some containers were given: YARN's serving order decides which."""
    left: _Requests = {}
    for priority, size, count in sorted(due):
        served = min(count, given)
        given -= served
        left[priority, size] = count - served
    return left


class Looks:
    """``refused``: the reason given last, by application. The rest belongs to the parts that keep it."""

    def __init__(self, settings: Settings, settlement: Settlement) -> None:
        self._settings = settings
        self._work = settlement
        self.refused: dict[str, TriggerReason] = {}
        self.prioritiser = Prioritiser(settings)
        self.stale_asks = StaleAsks()
        self.self_help = SelfHelp()
        self.not_granted = NotGrantedRequests()
        self._silent: dict[str, tuple[int, Reason]] = {}

    def left(self) -> LookMemory:
        """Return the state that the observations so far left, as a value."""
        order, sent, declined = self.prioritiser.left()
        pending = self._work.pending
        return LookMemory(
            refused=dict(self.refused),
            echoes=dict(self.stale_asks.echoes),
            order=order,
            sent=sent,
            declined=declined,
            waiting=None if pending is None else dict(pending),
            waiting_at_ms=self._work.pending_at_ms,
            silent=dict(self._silent),
            self_help=self.self_help.memory if self._settings.governed else None,
            fitting=dict(self.not_granted.rows),
        )

    def go_on(self, memory: LookMemory) -> None:
        """Continue from the state that earlier observations left."""
        self.refused = dict(memory.refused)
        self.stale_asks.echoes = dict(memory.echoes)
        self.prioritiser.go_on(memory.order, memory.sent, memory.declined)
        self._work.pending, self._work.pending_at_ms = memory.waiting, memory.waiting_at_ms
        self._silent = dict(memory.silent)
        self.self_help.memory = memory.self_help or HelpMemory()
        self.not_granted.rows = dict(memory.fitting)

    @property
    def remembers(self) -> bool:
        """Whether an observation without pending requests changes anything here."""
        return bool(self.refused or self._work.pending or self.self_help.memory.seen or self.not_granted.rows)

    def is_new(self, application: str, why: TriggerReason) -> bool:
        """Return whether this reason differs from the one given last, and remember it."""
        if self.refused.get(application) == why:
            return False
        self.refused[application] = why
        return True

    def keep_waiting(self, snapshot: Snapshot) -> None:
        """Drop the reasons of applications without pending requests."""
        if self.refused:
            waiting = {view.application for view in snapshot.applications if view.requests} | set(
                snapshot.left_out
            )
            self.refused = {name: why for name, why in self.refused.items() if name in waiting}

    def prioritise(self, snapshot: Snapshot, as_of_ms: int, now_ms: int) -> Effects:
        """Natjam-R: keep YARN's priorities in the order of urgency."""
        found = None
        if self._settings.mode == "deadlines":
            found = self.prioritiser.update(snapshot, as_of_ms, now_ms)
        return Effects() if found is None else Effects((found[0],), found[1])

    def note_in_vain(self, made: Iterable[Record]) -> None:
        """Note containers that were freed and did not reach their requesters."""
        for record in made if self.not_granted.rows else ():
            if isinstance(record, Transition) and record.event in IN_VAIN:
                self.not_granted.note_in_vain(self._work.ledger.settled[record.order].requester)

    def silent(self, now_ms: int) -> dict[str, Reason]:
        """Return the jobs that are excluded because they did not answer lately, and how."""
        self._silent = {
            name: kept for name, kept in self._silent.items() if now_ms - kept[0] < self._settings.silent_ms
        }
        return {name: why for name, (_, why) in self._silent.items()}

    def note_silent(self, names: Iterable[str], reason: Reason, now_ms: int) -> None:
        """Exclude jobs that did not answer for a while."""
        self._silent.update((name, (now_ms, reason)) for name in names)

    def note_answered(self, answered: Mapping[str, object]) -> None:
        """End the exclusion of these jobs: they have answered."""
        for name in answered:
            self._silent.pop(name, None)
