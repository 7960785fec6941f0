"""The Preemptor: which requests have a shortfall, the expected capacity, and which jobs may be preempted.

It frees containers only for a preempting application, only for requests that fit nowhere, never twice for the
same request, and only if the capacity would be given to the requester (:mod:`yarnctl.deciding.forecast`).
Under the profile ``paper`` the last rule is Natjam's own: the cluster is full, and more containers are
pending than the application's reclaim list has entries (section 3.2). The selector chooses which tasks stop;
no task is read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from yarnctl.deciding.case import Candidate, Need
from yarnctl.deciding.forecast import (
    FreeCapacity,
    QueueModel,
    SchedulerSimulation,
    Servable,
    below_guarantee,
    model_queues,
    over_guarantee,
    own_limits,
    slots,
    total_free,
)
from yarnctl.deciding.governor import SelfHelp
from yarnctl.deciding.guarantees import GivenLimits, GuaranteeShares, guarantee_shares
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import ApplicationView, HeldTime, JobConsent, Snapshot
from yarnctl.deciding.open_hours import outside_hours
from yarnctl.deciding.order import Order
from yarnctl.deciding.partitions import HasNode, has_node, part_of
from yarnctl.deciding.policies import FOREVER_MS, JobUsage, laxity_ms
from yarnctl.deciding.prioritising import less_urgent, urgency
from yarnctl.deciding.reasons.demand import (
    ClusterFull,
    MoreUrgentWaits,
    NoQueueGives,
    NoQueueOverGuarantee,
    NotActivated,
    NotGranted,
    OnItsWay,
    OthersFirst,
    OutsideHours,
    QueueAtGuarantee,
    QueueAtIdealShare,
    TriggerReason,
    Unmet,
)
from yarnctl.deciding.records import Trigger
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.shared_partitions import ServedPartition
from yarnctl.deciding.tree_forecast import EVERY_VICTIM, Helped, TreeSimulation
from yarnctl.deciding.tree_model import QueueTreeModel, placed_in
from yarnctl.units import NOTHING, Resources, at_least, at_most, dominant, fits, minus, plus, times

PPM = 1_000_000

_BY_ID = attrgetter("application")


class ApplicationDemand(NamedTuple):
    """The shortfalls of one application: never empty.

    ``queues``: the preemptable queues of which a container helps it (empty: every one). ``beside``: how much
    of a node's free capacity may count beside freed containers (None: all of it): limits of its queues, and
    reservations, may keep YARN from granting what is free. ``nodes``: those on which alone a container helps
    it, by its own reservations (none: every one may); ``otherwise``: why it would be refused without them.
    """

    application: ApplicationView
    shortfalls: tuple[Need, ...]
    trigger: Trigger
    queues: tuple[str, ...] = ()
    beside: Resources | None = None
    nodes: frozenset[str] = frozenset()
    otherwise: TriggerReason | None = None

    def usable(self, free: Mapping[str, Resources]) -> Mapping[str, Resources]:
        """Return what counts of the free capacity; a node with room for a whole request does not."""
        most = self.beside
        if most is None:
            return free
        return {
            node: at_most(size, most)
            for node, size in free.items()
            if not any(fits(need.size, size) for need in self.shortfalls)
        }


class ClusterDemand(NamedTuple):
    """The demand of one snapshot.

    ``refused`` are triggers without a decision, and why; ``free`` is the capacity per node that is not
    assigned; ``preemptable_queues`` is empty in deadline mode: every less urgent application counts.
    ``fitting``: how many pending containers of all applications fit into free or expected capacity;
    ``placed``: how many of each do, without the free capacity of other partitions; ``granted``: how many
    into what is free now, of any partition.
    ``gives``: what may be taken of each queue (None: no limit). ``labelled``: label -> the demand for its
    nodes.
    """

    applications: tuple[ApplicationDemand, ...]
    refused: tuple[tuple[Trigger, TriggerReason], ...]
    free: Mapping[str, Resources]
    preemptable_queues: tuple[str, ...]
    fitting: int = 0
    gives: GivenLimits | None = None
    labelled: Mapping[str, ClusterDemand] = MappingProxyType({})
    placed: Mapping[str, int] = MappingProxyType({})
    granted: Mapping[str, int] = MappingProxyType({})

    @property
    def by_label(self) -> Mapping[str, ClusterDemand]:
        """The demand for the nodes without a label ("") and of each label."""
        return {"": self, **self.labelled}


def refusing(demand: ClusterDemand, why: Callable[[Trigger], TriggerReason | None]) -> ClusterDemand:
    """Return the demand without the applications for which ``why`` returns a reason: these are refused."""
    reasons = [(wish, why(wish.trigger)) for wish in demand.applications]
    return demand._replace(
        applications=tuple(wish for wish, reason in reasons if reason is None),
        refused=(
            *demand.refused,
            *((wish.trigger, reason) for wish, reason in reasons if reason is not None),
        ),
        labelled={label: refusing(part, why) for label, part in demand.labelled.items()},
    )


class DemandInput(NamedTuple):
    """One observation of the cluster: the snapshot, its instant, and the instant of deciding.

    ``stale``: application -> requests that may be stale. ``held`` and ``consents``: as in
    the observation with the snapshot, whose instant is ``held_at_ms``. ``real``: the views of applications
    that are simulated in the snapshot to have received containers, or to have lost some.

    ``group_ms``: as in the observation with the tasks.
    ``label`` and ``is_here``: the partition of ``snapshot``, and which nodes are in it (None: all are).
    ``real_labelled``: label -> the same as ``real``. ``self_help``: where levers are governed.
    ``not_granted``: application -> whether an order for it was in vain
    (:mod:`yarnctl.deciding.not_granted`).
    """

    snapshot: Snapshot
    as_of_ms: int
    now_ms: int
    urgent_first: Sequence[ApplicationView] = ()
    stale: Mapping[str, int] = MappingProxyType({})
    held: tuple[HeldTime, ...] = ()
    consents: tuple[JobConsent, ...] = ()
    held_at_ms: int = 0
    real: Mapping[str, ApplicationView] = MappingProxyType({})
    real_labelled: Mapping[str, Mapping[str, ApplicationView]] = MappingProxyType({})
    label: str = ""
    is_here: HasNode | None = None
    self_help: SelfHelp | None = None
    group_ms: Mapping[str, int] = MappingProxyType({})
    not_granted: Mapping[str, bool] = MappingProxyType({})

    @property
    def granting(self) -> Snapshot:
        """The snapshot without the requests that YARN does not grant."""
        return without_requests(self.snapshot, self.not_granted)

    def here(self, orders: Iterable[Order]) -> list[Order]:
        """Return the orders on nodes of the partition."""
        is_here = self.is_here
        return list(orders) if is_here is None else [order for order in orders if is_here(order.node)]

    def elsewhere(self, orders: Iterable[Order]) -> list[Order]:
        """Return the orders on nodes of other partitions."""
        is_here = self.is_here
        return [] if is_here is None else [order for order in orders if not is_here(order.node)]

    def of_label(self, label: str) -> DemandInput:
        """Return the input of one partition; "": that of the nodes without a label."""
        if not self.snapshot.labelled:
            return self
        is_here = has_node(self.snapshot, label)
        part = part_of(self.snapshot, label)
        if not label:
            return self._replace(is_here=is_here, snapshot=part)
        views = {view.application: view for view in part.applications}
        return self._replace(
            snapshot=part,
            urgent_first=[views[view.application] for view in self.urgent_first if view.application in views],
            real=self.real_labelled.get(label, {}),
            label=label,
            is_here=is_here,
        )


def without_requests(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the snapshot with no requests of these applications."""
    if not names:
        return snapshot
    return msgspec.structs.replace(
        snapshot,
        applications=tuple(
            msgspec.structs.replace(view, requests=()) if view.application in names else view
            for view in snapshot.applications
        ),
    )


