"""The executors of an emulated Spark application as the mix sees them: the same views as of a real driver.

Law: as ``frameworks/spark/observing``: as many stay as the submitter said, those that would take longest;
while some of an application are leaving, no other is asked.
"""

from __future__ import annotations

from emulator.cluster.entities import RUNNING, Application
from emulator.cluster.executors.spark_master import LEAVE_MS, ORDER_LOOK_MS, SparkMaster
from emulator.cluster.executors.spark_stages import SparkExecutor
from emulator.cluster.resource_manager import attempt_id, container_id
from yarnctl.deciding.model import Accepted, Drain, Grow, Outcome, Refused, TaskView
from yarnctl.deciding.reasons.outcomes import MasterDown, NoSuchApplication, NoSuchContainer
from yarnctl.units import Resources


def executor_views(master: SparkMaster, now_ms: int) -> tuple[TaskView, ...]:
    """Show the executors that work, with how soon each would be gone and what would be done twice."""
    shown = [each for each in master.executors.values() if each.works and each.container.state == RUNNING]
    room_ms = {each.number: _room_in_ms(master, each, now_ms) for each in shown}
    shown.sort(key=lambda each: (room_ms[each.number], each.number))
    leaving = any(each.decision for each in master.executors.values())
    free = 0 if leaving else max(0, len(shown) - master.shape.min_executors)
    return tuple(
        _view(master, each, room_ms[each.number], now_ms, may_leave=place < free)
        for place, each in enumerate(shown)
    )


def _room_in_ms(master: SparkMaster, executor: SparkExecutor, now_ms: int) -> int:
    """Return how long until an executor's container is gone, its node's report included."""
    timing = master.timing
    heard_ms = ORDER_LOOK_MS if master.shape.route == "plugin" else timing.nm_heartbeat_ms
    rest_ms = max(heard_ms, master.rest_ms(executor, now_ms))
    return rest_ms + master.move_ms(executor) + timing.exit_ms + timing.nm_heartbeat_ms


def _view(
    master: SparkMaster, executor: SparkExecutor, room_in_ms: int, now_ms: int, *, may_leave: bool
) -> TaskView:
    container = executor.container
    others = [each for each in master.executors.values() if each is not executor]
    back_ms = LEAVE_MS + master.timing.launch_ms + master.shape.start_ms
    return TaskView(
        attempt=attempt_id(container),
        container=container_id(container),
        node=container.node.name,
        size=Resources(container.memory_mib, container.vcores),
        kind="executor",
        remaining_ms=room_in_ms,
        resume_cost_ms=back_ms,
        since_ms=now_ms - master.stages.twice_ms(executor, others, master.shape.cores),
        generation=0,
        checkpointable=may_leave,
        resumed=False,
    )


def obey(app: Application | None, action: Drain | Grow) -> Outcome:
    """Ask an executor to leave, or let its application grow; one that has ended needs nothing."""
    master = None if app is None or app.finished_at_ms is not None else app.master
    if isinstance(action, Grow):
        if isinstance(master, SparkMaster):
            master.grow(action.decisions)
        return Accepted()
    return _drain(master, action) if isinstance(master, SparkMaster) else Refused(NoSuchApplication())


def _drain(master: SparkMaster, drain: Drain) -> Outcome:
    container = master.running.get(int(drain.container.rpartition("_")[2]))
    mates = {int(name.rpartition("_")[2]) for name in drain.mates}
    if container is None:
        return Refused(NoSuchContainer())
    if container.order == drain.order:
        return Accepted()
    only_idle = drain.idle is True
    if not master.drain(container, drain.order, drain.decision, mates, only_idle=only_idle):
        return Refused(MasterDown() if not master.alive else NoSuchContainer())
    return Accepted()
