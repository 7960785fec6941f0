"""Read the settings of applications, a few at each observation, and keep what they allow, else the reason.

The submitter's tag allows draining, and the application's own settings must confirm it. An application whose
settings have another value, or have not been read, is left alone with the reason. Settings are fixed when an
application starts (a restarted master reads the same file), so the result is valid for its life.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

from yarnctl.attach.connection.application_guard import LateAnswer, values
from yarnctl.attach.connection.application_rows import kind_of
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.deciding.reasons.eligibility import (
    AnswerLate,
    ConfigurationUnread,
    ConfigurationUnreadable,
    DriverStarting,
    EligibilityReason,
    InNoPreemptableQueue,
    MasterUnreachable,
    NoDrainTag,
    OtherKind,
)
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.tags import tags_in
from yarnctl.journal.rendering import text

_LOG = logging.getLogger("yarnctl.attach")

Allowed = TypeVar("Allowed")

SETTINGS = "settings"  # The guard's purpose for reading an application's settings
NOT_YET = ConfigurationUnread()
STARTING_MS = 60_000  # In this first time of an application its driver need not answer
UNREAD_MAX = 200  # The characters of an address, and of its fault, that a reason repeats
SHOWN_MAX = 80  # The characters of a setting that a reason repeats: the application's owner wrote it


def unread(answer: Problem | Absent) -> EligibilityReason:
    """Return why the configuration of an application is not known."""
    if isinstance(answer, Absent) and answer.at:
        return MasterUnreachable(answer.at[:UNREAD_MAX], answer.fault[:UNREAD_MAX])
    return ConfigurationUnreadable((answer.why if isinstance(answer, Absent) else answer)[:UNREAD_MAX])


class SettingsReader(Generic[Allowed]):
    """Keeps what applications of one kind allow; ``reasons``, of all kinds, has why one is left alone.

    ``verbs``: of the orders that its applications may get. ``least``: an application with fewer containers is
    not read. ``note``: logged with name and reason. ``starts_slowly``: in its first time an application's
    driver need not answer.
    """

    verbs: tuple[str, ...] = ()
    least, note = -1, ""  # YARN has -1 for an application without a container
    starts_slowly = False

    def __init__(
        self,
        connection: Connection,
        kind: str,
        allows: type[Allowed],
        reasons: dict[str, EligibilityReason],
    ) -> None:
        self._connection, self._kind, self._allows = connection, kind, allows
        self.allowed: dict[str, Allowed] = {}
        self.reasons = reasons
        self._settled: set[str] = set()
        self._unread: dict[str, yarn.AppInfo] = {}
        self._again_at_ms: dict[str, int] = {}
        self._began_at_ms: dict[str, int] = {}

    def _obstacle(self, row: yarn.AppInfo) -> EligibilityReason | None:
        """Return why an application is left alone whatever its settings are; None: they are read."""
        return None

    def _judge(self, row: yarn.AppInfo) -> Allowed | EligibilityReason | Absent:
        """Read an application's settings and judge them; Absent: they could not be read."""
        raise NotImplementedError

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """Read the settings of the largest unread preemptable applications; ``rows``: new or changed."""
        preemptable: dict[str, bool] = {}
        for row in rows:
            name = row.application
            if name in self._settled or kind_of(row) != self._kind:
                continue
            if row.queue not in preemptable:
                preemptable[row.queue] = self._connection.queues.is_preemptable(row.queue)
            self._unread.pop(name, None)
            why = self._obstacle(row) if preemptable[row.queue] else InNoPreemptableQueue()
            if why is not None:
                self.reasons[name] = why
            else:
                self.reasons.setdefault(name, NOT_YET)
                self._unread[name] = row
        now_ms, again = self._connection.clock(), self._again_at_ms
        due = [
            row
            for row in self._unread.values()
            if row.containers >= self.least and now_ms >= again.get(row.application, 0)
        ]
        due.sort(key=lambda row: (-row.containers, len(row.application), row.application))
        late = [row for row in due if self._connection.guard.is_reading(row.application, SETTINGS)]
        others = [row for row in due if row not in late][: self._connection.settings.eligibility_reads_max]
        self._read({row.application: row for row in (*late, *others)})

    def judged(self, row: yarn.AppInfo) -> Allowed | None:
        """Return what an application allows, None if nothing; read its settings if necessary."""
        if row.application not in self._settled:
            self._read({row.application: row})
        return self.allowed.get(row.application)

    def is_settled(self, application: str) -> bool:
        """Return whether an application's settings have been read and judged."""
        return application in self._settled

    def _read(self, rows: Mapping[str, yarn.AppInfo]) -> None:
        said = self._connection.guard.read_each(SETTINGS, lambda name, _: self._judge(rows[name]), rows)
        for name, found in values(said).items():
            if isinstance(found, LateAnswer):
                self.reasons[name] = AnswerLate()
                continue
            if isinstance(found, Problem | Absent):
                is_starting = self.starts_slowly and self._is_new(rows[name])
                self.reasons[name] = DriverStarting() if is_starting else unread(found)
                retry_ms = self._connection.settings.eligibility_retry_ms
                self._again_at_ms[name] = self._connection.clock() + retry_ms
                continue
            self._settled.add(name)
            self._unread.pop(name, None)
            if isinstance(found, self._allows):
                self.allowed[name] = found
                self.reasons.pop(name, None)
                continue
            self.reasons[name] = why = cast(EligibilityReason, found)
            if self.note:
                _LOG.info(self.note, name, text(why))

    def _is_new(self, row: yarn.AppInfo) -> bool:
        """Return whether an application is in its first time, by our clock: an unchanged row gets old."""
        now_ms = self._connection.clock()
        began_ms = self._began_at_ms.setdefault(row.application, now_ms - row.elapsed_ms)
        return row.elapsed_ms > 0 and now_ms - began_ms < STARTING_MS

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        for name in applications:
            self.allowed.pop(name, None)
            self.reasons.pop(name, None)
            self._settled.discard(name)
            self._unread.pop(name, None)
            self._again_at_ms.pop(name, None)
            self._began_at_ms.pop(name, None)