def pending_count(view: ApplicationView) -> int:
    """Return how many pending containers an application has."""
    return sum(request.count for request in view.requests)


def demand(inputs: DemandInput, ledger: Ledger, settings: Settings) -> ClusterDemand:
    """Return the applications with a shortfall, in serving order."""
    labelled: dict[str, ClusterDemand] = {}
    shared: list[Snapshot] = []
    for label in inputs.snapshot.labelled:
        part = inputs.of_label(label)
        labelled[label] = _demand(part, ledger, settings, ())
        if part.snapshot.is_shared:
            shared.append(part.snapshot)
    found = _demand(inputs.of_label(""), ledger, settings, shared)
    if labelled:
        granted = Counter(found.granted)
        for each in labelled.values():
            granted.update(each.granted)
        found = found._replace(labelled=labelled, granted=granted)
    return _with_left_out(found, inputs, ledger, settings) if inputs.snapshot.left_out else found


def _demand(
    inputs: DemandInput, ledger: Ledger, settings: Settings, shared: Sequence[Snapshot]
) -> ClusterDemand:
    """Return the demand of one partition; ``shared``: others whose idle nodes its requests may use."""
    waiting = [view for view in inputs.snapshot.applications if view.requests]
    if not any(is_preempting(view, settings) for view in waiting):
        return ClusterDemand((), (), {}, ())
    if settings.model_scheduler:
        return _modelled_demand(inputs, ledger, settings, waiting, shared)
    return _paper_demand(inputs, ledger, settings, shared)


