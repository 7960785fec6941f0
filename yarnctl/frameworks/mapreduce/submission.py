"""MapReduce: parses a submit command and adds granted settings.

Two programs submit: Hadoop streaming (``hadoop jar X.jar``, ``mapred streaming``, with any words in front)
and ``yarn-emulator submit``. ``yarnctl place`` also takes a program in a jar.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from yarnctl.deciding.queue_names import is_name_of
from yarnctl.errors import BadInput
from yarnctl.frameworks.command_words import TypedOption, kept_words, settings_of, user_in_front
from yarnctl.frameworks.mapreduce import rest
from yarnctl.frameworks.mapreduce.rest import LIMITS, MAP_LIMIT, MAPS, REDUCE_LIMIT, REDUCES, SLOW_START
from yarnctl.frameworks.submitting import (
    NO_TUNABLES,
    NUMBER,
    QUEUE_NAME,
    Tunables,
    number_in,
    own_tags,
    own_value,
    refuse_unlisted,
    with_tags,
)
from yarnctl.hadoop.wire.yarn import MASTER
from yarnctl.task_runner.hadoop_words import HadoopOption, read_generic
from yarnctl.task_runner.wrapping import CommandLine, first_option

NAME, QUEUE, TAGS = rest.NAME, rest.QUEUE, rest.TAGS
GIVEN = {MAP_LIMIT: NUMBER, REDUCE_LIMIT: NUMBER, SLOW_START: r"[01](\.[0-9]{1,9})?", QUEUE: QUEUE_NAME}
"""The settings that the daemon may grant: another program at its address cannot set any other."""

NO_OVERLAP = {SLOW_START: "1.0"}  # Without it maps and reduces run at once, each up to its own limit
UNNAMED = "streamjob"  # Hadoop streaming's name for a job without one
MOST_REMEDY = (
    "add --containers N (maps or reduces, the larger number, plus 1 for the application master), or"
    " -D mapreduce.job.maps=N"
)

EXAMPLE = "hadoop jar X.jar PROGRAM ..."
_MODELLED = re.compile(r"([0-9]+)x[0-9.]+(?:,([0-9]+)x[0-9.]+)?")
_EMULATOR_FLAGS = ("--restartable", "--no-runner", "--no-wait", "--json", "--help")


class Streaming:
    """A job of Hadoop streaming; ``yarnctl wrap`` in front of it needs ``--exec``."""

    queue_default = "default"
    name_default = UNNAMED

    def __init__(self, words: Sequence[str]) -> None:
        first = "".join(words[(start := first_option(words)) : start + 1])
        if first and not first.startswith("-"):
            problem = "is a program in a jar; admission supports streaming jobs only"
            remedy = "use yarnctl place, or submit it without yarnctl"
            raise BadInput(shlex.quote(first[:60]), problem, remedy)
        self._line = CommandLine(words)
        program = self._line.program
        self.user_option = user_in_front(program, "hadoop jar ...")

    def settings(self) -> dict[str, str]:
        """Return the settings of the command line, under the names of Hadoop 3."""
        found = self._line.settings()
        for value in self._line.values("-numReduceTasks")[:1]:
            found[REDUCES] = value
        return found

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with the settings ``more`` in place of its own values."""
        line = self._line
        kept = [each for each in line.options if each.sets not in more]
        ours = [word for name, value in more.items() for word in ("-D", f"{name}={value}")]
        return [*line.program, *ours, *(word for each in kept for word in each.words)]


class Emulated:
    """A job of ``yarn-emulator submit``."""

    queue_default = "research"
    name_default = UNNAMED

    def __init__(self, words: Sequence[str], start: int) -> None:
        self._program, self._options = list(words[:start]), _pairs(words[start:])
        if self._value("--workload"):
            problem = "submits several jobs, and yarnctl admit accepts one"
            raise BadInput("--workload", problem, "request each job, or submit without yarnctl admit")
        if self._value("--deadline"):
            problem = "is set by yarnctl admit"
            raise BadInput("yarn-emulator submit --deadline", problem, "use yarnctl admit --deadline")

    def settings(self) -> dict[str, str]:
        """Return the settings of the command line, its own options under the names of Hadoop 3."""
        found = dict(one[1].partition("=")[::2] for one in self._options if one[0] == "-D")
        for option, name in (("--name", NAME), ("--queue", QUEUE), ("--reduces", REDUCES)):
            value = self._value(option)
            if value is not None:
                found[name] = value
        modelled = _MODELLED.fullmatch(self._value("--modelled") or "")
        if modelled:
            found[MAPS], found[REDUCES] = modelled[1], modelled[2] or "0"
        return found

    @property
    def user_option(self) -> str | None:
        """The job's user in the command line, if any."""
        return self._value("--user")

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with the settings ``more`` in place of its own values."""
        kept = [one for one in self._options if HadoopOption((), one[0], tuple(one[1:])).sets not in more]
        own = {NAME: "--name", QUEUE: "--queue"}
        ours: list[str] = []
        for name, value in more.items():
            ours += [own[name], value] if name in own else ["-D", f"{name}={value}"]
        return [*self._program, *ours, *(word for one in kept for word in one)]

    def _value(self, option: str) -> str | None:
        values = [one[1] for one in self._options if one[0] == option and len(one) == 2]
        return values[-1] if values else None


class JarProgram:
    """One job of a program in a jar, as ``hadoop jar hadoop-mapreduce-examples.jar wordcount /in /out``.

    Generic options follow the program's name. The words after them belong to the program and are never read.
    """

    queue_default = "default"

    def __init__(self, words: Sequence[str]) -> None:
        jar = next((at for at, word in enumerate(words) if at and words[at - 1] == "jar"), None)
        if jar is None or not words[jar].endswith(".jar") or len(words) <= jar + 1:
            raise BadInput("command line", "does not run a program in a jar", f"use '{EXAMPLE}'")
        self.name_default = words[jar + 1]
        if self.name_default.startswith("-"):
            raise BadInput(self.name_default[:60], "is not the name of a program", f"use '{EXAMPLE}'")
        self._program = list(words[: jar + 2])
        self._options, self._rest = _divided(words[jar + 2 :])
        self.user_option = user_in_front(self._program, EXAMPLE)

    def settings(self) -> dict[str, str]:
        """Return the settings of ``-D``."""
        return settings_of(self._options)

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with the settings ``more`` in place of its own values."""
        ours = [word for name, value in more.items() for word in ("-D", f"{name}={value}")]
        return [*self._program, *ours, *kept_words(self._options, more), *self._rest]


