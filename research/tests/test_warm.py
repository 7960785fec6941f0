"""What a replay takes is told without what its compiler takes."""

from __future__ import annotations

import numpy as np
import pytest

from yarn_research.admission import replays
from yarn_research.admission.plain.event_replay import replay
from yarn_research.admission.replays import check_options
from yarn_research.admission.traces.trace import Trace
from yarnctl.deciding.admission.mechanisms import SIZINGS


@pytest.mark.parametrize(("engine", "jobs"), [("compiled", [1, 3]), ("python", [3])])
def test_the_first_replay_is_not_the_one_that_is_timed(engine, jobs, monkeypatch):
    ran: list[int] = []

    def counting(trace, deadline_ms, capacity, name, choices, _):
        ran.append(len(trace))
        assert len(deadline_ms) == len(trace)
        return replay(trace, deadline_ms, capacity, SIZINGS[name], choices)

    columns = (np.array(each, dtype=np.int64) for each in ([0, 1, 2], [1, 2, 3], [500, 600, 700]))
    monkeypatch.setattr(replays, "load_trace", lambda *_: Trace("three jobs", *columns))
    monkeypatch.setattr(replays, "run", counting)
    asked = check_options(4, "Fixed2x", "justice", "python", 0)._replace(engine=engine)
    told = replays.admission("three", asked)
    assert ran == jobs
    assert told["jobs"] == 3
