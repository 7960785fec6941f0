"""The containers of other applications, as the gate counts them: fixed load; and applications with our tags.

Law: an application belongs to an admission only if user, queue and time fit the admission whose tag it has;
any other application with such a tag is fixed load, like all that were submitted without the gate. Containers
of other sizes count by memory. The recorded load is small, however many applications there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Pool, PoolLoads
from yarnctl.deciding.reasons.verdicts import GateReason, NoRoomForContainer, SizeUnseen
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.wire import views, yarn
from yarnctl.hadoop.wire.mapreduce import ADMISSION_TAG

EVERY_MS = 10_000
AGAIN_MS = 5_000
"""Pause after a failed measurement."""
TWICE_MS = 1_000
SHRINK_AFTER_MS = 60_000


class Size(msgspec.Struct, frozen=True):
    """How large the cluster is, in containers of ``container_mib``; ``reported``: set by an option."""

    capacity: int
    container_mib: int
    reported: bool = False


class Sizing:
    """``measure`` queries the cluster (raises YarnctlError); ``problem`` is why that failed."""

    def __init__(self, measure: Callable[[], Size]) -> None:
        self.measure = measure
        self.problem: GateReason | None = None
        self._again_at_ms = 0
        self._candidate: tuple[Size, int] | None = None

    def poll(self, known: Size | None, now_ms: int) -> Size | None:
        """Return the size that counts from now on; None: no measurement is due, or none counts yet."""
        if now_ms < self._again_at_ms:
            return None
        try:
            found = self.measure()
        except YarnctlError as error:
            self._again_at_ms = now_ms + AGAIN_MS
            self.problem = SizeUnseen(str(error))
            return None
        self.problem = None
        self._again_at_ms = now_ms + EVERY_MS if known is not None else now_ms
        return found if found.reported else self._settled(found, known, now_ms)

    def _settled(self, found: Size, known: Size | None, now_ms: int) -> Size | None:
        if found.capacity <= 0:
            self._candidate, self.problem = None, NoRoomForContainer()
            return known
        wait_ms = TWICE_MS
        if known is not None and known.container_mib == found.container_mib:
            if found.capacity >= known.capacity:
                self._candidate = None
                return found
            wait_ms = SHRINK_AFTER_MS
        if self._candidate is None or self._candidate[0] != found:
            self._candidate = (found, now_ms)
        if now_ms - self._candidate[1] < wait_ms:
            return known
        self._candidate = None
        return found


CLOCKS_APART_MS = 60_000
"""So much older than its request an application may seem: clocks differ, and drift."""
NAMED_MAX = 12
"""So many of the largest loads keep their names."""
STEPS_MAX = 40
"""So many different ends are distinguished; later ones count as never."""
MANY = "others"


class Claim(NamedTuple):
    """An application that takes an admission, or may not (``why`` says so, "": it may)."""

    admission: str
    application: str
    why: str


class ClusterUse(NamedTuple):
    """The result of one poll: fixed loads, which applications claim an admission, and which there are.

    ``pool_loads`` are those of pools that have a name.
    """

    loads: tuple[Load, ...]
    claims: tuple[Claim, ...]
    there: frozenset[str]
    pool_loads: PoolLoads = ()


def tag_of(admission: str) -> str:
    """Return the tag for an admission."""
    return ADMISSION_TAG + admission


def claimed(row: yarn.AppInfo, instance: str) -> str:
    """Return the admission of ours that an application's tags name, or ""."""
    if ADMISSION_TAG not in row.tags.lower():
        return ""
    ours = f"{ADMISSION_TAG}adm-{instance}-".lower()  # YARN keeps tags in small letters
    for tag in row.tags.split(","):
        word = tag.strip().lower()
        number = word.removeprefix(ours)
        if word.startswith(ours) and number.isascii() and number.isdigit():
            return f"adm-{instance}-{number}"
    return ""


def cluster_use(
    rows: Iterable[yarn.AppInfo],
    book: AdmissionStore,
    instance: str,
    now_ms: int,
    queues: Sequence[str],
    ahead_ms: int = 0,
) -> ClusterUse:
    """Read one answer of the ResourceManager, with queues by path, against the book.

    ``queues``: only these count (none: all). ``ahead_ms``: by so much the wall clock, which deadlines in tags
    are instants of, is ahead of ``now_ms``.
    """
    claims: list[Claim] = []
    loads: dict[str, list[Load]] = {}
    there: set[str] = set()
    spoken: set[str] = set()
    for row in sorted(rows, key=lambda row: views.order(row.application)):
        there.add(row.application)
        held = 0
        ours = book.by_application(row.application)
        if ours is None and (admission := claimed(row, instance)):
            why = _objection(row, book, admission, admission in spoken, now_ms)
            claims.append(Claim(admission, row.application, why))
            if not why:
                spoken.add(admission)
                ours = book.admissions[admission]
        if ours is not None:
            held = 0 if ours.reservation is None else ours.reservation.containers
        elif queues and row.queue not in queues:
            continue
        pool = _pool_of(row, book, ours)
        more = 0 if pool is None else max(0, containers(row, pool) - held)
        if more and pool is not None:
            until_ms = FOREVER_MS
            if ours is None and not book.sells:
                until_ms = _until_ms(row, now_ms, ahead_ms)
            loads.setdefault(pool.name, []).append(Load(row.application, more, now_ms, until_ms))
    named = tuple((name, compact(found)) for name, found in sorted(loads.items()) if name)
    return ClusterUse(compact(loads.get("", ())), tuple(claims), frozenset(there), named)


