"""What the journal holds of admissions: one record for everything that changes the gate.

Law: as of all records (``yarnctl.deciding.records``): the reason is part of it, and it holds what it was
decided from. A round holds the loads it saw and the plans that changed, so that it can be held again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.deciding.admission.capacity import Load, Pool
from yarnctl.deciding.admission.mechanisms import OwnChoices
from yarnctl.deciding.admission.records import Finished, Plan, Request, Reservation
from yarnctl.deciding.reasons.verdicts import ClosedReason, LessonReason


class GateSet(msgspec.Struct, frozen=True, tag="gate-set"):
    """By what is decided from now on: the mechanism with its choices, and what may be given.

    Another mechanism, or other choices, begin with an empty memory.
    """

    at_ms: int
    mechanism: str
    pools: tuple[Pool, ...]
    choices: OwnChoices


class AdmissionAsked(msgspec.Struct, frozen=True, tag="admission-asked", omit_defaults=True):
    """Somebody asks to be let in; ``key`` is his own name for it.

    ``request.submitted_at_ms`` is when he came, which may be some time before it is written down.
    """

    at_ms: int
    admission: str
    name: str
    user: str
    queue: str
    request: Request
    key: str = ""


class AdmissionRound(msgspec.Struct, frozen=True, tag="admission-round"):
    """A round: what was held by others, each plan that is new for who waited, what was reserved."""

    at_ms: int
    loads: tuple[Load, ...]
    plans: tuple[Plan, ...]
    granted: tuple[Reservation, ...] = ()


class AdmissionTaken(msgspec.Struct, frozen=True, tag="admission-taken"):
    """An admitted job has been seen on the cluster, by its tag."""

    at_ms: int
    admission: str
    application: str


class AdmissionClosed(msgspec.Struct, frozen=True, tag="admission-closed"):
    """An admission is over, and what it held is free."""

    at_ms: int
    admission: str
    state: Literal["withdrawn", "expired", "ended"]
    why: ClosedReason


class GateLearned(msgspec.Struct, frozen=True, tag="gate-learned", omit_defaults=True):
    """What finished jobs teach: one that was let in (``application``), or ("") those of before.

    Nothing (``finished`` empty) is learned for the reason ``why``.
    """

    at_ms: int
    application: str
    finished: tuple[Finished, ...]
    why: LessonReason | None = None
