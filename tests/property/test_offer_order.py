"""Offers beside a plain chooser that puts every task of every job in one order, and looks at them in turn.

Law: which tasks are looked at is part of the result (the journal shows those without a lever). A task's place
in the plain order is a bound of its cost that knows of its work and of the wait for the fastest lever alone.
"""

from __future__ import annotations

import random
from heapq import heappop, nsmallest

import msgspec
import pytest

from tests.golden.mix_tables import NOW_MS
from tests.property.mix_asks import Asked, crowded, many_asks
from tests.property.test_mix_optimum import priced
from tests.thoroughness import examples
from yarnctl.deciding import mix, offers
from yarnctl.deciding.case import Case
from yarnctl.deciding.mix import choose_mix
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.offers import LeverOffers, MixInput, NoLever
from yarnctl.deciding.settings import Settings

SEEDS = range(examples(800))
LOST = 1 << 44
FOREVER = 1 << 90


class PlainOffers(LeverOffers):
    """All tasks are sorted once; nothing is known of a job as a whole."""

    def __init__(self, case: Case, settings: Settings, mix_input: MixInput) -> None:
        super().__init__(case, settings, mix_input)
        rows = [
            ((self.rough(task), self.keys[index], self._known_keys((task,))[0], index), place, task)
            for index in sorted(head[3] for head in self._heads)
            for place, task in enumerate(case.tasks[case.jobs[index].usage.application])
        ]
        self.rows = sorted(rows)

    def rough(self, task: TaskView) -> int:
        end_ms = self.rules.leave_ms + self.given.late_ms.get("end", 0)
        wait_ms = self._second.of(min(self.rules.leave_ms, self.rules.suspend_ms, max(0, end_ms)))
        waits = wait_ms if task.kind in ("map", "reduce") else 0
        scale = LOST if self._second.parts else 1
        if task.remaining_ms <= self.rules.room_within_ms - self.rules.leave_ms:
            return 0
        if task.kind == "reduce" or task.since_ms >= self.case.now_ms:
            return (task.resume_cost_ms + waits) * scale
        if not self._may_lose:
            return FOREVER
        return (self.case.now_ms - task.since_ms) * LOST + (task.resume_cost_ms + waits) * scale

    def _offer(self) -> bool:
        while self.rows and (not self._ready or offers._comes_before(self.rows[0][0], self._ready[0])):
            head, _, task = self.rows.pop(0)
            self._add(head[3], task)
        if not self._ready:
            return False
        self.offered.append(heappop(self._ready)[1])
        return True

    def without_lever(self, most: int) -> list[NoLever]:
        return nsmallest(most, self.passed, key=lambda each: each[0].attempt)


def with_executors(asked: Asked, seed: int) -> Asked:
    """Return the same with executors and masters among the tasks, and other spans of levers."""
    draw = random.Random(seed)
    assert asked.settings.levers is not None
    tasks = {
        name: tuple(
            task._replace(
                kind=draw.choice(("executor", "am", "map")), since_ms=NOW_MS - draw.choice((0, 3000, -3000))
            )
            if draw.random() < 0.2
            else task
            for task in row
        )
        for name, row in asked.case.tasks.items()
    }
    levers = msgspec.structs.replace(asked.settings.levers, leave_ms=draw.choice((1000, 1000, 4500)))
    return Asked(
        msgspec.structs.replace(asked.case, tasks=tasks),
        msgspec.structs.replace(asked.settings, levers=levers, refused_shown=draw.choice((0, 1, 3, 100))),
        asked.given._replace(late_ms={"end": draw.choice((0, -2000, 1000)), "drain": draw.choice((0, 500))}),
    )


def asked_of(seed: int) -> Asked:
    asked = with_executors((many_asks if seed % 3 else crowded)(seed), seed)
    return priced(asked, seed) if seed % 2 else asked


def require_same(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Choose both ways for all seeds; return the reasons that were shown."""
    shown: set[str] = set()
    for seed in SEEDS:
        choice = choose_mix(*asked_of(seed))
        with monkeypatch.context() as patched:
            patched.setattr(mix, "LeverOffers", PlainOffers)
            assert choose_mix(*asked_of(seed)) == choice, seed
        shown |= {task.why for task in choice.refused_tasks}
    return shown


def test_choice_is_that_of_the_plain_order(monkeypatch):
    shown = require_same(monkeypatch)
    assert {"next", "not-worth", "killed-lately", "map", "not-checkpointable", "already-ordered"} <= shown


def test_law_notices_that_tasks_behind_the_last_look_are_forgotten(monkeypatch):
    monkeypatch.setattr(LeverOffers, "_is_killable", lambda self, task, index: True)
    with pytest.raises(AssertionError):
        require_same(monkeypatch)


def test_law_notices_a_bound_above_a_price(monkeypatch):
    of_job = LeverOffers._pricing

    def pricing(self):
        prices = of_job(self)
        return lambda tasks, running: [each + 2000 * bool(each) for each in prices(tasks, running)]

    monkeypatch.setattr(LeverOffers, "_pricing", pricing)
    with pytest.raises(AssertionError):
        require_same(monkeypatch)
