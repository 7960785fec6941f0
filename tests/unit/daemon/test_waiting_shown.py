"""Why production waits is the same sentence in API, explanation and log, at every step of a daemon."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, with_
from tests.property.test_why_waiting import LEVERS
from tests.unit.daemon.test_loop import Attached, busy, daemon
from tests.unit.service.played import busy as most_orders
from tests.unit.service.played import views
from yarnctl.daemon.notices.waiting_log import REPEAT_MS, VAIN_MS, WaitingLog
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.why_waiting import Waiting, cause_meaning, is_waiting, sentence
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import ApplicationView, Observation, ObservationRequest
from yarnctl.deciding.open_hours import WEEK_MINUTES, OpenHours
from yarnctl.deciding.reasons.demand import NoQueueOverGuarantee, NoTaskMayStop, UserAtLimit
from yarnctl.deciding.reasons.eligibility import NoDrainTag
from yarnctl.deciding.reasons.modes import LockHeldElsewhere
from yarnctl.deciding.reasons.waiting_reasons import ContainersOrdered, DecidedNext
from yarnctl.journal.rendering import when
from yarnctl.service.answers.explanations import everything_about
from yarnctl.service.answers.from_view import applications

ASKER = "production-1"
VAIN = {"a": Waiting("rejected", NoTaskMayStop())}
OTHER = {"a": Waiting("limit", UserAtLimit())}
NEXT = {"a": Waiting("next", DecidedNext())}
SERVED = {"a": Waiting("ordered", ContainersOrdered(1, (("r", 1),)))}


def waiting_in(view: View) -> set[str]:
    snapshot = view.snapshot
    known = () if snapshot is None else snapshot.applications
    return {each.application for each in known if snapshot and is_waiting(each, snapshot, view.settings)}


def looked(played: Attached, *, enforce: bool = True, times: int = 120) -> Iterator[View]:
    loop, _ = daemon(played, enforce=enforce)
    for _ in range(times):
        loop._once()
        yield loop.publisher.view


def test_each_view_has_one_reason_for_each_waiting_application() -> None:
    """On the emulator in virtual time, and with a daemon that acts, observes, or stands aside."""
    aside = busy()
    aside.permission.why = LockHeldElsewhere()
    silent = busy()
    silent.silent = {"research-1", "research-2"}
    runs = [
        views(), looked(busy()), looked(busy(), enforce=False), looked(aside, times=5),
        looked(silent, times=5),
    ]  # fmt: skip
    kinds = []
    for run in runs:
        found: set[str] = set()
        for view in run:
            assert set(view.waiting) == waiting_in(view)
            found.update(each.kind for each in view.waiting.values())
            opened = {entry.requester for entry in view.entries if entry.state in OPEN}
            ordered = {name for name, each in view.waiting.items() if each.kind in ("ordered", "would-order")}
            assert ordered == opened & set(view.waiting)
        kinds.append(found)
    assert "ordered" in kinds[0] & kinds[1]
    assert "would-order" in kinds[2]
    assert kinds[3] == {"not-acting"}
    assert "rejected" in kinds[4]


def test_an_ordered_application_with_more_requests_says_why_there_is_no_order_for_the_rest() -> None:
    (waiting,) = most_orders().waiting.values()
    assert waiting.kind == "ordered"
    assert isinstance(waiting.rest, NoTaskMayStop)
    assert "; no order for the rest: every task of the preemptable jobs is excluded (" in sentence(waiting)
    assert sum(cause.tasks for cause in waiting.causes) == 9
    (each,) = [each for each in applications(most_orders()) if each.waiting]
    assert each.when is not None
    assert each.when.sooner == "wait for its order"


def test_requests_stay_pending_while_only_tasks_and_orders_are_observed() -> None:
    """Seen live: after two seconds of such observations the view had no request, and no reason."""
    played = busy()
    loop, _ = daemon(played)
    while not loop.publisher.view.waiting:
        loop._once()
    for _ in range(3):
        played.now_ms += 10_000
        loop.port.observe(ObservationRequest(cluster=False))
        loop._publish()
        assert set(loop.publisher.view.waiting) == {ASKER}
        assert not loop.publisher.view.no_demand


def test_a_job_of_another_kind_is_said_to_lack_its_consent() -> None:
    """Seen live: executors of a Spark application without the tag read "it starts, or ends"."""
    settings = with_(GUARD_FREE, levers=LEVERS)
    spark = msgspec.structs.replace(app("s1", "research", 8, runner=False), why_not=NoDrainTag())
    snapshot = cluster(spark, app("p1", "production", 0, 1), guaranteed={"production": 95, "research": 5})
    for view, why in ((spark, "no-runner"), (msgspec.structs.replace(spark, why_not=None), "starting")):
        shown = msgspec.structs.replace(snapshot, applications=(view, snapshot.applications[1]))
        controller = Controller(settings)
        while not controller.verdicts:
            wanted = dict.fromkeys(controller.to_observe.victims, ())
            controller.step(
                Observation(now_ms=1000, as_of_ms=1000, tasks=wanted, snapshot=None if wanted else shown)
            )
        (cause,) = controller.verdicts["p1"].causes
        assert (cause.application, cause.kind, cause.tasks, cause.why) == ("s1", "task", 7, why)
        assert cause_meaning(cause)[1] == (
            "submit it with yarnctl wrap --spark" if why == "no-runner" else ""
        )


def test_api_and_explanation_have_the_same_sentence() -> None:
    cluster = busy()
    cluster.silent = {"research-1"}
    for view in looked(cluster, times=20):
        for each in applications(view):
            if each.waiting is None:
                continue
            told = sentence(view.waiting[each.application])
            assert each.waiting.text == told
            assert sum(one.tasks for one in each.waiting.not_chosen) in (0, 18)
            (now,) = [
                line
                for line in everything_about(view, each.application).rendered
                if line.startswith("now: user ")
            ]
            assert now.endswith(f"; {told}")


@pytest.mark.parametrize(
    ("story", "warned_at_ms"),
    [
        ([(0, VAIN), (VAIN_MS - 1, VAIN)], []),
        ([(0, VAIN), (VAIN_MS, VAIN), (VAIN_MS + 1000, VAIN)], [VAIN_MS]),
        ([(0, VAIN), (VAIN_MS, VAIN), (VAIN_MS + REPEAT_MS - 1, VAIN)], [VAIN_MS]),
        ([(0, VAIN), (VAIN_MS, VAIN), (VAIN_MS + REPEAT_MS, VAIN)], [VAIN_MS, VAIN_MS + REPEAT_MS]),
        ([(0, VAIN), (VAIN_MS, VAIN), (61_000, OTHER), (62_000, VAIN)], [VAIN_MS, 61_000]),
        ([(0, VAIN), (30_000, NEXT), (VAIN_MS, VAIN)], [VAIN_MS]),
        ([(0, VAIN), (30_000, SERVED), (31_000, VAIN), (VAIN_MS, VAIN)], []),
        ([(0, VAIN), (30_000, {}), (31_000, VAIN), (91_000, VAIN)], [91_000]),
        ([(0, NEXT), (VAIN_MS, NEXT)], []),
        ([(1_000_000, VAIN), (0, VAIN), (VAIN_MS, VAIN)], [VAIN_MS]),
    ],
    ids=["short", "once", "not yet again", "again", "each reason", "next lasts a moment", "an order",
         "no request", "only next", "clock set back"],
)  # fmt: skip
def test_warnings_are_due_once_per_reason_and_every_five_minutes(
    story: list[tuple[int, dict[str, Waiting]]], warned_at_ms: list[int]
) -> None:
    log = WaitingLog()
    assert [at_ms for at_ms, waiting in story if log.due(waiting, at_ms)] == warned_at_ms


def test_a_wait_is_the_time_since_its_first_look() -> None:
    log = WaitingLog()
    log.due(VAIN, 31_000)
    assert log.due(VAIN, 31_000 + VAIN_MS) == [("a", VAIN_MS)]


def test_a_reason_that_differs_in_numbers_is_the_same_reason() -> None:
    log = WaitingLog()
    log.due(VAIN, 0)
    assert log.due({"a": Waiting("rejected", NoQueueOverGuarantee())}, VAIN_MS) == [("a", VAIN_MS)]
    assert log.due({"a": Waiting("rejected", NoQueueOverGuarantee(), ())}, VAIN_MS + 1) == []


def test_the_daemon_warns_with_the_sentence_of_the_view(caplog: pytest.LogCaptureFixture) -> None:
    cluster = busy()
    cluster.silent = {"research-1", "research-2"}
    loop, _ = daemon(cluster)
    with caplog.at_level(logging.WARNING, "yarnctl.daemon"):
        for _ in range(3):
            loop._once()
    warned = [record.message for record in caplog.records if " has waited " in record.message]
    told = sentence(loop.publisher.view.waiting[ASKER])
    assert warned
    assert all(line.startswith(f"{ASKER} (user u, queue production) has waited ") for line in warned)
    assert warned[0].endswith(f" for 3 containers: {told}")


def test_outside_hours_of_their_queue_applications_cannot_be_suspended() -> None:
    view = next(each for each in views() if each.snapshot and any(map(is_able, each.snapshot.applications)))
    assert view.snapshot is not None
    research = next(each for each in view.snapshot.applications if is_able(each))
    minute = view.now_ms // 60_000 + 3 * 24 * 60  # of the week: the run begins at 1970-01-01, a Thursday
    hours = OpenHours(research.queue, "UTC", ((minute % WEEK_MINUTES + 5, 60),), ((0, 0),))
    shut = msgspec.structs.replace(view, settings=msgspec.structs.replace(view.settings, hours=(hours,)))
    before, now = (
        {each.application: each for each in applications(one)}[research.application] for one in (view, shut)
    )
    assert before.runner
    assert (now.runner, now.reason and now.reason.code) == (False, "outside-hours")
    opens = when((view.now_ms // 60_000 + 5) * 60_000)
    assert opens in now.why_not
    found = everything_about(shut, research.application)
    assert found is not None
    assert any(
        "cannot be suspended: containers of queue" in line and opens in line for line in found.rendered
    )


def is_able(view: ApplicationView) -> bool:
    return bool(view.runner) and view.queue == "research"
