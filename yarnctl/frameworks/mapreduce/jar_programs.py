"""A program in a jar, as ``hadoop jar hadoop-mapreduce-examples.jar wordcount /in /out``: one MapReduce job.

Generic options follow the program's name. The words after them belong to the program and are never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yarnctl.errors import BadInput
from yarnctl.frameworks.command_words import (
    TypedOption,
    kept_words,
    settings_of,
    user_in_front,
)
from yarnctl.task_runner.hadoop_words import read_generic

EXAMPLE = "hadoop jar X.jar PROGRAM ..."


class JarProgram:
    """One job of a program in a jar, with any words in front of it."""

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


def _divided(words: Sequence[str]) -> tuple[list[TypedOption], list[str]]:
    generic, rest = read_generic(words)
    for each in generic:
        if each.name == "-D" and not each.sets:
            raise BadInput(f"-D {each.value[:60]}", "has no =", "use -D NAME=VALUE")
    options = [
        TypedOption(each.words, each.name, each.value.partition("=")[2], each.sets) for each in generic
    ]
    return options, rest
