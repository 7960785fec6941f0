"""Placement through the gate over random stories: no pool is overbooked, no promise is broken.

A story is played on records alone: requests with options, rounds, applications that are submitted when their
start comes, run within their bound (or, in some stories, beyond it) and end. It is killed after any of its
records and continues from the lines. Each record is checked as replay does it: a round is decided again. The
laws are functions of a seed; a planted bug replaces one function, and the law must fail on the same seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import Load, Pool
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionStarted,
    GateLearned,
    GateSet,
)
from yarnctl.deciding.admission.gate import decide, granted_in
from yarnctl.deciding.admission.mechanisms import MECHANISMS, placement_round
from yarnctl.deciding.admission.mechanisms.orion import place
from yarnctl.deciding.admission.placement_options import Alternatives, PlacementOption
from yarnctl.deciding.admission.records import Finished, Rectangle, Request
from yarnctl.deciding.admission.rounds import Seen
from yarnctl.deciding.reasons.placements import NothingFits
from yarnctl.deciding.reasons.verdicts import (
    CheapestInTime,
    EndedAs,
    NoDeadline,
    NoOptions,
    StartsLater,
    WithdrawnByRequester,
)
from yarnctl.deciding.records import Record, decode, encode

SEEDS = range(60)
EACH_RECORD = 4
"""Of so many seeds the story is killed after each of its records, of the others after six."""
KINDS = ("flink", "mapreduce", "spark")
STEPS = 25
LAST_MS = 60_000
BACKLOG_MS = 40


class Died(Exception):
    """The process ends here."""


class GateStory:
    """A random story of one seed. ``ends_ms`` is when each running application ends, in truth.

    ``beyond``: some take longer than their bound.
    """

    mechanism = "orion"
    beyond = False

    def __init__(self, seed: int, dies_after: int | None = None) -> None:
        self.chance = random.Random(seed)
        self.pools = tuple(
            Pool(kind, self.chance.randint(2, 6), 1024, (f"root.{kind}",),
                self.chance.choice(((), (kind,), KINDS[:2])), self.chance.choice((500, 1000, 3000)),
                self.chance.choice((None, 14_400_000)))
            for kind in KINDS
        )  # fmt: skip
        held = self.chance.randint(0, 1)
        self.backlog = ((KINDS[0], (Load("other", held, 0, BACKLOG_MS),)),) if held else ()
        self.dies_after = dies_after
        self.lines: list[bytes] = []
        self.store = AdmissionStore()
        self.ends_ms: dict[str, int] = {}
        self.now_ms = 0

    def write(self, record: Record) -> None:
        assert self.store.problem(record) == ""
        self.lines.append(encode(record))
        if len(self.lines) == self.dies_after:
            raise Died
        self.store.take(record)

    def again(self) -> None:
        self.dies_after = None
        self.store = AdmissionStore()
        for line in self.lines:
            record = decode(line)
            assert encode(record) == line
            assert self.store.problem(record) == ""
            self.store.take(record)
        running = {each.admission for each in self.store.open("running")}
        self.ends_ms = {name: at_ms for name, at_ms in self.ends_ms.items() if name in running}
        for each in self.store.open("running"):
            self.ends_ms.setdefault(each.admission, bound_ms(each))

    def play(self) -> None:
        if self.store.gate is None:
            choices = MECHANISMS[self.mechanism].choices
            self.write(GateSet(self.now_ms, self.mechanism, self.pools, choices))
        for _ in range(STEPS):
            what = self.chance.random()
            if what < 0.5:
                self.ask()
            elif what < 0.55 and (waiting := self.store.open("waiting")):
                gone = self.chance.choice(waiting)
                self.write(AdmissionClosed(self.now_ms, gone.admission, "withdrawn", WithdrawnByRequester()))
            else:
                self.run(self.chance.randint(1, 15))
        self.finish()

    def finish(self) -> None:
        while self.store.opened:
            assert self.now_ms < LAST_MS, "one is never begun"
            self.run(20)

    def ask(self) -> None:
        number = self.store.numbered + 1
        options = []
        for _ in range(self.chance.randint(1, 5)):
            predicted_ms = self.chance.randint(1, 30)
            upper_ms = predicted_ms + self.chance.randint(0, 6)
            kind, memory = self.chance.choice(KINDS), self.chance.choice("ab")
            count = self.chance.randint(1, 5)
            options.append(PlacementOption(kind, count, predicted_ms, upper_ms, (("memory", memory),)))
        request = Request(
            number,
            self.now_ms,
            self.chance.randint(1, 90),
            max(each.containers for each in options),
            alternatives=Alternatives(tuple(options), "wordcount", (("input_mib", 7.0),)),
        )
        self.write(AdmissionAsked(self.now_ms, f"adm-0a-{number}", "job", "ann", "", request))
        self.hold_round()

    def hold_round(self) -> None:
        gate = self.store.gate
        assert gate is not None
        backlog = self.backlog if self.now_ms < BACKLOG_MS else ()
        after, plans = decide(gate, self.now_ms, pool_loads=backlog)
        self.same_in_any_order(backlog)
        changed = self.store.has_changed(plans)
        granted = granted_in(gate, after)
        if changed or granted:
            told = backlog
            self.write(AdmissionRound(self.now_ms, (), changed, granted, pool_loads=told))
        for each in self.store.open("admitted"):
            self.begin(each)
        self.in_bounds()

    def same_in_any_order(self, backlog: Any) -> None:
        """The order of a request's options, and that of the pools, changes no plan."""
        gate = self.store.gate
        assert gate is not None
        mixed = []
        for each in gate.waiting:
            assert isinstance(each.alternatives, Alternatives)
            options = list(each.alternatives.options)
            self.chance.shuffle(options)
            found = msgspec.structs.replace(each.alternatives, options=tuple(options))
            mixed.append(msgspec.structs.replace(each, alternatives=found))
        pools = list(gate.pools)
        self.chance.shuffle(pools)
        other = msgspec.structs.replace(gate, waiting=tuple(mixed), pools=tuple(pools))
        plans = decide(gate, self.now_ms, pool_loads=backlog)[1]
        assert decide(other, self.now_ms, pool_loads=backlog)[1] == plans, "the order of options matters"

    def begin(self, each: Admission) -> None:
        assert each.plan.start_at_ms == self.now_ms
        span_ms = bound_ms(each) - self.now_ms
        real_ms = self.chance.randint(1, span_ms)
        if self.beyond and self.chance.random() < 0.3:
            real_ms = span_ms + self.chance.randint(1, 30)
        self.write(AdmissionStarted(self.now_ms, each.admission, f"application_1_{each.sequence}"))
        self.ends_ms[each.admission] = self.now_ms + real_ms

    def run(self, span_ms: int) -> None:
        """Let the time pass, millisecond by millisecond."""
        for _ in range(span_ms):
            if self.store.open("waiting", "admitted"):
                self.hold_round()
            self.now_ms += 1
            for name in [name for name, at_ms in self.ends_ms.items() if at_ms <= self.now_ms]:
                self.end(name)

    def end(self, name: str) -> None:
        found, elapsed_ms = self.store.admissions[name], self.ends_ms.pop(name)
        if not self.beyond and self.mechanism == "orion":
            assert self.now_ms <= found.plan.deadline_at_ms, "a promise is broken"
        self.write(AdmissionClosed(self.now_ms, name, "ended", EndedAs("FINISHED")))
        assert found.plan.start_at_ms is not None
        elapsed_ms -= found.plan.start_at_ms
        learned = Finished(1, 1, 1, 1, 1, 1.0, met=True, elapsed_ms=elapsed_ms)
        self.write(GateLearned(self.now_ms, found.application, (learned,)))
        assert self.store.ran_ms[name] == elapsed_ms

    def in_bounds(self) -> None:
        """Neither capacity nor hourly budget is exceeded now, nor by what is claimed for later."""
        gate = self.store.gate
        assert gate is not None
        later = [each.until_ms for each in gate.reserved]
        for at_ms in (
            range(self.now_ms, max(later, default=self.now_ms)) if not self.beyond else (self.now_ms,)
        ):
            for pool in gate.pools:
                used = sum(each.containers for each in gate.reserved if self.holds(each, pool, at_ms))
                if at_ms < BACKLOG_MS:
                    used += sum(
                        load.containers for name, loads in self.backlog for load in loads if name == pool.name
                    )
                assert used <= pool.capacity, "a pool is overbooked"
                costs = used * pool.cost_mtokens * 3600
                if self.mechanism == "orion" and pool.hourly_mtokens is not None:
                    assert costs <= pool.hourly_mtokens, "over the hourly budget"

    def holds(self, each: Any, pool: Pool, at_ms: int) -> bool:
        if each.pool != pool.name:
            return False
        if self.beyond:  # a claim may have passed: what holds containers is what runs
            return bool(each.application) or each.sold is None
        return bool(each.from_ms <= at_ms < each.until_ms)


