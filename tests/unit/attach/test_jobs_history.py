"""What finished jobs teach: by hand, and as asked of a played history server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.hadoop.replaying import Heard, Replay, Reply, closed_port
from yarnctl.attach.connection.connection import history_server_by, history_server_in
from yarnctl.attach.history import finished_jobs, fitting
from yarnctl.attach.history.finished_jobs import FinishedJobs
from yarnctl.attach.history.fitting import FinishedJob
from yarnctl.deciding.admission.records import Finished, Phase, Phases
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.reasons.verdicts import ASK_AGAIN, HistoryUnusable
from yarnctl.errors import Unreachable
from yarnctl.frameworks.mapreduce.history_server import QUICK, HistoryServer
from yarnctl.frameworks.mapreduce.rest import LIMITS, EndedJob
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.transport import Transport
from yarnctl.journal.rendering import text
from yarnctl.units import Resources

APP, JOB = "application_1700000000000_0007", "job_1700000000000_0007"
BEGAN_MS = 1_700_000_000_000
COUNTERS = {fitting.JOB_COUNTERS: {"MILLIS_MAPS": 40_000, "MILLIS_REDUCES": 25_000}}


def job(**more) -> EndedJob:
    """Return a job of 8 maps and 4 reduces: submitted at 0 s, started at 2 s, ended at 12 s."""
    told: dict[str, Any] = {
        "job": JOB,
        "name": "daily-2026-11-21",
        "user": "ann",
        "state": "SUCCEEDED",
        "submitted_at_ms": BEGAN_MS,
        "started_at_ms": BEGAN_MS + 2_000,
        "finished_at_ms": BEGAN_MS + 12_000,
        "maps_total": 8,
        "reduces_total": 4,
    }
    return EndedJob(**(told | more))


# --- by hand ------------------------------------------------------------------------------------------


def test_a_job_by_hand():
    """Work: 40 s of maps, 25 s of reduces, 10 s of its master. At once: 8 maps and the master."""
    told = fitting.finished_job(job(), COUNTERS, {})
    assert isinstance(told, FinishedJob)
    assert (told.application, told.work_ms, told.tasks, told.containers) == (APP, 75_000, 9, 9)
    assert fitting.finished(told, 40) == Finished(
        work_ms=75_000,
        tasks=9,
        deadline_ms=12_000,
        containers=9,
        capacity=40,
        ratio=1.0,
        met=True,
        computed_ms=75_000,
        ended_at_ms=BEGAN_MS + 12_000,
    )


def test_a_job_under_limits_used_less_than_was_reserved_for_it():
    told = fitting.finished_job(job(), COUNTERS, dict.fromkeys(LIMITS, "2"))
    assert isinstance(told, FinishedJob)
    found = fitting.finished(told, 40)
    assert (found.work_ms, found.used_ms) == (3 * 10_000, 75_000)


def test_its_tag_is_its_deadline_and_its_limits_what_it_held():
    """Limits of 3 maps and 2 reduces: 4 containers of the 6 that the cluster lets it reach."""
    settings = {
        "mapreduce.job.tags": "etl,Deadline:1700000010",
        "mapreduce.job.running.map.limit": "3",
        "mapreduce.job.running.reduce.limit": "2",
    }
    told = fitting.finished_job(job(), COUNTERS, settings)
    assert isinstance(told, FinishedJob)
    found = fitting.finished(told, 6)
    assert (found.deadline_ms, found.met) == (10_000, False)  # it ended after 12 s
    assert (found.tasks, found.containers, found.capacity) == (9, 4, 6)
    assert found.work_ms == 4 * 10_000  # held for as long as it ran, from its start to its end
    assert found.ratio == pytest.approx(4 / 6)
    late = fitting.finished_job(job(), COUNTERS, settings | {"mapreduce.job.tags": "deadline:1700000012000"})
    assert isinstance(late, FinishedJob)
    assert (fitting.finished(late, 6).deadline_ms, fitting.finished(late, 6).met) == (12_000, True)


@pytest.mark.parametrize(
    ("maps", "reduces", "settings", "containers"),
    [
        ((8), 4, {}, 9),
        (8, 20, {}, 21),
        (8, 0, {}, 9),
        (8, 4, {"mapreduce.job.running.map.limit": "0"}, 9),
        (8, 4, {"mapreduce.job.running.map.limit": "2"}, 5),  # the reduces are more now
        (8, 4, {"mapreduce.job.running.map.limit": "-1", "mapreduce.job.running.reduce.limit": "x"}, 9),
        (8, 4, {"mapreduce.job.running.map.limit": "100"}, 9),
    ],
)
def test_what_limits_let_a_job_hold(maps, reduces, settings, containers):
    assert fitting.limited(settings, maps, reduces) == containers


@pytest.mark.parametrize(
    ("more", "counters", "why"),
    [
        ({"state": "FAILED"}, COUNTERS, "did not succeed (FAILED)"),
        ({"state": ""}, COUNTERS, "(unknown state)"),
        ({"uberized": True}, COUNTERS, "in its application master"),
        ({}, {}, "reports no MILLIS_MAPS"),
        ({}, {fitting.JOB_COUNTERS: {"MILLIS_MAPS": -1}}, "reports no MILLIS_MAPS"),
        ({"maps_total": 0, "reduces_total": 0}, COUNTERS, "reports no MILLIS_MAPS"),
        ({"finished_at_ms": 0}, COUNTERS, "no start or end"),
        ({"started_at_ms": 0, "submitted_at_ms": 0}, COUNTERS, "no start or end"),
        ({"started_at_ms": -1}, COUNTERS, "no start or end"),
    ],
)
def test_what_teaches_nothing_says_why(more, counters, why):
    told = fitting.finished_job(job(**more), counters, {})
    assert not isinstance(told, FinishedJob)
    assert why in text(told)


def test_a_deadline_before_the_submission_is_none():
    told = fitting.finished_job(job(), COUNTERS, {"mapreduce.job.tags": "deadline:1600000000"})
    assert isinstance(told, FinishedJob)
    found = fitting.finished(told, 40)
    assert (found.deadline_ms, found.met) == (12_000, False)


def test_an_estimate_by_hand():
    """One map of 8, 18 and 58 s: on two containers, a master and a map, twice that, and 5 s, and a turn
    of 2 s.

    Mean of 30, 50 and 130 is 70; squares 1600 + 400 + 3600 = 5600, by 2, is 2800; its root 52.915...
    """

    def run(map_s: int) -> fitting.FinishedJob:
        counters = {fitting.JOB_COUNTERS: {"MILLIS_MAPS": map_s * 1000}}
        ended_at_ms = BEGAN_MS + 2_000 + map_s * 1000
        found = fitting.finished_job(
            job(maps_total=1, reduces_total=0, finished_at_ms=ended_at_ms), counters, {}
        )
        assert isinstance(found, FinishedJob)
        return found

    runs = [run(8), run(18), run(58)]
    found, first = fitting.estimate("daily-7", runs, 12), fitting.estimate("daily-7", runs[:1], 12)
    assert found is not None
    assert first is not None
    assert (found.mean_ms, found.stdev_ms, found.source) == (70_000, 52_915, "history:3 runs of daily-#")
    assert (first.mean_ms, first.stdev_ms, first.source) == (30_000, 0, "history:1 run of daily-#")
    assert fitting.estimate("daily-7", [], 12) is None
    # The phases: one map each, 10, 20 and 60 s with its turn; squares 400 + 100 + 900, by 2, is 700.
    assert found.phases == Phases((Phase("map", 1, 30_000, 26_458),), master_ms=0, submit_ms=5_000)
    assert first.phases == Phases((Phase("map", 1, 10_000, 0),), master_ms=0, submit_ms=5_000)


def test_the_phases_of_the_next_run_have_the_most_tasks_of_any_run():
    """Two runs of 8 and of 10 maps, 5 s each; the second has no reduces; the master needs 3 s at least."""
    full = fitting.finished_job(job(), COUNTERS, {})
    counters = {fitting.JOB_COUNTERS: {"MILLIS_MAPS": 50_000}}
    maps_only = fitting.finished_job(job(maps_total=10, reduces_total=0), counters, {})
    assert isinstance(full, FinishedJob)
    assert isinstance(maps_only, FinishedJob)
    found = fitting.phases_of([full, maps_only], 3_000)
    assert found == Phases(
        (Phase("map", 10, 7_000, 0), Phase("reduce", 4, 8_250, 0)), master_ms=3_000, submit_ms=5_000
    )


def test_what_must_be_held_by_hand():
    """8 maps of 5 s and 4 reduces of 6.25 s, and 2 s a wave; it ran for 10 s: nothing on top.

    On c containers are c - 1 tasks at once, waves of maps and of reduces: 2: 8 and 4, 65 + 24 s. 3: 4 and 2,
    32.5 + 12 s. 5: 2 and 1, 16.25 + 6 s. 9: 1 and 1, 11.25 + 4 s. The most c x time: 2 x 89 = 178.
    """
    told = fitting.finished_job(job(), COUNTERS, {})
    assert isinstance(told, FinishedJob)
    assert (fitting.alone_ms(told, 40), fitting.alone_ms(told, 1)) == (0, 0)
    assert [fitting.phases_ms(told, number) for number in (2, 3, 5, 9)] == [89_000, 44_500, 22_250, 15_250]
    assert fitting.usage_ms(told, 0, 40) == 178_000
    assert fitting.usage_ms(told, 0, 2) == 178_000
    assert fitting.usage_ms(told, 10_000, 40) == 8 * (10_000 + 22_250)  # 7 maps at once


@pytest.mark.parametrize("spent_ms", [0, 3_000, 20_000])
def test_what_is_held_is_enough_for_every_deadline(spent_ms):
    """Whatever span: on work / span containers, rounded up, the job ends in time, if that many there are."""
    told = fitting.finished_job(job(), COUNTERS, {})
    assert isinstance(told, FinishedJob)
    held_ms = fitting.usage_ms(told, spent_ms, 40)
    tried = 0
    for span_ms in range(5_000, 200_000, 250):
        containers = max(2, -(-held_ms // span_ms))
        if containers <= told.tasks:
            tried += 1
            assert spent_ms + fitting.phases_ms(told, containers) <= span_ms
    assert tried > 100


def test_names():
    assert fitting.folded(" daily-2026-11-21  v2 ") == "daily-#-#-# v#"
    assert fitting.same_name("daily-1", "daily-22")
    assert not fitting.same_name("daily-1", "daily-22-extra")
    whole = "a name that is longer than the fifty bytes of a list, 17"
    assert fitting.same_name(whole[:50], whole)
    assert not fitting.same_name(whole[:49], whole)


# --- asked of a server --------------------------------------------------------------------------------


class Played:
    """A history server with these jobs; ``asked`` are the paths below its list."""

    def __init__(self, *jobs: dict, counters: dict | None = None) -> None:
        self.jobs = {one["id"]: one for one in jobs}
        self.counters = counters or {}
        self.asked: list[str] = []

    def __call__(self, heard: Heard) -> Reply:
        path = heard.path.removeprefix("/ws/v1/history/mapreduce/jobs").strip("/")
        self.asked.append(path)
        name, _, below = path.partition("/")
        if not name:
            rows = [row for row in self.jobs.values() if heard.query.get("user", row["user"]) == row["user"]]
            cut = [row | {"name": row["name"][:50]} for row in rows]
            return Reply(json.dumps({"jobs": {"job": cut}}))
        if name not in self.jobs:
            body = {
                "RemoteException": {"exception": "NotFoundException", "message": f"job, {name}, is not found"}
            }
            return Reply(json.dumps(body), 404)
        if below == "counters":
            millis = self.counters.get(name, 60_000)
            spent = {"MILLIS_MAPS": millis, "MB_MILLIS_MAPS": 700 * millis, "VCORES_MILLIS_MAPS": 2 * millis}
            counter = [{"name": key, "totalCounterValue": value} for key, value in spent.items()]
            group = {"counterGroupName": fitting.JOB_COUNTERS, "counter": counter}
            return Reply(json.dumps({"jobCounters": {"id": name, "counterGroup": [group]}}))
        if below == "conf":
            return Reply(json.dumps({"conf": {"property": [{"name": "mapreduce.job.tags", "value": ""}]}}))
        return Reply(json.dumps({"job": self.jobs[name]}))


def row(number: int, name: str = "daily-1", user: str = "ann", state: str = "SUCCEEDED") -> dict:
    at_ms = BEGAN_MS + number * 1_000_000
    times = {"submitTime": at_ms, "startTime": at_ms, "finishTime": at_ms + 10_000}
    named = {"id": f"job_1700000000000_{number:04d}", "name": name, "user": user, "state": state}
    return named | times | {"mapsTotal": 4, "reducesTotal": 0}


def history(daemon: Replay, capacity: int = 12) -> FinishedJobs:
    return FinishedJobs(HistoryServer(Transport([daemon.url], limits=QUICK)), capacity)


def test_an_estimate_is_of_the_same_user_s_runs_of_the_same_name():
    others = [row(4, "weekly-1"), row(5, user="bob"), row(6, state="FAILED")]
    played = Played(row(1, "daily-1"), row(2, "daily-2"), row(3, "daily-3"), *others)
    played.counters = {"job_1700000000000_0001": 20_000, "job_1700000000000_0002": 40_000}
    with Replay(played) as daemon:
        seen = history(daemon)
        found = seen.estimate("daily-9", "ann")
        # 4 maps of 5, 10 and 15 s; alone for 3, 0 and 0 s: the least counts, and 5 s of submitting.
        # The most on 4, which are two waves: 4 x (5 + 2 x (5, 10, 15 + 2)) = 76, 116, 156.
        assert found is not None
        assert (found.mean_ms, found.stdev_ms, found.source) == (116_000, 40_000, "history:3 runs of daily-#")
        # a map holds its container for 5, 10, 15 s and its turn
        assert found.phases == Phases((Phase("map", 4, 12_000, 5_000),), master_ms=0, submit_ms=5_000)
        assert seen.estimate("nightly", "ann") is None
        before = len(played.asked)
        assert seen.estimate("daily-9", "ann") == found
        assert played.asked[before:] == [""]  # what is known is not asked again


def test_the_first_ask_is_that_of_the_same_users_last_run():
    """Four maps of 700 MiB and 2 vcores, as its counters tell them: memory and vcores times time, by time."""
    played = Played(
        row(1, "daily-1") | {"mapsTotal": 9}, row(2, "daily-2"), row(3, "weekly-1"), row(4, user="bob")
    )
    with Replay(played) as daemon:
        seen = history(daemon)
        assert seen.first_asks("daily-9", "ann") == (ContainerRequest(20, Resources(700, 2), 4),)
        assert seen.first_asks("nightly", "ann") == ()


def test_what_the_latest_jobs_of_a_queue_asked_for_first():
    """The last run of each user's job; others' queues, failed jobs and names that may be cut are left out."""
    queue = {"queue": "production"}
    played = Played(
        *(row(1, "daily-1") | queue | {"mapsTotal": 9}, row(2, "daily-2") | queue, row(3, "other"), row(4)),
        *(row(5, "failed", state="FAILED") | queue, row(6, "daily-3", user="bob") | queue | {"mapsTotal": 2}),
        row(7, "x" * 50) | queue,
    )
    with Replay(played) as daemon:
        found = history(daemon).latest_first_asks(BEGAN_MS, {"production"}.__contains__)
    assert {key: asks[0].count for key, asks in found.items()} == {
        ("ann", "daily-#"): 4,
        ("bob", "daily-#"): 2,
    }
    assert len([path for path in played.asked if path.endswith("counters")]) == 2


WHOLE = {"MILLIS_MAPS": 40_000, "MB_MILLIS_MAPS": 28_000_000, "VCORES_MILLIS_MAPS": 40_000}
REDUCES = {"MILLIS_REDUCES": 1_000, "MB_MILLIS_REDUCES": 900_000, "VCORES_MILLIS_REDUCES": 2_000}


@pytest.mark.parametrize(
    ("more", "spent", "found"),
    [
        ({}, {}, [(20, 700, 1, 8)]),
        ({}, REDUCES, [(20, 700, 1, 8)]),  # four reduces will find the maps' room
        ({"reduces_total": 10}, REDUCES, [(20, 700, 1, 8), (10, 900, 2, 2)]),
        ({"reduces_total": 10}, {}, [(20, 700, 1, 8)]),
        ({"maps_total": 1}, {}, [(20, 700, 1, 1)]),
        ({"maps_total": 0}, {}, []),
        ({"uberized": True}, {}, []),
        ({}, {"MB_MILLIS_MAPS": 0}, []),
        ({}, {"VCORES_MILLIS_MAPS": -1}, []),
        ({}, {"MILLIS_MAPS": 0}, []),
        ({}, {"MILLIS_MAPS": -1, "MB_MILLIS_MAPS": -700}, []),
    ],
)
def test_first_asks_by_hand(more, spent, found):
    asks = fitting.first_asks(job(**more), {fitting.JOB_COUNTERS: WHOLE | spent})
    assert [(ask.priority, *ask.size, ask.count) for ask in asks] == found


def test_an_estimate_is_of_the_latest_runs_and_its_calls_are_bounded():
    played = Played(*(row(number) for number in range(1, 60)))
    played.counters = {f"job_1700000000000_{number:04d}": 40_000 * number for number in range(1, 60)}
    with Replay(played) as daemon:
        found = history(daemon).estimate("daily-9", "ann")
    assert found is not None
    assert found.source == "history:10 runs of daily-#"
    assert found.mean_ms == round(
        sum(4 * (5_000 + 2 * (10_000 * number + 2_000)) for number in range(50, 60)) / 10
    )
    assert len(played.asked) == 1 + 2 * finished_jobs.RUNS_MAX


def test_a_long_name_is_looked_up_whole():
    name = "a name that is longer than the fifty bytes of a list, "
    played = Played(row(1, name + "the first of two"), row(2, name + "the other"))
    with Replay(played) as daemon:
        found = history(daemon).estimate(name + "the other", "ann")
    assert found is not None
    assert found.source.startswith("history:1 run of a name")


def test_recent_jobs_teach_in_the_order_of_their_ends():
    played = Played(row(3), row(1), row(2, state="KILLED"), counters={"job_1700000000000_0001": 1})
    with Replay(played) as daemon:
        found = history(daemon).recent(BEGAN_MS)
    assert [one.work_ms for one in found] == [10_001, 70_000]
    assert {one.capacity for one in found} == {12}


def test_one_ended_application_and_one_that_the_history_does_not_have_yet():
    played = Played(row(1), row(2, state="FAILED"))
    with Replay(played) as daemon:
        seen = history(daemon)
        found, why = seen.finished("application_1700000000000_0001")
        assert found is not None
        assert (found.work_ms, found.tasks, why) == (70_000, 5, None)
        assert seen.finished("application_1700000000000_0002")[0] is None
        found, why = seen.finished(APP)
        assert (found, isinstance(why, ASK_AGAIN)) == (None, True)
        played.jobs[JOB] = row(7)
        assert seen.finished(APP)[0] is not None  # it was not remembered as missing


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(finished_jobs, "KEPT_MAX", 2)
    played = Played(*(row(number) for number in range(1, 5)))
    with Replay(played) as daemon:
        seen = history(daemon)
        for number in (1, 2, 3, 3, 1):
            assert seen.finished(f"application_1700000000000_{number:04d}")[0] is not None
    assert len([path for path in played.asked if path.endswith("counters")]) == 4


def test_a_server_that_does_not_answer_is_said():
    seen = FinishedJobs(HistoryServer(Transport([f"http://127.0.0.1:{closed_port()}"], limits=QUICK)), 4)
    for ask in (lambda: seen.finished(APP), lambda: seen.recent(0), lambda: seen.estimate("a", "b")):
        with pytest.raises(Unreachable):
            ask()


@pytest.mark.parametrize(
    ("status", "below"), [(403, "counters"), (401, "conf"), (500, "counters"), (403, "")]
)
def test_a_job_that_we_may_not_see_hides_no_other(status, below):
    """The history server's ACLs are each job's own."""
    long = "a name that is longer than the fifty bytes of a list, 1"
    played = Played(row(1, long), row(2, long), row(3, long))
    hidden = f"job_1700000000000_0002/{below}".strip("/")

    def guarded(heard: Heard) -> Reply:
        if heard.path.endswith(hidden):
            told = {"exception": "WebApplicationException", "message": "you may not"}
            return Reply(json.dumps({"RemoteException": told}), status)
        return played(heard)

    with Replay(guarded) as daemon:
        seen = history(daemon)
        assert len(seen.recent(BEGAN_MS)) == 2
        found = seen.estimate(long, "ann")
        assert found is not None
        assert found.source.startswith("history:2 runs of")
        lesson, why = seen.finished("application_1700000000000_0002")
        assert lesson is None
        assert isinstance(why, HistoryUnusable)


def test_a_list_that_we_may_not_see_is_said():
    with Replay(lambda heard: Reply("{}", 403)) as daemon, pytest.raises(Rejected):
        history(daemon).recent(BEGAN_MS)


# --- where it is --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ({}, ""),
        ({"mapreduce.jobhistory.webapp.address": "history:19888"}, "http://history:19888"),
        ({"mapreduce.jobhistory.webapp.address": "0.0.0.0:19888"}, "http://rm1:19888"),
        (
            {
                "mapreduce.jobhistory.http.policy": "HTTPS_ONLY",
                "mapreduce.jobhistory.webapp.https.address": "history:19890",
            },
            "https://history:19890",
        ),
        ({"yarn.log.server.url": "http://history:19888/jobhistory/logs"}, "http://history:19888"),
        ({"yarn.log.server.url": "http://timeline:8188/applicationhistory/logs"}, ""),
    ],
)
def test_it_is_found_in_the_resource_manager_s_configuration(said, url):
    assert history_server_in(said, "http://rm1:8088") == url


def test_it_is_found_in_hadoop_s_files(tmp_path):
    name, value = "mapreduce.jobhistory.webapp.address", "history:19888"
    text = f"<configuration><property><name>{name}</name><value>{value}</value></property></configuration>"
    (tmp_path / "mapred-site.xml").write_text(text)
    assert history_server_by(tmp_path, {}) == "http://history:19888"
