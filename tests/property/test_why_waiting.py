"""One true sentence: in random small clusters each production application has one reason after each step.

The oracle is plain: it keeps the orders by the records alone, places requests one at a time, and reads
limits, free capacity and tasks from the snapshot that was decided on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from random import Random
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings
from hypothesis.strategies import SearchStrategy

from tests.golden.tables import GUARD_FREE, app, cluster, task, with_
from tests.property.playing import UNTIL_MS
from tests.property.scenarios import Scenario, mix_scenarios, scenarios, spark_scenarios
from tests.thoroughness import examples, is_thorough, more
from tests.unit.service.played import PublishedRun
from yarnctl.api.cluster_answers import WaitingKind
from yarnctl.daemon.view import why_waiting
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.why_waiting import Waiting, sentence, waiting_reasons
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    ApplicationView,
    ContainerEnded,
    ContainerGranted,
    Ending,
    Fact,
    ManifestSeen,
    Observation,
    Outcome,
    Refused,
    Snapshot,
    TaskView,
    Unknown,
)
from yarnctl.deciding.reasons import demand
from yarnctl.deciding.reasons.eligibility import NoRunnerCarried
from yarnctl.deciding.reasons.modes import ModeReason, Paused
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.reasons.waiting_reasons import (
    ContainersOrdered,
    DecidedNext,
    FitsNotGranted,
    TasksEndSoon,
    WouldOrder,
)
from yarnctl.deciding.records import Decision, Record, Transfer, Transition
from yarnctl.deciding.settings import LeverSettings
from yarnctl.deciding.waiting_verdicts import Cause, WaitingVerdict

STEPS = 100_000 if is_thorough() else 4_000
NODES = ("n1", "n2", "n3")
QUEUES = ("etl", "serving", "research")
JOBS = ("r1", "r2", "r3")
ASKERS = {"p1": "etl", "p2": "etl", "p3": "serving"}
OUTCOMES: tuple[Outcome, ...] = (Accepted(), Accepted(), Refused(ClientFault("no")), Unknown())
LEVERS = LeverSettings(room_within_ms=12_000, suspend_ms=4000, leave_ms=1000, may_lose_ratio=0.02)
LATELY_MS = 15_000
"""After this long an order that has ended is forgotten."""
PAUSED = Paused("paused by a test")


class World:
    """One random cluster that changes at each observation, its controller, and the oracle's own orders.

    ``decided``: the snapshot of the newest decision; ``is_coming``: containers were about to be free then.
    """

    def __init__(self, seed: str) -> None:
        self.chance = chance = Random(seed)
        self.settings = with_(
            GUARD_FREE, preempting_queues=("etl", "serving"), preemptable_queues=("research",),
            observe_only=chance.random() < 0.15, levers=LEVERS if chance.random() < 0.4 else None,
            in_flight_ratio_max=chance.choice([1.0, 0.2]), job_open_ratio_max=chance.choice([1.0, 0.3]),
            rest_ms=chance.choice([1000, 12_000]), kill_timeout_ms=4000, task_tries_max=3,
        )  # fmt: skip
        self.controller = Controller(self.settings)
        self.now_ms = 0
        self.snapshot: Snapshot | None = None
        self.decided: Snapshot | None = None
        self.tasks: dict[str, tuple[TaskView, ...]] = {}
        self.decided_tasks = self.tasks
        self.orders: dict[str, tuple[str, str, int]] = {}
        self.ended_at_ms = -LATELY_MS
        self.is_coming = False

    def steps(self) -> Iterator[None]:
        """Play one observation after the other; yield after each step of the controller."""
        while True:
            self.now_ms += self.chance.choice([250, 1000, 3000, 9000])
            kind = self.chance.choices(["seen", "facts", "unreachable"], [8, 2, 1])[0]
            if not self.controller.to_observe.cluster:
                kind = "facts"
            if kind == "seen" or self.snapshot is None:
                self.look()
            yield from self.observe(kind)

    def look(self) -> None:
        """Draw what the cluster shows now."""
        chance = self.chance
        rows, self.tasks = [], {}
        for rank, name in enumerate(JOBS):
            if chance.random() < 0.1:
                continue
            count, able = chance.choice([1, 2, 4, 6]), chance.random() < 0.7
            waits = chance.choice([0, 0, 0, 0, 3])
            view = app(name, "research", count, waits, rank=10 + rank, user="carol", runner=able)
            rows.append(view if able else msgspec.structs.replace(view, why_not=NoRunnerCarried()))
            self.tasks[name] = tuple(self.task(f"{name}.{n}") for n in range(count - 1))
        for rank, (name, queue) in enumerate(ASKERS.items()):
            pending = chance.choice([0, 1, 2, 4])
            rows.append(
                app(name, queue, chance.choice([0, 1]), pending, rank=rank, ask=chance.choice([1, 1, 2, 9]),
                    user=chance.choice(["ann", "bob"]), activated=chance.random() < 0.9)
            )  # fmt: skip
        limits = {"serving": chance.choice([1, 3])} if chance.random() < 0.2 else None
        self.snapshot = cluster(
            *rows, guaranteed={"etl": 10, "serving": 6, "research": chance.choice([2, 20])},
            user_limit=limits,
            maximum={"etl": chance.choice([1, 3])} if chance.random() < 0.2 else None,
            free={node: chance.randint(1, 2) for node in NODES if chance.random() < 0.25},
        )  # fmt: skip
        if chance.random() < 0.05:
            left_out = {"p3": demand.NotModelled(("gpu",))}
            self.snapshot = msgspec.structs.replace(self.snapshot, left_out=left_out)

    def task(self, attempt: str) -> TaskView:
        chance = self.chance
        return task(
            attempt, chance.choice([500, 5000, 50_000]), node=chance.choice(NODES),
            kind=chance.choice(["reduce", "reduce", "map"]), able=chance.random() < 0.6,
            since_ms=self.now_ms - 500, cost_ms=1000,
        )  # fmt: skip

    def observe(self, kind: str) -> Iterator[None]:
        """Step until the controller rests."""
        chance, controller = self.chance, self.controller
        is_coming = bool(self.orders) or self.now_ms - self.ended_at_ms < LATELY_MS
        facts = tuple(self.fact() for _ in range(chance.choice([0, 0, 1, 3])))
        for _ in range(10):
            shown = self.snapshot if kind == "seen" and controller.to_observe.cluster else None
            wanted = [name for name in controller.to_observe.victims if name in self.tasks]
            late = tuple(name for name in wanted if chance.random() < 0.1)
            step = controller.step(
                Observation(
                    now_ms=self.now_ms,
                    as_of_ms=self.now_ms - 100,
                    snapshot=shown,
                    facts=facts,
                    unreachable=late,
                    cluster="unreachable" if kind == "unreachable" else "quiet",
                    tasks={name: self.tasks[name] for name in wanted if name not in late},
                )
            )
            records = list(step.records)
            for action in step.actions:
                records += controller.settle(action, chance.choice(OUTCOMES))
            for record in records:
                self.note(record)
            if kind == "seen" and not controller.to_observe.victims:
                self.decided, self.decided_tasks, self.is_coming = self.snapshot, self.tasks, is_coming
            yield
            if step.wake_at_ms > self.now_ms:
                return
        raise AssertionError("the controller never came to rest")

    def fact(self) -> Fact:
        chance = self.chance
        order = next(iter(chance.sample(sorted(self.orders), 1)), "") if self.orders else "o-000001"
        held = self.controller.ledger.open.get(order)
        if held is None:
            return ApplicationEnded("zz", self.now_ms)
        match chance.randrange(4):
            case 0:
                return ManifestSeen(order, held.attempt, held.generation, 3, self.now_ms)
            case 1:
                ending: Ending = (
                    "suspended" if held.state == "checkpointed" else chance.choice(["completed", "lost"])
                )
                return ContainerEnded(held.container, held.victim, held.node, ending, self.now_ms)
            case 2:
                return ApplicationEnded(held.requester, self.now_ms)
            case _:
                grant = f"{held.requester}.{self.now_ms}c"
                return ContainerGranted(grant, held.requester, held.node, held.request_size, self.now_ms)

    def note(self, record: Record) -> None:
        """Keep the open orders: order -> (requester, victim, containers)."""
        if isinstance(record, Decision):
            for order, pick in zip(record.orders, record.picks, strict=True):
                self.orders[order] = (record.trigger.application, pick.application, pick.serves)
        elif isinstance(record, Transition) and record.target not in OPEN:
            self.orders.pop(record.order, None)
            self.ended_at_ms = self.now_ms
        elif isinstance(record, Transfer):
            _, victim, serves = self.orders[record.order]
            self.orders[record.order] = (record.target, victim, serves)

    def reasons(self, blocked: ModeReason | None) -> dict[str, Waiting]:
        assert self.snapshot is not None
        open_orders = self.controller.ledger.open.values()
        return waiting_reasons(self.snapshot, self.settings, open_orders, self.controller.verdicts, blocked)


# --- the oracle ---------------------------------------------------------------------------------------


def lies(world: World, blocked: ModeReason | None = None) -> list[str]:
    """Return what is wrong with the reasons after a step: none if each is there once, and true."""
    snapshot = world.snapshot
    assert snapshot is not None
    found = world.reasons(blocked)
    waiting = {
        name for name, queue in ASKERS.items()
        for view in snapshot.applications
        if view.application == name and (view.requests or name in snapshot.left_out)
    }  # fmt: skip
    problems = [f"{name} waits: no reason" for name in waiting - set(found)]
    problems += [f"{name} does not wait: {found[name]}" for name in set(found) - waiting]
    for name in sorted(waiting & set(found)):
        if not sentence(found[name]):
            problems.append(f"{name}: an empty sentence")
        if story := lie(world, name, found[name], blocked):
            problems.append(f"{name}: {found[name].kind}: {story}")
    return problems


def lie(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    """Return why one reason is not true; "" if it is."""
    orders = [each for each in world.orders.values() if each[0] == name]
    containers = sum(serves for _, _, serves in orders)
    sources = tuple(sorted(Counter(victim for _, victim, _ in orders).items()))
    sends = not world.settings.observe_only
    if (waiting.kind == "ordered") != bool(containers and sends):
        return f"{containers} containers are ordered"
    if waiting.kind in ("ordered", "would-order"):
        why: Any = waiting.why
        return "" if (why.containers, why.sources) == (containers, sources) else f"orders {sources}"
    if waiting.kind in ("limit", "fits", "rejected") and world.decided is not None and not world.is_coming:
        is_placed = name in plainly_placed(world.decided)
        if is_placed != (waiting.kind == "fits") and not isinstance(waiting.why, AT_ONCE):
            return f"the plain placement says {is_placed}"
    return TRUTHS[waiting.kind](world, name, waiting, blocked)


AT_ONCE = demand.NotActivated | demand.NotModelled
"""Limits that are read from the newest snapshot, decided or not."""


def plainly_placed(snapshot: Snapshot) -> set[str]:
    """Return the applications with pending requests that all fit: placed one container at a time."""
    free = {node: left.vcores for node, left in snapshot.free_by_node.items()}
    used = {queue.queue: queue.used.vcores for queue in snapshot.queues}
    by_user: Counter[tuple[str, str]] = Counter()
    for view in snapshot.applications:
        by_user[view.queue, view.user] += view.used.vcores
    wait = [view for view in snapshot.applications if view.requests and view.activated]
    left = {view.application: view.requests[0].count for view in wait}
    line = sorted(wait, key=lambda view: (view.rank, view.application))
    while line:
        active = {view.queue for view in line}
        queue = min(
            (each for each in snapshot.queues if each.queue in active),
            key=lambda each: (Fraction(used[each.queue], each.guaranteed.vcores), -each.guaranteed.vcores),
        )
        view = next(each for each in line if each.queue == queue.queue)
        wanted, user = view.requests[0].size.vcores, (view.queue, view.user)
        nodes = [node for node in sorted(free) if free[node] >= wanted]
        limit = queue.user_limit.vcores if queue.user_limit is not None else by_user[user]
        if not nodes or used[queue.queue] + wanted > queue.maximum.vcores or by_user[user] > limit:
            line.remove(view)
            continue
        free[nodes[0]] -= wanted
        used[queue.queue] += wanted
        by_user[user] += wanted
        left[view.application] -= 1
        if not left[view.application]:
            line.remove(view)
    return {name for name, count in left.items() if not count}


def true_limit(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    """The snapshot says so: what is used and requested reaches the limit."""
    why = waiting.why
    if isinstance(why, demand.NotActivated):
        return "" if not _view(world.snapshot, name).activated else "it is activated"
    if isinstance(why, demand.NotModelled):
        snapshot = world.snapshot
        return "" if snapshot is not None and name in snapshot.left_out else "all is modelled"
    view, snapshot = _view(world.decided, name), world.decided
    assert snapshot is not None
    if isinstance(why, demand.NoNodeLargeEnough):
        return "" if view.requests[0].size.vcores > snapshot.largest_node.vcores else "a node is large enough"
    (queue,) = [each for each in snapshot.queues if each.queue == view.queue]
    same = [each for each in snapshot.applications if each.queue == view.queue and each.activated]
    if isinstance(why, demand.QueueAtMaximum):
        wanted = queue.used.vcores + sum(_pending(each) for each in same)
        return "" if wanted > queue.maximum.vcores else f"{wanted} fit below the maximum"
    mine = [each for each in same if each.user == view.user]
    held = sum(
        each.used.vcores
        for each in snapshot.applications
        if each.queue == view.queue and each.user == view.user
    )
    assert queue.user_limit is not None
    wanted = held + sum(map(_pending, mine))
    return "" if wanted > queue.user_limit.vcores else f"{wanted} fit below the user limit"


def true_not_acting(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    return "" if blocked is not None and waiting.why == blocked else "the daemon acts"


def true_awaited(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    """So many running tasks of research end within the time."""
    tasks = [one for row in world.decided_tasks.values() for one in row]
    soon = [one for one in tasks if 0 <= one.remaining_ms <= LEVERS.room_within_ms]
    assert isinstance(waiting.why, TasksEndSoon)
    is_mix = world.settings.levers is not None
    return "" if is_mix and 0 < waiting.why.tasks <= len(soon) else f"{len(soon)} tasks end in time"


def true_fits(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    """The plain placement leaves none of its requests, and the named nodes hold one of them."""
    assert isinstance(waiting.why, FitsNotGranted)
    view, snapshot = _view(world.decided, name), world.decided
    assert snapshot is not None
    fit = {
        node for node, free in snapshot.free_by_node.items() if free.vcores >= view.requests[0].size.vcores
    }
    if not set(waiting.why.nodes) <= fit or len(waiting.why.nodes) + waiting.why.more != len(fit):
        return f"it fits on {fit}"
    if not fit and not world.is_coming:
        return "nothing is free, and nothing is being freed"
    return ""


def true_rejected(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    """There is a shortage, and the counts are those of each application's tasks."""
    snapshot = world.decided
    assert snapshot is not None
    if isinstance(waiting.why, demand.NoQueueOverGuarantee):
        (research,) = [each for each in snapshot.queues if each.queue == "research"]
        over = research.used.vcores > research.guaranteed.vcores * 1.1
        return "research is over its guarantee" if over and not world.is_coming else ""
    if not waiting.causes:
        return "" if not isinstance(waiting.why, demand.NoTaskMayStop) else "no task is counted"
    sums: Counter[str] = Counter()
    for cause in waiting.causes:
        sums[cause.application] += cause.tasks
        view = _view(snapshot, cause.application)
        tasks = [one for one in world.decided_tasks[cause.application] if one.kind == cause.kind]
        if cause.why == "no-runner" and view.runner:
            return f"{view.application} is wrapped"
        if cause.why == "not-checkpointable" and cause.tasks > sum(not one.checkpointable for one in tasks):
            return f"more tasks of {view.application} can be suspended"
        if cause.why == "map" and cause.kind != "map":
            return "no map"
    for job, count in sums.items():
        most = _view(snapshot, job).containers - 1
        if count != most:
            return f"{count} tasks of {job}, it runs {most}"
    return ""


