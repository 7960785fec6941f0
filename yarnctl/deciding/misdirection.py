"""Misdirection: whether the room that orders made goes to those it was made for.

Law: it reads records alone, so that a restart knows what was known before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from yarnctl.deciding.reasons.modes import Misdirected
from yarnctl.deciding.reasons.orders import Unclaimed
from yarnctl.deciding.records import Record, Stance, Transition

RECENT_ORDERS = 10
MISDIRECTED_MAX = 3
CONTINUED = "continued"
"""The stance that is written when a person lets the loop go on."""


class Misdirection:
    """Three of the last ten to others is too many. ``last``: the moves by which room was given.

    Once ``why`` is set it stays so until somebody continues the loop (or ``forget``).
    """

    def __init__(self, last: Iterable[Transition] = (), why: Misdirected | None = None) -> None:
        self.last: deque[Transition] = deque(last, maxlen=RECENT_ORDERS)
        self.why = why

    def apply(self, records: Iterable[Record]) -> None:
        """Read records in the order of the journal."""
        for record in records:
            if isinstance(record, Stance) and record.stance == CONTINUED:
                self.clear()
            elif isinstance(record, Transition) and (record.target == "granted" or _is_misdirected(record)):
                self.last.append(record)
                self._judge()

    def _judge(self) -> None:
        taken = [record for record in self.last if _is_misdirected(record)]
        if len(taken) >= MISDIRECTED_MAX and self.why is None:
            who = tuple((record.order, record.application) for record in taken)
            self.why = Misdirected(who, len(self.last))

    def clear(self) -> None:
        """Begin to count anew."""
        self.last.clear()
        self.why = None


def _is_misdirected(record: Transition) -> bool:
    """Say whether somebody else got the room: seen to, or nobody watched did while its asker still waits."""
    return record.target == "taken" or (isinstance(record.why, Unclaimed) and record.why.asker_waits)
