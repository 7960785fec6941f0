"""The campaign ``python -m tests.soak budgets``: no difference, and a planted one is told."""

from __future__ import annotations

import pytest

from tests.property.test_loss_windows import whole_counter
from tests.soak import budgets
from tests.soak.__main__ import main
from yarnctl.deciding.held_windows import HeldWindow


def test_random_histories_lose_what_the_rule_allows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["budgets", "--histories", "60", "--seed", "3", "--workers", "1"]) == 0
    assert ": 0 overspent, 0 rejected that the rule allows" in capsys.readouterr().out


def test_a_planted_difference_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was held since the beginning counts."""
    monkeypatch.setattr(HeldWindow, "held", whole_counter)
    found = budgets.play_batch(3 * 10**9, 60)
    assert found.overspent
    assert all("are left" in story for story in found.stories)
