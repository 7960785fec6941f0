"""Running a user's command in the place of yarnctl's process, without a shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from yarnctl.errors import BadInput

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def require_program(words: Sequence[str], where: str = "") -> None:
    """Raise BadInput if a command's program is not installed; ``where`` precedes its name in the error."""
    if shutil.which(words[0]) is None:
        raise _not_run(words, "program not found in PATH", where)


def run_in_place(words: Sequence[str]) -> NoReturn:
    """Run a program in place of this process; raises BadInput if it cannot be run."""
    require_program(words)
    sys.stdout.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would inherit that
    try:
        os.execvp(words[0], list(words))  # noqa: S606
    except (OSError, ValueError) as error:  # ValueError: a NUL in a word
        raise _not_run(words, getattr(error, "strerror", None) or "cannot be run") from None
    finally:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _not_run(words: Sequence[str], problem: str, where: str = "") -> BadInput:
    """Return the error for a program that cannot be run; a variable in front of it requires ``env``."""
    named = where + shlex.quote(words[0][:120])
    if _ASSIGNMENT.match(words[0]):
        return BadInput(named, "is a variable, not a program", f"use env {shlex.join(words[:2])} ...")
    return BadInput(named, problem, "give a program in PATH, or its path")
