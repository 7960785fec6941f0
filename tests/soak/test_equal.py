"""A slice of the campaign ``equal``: disturbed jobs, and a planted bug that it must notice.

One of each kind of reducer; with ``--thorough`` there are two of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.soak.equal import Campaign, campaign
from tests.soak.planted import BUGS, plant
from tests.soak.rig import Computed, computed_twice
from tests.soak.workloads import WORKLOADS
from tests.thoroughness import is_thorough

ONE_WORKER = pytest.mark.xdist_group("equal")  # they share what was played
RUNS = 24 if is_thorough() else len(WORKLOADS)
PLANTED = ("skips-one-group-too-few",)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("equal")
    return campaign(RUNS, seed=7, folder=folder, jobs=12, quick=True, variants=1, planted=PLANTED)


@ONE_WORKER
def test_disturbed_jobs_leave_what_undisturbed_ones_leave(played: Campaign) -> None:
    honest = [run for run in played.runs if not run.planted]
    assert {run.workload for run in honest} == set(WORKLOADS)
    assert {run.index: run.differs for run in honest if run.differs} == {}
    assert len(honest) == RUNS
    assert sum(run.suspended > 0 or run.refused > 0 for run in honest) >= RUNS - 2
    assert played.summary()["computed_twice"] == 0


@ONE_WORKER
def test_a_planted_bug_is_noticed(played: Campaign) -> None:
    planted = {run.planted: run for run in played.runs if run.planted}
    assert {name: played.found(run) for name, run in planted.items()} == dict.fromkeys(PLANTED, True)


@pytest.mark.parametrize("name", BUGS)
def test_every_bug_can_still_be_planted(name: str, tmp_path: Path) -> None:
    compile(plant(name, tmp_path).read_text(), name, "exec")


class Saved(NamedTuple):
    """What stands in a manifest, as far as it matters here."""

    attempt: str
    last_key: bytes


ATTEMPT = "attempt_1_0001_r_00000{}_{}".format


@pytest.mark.parametrize(
    ("task", "number", "key", "twice"),
    [(0, 1, b"c", False), (0, 1, b"b", True), (0, 1, b"a", True), (0, 0, b"c", False), (0, 0, b"a", True),
     (1, 1, b"a", False)],
)  # fmt: skip
def test_what_counts_as_computed_twice(task: int, number: int, key: bytes, twice: bool) -> None:
    manifest = Saved(ATTEMPT(0, 0), b"b")
    log = [Computed(ATTEMPT(0, 0), 1, b"a"), Computed(ATTEMPT(0, 0), 2, b"b")]
    assert bool(computed_twice([*log, Computed(ATTEMPT(task, number), 3, key)], [manifest])) == twice
