"""The scenarios of ``tests.soak.governor_scenarios`` in virtual time: production does not pay."""

from __future__ import annotations

import pytest

from tests.soak.governor_scenarios import MARGIN, SCENARIOS, Adversarial, play
from yarnctl.deciding.records import Decision, encode
from yarnctl.journal.file import Line
from yarnctl.journal.replay import replay


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_production_is_not_later_than_where_yarnctl_observes(scenario: Adversarial) -> None:
    played = play(scenario)
    assert any(isinstance(each, Decision) and each.orders for each in played.journal.records)
    assert played.governed_ms <= played.observing_ms * MARGIN


def test_without_the_governor_orders_without_effect_go_on() -> None:
    """So the bound of the scenario without checkpoints is the governor's doing."""
    played = play(next(each for each in SCENARIOS if each.name == "no-store"))
    assert played.free_ms > played.observing_ms * 1.5
    lines = [Line(at, each, encode(each)) for at, each in enumerate(played.journal.records, start=1)]
    assert replay(lines, "journal", closed=False).refusals
