"""``APP.toml``: one application that exists for several frameworks, with commands and what may be tuned.

Law: see the package. A file is taken whole or refused by the name of what is wrong in it. A command leaves
the number of containers to yarnctl; ``{run}`` in it is a word that each run has for itself (its output).

::

    name = "wordcount"
    features = { input_mib = 2048 }
    [spark]
    command = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "apps.jar", "/out-{run}"]
    tunables = { "spark.executor.memory" = ["640m", "1g"] }
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from yarnctl.errors import BadInput
from yarnctl.submitting import FRAMEWORKS, kind_of
from yarnctl.submitting.framework import Framework, Submission
from yarnctl.submitting.jar_programs import JarProgram

FILE_BYTES_MAX = 64 << 10
FEATURES_MAX = 32
TUNABLES_MAX, VALUES_MAX = 8, 8
WORDS_MAX = 1_000
RUN = "{run}"
NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_VALUE = re.compile(r"[A-Za-z0-9_.:%+-]{1,100}")
KNOWN_TUNABLES = {
    "spark": re.compile(
        r"spark\.(executor\.(memory|memoryOverhead|cores)|shuffle\.[A-Za-z.]{1,60}|io\.compression\.[A-Za-z.]{1,60}"
        r"|default\.parallelism|sql\.shuffle\.partitions|memory\.(fraction|storageFraction)|rdd\.compress"
        r"|broadcast\.compress|serializer|reducer\.maxSizeInFlight|locality\.wait)"
    ),
    "flink": re.compile(
        r"taskmanager\.(memory\.[a-z.-]{1,60}|network\.[a-z.-]{1,60})|execution\.batch-shuffle-mode"
        r"|pipeline\.object-reuse|execution\.buffer-timeout[a-z.]{0,20}"
    ),
    "mapreduce": re.compile(
        r"mapreduce\.(job\.reduces|task\.io\.sort\.(mb|factor)|(map|reduce)\.memory\.mb|map\.output\.compress"
        r"|input\.fileinputformat\.split\.(min|max)size)"
    ),
}
"""What may be named as tunable, by framework: sizes, compression, parallelism; no place, no program."""


class ApplicationSection(NamedTuple):
    """One framework of an application: its command, parsed, and the settings that are left to yarnctl."""

    kind: str
    framework: Framework
    command: tuple[str, ...]
    tunables: Mapping[str, tuple[str, ...]]

    def job(self, run: str = "0") -> Submission:
        """Return the command of one run, parsed; ``run`` is its own word."""
        return parsed(self.kind, [word.replace(RUN, run) for word in self.command])


class ApplicationFile(NamedTuple):
    """An application: its name, its features, and a section for each framework."""

    name: str
    features: Mapping[str, float]
    sections: Mapping[str, ApplicationSection]

    def only(self, kind: str | None) -> ApplicationFile:
        """Return the application with one framework alone; BadInput for one that it has not."""
        if kind is None:
            return self
        if kind not in self.sections:
            raise BadInput("--kind", f"there is no [{kind[:40]}]", f"it has {', '.join(self.sections)}")
        return self._replace(sections={kind: self.sections[kind]})


def read_application(content: bytes, where: str) -> ApplicationFile:
    """Read a file's content; raises BadInput naming ``where`` and the key."""
    if len(content) > FILE_BYTES_MAX:
        raise BadInput(where, "is larger than 64 KiB", "name a file as docs/placement.md shows it")
    try:
        told = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(where, f"is no TOML: {error}"[:200], "see docs/placement.md") from None
    odd = next((name for name in told if name not in ("name", "features", *FRAMEWORKS)), None)
    if odd is not None:
        remedy = f"sections are {', '.join(f'[{kind}]' for kind in FRAMEWORKS)}"
        raise BadInput(where, f"{odd[:60]!r} is not known", remedy)
    name = told.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        told_ = "is missing" if name is None else f"is {name!r}"
        raise BadInput(where, f"name {told_}"[:120], 'write name = "wordcount"')
    sections = {kind: _section(f"{where}: [{kind}]", kind, told[kind]) for kind in FRAMEWORKS if kind in told}
    if not sections:
        raise BadInput(where, "has no section of a framework", "write [spark], [flink] or [mapreduce]")
    return ApplicationFile(name, _features(where, told.get("features", {})), sections)


