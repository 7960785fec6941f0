"""Prioritising: which YARN priorities are sent, and when again (Natjam-R, section 4).

YARN's order is kept as the order of urgency: of deadlines or of laxities, as the eviction policy (MDF with
EDF, MLF with LLF, else suspending and resuming undo each other). An accepted priority is not sent again,
unless a tick later the view still differs; a refused application is paused, twice as long after each refusal.
A priority of ``HOLD_MS`` or more ago that no longer shows, and whose application does not wait, was restored
(:mod:`yarnctl.daemon.held_priorities`): one is sent again once the application waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from yarnctl.deciding import model
from yarnctl.deciding.ledger_state import DOUBLINGS_MAX
from yarnctl.deciding.partitions import merged
from yarnctl.deciding.policies import FOREVER_MS, laxity_ms
from yarnctl.deciding.records import Ranked, Ranking
from yarnctl.deciding.settings import Settings

HOLD_MS = 60_000
"""How long a priority lasts after its application last waited, and after it was last sent."""
RESTORED = (0, FOREVER_MS)
"""Instead of the refusals of an application: its priority was restored while it did not wait."""

Urgency = tuple[int, int, str]
"""(deadline or laxity in ms, submitted, id): smallest is most urgent."""


def urgency(view: model.ApplicationView, now_ms: int, settings: Settings) -> Urgency:
    """Return the urgency of an application: laxity under MLF, else deadline; none: least urgent."""
    if settings.job_policy == "MLF":
        value = laxity_ms(view.deadline_at_ms, view.submitted_at_ms, view.progress_ratio, now_ms)
    else:
        value = FOREVER_MS if view.deadline_at_ms is None else view.deadline_at_ms
    return (value, view.submitted_at_ms, view.application)


def with_deadlines(snapshot: model.Snapshot, sold: Mapping[str, int]) -> model.Snapshot:
    """Return a snapshot with these deadlines, by application, and no others."""
    views = tuple(
        view
        if view.deadline_at_ms == sold.get(view.application)
        else msgspec.structs.replace(view, deadline_at_ms=sold.get(view.application))
        for view in snapshot.applications
    )
    return msgspec.structs.replace(snapshot, applications=views)


def waiting_in(snapshot: model.Snapshot) -> frozenset[str]:
    """Return the applications whose priority counts: with pending requests, or without their master yet."""
    return frozenset(
        view.application
        for view in merged(snapshot).applications
        if view.requests or view.containers <= 0 or view.application in snapshot.left_out
    )


def margin_ms(settings: Settings) -> int:
    """Return by how much urgencies must differ to count: only laxities are estimates."""
    return settings.laxity_margin_ms if settings.job_policy == "MLF" else 0


def in_order(
    applications: Iterable[model.ApplicationView], now_ms: int, settings: Settings, previous: Sequence[str]
) -> list[model.ApplicationView]:
    """Return the applications, most urgent first; differences within the margin keep ``previous``.

    Laxities are estimates that vary each second; without the margin, priorities would too. Each application
    is put before the first that is less urgent by more than the margin, so that none is behind a
    clearly less urgent one; new ones are put where a plain sort would put them.
    """
    views = {view.application: view for view in applications}
    keys = {name: urgency(view, now_ms, settings) for name, view in views.items()}
    known = [name for name in previous if name in views]
    seen = dict.fromkeys(known)
    fresh = sorted((name for name in views if name not in seen), key=keys.__getitem__)
    margin = margin_ms(settings)
    if margin == 0:
        return [views[name] for name in sorted(views, key=keys.__getitem__)]
    ordered: list[str] = []
    for name in known:
        _insert(ordered, name, keys, margin)
    for name in fresh:
        _insert(ordered, name, keys, 0)
    return [views[name] for name in ordered]


def _insert(ordered: list[str], name: str, keys: Mapping[str, Urgency], margin: int) -> None:
    mine = keys[name]
    for place, other in enumerate(ordered):
        if keys[other][0] > mine[0] + margin or (margin == 0 and keys[other] > mine):
            ordered.insert(place, name)
            return
    ordered.append(name)


def less_urgent(victim: Urgency, requester: Urgency, settings: Settings) -> bool:
    """Return whether ``victim`` may give to ``requester``: its urgency is lower by the margin."""
    return victim[0] > requester[0] + margin_ms(settings)


def priorities(
    ordered: Sequence[model.ApplicationView], sent: Mapping[str, int], settings: Settings
) -> list[model.SetPriority]:
    """Return the changes that make YARN serve in this order: distinct levels from the top, the rest 0.

    Where deadlines are sold an application without one has no level: 0, behind all that have one.

    ``sent`` has the priorities that were requested already; they are not requested again.
    """
    changes = []
    for place, view in enumerate(ordered):
        wanted = level(place, view, settings)
        if view.priority != wanted and sent.get(view.application) != wanted and not view.left_alone:
            changes.append(model.SetPriority(application=view.application, priority=wanted))
    return changes


def level(place: int, view: model.ApplicationView, settings: Settings) -> int:
    """Return the YARN priority of the application at that rank of the order of urgency."""
    if settings.deadlines == "sold" and view.deadline_at_ms is None:
        return 0
    return max(settings.priority_levels - place, 0)


def ranked(
    ordered: Sequence[model.ApplicationView],
    changes: Sequence[model.SetPriority],
    now_ms: int,
    settings: Settings,
) -> tuple[Ranked, ...]:
    """Return why: the order down to the last application that has a level or is sent one."""
    changed = {change.application for change in changes}
    rows = []
    for place, view in enumerate(ordered):
        priority = level(place, view, settings)
        if priority or view.application in changed:
            value, submitted_at_ms, name = urgency(view, now_ms, settings)
            rows.append(Ranked(name, value, submitted_at_ms, priority, view.priority))
    return tuple(rows)


class Prioritiser:
    """Keeps the order of urgency, what was sent, and which applications were refused."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._urgent_first: list[str] = []
        self._sent: dict[str, tuple[int, int]] = {}
        self._refused: dict[str, tuple[int, int]] = {}

    def left(self) -> tuple[tuple[str, ...], dict[str, tuple[int, int]], dict[str, tuple[int, int]]]:
        """Return the order of urgency, what was sent, and the refused applications."""
        return tuple(self._urgent_first), dict(self._sent), dict(self._refused)

    def go_on(
        self,
        order: Sequence[str],
        sent: Mapping[str, tuple[int, int]],
        refused: Mapping[str, tuple[int, int]],
    ) -> None:
        """Continue from the state that earlier ticks left."""
        self._urgent_first = list(order)
        self._sent = {name: (value, at_ms) for name, (value, at_ms) in sent.items()}
        self._refused = {name: (tries, until_ms) for name, (tries, until_ms) in refused.items()}

    def update(
        self, snapshot: model.Snapshot, as_of_ms: int, now_ms: int
    ) -> tuple[Ranking, list[model.SetPriority]] | None:
        """Return what is to be sent, and why; None if nothing is."""
        settings = self._settings
        ordered = in_order(snapshot.applications, now_ms, settings, self._urgent_first)
        self._urgent_first = [view.application for view in ordered]
        self._drop(ordered, as_of_ms, waiting_in(snapshot))
        sent_priorities = {name: priority for name, (priority, _) in self._sent.items()}
        changes = [
            change
            for change in priorities(ordered, sent_priorities, settings)
            if self._refused.get(change.application, (0, 0))[1] <= now_ms
        ]
        if not changes:
            return None
        return Ranking(now_ms, ranked(ordered, changes, now_ms, settings)), changes

    def _drop(
        self, ordered: Sequence[model.ApplicationView], as_of_ms: int, waiting: Collection[str]
    ) -> None:
        """Drop ended applications, and sent priorities that do not show a tick later."""
        before, refused = self._sent, self._refused
        self._sent, self._refused = {}, {}
        for view in ordered:
            name, sent = view.application, before.get(view.application)
            if name in refused and (refused[name] != RESTORED or name not in waiting):
                self._refused[name] = refused[name]
            if sent is None:
                continue
            if sent[0] == view.priority or as_of_ms - sent[1] <= self._settings.tick_ms:
                self._sent[name] = sent
            elif name not in waiting and as_of_ms - sent[1] >= HOLD_MS:
                self._refused[name] = RESTORED

    def settle(self, action: model.SetPriority, outcome: model.Outcome, now_ms: int) -> None:
        """Apply a change's outcome."""
        name = action.application
        if isinstance(outcome, model.Accepted):
            self._sent[name] = (action.priority, now_ms)
            self._refused.pop(name, None)
            return
        tries = self._refused.get(name, (0, 0))[0]
        pause_ms = self._settings.tick_ms << min(tries, DOUBLINGS_MAX)
        self._refused[name] = (tries + 1, now_ms + pause_ms)

    def urgent_first(self, snapshot: model.Snapshot) -> tuple[model.ApplicationView, ...]:
        """Return the applications in the order of urgency (none without deadlines)."""
        if not self._urgent_first:
            return ()
        by_name = {view.application: view for view in snapshot.applications}
        return tuple(by_name[name] for name in self._urgent_first if name in by_name)
