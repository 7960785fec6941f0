"""What ``yarnctl wrap`` prints for a user to do is carried out here, on commands that people have typed."""

from __future__ import annotations

import os
import re
import shlex
from types import SimpleNamespace

import pytest

from emulator.live.jobs.streaming_job import wrapped
from emulator.live.wire.submitted_job import StreamingJob
from tests.field_commands import JOBS, commands_in
from yarnctl.attach.eligibility.settings_reader import Drainable
from yarnctl.cli import PROGRAM, taking_place
from yarnctl.cli.cluster import FolderOptions, folders_of
from yarnctl.command_line import exit_status_of
from yarnctl.config import ClusterAddress
from yarnctl.errors import BadInput
from yarnctl.frameworks.spark.configuration import FILES, REQUIRED, REQUIRED_BY_SIGNAL, TRAP
from yarnctl.frameworks.spark.consent import judge
from yarnctl.task_runner.runner.protocol.job_conf import READ_SETTINGS, Conf, read_prefix, read_rule
from yarnctl.task_runner.shipped import RUNNER
from yarnctl.task_runner.wrapping import partitioned_fields

STORE = "webhdfs://nn.example:9870/yarnctl/checkpoints"
WRAP = ["wrap", "--restartable", "--store", STORE]
STREAMING = ["hadoop", "jar", "hadoop-streaming.jar"]
IN_OUT = ["-input", "in", "-output", "out", "-mapper", "cat"]
JOB = [*STREAMING, *IN_OUT, "-reducer", "r"]
GROUPS = commands_in("h08-groups-by-the-first-of-two-key-fields.txt")[""]
PUBLIC = commands_in("h07-wrap-commands.txt")
OTHERS = commands_in("h09-spark-and-admit-commands.txt")
KEY_FIELDS = "stream.num.map.output.key.fields"
PARTITIONING = "mapreduce.partition.keypartitioner.options"


def partitioned(settings: dict[str, str], key_fields: int) -> int:
    return partitioned_fields(settings, [], key_fields)


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Return the status of a command of yarnctl, the words of the line that it prints, and its errors."""
    status = exit_status_of(PROGRAM, words)
    told = capsys.readouterr()
    return status, shlex.split(told.out), told.err


def noted(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the notes of a command that submits; the program that would take its place is not run."""
    monkeypatch.setattr(taking_place, "shutil", SimpleNamespace(which=str))
    monkeypatch.setattr(os, "execvp", lambda *_: None)
    status, _, said = printed(words, capsys)
    assert status == 0, said
    return said


def advised_test(said: str) -> list[str]:
    """Return the words of the test that a note prints, with a sample in it."""
    found = re.search(r"Test it: yarnctl (wrap --verify .*)$", said, re.MULTILINE)
    assert found is not None, said
    return [
        str(JOBS / "h08-sorted.txt") if word == "SORTED_SAMPLE" else word for word in shlex.split(found[1])
    ]


# ----------------------------------------------------------------------- the test of the promise


def test_printed_test_of_a_false_promise_says_not_restartable(monkeypatch, capsys):
    files = ["-files", "m.py,h08-sums.py"]
    job = [*STREAMING, "-D", f"{KEY_FIELDS}=2", *files, *IN_OUT, "-reducer", "python3 h08-sums.py"]
    assert set(job) - set(GROUPS) == {"cat"}
    monkeypatch.chdir(JOBS)
    said = noted([*WRAP, "--exec", "--", *job], monkeypatch, capsys)
    status, _, said = printed(advised_test(said), capsys)
    assert status == 1
    assert "not restartable: suspended after group" in said


SPELLED = {
    "-D": ["-D", f"{KEY_FIELDS}=2"], "-D, glued": [f"-D{KEY_FIELDS}=2"], "-D=": [f"-D={KEY_FIELDS}=2"],
    "--D": ["--D", f"{KEY_FIELDS}=2"], "-jobconf": ["-jobconf", f"{KEY_FIELDS}=2"],
    "--jobconf": ["--jobconf", f"{KEY_FIELDS}=2"],
}  # fmt: skip


@pytest.mark.parametrize("spelled", list(SPELLED))
def test_printed_test_has_the_number_of_key_fields_however_it_was_typed(spelled, monkeypatch, capsys):
    words = SPELLED[spelled]
    generic, own = (words, []) if "jobconf" not in spelled else ([], words)
    job = [*STREAMING, *generic, *IN_OUT, *own, "-reducer", "python3 h08-sums.py"]
    command = advised_test(noted([*WRAP, "--exec", "--", *job], monkeypatch, capsys))
    assert command[command.index("-D") + 1] == f"{KEY_FIELDS}=2"


