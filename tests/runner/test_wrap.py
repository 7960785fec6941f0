"""``yarnctl wrap``: the command that comes out, the refusals, and promises put to the test."""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from tests.runner.running import SUM, grouped, python
from yarnctl.attach.connection.connection import Attachment
from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce.consent import Eligibility, judge
from yarnctl.task_runner import wrapping
from yarnctl.task_runner.shipped import RUNNER
from yarnctl.task_runner.verifying import verify
from yarnctl.task_runner.wrapping import SETTINGS, wrap

HADOOP = ["hadoop", "jar", "/opt/hadoop/hadoop-streaming-3.4.2.jar"]
JOB = [
    *HADOOP, "-D", "mapreduce.job.queuename=research", "-files", "map.py,red.py", "-input", "in", "-output",
    "out", "-mapper", "python3 map.py", "-reducer", "python3 red.py --limit 3", "-numReduceTasks", "8",
]  # fmt: skip


def test_the_same_command_with_runner_files_and_settings():
    wrapped = wrap(JOB, True, 0, "webhdfs://nn:9870/y/checkpoints", [])
    assert wrapped[:3] == HADOOP
    assert wrapped[3:5] == ["-D", "mapreduce.reduce.speculative=false"]
    assert wrapped[5:7] == ["-D", "mapreduce.task.progress-report.interval=2000"]
    assert wrapped[wrapped.index("-files") + 1] == f"map.py,red.py,{RUNNER}"
    assert wrapped.count("-files") == 1
    assert (
        wrapped[wrapped.index("-reducer") + 1]
        == "sh yarnctl_task.py --restartable -- python3 red.py --limit 3"
    )
    assert wrapped[-6:] == [
        "-cmdenv", "YARNCTL_REQUESTS=webhdfs://nn:9870/y/requests", "-cmdenv",
        "YARNCTL_REQUESTS_OWNER=yarnctl", "-cmdenv", "YARNCTL_STORE=webhdfs://nn:9870/y/checkpoints",
    ]  # fmt: skip
    assert [word for word in JOB if word not in wrapped] == ["map.py,red.py", "python3 red.py --limit 3"]


def test_what_the_user_says_of_requests_stays():
    own = [*JOB, "-cmdenv", "YARNCTL_REQUESTS=webhdfs://nn:9870/r"]
    wrapped = wrap(own, True, 0, "webhdfs://nn:9870/y/checkpoints", [], "webhdfs://nn:9870/other", "keeper")
    assert [word for word in wrapped if word.startswith("YARNCTL_REQUESTS")] == [
        "YARNCTL_REQUESTS=webhdfs://nn:9870/r",
        "YARNCTL_REQUESTS_OWNER=keeper",
    ]
    assert not [word for word in wrap(JOB, True, 0, "file:///y", []) if "YARNCTL_REQUESTS" in word]


def test_a_wrapped_job_and_a_daemon_agree_by_their_defaults():
    """What ``wrap --store`` writes is what ``run`` proves: nobody has to say the same thing twice."""
    wrapped = wrap(JOB, True, 0, "webhdfs://nn:9870/yarnctl/checkpoints", [])
    told = [wrapped[place + 1] for place, word in enumerate(wrapped) if word == "-cmdenv"]
    configuration = {
        "stream.reduce.streamprocessor": quote_plus(wrapped[wrapped.index("-reducer") + 1]),
        "stream.addenvironment": " ".join(told),
        "mapreduce.reduce.speculative": "false",
    }
    attachment = Attachment(name_nodes=("nn:9870",), store_root="/yarnctl/checkpoints")
    assert isinstance(judge(configuration, "alice", attachment), Eligibility)


def test_generic_options_stay_before_those_of_streaming():
    plain = ["mapred", "streaming", "-input", "in", "-output", "out", "-mapper", "cat", "-reducer", "cat"]
    wrapped = wrap(plain, True, 0, "", [])
    assert wrapped[:2] == plain[:2]
    ours = [word for pair in SETTINGS.items() for word in ("-D", "=".join(pair))]
    assert wrapped[2:8] == [*ours, "-files", str(RUNNER)]


