"""Invariants: what must be true of an emulated cluster after every single event.

Law: an invariant is a generator of stories, one for each way in which it is broken; called by its
name in :data:`INVARIANTS` or :data:`AT_END` it raises InvariantBroken with that name and the first
story. It reads the actors, changes nothing and is never caught. What compares with the event
before finds it in the watch. For every name a test plants a bug and expects exactly that name.

::

    watch = Watch(run)
    run.go(after_each=watch.check_all)
    watch.check_end()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from emulator.app_master import FAILED_MAP, MAP_PRIORITY, REDUCE_PRIORITY, AppMaster
from emulator.capacity_scheduler import LeafQueue, Reservation
from emulator.cluster import Cluster
from emulator.faults import Fault
from emulator.resource_manager import Application, container_id
from emulator.task import (
    AM,
    DRAINING,
    ENDED,
    GRANTED,
    HOLDING,
    MAP,
    NEVER,
    NOT_ASKED,
    REDUCE,
    RELEASED,
    RUNNING,
    Container,
)
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.invariants import LEDGER
from yarnctl.deciding.ledger import Order
from yarnctl.deciding.model import Kill
from yarnctl.deciding.records import Decision, Performed, Record, Transition
from yarnctl.errors import InvariantBroken

Stories = Iterator[str]

LOSING = ("killed", "failed", "lost")
"""Endings that may cost work; "suspended" and "completed" may not."""


class Watched(Protocol):
    """What is watched: a ``virtual_host.Run``, or anything with a cluster."""

    @property
    def cluster(self) -> Cluster:
        """The actors."""
        ...


class Watch:
    """A run under watch: its actors now, and what was true of them after the event before."""

    def __init__(self, run: Watched) -> None:
        self.cluster = run.cluster
        self.kernel, self.rm, self.masters = run.cluster.kernel, run.cluster.rm, run.cluster.masters
        self.scheduler, self.nodes = self.rm.scheduler, self.rm.nodes
        self.controller: Controller | None = getattr(run, "controller", None)
        self.records: Sequence[Record] = getattr(getattr(run, "journal", None), "records", ())
        self.checks = 0
        # -- now
        self.live: list[Container] = []
        self.held: dict[Application, list[int]] = {}
        # -- after the event before
        self.now_ms = self.kernel.now_ms
        self.limits: dict[str, tuple[int, int, int, int]] = {}
        self.users: dict[tuple[str, str], int] = {}
        self.running: dict[AppMaster, tuple[Container, ...]] = {}
        self.spent: dict[AppMaster, tuple[int, int, int, int]] = {}
        self.saved: dict[tuple[AppMaster, int], tuple[int, int]] = {}
        self.may_lose = bool(_faults(run)) or getattr(run, "preemption", None) is not None
        self.read = 0
        self.written_at_ms = 0
        self.decisions = 0
        self.stepped = (-1, 0)
        self.settled: dict[str, Order] = {}
        self.decided: set[str] = set()
        self._look()
        self._remember()

    def live_now(self) -> list[Container]:
        """Return the containers that hold room, node by node."""
        live: list[Container] = []
        for node in self.nodes:
            live += node.containers.values()
        return live

    def _look(self) -> None:
        live = self.live_now()
        held: dict[Application, list[int]] = {}
        for container in live:
            sums = held.get(container.app)
            if sums is None:
                held[container.app] = [container.memory_mib, container.vcores, 1]
            else:
                sums[0] += container.memory_mib
                sums[1] += container.vcores
                sums[2] += 1
        self.live, self.held = live, held

    def _remember(self) -> None:
        self.now_ms = self.kernel.now_ms
        self.read = len(self.records)
        for name, queue in self.scheduler.queues.items():
            self.limits[name] = (queue.used_mib, queue.used_vcores, queue.am_used_mib, queue.maximum_mib)
            if queue.user_mib is not None:
                for user, mib in queue.users.items():
                    self.users[name, user] = mib
        for master in self.masters:
            if master.app.finished_at_ms is None or master in self.running:
                self.running[master] = tuple(master.running.values())
                counters = (master.lost_ms, master.overhead_ms, master.suspensions, master.maps_left)
                self.spent[master] = counters
                for task, manifest in master.store.items():
                    self.saved[master, task] = manifest

    def check_all(self) -> None:
        """Check every invariant; call it after every event."""
        check_all(self)

    def check_end(self) -> None:
        """Check what holds once every job is done."""
        check_end(self)


def _faults(run: Watched) -> tuple[Fault, ...]:
    faults: tuple[Fault, ...] = getattr(getattr(run, "setup", run), "faults", ())
    return faults


def check_all(watch: Watch) -> None:
    """Check every invariant of :data:`INVARIANTS`, and remember for the next time."""
    watch._look()
    for invariant in INVARIANTS.values():
        invariant(watch)
    watch._remember()
    watch.checks += 1


def check_end(watch: Watch) -> None:
    """Check :data:`AT_END`: what holds once every job is done."""
    watch._look()
    for invariant in AT_END.values():
        invariant(watch)


# --- kernel -----------------------------------------------------------------------------------


def clock_never_goes_back(watch: Watch) -> Stories:
    """Virtual time stands still or goes on."""
    if watch.kernel.now_ms < watch.now_ms:
        yield f"{watch.now_ms} ms, then {watch.kernel.now_ms} ms"


def next_event_is_the_earliest(watch: Watch) -> Stories:
    """The kernel's next instant is the earliest that waits."""
    earliest, told = min(watch.kernel.waiting_ms(), default=None), watch.kernel.next_at_ms()
    if told != earliest:
        yield f"next is {told} ms, waiting is {earliest} ms"


