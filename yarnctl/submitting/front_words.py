"""The words in front of a program: the job's user, and commands that would submit nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from yarnctl.errors import BadInput

_USER = "HADOOP_USER_NAME="
_OTHERS = ("sudo", "su", "runuser", "doas")
_HIDING = ("-", "-i", "--ignore-environment", "-u", "--unset", "-S", "--split-string")


def refuse_printed(program: Sequence[str], example: str) -> None:
    """Raise BadInput for ``yarnctl wrap`` without ``--exec``: it prints the command."""
    wrapped = [place for place, word in enumerate(program) if word == "wrap" and place]
    if wrapped and "--exec" not in program[wrapped[0] :]:
        remedy = f"use 'yarnctl wrap --exec ... -- {example}'"
        raise BadInput("yarnctl wrap", "submits nothing without --exec", remedy)


def user_in_front(program: Sequence[str], example: str) -> str | None:
    """Return the user that the words before the command set (``env HADOOP_USER_NAME=bob``), if they do.

    Raises BadInput where they change the user in a way that is not parsed here.
    """
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
