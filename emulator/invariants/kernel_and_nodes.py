"""The clock, pending events, and nodes: their room, their containers, what they are sent and report."""

from __future__ import annotations

from collections import Counter

from emulator.cluster.entities import AM, ENDED, NEVER, RELEASED, RUNNING
from emulator.cluster.pending_tasks import REDUCE_PRIORITY
from emulator.invariants.watched_run import RunWatch, Stories, name_of


def clock_never_goes_back(watch: RunWatch) -> Stories:
    """Virtual time never goes back."""
    if watch.kernel.now_ms < watch.now_ms:
        yield f"{watch.now_ms} ms, then {watch.kernel.now_ms} ms"


def next_event_is_the_earliest(watch: RunWatch) -> Stories:
    """The kernel's next instant is the earliest that waits."""
    earliest, told = min(watch.kernel.waiting_ms(), default=None), watch.kernel.next_at_ms()
    if told != earliest:
        yield f"next is {told} ms, waiting is {earliest} ms"


def no_event_at_never(watch: RunWatch) -> Stories:
    """Nothing is put in for an instant that does not come."""
    latest = max(watch.kernel.waiting_ms(), default=0)
    if latest >= NEVER // 2:
        yield f"an event waits for {latest} ms"


def room_never_negative(watch: RunWatch) -> Stories:
    """No node gives more than it has."""
    for node in watch.nodes:
        if node.free_mib < 0 or node.free_vcores < 0:
            yield f"node {node.index}: {node.free_mib} MiB, {node.free_vcores} vcores free"


def room_adds_up(watch: RunWatch) -> Stories:
    """On every node, free and held room together are all of it."""
    for node in watch.nodes:
        free_mib, free_vcores = node.free_mib, node.free_vcores
        for container in watch.on[node]:
            free_mib += container.memory_mib
            free_vcores += container.vcores
        if free_mib != node.total_mib or free_vcores != node.total_vcores:
            yield (
                f"node {node.index}: free and held are {free_mib} MiB and {free_vcores} vcores"
                f" of {node.total_mib} and {node.total_vcores}"
            )


def cluster_is_its_nodes(watch: RunWatch) -> Stories:
    """The ResourceManager's total is the sum of the nodes without a label that are not lost."""
    nodes = [node for node in watch.nodes if not node.lost and not node.label]
    total = (sum(node.total_mib for node in nodes), sum(node.total_vcores for node in nodes))
    if total != watch.rm.total:
        yield f"total is {watch.rm.total}, the nodes have {total}"


def open_nodes_have_room(watch: RunWatch) -> Stories:
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


def lost_nodes_are_empty(watch: RunWatch) -> Stories:
    """A lost node holds and keeps nothing, and has nothing left to say."""
    for node in watch.nodes:
        held = watch.on[node]
        if node.lost and (held or node.exited or node.reserved is not None):
            yield f"node {node.index} holds {[container.number for container in held]}"


def lost_processes_do_no_work(watch: RunWatch) -> Stories:
    """On a node that has failed nothing comes to an end, and no master is alive."""
    for node in watch.nodes:
        if node.silent_until_ms != NEVER:
            continue
        for container in watch.on[node]:
            if container.state != RUNNING:
                continue
            if container.kind == AM and container.app.master.alive:
                yield f"master of job {container.app.number} lives"
            if container.finish_at_ms != NEVER:
                yield f"{name_of(container)} is to finish at {container.finish_at_ms} ms"


def one_container_one_place(watch: RunWatch) -> Stories:
    """A container is on one node, its own, under its own number, and was numbered by the RM."""
    for number, container in watch.scheduler.live.items():
        node = container.node
        if container.number != number or watch.nodes[node.index] is not node or container.state == RELEASED:
            yield f"{name_of(container)} on node {node.index}"
        if number > watch.rm.containers_granted:
            yield f"number {number} is not its own"


def grants_come_on_heartbeats(watch: RunWatch) -> Stories:
    """A node is given containers only at ``phase + k x interval``, or when one of its containers ends."""
    timing, now_ms = watch.cluster.timing, watch.kernel.now_ms
    interval_ms = timing.nm_heartbeat_ms
    if watch.cluster.beats_at_exit:
        return
    for container in watch.live:
        if container.granted_at_ms == now_ms and (now_ms - container.node.phase_ms) % interval_ms:
            yield f"{name_of(container)} granted off its node's beat at {now_ms} ms"


def one_off_switch_per_heartbeat(watch: RunWatch) -> Stories:
    """One heartbeat of one node grants at most one container that named no rack (natjam 2.5)."""
    now_ms = watch.kernel.now_ms
    given: set[int] = set()
    for container in watch.live:
        if container.granted_at_ms == now_ms and container.priority in (0, REDUCE_PRIORITY):
            if container.node.index in given:
                yield f"node {container.node.index} was given two at {now_ms} ms"
            given.add(container.node.index)


def ended_is_reported(watch: RunWatch) -> Stories:
    """A process that is gone is reported once, by its node's next heartbeat at the latest."""
    interval_ms, now_ms = watch.cluster.timing.nm_heartbeat_ms, watch.kernel.now_ms
    for node in watch.nodes:
        told = Counter(container.number for container in node.exited if container.state != RELEASED)
        for container in watch.on[node]:
            if (container.state == ENDED) is not (told[container.number] == 1):
                yield f"{name_of(container)}, state {container.state}, reported {told[container.number]} x"
        if node.silent_until_ms == NEVER:
            continue
        for container in node.exited:
            if now_ms > node.next_beat_ms(container.exit_at_ms + 1, interval_ms):
                yield f"{name_of(container)} ended at {container.exit_at_ms} ms, untold at {now_ms} ms"