def no_event_at_never(watch: Watch) -> Stories:
    """Nothing is put in for an instant that does not come."""
    latest = max(watch.kernel.waiting_ms(), default=0)
    if latest >= NEVER // 2:
        yield f"an event waits for {latest} ms"


# --- nodes ------------------------------------------------------------------------------------


def room_never_negative(watch: Watch) -> Stories:
    """No node gives more than it has."""
    for node in watch.nodes:
        if node.free_mib < 0 or node.free_vcores < 0:
            yield f"node {node.index}: {node.free_mib} MiB, {node.free_vcores} vcores free"


def room_adds_up(watch: Watch) -> Stories:
    """On every node, free and held room together are all of it."""
    for node in watch.nodes:
        free_mib, free_vcores = node.free_mib, node.free_vcores
        for container in node.containers.values():
            free_mib += container.memory_mib
            free_vcores += container.vcores
        if free_mib != node.total_mib or free_vcores != node.total_vcores:
            yield (
                f"node {node.index}: free and held are {free_mib} MiB and {free_vcores} vcores"
                f" of {node.total_mib} and {node.total_vcores}"
            )


def cluster_is_its_nodes(watch: Watch) -> Stories:
    """The ResourceManager's total is the sum of the nodes that are not lost."""
    nodes = [node for node in watch.nodes if not node.lost]
    total = (sum(node.total_mib for node in nodes), sum(node.total_vcores for node in nodes))
    if total != watch.rm.total:
        yield f"total is {watch.rm.total}, the nodes have {total}"


def open_nodes_have_room(watch: Watch) -> Stories:
    """``open_nodes`` lists, in order of phase, exactly the nodes that have room and are not lost."""
    places = sorted(
        (node.phase_ms, node.index)
        for node in watch.nodes
        if node.free_mib > 0 and node.free_vcores > 0 and not node.lost
    )
    if places != watch.rm.open_nodes:
        yield f"listed {watch.rm.open_nodes}, with room {places}"
    for node in watch.nodes:
        if node.open is not ((node.phase_ms, node.index) in places):
            yield f"node {node.index} says open is {node.open}"


def lost_nodes_are_empty(watch: Watch) -> Stories:
    """A lost node holds and keeps nothing, and has nothing left to say."""
    for node in watch.nodes:
        if node.lost and (node.containers or node.exited or node.reserved is not None):
            yield f"node {node.index} holds {list(node.containers)}"


def dead_nodes_do_no_work(watch: Watch) -> Stories:
    """On a node that has died nothing comes to an end, and no master is alive."""
    for node in watch.nodes:
        if node.silent_until_ms != NEVER:
            continue
        for container in node.containers.values():
            if container.state != RUNNING:
                continue
            if container.kind == AM and container.app.master.alive:
                yield f"master of job {container.app.number} lives"
            if container.finish_at_ms != NEVER:
                yield f"{_name(container)} is to finish at {container.finish_at_ms} ms"


def one_container_one_place(watch: Watch) -> Stories:
    """A container is on one node, its own, under its own number, and was numbered by the RM."""
    numbers: set[int] = set()
    for node in watch.nodes:
        for number, container in node.containers.items():
            if container.number != number or container.node is not node or container.state == RELEASED:
                yield f"{_name(container)} on node {node.index}"
            if number in numbers or number > watch.rm.containers_granted:
                yield f"number {number} is not its own"
            numbers.add(number)


