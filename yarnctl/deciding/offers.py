"""Offers: the tasks of all jobs with their levers, the cheapest first, as far as they are needed.

Law: the order is that of all tasks sorted by (cost, the policies' keys, attempt), whatever is looked at
first. A task is looked at when it may be the next: for each a cost is known that it cannot fall below. What
was looked at and has no lever is in ``passed``; after the last offer that is every such task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace, nsmallest
from itertools import count
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from yarnctl.deciding.case import Case, Choice
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.levers import LEAVING, NONE_LATE, Lever, LeverKind, kills_max, levers_of
from yarnctl.deciding.loss_budget import NO_CONSENTS, LossLeft, task_of
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies import (
    COMPARED_JOB_POLICIES,
    FOREVER_MS,
    JOB_POLICIES,
    TASK_POLICIES,
    JobPolicy,
)
from yarnctl.deciding.reasons.demand import SuspensionsFail
from yarnctl.deciding.releaser import Reason, objections
from yarnctl.deciding.settings import LeverSettings, Settings
from yarnctl.deciding.waiting_worth import hold_ms

OF_SUSPENDING = ("", "map", "not-checkpointable", "task-budget", "just-resumed", "remaining-unknown", "cost")
"""Objections to a suspension alone: other levers may be left."""

Cost = tuple[int, int]
"""Lost work (also that of earlier kills of the task) and overhead, in ms. Where a second has a price: what a
lever costs in all, and its lost work alone."""

_LOST = 1 << 44
"""A bound as one number: lost work times this, and overhead (which is less: ten years are below it)."""

_NEVER = _LOST * _LOST

_KIND, _REMAINING_MS, _SINCE_MS = itemgetter(4), itemgetter(5), itemgetter(7)
"""Columns of tasks: no code of Python runs for each of them."""

_FIRST = -FOREVER_MS - 1
"""Comes before every task's key."""

_Line = list[tuple[int, int, int]]
"""What tasks of a job cost at the least, their keys as far as known, and their places: a heap."""

_Head = tuple[int, tuple[int, ...], int, int]
"""What may come next of a job: the least cost, the job's key, the task's key as far as known, the job."""

NoLever = tuple[TaskView, int, Reason]
"""A task, its job, and why it has no lever."""

NO_GROUPS: Mapping[str, int] = MappingProxyType({})


class MixInput(NamedTuple):
    """What a mix needs beside a case: what may be lost, and until when the ends of tasks were promised.

    ``queue_and_user``: whose budgets an application's losses use (a tagged job has its id for the queue).
    ``may_lose``: by that first name, where the part that may be lost differs from the settings'.
    ``rules``: the settings of levers with spans as observed (None: those of the settings).
    ``late_ms``: by kind, how much longer levers take than those settings and their tasks say.
    ``group_ms``: by attempt, how long it works on one key group.
    ``trials``: how many containers may be freed by suspensions (None: any number);
    ``stopped``: the last stop.
    """

    left: LossLeft
    awaited_until_ms: Mapping[str, int]
    queue_and_user: Mapping[str, tuple[str, str]]
    may_lose: Mapping[str, float] = NO_CONSENTS
    rules: LeverSettings | None = None
    late_ms: Mapping[LeverKind, int] = NONE_LATE
    group_ms: Mapping[str, int] = NO_GROUPS
    trials: int | None = None
    stopped: SuspensionsFail | None = None

    def after(self, choice: Choice) -> MixInput:
        """Return what is left after a choice."""
        self.left.use(choice.pulls, choice.picks)
        tried = self.trials is not None and any(pull.lever.kind == "suspend" for pull in choice.pulls)
        return self._replace(trials=0) if tried else self


class Option(NamedTuple):
    """A task and a lever of it; options sort by cost, the policies' keys, and the attempt."""

    cost: Cost
    job_key: tuple[int, ...]
    task_key: tuple[int, ...]
    attempt: str
    job: int
    task: TaskView
    lever: Lever


