"""Levers that were predicted: the figures of a study, from pairs that are written down."""

from __future__ import annotations

from yarn_research.campaigns.lever_predictions import predicted


def test_what_came_late_and_what_was_lost_beyond_the_prediction_is_counted() -> None:
    mix = {
        "levers": {"wait": 6, "kill": 4},
        "levers_in_time": {"wait": 6, "kill": 3},
        "predicted_lost_s": 90.0,
        "lost_work_s": 100.0,
    }
    natjam = {"lost_work_s": 7.0}
    found = predicted([{"schemes": {"mix-2": mix, "natjam": natjam}}, {"schemes": {"mix-2": mix}}])
    assert found == {"levers": 20, "in_time_ratio": 0.9, "predicted_over_lost": 0.9, "deviation_ratio": 0.1}
