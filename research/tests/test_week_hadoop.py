"""The campaign of a short week: its load, its parts, and that each claim of its rule can fail."""

from __future__ import annotations

import copy
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from emulator.cli.compare import command as compare
from tests.experiments.test_week import drawn
from tests.experiments.virtual_week import VirtualWeek
from tests.hadoop import spark_draining
from tests.hadoop.jobs import RESTARTABLE
from yarn_research.campaigns import week_hadoop, week_playing
from yarn_research.campaigns.kept_file import gone_on, keep
from yarn_research.campaigns.week_hadoop import Week, advice_of, sit, wanted
from yarn_research.campaigns.week_judging import judged, seal_of
from yarn_research.campaigns.week_load import REQUESTED_MIB, WeekJob, known_as, load_of, submitted_as
from yarnctl.cli.bill import command as bill
from yarnctl.cli.history import import_command
from yarnctl.errors import BadInput
from yarnctl.traces.week.week_folder import WeekWriter
from yarnctl.units import Resources

# -- the load -------------------------------------------------------------------------------------


def test_the_load_is_the_same_for_a_seed_and_comes_within_the_half_hour() -> None:
    jobs = load_of()
    assert jobs == load_of()
    assert jobs != load_of(47)
    assert Counter(job.kind for job in jobs) == {"streaming": 40, "java": 9, "spark": 3, "spark-service": 3}
    assert [job.at_s for job in jobs] == sorted(job.at_s for job in jobs)
    assert jobs[-1].at_s < 28 * 60
    assert len({job.number for job in jobs}) == 55
    names = Counter(job.plan.name for job in jobs)
    assert min(names.values()) >= 3  # three runs of a name: advice has its small margin


def of_kind(kind: str) -> WeekJob:
    return next(job for job in load_of() if job.kind == kind and job.plan.queue == "research")


def test_before_advice_reduces_request_more_and_work_shorter() -> None:
    job = of_kind("streaming")
    before, after = submitted_as(job, None).plan, submitted_as(job, {known_as(job): 320}).plan
    assert before.settings == {"mapreduce.reduce.memory.mb": str(REQUESTED_MIB["research"])}
    assert after.settings == {"mapreduce.reduce.memory.mb": "320"}
    assert before.groups == tuple(round(count * 0.6) for count in after.groups)
    assert submitted_as(job, {}).plan.settings == before.settings


def test_research_is_wrapped_where_yarnctl_runs_and_production_never() -> None:
    def wrap(job: WeekJob, plugin: str) -> tuple[str, ...]:
        return submitted_as(job, {}, plugin).plan.wrap

    assert wrap(of_kind("streaming"), "p.jar") == RESTARTABLE
    assert wrap(of_kind("spark"), "p.jar") == ("--spark", "--plugin", "p.jar")
    assert wrap(of_kind("java"), "p.jar") == ()
    assert {wrap(job, "p.jar") for job in load_of() if job.plan.queue == "production"} == {()}
    assert {wrap(job, "") for job in load_of()} == {()}


def test_advice_is_of_reduces_by_the_name_that_the_history_has() -> None:
    rows = [
        {"queue": "research", "name": "word count", "kind": kind, "advised_mib": mib}
        for kind, mib in (("reduce", 320), ("map", 256))
    ]
    advice = advice_of({"rows": rows})
    assert submitted_as(of_kind("java"), advice).plan.settings == {"mapreduce.reduce.memory.mb": "320"}


# -- playing --------------------------------------------------------------------------------------


def spark_words(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str) -> list[str]:
    monkeypatch.setattr(spark_draining, "spark_home", lambda: Path("/spark"))
    job = object.__new__(week_playing.SparkWeekJob)
    job._job, job.name, job.groups = of_kind(kind), "daily-groups-mix-07", folder
    job._services = SimpleNamespace(events=folder / "events", shuffle_port=7337)  # type: ignore[assignment]
    return job.words("")


def test_spark_is_of_one_slot_and_half_of_it_has_a_shuffle_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = spark_words(monkeypatch, tmp_path, "spark")
    settings = dict(word.split("=", 1) for word in plain if word.startswith("spark.") and "=" in word)
    for what in ("executor.memory", "yarn.am.memory"):
        assert (settings[f"spark.{what}"], settings[f"spark.{what}Overhead"]) == ("480m", "32m")
    assert plain[plain.index("daily-groups-mix-07") - 1] == "--name"
    service = "spark.shuffle.service.enabled=true"
    assert service not in plain
    assert service in spark_words(monkeypatch, tmp_path, "spark-service")


