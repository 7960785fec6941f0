"""The mix: the cheapest levers that give room in time.

Law: ``choose_mix`` is a function, and a task that is neither picked, awaited, shown nor compared changes
nothing in its choice: so the journal holds these alone. For each ask, among levers that give room within
``room_within_ms``: the least lost work, then the least overhead, then the paper's job and task policies, then
the attempt. A whole ask is met on one node; several small containers of a node are combined so that their sum
is the least (exactly, for up to ``EXACT_MAX`` of them). What a budget does not allow is left out by name. A
task that ends by itself in time is awaited: no order, but its room counts as coming until the instant that
was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import NamedTuple

from yarnctl.deciding.case import Candidate, Case, Choice, Pick, RefusedJob, RefusedTask
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.levers import AwaitedTask, Lever, LeverPull, levers_of
from yarnctl.deciding.loss_budget import CHARGED, LossLeft, charged_ms, task_of
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.releaser import Reason, objections
from yarnctl.deciding.settings import LeverSettings, Settings
from yarnctl.units import NOTHING, Resources, fits, minus, plus

EXACT_MAX = 14
"""So many containers of a node, the cheapest of them, are combined in every way."""

OF_SUSPENDING = ("", "map", "not-checkpointable", "task-budget", "just-resumed", "remaining-unknown", "cost")
"""Objections to a suspension alone: other levers may be left."""

Cost = tuple[int, int]
"""Lost work and overhead, in ms."""


class MixInput(NamedTuple):
    """What a mix needs beside a case: what may be lost, and until when the ends of tasks were promised."""

    left: LossLeft
    awaited_until_ms: Mapping[str, int]
    queue_and_user: Mapping[str, tuple[str, str]]


class Option(NamedTuple):
    """A task and its cheapest lever; options sort by cost, the policies' keys, and the attempt."""

    cost: Cost
    job_key: tuple[int, ...]
    task_key: tuple[int, ...]
    attempt: str
    job: int
    task: TaskView
    lever: Lever


