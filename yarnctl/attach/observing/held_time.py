"""Measure the container time of preemptable applications in the windows of the loss budgets.

Each observation of all unfinished applications adds the growth of each application's own counter
(memorySeconds) since the observation before. The sums are a sample of :class:`HeldWindows`, at most 720 times
in the shortest window (every 5 s of an hour), so that few numbers differ from one step to the next. A job
with a tag that permits a loss is counted separately, and not for its queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from yarnctl.attach.connection.cluster_queues import QueueNames, left_alone
from yarnctl.attach.connection.connection import Attachment
from yarnctl.deciding.held_windows import MARK_MS, MARKS_MAX, HeldWindows, spacing_ms, user_owner
from yarnctl.deciding.model import HeldTime, JobConsent
from yarnctl.deciding.settings import LossRule
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.tags import may_lose_tag_ratio, tags_in

QUIET_MS = 5_000  # The minimum interval between readings of the applications for the budgets only


class HeldTimes:
    """The last counter of each application, and the sums of each payer."""

    def __init__(self, attachment: Attachment, queues: QueueNames) -> None:
        self._queues, self._left_alone_users = queues, attachment.left_alone_users
        self._windows = HeldWindows(attachment.loss_window_ms, attachment.budgets)
        self._sample_ms = self._windows.shortest_ms // MARKS_MAX
        self._counters: dict[str, int] = {}
        self._sums: dict[str, int] = {}
        self._consents: dict[str, JobConsent] = {}
        self._observed_at_ms = self._sampled_at_ms = -1

    def use(self, budgets: Iterable[LossRule], left_alone_users: tuple[str, ...]) -> None:
        """Use other budgets from now on. Held time starts at 0 if payers or windows differ."""
        self._left_alone_users = left_alone_users
        windows = HeldWindows(self._windows.window_ms, budgets)
        if windows.own_ms != self._windows.own_ms:
            self._windows, self._sample_ms = windows, windows.shortest_ms // MARKS_MAX
            self._sums, self._sampled_at_ms = {}, -1

    def is_due(self, now_ms: int) -> bool:
        """Return whether the applications must be read now for the budgets."""
        every_ms = max(QUIET_MS, min(MARK_MS, spacing_ms(self._windows.shortest_ms)))
        return self._observed_at_ms < 0 or abs(now_ms - self._observed_at_ms) >= every_ms

    def restart(self) -> None:
        """Discard the counters: another ResourceManager counts from now on."""
        self._counters, self._sums, self._sampled_at_ms = {}, {}, -1
        self._windows.restart()

    def update(self, at_ms: int, rows: Iterable[yarn.AppInfo]) -> None:
        """Apply an observation of all unfinished applications, which began at ``at_ms``.

        Each row has its queue's path. An application whose counter is not shown (-1) has no base.
        """
        if at_ms < self._observed_at_ms:
            self.restart()  # the clock was set back
        self._observed_at_ms = at_ms
        before, self._counters = self._counters, {}
        tagged, self._consents = self._consents, {}
        sums, fallen = self._sums, set[str]()
        for row in rows:
            queue, name = row.queue, row.application
            if not self._queues.is_preemptable(queue) or left_alone(
                row, self._left_alone_users, self._queues
            ):
                continue
            payers = self._payers(row, queue)
            base_s, count_s = before.get(name), row.mib_seconds
            if count_s >= 0:
                self._counters[name] = count_s
            grew_ms = 0 if base_s is None or count_s < 0 else (count_s - base_s) * 1000
            if grew_ms < 0:
                fallen.update(payers)
            for payer in payers:
                sums[payer] = sums.get(payer, 0) + max(0, grew_ms)
        for ended in tagged.keys() - self._consents.keys():
            sums.pop(ended, None)
        self._sample(at_ms, fallen)

    def _payers(self, app: yarn.AppInfo, queue: str) -> tuple[str, ...]:
        ratio, user = may_lose_tag_ratio(tags_in(app.tags)), user_owner(app.user)
        if ratio is not None:
            self._consents[app.application] = JobConsent(app.application, app.user, ratio)
        payer = queue if ratio is None else app.application
        return (payer, user) if self._windows.has_own(user) else (payer,)

    def _sample(self, at_ms: int, fallen: Collection[str]) -> None:
        """Take a sample if one is due, or if a counter decreased: then its payers' sums begin at 0 again."""
        for payer in fallen:
            self._sums[payer] = 0
        if fallen or self._sampled_at_ms < 0 or at_ms - self._sampled_at_ms >= self._sample_ms:
            self._sampled_at_ms = at_ms
            self._windows.sample(at_ms, self._sums)

    def held(self, now_ms: int) -> tuple[HeldTime, ...]:
        """Return the container time of each payer in each of its windows that end now."""
        return self._windows.held(now_ms)

    def consents(self) -> tuple[JobConsent, ...]:
        """Return the consents of tagged jobs, by id."""
        return tuple(self._consents[name] for name in sorted(self._consents))
