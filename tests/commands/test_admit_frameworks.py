"""``yarnctl admit`` with Spark and Flink: the dialect is chosen by the command, and named in the request."""

from __future__ import annotations

import shlex

import pytest

from tests.unit.gate_played import ADMITTED, ID, TAGS, Daemon, admission, admit, page, request

SPARK = ("spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "--class", "a.Daily", "x.jar", "/in")
FLINK = ("flink", "run-application", "-t", "yarn-application", "-c", "Main", "x.jar", "/in")
SPARK_GIVEN = {"spark.executor.instances": "3", "spark.dynamicAllocation.enabled": "false"}
FLINK_GIVEN = {"parallelism.default": "3", "taskmanager.numberOfTaskSlots": "1"}


def admitted(given: dict[str, str]) -> dict:
    return admission("admitted", "admit", containers=4, settings=given)


def test_an_application_of_spark_is_asked_for_by_its_kind_and_submitted_with_its_executors(capsys):
    with Daemon(admitted(SPARK_GIVEN)) as daemon:
        words = ("--print", "--deadline", "10m", "--containers", "5", "--user", "ann", "--queue", "etl", "--")
        assert admit(daemon, *words, *SPARK) == 0
    asked = daemon.asked()
    assert (asked["kind"], asked["name"], asked["queue"]) == ("spark", "a.Daily", "etl")
    assert (asked["containers"], asked["deadline_ms"]) == (5, 600_000)
    line = shlex.split(capsys.readouterr().out)
    settings = {**SPARK_GIVEN, "spark.yarn.tags": ",".join(TAGS), "spark.yarn.queue": "etl"}
    assert dict(pair.split("=", 1) for pair in line[2 : -len(SPARK) + 1 : 2]) == settings
    assert line[-len(SPARK) + 1 :] == list(SPARK[1:])


def test_a_budget_is_said_to_be_unused_where_deadlines_have_no_price(capsys):
    with Daemon(admitted(SPARK_GIVEN)) as daemon:
        words = ("--print", "--deadline", "10m", "--budget", "5", "--containers", "5", "--user", "ann", "--")
        assert admit(daemon, *words, *SPARK) == 0
    assert daemon.asked()["budget_mtokens"] == 5_000
    assert "note: this daemon does not price deadlines" in capsys.readouterr().err


def test_an_application_of_flink_likewise(capsys):
    with Daemon(admitted(FLINK_GIVEN)) as daemon:
        words = ("--print", "--deadline", "10m", "--name", "daily", "--user", "ann", "--")
        assert admit(daemon, *words, "flink", "run-application", "-p", "3", *FLINK[2:]) == 0
    asked = daemon.asked()
    assert (asked["kind"], asked["name"], asked["queue"], asked["containers"]) == (
        "flink",
        "daily",
        "default",
        4,
    )
    line = shlex.split(capsys.readouterr().out)
    assert "-Dyarn.application.name=daily" in line
    assert line[-8:] == ["-p", "3", *FLINK[2:]]


def test_mapreduce_is_asked_for_as_by_older_versions():
    streaming = ("hadoop", "jar", "s.jar", "-D", "mapreduce.job.maps=2", "-input", "/in", "-output", "/out")
    with Daemon(ADMITTED) as daemon:
        words = ("--print", "--deadline", "10m", "--", *streaming, "-mapper", "cat", "-reducer", "cat")
        assert admit(daemon, *words) == 0
    assert "kind" not in daemon.asked()


def test_the_last_run_of_the_same_kind_says_how_many_containers():
    runs = [
        admission("ended", "admit", request=request("a.Daily", 9)),
        admission("ended", "admit", request=request("a.Daily", 5) | {"kind": "spark"}),
    ]
    with Daemon(admitted(SPARK_GIVEN), seen=page(*runs, gate=None)) as daemon:
        assert admit(daemon, "--print", "--deadline", "10m", "--user", "ann", "--", *SPARK) == 0
    assert daemon.asked()["containers"] == 5


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (SPARK, SPARK_GIVEN, "add --containers N (executors plus 1 for the driver)"),
        (FLINK, FLINK_GIVEN, "add --containers N (TaskManagers plus 1 for the JobManager)"),
        ((*SPARK[:3], "x.py"), SPARK_GIVEN, "--deploy-mode: is missing"),
        ((*SPARK[:5], "--num-executors", "7", "x.py"), SPARK_GIVEN,
         "--num-executors 7: exceeds the granted 3"),
        ((*FLINK[:4], "-p", "7", "x.jar"), FLINK_GIVEN, "-p 7: exceeds the granted 3"),
        ((*SPARK[:5], "--num-executors", "3", "x.py"), {}, "grants no executors for Spark"),
        ((*SPARK[:5], "--queue", "a", "x.py"), SPARK_GIVEN, "--queue: 'b' differs from 'a' in the command"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_name(words, given, said, capsys):
    more = ("--queue", "b") if "--queue" in words else ()
    with Daemon(admitted(given)) as daemon:
        assert admit(daemon, "--print", "--deadline", "1m", *more, "--", *words) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    if "gives" in said:
        assert daemon.calls()[-1] == f"DELETE /{ID}"  # what nobody will take is given back
