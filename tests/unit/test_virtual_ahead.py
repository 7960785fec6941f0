"""Room made ahead in virtual time: a predicted job ends sooner, research pays in time, not in work."""

from __future__ import annotations

import pytest

from emulator.virtual.run import Result
from tests.unit.two_jobs import play
from yarnctl.deciding.reasons.demand import Unmet
from yarnctl.deciding.records import Decision, Refusal, encode
from yarnctl.journal.file import Line
from yarnctl.journal.replay import replay


def spans_ms(result: Result) -> dict[str, int]:
    return {job.name: job.completion_ms for job in result.jobs}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_foreseen_job_ends_sooner_and_research_hardly_later(seed):
    ahead, behind = play(seed)[0].result(), play(seed, ahead_max=0)[0].result()
    assert spans_ms(ahead)["production"] < spans_ms(behind)["production"]
    later = spans_ms(ahead)["research"] / spans_ms(behind)["research"]
    # It gives its room up before that is used, and who has most left is back first.
    assert 0.95 < later < 1.03
    assert (ahead.lost_work_ms, ahead.kills) == (0, 0)


def test_what_is_foreseen_is_said_and_asked_for_once():
    """Room for the master, two maps and a third reduce is made at once, and nothing has to be made later."""
    _, journal = play(1)
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    assert decisions[0].trigger.why == Unmet(3)
    assert [ask.count for ask in decisions[0].trigger.requests] == [1, 2, 1]
    assert len(decisions[0].orders) == 4
    assert len(decisions) == 1
    lines = [Line(place, record, encode(record)) for place, record in enumerate(journal.records, 1)]
    assert replay(lines, "journal").decisions == len(decisions)
    assert not [record for record in journal.records if isinstance(record, Refusal)]
