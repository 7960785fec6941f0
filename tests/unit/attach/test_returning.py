"""Coming back: seen once for each order, measured by others' clocks, and what follows for the next one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.attach.fake_cluster import EPOCH, application, attempt, container, task
from yarnctl.deciding.model import (
    Accepted,
    CameBack,
    CameBackWithout,
    ContainerEnded,
    ObservationRequest,
    Release,
    Suspend,
)
from yarnctl.deciding.order import Order
from yarnctl.frameworks.mapreduce.cost import KEPT, LARGE_BYTES, Spans
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.units import Resources

NAMES = (application(1), attempt(1, 1), container(1, 2))
LOOK = ObservationRequest(cluster=False, orders=("o-1",))
PRIOR_MS = 2_000 + 1_500 + 10_000 + 500  # leave, launch, the attempt's own shuffle, skip


def left(cluster, **settings):
    """Return a port of which one order was followed: the reduce has left 1.5 s after it was asked."""
    port = cluster.port(**settings)
    port.observe(ObservationRequest())
    port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    assert port.perform(Suspend("o-1", *NAMES, 1, EPOCH)) == Accepted()
    cluster.now_ms += 1000
    cluster.save(1, 1, "o-1")
    cluster.attempt(1, 1)["status"] = "yarnctl phase=hold groups=50 gen=1 order=o-1"
    port.observe(LOOK)
    assert port.perform(Release("o-1", *NAMES, 1)) == Accepted()
    cluster.now_ms += 500
    (ended,) = [fact for fact in port.observe(LOOK).facts if isinstance(fact, ContainerEnded)]
    assert ended.ending == "suspended"
    return port


def again(cluster, status: str, nth: int = 1, **more) -> None:
    """Let the next attempt run: granted now, started 700 ms later, merged 3,000 ms after that."""
    app, place = cluster.apps[application(1)], 8 + nth
    app.containers[container(1, place)] = ("n2:1", 10)
    cluster.granted_at_ms[container(1, place)] = cluster.now_ms
    started_ms = cluster.now_ms + 700
    row = cluster.running(1, 1, place, nth, status=status, startTime=started_ms, **more)
    app.tasks[task(1, 1)].append({**row, "mergeFinishTime": started_ms + 3000})
    cluster.now_ms = started_ms + 5000


def told(cluster, port, after_ms: int = 3000) -> list[Any]:
    cluster.now_ms += after_ms
    return [
        fact
        for fact in port.observe(ObservationRequest()).facts
        if isinstance(fact, CameBack | CameBackWithout)
    ]


AT_WORK = "yarnctl phase=run groups=60 done=6000 known=100000 all=1 gen=1 can=1 ran=900 base=5000 back=850"


def test_a_return_is_told_once_with_its_parts(cluster):
    port = left(cluster)
    assert told(cluster, port) == []  # nobody has given it a container yet
    again(cluster, AT_WORK)
    (fact,) = told(cluster, port)
    assert fact == CameBack("o-1", attempt(1, 1, 1), 700, 3000, 850, cluster.now_ms)
    assert told(cluster, port) == []


def test_late_looks_cost_no_accuracy(cluster):
    port = left(cluster)
    again(cluster, AT_WORK)
    (fact,) = told(cluster, port, after_ms=600_000)
    assert (fact.launch_ms, fact.shuffle_ms, fact.skip_ms) == (700, 3000, 850)


@pytest.mark.parametrize(
    "status",
    [
        "",
        "reduce > sort",
        "yarnctl phase=skip groups=20 gen=1",  # on its way
        "yarnctl phase=run groups=60 done=6000 known=100000 all=1 gen=1 can=1",  # an older runner
        "yarnctl phase=run groups=60 back=-5",
    ],
)
def test_who_does_not_say_so_is_not_back(cluster, status):
    port = left(cluster)
    again(cluster, status)
    assert told(cluster, port) == []


def test_an_attempt_that_died_on_its_way_is_passed_over(cluster):
    port = left(cluster)
    again(cluster, "yarnctl phase=skip groups=20 gen=1")
    cluster.killed(attempt(1, 1, 1))
    assert told(cluster, port) == []
    again(cluster, AT_WORK, nth=2)
    assert [fact.attempt for fact in told(cluster, port)] == [attempt(1, 1, 2)]


@pytest.mark.parametrize("generation", [0, 1])
def test_an_attempt_that_begins_lower_is_told_as_lost_and_nobody_is_credited(cluster, generation):
    port = left(cluster)
    if generation:  # an older one could be used, or none
        port._connected[KIND].saved_work.resume_costs.suspended["o-1"].generation = 2
    work = AT_WORK.replace("gen=1", f"gen={generation}")
    again(cluster, work if generation else work.replace(" back=850", ""))
    (fact,) = told(cluster, port)
    expected = 2 if generation else 1
    assert fact == CameBackWithout("o-1", attempt(1, 1, 1), 50, expected, generation, cluster.now_ms)
    cluster.killed(attempt(1, 1, 1))
    again(cluster, AT_WORK, nth=2)
    assert told(cluster, port) == []


def test_an_owners_word_counts_within_reason(cluster):
    """It cannot have taken longer than since its merge."""
    port = left(cluster)
    again(cluster, AT_WORK.replace("back=850", "back=999999999999999999"))
    (fact,) = told(cluster, port)
    assert fact.skip_ms == 2000 + 3000


def test_a_container_whose_grant_is_not_known_costs_no_launch(cluster):
    port = left(cluster)
    again(cluster, AT_WORK)
    cluster.killed(attempt(1, 1, 1))  # it was back, and has ended since
    (fact,) = told(cluster, port)
    assert (fact.launch_ms, fact.shuffle_ms) == (0, 3000)


def costs(cluster, port) -> list[int]:
    seen = port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    return [view.resume_cost_ms for view in seen.tasks[application(1)]]


def test_what_was_seen_predicts_what_comes(cluster):
    port = cluster.port()
    port.observe(ObservationRequest())
    assert set(costs(cluster, port)) == {PRIOR_MS}  # nothing seen: by the settings
    port = left(cluster)
    assert set(costs(cluster, port)) == {1_500 + 1_500 + 10_000 + 500}  # leaving took 1,500 ms
    again(cluster, AT_WORK)
    assert len(told(cluster, port)) == 1
    # Launch: 700 ms; shuffle: 3,000 ms where the first had taken 10,000; skip: 850 ms. Who has come back
    # has had such a shuffle itself.
    back, *others = costs(cluster, port)
    assert set(others) == {1_500 + 700 + 10_000 * 3 // 10 + 850}
    assert back == 1_500 + 700 + 3_000 + 850


def test_other_jobs_learn_from_it_too(cluster):
    port = left(cluster)
    cluster.research(5, ["n1:1", "n2:1"])
    port.observe(ObservationRequest())
    seen = port.observe(ObservationRequest(cluster=False, victims=(application(5),)))
    assert seen.tasks[application(5)][0].resume_cost_ms == 1_500 + 1_500 + 10_000 + 500


def test_after_a_restart_it_is_looked_for_by_the_journal(cluster):
    left(cluster)
    port = cluster.port()
    order = Order(
        order="o-1", requester=application(2), victim=application(1), attempt=attempt(1, 1),
        container=container(1, 2), node="n1:1", size=Resources(1024, 1),
        request_size=Resources(1024, 1), serves=1,
        group="o-1", generation=1, verb="suspend", decision=1, ordered_at_ms=EPOCH, progress_at_ms=EPOCH,
        state="freed", freed_at_ms=EPOCH,
    )  # fmt: skip
    port.expect([order])
    again(cluster, AT_WORK)
    assert [fact.order for fact in told(cluster, port)] == ["o-1"]


@pytest.mark.parametrize(("ordered", "found", "expected"), [(1, 0, 1), (3, 1, 2), (3, 2, None)])
def test_after_a_restart_an_attempt_that_begins_lower_is_told_as_lost(cluster, ordered, found, expected):
    """The order may have been answered with the checkpoint before: then that is no loss."""
    port = cluster.port()
    order = Order(
        order="o-1", requester=application(2), victim=application(1), attempt=attempt(1, 1),
        container=container(1, 2), node="n1:1", size=Resources(1024, 1),
        request_size=Resources(1024, 1), serves=1,
        group="o-1", generation=ordered, verb="suspend", decision=1, ordered_at_ms=EPOCH,
        progress_at_ms=EPOCH, state="freed", freed_at_ms=EPOCH,
    )  # fmt: skip
    port.expect([order])
    again(cluster, AT_WORK.replace("gen=1", f"gen={found}"))
    (fact,) = told(cluster, port)
    if expected is None:
        assert isinstance(fact, CameBack)
    else:
        assert fact == CameBackWithout("o-1", attempt(1, 1, 1), -1, expected, found, cluster.now_ms)


def test_it_is_not_looked_for_each_second(cluster):
    port = left(cluster)
    port.observe(ObservationRequest())
    before = len(cluster.rm.heard)
    for _ in range(10):
        told(cluster, port, after_ms=1000)
    asked = [one for one in cluster.rm.heard[before:] if one.path.endswith(f"{task(1, 1)}/attempts")]
    assert len(asked) == 3


def test_the_middle_one_counts_of_the_jobs_own_else_of_all_else_what_was_set():
    spans = Spans(700)
    assert spans.usual("a") == 700
    for span in (100, 9000, 300):
        spans.add("a", span)
    assert (spans.usual("a"), spans.usual("b")) == (300, 300)
    spans.drop("a")
    assert spans.usual("a") == 300
    for span in range(KEPT):
        spans.add("b", span)
    assert spans.usual("b") == KEPT // 2


def test_a_job_counts_once_for_others_however_often_it_came_back():
    spans = Spans(700)
    for job in "abc":
        spans.add(job, 100)
    for _ in range(100):
        spans.add("loud", 1_000_000)
    assert spans.usual("new") == 100


def test_large_skips_tell_the_speed(cluster):
    port = left(cluster)
    line = AT_WORK.replace("base=5000", f"base={LARGE_BYTES}").replace("back=850", "back=2500")
    again(
        cluster, line.replace("done=6000", f"done={LARGE_BYTES}").replace("known=100000", f"known={1 << 30}")
    )
    assert len(told(cluster, port)) == 1
    later = cluster.attempt(1, 2)
    later["status"] = f"yarnctl phase=run groups=9 done={4 * LARGE_BYTES} known={1 << 30} all=1 gen=0 can=1"
    seen = port.observe(ObservationRequest(cluster=False, victims=(application(1),)))
    (view,) = [view for view in seen.tasks[application(1)] if view.attempt == attempt(1, 2)]
    # 16 MiB in the 2,000 ms beyond the usual start: four times as much takes 8,000 ms.
    assert view.resume_cost_ms == pytest.approx(1_500 + 700 + 3_000 + 500 + 8_000, abs=10)
