"""The rule of fitness about queues that yarnctl has lowered (``--hold-queue``) and not put back.

Law: pure; see ``fitness``. A rule's docstring is why it matters, as users read it.
"""

from __future__ import annotations

from yarnctl.attach.check.preflight import Facts, Word, fail, number_of, ok, unknown, warn
from yarnctl.hadoop.lowered_queues import Lowered, command_for, same_ratio


def lowered(facts: Facts) -> Word:
    """A queue that yarnctl lowered while it made room stays small until somebody puts it back."""
    if facts.lowered is None:
        return unknown(facts.reason("lowered"))
    for name, record in facts.lowered.items():
        path = f"{facts.lock_path}/{name}"
        if record is None:
            fix = f"compare the victim queues' maxima with capacity-scheduler.xml, then: hdfs dfs -rm {path}"
            return warn(f"{path} is no record of a lowered queue", fix)
        for one in record.queues:
            if _is_down(facts, one):
                return _named(facts, one, is_held=record.holder == facts.lock_holder)
    return ok("no queue stands lowered by yarnctl")


def _named(facts: Facts, one: Lowered, *, is_held: bool) -> Word:
    """Name a lowered queue, and the command that mends it."""
    now, before = one.ratio * 100, one.before_ratio * 100
    said = f"{one.queue} stands at {now:g} %, lowered by yarnctl from {before:g} %"
    command = command_for(one.queue, one.before_ratio)
    if is_held:
        return warn(f"{said}, which holds the lock and puts it back", f"if that yarnctl is gone: {command}")
    return fail(f"{said}, which holds the lock no more", f"run yarnctl with --enforce, or: {command}")


def _is_down(facts: Facts, one: Lowered) -> bool:
    """Say whether a queue still stands as it was set; where that is not shown it counts as down."""
    percent = number_of(facts.capacity(f"{one.queue}.maximum-capacity"))
    if percent is None and (found := facts.of((one.queue,))):
        percent = found[0].queue.maximum_percent
    return percent is None or same_ratio(percent / 100, one.ratio)