def grants_come_on_heartbeats(watch: Watch) -> Stories:
    """A node is given containers only at ``phase + k x interval``."""
    interval_ms, now_ms = watch.cluster.timing.nm_heartbeat_ms, watch.kernel.now_ms
    for container in watch.live:
        if container.granted_at_ms == now_ms and (now_ms - container.node.phase_ms) % interval_ms:
            yield f"{_name(container)} granted off its node's beat at {now_ms} ms"


def one_off_switch_per_heartbeat(watch: Watch) -> Stories:
    """One heartbeat of one node grants at most one container that named no rack (natjam 2.5)."""
    now_ms = watch.kernel.now_ms
    given: set[int] = set()
    for container in watch.live:
        if container.granted_at_ms == now_ms and container.priority in (0, REDUCE_PRIORITY):
            if container.node.index in given:
                yield f"node {container.node.index} was given two at {now_ms} ms"
            given.add(container.node.index)


def ended_is_told(watch: Watch) -> Stories:
    """A process that is gone is told once, by its node's next heartbeat at the latest."""
    interval_ms, now_ms = watch.cluster.timing.nm_heartbeat_ms, watch.kernel.now_ms
    for node in watch.nodes:
        told = Counter(container.number for container in node.exited if container.state != RELEASED)
        for container in node.containers.values():
            if (container.state == ENDED) is not (told[container.number] == 1):
                yield f"{_name(container)}, state {container.state}, told {told[container.number]} times"
        if node.silent_until_ms == NEVER:
            continue
        for container in node.exited:
            if now_ms > node.next_beat_ms(container.exit_at_ms + 1, interval_ms):
                yield f"{_name(container)} ended at {container.exit_at_ms} ms, untold at {now_ms} ms"


# --- queues, users, applications --------------------------------------------------------------


def queue_is_its_containers(watch: Watch) -> Stories:
    """What a queue uses is what its containers hold."""
    sums = {name: [0, 0] for name in watch.scheduler.queues}
    for app, (mib, vcores, _) in watch.held.items():
        sums[app.queue.name][0] += mib
        sums[app.queue.name][1] += vcores
    for name, queue in watch.scheduler.queues.items():
        if sums[name] != [queue.used_mib, queue.used_vcores]:
            yield f"{name} uses {queue.used_mib}, {queue.used_vcores}; holds {sums[name]}"


def application_is_its_containers(watch: Watch) -> Stories:
    """What an application uses is what its containers hold."""
    for master in watch.masters:
        app = master.app
        sums = watch.held.get(app, [0, 0, 0])
        if sums != [app.used_mib, app.used_vcores, app.containers]:
            yield f"{app.number} uses {app.used_mib}, {app.used_vcores}, {app.containers}; holds {sums}"


def user_is_its_applications(watch: Watch) -> Stories:
    """Where users are limited, what a user holds in a queue is what its applications use there."""
    for name, queue in watch.scheduler.queues.items():
        if queue.user_mib is None:
            continue
        sums: Counter[str] = Counter()
        for app, (mib, _, _) in watch.held.items():
            if app.queue is queue:
                sums[app.user] += mib
        if sums != {user: mib for user, mib in queue.users.items() if mib}:
            yield f"{name}: {queue.users}, holds {dict(sums)}"


def within_maximum(watch: Watch) -> Stories:
    """No queue grows beyond its maximum (it may be beyond when the cluster has shrunk)."""
    for name, queue in watch.scheduler.queues.items():
        used_mib, used_vcores, _, _ = watch.limits[name]
        beyond_mib = used_mib < queue.used_mib > queue.maximum_mib
        if beyond_mib or used_vcores < queue.used_vcores > queue.maximum_vcores:
            yield (
                f"{name} grew to {queue.used_mib} MiB, {queue.used_vcores} vcores;"
                f" its maximum is {queue.maximum_mib}, {queue.maximum_vcores}"
            )


def within_user_limit(watch: Watch) -> Stories:
    """No user grows who is beyond the limit already (the container that crosses it is given)."""
    for name, queue in watch.scheduler.queues.items():
        if queue.user_mib is None:
            continue
        for user, mib in queue.users.items():
            before_mib = watch.users.get((name, user), 0)
            largest_mib = max((each.memory_mib for each in watch.live if each.app.user == user), default=0)
            if mib > before_mib and mib - largest_mib > queue.user_mib:
                yield f"{name}: {user} grew from {before_mib} to {mib}, limit {queue.user_mib}"


