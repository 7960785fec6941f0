"""Read MapReduce jobs' configurations, and keep which of their reduces may be suspended."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from yarnctl.attach.connection.calls import Problem, attempt
from yarnctl.attach.connection.connection import CheckpointStore, Connection
from yarnctl.attach.eligibility.job_rules import Eligibility, judge
from yarnctl.attach.eligibility.settings_reader import SettingsReader
from yarnctl.deciding.reasons.eligibility import ConfigurationOdd, EligibilityReason, OtherKind
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire import yarn
from yarnctl.journal.rendering import text

_LOG = logging.getLogger("yarnctl.attach")

KINDS = ("MAPREDUCE", "")


class EligibilityReader(SettingsReader[Eligibility]):
    """Keeps eligibility by application; ``other_kinds`` have other readers."""

    least, note = 2, "%s is never suspended: %s"

    def __init__(self, connection: Connection, other_kinds: frozenset[str] = frozenset()) -> None:
        super().__init__(connection, Eligibility, {})
        self._other_kinds = other_kinds
        self._quarantined: dict[str, tuple[int, Eligibility]] = {}

    def _is_mine(self, row: yarn.AppInfo) -> bool:
        return row.kind.upper() not in self._other_kinds

    def _obstacle(self, row: yarn.AppInfo) -> EligibilityReason | None:
        return None if row.kind.upper() in KINDS else OtherKind(row.kind[:40])

    def _judge(self, row: yarn.AppInfo) -> Eligibility | EligibilityReason | Absent:
        """Read a job's configuration and judge it. One that cannot be parsed is not read again."""
        configuration = self._connection.master(row.application).configuration()
        if isinstance(configuration, Absent):
            return configuration
        found = attempt(lambda user: judge(configuration, user, self._connection.settings), row.user)
        return ConfigurationOdd(str(found)[:80]) if isinstance(found, Problem) else found

    def read_some(self, rows: Iterable[yarn.AppInfo]) -> None:
        """End quarantines that are over, and read some configurations."""
        now_ms = self._connection.clock()
        for name in [name for name, (until_ms, _) in self._quarantined.items() if now_ms >= until_ms]:
            self.allowed[name] = self._quarantined.pop(name)[1]
            self.reasons.pop(name, None)
        super().read_some(rows)

    def store_of(self, application: str) -> tuple[CheckpointStore, Eligibility] | None:
        """Return the store of a job's checkpoints; None if the job is not eligible or there is no HDFS."""
        if self._connection.hdfs is None:
            return None
        found = self.allowed.get(application) or self.judged(self._connection.row(application))
        if found is None:
            return None
        most = self._connection.settings.observation_bytes
        return CheckpointStore(self._connection.hdfs, found.store_path, most), found

    def quarantine(self, application: str, why: EligibilityReason) -> None:
        """Exclude an eligible job for ``quarantine_ms``, for a cause outside its configuration."""
        eligibility = self.allowed.pop(application, None)
        if eligibility is not None:
            until_ms = self._connection.clock() + self._connection.settings.quarantine_ms
            self._quarantined[application] = until_ms, eligibility
            self.reasons[application] = why
            _LOG.warning("%s is not suspended for now: %s", application, text(why))

    def drop(self, applications: Iterable[str]) -> None:
        """Drop jobs that have ended."""
        for name in (ended := tuple(applications)):
            self._quarantined.pop(name, None)
        super().drop(ended)
