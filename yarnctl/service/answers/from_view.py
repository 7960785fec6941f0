"""From the view to answers: one pure function per thing that is shown.

Law: nothing is decided or derived here beyond sums; two requests on one view get the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from yarnctl.api.cluster_answers import (
    Application,
    ApplicationClass,
    ClusterOut,
    Loop,
    OccupancySample,
    Occupied,
    Queue,
    SnapshotOut,
)
from yarnctl.api.order_answers import CheckpointOut, EntryOut, ReclaimList
from yarnctl.api.paged import Item, Page, Size
from yarnctl.daemon.view.occupancy import CLASSES, Held, Sample, class_of, pending_of, sample_of
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.daemon.view.reclaim_lists import Checkpoint, Entry
from yarnctl.deciding.lifecycle import OPEN, State
from yarnctl.deciding.model import ApplicationView, QueueView, Snapshot
from yarnctl.deciding.settings import Settings
from yarnctl.journal.rendering import text
from yarnctl.units import Resources


def page(view: View, total: int, following: str | None, items: list[Item]) -> Page[Item]:
    """Show one page of ``total`` items; ``following`` is the next cursor."""
    return Page(now_ms=view.now_ms, version=view.version, total=total, next=following, items=items)


def size(resources: Resources) -> Size:
    """Show a vector."""
    return Size(memory_mib=resources[0], vcores=resources[1])


def loop(status: LoopStatus) -> Loop:
    """Show the loop's status."""
    return msgspec.convert(status, Loop, from_attributes=True)


def cluster(status: LoopStatus) -> ClusterOut | None:
    """Show who answers, if anybody has yet."""
    who = status.cluster
    if who is None:
        return None
    return ClusterOut(epoch=who.epoch, node_count=who.node_count, capabilities=sorted(who.capabilities))


# --- the cluster --------------------------------------------------------------------------------------


def occupied(held: Held) -> Occupied:
    """Show what a class holds."""
    return Occupied(used=size(held.used), containers=held.containers, pending=held.pending)


def sample(seen: Sample) -> OccupancySample:
    """Show the cluster by class at one instant."""
    return OccupancySample(
        at_ms=seen.at_ms,
        total=size(seen.total),
        hurried=occupied(seen.hurried),
        victim=occupied(seen.victim),
        other=occupied(seen.other),
        open_orders=seen.open_orders,
    )


def open_entries(view: View) -> list[Entry]:
    """Return the entries that still count."""
    return [entry for entry in view.entries if entry.order.state in OPEN]


def applications(view: View) -> list[Application]:
    """Show the snapshot's applications, by id."""
    coming: Counter[str] = Counter()
    giving: Counter[str] = Counter()
    for entry in open_entries(view):
        coming[entry.order.asker] += entry.order.serves
        giving[entry.order.victim] += 1
    known = () if view.snapshot is None else view.snapshot.applications
    left_alone: dict[str, dict[str, str]] = {}
    for attempt, why in view.left_alone.items():
        left_alone.setdefault(application_of(attempt), {})[attempt] = why
    return [
        _application(each, view.settings, coming[each.application], giving[each.application], left_alone)
        for each in sorted(known, key=lambda each: each.application)
    ]


def application_of(attempt: str) -> str:
    """Return the application whose job made a task attempt."""
    return "_".join(("application", *attempt.split("_")[1:3]))


def _application(
    each: ApplicationView,
    settings: Settings,
    coming: int,
    giving: int,
    left_alone: Mapping[str, dict[str, str]],
) -> Application:
    return Application(
        application=each.application,
        application_class=class_of(each, settings),
        queue=each.queue,
        user=each.user,
        name=each.name,
        rank=each.rank,
        submitted_at_ms=each.submitted_at_ms,
        containers=each.containers,
        pending=pending_of(each),
        foreseen=each.foreseen,
        used=size(each.used),
        priority=each.priority,
        progress_ratio=float(each.progress_ratio),
        deadline_at_ms=each.deadline_at_ms,
        activated=each.activated,
        runner=each.runner,
        why_not="" if each.why_not is None else text(each.why_not),
        on_their_way=coming,
        giving=giving,
        left_alone=left_alone.get(each.application, {}),
    )


