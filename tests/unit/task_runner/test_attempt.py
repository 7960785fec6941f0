"""An attempt's status lines, what forbids its suspension, what it makes at its start; without processes."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yarnctl.task_runner.runner import main
from yarnctl.task_runner.runner.attempt import AttemptState
from yarnctl.task_runner.runner.protocol.job_conf import Conf, read_settings
from yarnctl.task_runner.runner.protocol.manifests import TaskId
from yarnctl.task_runner.runner.protocol.stores import InvalidCheckpoint, LocalStore, StoreAway, Unusable
from yarnctl.task_runner.runner.reports import Errors
from yarnctl.task_runner.runner.saving import Suspending, WorkFolder

ENV = {
    "mapreduce_job_id": "job_1_0001",
    "mapreduce_task_id": "task_1_0001_r_000000",
    "mapreduce_task_attempt_id": "attempt_1_0001_r_000000_0",
    "mapreduce_reduce_speculative": "false",
    "USER": "alice",
}


def attempt_in(folder: Path) -> tuple[AttemptState, list[str]]:
    settings = read_settings(["--restartable"], {**ENV, "YARNCTL_STORE": f"file://{folder}"})
    errors, lines = Errors("reporter:"), list[str]()
    errors._line = lines.append  # type: ignore[method-assign,assignment]
    return AttemptState(settings, TaskId("j", "t", "a_0"), ["cat"], LocalStore(str(folder)), errors), lines


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize(
    ("phase", "told"), [("run", True), ("finish", True), ("hold", False), ("save", False)]
)
def test_the_speed_is_that_of_a_child_at_work(tmp_path, pipe, phase, told):
    attempt, lines = attempt_in(tmp_path)
    attempt.phase = "skip"
    attempt.lines.report_position()
    child: Any = SimpleNamespace(began_s=time.monotonic() - 1, begins_at=7, input=pipe[1])
    attempt.child, attempt.phase = child, phase
    attempt.lines.report_position()
    assert " ran=" not in lines[0]
    assert (" base=7" in lines[1]) is told
    if told:
        (ran,) = [word for word in lines[1].split() if word.startswith("ran=")]
        assert int(ran.removeprefix("ran=")) >= 1000


def test_what_the_child_has_not_read_is_not_done(tmp_path, pipe):
    attempt, _ = attempt_in(tmp_path)
    attempt.child, attempt.phase = SimpleNamespace(input=pipe[1]), "run"  # type: ignore[assignment]
    os.write(pipe[1], b"a\t1\nb")
    attempt.scanner.take(b"a\t1\nb\t1\n")
    assert attempt.done_bytes() == 3
    attempt.phase = "end"
    assert attempt.done_bytes() == 8


def test_keys_out_of_order_are_noted_once(tmp_path):
    attempt, lines = attempt_in(tmp_path)
    attempt.account(b"b\t1\na\t1\n")
    attempt.check_order()
    attempt.account(b"c\t1\n")
    assert lines == ["yarnctl: can no longer be suspended: keys are not sorted by bytes"]
    assert attempt.output.limit_bytes == -1
    assert attempt.scanner.bytes == 12


def test_keys_out_of_order_after_a_checkpoint_end_the_attempt(tmp_path):
    attempt, lines = attempt_in(tmp_path)
    attempt.resumed = True
    with pytest.raises(InvalidCheckpoint):
        attempt.account(b"b\t1\na\t1\n")
    assert not lines


def test_output_that_is_not_kept_and_counters_in_doubt_are_noted(tmp_path):
    attempt, lines = attempt_in(tmp_path)
    assert attempt.check_output()
    attempt.check_counters()
    assert not bool(attempt.why_not)
    attempt.errors.doubt = "odd digits"
    attempt.check_counters()
    assert attempt.why_not == "odd digits"
    attempt.output.failed = "No space left on device"
    assert not attempt.check_output()
    assert lines[-1].endswith("the output cannot be stored: No space left on device")


def test_a_waiting_store_and_an_order_are_named(tmp_path):
    attempt, lines = attempt_in(tmp_path)
    attempt.lines.report_waiting("safe mode")
    attempt.holders.update(first=1.0, last=2.0)
    attempt.back_ms, attempt.why_not = 1500, "side files"
    attempt.lines.report_position()
    assert lines[0] == "reporter:status:yarnctl phase=fetch groups=0 gen=0 waits for its store: safe mode"
    assert lines[1].endswith(" can=0 back=1500 order=last why=side files")


def test_the_task_s_folder_is_there_from_the_start(tmp_path):
    settings = read_settings(["--restartable"], {**ENV, "YARNCTL_STORE": f"file://{tmp_path}"})
    main.Runner(settings, TaskId("j", "t", "a_0"), ["cat"], {}).resuming.open_store()
    assert (tmp_path / "j/t").is_dir()


@pytest.mark.parametrize(("number", "waits"), [(0, False), (1, True)])
def test_open_store_waits_for_an_unavailable_store_where_the_attempt_may_resume(
    tmp_path, monkeypatch, number, waits
):
    """A first attempt has no checkpoint to wait for: its reducer runs at once."""
    away, make_folder = [StoreAway("safe mode")], LocalStore.make_folder

    def made(store, path):
        if away:
            raise away.pop()
        make_folder(store, path)

    monkeypatch.setattr(LocalStore, "make_folder", made)
    given = ["--restartable", "--store-wait-s", "0.01"]
    settings = read_settings(given, {**ENV, "YARNCTL_STORE": f"file://{tmp_path}"})
    resuming = main.Runner(settings, TaskId("j", "t", f"a_{number}"), ["cat"], {}).resuming
    with nullcontext() if waits else pytest.raises(StoreAway):
        resuming.open_store()
    assert (tmp_path / "j/t").is_dir() is waits


@pytest.mark.parametrize("status", [None, -15], ids=["ignores the signal", "has ended"])
def test_end_child_first_kills_the_child_before_the_runner(monkeypatch, status):
    sent: list[tuple[str, int]] = []
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", lambda number, handler: handlers.setdefault(number, handler))
    monkeypatch.setattr(os, "kill", lambda _, number: sent.append(("runner", number)))
    process = SimpleNamespace(poll=lambda: status)
    child = SimpleNamespace(process=process, kill=lambda number: sent.append(("child", number)))
    runner: Any = SimpleNamespace(attempt=SimpleNamespace(child=child))
    main.end_child_first(runner)
    handlers[signal.SIGTERM](signal.SIGTERM, None)
    assert sent == [("child", signal.SIGTERM), ("child", signal.SIGKILL), ("runner", signal.SIGTERM)]


def test_a_system_without_poll_leaves_the_reducer_alone(tmp_path, monkeypatch):
    monkeypatch.delattr(select, "poll")
    with pytest.raises(Unusable, match="does not support poll"):
        main.prepare(["--restartable"], ["cat"], {**ENV, "YARNCTL_STORE": f"file://{tmp_path}"})


def test_before_the_output_is_drained_side_files_are_seen_and_a_missing_part_is_not(tmp_path):
    attempt, _ = attempt_in(tmp_path)
    conf = Conf({"mapreduce_task_output_dir": f"file:{tmp_path}/out", "mapreduce_task_partition": "0"})
    unused: Any = None
    suspending = Suspending(attempt, WorkFolder(conf, attempt.store), unused, unused, unused)
    (tmp_path / "out").mkdir()
    assert suspending._why_not_here(seen=False) == ""
    assert "is missing" in suspending._why_not_here(seen=True)
    (tmp_path / "out/side").touch()
    assert "side files would be lost: side" in suspending._why_not_here(seen=False)
    assert "side files" in attempt.why_not