def _features(where: str, told: Any) -> dict[str, float]:
    if not isinstance(told, dict) or len(told) > FEATURES_MAX:
        raise BadInput(where, "features is no table of numbers", "write features = { input_mib = 2048 }")
    for name, value in told.items():
        if not _is_finite(value):
            raise BadInput(f"{where}: features: {name[:60]}", f"is {value!r}"[:80], "give a finite number")
    return {name: float(value) for name, value in sorted(told.items())}


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of more than 300 digits
        return False


def _section(where: str, kind: str, told: Any) -> ApplicationSection:
    if not isinstance(told, dict):
        raise BadInput(where, "is no table", f'write [{kind}] and command = ["..."] below')
    odd = next((name for name in told if name not in ("command", "tunables")), None)
    if odd is not None:
        raise BadInput(where, f"{odd[:60]!r} is not known", "a section has command and tunables")
    words = told.get("command")
    if (
        not isinstance(words, list)
        or not 0 < len(words) <= WORDS_MAX
        or not all(_is_word(each) for each in words)
    ):
        raise BadInput(where, "command is no list of words", 'write command = ["spark-submit", ...]')
    if kind_of(words) != kind:
        raise BadInput(where, f"its command is one of {kind_of(words)}", f"give one of {kind}")
    framework, tunables = FRAMEWORKS[kind], _tunables(where, kind, told.get("tunables", {}))
    try:
        own = parsed(kind, [word.replace(RUN, "0") for word in words]).settings()
        framework.tags_of(own)
    except BadInput as error:
        raise BadInput(f"{where}: {error.where}", error.problem, error.remedy) from None
    _refuse_settled(where, framework, own, tunables)
    return ApplicationSection(kind, framework, tuple(words), tunables)


def _is_word(word: object) -> bool:
    return isinstance(word, str) and bool(word) and "\0" not in word


def _refuse_settled(
    where: str, framework: Framework, own: Mapping[str, str], tunables: Mapping[str, Sequence[str]]
) -> None:
    """Refuse a command that sets what is chosen for it."""
    few, more = framework.given(2), framework.given(3)
    odd = next((name for name in few if few[name] != more[name] and name in own), None)
    if odd is not None:
        told = f"sets {odd}, and yarnctl chooses the number of containers"
        raise BadInput(where, told, "leave it away from the command")
    odd = next((name for name in tunables if name in own), None)
    if odd is not None:
        raise BadInput(where, f"{odd} is a tunable, and the command sets it", "say it once")


def _tunables(where: str, kind: str, told: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(told, dict) or len(told) > TUNABLES_MAX:
        raise BadInput(
            where, f"tunables is no table of up to {TUNABLES_MAX} settings", "see docs/placement.md"
        )
    found = {}
    for name, values in sorted(told.items()):
        place = f"{where}: tunables: {name[:80]}"
        if not KNOWN_TUNABLES[kind].fullmatch(name):
            raise BadInput(place, "is no tunable that is known", "docs/placement.md has those that are")
        words = [_word(each) for each in values] if isinstance(values, list) else []
        if not 0 < len(words) <= VALUES_MAX or not all(_VALUE.fullmatch(each) for each in words):
            raise BadInput(place, f"is no list of 1 to {VALUES_MAX} words", 'write ["640m", "1g"]')
        found[name] = tuple(dict.fromkeys(words))
    return found


def _word(value: object) -> str:
    """Return a value as a command line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else ""


def parsed(kind: str, words: Sequence[str]) -> Submission:
    """Parse a command of a framework; BadInput if it submits no job of it."""
    if kind == "mapreduce" and "jar" in words:
        after = words.index("jar") + 2
        if after < len(words) and not words[after].startswith("-"):
            return JarProgram(words)
    return FRAMEWORKS[kind].command_of(words)


def profile_settings(tunables: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return the settings to profile: the first values, and each other value by itself beside these.

    In a line each setting counts by itself, so that no product of all is needed.
    """
    first = {name: values[0] for name, values in tunables.items()}
    return [first, *({**first, name: value} for name, values in tunables.items() for value in values[1:])]
