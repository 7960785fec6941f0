"""The emulator's spark-submit and flink: what they read of the words, and what they refuse."""

from __future__ import annotations

import pytest

from emulator.live.jobs.black_box import FLINK, SPARK, flink_box, spark_box
from yarnctl.errors import BadInput
from yarnctl.frameworks.flink import submission as flink
from yarnctl.frameworks.spark import submission as spark

SPARK_WORDS = ["--master", "yarn", "--deploy-mode", "cluster"]
FLINK_WORDS = ["run-application", "-t", "yarn-application"]
TAGS = ["deadline:1900000000000", "yarnctl-admission-adm-1-7"]


def test_a_black_box_of_spark():
    words = ["--num-executors", "4", "--conf", "spark.yarn.queue=etl", "--class", "Main", "--verbose"]
    box = spark_box([*SPARK_WORDS, *words, "modelled:2+24", "--queue", "no-option"])
    assert (box.kind, box.name, box.queue, box.executors) == (SPARK, "Main", "etl", 4)
    job = box.job("ann").job
    assert (job.map_ms, job.reduce_ms, job.user, job.queue) == ((8_000,) * 4, (), "ann", "etl")
    assert spark_box([*SPARK_WORDS, "modelled:0+1"]).executors == 2  # as Spark has it


def test_a_black_box_of_flink():
    words = ["-p", "5", "-DtaskManager.x=1", "-D", "taskmanager.numberOfTaskSlots=2", "-Dyarn.tags=a, b"]
    box = flink_box([*FLINK_WORDS, *words, "modelled:1.5+6", "-p", "9"])
    assert (box.kind, box.executors, box.tags) == (FLINK, 3, ("a", "b"))
    assert box.job("ann").job.map_ms == (3_500,) * 3


def test_what_yarnctl_writes_is_read_as_it_was_meant():
    job = spark.command_of(["spark-submit", *SPARK_WORDS, "--name", "daily", "modelled:2+24"])
    more, _ = spark.settled(job.settings(), spark.given(4), TAGS)
    box = spark_box(job.words(more | {"spark.yarn.queue": "etl"})[1:])
    assert (box.executors, box.tags, box.queue, box.name) == (3, tuple(TAGS), "etl", "daily")
    other = flink.command_of(["flink", *FLINK_WORDS, "-Dyarn.tags=mine", "modelled:2+24"])
    more, _ = flink.settled(other.settings(), flink.given(4), TAGS)
    seen = flink_box(other.words(more)[1:])
    assert (seen.executors, seen.tags) == (3, ("mine", *TAGS))


@pytest.mark.parametrize(
    ("words", "said"),
    [([*SPARK_WORDS, "job.py"], "job.py: is not modelled:SECONDS"), (SPARK_WORDS, "is not modelled:SECONDS"),
     ([*SPARK_WORDS, "--num-executors", "0", "modelled:1+1"], "instances=0: is not a count"),
     ([*SPARK_WORDS, "--name"], "--name: its value is missing")],
)  # fmt: skip
def test_what_is_no_application_is_refused(words, said):
    with pytest.raises(BadInput) as refused:
        spark_box(words)
    assert said in str(refused.value)
    with pytest.raises(BadInput, match="runs applications only"):
        flink_box(["list"])


@pytest.mark.parametrize("route", ["signal", "plugin"])
def test_an_application_of_spark_whose_tags_let_executors_leave_has_a_driver(route):
    tags = f"spark.yarn.tags=daily,yarnctl-drain:{route}"
    settings = ("--conf", tags, "--conf", "spark.decommission.enabled=true")
    box = spark_box([*SPARK_WORDS, *settings, "modelled:2+3"])
    found = box.job("ann", {"YARNCTL_REQUESTS": "webhdfs://h:1/r"})
    assert (found.job.map_ms, found.job.reduce_ms) == ((1000,) * 3, (2000,))
    assert found.job.spark
    assert (found.job.spark.executors, found.job.spark.route) == (2, route)
    assert found.settings["spark.decommission.enabled"] == "true", "its driver tells its settings"
    assert found.cmdenv == {"YARNCTL_REQUESTS": "webhdfs://h:1/r"}
    assert not box.job("ann").cmdenv
