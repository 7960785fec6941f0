"""A reducer that leaves early with status 0 is accepted where plain Hadoop accepts it, and only there.

The limits are those of a real Hadoop 3.4.2: 100 kB are accepted though the last flush breaks, 190 kB are
refused if the reducer has read next to nothing.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.runner.java import Java, flushes
from tests.runner.running import SUM, Job, grouped, python
from yarnctl.task_runner.runner import child
from yarnctl.task_runner.runner.attempt import Sender
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule
from yarnctl.task_runner.runner.protocol.stores import EXIT_UNPROVABLE, Unusable

LEAVES = """
import os, sys
wanted = int(sys.argv[1])
while wanted:
    wanted -= len(os.read(0, min(wanted, 1 << 16)))
os.write(2, b"enough\\n")
open("gate").read()
os.write(1, b"short\\n")
"""


def lines(size_bytes: int) -> bytes:
    """Return sorted input of about a size, a group a line."""
    return b"".join(b"key%07d\tvalue\n" % at for at in range(size_bytes // 17))


@pytest.mark.parametrize(
    ("size_bytes", "wanted_bytes", "accepted"),
    [
        (100_000, 100, True),  # all of it is in Java's buffer, whose last flush may break
        (190_000, 100, False),
        (190_000, 65_536, True),
        (190_000, 57_000, False),
        (330_000, 200_000, True),
        (330_000, 180_000, False),
        (700_000, 100, False),
        (2_000_000, 1_800_000, False),  # the rest lies in the reducer's own pipe
        (2_000_000, 1_950_000, True),
    ],
)
def test_a_short_output_counts_only_where_plain_hadoop_takes_it(tmp_path, size_bytes, wanted_bytes, accepted):
    job = Job(tmp_path)
    os.mkfifo(tmp_path / "gate")
    attempt = job.start([*python(LEAVES), str(wanted_bytes)])
    java = Java(attempt.process, lines(size_bytes))
    attempt.until("enough")
    if size_bytes < 1_000_000:
        java.join()  # the runner has read ahead to the end
    (tmp_path / "gate").write_text("open")
    status, output = attempt.finish()
    java.join()
    assert output == b"short\n"
    assert (status == 0 and not java.failed) is accepted, (status, java.failed)
    assert status in (0, EXIT_UNPROVABLE)
    if status:
        assert b"plain Hadoop" in attempt.log


def test_a_file_as_input_breaks_no_pipe(tmp_path):
    job = Job(tmp_path)
    (tmp_path / "input").write_bytes(lines(300_000))
    os.mkfifo(tmp_path / "gate")
    program = [*python(LEAVES.replace('open("gate").read()', "")), "100"]
    with (tmp_path / "input").open("rb") as stream:
        attempt = job.start(program, stdin=stream)
        assert attempt.finish() == (0, b"short\n")


def test_who_stops_reading_before_the_end_is_not_drained(tmp_path):
    """In a pipeline without pipefail the shell lives on and ends with 0: that is no end of a group."""
    job = Job(tmp_path)
    os.mkfifo(tmp_path / "gate")
    attempt = job.start(
        ["sh", "-c", "head -n 2; exec 0<&-; echo left >&2; read x < gate"], "--release-wait-ms", "0"
    )
    attempt.feed(b"a\t1\nb\t1\n")
    attempt.until("left")
    attempt.request("order-1")
    attempt.until("phase=finish")
    attempt.feed(b"c\t1\n")
    attempt.end_input()
    (tmp_path / "gate").write_text("open\n")
    assert attempt.finish() == (0, b"a\t1\nb\t1\n")  # as without us: all of it was in Java's buffer
    assert not job.manifests()


@pytest.mark.parametrize("seed", range(6))
def test_what_java_has_written_is_known_to_the_byte(seed):
    draw = random.Random(seed)
    size = draw.choice([10, 300, 5_000, 200_000])
    keys = sorted(
        b"%0*d" % (draw.choice([1, 8, 40]), draw.randrange(10**6)) for _ in range(8_000_000 // (size + 300))
    )
    data = b"".join(b"%s\t%s\n" % (key, b"v" * draw.randrange(size)) for key in keys)
    sender = Sender(KeyRule(), 65_536)
    at, seen = 0, {0}
    while at < len(data):
        step = draw.choice([1, 100, 4096, 70_000, 262_144])
        sender.take(data[at : at + step])
        at += step
    for block, is_last in flushes(data):
        seen.add(max(seen) + (0 if is_last else len(block)))
    assert sender.sent_bytes == max(seen)


def test_a_system_that_does_not_tell_what_is_unread_leaves_the_reducer_alone(monkeypatch):
    child.check_pipes()
    monkeypatch.setattr(child, "unread_bytes", lambda _: 0)
    with pytest.raises(Unusable, match="unread"):
        child.check_pipes()


def test_a_reducer_that_reads_everything_is_as_before(tmp_path):
    data = grouped(20_000, 3)
    attempt = Job(tmp_path).start(python(SUM))
    java = Java(attempt.process, data)
    status, output = attempt.finish()
    assert (status, java.failed) == (0, False)
    assert output.count(b"\n") == 20_000
