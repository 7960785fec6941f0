"""Orders in vain on a real ResourceManager: which application is granted each container that yarnctl frees.

``python -m yarn_research.campaigns.in_vain --output in-vain.json --seeds 4001-4300`` plays one random state
(``in_vain_states``) for each seed on a real ResourceManager 3.4.2 (``yarn_research.campaigns.scheduler_rig``), and
resumes a file; so many ``--rigs`` play at once. The same for the emulator's: ``python -m tests.soak
in-vain``. ``--hadoop 3.3.5`` plays the states on another version.

Rule, written before the first counted run:

* In a state in which two rounds of heartbeats change nothing, yarnctl's own readers make a snapshot over REST,
  and a new controller decides on it, once with ``eviction kill`` (maps and reduces) and once with the mix.
  Guards that need a history are off (cost, settling), and the loss budget is never used up. A quarter of the
  states has ``--mode guarantees``.
* The chosen containers are given back. Ended maps and reduces request again at once, an executor's container
  is not requested again. Then the first order's node has a heartbeat, and all nodes in turn until two rounds
  change nothing. In such a state no container is granted without the orders.
* The grants are gone through in their order. A grant to a requester with orders that are not served yet
  serves one of them, of its node first. A grant to any other application that is larger than what was free on
  its node before is *of freed resources*.
* An order is *in vain* if the requester was granted fewer containers than its orders were to serve
  (``short``), or if another application was granted freed resources on the order's node before it
  (``overtaken``). Of a requester that is short the overtaken orders are counted first, then those on nodes
  where it was granted nothing. The share is counted over orders, the target is at most 1 %.
* A state is *idle* if an application waits for which yarnctl may free a container (``waiting``) and nothing
  is ordered. It is *missed* if the end of one container that yarnctl may take would have given a container
  to such an application. At most ``TRIED_MAX`` are tried, those first by which the emulator expects it, each
  in a state that is built anew from the seed.
* If both levers order the same containers, and none leaves for good, the outcome of the first counts for
  both. A state that is not the same when it is built anew is thrown out, and counted as ``moved``.
* The interval is Clopper and Pearson's (Biometrika 26(4), 1934), 95 %, over orders.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import click
import msgspec

from tests.hadoop.artifacts import VERSIONS
from yarn_research.campaigns.in_vain_states import EXECUTOR, WaitingTree, number_of
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head
from yarn_research.campaigns.scheduler_rig import VERSION, RigFailed, SchedulerRig
from yarn_research.campaigns.tree_order import interval
from yarnctl.command_line import print_json
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import HeldTime, Observation, Snapshot, TaskView
from yarnctl.deciding.order import Order
from yarnctl.deciding.records import Refusal
from yarnctl.deciding.settings import DEFAULT, LeverSettings, Settings
from yarnctl.units import Resources, fits, minus

KIND = "in-vain"
LEVERS = ("kill", "mix")
TRIED_MAX = 2
HELD_MIB_MS = 1 << 50
MIX = LeverSettings(room_within_ms=12_000, suspend_ms=4_000, leave_ms=1_500, may_lose_ratio=0.5)


class VainOrders(msgspec.Struct):
    """The whole file; ``states``: by seed."""

    head: dict[str, Any]
    states: dict[str, dict[str, Any]] = {}


def settings_of(tree: WaitingTree, lever: str) -> Settings:
    """Return the settings of a daemon for this tree."""
    named = msgspec.structs.replace(
        DEFAULT,
        cost_guard=False,
        settle_ms=0,
        mode="guarantees" if tree.guarantees else "queues",
        preempting_queues=tree.preempting,
        preemptable_queues=tree.preemptable,
    )
    if lever == "kill":
        return msgspec.structs.replace(named, eviction="kill", kill_maps=True)
    return msgspec.structs.replace(named, levers=MIX)


def decide(
    settings: Settings, snapshot: Snapshot, tasks: Mapping[str, tuple[TaskView, ...]], now_ms: int
) -> tuple[list[Order], dict[str, str]]:
    """Let a new controller decide; return its orders, and why it orders nothing for the others."""
    controller = Controller(settings, validate=True)
    held: tuple[HeldTime, ...] = ()
    if settings.levers is not None:
        queues = [view.queue for view in snapshot.queues]
        held = tuple(HeldTime(queue, settings.levers.window_ms, HELD_MIB_MS) for queue in queues)
    step = controller.step(
        Observation(now_ms=now_ms, as_of_ms=now_ms, snapshot=snapshot, tasks=tasks, held=held)
    )
    orders = list(controller.ledger.open.values())
    refused = {
        record.trigger.application: type(record.why).__name__
        for record in step.records
        if isinstance(record, Refusal)
    }
    return orders, refused


def overtaken_orders(
    orders: Sequence[Order], grants: Iterable[Mapping[str, Any]], rooms: Mapping[str, Resources]
) -> tuple[dict[str, str], Counter[str]]:
    """Return order -> the application that was granted freed resources on its node before its requester.

    ``grants``: containers in their order. ``rooms``: what was free on each node before. Also returned: how
    many containers each requester was granted too few.
    """
    short = Counter({order.requester: 0 for order in orders})
    for order in orders:
        short[order.requester] += order.serves
    unserved = {order.order: order for order in orders}
    left = dict(rooms)
    found: dict[str, str] = {}
    for grant in grants:
        name, node = grant["application"], grant["node"]
        size = Resources(grant["memory_mib"], grant["vcores"])
        if short[name] > 0:
            short[name] -= 1
            own = [order for order in unserved.values() if order.requester == name]
            own.sort(key=lambda order: order.node != node)
            if own:
                for member in [order for order in own if order.group == own[0].group]:
                    del unserved[member.order]
        elif node in left and fits(size, left[node]):
            left[node] = minus(left[node], size)
        else:
            for order in unserved.values():
                if order.node == node:
                    found.setdefault(order.order, name)
    return found, +short


def vain_orders(
    orders: Sequence[Order], grants: Sequence[Mapping[str, Any]], rooms: Mapping[str, Resources]
) -> dict[str, str]:
    """Return the orders in vain, and the receiver of the container ("": none is known)."""
    found, short = overtaken_orders(orders, grants, rooms)
    here = {(row["node"], row["application"]) for row in grants}
    for name, count in short.items():
        own = [order for order in orders if order.requester == name]
        own.sort(key=lambda order: (order.order not in found, (order.node, name) in here))
        for order in own:
            if count <= 0:
                break
            count -= max(order.serves, 1)
            receivers = [row["application"] for row in grants if row["node"] == order.node]
            others = [each for each in receivers if each != name]
            found.setdefault(order.order, others[0] if others else "")
    return found


def cause(tree: WaitingTree, order: Order, receiver: str, orders: Sequence[Order]) -> str:
    """Return in words what became of the container of an order in vain."""
    reserving = [row["application"] for row in tree.rig.reserved() if row["node"] == order.node]
    if not receiver and reserving:
        return "reserved by its requester" if order.requester in reserving else "reserved by another"
    if not receiver:
        return "granted to none"
    if receiver in {each.victim for each in orders}:
        return "taken back"
    if receiver in {each.requester for each in orders} - {order.requester}:
        return "another requester, which has an order"
    queue = tree.applications[receiver].queue
    if queue == tree.applications[order.requester].queue:
        return "another application of the queue"
    return "other production" if queue in tree.preempting else "another queue"


def carried_out(tree: WaitingTree, orders: Sequence[Order]) -> dict[str, Any]:
    """Carry the orders out; return their counts and those in vain, with the grants."""
    rooms, before = dict(tree.rooms), tree.rig.reserved()
    leaving = frozenset(order.container for order in orders if order.verb == "drain")
    tree.end([order.container for order in orders], leaving)
    grants = [row for row in tree.events if "container" in row]
    vain = vain_orders(orders, grants, rooms)
    _, short = overtaken_orders(orders, grants, rooms)
    rows = [
        {
            "order": order.order, "container": order.container, "node": order.node,
            "requester": order.requester, "victim": order.victim, "serves": order.serves, "verb": order.verb,
            "receiver": vain[order.order], "short": short[order.requester] > 0,
            "cause": cause(tree, order, vain[order.order], orders),
        }
        for order in orders if order.order in vain
    ]  # fmt: skip
    verbs = Counter(order.verb for order in orders)
    found: dict[str, Any] = {"orders": len(orders), "verbs": verbs, "vain": rows, "grants": len(grants)}
    if rows:
        found |= {"rooms": rooms, "reserved": before, "events": tree.events, "made": orders}
    return found


Numbers = tuple[int, int]
"""Of an application and of its container: equal in every play of a seed."""


def candidates(tree: WaitingTree, snapshot: Snapshot, lever: str) -> list[tuple[bool, Numbers]]:
    """Return the containers that yarnctl may take: those first that the emulator expects to help."""
    names = list(tree.applications)
    waits = set(tree.waiting(snapshot))
    found = []
    for container in tree.victims(snapshot, lever == "mix"):
        helped = waits & tree.likely(container).keys() - {tree.held[container]["application"]}
        numbers = names.index(tree.held[container]["application"]), number_of(container)
        found.append((not helped, numbers))
    return sorted(found)


class Moved(Exception):
    """A state is not the same when it is built anew."""


def built_anew(rig: SchedulerRig, seed: int, state: dict[str, Any]) -> WaitingTree:
    """Return the state of a seed; raises Moved."""
    tree = WaitingTree(rig, seed)
    if tree.numbered() != state:
        tree.close()
        raise Moved
    return tree


class Trials:
    """Which victim's end gives a container to a waiting application, each tried once in a state built anew.

    ``waits``: numbers of the waiting applications.
    """

    def __init__(self, rig: SchedulerRig, seed: int, state: dict[str, Any], waits: set[int]) -> None:
        self._rig, self._seed, self._state, self._waits = rig, seed, state, waits
        self._known: dict[Numbers, dict[str, Any]] = {}

    def missed(self, ranked: Sequence[tuple[bool, Numbers]]) -> dict[str, Any]:
        """Return the first of the candidates that helps, and what it helps; empty if none of those tried."""
        for unlikely, numbers in ranked[:TRIED_MAX]:
            if numbers not in self._known:
                self._known[numbers] = self._helped(numbers)
            if self._known[numbers]:
                return {**self._known[numbers], "foreseen": not unlikely}
        return {}

    def _helped(self, numbers: Numbers) -> dict[str, Any]:
        tree = built_anew(self._rig, self._seed, self._state)
        try:
            names = list(tree.applications)
            container = tree.container(numbers)
            row = tree.held[container]
            granted = tree.end([container], frozenset([container] if row["priority"] == EXECUTOR else []))
        finally:
            tree.close()
        helped = [at for at in sorted(self._waits - {numbers[0]}) if granted[names[at]] > 0]
        return {"victim": row, "application": names[helped[0]]} if helped else {}


def play(rig: SchedulerRig, seed: int) -> dict[str, Any]:
    """Play one state with both levers."""
    began = time.monotonic()
    tree = WaitingTree(rig, seed)
    found: dict[str, Any] = {"levers": {}}
    try:
        state, snapshot, tasks = tree.numbered(), tree.snapshot(), tree.tasks()
        names = list(tree.applications)
        waits = {names.index(name) for name in tree.waiting(snapshot)}
        found |= {
            "guarantees": tree.guarantees, "waiting": len(waits), "reserving": bool(state["reserved"]),
            "mode": tree.draw.mode, "nodes": tree.draw.nodes, "flat": not snapshot.parents,
        }  # fmt: skip
        decided = {lever: decide(settings_of(tree, lever), snapshot, tasks, tree.now_ms) for lever in LEVERS}
        ranked = {
            lever: candidates(tree, snapshot, lever)
            for lever, (orders, _) in decided.items()
            if waits and not orders
        }
        used, earlier = False, ""
        for lever, (orders, refused) in decided.items():
            result: dict[str, Any] = {"refused": refused}
            found["levers"][lever] = result
            if orders:
                chosen = [(order.container, order.requester) for order in orders]
                before = (
                    [(order.container, order.requester) for order in decided[earlier][0]] if earlier else []
                )
                if chosen == before and all(order.verb != "drain" for order in orders):
                    result |= {**found["levers"][earlier], "same": earlier}
                    continue
                if used:
                    tree.close()
                    tree = built_anew(rig, seed, state)
                    snapshot, tasks = tree.snapshot(), tree.tasks()
                    orders, _ = decide(settings_of(tree, lever), snapshot, tasks, tree.now_ms)
                result |= carried_out(tree, orders)
                if result["vain"]:
                    result |= {"snapshot": msgspec.to_builtins(snapshot), "state": state}
                used, earlier = True, lever
        trials = Trials(rig, seed, state, waits)
        for lever, rows in ranked.items():
            result = found["levers"][lever]
            missed = trials.missed(rows)
            result |= {"idle": True, "victims": len(rows), "missed": missed}
            if missed:
                result |= {"snapshot": msgspec.to_builtins(snapshot), "state": state}
    except (Moved, RuntimeError) as error:
        found = {"moved": str(error) or "not the same when built anew"}
    finally:
        tree.close()
    return {**found, "elapsed_s": round(time.monotonic() - began, 1)}


def judged(states: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums for each lever, the shares and their intervals."""
    states = list(states)
    found: dict[str, Any] = {"moved": sum("moved" in state for state in states)}
    for lever in LEVERS:
        counts: Counter[str] = Counter()
        for state in states:
            if "moved" in state:
                continue
            result = state["levers"][lever]
            counts["states"] += 1
            counts["states with orders"] += bool(result.get("orders"))
            counts["orders"] += result.get("orders", 0)
            for row in result.get("vain", ()):
                counts["in vain"] += 1
                counts["in vain, short" if row["short"] else "in vain, overtaken only"] += 1
                counts[f"in vain, {row['cause']}"] += 1
            if "idle" in result:
                counts["idle"] += 1
                counts["missed"] += bool(result["missed"])
                if result["missed"]:
                    why = ", ".join(sorted(set(result["refused"].values()))) or "no refusal"
                    counts[f"missed, {why}"] += 1
        judged_lever: dict[str, Any] = dict(sorted(counts.items()))
        for name, part, whole in (("share in vain", "in vain", "orders"), ("share missed", "missed", "idle")):
            if counts[whole]:
                bounds = [round(each, 4) for each in interval(counts[part], counts[whole])]
                judged_lever[name] = {"ratio": round(counts[part] / counts[whole], 4), "interval": bounds}
        found[lever] = judged_lever
    return found


