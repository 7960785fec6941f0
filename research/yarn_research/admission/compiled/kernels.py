"""The kernels: one for allocators that size jobs, one for those that share.

Law: the same doubles in the same order of operations as ``yarnctl.deciding.admission``; no fused
or reordered arithmetic. Whatever is skipped is skipped because it provably decides nothing:

* After a round, no waiting job fits into what is free. Until something ends, nothing becomes
  free, nothing is learned, and with time no job needs less: a submission concerns the new job
  alone, and those whose time runs out.
* An end that frees less than the smallest job in the queue needs, and comes before the first
  can run out of time, concerns no other. Both are bounds, kept from the last pass over the queue.

All kernels are in one file, for the compiler keys its cache by the source file.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from yarn_research.admission.compiled.compiler import compiled

ORACLE, PYTHIA, JUSTICE = 0, 1, 2
BY_TASKS, BY_RATIO, BY_DEADLINE = 0, 1, 2
HOPELESS = 0
NOBODY = 1 << 62
SLACK = 1e-9
"""How far a bound is from what it bounds: doubles err by 1e-15."""


class Rules(NamedTuple):
    """What decides: the allocator, and how the papers are read (its choices)."""

    capacity: int
    kind: int
    order: int
    requested: bool
    stretched: bool
    surplus: bool
    observed: bool
    equal: bool
    smoothing: float
    threshold: int


class Jobs(NamedTuple):
    """The jobs of a trace, in columns; ``deadline`` is a span, ``due`` its instant."""

    submitted: Any
    deadline: Any
    due: Any
    tasks: Any
    work: Any


class Results(NamedTuple):
    """What became of each job, in columns that a kernel fills."""

    started: Any
    ended: Any
    containers: Any
    met: Any


# --- a heap of (time, job), smallest first ----------------------------------------------------


@compiled
def push(times: Any, jobs: Any, size: int, time: int, job: int) -> None:
    """Put an entry on the heap of ``size`` entries."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if times[parent] < time or (times[parent] == time and jobs[parent] < job):
            break
        times[place], jobs[place] = times[parent], jobs[parent]
        place = parent
    times[place], jobs[place] = time, job


@compiled
def drop_first(times: Any, jobs: Any, size: int) -> None:
    """Take the first entry off the heap of ``size`` entries."""
    last = size - 1
    time, job = times[last], jobs[last]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (
            times[other] < times[child] or (times[other] == times[child] and jobs[other] < jobs[child])
        ):
            child = other
        if time < times[child] or (time == times[child] and job < jobs[child]):
            break
        times[place], jobs[place] = times[child], jobs[child]
        place = child
    times[place], jobs[place] = time, job


# --- allocators that size jobs ----------------------------------------------------------------
# What is learned: known (0 or 1), ratio, completed, least, most, errors, smoothed.
KNOWN, RATIO, COMPLETED, LEAST, MOST, ERRORS, SMOOTHED = range(7)
# Of the waiting jobs: the narrowest, the least part left of a deadline, as of when, the shortest deadline.
NARROW, PART_LEFT, LOOKED_AT, SHORTEST = range(4)


@compiled
def ends_late(rules: Rules, tasks: int) -> bool:
    """Say whether a job is ended at its deadline: ``Allocator.ends_late``."""
    return rules.kind == JUSTICE and 0 <= rules.threshold < tasks


@compiled
def stretched(rules: Rules, deadline: int, left: int, memory: Any) -> float:
    """Return the fraction, with the time in the queue."""
    ratio = float(memory[RATIO])
    return deadline / left * ratio if rules.stretched else ratio


