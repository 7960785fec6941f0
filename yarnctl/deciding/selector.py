"""The selector: one heap for all policies, re-keying only what a pick changed.

Law: ``choose(case, settings)`` is a function: same case, same picks in the same order, and
``choose(prune(case)) == choose(case)``. In tandem (section 2): for each container that is needed,
the job policy picks the job, then the task policy picks one task in it; a job without an eligible
task drops out. An ask is met only by room on *one* node; a pick that completes no room is handed
back.

How it is fast: a job's tasks are put in order only when the job is first hit; the order is made
in one go and walked by a pointer; a pick replaces one heap entry. Keys that are a plain share or
remaining time are made in bulk (the policy says so, the tests hold it to its word).
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace, nsmallest
from operator import itemgetter

from yarnctl.deciding.case import Case, Choice, Need, Pick, RefusedJob, RefusedTask
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES, JobPolicy, JobUsage, TaskPolicy
from yarnctl.deciding.releaser import objection
from yarnctl.deciding.settings import Settings
from yarnctl.units import NOTHING, Resources, fits, minus, plus

_ATTEMPT = itemgetter(TaskView._fields.index("attempt"))
_REMAINING = itemgetter(TaskView._fields.index("remaining_ms"))

RawPick = tuple[int, TaskView, tuple[int, ...], Resources, int]
"""Candidate's index, task, job key with the index at its end, ask, asks completed."""


class Line:
    """The tasks of one job that was hit, in the order in which they would be taken."""

    __slots__ = ("ordered", "passed", "place")

    def __init__(self, ordered: list[TaskView]) -> None:
        self.ordered = ordered
        self.place = 0
        self.passed: list[tuple[TaskView, str]] = []


class Selection:
    """The working state of one choice. Nothing of it outlives :func:`choose`."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self.case = case
        self.settings = settings
        self.job_policy: JobPolicy = JOB_POLICIES[settings.job_policy]
        self.task_policy: TaskPolicy = TASK_POLICIES[settings.task_policy]
        self.lines: dict[int, Line] = {}
        self.picks: list[RawPick] = []
        self.room: dict[str, Resources] = {}
        self.met_on: dict[str, Resources] = {}
        self.dropped: dict[int, RefusedJob] = {}
        self.usages: dict[int, JobUsage] = {}
        self.useds: dict[int, Resources] = {}
        self.heap = self._heap()

    def _heap(self) -> list[tuple[int, ...]]:
        """Key every open job that has something to give; the index stands for the id."""
        jobs, closed = self.case.jobs, self.case.closed
        sign = self.job_policy.share_sign
        if sign:
            heap: list[tuple[int, ...]] = [
                (sign * job[0][1], index)
                for index, job in enumerate(jobs)
                if job[0][3] > 0 and job[2] > 0 and (not closed or job[0][0] not in closed)
            ]
        else:
            heap = [
                self.job_key(job.usage, 0) + (index,)
                for index, job in enumerate(jobs)
                if job.usage.releasable > 0 and job.budget > 0 and job.usage.application not in closed
            ]
        heapify(heap)
        return heap

    def job_key(self, usage: JobUsage, picked: int) -> tuple[int, ...]:
        """Return the policy's key for a job of which ``picked`` tasks have been taken."""
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
        """Return the tasks of a job in taking order, made when the job is first hit."""
        job = self.case.jobs[index]
        tasks = self.case.tasks.get(job.usage.application)
        if tasks is None:
            line = Line([_unobserved(job.usage.application, job.task_size)] * job.usage.releasable)
        else:
            line = Line(self._ordered(tasks))
        self.lines[index] = line
        return line

    def _ordered(self, tasks: tuple[TaskView, ...]) -> list[TaskView]:
        sign = self.task_policy.remaining_sign
        ordered = sorted(tasks, key=_ATTEMPT)  # the id ends every order; the next sort is stable
        if sign and min(map(_REMAINING, ordered), default=0) >= 0:
            if sign > 0:
                ordered.sort(key=_REMAINING)
            else:
                ordered.sort(key=lambda task: -task[5])
        else:
            ordered.sort(key=self.task_key)
        return ordered

    def meet(self, need: Need) -> int:
        """Take tasks until ``need`` is met or nobody is left; return how many asks are unmet."""
        size, wanted = need
        wanted = self._meet_from_room(size, wanted)
        heap, jobs, case, settings = self.heap, self.case.jobs, self.case, self.settings
        lines, picks, barred, now_ms = self.lines, self.picks, case.barred, case.now_ms
        useds, usages, sign = self.useds, self.usages, self.job_policy.share_sign
        total_mib, total_vcores = case.total
        while wanted and heap:
            entry = heap[0]
            index = entry[-1]
            line = lines.get(index) or self.line(index)
            ordered, place, last = line.ordered, line.place, len(line.ordered)
            task = None
            while place < last:
                task = ordered[place]
                place += 1
                why = objection(task, now_ms, settings, barred) if task[0] else ""
                if not why:
                    break
                line.passed.append((task, why))
                task = None
            line.place = place
            if task is None:
                heappop(heap)
                self._drop(entry, "no-task-left")
                continue
            given = task[3]
            serves = 1 if given == size else self._collect(task, size, wanted)
            picks.append((index, task, entry, size, serves))
            wanted -= serves
            # -- re-key the one job that has changed
            job = jobs[index]
            usage = usages.get(index) or job[0]
            used = useds.get(index) or job[1]
            used_mib, used_vcores = used[0] - given[0], used[1] - given[1]
            releasable = usage[3] - 1
            share = max(used_mib * total_vcores, used_vcores * total_mib)
            useds[index] = Resources(used_mib, used_vcores)
            usage = JobUsage(
                usage[0], share, usage[2] - 1, releasable, usage[4], usage[5], usage[6], entry[0]
            )
            usages[index] = usage
            picked = job[0][3] - releasable
            if releasable <= 0 or picked >= job[2]:
                heappop(heap)
                self._drop(entry, "no-task-left" if releasable <= 0 else "job-budget")
            elif sign:
                heapreplace(heap, (sign * share, index))
            else:
                heapreplace(heap, self.job_key(usage, picked) + (index,))
        return wanted

    def _drop(self, entry: tuple[int, ...], why: str) -> None:
        """Note that a job has nothing (more) to give."""
        index = entry[-1]
        self.dropped[index] = RefusedJob(self.case.jobs[index].usage.application, entry[:-1], why)

    def _meet_from_room(self, size: Resources, wanted: int) -> int:
        """Meet asks from room that earlier picks left over (a larger container than was asked)."""
        for node in self.room:
            while wanted and fits(size, self.room[node]):
                self._consume(node, size)
                wanted -= 1
        return wanted

    def _collect(self, task: TaskView, size: Resources, wanted: int) -> int:
        """Add a container of another size to its node's room; return how many asks that completes."""
        node = task.node
        if node not in self.room:
            self.room[node] = self.case.room.get(node, NOTHING)
        self.room[node] = plus(self.room[node], task.size)
        serves = 0
        while serves < wanted and fits(size, self.room[node]):
            self._consume(node, size)
            serves += 1
        return serves

    def _consume(self, node: str, size: Resources) -> None:
        self.room[node] = minus(self.room[node], size)
        self.met_on[node] = plus(self.met_on.get(node, NOTHING), size)

    def needless(self) -> dict[int, None]:
        """Return the places of picks without which every met ask is still met, latest first."""
        if not self.room:
            return {}
        needless: dict[int, None] = {}
        for place in range(len(self.picks) - 1, -1, -1):
            _, task, _, _, serves = self.picks[place]
            node = task.node
            if serves or node not in self.room:
                continue
            without = minus(self.room[node], task.size)
            if node not in self.met_on or (without[0] >= 0 and without[1] >= 0):
                self.room[node] = without
                needless[place] = None
        return needless


