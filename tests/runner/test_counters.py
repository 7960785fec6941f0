"""Counters: what the runner and the emulator make of odd lines is what a real Hadoop 3.4.2 made of them.

Law: the expectation was recorded from Hadoop itself (``python -m tests.hadoop.odd_lines record``); names are
compared as Java shows them, with U+FFFD for what is no UTF-8 and cut where Hadoop cuts them.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
from collections.abc import Iterator

import pytest

from emulator.live.tasks.user_command import LineReader, Reporter, java_text
from tests.hadoop.odd_lines import CUT, KEYS, LINES, REDUCER, Counters, all_bytes, golden
from tests.runner.running import Job
from yarnctl.task_runner.runner import reports
from yarnctl.task_runner.runner.protocol.job_conf import read_settings
from yarnctl.task_runner.runner.protocol.key_rule import LONG_LINE_BYTES
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, Unusable
from yarnctl.task_runner.runner.reports import DIGITS, Errors, java_long

VERSION = "3.4.2"
LONGEST_BYTES = LONG_LINE_BYTES + 1
NAME_MAX = 63
"""One less than mapreduce.job.counters.counter.name.max: so Limits.filterName cuts."""
SAYING = "import sys\nfor line in sys.stdin:\n sys.stderr.write('{}\\n'); print(line[:2])"
DATA = "".join(f"{key}\tv\n" for key in KEYS).encode()


def as_hadoop(counters: Counters) -> Counters:
    """Return counters under the names that Hadoop shows."""
    found: Counters = {}
    for group, inside in counters.items():
        for name, amount in inside.items():
            group, name = (java_text(text.encode("utf-8", "surrogateescape")) for text in (group, name))
            same = found.setdefault(group, {})
            same[name[:NAME_MAX]] = same.get(name[:NAME_MAX], 0) + amount
    return found


def pieces(data: bytes, how: str) -> Iterator[bytes]:
    """Cut bytes as reads may cut them."""
    draw, at = random.Random(how), 0
    while at < len(data):
        size = {"whole": 1 << 16, "bytes": 1, "drawn": draw.choice((1, 2, 7, 100, 5000))}[how]
        yield data[at : at + size]
        at += size


def heard(chunks: Iterator[bytes]) -> tuple[Errors, bytes]:
    """Have the runner hear a child's standard error; return what it noted and what it passed on."""
    reading, writing = os.pipe()
    errors, passed = Errors("reporter:"), []
    errors._write = lambda data, own_line=True: passed.append(data)  # type: ignore[method-assign]

    def write() -> None:
        with open(writing, "wb", buffering=0) as file:
            for chunk in chunks:
                file.write(chunk)

    writer = threading.Thread(target=write)
    writer.start()
    errors.pass_on(reading)
    writer.join()
    os.close(reading)
    return errors, b"".join(passed)


def by_emulator(chunks: Iterator[bytes]) -> Counters:
    """Return the counters that a task of the live emulator has after these bytes."""
    reporter, lines = Reporter(), LineReader()
    for chunk in chunks:
        for line in lines.feed(chunk):
            reporter.line(line)
    for line in lines.finish():
        reporter.line(line)
    return reporter.counters


@pytest.mark.parametrize("how", ["whole", "drawn"])
def test_the_runner_counts_as_hadoop_did(how):
    errors, _ = heard(pieces(all_bytes() * len(KEYS), how))
    assert as_hadoop(errors.counters) == golden(VERSION)
    assert not errors.doubt


@pytest.mark.parametrize("how", ["whole", "drawn"])
def test_the_emulator_counts_as_hadoop_did(how):
    assert as_hadoop(by_emulator(pieces(all_bytes() * len(KEYS), how))) == golden(VERSION)


def test_lines_that_come_byte_by_byte_are_the_same_lines():
    short = b"".join(line for line in all_bytes().splitlines(keepends=True) if len(line) < 1000)
    errors, passed = heard(pieces(short, "bytes"))
    assert errors.counters == heard(pieces(short, "whole"))[0].counters
    assert as_hadoop(errors.counters) == by_emulator(pieces(short, "bytes"))
    assert passed == short