class Mixing:
    """The working state of one choice. Nothing of it outlives :func:`choose_mix`."""

    def __init__(self, case: Case, settings: Settings, given: MixInput) -> None:
        assert isinstance(settings.levers, LeverSettings)
        self.case, self.settings, self.rules, self.given = case, settings, settings.levers, given
        self.left = given.left.copy()
        self.taken = [0] * len(case.jobs)
        self.room: dict[str, Resources] = {}
        self.used: set[str] = set()
        self.picks: list[tuple[Option, Resources, int]] = []
        self.last_on: dict[str, tuple[bool, int]] = {}
        """Node -> whether the option that completed its last room is a pick, and its place."""
        self.awaited: list[tuple[Option, int]] = []
        self.passed: list[tuple[TaskView, int, Reason]] = []
        self.compared: dict[str, None] = {}
        self.options: list[Option] = []
        self._by_node: dict[str, list[Option]] | None = None
        self._next = 0

    # --- which tasks have which lever ---------------------------------------------------------------

    def observe(self) -> tuple[str, ...]:
        """Make the options of all jobs, cheapest first; return the jobs whose tasks are not known yet."""
        missing = []
        ranked = sorted(range(len(self.case.jobs)), key=lambda index: (self._job_key(index), index))
        for index in ranked[: self.rules.jobs_max]:
            job = self.case.jobs[index]
            name = job.usage.application
            if name in self.case.closed or job.usage.releasable <= 0:
                continue
            if name not in self.case.tasks:
                missing.append(name)
                continue
            self._add(index, job, self.case.tasks[name])
        self.options.sort(key=_sorted_by)
        return tuple(missing)

    def _job_key(self, index: int) -> tuple[int, ...]:
        policy = JOB_POLICIES.get(self.settings.job_policy) or COMPARED_JOB_POLICIES[self.settings.job_policy]
        usage = self.case.jobs[index].usage
        seed, number = self.settings.seed, self.case.number
        draw = uniform(seed, number, named(usage.application), 0) if policy.draws else 0
        return policy.key(usage, self.case.now_ms, draw)

    def _add(self, index: int, job: Candidate, tasks: Iterable[TaskView]) -> None:
        now_ms, job_key = self.case.now_ms, self._job_key(index)
        objection = objections(now_ms, self.settings, self.case.barred, self.case.reserved)
        policy = TASK_POLICIES[self.settings.task_policy]
        for task in tasks:
            found = self._cheapest(task, objection(task))
            if not isinstance(found, Lever):
                if found != "am":
                    self.passed.append((task, index, found))
                continue
            seed, number = self.settings.seed, self.case.number
            draw = uniform(seed, number, named(task.attempt)) if policy.draws else 0
            key = policy.key(task, now_ms, draw)
            self.options.append(
                Option((found.lost_ms, found.overhead_ms), job_key, key, task.attempt, index, task, found)
            )

    def _cheapest(self, task: TaskView, why: Reason) -> Lever | Reason:
        """Return a task's cheapest lever that gives room in time, or why it has none."""
        if why not in OF_SUSPENDING:
            return why  # the master, under order, tried in vain, or room for somebody else
        if why == "just-resumed":  # what another suspension costs is compared; ``task_suspensions_max`` holds
            why = ""
            if self.settings.cost_guard and task.remaining_ms <= task.return_cost_ms:
                why = "cost" if task.remaining_ms >= 0 else "remaining-unknown"
        best: Lever | None = None
        until_ms = self.given.awaited_until_ms.get(task.attempt, -1)
        for lever in levers_of(task, self.case.now_ms, self.rules, until_ms):
            if lever.room_in_ms > self.rules.room_within_ms or (lever.kind == "suspend" and why):
                continue
            if lever.kind == "kill" and not self.rules.may_lose_ratio:
                why = "map"
                continue
            if lever.kind == "kill" and task_of(task.attempt) in self.given.left.killed:
                why = "killed-lately"
                continue
            if best is None or (lever.lost_ms, lever.overhead_ms) < (best.lost_ms, best.overhead_ms):
                best = lever
        return best if best is not None else why or "not-in-time"

    # --- meeting asks -------------------------------------------------------------------------------

    def meet(self, size: Resources, wanted: int) -> int:
        """Meet as many of ``wanted`` asks of one size as there are levers for; return how many are unmet."""
        wanted = self._from_room(size, wanted)
        combines = any(not fits(size, option.task.size) for option in self.options)
        self._next = 0
        while wanted:
            found = self._single(size)
            if combines:
                group = self._group(size)
                if group and (not found or _cost_of(group) < _cost_of(found)):
                    found = group
            if not found:
                return wanted
            self._use(found, size)
            wanted = self._from_room(size, wanted - 1)
        return 0

    def _single(self, size: Resources) -> list[Option]:
        """Return the cheapest option whose container alone is large enough."""
        options, place = self.options, self._next
        while place < len(options):
            option = options[place]
            if not fits(size, option.task.size) or option.attempt in self.used:
                place += 1
                continue
            if self._allowed((option,)):
                self._next = place
                return [option]
            place += 1
        self._next = place
        return []

    def _group(self, size: Resources) -> list[Option]:
        """Return the cheapest combination of small containers of one node."""
        if self._by_node is None:
            self._by_node = {}
            for option in self.options:
                self._by_node.setdefault(option.task.node, []).append(option)
        best: list[Option] = []
        for node, options in self._by_node.items():
            free = [each for each in options if each.attempt not in self.used and self._allowed((each,))]
            room = self.room.get(node, self.case.room.get(node, NOTHING))
            found = cheapest_cover(size, room, free, self._allowed)
            if len(free) > EXACT_MAX:
                self.compare(free)
            if found and (not best or _group_key(found) < _group_key(best)):
                best = found
        return best

    def compare(self, options: Iterable[Option]) -> None:
        """Note options of which not all were combined: without one of them others would have been."""
        self.compared.update((option.attempt, None) for option in options)

    def _allowed(self, options: Iterable[Option]) -> bool:
        """Return whether budgets allow these: of lost work, and of a job's containers under order."""
        options = list(options)
        if self._twice(options):
            return False
        more: dict[int, int] = {}
        for option in options:
            if option.lever.kind != "wait":
                more[option.job] = more.get(option.job, 0) + 1
        for index, count in more.items():
            job = self.case.jobs[index]
            if self.taken[index] + count > job.usage.releasable:
                return False
        return self.left.allows(
            (self._payer(option)[0], option.lever.kind, charged_ms(option.lever) * option.task.size[0])
            for option in options
            if option.lever.kind in CHARGED
        )

    def _twice(self, options: Iterable[Option]) -> bool:
        """Return whether another attempt of one of these tasks was killed already, or is by this choice."""
        these: set[str] = set()
        for option in options:
            if option.lever.kind == "kill":
                task = task_of(option.attempt)
                if task in self.left.killed or task in these:
                    return True
                these.add(task)
        return False

    def _payer(self, option: Option) -> tuple[str, str]:
        return self.given.queue_and_user[self.case.jobs[option.job].usage.application]

    def _use(self, options: list[Option], size: Resources) -> None:
        """Take these options: the last of a node completes the room."""
        node = options[0].task.node
        room = self.room.get(node, self.case.room.get(node, NOTHING))
        for option in options:
            room = plus(room, option.task.size)
            self.used.add(option.attempt)
            if option.lever.kind == "wait":
                continue
            self.taken[option.job] += 1
            if option.lever.kind in CHARGED:
                amount = charged_ms(option.lever) * option.task.size[0]
                self.left.take(self._payer(option)[0], option.lever.kind, amount, task_of(option.attempt))
        self.room[node] = minus(room, size)
        ordered = [option for option in options if option.lever.kind != "wait"]
        for place, option in enumerate(ordered):
            self.picks.append((option, size, int(place == len(ordered) - 1)))
        waits = [option for option in options if option.lever.kind == "wait"]
        for place, option in enumerate(waits):
            self.awaited.append((option, int(not ordered and place == len(waits) - 1)))
        self.last_on[node] = (bool(ordered), len(self.picks if ordered else self.awaited) - 1)

    def _from_room(self, size: Resources, wanted: int) -> int:
        """Meet asks from room that earlier options leave over (a larger container than was asked)."""
        for node in self.room:
            while wanted and fits(size, self.room[node]):
                self.room[node] = minus(self.room[node], size)
                is_pick, place = self.last_on[node]
                if is_pick:
                    option, ask, serves = self.picks[place]
                    self.picks[place] = (option, ask, serves + 1)
                else:
                    awaited, serves = self.awaited[place]
                    self.awaited[place] = (awaited, serves + 1)
                wanted -= 1
        return wanted