def _unobserved(application: str, size: Resources) -> TaskView:
    """Stand in for a task of a job whose tasks have not been observed (attempt "")."""
    return TaskView("", "", "?" + application, size, "reduce", 0, 0, 0, 0, True, False)


def choose(case: Case, settings: Settings) -> Choice:
    """Pick victims for ``case.needs``, in order, by the settings' two policies."""
    selection = Selection(case, settings)
    unmet = sum(selection.meet(need) for need in case.needs)
    needless = selection.needless()
    kept: list[Pick] = []
    back: list[Pick] = []
    hit: dict[int, None] = {}
    for place, (index, task, entry, ask, serves) in enumerate(selection.picks):
        hit[index] = None
        application = case.jobs[index][0][0]
        key = selection.task_key(task) if task[0] else ()
        (back if place in needless else kept).append(
            Pick(application, task, entry[:-1], key, ask, serves)
        )
    return Choice(
        picks=tuple(kept),
        handed_back=tuple(back),
        unmet=unmet,
        refused_jobs=_refused_jobs(selection),
        refused_tasks=_refused_tasks(selection, hit),
        hit=tuple(case.jobs[index][0][0] for index in hit),
        missing=tuple(
            case.jobs[index][0][0] for index in hit if case.jobs[index][0][0] not in case.tasks
        ),
        room=selection.room,
    )


def _refused_jobs(selection: Selection) -> tuple[RefusedJob, ...]:
    """Name the next few jobs by key, the first few without anything left, the first few closed."""
    case, shown = selection.case, selection.settings.refused_shown
    jobs = case.jobs
    following = [
        RefusedJob(jobs[entry[-1]][0][0], entry[:-1], "next") for entry in nsmallest(shown, selection.heap)
    ]
    closed = [
        RefusedJob(job.usage.application, (), case.closed[job.usage.application])
        for job in (jobs if case.closed else ())
        if job.usage.application in case.closed
    ]
    dropped = list(selection.dropped.values())[:shown]
    return tuple(following + dropped + closed[:shown])


def _refused_tasks(selection: Selection, hit: dict[int, None]) -> tuple[RefusedTask, ...]:
    """Name, for each job hit or shown as empty, the first few tasks passed over and the next few."""
    case, settings = selection.case, selection.settings
    refused: list[RefusedTask] = []
    for index in hit | dict.fromkeys(list(selection.dropped)[: settings.refused_shown]):
        application = case.jobs[index][0][0]
        line = selection.lines[index]
        for task, why in line.passed[: settings.refused_shown]:
            refused.append(RefusedTask(application, task[0], selection.task_key(task), why))
        for task in line.ordered[line.place : line.place + settings.refused_shown]:
            if task[0]:
                why = objection(task, case.now_ms, settings, case.barred) or "next"
                refused.append(RefusedTask(application, task[0], selection.task_key(task), why))
    return tuple(refused)
