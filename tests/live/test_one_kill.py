"""One kill goes through few files: see ``one_kill``."""

from __future__ import annotations

import pytest

from tests.live.one_kill import files_entered

MOST_FILES = 84
"""55; the rows of a snapshot in a run whose last look was told as a difference; three for queues by name (the
rule, what names stand for on this cluster, its use at the start), two for the guard around what applications
answer, one for what executors that left long ago get back without the mix; one reader of settings for all
frameworks, one for the reasons why applications wait; a framework's orders beside what is common to all; the
price of a wait, the governor, orders sent at once. 76 to 81 are seen with counts of requests, events and
audit lines: a killing look does other work, too; 83 with what fits and is not granted; 84 with the
resource calculator."""
THROUGH = (
    "yarnctl/deciding/controller.py",
    "yarnctl/attach/eligibility/permission.py",
    "yarnctl/attach/orders/performing.py",
    "yarnctl/frameworks/mapreduce/ordering.py",
    "yarnctl/frameworks/mapreduce/master.py",
)
"""What no trace of a kill can leave out: the decision, the permission check, the request."""


TRACES = 3
"""On a busy machine one look may do what several do otherwise: read a job's rules, choose, and kill."""


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the shortest of some traces: what it has, every kill needs. The first that is short will do."""
    shortest: list[str] = []
    for _ in range(TRACES):
        found = files_entered(tmp_path_factory.mktemp("one-kill"))
        shortest = min(shortest or found, found, key=len)
        if len(shortest) <= MOST_FILES:
            break
    return shortest


@pytest.mark.xdist_group("one-kill")
def test_the_trace_goes_through_what_a_kill_needs(entered: list[str]) -> None:
    assert set(THROUGH) <= set(entered)


@pytest.mark.xdist_group("one-kill")
def test_one_kill_goes_through_few_files(entered: list[str]) -> None:
    assert len(entered) <= MOST_FILES, entered
