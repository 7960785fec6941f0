"""A desk over a cluster of a few rows, with a clock of its own: for tests of the gate in the daemon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from yarnctl.daemon.admission.admission_controller import AdmissionController, AdmissionSettings
from yarnctl.daemon.admission.backlog import Size, tag_of
from yarnctl.daemon.admission.history_worker import HistoryWorker
from yarnctl.daemon.admission.placement_desk import PlacementPredictions
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.daemon.admission.request_queue import (
    Command,
    PendingCommand,
    Refusal,
    RequestedAdmission,
    RequestQueue,
    WithdrawRequest,
)
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.queue_names import QueueTree
from yarnctl.deciding.reasons.rooting import Reason
from yarnctl.deciding.reasons.verdicts import LessonReason, NotInHistoryYet, Undecided
from yarnctl.deciding.records import FORMAT, Header, Record, decode, encode
from yarnctl.deciding.settings import DEFAULT
from yarnctl.errors import Unreachable
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.wire import yarn as wire
from yarnctl.journal.rendering import text

MINUTE = 60_000
START_MS = 1_700_000_000_000
HERE = "a1b2"


class Killed(Exception):
    """kill -9."""


class Yarn:
    """A ResourceManager of which only applications are known; ``away`` it does not answer."""

    def __init__(self) -> None:
        self.rows: dict[str, wire.AppInfo] = {}
        self.listed: set[str] = set()
        self.away = False
        self.asked: list[str] = []
        self.ended_at_ms: dict[str, int] = {}
        self.size = Size(10, 1024)

    def applications(self) -> Sequence[wire.AppInfo]:
        self._called("applications")
        return tuple(self.rows[name] for name in sorted(self.listed))

    def application(self, application: str) -> wire.AppInfo:
        self._called(application)
        if application not in self.rows:
            raise Missing("http://rm", 404, "unknown")
        return self.rows[application]

    def application_end(self, application: str) -> wire.ApplicationOutcome:
        row = self.application(application)
        return wire.ApplicationOutcome(application, row.state, row.user, self.ended_at_ms.get(application, 0))

    def tagged(self, tag: str) -> Sequence[wire.AppInfo]:
        self._called(tag)
        return tuple(row for row in self.rows.values() if tag.lower() in row.tags.split(","))

    def how_large(self) -> Size:
        self._called("size")
        return self.size

    def how_large_is(self, pool: PoolSettings) -> Size:
        self._called(pool.name)
        return Size(pool.capacity or self.size.capacity, pool.container_mib or 1024, reported=True)

    def _called(self, what: str) -> None:
        self.asked.append(what)
        if self.away:
            raise Unreachable("http://rm: nobody answers")

    def run(self, name: str, containers: int, **fields: Any) -> str:
        """Let an application run; ``tags`` as they are submitted."""
        known: dict[str, Any] = {"user": "ann", "queue": "root.production", "state": "RUNNING", **fields}
        self.rows[name] = wire.AppInfo(
            application=name, containers=containers, allocated_mib=1024 * containers, **known
        )
        self.listed.add(name)
        return name

    def end(self, name: str, state: str = "FINISHED", at_ms: int = 0) -> None:
        """End an application; ``at_ms``: YARN's finish time (0: not shown)."""
        self.ended_at_ms[name] = at_ms
        self.rows[name] = msgspec.structs.replace(self.rows[name], state=state)
        self.listed.discard(name)

    def forget(self, name: str) -> None:
        del self.rows[name]
        self.listed.discard(name)


def told(why: Reason | None) -> str:
    """Return why something is over, or was not learned, as people read it."""
    assert why is not None
    return text(why)


class Past:
    """A history of jobs; ``away`` it does not answer."""

    def __init__(self) -> None:
        self.capacity = self.container_mib = 0
        self.given: dict[str, tuple[str, int]] = {}
        self.away = False
        self.jobs: dict[str, Finished] = {}
        self.before: tuple[Finished, ...] = ()
        self.estimates: dict[str, Estimate] = {}
        self.first: dict[str, tuple[ContainerRequest, ...]] = {}
        self.latest: dict[tuple[str, str], tuple[ContainerRequest, ...]] = {}
        self.asked: list[str] = []

    def finished(
        self, application: str, kind: str = "mapreduce", containers: int = 0
    ) -> tuple[Finished | None, LessonReason | None]:
        self._called(application)
        self.given[application] = kind, containers
        found = self.jobs.get(application)
        return found, None if found else NotInHistoryYet("jhs", application)

    def recent(self, since_ms: int) -> Sequence[Finished]:
        self._called("recent")
        return self.before

    def estimate(self, name: str, user: str, kind: str = "mapreduce", most: int = 0) -> Estimate | None:
        self._called(name)
        return self.estimates.get(name)

    def first_asks(self, name: str, user: str) -> tuple[ContainerRequest, ...]:
        self._called(name)
        return self.first.get(name, ())

    def latest_first_asks(
        self, since_ms: int, is_preempting: Callable[[str], bool]
    ) -> dict[tuple[str, str], tuple[ContainerRequest, ...]]:
        named = [name for name in ("production", "research") if is_preempting(name)]
        self._called(f"{named} since {since_ms}")
        return dict(self.latest)

    def _called(self, what: str) -> None:
        self.asked.append(what)
        if self.away:
            raise Unreachable("http://jhs: nobody answers")


