"""A slice of the campaign of what-if questions: a few of each kind."""

from __future__ import annotations

import pytest

from tests.soak.what_if import campaign
from tests.soak.what_if_virtual import play


@pytest.mark.thorough
@pytest.mark.parametrize("mix", [False, True])
@pytest.mark.xdist_group("what-if-live")
def test_answers_hold_when_it_is_done(mix: bool) -> None:
    found = campaign(2, 10.0, 7, mix=mix)
    assert [(each.is_same, each.starts_inside) for each in found] == [(True, True)] * 2


@pytest.mark.parametrize("scheme", ["natjam", "mix"])
def test_answers_hold_in_virtual_time(scheme: str) -> None:
    assert play(10, 7, scheme).count(True) >= (10 if scheme == "natjam" else 6)
