"""Words of a command line: the program that submits, the words in front of it, options with their settings.

An option that is not changed is written as typed. The words in front of a program may set the job's user, or
make a command that would submit nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from yarnctl.errors import BadInput

EXAMPLES = {
    "mapreduce": "hadoop jar .../hadoop-streaming.jar ...",
    "spark": "spark-submit --master yarn ...",
    "flink": "flink run-application -t yarn-application ...",
}
"""A command of each framework, for errors."""

FLINK_ACTIONS = ("run", "run-application")  # Those that submit a job
_VERSION = r"-?[0-9.]*"
_SPARK = re.compile(
    rf"spark{_VERSION}-(submit|shell|sql){_VERSION}|(pyspark|sparkR){_VERSION}|run-example"
    r"|start-thriftserver\.sh|org\.apache\.spark\.deploy\.SparkSubmit"
)
"""The programs that take the options of spark-submit, also under the names of Cloudera (spark3-submit)."""

_VALUED = (
    *("-u", "-U", "-g", "-C", "-D", "--user", "--group", "--unset", "--chdir", "--config", "--loglevel"),
)
"""Options of the words in front (sudo, env, docker, timeout) that take a value: the value is no program."""
_FRONT = ("env", "nohup", "nice", "ionice", "time", "timeout", "setsid", "stdbuf", "exec", "sudo", "doas")
_WITH_ACTION = ("hadoop", "mapred", "yarn", "hdfs", "hbase", "flink")
_SHELL_COMMAND = re.compile("-[a-z]*c|--command")
_ASSIGNMENT = re.compile("[A-Za-z_][A-Za-z0-9_]*=")

_USER = "HADOOP_USER_NAME="
_OTHERS = ("sudo", "su", "runuser", "doas")
_HIDING = ("-", "-i", "--ignore-environment", "-u", "--unset", "-S", "--split-string")


class TypedOption(NamedTuple):
    """One option: its ``words`` as typed, its name, its value (None: a flag), the setting it sets ("": none).

    ``own``: it sets this setting only, and is not the general option for any setting.
    """

    words: tuple[str, ...]
    option: str
    value: str | None = None
    sets: str = ""
    own: bool = False

    @property
    def typed(self) -> str:
        """The option as text for messages."""
        return " ".join(self.words)[:100]


def settings_of(options: Sequence[TypedOption]) -> dict[str, str]:
    """Return the options' settings, the last of each; BadInput where an own option and ``--conf`` differ."""
    general = {each.sets: each for each in options if each.sets and not each.own}
    special = {each.sets: each for each in options if each.sets and each.own}
    for name, each in special.items():
        other = general.get(name)
        if other is not None and other.value != each.value:
            raise BadInput(each.typed, f"contradicts {other.typed}", "give one of them")
    return {name: each.value or "" for name, each in (general | special).items()}


def typed_for(options: Sequence[TypedOption], name: str) -> str:
    """Return how a setting was typed, for messages."""
    return next((each.typed for each in reversed(options) if each.sets == name), name)


def kept_words(options: Sequence[TypedOption], more: Mapping[str, str]) -> list[str]:
    """Return the words of all options except those that set a setting in ``more``."""
    return [word for each in options if each.sets not in more for word in each.words]


class SubmitProgram(NamedTuple):
    """The program of a command line that submits a job: its framework and the place of its word."""

    kind: str
    place: int


def program_in(words: Sequence[str], kind: str | None = None) -> SubmitProgram | None:
    """Return the first program that submits a job, any words in front; None: there is none.

    ``kind``: only programs of this framework.
    """
    for place, word in enumerate(words):
        if "://" in word or (place and words[place - 1] in _VALUED):
            continue
        found = _kind_at(words, place)
        if found is not None and kind in (None, found):
            return SubmitProgram(found, place)
    return None


def _kind_at(words: Sequence[str], place: int) -> str | None:
    name, following = PurePath(words[place]).name, "".join(words[place + 1 : place + 2])
    if _SPARK.fullmatch(name):
        return "spark"
    if name == "flink":
        return "flink" if following in FLINK_ACTIONS else None
    in_front = PurePath(words[place - 1]).name if place else ""
    is_job = (
        name == "hadoop-streaming"
        or (in_front and name == "streaming")
        or (in_front and name == "jar" and following.endswith(".jar"))
        or (in_front == "yarn-emulator" and name == "submit")
    )
    return "mapreduce" if is_job else None


def shown_program(words: Sequence[str]) -> str:
    """Return a command line's program, for messages: ``hadoop distcp`` of ``sudo -u ann hadoop distcp``."""
    rest = list(words)
    while rest and (
        PurePath(rest[0]).name in _FRONT or _ASSIGNMENT.match(rest[0]) or not rest[0][:1].strip("-0123456789")
    ):
        del rest[: 2 if rest[0] in _VALUED else 1]
    name = PurePath(rest[0] if rest else words[0]).name
    if name in _WITH_ACTION:
        del rest[0]
        while rest and rest[0].startswith("-"):
            del rest[: 2 if rest[0] in _VALUED else 1]
        name = " ".join([name, *rest[:1]])
    return name[:100]


def refuse_hidden(words: Sequence[str], command: str) -> None:
    """Raise BadInput for a line whose job is in one word: ``su - hdfs -c "spark-submit ..."``.

    ``command``: the command of yarnctl that should stand in it.
    """
    for before, word in pairwise(words):
        if _SHELL_COMMAND.fullmatch(before) or PurePath(words[0]).name == "ssh":
            try:
                inner = shlex.split(word)
            except ValueError:
                continue
            if program_in(inner) is not None:
                remedy = f"put '{command} ... -- {shown_program(inner)} ...' into it"
                raise BadInput(PurePath(words[0]).name, "has its command in one word", remedy)


def user_in_front(program: Sequence[str], example: str) -> str | None:
    """Return the user that the words before the command set (``env HADOOP_USER_NAME=bob``), if they do.

    Raises BadInput where they change the user in a way that is not parsed here, and for ``yarnctl wrap``
    without ``--exec``: it prints the command.
    """
    wrapped = [place for place, word in enumerate(program) if word == "wrap" and place]
    if wrapped and "--exec" not in program[wrapped[0] :]:
        remedy = f"use 'yarnctl wrap --exec ... -- {example}'"
        raise BadInput("yarnctl wrap", "submits nothing without --exec", remedy)
    names = [PurePath(word).name for word in program]
    other = next((name for name in names if name in _OTHERS), None)
    if other is not None:
        problem = "runs the job as a user other than the one of the request"
        raise BadInput(other, problem, f"run {other} ... yarnctl admit instead")
    if "env" in names:
        options = {word.partition("=")[0] for word in program[names.index("env") :]} & set(_HIDING)
        if options:
            remedy = f"use only 'env NAME=value ... {example}'"
            raise BadInput(f"env {min(options)}", "hides the job's user", remedy)
    said = [word.removeprefix(_USER) for word in program if word.startswith(_USER)]
    return said[-1] if said else None
