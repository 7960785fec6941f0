"""Random asks for the mix: jobs with tasks of every kind on a few nodes, free room, and what may be lost.

Law: a seed is a case. No node's free room holds an ask of the case by itself: such an ask would not be there.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import msgspec

from tests.golden.mix_tables import NOW_MS, RULES, mix_settings
from yarnctl.deciding.case import Candidate, Case, Need
from yarnctl.deciding.held_windows import user_owner
from yarnctl.deciding.levers import LeverKind
from yarnctl.deciding.loss_budget import LossLeft, TaskLoss
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.offers import MixInput
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES, JobUsage
from yarnctl.deciding.settings import Settings
from yarnctl.units import Resources, dominant, fits

TOTAL = Resources(200 * 1024, 200)
SIZES = (Resources(1024, 1), Resources(2048, 1), Resources(1024, 2), Resources(3072, 2))
ASKS = (*SIZES, Resources(4096, 3), Resources(6144, 2))
LARGE = (Resources(6144, 6), Resources(7168, 4), Resources(4096, 7))
QUEUES = ("research", "batch")
USERS = ("u", "v")


class Asked(NamedTuple):
    """A case of the mix, with everything that a choice reads."""

    case: Case
    settings: Settings
    given: MixInput


class Chance:
    """Draws the parts of one case."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def task(self, attempt: str, nodes: int) -> TaskView:
        """Return a map, a reduce in any state, or one that is about to end."""
        draw = self.random
        kind = draw.choice(("map", "map", "reduce", "reduce", "fetching"))
        since_ms = NOW_MS if kind == "fetching" else NOW_MS - draw.choice((0, 1, 2, 3, 5, 8)) * 1000
        return TaskView(
            attempt, f"c-{attempt}", f"n{draw.randint(1, nodes)}", draw.choice(SIZES),
            "map" if kind == "map" else "reduce", draw.choice((-1, 1000, 4000, 20_000, 60_000)),
            draw.choice((0, 1000, 2000, 4000, 9000)), since_ms, draw.choice((0, 0, 1, 8)),
            kind == "reduce" and draw.random() < 0.8, draw.random() < 0.2,
        )  # fmt: skip

    def asked(self, tasks: int, nodes: int, needs: tuple[Need, ...]) -> Asked:
        """Return a case of so many tasks of up to four jobs."""
        draw = self.random
        rows: dict[str, list[TaskView]] = {f"j{number}": [] for number in range(draw.randint(1, 4))}
        for number in range(tasks):
            name = draw.choice(list(rows))
            rows[name].append(self.task(f"{name}m{number:03d}_{draw.randint(0, 1)}", nodes))
        jobs = tuple(self._candidate(name, row) for name, row in rows.items())
        case = Case(
            number=draw.randint(1, 9),
            now_ms=NOW_MS,
            total=TOTAL,
            needs=needs,
            free=self._room(nodes, needs),
            jobs=jobs,
            tasks={name: tuple(row) for name, row in rows.items()},
            barred={
                row[0].attempt: "already-ordered" for row in rows.values() if row and draw.random() < 0.2
            },
        )
        return Asked(case, self._settings(), self._given(rows))

    def _candidate(self, name: str, row: list[TaskView]) -> Candidate:
        draw, used = self.random, Resources(1024 * (1 + len(row)), 1 + len(row))
        most = draw.choice((len(row), len(row), len(row) // 2, 1))
        share = dominant(used, TOTAL)
        usage = JobUsage(name, share, len(row) + 1, most, draw.randint(0, 3), None, draw.randint(0, 3), 0)
        return Candidate(usage, used, 1000, SIZES[0])

    def _room(self, nodes: int, needs: tuple[Need, ...]) -> dict[str, Resources]:
        draw = self.random
        drawn = {f"n{node}": draw.choice((Resources(0, 0), *SIZES)) for node in range(1, nodes + 1)}
        return {
            node: free for node, free in drawn.items() if not any(fits(need.size, free) for need in needs)
        }

    def _settings(self) -> Settings:
        draw = self.random
        rules = msgspec.structs.replace(RULES, may_lose_ratio=draw.choice((0.0, 0.02, 0.02)))
        return mix_settings(
            rules,
            job_policy=draw.choice(sorted(JOB_POLICIES)),
            task_policy=draw.choice(sorted(TASK_POLICIES)),
            cost_guard=draw.random() < 0.5,
            seed=draw.randint(0, 9),
        )

    def _given(self, rows: dict[str, list[TaskView]]) -> MixInput:
        draw = self.random
        left: dict[tuple[str, LeverKind], int] = {}
        for queue in QUEUES:
            left[queue, "kill"] = draw.choice((-5, 0, 4, 9, 1000)) * 1_024_000
            left[queue, "end"] = draw.choice((0, 3, 1000)) * 1_024_000
        may_lose: dict[str, float] = {}
        names = {name: (draw.choice(QUEUES), draw.choice(USERS)) for name in rows}
        if draw.random() < 0.5:
            left.update({(user_owner(user), "kill"): draw.choice((0, 4, 9)) * 1_024_000 for user in USERS})
        for name in rows:
            if draw.random() < 0.2:  # a job with a tag of its own
                names[name], may_lose[name] = (name, names[name][1]), draw.choice((0.0, 0.1))
                left[name, "kill"] = draw.choice((0, 6)) * 1_024_000 if may_lose[name] else 0
                left[name, "end"] = draw.choice((0, 1000)) * 1_024_000
        attempts = [task.attempt for row in rows.values() for task in row]
        awaited = {name: NOW_MS + draw.choice((-1, 1500, 9000)) for name in attempts if draw.random() < 0.2}
        lately = [name[:-2] for name in attempts if draw.random() < 0.1]
        return MixInput(LossLeft(left, dict.fromkeys(lately, TaskLoss(1))), awaited, names, may_lose)


def one_ask(seed: int) -> Asked:
    """Return one ask and up to 12 tasks on one to three nodes."""
    chance = Chance(seed)
    draw = chance.random
    return chance.asked(draw.randint(1, 12), draw.randint(1, 3), (Need(draw.choice(ASKS), 1),))


def many_asks(seed: int) -> Asked:
    """Return up to three kinds of asks, and up to 60 tasks on one to four nodes: crowded, or not."""
    chance = Chance(seed)
    draw = chance.random
    needs = tuple(Need(size, draw.randint(1, 5)) for size in draw.sample(ASKS, draw.randint(1, 3)))
    return chance.asked(draw.randint(1, 60), draw.randint(1, 4), needs)


def crowded(seed: int) -> Asked:
    """Return asks that take many small containers of one node."""
    chance = Chance(seed)
    draw = chance.random
    needs = tuple(Need(size, draw.randint(1, 3)) for size in draw.sample(LARGE, draw.randint(1, 2)))
    return chance.asked(draw.randint(20, 50), 1, needs)