def _with_left_out(
    demand: ClusterDemand, inputs: DemandInput, ledger: Ledger, settings: Settings
) -> ClusterDemand:
    """Add the preempting applications that have no trigger yet and whose requests are left out."""
    parts = demand.by_label.values()
    named = {wish.application.application for part in parts for wish in part.applications}
    named |= {trigger.application for part in parts for trigger, _ in part.refused}
    left_out = inputs.snapshot.left_out
    refused = [
        (_trigger(inputs, view, 0, ledger, (), left_out[view.application]), left_out[view.application])
        for view in inputs.snapshot.applications
        if view.application in left_out and view.application not in named and is_preempting(view, settings)
    ]
    return demand._replace(refused=(*demand.refused, *refused))


def is_preempting(view: ApplicationView, settings: Settings) -> bool:
    """Return whether containers may be freed for an application at all (with deadlines: for any)."""
    return settings.may_preempt(view.queue)


# --- the scheduler simulation -----------------------------------------------------------------


def _modelled_demand(
    inputs: DemandInput,
    ledger: Ledger,
    settings: Settings,
    waiting: Sequence[ApplicationView],
    shared: Sequence[Snapshot],
) -> ClusterDemand:
    snapshot = inputs.snapshot
    expected = list(ledger.expected_room(inputs.as_of_ms))
    coming = inputs.here(expected)
    queues = model_queues(snapshot, coming, inputs.elsewhere(expected))
    not_granted = _take_out(queues, inputs.not_granted)
    shares = guarantee_shares(snapshot, coming, settings) if settings.mode == "guarantees" else None
    over = _preemptable_queues(queues, settings) if shares is None else shares.victims()
    shut = outside_hours(settings.hours or (), over, inputs.now_ms)
    victims = tuple(name for name in over if name not in shut)
    free = FreeCapacity(snapshot.free_by_node, coming)
    placed_here, tree = placed_in(snapshot, queues, free)
    placed = dict(placed_here)
    if shared:
        _place_on_shared(queues, shared, placed, tree)
    granted = _granted_now(inputs, shared) if coming else placed
    in_vain = _bring_back(not_granted, queues, tree, inputs, settings)
    stuck = _stuck(queues, settings) | {view.application: (view, pending_count(view)) for view in in_vain}
    allowance = _allowance(inputs, stuck, ledger)
    beyond: dict[str, TriggerReason] = {}
    if shares is not None:
        allowance = _up_to_the_share(allowance, queues.values(), shares)
        beyond = _beyond_the_share(stuck, allowance, queues, gives=bool(victims))
    first = _most_urgent(inputs, stuck, allowance) if settings.mode == "deadlines" else None
    relieved = None if first is None else _users_with_preemptable(inputs, first, settings)

    def is_requester(view: ApplicationView) -> bool:
        if settings.mode == "queues":
            return view.queue in settings.preempting_queues
        if shares is not None:
            return allowance.get(view.application, 0) > 0
        return first is not None and view.application == first.application

    admitted: dict[str, Servable] = {}
    helped: dict[str, Helped] = {}
    on_reserved: dict[str, ApplicationDemand] = {}
    if settings.mode != "deadlines" and not victims:
        limits = own_limits(queues, snapshot.largest_node)
        none_gives = _none_gives(shut, NoQueueOverGuarantee() if shares is None else NoQueueGives())
        reasons: dict[str, TriggerReason] = {name: limits.get(name) or none_gives for name in stuck}
    elif tree is None:
        takers = SchedulerSimulation(
            queues, victims, is_requester, allowance, snapshot.largest_node, relieved, snapshot.resource_names
        )
        admitted, reasons = takers.admitted, takers.refused
    else:
        below = TreeSimulation(
            tree,
            victims,
            is_requester,
            allowance,
            free,
            relieved,
            snapshot.resource_names,
            inputs.not_granted,
        )
        admitted, reasons, helped = below.admitted, below.refused, below.helped
        on_reserved = _on_reserved_nodes(inputs, ledger, tree, allowance, placed)
    wishes = []
    for name, admission in admitted.items():
        help_of = helped.get(name, EVERY_VICTIM)
        if settings.mode != "deadlines" and len(help_of.victims) == len(victims):
            help_of = help_of._replace(victims=())  # every one of them
        if name in inputs.not_granted and help_of.beside is None:
            help_of = help_of._replace(beside=snapshot.largest_node)  # not where a whole request fits
        wishes.append(_wish(inputs, ledger, admission, placed.get(name, 0), help_of))
    wishes += [
        wish._replace(otherwise=reasons.get(name))
        for name, wish in on_reserved.items()
        if name not in admitted and is_requester(wish.application)
    ]
    requesters = {wish.application.application for wish in wishes}
    reasons |= {  # all that such an application may have is free, behind requests that are served first
        name: OthersFirst()
        for name, why in reasons.items()
        if isinstance(why, OnItsWay)
        and not ledger.promised(name, inputs.as_of_ms, inputs.is_here)
        and name not in inputs.stale
    }
    reasons |= beyond | {view.application: NotGranted() for view in in_vain}
    refused = [
        (_trigger(inputs, view, placed.get(view.application, 0), ledger, (), why), why)
        for view, why in _explained(waiting, stuck, requesters, reasons, settings, snapshot)
    ]
    gives = _limits(snapshot, coming, victims, settings) if shares is None else shares.limits
    return ClusterDemand(
        tuple(wishes),
        tuple(refused),
        _unassigned(free, tree, requesters),
        victims,
        sum(placed.values()),
        gives,
        placed=placed_here,
        granted=granted,
    )


