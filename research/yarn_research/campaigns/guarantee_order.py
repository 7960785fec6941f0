"""Which leaf queues give: YARN's own preemption in a real ResourceManager, and ``--mode guarantees``.

``python -m yarn_research.campaigns.guarantee_order --output guarantee-order.json --seeds 2001-2200`` plays one
random tree of queues (``tree_order_states``) for each seed on a real ResourceManager 3.4.2 with its
``ProportionalCapacityPreemptionPolicy``, and resumes a file.

Rule, written before the first counted run:

* The policy takes all that a leaf has to give, in one round, and only warns (its wait is 2 h). It ignores 0 or
  10 % over the guarantee. Some queues have ``disable_preemption``. All of it is drawn from the seed.
* In a state in which two rounds of heartbeats change nothing, yarnctl's own observing code reads a snapshot
  over REST, and the policy runs one round. The set that it *computes* is the leaves with something to be
  taken (``actuallyToBePreempted``); the set that yarnctl computes is that of ``ideal_shares`` on
  ``share_tree`` of the snapshot, with the same rates.
* A tree is changed until either side's set is not empty, in at most ``STATES_MAX`` states. That state is the
  tree's one comparison; if both sets stay empty, it is the last state, and counted as ``empty`` too.
* The two sets are equal, or the tree is a difference. Beside that, and not in the share: the leaves of which
  both compute the same resources, and the leaves whose containers or reservations the policy then selects
  (it may select none of a leaf that gives, if its containers are larger than what may be taken in all).
* Thrown out, and counted as such: ``moving``, reservations or grants change between the snapshot and the
  policy's round, or heartbeats never settle; ``tie``, yarnctl's own set is another one if queues that are
  equally far below their guarantee are served in the reverse order of their paths. YARN leaves that open.
* The interval is Clopper and Pearson's (Biometrika 26(4), 1934), 95 %, over trees.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.provenance import head
from yarn_research.campaigns.scheduler_rig import SPAN_MS, VERSION, SchedulerRig
from yarn_research.campaigns.tree_order import interval
from yarn_research.campaigns.tree_order_draws import PREFIX, TreeDraw
from yarn_research.campaigns.tree_order_states import RealTree
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.observing.cluster_state import ClusterObserver
from yarnctl.command_line import print_json
from yarnctl.deciding.guarantees import share_tree
from yarnctl.deciding.ideal_shares import WHOLE_RATES, PreemptionRates, ShareQueue, ideal_shares
from yarnctl.deciding.model import Snapshot
from yarnctl.units import NOTHING, Resources

KIND = "guarantee-order"
STATES_MAX = 6
POLICY = "yarn.resourcemanager.monitor.capacity.preemption."
MONITOR = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    f"{POLICY}monitoring_interval": SPAN_MS,  # a round on command only
    f"{POLICY}max_wait_before_kill": SPAN_MS,
    f"{POLICY}observe_only": "false",
    f"{POLICY}total_preemption_per_round": "1.0",
    f"{POLICY}natural_termination_factor": "1.0",
}
COMPARED = ("guaranteed", "maximum", "used", "pending", "unreserved", "priority", "untouchable")


class GuaranteeOrders(msgspec.Struct):
    """The whole file; ``trees``: by seed."""

    head: dict[str, Any]
    trees: dict[str, dict[str, Any]] = {}


class MonitoredRig(SchedulerRig):
    """The rig with YARN's preemption on; ``drawn``: properties of the next tree beside its own."""

    drawn: Mapping[str, str] = {}

    def start(self, configuration: Mapping[str, str]) -> None:
        """Begin a new ResourceManager."""
        super().start({**configuration, **MONITOR, **self.drawn})


class GuaranteeTree(RealTree):
    """One tree with a policy. ``rates``: the policy's, for yarnctl."""

    def __init__(self, rig: MonitoredRig, seed: int) -> None:
        chance, draw = random.Random(f"guarantees {seed}"), TreeDraw(seed)
        ignored = chance.choice((0.0, 0.1))
        drawn = {f"{POLICY}max_ignored_over_capacity": str(ignored)}
        for queue in draw.root.children:
            _draw_untouchable(queue, chance, drawn)
        rig.drawn = drawn
        self.rates = WHOLE_RATES._replace(ignored_over_ratio=ignored)
        super().__init__(rig, seed)
        self._connection.settings = Attachment(mode="guarantees")
        self._observer = ClusterObserver(self._connection, self._reader)

    def untouchable(self) -> frozenset[str]:
        """Return the leaves that REST shows as not preemptable."""
        leaves = self._connection.leaves
        return frozenset(leaf.path for leaf in leaves if leaf.queue.preemption_disabled)


def _draw_untouchable(queue: Any, chance: random.Random, drawn: dict[str, str]) -> None:
    """Set ``disable_preemption`` on some queues; a leaf's own value wins over its parent's."""
    key = f"{PREFIX}{queue.path}.disable_preemption"
    if chance.random() < 0.15:
        drawn[key] = "true"
    elif f"{PREFIX}{queue.path.rpartition('.')[0]}.disable_preemption" in drawn and chance.random() < 0.3:
        drawn[key] = "false"
    for child in queue.children:
        _draw_untouchable(child, chance, drawn)


def giving(root: ShareQueue, rates: PreemptionRates) -> dict[str, Resources]:
    """Return what each leaf gives, those that give."""
    return {path: share.gives for path, share in ideal_shares(root, rates).items() if share.gives != NOTHING}


def is_tie(root: ShareQueue, rates: PreemptionRates) -> bool:
    """Return whether another order of equal queues changes the set that gives."""
    names: dict[str, str] = {}
    turned = giving(_turned(root, names, root.queue), rates)
    return {names[path] for path in turned} != set(giving(root, rates))


