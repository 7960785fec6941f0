"""Why production waits: three scenarios of the campaign ``waiting_live``, and the lies told in their answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn_research.campaigns.waiting_live import lies_found, played, problems
from yarn_research.campaigns.waiting_scenarios import SCENARIOS


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["suspend", "no-runner", "too-large"])
def test_reasons_are_true_by_the_emulators_state_and_lies_are_found(tmp_path: Path, name: str) -> None:
    """All scenarios are played by ``python -m yarn_research.campaigns.waiting_live``."""
    found = played(next(each for each in SCENARIOS if each.name == name), tmp_path / name)
    assert problems(found) == []
    told = {lie: counts for lie, counts in lies_found(found).items() if counts[0]}
    assert told["paused"][1], told
    assert sum(seen for _, seen in told.values()) > 0.8 * sum(count for count, _ in told.values()), told
