"""The story in which everything is open at once, for golden journals, and how changed priorities go back.

A controller in deadline mode: orders in all four open states, requests that may not have been sent, failed
tries, changed priorities. Around it a lowered queue and a gate with reservations.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.frozen import admission_stories
from tests.golden.tables import GUARD_FREE, with_
from tests.unit.deciding.controller_world import Move, run
from yarnctl.deciding.model import (
    Accepted,
    Change,
    ContainerEnded,
    Fact,
    ManifestSeen,
    Outcome,
    Refused,
    Restore,
    SetQueueMaximum,
    Unknown,
    UploadProgressed,
)
from yarnctl.deciding.reasons.orders import LeftByEarlierRun, QueueServing, ReadBack
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import (
    Header,
    Lowering,
    Performed,
    Ranked,
    Ranking,
    Record,
    Restored,
    Restoring,
    performed,
)

SETTINGS = with_(GUARD_FREE, mode="deadlines", kill_timeout_ms=20_000, expire_ms=60_000, rest_ms=1000)
DONE = Accepted()
UNSURE = Unknown(ClientFault("no answer in time"))
NOT_SENT = 2
"""How many requests of the last decision have no known outcome: the program was killed before them."""


def _move(
    later_ms: int, pending: int = 0, facts: Sequence[Fact] = (), outcome: Outcome = DONE, again: bool = False
) -> Move:
    return Move(later_ms, pending > 0, (pending, 0), {}, list(facts), outcome, again=again)


def moves() -> list[Move]:
    """Return the history: failed tries, then orders that are asked, suspending, checkpointed and freed."""
    return [
        _move(1_000, 4),
        _move(1_250, facts=_saved_and_ended("o-000001", 2_000)),
        _move(19_000),  # the two others made no progress
        _move(4_000, 4, outcome=Refused(ClientFault("the job is not told now"))),
        _move(1_000),
        _move(89_750, 5),
        _move(1_000, facts=_saved_and_ended("o-000007", 116_500)),
        _move(
            250, 5, [UploadProgressed("o-000008", 117_100), UploadProgressed("o-000009", 117_100)], again=True
        ),
        _move(250, facts=[ManifestSeen("o-000008", "r1.0", 1, 3, 117_400)], outcome=UNSURE),
        _move(500),
        _move(250, 12, outcome=UNSURE),
    ]


def _saved_and_ended(order: str, at_ms: int) -> tuple[Fact, ...]:
    return (
        ManifestSeen(order, "r3.0", 1, 3, at_ms),
        ContainerEnded("r3.0c", "r3", "n1", "suspended", at_ms + 200),
    )


def history() -> list[Record]:
    return run(SETTINGS, moves(), own=False).records


def open_at_once() -> list[Record]:
    """Return all of it, up to a kill in the middle of the last decision's requests."""
    header, *steps = history()
    change = Change("queue", "root.research", "0.9", "0.05")
    performing = [place for place, record in enumerate(steps) if isinstance(record, Performed)]
    return [
        header,
        Lowering(0, (change,), QueueServing()),
        performed(0, SetQueueMaximum("root.research", 0.05), Accepted()),
        *(record for record in admission_stories.with_reservations() if not isinstance(record, Header)),
        *steps[: performing[-NOT_SENT]],
    ]


def priorities_put_back() -> list[Record]:
    """Return the controller's records, and how the next daemon restores each priority."""
    records = history()
    first: dict[str, Ranked] = {}
    for record in records:
        if isinstance(record, Ranking):
            for row in record.order:
                if row.priority != row.before:
                    first.setdefault(row.application, row)
    at_ms = max(record.at_ms for record in records if isinstance(record, Ranking))
    for name, row in first.items():
        change = Change("priority", name, str(row.before), str(row.priority))
        records += [
            Lowering(at_ms, (change,), LeftByEarlierRun()),
            Restoring(at_ms, change, LeftByEarlierRun()),
            performed(at_ms, Restore(change), Accepted()),
            Restored(at_ms, "priority", name, change.before, ReadBack()),
        ]
    return records
