"""Every remedy of the commands that submit is carried out here, until the command is accepted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.commands.test_printed_advice import (
    CHANGING,
    GROUPS,
    IN_OUT,
    JOB,
    OTHERS,
    PUBLIC,
    STREAMING,
    WRAP,
    printed,
)
from tests.unit.gate_played import ADMITTED, Daemon, admission, page
from yarnctl.cli import PROGRAM, taking_place
from yarnctl.command_line import exit_status_of

SPARK = ["spark-submit", "--master", "yarn"]
FLINK = ["flink", "run-application", "-t", "yarn-application"]
ADMIT = ["admit", "--print", "--deadline", "10m", "--user", "ann", "--"]
SPARK_GIVEN = {"spark.executor.instances": "3", "spark.dynamicAllocation.enabled": "false"}
FLINK_GIVEN = {"parallelism.default": "3", "taskmanager.numberOfTaskSlots": "1"}
SIZED = ["-D", "mapreduce.job.maps=40"]


def inserted(words: list[str], place: int, *more: str) -> list[str]:
    return [*words[:place], *more, *words[place:]]


def before_job(words: list[str], *more: str) -> list[str]:
    """Give options to the command of yarnctl itself."""
    return inserted(words, words.index("--"), *more)


def behind_program(words: list[str], *more: str) -> list[str]:
    program = next(place for place, word in enumerate(words) if word in ("spark-submit", "run-application"))
    return inserted(words, program + 1, *more)


def without(words: list[str], name: str) -> list[str]:
    """Remove a setting, with the option in front of it if it stands alone."""
    place = next(place for place, word in enumerate(words) if name in word)
    first = place if words[place].startswith("-D") else place - 1
    return [*words[:first], *words[place + 1 :]]


def replaced(words: list[str], old: str, new: str) -> list[str]:
    assert old in " ".join(words)
    return [word.replace(old, new) for word in words]


Act = Callable[[list[str], re.Match[str]], list[str] | None]
ACTS: dict[str, Act] = {
    r"submit it without yarnctl wrap(; only commands can be suspended)?$": lambda words, told: None,
    r"--group-fields ([0-9]+), or": lambda words, told: before_job(words, "--group-fields", told[1]),
    r"use (webhdfs://\S+) \(": lambda words, told: [
        told[1] if word.startswith(("hdfs://", "http://", "/yarnctl")) else word for word in words
    ],
    r"set (YARNCTL_STORE)=(webhdfs://\S+),": lambda words, told: before_job(words, "--store", told[2]),
    r"set it to false$": lambda words, told: replaced(words, "speculative=true", "speculative=false"),
    r"list these files in -files$": lambda words, told: [
        word.removeprefix("tmpfiles=").replace("-D", "-files") for word in words
    ],
    r"use env ": lambda words, told: inserted(words, words.index("--") + 1, "env"),
    r"add (--spark|--flink)(?: or --flink)?$": lambda words, told: before_job(words, told[1]),
    r"(?:add|use) (--master) (yarn)$": lambda words, told: behind_program(words, told[1], told[2]),
    r"use (--deploy-mode) (cluster)$": lambda words, told: behind_program(words, told[1], told[2]),
    r"use client or (cluster)$": lambda words, told: replaced(words, "yarn-client", told[1]),
    r"(?:add|use) (-t) (yarn-application)$": lambda words, told: behind_program(words, told[1], told[2]),
    r"--route plugin --plugin (JAR)": lambda words, told: before_job(
        [word for word in words if word != "--uses-pipe"], "--route", "plugin", "--plugin", "leave.jar"
    ),
    r"remove (?:it; )?([a-z]+[.][A-Za-z.-]+)": lambda words, told: without(words, told[1]),
    r"use 'yarnctl wrap --exec": lambda words, told: inserted(words, words.index("wrap") + 1, "--exec"),
    r"add --containers N ": lambda words, told: before_job(words, "--containers", "41"),
    r"use only 'env NAME=value \.\.\. hadoop": lambda words, told: [word for word in words if word != "-i"],
    r"request yarnctl admit --containers ([0-9]+)": lambda words, told: before_job(
        words, "--containers", told[1]
    ),
}
"""What a user does for a remedy; None: the job itself is submitted, without ``yarnctl wrap``."""

REMEDIED: dict[str, list[str]] = {
    "fewer fields in the partitioner": [*WRAP, "--", *GROUPS],
    "a store by hdfs": OTHERS["store-as-hadoop-writes-it"][1:],
    "a store by its path": ["wrap", "--restartable", "--store", "/yarnctl/checkpoints", "--", *JOB],
    "requests by http": [*WRAP, "--requests", "http://nn:9870/yarnctl/requests", "--", *JOB],
    "no store": ["wrap", "--exec", "--restartable", "--", *JOB],
    "speculation": [*WRAP, "--", *STREAMING, "-Dmapreduce.reduce.speculative=true", *JOB[3:]],
    "tmpfiles": [*WRAP, "--", *STREAMING, "-D", "tmpfiles=m.py", *JOB[3:]],
    "a class": [*WRAP, "--", *STREAMING, *IN_OUT, "-reducer", "org.example.my.Sum"],
    "no reduces": [*WRAP, "--", *JOB, "-numReduceTasks", "0"],
    "no reduces by a setting": [*WRAP, "--", *PUBLIC["map-only"], "-reducer", "r"],
    "a plugin without --spark": ["wrap", "--min-executors", "2", "--", *SPARK, "a.py"],
    "a batch without --flink": ["wrap", "--batch", "--", *FLINK, "a.jar"],
    "Spark elsewhere": ["wrap", "--spark", "--", "spark-submit", "a.py"],
    "Spark kills": OTHERS["killed-after-a-minute"][1:],
    "Spark's decommissioning off": ["wrap", "--spark", "--", *SPARK, "--conf", "spark.decommission.enabled=f",
        "a.py"],
    "Spark's shell file": ["wrap", "--spark", "--", *SPARK, "--conf", "spark.executorEnv.BASH_ENV=x", "a.py"],
    "Spark's pipe": ["wrap", "--spark", "--uses-pipe", "--", *SPARK, "a.py"],
    "Spark without signals": [*("wrap", "--spark", "--", *SPARK),
        *("--conf", "spark.executor.extraJavaOptions=-Xrs", "a.py")],
    "Flink elsewhere": ["wrap", "--flink", "--", "flink", "run-application", "a.jar"],
    "Flink's scheduler": ["wrap", "--flink", "--", *FLINK, "-Djobmanager.scheduler=default", "a.jar"],
    "admit: wrap without --exec": [*ADMIT, "yarnctl", "wrap", "--", *STREAMING, *SIZED, *IN_OUT, "-reducer",
        "r"],
    "admit: an unknown size": [*ADMIT, *STREAMING, "-D", "mapreduce.job.name=daily", *JOB[3:]],
    "admit: env -i": [*ADMIT, "env", "-i", "A=b", *STREAMING, *SIZED, *JOB[3:]],
    "admit: Spark elsewhere": [*ADMIT, "spark-submit", "--num-executors", "3", "a.py"],
    "admit: Spark's dynamic allocation": [
        *(*ADMIT, *SPARK, "--deploy-mode", "cluster", "--num-executors", "3"),
        *("--conf", "spark.dynamicAllocation.enabled=true", "a.py"),
    ],
    "admit: Flink elsewhere": [*ADMIT, "flink", "run-application", "-p", "3", "a.jar"],
}  # fmt: skip
"""Commands that are rejected, each with a remedy."""
REMEDIED |= {
    f"changes the result: {case}": [*WRAP, "--group-fields", "1", "--", *CHANGING[case]] for case in CHANGING
}


def accepted(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the status of a command and its errors; where it is admitted, a daemon admits it."""
    if words[0] != "admit":
        status, _, said = printed(words, capsys)
        return status, said
    kind = {"spark-submit": SPARK_GIVEN, "flink": FLINK_GIVEN}
    given = next((kind[word] for word in words if word in kind), None)
    answer = ADMITTED if given is None else admission("admitted", "admit", containers=4, settings=given)
    with Daemon(answer, seen=page(gate=None)) as daemon:
        status, _, said = printed([words[0], "--url", daemon.url, *words[1:]], capsys)
    return status, said


