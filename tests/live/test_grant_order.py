"""Priorities on the live emulator, whose scheduler ignores a request for the priority of a submission."""

from __future__ import annotations

from pathlib import Path

import msgspec

from emulator.live.manager.manager_settings import QUEUES
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import ClusterPlan, build
from emulator.live.programs.manager_program import Options
from emulator.live.wire.submitted_job import ENTRY, ModelledJob, write_job
from emulator.live.wire.web import Web
from tests import grant_order
from tests.grant_order import GrantOrder
from tests.hadoop.background import Background
from tests.live.test_all_in_one import QUICK
from yarnctl.traces.job import Job

PLAN = ClusterPlan(nodes=1, memory_mib=grant_order.NODE_MIB, processes=False)
SETTINGS = ManagerSettings(  # All applications may be activated: one that is not has no record
    timing=QUICK, queues=tuple(msgspec.structs.replace(queue, am_ratio=10.0) for queue in QUEUES)
)
JOB = Job(name="long", job_class="research", submitted_at_ms=0, map_ms=(10_000_000,), user="alice")
LAUNCH = {"environment": {"entry": [{"key": ENTRY, "value": write_job(ModelledJob(job=JOB, runner=False))}]}}


def test_restored_priorities_are_what_the_scheduler_grants_by(tmp_path: Path) -> None:
    def web(url: str) -> Web:
        return build(Options(work=tmp_path / "work"), PLAN, url, SETTINGS).web

    with Background(web) as server:
        grant_order.play(GrantOrder(server.url, LAUNCH), server.url, server.url)