def _on_reserved_nodes(
    inputs: DemandInput,
    ledger: Ledger,
    tree: QueueTreeModel,
    allowance: Mapping[str, int],
    placed: Mapping[str, int],
) -> dict[str, ApplicationDemand]:
    """Return a container for each application with reservations on known nodes, of the first one's size.

    What is freed on such a node fills the reservation, whatever the shares and limits.
    """
    snapshot, found = inputs.snapshot, dict[str, ApplicationDemand]()
    views = {view.application: view for view in snapshot.applications}
    for node, name in sorted(snapshot.reserved_by_node.items()):
        if tree.holder(node) != name or allowance.get(name, 0) <= 0 or name in inputs.not_granted:
            continue
        priority = snapshot.reserved_priority.get(node)
        sizes = {each.size for each in views[name].requests if priority in (None, each.priority)}
        if len(sizes) != 1:
            continue
        if name not in found:
            one = Servable(views[name], dict.fromkeys(sizes, 1))
            found[name] = _wish(inputs, ledger, one, placed.get(name, 0), EVERY_VICTIM)
        if sizes == {need.size for need in found[name].shortfalls}:
            found[name] = found[name]._replace(nodes=found[name].nodes | {node})
    return found


def _unassigned(
    free: FreeCapacity, tree: QueueTreeModel | None, requesters: Collection[str]
) -> dict[str, Resources]:
    """Return the free capacity by node; the node that a requester reserves serves it."""
    if tree is None:
        return free.free
    return free.free | {node: room for node, room in free.held.items() if tree.holder(node) in requesters}


def _take_out(queues: Mapping[str, QueueModel], names: Collection[str]) -> list[ApplicationView]:
    """Take requests that YARN does not grant out of the queues; return their applications."""
    found: list[ApplicationView] = []
    for queue in queues.values() if names else ():
        found += [view for view in queue.pending if view.application in names]
        queue.pending = [view for view in queue.pending if view.application not in names]
    return found


