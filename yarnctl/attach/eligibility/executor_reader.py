"""Which applications of a framework let their executors be asked to leave: a tag, and what their driver says.

Law: the submitter's tag allows it, and the driver's own settings must show what the tag promises: a setting
that does not hold, or cannot be read, leaves the application alone with the reason. Settings of a driver are
fixed when it starts, so the answer holds for the application's life. What a framework's driver is asked, and
how that is judged, is its :class:`Consent`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from yarnctl.attach.connection.application_guard import LateAnswer, values
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.job_reader import SETTINGS, unread
from yarnctl.deciding.reasons.eligibility import (
    AnswerLate,
    ConfigurationUnread,
    EligibilityReason,
    InNoVictimQueue,
    NoDrainTag,
)
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.mapreduce import tags_in
from yarnctl.hadoop.wire.spark_rest import Route

NOT_YET = ConfigurationUnread()
SHOWN_MAX = 80
"""So much of a setting is repeated: its application's owner wrote it."""


class Drainable(NamedTuple):
    """How the executors of an application are asked, and how many of them stay (0: it is suspended whole).

    ``room_in_ms``: how long they take to leave, where settings alone decide that (0: they do not).
    """

    route: Route | Literal["rescale"]
    min_executors: int
    room_in_ms: int = 0


class Consent(Protocol):
    """Who may be asked, of one framework."""

    def is_tagged(self, tags: Sequence[str]) -> bool:
        """Return whether the submitter's tags allow that executors are asked."""

    def judge(self, application: str, tags: Sequence[str]) -> Drainable | EligibilityReason | Absent:
        """Return whether executors of an application may be asked; Absent: its driver did not say."""


class ExecutorReader:
    """Keeps the answers; ``reasons`` (shared with other frameworks) has why an application is left alone."""

    def __init__(
        self,
        link: Connection,
        kind: str,
        consent: Consent,
        reasons: dict[str, EligibilityReason],
    ) -> None:
        self._link = link
        self._settings = link.settings
        self._kind = kind
        self._consent = consent
        self.drainable: dict[str, Drainable] = {}
        self.reasons = reasons
        self._settled: set[str] = set()
        self._unread: dict[str, yarn.AppInfo] = {}
        self._again_at_ms: dict[str, int] = {}

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """Read the settings of a few drivers not read yet, of tagged applications that may be preempted."""
        for row in rows:
            name = row.application
            if row.kind.upper() != self._kind or name in self._settled:
                continue
            self._unread.pop(name, None)
            if not self._link.queues.may_give(row.queue):
                self.reasons[name] = InNoVictimQueue()
            elif not self._consent.is_tagged(tags_in(row.tags)):
                self.reasons[name] = NoDrainTag()
            else:
                self.reasons.setdefault(name, NOT_YET)
                self._unread[name] = row
        now_ms, again = self._link.clock(), self._again_at_ms
        due = [row for row in self._unread.values() if now_ms >= again.get(row.application, 0)]
        due.sort(key=lambda row: (-row.containers, len(row.application), row.application))
        late = [row for row in due if self._link.guard.is_reading(row.application, SETTINGS)]
        others = [row for row in due if row not in late][: self._settings.eligibility_reads_max]
        self._read({row.application: row for row in (*late, *others)})

    def judged(self, row: yarn.AppInfo) -> Drainable | EligibilityReason:
        """Return an application's answer, reading its driver's settings if need be."""
        if row.application not in self._settled:
            self._read({row.application: row})
        found = self.drainable.get(row.application)
        return self.reasons.get(row.application, NOT_YET) if found is None else found

    def is_settled(self, application: str) -> bool:
        """Return whether a driver's settings have been read and judged."""
        return application in self._settled

    def _read(self, rows: Mapping[str, yarn.AppInfo]) -> None:
        tags = {name: tags_in(row.tags) for name, row in rows.items()}
        said = self._link.guard.read_each(
            SETTINGS, lambda name, _: self._consent.judge(name, tags[name]), rows
        )
        for name, found in values(said).items():
            if isinstance(found, LateAnswer):
                self.reasons[name] = AnswerLate()
                continue
            if isinstance(found, Problem | Absent):
                self.reasons[name] = unread(found)
                self._again_at_ms[name] = self._link.clock() + self._settings.eligibility_retry_ms
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
