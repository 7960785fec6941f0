"""What is promised at one instant: fixed load, masters, and what each job has still to do (MRM section 5).

The remaining work of a running job is not observed; it is what the plan of the last round leaves of it by
now, and all of it until the job is submitted. A job that ends sooner makes no other later, so this is
conservative while estimates hold. YARN takes no container from a running task that cannot be suspended: a job
of such tasks is fixed load for its longest task, and for all its remaining work where its tasks are not
known.

A waiting master holds a container and computes nothing. So a job whose deadline is sold is submitted at its
turn (``turns``), and from then on its master is fixed load until its planned end. A few containers are kept
for masters that come early. Where phases are not known the master is part of the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import Load, Profile, profile
from yarnctl.deciding.admission.pricing.master_loads import Master, masters_load
from yarnctl.deciding.admission.pricing.timeline import Due, by_deadline, judged, left_at
from yarnctl.deciding.admission.records import DueClaim, Rectangle, Reservation, merged
from yarnctl.deciding.admission.rounds import Promised, Seen

LATE_FOR_MIN_MS = 60_000
"""A job that is late is expected to run as long again as it is late, and at least so long."""
EARLY_MASTERS_OF, EARLY_MASTERS_MAX = 12, 4
"""One container of so many, and no more than so many, is kept for masters that come before their turn."""


class MrmChoices(msgspec.Struct, frozen=True, tag_field="mechanism", tag="mrm"):
    """``kappa`` of Eq 13; ``late_ratio``: the chance that a job computes more than was kept free for it.

    ``job_ms`` stands for the mean work of a job (m of Eq 13) until a job has finished.
    """

    kappa: float = 1.0
    late_ratio: float = 0.05
    job_ms: int = 600_000


class MrmMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="mrm"):
    """How many jobs have finished, and what they computed in all."""

    completed: int = 0
    work_ms: int = 0


class Market(NamedTuple):
    """What is promised at one instant: ``free`` beside fixed load, the ``dues``, which of them run already.

    ``mean_ms`` is the mean work of a job, ``capacity`` that of the cluster without what is kept for masters
    that come early. ``masters`` are those of submitted jobs, ``base`` what is free beside all other load.
    """

    now_ms: int
    capacity: int
    free: Profile
    dues: tuple[Due, ...]
    running: frozenset[str]
    mean_ms: float
    base: Profile
    masters: dict[str, Master]

    def tried(self, due: Due) -> tuple[int, bool]:
        """Return when one job more would end, and whether another's promise would be broken by it."""
        free = self.free
        if self.masters:  # a job that is served later holds its master longer
            dues = (*self.dues, due)
            free = self.base.with_loads(masters_load(self.base, dues, self.masters, self.now_ms))
        return judged(free, self.dues, self.now_ms, due)

    def breaks(self, due: Due) -> bool:
        """Say whether a promise would be broken by one job more, its own or another."""
        ends_ms, broken = self.tried(due)
        return broken or ends_ms > due.due_at_ms


def market(memory: MrmMemory, choices: MrmChoices, seen: Seen) -> Market:
    """Return what is promised, with what each job has still to do at most."""
    now_ms, capacity = seen.now_ms, usable(seen)
    fixed, dues = _divided(seen)
    dues = [due for due in dues if due.work_ms]
    masters = _masters(seen)
    blocked, kept = _blocked(seen, dues, profile(capacity, fixed, now_ms).free_at(now_ms) - len(masters))
    for load in blocked:
        if load.who in masters:
            masters[load.who] = masters[load.who]._replace(
                until_ms=load.until_ms + masters[load.who].latency_ms
            )
    base = profile(capacity, (*fixed, *blocked), now_ms)
    free = base.with_loads(masters_load(base, kept, masters, now_ms))
    running = frozenset(str(each.request.sequence) for each in seen.reserved if each.application)
    mean_ms = memory.work_ms / memory.completed if memory.work_ms else float(choices.job_ms)
    return Market(now_ms, capacity, free, kept, running, mean_ms, base, masters)


