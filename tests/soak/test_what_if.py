"""A slice of the campaign of what-if questions: a few of each kind."""

from __future__ import annotations

import pytest

from tests.soak.what_if import campaign


@pytest.mark.parametrize("mix", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.xdist_group("what-if-live")
def test_answers_hold_when_it_is_done(mix: bool) -> None:
    found = campaign(2, 4.0, 7, mix=mix)
    assert [(each.is_same, each.starts_inside) for each in found] == [(True, True)] * 2
