"""``spark-submit``, parsed: what is known of it, what a gate sets, what is refused; each row is its claim."""

from __future__ import annotations

import pytest

from yarnctl.errors import BadInput
from yarnctl.frameworks.spark import submission as spark
from yarnctl.frameworks.submissions import FRAMEWORKS, kind_of

YARN = ("--master", "yarn", "--deploy-mode", "cluster")
APP = ("job.py", "--queue", "no-option", "--num-executors", "9")
TAGS = ["deadline:1900000000000", "yarnctl-admission-adm-1f2e3d4c-7"]
EXECUTORS, DYNAMIC = "spark.executor.instances", "spark.dynamicAllocation.enabled"


def line(*options: str) -> list[str]:
    return ["spark-submit", *YARN, *options, *APP]


@pytest.mark.parametrize(
    ("options", "most", "claim"),
    [(("--num-executors", "4"), 5, "executors, and the driver's container"),
     (("--num-executors=4",), 5, "with an equals sign"), (("--conf", f"{EXECUTORS}=4"), 5, "as a setting"),
     (("-c", f"{EXECUTORS}=4"), 5, "in short"),
     (("--conf", f"{EXECUTORS}=9", "--conf", f"{EXECUTORS}=4"), 5, "the last counts"),
     (("--num-executors", "4", "--conf", f"{EXECUTORS}=4"), 5, "twice the same"),
     ((), None, "Spark's default may stand in a file; arguments of the application are not read")],
)  # fmt: skip
def test_the_most_it_can_use(options, most, claim):
    assert spark.most_containers(spark.command_of(line(*options)).settings()) == most, claim


def test_what_names_it_and_whose_it_is():
    plain = spark.command_of(line())
    assert (plain.name_default, plain.queue_default, plain.user_option) == ("job.py", "default", None)
    classed = spark.command_of(["spark-submit", *YARN, "--class", "a.Main", "hdfs:///apps/x.jar", "in"])
    assert classed.name_default == "a.Main"
    assert spark.command_of(line("--name", "daily")).settings()[spark.NAME] == "daily"
    front = ["env", "HADOOP_USER_NAME=ann", "X=y", *line("--proxy-user", "bob", "--queue", "etl")]
    job = spark.command_of(front)
    assert (job.user_option, job.settings()[spark.QUEUE]) == ("bob", "etl")
    assert spark.command_of(["env", "HADOOP_USER_NAME=ann", *line()]).user_option == "ann"


def test_the_words_it_comes_out_with():
    options = ("--num-executors", "3", "--conf", "spark.yarn.tags=etl,deadline:1800000000", "--files", "a b")
    job = spark.command_of(["env", "A=1", "/opt/bin/spark-submit", *YARN, *options, *APP])
    more, notes = spark.settled(job.settings(), spark.given(5), TAGS)
    assert notes == []
    assert job.words(more) == [
        *("env", "A=1", "/opt/bin/spark-submit"),
        *("--conf", f"{DYNAMIC}=false", "--conf", f"spark.yarn.tags=etl,{','.join(TAGS)}"),
        *YARN,
        *("--num-executors", "3", "--files", "a b"),
        *APP,
    ]


LEAVING = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.replicationReattemptInterval": "1s",
    "spark.executor.decommission.signal": "TERM",
    "spark.plugins": "yarnctl.spark.Leaving",
}


@pytest.mark.parametrize(
    ("own", "given", "more", "claim"),
    [
        ({}, {EXECUTORS: "4", DYNAMIC: "false"}, {EXECUTORS: "4", DYNAMIC: "false"}, "all of it"),
        ({EXECUTORS: "2", DYNAMIC: "False"}, {EXECUTORS: "4", DYNAMIC: "false"}, {}, "what is lower stays"),
        ({spark.QUEUE: "root.a"}, {EXECUTORS: "4", spark.QUEUE: "a"}, {EXECUTORS: "4"}, "the same queue"),
        ({}, {EXECUTORS: "4", spark.PRIORITY: "3"}, {EXECUTORS: "4", spark.PRIORITY: "3"}, "a priority"),
        ({}, {EXECUTORS: "4", **LEAVING}, {EXECUTORS: "4", **LEAVING}, "what lets executors leave"),
    ],
)
def test_what_the_gate_sets_beside_the_tags(own, given, more, claim):
    found, notes = spark.settled(own, given, TAGS)
    assert found == {**more, "spark.yarn.tags": ",".join(TAGS)}, claim
    assert notes == []


def test_given_leaves_a_container_for_the_driver():
    assert [spark.given(containers)[EXECUTORS] for containers in (1, 2, 8)] == ["1", "1", "7"]


