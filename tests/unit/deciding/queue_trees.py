"""Trees of queues in slots of 512 MiB and 1 vcore: the cluster of docs/facts/hadoop.md, 3 nodes of 8 slots.

``root {eng 40 % {prod 60, lab 40}, mkt 30 %, res 30 %}``; guarantees in tenths of a slot, so nothing is cut
off: eng 9.6 (prod 5.76, lab 3.84), mkt 7.2, res 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from yarnctl.deciding.forecast import FreeCapacity, model_queues
from yarnctl.deciding.model import ApplicationView, ContainerRequest, ParentView, QueueView, Snapshot
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import NOTHING, Resources, plus, times

SLOT = Resources(51200, 100)
"""In hundredths, so that the guarantees are whole numbers."""
TOTAL = times(SLOT, 24)
LEAVES = {
    "eng.prod": Resources(294912, 576),
    "eng.lab": Resources(196608, 384),
    "mkt": Resources(368640, 720),
    "res": Resources(368640, 720),
}
ENG = Resources(491520, 960)
NODE = times(SLOT, 8)


SIBLINGS = [
    # prod has the lowest ratio of all leaves, and its sibling frees: eng is at 115 to 104 %, mkt below it
    ({"mkt": 1, "res": 11, "eng.lab": 12}, {"eng.prod": 3, "mkt": 3}, "eng.lab",
     "mkt mkt mkt eng.prod eng.prod eng.prod"),
    # mkt's ratio is lower than prod's: eng's is lower still
    ({"eng.prod": 7, "eng.lab": 1, "mkt": 8, "res": 8}, {"eng.prod": 2, "mkt": 2}, "res",
     "eng.prod eng.prod mkt mkt"),
    # what prod's sibling frees goes to research, which is below its guarantee
    ({"eng.lab": 11, "res": 5, "mkt": 8}, {"eng.prod": 2, "res": 2}, "eng.lab",
     "res res eng.prod eng.prod"),
]  # fmt: skip
"""Used in slots by leaf, containers of one slot asked for by leaf, the leaf that frees, and who is served."""

PRIORITIES = [
    (1, 4, "res res res"),  # both below their guarantee: priority
    (3, 9, "mkt mkt mkt"),  # one below, one above: the one below
    (6, 9, "mkt mkt res res"),  # mkt reaches 111 %: both above, priority again
    (8, 10, "res res"),  # both above: priority
]
"""Slots of mkt and res (priority 5) under ``priority-utilization``, and who is served of what lab frees."""

PARENT_FULL = [("", ""), ("res", "-"), ("eng.lab", "eng.prod")]
"""eng at its maximum of 12 slots, 6 slots free: which leaf frees one, and who is served."""


def slots(count: float) -> Resources:
    return Resources(round(SLOT.memory_mib * count), round(SLOT.vcores * count))


def waits(queue: str, name: str, *asks: tuple[int, int], **more: Any) -> ApplicationView:
    """An application of a leaf; ``asks``: (slots of one container, containers), by falling priority."""
    requests = tuple(
        ContainerRequest(priority, slots(size), count) for priority, (size, count) in enumerate(asks)
    )
    given: dict[str, Any] = {
        "user": "u", "submitted_at_ms": 0, "rank": 0, "containers": 1, "used": NOTHING,
        "am_size": NOTHING, "task_size": slots(1),
    }  # fmt: skip
    return ApplicationView(application=name, queue=f"root.{queue}", requests=requests, **(given | more))


OLD = waits("res", "old", (4, 1))
YOUNG = waits("res", "young", (1, 1), rank=1, user="another")
SCATTERED = {"n1": 1, "n2": 1}

HEAD_OF_LINE = [
    ([OLD, YOUNG], SCATTERED, ""),  # 4 slots exceed the headroom: nothing behind it
    ([OLD, YOUNG, waits("mkt", "mkt", (1, 1))], SCATTERED, "mkt"),  # a sibling goes on
    ([OLD, YOUNG], {"n1": 1, "n2": 1, "n3": 2}, ""),  # within the headroom: it reserves all of it
    ([YOUNG], {"n1": 1, "n2": 1, "n3": 2}, "young"),  # the older one has withdrawn
    ([OLD, msgspec.structs.replace(YOUNG, rank=-1)], SCATTERED, "young"),  # sorted before it
    ([OLD, YOUNG], {"n1": 2, "n2": 2, "n3": 1}, "young"),  # reserved, and a slot of headroom is left
    ([waits("res", "one", (4, 1), (1, 1))], SCATTERED, ""),  # the same within one application
    ([waits("res", "one", (4, 1), (1, 1))], {"n1": 2, "n2": 2, "n3": 1}, ""),
]
"""What waits, slots free by node (lab has the rest), and who is served."""

USER_LIMITS = [
    (7, 0, 8),  # factor 1: 3840 MiB / 7
    (14, 8, 15),  # factor 2: 7424 / 14
    (13, 11, 14),  # minimum-user-limit-percent: half of what is used
    (12, 12, 13),
    (7, 8, 8),
]
"""The limit in slots, what the user holds, and holds in the end."""


def tree(
    used: Mapping[str, float],
    *applications: ApplicationView,
    free: Mapping[str, float] | None = None,
    eng_maximum: float = 24,
    order: Any = "utilization",
    priorities: Mapping[str, int] | None = None,
    reserved: Mapping[str, float] | None = None,
    user_limits: Mapping[str, float] | None = None,
    fair: tuple[str, ...] = (),
) -> Snapshot:
    """A snapshot; ``used`` in slots by leaf, ``reserved`` by application, included in ``used``."""
    held = {name: slots(count) for name, count in (reserved or {}).items()}
    sums = {leaf: slots(used.get(leaf, 0)) for leaf in LEAVES}
    eng = plus(sums["eng.prod"], sums["eng.lab"])
    whole = plus(eng, plus(sums["mkt"], sums["res"]))
    ranks = {f"root.{name}": value for name, value in (priorities or {}).items()}
    return Snapshot(
        total=TOTAL,
        largest_node=NODE,
        queues=tuple(
            QueueView(queue=f"root.{leaf}", guaranteed=part, maximum=TOTAL, used=sums[leaf])
            for leaf, part in LEAVES.items()
        ),
        applications=applications,
        free_by_node={node: slots(count) for node, count in (free or {}).items()},
        parents=(
            ParentView(
                queue="root",
                guaranteed=TOTAL,
                maximum=TOTAL,
                used=whole,
                reserved=slots(sum((reserved or {}).values())),
                order=order,
                priorities=ranks,
                fair=fair,
            ),
            ParentView(queue="root.eng", guaranteed=ENG, maximum=slots(eng_maximum), used=eng, order=order),
        ),
        reserved=held,
        user_limits={}
        if user_limits is None
        else {"root.res": {u: slots(n) for u, n in user_limits.items()}},
    )


def served(snapshot: Snapshot, frees: str = "", times_freed: int = 1) -> str:
    """Return which applications are served: from what is free, then one slot after the other that ``frees``.

    ``frees``: the leaf that gives a slot back, on a node of its own each time; "-": nobody was served.
    """
    queues = model_queues(snapshot, ())
    model = QueueTreeModel(snapshot, queues)
    free = FreeCapacity(snapshot.free_by_node)
    order: list[str] = []
    _serve(model, free, order)
    for number in range(times_freed if frees else 0):
        model.leaves[f"root.{frees}"].add(times(SLOT, -1))
        before = len(order)
        free = FreeCapacity({**free.free, f"freed-{number}": SLOT})
        _serve(model, free, order)
        if len(order) == before:
            order.append("-")
    return " ".join(order)


def _serve(model: QueueTreeModel, free: FreeCapacity, order: list[str]) -> None:
    order += [name for name, count in model.place(free).items() for _ in range(count)]


def parents_of(
    queues: Sequence[QueueView],
    total: Resources,
    maximum: Mapping[str, Resources] | None = None,
    guaranteed: Mapping[str, Resources] | None = None,
) -> tuple[ParentView, ...]:
    """Return the parents of leaves by their paths; what one uses is the sum of its leaves."""
    paths = {view.queue.rsplit(".", n)[0] for view in queues for n in range(1, view.queue.count(".") + 1)}
    found = []
    for path in sorted(paths):
        used = NOTHING
        for view in queues:
            used = plus(used, view.used if view.queue.startswith(f"{path}.") else NOTHING)
        least, most = (guaranteed or {}).get(path, total), (maximum or {}).get(path, total)
        found.append(ParentView(queue=path, guaranteed=least, maximum=most, used=used))
    return tuple(found)
