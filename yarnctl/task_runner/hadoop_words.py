"""Options of Hadoop and of its streaming, read as Hadoop's own parsers (commons-cli) read them.

An option that is not changed is written as typed. The spellings that Hadoop accepts, each with one or two
hyphens:

=====================  ===================================================================
``-files V``           generic options, the value in the next word
``-files=V``           generic options, the value behind ``=``
``-Dx=y``              ``-D`` alone, one hyphen
``-mapper V``          options of streaming, the value in the next word only
``-input V W``         ``MANY``: several values, up to the next option
``-verbose``           ``FLAGS``: no value
=====================  ===================================================================

Generic options stand before those of streaming; ``--`` or ``-`` may end them. Quotes around a whole value are
dropped. ``tests/unit/task_runner/test_hadoop_words.py`` holds the table that Hadoop's parsers answered.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from yarnctl.errors import BadInput

GENERIC = ("-D", "-conf", "-files", "-libjars", "-archives", "-fs", "-jt", "-tokenCacheFile")
"""Options of Hadoop itself; each takes one value."""

MANY = ("-input", "-file", "-cacheFile", "-cacheArchive")  # Options of streaming that take one value or more

FLAGS = ("-verbose", "-background", "-debug", "-lazyOutput", "-help", "-info")
"""Options of streaming that take no value."""

ONE = (
    *("-output", "-mapper", "-combiner", "-reducer", "-dfs", "-additionalconfspec", "-inputformat"),
    *("-outputformat", "-partitioner", "-numReduceTasks", "-inputreader", "-mapdebug", "-reducedebug"),
    *("-jobconf", "-cmdenv", "-io"),
)
"""Options of streaming that take one value; so does one that is not known here."""

OLD_NAMES = {
    "mapred.reduce.tasks": "mapreduce.job.reduces",
    "mapred.reduce.tasks.speculative.execution": "mapreduce.reduce.speculative",
    "mapred.mapoutput.key.class": "mapreduce.map.output.key.class",
    "mapred.job.name": "mapreduce.job.name",
    "mapred.job.queue.name": "mapreduce.job.queuename",
    "mapred.map.tasks": "mapreduce.job.maps",
    "mapred.reduce.slowstart.completed.maps": "mapreduce.job.reduce.slowstart.completedmaps",
    "mapred.text.key.partitioner.options": "mapreduce.partition.keypartitioner.options",
    "map.output.key.field.separator": "mapreduce.map.output.key.field.separator",
}
"""Names of settings before Hadoop 2, with those of today."""


class HadoopOption(NamedTuple):
    """One option: its ``words`` as typed, its name with one hyphen, and its values as Hadoop takes them."""

    words: tuple[str, ...]
    name: str
    values: tuple[str, ...] = ()

    @property
    def value(self) -> str:
        """The first value, "" if there is none."""
        return self.values[0] if self.values else ""

    @property
    def sets(self) -> str:
        """The setting that it sets, under the name of Hadoop 3; "" if it sets none."""
        name, equals, _ = self.value.partition("=")
        if self.name not in ("-D", "-jobconf") or not equals:
            return ""
        return OLD_NAMES.get(name.strip(), name.strip())

    def with_value(self, value: str) -> HadoopOption:
        """Return the option with another value, in the spelling of this one."""
        words = (
            (f"{self.words[0].partition('=')[0]}={value}",)
            if len(self.words) == 1
            else (self.words[0], value)
        )
        return HadoopOption(words, self.name, (value,))


def option(name: str, value: str) -> HadoopOption:
    """Return an option in its usual spelling."""
    return HadoopOption((name, value), name, (value,))


def read_generic(words: Sequence[str]) -> tuple[list[HadoopOption], list[str]]:
    """Return the generic options at the beginning, and the words after them."""
    found: list[HadoopOption] = []
    place = 0
    while place < len(words):
        if words[place] in ("-", "--"):
            found.append(HadoopOption((words[place],), words[place]))
            return found, list(words[place + 1 :])
        read = _generic(words, place)
        if read is None:
            break
        found.append(read)
        place += len(read.words)
    return found, list(words[place:])


def read_options(words: Sequence[str]) -> list[HadoopOption]:
    """Return the options of a streaming job; BadInput names a word that is not an option."""
    found, rest = read_generic(words)
    place = 0
    while place < len(rest):
        if not rest[place].startswith("-"):
            raise _no_option(rest[place], is_first=not found)
        read = _generic(rest, place) or _streaming(rest, place)
        found.append(read)
        place += len(read.words)
    return found


def settings_of(options: Sequence[HadoopOption]) -> dict[str, str]:
    """Return the settings of ``-D`` and ``-jobconf``, by names of Hadoop 3; ``-jobconf`` has precedence."""
    found: dict[str, str] = {}
    for kind in ("-D", "-jobconf"):
        found |= {each.sets: each.value.partition("=")[2] for each in options if each.name == kind}
    found.pop("", None)
    return found


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings of a file under the names of Hadoop 3."""
    return {OLD_NAMES.get(name, name): value for name, value in settings.items()}


def split_command(command: str) -> list[str]:
    """Split as streaming does: at blanks, except within single or double quotes, which are dropped."""
    words: list[str] = []
    word, quote, begun = "", "", False
    for letter in command:
        if quote:
            if letter == quote:
                quote = ""
            else:
                word += letter
        elif letter in "\"'":
            quote, begun = letter, True
        elif letter.isspace():
            if begun:
                words.append(word)
            word, begun = "", False
        else:
            word, begun = word + letter, True
    return [*words, word] if begun else words


def _one_hyphen(word: str) -> str:
    return word[1:] if word.startswith("--") else word


def _generic(words: Sequence[str], place: int) -> HadoopOption | None:
    word = words[place]
    name, equals, value = _one_hyphen(word).partition("=")
    if name in GENERIC and equals:
        return HadoopOption((word,), name, (_unquoted(value),))
    if name in GENERIC:
        return HadoopOption((word, _value_at(words, place, GENERIC)), name, (_unquoted(words[place + 1]),))
    if word.startswith("-D"):
        return HadoopOption((word,), "-D", (_unquoted(word[2:]),))
    return None


def _streaming(words: Sequence[str], place: int) -> HadoopOption:
    word = words[place]
    name = _one_hyphen(word)
    if name in FLAGS:
        return HadoopOption((word,), name)
    end = place + 2
    _value_at(words, place, (*ONE, *MANY, *FLAGS))
    while name in MANY and end < len(words) and not words[end].startswith("-"):
        end += 1
    taken = tuple(words[place:end])
    return HadoopOption(taken, name, tuple(map(_unquoted, taken[1:])))


def _value_at(words: Sequence[str], place: int, names: Sequence[str]) -> str:
    if place + 1 >= len(words) or _one_hyphen(words[place + 1]) in names:
        raise BadInput(words[place], "has no value", "add a value after it")
    return words[place + 1]


def _unquoted(value: str) -> str:
    inner = value[1:-1]
    return inner if len(value) > 1 and value == f'"{inner}"' and '"' not in inner else value


def _no_option(word: str, is_first: bool) -> BadInput:
    if is_first:
        problem = "is not an option of Hadoop streaming; only streaming jobs can be wrapped"
        return BadInput(shlex.quote(word), problem, "submit other jobs without yarnctl wrap")
    remedy = "quote values with spaces; Java jobs cannot be wrapped"
    return BadInput(shlex.quote(word), "is not an option of Hadoop streaming", remedy)