def _bring_back(
    views: Iterable[ApplicationView],
    queues: Mapping[str, QueueModel],
    tree: QueueTreeModel | None,
    inputs: DemandInput,
    settings: Settings,
) -> list[ApplicationView]:
    """Let containers be freed for requests that are not granted; return those for which that was in vain."""
    in_vain: list[ApplicationView] = []
    for view in views:
        if not is_preempting(view, settings):
            continue
        if inputs.not_granted[view.application]:
            in_vain.append(view)
        elif tree is None:
            queues[view.queue].add(view)
        else:
            tree.add(view)
    return in_vain


def _granted_now(inputs: DemandInput, shared: Sequence[Snapshot]) -> dict[str, int]:
    """Return how many containers of each application fit into what is free now."""
    snapshot = inputs.granting
    queues = model_queues(snapshot, ())
    placed, tree = placed_in(snapshot, queues, FreeCapacity(snapshot.free_by_node))
    if shared:
        _place_on_shared(queues, shared, placed, tree)
    return placed


def _wish(
    inputs: DemandInput, ledger: Ledger, servable: Servable, placed: int, help_of: Helped
) -> ApplicationDemand:
    view = servable.application
    needs = tuple(Need(size, count) for size, count in servable.shortfalls.items())
    trigger = _trigger(inputs, view, placed, ledger, needs, Unmet(view.predicted))
    return ApplicationDemand(view, needs, trigger, help_of.victims, help_of.beside)


def _place_on_shared(
    queues: Mapping[str, QueueModel],
    shared: Iterable[Snapshot],
    placed: dict[str, int],
    tree: QueueTreeModel | None,
) -> None:
    """Serve requests without a label from what is free on nodes with a label that is not exclusive.

    It is free now, so fair leaves do not order there by what will have ended.
    """
    rejected = () if tree is None else tree.rejected()
    for part in shared:
        more = _served(part).serve_idle(queues, rejected)
        placed.update((name, placed.get(name, 0) + count) for name, count in more.items())
    if tree is not None:
        tree.close_idle()


def _served(snapshot: Snapshot) -> ServedPartition:
    return ServedPartition(snapshot, model_queues(snapshot, ()), FreeCapacity(snapshot.free_by_node))


def _limits(
    snapshot: Snapshot, coming: Sequence[Order], victims: Sequence[str], settings: Settings
) -> GivenLimits | None:
    """Return limits under which each queue keeps its guarantee: the forecast may have taken from another."""
    if settings.mode != "queues" or (len(victims) < 2 and not snapshot.parents):
        return None
    used = {view.queue: view.used for view in snapshot.queues if view.queue in victims}
    return GivenLimits(snapshot, used, coming)


def _preemptable_queues(queues: Mapping[str, QueueModel], settings: Settings) -> tuple[str, ...]:
    tolerance_ppm = round(settings.utilisation_tolerance_ratio * PPM)
    return tuple(
        name
        for name in settings.preemptable_queues
        if name in queues and over_guarantee(queues[name].view, queues[name].used, tolerance_ppm)
    )


def _none_gives(shut: Mapping[str, OutsideHours], none_is_over: TriggerReason) -> TriggerReason:
    """Return why no preemptable queue gives: of those outside of their hours, the first to open."""
    if not shut:
        return none_is_over
    return min(shut.values(), key=lambda each: (each.opens_at_ms, each.queue))


def _stuck(queues: Mapping[str, QueueModel], settings: Settings) -> dict[str, tuple[ApplicationView, int]]:
    """Return the preempting applications with requests that fit nowhere, and how many."""
    stuck: dict[str, tuple[ApplicationView, int]] = {}
    for queue in queues.values():
        if not settings.may_preempt(queue.view.queue):
            continue
        for wanted in queue.waiting():
            view = wanted.application
            before = stuck.get(view.application, (view, 0))[1]
            stuck[view.application] = (view, before + wanted.containers)
    return stuck


def _allowance(
    inputs: DemandInput, stuck: Mapping[str, tuple[ApplicationView, int]], ledger: Ledger
) -> dict[str, int]:
    """Return how many containers each may get more, by the state in the snapshot.

    Stale requests are subtracted from the requests that fit nowhere: a stale one must not cause a suspension.
    For requests that fit and are not granted one order is open at a time.
    """
    allowance = {
        name: min(
            pending_count(view) - ledger.promised(name, inputs.as_of_ms, inputs.is_here),
            containers - inputs.stale.get(name, 0),
        )
        for name, (view, containers) in stuck.items()
    }
    for name, in_vain in inputs.not_granted.items():
        if name in allowance:
            most = 0 if in_vain or any(ledger.of_requester(name)) else 1
            allowance[name] = min(allowance[name], most)
    return allowance


