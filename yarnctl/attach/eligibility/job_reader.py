"""Read jobs' configurations, a few at each observation, and keep their eligibility.

A job whose configuration has not been read is not eligible. A job's configuration is fixed when it is
submitted (a restarted master reads the same file), so the result is valid for the application's whole life.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from yarnctl.attach.connection.application_guard import LateAnswer, values
from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.connection.connection import CheckpointStore, Connection
from yarnctl.attach.eligibility.job_rules import Eligibility, judge
from yarnctl.deciding.reasons.eligibility import (
    AnswerLate,
    ConfigurationOdd,
    ConfigurationUnread,
    ConfigurationUnreadable,
    EligibilityReason,
    InNoPreemptableQueue,
    MasterUnreachable,
    OtherKind,
)
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.wire import yarn
from yarnctl.journal.rendering import text

_LOG = logging.getLogger("yarnctl.attach")

KINDS = ("MAPREDUCE", "")
NOT_YET = ConfigurationUnread()
SETTINGS = "settings"  # The guard's purpose for reading an application's settings
UNREAD_MAX = 200  # The characters of an address, and of its fault, that a reason repeats


def unread(problem: Problem | Absent) -> EligibilityReason:
    """Return why the configuration of an application is not known."""
    if isinstance(problem, Absent) and problem.at:
        return MasterUnreachable(problem.at[:UNREAD_MAX], problem.fault[:UNREAD_MAX])
    return ConfigurationUnreadable((problem.why if isinstance(problem, Absent) else problem)[:UNREAD_MAX])


class EligibilityReader:
    """Keeps eligibility by application, else the reason; ``other_kinds`` have other readers."""

    def __init__(self, connection: Connection, other_kinds: frozenset[str] = frozenset()) -> None:
        self._connection = connection
        self._other_kinds = other_kinds
        self._settings = connection.settings
        self._clock = connection.clock
        self.eligible: dict[str, Eligibility] = {}
        self.reasons: dict[str, EligibilityReason] = {}
        self._again_at_ms: dict[str, int] = {}
        self._settled: set[str] = set()
        self._unread: dict[str, yarn.AppInfo] = {}
        self._quarantined: dict[str, tuple[int, Eligibility]] = {}

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """Read the largest unread preemptable jobs' configurations; ``rows``: new or changed."""
        judged: dict[str, bool] = {}
        self._end_quarantine()
        for row in rows:
            name = row.application
            if name in self.eligible or name in self._settled or row.kind.upper() in self._other_kinds:
                continue
            if row.queue not in judged:
                judged[row.queue] = self._connection.queues.may_give(row.queue)
            self._unread.pop(name, None)
            if not judged[row.queue]:
                self.reasons[name] = InNoPreemptableQueue()
            elif row.kind.upper() not in KINDS:
                self.reasons[name] = OtherKind(row.kind[:40])
            else:
                self.reasons.setdefault(name, NOT_YET)
                self._unread[name] = row
        now_ms, again = self._clock(), self._again_at_ms
        unread = self._unread.values()
        due = [row for row in unread if row.containers > 1 and now_ms >= again.get(row.application, 0)]
        due.sort(key=lambda row: (-row.containers, len(row.application), row.application))
        late = [row for row in due if self._connection.guard.is_reading(row.application, SETTINGS)]
        others = [row for row in due if row not in late][: self._settings.eligibility_reads_max]
        self._read({row.application: row.user for row in (*late, *others)})

    def judge(self, application: str, user: str) -> Eligibility | EligibilityReason:
        """Return one job's eligibility, or why it has none; read its configuration if necessary."""
        if application not in self.eligible and application not in self._settled:
            self._read({application: user})
        return self.eligible.get(application) or self.reasons.get(application, NOT_YET)

    def store_of(self, application: str) -> tuple[CheckpointStore, Eligibility] | None:
        """Return the store of a job's checkpoints; None if the job is not eligible or there is no HDFS."""
        if self._connection.hdfs is None:
            return None
        eligibility = self.eligible.get(application)
        if eligibility is None:
            found = self.judge(application, self._connection.row(application).user)
            if not isinstance(found, Eligibility):
                return None
            eligibility = found
        store_path, most = eligibility.store_path, self._settings.observation_bytes
        return CheckpointStore(self._connection.hdfs, store_path, most), eligibility

    def quarantine(self, application: str, why: EligibilityReason) -> None:
        """Exclude an eligible job for ``quarantine_ms``, for a cause outside its configuration."""
        eligibility = self.eligible.pop(application, None)
        if eligibility is not None:
            self._quarantined[application] = (self._clock() + self._settings.quarantine_ms, eligibility)
            self.reasons[application] = why
            _LOG.warning("%s is not suspended for now: %s", application, text(why))

    def _end_quarantine(self) -> None:
        now_ms = self._clock()
        for name in [name for name, (until_ms, _) in self._quarantined.items() if now_ms >= until_ms]:
            self.eligible[name] = self._quarantined.pop(name)[1]
            self.reasons.pop(name, None)

    def is_settled(self, application: str) -> bool:
        """Return whether a job's configuration has been read and judged."""
        return application in self._settled

    def _read(self, users: dict[str, str]) -> None:
        answers = self._connection.guard.read_each(
            SETTINGS, lambda name, _: self._judged(name, users[name]), users
        )
        for name, answer in values(answers).items():
            if isinstance(answer, LateAnswer):
                self.reasons[name] = AnswerLate()
                continue
            if isinstance(answer, Problem | Absent):
                self.reasons[name] = unread(answer)
                self._again_at_ms[name] = self._clock() + self._settings.eligibility_retry_ms
                continue
            self._settled.add(name)
            self._unread.pop(name, None)
            if isinstance(answer, Eligibility):
                self.eligible[name] = answer
                self.reasons.pop(name, None)
            else:
                self.reasons[name] = answer
                _LOG.info("%s is never suspended: %s", name, text(answer))

    def _judged(self, name: str, user: str) -> Eligibility | EligibilityReason | Absent:
        """Read a job's configuration and judge it. One that cannot be parsed is not read again."""
        configuration = self._connection.master(name).configuration()
        if isinstance(configuration, Absent):
            return configuration
        found = attempt(lambda _: judge(configuration, user, self._settings), name)
        return ConfigurationOdd(str(found)[:80]) if isinstance(found, Problem) else found

    def drop(self, applications: Iterable[str]) -> None:
        """Drop applications that have ended."""
        for name in applications:
            self.eligible.pop(name, None)
            self.reasons.pop(name, None)
            self._again_at_ms.pop(name, None)
            self._settled.discard(name)
            self._unread.pop(name, None)
            self._quarantined.pop(name, None)
