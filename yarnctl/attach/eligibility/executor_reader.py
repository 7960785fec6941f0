"""Decide which applications of a framework may have executors drained, by a tag and their driver's settings.

The submitter's tag allows draining, and the driver's own settings must confirm it. If a setting has another
value or cannot be read, the application is left alone with the reason. A driver's settings are fixed when it
starts, so the result is valid for the application's life.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from yarnctl.attach.connection.application_guard import LateAnswer, values
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.job_reader import SETTINGS, unread
from yarnctl.deciding.reasons.eligibility import (
    AnswerLate,
    ConfigurationUnread,
    EligibilityReason,
    InNoPreemptableQueue,
    NoDrainTag,
)
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.tags import tags_in

NOT_YET = ConfigurationUnread()
SHOWN_MAX = 80  # The characters of a setting that a reason repeats: the application's owner wrote it


class Drainable(NamedTuple):
    """The route of drain orders of an application, and how many executors stay (0: it is suspended whole).

    ``room_in_ms``: the time until they have left, if settings alone decide it (0: they do not).
    """

    route: str
    min_executors: int
    room_in_ms: int = 0


class Consent(Protocol):
    """The rules of one framework: which applications may have executors drained."""

    def is_tagged(self, tags: Sequence[str]) -> bool:
        """Return whether the submitter's tags allow draining."""

    def judge(self, application: str, tags: Sequence[str]) -> Drainable | EligibilityReason | Absent:
        """Return how executors may be drained, or why not; Absent: the driver gave no answer."""


class ExecutorReader:
    """Keeps the results; ``reasons`` (shared by all frameworks) has why an application is left alone."""

    def __init__(
        self, connection: Connection, kind: str, consent: Consent, reasons: dict[str, EligibilityReason]
    ) -> None:
        self._connection = connection
        self._settings = connection.settings
        self._kind = kind
        self._consent = consent
        self.drainable: dict[str, Drainable] = {}
        self.reasons = reasons
        self._settled: set[str] = set()
        self._unread: dict[str, yarn.AppInfo] = {}
        self._again_at_ms: dict[str, int] = {}

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """Read the settings of a few drivers that are not read yet, of tagged preemptable applications."""
        for row in rows:
            name = row.application
            if row.kind.upper() != self._kind or name in self._settled:
                continue
            self._unread.pop(name, None)
            if not self._connection.queues.may_give(row.queue):
                self.reasons[name] = InNoPreemptableQueue()
            elif not self._consent.is_tagged(tags_in(row.tags)):
                self.reasons[name] = NoDrainTag()
            else:
                self.reasons.setdefault(name, NOT_YET)
                self._unread[name] = row
        now_ms, again = self._connection.clock(), self._again_at_ms
        due = [row for row in self._unread.values() if now_ms >= again.get(row.application, 0)]
        due.sort(key=lambda row: (-row.containers, len(row.application), row.application))
        late = [row for row in due if self._connection.guard.is_reading(row.application, SETTINGS)]
        others = [row for row in due if row not in late][: self._settings.eligibility_reads_max]
        self._read({row.application: row for row in (*late, *others)})

    def judged(self, row: yarn.AppInfo) -> Drainable | EligibilityReason:
        """Return an application's result; read its driver's settings if necessary."""
        if row.application not in self._settled:
            self._read({row.application: row})
        found = self.drainable.get(row.application)
        return self.reasons.get(row.application, NOT_YET) if found is None else found

    def is_settled(self, application: str) -> bool:
        """Return whether a driver's settings have been read and judged."""
        return application in self._settled

    def _read(self, rows: Mapping[str, yarn.AppInfo]) -> None:
        tags = {name: tags_in(row.tags) for name, row in rows.items()}
        said = self._connection.guard.read_each(
            SETTINGS, lambda name, _: self._consent.judge(name, tags[name]), rows
        )
        for name, found in values(said).items():
            if isinstance(found, LateAnswer):
                self.reasons[name] = AnswerLate()
                continue
            if isinstance(found, Problem | Absent):
                self.reasons[name] = unread(found)
                self._again_at_ms[name] = self._connection.clock() + self._settings.eligibility_retry_ms
                continue
            self._settled.add(name)
            self._unread.pop(name, None)
            if isinstance(found, Drainable):
                self.drainable[name] = found
                self.reasons.pop(name, None)
            else:
                self.reasons[name] = found

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        for name in applications:
            self.drainable.pop(name, None)
            self.reasons.pop(name, None)
            self._settled.discard(name)
            self._unread.pop(name, None)
            self._again_at_ms.pop(name, None)