class LateStory(GateStory):
    """Some applications take longer than their bound."""

    beyond = True

    def in_bounds(self) -> None:
        super().in_bounds()
        gate = self.store.gate
        assert gate is not None
        backlog = self.backlog if self.now_ms < BACKLOG_MS else ()
        seen = Seen((), gate.reserved, (), gate.pools, self.now_ms, pool_loads=backlog)
        held = {each.request.sequence: each for each in gate.reserved}
        for each in self.store.open("waiting"):
            if each.plan.finish_at_ms is None or each.plan.finish_at_ms <= each.plan.deadline_at_ms:
                continue
            pools = placement_round._Standing(seen, held).pools(without=each.sequence)
            assert isinstance(each.request.alternatives, Alternatives)
            options = each.request.alternatives.options
            found = place(options, pools, self.now_ms, each.plan.deadline_at_ms)
            assert found.placed is None, "it waits too long, and another place is in time"


class LeastLoadedStory(GateStory):
    """The paper's comparison."""

    mechanism = "least_loaded"


def bound_ms(each: Admission) -> int:
    """Return when a placed application ends at the latest."""
    assert each.reservation is not None
    assert isinstance(each.reservation.claim, Rectangle)
    return each.reservation.until_ms


def what_is_placed_is_in_time(seed: int) -> None:
    GateStory(seed).play()


