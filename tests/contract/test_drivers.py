"""Drivers of Spark: the emulator's answers have the form of a real one's, and yarnctl's claims hold of both.

The real driver's are recorded (``python -m yarn_research.campaigns.spark_recording``);
``test_spark_drain`` of tests/hadoop asks the same of a driver that runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.live.wire.submitted_job import ModelledJob
from tests import http_client
from tests.contract.drivers import answers, claims, read
from tests.contract.host import until
from tests.contract.served_hosts import LiveHost
from tests.contract.shapes import differences
from yarnctl.traces.job import Job, SparkShape

RECORDED = Path(__file__).parent / "recorded" / "spark-4.0.1.json"
APPLICATION = Job(
    name="marks", job_class="research", submitted_at_ms=0, map_ms=(200,) * 8,
    reduce_ms=(200,) * 4 + (3_600_000,) * 4, reduce_keys=(1,) * 8, user="alice", queue="research",
    spark=SparkShape(executors=4, block_mib=1, start_ms=100),
)  # fmt: skip
"""Eight maps, then reduces of which half go on until they are ended: one for each executor."""


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))["answers"]
    return told


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    host = LiveHost(tmp_path_factory.mktemp("driver"), "3.4")
    try:
        client = Client(host.rm, "alice")
        name = client.submit(ModelledJob(job=APPLICATION, runner=False), "research", kind="SPARK")
        root = f"{host.rm}/proxy/{name}/api/v1/applications/{name}"

        def ask(path: str) -> Any:
            answer = http_client.get(f"{root}/{path}", timeout=30)
            return answer.json() if "json" in answer.headers.get("content-type", "") else []

        def holds() -> bool:
            return any(
                (row["stageId"], row["numActiveTasks"], row["numCompleteTasks"]) == (1, 4, 4)
                for row in ask("stages")
            )

        until(host, holds, "in the middle of the second stage")
        return answers(ask)
    finally:
        host.close()


def by_kind(found: dict[str, Any]) -> dict[str, Any]:
    """Return answers under names that do not say which stage: one of each kind and status."""
    named: dict[str, Any] = {}
    for path, answer in found.items():
        status = f" {answer['status']}" if isinstance(answer, dict) and "status" in answer else ""
        if isinstance(answer, dict) and "executorSummary" in answer:  # its keys are ids, not fields
            answer = answer | {"executorSummary": list(answer["executorSummary"].values())}
        head, _, rest = path.partition("/")
        named[f"{head}/{rest.split('/')[-1].partition('?')[0] if status == '' else status}"] = answer
    return named


def test_the_emulators_answers_have_the_form_of_the_recorded_ones(
    recorded: dict[str, Any], emulated: dict[str, Any]
) -> None:
    real, other = by_kind(recorded), by_kind(emulated)
    assert other.keys() == real.keys()
    found = [line for name in real for line in differences(f"driver-{name}", real[name], other[name])]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("source", ["recorded", "emulated"])
def test_what_yarnctl_relies_on_holds(source: str, request: pytest.FixtureRequest) -> None:
    found = claims(read(request.getfixturevalue(source)))
    assert all(found.values()), {name for name, holds in found.items() if not holds}
