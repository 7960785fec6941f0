"""A user's command that takes the place of yarnctl's process.

Law: no shell reads the words; where the program cannot be run, its name and what to write are told.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from typing import NoReturn

from yarnctl.errors import BadInput

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def require_program(words: Sequence[str], where: str = "") -> None:
    """Refuse a command whose program is not there; ``where`` stands before its name in the error."""
    if shutil.which(words[0]) is None:
        raise _not_run(words, "is no program on the PATH", where)


def run_in_place(words: Sequence[str]) -> NoReturn:
    """Run a program in place of this process; BadInput if it cannot be run."""
    require_program(words)
    try:
        os.execvp(words[0], list(words))  # noqa: S606
    except (OSError, ValueError) as error:  # ValueError: a NUL in a word
        raise _not_run(words, getattr(error, "strerror", None) or "cannot be run") from None


def _not_run(words: Sequence[str], problem: str, where: str = "") -> BadInput:
    """Return the error of a program that cannot be run. A variable in front of it needs ``env``."""
    named = where + shlex.quote(words[0][:120])
    if _ASSIGNMENT.match(words[0]):
        return BadInput(named, "is a variable, not a program", f"write env {shlex.join(words[:2])} ...")
    return BadInput(named, problem, "name a program, or its path")
