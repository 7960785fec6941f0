"""Follow promises of running jobs: those that will be missed, and the new quotes of what these delay.

Both are shown and reported, and nothing else: they are in no journal, and after a start they are found anew.
A new quote stands until its deadline will be missed, too, or the promise can be kept again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from yarnctl.daemon.admission.backlog import ClusterUse
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import FOREVER_MS
from yarnctl.deciding.admission.late.late_promises import LatePromise, LateWatch, RunningPromise, passed_ratio
from yarnctl.deciding.admission.late.requoting import quoted_anew
from yarnctl.deciding.admission.records import Phases
from yarnctl.deciding.admission.rounds import Seen

_LOG = logging.getLogger("yarnctl.daemon")

QUOTED_EVERY_MS = 10_000  # The interval of new quotes while the same jobs are late


class SeenProgress(NamedTuple):
    """The progress of applications in the snapshot of ``at_ms``, by id."""

    at_ms: int
    ratios: Mapping[str, float]


class DelayedPromise(NamedTuple):
    """What an admission that ``delayed_by`` late ones delay can have instead of its promise, since when.

    ``start_at_ms`` is None if it runs already, ``price_mtokens`` if deadlines have no price. Nothing more is
    charged.
    """

    admission: str
    quoted_at_ms: int
    deadline_at_ms: int
    start_at_ms: int | None
    price_mtokens: int | None
    delayed_by: tuple[str, ...]


class LateDesk:
    """``late`` and ``delayed`` by admission; ``report`` receives each that is new, with its admission."""

    def __init__(self, store: AdmissionStore) -> None:
        self._store = store
        self._watch = LateWatch()
        self._looked_at_ms = self._quoted_at_ms = 0
        self._quoted_for: frozenset[str] = frozenset()
        self.delayed: dict[str, DelayedPromise] = {}
        self.report: Callable[[Admission, LatePromise | DelayedPromise], None] = lambda admission, news: None

    @property
    def late(self) -> dict[str, LatePromise]:
        """The running admissions that will miss their deadline."""
        return self._watch.late

    def look(self, progress: SeenProgress, use: ClusterUse | None, blocking: tuple[int, ...]) -> None:
        """Look at the progress of a new snapshot; ``use`` and ``blocking`` as for a round."""
        if progress.at_ms == self._looked_at_ms:
            return
        self._looked_at_ms = now_ms = progress.at_ms
        for late in self._watch.look(self._promises(progress), now_ms):
            late_s = (late.projected_at_ms - late.deadline_at_ms) / 1000
            _LOG.warning("%s will miss its deadline by %.0f s at its pace so far", late.admission, late_s)
            self.report(self._store.admissions[late.admission], late)
        known = frozenset(self.late)
        if known != self._quoted_for or not 0 <= now_ms - self._quoted_at_ms < QUOTED_EVERY_MS:
            self._quoted_for, self._quoted_at_ms = known, now_ms
            self._quote(use, blocking, now_ms)

    def _promises(self, progress: SeenProgress) -> list[RunningPromise]:
        return [
            RunningPromise(
                each.admission,
                each.changed_at_ms,
                each.plan.deadline_at_ms,
                passed_ratio(progress.ratios[each.application], _phases(each), each.plan.containers),
            )
            for each in self._store.open("running")
            if each.application in progress.ratios and each.plan.deadline_at_ms < FOREVER_MS
        ]

    def _quote(self, use: ClusterUse | None, blocking: tuple[int, ...], now_ms: int) -> None:
        """Quote anew what late jobs delay past its promise; what can be kept again loses its quote."""
        gate, before, self.delayed = self._store.gate, self.delayed, {}
        if gate is None or use is None or not self.late:
            return
        seen = Seen(
            gate.waiting, gate.reserved, use.loads, gate.pools, now_ms,
            self._store.balances(), gate.promised, blocking, use.pool_loads,
        )  # fmt: skip
        numbers = {each.sequence: each for each in self._store.open()}
        late = {self._store.admissions[name].sequence: one.projected_at_ms for name, one in self.late.items()}
        for quote in quoted_anew(gate, seen, late):
            admission = numbers.get(quote.sequence)
            if admission is None or quote.deadline_at_ms <= admission.plan.deadline_at_ms:
                continue
            _, deadline_at_ms, start_at_ms, price = quote
            name, found = admission.admission, before.get(admission.admission)
            if found is None or found.deadline_at_ms < deadline_at_ms:
                found = DelayedPromise(name, now_ms, deadline_at_ms, start_at_ms, price, tuple(self.late))
                late_s = (deadline_at_ms - admission.plan.deadline_at_ms) / 1000
                _LOG.warning("%s is delayed past its deadline; one %.0f s later can be kept", name, late_s)
                self.report(admission, found)
            self.delayed[name] = found


def _phases(admission: Admission) -> Phases | None:
    estimate = admission.request.estimate
    return estimate.phases if estimate is not None and admission.request.kind == "mapreduce" else None
