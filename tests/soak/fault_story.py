"""What a cluster believes of its unfinished jobs, in a few lines: the story of a campaign that never ended.

Law: only looked at, nothing is changed; what ResourceManager, nodes and masters believe stands side by side,
since a job that waits for ever is mostly two of them that believe different things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from emulator.cluster.entities import Container
from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import AppRecord
from emulator.live.master.live_master import LiveMaster
from emulator.live.node.node_manager import LiveNode

KINDS = ("am", "map", "reduce", "executor")
STATES = ("granted", "running", "ended", "released")


def story(
    manager: LiveResourceManager, nodes: Mapping[str, LiveNode], masters: Mapping[str, LiveMaster]
) -> str:
    """Tell what everybody believes of the unfinished jobs; call on the cluster's own thread.

    ``nodes`` by address, ``masters`` (those that run) by container.
    """
    lines = [_of_node(manager, node) for node in nodes.values()]
    for app in manager.applications.values():
        lines.append(_of_application(app))
        mine = (live for live in masters.values() if live.launch.application == app.id)
        lines += [_of_master(live) for live in mine] or ["  no master runs"]
    return "\n".join(lines)


def _of_node(manager: LiveResourceManager, node: LiveNode) -> str:
    known = manager.nodes.get(node.name)
    counts = "lost" if known is None else f"counts, {known.actor.free_mib} MiB free"
    beats = "beats" if node.registration is not None else "is silent"
    return f"{node.name} {beats}, {counts}, holds {list(map(_short, node.running))}"


def _of_application(app: AppRecord) -> str:
    attempt = app.attempt
    of_attempt = "no attempt" if attempt is None else f"attempt {attempt.number} {attempt.state}"
    asks = {ask.priority: ask.count for ask in app.actor.asks}
    held = [
        f"{_short(one.id)} {one.node.id} {STATES[one.actor.state]}{'' if one.acquired else ' not fetched'}"
        for one in app.containers.values()
    ]
    return f"{app.id} {app.state}, {of_attempt}; asks (priority: count) {asks}; holds {held}"


def _of_master(live: LiveMaster) -> str:
    actor = live.actor
    waits = {priority: list(tasks) for priority, tasks in actor.pending.unassigned.items() if tasks}
    runs = [_of_container(one) for one in actor.running.values()]
    told = Counter(one.state for one in live.attempts.all.values())
    mirrors = list(map(_short, live.containers.mirrors))
    return (
        f"  master {live.launch.attempt} {live.state}{'' if actor.alive else ', its actor has stopped'}:"
        f" {actor.maps_left} maps and {actor.reduces_left} reduces left; what it waits for"
        f" (priority: tasks) {waits}, later {actor.pending.deferred}; unsent {len(actor.unsent)};"
        f" runs {runs}; knows {mirrors}; attempts {dict(told)}"
    )


def _of_container(one: Container) -> str:
    return f"{KINDS[one.kind]} {one.task} in {one.number} on {one.node.name} {STATES[one.state]}"


def _short(container: str) -> str:
    """Return a container's name without what all of them share: application, attempt, number."""
    return container.split("_", 2)[-1]
