"""The error tree: what went wrong, where, and what to do next.

::

    YarnctlError            exit status 1
    ├── BadInput            exit status 2: a file, field or option that the user can correct
    ├── Unreachable         exit status 3: no server answers at an address
    ├── Different           exit status 1: a replay that decides otherwise, a check that fails
    └── InvariantBroken     exit status 1: our own fault; names the invariant

Law: a message is one line that names the place (file, line and field, or URL), what was expected, and what to
do. Both programs print ``error: <message>`` and exit with the status of the class; a traceback is a bug.
"""

from __future__ import annotations


class YarnctlError(Exception):
    """Root of all errors that both programs report in one line."""

    exit_status = 1


class BadInput(YarnctlError):
    """Something the user gave cannot be used; ``where`` is file:line, option or field."""

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
    """No server (or no usable one) answers at an address.

    ``fault``: the same in a few words and without the address; ``kind``: why no connection was made, as the
    HTTP client names it ("": one was made).
    """

    exit_status = 3
    fault = ""
    kind = ""


class Different(YarnctlError):
    """A replay or a check gave a negative answer."""


class InvariantBroken(YarnctlError):
    """A named invariant does not hold; ``name`` is the invariant's."""

    def __init__(self, name: str, story: str) -> None:
        super().__init__(f"invariant {name} is broken: {story}")
        self.name = name
        self.story = story

    def __reduce__(self) -> tuple[type[InvariantBroken], tuple[str, str]]:
        """Make the error picklable, as above."""
        return type(self), (self.name, self.story)