def masters_keep_their_share(watch: Watch) -> Stories:
    """The masters of active applications are counted, and do not grow beyond the queue's AM limit."""
    for name, queue in watch.scheduler.queues.items():
        active = [app for app in watch.rm.applications.values() if app.activated and app.queue is queue]
        used_mib = sum(app.am_mib for app in active)
        if used_mib != queue.am_used_mib:
            yield f"{name} counts {queue.am_used_mib}, has {used_mib}"
        if used_mib > queue.am_mib and used_mib > watch.limits[name][2] and len(active) > 1:
            yield f"{name} grew to {used_mib}, limit {queue.am_mib}"


def nobody_waits_needlessly(watch: Watch) -> Stories:
    """Applications wait for activation in order, and only while the AM limit has no room for the first."""
    for name, queue in watch.scheduler.queues.items():
        if not queue.waiting:
            continue
        first = queue.waiting[0]
        if queue.am_used_mib == 0 or queue.am_used_mib + first.am_mib <= queue.am_mib:
            yield f"{name}: application {first.number} could be active"
        if queue.waiting != sorted(queue.waiting, key=lambda app: app.order):
            yield f"{name}: they wait out of order"


def demand_is_listed(watch: Watch) -> Stories:
    """A queue lists, in serving order, exactly the active applications that ask for something."""
    apps = watch.rm.applications.values()
    for name, queue in watch.scheduler.queues.items():
        demand = sorted(
            (app for app in apps if app.queue is queue and app.activated and app.asks), key=_order
        )
        if demand != queue.demand:
            listed, asking = [app.number for app in queue.demand], [app.number for app in demand]
            yield f"{name} lists {listed}, asking are {asking}"
    demanding = [queue for queue in watch.scheduler.queues.values() if queue.demand]
    if demanding != watch.scheduler.demanding:
        yield f"demanding are {[queue.name for queue in demanding]}"


def asks_are_in_order(watch: Watch) -> Stories:
    """An application's asks are positive, one per request priority, the lowest first."""
    for app in watch.rm.applications.values():
        priorities = [ask.priority for ask in app.asks]
        if priorities != sorted(set(priorities)) or any(ask.count <= 0 for ask in app.asks):
            asks = [(ask.priority, ask.count) for ask in app.asks]
            yield f"application {app.number} asks {asks}"


def pending_is_the_sum_of_asks(watch: Watch) -> Stories:
    """``pending`` counts what is asked for."""
    for app in watch.rm.applications.values():
        asked = sum(ask.count for ask in app.asks)
        if app.pending != asked:
            yield f"application {app.number}: pending {app.pending}, asks {asked}"


def reservations_are_counted(watch: Watch) -> Stories:
    """An application's count of reserved nodes, per request priority, is the nodes kept for it."""
    kept: Counter[tuple[int, int]] = Counter()
    for node in watch.nodes:
        if isinstance(node.reserved, Reservation):
            kept[node.reserved.app.number, node.reserved.ask.priority] += 1
    counted = Counter(
        {
            (master.app.number, priority): count
            for master in watch.masters
            for priority, count in master.app.reserved.items()
            if count
        }
    )
    if kept != counted:
        yield f"kept {dict(kept)}, counted {dict(counted)}"


def room_is_not_left_lying(watch: Watch) -> Stories:
    """While no sweep is under way, no ask could be served from the room of a node that is heard."""
    if watch.cluster._sweeping:
        return
    now_ms = watch.kernel.now_ms
    for queue in watch.scheduler.demanding:
        for app in queue.demand:
            ask = app.asks[0]
            if ask.hosts or _over_limits(queue, app, ask.memory_mib, ask.vcores):
                continue
            for _, index in watch.rm.open_nodes:
                node = watch.nodes[index]
                if (
                    ask.memory_mib > node.free_mib
                    or ask.vcores > node.free_vcores
                    or now_ms <= node.silent_until_ms
                ):
                    continue
                kept = node.reserved
                if kept is None or (isinstance(kept, Reservation) and kept.ask is ask):
                    yield (
                        f"application {app.number} asks for {ask.memory_mib} MiB, {ask.vcores} vcores;"
                        f" node {index} has {node.free_mib}, {node.free_vcores}, and nobody goes there"
                    )


