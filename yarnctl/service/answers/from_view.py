"""From the view to answers: one pure function for each thing that is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import TypeVar

import msgspec

from yarnctl.api.cluster_answers import (
    Application,
    ChangeOut,
    ClusterOut,
    Loop,
    NotChosen,
    OccupancySample,
    Occupied,
    Queue,
    QueueAside,
    Role,
    SnapshotOut,
    WaitingOut,
)
from yarnctl.api.order_answers import (
    Bought,
    BudgetOut,
    CheckpointOut,
    EntryOut,
    ReclaimList,
    TimeLostOut,
)
from yarnctl.api.paged import Item, Page, ReasonOut, Size
from yarnctl.api.status_answers import StatusOut
from yarnctl.daemon.view.occupancy import ROLES, RoleUsage, Sample, pending_of, role_of, sample_of
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.daemon.view.recent_orders import Checkpoint
from yarnctl.daemon.view.why_waiting import Waiting, cause_meaning, sentence
from yarnctl.deciding.lifecycle import OPEN, State
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.model import ApplicationView, QueueView, Snapshot
from yarnctl.deciding.open_hours import outside_hours
from yarnctl.deciding.planning import name_of
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.rooting import Reason, code
from yarnctl.deciding.records import ApplicationName
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.time_lost import Waited
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.rendering import joined, said, text
from yarnctl.restoring.change_file import command_for, described
from yarnctl.service.answers.foretold import when_of
from yarnctl.service.answers.of_newest import OfNewest
from yarnctl.units import Resources, is_by_memory

UNSEEN_MIB = 1024
VERSION = version("yarnctl")

Answer = TypeVar("Answer", bound=msgspec.Struct)
Source = TypeVar("Source")


def page(
    view: View, total: int, part: tuple[Iterable[Source], str | None], make: Callable[[Source], Item]
) -> Page[Item]:
    """Return one page of ``total`` items, made of the sources in ``part``, with its next cursor."""
    shown, following = part
    items = [make(each) for each in shown]
    return Page(now_ms=view.now_ms, version=view.version, total=total, next=following, items=items)


def size(resources: Resources) -> Size:
    """Return a vector; no vcores of a capacity that they do not limit."""
    return Size(memory_mib=resources[0], vcores=0 if is_by_memory(resources) else resources[1])


def read_off(kind: type[Answer], /, *sources: object, **given: object) -> Answer:
    """Return an answer with the fields ``given``, the others from the first source that has them."""
    rest = [name for name in kind.__struct_fields__ if name not in given]
    found = {name: next(getattr(each, name) for each in sources if hasattr(each, name)) for name in rest}
    return kind(**given, **found)


def reason(reason: Reason | None) -> ReasonOut | None:
    """Return a reason's code and sentence; None for none."""
    return None if reason is None else _out(reason)


def _out(reason: Reason) -> ReasonOut:
    return ReasonOut(code=str(reason.__struct_config__.tag), text=text(reason))


def loop(status: LoopStatus) -> Loop:
    """Return the loop's status."""
    first = status.why[0] if status.why else None
    return read_off(
        Loop,
        status,
        enforce=status.mode == "enforce",
        loop_state=status.state,
        why=joined(status.why),
        reason=reason(first),
        aside=[QueueAside(queue=why.queue, until_ms=why.until_ms, reason=_out(why)) for why in status.aside],
    )


def cluster(status: LoopStatus) -> ClusterOut | None:
    """Return the identity of the cluster; None before its first answer."""
    identity = status.cluster
    if identity is None:
        return None
    return read_off(ClusterOut, identity, capabilities=sorted(identity.capabilities))


def status(view: View) -> StatusOut:
    """Return the daemon's state."""
    changes = [
        read_off(ChangeOut, change, text=described(change), by_hand=command_for(change))
        for change in view.loop.changes
    ]
    return StatusOut(
        yarnctl=VERSION,
        now_ms=view.now_ms,
        loop=loop(view.loop),
        leads=view.loop.leads,
        lock=view.loop.lock,
        leader=view.loop.leader,
        cluster=cluster(view.loop),
        pending=snapshot(view).preempting.pending,
        open_orders=len(open_entries(view)),
        changes=changes,
        budgets=[budget(view, each) for each in view.budgets],
    )


def occupied(usage: RoleUsage) -> Occupied:
    """Return what the applications of one role use."""
    return read_off(Occupied, usage, used=size(usage.used))


def sample(sample: Sample) -> OccupancySample:
    """Return the cluster by role at one instant."""
    used = {name: occupied(getattr(sample, name)) for name in ROLES}
    return read_off(OccupancySample, sample, total=size(sample.total), **used)


def open_entries(view: View) -> list[OrderStory]:
    """Return the entries of open orders, without those of an observing daemon."""
    return [story for story in view.entries if story.state in OPEN and not story.observed]


