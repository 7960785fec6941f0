"""The task runner: undisturbed output whatever happens, answers in every phase, refusals with reasons."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.running import RUNNER, SUM, Job, grouped, python
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, EXIT_UNPROVABLE

SORTING = """
import sys
from itertools import groupby
lines = (line.rstrip(b"\\n").partition(b"\\t") for line in sys.stdin.buffer)
for key, group in groupby(lines, lambda parts: parts[0]):
    for value in sorted(parts[2] for parts in group):
        sys.stdout.buffer.write(key + b":" + value + b"\\n")
"""
COUNTING = """
import sys
for line in sys.stdin.buffer:
    sys.stderr.write("reporter:counter:mine,lines,1\\n")
    sys.stdout.buffer.write(line)
"""
FIRST_FIELD = """
import sys
from itertools import groupby
for key, group in groupby(sys.stdin.buffer, lambda line: line.split(b"\\t")[0]):
    sys.stdout.buffer.write(key + b" %d\\n" % sum(1 for _ in group))
"""
BINARY = b"".join(
    b"k%03d\t%s\n" % (at, bytes(b for b in range(256) if b != 10)) for at in range(50) for _ in "ab"
)
EMPTY_KEYS = b"\tx\n\ty\n\x01\t\na\n" + b"a\tz\n\xc3\xa4\tq\n\xff\xfe\t1\n\xff\xff"
SECONDARY = b"".join(b"g%03d\t%02d\tv%d\n" % (at, by, by) for at in range(60) for by in range(1 + at % 5))
LONG = b"".join(b"k%d\t%s\n" % (at, b"x" * (1_200_000 + at)) for at in range(6))
TWO_FIELDS = {"stream_num_map_output_key_fields": "2"}

CASES: dict[str, tuple[bytes, list[str], tuple[str, ...], dict[str, str]]] = {
    "sum": (grouped(300, 7), python(SUM), (), {}),
    "sorting within a key": (grouped(100, 20), python(SORTING), (), {}),
    "emitting nothing": (grouped(50, 3), python("import sys; sys.stdin.buffer.read()"), (), {}),
    "binary values": (BINARY, ["cat"], (), {}),
    "empty, short and foreign keys": (EMPTY_KEYS, ["cat"], (), {}),
    "secondary sort": (SECONDARY, python(FIRST_FIELD), ("--group-fields", "1"), TWO_FIELDS),
    "long lines": (LONG, ["cat"], (), {}),
    "shell pipeline": (grouped(200, 4), ["sh", "-c", "cut -f1 | uniq -c | cat"], (), {}),
    "awk": (grouped(200, 4), ["awk", "-F\t", "{print $1 NF}"], (), {}),
}


def undisturbed(data: bytes, reducer: list[str]) -> bytes:
    return subprocess.run(reducer, input=data, stdout=subprocess.PIPE, check=True).stdout


def groups_of(data: bytes, options: tuple[str, ...]) -> int:
    fields = 1  # every case groups by its first field
    keys = [tuple(line.split(b"\t")[:fields]) for line in data.split(b"\n") if line]
    return len(dict.fromkeys(keys))


@pytest.mark.parametrize("name", CASES)
def test_output_is_that_of_an_undisturbed_run(tmp_path, name):
    data, reducer, options, conf = CASES[name]
    wanted = undisturbed(data, reducer)
    draw = random.Random(name)
    groups = groups_of(data, options)
    for count in (1, min(5, groups - 1)):
        job = Job(tmp_path / str(count), conf)
        job.folder.mkdir()
        cuts = sorted(draw.sample(range(1, groups), count))
        for cut in cuts:
            status, _ = job.run(data, reducer, *options, "--suspend-at", str(cut), "--exit-when-saved")
            assert status == EXIT_SUSPENDED, job.stderr.decode()
        assert job.run(data, reducer, *options) == (0, wanted)
        assert [manifest.groups_done for manifest in job.manifests()] == cuts
        assert [manifest.generation for manifest in job.manifests()] == list(range(1, count + 1))


@pytest.mark.parametrize("name", CASES)
def test_going_on_in_place_changes_nothing(tmp_path, name):
    data, reducer, options, conf = CASES[name]
    cuts = ",".join(map(str, sorted(random.Random(name).sample(range(1, groups_of(data, options)), 3))))
    job = Job(tmp_path, conf)
    assert job.run(data, reducer, *options, "--suspend-at", cuts, "--release-wait-ms", "0") == (
        0,
        undisturbed(data, reducer),
    )
    assert len(job.manifests()) == 3


def test_values_of_a_key_may_come_in_another_order(tmp_path):
    data = grouped(40, 6)
    lines = data.splitlines(keepends=True)
    random.Random(4).shuffle(lines)
    other = b"".join(sorted(lines, key=lambda line: bytes(line).split(b"\t")[0]))
    assert other != data
    job = Job(tmp_path)
    job.run(data, python(SUM), "--suspend-at", "21", "--exit-when-saved")
    assert job.run(other, python(SUM)) == (0, undisturbed(data, python(SUM)))


def test_counters_of_suspended_attempts_are_told_again(tmp_path):
    data = grouped(30, 3)
    job = Job(tmp_path)
    status, first = job.run(data, python(COUNTING), "--suspend-at", "9", "--exit-when-saved")
    assert status == EXIT_SUSPENDED
    status, output = job.run(data, python(COUNTING))
    assert (status, output) == (0, data)
    told = [
        line for line in job.stderr.decode().splitlines() if line.startswith("reporter:counter:mine,lines,")
    ]
    assert sum(int(line.rsplit(",", 1)[1]) for line in told) == data.count(b"\n")
    assert told[0].endswith(f",{first.count(bytes([10]))}")
    assert job.manifests()[0].counters == {"mine": {"lines": first.count(b"\n")}}


def test_past_containers_and_parts_go_from_generation_to_generation(tmp_path):
    data = grouped(30, 3)
    job = Job(tmp_path)
    for cut in ("5", "9", "20"):
        job.run(data, python(SUM), "--suspend-at", cut, "--exit-when-saved")
    last = job.manifests()[-1]
    assert last.past_containers == ("container_2", "container_3")
    assert [part.name.partition("-attempt")[0] for part in last.parts] == [
        "gen-000001",
        "gen-000002",
        "gen-000003",
    ]
    assert last.raw["previous_generation"] == 2
    assert last.raw["last_key"] == "a2V5MDAwMTk="  # key00019


# ------------------------------------------------------------------------------- requests


def test_a_request_is_answered_by_a_manifest_and_the_kill_loses_nothing(tmp_path):
    data = grouped(60, 5)
    middle = data.index(b"key00030") + 3  # in the middle of a line
    job = Job(tmp_path)
    attempt = job.start(python(SUM))
    attempt.until("phase=run")
    attempt.feed(data[:middle])
    first = attempt.stdout.readline()  # the child is at its second group at least
    attempt.request("order-1")
    attempt.until("phase=finish")
    attempt.feed(data[middle:])
    saved = attempt.until("ckpt=saved")
    assert "order=order-1" in saved
    attempt.until("phase=hold")
    first += attempt.kill()
    assert attempt.process.returncode == -signal.SIGTERM
    manifest = job.manifests()[0]
    assert (manifest.order, manifest.attempt) == ("order-1", attempt.task.attempt)
    assert first.count(b"\n") == manifest.groups_done
    assert job.run(data, python(SUM)) == (0, undisturbed(data, python(SUM)))


def test_a_ring_without_a_request_means_nothing(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(python(SUM))
    attempt.until("phase=run")
    for _ in range(3):
        os.killpg(attempt.process.pid, signal.SIGQUIT)
    attempt.feed(b"a\t1\nb\t2\n")
    assert attempt.finish() == (0, b"a\t1\nb\t2\n")
    assert not job.manifests()


def test_before_the_first_key_nothing_changes(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(python(SUM), "--release-wait-ms", "0")
    attempt.until("phase=run")
    attempt.request("early")
    assert "gen=0 order=early" in attempt.until("ckpt=unchanged")
    attempt.feed(b"a\t1\n")
    assert attempt.finish() == (0, b"a\t1\n")
    answer = json.loads(job.path("answer-early-*.json".replace("*", attempt.task.attempt)).read_text())
    assert (answer["answer"], answer["generation"], answer["order"]) == ("unchanged", 0, "early")


def test_while_skipping_the_old_generation_is_still_valid(tmp_path):
    data = grouped(60, 5)
    job = Job(tmp_path)
    job.run(data, python(SUM), "--suspend-at", "40", "--exit-when-saved")
    attempt = job.start(python(SUM), "--release-wait-ms", "0")
    attempt.until("phase=skip")
    attempt.feed(data[:300])
    attempt.request("while-skipping")
    assert "gen=1" in attempt.until("ckpt=unchanged")
    attempt.feed(data[300:])
    assert attempt.finish() == (0, undisturbed(data, python(SUM)))
    assert len(job.manifests()) == 1


def test_while_replaying_the_old_generation_is_still_valid(tmp_path):
    data = grouped(12_000, 2)
    job = Job(tmp_path)
    job.run(data, ["cat"], "--suspend-at", "11000", "--exit-when-saved")
    attempt = job.start(["cat"], "--release-wait-ms", "0")
    attempt.until("phase=skip")
    feeding = subprocess.Popen([sys.executable, "-c", FEED], stdin=subprocess.PIPE, stdout=attempt.stdin)
    attempt.end_input()
    feeding.communicate(data)
    attempt.until("phase=replay")  # more than a pipe holds, and nobody reads
    attempt.request("while-replaying")
    assert "gen=1" in attempt.until("ckpt=unchanged")
    assert attempt.finish() == (0, data)


SLOW_END = """
import sys
data = sys.stdin.buffer.readline()
sys.stderr.write("begun\\n")
sys.stdout.buffer.write(data + sys.stdin.buffer.read())
open("gate").read()
"""
FEED = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data)"


def test_while_draining_and_holding_the_new_generation_counts(tmp_path):
    job = Job(tmp_path)
    os.mkfifo(tmp_path / "gate")
    attempt = job.start(python(SLOW_END))
    attempt.until("phase=run")
    attempt.feed(b"a\t1\nb\t2\n")
    attempt.until("begun")
    attempt.request("first")
    attempt.until("phase=finish")
    attempt.feed(b"c\t3\n")
    attempt.until("phase=drain")
    attempt.request("second")
    (tmp_path / "gate").write_text("open")
    attempt.until("ckpt=saved gen=1 order=first")
    assert "gen=1" in attempt.until("ckpt=unchanged gen=1 order=second")
    attempt.request("third")
    attempt.until("ckpt=unchanged gen=1 order=third")
    for order in ("first", "second", "third"):
        attempt.withdraw(order)
    attempt.until("phase=run")
    attempt.end_input()
    (tmp_path / "gate").write_text("open")
    attempt.until("phase=end")
    output = attempt.stdout.read()
    assert (attempt.process.wait(), output) == (0, b"a\t1\nb\t2\nc\t3\n")
    assert [manifest.order for manifest in job.manifests()] == ["first"]


def test_a_request_at_the_end_says_that_the_task_completes(tmp_path):
    job = Job(tmp_path)
    os.mkfifo(tmp_path / "gate")
    attempt = job.start(python(SLOW_END))
    attempt.feed(b"a\t1\n")
    attempt.end_input()
    attempt.until("phase=end")
    attempt.request("late")
    attempt.until("ckpt=completing")
    (tmp_path / "gate").write_text("open")
    assert (attempt.stdout.read(), attempt.process.wait()) == (b"a\t1\n", 0)


def test_no_release_within_the_hold_and_the_work_goes_on(tmp_path):
    data = grouped(50, 4)
    job = Job(tmp_path)
    attempt = job.start(python(SUM), "--release-wait-ms", "60000")
    attempt.until("phase=run")
    attempt.feed(data[:200])
    first = attempt.stdout.readline()
    attempt.request("short", hold_ms=1)
    attempt.until("phase=finish")
    attempt.feed(data[200:])
    attempt.until("ckpt=saved")
    status, rest = attempt.finish()
    assert (status, first + rest) == (0, undisturbed(data, python(SUM)))


def test_one_order_is_carried_out_once(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(["cat"], "--release-wait-ms", "0")
    attempt.until("phase=run")
    attempt.feed(b"a\t1\nb\t1\n")
    assert attempt.stdout.readline() == b"a\t1\n"
    attempt.request("once")
    attempt.until("phase=finish")
    attempt.feed(b"c\t1\n")
    attempt.until("ckpt=saved")
    attempt.until("phase=run")
    for _ in range(3):
        os.killpg(attempt.process.pid, signal.SIGQUIT)
    attempt.feed(b"d\t1\n")
    assert attempt.finish()[0] == 0
    assert len(job.manifests()) == 1


@pytest.mark.parametrize(
    "wrong", ["attempt of another task", "others may write", "torn", "another order inside"]
)
def test_a_request_that_is_not_ours_is_refused(tmp_path, wrong):
    job = Job(tmp_path)
    attempt = job.start(["cat"])
    attempt.until("phase=run")
    folder = tmp_path / "store/requests" / attempt.task.job / attempt.task.attempt
    folder.mkdir(parents=True, mode=0o700)
    text = {"schema": 1, "order": "x", "attempt": attempt.task.attempt}
    if wrong == "attempt of another task":
        text["attempt"] = job.task(7).attempt
    elif wrong == "another order inside":
        text["order"] = "y"
    hidden = folder / "hidden"
    hidden.write_text(json.dumps(text)[: 20 if wrong == "torn" else None])
    hidden.chmod(0o666 if wrong == "others may write" else 0o600)
    hidden.rename(folder / "x.request.json")
    os.killpg(attempt.process.pid, signal.SIGQUIT)
    attempt.until("request rejected")
    attempt.feed(b"a\t1\nb\t2\n")
    assert attempt.finish() == (0, b"a\t1\nb\t2\n")
    assert not job.manifests()


# ------------------------------------------------------------------- checkpoints set aside


def suspended(tmp_path, data: bytes, *cuts: int) -> Job:
    """Return a job whose task was suspended after some groups."""
    job = Job(tmp_path)
    for cut in cuts:
        assert job.run(data, python(SUM), "--suspend-at", str(cut), "--exit-when-saved")[0] == EXIT_SUSPENDED
    return job


def test_other_keys_while_skipping_start_from_zero_with_nothing_written_before(tmp_path):
    job = suspended(tmp_path, grouped(60, 5), 40)
    other = grouped(60, 5).replace(b"key00020", b"key00020x")
    attempt = job.start(python(SUM))
    attempt.until("phase=skip")
    attempt.feed(other)
    attempt.until("set aside")
    status, output = attempt.finish()
    assert (status, output) == (0, undisturbed(other, python(SUM)))
    assert job.run(other, python(SUM)) == (0, output)
    assert b"set aside by an earlier attempt" in job.stderr


@pytest.mark.parametrize("groups", [0, 10, 40])
def test_an_input_that_ends_early_starts_from_zero(tmp_path, groups):
    job = suspended(tmp_path, grouped(60, 5), 40)
    short = grouped(groups, 5)
    assert job.run(short, python(SUM)) == (0, undisturbed(short, python(SUM)))
    assert b"the input ended after" in job.stderr


def test_a_vain_skip_that_cannot_be_taken_back_fails_and_the_next_attempt_starts_from_zero(tmp_path):
    job = suspended(tmp_path, grouped(60, 5), 40)
    other = grouped(60, 5).replace(b"key00020", b"key00020x")
    assert job.run(other, python(SUM), "--spool-limit-mib", "0") == (EXIT_UNPROVABLE, b"")
    assert job.run(other, python(SUM)) == (0, undisturbed(other, python(SUM)))


def spoil(job: Job, how: str) -> None:
    """Damage the newest checkpoint in one way."""
    manifest, part = job.path(".manifest.json"), job.path(".part")
    raw = json.loads(manifest.read_text())
    if how == "torn":
        manifest.write_bytes(manifest.read_bytes()[:-30])
    elif how == "changed":
        manifest.write_text(json.dumps({**raw, "groups_done": 3}))
    elif how == "wrong generation":
        manifest.rename(manifest.with_name(manifest.name.replace("gen-000002", "gen-000007")))
    elif how == "attempt of another task":
        manifest.rename(manifest.with_name(manifest.name.replace("attempt_1_0001", "attempt_9_0009")))
    elif how == "replaced part":
        part.write_bytes(bytes(reversed(part.read_bytes())))
    elif how == "short part":
        part.write_bytes(part.read_bytes()[:-1])
    elif how == "others may write":
        manifest.chmod(0o666)
    elif how == "missing part":
        part.unlink()


@pytest.mark.parametrize(
    ("how", "why"),
    [("torn", "incomplete or invalid manifest"), ("changed", "checksum mismatch"),
     ("wrong generation", "unlike its name"), ("attempt of another task", "unlike its name"),
     ("replaced part", "content differs from what was saved"), ("short part", "bytes, not"),
     ("others may write", "writable by other users"), ("missing part", "missing")],
)  # fmt: skip
def test_a_bad_generation_is_not_used_and_the_one_before_is(tmp_path, how, why):
    data = grouped(60, 5)
    job = suspended(tmp_path, data, 20, 40)
    spoil(job, how)
    assert job.run(data, python(SUM)) == (0, undisturbed(data, python(SUM)))
    log = job.stderr.decode()
    assert why in log
    assert "phase=replay groups=20 gen=1" in log


def test_a_generation_from_an_earlier_attempt_than_an_older_one_is_out_of_order(tmp_path):
    data = grouped(60, 5)
    job = suspended(tmp_path, data, 20)  # generation 1 by attempt 0
    folder = tmp_path / "store" / job.task(0).folder
    shutil.copytree(folder, tmp_path / "kept")
    job.run(data, python(SUM), "--suspend-at", "30", "--exit-when-saved")  # generation 2 by attempt 1
    shutil.copytree(folder, tmp_path / "later")
    shutil.rmtree(folder)
    job.attempts = 5
    job.run(data, python(SUM), "--suspend-at", "10", "--exit-when-saved")  # generation 1 by attempt 5
    for path in (tmp_path / "later").iterdir():
        shutil.copy2(path, folder / path.name)
    assert job.run(data, python(SUM)) == (0, undisturbed(data, python(SUM)))
    assert b"out of order between attempts" in job.stderr
    assert b"phase=replay groups=10" in job.stderr


def test_names_are_never_used_twice(tmp_path):
    data = grouped(60, 5)
    job = suspended(tmp_path, data, 20, 40)
    spoil(job, "torn")
    before = job.path(".part").read_bytes()
    job.run(data, python(SUM), "--suspend-at", "50", "--exit-when-saved")
    assert job.path(".manifest.json").name.startswith("gen-000003")
    assert (job.folder / "store" / job.task(0).folder).joinpath(
        f"gen-000002-{job.task(1).attempt}.part"
    ).read_bytes() == before
    assert job.run(data, python(SUM)) == (0, undisturbed(data, python(SUM)))


def test_another_reducer_or_other_key_fields_do_not_go_on(tmp_path):
    data = grouped(60, 5)
    job = suspended(tmp_path, data, 20)
    assert job.run(data, ["cat"]) == (0, data)
    assert b"made by another reducer" in job.stderr


def test_a_foreign_folder_is_not_touched(tmp_path):
    data = grouped(60, 5)
    job = suspended(tmp_path, data, 20)
    (tmp_path / "store" / job.task(0).folder).chmod(0o777)
    assert job.run(data, python(SUM)) == (0, undisturbed(data, python(SUM)))
    assert b"the reducer runs without the task runner" in job.stderr


def test_keys_out_of_order_are_never_suspended(tmp_path):
    data = b"b\t1\na\t1\nc\t1\nd\t1\n"
    job = Job(tmp_path)
    assert job.run(data, ["cat"], "--suspend-at", "3", "--release-wait-ms", "0") == (0, data)
    assert b"keys are not sorted by bytes" in job.stderr
    assert not job.manifests()


def test_keys_out_of_order_after_a_skip_fail_and_set_the_checkpoint_aside(tmp_path):
    data = b"a\t1\nb\t1\nc\t1\n"
    job = Job(tmp_path)
    job.run(data, ["cat"], "--suspend-at", "2", "--exit-when-saved")
    worse = b"a\t1\nb\t1\nc\t1\nb\t2\n"
    assert job.run(worse, ["cat"])[0] == EXIT_UNPROVABLE
    assert job.run(worse, ["cat"]) == (0, worse)


# --------------------------------------------------------------------------- transparency


@pytest.mark.parametrize(
    ("conf", "why"),
    [({"mapreduce_job_output_key_comparator_class": "org.example.Numeric"}, "comparator"),
     ({"mapreduce_job_output_group_comparator_class": "org.example.Group"}, "group.comparator"),
     ({"mapred_output_committer_class": "org.example.Committer"}, "committer"),
     ({"mapred_output_format_class": "org.example.Db"}, "output.format"),
     ({"mapreduce_reduce_skip_maxgroups": "5"}, "skip"), ({"mapreduce_job_ubertask_enable": "true"}, "uber"),
     ({"mapreduce_reduce_speculative": "true"}, "speculative"),
     ({"stream_reduce_input": "typedbytes"}, "stream.reduce.input"),
     ({"mapreduce_map_output_key_class": "org.apache.hadoop.io.LongWritable"}, "key.class"),
     ({"stream_map_output_field_separator": "||"}, "not one byte"),
     ({"mapreduce_task_attempt_id": ""}, "not started by Hadoop"),
     ({"stream_non_zero_exit_is_failure": "false"}, "non.zero.exit")],
)  # fmt: skip
def test_where_nothing_can_be_proven_the_reducer_runs_untouched(tmp_path, conf, why):
    job = Job(tmp_path, conf)
    assert job.run(b"a\t1\n", python(PID), "--suspend-at", "1") == (0, b"a\t1\n")
    assert job.stderr.startswith(b"yarnctl: the reducer runs without the task runner")
    assert why.encode() in job.stderr


PID = "import os, sys; assert os.getpgid(0) == os.getsid(0); sys.stdout.buffer.write(sys.stdin.buffer.read())"


def test_without_promises_the_wrapper_is_transparent(tmp_path):
    job = Job(tmp_path)
    program = python(
        "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('word\\n'); sys.exit(9)"
    )
    assert job.run(b"a\t1\n", program, promise=False) == (9, b"a\t1\n")
    assert job.stderr.endswith(b"word\n")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("options", [("--no-such-option",), ("--save", "cat"), ("--group-fields", "3")])
def test_options_that_make_no_sense_leave_the_reducer_alone(tmp_path, options):
    job = Job(tmp_path)
    assert job.run(b"a\t1\n", ["cat"], *options) == (0, b"a\t1\n")
    assert b"the reducer runs without the task runner" in job.stderr


@pytest.mark.parametrize("promise", [True, False])
@pytest.mark.parametrize("end", ["sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_child_that_fails_fails_the_attempt_alike(tmp_path, promise, end):
    program = python(f"import os, sys; sys.stdin.read(); sys.stdout.write('part'); sys.stdout.flush(); {end}")
    attempt = Job(tmp_path).start(program, promise=promise)
    attempt.feed(b"a\t1\n")
    status, output = attempt.finish()
    assert output == b"part"
    assert status in ({3} if "exit" in end else {137, -9})


def test_a_child_that_fails_while_it_is_drained_leaves_no_checkpoint(tmp_path):
    job = Job(tmp_path)
    program = python("import sys; sys.stdin.read(); sys.exit(5)")
    assert job.run(grouped(9, 2), program, "--suspend-at", "4")[0] == 5
    assert not job.manifests()


def test_a_child_that_leaves_early_is_not_started_again(tmp_path):
    job = Job(tmp_path)
    data = grouped(5000, 2)  # all of it stays in Java's buffer till the end
    attempt = job.start(["head", "-n", "3"], "--suspend-at", "4000")
    with contextlib.suppress(BrokenPipeError):  # as Java sees it
        attempt.feed(data)
    status, output = attempt.finish()
    assert (status, output) == (0, b"".join(data.splitlines(keepends=True)[:3]))
    assert not job.manifests()


def test_a_missing_reducer_fails(tmp_path):
    assert Job(tmp_path).run(b"", ["./no-such-program"])[0] == 127
    assert Job(tmp_path).run(b"", ["./no-such-program"], promise=False)[0] == 127


def test_a_reducer_that_may_not_be_executed_fails_as_in_a_shell(tmp_path):
    (tmp_path / "reducer").touch(0o600)
    assert Job(tmp_path).run(b"", [str(tmp_path / "reducer")])[0] == 126


def test_no_input_at_all(tmp_path):
    assert Job(tmp_path).run(b"", python(SUM)) == (0, b"")


def test_the_output_spool_has_a_limit_and_the_work_goes_on(tmp_path):
    data = grouped(50, 4)
    job = Job(tmp_path)
    assert job.run(data, ["cat"], "--suspend-at", "20", "--spool-limit-mib", "0") == (0, data)
    assert b"the output cannot be stored" in job.stderr
    assert not job.manifests()


def test_what_would_take_half_of_the_time_out_is_refused(tmp_path):
    data = grouped(50, 4)
    job = Job(tmp_path, {"mapreduce_task_timeout": "1000"})
    assert job.run(data, ["cat"], "--suspend-at", "20") == (0, data)
    assert b"ckpt=refused gen=0 order=cut-20 about 1 s to drain and upload" in job.stderr
    assert not job.manifests()


def test_stderr_comes_through_unbroken(tmp_path):
    lines = [f"line {at} " + "x" * (at % 300) for at in range(2000)]
    program = python(
        f"import sys; sys.stdin.read(); [sys.stderr.write(f'line {{at}} ' + 'x' * (at % 300) + '\\n') "
        f"for at in range({len(lines)})]"
    )
    job = Job(tmp_path)
    assert job.run(b"a\t1\n", program)[0] == 0
    seen = [line for line in job.stderr.decode().splitlines() if line.startswith("line")]
    assert seen == lines


def test_a_stateful_reducer_saves_and_loads(tmp_path):
    program = """
