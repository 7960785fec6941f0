"""The one reason why each preempting application with pending requests waits, for API, page, log and explain.

Open orders and the daemon's state are those of now, the rest is that of the newest decision. Precedence, the
first that holds:

1. ``ordered``: open orders of this daemon were sent for it.
2. ``limit``: its own limit keeps it pending: not activated, requests that are not modelled, the maximum of
   its queue or of a parent, its user's limit, no node that is large enough.
3. ``not-acting``: the daemon is paused, blocked, waits for the lock or does not see the cluster.
4. ``would-order``: the daemon only observes, and would order containers for it.
5. ``awaited``: running tasks end by themselves in time.
6. ``rejected``: the newest decision orders nothing, with the causes by application.
7. ``fits``: all its requests fit, and the ResourceManager has not granted them (yet: see ``ungranted``).
8. ``next``: no decision has been made since it came, or since its last order ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from yarnctl.api.cluster_answers import WaitingKind
from yarnctl.daemon.view.occupancy import pending_of, role_of
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.order import Order
from yarnctl.deciding.partitions import merged
from yarnctl.deciding.reasons.demand import (
    NoNodeLargeEnough,
    NotActivated,
    NotModelled,
    OnItsWay,
    ParentAtMaximum,
    QueueAtMaximum,
    TriggerReason,
    UserAtLimit,
)
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.waiting_reasons import (
    ContainersOrdered,
    DecidedNext,
    FitsNotGranted,
    TasksEndSoon,
    TooManyInFlight,
    WaitingReason,
    WouldOrder,
)
from yarnctl.deciding.releaser import REASONS, REMEDIES
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.waiting_verdicts import OWN_CAUSES, Cause, WaitingVerdict
from yarnctl.journal.rendering import on_label, sentence_and_remedy, text
from yarnctl.units import fits

LEADS: dict[str, str] = {
    "limit": "its own limit: ",
    "not-acting": "yarnctl does not act: ",
    "rejected": "no container is ordered: ",
}
"""What precedes the reason's sentence."""

LIMITS = NotActivated | NotModelled | QueueAtMaximum | ParentAtMaximum | UserAtLimit | NoNodeLargeEnough
SHOWN_MAX = 3  # Nodes, and causes, that a sentence names


class Waiting(msgspec.Struct, frozen=True):
    """Why an application waits; ``causes``: the tasks that were not chosen for it.

    ``rest``: why there is no order for more of its requests, for the kind ``ordered``; then ``causes`` are
    its. ``fitting``: how many containers of all applications fit, for the kind ``fits``. ``yarn``: YARN's own
    words about it, quoted. ``label``: of the nodes to which ``why`` applies; "": it applies to nodes without
    a label, or to all.
    """

    kind: WaitingKind
    why: WaitingReason
    causes: tuple[Cause, ...] = ()
    fitting: int = 0
    yarn: str = ""
    label: str = ""
    rest: TooManyInFlight | TriggerReason | None = None


def is_waiting(view: ApplicationView, snapshot: Snapshot, settings: Settings) -> bool:
    """Return whether this is a preempting application with pending requests, modelled or not."""
    waits = bool(view.requests) or view.application in snapshot.left_out
    if settings.mode == "guarantees":
        return waits and settings.may_preempt(view.queue)
    return waits and role_of(view, settings) == "preempting"


def waiting_reasons(
    snapshot: Snapshot,
    settings: Settings,
    orders: Iterable[Order],
    verdicts: Mapping[str, WaitingVerdict],
    blocked: ModeReason | None,
) -> dict[str, Waiting]:
    """Return the reason of each application that waits.

    ``orders``: the open ones. ``verdicts``: of the newest decision. ``blocked``: why the daemon does not act.
    """
    opened: dict[str, list[Order]] = {}
    for order in orders:
        opened.setdefault(order.requester, []).append(order)
    return {
        view.application: _reason(
            view, snapshot, opened.get(view.application, []), verdicts.get(view.application), blocked
        )
        for view in merged(snapshot).applications
        if is_waiting(view, snapshot, settings)
    }


