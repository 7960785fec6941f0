"""Spark: parses ``spark-submit`` on YARN in cluster mode, and adds granted settings.

* ``run-example``, ``pyspark`` and the other shells take the options of spark-submit. Shells run in client
  mode. ``spark-shell``, ``spark-sql`` and the Thrift server accept these options between their own, too.
* Options end at the first other word, the application's file; it and the words after it are never read.
* ``--num-executors``, ``--queue`` and ``--name`` have precedence over ``--conf``, as in spark-submit; a
  command line with two different values is rejected.
* A defaults file is not read here, so master and deploy mode must be in the command line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType

from yarnctl.deciding.queue_names import is_name_of
from yarnctl.errors import BadInput
from yarnctl.frameworks.command_words import (
    EXAMPLES,
    TypedOption,
    kept_words,
    program_in,
    settings_of,
    typed_for,
    user_in_front,
)
from yarnctl.frameworks.spark.configuration import (
    DECOMMISSION,
    DYNAMIC,
    MOVES,
    MOVES_CACHE,
    MOVES_EVERY,
    MOVES_SHUFFLE,
    PLUGINS,
    SIGNAL,
)
from yarnctl.frameworks.submitting import (
    NO_TUNABLES,
    NUMBER,
    QUEUE_NAME,
    Tunables,
    count_in,
    own_tags,
    own_value,
    refuse_unlisted,
    with_tags,
)
from yarnctl.hadoop.wire.yarn import MASTER

PROGRAM = "spark-submit"
NAME, QUEUE, TAGS = "spark.app.name", "spark.yarn.queue", "spark.yarn.tags"
EXECUTORS = "spark.executor.instances"
PRIORITY = "spark.yarn.priority"
MASTER_URL, DEPLOY_MODE, USER = "spark.master", "spark.submit.deployMode", "--proxy-user"

LEAVING = {
    DECOMMISSION: "true",
    SIGNAL: "TERM|PWR",
    MOVES: "true",
    MOVES_SHUFFLE: "true|false",
    MOVES_CACHE: "true|false",
    MOVES_EVERY: rf"{NUMBER}(ms|s)",
    PLUGINS: r"yarnctl\.[A-Za-z0-9_.]{1,100}",
}
"""The settings for decommissioning executors, and yarnctl's plugin (docs/facts/spark.md, sections 2 and
3).
"""
GIVEN = {EXECUTORS: NUMBER, DYNAMIC: "false", QUEUE: QUEUE_NAME, PRIORITY: NUMBER, **LEAVING}
"""The settings that the daemon may grant, beside tags."""
UNNAMED = ""  # Every application has a name: by default that of its class, or of its file
MOST_REMEDY = "add --containers N (executors plus 1 for the driver), or --num-executors N"

OWN = {
    "--num-executors": EXECUTORS,
    "--queue": QUEUE,
    "--name": NAME,
    "--master": MASTER_URL,
    "--deploy-mode": DEPLOY_MODE,
}
"""Options whose setting ``--conf`` can set, too."""
WITH_VALUE = (
    *OWN,
    *("--conf", "-c", "--class", "--properties-file", USER, "--principal", "--keytab"),
    *("--jars", "--packages", "--exclude-packages", "--repositories", "--py-files", "--files", "--archives"),
    *("--driver-memory", "--driver-cores", "--driver-java-options", "--driver-library-path"),
    *("--driver-class-path", "--executor-memory", "--executor-cores", "--total-executor-cores"),
)
FLAGS = ("--verbose", "-v", "--supervise", "--load-spark-defaults")
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
OTHER_PURPOSE = ("--kill", "--status", "--version", "--help", "-h", "--remote")
"""Options with which spark-submit submits no application on YARN."""
_SHELLS = (
    "org.apache.spark.repl.Main",
    "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver",
    "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
)
"""The classes of Spark's own shells; spark-submit starts them, too."""
_EXAMPLE_CLASSES = "org.apache.spark.examples."