@click.command()
@click.option("--output", type=click.Path(path_type=Path), required=True, help="File of results.")
@click.option("--seeds", default="4001-4300", help="First and last seed.")
@click.option("--hadoop", type=click.Choice(VERSIONS), default=VERSION, help="Version of Hadoop.")
@click.option("--rigs", type=click.IntRange(1, 8), default=2, help="Number of ResourceManagers at once.")
def main(output: Path, seeds: str, hadoop: str, rigs: int) -> None:
    """Carry yarnctl's orders out on a real ResourceManager in random states."""
    first, last = (int(each) for each in seeds.split("-"))
    held = gone_on(output, VainOrders(head=head(KIND, hadoop=hadoop)))
    left = [seed for seed in range(first, last + 1) if str(seed) not in held.states]
    lock = Lock()

    def play_some() -> None:
        with SchedulerRig(hadoop) as rig:
            while left:
                with lock:
                    seed = left.pop(0) if left else None
                if seed is None:
                    return
                try:
                    state = play(rig, seed)
                except RigFailed:  # another program has taken its port meanwhile, or the machine stood still
                    state = play(rig, seed)
                with lock:
                    held.states[str(seed)] = state
                    keep(output, held)

    with ThreadPoolExecutor(rigs) as threads:
        for each in [threads.submit(play_some) for _ in range(rigs)]:
            each.result()
    print_json(judged(held.states.values()))


if __name__ == "__main__":
    main()