OptionKey = tuple[Cost, tuple[int, ...], tuple[int, ...], str]


def _sorted_by(option: Option) -> OptionKey:
    return option[:4]


def _cost_of(options: Iterable[Option]) -> Cost:
    lost_ms = overhead_ms = 0
    for option in options:
        lost_ms += option.cost[0]
        overhead_ms += option.cost[1]
    return lost_ms, overhead_ms


def _group_key(options: list[Option]) -> tuple[Cost, int, list[OptionKey]]:
    return _cost_of(options), len(options), [_sorted_by(option) for option in options]


def cheapest_cover(
    size: Resources, room: Resources, options: list[Option], allowed: Callable[[list[Option]], bool]
) -> list[Option]:
    """Return the options of a node whose containers, with its free ``room``, make up ``size`` at least cost.

    Empty: none do. The least lost work in sum, then overhead, then the fewest, then their order. Where the
    ``EXACT_MAX`` cheapest do not suffice, the cheapest that do, one after the other, less those not needed.
    """
    options = sorted(options, key=_sorted_by)
    tried = options[:EXACT_MAX]
    suffix = [NOTHING]
    for option in reversed(tried):
        suffix.append(plus(suffix[-1], option.task.size))
    suffix.reverse()
    best: list[Option] = []

    def extend(place: int, have: Resources, chosen: list[Option]) -> None:
        nonlocal best
        if fits(size, have):
            if (not best or _group_key(chosen) < _group_key(best)) and allowed(chosen):
                best = list(chosen)
            return
        if place == len(tried) or not fits(size, plus(have, suffix[place])):
            return
        if best and _cost_of(chosen) > _cost_of(best):
            return
        extend(place + 1, plus(have, tried[place].task.size), [*chosen, tried[place]])
        extend(place + 1, have, chosen)

    extend(0, room, [])
    if best or len(options) <= EXACT_MAX:
        return best
    return _one_after_the_other(size, room, options, allowed)