def true_next(world: World, name: str, waiting: Waiting, blocked: ModeReason | None) -> str:
    """It has no verdict, or its last order has ended since, or its requests were met by one."""
    verdict = world.controller.verdicts.get(name)
    found = None if verdict is None else verdict.found
    is_over = found == "ordered" or isinstance(found, demand.OnItsWay | AT_ONCE)
    return "" if found is None or is_over else "it is decided"


TRUTHS: Mapping[str, Callable[[World, str, Waiting, ModeReason | None], str]] = {
    "limit": true_limit, "not-acting": true_not_acting, "awaited": true_awaited, "fits": true_fits,
    "rejected": true_rejected, "next": true_next,
}  # fmt: skip


def _view(snapshot: Snapshot | None, name: str) -> ApplicationView:
    assert snapshot is not None
    return next(each for each in snapshot.applications if each.application == name)


def _pending(view: ApplicationView) -> int:
    return sum(request.count * request.size.vcores for request in view.requests)


# --- the tests ----------------------------------------------------------------------------------------


def found_lies(steps: int, kinds: Counter[str] | None = None, first: int = 1) -> list[str]:
    """Play random worlds for so many steps; return the first step's lies, with where they were told.

    ``first``: the number of the first world, its seed.
    """
    number, played = first - 1, 0
    while played < steps:
        number += 1
        world = World(f"why waiting {number}")
        for step, _ in zip(range(min(250, steps - played)), world.steps(), strict=False):
            played += 1
            blocked = PAUSED if world.chance.random() < 0.03 else None
            if problems := lies(world, blocked):
                return [f"world {number}, step {step}: {problem}" for problem in problems]
            if kinds is not None:
                kinds.update(each.kind for each in world.reasons(blocked).values())
    return []


