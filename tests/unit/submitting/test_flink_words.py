"""``flink run-application`` and ``flink run``, parsed: what is known, what a gate sets, what is refused."""

from __future__ import annotations

import pytest

from yarnctl.errors import BadInput
from yarnctl.frameworks.flink import submission as flink

RUN = ("flink", "run-application", "-t", "yarn-application")
APP = ("hdfs:///apps/job.jar", "-p", "99", "-Dyarn.tags=not-read")
TAGS = ["deadline:1900000000000", "yarnctl-admission-adm-1f2e3d4c-7"]
P, SLOTS = "parallelism.default", "taskmanager.numberOfTaskSlots"


def line(*options: str) -> list[str]:
    return [*RUN, *options, *APP]


@pytest.mark.parametrize(
    ("options", "most", "claim"),
    [(("-p", "3"), 4, "TaskManagers of one slot, and the JobManager"), (("-p3",), 4, "in one word"),
     (("--parallelism=3",), 4, "the long form"), ((f"-D{P}=3",), 4, "as a setting"),
     (("-D", f"{P}=3"), 4, "as a setting in two words"),
     (("-p", "5", f"-D{SLOTS}=2"), 4, "slots share a TaskManager; the last one is not full"),
     (("-d", "-p", "4", f"-D{SLOTS}=4", "-c", "Main"), 2, "one TaskManager"),
     ((f"-D{SLOTS}=4",), None, "parallelism may stand in a file; the job's arguments are not read")],
)  # fmt: skip
def test_the_most_it_can_use(options, most, claim):
    assert flink.most_containers(flink.command_of(line(*options)).settings()) == most, claim


@pytest.mark.parametrize(
    ("own", "containers", "more", "claim"),
    [
        ({}, 5, {P: "4", SLOTS: "1"}, "a TaskManager for each"),
        ({P: "3"}, 5, {SLOTS: "1"}, "a lower parallelism stays"),
        ({SLOTS: "2"}, 5, {P: "8"}, "the user's slots stay, and count"),
        ({P: "8", SLOTS: "2"}, 5, {}, "as many as fit"),
        ({SLOTS: "2"}, 1, {P: "2"}, "the least is a JobManager and one more"),
    ],
)
def test_what_the_gate_sets_beside_the_tags(own, containers, more, claim):
    found, notes = flink.settled(own, flink.given(containers), TAGS)
    assert found == {**more, "yarn.tags": ",".join(TAGS)}, claim
    assert notes == []


def test_the_words_it_comes_out_with():
    options = ("-Dyarn.tags=a:b", "-Djobmanager.memory.process.size=512m", "-n", "-c", "Main")
    job = flink.command_of(["env", "HADOOP_USER_NAME=ann", *line(*options)])
    assert (job.user_option, job.name_default) == ("ann", "Flink Application Cluster")
    more, _ = flink.settled(job.settings(), flink.given(3), TAGS)
    assert job.words(more) == [
        *("env", "HADOOP_USER_NAME=ann", "flink", "run-application"),
        *(f"-D{P}=2", f"-D{SLOTS}=1", f"-Dyarn.tags=a:b,{','.join(TAGS)}"),
        *("-t", "yarn-application", "-Djobmanager.memory.process.size=512m", "-n", "-c", "Main"),
        *APP,
    ]


@pytest.mark.parametrize("target", ["yarn-application", "yarn-per-job"])
def test_flink_run_is_taken_where_it_is_an_application_of_its_own(target):
    job = flink.command_of(["flink", "run", f"-Dexecution.target={target}", "-p", "2", "x.jar"])
    assert job.words({}) == ["flink", "run", f"-Dexecution.target={target}", "-p", "2", "x.jar"]


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [
        ({P: "5"}, {P: "4", SLOTS: "1"},
         "-p 5: exceeds the granted 4; remove it, and request yarnctl admit --containers 6"),
        ({P: "9", SLOTS: "2"}, {P: "4", SLOTS: "1"}, "-p 9: exceeds the granted 8"),
        ({SLOTS: "0"}, {P: "4", SLOTS: "1"}, f"{SLOTS}=0: is not above 0"),
        ({flink.QUEUE: "b"}, {P: "4", SLOTS: "1", flink.QUEUE: "a"},
         "yarn.application.queue=b: queue a was granted"),
        ({}, {P: "4", SLOTS: "1", "env.java.opts.all": "-Xbad"}, "'env.java.opts.all' was granted"),
        ({}, {P: "4"}, "grants no parallelism for Flink"),
        ({"yarn.tags": "yarnctl-admission-adm-1"}, {P: "4", SLOTS: "1"}, "reserved for the daemon"),
    ],
)  # fmt: skip
def test_what_contradicts_is_refused_by_its_name(own, given, said):
    with pytest.raises(BadInput) as refused:
        flink.settled(own, given, TAGS)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["flink", "run", "x.jar"], "-t: is missing; add -t yarn-application"),
     (["flink", "run", "-t", "local", "x.jar"], "-t local: does not create a YARN application"),
     (["flink", "run", "-t", "yarn-session", "x.jar"], "-t yarn-session: does not create"),
     (["flink", "run", "-m", "yarn-cluster", "x.jar"],
      "-m yarn-cluster: is Flink's old form; use: flink run-application -t yarn-application x.jar"),
     (line("-yqu", "etl"), "-yqu etl: is Flink's old form; use: flink run"),
     (line("--unheard", "x"), "--unheard: unknown option of flink run"),
     (line("-Dexecution.target=remote"), "-t yarn-application: contradicts -Dexecution.target=remote"),
     (line("-p", "2", f"-D{P}=3"), "-p 2: contradicts"),
     (["flink", "list", "-t", "yarn-application"], "does not submit a Flink job"),
     (["flink"], "does not submit a Flink job"), ([*RUN, "-c"], "-c: has no value"),
     (["su", "bob", *line()], "su: runs the job as a user other than the one of the request")],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_asked(words, said):
    with pytest.raises(BadInput) as refused:
        flink.command_of(words)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["many", "-1", ""])
def test_a_parallelism_that_is_none_is_refused(text):
    with pytest.raises(BadInput, match="is not a whole number"):
        flink.most_containers(flink.command_of(line(f"-D{P}={text}")).settings())
