"""Random histories of the property world, drawn with a seeded generator: many and quick.

Law: the number and the seed name the history. What differs is made smaller, one part at a time, as long as
it still differs in the same way, and is told in the form of the shelf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import msgspec

from tests.golden.tables import size
from tests.unit.deciding.controller_world import JOBS, Kept, Move, judge, run
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    CameBack,
    CameBackWithout,
    ContainerEnded,
    ContainerGranted,
    Ending,
    EpochChanged,
    Fact,
    ManifestSeen,
    Outcome,
    Refused,
    Unknown,
    UploadProgressed,
    Withheld,
)
from yarnctl.deciding.policies import JOB_POLICIES
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.errors import YarnctlError

ENDINGS: tuple[Ending, ...] = ("suspended", "completed", "killed", "failed", "lost")
NODES = ("n1", "n2", "n3")
MOST_MOVES = 30
OUTCOMES: tuple[Outcome, ...] = (
    Accepted(),
    Accepted(),
    Refused(ClientFault("no")),
    Unknown(),
    Withheld(ClientFault("not now")),
)


def draw(seed: int, number: int) -> Kept:
    chance = Random(f"{seed}:{number}")
    moves, now_ms = [], 0
    for _ in range(chance.randint(4, MOST_MOVES)):
        move = _move(chance, now_ms)
        now_ms += move.later_ms
        moves.append(move)
    changes = {
        "on_timeout": chance.choice(["give-up", "kill"]), "job_policy": chance.choice(list(JOB_POLICIES)),
        "eviction": chance.choice(["suspend", "suspend", "kill"]),
        "mode": chance.choice(["queues", "queues", "deadlines"]), "kill_timeout_ms": 4000,
        "cost_guard": chance.random() < 0.2, "rest_ms": chance.choice([1000, 12_000]),
        "expire_ms": chance.choice([500, 2000]), "task_tries_max": chance.choice([1, 2, 3]),
        "observe_only": chance.random() < 0.1, "in_flight_ratio_max": chance.choice([1.0, 1.0, 0.2]),
    }  # fmt: skip
    base = chance.choice(["guard-free", "guard-free", "paper", "default"])
    return Kept(broke="", base=base, changes=changes, own=chance.random() < 0.3, moves=moves)


def _move(chance: Random, now_ms: int) -> Move:
    later_ms = chance.choice([0, 250, 250, 1000, 1000, 3000, 5000])
    return Move(
        later_ms=later_ms, whole=chance.random() < 0.7,
        pending=(chance.randint(0, 4), chance.randint(0, 3)) if chance.random() < 0.8 else (0, 0),
        free={node: chance.randint(0, 2) for node in NODES if chance.random() < 0.2},
        facts=[_fact(chance, now_ms + later_ms) for _ in range(chance.choice([0, 0, 1, 2, 4]))],
        outcome=chance.choice(OUTCOMES), absent=tuple(name for name in JOBS if chance.random() < 0.08),
        again=chance.random() < 0.05, blind=chance.random() < 0.03, age_ms=chance.choice([0, 100, 1500]),
    )  # fmt: skip


def _fact(chance: Random, now_ms: int) -> Fact:
    """Return a fact about something that there may be; its instant is lately, mostly."""
    at_ms = max(0, now_ms - chance.choice([0, 0, 100, 1000, 10_000]))
    order, job, node = f"o-{chance.randint(1, 20):06d}", chance.choice(JOBS), chance.choice(NODES)
    attempt = f"{job}.{chance.randint(0, 5)}"
    match chance.randrange(13):
        case 0 | 1:
            return ManifestSeen(order, attempt, chance.randint(0, 2), 3, at_ms)
        case 2:
            return UploadProgressed(order, at_ms)
        case 3 | 4 | 5 | 6:
            return ContainerEnded(attempt + "c", job, node, chance.choice(ENDINGS), at_ms)
        case 7 | 8:
            requester = chance.choice(["p1", "p2", *JOBS, "zz"])
            return ContainerGranted(
                f"{job}.{chance.randint(0, 9)}c", requester, node, size(chance.randint(1, 2)), at_ms
            )
        case 9:
            return ApplicationEnded(chance.choice(["p1", "p2", *JOBS, "zz"]), at_ms)
        case 10 | 11 as drawn:
            order, later = f"o-{chance.randint(1, 6):06d}", f"{job}.{chance.randint(6, 9)}"
            if drawn == 11:
                return CameBackWithout(order, later, 7, 1, 0, at_ms)
            return CameBack(order, later, 100, 200, 300, at_ms)
        case _:
            return EpochChanged("2", at_ms) if chance.random() < 0.2 else UploadProgressed(order, at_ms)


def problem(history: Kept, kinds: Counter[str] | None = None) -> str:
    """Play a history; say what is wrong, "" if nothing is. Its records are counted by kind."""
    try:
        played = run(history.settings(), history.moves, history.own)
        if kinds is not None:
            kinds.update(type(record).__name__ for record in played.records)
        return judge(played)
    except (YarnctlError, AssertionError, LookupError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


def kind(story: str) -> str:
    """Return what kind of difference a story tells: itself without its numbers."""
    return "".join(letter for letter in story[:160] if not letter.isdecimal())


def smaller(history: Kept, broken: Callable[[Kept], str] = problem) -> Kept:
    """Return a history as small as leaving out one thing at a time makes it, that breaks the same."""
    word = kind(broken(history))[:40]
    found = True
    while found:
        found = False
        for less in _less(history):
            if kind(broken(less))[:40] == word:
                history, found = less, True
                break
    return history


def _less(history: Kept) -> Iterator[Kept]:
    moves = history.moves
    for length in (8, 4, 2, 1):
        for at in range(0, len(moves) - length + 1, length):
            yield msgspec.structs.replace(history, moves=moves[:at] + moves[at + length :])
    for name in list(history.changes):
        rest = {key: value for key, value in history.changes.items() if key != name}
        yield msgspec.structs.replace(history, changes=rest)
    plain = Move(0, False, (0, 0), {}, [], Accepted())
    for at, move in enumerate(moves):
        for n in range(len(move.facts)):
            yield _with(history, at, move._replace(facts=move.facts[:n] + move.facts[n + 1 :]))
        for field in ("free", "outcome", "absent", "again", "blind", "age_ms", "whole"):
            value = getattr(plain, field) if field != "age_ms" else 100
            if getattr(move, field) != value:
                yield _with(history, at, Move(**{**move._asdict(), field: value}))
        first, second = move.pending
        for pending in ((0, 0), (first, 0), (0, second), (min(first, 1), second), (first, min(second, 1))):
            if pending != move.pending:
                yield _with(history, at, move._replace(pending=pending))


def _with(history: Kept, at: int, move: Move) -> Kept:
    return msgspec.structs.replace(history, moves=[*history.moves[:at], move, *history.moves[at + 1 :]])
