"""The compiled twin of rebalanced fair sharing: one clock per group of equal demand.

Law: equal demands progress alike, so a group has one clock (grains that each of its jobs has had),
and a job is done when the clock has reached what it showed at its submission plus the job's work.
An event costs time for the groups that are there, not for the jobs. Everything is in this one
file, for the compiler keys its cache by the source file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from yarn_research.admission.compiled.compiler import compiled

GRAINS = 64
FAR_MS = 1 << 62


class Columns(NamedTuple):
    """The jobs of a trace, in columns; ``due_order`` is the jobs by deadline."""

    submitted: Any
    due: Any
    tasks: Any
    work: Any
    due_order: Any


class Ends(NamedTuple):
    """What became of each job, in columns; ``rest`` is what was left of its work."""

    started: Any
    ended: Any
    rest: Any
    met: Any


@compiled
def meld(goal: Any, first: Any, second: Any, left: int, right: int) -> int:
    """Meld two skew heaps of jobs by (goal, job); ``first`` and ``second`` are their children."""
    if left < 0:
        return right
    if right < 0:
        return left
    if goal[right] < goal[left] or (goal[right] == goal[left] and right < left):
        left, right = right, left
    root = left
    while True:
        child = second[left]
        second[left] = first[left]
        if child < 0:
            first[left] = right
            return root
        if goal[right] < goal[child] or (goal[right] == goal[child] and right < child):
            child, right = right, child
        first[left] = child
        left = child


@compiled
def rebalanced(capacity: int, reactive: bool, trace: Columns, told: Ends) -> None:
    """Replay; ``told`` is filled.

    One function, though a long one: its steps share nineteen arrays and eight numbers, and each array that a
    compiled function is handed is counted.
    """
    submitted, due, tasks, work, due_order = trace
    started, ended, rest, met = told
    jobs = len(submitted)
    goal = np.zeros(jobs, np.int64)
    first, second = np.full(jobs, -1, np.int64), np.full(jobs, -1, np.int64)
    fresh_next = np.full(jobs, -1, np.int64)  # those of a group that never had anything, as a list
    size = capacity + 1
    count, held = np.zeros(size, np.int64), np.zeros(size, np.int64)
    clock, since = np.zeros(size, np.int64), np.zeros(size, np.int64)  # the clock as it was at that time
    ends_at = np.full(size, FAR_MS, np.int64)
    top, fresh = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    full, touched = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    groups, active, full_groups = np.empty(size, np.int64), 0, 0
    total, now, step, late = 0, 0, 0, 0
    next_end = FAR_MS
    while step < jobs or total > 0:
        at = next_end
        if step < jobs:
            at = min(at, submitted[step])
        if reactive:  # every job that is due before the next submission has been submitted
            while late < jobs and due[due_order[late]] < at and ended[due_order[late]] >= 0:
                late += 1
            if late < jobs and due[due_order[late]] < at:
                at = due[due_order[late]]
        passed, now = at - now, at
        for place in range(full_groups, active):  # only these need a check at every event
            demand = groups[place]
            had = held[demand] * passed * GRAINS
            clock[demand] += had if count[demand] == 1 else had // count[demand]
            since[demand] = now
        gone = False
        # --- ends
        if next_end <= now:
            for place in range(active):
                demand = groups[place]
                if ends_at[demand] > now:
                    continue
                clock[demand] += demand * GRAINS * (now - since[demand])  # nothing where some are short
                since[demand], touched[demand] = now, True
                while top[demand] >= 0:
                    job = top[demand]
                    if ended[job] < 0 and goal[job] > clock[demand]:
                        break
                    top[demand] = meld(goal, first, second, first[job], second[job])
                    if ended[job] < 0:
                        ended[job], met[job], rest[job] = now, now <= due[job], goal[job] - clock[demand]
                        count[demand] -= 1
                        total -= 1
                gone = gone or count[demand] == 0
        # --- those that are late
        if reactive:
            place = late
            while place < jobs and due[due_order[place]] <= now:
                job = due_order[place]
                if job < step and ended[job] < 0:
                    demand = min(tasks[job], capacity)
                    clock[demand] += demand * GRAINS * (now - since[demand])
                    since[demand], touched[demand] = now, True
                    ended[job], rest[job] = now, goal[job] - clock[demand]
                    count[demand] -= 1
                    total -= 1
                    gone = gone or count[demand] == 0
                place += 1
        # --- one submission
        if step < jobs and submitted[step] <= now:
            demand = min(tasks[step], capacity)
            if count[demand] == 0:
                place = 0
                while place < active and groups[place] != demand:
                    place += 1
                if place == active:
                    while place > 0 and groups[place - 1] > demand:
                        groups[place] = groups[place - 1]
                        place -= 1
                    groups[place] = demand
                    active += 1
                clock[demand], top[demand], fresh[demand], full[demand] = 0, -1, -1, False
            elif full[demand]:
                clock[demand] += demand * GRAINS * (now - since[demand])
            since[demand], touched[demand] = now, True
            count[demand] += 1
            total += 1
            goal[step] = clock[demand] + work[step] * GRAINS
            top[demand] = meld(goal, first, second, top[demand], step)
            fresh_next[step] = fresh[demand]
            fresh[demand] = step
            step += 1
        if gone:
            kept = 0
            for place in range(active):
                if count[groups[place]] > 0:
                    groups[kept] = groups[place]
                    kept += 1
            active = kept
        # --- the shares, and which job is done next
        left, waiting = capacity, total
        each, spare, owed = 0, 0, 0  # of the rest by jobs: quotient, remainder, and the part of it passed by
        next_end, full_groups = FAR_MS, active
        for place in range(active):
            demand = groups[place]
            members = count[demand]
            if full_groups == active and demand * waiting > left:
                full_groups = place
                each, spare = left // waiting, left % waiting
            if full_groups == active:
                left -= demand * members
                waiting -= members
                if full[demand] and not touched[demand]:
                    next_end = min(next_end, ends_at[demand])
                    continue
                full[demand], held[demand] = True, demand * members
            else:
                if full[demand]:
                    clock[demand] += demand * GRAINS * (now - since[demand])
                    since[demand], full[demand] = now, False
                owed += spare * members
                more = 0 if owed < waiting else 1 if owed < 2 * waiting else owed // waiting
                owed -= more * waiting
                held[demand] = each * members + more
            touched[demand] = False
            if held[demand] == 0:
                ends_at[demand] = FAR_MS
                continue
            while fresh[demand] >= 0:
                job = fresh[demand]
                if ended[job] < 0:
                    started[job] = now
                fresh[demand] = fresh_next[job]
            while ended[top[demand]] >= 0:
                job = top[demand]
                top[demand] = meld(goal, first, second, first[job], second[job])
            needs = (goal[top[demand]] - clock[demand]) * members
            rate = held[demand] * GRAINS
            if not full[demand] and next_end < FAR_MS and needs > (next_end - now) * rate:
                ends_at[demand] = FAR_MS  # another job is done before, and then it is computed again
                continue
            ends_at[demand] = now + (needs + rate - 1) // rate
            next_end = min(next_end, ends_at[demand])
