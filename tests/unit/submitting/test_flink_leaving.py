"""``yarnctl wrap --flink``: what is added to a command line, and what is refused by its name."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from yarnctl.cli.wrap import command
from yarnctl.errors import BadInput
from yarnctl.frameworks.flink.wrapping import wrap

BEFORE = "flink run-application -t yarn-application"
AFTER = "-c app.Count hdfs:///app.jar 120000"
OURS = (
    "-Djobmanager.scheduler=adaptive -Dslot.idle.timeout=2s -Dresourcemanager.taskmanager-timeout=2s"
    " -Djobmanager.adaptive-scheduler.scaling-interval.min=5s"
    " -Djobmanager.adaptive-scheduler.resource-stabilization-timeout=2s"
    " -Djobmanager.adaptive-scheduler.executing.cooldown-after-rescaling=5s"
    " -Djobmanager.adaptive-scheduler.submission.resource-stabilization-timeout=2s"
    " -Djobmanager.adaptive-scheduler.executing.resource-stabilization-timeout=2s"
    " -Djobmanager.adaptive-scheduler.rescale-trigger.max-delay=5s"
)
CHECKPOINTS = "-Dexecution.checkpointing.interval=2s"


def wrapped(more: str = "", min_executors: int = 1, *, batch: bool = False) -> tuple[str, list[str]]:
    words, notes = wrap(shlex.split(f"{BEFORE} {more} {AFTER}"), min_executors, batch)
    return shlex.join(words), notes


def test_a_streaming_job_gets_scheduler_time_outs_and_tag():
    line, notes = wrapped(CHECKPOINTS)
    assert line == (
        f"flink run-application {OURS} -Dyarn.tags=yarnctl-drain:rescale -t yarn-application"
        f" {CHECKPOINTS} {AFTER}"
    )
    assert notes == []


def test_the_users_tags_stay_and_so_does_what_fits():
    line, _ = wrapped("-Dyarn.tags=mine -Dslot.idle.timeout=1s", 3)
    assert "-Dyarn.tags=mine,yarnctl-drain:rescale,yarnctl-min-executors:3" in line
    assert line.count("slot.idle.timeout") == 1
    assert line.count("yarn.tags") == 1


def test_without_checkpoints_on_the_line_it_is_said():
    assert "checkpointing.interval" in wrapped()[1][0]


@pytest.mark.parametrize("how", [{"more": "-Dexecution.runtime-mode=BATCH"}, {"batch": True}])
def test_a_batch_job_gets_a_restart_strategy_and_no_tag(how):
    line, notes = wrapped(**how)
    assert "-Drestart-strategy.type=fixed-delay" in line
    assert "yarnctl" not in line
    assert "does not preempt" in notes[0]


REFUSED = [
    ("-Djobmanager.scheduler=default", "jobmanager.scheduler"),
    ("-Dslot.idle.timeout=50s", "slot.idle.timeout"),
    ("-Dresourcemanager.taskmanager-timeout=soon", "taskmanager-timeout"),
    ("-Dyarn.tags=yarnctl-drain:rescale", "wrapped already"),
    ("-Dyarn.tags=" + ",".join("abcdefghijkl"), "tags"),
]


@pytest.mark.parametrize(("more", "named"), REFUSED)
def test_what_contradicts_is_refused_by_name(more, named):
    with pytest.raises(BadInput, match=named):
        wrapped(more)


COMMANDS = [
    (["--flink", "--spark", "--", "flink"], "--spark"),
    (["--flink", "--plugin", "a.jar", "--", "flink"], "--plugin"),
    (["--batch", "--", "hadoop"], "--batch"),
    (["--flink"], "command line"),
    (["--flink", "--", "spark-submit"], "spark-submit"),
]


@pytest.mark.parametrize(("arguments", "named"), COMMANDS)
def test_options_of_others_are_refused(arguments, named):
    told = CliRunner().invoke(command, arguments)
    assert isinstance(told.exception, BadInput)
    assert named in str(told.exception)


def test_the_command_prints_the_line():
    told = CliRunner().invoke(command, ["--flink", "--", *shlex.split(f"{BEFORE} {CHECKPOINTS} {AFTER}")])
    assert told.output.strip() == wrapped(CHECKPOINTS)[0]
