"""``yarnctl admit``: what a user is told while he waits, and that nothing stays reserved that is not used."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading

import msgspec
import pytest

from tests.unit.gate_played import (
    ADMITTED,
    ID,
    JOB,
    OPTIONS,
    SIZED,
    WAITING,
    Daemon,
    admission,
    admit,
    gate,
    page,
)
from tests.unit.hadoop.replaying import Heard, Reply
from yarnctl.api.admission_answers import AdmissionOut
from yarnctl.cli import gate_asking
from yarnctl.cli.admit import StderrNotes

GONE = Reply("", raw=b"\r\n")
CUT = Reply("x" * 99, cut=3)
NOT_WRITTEN = Reply('{"error":{"code":"not-written","message":"the loop is late","next":"repeat"}}', 503)
TEN_MINUTES = ("--print", "--deadline", "10m", "--", *JOB, *SIZED, *OPTIONS)


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(gate_asking, "PAUSE_S", 0.01)


# --- a daemon that is away, or cannot ----------------------------------------------------------------


@pytest.mark.usefixtures("hasty")
def test_a_daemon_that_is_away_for_a_while_is_waited_for_and_that_is_said(capsys):
    with Daemon(WAITING, CUT, CUT, CUT, CUT, ADMITTED) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 0
    assert daemon.calls() == ["POST ", *[f"POST /{ID}/renew"] * 5]
    netloc = daemon.url.removeprefix("http://")
    first, *notes = capsys.readouterr().err.splitlines()
    assert first.startswith("waiting: ")
    assert notes == [
        f"note: {netloc} does not answer (connection closed before the answer was complete);"
        " retrying for 1 min",
        f"note: {netloc} answers again",
    ]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("lost", [GONE, CUT], ids=["no JSON", "cut"])
def test_a_daemon_that_dies_under_the_first_question_is_asked_again_with_the_same_key(lost, capsys):
    with Daemon(*[lost] * 6, ADMITTED) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 0
    asked = [json.loads(one.body)["request_key"] for one in daemon.heard if one.method == "POST"]
    assert (len(asked), len(set(asked))) == (7, 1)
    assert "retrying for 1 min" in capsys.readouterr().err


@pytest.mark.usefixtures("hasty")
def test_a_daemon_that_stays_away_is_3_in_words(monkeypatch, capsys):
    monkeypatch.setattr(gate_asking, "UNREACHABLE_S", 0.0)
    with Daemon(CUT) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 3
    told = capsys.readouterr().err
    assert "no answer (connection closed before the answer was complete)" in told
    assert not re.search(r"[A-Z][a-z]+(Error|Disconnected|Read)|[(]['\"]", told)


def test_a_price_that_moved_is_2_and_tells_what_each_deadline_costs_now(capsys):
    point = {"deadline_at_ms": 1_700_000_300_000, "price_mtokens": 48_200, "slack_ms": 0, "late_ratio": 0.05}
    quote = {
        "id": "quo-1f2e-7", "valid_until_ms": 1_700_000_060_000, "earliest_at_ms": 1_700_000_300_000,
        "account": "analytics", "balance_mtokens": 900_000, "points": [{**point, "because": []}],
    }  # fmt: skip
    error = {"code": "quote-moved", "message": "it costs more by now", "next": "choose from quote quo-1f2e-7"}
    with Daemon(Reply(json.dumps({"error": error, "quote": quote}), 409)) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 2
    told, said = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"quo-1f2e-7: done by .*\d\d:\d\d:\d\d.* for 48\.2 tokens", told)
    assert said.endswith("it costs more by now; choose from quote quo-1f2e-7")


@pytest.mark.usefixtures("hasty")
def test_it_says_why_the_daemon_cannot_take_the_request_yet(capsys):
    unknown = page(gate=gate(capacity=None, problem="queue nosuch is not known"))
    with Daemon(*[NOT_WRITTEN] * 4, ADMITTED, seen=unknown) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 0
    assert capsys.readouterr().err.splitlines() == [
        "waiting: request not recorded yet: queue nosuch is not known"
    ]
    with Daemon(NOT_WRITTEN, seen=unknown) as daemon:
        assert admit(daemon, "--no-wait", *TEN_MINUTES) == 75
    assert capsys.readouterr().out == "deferred: the loop is late\n"


def test_it_says_so_while_the_first_question_is_not_answered(monkeypatch):
    """Whoever asks sees why nothing happens; here the answer waits until he does."""
    monkeypatch.setattr(gate_asking, "SLOW_S", 0.01)
    told = threading.Event()
    said: list[str] = []

    class Heedful(StderrNotes):
        def waiting(self, problem: str) -> None:
            said.append(problem)
            told.set()

    class Slow(Daemon):
        def _answered(self, heard: Heard) -> Reply:
            if heard.method == "POST":
                told.wait(60)
            return super()._answered(heard)

    with Slow(ADMITTED, seen=page(gate=gate(capacity=None))) as daemon:
        assert gate_asking.GateRequest(daemon.url, {}, "key", Heedful()).begin().state == "admitted"
    assert said == ["cluster size not known yet"]


def test_what_the_gate_itself_waits_for_is_said_once_until_it_changes(capsys):
    seen = page(gate=gate(problem="the ResourceManager does not list the applications"))
    with Daemon(WAITING, WAITING, WAITING, ADMITTED, seen=seen) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("waiting: ")
    assert line.endswith("; the ResourceManager does not list the applications")


def test_what_no_round_has_decided_on_is_not_yet_told(capsys):
    fresh = admission("waiting", "defer", "the next round decides")
    fresh["plan"] = fresh["plan"] | {"reason_code": "undecided"}
    with Daemon(fresh, ADMITTED) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 0
        assert capsys.readouterr().err == ""
    with Daemon(fresh, fresh, ADMITTED) as daemon:
        assert admit(daemon, *TEN_MINUTES) == 0
    assert "waiting: " in capsys.readouterr().err


def test_a_new_name_under_the_oracle_is_told_what_helps(capsys):
    unknown = admission("rejected", "reject", "nobody knows how much it computes", 0)
    unknown["request"] = unknown["request"] | {"estimate": None}
    for allocator, said in (("oracle", "run it once without"), ("justice", "use a later deadline")):
        with Daemon(unknown, seen=page(gate=gate(allocator))) as daemon:
            assert admit(daemon, *TEN_MINUTES) == 1
        told = capsys.readouterr().err
        assert said in told
        assert ("later deadline" in told) == (allocator != "oracle")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--dedline", "1m", "--", *JOB), "'--dedline'"),
        (("--dedline", "1m", "--", *JOB), "--deadline"),
        (("--deadline", "1m", "--no-wiat", "--", *JOB), "--no-wait"),
        (
            ("--deadline", "1m", "--", "--print", *JOB),
            "--print: is not a program; put options of yarnctl admit",
        ),
    ],
)
def test_a_mistyped_option_is_not_taken_for_the_command(words, said, capsys):
    with Daemon(ADMITTED) as daemon:
        assert admit(daemon, *words, *SIZED, *OPTIONS) == 2
    assert said in capsys.readouterr().err
    assert daemon.heard == []


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--name", "a\tb", r"--name: 'a\\tb' contains a control character ('\t')"),
        ("--name", "", "--name: is empty; use 1 to 200 characters"),
        ("--user", "u" * 101, "--user: has 101 characters; use 1 to 100"),
        ("--queue", "q\x7f", "contains a control character"),
    ],
)
def test_a_name_that_nobody_takes_is_refused_in_words(option, value, said, capsys):
    with Daemon(ADMITTED) as daemon:
        words = ("--print", "--deadline", "1m", "--containers", "3", option, value, "--", *JOB, *OPTIONS)
        assert admit(daemon, *words) == 2
    assert said in capsys.readouterr().err
    assert daemon.heard == []


# --- what is not used is given back, what is used is said ---------------------------------------------


def test_what_cannot_be_run_is_given_back(tmp_path, monkeypatch, capsys):
    program = tmp_path / "hadoop"
    program.write_bytes(b"\x7fELF, but not really")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with Daemon(ADMITTED) as daemon:
        assert admit(daemon, "--deadline", "1m", "--", *JOB, *SIZED, *OPTIONS) == 2
    assert daemon.calls() == ["POST ", f"DELETE /{ID}"]
    assert "error: hadoop: Exec format error" in capsys.readouterr().err


def test_what_cannot_be_told_is_given_back(monkeypatch):
    """Nobody reads the command that was to be printed."""

    def broken() -> None:
        raise BrokenPipeError

    with Daemon(ADMITTED) as daemon:
        monkeypatch.setattr(sys.stdout, "flush", broken)
        with pytest.raises(BrokenPipeError):
            admit(daemon, *TEN_MINUTES)
        monkeypatch.undo()
    assert daemon.calls() == ["POST ", f"DELETE /{ID}"]


def test_as_json_the_admission_is_one_line_on_stderr_before_the_command_runs(monkeypatch, capsys):
    ran: list[list[str]] = []

    def run(_: str, line: list[str]) -> None:
        ran.append(line)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvp", run)
    with Daemon(ADMITTED) as daemon, pytest.raises(SystemExit):
        admit(daemon, "-o", "json", "--deadline", "1m", "--", "sh", *JOB[1:], *SIZED, *OPTIONS)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert json.loads(line) == msgspec.to_builtins(msgspec.convert(ADMITTED, AdmissionOut))
    assert (told.out, len(ran)) == ("", 1)


def test_a_signal_that_is_ignored_stays_so():
    """Under nohup a terminal that closes ends nothing."""
    heard: list[object] = []

    class Curious(Daemon):
        def _answered(self, heard_now: Heard) -> Reply:
            heard.append(signal.getsignal(signal.SIGHUP))
            return super()._answered(heard_now)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Curious(ADMITTED) as daemon:
            assert admit(daemon, *TEN_MINUTES) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert heard[-1] is signal.SIG_IGN