class SparkWords:
    """A parsed command line of ``spark-submit``, with any words in front of it."""

    def __init__(self, words: Sequence[str]) -> None:
        found = program_in(words, "spark")
        if found is None:
            remedy = f"use '{EXAMPLES['spark']}'"
            raise BadInput("command line", f"does not contain {PROGRAM}", remedy)
        self._program = list(words[: found.place + 1])
        self.name = PurePath(self.program).name
        is_submit = re.search("submit|run-example", self.name, re.IGNORECASE) is not None
        has_class = any(word.removeprefix("--class=") in _SHELLS for word in words)
        self.is_shell = has_class or not is_submit
        is_mixed = has_class or not (is_submit or self.name.startswith(("pyspark", "sparkR")))
        self.options, self._rest = _parsed(words[found.place + 1 :], is_mixed)
        if not self._rest and not self.is_shell:
            raise BadInput(PROGRAM, "no application is given", "add its jar or Python file after the options")
        self._settings = settings_of(self.options)

    @property
    def program(self) -> str:
        """The word that names spark-submit, or another of Spark's programs."""
        return self._program[-1]

    @property
    def application(self) -> str:
        """The application's file: the first word that is not an option; "": a shell has none."""
        return "".join(self._rest[:1])

    def settings(self) -> dict[str, str]:
        """Return the settings of ``--conf`` and of other options, under Spark's names."""
        return dict(self._settings)

    def words(self, more: Mapping[str, str], options: Mapping[str, str] = NO_OPTIONS) -> list[str]:
        """Return the command line with the settings ``more`` and ``options`` in place of its own values."""
        ours = [word for name, value in more.items() for word in ("--conf", f"{name}={value}")]
        ours += [word for name, value in options.items() for word in (name, value)]
        kept = [each for each in self.options if each.option not in options]
        return [*self._program, *ours, *kept_words(kept, more), *self._rest]

    def variables(self) -> dict[str, str]:
        """Return the environment's variables that the words in front set."""
        pairs = (word.partition("=") for word in self._program[:-1])
        return {name: value for name, equals, value in pairs if equals}

    def value_of(self, option: str) -> str | None:
        """Return the value of an option, the last one given; None: not given."""
        return next((each.value for each in reversed(self.options) if each.option == option), None)


class SparkSubmission(SparkWords):
    """One application of ``spark-submit`` for admission: in YARN's cluster mode, of a known size."""

    queue_default = "default"

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        if self.is_shell:
            problem = "runs the driver outside of YARN, where admission cannot limit it"
            raise BadInput(self.name, problem, "use spark-submit --deploy-mode cluster")
        in_front = user_in_front(self._program, f"{self.name} ...")
        self.user_option = self.value_of(USER) or in_front
        self._refuse_outside()

    @property
    def name_default(self) -> str:
        """The name that Spark gives it: that of its class, else of its file."""
        if self.name == "run-example":  # Its first word is a class of Spark's examples
            return _EXAMPLE_CLASSES + self.application.removeprefix(_EXAMPLE_CLASSES)
        return self.value_of("--class") or PurePath(self.application).name or PROGRAM

    def _refuse_outside(self) -> None:
        """Raise BadInput for an application outside of YARN's containers, or with dynamic allocation."""
        found, options = self._settings, self.options
        master = found.get(MASTER_URL)
        if master is None:
            raise BadInput("--master", "is missing", "add --master yarn")
        if master != "yarn":
            raise BadInput(typed_for(options, MASTER_URL), "does not run on YARN", remedy_for(master))
        mode = found.get(DEPLOY_MODE)
        if mode != "cluster":
            where = typed_for(options, DEPLOY_MODE) if mode is not None else "--deploy-mode"
            problem = (
                "is missing (Spark's default is client)"
                if mode is None
                else "runs the driver outside of YARN"
            )
            raise BadInput(where, problem, "use --deploy-mode cluster")
        if found.get(DYNAMIC, "false").strip().lower() != "false":
            problem = "contradicts admission, which grants a fixed number of executors"
            raise BadInput(typed_for(options, DYNAMIC), problem, f"remove it; {DYNAMIC}=false is set for you")