class Readers:
    """The readers of the frameworks in use, by kind; an application of another kind is left alone."""

    def __init__(self, connection: Connection) -> None:
        self._queues = connection.queues
        self.of_kind: dict[str, SettingsReader[Any]] = {}
        self.reasons: dict[str, EligibilityReason] = {}

    def read_some(self, rows: Sequence[yarn.AppInfo]) -> None:
        """Read some settings of each framework; ``rows``: new or changed applications."""
        for reader in self.of_kind.values():
            reader.read_some(rows)
        for row in rows:
            if kind_of(row) not in self.of_kind:
                is_preemptable = self._queues.is_preemptable(row.queue)
                why = OtherKind(row.kind[:40]) if is_preemptable else InNoPreemptableQueue()
                self.reasons[row.application] = why

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        for name in (gone := tuple(applications)):
            self.reasons.pop(name, None)
        for reader in self.of_kind.values():
            reader.drop(gone)


class Drainable(NamedTuple):
    """The route of drain orders of an application, and how many executors stay (0: it is suspended whole).

    ``room_in_ms``: the time until they have left, if settings alone decide it (0: they do not). ``traits``:
    what else the framework read from settings and tags.
    """

    route: str
    min_executors: int
    room_in_ms: int = 0
    traits: frozenset[str] = frozenset()


class Consent(Protocol):
    """The rules of one framework: which applications may have executors drained."""

    def is_tagged(self, tags: Sequence[str]) -> bool:
        """Return whether the submitter's tags allow draining."""

    def judge(self, application: str, tags: Sequence[str]) -> Drainable | EligibilityReason | Absent:
        """Return how executors may be drained, or why not; Absent: the driver gave no answer."""


class ExecutorReader(SettingsReader[Drainable]):
    """Reads drivers of one framework, whose containers leave by orders to drain."""

    verbs, starts_slowly = ("drain",), True

    def __init__(
        self, connection: Connection, kind: str, consent: Consent, reasons: dict[str, EligibilityReason]
    ) -> None:
        super().__init__(connection, kind, Drainable, reasons)
        self._consent = consent

    def _obstacle(self, row: yarn.AppInfo) -> EligibilityReason | None:
        return None if self._consent.is_tagged(tags_in(row.tags)) else NoDrainTag()

    def _judge(self, row: yarn.AppInfo) -> Drainable | EligibilityReason | Absent:
        return self._consent.judge(row.application, tags_in(row.tags))