class PlayedJob:
    """A job of which the ResourceManager says what ``ROWS`` have."""

    def __init__(self, job: WeekJob) -> None:
        self.name, self.stopped = job.number, False

    def is_this(self, row: dict[str, Any]) -> bool:
        return bool(row["name"] == self.name)

    def wait(self) -> None:
        pass

    def stop(self) -> None:
        self.stopped = True


def test_jobs_are_noted_when_they_end_with_what_was_foretold_first(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job._replace(at_s=0.0) for job in load_of()[:2]]
    looks = {job.number: 0 for job in jobs}
    when = [None, {"least_at_ms": 1, "most_at_ms": 9}, {"least_at_ms": 2, "most_at_ms": 3}]

    def rows(_: str) -> list[dict[str, Any]]:
        found = []
        for number in looks:
            looks[number] += 1
            state = "FINISHED" if looks[number] > 3 + int(number) else "RUNNING"
            spans = {"startedTime": 5, "launchTime": 6, "finishedTime": 7, "finalStatus": "SUCCEEDED"}
            found.append({"id": f"application_1_{number}", "name": number, "state": state, **spans})
        return found

    def answer(*_: object, **__: object) -> SimpleNamespace:
        items = [
            {
                "application": f"application_1_{number}",
                "when": {"starts": None, "ends": when[min(count, 3) - 1]},
            }
            for number, count in looks.items()
        ]
        return SimpleNamespace(ok=True, json=lambda: {"items": items})

    made = [PlayedJob(job) for job in jobs]
    monkeypatch.setattr(week_playing, "LOOK_S", 0.0)
    monkeypatch.setattr(week_playing, "submitted", lambda _, job, __: made[int(job.number) - 1])
    monkeypatch.setattr(week_playing, "applications", rows)
    monkeypatch.setattr(week_playing.http_client, "get", answer)
    services = SimpleNamespace(cluster=SimpleNamespace(rm_url=""))
    played = week_playing.play(services, jobs, "mix", "http://daemon")  # type: ignore[arg-type]
    assert [noted["number"] for noted in played] == ["01", "02"]
    for noted in played:
        assert (noted["submitted_ms"], noted["launched_ms"], noted["ended_ms"]) == (5, 6, 7)
        assert noted["ends"] == {"least_at_ms": 1, "most_at_ms": 9, "given_ms": noted["ends"]["given_ms"]}
        assert "starts" not in noted
    assert all(job.stopped for job in made)


def test_an_interval_that_comes_late_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"application": "a", "when": {"starts": None, "ends": {"least_at_ms": 1, "most_at_ms": 9}}}
    answer = SimpleNamespace(ok=True, json=lambda: {"items": [item]})
    monkeypatch.setattr(week_playing.http_client, "get", lambda *_, **__: answer)
    early, late = {"application": "a"}, {"application": "a", "shown_ms": 0}
    week_playing._foretold("http://daemon", [early, late])
    assert "ends" in early
    assert "ends" not in late


# -- the parts ------------------------------------------------------------------------------------

NO_SERVICES: Any = SimpleNamespace()


def stage(monkeypatch: pytest.MonkeyPatch, played: list[str], breaks: str = "") -> None:
    def playing(_services: object, _week: object, _kept: object, name: str) -> dict[str, Any]:
        played.append(name)
        if name == breaks:
            raise AssertionError("no room")
        return {"jobs": []}

    def computing(name: str) -> Any:
        return lambda week, kept: playing(None, week, kept, name)

    monkeypatch.setattr(week_hadoop, "PLAYED", dict.fromkeys(week_hadoop.PLAYED, playing))
    monkeypatch.setattr(week_hadoop, "COMPUTED", {name: computing(name) for name in week_hadoop.COMPUTED})


