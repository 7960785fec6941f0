"""Admission events in the journal: one record for everything that changes the gate.

A round has the backlog it was given and the plans that changed, so that it can be repeated.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.deciding.admission.capacity import Load, Pool, PoolLoads
from yarnctl.deciding.admission.mechanisms import OwnChoices
from yarnctl.deciding.admission.records import Finished, Plan, Request, Reservation
from yarnctl.deciding.reasons.verdicts import ClosedReason, LessonReason


class GateSet(msgspec.Struct, frozen=True, tag="gate-set"):
    """The gate's settings from now on; another mechanism, or other choices, begin with an empty memory."""

    at_ms: int
    mechanism: str
    pools: tuple[Pool, ...]
    choices: OwnChoices


class ClockSetBack(msgspec.Struct, frozen=True, tag="admission-clock-set-back"):
    """The clock shows ``by_ms`` less than the time that has passed would have made it show.

    From now on all instants of the gate are ``by_ms`` earlier, so that every span continues; deadlines are
    instants of the wall clock and stay.
    """

    at_ms: int
    by_ms: int


class AdmissionAsked(msgspec.Struct, frozen=True, tag="admission-asked", omit_defaults=True):
    """An admission request; ``key`` is its sender's own name for it.

    ``request.submitted_at_ms`` is when it came, which may be some time before it is written down.
    """

    at_ms: int
    admission: str
    name: str
    user: str
    queue: str
    request: Request
    key: str = ""


class AdmissionRound(msgspec.Struct, frozen=True, tag="admission-round", omit_defaults=True):
    """A round: the backlog, each plan that is new for a waiting request, what was reserved.

    ``blocking``: the running admissions, by number, whose containers could not be suspended. ``pool_loads``:
    the backlog of each pool that has a name and any.
    """

    at_ms: int
    loads: tuple[Load, ...]
    plans: tuple[Plan, ...]
    granted: tuple[Reservation, ...]
    blocking: tuple[int, ...] = ()
    pool_loads: PoolLoads = ()


class AdmissionStarted(msgspec.Struct, frozen=True, tag="admission-started"):
    """The job of an admitted request was observed on the cluster, by its tag."""

    at_ms: int
    admission: str
    application: str


class AdmissionClosed(msgspec.Struct, frozen=True, tag="admission-closed", omit_defaults=True):
    """An admission has ended, and its containers are free.

    ``finished_at_ms``: when its application ended, by YARN (None: not known, or there was none). A paid
    deadline is missed by that instant, whenever it was noticed.
    """

    at_ms: int
    admission: str
    state: Literal["withdrawn", "expired", "ended"]
    why: ClosedReason
    finished_at_ms: int | None = None


class GateLearned(msgspec.Struct, frozen=True, tag="gate-learned", omit_defaults=True):
    """Feedback from finished jobs: from an admitted one (``application``), or ("") from those of before.

    There is none (``finished`` is empty) for the reason ``why``.
    """

    at_ms: int
    application: str
    finished: tuple[Finished, ...]
    why: LessonReason | None = None