def _reason(
    view: ApplicationView,
    snapshot: Snapshot,
    orders: list[Order],
    verdict: WaitingVerdict | None,
    blocked: ModeReason | None,
) -> Waiting:
    sent = [order for order in orders if not order.observed]
    found = None if verdict is None else verdict.found
    if count := sum(order.serves for order in sent):
        rest = _no_more(verdict) if blocked is None and pending_of(view) > count else None
        causes = () if rest is None or verdict is None else verdict.causes
        return Waiting("ordered", ContainersOrdered(count, _sources(sent)), causes, rest=rest)
    if not view.activated:
        return Waiting("limit", NotActivated(view.application in snapshot.held_back))
    left_out = snapshot.left_out.get(view.application)
    if not view.requests and left_out is not None:
        return Waiting("limit", left_out)
    if isinstance(found, NotActivated) or (isinstance(found, NotModelled) and left_out is None):
        found = None  # of an older snapshot than the one that is shown
    label = "" if verdict is None else verdict.label
    if isinstance(found, LIMITS) and blocked is None:
        return Waiting("limit", found, label=label)
    if blocked is not None:
        return Waiting("not-acting", blocked)
    if count := sum(order.serves for order in orders):
        return Waiting("would-order", WouldOrder(count, _sources(orders)))
    if verdict is None or found is None or found == "ordered" or isinstance(found, OnItsWay):
        return Waiting("next", DecidedNext())
    if found == "awaited":
        tasks = 0 if verdict.planned is None else len(verdict.planned.choice.awaited)
        return Waiting("awaited", TasksEndSoon(tasks), label=label)
    if found == "placed":
        nodes = _fits(view.application, verdict.snapshot)
        return Waiting("fits", nodes, fitting=verdict.fitting, label=label)
    if found == "in-flight":
        return Waiting("rejected", TooManyInFlight(), label=label)
    return Waiting("rejected", found, verdict.causes, label=label)


def _no_more(verdict: WaitingVerdict | None) -> TooManyInFlight | TriggerReason | None:
    """Return why the newest decision orders nothing (more); None: it orders, or nothing is needed."""
    found = None if verdict is None else verdict.found
    if found == "in-flight":
        return TooManyInFlight()
    return None if found is None or isinstance(found, str | OnItsWay) else found


def _sources(orders: Iterable[Order]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(order.victim for order in orders).items()))


def _fits(application: str, snapshot: Snapshot) -> FitsNotGranted:
    """Return where the requests of an application fit; ``snapshot``: the one of its verdict."""
    view = next(each for each in snapshot.applications if each.application == application)
    sizes = {request.size for request in view.requests}
    shared = [part.free_by_node for part in snapshot.labelled.values() if part.is_shared]
    free = sorted(item for part in (snapshot.free_by_node, *shared) for item in part.items())
    nodes = [node for node, left in free if any(fits(size, left) for size in sizes)]
    reserved = snapshot.reserved_by_node
    held = {reserved[node] for node in nodes if node in reserved}
    holders = sorted(held - {application})
    return FitsNotGranted(
        pending_of(view), tuple(nodes[:SHOWN_MAX]), max(0, len(nodes) - SHOWN_MAX), tuple(holders)
    )


def sentence(waiting: Waiting) -> str:
    """Return the one sentence: the reason, the tasks that were not chosen by application, YARN's words."""
    whole = LEADS.get(waiting.kind, "") + text(waiting.why) + on_label(waiting.label)
    if waiting.rest is not None:
        whole = f"{whole}; no order for the rest: {text(waiting.rest)}"
    shown = [cause_sentence(cause) for cause in waiting.causes[:SHOWN_MAX]]
    if rest := sum(cause.tasks for cause in waiting.causes[SHOWN_MAX:]):
        shown.append(f"{rest} more tasks")
    if shown:
        whole = f"{whole} ({'; '.join(shown)})"
    return f"{whole}; {waiting.yarn}" if waiting.yarn else whole


def cause_sentence(cause: Cause) -> str:
    """Return why tasks of one application were not chosen: ``11 reduces of nightly: ...``."""
    tasks = f"{cause.tasks} {cause.kind}{'' if cause.tasks == 1 else 's'}"
    return f"{tasks} of {cause.name or cause.application}: {cause_meaning(cause)[0]}"


def cause_meaning(cause: Cause) -> tuple[str, str]:
    """Return the meaning of a cause, and what a person can do ("": nothing)."""
    remedy = REMEDIES.get(cause.why, "")
    if cause.why_not is None:
        return REASONS.get(cause.why) or OWN_CAUSES.get(cause.why, cause.why), remedy
    meaning, own = sentence_and_remedy(cause.why_not)
    return meaning, own or remedy
