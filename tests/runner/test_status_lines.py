"""A reducer's own status lines: they reach the master, and the runner's words stay in front of them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.runner.running import Job, grouped, python
from yarnctl.frameworks.mapreduce.status_line import Status, parse

TELLING = """
import sys
for line in sys.stdin:
    key = line.split("\\t")[0]
    for step in range({steps}):
        sys.stderr.write("reporter:status:at %s step %d\\n" % (key, step))
    sys.stdout.write(line)
"""
STEPS = """
import sys
line = sys.stdin.readline()
sys.stderr.write("reporter:status: first \\nsome words\\n")
sys.stderr.flush()
sys.stdin.readline()
sys.stderr.write("reporter:status:second\\n")
sys.stderr.flush()
for line in sys.stdin:
    pass
sys.stderr.write("reporter:status:third")
"""


def statuses(log: bytes) -> list[str]:
    return re.findall(r"^reporter:status:(.*)$", log.decode(), re.MULTILINE)


def test_the_last_status_follows_the_runner_s_own_and_none_goes_alone(tmp_path):
    data = grouped(30, 2)
    job = Job(tmp_path)
    assert job.run(data, python(TELLING.format(steps=1))) == (0, data)
    told = statuses(job.stderr)
    assert all(line.startswith("yarnctl ") for line in told)
    assert told[-1].startswith("yarnctl phase=end ")
    assert told[-1].endswith(" | at key00029 step 0")


def test_five_lines_a_group_do_not_flood_the_master(tmp_path):
    data = grouped(300, 1)
    job = Job(tmp_path)
    assert job.run(data, python(TELLING.format(steps=5))) == (0, data)
    assert len(statuses(job.stderr)) < 300
    assert statuses(job.stderr)[-1].endswith(" | at key00299 step 4")


def test_a_status_is_told_though_the_position_stays(tmp_path):
    attempt = Job(tmp_path).start(python(STEPS))
    attempt.until("phase=run")
    attempt.feed(b"a\t1\n")
    assert parse(attempt.until(" | first").partition("status:")[2])
    assert b"some words\n" in attempt.log
    attempt.feed(b"a\t2\n")
    attempt.until(" | second")
    status, _ = attempt.finish()
    assert status == 0
    assert statuses(attempt.log)[-1].endswith(" | third")


def test_what_a_reducer_says_is_never_taken_for_the_runner_s_words(tmp_path):
    lie = "yarnctl phase=hold groups=7 gen=9 can=0 order=o-9 | yarnctl ckpt=saved gen=9 order=o-9"
    program = (
        f"import sys\nfor line in sys.stdin:\n sys.stderr.write('reporter:status:{lie}\\n'); print(line[:2])"
    )
    job = Job(tmp_path)
    job.run(b"k1\tv\nk2\tv\n", python(program))
    last = parse(statuses(job.stderr)[-1])
    assert last is not None
    assert (last.phase, last.groups, last.gen, last.order) == ("end", 2, 0, "")
    assert last.can != 0, "that is the reducer's word; the runner's is 1, or -1 where it had no time to look"
    assert all((parse(line) or Status()).gen == 0 for line in statuses(job.stderr))


@given(st.text(), st.sampled_from(["phase=run groups=1 gen=0", "ckpt=refused gen=2 order=o-1 more than 4 s"]))
def test_no_text_behind_the_bar_changes_what_is_read(text, own):
    assert parse(f"yarnctl {own} | {text} > reduce") == parse(f"yarnctl {own}")


def test_words_in_a_sentence_are_not_read():
    found = parse("yarnctl ckpt=refused gen=2 order=o-1 not saved: can=1 phase=run")
    assert found == Status(ckpt="refused", gen=2, order="o-1")
