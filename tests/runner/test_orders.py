"""Holds and withdrawals: what the status line names, who ends a hold, and what is too late to save."""

from __future__ import annotations

import json

import pytest

from tests.runner.running import SUM, Job, python, withdraw_request, write_request
from yarnctl.frameworks.mapreduce.status_line import parse
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, TaskId, read_request
from yarnctl.task_runner.runner.protocol.stores import Unusable


def status_of(line: str):
    return parse(line.partition("status:")[2])


def test_every_line_of_a_hold_names_the_order(tmp_path):
    attempt = Job(tmp_path, {"mapreduce_task_timeout": "600"}).start(["cat"])  # a line every 100 ms
    attempt.until("phase=run")
    attempt.request("early")
    first = status_of(attempt.until("phase=hold"))
    assert (first.phase, first.order) == ("hold", "early")
    later = status_of(attempt.until("done="))
    assert (later.phase, later.order) == ("hold", "early")
    attempt.withdraw("early")
    assert status_of(attempt.until("phase=run")).order == ""
    attempt.feed(b"a\t1\n")
    assert attempt.finish() == (0, b"a\t1\n")


def test_a_second_request_has_a_hold_of_its_own(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(["cat"])
    attempt.until("phase=run")
    attempt.request("first", hold_ms=1)
    attempt.until("phase=run")  # a hold that is over
    attempt.request("second", hold_ms=600_000)
    attempt.until("phase=hold groups=0 gen=0 order=second")
    attempt.request("third", hold_ms=600_000)
    attempt.until("ckpt=unchanged gen=0 order=third")
    attempt.until("phase=hold groups=0 gen=0 order=third")
    attempt.withdraw("second")
    attempt.request("fourth", hold_ms=1)
    attempt.until("phase=hold groups=0 gen=0 order=fourth")
    attempt.until("phase=hold groups=0 gen=0 order=third")  # the fourth is over, the third still holds
    attempt.withdraw("third")
    attempt.until("phase=run")
    attempt.feed(b"a\t1\n")
    assert attempt.finish() == (0, b"a\t1\n")
    held = [line for line in attempt.log.decode().splitlines() if "phase=hold" in line]
    assert [status_of(line).order for line in held] == ["first", "second", "third", "fourth", "third"]


def test_a_request_that_was_withdrawn_during_another_hold_is_not_answered(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(["cat"])
    attempt.until("phase=run")
    attempt.request("first", hold_ms=600_000)
    attempt.until("phase=hold")
    withdraw_request(job.requests, attempt.task, "a-second")
    attempt.request("a-second")
    attempt.request("third")
    attempt.until("order=third")
    attempt.withdraw("third")
    attempt.withdraw("first")
    attempt.until("phase=run")
    assert attempt.finish()[0] == 0
    assert b"a-second" not in attempt.log


def test_a_withdrawal_in_the_middle_of_a_key_is_heard_before_the_work_is_saved(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(python(SUM))
    attempt.until("phase=run")
    attempt.feed(b"a\t1\nb\t1\n")
    assert attempt.stdout.readline() == b"a\t1\n"
    attempt.request("order-1")
    attempt.until("phase=finish")
    attempt.withdraw("order-1")
    folder = tmp_path / "store/requests" / attempt.task.job / attempt.task.attempt
    (folder / "z.request.json").write_text("torn")  # comes after the withdrawal, and is spoken of
    (folder / "z.request.json").chmod(0o600)
    attempt.ring()
    attempt.until("request rejected")
    attempt.feed(b"b\t2\nc\t3\n")
    assert attempt.finish() == (0, b"b\t3\nc\t3\n")
    assert b"phase=drain" not in attempt.log
    assert not job.manifests()


TASK = TaskId("job_1_0001", "task_1_0001_r_000000", "attempt_1_0001_r_000000_0")


@pytest.mark.parametrize("hold", ["1e999", "[" * 200_000, '"x"', "[]"])
def test_a_request_that_makes_no_sense_is_refused(hold):
    text = f'{{"schema":{SCHEMA},"order":"o","attempt":{json.dumps(TASK.attempt)},"hold_ms":{hold}}}'
    with pytest.raises(Unusable):
        read_request(text.encode(), "o.request.json", TASK)


def test_a_store_that_breaks_the_watcher_once_is_asked_again(tmp_path):
    """The folder of requests is a file for a while: odd, and no reason never to listen again."""
    job = Job(tmp_path)
    folder = tmp_path / "store/requests" / job.task(0).job
    folder.mkdir(parents=True, mode=0o700)
    (folder / job.task(0).attempt).write_text("no folder")
    attempt = job.start(["cat"], "--release-wait-ms", "0")
    attempt.until("yarnctl: ")
    (folder / job.task(0).attempt).unlink()
    write_request(job.requests, attempt.task, "order-1")
    attempt.until("ckpt=unchanged gen=0 order=order-1")
    assert attempt.finish()[0] == 0