def _up_to_the_share(
    allowance: Mapping[str, int], queues: Iterable[QueueModel], shares: GuaranteeShares
) -> dict[str, int]:
    """Return the allowances of the applications whose leaf, or its parent, is below its guarantee."""
    allowed = shares.allowed(queues)
    return {name: min(count, allowed[name]) for name, count in allowance.items() if name in allowed}


def _beyond_the_share(
    stuck: Mapping[str, tuple[ApplicationView, int]],
    allowance: Mapping[str, int],
    queues: Mapping[str, QueueModel],
    *,
    gives: bool,
) -> dict[str, TriggerReason]:
    """Return why applications get nothing from other queues; ``gives``: a queue has something to give."""
    served = {stuck[name][0].queue for name in allowance}
    found: dict[str, TriggerReason] = {}
    for name, (view, _) in stuck.items():
        if name in allowance:
            continue
        if not below_guarantee(queues[view.queue].key()):
            found[name] = QueueAtGuarantee()
        elif view.queue in served:
            found[name] = OthersFirst()
        else:
            found[name] = QueueAtIdealShare() if gives else NoQueueGives()
    return found


def _most_urgent(
    inputs: DemandInput, stuck: Mapping[str, tuple[ApplicationView, int]], allowance: Mapping[str, int]
) -> ApplicationView | None:
    """Return the only possible requester under Natjam-R: the most urgent with unmet requests (section 4)."""
    for view in inputs.urgent_first:
        if view.application in stuck and allowance[view.application] > 0:
            return view
    return None


def _users_with_preemptable(
    inputs: DemandInput, requester: ApplicationView, settings: Settings
) -> dict[str, None]:
    """Return the users of the applications that may be preempted for ``requester``."""
    preemptable = _less_urgent(inputs, requester, settings)
    return {
        view.user: None
        for view in inputs.snapshot.applications
        if view.containers > 1 and view.application in preemptable
    }


def _explained(
    waiting: Sequence[ApplicationView],
    stuck: Mapping[str, tuple[ApplicationView, int]],
    admitted: Collection[str],
    reasons: Mapping[str, TriggerReason],
    settings: Settings,
    snapshot: Snapshot,
) -> Iterable[tuple[ApplicationView, TriggerReason]]:
    """Yield the preempting applications with pending requests and no decision, with the reason."""
    for view in waiting:
        name = view.application
        if not is_preempting(view, settings) or name in admitted:
            continue
        if not view.activated:
            yield view, NotActivated(name in snapshot.held_back)
        elif view.queue in snapshot.aside:
            yield view, snapshot.aside[view.queue]
        elif name in stuck:
            waits: TriggerReason = MoreUrgentWaits() if settings.mode == "deadlines" else OthersFirst()
            yield view, reasons.get(name, waits)


def _trigger(
    inputs: DemandInput,
    view: ApplicationView,
    placed: int,
    ledger: Ledger,
    needs: tuple[Need, ...],
    why: TriggerReason,
) -> Trigger:
    real = inputs.real.get(view.application, view)
    simulated = pending_count(real) - pending_count(view)
    return Trigger(
        application=view.application,
        queue=view.queue,
        requests=real.requests,
        pending=pending_count(real),
        placed=placed,
        promised=ledger.promised(view.application, inputs.as_of_ms, inputs.is_here) + simulated,
        shortfall=sum(need.containers for need in needs),
        why=why,
        as_of_ms=inputs.as_of_ms,
        label=inputs.label,
    )


# --- the paper's rule -------------------------------------------------------------------------