def test_a_tunable_is_set_to_values_that_the_user_named_only():
    name = "spark.executor.memory"
    given, tunables = {EXECUTORS: "4", name: "1g"}, {name: ("640m", "1g")}
    assert spark.settled({}, given, TAGS, tunables)[0][name] == "1g"
    more, notes = spark.settled({name: "2g"}, given, TAGS, tunables)
    assert name not in more
    assert notes == [f"{name}=2g is kept; the admission assumes 1g"]
    for other in ({name: ("640m",)}, {}):
        with pytest.raises(BadInput, match="'spark"):
            spark.settled({}, given, TAGS, other)


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [
        ({EXECUTORS: "5"}, {EXECUTORS: "4"}, "--num-executors 5: exceeds the granted 4; remove it"),
        ({EXECUTORS: "0"}, {EXECUTORS: "4"}, "spark.executor.instances=0: is not above 0"),
        ({spark.QUEUE: "b"}, {EXECUTORS: "4", spark.QUEUE: "a"}, "--queue b: queue a was granted"),
        ({}, {EXECUTORS: "4", "spark.plugins": "Bad"}, "'spark.plugins' was granted"),
        ({}, {EXECUTORS: "4", "spark.plugins": "yarnctl.A,Bad"}, "'spark.plugins' was granted"),
        ({}, {EXECUTORS: "4", "spark.decommission.script": "x"}, "was granted"),
        ({}, {EXECUTORS: "4 --conf x"}, "was granted"),
        ({}, {EXECUTORS: "4", DYNAMIC: "true"}, f"'{DYNAMIC}' was granted"),
        ({}, {}, "grants no executors for Spark"),
        ({"spark.yarn.tags": "yarnctl-admission-adm-1"}, {EXECUTORS: "4"}, "reserved for the daemon"),
        ({"spark.yarn.tags": ",".join("abcdefghi")}, {EXECUTORS: "4"}, "YARN accepts 10"),
    ],
)
def test_what_contradicts_is_refused_by_its_name(own, given, said):
    with pytest.raises(BadInput) as refused:
        spark.settled(own, given, TAGS)
    assert said in str(refused.value)


def test_a_tag_that_is_no_gate_s_is_refused():
    with pytest.raises(BadInput, match="'billing"):
        spark.settled({}, spark.given(4), [*TAGS, "billing:somebody-else"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["spark-submit", "--master", "local[2]", "job.py"], "--master local[2]: does not run on YARN"),
        (["spark-submit", *YARN[2:], "--conf", "spark.master=k8s://h", "x.py"], "does not run on YARN"),
        (["spark-submit", "--deploy-mode", "cluster", "job.py"], "--master: is missing"),
        (["spark-submit", "--master", "yarn", "job.py"], "Spark's default is client"),
        (
            ["spark-submit", "--master", "yarn", "--deploy-mode", "client", "job.py"],
            "--deploy-mode client: runs the driver outside of YARN; use --deploy-mode cluster",
        ),
        (line("--conf", f"{DYNAMIC}=TRUE"), f"{DYNAMIC}=TRUE: contradicts admission"),
        (line("--queue", "a", "--conf", "spark.yarn.queue=b"), "--queue a: contradicts --conf spark.yarn.q"),
        (line("--num-executors", "2", "--conf", f"{EXECUTORS}=3"), "--num-executors 2: contradicts"),
        (line("--kill", "driver-1"), "--kill: does not submit an application"),
        (line("--remote=sc://h"), "--remote: does not submit an application"),
        (line("--num-executer", "2"), "--num-executer: unknown option of spark-submit"),
        (line("--conf", "spark.x"), "--conf spark.x: has no ="),
        (["spark-submit", *YARN], "no application is given"),
        (["spark-submit", *YARN, "--name"], "--name: has no value"),
        (["sudo", "-u", "bob", *line()], "sudo: runs the job as a user other than the one of the request"),
        (["env", "-i", *line()], "env -i: hides the job's user"),
        (["yarnctl", "wrap", "--", *line()], "submits nothing without --exec"),
        (["spark-shell", *YARN], "spark-shell: runs the driver outside of YARN"),
        (["spark", *YARN], "does not contain spark-submit"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(words, said):
    with pytest.raises(BadInput) as refused:
        spark.command_of(words)
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["many", "-1", "1.5", ""])
def test_a_number_of_executors_that_is_none_is_refused(text):
    settings = spark.command_of(line("--conf", f"{EXECUTORS}={text}")).settings()
    with pytest.raises(BadInput, match="is not a whole number"):
        spark.most_containers(settings)


@pytest.mark.parametrize(
    ("words", "kind"),
    [(("hadoop", "jar", "x.jar", "-input", "/data/flink"), "mapreduce"),
     (("env", "A=1", "/opt/spark/bin/spark-submit", "hadoop"), "spark"),
     (("yarnctl", "wrap", "--exec", "--", "mapred", "streaming"), "mapreduce"),
     (("/opt/flink/bin/flink", "run", "spark-submit"), "flink"),
     (("yarn-emulator", "submit", "--name", "flink"), "mapreduce"),
     (("yarn-emulator", "spark-submit", "x"), "spark")],
)  # fmt: skip
def test_the_first_word_that_names_a_program_decides_the_framework(words, kind):
    assert kind_of(words) == kind
    assert kind in FRAMEWORKS
