"""The status line says how fast the child is, by the runner's own clock, and how long coming back took."""

from __future__ import annotations

import re

import pytest

from tests.runner.running import SUM, Job, grouped, python
from yarnctl.frameworks.mapreduce.status_line import Status, parse

DATA = grouped(60, 5)


def lines_of(attempt) -> list[Status]:
    texts = re.findall(r"status:(yarnctl phase=.*)", attempt.log.decode())
    return [status for text in texts if (status := parse(text)) is not None]


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path, {"mapreduce_task_timeout": "6000"})  # a line each second


def test_a_first_attempt_works_from_byte_0_and_has_not_come_back(job):
    attempt = job.start(["cat"])
    attempt.feed(b"a\t1\n")
    attempt.until("ran=")
    attempt.finish()
    told = [line for line in lines_of(attempt) if line.ran >= 0]
    assert {line.base for line in told} == {0}
    assert {line.phase for line in told} <= {"run", "finish"}
    assert {line.back for line in lines_of(attempt)} == {-1}


def test_a_resumed_attempt_says_how_long_it_took_and_works_from_where_it_was(job):
    job.run(DATA, python(SUM), "--suspend-at", "40", "--exit-when-saved")
    (manifest,) = job.manifests()
    attempt = job.start(python(SUM))
    attempt.feed(DATA)
    attempt.until("phase=run")
    attempt.until("ran=")
    attempt.finish()
    lines = lines_of(attempt)
    back = [line.back for line in lines if line.back >= 0]
    assert back
    assert len(set(back)) == 1  # measured once
    assert {line.phase for line in lines if line.back >= 0}.isdisjoint({"fetch", "skip", "replay"})
    assert {line.base for line in lines if line.ran >= 0} == {manifest.raw["input_bytes"]}


def test_after_a_hold_the_pace_is_that_of_the_new_child(job):
    attempt = job.start(["cat"])
    attempt.until("phase=run")
    attempt.feed(b"a\t1\nb\t1\n")
    attempt.until("ran=")
    attempt.request("order", hold_ms=1)
    attempt.until("phase=finish")
    attempt.feed(b"c\t1\nd\t1\n")
    attempt.until("ckpt=saved")
    attempt.until("phase=run")
    attempt.feed(b"e\t1\n")
    attempt.until("ran=")
    attempt.finish()
    held = [line for line in lines_of(attempt) if line.phase == "hold"]
    assert {line.ran for line in held} == {-1}
    assert lines_of(attempt)[-1].back == -1  # it went on in place: nobody came back
    bases = [line.base for line in lines_of(attempt) if line.base >= 0]
    assert bases[0] == 0
    assert bases[-1] > 0