def _paper_demand(
    inputs: DemandInput, ledger: Ledger, settings: Settings, shared: Iterable[Snapshot]
) -> ClusterDemand:
    """Natjam, section 3.2: (1) the cluster is full, (2) pending > entries on the reclaim list.

    "Full" is about all free capacity, wherever it is. A container freed for an entry that waits for its grant
    belongs to that entry: it is neither free nor counted as shortfall again.
    """
    snapshot = inputs.snapshot
    tolerance_ppm = round(settings.utilisation_tolerance_ratio * PPM)
    over = tuple(
        view.queue
        for view in snapshot.queues
        if view.queue in settings.preemptable_queues and over_guarantee(view, view.used, tolerance_ppm)
    )
    shut = outside_hours(settings.hours or (), over, inputs.now_ms)
    over = tuple(name for name in over if name not in shut)
    free = total_free(snapshot.free_by_node)
    for part in shared:
        free = plus(free, total_free(_served(part).idle))
    for order in inputs.here(ledger.freed_unassigned(inputs.as_of_ms)):
        free = at_least(NOTHING, minus(free, times(order.request_size, order.serves)))
    wishes: list[ApplicationDemand] = []
    refused: list[tuple[Trigger, TriggerReason]] = []
    for view in _paper_requesters(inputs, settings):
        needs, placed, free = _paper_shortfalls(inputs, view, free, ledger)
        trigger = _trigger(inputs, view, placed, ledger, needs, ClusterFull())
        if not needs:
            continue
        if view.queue in snapshot.aside:
            refused.append((trigger, snapshot.aside[view.queue]))
            continue
        if settings.mode == "queues" and not over:
            refused.append((trigger, _none_gives(shut, NoQueueOverGuarantee())))
            continue
        wishes.append(ApplicationDemand(view, needs, trigger))
        if settings.mode == "deadlines":
            break
    return ClusterDemand(tuple(wishes), tuple(refused), {}, over)


def _paper_requesters(inputs: DemandInput, settings: Settings) -> list[ApplicationView]:
    if settings.mode == "deadlines":
        return [view for view in inputs.urgent_first if view.requests and view.activated]
    place = {queue: index for index, queue in enumerate(settings.preempting_queues)}
    requesters = [
        view
        for view in inputs.snapshot.applications
        if view.requests and view.activated and view.queue in place
    ]
    return sorted(requesters, key=lambda view: (place[view.queue], view.rank, view.application))


def _paper_shortfalls(
    inputs: DemandInput, view: ApplicationView, free: Resources, ledger: Ledger
) -> tuple[tuple[Need, ...], int, Resources]:
    """Return the shortfalls of one requester, how many of its requests fit, and the free capacity left."""
    promised = ledger.promised(view.application, inputs.as_of_ms, inputs.is_here)
    promised += ledger.terminating_for(view.application, inputs.as_of_ms)
    counts: dict[Resources, int] = {}
    placed = 0
    for request in sorted(view.requests):
        kept = min(promised, request.count)
        promised -= kept
        fitting = min(request.count - kept, slots(free, request.size))
        placed += fitting
        free = minus(free, times(request.size, fitting))
        if request.count > kept + fitting:
            counts[request.size] = counts.get(request.size, 0) + request.count - kept - fitting
    return tuple(Need(size, count) for size, count in counts.items()), placed, free


# --- which jobs may be preempted --------------------------------------------------------------


def preemptable(inputs: DemandInput, settings: Settings, queues: tuple[str, ...]) -> list[ApplicationView]:
    """Return the applications with more than a master in ``queues`` (with deadlines: anywhere), by id."""
    views = inputs.snapshot.applications
    if settings.mode == "deadlines":
        return sorted([view for view in views if view.containers > 1], key=_BY_ID)
    return sorted([view for view in views if view.queue in queues and view.containers > 1], key=_BY_ID)


