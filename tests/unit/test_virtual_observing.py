"""An observing controller in virtual time, beside one that enforces the same scenario."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from emulator.cluster.preemption import PreemptionConfig
from emulator.virtual.run import Result, Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import job, three_nodes
from yarnctl.deciding.model import Action, Outcome, Withheld
from yarnctl.deciding.reasons.outcomes import Observing
from yarnctl.deciding.records import Decision, Lowering, Record, Transition
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.replay import replay
from yarnctl.traces.job import Job

SETUP = msgspec.structs.replace(three_nodes(may_lose_ratio=0.5, am_ratio=0.5, validate=True), nodes=10)
HOUR_MS = 3_600_000
LONG_MS = 900_000
ROOMY = (
    job("r1", "research", 0, 2, 19, reduce_ms=(LONG_MS,) * 19, reduce_keys=(900,) * 19),
    job("r2", "research", 500, 12, 0, map_ms=(LONG_MS,) * 12),
    *(job(f"p{one}", "production", 20_000 + 1000 * one, 8, 0, map_ms=(90_000,) * 8) for one in range(3)),
)
"""The masters of production find free capacity, its maps do not."""

FULL = (
    job("r1", "research", 0, 2, 10, reduce_ms=(600_000,) * 10, reduce_keys=(600,) * 10),
    *(job(f"p{one}", "production", 20_000 + 30_000 * one, 4, 3) for one in range(8)),
)
"""Research fills three nodes; no master of production starts unless a container of research ends."""


class Twin(NamedTuple):
    """One run: its records, result, the orders of all decisions, and the actions that a port performed."""

    records: list[Record]
    result: Result
    orders: int
    sent: list[Action]


def play(
    jobs: tuple[Job, ...], scheme: str, *, observe: bool, yarn_preempts: bool = False, setup: Setup = SETUP
) -> Twin:
    """Run a scenario to its end, with invariants; ``yarn_preempts``: YARN's own preemption is on."""
    settings = msgspec.structs.replace(setup.settings, observe_only=observe)
    own = PreemptionConfig() if yarn_preempts else None
    journal, sent = MemoryJournal(), list[Action]()
    run = Run(
        msgspec.structs.replace(setup, settings=settings), jobs,
        msgspec.structs.replace(SCHEMES[scheme], preemption=own), journal,
    )  # fmt: skip
    perform = run.port.perform

    def performed(action: Action) -> Outcome:
        if observe:
            return Withheld(Observing())
        sent.append(action)
        return perform(action)

    run.port.perform = performed  # type: ignore[method-assign]
    result = run.go()
    orders = sum(len(each.orders) for each in journal.records if isinstance(each, Decision))
    return Twin(journal.records, result, orders, sent)


def events(twin: Twin) -> Counter[str]:
    return Counter(each.event for each in twin.records if isinstance(each, Transition))


@pytest.mark.parametrize("scheme", ["natjam", "mix"])
@pytest.mark.parametrize("yarn_preempts", [False, True])
def test_observing_opens_as_many_orders_as_enforcing(scheme: str, yarn_preempts: bool) -> None:
    """Within a tenth, where the real cluster shows the same requests; nothing is sent or lowered."""
    enforcing = play(ROOMY, scheme, observe=False)
    observing = play(ROOMY, scheme, observe=True, yarn_preempts=yarn_preempts)
    assert len(enforcing.sent) >= enforcing.orders >= 15
    assert abs(observing.orders - enforcing.orders) <= 0.1 * enforcing.orders
    assert events(observing)["simulated"] >= 0.9 * observing.orders
    assert set(events(observing)) <= {"simulated", "not-needed", "requester-ended", "completed"}
    assert observing.result.suspensions == 0
    assert bool(observing.result.kills) == yarn_preempts, "only YARN's own"
    assert not [each for each in observing.records if isinstance(each, Lowering)]


@pytest.mark.parametrize("scheme", ["natjam", "mix"])
def test_observing_beside_yarns_preemption_follows_one_wave_after_the_other(scheme: str) -> None:
    """YARN serves the masters, whose next requests open the next orders: as many within a third."""
    setup = msgspec.structs.replace(SETUP, nodes=3, am_ratio=1.0)
    enforcing = play(FULL, scheme, observe=False, setup=setup)
    observing = play(FULL, scheme, observe=True, yarn_preempts=True, setup=setup)
    assert enforcing.orders >= 40
    assert abs(observing.orders - enforcing.orders) <= enforcing.orders / 3
    assert observing.result.kills > 0
    assert observing.result.suspensions == 0


def test_without_other_containers_each_container_is_ordered_once() -> None:
    """No master starts, so the cluster shows no further requests: ten containers, ten orders."""
    setup = msgspec.structs.replace(SETUP, nodes=3, am_ratio=1.0)
    observing = play(FULL, "natjam", observe=True, setup=setup)
    picked = [pick for each in observing.records if isinstance(each, Decision) for pick in each.picks]
    assert len(picked) == len({pick.task.container for pick in picked}) == 10


@pytest.mark.parametrize("yarn_preempts", [False, True])
def test_an_observing_journal_replays_to_the_same_bytes(tmp_path: Path, yarn_preempts: bool) -> None:
    setup = msgspec.structs.replace(SETUP, nodes=3, am_ratio=1.0)
    twin = play(FULL, "mix", observe=True, yarn_preempts=yarn_preempts, setup=setup)
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=False) as file:
        for each in twin.records:
            file.append([each])
    assert replay(read(path, closed=True), "j").records == len(twin.records)
    left = rebuild(path)
    assert left is not None
    assert left.remembered.ledger.decisions == len(
        [each for each in twin.records if isinstance(each, Decision)]
    )


def test_hours_of_observing_do_not_grow() -> None:
    """Production waits in vain: whether for one hour or for three, the journal is as long."""
    lengths = []
    for hours in (1, 3):
        long_ms = hours * HOUR_MS
        research = job("r", "research", 0, 0, 11, reduce_ms=(long_ms,) * 11, reduce_keys=(900,) * 11)
        setup = msgspec.structs.replace(SETUP, nodes=3, am_ratio=1.0, validate=False)
        twin = play((research, job("p", "production", 20_000, 6, 2)), "mix", observe=True, setup=setup)
        lengths.append(len(twin.records))
        assert twin.result.makespan_ms >= long_ms
    assert lengths[0] == lengths[1] < 40
