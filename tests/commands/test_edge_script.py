"""The script for edge nodes as docs/site.md prints it, and the defaults: what becomes of users' commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from yarnctl.attach.eligibility.settings_reader import Drainable
from yarnctl.cli import wrap as wrap_command
from yarnctl.deciding.reasons.eligibility import SettingForbidsDrain
from yarnctl.errors import BadInput
from yarnctl.frameworks.spark.consent import judge
from yarnctl.frameworks.spark.wrapping import defaults_in
from yarnctl.hadoop.wire.tags import may_lose_tag_ratio, tags_in

ROOT = Path(__file__).resolve().parents[2]
SHELL = shutil.which("sh") or "/bin/sh"


class Edge:
    """An edge node: the printed script first in PATH, behind it a program that tells its words."""

    def __init__(self, folder: Path, option: str, name: str) -> None:
        page = (ROOT / "docs" / "site.md").read_text()
        (script,) = re.findall(r"```sh\n(#!/bin/sh\n.*?)```", page, re.DOTALL)
        self.folder, self.name, self.option = folder, name, option
        real = folder / "real" / name
        script = script.replace("/opt/spark/bin/spark-submit", str(real)).replace("--spark ", option)
        self._write(folder / "edge" / name, script)
        self.program(real, 'echo "$0 $*"; exit 7')
        self.program(
            folder / "bin" / "yarnctl",
            f'exec {sys.executable} -c "from yarnctl.cli import main; main()" "$@"',
        )

    def program(self, path: Path, line: str) -> None:
        self._write(path, f"#!{SHELL}\n{line}\n")

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *words: str, with_yarnctl: bool = True, timeout_s: float = 60) -> tuple[int, str, str]:
        """Type the program's name; return its exit status, output and errors."""
        folders = [
            self.folder / "edge",
            *([self.folder / "bin"] if with_yarnctl else []),
            self.folder / "real",
        ]
        path = ":".join([*map(str, folders), "/usr/bin", "/bin"])
        env = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(self.folder), "LANG": "C.UTF-8"}
        env |= {name: os.environ[name] for name in ("VIRTUAL_ENV",) if name in os.environ}
        done = subprocess.run([self.name, *words], env=env, capture_output=True, text=True, timeout=timeout_s)
        return done.returncode, done.stdout, done.stderr


ON_YARN = ("run-application", "-t", "yarn-application", "-Dyarn.application.queue=research")


@pytest.mark.parametrize(
    ("option", "name", "words", "added", "unwrapped"),
    [
        (
            *("--spark ", "spark-submit", ("--master", "yarn", "--queue", "research")),
            *("spark.yarn.tags=yarnctl-drain:signal", "--master local job.py"),
        ),
        ("--flink ", "flink", ON_YARN, "-Dyarn.tags=yarnctl-drain:rescale", "run -m localhost:8081 job.jar"),
        ("--flink ", "flink", ON_YARN, "-Djobmanager.scheduler=adaptive", "list -a"),
    ],
)
def test_the_script_wraps_what_it_can_and_passes_the_rest_unchanged(
    option: str, name: str, words: tuple[str, ...], added: str, unwrapped: str, tmp_path: Path
) -> None:
    edge = Edge(tmp_path, option, name)
    status, out, _ = edge.run(*words, "job.py", "a b")
    assert status == 7
    assert out.startswith(str(tmp_path / "real" / name))
    assert added in out
    assert out.endswith("job.py a b\n")
    status, out, err = edge.run(*unwrapped.split())
    assert (status, out) == (7, f"{tmp_path / 'real' / name} {unwrapped}\n")
    assert "the command runs without yarnctl" in err


@pytest.mark.parametrize(
    "words", [(), ("--route", "plugin", "--plugin", "/opt/spark/jars/yarnctl-leave.jar")]
)
def test_the_script_keeps_what_the_sites_defaults_say(words: tuple[str, ...], tmp_path: Path) -> None:
    edge = Edge(tmp_path, "--spark ", "spark-submit")
    (tmp_path / "conf").mkdir()
    defaults = printed("--spark", "--may-lose", "2%", "--min-executors", "2", *words)
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    status, out, err = edge.run("--master", "yarn", "--jars", "my.jar", "job.py")
    assert status == 7
    route = "plugin" if words else "signal"
    assert f"spark.yarn.tags=yarnctl-may-lose:2%,yarnctl-drain:{route},yarnctl-min-executors:2 " in out
    assert "without yarnctl" not in err


def test_a_program_that_calls_itself_by_its_name_gets_the_real_one(tmp_path: Path) -> None:
    edge = Edge(tmp_path, "--spark ", "spark-submit")
    edge.program(
        tmp_path / "real" / "spark-submit", '[ "$1" = again ] && echo "$*" || exec spark-submit again'
    )
    assert edge.run("--master", "yarn", "job.py")[:2] == (0, "again\n")


