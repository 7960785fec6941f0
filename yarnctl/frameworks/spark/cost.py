"""Predict the cost of draining an executor of Spark, from its driver's answers.

* An executor leaves when its last task has ended (it may begin one before the order arrives) and its blocks
  have moved. An executor without a prediction is not a candidate.
* Lost work is work that tasks do twice. Spark does not inform a running stage of the new place of moved
  blocks (SPARK-44635). So each order within a reduce stage repeats at most one task for each remaining core,
  and between stages none. Finished map tasks run again if their blocks move to an executor of the same host.
* If a job may be suspended whole, the executor that would leave last bears the cost of suspending the job:
  cached partitions are lost and computed again. So the sum is never less than the lost work.

Sources: docs/facts/spark.md, 3, 4 and 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from yarnctl.frameworks.spark.rest import Executor, Stage, StageTask


class CostTerms(NamedTuple):
    """The speed at which blocks move, and times that are the same for all executors, in ms.

    ``leave_ms``: from the last task's end, with nothing to move, until the container is gone. ``return_ms``:
    from a new container until its executor works. ``order_ms``: from the look that predicts until the
    executor begins no further task; another task follows one that ends sooner.
    """

    move_bytes_per_ms: int
    leave_ms: int
    return_ms: int
    order_ms: int


class StageNow(NamedTuple):
    """An active stage, its running tasks, and the times within which 50 % and 95 % of its tasks ended."""

    stage: Stage
    running: tuple[StageTask, ...]
    spans_ms: tuple[float, ...]


class DriverLook(NamedTuple):
    """A driver's executors, active stages, ``written`` (finished, blocks in use) and finished stages."""

    executors: tuple[Executor, ...]
    active: tuple[StageNow, ...]
    written: tuple[Stage, ...]
    finished: tuple[Stage, ...] = ()


class Together(NamedTuple):
    """The cores of all active executors, and the number of executors on each host."""

    cores: int
    hosts: Counter[str]


class ExecutorCost(NamedTuple):
    """The prediction for one executor. ``room_in_ms`` -1: unknown, so it is not a candidate."""

    room_in_ms: int
    rest_ms: int
    moved_bytes: int
    lost_ms: int
    overhead_ms: int


def rest_ms(age_ms: int, spans_ms: Sequence[float]) -> int:
    """Return the remaining time of a task by the median and 95 % quantile of its stage; -1: unknown.

    A task older than the quantile is expected to take its age again.
    """
    if not spans_ms or age_ms < 0:
        return -1
    middle_ms, slow_ms = spans_ms[0], spans_ms[-1]
    if age_ms < middle_ms:
        return int(middle_ms - age_ms)
    return int(slow_ms - age_ms) if age_ms < slow_ms else age_ms


def costs(
    look: DriverLook, terms: CostTerms, now_ms: int, *, may_leave_whole: bool = False
) -> dict[str, ExecutorCost]:
    """Return the prediction for each active executor by its id, the earliest to leave first."""
    alive = [each for each in look.executors if each.is_active and not each.is_driver]
    rests = _rests(look.active, now_ms)
    together = Together(sum(max(1, each.cores) for each in alive), Counter(map(_host, alive)))
    predicted = {each.executor: _cost(each, together, look, rests, terms) for each in alive}
    found = {name: predicted[name] for name in sorted(predicted, key=lambda name: _leaves(name, predicted))}
    if found and may_leave_whole:
        last = next(reversed(found))
        lost_ms = max(found[last].lost_ms, cache_again_ms(look))
        found[last] = found[last]._replace(lost_ms=lost_ms)
    return found


def _leaves(name: str, predicted: Mapping[str, ExecutorCost]) -> tuple[int, str]:
    return predicted[name].room_in_ms, name


def cache_again_ms(look: DriverLook) -> int:
    """Return the longest time to compute all cached partitions again, by the longest tasks of any stage."""
    partitions = sum(max(0, each.cached_partitions) for each in look.executors if each.is_active)
    task_ms = max((each.run_ms / each.complete for each in look.finished if each.complete > 0), default=0.0)
    return int(partitions * task_ms)


def _rests(active: Sequence[StageNow], now_ms: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for now in active:
        for task in now.running:
            left_ms = rest_ms(task.age_ms(now_ms), now.spans_ms)
            before_ms = found.get(task.executor, 0)
            found[task.executor] = -1 if -1 in (left_ms, before_ms) else max(left_ms, before_ms)
    return found


def _cost(
    executor: Executor, together: Together, look: DriverLook, rests: Mapping[str, int], terms: CostTerms
) -> ExecutorCost:
    moved = executor.cached_bytes + sum(
        stage.by_executor[executor.executor].shuffle_write
        for stage in (*look.written, *(now.stage for now in look.active))
        if executor.executor in stage.by_executor
    )
    move_ms = moved // max(1, terms.move_bytes_per_ms)
    rest_ms = rests.get(executor.executor, 0)
    last_ms = _last_end_ms(rest_ms, look.active, terms.order_ms)
    leaves_ms = move_ms + terms.leave_ms
    return ExecutorCost(
        room_in_ms=-1 if last_ms < 0 else last_ms + leaves_ms,
        rest_ms=rest_ms,
        moved_bytes=moved,
        lost_ms=_lost_ms(executor, together, look),
        overhead_ms=leaves_ms + terms.return_ms,
    )


def _last_end_ms(left_ms: int, active: Sequence[StageNow], order_ms: int) -> int:
    """Return the time until an executor's last task ends (``left_ms``: its running task); -1: unknown."""
    if left_ms < 0 or left_ms >= order_ms:
        return left_ms
    begun = [now for now in active if now.stage.waiting > 0]
    if any(not now.spans_ms for now in begun):
        return -1
    return max(order_ms, left_ms + int(max((now.spans_ms[0] for now in begun), default=0)))


def _lost_ms(executor: Executor, together: Together, look: DriverLook) -> int:
    """Return the most work in ms that is done twice if this executor leaves now."""
    lost = 0.0
    cores = together.cores - max(1, executor.cores)
    neighbours = together.hosts[_host(executor)] > 1
    for now in look.active:
        middle_ms = now.spans_ms[0] if now.spans_ms else 0.0
        if look.written and (now.stage.shuffle_read > 0 or not now.stage.complete):
            lost += cores * middle_ms
        mine = now.stage.by_executor.get(executor.executor)
        if mine is not None and mine.shuffle_write > 0 and neighbours:
            lost += mine.succeeded * middle_ms
    return int(lost)


def _host(executor: Executor) -> str:
    return executor.host.partition(":")[0]
