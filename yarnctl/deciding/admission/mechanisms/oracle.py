"""Oracle: the fewest containers that meet the deadline, known beforehand, job by job.

It needs an estimate that is the truth. Source: PYTHIA section III and Justice section 3, "Oracle".
"""

from __future__ import annotations

from typing import Literal

from yarnctl.deciding.admission.records import Request, Terms
from yarnctl.deciding.admission.sizing import NoMemory, OrderChoices, Sizing
from yarnctl.deciding.reasons.verdicts import DeadlineUnreachable, WorkUnknown

Sharing = Literal["held", "rebalanced"]


class SharerChoices(OrderChoices, frozen=True, tag_field="mechanism", tag="sharing"):
    """Fair sharing of what is free among those that wait (``held``); research also replays ``rebalanced``."""

    sharing: Sharing = "held"


NO_DROP_FS = Sizing(
    name="no_drop_fs",
    paper="PYTHIA III 'NoDrop FS'; Justice 3 'Baseline FS'",
    memory=NoMemory(),
    choices=SharerChoices(),
    terms=None,
)
REACTIVE_FS = Sizing(
    name="reactive_fs",
    paper="PYTHIA III and Justice 3 'Reactive FS'",
    memory=NoMemory(),
    choices=SharerChoices(),
    terms=None,
    drops_late=True,
)


class OracleChoices(OrderChoices, frozen=True, tag_field="mechanism", tag="oracle"):
    """The choices of the Oracle."""


HOPELESS = Terms(0, 0, DeadlineUnreachable())
UNKNOWN = Terms(0, 0, WorkUnknown())


def terms(memory: NoMemory, request: Request, now_ms: int, capacity: int, choices: OracleChoices) -> Terms:
    """Return ceil(work / time left): exact, in integers.

    "Allocates the minimum number of resources that a job requires to meet its deadline ... queues
    the job until the resources become available or until its deadline ... is no longer achievable."
    """
    if request.estimate is None:
        return UNKNOWN
    left_ms = request.due_ms - now_ms
    if left_ms <= 0:
        return HOPELESS
    containers = max(1, -(-request.estimate.mean_ms // left_ms))
    if containers > min(request.tasks, capacity):
        return HOPELESS
    return Terms(containers, containers)


ORACLE = Sizing(
    name="oracle",
    paper="PYTHIA III and Justice 3 'Oracle'",
    memory=NoMemory(),
    choices=OracleChoices(),
    terms=terms,
    order="ratio",
    needs_estimate=True,
)