def _over_limits(queue: LeafQueue, app: Application, memory_mib: int, vcores: int) -> bool:
    if queue.used_mib + memory_mib > queue.maximum_mib or queue.used_vcores + vcores > queue.maximum_vcores:
        return True
    return queue.user_mib is not None and queue.users.get(app.user, 0) > queue.user_mib


def granted_is_in_the_mail(watch: Watch) -> Stories:
    """A container that nobody has launched yet waits in its application's mailbox, once."""
    mailed: Counter[int] = Counter()
    for app in watch.rm.applications.values():
        for container in app.mail_granted:
            mailed[container.number] += 1
    for container in watch.live:
        if container.state == GRANTED and mailed[container.number] != 1:
            yield f"{_name(container)} is in {mailed[container.number]} mailboxes"


def finished_jobs_own_nothing(watch: Watch) -> Stories:
    """A finished job asks for nothing and runs nothing; what it holds has ended."""
    for master in watch.masters:
        app = master.app
        if app.finished_at_ms is None:
            continue
        if app.asks or app.mail_granted or master.running or master.alive:
            yield f"job {app.number} is not at rest"
    for container in watch.live:
        if container.app.finished_at_ms is not None and container.state != ENDED:
            yield f"{_name(container)} has not ended"


# --- masters and tasks ------------------------------------------------------------------------


def one_master_per_job(watch: Watch) -> Stories:
    """A job has at most one running AM container, and a live master runs in it."""
    running = Counter(each.app.number for each in watch.live if each.kind == AM and each.state == RUNNING)
    for master in watch.masters:
        app, own = master.app, master.app.am_container
        if running[app.number] > 1:
            yield f"job {app.number} has {running[app.number]} masters"
        if master.alive and (own is None or own.state != RUNNING or own.attempt != app.attempt):
            yield f"job {app.number}'s master lives in no container"


def task_in_one_place(watch: Watch) -> Stories:
    """Each task is done, running, deferred or unassigned: one of them, once."""
    for master in watch.masters:
        if not master.alive:
            continue
        maps = [task for task, node in enumerate(master.map_node) if node >= 0]
        maps += [*master.unassigned[MAP_PRIORITY], *master.unassigned[FAILED_MAP]]
        reduces = [task for task, attempt in enumerate(master.keys.committed) if attempt != -1]
        reduces += master.deferred
        for priority in {REDUCE_PRIORITY, master.timing.resume_priority}:
            reduces += master.unassigned[priority]
        for container in master.running.values():
            (maps if container.kind == MAP else reduces).append(container.task)
        if sorted(maps) != list(range(len(master.job.map_ms))):
            yield f"job {master.app.number}: maps {sorted(maps)}"
        if master.reduces_asked and sorted(reduces) != list(range(len(master.job.reduce_ms))):
            yield f"job {master.app.number}: reduces {sorted(reduces)}"


def tasks_left_are_counted(watch: Watch) -> Stories:
    """``maps_left`` and ``reduces_left`` count the tasks whose result does not exist."""
    for master in watch.masters:
        left = (master.map_node.count(-1), master.keys.committed.count(-1))
        if left != (master.maps_left, master.reduces_left):
            yield f"job {master.app.number}: {master.maps_left}, {master.reduces_left} left, not done {left}"


def every_task_is_asked_for(watch: Watch) -> Stories:
    """For every unassigned task a container is asked for, about to be, or in the mail."""
    for master in watch.masters:
        if not master.alive:
            continue
        for priority, tasks in master.unassigned.items():
            if not tasks:
                continue
            coming = sum(ask.count for ask in master.app.asks if ask.priority == priority)
            coming += sum(count for ask, count in master.unsent if ask.priority == priority)
            coming += sum(1 for container in master.app.mail_granted if container.priority == priority)
            if coming < len(tasks):
                yield f"job {master.app.number}: {len(tasks)} wait at {priority}, {coming} containers come"


def no_end_is_missed(watch: Watch) -> Stories:
    """A running attempt's end lies ahead, unless it waits for maps, saves, holds, or its node is dead."""
    now_ms = watch.kernel.now_ms
    for master in watch.masters:
        for container in master.running.values():
            if container.state != RUNNING:
                continue
            if container.finish_at_ms < now_ms:
                yield f"{_name(container)} should have ended at {container.finish_at_ms} ms"
            if container.finish_at_ms == NEVER and not _may_wait(container, master):
                yield f"{_name(container)} has no end"


