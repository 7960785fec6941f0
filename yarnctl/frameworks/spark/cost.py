"""Predict the cost of draining an executor of Spark, from its driver's answers.

* An executor leaves when its last task has ended (it may begin one before the order arrives) and its blocks
  have moved. An executor without a prediction is not a candidate.
* Lost work is work that tasks do twice. ``lost_ms`` is the expected amount, ``bound_ms`` the amount that is
  not exceeded with the chance ``CHANCE``.
* In a map stage each finished map of the executor moves to a peer by chance: one thread for each peer takes
  the next block (``BlockManagerDecommissioner``), also with an external shuffle service. Spark repeats those
  that stay on the host (``TaskSetManager.executorLost``). A fallback storage is one more peer. A map stage
  that ends before the executor has left repeats nothing.
* In a reduce stage Spark does not inform running tasks of the new place of moved blocks (SPARK-44635). So
  each order repeats at most one task for each remaining core. Between stages none.
* Shuffle blocks on reliable storage (Celeborn, Uniffle) neither move nor run again.
* Cached partitions move to memory of executors that stay. An executor with partitions that find none never
  leaves, and begins no task (tried): it is not a candidate. If nobody stays, all are computed again, and the
  executor that would leave last bears that.

Sources: docs/facts/spark.md, 3, 4, 6 and 9.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from yarnctl.frameworks.spark.configuration import LOCAL_BLOCKS, BlockPlaces
from yarnctl.frameworks.spark.rest import Executor, Stage, StageTask, instant_ms

CHANCE, DEVIATIONS = 0.95, 1.645  # The latter: standard deviations of a normal distribution with this chance
EXACT_MAX = 100
MOVERS_MAX = 8  # spark.storage.decommission.shuffleBlocks.maxThreads: peers that receive blocks at once
REDUCE_SHARE = 0.25
"""The expected part of the reduce tasks that can be repeated: of 102 in 52 recorded orders three were
(research/records/spark-soak-2026-11-27-1118 and -28), of six in each of three tries by hand one."""


class CostTerms(NamedTuple):
    """The speed at which blocks move, and times that are the same for all executors, in ms.

    ``leave_ms``: from the last task's end, with nothing to move, until the container is gone. ``return_ms``:
    from a new container until its executor works. ``order_ms``: from the look that predicts until the
    executor begins no further task; another task follows one that ends sooner. ``idle_ms``: how long an
    executor has had no task before it counts as idle.
    """

    move_bytes_per_ms: int
    leave_ms: int
    return_ms: int
    order_ms: int
    idle_ms: int = 0


class StageNow(NamedTuple):
    """An active stage, its running tasks, and the times within which 50 % and 95 % of its tasks ended.

    ``quarter_ms``: the time within which 25 % ended (infinite: unknown).
    """

    stage: Stage
    running: tuple[StageTask, ...]
    spans_ms: tuple[float, ...]
    quarter_ms: float = math.inf

    def again_ms(self, cores: int) -> float:
        """Return the time of a task that runs again: it is never the first one on its core.

        First tasks start a Python worker and load classes. The median is that of a later task once more than
        two tasks for each of the ``cores`` have finished, the lower quartile sooner.
        """
        if not self.spans_ms:
            return 0.0
        is_young = self.stage.complete <= 2 * cores
        return min(self.quarter_ms, self.spans_ms[0]) if is_young else self.spans_ms[0]


class DriverLook(NamedTuple):
    """A driver's executors, active stages, ``written`` (finished, blocks in use) and finished stages.

    ``attempts``: all attempts at stages that the driver still knows.
    """

    executors: tuple[Executor, ...]
    active: tuple[StageNow, ...]
    written: tuple[Stage, ...]
    finished: tuple[Stage, ...] = ()
    attempts: tuple[Stage, ...] = ()


class Together(NamedTuple):
    """The cores of all active executors, the number of executors on each host, and those that are idle."""

    cores: int
    hosts: Counter[str]
    idle: frozenset[str]


AgainKind = Literal["map", "reduce"]


class AgainTasks(NamedTuple):
    """How many tasks of a stage are expected to run again if an executor leaves, before any correction."""

    stage: int
    kind: AgainKind
    tasks: float
    slow_ms: float


class AgainRatios(NamedTuple):
    """By which factor more, or fewer, tasks of an application ran again than expected."""

    maps: float = 1.0
    reduces: float = 1.0


NOT_CORRECTED = AgainRatios()


class ExecutorCost(NamedTuple):
    """The prediction for one executor. ``room_in_ms`` -1: unknown, so it is not a candidate.

    ``lost_ms`` is expected, ``bound_ms`` holds with the chance ``CHANCE``. ``again``: what was expected.
    """

    room_in_ms: int
    rest_ms: int
    moved_bytes: int
    lost_ms: int
    overhead_ms: int
    bound_ms: int = 0
    again: tuple[AgainTasks, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether the driver removes it without moving a block: it has no task and nothing cached."""
        return not self.overhead_ms


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
    look: DriverLook,
    terms: CostTerms,
    now_ms: int,
    *,
    places: BlockPlaces = LOCAL_BLOCKS,
    ratios: AgainRatios = NOT_CORRECTED,
) -> dict[str, ExecutorCost]:
    """Return the prediction for each active executor by its id, the earliest to leave first."""
    alive = [each for each in look.executors if each.is_active and not each.is_driver]
    rests = _rests(look.active, now_ms)
    idle = _idle(alive, look, rests, now_ms - terms.idle_ms) if places.removes_idle else frozenset()
    together = Together(sum(max(1, each.cores) for each in alive), Counter(map(_host, alive)), idle)
    stages = tuple(StageEnd(now, _stage_ends_ms(now, now_ms)) for now in look.active)
    predicted = {
        each.executor: _cost(each, together, look, stages, rests, terms, places, ratios) for each in alive
    }
    known = sorted(
        (name for name, each in predicted.items() if each.room_in_ms >= 0),
        key=lambda name: _leaves(name, predicted),
    )
    kept = no_memory_for(alive, known)
    for name in kept:
        predicted[name] = predicted[name]._replace(room_in_ms=-1)
    if known and len(known) == len(alive) and not kept:
        cost, again_ms = predicted[known[-1]], _cache_again_ms(alive, look.finished)
        lost_ms, bound_ms = cost.lost_ms + again_ms, cost.bound_ms + again_ms
        predicted[known[-1]] = cost._replace(lost_ms=lost_ms, bound_ms=bound_ms)
    return {name: predicted[name] for name in sorted(predicted, key=lambda name: _leaves(name, predicted))}