def test_each_waiting_application_has_exactly_one_reason_and_it_is_true() -> None:
    kinds: Counter[str] = Counter()
    assert found_lies(STEPS, kinds) == []
    assert min(kinds[kind] for kind in get_args(WaitingKind)) >= 20, kinds


def watch(view: View, controller: Controller, tally: Counter[str]) -> None:
    """Check one published view of the emulator: one reason each, as the view's own lists say."""
    snapshot, settings = view.snapshot, view.settings
    if snapshot is None:
        return
    known = {each.application: each for each in snapshot.applications}
    preempting = [each for each in known.values() if each.queue in settings.preempting_queues]
    asks = {each.application for each in preempting if each.requests}
    assert set(view.waiting) == asks | {
        each.application for each in preempting if each.application in snapshot.left_out
    }
    opened: Counter[str] = Counter()
    for entry in view.entries:
        if entry.state in OPEN:
            opened[entry.requester] += entry.serves
    for name, waiting in view.waiting.items():
        tally[waiting.kind] += 1
        assert (waiting.kind in ("ordered", "would-order")) == bool(opened[name]), (name, waiting)
        if isinstance(waiting.why, ContainersOrdered):
            assert waiting.why.containers == opened[name]
        sums: Counter[str] = Counter()
        for cause in waiting.causes:
            sums[cause.application] += cause.tasks
        for job, count in sums.items():
            assert count == _view(controller.verdicts[name].snapshot, job).containers - 1, (job, waiting)


