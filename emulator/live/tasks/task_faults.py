"""Faults of a job's tasks, for tests and soaks: settings ``emulator.fault.*`` of the job itself.

Law: a fault strikes once, at a named task's first attempt of this master, and does what can happen in real
Hadoop; a job without such settings is never touched.

::

    emulator.fault.kill  = r:2@1500,m:0@0   the AM is told to kill the attempt (KILLED, does not count)
    emulator.fault.fail  = r:1@300          the attempt fails (FAILED, counts)
    emulator.fault.crash = r:0@500          its process ends without a report (exit 137: FAILED, counts)
    emulator.fault.map.rerun = 3            when a reduce is first killed, map 3 is run again
    emulator.fault.map.other = 3            and then gives other keys than the first time

Spans are ms from the beginning of a map, or of a reduce's reduce phase. A task named twice is struck twice:
each of its attempts in turn.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from emulator.live.master.attempts import Attempt
from emulator.live.master.live_master import LiveMaster
from yarnctl.errors import BadInput

KINDS = ("kill", "fail", "crash")
_FAULT = re.compile(r"([mr]):([0-9]{1,6})@([0-9]{1,8})")


class TaskFault(NamedTuple):
    """One fault: what happens to which task how long after it began."""

    kind: str
    is_map: bool
    task: int
    after_ms: int


def read_faults(conf: dict[str, str]) -> list[TaskFault]:
    """Return the faults of a job's settings; BadInput if one cannot be understood."""
    found: list[TaskFault] = []
    for kind in KINDS:
        name = f"emulator.fault.{kind}"
        for text in filter(None, conf.get(name, "").split(",")):
            match = _FAULT.fullmatch(text.strip())
            if match is None:
                raise BadInput(f"-D {name}={text[:40]}", "is not a fault", "use r:TASK@MS or m:TASK@MS")
            found.append(TaskFault(kind, match[1] == "m", int(match[2]), int(match[3])))
    return found


class TaskFaults:
    """The faults of one job that have not struck yet."""

    def __init__(self, conf: dict[str, str]) -> None:
        self._left = read_faults(conf)
        rerun = conf.get("emulator.fault.map.rerun", "")
        self._rerun = int(rerun) if rerun.isdigit() else None

    def rerun_map(self) -> int | None:
        """Return the map that is to run again now, once."""
        rerun, self._rerun = self._rerun, None
        return rerun

    def begun(self, attempt: Attempt, live: LiveMaster) -> None:
        """A map, or a reduce's reduce phase, has begun: let the next fault of its task strike in time."""
        if not attempt.is_map and not attempt.merged_at_ms:
            return
        for fault in self._left:
            if (fault.is_map, fault.task) == (attempt.is_map, attempt.task):
                self._left.remove(fault)
                live.later(max(1, fault.after_ms), lambda struck: _inject(struck, attempt, live), fault)
                return


def _inject(fault: TaskFault, attempt: Attempt, live: LiveMaster) -> None:
    if attempt.over:
        return
    if fault.kind == "kill":
        live.kill_attempt(attempt)
    elif fault.kind == "fail":
        live.fail_attempt(attempt, "a fault of the job's settings")
    else:
        live.crash(attempt)
