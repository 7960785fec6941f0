"""The forecast in random trees of queues against a plain scheduler that computes everything anew."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from tests.unit.deciding.plain_tree import Plain, add, within
from yarnctl.deciding.forecast import FreeCapacity, SimulatedRequest, model_queues
from yarnctl.deciding.model import ApplicationView, ContainerRequest, ParentView, QueueView, Snapshot
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.deciding.tree_forecast import TreeSimulation
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import NOTHING, Resources, plus, times

SHAPES = (
    ("root.a.x", "root.a.y", "root.b", "root.c"),
    ("root.a.x.u", "root.a.x.v", "root.a.y", "root.b.z", "root.b.w"),
    ("root.a", "root.b", "root.c"),
)
UNIT = Resources(10, 10)


@st.composite
def snapshots(draw: Any, leaves: tuple[str, ...] = ()) -> Snapshot:
    leaves = leaves or draw(st.sampled_from(SHAPES))
    part = st.integers(1, 5)
    used = {leaf: times(UNIT, draw(st.integers(0, 9))) for leaf in leaves}
    wait = []
    for number in range(draw(st.integers(1, 6))):
        leaf = draw(st.sampled_from(leaves))
        asks = [
            ContainerRequest(priority, Resources(10 * draw(st.integers(1, 3)), 10 * draw(st.integers(1, 2))),
                draw(st.integers(0, 3)))
            for priority in range(draw(st.integers(1, 2)))
        ]  # fmt: skip
        wait.append(
            ApplicationView(
                application=f"app-{number}", queue=leaf, user=draw(st.sampled_from("uv")), submitted_at_ms=0,
                rank=number, containers=2, used=times(UNIT, draw(st.integers(0, 2))), am_size=NOTHING,
                task_size=UNIT, requests=tuple(asks),
            )
        )  # fmt: skip
    reserved = {
        view.application: view.requests[0].size
        for view in wait
        if view.requests[0].count and draw(st.integers(0, 5)) == 0
    }
    for view in wait:
        used[view.queue] = plus(used[view.queue], reserved.get(view.application, NOTHING))
    free = {f"n{n}": times(UNIT, draw(st.integers(0, 3))) for n in range(draw(st.integers(0, 3)))}
    paths = sorted({leaf.rsplit(".", n)[0] for leaf in leaves for n in range(1, leaf.count(".") + 1)})
    sums = {path: _sum(used[leaf] for leaf in leaves if leaf.startswith(f"{path}.")) for path in paths}
    total = plus(sums["root"], _sum(free.values()))
    total = plus(total, times(_sum(reserved.values()), -1))  # what is reserved is free on its node
    slack = st.sampled_from([0, 1, 2, 99])
    order = draw(st.sampled_from(["utilization", "priority-utilization"]))
    return Snapshot(
        total=total,
        largest_node=times(UNIT, draw(st.sampled_from([2, 9]))),
        queues=tuple(
            QueueView(queue=leaf, guaranteed=times(UNIT, draw(part)),
                maximum=plus(used[leaf], times(UNIT, draw(slack))), used=used[leaf])
            for leaf in leaves
        ),
        applications=tuple(wait),
        free_by_node=free,
        parents=tuple(
            ParentView(queue=path, guaranteed=times(UNIT, draw(part)), used=sums[path], order=order,
                maximum=total if path == "root" else plus(sums[path], times(UNIT, draw(slack))),
                fair=leaves[-1:] if leaves[-1].rpartition(".")[0] == path else (),
                priorities={leaf: draw(st.integers(0, 2)) for leaf in (*paths, *leaves)
                    if leaf.rpartition(".")[0] == path})
            for path in paths
        ),
        reserved=reserved,
        user_limits={leaf: {"u": times(UNIT, draw(st.integers(1, 3)))} for leaf in leaves[:1]},
    )  # fmt: skip


def _sum(sizes: Any) -> Resources:
    total = NOTHING
    for size in sizes:
        total = plus(total, size)
    return total


class Checked(TreeSimulation):
    """Carries each admission and refusal out in the plain scheduler; ``wrong``: what it did otherwise."""

    def __init__(self, plain: Plain, *given: Any) -> None:
        self.plain, self.wrong, self.admissions = plain, "", 0
        super().__init__(*given)

    def evicted(self, size: Resources, victim: QueueNode) -> Plain:
        """Return the plain scheduler after one eviction, whose task requests a container again."""
        plain = copy.deepcopy(self.plain)
        plain.count(victim.path, times(size, -1))
        plain.free["freed"] = tuple(size)
        plain.ghosts[victim.path] = tuple(size)
        return plain

    def _admit(self, leaf: QueueNode, wanted: SimulatedRequest, victim: QueueNode, *, small: bool) -> None:
        self.admissions += 1
        after = self.evicted(wanted.size if small else self._size(leaf, wanted, victim), victim)
        found = after.step()
        after.free.pop("freed", None)
        self.plain = after
        if found != ("granted", wanted.application.application):
            self.wrong = self.wrong or f"{found} after an eviction for {wanted.application.application}"
        super()._admit(leaf, wanted, victim, small=small)

    def _fits_free(self, leaf: QueueNode, wanted: SimulatedRequest) -> bool:
        fits = super()._fits_free(leaf, wanted)
        if fits:
            found = self.plain.step()
            if found != ("granted", wanted.application.application):
                self.wrong = self.wrong or f"{found} of what is free, not {wanted.application.application}"
        return fits

    def _refuse(self, leaf: QueueNode, why: Any) -> None:
        wanted = self._first(leaf)
        assert wanted is not None
        name = wanted.application.application
        looked_at = self.is_requester(wanted.application) and name not in self.helped
        for victim in self._victims if looked_at else ():
            size = self._size(leaf, wanted, victim)
            left = add(victim.used, size, -1)
            guaranteed = victim.guaranteed
            stays = left[0] >= guaranteed[0] or left[1] >= guaranteed[1]
            if stays and self.evicted(size, victim).step() == ("granted", name):
                self.wrong = self.wrong or f"{name} is refused ({why}), and {victim.path} would help"
        super()._refuse(leaf, why)


def simulated(snapshot: Snapshot) -> Checked:
    queues = model_queues(snapshot, ())
    model, plain, free = (
        QueueTreeModel(snapshot, queues),
        Plain.of(snapshot),
        FreeCapacity(snapshot.free_by_node),
    )
    model.place(free)
    plain.take(model, free)
    preempting = snapshot.applications[0].queue
    left = {view.application: 99 for view in snapshot.applications}
    victims = [
        view.queue
        for view in snapshot.queues
        if view.queue != preempting and not within(view.used, view.guaranteed)
    ]
    return Checked(plain, model, victims, lambda view: view.queue == preempting, left, free)


@given(snapshots())
def test_a_container_is_freed_only_where_the_plain_scheduler_gives_it_to_the_requester(
    snapshot: Snapshot,
) -> None:
    assert simulated(snapshot).wrong == ""


# --- planted faults: each must be found --------------------------------------------------------


def leaves_across_parents(patch: pytest.MonkeyPatch) -> None:
    in_order = QueueTreeModel.in_order
    patch.setattr(QueueTreeModel, "in_order", lambda self: iter(sorted(in_order(self), key=QueueNode.over)))


def evicted_task_does_not_return(patch: pytest.MonkeyPatch) -> None:
    outcome = TreeSimulation._outcome

    def without(self: TreeSimulation, leaf: QueueNode, slot: Resources) -> Any:
        self._evicted.clear()
        return outcome(self, leaf, slot)

    patch.setattr(TreeSimulation, "_outcome", without)


def victim_frees_in_its_leaf_alone(patch: pytest.MonkeyPatch) -> None:
    add_to = QueueNode.add

    def leaf_alone(self: QueueNode, size: Resources) -> None:
        if size[0] >= 0:
            add_to(self, size)
        else:
            self.used, self._key = plus(self.used, size), None

    patch.setattr(QueueNode, "add", leaf_alone)


FAULTS = [leaves_across_parents, evicted_task_does_not_return, victim_frees_in_its_leaf_alone]


@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    ways = settings(max_examples=2000, phases=[Phase.generate], database=None, deadline=None)
    find(snapshots(), lambda snapshot: bool(simulated(snapshot).wrong), settings=ways, random=Random(1))