@pytest.mark.parametrize("case", list(REMEDIED))
def test_remedies_carried_out_lead_to_an_accepted_command(case, monkeypatch, capsys):
    monkeypatch.setattr(taking_place, "shutil", SimpleNamespace(which=str))
    monkeypatch.setattr(os, "execvp", lambda *_: None)
    words: list[str] | None = list(REMEDIED[case])
    for _ in range(4):
        assert words is not None
        status, said = accepted(words, capsys)
        if status == 0:
            return
        assert status == 2, said
        remedy = said.splitlines()[-1].partition("; ")[2]
        found = [(act, told) for pattern, act in ACTS.items() if (told := re.search(pattern, remedy))]
        assert found, f"nothing carries out: {said}"
        act, told = found[0]
        words = act(words, told)
        if words is None:
            return
    pytest.fail(f"four remedies were not enough: {said}")


@pytest.mark.parametrize("kind", [[], ["--spark"], ["--flink"], ["admit"]])
def test_variable_in_front_of_a_program_runs_behind_env(kind, capsys):
    job = {"--spark": [*SPARK, "a.py"], "--flink": [*FLINK, "a.jar"]}.get("".join(kind), JOB)
    front = ["admit", "--deadline", "1m"] if kind == ["admit"] else ["wrap", *kind, "--exec"]
    status, _, said = printed([*front, "--", "A=b", *job], capsys)
    assert status == 2
    (advised,) = re.findall(r"use (env .*) \.\.\.$", said, re.MULTILINE)
    assert advised.split() == ["env", "A=b", job[0]]


@pytest.mark.parametrize(
    ("command", "option"), [("run", "--cap-queue"), ("spark-plugin", ""), ("profile", "--containers")]
)
def test_commands_that_notes_name_exist(command, option, capsys):
    assert exit_status_of(PROGRAM, [command, "--help"]) == 0
    assert option in capsys.readouterr().out


def test_command_of_the_readme_is_accepted(monkeypatch, capsys):
    monkeypatch.setattr(taking_place, "shutil", SimpleNamespace(which=str))
    monkeypatch.setattr(os, "execvp", lambda *_: None)
    monkeypatch.delenv("YARNCTL_STORE", raising=False)
    lines = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").splitlines()
    (typed,) = [line.partition("#")[0] for line in lines if line.startswith("yarnctl wrap ")]
    words = [*typed.split()[1 : typed.split().index("--") + 1], *JOB]
    assert "--exec" in words
    assert accepted(words, capsys)[0] == 0
