"""Every invariant catches the bug it is there for: each is planted, and named exactly.

Law: a bug is a wrong version of one method, or one field that is wrong at one event. A new
invariant without a planted bug fails here, and so does a bug that no invariant, or another
one, notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from emulator.cluster.app_master import AppMaster
from emulator.cluster.cluster import Cluster, Sweep
from emulator.cluster.entities import (
    AM,
    DRAINING,
    ENDED,
    NEVER,
    NOT_REQUESTED,
    REDUCE,
    RELEASE_WAIT,
    RUNNING,
    Ask,
    Container,
)
from emulator.cluster.executors.spark_master import SparkMaster
from emulator.cluster.executors.spark_stages import TaskRun
from emulator.cluster.kernel import Kernel
from emulator.cluster.pending_tasks import PendingTasks
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import container_id
from emulator.cluster.scheduler import CapacityScheduler
from emulator.cluster.suspension import Suspension
from emulator.cluster.task import Piece, SavedReduce
from emulator.invariants import AT_END, INVARIANTS, RunWatch, check_end
from emulator.virtual.run import Run
from tests.property.stories import STORIES, tell
from yarnctl.deciding.loss_budget import LossLeft
from yarnctl.deciding.model import Accepted
from yarnctl.deciding.records import Decision
from yarnctl.deciding.settings import LeverSettings
from yarnctl.errors import InvariantBroken
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import tick
from yarnctl.units import Resources

Corruption = Callable[[RunWatch], bool]
"""Make one field wrong, or return False: not yet."""


# --- fields that are wrong at one event -------------------------------------------------------


def some(watch: RunWatch, **wanted: Any) -> Iterator[Container]:
    for container in watch.live_now():
        if all(getattr(container, field) == value for field, value in wanted.items()):
            yield container


def set_on(where: Callable[[RunWatch], Any], field: str, value: Callable[[Any], Any]) -> Corruption:
    """Return what sets a field of the first thing found to a wrong value."""

    def corrupt(watch: RunWatch) -> bool:
        found = where(watch)
        if found is not None:
            setattr(found, field, value(getattr(found, field)))
        return found is not None

    return corrupt


def first(**wanted: Any) -> Callable[[RunWatch], Container | None]:
    return lambda watch: next(some(watch, **wanted), None)


def queue(watch: RunWatch) -> Any:
    return watch.scheduler.queues["research"]


def parent(watch: RunWatch) -> Any:
    assert isinstance(watch.scheduler, TreeScheduler)
    return watch.scheduler.nodes["all"]


def app(watch: RunWatch) -> Any:
    return next((each for each in watch.rm.applications.values() if each.asks), None)


def saved(watch: RunWatch) -> tuple[AppMaster, int] | None:
    return next(((master, task) for master in watch.masters for task in master.store), None)


def off_beat(watch: RunWatch) -> Container | None:
    now_ms, interval_ms = watch.kernel.now_ms, watch.cluster.timing.nm_heartbeat_ms
    return next((each for each in some(watch) if (now_ms - each.node.phase_ms) % interval_ms), None)


def lost_node_speaks(watch: RunWatch) -> bool:
    lost = [node for node in watch.nodes if node.lost]
    for node in lost:
        node.exited += (next(some(watch)),)
    return bool(lost)


def another_number(watch: RunWatch) -> bool:
    for container in some(watch):
        live = watch.scheduler.live
        live[container.number + 1000] = live.pop(container.number)
        return True
    return False


def user_holds_more(watch: RunWatch) -> bool:
    users = queue(watch).users
    for user in users:
        users[user] += 1
    return bool(users)


def unreserved(watch: RunWatch) -> bool:
    watch.masters[0].app.reserved[10] = 1
    return True


def mail_lost(watch: RunWatch) -> bool:
    for each in watch.rm.applications.values():
        if each.mail_granted:
            each.mail_granted.clear()
            return True
    return False


def finished_lives(watch: RunWatch) -> bool:
    for master in watch.masters:
        if master.app.finished_at_ms is not None:
            master.alive = True
            return True
    return False


def gap(watch: RunWatch) -> bool:
    found = saved(watch)
    if found is None:
        return False
    master, task = found
    master.keys._pieces[task][0] = Piece(0, 1, 1)
    return True


def foreign_generation(watch: RunWatch) -> bool:
    found = saved(watch)
    if found is None:
        return False
    master, task = found
    master.store[task] = SavedReduce(7, master.store[task].keys_done)
    return True


def checkpoint_lost(watch: RunWatch) -> bool:
    found = saved(watch)
    if found is None or found not in watch.saved:
        return False
    master, task = found
    del master.store[task], master.keys._pieces[task]
    return True


def committed_by_nobody(watch: RunWatch) -> bool:
    for master in watch.masters:
        for task, attempt in enumerate(master.keys.committed):
            if attempt >= 0:
                master.keys.committed[task] = 99
                return True
    return False


def order_from_the_future(watch: RunWatch) -> bool:
    assert watch.controller is not None
    ledger = watch.controller.ledger
    ledger.issued -= 1 if ledger.open else 0
    return bool(ledger.open)


def foreign_order(watch: RunWatch) -> bool:
    assert watch.controller is not None
    ledger = watch.controller.ledger
    for container in some(watch, state=RUNNING):
        own = ledger.by_container.get(container_id(container))
        others = sorted(watch.decided - {own})
        if own is not None and own == container.order and others:
            container.order = others[0]
            return True
    return False


def nothing_may_be_lost(watch: RunWatch) -> bool:
    """The settings say so after a kill was decided."""
    assert watch.controller is not None
    settings = watch.controller.settings
    fresh = [record for record in watch.records[watch.read :] if isinstance(record, Decision)]
    if not any(pull is not None and pull.lever.kind == "kill" for record in fresh for pull in record.pulls):
        return False
    assert isinstance(settings.levers, LeverSettings)
    levers = msgspec.structs.replace(settings.levers, may_lose_ratio=0.0)
    watch.controller.settings = msgspec.structs.replace(settings, levers=levers)
    return True


def charge_lost(watch: RunWatch) -> bool:
    """A charge is forgotten at the step that makes another."""
    assert watch.controller is not None
    charges = watch.controller.ledger.losses.charges
    if not charges or len(watch.records) == watch.read:
        return False
    del charges[next(iter(charges))]
    return True


def more(amount: int) -> Callable[[Any], Any]:
    return lambda value: value + amount


def node(watch: RunWatch) -> Any:
    return watch.nodes[0]


def closed_node_list(watch: RunWatch) -> bool:
    was = bool(watch.rm.open_nodes)
    watch.rm.open_nodes.clear()
    return was


def spent(watch: RunWatch) -> AppMaster | None:
    return next(iter(watch.spent), None)


def asking(watch: RunWatch) -> Any:
    found = app(watch)
    return found and found.asks[0]


RUNNING_REDUCE = {"kind": REDUCE, "state": RUNNING, "stage": NOT_REQUESTED}

FIELDS: dict[str, tuple[str, Corruption]] = {
    "no-map-is-killed-without-a-budget": ("mix", nothing_may_be_lost),
    "a-restart-finds-the-same-losses": ("mix", charge_lost),
    "clock-never-goes-back": ("natjam", set_on(lambda watch: watch.kernel, "now_ms", lambda _: 0)),
    "room-never-negative": ("natjam", set_on(node, "free_mib", lambda _: -1)),
    "room-adds-up": ("natjam", set_on(node, "free_vcores", more(1))),
    "cluster-is-its-nodes": ("natjam", set_on(lambda w: w.rm, "total", lambda _: Resources(1024, 1))),
    "open-nodes-have-room": ("natjam", closed_node_list),
    "lost-nodes-are-empty": ("faulty", lost_node_speaks),
    "one-container-one-place": ("natjam", another_number),
    "grants-come-on-heartbeats": (
        "natjam",
        lambda w: set_on(off_beat, "granted_at_ms", lambda _: w.kernel.now_ms)(w),
    ),
    "queue-is-its-containers": ("natjam", set_on(queue, "used_mib", more(1))),
    "parent-is-its-queues": ("nested", set_on(parent, "used_mib", more(1))),
    "application-is-its-containers": ("natjam", set_on(app, "containers", more(1))),
    "user-is-its-applications": ("limited", user_holds_more),
    "asks-are-in-order": ("natjam", set_on(asking, "count", lambda _: 0)),
    "pending-is-the-sum-of-asks": ("natjam", set_on(app, "pending", more(1))),
    "reservations-are-counted": ("natjam", unreserved),
    "granted-is-in-the-mail": ("natjam", mail_lost),
    "finished-jobs-own-nothing": ("natjam", finished_lives),
    "tasks-left-are-counted": ("natjam", set_on(spent, "maps_left", more(1))),
    "keys-without-gap": ("natjam", gap),
    "manifest-is-the-last-piece": ("natjam", foreign_generation),
    "saved-only-grows": ("natjam", checkpoint_lost),
    "attempts-go-on-where-saved": ("natjam", set_on(first(**RUNNING_REDUCE), "log_from_key", more(1))),
    "committed-by-its-last-attempt": ("natjam", committed_by_nobody),
    "requested-has-an-order": ("natjam", set_on(first(stage=RELEASE_WAIT), "order", lambda _: "")),
    "draining-stops-at-a-border": ("natjam", set_on(first(stage=DRAINING), "to_key", lambda _: 24)),
    "release-wait-has-a-manifest": ("natjam", set_on(first(stage=RELEASE_WAIT), "to_key", more(1))),
    "lost-only-by-an-end": ("natjam", set_on(spent, "lost_ms", more(1000))),
    "counters-only-grow": ("natjam", set_on(spent, "overhead_ms", more(-1))),
    "ledger-is-sound": ("natjam", order_from_the_future),
    "containers-match-the-ledger": ("natjam", foreign_order),
}


# --- methods that are wrong -------------------------------------------------------------------


def latest_first(self: Kernel) -> int | None:
    return max(self.waiting_ms(), default=None)


def never_heard(self: Suspension, *_: Any) -> int:
    return NEVER + 5


def dies_working(self: Cluster, node: Any) -> None:
    node.dead, node.silent_until_ms = True, NEVER
    self.kernel.at(self.kernel.now_ms + self.timing.node_expiry_ms, self._node_expires, node)


def racked(self: Ask, priority: int, memory_mib: int, vcores: int, off_switch: bool) -> None:
    self.priority, self.memory_mib, self.vcores, self.off_switch = priority, memory_mib, vcores, False
    self.count = 0


def silent_exit(self: Cluster, container: Container, at_ms: int) -> None:
    container.exit_at_ms = at_ms


def offer_beyond(self: CapacityScheduler, node: Any) -> Any:
    kept = [(each, each.maximum_mib, each.maximum_vcores) for each in self.queues.values()]
    for each, _, _ in kept:
        each.maximum_mib = each.maximum_vcores = 10**9
    found = OFFERS_NEXT(self, node)
    for each, mib, vcores in kept:
        each.maximum_mib, each.maximum_vcores = mib, vcores
    return found


OFFERS_NEXT = CapacityScheduler._next


def activate_all(self: CapacityScheduler, queue: Any) -> None:
    while queue.waiting:
        app = queue.waiting.pop(0)
        app.activated = True
        queue.am_used_mib += app.am_mib
        if app.asks:
            self._enlist(app)


def activate_one(self: CapacityScheduler, queue: Any) -> None:
    if not queue.am_used_mib and queue.waiting:
        app = queue.waiting.pop(0)
        app.activated = True
        queue.am_used_mib += app.am_mib
        self._enlist(app)


def enlist_first(self: CapacityScheduler, app: Any) -> None:
    app.queue.demand.insert(0, app)
    self.demanding = [each for each in self.queues.values() if each.demand]


def forget(self: Any, *_: Any) -> None:
    """Do nothing."""


def queue_without_asking(self: PendingTasks, task: int) -> None:
    self.unassigned[10].append(task)


def run_and_keep(self: SparkMaster, executor: Any, stage: int, task: int, now_ms: int, **more: Any) -> None:
    """Begin a task that stays in line as well."""
    self.stages.waiting[stage].append(task)
    run = TaskRun(executor, stage, task, now_ms, now_ms + self.stages.lengths_ms[stage][task])
    executor.runs.append(run)
    self.kernel.at(run.ends_ms, self._task_done, run)


def fill_beyond(self: SparkMaster) -> None:
    """Give all that waits to the first executor."""
    stage = self.stages.current()
    for executor in [each for each in self.executors.values() if each.works][:1]:
        while self.stages.waiting[stage]:
            self._run(executor, stage, self.stages.waiting[stage].popleft(), self.kernel.now_ms)


def end_without_cancelling(self: AppMaster, container: Container, ending: str) -> None:
    container.state, container.terminal_state = ENDED, ending
    self.running.pop(container.number, None)


def release_unsaved(self: Suspension, container: Container, order: str) -> Accepted:
    container.app.master.suspended(container, self.kernel.now_ms)
    return Accepted()


def write_twice(self: MemoryJournal, records: Any) -> None:
    for record in records:
        self.records += [record, record] if isinstance(record, Decision) else [record]


def write_no_decision(self: MemoryJournal, records: Any) -> None:
    self.records += [record for record in records if not isinstance(record, Decision)]


def allow_all(self: LossLeft, pulls: Any) -> bool:
    return True


def oversleep(self: Run, grid_ms: int) -> None:
    assert self.controller is not None
    now_ms = self.cluster.kernel.now_ms
    wake_at_ms = tick(self.controller, self.port, self.journal)
    self.cluster.kernel.at(now_ms if wake_at_ms <= now_ms else now_ms + 10 * grid_ms, self._tick, grid_ms)


METHODS: dict[str, tuple[str, type, str, Callable[..., Any]]] = {
    "next-event-is-the-earliest": ("natjam", Kernel, "next_at_ms", latest_first),
    "no-event-at-never": ("natjam", Suspension, "_notified_at_ms", never_heard),
    "lost-processes-do-no-work": ("faulty", Cluster, "_node_dies", dies_working),
    "one-off-switch-per-heartbeat": ("natjam", Ask, "__init__", racked),
    "ended-is-reported": ("natjam", Cluster, "exit", silent_exit),
    "within-maximum": ("capped", CapacityScheduler, "_next", offer_beyond),
    "within-user-limit": ("limited", CapacityScheduler, "_over_user_limit", lambda self, app: False),
    "masters-within-am-share": ("limited", CapacityScheduler, "activate", activate_all),
    "no-servable-ask-waits": ("meddled", CapacityScheduler, "activate", activate_one),
    "demand-is-listed": ("natjam", CapacityScheduler, "_enlist", enlist_first),
    "free-room-is-offered": ("natjam", Sweep, "begin", forget),
    "one-master-per-job": ("faulty", Cluster, "_end_master", forget),
    "task-in-one-place": ("meddled", AppMaster, "_again", forget),
    "every-task-is-asked-for": ("meddled", PendingTasks, "add_reduce", queue_without_asking),
    "no-end-is-missed": ("natjam", AppMaster, "on_reduce_done", forget),
    "no-work-after-the-end": ("meddled", AppMaster, "_end", end_without_cancelling),
    "suspended-has-saved": ("meddled", Suspension, "release", release_unsaved),
    "records-are-in-order": ("natjam", MemoryJournal, "append", write_twice),
    "journal-before-action": ("natjam", MemoryJournal, "append", write_no_decision),
    "losses-stay-within-the-budget": ("mix", LossLeft, "allows", allow_all),
    "controller-has-a-wake-up": ("natjam", Run, "_tick", oversleep),
    "blocks-are-held": ("sparks", SparkMaster, "_hand_over", forget),
    "executor-has-its-container": ("sparks", SparkMaster, "_fill", fill_beyond),
    "task-of-a-stage-in-one-place": ("sparks", SparkMaster, "_run", run_and_keep),
}


def uncommitted(watch: RunWatch) -> None:
    watch.masters[0].keys.committed[0] = -1


def still_running(watch: RunWatch) -> None:
    next(some(watch, kind=AM)).state = RUNNING


ENDINGS: dict[str, Callable[[RunWatch], Any]] = {
    "all-jobs-are-done": set_on(lambda watch: watch.masters[0].app, "finished_at_ms", lambda _: None),
    "all-keys-are-committed": uncommitted,
    "only-last-exits-are-held": still_running,
    "no-resource-is-open": set_on(queue, "am_used_mib", more(1024)),
    "suspending-loses-nothing": set_on(spent, "lost_ms", more(1)),
}


# --- tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("story", STORIES)
def test_without_a_bug_every_story_ends_well(story):
    watch = tell(STORIES[story]())
    check_end(watch)
    assert watch.checks > 60


def test_the_stories_have_in_them_what_the_bugs_need():
    watch = tell(STORIES["natjam"]())
    assert sum(master.suspensions for master in watch.masters) >= 4
    assert sum(master.lost_ms for master in watch.masters) == 0
    assert len(watch.decided) >= 4


def test_in_the_story_of_the_mix_each_lever_is_pulled():
    run = STORIES["mix"]()
    assert isinstance(run, Run)
    watch = tell(run)
    assert run.levers is not None
    pulled = run.levers.close().pulled
    unused = [lever for lever, count in pulled.items() if not count]
    assert unused == ["drain", "rescale"], "no job is of Spark or Flink"
    assert sum(master.lost_ms for master in watch.masters) > 0


def test_in_the_story_of_spark_executors_leave_come_back_and_do_work_twice():
    run = STORIES["sparks"]()
    assert isinstance(run, Run)
    watch = tell(run)
    (spark,) = (master for master in watch.masters if isinstance(master, SparkMaster))
    assert spark.drained >= 2
    assert spark.target == spark.shape.executors, "it was told to grow"
    assert 0 < spark.again_ms <= 10 * 2500 * len(watch.decided)
    assert spark.lost_ms == 0


def test_every_invariant_has_a_planted_bug():
    assert set(FIELDS) | set(METHODS) == set(INVARIANTS)
    assert not set(FIELDS) & set(METHODS)
    assert set(ENDINGS) == set(AT_END)
    assert len(INVARIANTS) + len(AT_END) >= 25


@pytest.mark.parametrize("name", FIELDS)
def test_a_wrong_field_is_named(name):
    story, corrupt = FIELDS[name]
    planted: list[int] = []

    def plant(watch: RunWatch) -> None:
        if not planted and watch.checks > 60 and corrupt(watch):
            planted.append(watch.kernel.now_ms)

    with pytest.raises(InvariantBroken) as broken:
        tell(STORIES[story](), plant)
    assert planted
    assert broken.value.name == name


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_method_is_named(name, monkeypatch):
    story, owner, method, wrong = METHODS[name]
    monkeypatch.setattr(owner, method, wrong)
    with pytest.raises(InvariantBroken) as broken:
        tell(STORIES[story]())
    assert broken.value.name == name


@pytest.mark.parametrize("name", ENDINGS)
def test_a_wrong_end_is_named(name):
    watch = tell(STORIES["natjam"]())
    check_end(watch)
    ENDINGS[name](watch)
    with pytest.raises(InvariantBroken) as broken:
        check_end(watch)
    assert broken.value.name == name
