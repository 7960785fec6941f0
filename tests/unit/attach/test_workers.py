"""Workers of Flink on a cluster: who may be asked, what that costs, one PUT for all, bounds come back."""

from __future__ import annotations

import json
import threading
from concurrent.futures import wait as futures_wait
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.attach.fake_cluster import App, FakeCluster, application, container
from tests.unit.attach.test_performing import looking
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.attach.connection.application_guard import PROMPT_AGAIN
from yarnctl.attach.eligibility.settings_reader import Drainable
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    Drain,
    Grow,
    ObservationRequest,
    Refused,
    TaskView,
    Unknown,
    Withheld,
)
from yarnctl.deciding.reasons.eligibility import MasterUnreachable, NoDrainTag, SettingForbidsDrain
from yarnctl.deciding.reasons.outcomes import ExecutorBusy, ForeignAttempt
from yarnctl.frameworks.flink.consent import judge
from yarnctl.frameworks.flink.observing import STOP_MS
from yarnctl.frameworks.flink.rest import (
    CHECKPOINTS,
    DELAY,
    GONE,
    IDLE,
    SCHEDULER,
    Bounds,
    Parallelism,
    Vertex,
    duration_ms,
    lowered,
)

RECORDED = Path(__file__).parents[2] / "contract" / "recorded"
FLINK = application(8)
JOB = "9d7cfd1b04c54c49fb0123456789abcd"
SETTINGS = {SCHEDULER: "adaptive", IDLE: "2s", GONE: "2s"}
TAG = "yarnctl-drain:rescale"


def changes(fake):
    """Return the changes on record in HDFS."""
    found = [data for path, data in fake.hdfs.files.items() if "/changes-" in path]
    return [change for data in found for change in json.loads(data)["changes"]]


JUDGED = [
    ((TAG,), SETTINGS, Drainable("rescale", 1, 7500)),
    ((TAG, "yarnctl-min-executors:3"), SETTINGS, Drainable("rescale", 3, 7500)),
    ((TAG,), SETTINGS | {IDLE: "1000", GONE: "1 s"}, Drainable("rescale", 1, 4500)),
    (("yarnctl-drain:signal",), SETTINGS, NoDrainTag()),
    ((TAG,), SETTINGS | {SCHEDULER: "default"}, SettingForbidsDrain(SCHEDULER, "default", "adaptive")),
    ((TAG,), {}, SettingForbidsDrain(SCHEDULER, "", "adaptive")),
    ((TAG,), SETTINGS | {IDLE: "50 s"}, SettingForbidsDrain(IDLE, "50 s", "2s")),
    ((TAG,), SETTINGS | {GONE: ""}, SettingForbidsDrain(GONE, "", "2s")),
]


@pytest.mark.parametrize(("tags", "settings", "expected"), JUDGED)
def test_a_tag_allows_it_and_the_settings_must_hold_it(tags, settings, expected):
    assert judge(tags, settings) == expected


@pytest.mark.parametrize(
    ("text", "found_ms"),
    [("2s", 2000), ("50 s", 50_000), ("3000", 3000), ("1 MIN", 60_000), ("soon", -1), ("", -1), ("-1 s", -1)],
)
def test_durations_are_read_as_flink_writes_them(text, found_ms):
    assert duration_ms(text) == found_ms


def test_no_bound_is_raised_by_lowering():
    bounds = {"a": Vertex(Parallelism(1, 5)), "b": Vertex(Parallelism(4, 4)), "c": Vertex(Parallelism(1, 2))}
    assert [(each.parallelism.lower, each.parallelism.upper) for each in lowered(bounds, 3).values()] == [
        (1, 3),
        (4, 4),
        (1, 2),
    ]


# --- on a cluster ---------------------------------------------------------------------------------------


