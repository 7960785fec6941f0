"""The timeline, served in steps from the first that is free, is what the plain computation gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.property import plain_timeline as plain
from tests.thoroughness import examples
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile, profile
from yarnctl.deciding.admission.mechanisms.promises import EARLY_MASTERS_OF
from yarnctl.deciding.admission.pricing import timeline
from yarnctl.deciding.admission.pricing.timeline import Due


def drawn(seed: int) -> tuple[random.Random, Profile, list[Due]]:
    """Draw free containers, also fewer than none, and work: of known and of unknown masters, wide, narrow."""
    chance = random.Random(seed)
    capacity = chance.choice((1, 2, 3, 7, EARLY_MASTERS_OF, 40))
    loads = [
        Load(f"x{each}", chance.randint(0, capacity + 1), begin := chance.randint(-20, 300),
            chance.choice((begin + chance.randint(-2, 150), FOREVER_MS)))
        for each in range(chance.randint(0, 4))
    ]  # fmt: skip
    masters = chance.choice((0.0, 0.3, 1.0))
    dues = []
    for each in range(chance.randint(0, 14)):
        work_ms = chance.choice((chance.randint(1, 40), chance.randint(1, 900)))
        master_ms = chance.randint(0, work_ms) if chance.random() < masters else 0
        tail_ms = chance.randint(0, 60) if master_ms else 0
        most = chance.randint(2 if master_ms else 1, capacity + 2)
        dues.append(Due(f"j{each}", work_ms, most, chance.randint(0, 900), master_ms, tail_ms))
    return chance, profile(capacity, loads, chance.choice((-5, 0, 30))), dues


def serves_the_same(seed: int) -> None:
    chance, free, dues = drawn(seed)
    from_ms = chance.choice((0, 0, 17, 250))
    assert timeline.served(free, dues, from_ms) == plain.served(free, dues, from_ms)
    assert timeline.schedule(free, dues, from_ms).begin_ms == plain.begins(free, dues, from_ms)
    some = [due.who for due in dues if chance.random() < 0.3] + ["nobody"]
    known = plain.served(free, dues, from_ms)
    assert timeline.served_of(free, dues, from_ms, some) == {who: known[who] for who in some if who in known}


def leaves_the_same(seed: int) -> None:
    chance, free, dues = drawn(seed)
    from_ms = chance.choice((0, 17))
    until_ms = from_ms + chance.choice((0, 1, 40, chance.randint(0, 1000)))
    assert timeline.left_at(free, dues, from_ms, until_ms) == plain.left_at(free, dues, from_ms, until_ms)


def judges_the_same(seed: int) -> None:
    _, free, dues = drawn(seed)
    if dues:
        *others, job = dues
        assert timeline.judged(free, others, 0, job) == plain.judged(free, others, 0, job)
        assert timeline.earliest_due(free, others, job, 0) == timeline.earliest_due(
            free, others, job, 0, lambda one: plain.judged(free, others, 0, one)
        )


def loads_the_same(seed: int) -> None:
    chance, free, _ = drawn(seed)
    loads = [
        Load("m", 1, begin := free.at_ms[0] + chance.randint(0, 300),
            begin + chance.choice((-3, 0, 5, 90, FOREVER_MS)))
        for _ in range(chance.randint(0, 5))
    ]  # fmt: skip
    slow = free
    for load in loads:
        slow = plain.with_load(slow, load)
    quick = free.with_loads(loads)
    assert [quick.free_at(at) for at in range(-60, 500)] == [slow.free_at(at) for at in range(-60, 500)]


LAWS = (serves_the_same, leaves_the_same, judges_the_same, loads_the_same)


@pytest.mark.parametrize("law", LAWS)
def test_timeline_is_the_plain_computation(law: Callable[[int], None]) -> None:
    _on_seeds(law, examples(400))


def _on_seeds(law: Callable[[int], None], count: int) -> None:
    for seed in range(count):
        law(seed)


def campaign(seeds: range) -> int:
    """Hold every law on many seeds; return how many cases were compared."""
    for seed in seeds:
        for law in LAWS:
            law(seed)
    return len(seeds) * len(LAWS)


Planted = Callable[..., Any]
BUGS: dict[str, tuple[str, Callable[[Planted], Planted], Callable[[int], None]]] = {
    "a step in front of the first free one is never looked at again": ("_first",
        lambda plain_: lambda self, least: min(plain_(self, least) + 1, len(self.free)), serves_the_same),
    "a container is held from the end of all work": ("hold",
        lambda plain_: lambda self, from_ms, until_ms: plain_(self, from_ms, until_ms + 1), serves_the_same),
    "the rest of a division is dropped": (
        "_divide",
        lambda plain_: (
            lambda self, step, wide, idle, left: plain_(self, step, wide, idle, left // wide * wide or left)
        ),
        judges_the_same,
    ),
    "what is left counts no step that is used up": ("given",
        lambda plain_: lambda self: plain_(self) // 2 * 2, leaves_the_same),
}  # fmt: skip


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, planted, law = BUGS[bug]
    monkeypatch.setattr(timeline._Steps, name, planted(getattr(timeline._Steps, name)))
    timeline._schedule.cache_clear()
    with pytest.raises(AssertionError):
        _on_seeds(law, 150)
    timeline._schedule.cache_clear()