def _turned(queue: ShareQueue, names: dict[str, str], path: str) -> ShareQueue:
    """Return a tree with paths in the reverse order; ``names``: the paths that they had."""
    names[path] = queue.queue
    children = sorted(queue.children, key=lambda child: child.queue, reverse=True)
    return msgspec.structs.replace(
        queue,
        queue=path,
        children=tuple(_turned(child, names, f"{path}.{at}") for at, child in enumerate(children)),
    )


def queues_of(root: ShareQueue) -> dict[str, ShareQueue]:
    """Return the queues by path."""
    found = {root.queue: root}
    for child in root.children:
        found.update(queues_of(child))
    return found


def disagreements(root: ShareQueue, rows: Iterable[dict[str, Any]]) -> list[list[Any]]:
    """Return where the snapshot differs from what the policy reads: queue, field, yarnctl's, YARN's."""
    ours, found = queues_of(root), []
    for row in rows:
        queue = ours.get(row["queue"])
        if queue is None:
            found.append([row["queue"], "absent", None, None])
            continue
        for name in COMPARED:
            if not row["leaf"] and name in ("pending", "unreserved", "untouchable"):
                continue
            value = getattr(queue, name)
            value = list(value) if isinstance(value, Resources) else value
            if value != row[name]:
                found.append([row["queue"], name, value, row[name]])
    return found


def compared(tree: GuaranteeTree, rig: MonitoredRig) -> dict[str, Any]:
    """Compare both sides in the present state."""
    snapshot: Snapshot = tree.snapshot()
    untouchable, before = tree.untouchable(), tree.state()
    root = share_tree(snapshot, lambda queue: queue not in untouchable)
    told = rig.preempt()
    moving = before["reserved"] != told["reserved"] or bool(told["granted"])
    ours = giving(root, tree.rates)
    rows = [row for row in told["queues"] if not row["label"]]
    theirs = {
        row["queue"]: Resources(*row["gives"])
        for row in rows
        if row["leaf"] and Resources(*row["gives"]) != NOTHING
    }
    queue_of = {app.name: app.queue for app in tree.applications.values()}
    kept = rig.reserved()
    selected = {queue_of[tree.held[each]["application"]] for each in told["warned"]}
    selected |= {queue_of[row["application"]] for row in told["reserved"] if row not in kept}
    found: dict[str, Any] = {
        "result": "moving" if moving else "equal" if set(ours) == set(theirs) else "different",
        "gives": theirs, "selected": sorted(selected), "ignored": tree.rates.ignored_over_ratio,
        "leaves equal": sum(ours.get(path) == size for path, size in theirs.items()),
        "reserved": len(told["reserved"]),
    }  # fmt: skip
    if not moving and is_tie(root, tree.rates):
        found["result"] = "tie"
    if found["result"] == "different" or ours != theirs:
        found |= {
            "ours": ours, "disagreements": disagreements(root, rows), "policy": rows, "state": before,
            "snapshot": msgspec.to_builtins(snapshot),
        }  # fmt: skip
    return found


def play(rig: MonitoredRig, seed: int) -> dict[str, Any]:
    """Play one tree; return its comparison."""
    began, states = time.monotonic(), 1
    tree = GuaranteeTree(rig, seed)
    try:
        found = compared(tree, rig)
        while not found["gives"] and found["result"] == "equal" and states < STATES_MAX:
            tree.change()
            states += 1
            found = compared(tree, rig)
    except RuntimeError as error:
        found = {"result": "moving", "why": str(error)}
    finally:
        tree.close()
    return {
        **found, "states": states, "mode": tree.draw.mode, "nodes": tree.draw.nodes,
        "properties": {**tree.draw.properties, **rig.drawn}, "elapsed_s": round(time.monotonic() - began, 1),
    }  # fmt: skip


def judged(trees: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums, the share of trees with equal sets and its interval."""
    counts: Counter[str] = Counter()
    for tree in trees:
        counts[tree["result"]] += 1
        if tree["result"] in ("equal", "different"):
            gives = tree["gives"]
            counts["empty"] += not gives and tree["result"] == "equal"
            counts["reserving"] += bool(tree["reserved"])
            counts["leaves that give"] += len(gives)
            counts["leaves with equal resources"] += tree["leaves equal"]
            counts["leaves selected"] += len(set(tree["selected"]) & set(gives))
            counts["leaves selected that give nothing"] += len(set(tree["selected"]) - set(gives))
    found: dict[str, Any] = dict(sorted(counts.items()))
    for name, empty in (("share", 0), ("share of those that are not empty", counts["empty"])):
        equal, total = counts["equal"] - empty, counts["equal"] + counts["different"] - empty
        if total:
            bounds = [round(each, 4) for each in interval(equal, total)]
            found[name] = {"equal": equal, "of": total, "ratio": round(equal / total, 4), "interval": bounds}
    return found


@click.command()
@click.option("--output", type=click.Path(path_type=Path), required=True, help="File of results.")
@click.option("--seeds", default="2001-2200", help="First and last seed.")
def main(output: Path, seeds: str) -> None:
    """Compare the queues that give with those of a real ResourceManager's preemption."""
    first, last = (int(each) for each in seeds.split("-"))
    held = gone_on(output, GuaranteeOrders(head=head(KIND, hadoop=VERSION)))
    with MonitoredRig() as rig:
        for seed in range(first, last + 1):
            if str(seed) not in held.trees:
                held.trees[str(seed)] = play(rig, seed)
                keep(output, held)
    print_json(judged(held.trees.values()))


if __name__ == "__main__":
    main()
