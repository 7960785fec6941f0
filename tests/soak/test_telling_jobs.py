"""A reducer that tells its status is suspended on request like a quiet one, on the live emulator.

Law: each is asked directly and by itself, so that no result depends on which of them a policy would choose or
on when. The status line of a reducer stands beside the runner's words and must not hide them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.soak.rig import LiveCluster, Seen, clock_ms, live_cluster, wait_until
from tests.soak.workloads import WORKLOADS, job_of, write_input
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    ManifestSeen,
    ObservationRequest,
    Release,
    Suspend,
)
from yarnctl.frameworks.mapreduce.status_line import parse

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("telling jobs")]

QUIET = WORKLOADS["sum"]._replace(name="quiet", keys=60, pause_ms=200)
# Five lines in a second, with words in them that look like the runner's own.
TELLING = QUIET._replace(
    name="telling",
    reducer=QUIET.reducer.replace(
        "    out.write(",
        '    os.write(2, b"reporter:status:at %s, yarnctl phase=save can=0\\n" % key)\n    out.write(',
    ),
)


def running(cluster: LiveCluster, application: str) -> Seen:
    return next(one for one in cluster.reduces(application) if one.state == "RUNNING")


def suspended(cluster: LiveCluster, port: AttachedPort, application: str, name: str, log: Path) -> Seen:
    """Suspend the job's reduce at work, up to the end of its container; return it as it was asked."""
    wait_until(lambda: log.exists() and len(log.read_bytes().splitlines()) > 8, f"groups of {name}")
    if name == "telling":
        wait_until(
            lambda: ", yarnctl phase=save can=0" in running(cluster, application).status,
            "what the reducer tells",
        )
    seen, order = running(cluster, application), f"o-{name}"
    names = (order, application, seen.attempt, seen.container)
    status = parse(seen.status)
    assert status is not None
    assert (status.phase, status.can) != ("save", 0)  # the reducer's words are never taken for the runner's
    assert isinstance(port.perform(Suspend(*names, 1, clock_ms() + 60_000)), Accepted)
    told: list[Any] = []

    def is_told(kind: type) -> bool:
        told.extend(port.observe(ObservationRequest(cluster=False, orders=(order,))).facts)
        return any(isinstance(fact, kind) for fact in told)

    wait_until(lambda: is_told(ManifestSeen), f"the manifest of {name}")
    assert isinstance(port.perform(Release(*names, 1)), Accepted)
    wait_until(lambda: is_told(ContainerEnded), f"the end of {name}'s container")
    assert [fact.ending for fact in told if isinstance(fact, ContainerEnded)] == ["suspended"]
    return seen


def test_a_telling_job_is_suspended_like_a_quiet_one(tmp_path: Path) -> None:
    assert TELLING.reducer != QUIET.reducer
    statuses, outputs = dict[str, str](), dict[str, bytes]()
    with live_cluster(tmp_path, nodes=2, slots=10) as cluster:
        port = cluster.attach()
        wait_until(
            lambda: port.observe(ObservationRequest()).now_ms and not port.permission.why_nothing(),
            "the cluster is known",
        )
        for work in (QUIET, TELLING):
            folder = tmp_path / work.name
            source = write_input(work, folder, "the same for both")
            application = cluster.submit(cluster.with_runner(job_of(work, source, folder / "job")))
            seen = suspended(cluster, port, application, work.name, folder / "job" / "groups")
            assert [one.attempt for one in cluster.manifests(application)] == [seen.attempt]
            assert cluster.ending(application) == ("SUCCEEDED", "")
            statuses[work.name] = seen.status
            outputs[work.name] = (folder / "job" / "out" / "part-00000").read_bytes()
        port.close()
    assert ", yarnctl phase=save can=0" in statuses["telling"]
    assert ", yarnctl phase=save can=0" not in statuses["quiet"]
    assert outputs["telling"] == outputs["quiet"]
