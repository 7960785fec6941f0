"""The mix: how fast the cheapest levers are chosen, beside putting all tasks of the cluster in order.

The cluster is that of the tick. Most tasks are maps that began within the last two minutes; of the reduces
some have begun no key, most can be suspended, and a few tasks are about to end. The naive chooser makes every
lever of every task, sorts all of them by (lost, overhead, the policies' keys, attempt), and takes the first
that budgets allow. Both must pull the same levers of the same tasks in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from yarn_research.bench.row import Row, cpu_ms, spread
from yarn_research.bench.tick import FULL, NOW_MS, RULES, SLOT, Size, make_case
from yarnctl.deciding.case import Case, Choice, Need
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.levers import Lever, levers_of
from yarnctl.deciding.loss_budget import LossLeft
from yarnctl.deciding.mix import choose_mix
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.offers import MixInput
from yarnctl.deciding.preemptor import DemandInput, candidates, preemptable
from yarnctl.deciding.releaser import objections
from yarnctl.deciding.settings import LeverSettings
from yarnctl.deciding.waiting_worth import NO_PRICE, PARTS, SecondPrice, hold_ms

LEVERS = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1000, may_lose_ratio=0.02)
MIX = msgspec.structs.replace(RULES, levers=LEVERS)
TARGET_MS = 10.0


class Mixed(NamedTuple):
    """A case and what else the mix reads."""

    case: Case
    given: MixInput


def make_mixed(size: Size, maps_of_1000: int, tail: float = 0.3) -> Mixed:
    """Return a full cluster; of 1,000 tasks so many are maps."""
    snapshot, found = make_case(size.nodes, size.applications, size.containers, size.wanted, tail)
    tasks = _with_maps(found, maps_of_1000)
    look = DemandInput(snapshot, NOW_MS, NOW_MS)
    jobs = candidates(look, Ledger(), MIX, preemptable(look, MIX, ("research",)))
    case = Case(
        number=1,
        now_ms=NOW_MS,
        total=snapshot.total,
        needs=(Need(SLOT, size.wanted),),
        free={},
        jobs=tuple(jobs),
        tasks=tasks,
    )
    names = {view.application: (view.queue, view.user) for view in snapshot.applications}
    lost_mib_ms = size.wanted * SLOT.memory_mib * 60_000
    left = LossLeft({("research", "kill"): lost_mib_ms, ("research", "end"): lost_mib_ms})
    return Mixed(case, MixInput(left, {}, names))


def _with_maps(
    found: Mapping[str, tuple[TaskView, ...]], maps_of_1000: int
) -> dict[str, tuple[TaskView, ...]]:
    tasks, number = {}, 0
    for name, row in found.items():
        views = []
        for task in row:
            number += 1
            drawn = number * 7919
            view = task._replace(remaining_ms=2000) if drawn % 1009 == 0 else task
            if drawn % 1000 < maps_of_1000:
                since_ms = NOW_MS - drawn % 120_000
                view = view._replace(kind="map", since_ms=since_ms, resume_cost_ms=1200, checkpointable=False)
            else:
                cost_ms = 9000 + number * 31 % 4000
                since_ms = NOW_MS if number % 3 == 0 else task.since_ms
                able = task.checkpointable and since_ms != NOW_MS
                view = view._replace(resume_cost_ms=cost_ms, since_ms=since_ms, checkpointable=able)
            views.append(view)
        tasks[name] = tuple(views)
    return tasks


def naive(mixed: Mixed) -> list[str]:
    """Return the levers pulled, each with its attempt, in order: all are sorted, the first are taken."""
    case, given = mixed
    objection, second = objections(case.now_ms, MIX, {}), case.second
    rows: list[tuple[tuple[int, int], int, int, str, Lever]] = []
    for job in case.jobs:
        for task in case.tasks[job.usage.application]:
            levers = list(levers_of(task, case.now_ms, LEVERS, -1))
            unfit = objection(task) not in ("", "map", "not-checkpointable", "cost" if second.parts else "")
            costs = [
                (price_of(each, second, job.usage.releasable), each)
                for each in levers
                if each.kind != "suspend" or not unfit
            ]
            wait_ms = second.of(task.remaining_ms + LEVERS.leave_ms)
            if second.parts:
                costs = [(cost, each) for cost, each in costs if each.kind == "end" or cost[0] <= wait_ms]
            if costs:
                cost, lever = min(costs)
                rows.append((cost, -job.usage.share, task.remaining_ms, task.attempt, lever))
    left = {"kill": given.left.amount("research", "kill"), "end": given.left.amount("research", "end")}
    taken: list[str] = []
    for _, _, _, attempt, lever in sorted(rows):
        charged = SLOT.memory_mib * (lever.lost_ms if lever.kind == "kill" else lever.overhead_ms)
        if len(taken) == case.needs[0].containers:
            break
        if lever.kind in left and charged > left[lever.kind]:
            continue
        if lever.kind in left:
            left[lever.kind] -= charged
        taken.append(f"{lever.kind} {attempt}")
    return taken


def price_of(lever: Lever, second: SecondPrice, running: int) -> tuple[int, int]:
    """Return what tasks are sorted by: lost work and overhead; where a second has a price, all in one."""
    if not second.parts:
        return lever.lost_ms, lever.overhead_ms
    hold = 0 if lever.kind == "wait" else hold_ms(running)
    return lever.lost_ms + lever.overhead_ms + second.of(lever.free_in_ms) + hold, lever.lost_ms


def pulled(choice: Choice) -> list[str]:
    """Return the levers of a choice in the order of the naive one: those that wait come first."""
    words = [f"wait {task.lever.unit}" for task in choice.awaited]
    return words + [f"{pull.lever.kind} {pull.lever.unit}" for pull in choice.pulls]


def measure(size: Size, maps_of_1000: int, second: SecondPrice = NO_PRICE) -> dict[str, dict[str, float]]:
    """Measure the mix and the naive choice, interleaved; both must be the same.

    Where a second has a price the tasks that end by themselves are not the first, so the order is not compared.
    """
    mixed = make_mixed(size, maps_of_1000)
    mixed = mixed._replace(case=msgspec.structs.replace(mixed.case, second=second))

    def mix() -> Choice:
        return choose_mix(mixed.case, MIX, mixed.given)

    times: dict[str, list[float]] = {"mix_ms": [], "naive_ms": []}
    for _ in range(3):
        times["naive_ms"] += [cpu_ms(lambda: naive(mixed))]
        times["mix_ms"] += [cpu_ms(mix) for _ in range(5)]
    found = pulled(mix())
    assert found == naive(mixed) if not second.parts else sorted(found) == sorted(naive(mixed))
    assert len(found) == size.wanted
    kinds = [word.partition(" ")[0] for word in found]
    seen: dict[str, float] = {kind: kinds.count(kind) for kind in ("wait", "suspend", "end", "kill")}
    return {name: spread(each) for name, each in times.items()} | {"seen": seen}


def tick_mix_row(size: Size = FULL) -> Row:
    """Nearly all maps: 1,000 levers of every kind; in the details also others, and with a price."""
    cases = {
        "maps": measure(size, 995),
        "half_maps": measure(size, 500),
        "reduces": measure(size, 0),
        "maps_priced": measure(size, 995, SecondPrice(PARTS)),
        "half_maps_priced": measure(size, 500, SecondPrice(PARTS)),
        "reduces_priced": measure(size, 0, SecondPrice(PARTS)),
    }
    ours, baseline = (cases["maps"][side]["median"] for side in ("mix_ms", "naive_ms"))
    return Row(
        name="tick-mix",
        what=f"{size.nodes:,} nodes, {size.applications:,} applications, {size.containers:,} containers:"
        f" {size.wanted:,} of the cheapest levers, beside sorting all",
        ours=ours,
        baseline=baseline,
        ratio=baseline / ours,
        target=f"<= {TARGET_MS:.0f} ms",
        holds=ours <= TARGET_MS,
        unit="ms",
        details=cases,
    )