@pytest.mark.parametrize("options", [("--suspend-at", "2", "--exit-when-saved"), ("--suspend-at", "1,2,3")])
def test_a_suspended_attempt_and_the_next_one_count_together_as_hadoop_did(tmp_path, options):
    job = Job(tmp_path)
    shutil.copy(LINES, tmp_path)
    reducer = [sys.executable, str(REDUCER)]
    status, output = job.run(DATA, reducer, *options, "--release-wait-ms", "0")
    if "--exit-when-saved" in options:
        assert status == EXIT_SUSPENDED
        assert job.manifests()[0].groups_done == CUT
        status, output = job.run(DATA, reducer)
    assert (status, output) == (0, b"".join(key.encode() + b"\n" for key in KEYS))
    assert as_hadoop(by_emulator(iter([job.stderr]))) == golden(VERSION)


def test_the_rest_of_a_broken_line_is_no_line_to_hadoop():
    reading, writing = os.pipe()
    errors = Errors("reporter:")
    kept: list[bytes] = []
    end = b"reporter:counter:odd,rest,1\n"
    errors_write = errors._write

    def write_and_interrupt(data: bytes, own_line: bool = True) -> None:
        errors_write(data, own_line)
        if not own_line and not data.endswith(b"\n"):
            errors.status("phase=run")

    def write() -> None:
        with open(writing, "wb", buffering=0) as file:
            for data in (b"x" * LONG_LINE_BYTES, end):
                file.write(data)

    errors._write = write_and_interrupt  # type: ignore[method-assign]
    saved, written = os.dup(2), os.memfd_create("written")
    os.dup2(written, 2)
    try:
        threading.Thread(target=write).start()
        errors.pass_on(reading)
    finally:
        os.dup2(saved, 2)
    kept.append(os.pread(written, 1 << 20, 0))
    assert b"phase=run" in kept[0]
    assert by_emulator(iter(kept)) == {} == errors.counters


@pytest.mark.parametrize(
    ("line", "doubt"),
    [
        (b"reporter:counter:g,n," + "\u0de7".encode() + b"\n", "some versions of Java"),
        (b"reporter:counter:g,n,1" + b" " * LONGEST_BYTES, "longer than"),
    ],
)
def test_what_not_every_hadoop_counts_alike_is_doubted(monkeypatch, line, doubt):
    monkeypatch.setattr(reports, "SMALL_FILE_BYTES", LONGEST_BYTES)
    assert doubt in heard(pieces(line, "whole"))[0].doubt


def test_an_attempt_in_doubt_of_its_counters_is_not_suspended(tmp_path):
    program = SAYING.format("reporter:counter:g,n,\u0de7")
    job = Job(tmp_path)
    status, output = job.run(
        DATA, [sys.executable, "-X", "utf8", "-c", program], "--suspend-at", "2", "--release-wait-ms", "0"
    )
    assert (status, output) == (0, b"k1\nk2\nk3\nk4\n")
    assert not job.manifests()
    assert b"ckpt=refused gen=0 order=cut-2 " in job.stderr
    assert b"some versions of Java" in job.stderr


@pytest.mark.parametrize("prefix", ["re\u00fcporter:", "a\nb", "a\rb"])
def test_a_prefix_that_java_might_read_otherwise_forbids_suspension(tmp_path, prefix):
    env = Job(tmp_path, {"stream_stderr_reporter_prefix": prefix, "YARNCTL_STORE": "file:///x"}).env(0)
    with pytest.raises(Unusable, match=r"stream\.stderr.reporter.prefix"):
        read_settings(["--restartable"], env)


def test_another_prefix_is_obeyed(tmp_path):
    job = Job(tmp_path, {"stream_stderr_reporter_prefix": "to hadoop: "})
    program = SAYING.format("to hadoop: counter:g,n,2")
    job.run(DATA, [sys.executable, "-c", program], "--suspend-at", "2", "--exit-when-saved")
    assert job.manifests()[0].counters == {"g": {"n": 4}}
    job.run(DATA, [sys.executable, "-c", program])
    assert b"to hadoop: counter:g,n,4\n" in job.stderr


def test_digits_are_those_of_the_unicode_that_java_11_has():
    import unicodedata

    ours = {char for char in map(chr, range(1 << 16)) if unicodedata.decimal(char, None) is not None}
    assert ours == set(DIGITS)
    assert all(unicodedata.decimal(char) == value for char, value in DIGITS.items())


@pytest.mark.parametrize(
    "text", ["", "+", "-", "1_0", " 1", "1 ", "0x1", "\u2460", "1" * 20, "9" * 19, "\U0001d7d8"]
)
def test_what_is_no_long_is_none(text):
    assert java_long(text) is None
