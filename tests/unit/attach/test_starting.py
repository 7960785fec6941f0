"""Starting jobs on a cluster: what is predicted is shown, the gate stays open for it, sizes are YARN's."""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import SLOT, application, container
from yarnctl.attach.observing.cluster_state import StartingJob, normalised
from yarnctl.deciding.model import ContainerRequest, ObservationRequest
from yarnctl.units import Resources

HURRIED = ObservationRequest(probe_queues=("root.production",))
JOB = application(2)


def foresees(cluster, **settings):
    """Return a port that foresees three small maps of every job, and whom it was asked about."""
    asked: list[StartingJob] = []

    def first_asks(job: StartingJob) -> tuple[ContainerRequest, ...]:
        asked.append(job)
        return (ContainerRequest(20, Resources(700, 1), 3),)

    return cluster.port(first_asks=first_asks, predicted_max=2, **settings), asked


def shown(port) -> tuple:
    seen = port.observe(HURRIED)
    if seen.snapshot is None:
        return (seen.cluster,)
    (view,) = [view for view in seen.snapshot.applications if view.application == JOB]
    return seen.cluster, view.requests, view.predicted


def test_a_starting_job_is_foreseen_until_it_asks_itself(cluster):
    """Three maps of 700 MiB: two, as allowed, of 1024 MiB, as the scheduler allots. Gate: nobody waits."""
    port, asked = foresees(cluster)
    predicted = ContainerRequest(20, SLOT, 2)
    app = cluster.apps[JOB]
    app.name = "nightly-7"
    assert shown(port) == ("seen", (ContainerRequest(0, SLOT, 1), predicted), 2)
    assert set(asked) == {StartingJob(JOB, "nightly-7", app.user)}
    app.asks, app.containers = [], {container(2, 1): ("n1:1", 0)}
    assert shown(port) == ("seen", (predicted,), 2)
    app.asks = [(20, SLOT, 3)]
    assert shown(port) == ("seen", (ContainerRequest(20, SLOT, 3),), 0)
    app.asks = []
    assert shown(port) == ("quiet",)


def test_off_nobody_is_asked_and_the_gate_is_trusted(cluster):
    port = cluster.port(first_asks=lambda _: pytest.fail("asked"))
    assert shown(port) == ("seen", (ContainerRequest(0, SLOT, 1),), 0)
    cluster.apps[JOB].asks, cluster.apps[JOB].containers = [], {container(2, 1): ("n1:1", 0)}
    assert shown(port) == ("quiet",)


def test_a_job_at_work_when_we_come_is_not_foreseen(cluster):
    port, _ = foresees(cluster)
    cluster.apps[JOB].containers = {container(2, 1): ("n1:1", 0)}
    assert shown(port)[2] == 0


@pytest.mark.parametrize(
    ("size", "least", "found"),
    [((700, 1), {}, (1024, 1)), ((1025, 1), {}, (2048, 1)),
     ((700, 1), {"yarn.scheduler.minimum-allocation-mb": "256"}, (768, 1)),
     ((700, 1), {"yarn.scheduler.minimum-allocation-vcores": "2"}, (1024, 2)),
     ((700, 1), {"yarn.scheduler.minimum-allocation-mb": "0"}, (1024, 1)),
     ((700, 1), {"yarn.scheduler.minimum-allocation-mb": "much"}, (1024, 1))],
)  # fmt: skip
def test_sizes_are_what_the_scheduler_makes_of_them(size, least, found):
    assert normalised(Resources(*size), least) == found