def candidates(
    inputs: DemandInput, ledger: Ledger, settings: Settings, views: Sequence[ApplicationView]
) -> list[Candidate]:
    """Return the jobs of ``views`` without their containers under order ("less these containers")."""
    total = inputs.snapshot.total
    leaving: dict[str, list[Order]] = {}
    for order in inputs.here(ledger.expected_room(inputs.as_of_ms)):
        leaving.setdefault(order.victim, []).append(order)
    jobs: list[Candidate] = []
    ratio_ppm = round(settings.job_open_ratio_max * PPM)
    for view in views:
        name, used, containers, gone = view.application, view.used, view.containers, 0
        if name in leaving:
            for order in leaving[name]:
                used = minus(used, order.size)
            gone = len(leaving[name])
        deadline, submitted = view.deadline_at_ms, view.submitted_at_ms
        laxity = (
            FOREVER_MS
            if deadline is None
            else laxity_ms(deadline, submitted, view.progress_ratio, inputs.now_ms)
        )
        share = dominant(used, total)
        usage = JobUsage(
            name, share, containers - gone, containers - gone - 1, submitted, deadline, laxity, 0
        )
        budget = max(1, containers * ratio_ppm // PPM)
        if gone or name in ledger.by_victim:
            budget -= _under_order(name, leaving.get(name, ()), ledger)
        jobs.append(Candidate(usage, used, budget, view.task_size))
    return jobs


def _under_order(victim: str, leaving: Sequence[Order], ledger: Ledger) -> int:
    """Count a job's containers under order in the snapshot: those that ended since are still in it."""
    ended = [order for order in leaving if order.state != "killed" and order.order not in ledger.open]
    return sum(order.state != "simulated" for order in ledger.of_victim(victim)) + len(ended)


def closed_jobs(
    views: Sequence[ApplicationView], settings: Settings, silent: Mapping[str, Reason], now_ms: int
) -> dict[str, Reason]:
    """Return the jobs among ``views`` that are excluded, and why; ``silent`` are unobservable."""
    closed = dict(silent)
    any_task = settings.kill_maps or settings.levers is not None
    if settings.eviction == "suspend" and not any_task:
        without = [view for view in views if not view.runner]
        closed.update(
            {view.application: "unreachable" if view.runner is None else "no-runner" for view in without}
        )
    if settings.hours:
        shut = outside_hours(settings.hours, {view.queue for view in views}, now_ms)
        closed.update({view.application: "outside-hours" for view in views if view.queue in shut})
    closed.update({view.application: "left-alone" for view in views if view.left_alone})
    return closed


def is_preemptable(
    jobs: Sequence[Candidate],
    inputs: DemandInput,
    settings: Settings,
    requester: ApplicationView,
    queues: Collection[str] = (),
) -> tuple[Candidate, ...]:
    """Drop the requester itself and, in deadline mode, all that are not strictly less urgent.

    ``queues``: those whose containers help it; empty: every queue's do.
    """
    if queues:
        helping = {view.application for view in inputs.snapshot.applications if view.queue in queues}
        jobs = [job for job in jobs if job.usage.application in helping]
    if settings.mode != "deadlines":
        return tuple(job for job in jobs if job.usage.application != requester.application)
    preemptable = _less_urgent(inputs, requester, settings)
    return tuple(job for job in jobs if job.usage.application in preemptable)


def _less_urgent(inputs: DemandInput, requester: ApplicationView, settings: Settings) -> dict[str, None]:
    """Return the applications that are strictly less urgent than ``requester``.

    In the scheduler simulation, an application served before the requester is not preempted: it would be
    given the container back at once.
    """
    asking = urgency(requester, inputs.now_ms, settings)
    return {
        view.application: None
        for view in inputs.snapshot.applications
        if less_urgent(urgency(view, inputs.now_ms, settings), asking, settings)
        and (view.rank > requester.rank or not settings.model_scheduler)
    }


def served_before(
    snapshot: Snapshot, requester: ApplicationView, now_ms: int, settings: Settings
) -> str | None:
    """Return the first application that is less urgent than ``requester`` and yet served before it.

    Only of its queue and with tasks. YARN's order follows the priorities that yarnctl sends, a look later.
    """
    asking = urgency(requester, now_ms, settings)
    ahead = [
        view
        for view in snapshot.applications
        if view.queue == requester.queue and view.containers > 1 and view.rank < requester.rank
        if less_urgent(urgency(view, now_ms, settings), asking, settings)
    ]
    return min(ahead, key=attrgetter("rank", "application")).application if ahead else None


def after_picks(
    jobs: Sequence[Candidate], picked: Mapping[str, Sequence[Resources]], total: Resources
) -> list[Candidate]:
    """Return the jobs without the given containers, as new values."""
    left: list[Candidate] = []
    for job in jobs:
        sizes = picked.get(job.usage.application)
        if sizes is None:
            left.append(job)
            continue
        used = job.used
        for size in sizes:
            used = minus(used, size)
        gone = len(sizes)
        usage = job.usage._replace(
            share=dominant(used, total),
            containers=job.usage.containers - gone,
            releasable=job.usage.releasable - gone,
        )
        left.append(Candidate(usage, used, job.budget - gone, job.task_size))
    return left
