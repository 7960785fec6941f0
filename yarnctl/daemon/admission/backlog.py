"""Count the containers of other applications as fixed load, and find applications with admissions' tags.

An application belongs to an admission only if user, queue and time fit the admission whose tag it has; any
other application is fixed load. Containers of other sizes count by memory.
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
from yarnctl.hadoop.wire.tags import ADMISSION_TAG

EVERY_MS = 10_000
AGAIN_MS = 5_000  # Pause after a failed measurement
TWICE_MS = 1_000
SHRINK_AFTER_MS = 60_000


class Size(msgspec.Struct, frozen=True):
    """The cluster's size in containers of ``container_mib``; ``reported``: set by an option."""

    capacity: int
    container_mib: int
    reported: bool = False


class Sizing:
    """Keeps a measured size. ``measure`` queries the cluster (raises YarnctlError)."""

    def __init__(self, measure: Callable[[], Size]) -> None:
        self.measure = measure
        self.problem: GateReason | None = None
        self._again_at_ms = 0
        self._candidate: tuple[Size, int] | None = None

    def poll(self, known_size: Size | None, now_ms: int) -> Size | None:
        """Return the size to use from now on; None: no measurement is due, or none is confirmed yet."""
        if now_ms < self._again_at_ms:
            return None
        try:
            found = self.measure()
        except YarnctlError as error:
            self._again_at_ms = now_ms + AGAIN_MS
            self.problem = SizeUnseen(str(error))
            return None
        self.problem = None
        self._again_at_ms = now_ms + EVERY_MS if known_size is not None else now_ms
        return found if found.reported else self._settled(found, known_size, now_ms)

    def _settled(self, size: Size, known_size: Size | None, now_ms: int) -> Size | None:
        if size.capacity <= 0:
            self._candidate, self.problem = None, NoRoomForContainer()
            return known_size
        wait_ms = TWICE_MS
        if known_size is not None and known_size.container_mib == size.container_mib:
            if size.capacity >= known_size.capacity:
                self._candidate = None
                return size
            wait_ms = SHRINK_AFTER_MS
        if self._candidate is None or self._candidate[0] != size:
            self._candidate = (size, now_ms)
        if now_ms - self._candidate[1] < wait_ms:
            return known_size
        self._candidate = None
        return size


CLOCKS_APART_MS = 60_000  # An application may seem older than its request by this time: clocks differ
NAMED_MAX = 12  # The number of the largest loads that keep their names
STEPS_MAX = 40  # The number of different ends that are kept; later ones count as never
MANY = "others"


class Claim(NamedTuple):
    """An application with an admission's tag. ``why``: the reason why it may not use it ("": it may)."""

    admission: str
    application: str
    why: str


class ClusterUse(NamedTuple):
    """One poll's fixed loads (``pool_loads``: of pools with a name), claims, and listed applications."""

    loads: tuple[Load, ...]
    claims: tuple[Claim, ...]
    there: frozenset[str]
    pool_loads: PoolLoads = ()


def tag_of(admission: str) -> str:
    """Return the tag for an admission."""
    return ADMISSION_TAG + admission


def claimed(app: yarn.AppInfo, instance: str) -> str:
    """Return this daemon's admission in an application's tags, or ""."""
    if ADMISSION_TAG not in app.tags.lower():
        return ""
    ours = f"{ADMISSION_TAG}adm-{instance}-".lower()  # YARN keeps tags in small letters
    for tag in app.tags.split(","):
        word = tag.strip().lower()
        number = word.removeprefix(ours)
        if word.startswith(ours) and number.isascii() and number.isdigit():
            return f"adm-{instance}-{number}"
    return ""


def cluster_use(
    rows: Iterable[yarn.AppInfo],
    store: AdmissionStore,
    instance: str,
    now_ms: int,
    queues: Sequence[str],
    ahead_ms: int = 0,
) -> ClusterUse:
    """Read one answer of the ResourceManager, with queues by path, against the store.

    ``queues``: only these count (none: all). ``ahead_ms``: the wall clock minus ``now_ms``.
    """
    claims: list[Claim] = []
    loads: dict[str, list[Load]] = {}
    there: set[str] = set()
    spoken: set[str] = set()
    for row in sorted(rows, key=lambda row: views.order(row.application)):
        there.add(row.application)
        held = 0
        ours = store.by_application(row.application)
        if ours is None and (admission := claimed(row, instance)):
            why = _objection(row, store, admission, admission in spoken, now_ms)
            claims.append(Claim(admission, row.application, why))
            if not why:
                spoken.add(admission)
                ours = store.admissions[admission]
        if ours is not None:
            held = 0 if ours.reservation is None else ours.reservation.containers
        elif queues and row.queue not in queues:
            continue
        pool = _pool_of(row, store, ours)
        more = 0 if pool is None else max(0, containers(row, pool) - held)
        if more and pool is not None:
            until_ms = FOREVER_MS
            if ours is None and not store.sells:
                until_ms = _until_ms(row, now_ms, ahead_ms)
            loads.setdefault(pool.name, []).append(Load(row.application, more, now_ms, until_ms))
    named = tuple((name, compact(found)) for name, found in sorted(loads.items()) if name)
    return ClusterUse(compact(loads.get("", ())), tuple(claims), frozenset(there), named)


