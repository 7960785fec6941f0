"""Check repeatedly that yarnctl's folders in HDFS exist, belong to its user, and are safe.

No action is performed before a successful check; while HDFS does not answer, the last result counts.
"""

from __future__ import annotations

import logging

from yarnctl.attach.check import hdfs_rules
from yarnctl.attach.check.preflight import CheckResult, Facts
from yarnctl.deciding.reasons.modes import FoldersNotSeen, FoldersUnfit, FoldersUnreachable, ModeReason
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.hadoop.webhdfs import WebHdfs

_LOG = logging.getLogger("yarnctl.daemon")

RETRY_MS = 2_000
AGAIN_MS = 60_000


class Folders:
    """Checks the folders. ``why``: the reason why no action is allowed, None if there is none."""

    def __init__(self, hdfs: WebHdfs, facts: Facts) -> None:
        self._hdfs = hdfs
        self._begin = facts
        self._next_ms = 0
        self._logged: tuple[CheckResult, ...] = ()
        self._observed = False
        self.why: ModeReason | None = FoldersNotSeen()

    def require(self, now_ms: int) -> None:
        """Check for the first time; raises BadInput for a failed check, but not if HDFS is unreachable."""
        self.recheck(now_ms)
        bad = [word for word in self._logged if word.severity == "fail"]
        if bad:
            raise BadInput("HDFS", bad[0].observed, f"{bad[0].fix}, or run without --enforce")

    def recheck(self, now_ms: int) -> None:
        """Check the folders if the pause is over; create missing ones."""
        if now_ms < self._next_ms:
            return
        try:
            said = self._observe()
        except Unreachable as problem:
            self._next_ms = now_ms + RETRY_MS
            if not self._observed:
                self.why = FoldersUnreachable(str(problem)[:FAULT_MAX])
            return
        except YarnctlError as problem:
            said = (self._refused(str(problem)),)
        self._next_ms = now_ms + AGAIN_MS
        self._log(
            said, ("warn", "fail") if self._observed else ("warn",)
        )  # at first require() says what fails
        self._observed = True
        unfit = (FoldersUnfit(word.observed, word.fix) for word in said if word.severity == "fail")
        self.why = next(unfit, None)

    def _observe(self) -> tuple[CheckResult, ...]:
        facts = hdfs_rules.observed(self._hdfs, self._begin)
        if facts.absent:
            made = hdfs_rules.make(self._hdfs, facts)
            _LOG.info("created in HDFS: %s", ", ".join(made))
            facts = hdfs_rules.observed(self._hdfs, self._begin)
        return hdfs_rules.words(facts)

    def _refused(self, problem: str) -> CheckResult:
        roots = f"{self._begin.requests_root} and {self._begin.store_root}"
        us = self._begin.caller_identity
        fix = (
            f"create them as HDFS's administrator: {self._begin.requests_root} owned by {us}, mode 755,"
            f" {self._begin.store_root} mode 1777"
        )
        return CheckResult("fail", f"{us} cannot read or create {roots}: {problem}", fix)

    def _log(self, said: tuple[CheckResult, ...], severities: tuple[str, ...]) -> None:
        for word in said:
            if word not in self._logged and word.severity in severities:
                _LOG.warning("%s; %s", word.observed, word.fix)
        self._logged = said
