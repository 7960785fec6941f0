"""The hold: an attempt is ended only while it is known to wait behind its checkpoint.

Each case once ended a task that had gone on: its work since then was lost.
"""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import EPOCH, FakeCluster, application, attempt, container
from yarnctl.deciding.model import (
    Accepted,
    Kill,
    ManifestSeen,
    ObservationRequest,
    Outcome,
    Refused,
    Release,
    Suspend,
    Unknown,
    Withheld,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.reasons.modes import LockRanOut
from yarnctl.journal.rendering import said
from yarnctl.units import Resources

NAMES = (application(1), attempt(1, 1), container(1, 2))
SUSPEND = Suspend("o-1", *NAMES, 2, EPOCH)
RELEASE = Release("o-1", *NAMES, 1)
ORDERS = ObservationRequest(cluster=False, orders=("o-1",))
AT_WORK = "yarnctl phase=run groups={} done=9000 known=100000 all=1 gen={} can=1"
HOLDING = "yarnctl phase=hold groups=50 done=5000 known=100000 all=1 gen=1 order={}"


@pytest.fixture
def port(cluster):
    """A port that has sent the request and has looked since."""
    port = cluster.port()
    assert port.observe(ObservationRequest()).cluster == "seen"
    assert port.perform(SUSPEND) == Accepted()
    port.observe(ORDERS)
    cluster.changes.clear()
    return port


def say(cluster: FakeCluster, status: str) -> None:
    cluster.attempt(1, 1)["status"] = status


def restarted(cluster: FakeCluster):
    """Return a port that took the open order over from a journal."""
    port = cluster.port()
    port.adopt([open_order()])
    cluster.changes.clear()
    return port


def open_order() -> Order:
    return Order(
        order="o-1", requester=application(2), victim=application(1), attempt=attempt(1, 1),
        container=container(1, 2), node="n1:1", size=Resources(1024, 1), request_size=Resources(1024, 1),
        serves=1, group="o-1", generation=2, verb="suspend", decision=1, ordered_at_ms=EPOCH,
        progress_at_ms=EPOCH, state="suspending",
    )  # fmt: skip


def saw_manifest(port) -> bool:
    seen = port.observe(ObservationRequest(orders=("o-1",)))
    assert seen.cluster == "seen"
    return any(isinstance(fact, ManifestSeen) for fact in seen.facts)


def not_done(
    cluster: FakeCluster, outcome: Outcome, kinds: tuple[type, ...] = (Refused, Unknown, Withheld)
) -> str:
    """Check that nothing was ended; return why."""
    assert cluster.changes == []
    assert isinstance(outcome, kinds), outcome
    assert isinstance(outcome, Refused | Unknown | Withheld)
    return said(outcome.why)


def test_unchanged_and_holding_for_this_order_is_released(cluster, port):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", "unchanged", 1)
    say(cluster, HOLDING.format("o-1"))
    assert saw_manifest(port)
    assert port.perform(RELEASE) == Accepted()


@pytest.mark.parametrize("status", [AT_WORK.format(50, 1), HOLDING.format("o-0"), ""])
def test_unchanged_waits_until_the_status_says_that_it_holds_for_this_order(cluster, port, status):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", "unchanged", 1)
    say(cluster, status)
    assert saw_manifest(port)
    not_done(cluster, port.perform(RELEASE), (Unknown,))  # asked again by the next tick
    say(cluster, HOLDING.format("o-1"))
    assert port.perform(RELEASE) == Accepted()


def test_an_old_unchanged_answer_says_nothing_of_an_attempt_that_went_on(cluster):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", "unchanged", 1)
    cluster.now_ms += 600_000
    say(cluster, AT_WORK.format(99_999, 1))
    port = restarted(cluster)
    assert saw_manifest(port)
    assert "processed input after its checkpoint" in not_done(cluster, port.perform(RELEASE))


def test_an_old_unchanged_answer_is_old_whatever_the_status_says(cluster):
    cluster.save(1, 1, "o-0", generation=1)
    cluster.answered(1, 1, "o-1", "unchanged", 1)
    cluster.now_ms += 29_000
    say(cluster, HOLDING.format("o-1"))  # as it was a moment ago
    port = restarted(cluster)
    assert saw_manifest(port)
    assert "release wait has expired" in not_done(cluster, port.perform(RELEASE))


def test_the_hold_began_with_the_manifest_not_when_we_came_back_to_see_it(cluster):
    cluster.save(1, 1, "o-1")
    cluster.now_ms += 29_000
    port = restarted(cluster)
    assert saw_manifest(port)
    assert "release wait has expired" in not_done(cluster, port.perform(RELEASE))


def test_a_store_that_was_away_during_the_hold_gives_no_fresh_hold(cluster, port):
    cluster.save(1, 1, "o-1", created_at_ms=cluster.now_ms + 29_000)  # its clock is ahead, too
    cluster.now_ms += 29_000
    assert saw_manifest(port)
    assert "release wait has expired" in not_done(cluster, port.perform(RELEASE))


def test_a_clock_that_is_ahead_gives_no_longer_hold(cluster):
    cluster.save(1, 1, "o-1", created_at_ms=cluster.now_ms + 3_600_000)
    port = restarted(cluster)
    assert saw_manifest(port)
    cluster.now_ms += 26_000
    assert "release wait has expired" in not_done(cluster, port.perform(RELEASE))


@pytest.mark.parametrize("told", [0, -1, "soon", None, 1e300, True])
def test_a_manifest_that_does_not_say_when_counts_from_the_last_look_without_it(cluster, port, told):
    cluster.save(1, 1, "o-1", created_at_ms=told)
    assert saw_manifest(port)
    assert port.perform(RELEASE) == Accepted()


def test_a_clock_that_is_behind_costs_nothing_where_a_look_came_before(cluster, port):
    cluster.save(1, 1, "o-1", created_at_ms=cluster.now_ms - 3_600_000)
    assert saw_manifest(port)
    assert port.perform(RELEASE) == Accepted()


def test_more_groups_than_saved_means_gone_on_though_the_runner_knows_no_generation(cluster, port):
    cluster.save(1, 1, "o-1")  # saved, and the answer to the last rename was lost
    say(cluster, AT_WORK.format(99_999, 0))
    assert saw_manifest(port)
    assert "processed input after its checkpoint" in not_done(cluster, port.perform(RELEASE))


def test_at_work_with_this_generation_means_gone_on_though_no_group_is_done_yet(cluster, port):
    cluster.save(1, 1, "o-1")
    say(cluster, AT_WORK.format(50, 1))
    assert saw_manifest(port)
    assert "processed input after its checkpoint" in not_done(cluster, port.perform(RELEASE))


@pytest.mark.parametrize("action", [RELEASE, Kill("o-1", *NAMES)])
def test_the_gate_is_asked_again_right_before_the_end(cluster, action):
    port = cluster.port(allow_kill=True)
    port.observe(ObservationRequest())
    port.perform(SUSPEND)
    port.observe(ORDERS)
    cluster.changes.clear()
    cluster.save(1, 1, "o-1")
    answers = [None, LockRanOut()]
    port.permission.host = lambda: answers.pop(0)
    assert not_done(cluster, port.perform(action)) == said(LockRanOut())
    assert answers == []
    port.permission.host = lambda: None
    assert port.perform(action) == Accepted()


def test_a_hold_that_runs_out_between_the_look_and_the_end_is_over(cluster, port):
    cluster.save(1, 1, "o-1")
    assert saw_manifest(port)

    spans_ms = [0, 26_000]

    def slow() -> str:
        cluster.now_ms += spans_ms.pop(0)
        return ""

    port.permission.host = slow
    assert "release wait has expired" in not_done(cluster, port.perform(RELEASE))
    assert spans_ms == []
