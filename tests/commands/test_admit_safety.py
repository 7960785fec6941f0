"""``yarnctl admit`` where not all is as it should be: a foreign gate, a full one, a job of somebody else."""

from __future__ import annotations

import threading
import time

import pytest

from tests.unit.gate_played import (
    ADMITTED,
    ID,
    JOB,
    OPTIONS,
    SETTINGS,
    SIZED,
    TAGS,
    WAITING,
    Daemon,
    admission,
    admit,
    run_admit,
)
from yarnctl.cli import gate_asking
from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce.submission import command_of, settled


@pytest.mark.parametrize(
    ("given", "tags", "named"),
    [
        ({"mapreduce.map.env": "X=1"}, TAGS, "mapreduce.map.env"),
        ({"yarn.app.mapreduce.am.command-opts": "-agentlib"}, TAGS, "command-opts"),
        ({**SETTINGS, "mapreduce.job.running.map.limit": "11 -D x=y"}, TAGS, "running.map.limit"),
        ({"mapreduce.job.reduce.slowstart.completedmaps": "all"}, TAGS, "slowstart"),
        (SETTINGS, [*TAGS, "billing:somebody-else"], "billing"),
        (SETTINGS, ["deadline:1900000000000,other"], "deadline:1900000000000,other"),
    ],
)
def test_who_answers_at_the_address_sets_nothing_else_in_the_users_name(given, tags, named):
    with pytest.raises(BadInput, match="was granted, which a daemon does not do") as refused:
        settled({}, given, tags)
    assert named in str(refused.value)


def test_a_foreign_answer_runs_nothing_and_is_given_back(capsys):
    foreign = admission("admitted", "admit", settings={**SETTINGS, "mapreduce.map.java.opts": "-Xbad"})
    with Daemon(foreign) as daemon:
        assert admit(daemon, "--print", "--deadline", "10m", "--", *JOB, *SIZED, *OPTIONS) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "'mapreduce.map.java.opts' was granted, which a daemon does not do" in said.err
    assert daemon.calls()[-1] == f"DELETE /{ID}"


def test_who_is_answered_at_once_does_not_ask_at_once_again(monkeypatch):
    paused: list[float] = []

    class Pace(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            paused.append(timeout or 0.0)
            return False

    begin = gate_asking.GateRequest.begin

    def beginning(asking: gate_asking.GateRequest, *given: bool) -> object:
        asking._interval_s = Pace()
        return begin(asking, *given)

    monkeypatch.setattr(gate_asking.GateRequest, "begin", beginning)
    with Daemon(WAITING, WAITING, WAITING, ADMITTED) as daemon:
        assert admit(daemon, "--print", "--deadline", "10m", "--", *JOB, *SIZED, *OPTIONS) == 0
    assert paused == [gate_asking.PAUSE_S] * 2


def test_what_runs_ends_when_nobody_reads_its_output_any_more(tmp_path):
    """Python ignores SIGPIPE, and a program would inherit that."""
    program = tmp_path / "hadoop"
    program.write_text("#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    program.chmod(0o755)
    with Daemon(ADMITTED) as daemon:
        done = run_admit(daemon, tmp_path)
    ignored = int(done.stdout.split()[-1], 16)
    assert ignored & (1 << 12) == 0, done.stdout


@pytest.mark.parametrize("by", [("--deadline-at", "{}"), ("--queue", "default")])
def test_an_instant_is_asked_for_as_the_span_that_is_left(by):
    """As an option, or as the user's own tag."""
    at_s = int(time.time()) + 3_600
    own = ("-D", f"mapreduce.job.tags=deadline:{at_s}") if by[0] == "--queue" else ()
    with Daemon(ADMITTED) as daemon:
        words = (by[0], by[1].format(at_s), "--", *JOB, *own, *SIZED, *OPTIONS)
        assert admit(daemon, "--print", *words) == 0
    assert 0 < daemon.asked()["deadline_ms"] <= 3_600_000


def test_a_name_in_front_of_the_command_is_whose_job_it_is(monkeypatch, capsys):
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    front = ("env", "HADOOP_CONF_DIR=/conf", "HADOOP_USER_NAME=bob")
    with Daemon(ADMITTED) as daemon:
        assert admit(daemon, "--print", "--deadline", "10m", "--", *front, *JOB, *SIZED, *OPTIONS) == 0
        assert daemon.asked()["user"] == "bob"
        assert (
            admit(
                daemon, "--print", "--deadline", "10m", "--user", "eve", "--", *front, *JOB, *SIZED, *OPTIONS
            )
            == 2
        )
    assert "--user: 'eve' differs from 'bob' in the command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("front", "said"),
    [
        (("env", "-i", "HADOOP_USER_NAME=bob"), "env -i: hides the job's user"),
        (("nice", "env", "-u", "HADOOP_USER_NAME"), "env -u: hides the job's user"),
        (("/usr/bin/env", "--unset=HADOOP_USER_NAME"), "env --unset: hides"),
        (("sudo", "-u", "bob"), "sudo: runs the job as a user other than the one of the request"),
    ],
)
def test_what_hides_whose_job_it_is_is_refused(front, said):
    with pytest.raises(BadInput, match=said):
        command_of([*front, *JOB, *SIZED, *OPTIONS])


def test_what_is_called_like_a_name_behind_the_command_is_no_name():
    assert command_of([*JOB, *SIZED, "-cmdenv", "HADOOP_USER_NAME=eve", *OPTIONS]).user_option is None