def _pool_of(row: yarn.AppInfo, book: AdmissionStore, ours: Admission | None) -> Pool | None:
    """Return the pool that an application takes containers of: where it was placed, else its queue's.

    There is none without a gate; then an application counts as it is.
    """
    pools = () if book.gate is None else book.gate.pools
    if len(pools) <= 1:
        return pools[0] if pools else Pool("", 0, 0)
    if ours is not None and ours.reservation is not None and ours.reservation.pool:
        return next((each for each in pools if each.name == ours.reservation.pool), None)
    return next((each for each in pools if row.queue in each.queues), None)


def containers(row: yarn.AppInfo, pool: Pool) -> int:
    """Return how many of the gate's containers an application holds; a large one counts as several.

    Of the pool without a name, the cluster, what it holds on nodes with a label does not count. How many
    containers that is is not known, so such an application counts by memory alone.
    """
    used_mib, count = row.allocated_mib, row.containers
    if not pool.name and (in_partition_mib := views.used(row).memory_mib) < used_mib:
        used_mib, count = in_partition_mib, 0
    by_memory = -(-max(0, used_mib) // pool.container_mib) if pool.container_mib > 0 else 0
    return max(0, count, by_memory)


def compact(loads: Sequence[Load]) -> tuple[Load, ...]:
    """Return the same load with few names and few ends."""
    if len(loads) <= NAMED_MAX:
        return tuple(loads)
    by_size = sorted(loads, key=lambda load: (-load.containers, load.who))
    named, rest = by_size[:NAMED_MAX], by_size[NAMED_MAX:]
    ends = sorted({load.until_ms for load in rest})
    sums: dict[int, int] = {}
    for load in rest:
        until_ms = load.until_ms if load.until_ms in ends[:STEPS_MAX] else FOREVER_MS
        sums[until_ms] = sums.get(until_ms, 0) + load.containers
    merged = [Load(MANY, held, rest[0].from_ms, until_ms) for until_ms, held in sorted(sums.items())]
    return (*named, *merged)


def _until_ms(row: yarn.AppInfo, now_ms: int, ahead_ms: int) -> int:
    """Return when an application ends: that is unknown, except that one with a deadline is to end by then.

    Where deadlines are sold a tag says nothing.
    """
    deadline_ms = views.deadline_at_ms(row)
    if deadline_ms is not None and deadline_ms < FOREVER_MS:
        deadline_ms -= ahead_ms
    return deadline_ms if deadline_ms is not None and now_ms < deadline_ms < FOREVER_MS else FOREVER_MS


def claimant(
    rows: Iterable[yarn.AppInfo], book: AdmissionStore, instance: str, wanted: Admission, now_ms: int
) -> str:
    """Return the first application that has an admission's tag and fits it, also an ended one ("": none)."""
    for row in sorted(rows, key=lambda row: views.order(row.application)):
        if claimed(row, instance) != wanted.admission or book.by_application(row.application) is not None:
            continue
        if not _misfit(row, book, wanted, now_ms):
            return row.application
    return ""


def _objection(row: yarn.AppInfo, book: AdmissionStore, admission: str, spoken: bool, now_ms: int) -> str:
    """Return why an application may not take the admission whose tag it carries, or ""."""
    found = book.admissions.get(admission)
    if found is None:
        return "it is not known here (any more)"
    if spoken or found.state == "taken":
        return "another application has taken it"
    if found.state not in ("admitted", "expired"):
        return f"it is {found.state}"
    if found.state == "expired" and found.plan.price_mtokens is not None:
        return "its deadline was given up, because no job was submitted in time"
    return _misfit(row, book, found, now_ms)


def _misfit(row: yarn.AppInfo, book: AdmissionStore, found: Admission, now_ms: int) -> str:
    """Return why an application with an admission's tag is not the one that was asked for, or ""."""
    if row.user != found.user:
        return f"it is {found.user}'s"
    queue = book.queue_of(found)
    if row.queue != queue:
        return f"it is for queue {queue}"
    if _begun_at_ms(row, now_ms) < found.request.submitted_at_ms - CLOCKS_APART_MS:
        return "the application is older than it"
    return ""


def _begun_at_ms(row: yarn.AppInfo, now_ms: int) -> int:
    """Return when an application was submitted, on our clock; ``now_ms`` at the earliest where it is unknown.

    How long it runs is a difference of two instants of the ResourceManager's own clock, which may be far from
    ours. (Of one that has ended it is how long it ran, so that it seems younger.)
    """
    if row.elapsed_ms > 0:
        return now_ms - row.elapsed_ms
    return row.submitted_at_ms or now_ms