def command_of(words: Sequence[str]) -> Streaming | Emulated:
    """Parse a command line; raises BadInput if it does not submit a streaming job."""
    for place, word in enumerate(words[1:], 1):
        if word == "submit" and PurePath(words[place - 1]).name == "yarn-emulator":
            return Emulated(words, place + 1)
    return Streaming(words)


def most_containers(settings: Mapping[str, str]) -> int | None:
    """Return the most containers that the job can use at once with its master's, by the user's limits.

    None: unknown, as the number of maps is unless ``mapreduce.job.maps`` is set: the input determines it.
    """
    maps, reduces = number(settings, MAPS), number(settings, REDUCES)
    if maps is None:
        return None
    reduces = 1 if reduces is None else reduces
    at_once = [
        min(tasks, number(settings, limit) or tasks)
        for tasks, limit in ((maps, MAP_LIMIT), (reduces, REDUCE_LIMIT))
    ]
    return max(1, *at_once) + MASTER


def given(containers: int) -> dict[str, str]:
    """Return the settings that limit a job to ``containers``, with its master's."""
    return dict.fromkeys(LIMITS, str(max(1, containers - MASTER))) | NO_OVERLAP


def number(settings: Mapping[str, str], name: str) -> int | None:
    """Return a setting as a whole number; None if it is not set. Raises BadInput for another value."""
    return number_in(settings, name, "-D ")


def tags_of(settings: Mapping[str, str]) -> list[str]:
    """Return the user's own tags; BadInput where they are too many, or one is reserved for the daemon."""
    return own_tags(settings.get(TAGS, ""), f"-D {TAGS}")


def settled(
    own: Mapping[str, str], given: Mapping[str, str], tags: Sequence[str], tunables: Tunables = NO_TUNABLES
) -> tuple[dict[str, str], list[str]]:
    """Return the settings to submit with, and notes for the user; BadInput names a contradicting setting.

    ``own`` are the user's settings, ``given`` the granted ones and ``tags`` the granted tags.
    """
    more: dict[str, str] = {}
    notes: list[str] = []
    refuse_unlisted(GIVEN, given, tags, tunables)
    for name, value in given.items():
        typed = own.get(name)
        if typed is None:
            more[name] = value
        elif name in (MAP_LIMIT, REDUCE_LIMIT):
            if not 0 < (number(own, name) or 0) <= int(value):
                remedy = "remove it, or request enough --containers for it"
                raise BadInput(f"-D {name}={typed}", f"is not between 1 and the granted {value}", remedy)
        elif name == QUEUE:
            if not is_name_of(typed, value):
                raise BadInput(f"-D {QUEUE}={typed}", f"queue {value} was granted", "request the same queue")
        elif typed != value:
            notes.append(own_value(typed, value, name))
    more[TAGS] = with_tags(tags_of(own), tags)
    return more, notes


def _pairs(words: Sequence[str]) -> list[list[str]]:
    found: list[list[str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            raise BadInput(shlex.quote(word[:60]), "is not an option of yarn-emulator submit", "remove it")
        if word.startswith("--") and "=" in word:
            found.append(list(word.partition("=")[::2]))
        elif word.startswith("-D") and word != "-D":
            found.append(["-D", word[2:]])
        elif word in _EMULATOR_FLAGS:
            found.append([word])
        elif rest:
            found.append([word, rest.pop(0)])
        else:
            raise BadInput(word[:60], "has no value", "add a value")
    return found


def _divided(words: Sequence[str]) -> tuple[list[TypedOption], list[str]]:
    generic, rest = read_generic(words)
    for each in generic:
        if each.name == "-D" and not each.sets:
            raise BadInput(f"-D {each.value[:60]}", "has no =", "use -D NAME=VALUE")
    options = [
        TypedOption(each.words, each.name, each.value.partition("=")[2], each.sets) for each in generic
    ]
    return options, rest