def early_masters(capacity: int) -> int:
    """Return how many containers are kept for masters that come before their turn."""
    return min(EARLY_MASTERS_MAX, capacity // EARLY_MASTERS_OF)


def usable(seen: Seen) -> int:
    """Return the containers that promises are made of."""
    capacity = seen.pools[0].capacity
    return capacity - early_masters(capacity)


def is_submitted(reservation: Reservation) -> bool:
    """Say whether a job's turn has come: it is there, or will be at once."""
    return reservation.sold is None


def _masters(seen: Seen) -> dict[str, Master]:
    """Return the masters of submitted jobs, also in their last tasks, as far as phases are known."""
    found = {}
    for each in seen.reserved:
        claim = each.claim
        if isinstance(claim, DueClaim) and claim.master_ms and is_submitted(each):
            last_ms = claim.until_ms + claim.latency_ms
            if claim.until_ms > seen.now_ms:
                found[str(each.request.sequence)] = Master(claim.latency_ms)
            elif last_ms > seen.now_ms:
                found[str(each.request.sequence)] = Master(0, last_ms)
    return found


def _blocked(seen: Seen, dues: Sequence[Due], containers: int) -> tuple[list[Load], tuple[Due, ...]]:
    """Return the load of tasks that cannot be suspended, and what is due beside it.

    Their jobs' other tasks are served by deadline. All of them have ``containers`` now, no more; which of
    them holds how many is not seen: the earliest deadlines first.
    """
    blocking = set(seen.blocking)
    if not blocking:
        return [], tuple(by_deadline(dues))
    claims = {
        str(each.request.sequence): each.claim for each in seen.reserved if each.request.sequence in blocking
    }
    loads, kept = list[Load](), list[Due]()
    for due in by_deadline(dues):
        claim, wide = claims.get(due.who), min(due.most, containers)
        if not isinstance(claim, DueClaim) or wide <= 0:
            kept.append(due)
            continue
        containers -= wide
        rest_ms = -(-due.work_ms // wide)
        held_ms = min(rest_ms, claim.task_ms or rest_ms)
        loads.append(Load(due.who, wide, seen.now_ms, seen.now_ms + held_ms))
        if due.work_ms > wide * held_ms:
            kept.append(due._replace(work_ms=due.work_ms - wide * held_ms))
    return loads, tuple(kept)


def _divided(seen: Seen) -> tuple[list[Load], list[Due]]:
    """Return fixed load with jobs that are late, and what each promise has left to do, which may be nothing.

    Of a submitted job the work is that of its tasks, on one container less: its master is load of its own.
    """
    now_ms, capacity, left_ms = seen.now_ms, usable(seen), _left(seen)
    fixed, dues = list(seen.loads), list[Due]()
    for each in seen.reserved:
        who, claim = str(each.request.sequence), each.claim
        if isinstance(claim, Rectangle):
            fixed.append(Load(who, claim.containers, claim.from_ms, max(claim.until_ms, now_ms + 1)))
        elif claim.until_ms > now_ms:
            if claim.master_ms or who in left_ms:
                due = _due(who, claim, capacity, is_submitted(each))
                dues.append(due._replace(work_ms=left_ms[who]) if who in left_ms else due)
            else:  # most are such: what :func:`_due` returns of them
                most = claim.most if claim.most < capacity else capacity
                dues.append(Due(who, claim.work_ms, most or 1, claim.until_ms))
        elif claim.until_ms + claim.latency_ms <= now_ms:
            late_ms = max(LATE_FOR_MIN_MS, now_ms - claim.until_ms - claim.latency_ms)
            fixed.append(Load(who, claim.most, now_ms, now_ms + late_ms))
    return fixed, dues


def _due(who: str, claim: DueClaim, capacity: int, submitted: bool) -> Due:
    most = widest(claim.most, claim.master_ms, capacity)
    if submitted and claim.master_ms:
        return Due(who, max(1, claim.work_ms - claim.master_ms), max(1, most - 1), claim.until_ms)
    tail_ms = claim.latency_ms if claim.master_ms else 0
    return Due(who, claim.work_ms, most, claim.until_ms, claim.master_ms, tail_ms)


def widest(most: int, master_ms: int, capacity: int) -> int:
    """Return how many containers a job uses at most: a task's, at least, beside a master that is known."""
    return min(max(most, 2 if master_ms else 1), max(1, capacity))


def _left(seen: Seen) -> dict[str, int]:
    """Return what the plan of the last round leaves by now of each job that has been submitted."""
    plan = seen.promised
    submitted = {str(each.request.sequence) for each in seen.reserved if each.application}
    if plan is None or not submitted:
        return {}
    free = profile(plan.capacity, (*plan.loads, *plan.masters), plan.at_ms)
    left_ms = left_at(free, plan.dues, plan.at_ms, max(plan.at_ms, seen.now_ms))
    return {who: left for who, left in left_ms.items() if who in submitted}


def carry(seen: Seen, granted: Sequence[Reservation]) -> Promised:
    """Return what is promised after a round."""
    seen = seen._replace(reserved=merged(seen.reserved, granted))
    fixed, dues = _divided(seen)
    free = profile(usable(seen), fixed, seen.now_ms)
    masters = masters_load(free, dues, _masters(seen), seen.now_ms)
    return Promised(seen.now_ms, usable(seen), seen.loads, tuple(dues), masters)
