"""Leaving: in which order tasks are asked to go, and are let go.

Law: nobody waits for it, and nothing else changes its place. MapReduce's master starts its stopped reduces
again in the order in which they ended (one queue for all of them), so whoever has most left goes first, and
is back first: the job then ends sooner. Natjam's paper says nothing about it; its profile does without.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Action, Release, Suspend
from yarnctl.deciding.settings import Settings


def in_leaving_order(actions: Sequence[Action], ledger: Ledger, settings: Settings) -> tuple[Action, ...]:
    """Return a step's actions; in the places of its suspensions and releases, who would end last is first."""
    if not settings.model_scheduler:
        return tuple(actions)
    found = list(actions)
    for kind in (Suspend, Release):
        places = [place for place, action in enumerate(found) if isinstance(action, kind)]
        if len(places) > 1:
            ordered = sorted((found[place] for place in places), key=lambda one: -_ends_at_ms(one, ledger))
            for place, action in zip(places, ordered, strict=True):
                found[place] = action
    return tuple(found)


def _ends_at_ms(action: Action, ledger: Ledger) -> int:
    """Return when an action's task would have ended, as seen when it was chosen; 0: nobody knows."""
    order = ledger.open.get(action.order) if isinstance(action, Suspend | Release) else None
    return order.asked_at_ms + order.remaining_ms if order is not None and order.remaining_ms >= 0 else 0