def test_parts_are_gone_on_with_after_one_that_broke_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, played = tmp_path / "week.json", list[str]()
    stage(monkeypatch, played, breaks="yarn-2")
    week = Week({"kind": "week-hadoop", "commit": "c", "uncommitted": []})
    sit(week, wanted(week, ""), file, float("inf"), lambda: NO_SERVICES)
    assert played == ["yarn-1", "yarn-2"]
    stage(monkeypatch, played)
    again = gone_on(file, Week(week.head))
    assert (list(again.parts), [part["part"] for part in again.broken]) == (["yarn-1"], ["yarn-2"])
    sit(again, wanted(again, ""), file, float("inf"), lambda: NO_SERVICES)
    assert played == ["yarn-1", "yarn-2", "yarn-2", "as-it-was", "sealed", "mix"]
    assert wanted(gone_on(file, Week(week.head)), "") == []


def test_no_part_begins_after_its_time_and_no_cluster_is_started_for_what_needs_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played = list[str]()
    stage(monkeypatch, played)

    def services() -> Any:
        raise AssertionError("a cluster is started")

    week = Week({}, parts={"yarn-1": {}, "yarn-2": {}})
    sit(week, wanted(week, "as-it-was,sealed"), tmp_path / "week.json", float("inf"), services)
    sit(week, wanted(week, ""), tmp_path / "week.json", 0.0, services)
    assert played == ["as-it-was", "sealed"]
    assert week.broken == []


@pytest.mark.parametrize(("names", "told"), [("yarn-3", "unknown: yarn-3"), ("mix", "mix needs yarn-1")])
def test_parts_that_cannot_be_played_are_refused(names: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        wanted(Week({}), names)


def test_the_programs_know_the_options_that_they_are_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "capacity-scheduler.xml").write_text("<configuration/>", encoding="utf-8")
    cluster = SimpleNamespace(rm_url="http://rm:1", history_url="http://jh:2", conf=tmp_path)
    services: Any = SimpleNamespace(cluster=cluster, spark_history_url="http://sh:3")
    given = list[list[str]]()
    monkeypatch.setattr(week_hadoop, "told", lambda words: given.append(words) or {})
    began_s = time.time() - 2000
    week_hadoop.billed(services, began_s, "--by", "application")
    week_hadoop.billed(services, began_s, "--oversized")
    week_hadoop.imported(services, began_s, tmp_path / "kept", "yarn-2")
    week_hadoop.compared(tmp_path / "kept", "yarn-2", "as-it-was,mix")
    programs: list[tuple[click.Command, int]] = [(bill, 2), (bill, 2), (import_command, 3), (compare, 2)]
    for words, (program, first) in zip(given, programs, strict=True):
        parsed = program.make_context(program.name, words[first:]).params
        assert parsed["output"] == "json"
    assert compare.make_context("compare", given[3][2:]).params["may_lose"] == "2%"
    assert week_hadoop.MIX.option("--may-lose", "") == "2%"
    assert (tmp_path / "kept" / "yarn-2.xml").exists()


def test_a_week_is_predicted_and_sealed_also_where_it_is_not_reproduced(tmp_path: Path) -> None:
    lived = VirtualWeek(tmp_path)
    lived.live(drawn(12, seed=3))
    with WeekWriter(lived.folder) as writer:
        writer.write_nodes([Resources(3072, 3)] * 2)  # a smaller cluster is slower
    lived.folder.rename(tmp_path / "yarn-2")
    lived.scheduler_xml.rename(tmp_path / "yarn-2.xml")
    found = week_hadoop.sealed(Week({}), tmp_path)
    week = week_hadoop.compared(tmp_path, "yarn-2", "as-it-was")
    assert found["reproduced"] is (week["status"] == 0) is False
    predicted = [row["job"] for row in found["prediction"]["jobs"] if row["scheme"] == "mix"]
    jobs = week["as_it_was"]["jobs"]
    assert sorted(predicted) == sorted(row["job"] for row in jobs)
    took = [
        {"number": row["job"], "application": row["job"], "submitted_ms": 0, "ended_ms": row["measured_ms"],
         "queue": row["queue"], "state": "SUCCEEDED"}
        for row in jobs
    ]  # fmt: skip
    parts = {"yarn-2": {"jobs": []}, "sealed": found, "mix": {"jobs": took, "sealed_sha256": found["sha256"]}}
    parts["yarn-2"]["jobs"] = [{**row, "requested_mib": 0} for row in took]
    claim = next(each for each in judged(parts) if each.claim == "predicted under mix")
    assert claim.count == 12
    assert claim.target.endswith("not reproduced")


