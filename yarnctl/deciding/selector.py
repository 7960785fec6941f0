"""The selector: one heap for all policies, re-keying only what a pick changed.

``choose(case, settings)`` is a function: same case, same picks in the same order, and
``choose(prune(case)) == choose(case)``. In tandem (section 2): for each container that is needed, the job
policy picks the job, then the task policy picks one task in it; a job without an eligible task drops out. A
request is met only by one node; a pick that completes none is removed again.

It is fast because a job's tasks are sorted only when the job is first picked, once, and read through an
index; a pick replaces one heap entry. Keys that are a plain share or remaining time are made in bulk (the
policy declares this, tests check it); a plain share and the job's index are packed into one integer, which a
heap compares in a third of a tuple's time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heapreplace, nsmallest
from operator import itemgetter
from typing import Any

from yarnctl.deciding.case import Case, Choice, Need, Pick, RefusedJob, RefusedTask
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies import (
    COMPARED_JOB_POLICIES,
    FOREVER_MS,
    JOB_POLICIES,
    TASK_POLICIES,
    JobPolicy,
    JobUsage,
    TaskPolicy,
)
from yarnctl.deciding.releaser import Reason, objections
from yarnctl.deciding.settings import Settings
from yarnctl.units import NOTHING, Resources, dominant, fits, minus, plus

_ATTEMPT = itemgetter(TaskView._fields.index("attempt"))
_REMAINING = itemgetter(TaskView._fields.index("remaining_ms"))

_LARGE = 1024
"""From this many tasks on, a job's tasks are not all sorted at once."""

RawPick = tuple[int, TaskView, Any, Resources, int]
"""Candidate's index, task, the job's heap entry, requested size, requests completed."""


class Line:
    """The tasks of one picked job, in the order in which they would be picked, and its usage.

    ``most`` is how many of them may be picked; ``by_memory`` and ``by_vcores`` are its remaining usage,
    each times the cluster's total of the other (see ``units.dominant``). ``used``: the vector, where
    there are other types.
    """

    __slots__ = ("by_memory", "by_vcores", "most", "ordered", "passed", "picked", "rank", "rest", "used")

    def __init__(self, ordered: list[TaskView], rest: Callable[[], list[TaskView]] | None = None) -> None:
        self.ordered = ordered
        self.rank = 0
        self.passed: list[tuple[TaskView, Reason]] = []
        self.rest = rest
        self.picked = self.most = self.by_memory = self.by_vcores = 0
        self.used = NOTHING

    def extend(self) -> bool:
        """Append the tasks that were not sorted yet; return whether there were any."""
        if self.rest is None:
            return False
        before = len(self.ordered)
        self.ordered += self.rest()
        self.rest = None
        return len(self.ordered) > before