class LeverOffers:
    """``offered``: the cheapest options so far, in order. ``missing``: jobs with unknown tasks."""

    def __init__(self, case: Case, settings: Settings, mix_input: MixInput) -> None:
        assert settings.levers is not None
        self.case, self.settings, self.given = case, settings, mix_input
        self.rules = mix_input.rules or settings.levers
        self.offered: list[Option] = []
        self.passed: list[NoLever] = []
        self._objection = objections(case.now_ms, settings, case.barred, case.reserved)
        self._ready: list[tuple[int, Option]] = []
        self._lines: dict[int, tuple[tuple[TaskView, ...], _Line]] = {}
        self._may_lose = self.rules.may_lose_ratio > 0 or any(mix_input.may_lose.values())
        self._near_ms = self.rules.room_within_ms - self.rules.leave_ms
        self._second = second = case.second
        self._leave_price_ms = second.of(self.rules.leave_ms)
        self._suspend_price_ms = second.of(self.rules.suspend_ms)
        end_ms = max(0, self.rules.leave_ms + mix_input.late_ms.get("end", 0))
        self._least_price_ms = min(self._leave_price_ms, self._suspend_price_ms, second.of(end_ms))
        self._kills_max = kills_max(self.rules)
        self.keys = self._job_keys()
        self._task_policy = TASK_POLICIES[settings.task_policy]
        self._heads: list[_Head] = []
        self._least_ms: dict[int, int] = {}
        self._prices = self._pricing()
        self.missing = self._begin()
        heapify(self._heads)

    def _job_keys(self) -> list[tuple[int, ...]]:
        name, jobs = self.settings.job_policy, self.case.jobs
        policy: JobPolicy = JOB_POLICIES.get(name) or COMPARED_JOB_POLICIES[name]
        if policy.share_sign:
            sign = policy.share_sign
            return [(sign * job[0][1],) for job in jobs]
        seed, number, now_ms = self.settings.seed, self.case.number, self.case.now_ms
        draws = [
            uniform(seed, number, named(job.usage.application), 0) if policy.draws else 0 for job in jobs
        ]
        return [policy.key(job.usage, now_ms, draw) for job, draw in zip(jobs, draws, strict=True)]

    def _begin(self) -> tuple[str, ...]:
        """Find what the tasks of each job cost at the least.

        A task by position: remaining (5), kind (4), cost of coming back (6), since (7). It is read for every
        task of the cluster, so nothing else is, and no number is made.
        """
        case, keys, now_ms, near_ms = self.case, self.keys, self.case.now_ms, self._near_ms
        most, of_maps, missing = self.rules.jobs_max, _LOST, []
        may_lose, prices = self._may_lose, self._prices
        ranked = range(len(keys))
        for index in ranked if len(keys) <= most else sorted(ranked, key=lambda job: (keys[job], job))[:most]:
            usage = case.jobs[index][0]
            name = usage.application
            if usage.releasable <= 0 or name in case.closed:
                continue
            tasks = case.tasks.get(name)
            if tasks is None:
                missing.append(name)
                continue
            if not tasks:
                least = _NEVER
            elif self._second.parts:
                self._least_ms[index] = least_ms = min(prices(tasks, usage.releasable))
                least = least_ms * _LOST
            elif min(map(_REMAINING_MS, tasks)) <= near_ms:
                least = 0
            elif (last_ms := max(map(_SINCE_MS, tasks))) >= now_ms or "reduce" in map(_KIND, tasks):
                least = min([t[6] if t[4] == "reduce" or t[7] >= now_ms else of_maps for t in tasks])
            else:
                least = (now_ms - last_ms) * of_maps if may_lose else _NEVER
            self._heads.append((least, keys[index], _FIRST, index))
        return tuple(missing)

    def _bounds(self, tasks: tuple[TaskView, ...], index: int) -> list[int]:
        """Return what each task costs at the least: nothing if it may be awaited, else by its kind."""
        now_ms, near_ms = self.case.now_ms, self._near_ms
        if self._second.parts:
            return [bound * _LOST for bound in self._prices(tasks, self.case.jobs[index].usage.releasable)]
        if not self._may_lose:
            return [
                0 if t[5] <= near_ms else t[6] if t[4] == "reduce" or t[7] >= now_ms else _NEVER
                for t in tasks
            ]
        return [
            0
            if t[5] <= near_ms
            else t[6]
            if t[4] == "reduce" or t[7] >= now_ms
            else (now_ms - t[7]) * _LOST + t[6]
            for t in tasks
        ]

    def _pricing(self) -> Callable[[tuple[TaskView, ...], int], list[int]]:
        """Return the function that bounds what tasks of a job cost where a second has a price, in ms.

        Of a map without earlier losses that is the price of killing it. ``running``: the job's tasks.
        """
        now_ms, near_ms, may_lose = self.case.now_ms, self._near_ms, self._may_lose
        leave_ms, suspend_ms = self._leave_price_ms, self._suspend_price_ms
        least_ms = self._least_price_ms

        def prices(tasks: tuple[TaskView, ...], running: int) -> list[int]:
            hold = hold_ms(running)
            kill_ms, fetching_ms, reducing_ms = leave_ms + hold, least_ms + hold, suspend_ms + hold
            begun_ms = now_ms + kill_ms
            found = [
                0
                if t[5] <= near_ms
                else t[6] + (begun_ms - t[7] if t[7] < now_ms else kill_ms)
                if t[4] == "map"
                else t[6] + (reducing_ms if t[7] < now_ms else fetching_ms)
                if t[4] == "reduce"
                else t[6] + max(0, now_ms - t[7])
                for t in tasks
            ]
            if may_lose:
                return found
            return [
                _NEVER if price and t[4] != "reduce" and t[7] < now_ms else price
                for t, price in zip(tasks, found, strict=True)
            ]

        return prices

    # --- one after the other ------------------------------------------------------------------------

    def at(self, place: int) -> Option | None:
        """Return the option of that place in the order (from 0); None: there are not so many."""
        while len(self.offered) <= place:
            if not self._offer():
                return None
        return self.offered[place]

    def _offer(self) -> bool:
        """Look at every task that may come before the next option, and offer that."""
        heads, ready = self._heads, self._ready
        while heads and (not ready or _comes_before(heads[0], ready[0])):
            self._look(heads[0])
        if not ready:
            return False
        self.offered.append(heappop(ready)[1])
        return True

    def _look(self, head: _Head) -> None:
        """Look at the next task of the job at the head; the first time, put its tasks in order."""
        _, job_key, task_key, index = head
        if task_key == _FIRST:
            tasks = self.case.tasks[self.case.jobs[index].usage.application]
            line = list(zip(self._bounds(tasks, index), self._known_keys(tasks), count()))
            heapify(line)
            self._lines[index] = (tasks, line)
        else:
            tasks, line = self._lines[index]
            self._add(index, tasks[heappop(line)[2]])
        if line:
            bound, known, _ = line[0]
            heapreplace(self._heads, (bound, job_key, known, index))
        else:
            heappop(self._heads)

    def without_lever(self, most: int) -> list[NoLever]:
        """Return the first ``most``, by attempt, of the tasks without a lever before the last offer.

        A task without a lever has no cost. Where a second has a price, its place is that of its work and of
        the wait for the fastest lever, and the offers have not looked at all of these.
        """
        found = nsmallest(most, self.passed, key=_attempt_of)
        if not (self._second.parts and self._heads and self.offered and most):
            return found
        last, now_ms, near_ms = self.offered[-1], self.case.now_ms, self._near_ms
        looked_at = {each.attempt for each in (*self.offered, *(option for _, option in self._ready))}
        looked_at |= {task.attempt for task, _, _ in self.passed}
        leave_ms, suspend_ms = self._leave_price_ms, self._suspend_price_ms
        wait_ms = self._least_price_ms
        work_ms = last.cost[0] - wait_ms
        for index, least_ms in self._least_ms.items():
            usage = self.case.jobs[index].usage
            tasks, hold = self.case.tasks[usage.application], hold_ms(usage.releasable)
            if least_ms > work_ms + max(leave_ms, suspend_ms) + hold:
                continue
            if len(found) == most:
                before = _attempt_of(found[-1])
                tasks = tuple(task for task in tasks if task[0] < before)
            for task in [
                t
                for t in tasks
                if t[6] + (0 if t[4] == "reduce" or t[7] >= now_ms else now_ms - t[7]) <= work_ms
                or t[4] in LEAVING
            ]:
                if task[5] <= near_ms or task[0] in looked_at or self._is_killable(task, index):
                    continue
                worked_ms = 0 if task[4] == "reduce" else max(0, now_ms - task[7])
                if task[4] == "am" or (worked_ms and not self._may_lose):
                    continue
                bound = worked_ms + task[6] + (0 if task[4] in LEAVING else wait_ms)
                head = bound * _LOST, self.keys[index], self._known_keys((task,))[0], index
                if _comes_before(head, (_number(last.cost), last)):
                    why = self._levers(task, self._objection(task), index)
                    if isinstance(why, str):
                        found = nsmallest(most, [*found, (task, index, why)], key=_attempt_of)
        return found

    def _is_killable(self, task: TaskView, index: int) -> bool:
        """Return whether it is plain that a map has a lever: a kill, which costs no more than the wait."""
        if task[4] != "map" or self.given.left.killed or self._no_loss(index):
            return False
        leave_ms, running = self.rules.leave_ms, self.case.jobs[index].usage.releasable
        price_ms = max(0, self.case.now_ms - task[7]) + task[6] + self._leave_price_ms + hold_ms(running)
        return (
            leave_ms <= self.rules.room_within_ms
            and price_ms <= self._second.of(task[5] + leave_ms)
            and self._objection(task) in ("", "map")
        )

    def _known_keys(self, tasks: Sequence[TaskView]) -> list[int]:
        """Return what each task's key cannot be below, as far as it is known without a draw."""
        sign = self._task_policy.remaining_sign
        if not sign:
            return [_FIRST + 1] * len(tasks)
        return [sign * (t[5] if t[5] >= 0 else FOREVER_MS) for t in tasks]

    def _add(self, index: int, task: TaskView) -> None:
        found = self._levers(task, self._objection(task), index)
        if isinstance(found, str):
            if found != "am":
                self.passed.append((task, index, found))
            return
        policy, draw = self._task_policy, 0
        if policy.draws:
            draw = uniform(self.settings.seed, self.case.number, named(task.attempt))
        key = policy.key(task, self.case.now_ms, draw)
        for cost, lever in found:
            option = Option(cost, self.keys[index], key, task.attempt, index, task, lever)
            heappush(self._ready, (_number(cost), option))

    def _cost(self, lever: Lever, index: int) -> Cost:
        lost_ms = lever.lost_ms
        if lever.kind == "kill" and (before := self.given.left.killed.get(task_of(lever.unit))):
            lost_ms += before.lost_ms
        if not self._second.parts:
            return lost_ms, lever.overhead_ms
        if lever.kind == "drain" and not lever.lost_ms and not lever.overhead_ms:
            return 0, 0  # an idle executor comes first: it is in time, and its application ends no later
        cost_ms = lost_ms + lever.overhead_ms + self._second.of(lever.free_in_ms)
        if lever.kind != "wait":
            cost_ms += hold_ms(self.case.jobs[index].usage.releasable)
        return cost_ms, lost_ms

    def _is_worth(self, lever: Lever, cost: Cost, task: TaskView) -> bool:
        """Return whether a lever costs no more than to wait until its task ends by itself."""
        if not self._second.parts or task.remaining_ms < 0 or task.kind in LEAVING:
            return True
        if lever.kind in ("wait", "end"):
            return True
        return cost[0] <= self._second.of(task.remaining_ms + self.rules.leave_ms)

    def _no_loss(self, index: int) -> Reason:
        """Return why no map of a job may be killed at all; "": some may."""
        name = self.case.jobs[index][0][0]
        owner = self.given.queue_and_user[name][0]
        if self.given.may_lose.get(owner, self.rules.may_lose_ratio):
            return ""
        return "job-loss-budget" if owner == name else "map"

    def _levers(self, task: TaskView, reason: Reason, index: int) -> list[tuple[Cost, Lever]] | Reason:
        """Return a task's levers that free a container in time, with their costs, or why it has none.

        Its own end is always allowed, so of other levers only a cheaper one is offered beside it.
        """
        if reason not in OF_SUSPENDING:
            return reason  # the master, under order, tried in vain, or for another application
        if (
            reason == "just-resumed"
        ):  # what another suspension costs is compared; ``task_suspensions_max`` holds
            reason = ""
            if self.settings.cost_guard and task.remaining_ms <= task.resume_cost_ms:
                reason = "cost" if task.remaining_ms >= 0 else "remaining-unknown"
        if reason == "cost" and self._second.parts:
            reason = ""  # what waits is compared, too
        found: list[tuple[Cost, Lever]] = []
        until_ms = self.given.awaited_until_ms.get(task.attempt, -1)
        group_ms, late_ms = self.given.group_ms.get(task.attempt, 0), self.given.late_ms
        for lever in levers_of(task, self.case.now_ms, self.rules, until_ms, late_ms, group_ms):
            if lever.free_in_ms > self.rules.room_within_ms or (lever.kind == "suspend" and reason):
                continue
            if lever.kind == "suspend" and self.given.trials == 0:
                reason = "on-trial"
                continue
            if lever.kind == "kill" and (no := self._no_loss(index)):
                reason = no
                continue
            if lever.kind == "kill" and not self.given.left.may_kill(task_of(task.attempt), self._kills_max):
                reason = "killed-lately"
                continue
            cost = self._cost(lever, index)
            if not self._is_worth(lever, cost, task):
                reason = "not-worth"
                continue
            if not found or cost < found[0][0]:
                found.append((cost, lever))
        return found or reason or "not-in-time"


def _number(cost: Cost) -> int:
    return cost[0] * _LOST + cost[1]


def _attempt_of(passed: NoLever) -> str:
    return passed[0].attempt


def _comes_before(head: _Head, ready: tuple[int, Option]) -> bool:
    """Return whether the task at the head of a job may come before an option."""
    if head[0] != ready[0]:
        return head[0] < ready[0]
    option = ready[1]
    return (head[1], head[2]) <= (option.job_key, option.task_key[0])