def _one_after_the_other(
    size: Resources, room: Resources, options: list[Option], allowed: Callable[[list[Option]], bool]
) -> list[Option]:
    """Return the cheapest options that are allowed together until they suffice, less those not needed."""
    chosen: list[Option] = []
    have = room
    for option in options:
        if fits(size, have):
            break
        if allowed([*chosen, option]):
            chosen.append(option)
            have = plus(have, option.task.size)
    if not fits(size, have):
        return []
    for option in reversed(chosen.copy()):
        less = minus(have, option.task.size)
        if fits(size, less):
            chosen.remove(option)
            have = less
    return chosen


# --- the result -------------------------------------------------------------------------------------


def choose_mix(case: Case, settings: Settings, given: MixInput) -> Choice:
    """Choose levers for ``case.needs``, in order: the least lost work, then the least overhead."""
    mixing = Mixing(case, settings, given)
    missing = mixing.observe()
    if missing:
        return Choice((), (), sum(need.containers for need in case.needs), (), (), missing, missing)
    unmet = sum(mixing.meet(*need) for need in case.needs)
    return Choice(
        picks=tuple(_pick(case, option, ask, serves) for option, ask, serves in mixing.picks),
        handed_back=(),
        unmet=unmet,
        refused_jobs=tuple(_closed(case, mixing)),
        refused_tasks=tuple(_refused(case, mixing, settings.refused_shown)),
        hit=tuple(dict.fromkeys(_name(case, option.job) for option, _, _ in mixing.picks)),
        room=mixing.room,
        pulls=tuple(LeverPull(option.lever, *mixing._payer(option)) for option, _, _ in mixing.picks),
        awaited=tuple(_awaited(case, given, option, serves) for option, serves in mixing.awaited),
        compared=tuple(mixing.compared),
    )


def _name(case: Case, job: int) -> str:
    return case.jobs[job].usage.application


def _pick(case: Case, option: Option, ask: Resources, serves: int) -> Pick:
    return Pick(_name(case, option.job), option.task, option.job_key, option.task_key, ask, serves)


def _awaited(case: Case, given: MixInput, option: Option, serves: int) -> AwaitedTask:
    until_ms = given.awaited_until_ms.get(option.attempt, case.now_ms + option.lever.room_in_ms)
    return AwaitedTask(_name(case, option.job), option.task.container, option.lever, until_ms, serves)


def _closed(case: Case, mixing: Mixing) -> Iterator[RefusedJob]:
    """Name the first few jobs that are excluded."""
    shown = [index for index, job in enumerate(case.jobs) if job.usage.application in case.closed]
    for index in shown[: mixing.settings.refused_shown]:
        name = _name(case, index)
        yield RefusedJob(name, mixing._job_key(index), case.closed[name])


def _refused(case: Case, mixing: Mixing, shown: int) -> Iterator[RefusedTask]:
    """Name the next few options by cost, then the first few tasks without a lever, by attempt."""
    following = [option for option in mixing.options if option.attempt not in mixing.used]
    for option in following[:shown]:
        why: Reason = "next" if mixing._allowed((option,)) else "loss-budget"
        if mixing._twice((option,)):
            why = "killed-lately"
        task = option.task
        yield RefusedTask(
            _name(case, option.job), task.attempt, option.task_key, why, task.container, task.node
        )
    for task, index, reason in nsmallest(shown, mixing.passed, key=lambda each: each[0].attempt):
        yield RefusedTask(_name(case, index), task.attempt, (), reason, task.container, task.node)