class JobMaster:
    """What the JobManager of an application answers, to a FakeCluster: four workers, two vertices."""

    def __init__(self, fake: FakeCluster, tags: str = TAG, workers: int = 4) -> None:
        self.fake = fake
        self.app = fake.add(App(8, "research", kind="Apache Flink", tags=tags))
        for place in range(workers + 1):
            self.app.containers[container(8, place + 1)] = (f"n{1 + place % 2}:1", 0)
        self.managers = [container(8, place + 2) for place in range(workers)]
        self.slots: dict[str, int] = {}
        self.settings = dict(SETTINGS)
        self.version = "1.20.5"
        self.jobs = [{"jid": JOB, "state": "RUNNING", "tasks": {"total": 8, "running": 8}}]
        self.checkpoint: dict[str, Any] | None = {"id": 5, "trigger_timestamp": fake.now_ms - 1500}
        self.bounds = {name: {"parallelism": {"lowerBound": 1, "upperBound": 6}} for name in ("v1", "v2")}
        self.puts: list[dict[str, Any]] = []
        self.refuses: Reply | None = None
        self.accepts = Reply("{}")
        self.heard_put, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()
        fake.job_managers[self.app.id] = self.answer

    def answer(self, heard: Heard) -> Reply | None:
        below = heard.path.removeprefix(f"/proxy/{FLINK}")
        if heard.method == "PUT":
            if self.refuses is not None:
                return self.refuses
            self.heard_put.set()
            self.may_answer.wait()
            self.puts.append(json.loads(heard.body))
            self.bounds = self.puts[-1]
            return self.accepts
        found: Any = {
            "/config": {"flink-version": self.version},
            "/jobmanager/config": [{"key": key, "value": value} for key, value in self.settings.items()],
            "/jobs/overview": {"jobs": self.jobs},
            "/taskmanagers": {
                "taskmanagers": [
                    {"id": name, "slotsNumber": self.slots.get(name, 1)} for name in self.managers
                ]
            },
            f"/jobs/{JOB}/checkpoints": {"latest": {"completed": self.checkpoint}},
            f"/jobs/{JOB}/resource-requirements": self.bounds,
        }.get(below)
        return None if found is None else Reply(json.dumps(found))

    def uppers(self) -> set[int]:
        return {each["parallelism"]["upperBound"] for each in self.bounds.values()}

    def gone(self, *places: int) -> None:
        for place in places:
            del self.app.containers[container(8, place)]
            self.managers.remove(container(8, place))


@pytest.fixture
def job(fake):
    return JobMaster(fake)


def observed(port, *orders: str) -> dict[str, TaskView]:
    port.observe(ObservationRequest(orders=orders))
    found = port.observe(ObservationRequest(victims=(FLINK,), orders=orders))
    return {task.attempt: task for task in found.tasks.get(FLINK, ())}


def drains(*places: int, decision: int = 1) -> list[Drain]:
    names = tuple(container(8, place) for place in places)
    return [
        Drain(f"o-{decision}{number}", FLINK, name, name, decision, names)
        for number, name in enumerate(names)
    ]


def test_workers_are_shown_with_what_the_whole_job_would_do_again(fake, job):
    shown = observed(looking(fake, levers=True))
    assert [(each.kind, each.checkpointable, each.remaining_ms) for each in shown.values()] == [
        ("worker", True, 7500),
        ("worker", True, 7500),
        ("worker", True, 7500),
        ("worker", False, 7500),
    ]
    assert {fake.now_ms - each.since_ms for each in shown.values()} == {4 * 1500}
    assert {each.resume_cost_ms for each in shown.values()} == {4 * 17_000}
    assert observed(looking(fake)) == {}, "the mix alone asks them"


@pytest.mark.parametrize(
    ("version", "interval", "room_in_ms", "again_ms"),
    [
        ("1.20.5", "2s", 7500, 1500),
        ("2.1.0", "2s", 9500, 300 + STOP_MS),
        ("2.1.0", "5s", 12_500, 300 + STOP_MS),
        ("2.1.0", "6s", 12_500, 1500),  # the delay may end before the next checkpoint
        ("2.1.0", "", 7500, 1500),
        ("unknown", "2s", 7500, 1500),
    ],
)
def test_since_flink_2_a_rescale_waits_for_the_next_checkpoint_and_repeats_what_came_after(
    fake, job, version, interval, room_in_ms, again_ms
):
    job.version = version
    job.settings |= {CHECKPOINTS: interval, DELAY: "5s"}
    assert job.checkpoint is not None
    job.checkpoint["end_to_end_duration"] = 300
    shown = observed(looking(fake, levers=True))
    assert {fake.now_ms - each.since_ms for each in shown.values()} == {4 * again_ms}
    assert {each.remaining_ms for each in shown.values()} == {room_in_ms}