@pytest.mark.parametrize(
    "drawn", [spark_scenarios(), *more((scenarios(("natjam",), faulty=True), mix_scenarios()))]
)
def test_every_view_of_the_emulator_has_one_true_reason_each(drawn: SearchStrategy[Scenario]) -> None:
    tally: Counter[str] = Counter()

    @seed(42)
    @hypothesis_settings(
        max_examples=examples(60),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(drawn)
    def played(scenario: Scenario) -> None:
        def look(view: View) -> None:
            assert run.controller is not None
            watch(view, run.controller, tally)

        run = PublishedRun(look, *scenario)
        run.go(until_ms=UNTIL_MS)

    played()
    assert tally["ordered"], tally


def instead(kind: str, lie: Waiting) -> Callable[..., Waiting]:
    """Return a lie that is told where another kind of reason is true."""

    def told(*given: Any) -> Waiting:
        true = REASON(*given)
        return lie if true.kind == kind else true

    return told


def one_task_too_many(self: WaitingVerdict) -> tuple[Cause, ...]:
    return tuple(each._replace(tasks=each.tasks + 1) for each in CAUSES(self))


REASON, CAUSES = why_waiting._reason, vars(WaitingVerdict)["causes"].func
LIES: dict[str, tuple[object, str, object]] = {
    "ordered without an order": (
        why_waiting, "_reason", instead("rejected", Waiting("ordered", ContainersOrdered(1, (("r1", 1),))))
    ),
    "fits where nothing is free": (
        why_waiting, "_reason", instead("rejected", Waiting("fits", FitsNotGranted(1, ("n1",))))
    ),
    "rejected where it fits": (
        why_waiting, "_reason", instead("fits", Waiting("rejected", demand.NoQueueOverGuarantee()))
    ),
    "a limit that does not bind": (
        why_waiting, "_reason", instead("rejected", Waiting("limit", demand.QueueAtMaximum()))
    ),
    "next where it is decided": (why_waiting, "_reason", instead("rejected", Waiting("next", DecidedNext()))),
    "one task too many": (WaitingVerdict, "causes", property(one_task_too_many)),
    "not acting where it acts": (
        why_waiting, "_reason", instead("rejected", Waiting("not-acting", PAUSED))
    ),
    "would order without an order": (
        why_waiting, "_reason", instead("rejected", Waiting("would-order", WouldOrder(1, (("r1", 1),))))
    ),
    "awaited where no task ends": (
        why_waiting, "_reason", instead("rejected", Waiting("awaited", TasksEndSoon(99)))
    ),
    "activated applications only": (why_waiting, "is_waiting", lambda view, *_: view.activated),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_planted_lie_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*LIES[name])
    assert found_lies(2_000)