def remedy_for(master: str) -> str:
    """Return what to use instead of another master than ``yarn``; Spark 1 had the deploy mode in its name."""
    mode = master.removeprefix("yarn-")
    return "use --master yarn" + (f" --deploy-mode {mode}" if mode in ("client", "cluster") else "")


def _parsed(words: Sequence[str], is_mixed: bool) -> tuple[list[TypedOption], list[str]]:
    """Return the options, and the rest, which begins with the application's file; raises BadInput.

    ``is_mixed``: options may stand between the program's own words, which are kept as options without a name.
    """
    options: list[TypedOption] = []
    place = 0
    while place < len(words) and (is_mixed or words[place].startswith("-")):
        word = words[place]
        option, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if option in OTHER_PURPOSE:
            raise BadInput(option, "does not submit an application on YARN", "remove the option")
        if option in FLAGS:
            options.append(TypedOption((word,), option))
            place += 1
            continue
        if option not in WITH_VALUE and is_mixed:
            options.append(TypedOption((word,), ""))
            place += 1
            continue
        if option not in WITH_VALUE:
            raise BadInput(option[:60], "unknown option of spark-submit", "use --conf NAME=VALUE instead")
        if not equals and place + 1 >= len(words):
            raise BadInput(option, "has no value", "add a value")
        taken = words[place : place + (1 if equals else 2)]
        options.append(_option(tuple(taken), option, value if equals else taken[1]))
        place += len(taken)
    return options, list(words[place:])


def _option(words: tuple[str, ...], option: str, value: str) -> TypedOption:
    if option not in ("--conf", "-c"):
        return TypedOption(words, option, value, OWN.get(option, ""), own=option in OWN)
    name, equals, setting = value.partition("=")
    if not equals:
        raise BadInput(f"{option} {value[:60]}", "has no =", f"use {option} NAME=VALUE")
    return TypedOption(words, option, setting, name)


command_of = SparkSubmission


def most_containers(settings: Mapping[str, str]) -> int | None:
    """Return the number of executors plus the driver; None if the executors are not given."""
    executors = count_in(settings, EXECUTORS, "--conf ")
    return None if executors is None else executors + MASTER


def tags_of(settings: Mapping[str, str]) -> list[str]:
    """Return the user's own tags; BadInput where they are too many, or one is reserved for the daemon."""
    return own_tags(settings.get(TAGS, ""), f"--conf {TAGS}")


def given(containers: int) -> dict[str, str]:
    """Return the settings that limit an application to ``containers``, with its driver's."""
    return {EXECUTORS: str(max(1, containers - MASTER)), DYNAMIC: "false"}


def settled(
    own: Mapping[str, str], given: Mapping[str, str], tags: Sequence[str], tunables: Tunables = NO_TUNABLES
) -> tuple[dict[str, str], list[str]]:
    """Return the settings to submit with, and notes for the user; BadInput names a contradicting setting.

    ``own`` are the user's settings, ``given`` the granted ones and ``tags`` the granted tags.
    """
    refuse_unlisted(GIVEN, given, tags, tunables)
    if EXECUTORS not in given:
        raise BadInput("--url", "the daemon grants no executors for Spark", "update the daemon")
    more: dict[str, str] = {}
    notes: list[str] = []
    for name, value in given.items():
        typed = own.get(name)
        if typed is None:
            more[name] = value
        elif name == EXECUTORS:
            most = int(value)
            executors = count_in(own, EXECUTORS, "--conf ") or 0
            if executors > most:
                remedy = f"remove it, and request yarnctl admit --containers {executors + MASTER}"
                raise BadInput(f"--num-executors {executors}", f"exceeds the granted {most}", remedy)
        elif name == QUEUE:
            if not is_name_of(typed, value):
                raise BadInput(f"--queue {typed}", f"queue {value} was granted", "request the same queue")
        elif typed != value and name != DYNAMIC:
            notes.append(own_value(typed, value, name))
    more[TAGS] = with_tags(tags_of(own), tags)
    return more, notes
