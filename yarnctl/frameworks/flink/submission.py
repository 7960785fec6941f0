"""Flink: parses ``flink run-application`` and ``flink run`` on YARN, and adds granted settings.

* Options end at the first other word, the job's jar; it and the words after it are never read.
* ``-p`` and ``-t`` set the same as ``-D``; a command line with two different values is rejected.
* The old form (``-m yarn-cluster``, ``-y...``) is rejected; the error has the same command in the new form.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

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

PROGRAM = "flink"
NAME, QUEUE, TAGS = "yarn.application.name", "yarn.application.queue", "yarn.tags"
PARALLELISM, SLOTS = "parallelism.default", "taskmanager.numberOfTaskSlots"
PRIORITY, TARGET = "yarn.application.priority", "execution.target"

GIVEN = {PARALLELISM: NUMBER, SLOTS: NUMBER, QUEUE: QUEUE_NAME, PRIORITY: NUMBER}
"""The settings that the daemon may grant, beside tags."""
UNNAMED = "Flink Application Cluster"  # Flink's name for every application without one
MOST_REMEDY = "add --containers N (TaskManagers plus 1 for the JobManager), or -p N"

TARGETS = ("yarn-application", "yarn-per-job")  # ``run -t yarn-application`` is Flink 2's form
OWN = {"-p": PARALLELISM, "--parallelism": PARALLELISM, "-t": TARGET, "--target": TARGET}
WITH_VALUE = (
    *OWN,
    *("-D", "-c", "--class", "-C", "--classpath", "-s", "--fromSavepoint", "-j", "--jarfile"),
    *("-claimMode", "--claimMode", "-rm", "--restoreMode", "-z", "--zookeeperNamespace"),
    *("-py", "--python", "-pym", "--pyModule", "-pyfs", "--pyFiles", "-pyreq", "--pyRequirements"),
    *("-pyarch", "--pyArchives", "-pyexec", "--pyExecutable", "-pyclientexec", "--pyClientExecutable"),
    *("-pypath", "--pyPythonPath"),
)
FLAGS = (
    *("-d", "--detached", "-n", "--allowNonRestoredState", "-sae", "--shutdownOnAttachedExit"),
    *("-v", "--verbose", "-q", "--sysoutLogging"),
)
OLD_FLAGS = ("-yd", "--yarndetached", "-yst", "--yarnstreaming")
OLD_CLUSTER = ("-m", "--jobmanager", "-yid", "--yarnapplicationId")
OLD_MEMORY = ("-yjm", "--yarnjobManagerMemory", "-ytm", "--yarntaskManagerMemory")  # In MiB without a unit
OLD_SHIP = ("-yt", "--yarnship")  # Each adds a folder; its setting is one list
OLD_FORM: Mapping[str, str] = {
    **dict.fromkeys(("-ys", "--yarnslots"), f"-D{SLOTS}={{}}"),
    **dict.fromkeys(OLD_MEMORY[:2], "-Djobmanager.memory.process.size={}"),
    **dict.fromkeys(OLD_MEMORY[2:], "-Dtaskmanager.memory.process.size={}"),
    **dict.fromkeys(("-ynm", "--yarnname"), f"-D{NAME}={{}}"),
    **dict.fromkeys(("-yqu", "--yarnqueue"), f"-D{QUEUE}={{}}"),
    **dict.fromkeys(("-yat", "--yarnapplicationType"), "-Dyarn.application.type={}"),
    **dict.fromkeys(("-ynl", "--yarnnodeLabel"), "-Dyarn.application.node-label={}"),
    **dict.fromkeys(OLD_SHIP, "-Dyarn.ship-files={}"),
    **dict.fromkeys(("-yj", "--yarnjar"), "-Dyarn.flink-dist-jar={}"),
    **dict.fromkeys(("-yz", "--yarnzookeeperNamespace"), "-Dhigh-availability.cluster-id={}"),
    **dict.fromkeys(("-e", "--executor"), "--target={}"),
    **dict.fromkeys(OLD_FLAGS[:2], "-d"),
    "-yD": "-D{}",
    # Flink starts as many TaskManagers as the parallelism needs, and every job is of the streaming kind
    **dict.fromkeys((*OLD_CLUSTER, "-yn", "--yarncontainer", *OLD_FLAGS[2:]), ""),
}
"""Options of the old form, each with its new form (Flink's ``FlinkYarnSessionCli``); "": there is none."""


class FlinkWords:
    """A parsed command line of ``flink run-application`` or ``flink run``, with any words in front of it."""

    def __init__(self, words: Sequence[str]) -> None:
        found = program_in(words, "flink")
        if found is None:
            problem = "does not submit a Flink job"
            raise BadInput("command line", problem, f"use '{EXAMPLES['flink']}'")
        self._program = list(words[: found.place + 2])
        self._options, self._rest = _parsed(self._program, words[found.place + 2 :])
        self._settings = settings_of(self._options)
        target = self._settings.get(TARGET)
        if target is None:
            raise BadInput("-t", "is missing", "add -t yarn-application")
        if target not in TARGETS:
            problem = "does not create a YARN application for the job"
            raise BadInput(typed_for(self._options, TARGET), problem, "use -t yarn-application")

    def settings(self) -> dict[str, str]:
        """Return the settings of ``-D`` and of other options, under Flink's names."""
        return dict(self._settings)

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with the settings ``more`` in place of its own values."""
        ours = [f"-D{name}={value}" for name, value in more.items()]
        return [*self._program, *ours, *kept_words(self._options, more), *self._rest]


class FlinkSubmission(FlinkWords):
    """One application for admission."""

    queue_default = "default"
    name_default = UNNAMED

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(words)
        self.user_option = user_in_front(self._program, f"{PROGRAM} {self._program[-1]} ...")


def _parsed(program: Sequence[str], words: Sequence[str]) -> tuple[list[TypedOption], list[str]]:
    """Return the options, and the rest, which begins with the job's jar; raises BadInput.

    ``words`` follow ``program``, which ends with the action. The error for the old form has the new form.
    """
    options: list[TypedOption] = []
    old: list[str] = []
    place = 0
    while place < len(words) and words[place].startswith("-"):
        option, value = _divided(words[place])
        if option not in (*WITH_VALUE, *FLAGS, *OLD_FORM):
            raise BadInput(option[:60], "unknown option of flink run", "use -D NAME=VALUE instead")
        is_alone = value is not None or option in (*FLAGS, *OLD_FLAGS)
        if not is_alone and place + 1 >= len(words):
            raise BadInput(option, "has no value", "add a value")
        taken = tuple(words[place : place + (1 if is_alone else 2)])
        place += len(taken)
        if option in OLD_FORM:
            old.append(" ".join(taken)[:100])
            earlier = [each for each in options if each.option in OLD_SHIP and option in OLD_SHIP]
            value = ";".join([*(each.value or "" for each in earlier), taken[-1] if value is None else value])
            options = [*(each for each in options if each not in earlier), _renewed(option, value)]
        elif option in FLAGS:
            options.append(TypedOption(taken, option))
        else:
            options.append(_option(taken, option, taken[1] if value is None else value))
    rest = list(words[place:])
    if old:
        if not any(each.sets == TARGET for each in options):
            program = [*program[:-1], "run-application", "-t", "yarn-application"]
        line = shlex.join([*program, *kept_words(options, {}), *rest])
        raise BadInput(old[0], "is Flink's old form", f"use: {line}")
    return options, rest


def _renewed(option: str, value: str) -> TypedOption:
    """Return an option of the old form in the new form, without words if there is none; raises BadInput."""
    if option in OLD_CLUSTER and value != "yarn-cluster":
        problem = "submits to a running cluster, which is not the job's own application"
        raise BadInput(f"{option} {value[:60]}", problem, "use -t yarn-application")
    unit = "m" if option in OLD_MEMORY and value.isdecimal() else ""
    word = OLD_FORM[option].format(value + unit)
    sets = TARGET if word.startswith("--target=") else ""
    return TypedOption((word,) if word else (), option, value, sets)


def _divided(word: str) -> tuple[str, str | None]:
    """Return an option, and the value in the same word (``-Dx=y``, ``-p3``, ``--parallelism=3``) or None."""
    if word in (*WITH_VALUE, *FLAGS, *OLD_FORM):
        return word, None
    for general in ("-D", "-yD"):
        if word.startswith(general):
            return general, word.removeprefix(general)
    option, equals, value = word.partition("=")
    if equals:
        return option, value
    if word.startswith("-p") and word[2:].isascii() and word[2:].isdecimal():
        return "-p", word[2:]
    return word, None


def _option(words: tuple[str, ...], option: str, value: str) -> TypedOption:
    if option != "-D":
        return TypedOption(words, option, value, OWN.get(option, ""), own=option in OWN)
    name, equals, setting = value.partition("=")
    return TypedOption(words, option, setting if equals else "true", name)


command_of = FlinkSubmission


def most_containers(settings: Mapping[str, str]) -> int | None:
    """Return the number of TaskManagers plus the JobManager; None if the parallelism is not given."""
    parallelism, slots = count_in(settings, PARALLELISM, "-D"), count_in(settings, SLOTS, "-D") or 1
    return None if parallelism is None else -(-parallelism // slots) + MASTER


def tags_of(settings: Mapping[str, str]) -> list[str]:
    """Return the user's own tags; BadInput where they are too many, or one is reserved for the daemon."""
    return own_tags(settings.get(TAGS, ""), f"-D{TAGS}")


def given(containers: int) -> dict[str, str]:
    """Return the settings that limit an application to ``containers``, with its JobManager's."""
    return {PARALLELISM: str(max(1, containers - MASTER)), SLOTS: "1"}


def settled(
    own: Mapping[str, str], given: Mapping[str, str], tags: Sequence[str], tunables: Tunables = NO_TUNABLES
) -> tuple[dict[str, str], list[str]]:
    """Return the settings to submit with, and notes for the user; BadInput names a contradicting setting.

    ``own`` are the user's settings, ``given`` the granted ones and ``tags`` the granted tags. The daemon
    grants TaskManagers with one slot; the user's number of slots multiplies the parallelism.
    """
    refuse_unlisted(GIVEN, given, tags, tunables)
    if PARALLELISM not in given or SLOTS not in given:
        raise BadInput("--url", "the daemon grants no parallelism for Flink", "update the daemon")
    slots = count_in(own, SLOTS, "-D")
    managers = -(-int(given[PARALLELISM]) // max(1, int(given[SLOTS])))
    if slots is not None:
        given = {**given, SLOTS: str(slots), PARALLELISM: str(managers * slots)}
    more: dict[str, str] = {}
    notes: list[str] = []
    for name, value in given.items():
        typed = own.get(name)
        if typed is None:
            more[name] = value
        elif name == PARALLELISM:
            most = int(value)
            parallelism = count_in(own, PARALLELISM, "-D") or 0
            if parallelism > most:
                remedy = f"remove it, and request yarnctl admit --containers {most_containers(own)}"
                raise BadInput(f"-p {parallelism}", f"exceeds the granted {most}", remedy)
        elif name == QUEUE:
            if not is_name_of(typed, value):
                raise BadInput(f"-D{QUEUE}={typed}", f"queue {value} was granted", "request the same queue")
        elif typed != value and name != SLOTS:
            notes.append(own_value(typed, value, name))
    more[TAGS] = with_tags(tags_of(own), tags)
    return more, notes
