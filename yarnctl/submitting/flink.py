"""Flink: ``flink run-application`` and ``flink run`` on YARN, parsed, and what a gate sets of it.

Law: see the package. Options end at the first word that is none: the job's jar; it and what follows are never
read. ``-p`` and ``-t`` set what ``-D`` can set, too, and a line that says both differently is refused. The
options of the old form (``-m yarn-cluster``, ``-y...``) are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from yarnctl.deciding.queue_names import is_name_of
from yarnctl.errors import BadInput
from yarnctl.hadoop.wire.mapreduce import MASTER
from yarnctl.submitting.framework import NO_TUNABLES, Tunables
from yarnctl.submitting.front_words import refuse_printed, user_in_front
from yarnctl.submitting.gate_settings import (
    NUMBER,
    QUEUE_NAME,
    count_in,
    own_tags,
    own_value,
    refuse_unlisted,
    with_tags,
)
from yarnctl.submitting.typed_options import TypedOption, kept_words, settings_of, typed_for

PROGRAM = "flink"
NAME, QUEUE, TAGS = "yarn.application.name", "yarn.application.queue", "yarn.tags"
PARALLELISM, SLOTS = "parallelism.default", "taskmanager.numberOfTaskSlots"
PRIORITY, TARGET = "yarn.application.priority", "execution.target"

GIVEN = {PARALLELISM: NUMBER, SLOTS: NUMBER, QUEUE: QUEUE_NAME, PRIORITY: NUMBER}
"""What a gate may set, beside tags."""
UNNAMED = "Flink Application Cluster"
"""Flink's name of every application that has none."""
MOST_REMEDY = "give --containers N: its TaskManagers, and one for its JobManager (or -p N)"

ACTIONS = ("run", "run-application")
TARGETS = ("yarn-application", "yarn-per-job")
"""Each submission is an application; ``flink run -t yarn-application`` is Flink 2's form."""
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
OLD = ("-m", "--jobmanager", "-e", "--executor")


class FlinkSubmission:
    """One application of ``flink run-application`` or ``flink run``, with any words in front of it."""

    queue_default = "default"
    name_default = UNNAMED

    def __init__(self, words: Sequence[str]) -> None:
        place = next((at for at, word in enumerate(words) if PurePath(word).name == PROGRAM), None)
        action = "" if place is None else "".join(words[place + 1 : place + 2])
        if place is None or action not in ACTIONS:
            remedy = f"write '{PROGRAM} run-application -t yarn-application ...'"
            raise BadInput("command line", "submits no job of Flink", remedy)
        self._program = list(words[: place + 2])
        self._options, self._rest = _parsed(words[place + 2 :])
        example = f"{PROGRAM} {action} ..."
        refuse_printed(self._program, example)
        self.user_option = user_in_front(self._program, example)
        self._settings = settings_of(self._options)
        target = self._settings.get(TARGET)
        if target is None:
            raise BadInput("-t", "is not on the line", "write -t yarn-application")
        if target not in TARGETS:
            told = "is no application of its own on YARN"
            raise BadInput(typed_for(self._options, TARGET), told, "write -t yarn-application")

    def settings(self) -> dict[str, str]:
        """Return what ``-D`` and the options beside it set, under Flink's names."""
        return dict(self._settings)

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with these settings; its own values of them are left out."""
        ours = [f"-D{name}={value}" for name, value in more.items()]
        return [*self._program, *ours, *kept_words(self._options, more), *self._rest]


def _parsed(words: Sequence[str]) -> tuple[list[TypedOption], list[str]]:
    """Divide words into options and the rest, which begins with the job's jar."""
    options: list[TypedOption] = []
    place = 0
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        option, value = _divided(word)
        if option in OLD or (option.startswith(("-y", "--y")) and option not in WITH_VALUE):
            raise BadInput(
                option[:60], "is of Flink's old form", "write -t yarn-application and -D NAME=VALUE"
            )
        if option in FLAGS:
            options.append(TypedOption((word,), option))
            place += 1
            continue
        if option not in WITH_VALUE:
            raise BadInput(option[:60], "is no option of flink run that is known here", "give it by -D")
        if value is None and place + 1 >= len(words):
            raise BadInput(option, "its value is missing")
        taken = tuple(words[place : place + (2 if value is None else 1)])
        options.append(_option(taken, option, taken[1] if value is None else value))
        place += len(taken)
    return options, list(words[place:])


def _divided(word: str) -> tuple[str, str | None]:
    """Return an option and the value in the same word (``-Dx=y``, ``-p3``, ``--parallelism=3``), or None."""
    if word in WITH_VALUE or word in FLAGS:
        return word, None
    if word.startswith("-D"):
        return "-D", word[2:]
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


def command_of(words: Sequence[str]) -> FlinkSubmission:
    """Parse a command line; BadInput if it submits no application of its own on YARN."""
    return FlinkSubmission(words)


def most_containers(settings: Mapping[str, str]) -> int | None:
    """Return its TaskManagers and its JobManager; None where its parallelism is not on the line."""
    parallelism, slots = count_in(settings, PARALLELISM, "-D"), _slots(settings)
    return None if parallelism is None else -(-parallelism // slots) + MASTER


def _slots(settings: Mapping[str, str]) -> int:
    """Return the slots of a TaskManager: the user's, else the one that the gate sets."""
    return count_in(settings, SLOTS, "-D") or 1


def tags_of(settings: Mapping[str, str]) -> list[str]:
    """Return the user's own tags; BadInput where they leave no room for the gate's, or forge one."""
    return own_tags(settings.get(TAGS, ""), f"-D{TAGS}")


def given(containers: int) -> dict[str, str]:
    """Return the settings that limit an application to so many containers: one is its JobManager's."""
    return {PARALLELISM: str(max(1, containers - MASTER)), SLOTS: "1"}


def settled(
    own: Mapping[str, str], given: Mapping[str, str], tags: Sequence[str], tunables: Tunables = NO_TUNABLES
) -> tuple[dict[str, str], list[str]]:
    """Return the settings to submit with, and notes for the user. BadInput names what contradicts the gate.

    ``own`` are the user's settings, ``given`` the gate's and ``tags`` its tags. The gate gives TaskManagers;
    where the user's have more slots, parallelism is as many times that.
    """
    refuse_unlisted(GIVEN, given, tags, tunables)
    if PARALLELISM not in given or SLOTS not in given:
        raise BadInput("--url", "its daemon gives a Flink application no parallelism", "update it")
    slots = count_in(own, SLOTS, "-D")
    managers = -(-int(given[PARALLELISM]) // max(1, int(given[SLOTS])))
    if slots is not None:
        given = {**given, SLOTS: str(slots), PARALLELISM: str(managers * slots)}
    more: dict[str, str] = {}
    notes: list[str] = []
    for name, value in given.items():
        said = own.get(name)
        if said is None:
            more[name] = value
        elif name == PARALLELISM:
            _refuse_more(own, int(value))
        elif name == QUEUE:
            if not is_name_of(said, value):
                raise BadInput(f"-D{QUEUE}={said}", f"the gate gives {value}", "ask for one queue")
        elif said != value and name != SLOTS:
            notes.append(own_value(said, value, name))
    more[TAGS] = with_tags(tags_of(own), tags)
    return more, notes


def _refuse_more(own: Mapping[str, str], most: int) -> None:
    parallelism = count_in(own, PARALLELISM, "-D") or 0
    if parallelism > most:
        least = most_containers(own)
        remedy = f"leave it away, and ask with yarnctl admit --containers {least}"
        raise BadInput(f"-p {parallelism}", f"the gate gives {most}", remedy)