def _may_wait(container: Container, master: AppMaster) -> bool:
    if container.node.silent_until_ms == NEVER or container.stage in (DRAINING, HOLDING):
        return True
    return master.maps_left > 0 and container in master.shuffling


def no_work_after_the_end(watch: Watch) -> Stories:
    """A container that has ended has no end ahead of it, and its master does not run it."""
    now_ms = watch.kernel.now_ms
    for container in watch.live:
        if container.state != ENDED or container.kind == AM:
            continue
        if now_ms < container.finish_at_ms < NEVER:
            yield f"{_name(container)} is to finish though it has ended"
        if container.number in container.app.master.running:
            yield f"{_name(container)} has ended and is run"


# --- keys, checkpoints, suspending ------------------------------------------------------------


def keys_without_gap(watch: Watch) -> Stories:
    """The saved pieces of a reduce follow each other from key 0, inside its keys."""
    for master in watch.masters:
        for task, pieces in master.keys._pieces.items():
            at = 0
            for piece in pieces:
                if piece.from_key != at or not at <= piece.to_key <= master.job.reduce_keys[task]:
                    yield f"job {master.app.number}, reduce {task}: {pieces}"
                at = piece.to_key


def manifest_is_the_last_piece(watch: Watch) -> Stories:
    """The store's manifest of a reduce names as many generations and keys as have been saved."""
    for master in watch.masters:
        if len(master.store) != len(master.keys._pieces):
            yield f"job {master.app.number}: {len(master.store)} manifests"
        for task, manifest in master.store.items():
            pieces = master.keys._pieces.get(task, [])
            if manifest.generation != len(pieces) or manifest.keys_done != master.keys.saved(task):
                yield f"job {master.app.number}, reduce {task}: {manifest}, {pieces}"


def saved_only_grows(watch: Watch) -> Stories:
    """What is saved of a reduce is never less than it was."""
    for (master, task), (generation, keys_done) in watch.saved.items():
        manifest = master.store.get(task)
        if manifest is None or manifest.generation < generation or manifest.keys_done < keys_done:
            yield f"job {master.app.number}, reduce {task}: {manifest} after {generation}, {keys_done}"


def attempts_go_on_where_saved(watch: Watch) -> Stories:
    """A running reduce begins its own piece at the key where the saved ones end."""
    for master in watch.masters:
        for container in master.running.values():
            if container.kind != REDUCE:
                continue
            saved = master.keys.saved(container.task)
            begins = container.to_key if container.stage == HOLDING else container.from_key
            if container.log_from_key != saved or begins < saved:
                yield (
                    f"{_name(container)} from key {container.from_key}, own from {container.log_from_key},"
                    f" saved {saved}"
                )


def committed_by_its_last_attempt(watch: Watch) -> Stories:
    """A reduce was committed by an attempt that existed, and no attempt of it runs any more."""
    for master in watch.masters:
        for task, attempt in enumerate(master.keys.committed):
            if attempt >= master.reduce_attempts[task]:
                yield f"job {master.app.number}, reduce {task}: attempt {attempt}"
        for container in master.running.values():
            if container.kind == REDUCE and master.keys.committed[container.task] != -1:
                yield f"{_name(container)} runs though committed"


def asked_has_an_order(watch: Watch) -> Stories:
    """An attempt that suspends does so for an order, is a reduce, and its node is watched."""
    for container in watch.live:
        if container.stage == NOT_ASKED:
            continue
        if not container.order or container.kind != REDUCE or not container.node.watched:
            yield f"{_name(container)}, stage {container.stage}"


def draining_stops_at_a_border(watch: Watch) -> Stories:
    """A draining attempt has no end of its own; it stops at a key that others follow."""
    for container in watch.live:
        if container.stage != DRAINING or container.state != RUNNING:
            continue
        keys = container.app.master.job.reduce_keys[container.task]
        if container.finish_at_ms != NEVER or not container.from_key <= container.to_key < keys:
            yield f"{_name(container)} from {container.from_key} to {container.to_key}"


def holding_has_a_manifest(watch: Watch) -> Stories:
    """An attempt that holds, and one that was suspended, has a manifest of all it did."""
    for container in watch.live:
        if container.stage != HOLDING:
            continue
        manifest = container.app.master.store.get(container.task)
        if (
            manifest is None
            or manifest.keys_done < container.to_key
            or container.log_from_key != container.to_key
        ):
            yield f"{_name(container)} to {container.to_key}, {manifest}"