NONE_MAY = [
    lambda job: job.jobs[0].update(state="RESTARTING"),
    lambda job: job.jobs[0].update(tasks={"total": 8, "running": 7}),
    lambda job: setattr(job, "checkpoint", None),
    lambda job: job.managers.pop(),  # one is coming, or one too many was given
    lambda job: setattr(job.app, "tags", f"{TAG},yarnctl-min-executors:4"),
]


@pytest.mark.parametrize("change", NONE_MAY)
def test_none_may_leave_a_job_that_is_not_settled_or_would_lose_all(fake, job, change):
    change(job)
    shown = observed(looking(fake, levers=True))
    assert shown
    assert not any(each.checkpointable for each in shown.values())
    assert all(each.since_ms > 0 for each in shown.values())


def test_subtasks_with_nothing_left_to_do_hinder_nothing(fake, job):
    job.jobs[0].update(tasks={"total": 8, "running": 2, "finished": 6})
    assert any(each.checkpointable for each in observed(looking(fake, levers=True)).values())


@pytest.mark.parametrize(
    "jobs",
    [[], [{"jid": JOB, "state": "RUNNING"}, {"jid": JOB[::-1], "state": "RUNNING"}], [{"jid": "../x"}]],
)
def test_an_application_without_one_job_cannot_be_seen(fake, job, jobs):
    job.jobs = jobs
    port = looking(fake, levers=True)
    assert port.observe(ObservationRequest(victims=(FLINK,))).unreachable == (FLINK,)


def test_why_a_job_is_left_alone_is_said(fake, job):
    job.settings[SCHEDULER] = "AdaptiveBatch"
    port = looking(fake, levers=True)
    assert observed(port) == {}
    assert port.why_not[FLINK] == SettingForbidsDrain(SCHEDULER, "AdaptiveBatch", "adaptive")
    fake.job_managers.clear()
    assert isinstance(looking(fake, levers=True).why_not[FLINK], MasterUnreachable)


def test_what_a_real_job_manager_answered_is_read(fake):
    """Near its end: of 16 subtasks 7 have nothing left to do. Its eight workers but one may leave."""
    told = json.loads((RECORDED / "flink-1.20.5.json").read_text(encoding="utf-8"))["answers"]
    app = fake.add(App(8, "research", kind="Apache Flink", tags=TAG))
    rows = told["taskmanagers"]["taskmanagers"]
    names = {row["id"]: container(8, place + 2) for place, row in enumerate(rows)}
    for row in rows:
        row["id"] = names[row["id"]]
    app.containers |= dict.fromkeys([container(8, 1), *names.values()], ("n1:1", 0))

    def answer(heard: Heard) -> Reply | None:
        found = told.get(heard.path.removeprefix(f"/proxy/{FLINK}/"))
        return None if found is None else Reply(json.dumps(found))

    fake.job_managers[FLINK] = answer
    shown = observed(looking(fake, levers=True))
    assert [each.checkpointable for each in shown.values()] == [*[True] * (len(names) - 1), False]
    (bounds,) = [value for path, value in told.items() if path.endswith("resource-requirements")]
    decoded = msgspec.convert(bounds, type=Bounds)
    assert msgspec.to_builtins(decoded) == bounds, "what is put back is what was there"


# --- the order ------------------------------------------------------------------------------------------


def test_one_put_for_all_workers_of_a_decision_and_the_bounds_are_written_before(fake, job):
    port = looking(fake, levers=True)
    assert [port.perform(each) for each in drains(2, 3)] == [Accepted(), Accepted()]
    assert len(job.puts) == 1
    assert job.uppers() == {2}, "four work, two leave; six were allowed"
    (change,) = changes(fake)
    assert json.loads(change["before"])["bounds"]["v1"]["parallelism"]["upperBound"] == 6
    (path,) = [path for path in fake.hdfs.files if "/changes-" in path]
    assert fake.hdfs.owners[path] == ("yarnctl", "644")


