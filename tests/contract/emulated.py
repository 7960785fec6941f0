"""Emulated hosts: what the three of them have in common.

Law: jobs go in as Hadoop's do, by new-application and POST /apps; what the emulator needs to know of a job is
in one entry of the AM's environment. Spans are short, so that a whole story takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from emulator.cluster.timing import Timing
from emulator.live.manager.service import ManagerSettings
from emulator.live.rest.dialect import Version
from emulator.live.wire.submitted_job import ENTRY, ModelledJob, write_job
from tests.contract.asking import Cluster
from tests.contract.host import PATIENCE_S, Ability, Answer, JobPlan
from yarnctl.traces.job import Job

NODES, SLOTS = 3, 4
"""The last node falls silent at once: two count."""

SHORT_MS, HOLD_MS = 200, 3_600_000

SETTINGS = ManagerSettings(
    timing=Timing(nm_heartbeat_ms=100, am_heartbeat_ms=100, am_start_ms=100, launch_ms=100, task_commit_ms=50,
        job_commit_ms=50, exit_ms=50, am_retry_ms=100, node_expiry_ms=3000),
    am_expiry_ms=20_000,
)  # fmt: skip


def patient(settings: ManagerSettings) -> ManagerSettings:
    """Return settings for processes that share the machine with others: one that is held up is not lost."""
    timing = msgspec.structs.replace(settings.timing, node_expiry_ms=10_000)
    return msgspec.structs.replace(settings, timing=timing, am_expiry_ms=30_000)


class Emulated:
    """A host of the emulator at ``rm``: ResourceManager, proxy, history and WebHDFS have one address."""

    slot_mib = 1024
    patience_s = PATIENCE_S
    standby = ""
    superuser = "yarnctl"
    cannot: Mapping[Ability, str] = {"standby": "the emulator has one ResourceManager"}

    def __init__(self, name: str, version: Version, rm: str) -> None:
        self.name = name
        self.version = version
        self.rm = rm
        self.history = rm
        self.hdfs = f"{rm}/webhdfs/v1"
        self.silent_node = ""

    def job(self, plan: JobPlan) -> str:
        raise NotImplementedError

    def ask(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> Answer:
        """Ask once, following nothing."""
        raise NotImplementedError

    def submit(self, plan: JobPlan) -> str:
        cluster = Cluster(self, plan.user)  # type: ignore[arg-type]  # what is left out here, hosts add
        application = cluster.new_application()
        answer = cluster.ask("POST", "apps", self.context(application, plan))
        assert answer.status == 202, answer
        return application

    def context(self, application: str, plan: JobPlan) -> dict[str, Any]:
        entries = [{"key": ENTRY, "value": self.job(plan)}]
        found: dict[str, Any] = {
            "application-id": application, "application-name": plan.name, "application-type": "MAPREDUCE",
            "queue": plan.queue, "resource": {"memory": self.slot_mib, "vCores": 1},
            "am-container-spec": {"environment": {"entry": entries}},
        }  # fmt: skip
        return found | ({"application-tags": plan.tags} if plan.tags else {})


def modelled(plan: JobPlan) -> str:
    holding = plan.reduces - plan.done if plan.holds else 0
    lengths_ms = (SHORT_MS,) * (plan.reduces - holding) + (HOLD_MS,) * holding
    job = Job(
        name=plan.name, job_class="production" if plan.queue == "production" else "research",
        submitted_at_ms=0, map_ms=(100,) * plan.maps, reduce_ms=lengths_ms, reduce_keys=(10,) * plan.reduces,
        shuffle_ms=100, user=plan.user, queue=plan.queue,
    )  # fmt: skip
    return write_job(ModelledJob(job=job, runner=False))