def snapshot(view: View) -> SnapshotOut:
    """Show everything at a glance."""
    seen, opened = view.snapshot, len(open_entries(view))
    held = dict.fromkeys(CLASSES, Held())
    if seen is not None:
        summed = sample_of(seen, view.settings, view.now_ms, opened)
        held = {"hurried": summed.hurried, "victim": summed.victim, "other": summed.other}
    return SnapshotOut(
        now_ms=view.now_ms,
        version=view.version,
        loop=loop(view.loop),
        cluster=cluster(view.loop),
        snapshot_at_ms=view.snapshot_at_ms,
        snapshot_age_ms=None if view.snapshot_at_ms is None else max(0, view.now_ms - view.snapshot_at_ms),
        quiet=view.quiet,
        total=None if seen is None else size(seen.total),
        free=None if seen is None else size(_free(seen)),
        hurried=occupied(held["hurried"]),
        victim=occupied(held["victim"]),
        other=occupied(held["other"]),
        queues=[] if seen is None else _queues(seen, view.settings),
        applications=0 if seen is None else len(seen.applications),
        open_orders=opened,
        unreachable=list(view.unreachable),
        decisions=view.counts.decisions,
    )


def _free(seen: Snapshot) -> Resources:
    rooms = list(seen.free_by_node.values())
    return Resources(sum(room[0] for room in rooms), sum(room[1] for room in rooms))


def _queues(seen: Snapshot, settings: Settings) -> list[Queue]:
    inside: dict[str, list[ApplicationView]] = {}
    for each in seen.applications:
        inside.setdefault(each.queue, []).append(each)
    return [_queue(each, inside.get(each.queue, []), settings) for each in seen.queues]


def _queue(each: QueueView, inside: Sequence[ApplicationView], settings: Settings) -> Queue:
    return Queue(
        queue=each.queue,
        application_class=queue_class(each.queue, settings),
        guaranteed=size(each.guaranteed),
        maximum=size(each.maximum),
        used=size(each.used),
        applications=len(inside),
        containers=sum(view.containers for view in inside),
        pending=sum(pending_of(view) for view in inside),
    )


def queue_class(name: str, settings: Settings) -> ApplicationClass:
    """Say what a queue's applications are to the controller (with deadlines: it depends)."""
    if settings.mode == "deadlines":
        return "other"
    if name in settings.hurried_queues:
        return "hurried"
    return "victim" if name in settings.victim_queues else "other"


# --- reclaim lists ------------------------------------------------------------------------------------


def entry(each: Entry) -> EntryOut:
    """Show one entry."""
    order = each.order
    return EntryOut(
        order=order.order,
        decision=order.decision,
        asker=order.asker,
        victim=order.victim,
        attempt=order.attempt,
        container=order.container,
        node=order.node,
        size=size(order.size),
        serves=order.serves,
        group=order.group,
        verb=order.verb,
        generation=order.generation,
        state=order.state,
        retired=each.retired,
        why=each.why,
        asked_at_ms=order.asked_at_ms,
        progress_at_ms=order.progress_at_ms,
        checkpointed_at_ms=each.checkpointed_at_ms,
        freed_at_ms=order.freed_at_ms,
        settled_at_ms=order.settled_at_ms,
        keys_done=each.keys_done,
        remaining_ms=each.remaining_ms,
        predicted_cost_ms=each.predicted_cost_ms,
        cost_ms=each.cost_ms,
        room_to_application=each.room_to_application,
        room_to_container=each.room_to_container,
    )


def reclaim_list(
    application: str, seen: ApplicationView | None, entries: Iterable[Entry], view: View
) -> ReclaimList:
    """Show one application's list; ``entries`` are those that the caller wants to see of it."""
    shown = list(entries)
    return ReclaimList(
        application=application,
        queue=None if seen is None else seen.queue,
        application_class=None if seen is None else class_of(seen, view.settings),
        pending=None if seen is None else pending_of(seen),
        on_their_way=sum(each.order.serves for each in open_entries(view) if each.order.asker == application),
        states=counted(each.order.state for each in shown),
        entries=[entry(each) for each in shown],
    )


def counted(states: Iterable[State]) -> dict[State, int]:
    """Count states, in the order of their names."""
    return dict(sorted(Counter(states).items()))


def checkpoint(seen: Checkpoint) -> CheckpointOut:
    """Show a manifest that was seen."""
    return CheckpointOut(
        order=seen.order.order,
        application=seen.order.victim,
        attempt=seen.order.attempt,
        generation=seen.order.generation,
        keys_done=seen.keys_done,
        at_ms=seen.at_ms,
        asker=seen.order.asker,
    )