def who_runs_longer_overbooks_no_pool(seed: int) -> None:
    LateStory(seed).play()


def the_least_loaded_pool_is_not_overbooked(seed: int) -> None:
    LeastLoadedStory(seed).play()


def a_death_changes_nothing(seed: int) -> None:
    whole = GateStory(seed)
    whole.play()
    deaths = range(1, len(whole.lines) + 1)
    for dies_after in deaths if seed < EACH_RECORD else random.Random(seed).sample(deaths, 6):
        story = GateStory(seed, dies_after)
        with pytest.raises(Died):
            story.play()
        before = story.lines[-1]
        story.again()
        assert story.lines[-1] == before
        kept = encode_store(story.store)
        story.again()
        assert encode_store(story.store) == kept
        story.finish()


def encode_store(store: AdmissionStore) -> bytes:
    return msgspec.json.encode(store.left())


LAWS = (
    what_is_placed_is_in_time,
    who_runs_longer_overbooks_no_pool,
    the_least_loaded_pool_is_not_overbooked,
    a_death_changes_nothing,
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_law(law: Callable[[int], None], seed: int) -> None:
    law(seed)


def _claims_forgotten(standing, without=None):
    return [placement_round.placement_pool(pool, ()) for pool in standing.seen.pools]


def _at_once(standing, each, choices):
    return standing.seen.now_ms


def _never(standing, each, choices):
    return standing.seen.now_ms + 1


def _as_planned(standing, each, choices):
    return max(standing.seen.now_ms, each.from_ms)


def _backlog_forgotten(standing, without=None):
    return POOLS(standing._replace(seen=standing.seen._replace(pool_loads=())), without)


def _first_options(choices, found, pools, now_ms, due_ms):
    cut = msgspec.structs.replace(found, options=found.options[:2])
    return BY_ORION(choices, cut, pools, now_ms, due_ms)


def _later_deadline(choices, found, pools, now_ms, due_ms):
    return BY_ORION(choices, found, pools, now_ms, due_ms + 1)


POOLS, BY_ORION = placement_round._Standing.pools, placement_round._by_orion
BUGS: dict[str, tuple[Any, str, Any, Callable[[int], None]]] = {
    "what is reserved is forgotten": (placement_round._Standing, "pools", _claims_forgotten,
        what_is_placed_is_in_time),
    "nobody waits for a start": (placement_round, "_start_ms", _at_once, what_is_placed_is_in_time),
    "a start never comes": (placement_round, "_start_ms", _never, what_is_placed_is_in_time),
    "nobody looks who runs longer": (placement_round, "_start_ms", _as_planned,
        who_runs_longer_overbooks_no_pool),
    "who is late where it waits stays there": (placement_round, "_anew", lambda *given: None,
        who_runs_longer_overbooks_no_pool),
    "the backlog is forgotten": (placement_round._Standing, "pools", _backlog_forgotten,
        what_is_placed_is_in_time),
    "only the first options count": (placement_round, "_by_orion", _first_options, what_is_placed_is_in_time),
    "a deadline 1 ms later": (placement_round, "_by_orion", _later_deadline, what_is_placed_is_in_time),
}  # fmt: skip


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, name, instead, law = BUGS[bug]
    monkeypatch.setattr(holder, name, instead)
    with pytest.raises(AssertionError):
        _on_all_seeds(law)


def _on_all_seeds(law: Callable[[int], None]) -> None:
    for seed in SEEDS:
        law(seed)


# --- by hand --------------------------------------------------------------------------------------------

FAST = Pool("fast", 4, 1024, ("root.fast",), ("spark",), 1000)
CHEAP = PlacementOption("spark", 1, 100, 110, (), "", 0.05)
WIDE = PlacementOption("spark", 4, 40, 44)


def asked(number: int, deadline_ms: int | None, *options: PlacementOption, **fields: Any) -> Request:
    found = Alternatives(options, **fields) if options else None
    return Request(number, 0, deadline_ms, 4, alternatives=found)


def story_of(*requests: Request, pools: tuple[Pool, ...] = (FAST,)) -> tuple[AdmissionStore, tuple[Any, ...]]:
    store = AdmissionStore()
    store.take(GateSet(0, "orion", pools, MECHANISMS["orion"].choices))
    for each in requests:
        store.take(AdmissionAsked(0, f"adm-0a-{each.sequence}", "job", "ann", "", each))
    assert store.gate is not None
    after, plans = decide(store.gate, 0)
    store.take(AdmissionRound(0, (), plans, granted_in(store.gate, after)))
    return store, plans


def test_the_second_waits_for_the_first_and_starts_when_that_ends_sooner() -> None:
    store, (first, second) = story_of(asked(1, 100, CHEAP, WIDE), asked(2, 100, WIDE))
    assert (first.verdict, first.containers, first.reason) == ("admit", 4, CheapestInTime("spark", 4, 160))
    assert (second.verdict, second.reason) == ("defer", StartsLater("fast", 4, 44))
    assert (second.kind, second.pool, second.start_at_ms, second.finish_at_ms) == ("spark", "fast", 44, 88)
    assert [each.containers for each in first.refused] == [1]
    assert store.queue_of(store.admissions["adm-0a-1"]) == "root.fast"
    store.take(AdmissionStarted(0, "adm-0a-1", "application_1_1"))
    store.take(AdmissionClosed(30, "adm-0a-1", "ended", EndedAs("FINISHED")))
    assert store.gate is not None
    (plan,) = decide(store.gate, 30)[1]
    assert (plan.verdict, plan.start_at_ms, plan.finish_at_ms) == ("admit", 30, 74)
    assert plan.reason == CheapestInTime("spark", 4, 160)


SLOW = Pool("slow", 4, 1024, ("root.slow",), ("flink",), 2000)
LONG = PlacementOption("spark", 4, 40_000, 44_000)
DEAR = PlacementOption("flink", 4, 42_000, 45_000)


def late_story(due_ms: int) -> tuple[AdmissionStore, tuple[Any, ...]]:
    """At 50 s: the first has passed its bound of 44 s, so that the second is expected to start at 60 s."""
    store, (_, second) = story_of(asked(1, 50_000, LONG), asked(2, due_ms, LONG, DEAR), pools=(FAST, SLOW))
    assert (second.pool, second.kind, second.start_at_ms) == ("fast", "spark", 44_000)
    store.take(AdmissionStarted(0, "adm-0a-1", "application_1_1"))
    assert store.gate is not None
    return store, decide(store.gate, 50_000)[1]


def test_who_would_end_too_late_behind_one_that_overran_is_placed_anew_where_it_ends_in_time() -> None:
    store, (plan,) = late_story(100_000)
    placed = (plan.verdict, plan.pool, plan.kind, plan.start_at_ms, plan.finish_at_ms)
    assert placed == ("admit", "slow", "flink", 50_000, 95_000)
    assert plan.reason == CheapestInTime("flink", 4, 336_000)
    assert [(each.kind, each.start_at_ms) for each in plan.refused] == [("spark", 50_000)]
    assert store.gate is not None
    after, _ = decide(store.gate, 50_000)
    assert [(each.pool, each.containers) for each in after.reserved] == [("fast", 4), ("slow", 4)]


@pytest.mark.parametrize("due_ms", [104_000, 94_000], ids=["in time where it waits", "late everywhere"])
def test_who_cannot_gain_keeps_its_place(due_ms: int) -> None:
    _, (plan,) = late_story(due_ms)
    assert (plan.verdict, plan.pool) == ("defer", "fast")
    assert (plan.start_at_ms, plan.finish_at_ms) == (60_000, 104_000)


def test_what_would_do_is_told_of_what_is_rejected() -> None:
    _, (first, second, third, fourth) = story_of(
        asked(1, 100, WIDE), asked(2, 60, CHEAP, WIDE, lacking=("flink",)), asked(3, None, WIDE), asked(4, 60)
    )
    assert first.verdict == "admit"
    assert (second.verdict, second.reason) == ("reject", NothingFits(88, 4, ("flink",)))
    assert [(each.kind, each.containers) for each in second.refused] == [("spark", 4), ("spark", 1)]
    assert (third.reason, fourth.reason) == (NoDeadline(), NoOptions())
