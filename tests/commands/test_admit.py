"""``yarnctl admit``: what is asked, what is waited for, and what runs in the end; against a played daemon."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading

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
    page,
    request,
    run_admit,
)
from tests.unit.hadoop.replaying import Heard, Reply, closed_port
from yarnctl.cli import PROGRAM
from yarnctl.cli.admissions import clock, instant_of, span_of, span_words
from yarnctl.command_line import exit_status_of
from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce.submission import command_of, most_containers, settled


def test_what_the_command_says_is_asked_and_what_the_gate_gives_is_in_the_command(capsys):
    with Daemon(ADMITTED) as daemon:
        assert (
            admit(daemon, "--print", "--deadline", "10m", "--user", "ann", "--", *JOB, *SIZED, *OPTIONS) == 0
        )
    asked = daemon.asked()
    assert (asked["name"], asked["user"], asked["queue"]) == ("daily", "ann", "default")
    assert (asked["containers"], asked["deadline_ms"]) == (41, 600_000)  # 40 maps and a master
    assert len(asked["request_key"]) == 32
    line = shlex.split(capsys.readouterr().out)
    assert line[:3] == list(JOB)
    assert line[-len(SIZED) - len(OPTIONS) :] == [*SIZED, *OPTIONS]
    given = dict(pair.split("=", 1) for pair in line[4 : -len(SIZED) - len(OPTIONS) : 2])
    assert given == SETTINGS | {"mapreduce.job.tags": ",".join(TAGS)}


def test_a_lost_answer_asks_nothing_twice():
    lost = Reply("", cut=0, raw=b"HTTP/1.1 202 OK\r\nContent-Le")
    late = Reply(
        '{"error":{"code":"not-written","message":"the loop did not come to it","next":"repeat"}}', 503
    )
    with Daemon(lost, late, ADMITTED) as daemon:
        assert admit(daemon, "--print", "--deadline", "10m", "--", *JOB, *SIZED, *OPTIONS) == 0
    asked = [json.loads(one.body) for one in daemon.heard if one.method == "POST"]
    assert (len(asked), len({one["request_key"] for one in asked})) == (3, 1)


def test_it_waits_says_for_what_and_then_runs_the_command_itself(tmp_path):
    """The whole program: nothing of it is left when the command runs, and no shell reads the command."""
    said = tmp_path / "said"
    program = tmp_path / "hadoop"
    program.write_text(f'#!/bin/sh\nfor word; do echo "$word"; done > {said}\nexit 7\n')
    program.chmod(0o755)
    other = admission("waiting", "defer", "needs 12 containers, 9 free now")
    odd = ("-mapper", "cat; touch $HOME/x `id`")
    with Daemon(WAITING, WAITING, other, ADMITTED) as daemon:
        done = run_admit(daemon, tmp_path, *odd)
    assert done.returncode == 7, done.stderr
    assert daemon.calls() == ["POST ", *[f"POST /{ID}/renew"] * 3]
    waits = [line for line in done.stderr.splitlines() if line.startswith(f"waiting: {ID}")]
    assert [("3 free" in line, "9 free" in line) for line in waits] == [(True, False), (False, True)]
    assert said.read_text().splitlines()[-len(OPTIONS) - 2 :] == [*OPTIONS, *odd]


def test_without_waiting_a_deferred_job_leaves_with_75_and_its_plan_and_withdraws(capsys):
    with Daemon(WAITING) as daemon:
        assert admit(daemon, "--no-wait", "--deadline", "10m", "--", "sh", *JOB[1:], *SIZED, *OPTIONS) == 75
    assert daemon.calls() == ["POST ", f"POST /{ID}/renew", f"DELETE /{ID}"]
    told = capsys.readouterr()
    (line,) = told.out.splitlines()
    assert line.startswith("deferred: ")
    assert "needs 12 containers, 3 free now" in line
    assert told.err == ""


def test_a_rejected_job_is_told_what_would_do(capsys):
    rejected = admission("rejected", "reject", "it needs 41 containers, there are 40", 0)
    with Daemon(rejected) as daemon:
        assert admit(daemon, "--print", "--deadline", "1m", "--", *JOB, *SIZED, *OPTIONS) == 1
        said = capsys.readouterr().err
        assert admit(daemon, "--print", "--deadline", "1m", "-o", "json", "--", *JOB, *SIZED, *OPTIONS) == 1
        assert json.loads(capsys.readouterr().out)["state"] == "rejected"
    assert "error: rejected: daily" in said
    assert "it needs 41 containers, there are 40" in said
    assert (
        "submit earlier, or use a later deadline (history:3 runs of daily: about 2 min on 40 containers)"
        in said
    )
    short = admission("rejected", "reject", request=rejected["request"] | {"deadline_ms": 60_000})
    with Daemon(short) as daemon:
        assert admit(daemon, "--print", "--deadline", "1m", "--", *JOB, *SIZED, *OPTIONS) == 1
    assert "use a deadline of at least 2 min" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_who_leaves_withdraws(number, status, tmp_path):
    waits = threading.Event()

    class Patient(Daemon):
        def _answered(self, heard: Heard) -> Reply:
            if heard.path.endswith("/renew"):
                waits.set()
                self.stopping.wait(30)  # a long poll
            return super()._answered(heard)

    with Patient(WAITING) as daemon:
        words = ["admit", "--url", daemon.url, "--deadline", "10m", "--", "sh", *JOB[1:], *SIZED, *OPTIONS]
        heeded = (
            f"import signal; signal.signal({int(number)}, signal.default_int_handler)"  # also under nohup
        )
        code = f"{heeded}; from yarnctl.cli import main; main({words!r})"
        program = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        assert waits.wait(60)
        program.send_signal(number)
        _, said = program.communicate(timeout=60)
        daemon.stopping.set()
    assert program.returncode == status, said
    assert said.splitlines()[-1].endswith(f"; {ID}: withdrawn")
    assert f"DELETE /{ID}" in daemon.calls()
    assert "Traceback" not in said


def test_nobody_there_is_3_and_a_gate_that_is_off_2(capsys):
    words = ("--print", "--deadline", "10m", "--", *JOB, *SIZED, *OPTIONS)
    assert exit_status_of(PROGRAM, ["admit", "--url", f"http://127.0.0.1:{closed_port()}", *words]) == 3
    assert "waiting" not in capsys.readouterr().err
    off = Reply('{"error":{"code":"gate-off","message":"there is no gate","next":"--admission"}}', 409)
    with Daemon(off) as daemon:
        assert admit(daemon, *words) == 2
    assert "there is no gate; --admission" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--deadline", "10m", "--", "sh", "-c", "true"),
         "sh: admission supports Hadoop streaming, spark-submit and flink only"),
        (("--", *JOB, *SIZED, *OPTIONS), "--deadline: is missing"),
        (("--deadline", "soon", "--", *JOB, *SIZED, *OPTIONS), "'soon' is not a duration"),
        (("--deadline", "0m", "--", *JOB, *SIZED, *OPTIONS), "is not above 0"),
        (("--deadline-at", "yesterday", "--", *JOB, *SIZED, *OPTIONS), "'yesterday' is not an instant"),
        (("--deadline-at", "2001-01-01", "--", *JOB, *SIZED, *OPTIONS), "00:00:00 is in the past"),
        (("--deadline", "1m", "--deadline-at", "2100-01-01", "--", *JOB, *SIZED, *OPTIONS),
         "is given 2 times"),
        (
            ("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.tags=x,deadline:1900000000", *SIZED,
             *OPTIONS),
            "is given 2 times",
        ),
        (("--deadline", "1m", "--name", "other", "--", *JOB, *SIZED, *OPTIONS), "differs from 'daily'"),
        (
            ("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.tags=yarnctl-admission-adm-1", *SIZED,
             *OPTIONS),
            "reserved for the daemon",
        ),
        (
            ("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.tags=" + ",".join("abcdefghi"), *SIZED,
             *OPTIONS),
            "YARN accepts 10",
        ),
        (("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.maps=many", *OPTIONS),
         "is not a whole number"),
        (("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.name=new", *OPTIONS), "add --containers N"),
        (("--deadline", "1m", "--", "yarnctl", "wrap", "--", *JOB, *SIZED, *OPTIONS), "without --exec"),
        (("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.running.map.limit=12", *SIZED, *OPTIONS),
         "mapreduce.job.running.map.limit=12: is not between 1 and the granted 11"),
        (("--deadline", "1m", "--", *JOB, "-D", "mapreduce.job.running.reduce.limit=0", *SIZED, *OPTIONS),
         "mapreduce.job.running.reduce.limit=0: is not between 1 and the granted 11"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_name(words, said, capsys):
    with Daemon(ADMITTED) as daemon:
        assert admit(daemon, "--print", *words) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("error: ")
    assert said in told
    if "was granted" in said:
        assert daemon.calls()[-1] == f"DELETE /{ID}"  # what nobody will take is given back


def test_a_program_that_is_not_there_asks_for_nothing(capsys):
    with Daemon(ADMITTED) as daemon:
        words = ("--deadline", "1m", "--", "no-such-hadoop", *JOB[1:], *SIZED, *OPTIONS)
        assert admit(daemon, *words) == 2
    assert "no-such-hadoop: program not found" in capsys.readouterr().err
    assert daemon.heard == []


def test_the_last_run_says_how_many_containers_where_the_command_does_not():
    runs = [
        admission("ended", "admit", request=request(name, number))
        for name, number in (("other-1", 3), ("new-8", 17), ("new-7", 5))
    ]
    named = ("-D", "mapreduce.job.name=new-9")
    with Daemon(ADMITTED, seen=page(*runs, gate=None)) as daemon:
        assert (
            admit(daemon, "--print", "--deadline", "1m", "--user", "ann", "--", *JOB, *named, *OPTIONS) == 0
        )
    assert daemon.asked()["containers"] == 17
    assert daemon.heard[0].query == {"user": "ann", "limit": "500"}


# --- the command line, taken apart --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("front", "claim"),
    [
        (("mapred", "streaming"), "the short form"),
        (("yarnctl", "wrap", "--restartable", "--exec", "--", *JOB), "the task runner is put in afterwards"),
        (("env", "HADOOP_USER_NAME=ann", *JOB), "something in front"),
    ],
)
def test_whatever_stands_in_front_stays_there(front, claim):
    job = command_of([*front, *SIZED, *OPTIONS])
    line = job.words({"a.b": "1"})
    assert line == [*front, "-D", "a.b=1", *SIZED, *OPTIONS], claim
    assert most_containers(job.settings()) == 41


def test_the_user_s_own_settings_stay():
    own = ["-Dmapreduce.job.running.map.limit=5", "-jobconf", "mapreduce.job.tags=etl,deadline:1900000000"]
    job = command_of([*JOB, *own, *SIZED, *OPTIONS])
    more, notes = settled(job.settings(), SETTINGS, TAGS)
    line = job.words(more)
    assert "-Dmapreduce.job.running.map.limit=5" in line
    assert not [word for word in line if word == "mapreduce.job.running.map.limit=11"]
    assert [word for word in line if "tags" in word] == [f"mapreduce.job.tags=etl,{','.join(TAGS)}"]
    assert notes == []
    assert most_containers(job.settings()) == 9  # 5 maps at once, 8 reduces, and a master
    slow = {"mapreduce.job.reduce.slowstart.completedmaps": "0.5"}
    more, notes = settled(slow, SETTINGS, TAGS)
    assert "mapreduce.job.reduce.slowstart.completedmaps" not in more
    assert "is kept" in notes[0]


def test_names_of_older_hadoop_count():
    old = ("-D", "mapred.job.name=daily", "-D", "mapred.job.queue.name=etl", "-D", "mapred.map.tasks=9")
    settings = command_of([*JOB, *old, *OPTIONS]).settings()
    assert (settings["mapreduce.job.name"], settings["mapreduce.job.queuename"]) == ("daily", "etl")
    assert most_containers(settings) == 10


def test_reduces_are_known_by_any_of_their_names():
    for words in (
        ("-numReduceTasks", "50"),
        ("-D", "mapred.reduce.tasks=50"),
        ("-Dmapreduce.job.reduces=50",),
    ):
        job = command_of([*JOB, *SIZED[:4], *words, *OPTIONS])
        assert most_containers(job.settings()) == 51, words
    assert most_containers(command_of([*JOB, *OPTIONS]).settings()) is None


def test_the_emulator_s_own_submission():
    words = ["yarn-emulator", "submit", "--rm", "http://h:1", "--name=daily", "--queue", "production"]
    rest = [
        "-D", "mapreduce.job.maps=3", "--restartable", "--user", "ann", "--reduces", "4", "--mapper", "cat",
    ]  # fmt: skip
    job = command_of([*words, *rest])
    assert job.settings()["mapreduce.job.name"] == "daily"
    assert job.settings()["mapreduce.job.queuename"] == "production"
    assert job.user_option == "ann"
    assert most_containers(job.settings()) == 5
    line = job.words({"mapreduce.job.tags": "deadline:1"})
    assert line[:4] == ["yarn-emulator", "submit", "-D", "mapreduce.job.tags=deadline:1"]
    for more, said in (
        (["--deadline", "9"], "is set by yarnctl admit"),
        (["--workload", "x"], "submits several jobs"),
    ):
        with pytest.raises(BadInput, match=said):
            command_of([*words, *rest, *more])


@pytest.mark.parametrize(
    ("text", "span_ms"),
    [("90s", 90_000), ("1d12h", 129_600_000), ("15m", 900_000), ("1h30m", 5_400_000), ("2d", 172_800_000)],
)
def test_spans(text, span_ms):
    assert span_of("--deadline", text) == span_ms


@pytest.mark.parametrize(
    ("text", "said"),
    [("1h30", "'1h30' ends in a number without a unit; use for example 90s, 15m, 1h30m or 2d"),
     ("5", "'5' ends in a number without a unit"), ("1.5h", "'1.5h' is not a whole number of a unit"),
     ("1,5h", "'1,5h' is not a whole number of a unit"),
     ("99999999999d", "'99999999999d' exceeds the maximum of 366 days"),
     ("15min", "'15min' is not a duration; use for example"), ("30m1h", "is not a duration; use for example"),
     ("", "is not a duration"), ("-5m", "is not a duration"), ("0h0m", "is not above 0")],
)  # fmt: skip
def test_what_is_no_span_is_refused_with_what_is_wrong(text, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        span_of("--deadline", text)


def test_instants():
    for text in ("1900000000", "1900000000000", "2030-03-17T17:46:40Z", "2030-03-17T18:46:40+01:00"):
        assert instant_of("--deadline-at", text) == 1_900_000_000_000, text
    assert [span_words(ms) for ms in (1, 119_000, 120_001, 7_200_000)] == [
        "1 s",
        "119 s",
        "3 min",
        "2 h 0 min",
    ]
    assert span_words(366 * 86_400_000) == "366 days"
    assert clock(1_700_000_000_999)[-2:] == "20"
    assert clock(1_700_000_000_999).startswith("2023-11-1"), "with the date, as it is not today"
    assert clock(10**30) == str(10**30)