def suspended_has_saved(watch: Watch) -> Stories:
    """An attempt ends as suspended only after it has saved."""
    for container in watch.live:
        if container.ending == "suspended" and (
            container.stage != HOLDING or container.to_key < container.from_key
        ):
            yield f"{_name(container)}, stage {container.stage}"


def lost_only_by_an_end(watch: Watch) -> Stories:
    """Work is lost only when an attempt is killed, fails or is lost, or a done map must run again."""
    for master, (lost_ms, _, _, maps_left) in watch.spent.items():
        if master.lost_ms <= lost_ms or master.maps_left > maps_left:
            continue
        gone = [each for each in watch.running[master] if each.number not in master.running]
        if not any(container.ending in LOSING for container in gone):
            ended = [_name(container) for container in gone]
            yield f"job {master.app.number} lost {master.lost_ms - lost_ms} ms; ended: {ended}"


def counters_only_grow(watch: Watch) -> Stories:
    """Lost work, overhead and suspensions are sums: none ever falls."""
    for master, (lost_ms, overhead_ms, suspensions, _) in watch.spent.items():
        if master.lost_ms < lost_ms or master.overhead_ms < overhead_ms or master.suspensions < suspensions:
            yield (
                f"job {master.app.number}: lost {master.lost_ms}, overhead {master.overhead_ms},"
                f" suspensions {master.suspensions}"
            )


# --- controller, ledger, journal --------------------------------------------------------------


def ledger_is_sound(watch: Watch) -> Stories:
    """The ledger's own invariants hold, and no settled order ever changes."""
    controller = watch.controller
    if controller is None or watch.stepped == (controller.now_ms, len(watch.records)):
        return
    watch.stepped = (controller.now_ms, len(watch.records))
    for name, holds in LEDGER.items():
        story = holds(controller.ledger, controller.settings, controller.now_ms)
        if story:
            yield f"{name}: {story}"
    settled = controller.ledger.settled
    for order_id, order in watch.settled.items():
        if order_id in controller.ledger.open or settled.get(order_id, order) != order:
            yield f"{order_id} was {order.state} and has changed"
    watch.settled = dict(settled)


def records_are_in_order(watch: Watch) -> Stories:
    """Records are written in the order of time; decisions are numbered without a gap."""
    for record in watch.records[watch.read :]:
        if isinstance(record, Transition):
            continue  # dated by its fact, which may be older
        at_ms = getattr(record, "at_ms", watch.written_at_ms)
        if not watch.written_at_ms <= at_ms <= watch.kernel.now_ms:
            yield f"a record of {at_ms} ms follows one of {watch.written_at_ms} ms"
        watch.written_at_ms = at_ms
        if isinstance(record, Decision):
            if record.number != watch.decisions + 1:
                yield f"decision {record.number} follows decision {watch.decisions}"
            watch.decisions = record.number


def journal_before_action(watch: Watch) -> Stories:
    """Whatever is done to a container was decided in a record that was written before."""
    records = watch.records
    for place in range(watch.read, len(records)):
        record = records[place]
        if isinstance(record, Decision):
            watch.decided.update(record.orders)
        elif isinstance(record, Performed):
            order = getattr(record.action, "order", "")
            watch.may_lose |= isinstance(record.action, Kill)
            if order and order not in watch.decided:
                yield f"{record.action} was performed, nothing decided it"
    if watch.controller is None:
        return
    for container in watch.live:
        if container.order and container.order not in watch.decided:
            yield f"{_name(container)} obeys {container.order}, not on record"


def controller_stays_awake(watch: Watch) -> Stories:
    """While orders are open the controller steps at every tick at the least."""
    controller = watch.controller
    if controller is None or not controller.ledger.open:
        return
    if watch.kernel.now_ms - controller.now_ms > controller.settings.tick_ms:
        yield f"{len(controller.ledger.open)} orders are open, the last step was at {controller.now_ms} ms"


def containers_obey_the_ledger(watch: Watch) -> Stories:
    """A container never works on another order than the one the ledger has open for it."""
    if watch.controller is None or not watch.controller.ledger.open:
        return
    by_container = watch.controller.ledger.by_container
    for container in watch.live:
        if container.order and container.state == RUNNING:
            order = by_container.get(container_id(container), container.order)
            if order != container.order:
                yield f"{_name(container)} obeys {container.order}, ordered was {order}"


# --- at the end -------------------------------------------------------------------------------