class StageEnd(NamedTuple):
    """An active stage, and in how many ms its last task ends (-1: unknown, or further tasks wait)."""

    now: StageNow
    ends_in_ms: int


def _stage_ends_ms(now: StageNow, now_ms: int) -> int:
    if now.stage.waiting > 0:
        return -1
    rests = [rest_ms(task.age_ms(now_ms), now.spans_ms) for task in now.running]
    return -1 if -1 in rests else max(rests, default=-1)


def _leaves(name: str, predicted: Mapping[str, ExecutorCost]) -> tuple[int, str]:
    return predicted[name].room_in_ms, name


def no_memory_for(executors: Sequence[Executor], leaving: Sequence[str]) -> set[str]:
    """Return the executors, of those that leave in this order, with cached partitions that fit nowhere else.

    Each of the others may have less room left than one partition needs. The last one needs none.
    """
    partitions = sum(max(0, each.cached_partitions) for each in executors)
    used = sum(max(0, each.memory_used) for each in executors)
    room = {each.executor: max(0, each.memory_max) - used / max(1, partitions) for each in executors}
    cached = {each.executor for each in executors if each.cached_partitions > 0}
    total, found = sum(room.values()), set[str]()
    for name in leaving:
        if name in cached and len(room) > 1 and total - room[name] < used:
            found.add(name)
        else:
            total -= room.pop(name)
    return found


