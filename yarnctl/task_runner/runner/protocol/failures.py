"""Failures: what may go wrong between an attempt and its store, and the exit statuses that report it.

Law: the text of a failure names what failed and where, and holds no secret: what a URL or a server's answer
may hold is removed when the failure is made.
"""

from __future__ import annotations

import re

EXIT_UNPROVABLE = 70  # the attempt failed because nothing else was safe

EXIT_SUSPENDED = 76  # With --leave-when-saved only: a generation was saved, another attempt must go on


def without_secrets(text: str) -> str:
    """Return a text without the secrets that a URL or a server's answer in it may hold."""
    return re.sub(r"(?i)\b(delegation|token|signature|password)=[^&\s'\"]+", r"\1=***", text)


class StoreError(Exception):
    """The checkpoint store did not do what was asked; the text names what and where, and no secret."""

    def __init__(self, text: str = "") -> None:
        super().__init__(without_secrets(text))


class Exists(StoreError):
    """A name that must be new is taken."""


class StoreAway(StoreError):
    """It is unavailable now and may serve later: no connection, a standby, safe mode. Nothing was done."""


class Lost(StoreError):
    """The request was sent and no answer came: whether it was done is unknown."""


class Unusable(Exception):
    """A checkpoint, request or path must not be used; the text is the reason."""


class Unprovable(Exception):
    """Going on could give a wrong output: the attempt ends here."""


class InvalidCheckpoint(Unprovable):
    """The same, and the checkpoint that the attempt resumed from must not be used again."""
