"""How a master is opened: the spans that a job itself names."""

from __future__ import annotations

import pytest

from emulator.live.programs.master_program import HEARTBEAT, own_beat
from emulator.live.tasks.process_tasks import PROCESS_TIMING
from emulator.live.wire.submitted_job import StreamingJob
from yarnctl.errors import BadInput


def job(beat: str = "") -> StreamingJob:
    named = {HEARTBEAT: beat} if beat else {}
    return StreamingJob(name="j", inputs=("/in",), output="/out", mapper="cat", settings=named)


def test_the_masters_heartbeat_is_hadoops_setting() -> None:
    assert own_beat(PROCESS_TIMING, job()).am_heartbeat_ms == 1000
    assert own_beat(PROCESS_TIMING, job("250")).am_heartbeat_ms == 250
    assert own_beat(PROCESS_TIMING, job("0")).am_heartbeat_ms == 1
    with pytest.raises(BadInput, match="is not a number"):
        own_beat(PROCESS_TIMING, job("often"))