def all_jobs_are_done(watch: Watch) -> Stories:
    """Every job has finished."""
    if watch.cluster.unfinished or len(watch.masters) != len(watch.cluster.jobs):
        yield f"{watch.cluster.unfinished} jobs are unfinished"
    for master in watch.masters:
        if master.app.finished_at_ms is None:
            yield f"job {master.app.number} has not finished"


def all_keys_are_committed(watch: Watch) -> Stories:
    """Every key of every reduce was committed once and in order; a job without reduces did all maps."""
    for master in watch.masters:
        for task, keys in enumerate(master.job.reduce_keys):
            at = 0
            for piece in master.keys.pieces(task):
                if piece.from_key != at:
                    yield f"job {master.app.number}, reduce {task}, key {at}"
                at = piece.to_key
            if master.keys.committed[task] == -1 or at != keys:
                yield f"job {master.app.number}, reduce {task}: {at} of {keys}"
        if not master.job.reduce_ms and master.maps_left:
            yield f"job {master.app.number}: {master.maps_left} maps left"


def only_last_exits_are_held(watch: Watch) -> Stories:
    """What is still held has ended and is about to be told."""
    for container in watch.live:
        if container.state != ENDED and container.node.silent_until_ms != NEVER:
            yield f"{_name(container)}, state {container.state}"


def nothing_is_owed(watch: Watch) -> Stories:
    """No queue has demand or waiting applications, and no live application keeps a node."""
    for name, queue in watch.scheduler.queues.items():
        if queue.demand or queue.waiting or queue.am_used_mib:
            yield f"{name} still has demand"
    for node in watch.nodes:
        kept = node.reserved
        if isinstance(kept, Reservation) and kept.app.finished_at_ms is None:
            yield f"node {node.index} is kept for job {kept.app.number}"


def suspending_loses_nothing(watch: Watch) -> Stories:
    """Where nothing fails and nobody kills, no work is lost, however often it was suspended."""
    if watch.may_lose:
        return
    for master in watch.masters:
        if master.lost_ms:
            yield f"job {master.app.number} lost {master.lost_ms} ms"


def _name(container: Container) -> str:
    return f"container {container.number} (job {container.app.number}, task {container.task})"


def _order(app: Application) -> tuple[int, int]:
    return app.order


Invariant = Callable[[Watch], None]


def _raising(law: Callable[[Watch], Stories]) -> tuple[str, Invariant]:
    name = law.__name__.replace("_", "-")

    def invariant(watch: Watch) -> None:
        for story in law(watch):
            raise InvariantBroken(name, f"at {watch.kernel.now_ms} ms: {story}")

    invariant.__doc__ = law.__doc__
    return name, invariant


def _named(*laws: Callable[[Watch], Stories]) -> dict[str, Invariant]:
    return dict(_raising(law) for law in laws)


INVARIANTS = _named(
    clock_never_goes_back,
    next_event_is_the_earliest,
    no_event_at_never,
    room_never_negative,
    room_adds_up,
    cluster_is_its_nodes,
    open_nodes_have_room,
    lost_nodes_are_empty,
    dead_nodes_do_no_work,
    one_container_one_place,
    grants_come_on_heartbeats,
    one_off_switch_per_heartbeat,
    ended_is_told,
    queue_is_its_containers,
    application_is_its_containers,
    user_is_its_applications,
    within_maximum,
    within_user_limit,
    masters_keep_their_share,
    nobody_waits_needlessly,
    demand_is_listed,
    asks_are_in_order,
    pending_is_the_sum_of_asks,
    reservations_are_counted,
    room_is_not_left_lying,
    granted_is_in_the_mail,
    finished_jobs_own_nothing,
    one_master_per_job,
    task_in_one_place,
    tasks_left_are_counted,
    every_task_is_asked_for,
    no_end_is_missed,
    no_work_after_the_end,
    keys_without_gap,
    manifest_is_the_last_piece,
    saved_only_grows,
    attempts_go_on_where_saved,
    committed_by_its_last_attempt,
    asked_has_an_order,
    draining_stops_at_a_border,
    holding_has_a_manifest,
    suspended_has_saved,
    lost_only_by_an_end,
    counters_only_grow,
    ledger_is_sound,
    records_are_in_order,
    journal_before_action,
    controller_stays_awake,
    containers_obey_the_ledger,
)
"""What holds after every event."""

AT_END = _named(
    all_jobs_are_done,
    all_keys_are_committed,
    only_last_exits_are_held,
    nothing_is_owed,
    suspending_loses_nothing,
)
"""What holds once every job is done."""
