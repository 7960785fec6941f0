"""APP.toml: what it says, and each thing that is refused by its name before anything is run."""

from __future__ import annotations

import pytest

from yarnctl.errors import BadInput
from yarnctl.frameworks.application_files import profile_settings, read_application

FILE = """
name = "wordcount"
features = { input_mib = 2048 }
[spark]
command = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "--class", "W", "a.jar", "o-{run}"]
tunables = { "spark.executor.memory" = ["640m", "1g"], "spark.shuffle.compress" = [true, false] }
[flink]
command = ["flink", "run-application", "-t", "yarn-application", "-c", "W", "a.jar", "/in", "/out"]
[mapreduce]
command = ["hadoop", "jar", "hadoop-mapreduce-examples.jar", "wordcount", "/in", "/out"]
"""


def read(text: str):
    return read_application(text.encode(), "APP.toml")


def test_the_file_of_the_issue_is_read():
    found = read(FILE)
    assert (found.name, found.features, sorted(found.sections)) == (
        "wordcount",
        {"input_mib": 2048.0},
        ["flink", "mapreduce", "spark"],
    )
    spark = found.sections["spark"]
    assert spark.tunables["spark.shuffle.compress"] == ("true", "false")
    assert spark.job("7").words({"spark.executor.instances": "2"})[-1] == "o-7"
    hadoop = found.sections["mapreduce"].job().words({"mapreduce.job.running.map.limit": "3"})
    assert hadoop == [
        *("hadoop", "jar", "hadoop-mapreduce-examples.jar", "wordcount"),
        *("-D", "mapreduce.job.running.map.limit=3", "/in", "/out"),
    ]
    assert list(found.only("flink").sections) == ["flink"]


def test_a_program_in_a_jar_keeps_its_own_settings_and_words():
    job = read(
        FILE.replace('"wordcount", "/in"', '"grep", "-Dx=1", "-D", "y=2", "-Dz", "/in"', 1).replace(
            '"-Dz", ', ""
        )
    )
    words = job.sections["mapreduce"].job()
    assert words.settings() == {"x": "1", "y": "2"}
    assert words.words({"y": "3"})[4:] == ["-D", "y=3", "-Dx=1", "/in", "/out"]


def test_each_value_of_a_tunable_is_profiled_once_beside_the_first_ones():
    tunables = read(FILE).sections["spark"].tunables
    memory, compress = "spark.executor.memory", "spark.shuffle.compress"
    assert profile_settings(tunables) == [
        {memory: "640m", compress: "true"},
        {memory: "1g", compress: "true"},
        {memory: "640m", compress: "false"},
    ]
    assert profile_settings({}) == [{}]


CASES = {
    "too large": (FILE + "#" * 70_000, "exceeds the maximum of 64 KiB"),
    "no TOML": ("name = ", "invalid TOML"),
    "no text": ("\ud800", "invalid TOML"),
    "a section that is not known": (FILE + "[tez]\n", "unknown key 'tez'"),
    "a key that is not known": (FILE + "color = 3\n", "[mapreduce]: unknown key 'color'"),
    "no name": (FILE.replace('name = "wordcount"', ""), "name is missing"),
    "a name that is printed ill": (FILE.replace('"wordcount"', '"a\\nb"', 1), "invalid name 'a\\nb'"),
    "no section": ('name = "a"', "has no section"),
    "NaN": (FILE.replace("2048", "nan"), "features: input_mib: nan"),
    "a number of 400 digits": (FILE.replace("2048", "1" * 400), "features: input_mib: 111"),
    "infinite": (FILE.replace("2048", "-inf"), "features: input_mib: -inf"),
    "a feature that is a word": (FILE.replace("2048", '"big"'), "features: input_mib: 'big'"),
    "a truth": (FILE.replace("2048", "true"), "features: input_mib: True"),
    "a tunable that is not known": (FILE.replace("spark.shuffle.compress", "spark.yarn.dist.files"),
        "is not a known tunable"),
    "a tunable's empty list": (FILE.replace("[true, false]", "[]"), "is not a list of 1 to 8 words"),
    "a tunable's odd value": (FILE.replace('"640m"', '"a b"'), "is not a list of 1 to 8 words"),
    "no command": (FILE.replace('command = ["flink"', 'commands = ["flink"'),
        "[flink]: unknown key 'commands'"),
    "a shell line": (FILE.replace('["flink", "run-application"', '"flink run"#'), "is not a list of words"),
    "another framework's": (FILE.replace('"flink", "run-application"', '"spark-submit", "x"'),
        "the command runs spark-submit, which is not a program of flink; use flink run"),
    "--num-executors": (FILE.replace('"--class"', '"--num-executors", "4", "--class"'),
        "spark.executor.instances"),
    "--master local": (FILE.replace('"yarn", "--deploy', '"local[2]", "--deploy'), "does not run on YARN"),
    "client mode": (FILE.replace('"cluster"', '"client"'), "runs the driver outside of YARN"),
    "dynamic allocation": (
        FILE.replace('"--class"', '"--conf", "spark.dynamicAllocation.enabled=true", "--class"'),
        "contradicts admission",
    ),
    "-p": (FILE.replace('"-c", "W"', '"-p", "3"'), "sets parallelism.default"),
    "a running limit": (
        FILE.replace('"wordcount", "/in"', '"wordcount", "-Dmapreduce.job.running.map.limit=2"'),
        "sets mapreduce.job.running.map.limit",
    ),
    "a tunable on the line": (FILE.replace('"--class"', '"--conf", "spark.executor.memory=1g", "--class"'),
        "spark.executor.memory is both a tunable and set by the command"),
    "a forged tag": (
        FILE.replace('"--class"', '"--conf", "spark.yarn.tags=yarnctl-admission-adm-1-1", "--class"'),
        "reserved for the daemon",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_what_is_wrong_is_refused_by_its_name(case):
    text, said = CASES[case]
    with pytest.raises(BadInput) as refused:
        read_application(text.encode("utf-8", "surrogatepass"), "APP.toml")
    assert said in str(refused.value)
    assert str(refused.value).startswith("APP.toml")


def test_a_kind_that_the_file_has_not_is_refused():
    with pytest.raises(BadInput, match=r"--kind: the file has no section \[tez\]"):
        read(FILE).only("tez")