def test_an_order_is_answered_by_whichever_container_is_gone_and_each_answers_one(fake, job):
    port = looking(fake, levers=True)
    for each in drains(2, 3):
        port.perform(each)
    asked = ObservationRequest(cluster=False, orders=("o-10", "o-11"))
    assert port.observe(asked).facts == ()
    job.gone(5)
    (fact,) = port.observe(asked).facts
    assert isinstance(fact, ContainerEnded)
    assert (fact.container, fact.node, fact.ending, fact.order) == (
        container(8, 5),
        "n1:1",
        "suspended",
        "o-10",
    )
    assert port.observe(asked).facts == ()
    job.gone(3)
    (fact,) = port.observe(asked).facts
    assert (fact.container, fact.order) == (container(8, 3), ""), "its own"


def test_both_may_be_others(fake, job):
    port = looking(fake, levers=True)
    for each in drains(2, 3):
        port.perform(each)
    job.gone(4, 5)
    facts = port.observe(ObservationRequest(cluster=False, orders=("o-10", "o-11"))).facts
    assert [(fact.container, fact.order) for fact in facts] == [
        (container(8, 4), "o-10"),
        (container(8, 5), "o-11"),
    ]


def test_bounds_come_back_and_nothing_is_left_behind(fake, job):
    port = looking(fake, levers=True)
    for each in drains(2, 3):
        port.perform(each)
    again = looking(fake, levers=True)  # another daemon: all it needs is in HDFS
    assert again.perform(Grow(FLINK, (1,))) == Accepted()
    assert job.uppers() == {6}
    assert len(changes(fake)) == 1, "a request that was accepted ends nothing"
    assert again.perform(Grow(FLINK, (1,))) == Accepted()
    assert len(job.puts) == 2, "what is back is not put again"
    assert changes(fake) == []


def test_bounds_lowered_twice_come_back_to_the_first(fake, job):
    port = looking(fake, levers=True)
    port.perform(drains(2)[0])
    job.gone(2)
    port.observe(ObservationRequest(cluster=False, orders=("o-10",)))
    port.perform(drains(3, decision=2)[0])
    assert job.uppers() == {2}
    assert port.perform(Grow(FLINK, (1, 2))) == Accepted()
    assert job.uppers() == {6}


def test_bounds_that_somebody_else_changed_are_theirs(fake, job):
    port = looking(fake, levers=True)
    port.perform(drains(2)[0])
    job.bounds = {name: {"parallelism": {"lowerBound": 1, "upperBound": 8}} for name in ("v1", "v2")}
    assert port.perform(Grow(FLINK, (1,))) == Accepted()
    assert job.uppers() == {8}


@pytest.mark.parametrize("lost", [Reply("", 500), Reply("", 503), Reply("{}", cut=0)])
def test_a_put_whose_answer_is_lost_stays_on_record_until_the_bounds_are_due(fake, job, lost):
    port = looking(fake, levers=True)
    job.refuses = lost
    outcome = port.perform(drains(2, 3)[0])
    assert isinstance(outcome, Unknown | Withheld)
    if isinstance(outcome, Unknown):
        assert len(changes(fake)) == 1, "the request may arrive later than the bounds would be read"
        job.bounds = {name: {"parallelism": {"lowerBound": 1, "upperBound": 2}} for name in ("v1", "v2")}
    job.refuses = None
    assert port.perform(Grow(FLINK, (1,))) == Accepted()
    assert job.uppers() == {6}


def test_bounds_are_not_compared_while_a_put_has_no_answer(fake, job):
    port = looking(fake, levers=True)
    guard = port._connection.guard

    def until_heard(futures, _span_ms):
        while not job.heard_put.is_set() and futures_wait(futures, 0.01).not_done:
            pass

    job.may_answer.clear()
    usual, guard.wait = guard.wait, until_heard
    try:
        assert isinstance(port.perform(drains(2, 3)[0]), Unknown)
        assert isinstance(port.perform(Grow(FLINK, (1,))), Unknown)
        assert (job.uppers(), len(changes(fake))) == ({6}, 1), "it reads as before, and stays on record"
        (sent,) = (each.sent for each in guard._applications[FLINK].changes.values())
    finally:
        job.may_answer.set()
        guard.wait = usual
    sent.result()
    guard._applications[FLINK].in_time = PROMPT_AGAIN  # it is waited for again
    assert job.uppers() == {2}
    assert port.perform(Grow(FLINK, (1,))) == Accepted()
    assert job.uppers() == {6}