class Selection:
    """The working state of one choice. Nothing of it outlives :func:`choose`."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self.case = case
        self.settings = settings
        name = settings.job_policy
        self.job_policy: JobPolicy = JOB_POLICIES.get(name) or COMPARED_JOB_POLICIES[name]
        self.task_policy: TaskPolicy = TASK_POLICIES[settings.task_policy]
        self.lines: dict[int, Line] = {}
        self.picks: list[RawPick] = []
        self.free: dict[str, Resources] = {}
        self.collected: dict[str, list[int]] = {}
        self.met_on: dict[str, Resources] = {}
        self.dropped: dict[int, RefusedJob] = {}
        self.objection = objections(case.now_ms, settings, case.barred, case.reserved)
        self.shortfalls = sum(need.containers for need in case.needs)
        self.heap = self._heap()

    def _heap(self) -> list[Any]:
        """Key every job; its index stands for its id. Jobs without an eligible task drop out at the head."""
        jobs, scale = self.case.jobs, self.job_policy.share_sign * len(self.case.jobs)
        if scale:
            heap: list[Any] = [job[0][1] * scale + index for index, job in enumerate(jobs)]
        else:
            heap = [(*self.job_key(job.usage, 0), index) for index, job in enumerate(jobs)]
        heapify(heap)
        return heap

    def entry(self, entry: Any) -> tuple[int, tuple[int, ...]]:
        """Return the index and the key of the job that an entry of the heap stands for."""
        if self.job_policy.share_sign:
            share, index = divmod(entry, len(self.case.jobs))
            return index, (share,)
        return entry[-1], entry[:-1]

    def job_key(self, usage: JobUsage, picked: int) -> tuple[int, ...]:
        """Return the policy's key for a job of which ``picked`` tasks have been picked."""
        draw = 0
        if self.job_policy.draws:
            draw = uniform(self.settings.seed, self.case.number, named(usage.application), picked)
        return self.job_policy.key(usage, self.case.now_ms, draw)

    def task_key(self, task: TaskView) -> tuple[int, ...]:
        """Return the policy's key for a task."""
        draw = 0
        if self.task_policy.draws:
            draw = uniform(self.settings.seed, self.case.number, named(task.attempt))
        return self.task_policy.key(task, self.case.now_ms, draw)

    def line(self, index: int) -> Line:
        """Return the tasks of a job in picking order, made when the job is first at the head."""
        job = self.case.jobs[index]
        usage = job.usage
        tasks = self.case.tasks.get(usage.application)
        if usage.application in self.case.closed or usage.releasable <= 0 or job.budget <= 0:
            line = Line([])
        elif tasks is None:
            line = Line([_unobserved(usage.application, job.task_size)] * usage.releasable)
        else:
            line = self._ordered(tasks)
        line.by_memory, line.by_vcores = job.used[0] * self.case.total[1], job.used[1] * self.case.total[0]
        line.most, line.used = min(usage.releasable, job.budget), job.used
        self.lines[index] = line
        return line

    def _ordered(self, tasks: tuple[TaskView, ...]) -> Line:
        """Sort tasks by (key, attempt), those of large jobs only as far as they will be needed."""
        sign = self.task_policy.remaining_sign
        values = list(map(_REMAINING, tasks)) if sign else []
        if not sign or min(values, default=0) < 0:
            ordered = sorted(tasks, key=_ATTEMPT)  # the next sort is stable
            ordered.sort(key=self.task_key)
            return Line(ordered)
        if len(tasks) < _LARGE:
            return Line(_by_remaining(tasks, sign, values))
        sample = sorted(values[:: len(values) // 128], reverse=sign < 0)
        cut = sample[min(len(sample) - 1, len(sample) * (self.shortfalls * 5 // 4) // len(values) + 2)]
        if sign > 0:
            return Line(
                _by_remaining([task for task in tasks if task[5] <= cut], sign),
                lambda: _by_remaining([task for task in tasks if task[5] > cut], sign),
            )
        return Line(
            _by_remaining([task for task in tasks if task[5] >= cut], sign),
            lambda: _by_remaining([task for task in tasks if task[5] < cut], sign),
        )

    def meet(self, need: Need) -> int:
        """Pick tasks until ``need`` is met or no job is left; return how many requests are unmet."""
        size, wanted = need
        wanted = self._meet_from_free(size, wanted)
        heap, jobs, lines, picks = self.heap, self.case.jobs, self.lines, self.picks
        total, objection = self.case.total, self.objection
        total_mib, total_vcores, has_others = total[0], total[1], len(total) > 2
        by_memory, by_vcores = size[0] * total_vcores, size[1] * total_mib
        count = len(jobs)
        scale = self.job_policy.share_sign * count
        while wanted and heap:
            entry = heap[0]
            index = entry % count if scale else entry[-1]
            line = lines.get(index) or self.line(index)
            place, ordered = line.rank, line.ordered
            if place < len(ordered) and not objection(ordered[place]):
                task = ordered[place]
                line.rank = place + 1
            elif (search := self._next(line)) is not None:
                task = search
            else:
                self._drop(heappop(heap))
                continue
            given = task[3]
            if given is size or given == size:
                serves, less_memory, less_vcores = 1, by_memory, by_vcores
            else:
                serves = self._collect(task, size, wanted)
                less_memory, less_vcores = given[0] * total_vcores, given[1] * total_mib
            picks.append((index, task, entry, size, serves))
            wanted -= serves
            # -- re-key the one job that has changed
            line.picked = picked = line.picked + 1
            line.by_memory = share = line.by_memory - less_memory
            line.by_vcores = other = line.by_vcores - less_vcores
            if picked >= line.most:
                self._drop(heappop(heap))
                continue
            if other > share:
                share = other
            if has_others:
                line.used = minus(line.used, given)
                share = dominant(line.used, total)
            if scale:
                heapreplace(heap, share * scale + index)
            else:
                heapreplace(heap, (*self._new_key(jobs[index].usage, share, picked, entry[0]), index))
        return wanted

    def _next(self, line: Line) -> TaskView | None:
        """Return the job's next task that may be stopped, and note those that may not."""
        ordered, place, objection = line.ordered, line.rank, self.objection
        while place < len(ordered) or line.extend():
            task = ordered[place]
            place += 1
            why = objection(task)
            if not why:
                line.rank = place
                return task
            line.passed.append((task, why))
        line.rank = place
        return None

    def _new_key(self, usage: JobUsage, share: int, picked: int, clock: int) -> tuple[int, ...]:
        changed = usage._replace(
            share=share,
            containers=usage.containers - picked,
            releasable=usage.releasable - picked,
            clock=clock,
        )
        return self.job_key(changed, picked)

    def _drop(self, entry: Any) -> None:
        """Note that a job has no (more) eligible tasks, and why."""
        index, key = self.entry(entry)
        job = self.case.jobs[index]
        why: Reason = self.case.closed.get(job.usage.application, "")
        if not why:
            why = "job-budget" if self.lines[index].picked >= job.budget else "no-task-left"
        self.dropped[index] = RefusedJob(job.usage.application, key, why)

    def _meet_from_free(self, size: Resources, wanted: int) -> int:
        """Meet requests from what earlier picks left over (a larger container than was requested)."""
        for node in self.free:
            while wanted and fits(size, self.free[node]):
                self._consume(node, size)
                self._credit(node, size)
                wanted -= 1
        return wanted

    def _credit(self, node: str, size: Resources) -> None:
        """Count one more request for an earlier pick on ``node``: the latest that serves none yet, if any."""
        places = self.collected[node]
        idle = [place for place in places if not self.picks[place][4]]
        place = idle[-1] if idle else places[-1]
        index, task, entry, requested, serves = self.picks[place]
        self.picks[place] = (index, task, entry, requested if serves else size, serves + 1)

    def _collect(self, task: TaskView, size: Resources, wanted: int) -> int:
        """Count a container of another size as free; return how many requests that completes."""
        node = task.node
        if node not in self.free:
            self.free[node] = self.case.free.get(node, NOTHING)
            self.collected[node] = []
        self.collected[node].append(len(self.picks))
        self.free[node] = plus(self.free[node], task.size)
        serves = 0
        while serves < wanted and fits(size, self.free[node]):
            self._consume(node, size)
            serves += 1
        return serves

    def _consume(self, node: str, size: Resources) -> None:
        self.free[node] = minus(self.free[node], size)
        self.met_on[node] = plus(self.met_on.get(node, NOTHING), size)

    def excess(self) -> dict[int, None]:
        """Return the indices of picks without which every met request is still met, latest first."""
        if not self.free:
            return {}
        needless: dict[int, None] = {}
        for place in range(len(self.picks) - 1, -1, -1):
            _, task, _, _, serves = self.picks[place]
            node = task.node
            if serves or node not in self.free:
                continue
            without = minus(self.free[node], task.size)
            if node not in self.met_on or min(without) >= 0:
                self.free[node] = without
                needless[place] = None
        return needless


def _by_remaining(
    tasks: Sequence[TaskView], sign: int, values: Sequence[int] | None = None
) -> list[TaskView]:
    """Sort by (sign x remaining time, attempt), the ids only if two remaining times are equal."""
    if len(set(map(_REMAINING, tasks) if values is None else values)) < len(tasks):
        tasks = sorted(tasks, key=_ATTEMPT)  # the next sort is stable, also in reverse
    return sorted(tasks, key=_REMAINING, reverse=sign < 0)


def _unobserved(application: str, size: Resources) -> TaskView:
    """Return a placeholder for a task of a job whose tasks have not been observed (attempt "")."""
    return TaskView("", "", "?" + application, size, "reduce", FOREVER_MS, 0, 0, 0, True, False)


def choose(case: Case, settings: Settings) -> Choice:
    """Pick victims for ``case.needs``, in order, by the settings' two policies."""
    selection = Selection(case, settings)
    unmet = sum(selection.meet(need) for need in case.needs)
    needless = selection.excess()
    kept: list[Pick] = []
    back: list[Pick] = []
    hit: dict[int, None] = {}
    for place, (index, task, entry, requested, serves) in enumerate(selection.picks):
        hit[index] = None
        application = case.jobs[index][0][0]
        job_key = selection.entry(entry)[1]
        key = selection.task_key(task) if task[0] else ()
        (back if place in needless else kept).append(Pick(application, task, job_key, key, requested, serves))
    return Choice(
        picks=tuple(kept),
        handed_back=tuple(back),
        unmet=unmet,
        refused_jobs=_refused_jobs(selection),
        refused_tasks=_refused_tasks(selection, hit),
        hit=tuple(case.jobs[index][0][0] for index in hit),
        missing=tuple(case.jobs[index][0][0] for index in hit if case.jobs[index][0][0] not in case.tasks),
        free=selection.free,
    )


def _refused_jobs(selection: Selection) -> tuple[RefusedJob, ...]:
    """Name the next few jobs by key, and the first few that had no (more) eligible tasks."""
    jobs, shown = selection.case.jobs, selection.settings.refused_shown
    entries = map(selection.entry, nsmallest(shown, selection.heap))
    following = [RefusedJob(jobs[index].usage.application, key, "next") for index, key in entries]
    return tuple(following + list(selection.dropped.values())[:shown])


def _refused_tasks(selection: Selection, hit: dict[int, None]) -> tuple[RefusedTask, ...]:
    """Name, for each job picked or shown as empty, the first few tasks passed over and the next few."""
    case, settings = selection.case, selection.settings
    refused: list[RefusedTask] = []
    for index in hit | dict.fromkeys(list(selection.dropped)[: settings.refused_shown]):
        application = case.jobs[index][0][0]
        line = selection.lines[index]
        if line.rank + settings.refused_shown > len(line.ordered):
            line.extend()
        for task, why in line.passed[: settings.refused_shown]:
            refused.append(_passed_over(selection, application, task, why))
        for task in line.ordered[line.rank : line.rank + settings.refused_shown]:
            if task[0]:
                refused.append(
                    _passed_over(selection, application, task, selection.objection(task) or "next")
                )
    return tuple(refused)


def _passed_over(selection: Selection, application: str, task: TaskView, reason: Reason) -> RefusedTask:
    key = selection.task_key(task)
    return RefusedTask(application, task.attempt, key, reason, task.container, task.node)