def test_group_fields_need_as_many_key_fields():
    words = [*HADOOP, "-D", "stream.num.map.output.key.fields=2", "-reducer", "r"]
    assert "sh yarnctl_task.py --restartable --group-fields 1 -- r" in wrap(words, True, 1, "", [])
    with pytest.raises(BadInput, match="keys have 2 fields"):
        wrap(words, True, 3, "", [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["-reducer", "aggregate"], "not a command"),
        (["-reducer", "NONE"], "not a command"),
        (["-reducer", "org.apache.hadoop.mapred.lib.IdentityReducer"], "not a command"),
        (["-reducer", "sh yarnctl_task.py -- cat"], "already"),
        (["-mapper", "cat"], "is missing; Hadoop runs its identity reducer"),
        (["-reducer", "r", "-numReduceTasks", "0"], "no reduce"),
        (["-D", "mapred.reduce.tasks=0", "-reducer", "r"], "no reduce"),
        (["-reducer", "r", "-io", "typedbytes"], "only text lines"),
        (["-reducer", "r", "-outputformat", "org.example.Db"], "besides the output"),
        (
            ["-D", "mapreduce.job.output.key.comparator.class=org.example.C", "-reducer", "r"],
            "cannot be suspended",
        ),
        (["-Dmapreduce.job.ubertask.enable=true", "-reducer", "r"], "cannot be suspended"),
        (["-D", "stream.non.zero.exit.is.failure=false", "-reducer", "r"], "cannot be suspended"),
        (["-D", "mapreduce.reduce.speculative=true", "-reducer", "r"], "share a checkpoint"),
        (["-D", "stream.map.output.field.separator=||", "-reducer", "r"], "one byte"),
        (["-reducer", "python3", "red.py"], "not an option of Hadoop streaming"),
        (["-reducer", "python3", "red.py"], "Java jobs cannot be wrapped"),
    ],
)
def test_what_cannot_be_suspended_is_refused_with_the_reason(more, why):
    with pytest.raises(BadInput, match=why):
        wrap([*HADOOP, *more], True, 0, "", [])


def yarnctl(*words: str) -> subprocess.CompletedProcess[str]:
    program = "from yarnctl.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "wrap", *words], capture_output=True, text=True, check=False
    )


def test_the_command_line_prints_runs_and_refuses():
    printed = yarnctl("--restartable", "--store", "webhdfs://nn:9870/y", "--", *JOB)
    assert printed.returncode == 0
    shipped = Path(wrapping.__file__).with_name(RUNNER.name)  # a mutant's RUNNER lies elsewhere
    assert shlex.split(printed.stdout.replace(str(shipped), str(RUNNER))) == wrap(
        JOB, True, 0, "webhdfs://nn:9870/y", []
    )
    assert "--restartable no reduce" in yarnctl("--", *JOB).stderr.replace("without ", "")
    refused = yarnctl("--restartable", "--", *HADOOP, "-reducer", "NONE")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: -reducer: NONE is not a command")
    store = ("--store", "webhdfs://nn:9870/y")
    ran = yarnctl("--exec", "--restartable", *store, "--", "echo", "jar", "x.jar", "-reducer", "cat")
    assert "-reducer sh yarnctl_task.py --restartable -- cat" in ran.stdout


def test_a_job_is_not_submitted_whose_checkpoints_have_nowhere_to_go():
    job = ("echo", "jar", "x.jar", "-reducer", "cat")
    refused = yarnctl("--exec", "--restartable", "--", *job)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no folder for checkpoints" in refused.stderr
    assert "YARNCTL_STORE=webhdfs://" in refused.stderr
    assert yarnctl("--exec", "--", *job).returncode == 0  # nothing is promised, nothing is suspended
    own = (*job, "-cmdenv", "YARNCTL_STORE=webhdfs://nn:9870/mine")
    assert yarnctl("--exec", "--restartable", "--", *own).returncode == 0


def test_a_promise_that_was_not_tested_is_named_once_with_the_command():
    job = ("echo", "jar", "x.jar", "-reducer", "sort -u")
    ran = yarnctl(
        "--exec", "--restartable", "--group-fields", "1", "--store", "webhdfs://nn:9870/y", "--", *job
    )
    assert ran.stderr.count("was not tested") == 1
    assert "yarnctl wrap --verify SORTED_SAMPLE --group-fields 1 -- sort -u" in ran.stderr
    printed = yarnctl("--restartable", "--store", "webhdfs://nn:9870/y", "--", *job)
    assert "was not tested" not in printed.stderr


def test_a_job_of_java_is_told_that_only_streaming_can_be_wrapped():
    refused = yarnctl("--restartable", "--", "hadoop", "jar", "x.jar", "wordcount", "a", "b")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: wordcount: ")
    assert "only streaming jobs can be wrapped" in refused.stderr


