"""Natjam-R: urgency, and the YARN priorities that express it (section 4).

Law: the job selection order is dictated by the job eviction policy, else suspending and resuming
chase each other: MDF evicts the latest deadline, so EDF selects; MLF evicts the largest laxity, so
LLF selects. Only *strictly* less urgent jobs give; laxities closer than the margin are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from yarnctl.deciding.model import ApplicationView, SetPriority
from yarnctl.deciding.policies import FOREVER_MS, laxity_ms
from yarnctl.deciding.records import Ranked
from yarnctl.deciding.settings import Settings

Urgency = tuple[int, int, str]
"""(deadline or laxity in ms, submitted, id): smallest is most urgent."""


def urgency(view: ApplicationView, now_ms: int, settings: Settings) -> Urgency:
    """Return the urgency of an application: laxity under MLF, else deadline; none: least urgent."""
    if settings.job_policy == "MLF":
        value = laxity_ms(view.deadline_at_ms, view.submitted_at_ms, view.progress_ratio, now_ms)
    else:
        value = FOREVER_MS if view.deadline_at_ms is None else view.deadline_at_ms
    return (value, view.submitted_at_ms, view.application)


def margin_ms(settings: Settings) -> int:
    """Return by how much urgencies must differ to count: only laxities are fuzzy."""
    return settings.laxity_margin_ms if settings.job_policy == "MLF" else 0


def in_order(
    applications: Iterable[ApplicationView], now_ms: int, settings: Settings, previous: Sequence[str]
) -> list[ApplicationView]:
    """Return the applications, most urgent first; differences within the margin keep ``previous``.

    Laxities are estimates that tremble each second; without this, priorities would too. Each goes
    before the first that is less urgent by more than the margin, so nobody stands behind anybody
    who is clearly less urgent; new ones go where a plain sort would put them.
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


def less_urgent(victim: Urgency, asker: Urgency, settings: Settings) -> bool:
    """Say whether ``victim`` may give to ``asker``: a later deadline, a laxity larger by the margin."""
    return victim[0] > asker[0] + margin_ms(settings)


def priorities(
    ordered: Sequence[ApplicationView], sent: Mapping[str, int], settings: Settings
) -> list[SetPriority]:
    """Return the changes that make YARN serve in this order: distinct levels from the top, the rest 0.

    ``sent`` holds the priorities that have been asked for already; they are not asked for again.
    """
    changes = []
    for place, view in enumerate(ordered):
        wanted = level(place, settings)
        if view.priority != wanted and sent.get(view.application) != wanted:
            changes.append(SetPriority(application=view.application, priority=wanted))
    return changes


def level(place: int, settings: Settings) -> int:
    """Return the YARN priority of the application at that place of the order of urgency."""
    return max(settings.priority_levels - place, 0)


def ranked(
    ordered: Sequence[ApplicationView], changes: Sequence[SetPriority], now_ms: int, settings: Settings
) -> tuple[Ranked, ...]:
    """Return why: the order down to the last application that has a level or is sent one."""
    changed = {change.application for change in changes}
    rows = []
    for place, view in enumerate(ordered):
        priority = level(place, settings)
        if priority or view.application in changed:
            value, submitted_at_ms, name = urgency(view, now_ms, settings)
            rows.append(Ranked(name, value, submitted_at_ms, priority, view.priority))
    return tuple(rows)