def would_order(view: View) -> Counter[str]:
    """Return for each application how many requests the orders of an observing daemon would serve."""
    counts: Counter[str] = Counter()
    for story in view.entries:
        if story.state in OPEN and story.observed:
            counts[story.requester] += story.serves
    return counts


BY_ID: OfNewest[tuple[ApplicationView, ...]] = OfNewest(
    lambda snapshot: tuple(sorted(snapshot.applications, key=lambda each: each.application))
)
"""A snapshot's applications by id."""


def applications(view: View, shown: Iterable[ApplicationView] | None = None) -> list[Application]:
    """Return these of the snapshot's applications; None: all, by id."""
    coming: Counter[str] = Counter()
    giving: Counter[str] = Counter()
    for story in open_entries(view):
        coming[story.requester] += story.serves
        giving[story.victim] += 1
    would = would_order(view)
    if shown is None:
        shown = () if view.snapshot is None else BY_ID(view.snapshot)
    left_alone: dict[str, dict[str, EligibilityReason]] = {}
    for attempt, why in view.left_alone.items():
        left_alone.setdefault(application_of(attempt), {})[attempt] = why
    return [
        _application(
            each,
            view,
            coming=coming[each.application],
            would=would[each.application],
            giving=giving[each.application],
            left_alone=left_alone,
        )
        for each in shown
    ]


def application_of(attempt: str) -> str:
    """Return the application whose job made a task attempt."""
    return "_".join(("application", *attempt.split("_")[1:3]))


def why_untouched(application: ApplicationView, view: View) -> Reason | None:
    """Return why an application's tasks cannot be suspended now: itself, or the hours of its queue."""
    shut = outside_hours(view.settings.hours or (), (application.queue,), view.now_ms)
    return application.why_not or shut.get(application.queue)


def _application(
    application: ApplicationView,
    view: View,
    *,
    coming: int,
    would: int,
    giving: int,
    left_alone: Mapping[str, dict[str, EligibilityReason]],
) -> Application:
    single = left_alone.get(application.application, {})
    why_not = why_untouched(application, view)
    return read_off(
        Application,
        application,
        role=role_of(application, view.settings),
        pending=pending_of(application),
        used=size(application.used),
        runner=bool(application.runner) and why_not is None,
        progress_ratio=float(application.progress_ratio),
        why_not=said(why_not),
        reason=reason(why_not),
        predicted=application.predicted,
        expected=coming,
        would_order=would,
        suspending=giving,
        left_alone={attempt: text(why) for attempt, why in single.items()},
        left_alone_reasons={attempt: _out(why) for attempt, why in single.items()},
        suspended=view.suspended[application.application].tasks
        if application.application in view.suspended
        else 0,
        master_only_ms=master_only_ms(application, view),
        left_out=None
        if view.snapshot is None
        else reason(view.snapshot.left_out.get(application.application)),
        waiting=_waiting(view.waiting.get(application.application)),
        when=when_of(application, view),
    )


def _waiting(waiting: Waiting | None) -> WaitingOut | None:
    if waiting is None:
        return None
    not_chosen = []
    for cause in waiting.causes:
        meaning, remedy = cause_meaning(cause)
        why = cause.why if cause.why_not is None else code(cause.why_not)
        shown = ReasonOut(code=why, text=meaning)
        not_chosen.append(read_off(NotChosen, cause, reason=shown, next=remedy))
    return WaitingOut(
        kind=waiting.kind, text=sentence(waiting), reason=_out(waiting.why), not_chosen=not_chosen
    )


def master_only_ms(application: ApplicationView, view: View) -> int | None:
    """Return for how long (ms) an application has held only its master, all tasks suspended; else None."""
    suspended = view.suspended.get(application.application)
    if suspended is None or application.containers != 1:
        return None
    return max(0, view.now_ms - suspended.last_at_ms)


def snapshot(view: View) -> SnapshotOut:
    """Return a summary of the cluster."""
    seen, opened = view.snapshot, len(open_entries(view))
    held = dict.fromkeys(ROLES, RoleUsage())
    if seen is not None:
        summed = sample_of(seen, view.settings, view.now_ms, opened)
        held = {name: getattr(summed, name) for name in ROLES}
    used = {name: occupied(each) for name, each in held.items()}
    return read_off(
        SnapshotOut,
        view,
        loop=loop(view.loop),
        cluster=cluster(view.loop),
        snapshot_age_ms=None if view.snapshot_at_ms is None else max(0, view.now_ms - view.snapshot_at_ms),
        total=None if seen is None else size(seen.total),
        free=None if seen is None else size(_free(seen)),
        queues=[] if seen is None else _queues(seen, view.settings),
        applications=0 if seen is None else len(seen.applications),
        quiet=view.no_demand,
        open_orders=opened,
        unreachable=list(view.unreachable),
        decisions=view.counts.decisions,
        masters_only=sum(
            master_only_ms(each, view) is not None for each in (() if seen is None else seen.applications)
        ),
        **used,
    )