def test_bare_promise_is_rejected_where_the_partitioner_uses_fewer_fields(capsys):
    status, _, said = printed([*WRAP, "--", *GROUPS], capsys)
    assert status == 2
    assert "--group-fields 1" in said


@pytest.mark.parametrize(
    "partitioning",
    [["-D", "mapred.text.key.partitioner.options=-k1,1"],
     ["-Dmapreduce.partition.keypartitioner.options=-k1,1"], ["-D", "num.key.fields.for.partition=1"],
     ["-D", "mapred.partitioner.class=org.example.ByUser"]],
)  # fmt: skip
def test_bare_promise_is_rejected_in_every_form_of_a_partial_partitioner(partitioning, capsys):
    job = [*STREAMING, "-D", f"{KEY_FIELDS}=2", *partitioning, *IN_OUT, "-reducer", "r"]
    status, _, said = printed([*WRAP, "--", *job], capsys)
    assert status == 2
    assert "--group-fields" in said


@pytest.mark.parametrize("partitioner", ["HashPartitioner", "TotalOrderPartitioner"])
def test_bare_promise_is_accepted_where_the_partitioner_uses_the_whole_key(partitioner, capsys):
    own = ["-partitioner", f"org.apache.hadoop.mapred.lib.{partitioner}"]
    job = [*STREAMING, "-D", f"{KEY_FIELDS}=2", *IN_OUT, "-reducer", "r", *own]
    assert printed([*WRAP, "--", *job], capsys)[0] == 0
    assert partitioned({}, 2) == 2
    assert partitioned({PARTITIONING: "-k1,2"}, 2) == 2
    assert partitioned({PARTITIONING: "-k1nr"}, 3) == 3  # to the end of the key
    assert partitioned({PARTITIONING: "-k1,1 -k2,2"}, 3) == 2
    assert partitioned({PARTITIONING: "-nk 1.2,1.4"}, 3) == 1
    assert partitioned({PARTITIONING: "-k2,2"}, 2) == 0
    own_separator = {"mapreduce.map.output.key.field.separator": "."}
    assert partitioned({PARTITIONING: "-k1,2", **own_separator}, 2) == 0


def test_emulated_job_with_a_bare_promise_is_rejected_likewise():
    settings = {KEY_FIELDS: "2", "mapred.text.key.partitioner.options": "-k1,1"}
    job = StreamingJob(
        name="n", mapper="cat", reducer="r", inputs=(), output="o", reduces=2, settings=settings
    )
    with pytest.raises(BadInput, match="--group-fields 1"):
        wrapped(job, True, 0, {})
    assert "--group-fields 1 -- r" in wrapped(job, True, 1, {}).reducer


def test_printed_test_has_the_environment_the_options_and_the_files_of_the_job(monkeypatch, capsys, tmp_path):
    """The reducer lies elsewhere than here, reads a variable and keeps its state by commands of its own."""
    site = "<property><name>stream.reduce.input.field.separator</name><value>;</value></property>"
    (tmp_path / "job.xml").write_text(f"<configuration>{site}</configuration>")
    files = ["-conf", str(tmp_path / "job.xml"), "-files", "src/red.py,hdfs://nn/dict#words,lib/a.py#b.py"]
    own = ["-cmdenv", "LIMIT=3 4", "-cmdenv", "YARNCTL_REQUESTS=webhdfs://nn:9870/r"]
    job = [*STREAMING, *files, *IN_OUT, *own, "-reducer", "red.py --with 'b.py' words \"a b\""]
    state = ["--save", "red.py save", "--load", "red.py load"]
    said = noted([*WRAP, *state, "--exec", "--", *job], monkeypatch, capsys)
    assert advised_test(said)[3:] == [
        *("-D", "stream.reduce.input.field.separator=;", *state, "--"),
        *("env", "LIMIT=3", "src/red.py", "--with", "lib/a.py", "words", "a b"),
    ]