REPORTING = """
import sys
for line in sys.stdin:
    sys.stderr.write("reporter:counter:g,n,1\\nreporter:status:at %sa note\\n" % line)
    sys.stdout.write(line)
"""


def test_lines_to_hadoop_are_counted_and_others_passed_on(tmp_path):
    sample = tmp_path / "sample"
    sample.write_bytes(b"a\t1\nb\t2\nc\t3\n")
    told = yarnctl("--verify", str(sample), "--rounds", "1", "--", *python(REPORTING))
    assert told.returncode == 0
    assert (
        "note: the reducer wrote 3 counter lines, 3 status lines in a run without suspension" in told.stderr
    )
    assert told.stderr.count("a note") == 3
    assert "reporter:" not in told.stderr


def test_a_reducer_under_test_is_bounded_in_time_and_memory(tmp_path):
    sample = tmp_path / "sample"
    sample.write_bytes(b"a\t1\nb\t2\n")
    long = yarnctl(
        "--verify", str(sample), "--time-limit-s", "1", "--", "sh", "-c", "sleep 1000 & sleep 1000"
    )
    assert long.returncode == 2
    assert "took longer than 1 s" in long.stderr
    hungry = python("x = bytearray(1 << 30); print(len(x))")
    large = yarnctl("--verify", str(sample), "--memory-limit-mib", "512", "--", *hungry)
    assert large.returncode == 2
    assert "MemoryError" in large.stderr


# --------------------------------------------------------------------------------- verify


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample"
    path.write_bytes(grouped(40, 5))
    return path


GOOD = {
    "sum": python(SUM),
    "cat": ["cat"],
    "nothing": ["sh", "-c", "cat >/dev/null"],
    "count per key": ["sh", "-c", "cut -f1 | uniq -c"],
    "awk per line": ["awk", "-F\t", "{print $2 * 2}"],
}
BAD = {
    "awk END": ["awk", "{n++} END {print n}"], "top-N": ["sh", "-c", "sort -k2,2nr | head -n 3"],
    "first lines": ["head", "-n", "2"], "header": ["awk", 'BEGIN {print "key", "value"} {print}'],
    "line numbers": ["awk", "{print NR, $0}"], "uniq -c across keys": ["sh", "-c", "cut -c1-3 | uniq -c"],
    "running total": ["awk", "{n += $2; print n}"],
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_reducers_that_keep_the_promise_pass(sample, name):
    verdict = verify(sample, GOOD[name], rounds=3)
    assert verdict.holds, verdict.story
    assert verdict.groups == 40
    assert verdict.suspensions >= 3


def test_first_round_suspends_once(sample):
    assert verify(sample, GOOD["cat"], rounds=1, seed=0).suspensions == 1


@pytest.mark.parametrize("name", BAD)
def test_reducers_that_break_the_promise_are_caught(sample, name):
    verdict = verify(sample, BAD[name], rounds=3)
    assert not verdict.holds
    assert "suspended after group" in verdict.story


def test_grouping_by_fewer_fields_is_caught_and_the_promise_helps(tmp_path):
    path = tmp_path / "sample"
    path.write_bytes(b"".join(b"g%02d\t%02d\tv\n" % (at, by) for at in range(20) for by in range(4)))
    reducer = ["sh", "-c", "cut -f1 | uniq -c"]
    settings = {"stream.num.map.output.key.fields": "2"}
    assert not verify(path, reducer, settings=settings, rounds=4).holds
    assert verify(path, reducer, group_fields=1, settings=settings, rounds=4).holds


def test_a_sample_must_be_sorted_and_have_groups(tmp_path):
    path = tmp_path / "sample"
    lines = grouped(40, 2).splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    path.write_bytes(b"".join(lines))
    with pytest.raises(BadInput, match="LC_ALL=C sort"):
        verify(path, ["cat"])
    path.write_bytes(b"a\t1\na\t2\n")
    with pytest.raises(BadInput, match="1 key group"):
        verify(path, ["cat"])


def test_the_command_line_tells_the_story(sample):
    good = yarnctl("--verify", str(sample), "--rounds", "2", "--", "cat")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("output identical: 40 groups")
    bad = yarnctl("--verify", str(sample), "--rounds", "2", "--", "awk", "END {print NR}")
    assert bad.returncode == 1
    assert bad.stderr.startswith("error: not restartable: suspended after group")
    assert "from line 1 on" in bad.stderr
