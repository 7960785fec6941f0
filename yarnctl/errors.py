"""The error tree: what failed, where, and what to do.

::

    YarnctlError            exit status 1
    ├── BadInput            exit status 2: a file, field or option that the user can correct
    ├── Unreachable         exit status 3: no server answers at an address
    ├── Different           exit status 1: a replay with another output, a check that fails
    └── InvariantBroken     exit status 1: a defect of yarnctl; names the invariant

A message is one line: the place (file, line and field, or URL), what failed, and what to do. Both programs
print ``error: <message>`` and exit with the status of the class; a traceback is a defect.
"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return the remedy for an unknown word: the known one that is most like it, else ``otherwise``."""
    from difflib import get_close_matches

    near = get_close_matches(word[:80], sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


class YarnctlError(Exception):
    """Root of all errors that both programs report in one line."""

    exit_status = 1


class BadInput(YarnctlError):
    """A value of the user cannot be used; ``where`` is file:line, option or field."""

    exit_status = 2

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{where}: {problem}" + (f"; {remedy}" if remedy else ""))
        self.where = where
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[BadInput], tuple[str, str, str]]:
        """Make the error picklable: rebuilt from its parts, not from its message."""
        return type(self), (self.where, self.problem, self.remedy)


class Unreachable(YarnctlError):
    """No server, or no usable one, answers at an address.

    ``fault``: the problem in a few words, without the address. ``kind``: why there is no connection, in the
    HTTP client's words ("": there was one).
    """

    exit_status = 3
    fault = ""
    kind = ""


class Different(YarnctlError):
    """A replay or a check has a negative result."""


class InvariantBroken(YarnctlError):
    """A named invariant does not hold; ``name`` is the invariant's."""

    def __init__(self, name: str, story: str) -> None:
        super().__init__(f"invariant {name} is broken: {story}")
        self.name = name
        self.story = story

    def __reduce__(self) -> tuple[type[InvariantBroken], tuple[str, str]]:
        """Make the error picklable, as above."""
        return type(self), (self.name, self.story)