def test_printed_test_of_a_program_beside_the_caller_runs_it(monkeypatch, capsys, tmp_path):
    program = tmp_path / "red.sh"
    program.write_text("#!/bin/sh\nexec cat\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    job = [*STREAMING, "--files=red.sh", *IN_OUT, "-reducer", "red.sh"]
    command = advised_test(noted([*WRAP, "--exec", "--", *job], monkeypatch, capsys))
    assert command[-1] == "./red.sh"
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert printed(command, capsys)[0] == 0


def test_settings_of_a_test_are_all_that_the_runner_reads():
    """Each name that the runner looks up to read lines is among those that the printed test carries."""
    looked_up = set()

    class Noting(Conf):
        def get(self, name: str, default: str = "") -> str:
            looked_up.add(name)
            return super().get(name, default)

    read_rule(Noting({}), 0)
    read_prefix(Noting({}))
    assert looked_up == set(READ_SETTINGS)


# -------------------------------------------------------------------- Hadoop's spellings of options


def test_files_named_by_a_setting_are_rejected(capsys):
    """``-D tmpfiles`` takes the place of ``-files``: the runner would not be shipped."""
    job = [*STREAMING, "-Dtmpfiles=m.py", *IN_OUT, "-reducer", "r"]
    status, _, said = printed([*WRAP, "--", *job], capsys)
    assert status == 2
    assert "list these files in -files" in said


def test_quotes_around_a_whole_reducer_are_dropped_as_hadoop_does(capsys):
    _, line, _ = printed([*WRAP, "--", *STREAMING, *IN_OUT, "-reducer", '"uniq -c"'], capsys)
    assert "sh yarnctl_task.py --restartable -- uniq -c" in line


@pytest.mark.parametrize("spelled", [("-files", ""), ("--files", ""), ("-files", "="), ("--files", "=")])
def test_files_of_the_user_are_shipped_beside_the_runner(spelled, capsys):
    name, equals = spelled
    files = [f"{name}=m.py,r.py"] if equals else [name, "m.py,r.py"]
    status, line, said = printed([*WRAP, "--", *STREAMING, *files, *IN_OUT, "-reducer", "r.py"], capsys)
    assert status == 0, said
    assert [word for word in line if "m.py,r.py" in word] == [
        word for word in line if word.endswith(f"m.py,r.py,{RUNNER}")
    ]
    assert [word for word in line if RUNNER.name in word and "m.py,r.py" not in word] == [
        "sh yarnctl_task.py --restartable -- r.py"
    ]


@pytest.mark.parametrize("case", ["generic-double-dash", "several-inputs-behind-one-option"])
def test_public_command_keeps_every_word_but_the_files_and_the_reducer(case, capsys):
    status, line, said = printed([*WRAP, "--", *PUBLIC[case]], capsys)
    assert status == 0, said
    own = PUBLIC[case][len(STREAMING) :]
    changed = {own[place + 1] for place, word in enumerate(own) if word in ("--files", "-reducer")}
    assert {word for word in own if word not in line} <= changed
    assert line.count(str(RUNNER)) + sum(word.endswith(f",{RUNNER}") for word in line) == 1


# ------------------------------------------------------------------------------------ the store


@pytest.mark.parametrize(
    "store",
    ["hdfs://nn.example:8020/yarnctl/checkpoints", "http://nn.example:9870/yarnctl/checkpoints",
     "/yarnctl/checkpoints", "webhdfs:///yarnctl/checkpoints", "webhdfs://nn.example:9870", "file:yarnctl"],
)  # fmt: skip
@pytest.mark.parametrize("where", ["--store", "-cmdenv", "--requests"])
def test_store_that_the_node_refuses_is_rejected_with_an_address_to_use(where, store, capsys):
    job = [*STREAMING, *IN_OUT, "-reducer", "uniq -c"]
    front = ["wrap", "--restartable"]
    if where == "--store":
        front += ["--store", store]
    elif where == "--requests":
        front += ["--store", STORE, "--requests", store]
    else:
        job += ["-cmdenv", f"YARNCTL_STORE={store}"]
    status, line, said = printed([*front, "--", *job], capsys)
    assert (status, line) == (2, [])
    assert "webhdfs://" in said.partition(": ")[2].partition("; ")[2]


def test_address_that_the_remedy_offers_is_accepted(capsys):
    words = OTHERS["store-as-hadoop-writes-it"][1:]
    status, _, said = printed(words, capsys)
    assert status == 2
    (offered,) = re.findall(r"webhdfs://nn\.example:[0-9]+/\S*", said)
    words[words.index("--store") + 1] = offered
    status, line, _ = printed(words, capsys)
    assert status == 0
    assert f"YARNCTL_STORE={offered}" in line


@pytest.mark.parametrize("command", ["check", "checkpoints"])
def test_check_and_run_take_the_store_in_the_form_of_wrap(command, capsys):
    words = [command] if command == "check" else [command, "list"]
    status, _, said = printed([*words, "--rm", "http://127.0.0.1:9", "--store", STORE], capsys)
    assert status == 3, said  # no ResourceManager answers: the store was accepted


@pytest.mark.parametrize(
    ("store", "told"),
    [
        ("hdfs://nn.example:8020/yarnctl/checkpoints", "use webhdfs://nn.example:9870/yarnctl/checkpoints"),
        (
            "webhdfs://other:9870/yarnctl/checkpoints",
            "the cluster uses another HDFS (http://nn.example:9870)",
        ),
        ("file:///yarnctl/checkpoints", "the folder must be in HDFS"),
        ("checkpoints", "use a folder such as /yarnctl/checkpoints"),
    ],
)
def test_check_rejects_a_store_that_jobs_could_not_use(store, told, capsys):
    front = ["check", "--rm", "http://127.0.0.1:9", "--name-node", "http://nn.example:9870"]
    status, _, said = printed([*front, "--store", store], capsys)
    assert status == 2
    assert told in said


def test_store_that_names_a_name_node_needs_no_other_option():
    folders = FolderOptions("/y/requests", "swebhdfs://n1:9871,n2:9871/y/c")
    cluster, requests, store = folders_of(ClusterAddress(resource_managers=("http://rm:8088",)), folders)
    assert (requests, store) == ("/y/requests", "/y/c")
    assert cluster.name_nodes == ("https://n1:9871", "https://n2:9871")


# --------------------------------------------------------- settings that turn leaving into killing

KILLS = "spark.executor.decommission.forceKillTimeout"


def test_spark_settings_that_kill_leaving_executors_are_rejected(capsys):
    status, _, said = printed(OTHERS["killed-after-a-minute"][1:], capsys)
    assert status == 2
    assert f"{KILLS}=60s" in said


@pytest.mark.parametrize("how", ["--properties-file", "spark-defaults.conf"])
def test_the_same_in_a_file_of_settings_is_rejected(how, tmp_path, monkeypatch, capsys):
    file = tmp_path / "spark-defaults.conf"
    file.write_text(f"{KILLS} 10s\n")
    own = ["--properties-file", str(file)] if how == "--properties-file" else []
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    job = ["spark-submit", "--master", "yarn", *own, "a.py"]
    status, _, said = printed(["wrap", "--spark", "--", *job], capsys)
    assert status == 2
    assert KILLS in said


def test_daemon_leaves_executors_alone_that_spark_would_kill():
    settings = {**REQUIRED, **REQUIRED_BY_SIGNAL, FILES: f"file:/opt/{TRAP}"}
    tags = ["yarnctl-drain:signal"]
    assert isinstance(judge(tags, settings, "4.0.1", "/r", "yarnctl"), Drainable)
    reason = judge(tags, {**settings, KILLS: "10s"}, "4.0.1", "/r", "yarnctl")
    assert not isinstance(reason, Drainable)


def test_second_setting_behind_one_conf_is_noted(capsys):
    """``spark-submit`` takes it for the application's file, with or without yarnctl."""
    job = ["spark-submit", "--master", "yarn", "--conf", "spark.a=1", "spark.b=2", "app.py"]
    status, line, said = printed(["wrap", "--spark", "--", *job], capsys)
    assert (status, line[-4:]) == (0, ["--conf", "spark.a=1", "spark.b=2", "app.py"])
    assert "note: spark-submit uses 'spark.b=2' as the application's file" in said


# ------------------------------------------------------------- advice that changes a job's result

CHANGING = {
    "a comparator": PUBLIC["secondary-sort"],
    "the reducer that Hadoop has": PUBLIC["identity-reducer-by-default"],
    "no reduce": PUBLIC["map-only"],
    "status of the program": [*STREAMING, "-Dstream.non.zero.exit.is.failure=false", *JOB[3:]],
    "typed bytes": [*JOB, "-io", "typedbytes"],
    "an output format": [*JOB, "--outputformat", "org.example.Several"],
    "a separator of two bytes": [*STREAMING, "-D", "stream.map.output.field.separator=\\t", *JOB[3:]],
    "a comparator of groups": [*JOB, "-jobconf", "mapred.output.value.groupfn.class=org.example.G"],
}


@pytest.mark.parametrize("case", list(CHANGING))
def test_remedy_never_changes_what_the_job_computes(case, capsys):
    status, _, said = printed([*WRAP, "--group-fields", "1", "--", *CHANGING[case]], capsys)
    assert status == 2
    assert said.rstrip().endswith("submit it without yarnctl wrap")


# --------------------------------------------------------------------------- errors without a subject


@pytest.mark.parametrize("kind", [[], ["--spark"], ["--flink"]])
def test_program_that_cannot_be_run_is_named(kind, capsys):
    line = {
        "": [*STREAMING, *IN_OUT, "-reducer", "r"],
        "--spark": ["spark-submit", "--master", "yarn", "a.py"],
        "--flink": ["flink", "run-application", "-t", "yarn-application", "a.jar"],
    }["".join(kind)]
    words = ["wrap", *kind, "--exec", "--", "HADOOP_USER_NAME=bob", *line]
    status, _, said = printed(words, capsys)
    assert status == 2
    assert "error: HADOOP_USER_NAME=bob: " in said
    assert "use env HADOOP_USER_NAME=bob " in said


def test_word_of_blanks_is_quoted(capsys):
    status, _, said = printed([*WRAP, "--", *STREAMING, *IN_OUT, "-reducer", "r", " "], capsys)
    assert status == 2
    assert said.startswith("error: ' ': ")