# -- the rule -------------------------------------------------------------------------------------


def job(number: int, part: str) -> dict[str, Any]:
    """Return a job of a part in which all claims hold: of 60 jobs 54 end in their intervals."""
    at_ms, span_ms = number * 10_000, 20_000 + number * 1000
    found: dict[str, Any] = {
        "number": f"{number:02d}",
        "kind": "spark" if number == 2 else "streaming",
        "queue": "research" if number % 2 else "production",
        "name": "daily-sales",
        "application": f"{part}-{number}",
        "submitted_ms": at_ms,
        "launched_ms": at_ms + 500,
        "ended_ms": at_ms + span_ms,
        "state": "SUCCEEDED",
        "requested_mib": 768 if part == "yarn-1" else 320,
        "peak_mib": 260,
        "preempted": 2 if number < 3 else 0,
        "masters": 0,
        "lost_mib_s": 1000 if number < 3 else 0,
        "shown_ms": at_ms,
    }
    if part != "yarn-1":
        off_ms = 50_000 if number % 10 == 0 else 0
        least_ms, most_ms = at_ms + span_ms - 5000 - off_ms, at_ms + span_ms + 5000 - off_ms
        found["ends"] = {"least_at_ms": least_ms, "most_at_ms": most_ms, "runs": number}
        found["starts"] = {"least_at_ms": at_ms, "most_at_ms": at_ms + 1000}
    return found


def holding() -> dict[str, dict[str, Any]]:
    parts: dict[str, dict[str, Any]] = {}
    for part in ("yarn-1", "yarn-2", "mix"):
        jobs = [job(number, part) for number in range(1, 31)]
        of = {"lost_mib_s": 1015, "containers": 2, "unattributed": 1}
        rows = [{"keys": [f"{part}-{number}"], **of} for number in (1, 2)]
        parts[part] = {"jobs": jobs, "bill": {"rows": rows}, "bill_forgotten": {"rows": copy.deepcopy(rows)}}
    was = {"completion_off_ratio": 0.04, "preempted_off_ratio": 0.05, "jobs": [], "preempted": []}
    parts["as-it-was"] = {"yarn-1": {"as_it_was": was}, "yarn-2": {"as_it_was": dict(was)}}
    predicted = [
        {"job": each["application"], "scheme": "mix", "predicted_ms": each["ended_ms"] - each["submitted_ms"]}
        for each in parts["yarn-2"]["jobs"]
    ]
    parts["sealed"] = {"prediction": {"jobs": predicted}}
    seal(parts)
    return parts


def seal(parts: dict[str, dict[str, Any]]) -> None:
    parts["sealed"]["sha256"] = parts["mix"]["sealed_sha256"] = seal_of(parts["sealed"]["prediction"])


def broken(parts: dict[str, dict[str, Any]]) -> list[str]:
    return [claim.claim for claim in judged(parts) if claim.holds is False]


def test_a_week_in_which_everything_holds() -> None:
    assert broken(holding()) == []
    figures = {claim.claim: (claim.ours, claim.count) for claim in judged(holding())}
    assert figures["bill of yarn-1: MapReduce"] == (0.015, 1)
    assert figures["slack found"] == (pytest.approx(448 / 508), 30)
    assert figures["when: ends covered"] == (0.9, 60)
    assert figures["when: ends, from 19 jobs on, covered"] == (pytest.approx(20 / 24), 24)


def test_nothing_holds_of_a_week_that_was_not_played() -> None:
    claims = judged({})
    assert [claim.holds for claim in claims] == [False] * 16 + [None] * 3