def test_without_yarnctl_the_program_runs_as_before(tmp_path: Path) -> None:
    edge = Edge(tmp_path, "", "hadoop")
    assert edge.run("fs", "-ls", "/", with_yarnctl=False) == (
        7,
        f"{tmp_path / 'real' / 'hadoop'} fs -ls /\n",
        "",
    )


@pytest.mark.parametrize("name", ["hadoop", "mapred"])
def test_other_commands_of_hadoop_pass_unchanged(tmp_path: Path, name: str) -> None:
    status, out, _ = Edge(tmp_path, "", name).run("job", "-list")
    assert (status, out) == (7, f"{tmp_path / 'real' / name} job -list\n")


# --- defaults ---------------------------------------------------------------------------------------


def printed(*words: str) -> str:
    result = CliRunner().invoke(wrap_command.command, ["--print-defaults", *words])
    assert result.exit_code == 0, result.exception
    return result.output


def test_an_application_with_sparks_defaults_may_be_drained_within_the_kill_budget() -> None:
    settings = defaults_in(printed("--spark", "--may-lose", "2%"))
    tags = tags_in(settings["spark.yarn.tags"])
    found = judge(tags, settings, "3.5.1", "/yarnctl/requests", "yarnctl")
    assert found == Drainable("signal", 1)
    assert may_lose_tag_ratio(tags) == 0.02


JAR = "/opt/spark/jars/yarnctl-leave.jar"
PLUGIN = ("--route", "plugin", "--plugin", JAR)


def shipped_by_spark(settings: Mapping[str, str], jars: str | None) -> list[str]:
    """Return the jars that YARN's containers receive, as in SparkSubmit.scala (3.5, 4.0).

    ``--jars`` replaces ``spark.jars``, and is merged with ``spark.yarn.dist.jars``.
    """
    own = settings.get("spark.jars", "") if jars is None else jars
    return [jar for each in (settings.get("spark.yarn.dist.jars", ""), own) for jar in each.split(",") if jar]


@pytest.mark.parametrize("jars", [None, "my.jar", "my.jar,other.jar"])
def test_containers_receive_the_plugin_of_the_defaults_beside_the_jars_of_a_job(jars: str | None) -> None:
    settings = defaults_in(printed("--spark", *PLUGIN))
    assert shipped_by_spark(settings, jars) == [JAR, *(jars.split(",") if jars else [])]


def test_the_printed_file_says_first_where_the_driver_of_a_client_finds_the_plugin() -> None:
    """Beside ``--jars`` and ``--driver-class-path`` only the folder of Spark's jars has it there."""
    lines = printed("--spark", *PLUGIN).splitlines()
    said = "".join(line for line in lines if line.startswith("#"))
    assert lines[0].startswith("#")
    assert "folder jars of each Spark" in said
    assert "spark.yarn.archive" in said
    assert lines[-1].split() == ["spark.yarn.dist.jars", JAR]
    assert "#" not in printed("--spark"), "the signal needs no copy of a jar"


def test_a_job_that_replaces_the_plugins_of_the_defaults_is_left_alone() -> None:
    settings = defaults_in(printed("--spark", *PLUGIN))
    tags = tags_in(settings["spark.yarn.tags"])
    assert judge(tags, settings, "4.0.1", "/yarnctl/requests", "yarnctl") == Drainable("plugin", 1)
    found = judge(tags, {**settings, "spark.plugins": "org.Mine"}, "4.0.1", "/yarnctl/requests", "yarnctl")
    assert found == SettingForbidsDrain("spark.plugins", "org.Mine", "yarnctl.Leave")


@pytest.mark.parametrize("given", ["2%", "0.02", "0.5%", "100%", "0%"])
def test_the_printed_budget_is_the_one_that_the_daemon_reads(given: str) -> None:
    (tag,) = re.findall(r"<value>(.*)</value>", printed("--may-lose", given))
    part = float(given.rstrip("%")) / (100 if given.endswith("%") else 1)
    assert may_lose_tag_ratio([tag]) == pytest.approx(part)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--print-defaults"], "--may-lose"),
        (["--print-defaults", "--may-lose", "2%", "--restartable"], "only the author of a reducer"),
        (["--print-defaults", "--may-lose", "2%", "--group-fields", "2"], "only the author of a reducer"),
        (["--print-defaults", "--may-lose", "2%", "--flink"], "--flink"),
        (["--print-defaults", "--may-lose", "102%"], "--may-lose: '102%'"),
        (["--print-defaults", "--may-lose", "2%", "--", "hadoop", "jar", "x.jar"], "requires no command"),
        (["--may-lose", "2%", "--", "hadoop", "jar", "x.jar"], "yarnctl-may-lose:2%"),
    ],
)
def test_what_is_no_default_is_refused(words: list[str], said: str) -> None:
    result = CliRunner().invoke(wrap_command.command, words)
    assert isinstance(result.exception, BadInput)
    assert said in str(result.exception)
