"""Which deadlines fall once tasks are taken: only those that would have been met."""

from __future__ import annotations

import pytest

from tests.golden.tables import app, cluster
from yarnctl.deciding.what_if.fallen_deadlines import fallen
from yarnctl.deciding.what_if.played_forward import Chosen

NOW_MS = 100_000
TAKEN = [Chosen("r1", f"a{n}", f"c{n}", "n1", "suspend", "p1", 600, 400) for n in range(2)]
"""Two of four tasks: the rest takes twice as long, and each of the two left does half of their cost."""


@pytest.mark.parametrize(
    ("deadline_ms", "progress", "after_ms"),
    [(250_000, 0.5, 301_000), (300_999, 0.5, 301_000), (301_000, 0.5, None), (199_999, 0.5, None),
     (None, 0.5, None), (250_000, 0.0, None)],
)  # fmt: skip
def test_a_deadline_falls_if_it_would_have_been_met(
    deadline_ms: int | None, progress: float, after_ms: int | None
) -> None:
    view = app("r1", "research", containers=5, deadline=deadline_ms, progress=progress)
    other = app("r2", "research", containers=5, deadline=250_000, progress=0.5)
    found = fallen(cluster(view, other, total=10), TAKEN, None, NOW_MS)
    expected = [] if after_ms is None else [("r1", deadline_ms, 200_000, after_ms)]
    shown = [(one.application, one.deadline_at_ms, one.before_at_ms, one.after_at_ms) for one in found]
    assert shown == expected
