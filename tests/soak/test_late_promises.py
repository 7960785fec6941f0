"""A slice of the campaign of late promises."""

from __future__ import annotations

from tests.soak.late_promises import Watched, figures, play


def test_most_missed_promises_are_known_before_their_deadline() -> None:
    missed, detected, kept, alarms = figures(play(6, 79))
    assert missed >= 4
    assert detected >= 0.8 * missed
    assert kept >= 4
    assert alarms <= 0.4 * kept


def test_figures_count_alarms_of_kept_promises_and_those_in_time() -> None:
    found = [
        Watched(True, True, 100, 50),
        Watched(True, True, 100, 100),
        Watched(True, True, 100, None),
        Watched(False, False, 100, None),
        Watched(False, False, 100, 20),
    ]
    assert figures(found) == (3, 1, 2, 1)