def test_drain_whose_put_was_made_but_not_answered_keeps_the_bounds_to_restore(fake, job):
    port = looking(fake, levers=True)
    job.accepts = Reply("", 503)
    assert isinstance(port.perform(drains(2, 3)[0]), Unknown)
    assert (len(changes(fake)), len(job.puts)) == (1, 1)
    job.accepts = Reply("{}")
    assert port.perform(Grow(FLINK, (1,))) == Accepted()
    assert job.uppers() == {6}


def test_a_put_that_is_refused_lowers_nothing(fake, job):
    port = looking(fake, levers=True)
    job.refuses = Reply('{"errors": ["The request is incomplete"]}', 400)
    outcomes = [port.perform(each) for each in drains(2, 3)]
    assert not any(isinstance(each, Accepted) for each in outcomes)
    assert port.perform(Grow(FLINK, (1,))) == Accepted()
    assert (job.puts, job.uppers()) == ([], {6})


def test_without_the_folder_nothing_is_lowered(fake, job):
    fake.hdfs.denied = "/yarnctl/lock"
    port = looking(fake, levers=True)
    assert not isinstance(port.perform(drains(2)[0]), Accepted)
    assert job.puts == []


def test_another_job_in_the_application_keeps_its_bounds(fake, job):
    port = looking(fake, levers=True)
    port.perform(drains(2)[0])
    job.jobs = [{"jid": "f" * 32, "state": "RUNNING", "tasks": {"total": 8, "running": 8}}]
    assert port.perform(Grow(FLINK, (1,))) == Accepted()
    assert (len(job.puts), changes(fake)) == (1, [])


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda job: job.jobs[0].update(state="RESTARTING"), Refused(ExecutorBusy("RESTARTING"))),
        (lambda job: job.gone(2), Refused(ExecutorBusy("RUNNING"))),
    ],
)
def test_a_job_that_changed_meanwhile_is_not_asked(fake, job, change, outcome):
    port = looking(fake, levers=True)
    observed(port)
    change(job)
    assert port.perform(drains(2)[0]) == outcome
    assert job.puts == []


def test_never_all_workers_and_never_a_foreign_container(fake, job):
    port = looking(fake, levers=True)
    foreign = drains(2)[0]
    too_few = ExecutorBusy("the job needs 1 slots; 0 would remain")
    assert port.perform(drains(2, 3, 4, 5)[0]) == Refused(too_few)
    name = "container_1_0001_01_000002"
    odd = Drain("o-9", FLINK, name, name, 3, (name,))
    assert port.perform(odd) == Refused(ForeignAttempt(name, FLINK))
    assert isinstance(looking(fake, levers=True, enforce=False).perform(foreign), Withheld)
    assert job.puts == []


def test_drain_counts_the_fewest_slots_of_any_worker(fake, job):
    """Which worker leaves is Flink's choice: three that remain may have one slot each."""
    port = looking(fake, levers=True)
    job.slots = dict.fromkeys(job.managers[:2], 8)
    assert port.perform(drains(2)[0]) == Accepted()
    assert job.uppers() == {3}


def test_after_a_restart_only_what_leaves_from_then_on_answers(fake, job):
    port = looking(fake, levers=True)
    for each in drains(2, 3):
        port.perform(each)
    job.gone(5)
    later = looking(fake, levers=True)
    for each in drains(2, 3):  # what a daemon does with open orders of its journal
        later._tracking.begin(each.order, FLINK, each.attempt, each.container, 0, "drain")
        later._tracking.orders[each.order].released_at_ms = fake.now_ms
    asked = ObservationRequest(cluster=False, orders=("o-10", "o-11"))
    assert later.observe(asked).facts == ()
    job.gone(4)
    (fact,) = later.observe(asked).facts
    assert (fact.container, fact.order) == (container(8, 4), "o-10")
