"""The language of the tables of the mix: lever settings, what may be lost, and a choice in short words.

A suspension gives room in 4 s, an end or a kill in 1 s, and nothing may come later than 5 s. All jobs are in
the queue ``research`` and of the user ``u``; now is 100 s. Budgets are in slot seconds: one slot is 1 GiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tests.golden.tables import GUARD_FREE, candidate, case
from yarnctl.deciding.case import Case, Choice
from yarnctl.deciding.levers import LeverKind
from yarnctl.deciding.loss_budget import LossLeft, TaskLoss
from yarnctl.deciding.mix import choose_mix
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.offers import MixInput
from yarnctl.deciding.settings import LeverSettings, Settings

NOW_MS = 100_000
RULES = LeverSettings(
    room_within_ms=5000, suspend_ms=4000, leave_ms=1000, commit_ms=500, may_lose_ratio=0.02,
    may_refetch_ratio=0.05,
)  # fmt: skip
SLOT_S = 1024 * 1000
"""One slot for one second, in MiB-ms."""

PLENTY_S = 1_000_000


def rules(**changes: object) -> LeverSettings:
    return msgspec.structs.replace(RULES, **changes)


def mix_settings(levers: LeverSettings = RULES, **changes: object) -> Settings:
    return msgspec.structs.replace(GUARD_FREE, levers=levers, **changes)


def given(
    jobs: Sequence[str],
    *,
    kill_s: int = PLENTY_S,
    end_s: int = PLENTY_S,
    lately: Sequence[str] = (),
    awaited: Mapping[str, int] | None = None,
) -> MixInput:
    """Return what may be lost (slot seconds), which tasks ended lately, and until when ends are awaited."""
    left: dict[tuple[str, LeverKind], int] = {
        ("research", "kill"): kill_s * SLOT_S,
        ("research", "end"): end_s * SLOT_S,
    }
    names = dict.fromkeys(jobs, ("research", "u"))
    return MixInput(LossLeft(left, dict.fromkeys(lately, TaskLoss(1))), dict(awaited or {}), names)


def mix_case(
    tasks: Mapping[str, Sequence[TaskView]],
    wanted: int | Sequence[tuple[int, int]] = 1,
    *,
    budget: int | None = None,
    room: Mapping[str, int] | None = None,
) -> Case:
    """Make a case of these jobs; ``budget``: so many containers of each may leave (None: all)."""
    jobs = [candidate(name, len(row) + 1) for name, row in tasks.items()]
    if budget is not None:
        jobs = [
            job._replace(usage=job.usage._replace(releasable=min(budget, job.usage.releasable)))
            for job in jobs
        ]
    return case(jobs, wanted, tasks, now_ms=NOW_MS, room=room)


def mixed(of: Case, given_: MixInput | None = None, settings: Settings | None = None) -> Choice:
    return choose_mix(of, settings or mix_settings(), given_ or given(list(of.tasks)))


def told(choice: Choice) -> str:
    """Return what is done, in order: ``kill a.1 | wait b.2``; then what is not met."""
    words = [f"{pull.lever.kind} {pull.lever.unit}" for pull in choice.pulls]
    words += [f"wait {each.lever.unit}" for each in choice.awaited]
    words += [f"{choice.unmet} unmet"] if choice.unmet else []
    return " | ".join(words)


def reasons(choice: Choice) -> dict[str, str]:
    """Return why each shown task was not picked."""
    return {task.attempt: task.why for task in choice.refused_tasks}
