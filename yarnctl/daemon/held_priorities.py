"""When the YARN priorities of ``--allow-priority`` are restored while this run still ranks.

A priority lasts while its application has pending requests, or waits for its master, in the snapshots by
which applications are ranked, and ``HOLD_MS`` longer. So it also ends that long after production's last
demand: without demand there is no snapshot, and no ranking. An application that waits again is ranked again.
"""

from __future__ import annotations

from yarnctl.deciding.model import Change, Snapshot
from yarnctl.deciding.prioritising import HOLD_MS, waiting_in
from yarnctl.deciding.reasons.orders import NotRankedLately
from yarnctl.restoring.restorer import Restorer


class HeldPriorities:
    """Makes the priorities that ``restorer`` has recorded due."""

    def __init__(self, restorer: Restorer) -> None:
        self._restorer = restorer
        self._ranked: dict[str, tuple[Change, int]] = {}

    def reconcile(self, snapshot: Snapshot | None, now_ms: int) -> None:
        """After a tick that may act. ``snapshot``: that by which it ranked, None: it did not."""
        held = [one for (kind, _), one in self._restorer.open.items() if kind == "priority"]
        waiting = frozenset() if snapshot is None or not held else waiting_in(snapshot)
        before, self._ranked = self._ranked, {}
        for one in held:
            change, at_ms = before.get(one.change.target, (one.change, now_ms))
            is_set_back = at_ms > now_ms  # the clock
            if change != one.change or change.target in waiting or is_set_back:
                at_ms = now_ms
            self._ranked[change.target] = (one.change, at_ms)
            if one.why is None and now_ms - at_ms >= HOLD_MS:
                one.why, one.again_at_ms, one.pause_ms = NotRankedLately(HOLD_MS), 0, 0