class AtTheDesk:
    """A desk, its journal (``records``, as they were written), its cluster and its clock."""

    def __init__(
        self,
        allocator: str = "pythia",
        *,
        yarn: Yarn | None = None,
        past: Past | None = None,
        records: Sequence[Record] = (),
        now_ms: int = START_MS,
        lease_ms: int = 120_000,
        queues: tuple[str, ...] = (),
        history: bool = True,
        instance: str = HERE,
        pools: tuple[PoolSettings, ...] = (),
        tree: QueueTree | None = None,
    ) -> None:
        self.yarn, self.past = yarn or Yarn(), past or Past()
        self.now_ms = now_ms
        self.records: list[Record] = list(records) or [Header(FORMAT, DEFAULT, ())]
        self.dies_at: int | None = None
        self.paused = False
        self.suspendable: set[str] = set()
        book = AdmissionStore()
        for record in self.records:
            book.take(record)
        predicted = PlacementPredictions().alternatives if pools else None
        self.window = RequestQueue(lambda: self.now_ms, lease_ms, predicted)
        clerk = HistoryWorker(lambda: self.past, lambda: None, in_thread=False) if history else None
        terms = AdmissionSettings(
            allocator=allocator, instance=instance, queues=queues, lease_ms=lease_ms, pools=pools
        )
        sizes = {pool.name: partial(self.yarn.how_large_is, pool) for pool in pools}
        size = sizes or self.yarn.how_large
        self.desk = AdmissionController(
            terms, self.yarn, size, self.window, store=book, history_worker=clerk, queues=lambda: tree
        )

    @property
    def book(self) -> AdmissionStore:
        return self.desk.store

    @property
    def gate(self) -> Gate:
        assert self.book.gate is not None
        return self.book.gate

    def write(self, record: Record) -> None:
        """Write a record as a journal does; die before or after it."""
        if self.dies_at is not None and len(self.records) >= self.dies_at:
            raise Killed
        self.records.append(decode(encode(record)))

    def tick(self, ms: int = 500) -> None:
        self.now_ms += ms
        self.desk.after_tick(self.write, self.now_ms, paused=self.paused, suspendable=self.suspendable)
        self.desk.shown()
        self.desk.published()

    def go(self, ms: int) -> None:
        """Let time pass, tick by tick."""
        until_ms = self.now_ms + ms
        while self.now_ms < until_ms:
            self.tick(min(500, until_ms - self.now_ms))

    def hand(self, wanted: Command) -> PendingCommand:
        errand = PendingCommand(wanted)
        self.window._pending.append(errand)
        return errand

    def ask(self, containers: int = 5, minutes: float | None = 20, **fields: Any) -> Admission:
        """Ask, and return the admission after the first round (4 s later, if there was none)."""
        errand = self.hand(asking(containers, minutes, **fields))
        for _ in range(8):
            self.tick()
            if errand.answer is not None:
                assert isinstance(errand.answer, str), errand.answer
                if not isinstance(self.book.admissions[errand.answer].plan.reason, Undecided):
                    break
        assert isinstance(errand.answer, str)
        return self.book.admissions[errand.answer]

    def refused(self, wanted: Command) -> str:
        errand = self.hand(wanted)
        self.go(1_500)
        assert isinstance(errand.answer, Refusal)
        return errand.answer.code

    def withdraw(self, admission: str) -> None:
        errand = self.hand(WithdrawRequest(admission))
        self.tick()
        assert errand.answer == admission

    def state(self, admission: str | Admission) -> str:
        name = admission if isinstance(admission, str) else admission.admission
        return self.book.admissions[name].state

    def submit(self, admission: Admission, name: str = "application_1_0001", **fields: Any) -> str:
        """Submit what was admitted, as who asked would."""
        tags = f"deadline:{admission.request.deadline_at_ms},{tag_of(admission.admission)}"
        known: dict[str, Any] = {"tags": tags.lower(), "submitted_at_ms": self.now_ms, **fields}
        return self.yarn.run(name, self.book.admissions[admission.admission].plan.containers, **known)


def asking(containers: int = 5, minutes: float | None = 20, **fields: Any) -> RequestedAdmission:
    known: dict[str, Any] = {"name": "job", "user": "ann", "queue": "root.production", **fields}
    deadline_ms = None if minutes is None else int(minutes * MINUTE)
    return RequestedAdmission(containers=containers, deadline_ms=deadline_ms, **known)
