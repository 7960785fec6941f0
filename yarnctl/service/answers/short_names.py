"""Ids by their end: what a table shows short (``…1346_0001``) is found here in full.

Law: a short form stands for an id only if exactly one of those that the view knows ends with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from yarnctl.daemon.view.published import View
from yarnctl.service.answers.error_body import ApiProblem
from yarnctl.service.answers.explanations import remembered
from yarnctl.short_ids import ending, ids_in, resolved

NAMED_MAX = 3


def full(view: View, wanted: str) -> str:
    """Return the id that ``wanted`` means, itself if it is no short form or nothing ends with it.

    Raises ApiProblem where several do.
    """
    if ending(wanted) is None:
        return wanted
    found = resolved(wanted, _known(view))
    if len(found) > 1:
        named = ", ".join(found[:NAMED_MAX]) + (", ..." if len(found) > NAMED_MAX else "")
        raise ApiProblem(404, "not-found", f"{wanted} may be {named}", "give the whole id")
    return found[0] if found else wanted


def maybe(view: View, wanted: str | None) -> str | None:
    """Do the same with a filter, which may not be given."""
    return None if wanted is None else full(view, wanted)


def _known(view: View) -> Iterator[str]:
    """Yield the ids of applications, attempts and containers that the view holds, some of them often."""
    if view.snapshot is not None:
        yield from (each.application for each in view.snapshot.applications)
    for entry in (*view.entries, *view.ended):
        order = entry.order
        yield from (order.asker, order.victim, order.attempt, order.container)
        yield from (entry.room_to_application or "", entry.room_to_container or "")
    for each in view.checkpoints:
        yield from (each.order.asker, each.order.victim, each.order.attempt)
    for record in remembered(view):
        yield from ids_in(msgspec.json.encode(record).decode())