def _pool_of(app: yarn.AppInfo, store: AdmissionStore, admission: Admission | None) -> Pool | None:
    """Return the pool of an application's containers: the one of its placement, else its queue's."""
    pools = () if store.gate is None else store.gate.pools
    if len(pools) <= 1:
        return pools[0] if pools else Pool("", 0, 0)
    if admission is not None and admission.reservation is not None and admission.reservation.pool:
        return next((each for each in pools if each.name == admission.reservation.pool), None)
    return next((each for each in pools if app.queue in each.queues), None)


def containers(app: yarn.AppInfo, pool: Pool) -> int:
    """Return an application's usage in admission's containers; a large container counts as several.

    In the pool without a name (the cluster) containers on nodes with a label do not count. Their number is
    unknown, so such an application counts by memory only.
    """
    used_mib, count = app.allocated_mib, app.containers
    if not pool.name and (in_partition_mib := views.used(app).memory_mib) < used_mib:
        used_mib, count = in_partition_mib, 0
    by_memory = -(-max(0, used_mib) // pool.container_mib) if pool.container_mib > 0 else 0
    return max(0, count, by_memory)


def compact(loads: Sequence[Load]) -> tuple[Load, ...]:
    """Return the same load with at most ``NAMED_MAX`` names and ``STEPS_MAX`` ends."""
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


def _until_ms(app: yarn.AppInfo, now_ms: int, ahead_ms: int) -> int:
    """Return when an application ends: its deadline (not read if deadlines have a price), else unknown."""
    deadline_ms = views.deadline_at_ms(app)
    if deadline_ms is not None and deadline_ms < FOREVER_MS:
        deadline_ms -= ahead_ms
    return deadline_ms if deadline_ms is not None and now_ms < deadline_ms < FOREVER_MS else FOREVER_MS


def claimant(
    rows: Iterable[yarn.AppInfo], store: AdmissionStore, instance: str, admission: Admission, now_ms: int
) -> str:
    """Return the first application with an admission's tag that fits it, also an ended one ("": none)."""
    for row in sorted(rows, key=lambda row: views.order(row.application)):
        if claimed(row, instance) != admission.admission or store.by_application(row.application) is not None:
            continue
        if not _misfit(row, store, admission, now_ms):
            return row.application
    return ""


def _objection(app: yarn.AppInfo, store: AdmissionStore, admission: str, spoken: bool, now_ms: int) -> str:
    found = store.admissions.get(admission)
    if found is None:
        return "the admission is unknown (any more)"
    if spoken or found.state == "running":
        return "another application uses the admission"
    if found.state not in ("admitted", "expired"):
        return f"the admission is {found.state}"
    if found.state == "expired" and found.plan.price_mtokens is not None:
        return "the admission expired, because no job was submitted in time"
    return _misfit(app, store, found, now_ms)


def _misfit(app: yarn.AppInfo, store: AdmissionStore, admission: Admission, now_ms: int) -> str:
    if app.user != admission.user:
        return f"the admission belongs to user {admission.user}"
    queue = store.queue_of(admission)
    if app.queue != queue:
        return f"the admission is for queue {queue}"
    if _begun_at_ms(app, now_ms) < admission.request.submitted_at_ms - CLOCKS_APART_MS:
        return "the application is older than the admission"
    return ""


def _begun_at_ms(app: yarn.AppInfo, now_ms: int) -> int:
    """Return when an application was submitted, by the daemon's clock; ``now_ms`` if it is unknown.

    Its running time is a difference of two times of the ResourceManager's own clock.
    """
    if app.elapsed_ms > 0:
        return now_ms - app.elapsed_ms
    return app.submitted_at_ms or now_ms
