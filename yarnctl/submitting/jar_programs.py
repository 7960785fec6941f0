"""A program in a jar, as ``hadoop jar hadoop-mapreduce-examples.jar wordcount /in /out``: one MapReduce job.

Law: see the package. Settings stand as ``-D`` right behind the program's name, where Hadoop's own parser of
options reads them; what follows is the program's and is never read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yarnctl.errors import BadInput
from yarnctl.submitting.front_words import refuse_printed, user_in_front
from yarnctl.submitting.typed_options import TypedOption, kept_words, settings_of

EXAMPLE = "hadoop jar X.jar PROGRAM ..."


class JarProgram:
    """One job of a program in a jar, with any words in front of it."""

    queue_default = "default"

    def __init__(self, words: Sequence[str]) -> None:
        jar = next((at for at, word in enumerate(words) if at and words[at - 1] == "jar"), None)
        if jar is None or not words[jar].endswith(".jar") or len(words) <= jar + 1:
            raise BadInput("command line", "runs no program in a jar", f"write '{EXAMPLE}'")
        self.name_default = words[jar + 1]
        if self.name_default.startswith("-"):
            raise BadInput(self.name_default[:60], "is no program in a jar", f"write '{EXAMPLE}'")
        self._program = list(words[: jar + 2])
        self._options, self._rest = _divided(words[jar + 2 :])
        refuse_printed(self._program, EXAMPLE)
        self.user_option = user_in_front(self._program, EXAMPLE)

    def settings(self) -> dict[str, str]:
        """Return what ``-D`` sets."""
        return settings_of(self._options)

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with these settings; its own values of them are left out."""
        ours = [word for name, value in more.items() for word in ("-D", f"{name}={value}")]
        return [*self._program, *ours, *kept_words(self._options, more), *self._rest]


def _divided(words: Sequence[str]) -> tuple[list[TypedOption], list[str]]:
    options, place = list[TypedOption](), 0
    while place < len(words) and words[place].startswith("-D"):
        size = 2 if words[place] == "-D" else 1
        if place + size > len(words):
            raise BadInput("-D", "its value is missing")
        pair = words[place + 1] if size == 2 else words[place][2:]
        name, equals, value = pair.partition("=")
        if not equals:
            raise BadInput(f"-D {pair[:60]}", "is no NAME=VALUE")
        options.append(TypedOption(tuple(words[place : place + size]), "-D", value, name))
        place += size
    return options, list(words[place:])
