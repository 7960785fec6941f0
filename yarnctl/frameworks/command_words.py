"""Words of a command line: typed options with the setting of each, and the words in front of a program.

An option that is not changed is written as typed. The words in front of a program may set the job's user, or
make a command that would submit nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from yarnctl.errors import BadInput

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
