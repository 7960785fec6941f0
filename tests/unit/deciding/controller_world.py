"""The property world of the controller: three jobs that may give, two that ask, and facts nobody can trust.

Law: a history is a value. Played twice it gives the same bytes; its journal replays without a difference;
and after every step the fold of its records is the ledger that decided, in every part. A history
that once broke this is kept in ``shelf/`` (``kept``) and is played before any random one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.golden.tables import GUARD_FREE, app, cluster, task, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.invariants import History
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.ledger_state import LedgerState
from yarnctl.deciding.model import Fact, Observation, Outcome, Snapshot
from yarnctl.deciding.records import Record, decode, encode
from yarnctl.deciding.settings import DEFAULT, PAPER, Settings
from yarnctl.errors import Different
from yarnctl.journal.file import Line
from yarnctl.journal.fold import Fold, ledger_of, state_of
from yarnctl.journal.replay import Replay

SHELF = Path(__file__).with_name("shelf")
JOBS = ("r1", "r2", "r3")
SIZES = (6, 5, 4)
BASES: dict[str, Settings] = {"guard-free": GUARD_FREE, "paper": PAPER, "default": DEFAULT}
ROUNDS_MAX = 10


class Move(NamedTuple):
    """One observation, ``later_ms`` after the one before, and what becomes of the actions that follow.

    ``whole``: it shows the cluster, if it is asked to, ``age_ms`` ago, with ``pending`` asks of p1 and p2,
    ``free`` slots by node, and the jobs that are not ``absent``. ``again``: a new controller goes on before.
    ``blind``: neither the cluster nor any job's tasks can be seen.
    """

    later_ms: int
    whole: bool
    pending: tuple[int, int]
    free: dict[str, int]
    facts: list[Fact]
    outcome: Outcome
    absent: tuple[str, ...] = ()
    again: bool = False
    blind: bool = False
    age_ms: int = 100


class Kept(msgspec.Struct, kw_only=True):
    """One history of the shelf: what it broke once, how it decides (``base`` with ``changes``), its moves."""

    broke: str
    base: str
    changes: dict[str, Any] = {}
    own: bool = False
    moves: list[Move]

    def settings(self) -> Settings:
        return with_(BASES[self.base], **self.changes)


class Played(NamedTuple):
    """What a history has led to."""

    controller: Controller
    records: list[Record]


def kept() -> dict[str, Kept]:
    return {
        path.stem: msgspec.json.decode(path.read_bytes(), type=Kept) for path in sorted(SHELF.glob("*.json"))
    }


def look(move: Move, mode: str) -> Snapshot:
    deadlines = mode == "deadlines"
    victims, hurried = ("default", "default") if deadlines else ("research", "production")
    rows = [
        app(name, victims, count, rank=10 + n, deadline=5000 + n if deadlines else None, slots=1 + (n == 2))
        for n, (name, count) in enumerate(zip(JOBS, SIZES, strict=True))
        if name not in move.absent
    ]
    rows += [
        app(name, hurried, 1, count, rank=n, ask=1 + n, deadline=1000 + n if deadlines else None)
        for n, (name, count) in enumerate(zip(("p1", "p2"), move.pending, strict=True))
    ]
    guaranteed = {"default": 100} if deadlines else {"production": 95, "research": 5}
    return cluster(*rows, guaranteed=guaranteed, free=move.free)


TASKS = {
    name: tuple(
        task(f"{name}.{n}", 50_000 + n, node=f"n{1 + n % 3}", slots=1 + (name == "r3"))
        for n in range(count - 1)
    )
    for name, count in zip(JOBS, SIZES, strict=True)
}


def play(way: Settings, moves: Sequence[Any], own: bool) -> list[Record]:
    """Play a history (moves, or tuples that make some); return its records."""
    return run(way, list(starmap(Move, moves)), own).records


def run(way: Settings, moves: Sequence[Move], own: bool) -> Played:
    """Play a history. Each step checks all invariants; the fold of its records must know what it knows."""
    capabilities = frozenset({"releases-itself"}) if own else frozenset()
    controller, now_ms, history = Controller(way, capabilities, validate=True), 0, History()
    fold, records = Fold(), list[Record]()
    for move in moves:
        now_ms += move.later_ms
        if move.again and records:
            controller = Controller(way, capabilities, validate=True, remembered=fold.remembered())
        begun = len(records)
        _observe(controller, move, now_ms, records, history)
        for record in records[begun:]:
            fold.apply(record)
        if story := unlike(controller, fold):
            raise Different(f"the records leave something else: {story}")
    return Played(controller, records)


def _observe(
    controller: Controller, move: Move, now_ms: int, records: list[Record], history: History
) -> None:
    """Step until the controller rests; each round tells the same facts again."""
    for _ in range(ROUNDS_MAX):
        snapshot = None
        if move.whole and not move.blind and controller.to_observe.cluster:
            snapshot = look(move, controller.settings.mode)
        wanted = [name for name in controller.to_observe.victims if name in TASKS]
        step = controller.step(
            Observation(now_ms=now_ms, as_of_ms=now_ms - move.age_ms, snapshot=snapshot,
                cluster="unreachable" if move.blind else "quiet",
                tasks={} if move.blind else {name: TASKS[name] for name in wanted},
                unreachable=tuple(wanted) if move.blind else (), facts=tuple(move.facts))
        )  # fmt: skip
        records += step.records
        for action in step.actions:
            records += controller.settle(action, move.outcome)
        history.check(controller.ledger)
        if step.wake_at_ms > now_ms:
            return
    raise AssertionError("the controller never came to rest")


def read(records: Sequence[Record]) -> Replay:
    """Return a replay that has read these records; raises Different where it would have decided otherwise."""
    state = Replay("journal")
    for number, record in enumerate(records, start=1):
        raw = encode(record)
        state.line(Line(number, decode(raw), raw))
    return state


def judge(played: Played) -> str:
    """Say where replay differs from what was played: in a record, or in what the ledger knows at the end."""
    try:
        state = read(played.records)
        state.finish()
    except Different as difference:
        return str(difference)
    assert state.records == len(played.records)
    return unlike(played.controller, state.fold)


def unlike(controller: Controller, fold: Fold) -> str:
    """Say in which part the ledger that decided and the folded one differ; what time alone ends is ended."""
    different = []
    live, told = (_ended(ledger, controller.now_ms) for ledger in (controller.ledger, fold.ledger))
    for name in LedgerState.__struct_fields__:
        was, now = getattr(live, name), getattr(told, name)
        if was != now:
            different.append(f"{name}: {was}, by the records {now}")
    return "; ".join(different)


def _ended(ledger: Ledger, now_ms: int) -> LedgerState:
    """Return a ledger as it is when time has ended what it ends; the ledger itself is left as it is."""
    copy = ledger_of(state_of(ledger), ledger.settings)
    copy.retire(now_ms)
    return state_of(copy)
