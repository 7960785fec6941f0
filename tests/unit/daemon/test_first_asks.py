"""First asks in the daemon: each starting job is asked about once, and only if room could be kept for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.daemon.at_the_desk import Past
from tests.unit.daemon.test_desk_wiring import given
from tests.unit.daemon.test_loop import busy
from tests.unit.daemon.test_wiring import plan
from yarnctl.attach.observing.cluster_state import StartingJob
from yarnctl.daemon import first_asks
from yarnctl.daemon.admission.history_worker import HistoryWorker
from yarnctl.daemon.first_asks import LEARNED_BACK_MS, LEARNED_FOR_MS, FirstAsks
from yarnctl.daemon.running import make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.queue_hold import QueueLimits
from yarnctl.errors import BadInput
from yarnctl.units import Resources

DAY_MS = LEARNED_BACK_MS + 1_000
MAPS = (ContainerRequest(20, Resources(1024, 1), 2),)
JOB = StartingJob("application_1_0001", "nightly-7", "ann")


LEARNED = f"['production'] since {DAY_MS - LEARNED_BACK_MS}"


def asks(
    past: Past, may_foresee: Callable[[], bool] = lambda: True, clock_ms: Callable[[], int] = lambda: DAY_MS
) -> FirstAsks:
    return FirstAsks(
        HistoryWorker(lambda: past, lambda: None, in_thread=False),
        clock_ms,
        {"production"}.__contains__,
        may_foresee,
    )


def test_what_ran_in_the_last_day_is_known_before_a_job_starts_and_looked_up_again_now_and_then():
    past, now_ms = Past(), [DAY_MS]
    past.latest["ann", "nightly-#"] = MAPS
    seen = asks(past, clock_ms=lambda: now_ms[0])
    seen.learn()
    assert past.asked == [LEARNED]
    assert [seen.of(JOB), seen.of(JOB._replace(application="b", name="nightly-8"))] == [MAPS, MAPS]
    assert past.asked == [LEARNED]
    past.latest["ann", "nightly-#"] = (MAPS[0]._replace(count=5),)
    now_ms[0] += LEARNED_FOR_MS
    seen.of(JOB)
    assert seen.of(JOB) == (MAPS[0]._replace(count=5),)
    assert len(past.asked) == 2
    past.away, now_ms[0] = True, now_ms[0] + LEARNED_FOR_MS
    seen.of(JOB)
    assert seen.of(JOB) == (MAPS[0]._replace(count=5),)  # what is known stays
    assert seen.of(JOB._replace(user="bob")) == ()


def test_each_job_is_asked_about_once():
    past = Past()
    past.first["nightly-7"] = MAPS
    seen = asks(past)
    assert [seen.of(JOB), seen.of(JOB), seen.of(JOB._replace(application="b", name="new"))] == [
        MAPS, MAPS, (),
    ]  # fmt: skip
    assert past.asked == [LEARNED, "nightly-7", "new"]


def test_nothing_is_told_or_asked_while_nothing_could_be_kept():
    past, may = Past(), [False]
    past.first["nightly-7"] = MAPS
    seen = asks(past, lambda: may[0])
    assert seen.of(JOB) == ()
    assert past.asked == []
    may[0] = True
    assert seen.of(JOB) == MAPS


def test_a_history_server_that_is_away_foresees_nothing():
    past = Past()
    past.away = True
    assert asks(past).of(JOB) == ()


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(first_asks, "KEPT_MAX", 2)
    past = Past()
    seen = asks(past)
    for name in ("a", "b", "c", "b", "c", "a"):
        seen.of(JOB._replace(application=name, name=name))
    assert past.asked == [LEARNED, "a", "b", "c", "a"]


def test_where_queues_cannot_be_held_nothing_is_foreseen_any_more(tmp_path: Path):
    cluster, past = busy(), Past()
    past.first["nightly-7"] = MAPS
    seen = asks(past)
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        loop, journal = make_loop(plan(tmp_path), state, cluster, None, seen)
        assert seen.of(JOB) == (), "the plan holds no queue"
        holder = loop._queue_caps
        assert holder is not None
        holder.enabled, holder.preemptable_queues = True, ("research",)
        assert seen.of(JOB) == MAPS
        holder._limits = lambda _: "the scheduler cannot be changed"
        holder.reconcile(lambda _: None, 0, 1, True, None)
        assert seen.of(JOB) == ()
        holder._limits = lambda _: ("root.research", QueueLimits(0.05, 1.0))
        journal.close()


def test_it_is_off_unless_asked_for():
    assert given().attachment.predicted_max == 0
    told = given("--cap-queue", "--predicted-demand", "4", "--history", "http://jhs:19888/")
    assert (told.attachment.predicted_max, told.history, told.admitting) == (4, "http://jhs:19888", None)
    assert given("--cap-queue", "--predicted-demand", "4").history == ""


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--predicted-demand", "4"), "--predicted-demand"),
        (("--predicted-demand", "4", "--cap-queue", "--history", "off"), "--predicted-demand"),
        (("--predicted-demand", "4", "--cap-queue", "--history", "jhs"), "--history"),
        (("--predicted-demand", "0", "--history", "http://jhs:19888"), "--history"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], where: str):
    with pytest.raises(BadInput) as refused:
        given(*words)
    assert refused.value.where == where


def test_deadlines_know_no_hurried_queues():
    with pytest.raises(BadInput) as refused:
        given("--mode", "deadlines", "--cap-queue", "--predicted-demand", "4")
    assert refused.value.where == "--predicted-demand"