@compiled
def wanted(rules: Rules, deadline: int, left: int, tasks: int, work: int, memory: Any) -> int:
    """Return the containers that the allocator would take, or HOPELESS: ``Allocator.terms``."""
    reachable = min(tasks, rules.capacity)
    if rules.kind != ORACLE and memory[KNOWN] == 0.0:
        return HOPELESS if left <= 0 and ends_late(rules, tasks) else reachable
    if left <= 0:
        return HOPELESS
    if rules.kind == ORACLE:
        exact = max(1, (work + left - 1) // left)
        return exact if exact <= reachable else HOPELESS
    fraction = stretched(rules, deadline, left, memory)
    if not rules.requested:
        containers = max(math.ceil(fraction * reachable), 1)
        return containers if containers <= reachable else HOPELESS
    if fraction > 1.0:
        return HOPELESS
    return min(max(math.ceil(fraction * tasks), 1), rules.capacity)


@compiled
def fewest(rules: Rules, want: int, memory: Any) -> int:
    """Return the fewest containers a job accepts: one, while nothing is known."""
    return want if rules.kind == ORACLE or memory[KNOWN] != 0.0 else 1


@compiled
def before(order: int, keys: Any, tasks: Any, due: Any, left: int, right: int) -> bool:
    """Say whether job ``left`` comes before job ``right`` in the queue: ``queue_key``."""
    if order == BY_TASKS:
        if tasks[left] != tasks[right]:
            return bool(tasks[left] < tasks[right])
        if due[left] != due[right]:
            return bool(due[left] > due[right])
    elif order == BY_DEADLINE:
        if due[left] != due[right]:
            return bool(due[left] < due[right])
    elif keys[left] != keys[right]:
        return bool(keys[left] < keys[right])
    return left < right


@compiled
def sift(order: int, keys: Any, tasks: Any, due: Any, heap: Any, size: int, place: int) -> None:
    """Let an entry of the candidates' heap sink to its place."""
    job = heap[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and before(order, keys, tasks, due, heap[child + 1], heap[child]):
            child += 1
        if before(order, keys, tasks, due, job, heap[child]):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = job


@compiled
def learn(rules: Rules, needs: float, last: float, met: bool, memory: Any) -> bool:
    """Learn from a job that is done (``Allocator.learn``); say whether everybody has to be looked at anew.

    ``needs`` is what it required, ``last`` what it was given. Justice's fraction changes with every
    job; what that means is in the bounds, once one is known.
    """
    memory[COMPLETED] += 1.0
    first = memory[COMPLETED] == 1.0
    if rules.kind == PYTHIA:
        fresh = bool(first or needs > memory[MOST])
        memory[MOST] = max(memory[MOST], needs)
        memory[RATIO], memory[KNOWN] = memory[MOST], 1.0
        return fresh
    error = last - needs if rules.surplus else needs - last
    memory[ERRORS] += error
    if first:
        memory[LEAST], memory[MOST], memory[SMOOTHED] = needs, needs, error
        return True
    memory[LEAST], memory[MOST] = min(memory[LEAST], needs), max(memory[MOST], needs)
    memory[SMOOTHED] = rules.smoothing * error + (1.0 - rules.smoothing) * memory[SMOOTHED]
    target = memory[LEAST] if met else memory[MOST]
    halfway = (last + target) / 2.0
    corrected = halfway + (memory[ERRORS] / memory[COMPLETED] if rules.equal else memory[SMOOTHED])
    memory[RATIO] = memory[LEAST] if corrected < memory[LEAST] else min(corrected, 1.0)
    memory[KNOWN] = 1.0
    return bool(memory[COMPLETED] == 2.0)


@compiled
def forget(bounds: Any, now: int) -> None:
    """Reset the bounds: no job waits."""
    bounds[NARROW], bounds[PART_LEFT], bounds[LOOKED_AT], bounds[SHORTEST] = NOBODY, np.inf, now, NOBODY


@compiled
def bound(
    rules: Rules, deadline: int, left: int, tasks: int, work: int, want: int, now: int, bounds: Any
) -> None:
    """Take a job that waits into the bounds."""
    reachable = min(tasks, rules.capacity)
    if rules.kind == ORACLE:
        left -= (work + reachable - 1) // reachable
        bounds[NARROW] = min(bounds[NARROW], want)
    else:
        bounds[NARROW] = min(bounds[NARROW], reachable)
    bounds[SHORTEST] = min(bounds[SHORTEST], deadline)
    since = (now - bounds[LOOKED_AT]) / bounds[SHORTEST]
    bounds[PART_LEFT] = min(bounds[PART_LEFT], left / deadline + since)


@compiled
def may_run_out(rules: Rules, now: int, memory: Any, bounds: Any) -> bool:
    """Return whether a waiting job may have become hopeless."""
    part = bounds[PART_LEFT] - (now - bounds[LOOKED_AT]) / bounds[SHORTEST]
    if part <= SLACK:
        return True
    if rules.kind == ORACLE or memory[KNOWN] == 0.0:
        return False
    if rules.stretched:
        return bool(part <= memory[RATIO] * (1.0 + SLACK) + SLACK)
    return bool(memory[RATIO] > 1.0)


@compiled
def may_fit(rules: Rules, free: int, memory: Any, bounds: Any) -> bool:
    """Return whether a waiting job may fit into what is free."""
    if rules.kind == ORACLE:
        return bool(bounds[NARROW] <= free)
    if memory[KNOWN] == 0.0:
        return free > 0
    return bool(max(1, math.ceil(memory[RATIO] * bounds[NARROW] * (1.0 - SLACK) - SLACK)) <= free)


@compiled
def sized(
    rules: Rules,
    submitted: Any,
    deadline: Any,
    due: Any,
    tasks: Any,
    work: Any,
    started: Any,
    ended: Any,
    containers: Any,
    met: Any,
) -> None:
    """Replay Oracle, PYTHIA or Justice; the last four arrays are filled.

    One function, though a long one: compiled code counts each array that a function is handed, and this one
    takes some 50 ns an event. Taken apart it took at least 1.2 times as long.
    """
    jobs = len(submitted)
    room = min(jobs, rules.capacity) + 1
    times, ends, running = np.empty(room, np.int64), np.empty(room, np.int64), 0
    queue, waiting, heap = np.empty(jobs, np.int64), 0, np.empty(jobs, np.int64)
    keys, wants = np.zeros(jobs, np.float64), np.zeros(jobs, np.int64)
    parts = np.full(jobs if rules.kind == JUSTICE else 0, np.nan)  # the fraction a job was given
    begun = np.empty(room, np.int64)  # the jobs that this event admits
    memory, bounds = np.zeros(7), np.zeros(4)
    forget(bounds, 0)
    free, step = rules.capacity, 0
    while step < jobs or running > 0:
        arrival, fresh, beginning = -1, False, 0
        if running > 0 and (step >= jobs or times[0] <= submitted[step]):
            now, job = times[0], ends[0]
            drop_first(times, ends, running)
            running -= 1
            held = containers[job]
            free += held
            ended[job] = now
            if now - started[job] >= (work[job] + held - 1) // held:  # else it was ended
                met[job] = now <= due[job]
                if rules.kind != ORACLE:
                    reachable = min(tasks[job], rules.capacity)
                    last = held / reachable
                    if rules.kind == JUSTICE and not rules.observed and not math.isnan(parts[job]):
                        last = parts[job]
                    fresh = learn(rules, work[job] / deadline[job] / reachable, last, met[job], memory)
        else:
            now, arrival = submitted[step], step
            step += 1
        look = waiting > 0 and (
            fresh
            or rules.requested
            or may_run_out(rules, now, memory, bounds)
            or (arrival < 0 and may_fit(rules, free, memory, bounds))
        )
        if arrival >= 0 and not look:
            job = arrival
            want = wanted(rules, deadline[job], deadline[job], tasks[job], work[job], memory)
            if want == HOPELESS:
                ended[job] = now
            elif fewest(rules, want, memory) <= free:
                containers[job] = min(want, free)
                free -= containers[job]
                begun[0], beginning = job, 1
            else:
                if waiting == 0:
                    forget(bounds, now)
                bound(rules, deadline[job], deadline[job], tasks[job], work[job], want, now, bounds)
                queue[waiting] = job
                waiting += 1
        if look:
            if arrival >= 0:
                queue[waiting] = arrival
                waiting += 1
            found = 0
            for place in range(waiting):
                job = queue[place]
                left = due[job] - now
                want = wanted(rules, deadline[job], left, tasks[job], work[job], memory)
                wants[job] = want
                if want == HOPELESS:
                    ended[job] = now
                elif fewest(rules, want, memory) <= free:
                    keys[job] = want / left if left > 0 else np.inf
                    heap[found] = job
                    found += 1
            for place in range(found // 2 - 1, -1, -1):
                sift(rules.order, keys, tasks, due, heap, found, place)
            while found > 0 and free > 0:
                job = heap[0]
                found -= 1
                heap[0] = heap[found]
                sift(rules.order, keys, tasks, due, heap, found, 0)
                if fewest(rules, wants[job], memory) <= free:
                    containers[job] = min(wants[job], free)
                    free -= containers[job]
                    wants[job] = HOPELESS
                    begun[beginning] = job
                    beginning += 1
            forget(bounds, now)
            kept = 0
            for place in range(waiting):
                job = queue[place]
                if wants[job] != HOPELESS:
                    queue[kept] = job
                    kept += 1
                    left = due[job] - now
                    bound(rules, deadline[job], left, tasks[job], work[job], wants[job], now, bounds)
            waiting = kept
        for place in range(beginning):
            job = begun[place]
            if rules.kind == JUSTICE and memory[KNOWN] != 0.0:
                parts[job] = stretched(rules, deadline[job], due[job] - now, memory)
            started[job] = now
            end = now + (work[job] + containers[job] - 1) // containers[job]
            if end > due[job] and ends_late(rules, tasks[job]):
                end = due[job]
            push(times, ends, running, end, job)
            running += 1


# --- allocators that share --------------------------------------------------------------------


@compiled
def drop_late(ended: Any, containers: Any, times: Any, late: Any, lates: int, now: int) -> int:
    """Reject jobs that wait beyond the deadline; return how many are still to be checked."""
    while lates > 0 and times[0] <= now:
        job = late[0]
        drop_first(times, late, lates)
        lates -= 1
        if containers[job] == 0:
            ended[job] = now
    return lates


@compiled
def water_level(demands: Any, asked: int, free: int) -> tuple[int, int]:
    """Return the level and the surplus of the first ``asked``; a job below the level is not cut."""
    ordered = np.sort(demands[:asked])
    level, left = 0, free
    for place in range(asked):
        unsatisfied = asked - place
        if (ordered[place] - level) * unsatisfied > left:
            more = left // unsatisfied
            return level + more, left - more * unsatisfied
        left -= (ordered[place] - level) * unsatisfied
        level = ordered[place]
    return level, left


@compiled
def shared_end(reactive: bool, now: int, work: int, held: int, due: int) -> int:
    """Return when a job that begins now ends."""
    end = now + (work + held - 1) // held
    return due if reactive and end > due else end


@compiled
def shared(capacity: int, reactive: bool, trace: Jobs, told: Results) -> None:
    """Replay NoDrop FS or Reactive FS; ``told`` is filled.

    Each job that is considered in a round gets a container, so the queue is first in, first out.
    """
    submitted, _, due, tasks, work = trace
    started, ended, containers, met = told
    count = len(submitted)
    room = min(count, capacity) + 1
    end_times, end_jobs, running = np.empty(room, np.int64), np.empty(room, np.int64), 0
    late_times, late_jobs, lates = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64), 0
    demands, asking = np.empty(room, np.int64), np.empty(room, np.int64)
    free, head, step = capacity, 0, 0  # jobs head..step-1 are in the queue, but for those that are late
    while step < count or running > 0:
        if running > 0 and (step >= count or end_times[0] <= submitted[step]):
            now, job = end_times[0], end_jobs[0]
            drop_first(end_times, end_jobs, running)
            running -= 1
            free += containers[job]
            ended[job] = now
            if now - started[job] >= (work[job] + containers[job] - 1) // containers[job]:
                met[job] = now <= due[job]
        else:
            now = submitted[step]
            if reactive:
                push(late_times, late_jobs, lates, due[step], step)
                lates += 1
            step += 1
        if reactive:
            lates = drop_late(ended, containers, late_times, late_jobs, lates, now)
        asked = 0
        while head < step and asked < free:
            if ended[head] < 0:
                asking[asked], demands[asked] = head, tasks[head]
                asked += 1
            head += 1
        if asked == 0:
            continue
        level, left = water_level(demands, asked, free)
        for place in range(asked):
            job = asking[place]
            share = min(tasks[job], level + (1 if left > 0 else 0))
            left -= share > level
            free -= share
            started[job], containers[job] = now, share
            end = shared_end(reactive, now, work[job], share, due[job])
            push(end_times, end_jobs, running, end, job)
            running += 1