def _cache_again_ms(executors: Sequence[Executor], finished: Sequence[Stage]) -> int:
    """Return the longest time to compute all cached partitions again, by the longest tasks of any stage."""
    partitions = sum(max(0, each.cached_partitions) for each in executors)
    task_ms = max((each.run_ms / each.complete for each in finished if each.complete > 0), default=0.0)
    return int(partitions * task_ms)


def _rests(active: Sequence[StageNow], now_ms: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for now in active:
        for task in now.running:
            left_ms = rest_ms(task.age_ms(now_ms), now.spans_ms)
            before_ms = found.get(task.executor, 0)
            found[task.executor] = -1 if -1 in (left_ms, before_ms) else max(left_ms, before_ms)
    return found


def _idle(
    alive: Sequence[Executor], look: DriverLook, rests: Mapping[str, int], since_ms: int
) -> frozenset[str]:
    """Return the executors without cached partitions that have had no task since an instant.

    The end of a task in an active stage is not known: who had one there counts as busy until the stage ends.
    """
    ended = (instant_ms(each.completed) for each in look.attempts)
    if any(now.stage.waiting > 0 for now in look.active) or max(ended, default=-1) > since_ms:
        return frozenset()
    busy = set(rests).union(*(now.stage.by_executor for now in look.active))
    return frozenset(
        each.executor for each in alive if each.executor not in busy and each.cached_partitions <= 0
    )


def _cost(
    executor: Executor,
    together: Together,
    look: DriverLook,
    stages: Sequence[StageEnd],
    rests: Mapping[str, int],
    terms: CostTerms,
    places: BlockPlaces,
    ratios: AgainRatios,
) -> ExecutorCost:
    rest_ms = rests.get(executor.executor, 0)
    last_ms = _last_end_ms(rest_ms, look.active, terms.order_ms)
    if executor.executor in together.idle:
        return ExecutorCost(last_ms + terms.leave_ms, 0, 0, 0, 0)
    moved = executor.cached_bytes + sum(
        stage.by_executor[executor.executor].shuffle_write
        for stage in (*look.written, *(now.stage for now in look.active))
        if executor.executor in stage.by_executor and not places.are_remote
    )
    leaves_ms = moved // max(1, terms.move_bytes_per_ms) + terms.leave_ms
    room_in_ms = -1 if last_ms < 0 else last_ms + leaves_ms
    losses = () if places.are_remote else tuple(_losses(executor, together, look, stages, room_in_ms, places))
    expected_ms = bound_ms = 0.0
    for loss in losses:
        lost_ms, most_ms = loss.spent_ms(ratios)
        expected_ms, bound_ms = expected_ms + lost_ms, bound_ms + most_ms
    return ExecutorCost(
        room_in_ms=room_in_ms,
        rest_ms=rest_ms,
        moved_bytes=moved,
        lost_ms=int(expected_ms),
        overhead_ms=leaves_ms + terms.return_ms,
        bound_ms=int(max(expected_ms, bound_ms)),
        again=tuple(loss.again() for loss in losses if loss.tasks),
    )


def _last_end_ms(left_ms: int, active: Sequence[StageNow], order_ms: int) -> int:
    """Return the time until an executor's last task ends (``left_ms``: its running task); -1: unknown."""
    if left_ms < 0 or left_ms >= order_ms:
        return left_ms
    begun = [now for now in active if now.stage.waiting > 0]
    if any(not now.spans_ms for now in begun):
        return -1
    return max(order_ms, left_ms + int(max((now.spans_ms[0] for now in begun), default=0)))


class StageLoss(NamedTuple):
    """The tasks of a stage that may run again, and the chance of each; ``task_ms``: the time of one.

    ``peers``: executors (or a storage) that may receive a block, of which ``near`` are on the same host. A
    stage that ends too soon has ``ends_first``: nothing is expected then.
    """

    now: StageNow
    kind: AgainKind
    task_ms: float
    tasks: int
    near: int = 0
    peers: int = 0
    ends_first: bool = False

    @property
    def chance(self) -> float:
        """The chance of each task."""
        return REDUCE_SHARE if self.kind == "reduce" else self.near / self.peers

    @property
    def expected(self) -> float:
        """The expected number of tasks."""
        return 0.0 if self.ends_first else self.tasks * self.chance

    def again(self) -> AgainTasks:
        """Return what is expected, to compare with what will have happened."""
        slow_ms = self.now.spans_ms[-1] if self.now.spans_ms else 0.0
        return AgainTasks(self.now.stage.stage, self.kind, self.expected, slow_ms)

    def spent_ms(self, ratios: AgainRatios) -> tuple[float, float]:
        """Return the work that is expected to run twice, and its bound, ms."""
        ratio = ratios.reduces if self.kind == "reduce" else ratios.maps
        expected = min(float(self.tasks), self.expected * ratio)
        most = self.tasks
        if self.kind == "map":
            most = most_near(self.tasks, self.near, self.peers, ratio)
        return expected * self.task_ms, most * self.task_ms


def _losses(
    executor: Executor,
    together: Together,
    look: DriverLook,
    stages: Sequence[StageEnd],
    room_in_ms: int,
    places: BlockPlaces,
) -> Iterator[StageLoss]:
    cores = together.cores - max(1, executor.cores)
    near = together.hosts[_host(executor)] - 1
    peers = sum(together.hosts.values()) - 1 + places.have_fallback
    for now, ends_in_ms in stages:
        ends_first = 0 <= ends_in_ms <= room_in_ms
        task_ms = now.again_ms(together.cores)
        # With adaptive execution what a stage reads was written by a job that has ended.
        if now.stage.shuffle_read > 0 or (look.written and not now.stage.complete):
            yield StageLoss(now, "reduce", task_ms, cores)
        mine = now.stage.by_executor.get(executor.executor)
        if near > 0 and now.stage.shuffle_write > 0:
            running = sum(task.executor == executor.executor for task in now.running)
            tasks = running + (mine.succeeded if mine is not None else 0)
            yield StageLoss(now, "map", task_ms, tasks, near, peers, ends_first)


@lru_cache(maxsize=4096)
def most_near(blocks: int, near: int, peers: int, ratio: float = 1.0) -> int:
    """Return how many of an executor's blocks stay on its host at most, with the chance ``CHANCE``.

    Of more than ``MOVERS_MAX`` peers only so many, drawn by chance, receive blocks, each as likely.
    ``ratio``: how much more likely near ones are. With more than ``EXACT_MAX`` blocks it is normal.
    """
    movers = min(peers, MOVERS_MAX)
    shares = [
        (math.comb(near, drawn) * math.comb(peers - near, movers - drawn) / math.comb(peers, movers),
         min(1.0, ratio * drawn / movers))
        for drawn in range(min(near, movers) + 1)
    ]  # fmt: skip
    if blocks > EXACT_MAX:
        mean = sum(weight * share for weight, share in shares)
        square = sum(weight * share * (share + (1 - share) / blocks) for weight, share in shares)
        return min(blocks, math.ceil(blocks * (mean + DEVIATIONS * math.sqrt(max(0.0, square - mean**2)))))
    held = 0.0
    for count in range(blocks):
        ways = math.comb(blocks, count)
        held += sum(
            weight * ways * share**count * (1 - share) ** (blocks - count) for weight, share in shares
        )
        if held >= CHANCE:
            return count
    return blocks


def _host(executor: Executor) -> str:
    return executor.host.rpartition(":")[0] or executor.host
