"""``APP.toml``: one application that exists for several frameworks, with commands and tunable settings.

* A file is accepted completely or rejected with the name of the wrong key.
* A command does not set the number of containers: yarnctl chooses it.
* ``{run}`` in a command is replaced by a word that is unique to each run (for its output).

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
from yarnctl.frameworks.command_words import EXAMPLES, program_in, shown_program
from yarnctl.frameworks.mapreduce.submission import JarProgram
from yarnctl.frameworks.submissions import FRAMEWORKS
from yarnctl.frameworks.submitting import Submission, Submitter

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
"""The settings that may be tunable, by framework: sizes, compression, parallelism; no path, no program."""


class ApplicationSection(NamedTuple):
    """One framework of an application: its command and the settings that yarnctl chooses."""

    kind: str
    framework: Submitter
    command: tuple[str, ...]
    tunables: Mapping[str, tuple[str, ...]]

    def job(self, run: str = "0") -> Submission:
        """Return the parsed command of one run; ``run`` replaces ``{run}``."""
        return parsed(self.kind, [word.replace(RUN, run) for word in self.command])


class ApplicationFile(NamedTuple):
    """An application: its name, its features, and a section for each framework."""

    name: str
    features: Mapping[str, float]
    sections: Mapping[str, ApplicationSection]

    def only(self, kind: str | None) -> ApplicationFile:
        """Return the application with one framework only; raises BadInput if it has no such section."""
        if kind is None:
            return self
        if kind not in self.sections:
            problem = f"the file has no section [{kind[:40]}]"
            raise BadInput("--kind", problem, f"use one of {', '.join(self.sections)}")
        return self._replace(sections={kind: self.sections[kind]})


def read_application(content: bytes, where: str) -> ApplicationFile:
    """Read a file's content; raises BadInput naming ``where`` and the key."""
    if len(content) > FILE_BYTES_MAX:
        raise BadInput(where, "exceeds the maximum of 64 KiB", "see docs/admission.md for the format")
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(where, f"invalid TOML: {error}"[:200], "see docs/admission.md") from None
    odd = next((name for name in document if name not in ("name", "features", *FRAMEWORKS)), None)
    if odd is not None:
        remedy = f"use name, features, {', '.join(f'[{kind}]' for kind in FRAMEWORKS)}"
        raise BadInput(where, f"unknown key {odd[:60]!r}", remedy)
    name = document.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        problem = "name is missing" if name is None else f"invalid name {name!r}"
        raise BadInput(where, problem[:120], 'write for example name = "wordcount"')
    sections = {
        kind: _section(f"{where}: [{kind}]", kind, document[kind]) for kind in FRAMEWORKS if kind in document
    }
    if not sections:
        raise BadInput(where, "has no section for a framework", "add [spark], [flink] or [mapreduce]")
    return ApplicationFile(name, _features(where, document.get("features", {})), sections)


def _features(where: str, table: Any) -> dict[str, float]:
    if not isinstance(table, dict) or len(table) > FEATURES_MAX:
        problem = f"features is not a table of at most {FEATURES_MAX} numbers"
        raise BadInput(where, problem, "write for example features = { input_mib = 2048 }")
    for name, value in table.items():
        if not _is_finite(value):
            problem = f"{value!r}"[:70] + " is not a finite number"
            raise BadInput(f"{where}: features: {name[:60]}", problem, "use a number")
    return {name: float(value) for name, value in sorted(table.items())}


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of more than 300 digits
        return False


def _section(where: str, kind: str, table: Any) -> ApplicationSection:
    if not isinstance(table, dict):
        raise BadInput(where, "is not a table", f'write [{kind}] and below it command = ["..."]')
    odd = next((name for name in table if name not in ("command", "tunables")), None)
    if odd is not None:
        raise BadInput(where, f"unknown key {odd[:60]!r}", "use command and tunables")
    words = table.get("command")
    if (
        not isinstance(words, list)
        or not 0 < len(words) <= WORDS_MAX
        or not all(isinstance(each, str) and each and "\0" not in each for each in words)
    ):
        raise BadInput(where, "command is not a list of words", 'write command = ["spark-submit", ...]')
    program = program_in(words)
    if program is None or program.kind != kind:
        problem = f"the command runs {shown_program(words)}, which is not a program of {kind}"
        raise BadInput(where, problem, f"use {EXAMPLES[kind]}")
    framework, tunables = FRAMEWORKS[kind], _tunables(where, kind, table.get("tunables", {}))
    try:
        own = parsed(kind, [word.replace(RUN, "0") for word in words]).settings()
        framework.tags_of(own)
    except BadInput as error:
        raise BadInput(f"{where}: {error.where}", error.problem, error.remedy) from None
    _refuse_settled(where, framework, own, tunables)
    return ApplicationSection(kind, framework, tuple(words), tunables)


def _refuse_settled(
    where: str, submitter: Submitter, own: Mapping[str, str], tunables: Mapping[str, Sequence[str]]
) -> None:
    few, more = submitter.given(2), submitter.given(3)
    odd = next((name for name in few if few[name] != more[name] and name in own), None)
    if odd is not None:
        problem = f"the command sets {odd}, but yarnctl chooses the number of containers"
        raise BadInput(where, problem, "remove it from the command")
    odd = next((name for name in tunables if name in own), None)
    if odd is not None:
        raise BadInput(where, f"{odd} is both a tunable and set by the command", "remove one of them")


def _tunables(where: str, kind: str, table: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict) or len(table) > TUNABLES_MAX:
        problem = f"tunables is not a table of at most {TUNABLES_MAX} settings"
        raise BadInput(where, problem, "see docs/admission.md")
    found = {}
    for name, values in sorted(table.items()):
        place = f"{where}: tunables: {name[:80]}"
        if not KNOWN_TUNABLES[kind].fullmatch(name):
            raise BadInput(place, "is not a known tunable", "see docs/admission.md for the known ones")
        words = [_word(each) for each in values] if isinstance(values, list) else []
        if not 0 < len(words) <= VALUES_MAX or not all(_VALUE.fullmatch(each) for each in words):
            problem = f"is not a list of 1 to {VALUES_MAX} words"
            raise BadInput(place, problem, 'write for example ["640m", "1g"]')
        found[name] = tuple(dict.fromkeys(words))
    return found


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int) else ""


def parsed(kind: str, words: Sequence[str]) -> Submission:
    """Parse a command of a framework; raises BadInput if it submits no job of it."""
    if kind == "mapreduce" and "jar" in words:
        after = words.index("jar") + 2
        if after < len(words) and not words[after].startswith("-"):
            return JarProgram(words)
    return FRAMEWORKS[kind].command_of(words)


def profile_settings(tunables: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Return the settings to profile: all first values, then each other value with the other first ones.

    The prediction is linear in each setting, so it does not need all combinations.
    """
    first = {name: values[0] for name, values in tunables.items()}
    return [first, *({**first, name: value} for name, values in tunables.items() for value in values[1:])]