def _free(snapshot: Snapshot) -> Resources:
    free = list(snapshot.free_by_node.values())
    return Resources(sum(node[0] for node in free), sum(node[1] for node in free))


def _queues(snapshot: Snapshot, settings: Settings) -> list[Queue]:
    inside: dict[str, list[ApplicationView]] = {}
    for each in snapshot.applications:
        inside.setdefault(each.queue, []).append(each)
    return [_queue(each, inside.get(each.queue, []), settings) for each in snapshot.queues]


def _queue(queue: QueueView, inside: Sequence[ApplicationView], settings: Settings) -> Queue:
    return read_off(
        Queue,
        queue,
        role=queue_role(queue.queue, settings),
        guaranteed=size(queue.guaranteed),
        maximum=size(queue.maximum),
        used=size(queue.used),
        applications=len(inside),
        containers=sum(view.containers for view in inside),
        pending=sum(pending_of(view) for view in inside),
    )


def queue_role(name: str, settings: Settings) -> Role:
    """Return a queue's role; "other" where each application has its own: with deadlines and guarantees."""
    preempts, preemptable = settings.may_preempt(name), settings.may_be_preempted(name)
    if settings.mode != "queues" and preempts == preemptable:
        return "other"
    if preempts:
        return "preempting"
    return "preemptable" if preemptable else "other"


def entry(story: OrderStory, retired: bool) -> EntryOut:
    """Return one entry: the story of its order, without the policies' keys and the tasks not chosen."""
    return read_off(
        EntryOut,
        story,
        container=story.left or story.container,
        node=story.left_node or story.node,
        size=size(story.size),
        verb=story.order_verb,
        retired=retired,
        cost_ms=None if story.came_back is None else story.came_back.cost_ms,
        reason=ReasonOut(code=story.reason_code, text=story.why) if story.reason_code else None,
    )


def name_in(
    application: str, application_view: ApplicationView | None, stories: Iterable[OrderStory]
) -> ApplicationName | None:
    """Return an application's name; of an ended one the name that these stories have; None: not known."""
    if application_view is not None:
        return name_of(application_view)
    return next((each.names[application] for each in stories if application in each.names), None)


def reclaim_list(
    application: str, application_view: ApplicationView | None, stories: Iterable[OrderStory], view: View
) -> ReclaimList:
    """Return one application's list with the selected ``stories``."""
    shown = list(stories)
    left = {story.order for story in view.ended}
    known = name_in(application, application_view, shown)
    return ReclaimList(
        application=application,
        name=None if known is None else known.name,
        user=None if known is None else known.user,
        queue=None if known is None else known.queue,
        role=None if application_view is None else role_of(application_view, view.settings),
        pending=None if application_view is None else pending_of(application_view),
        expected=sum(each.serves for each in open_entries(view) if each.requester == application),
        would_order=would_order(view)[application],
        states=counted(each.state for each in shown),
        entries=[entry(each, each.order in left) for each in shown],
    )


def counted(states: Iterable[State]) -> dict[State, int]:
    """Count states, in the order of their names."""
    return dict(sorted(Counter(states).items()))


def checkpoint(checkpoint: Checkpoint) -> CheckpointOut:
    """Return a checkpoint that was found."""
    order = checkpoint.order
    return read_off(CheckpointOut, checkpoint, order, order=order.order, application=order.victim)


def lost(waited: Waited) -> TimeLostOut:
    """Return how long production waited for one cause."""
    return TimeLostOut(cause=waited.cause, waited_ms=waited.waited_ms, saves=waited.saves or None)


def budget(view: View, standing: BudgetStanding) -> BudgetOut:
    """Return a loss budget, for containers as large as its owner's largest tasks (1 GiB if none runs)."""
    applications = () if view.snapshot is None else view.snapshot.applications
    sizes = [
        one.task_size.memory_mib
        for one in applications
        if standing.name == {"queue": one.queue, "user": one.user, "job": one.application}[standing.kind]
    ]
    container_mib = max(sizes, default=0) or UNSEEN_MIB
    return BudgetOut(
        queue=standing.name if standing.kind == "queue" else None,
        user=standing.user or None,
        application=standing.name if standing.kind == "job" else None,
        may_lose_ratio=standing.may_lose_ratio,
        window_ms=standing.window_ms,
        lost_ms=standing.lost_ms,
        left_ms=standing.left_mib_ms // container_mib,
        container_mib=container_mib,
        bought=Bought(containers=standing.containers, waiting_saved_ms=standing.waiting_saved_ms),
    )