import json, os, sys
try:
    total = json.load(open("state"))
except FileNotFoundError:
    total = 0
for line in sys.stdin:
    total += 1
    sys.stdout.write(line)
if os.path.exists(os.environ["YARNCTL_SUSPENDING"]):
    json.dump(total, open("state", "w"))
else:
    print("total", total)
"""
    data = grouped(50, 4)
    options = ("--save", "cat state; rm state", "--load", "cat > state")
    job = Job(tmp_path)
    assert (
        job.run(data, python(program), *options, "--suspend-at", "9", "--exit-when-saved")[0]
        == EXIT_SUSPENDED
    )
    status, output = job.run(
        data, python(program), *options, "--suspend-at", "20,30", "--release-wait-ms", "0"
    )
    assert (status, output) == (0, data + b"total %d\n" % data.count(b"\n"))


# ------------------------------------------------------------------------ signals, children


JAVA = """
import java.io.*;
public class Echo {
    public static void main(String[] words) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) System.out.println(line);
    }
}
"""
NODE = "process.stdin.on('data', data => process.stdout.write(data));"


def echoing(kind: str, folder) -> list[str]:
    """Return a reducer that repeats its input, in one language."""
    if kind == "shell":
        return ["sh", "-c", "cat | (cat; cat) | cat"]
    if shutil.which(kind) is None:
        pytest.skip(f"no {kind} here")
    if kind == "node":
        return ["node", "-e", NODE]
    (folder / "Echo.java").write_text(JAVA)
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", str(folder / "Echo.java")]


@pytest.mark.parametrize("kind", ["java", "node", "shell"])
def test_the_doorbell_neither_kills_nor_garbles_a_child(tmp_path, kind):
    job = Job(tmp_path)
    attempt = job.start(echoing(kind, tmp_path), "--release-wait-ms", "0")
    attempt.until("phase=run")
    attempt.feed(b"a\t1\nb\t1\n")
    assert attempt.stdout.readline() == b"a\t1\n"  # the child is up
    for _ in range(3):
        os.killpg(attempt.process.pid, signal.SIGQUIT)
    attempt.request("ring")
    attempt.until("phase=finish")
    attempt.feed(b"c\t1\n")
    attempt.until("ckpt=saved")
    attempt.until("phase=run")
    os.killpg(attempt.process.pid, signal.SIGQUIT)
    attempt.feed(b"d\t1\n")
    assert attempt.finish() == (0, b"b\t1\nc\t1\nd\t1\n")


def test_the_child_dies_with_the_runner(tmp_path):
    os.mkfifo(tmp_path / "alive")
    program = python("import time; end = open('alive', 'w'); end.write('up'); end.flush(); time.sleep(600)")
    for number in (signal.SIGTERM, signal.SIGKILL):
        attempt = Job(tmp_path).start(program)
        with (tmp_path / "alive").open("rb", buffering=0) as alive:
            assert alive.read(2) == b"up"
            os.killpg(attempt.process.pid, number)
            assert alive.read() == b""  # closed: nobody holds the other end any more
        attempt.finish()


def test_the_file_is_also_a_shell_script_that_needs_no_python(tmp_path):
    job = Job(tmp_path)
    argv = ["/bin/sh", str(RUNNER), "--restartable", "--store", f"file://{tmp_path}/store", "--", "cat"]
    with_python = subprocess.run(argv, input=b"a\t1\n", env=job.env(0), capture_output=True, check=True)
    assert with_python.stdout == b"a\t1\n"
    assert b"phase=run" in with_python.stderr
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to(shutil.which("cat") or "/bin/cat")
    without = subprocess.run(argv, input=b"a\t1\n", env={"PATH": str(tools)}, capture_output=True, check=True)
    assert (without.stdout, without.stderr) == (b"a\t1\n", b"")


def test_a_reducer_in_the_working_folder_is_found_first(tmp_path):
    own = tmp_path / "cat"
    own.write_text("#!/bin/sh\necho mine\n")
    own.chmod(0o755)
    assert Job(tmp_path).run(b"", ["cat"]) == (0, b"mine\n")
    assert Job(tmp_path).run(b"", ["cat"], promise=False) == (0, b"mine\n")


def test_it_is_written_in_python_3_8_and_its_standard_library():
    tree = ast.parse(RUNNER.read_text(), feature_version=(3, 8))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= sys.stdlib_module_names


def interpreter_of(version: str) -> str | None:
    """One on the path that starts, else one that pyenv keeps but has not chosen."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: list[object] = [
        shutil.which(f"python{version}"),
        *sorted(kept.glob(f"{version}.*/bin/python{version}")),
    ]
    for path in filter(None, found):
        if subprocess.run([str(path), "-c", ""], capture_output=True).returncode == 0:
            return str(path)
    return None


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_it_runs_under_the_pythons_that_are_here(tmp_path, version):
    interpreter = interpreter_of(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} here")
    data = grouped(60, 5)
    job = Job(tmp_path, python=interpreter)
    assert job.run(data, python(SUM), "--suspend-at", "30", "--exit-when-saved")[0] == EXIT_SUSPENDED
    assert job.run(data, python(SUM)) == (0, undisturbed(data, python(SUM)))
    assert b"phase=replay groups=30" in job.stderr


def test_importing_it_does_nothing():
    program = "import runpy, signal; before = signal.getsignal(3)\n"
    program += f"runpy.run_path({str(RUNNER)!r}); assert signal.getsignal(3) is before"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