BREAKING: dict[str, tuple[list[Any], Any, list[str]]] = {
    "a job failed": (["mix", "jobs", 3, "state"], "FAILED", ["jobs that failed"]),
    "too much is billed": (["yarn-1", "bill", "rows", 0, "lost_mib_s"], 1021, ["bill of yarn-1: MapReduce"]),
    "too little after the restart": (
        ["yarn-2", "bill_forgotten", "rows", 0, "lost_mib_s"],
        979,
        ["bill_forgotten of yarn-2: MapReduce"],
    ),
    "a container is not billed": (
        ["yarn-1", "bill", "rows", 0, "containers"],
        1,
        ["bill of yarn-1: MapReduce"],
    ),
    "no job is billed": (
        ["yarn-2", "bill_forgotten", "rows"],
        [],
        ["bill_forgotten of yarn-2: MapReduce", "bill_forgotten of yarn-2: Spark"],
    ),
    "an unknown job is billed": (
        ["yarn-1", "bill", "rows", 0, "keys"],
        ["other"],
        ["bill of yarn-1: MapReduce", "bill of yarn-1: Spark"],
    ),
    "executors are not billed": (["yarn-1", "bill", "rows", 1, "containers"], 0, ["bill of yarn-1: Spark"]),
    "a peak is undershot": (["yarn-2", "jobs", 4, "peak_mib"], 321, ["peaks undershot"]),
    "completion is off": (
        ["as-it-was", "yarn-2", "as_it_was", "completion_off_ratio"],
        0.051,
        ["as it was: completion"],
    ),
    "preemption is off": (
        ["as-it-was", "yarn-2", "as_it_was", "preempted_off_ratio"],
        0.051,
        ["as it was: preempted"],
    ),
    "no prediction": (["sealed", "prediction"], None, ["predicted under mix"]),
    "another prediction is judged": (["sealed", "sha256"], "0" * 64, ["predicted under mix"]),
    "mix began before the seal": (["mix", "sealed_sha256"], "", ["predicted under mix"]),
}


@pytest.mark.parametrize("case", BREAKING)
def test_each_claim_can_be_broken(case: str) -> None:
    path, value, claims = BREAKING[case]
    parts = holding()
    place: Any = parts
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert broken(parts) == claims


def changed(part: str, **fields: Any) -> dict[str, dict[str, Any]]:
    parts = copy.deepcopy(holding())
    for each in parts[part]["jobs"]:
        each |= fields
    return parts


def test_advice_that_finds_too_little_and_none_at_all_are_seen() -> None:
    assert broken(changed("yarn-2", requested_mib=448)) == ["slack found"]
    assert broken(changed("yarn-2", requested_mib=768)) == ["peaks undershot", "slack found"]


def test_a_prediction_that_is_off_and_one_that_leaves_jobs_out_are_seen() -> None:
    parts = holding()
    for row in parts["sealed"]["prediction"]["jobs"]:
        row["predicted_ms"] = round(row["predicted_ms"] * 1.09)
    seal(parts)
    assert broken(parts) == ["predicted under mix"]
    parts = holding()
    del parts["sealed"]["prediction"]["jobs"][0]
    seal(parts)
    assert broken(parts) == ["predicted under mix"]


@pytest.mark.parametrize(
    ("least_ms", "most_ms", "claims"),
    [
        (-1, 0, ["when: ends covered"]),  # none ends inside
        (-(10**7), 10**7, ["when: ends covered", "when: median width"]),  # all do, of intervals of hours
    ],
)
def test_intervals_that_miss_and_that_say_nothing_are_seen(
    least_ms: int, most_ms: int, claims: list[str]
) -> None:
    parts = holding()
    for part in ("yarn-2", "mix"):
        for each in parts[part]["jobs"]:
            at_ms = each["submitted_ms"]
            each["ends"] |= {"least_at_ms": at_ms + least_ms, "most_at_ms": at_ms + most_ms}
    assert broken(parts) == claims


def test_a_seal_is_the_same_after_the_file_was_read_again(tmp_path: Path) -> None:
    prediction = {"jobs": [{"job": "a", "predicted_ms": 7, "ratio": 0.1 + 0.2}], "status": 0}
    keep(tmp_path / "week.json", Week({"commit": "c", "uncommitted": []}, parts={"sealed": prediction}))
    again = gone_on(tmp_path / "week.json", Week({"commit": "c", "uncommitted": [], "kind": ""}))
    assert seal_of(again.parts["sealed"]) == seal_of(prediction)


def test_fewer_than_fifty_jobs_show_nothing() -> None:
    parts = holding()
    for each in parts["mix"]["jobs"][:11]:
        del each["ends"]
    assert broken(parts) == ["when: ends covered"]
