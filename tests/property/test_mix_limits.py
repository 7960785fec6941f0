"""A mix whose choice takes more of a queue than it gives is made again, and keeps within what is given."""

from __future__ import annotations

import random

import pytest

from tests.property.mix_asks import TOTAL, many_asks
from yarnctl.deciding.guarantees import GivenLimits
from yarnctl.deciding.mix import choose_mix
from yarnctl.deciding.model import ApplicationView, QueueView, Snapshot
from yarnctl.deciding.planning import after_choice, within_limits
from yarnctl.units import Resources, at_least, times

CHOICES_MAX = 50


@pytest.mark.parametrize("seed", range(60))
def test_a_choice_is_made_again_until_no_queue_gives_too_much(seed: int) -> None:
    case, settings, given = many_asks(seed)
    chance = random.Random(f"limits {seed}")
    queues, applications = [], []
    gives: dict[str, Resources] = {}
    for job in case.jobs:
        name = job.usage.application
        least = Resources(1024 * chance.randint(0, 6), chance.randint(0, 6))
        held = at_least(job.used, least)
        queues.append(QueueView(queue=name, guaranteed=least, maximum=TOTAL, used=held))
        gives[name] = times(Resources(1024, 1), chance.randint(0, 3))
        applications.append(
            ApplicationView(
                application=name, queue=name, user="u", submitted_at_ms=0, rank=0, containers=1,
                used=job.used, am_size=Resources(1024, 1), task_size=Resources(1024, 1),
            )
        )  # fmt: skip
    snapshot = Snapshot(
        total=TOTAL,
        largest_node=TOTAL,
        queues=tuple(queues),
        applications=tuple(applications),
        free_by_node={},
    )
    limits = GivenLimits(snapshot, gives, ())
    choice = choose_mix(case, settings, given)
    for _ in range(CHOICES_MAX):
        fewer = within_limits(case, choice, limits)
        if fewer is None:
            break
        case, choice = fewer, choose_mix(fewer, settings, given)
    else:
        raise AssertionError("the same choice is made for ever")
    left = limits.copy()
    for pick in choice.picks:
        assert left.may_take(pick.application, pick.task.size)
        left.take(pick.application, pick.task.size)
    assert after_choice(choice, limits).gives == left.gives
