"""Failures: what may go wrong between an attempt and its store, and the exit statuses that tell of it.

Law: a failure carries a text that says what and where, and no secret: what a URL or a foreign answer may
carry is taken out when the failure is made.
"""

from __future__ import annotations

import re

EXIT_UNPROVABLE = 70
"""The attempt failed because nothing else was safe."""

EXIT_SUSPENDED = 76
"""With --leave-when-saved only: a generation was saved, another attempt must go on."""


def hush(text: str) -> str:
    """Return a text without the secrets that a URL or a foreign answer in it may carry."""
    return re.sub(r"(?i)\b(delegation|token|signature|password)=[^&\s'\"]+", r"\1=***", text)


class StoreError(Exception):
    """The checkpoint store did not do what was asked; the text says what and where, and no secret."""

    def __init__(self, text: str = "") -> None:
        super().__init__(hush(text))


class Exists(StoreError):
    """A name that must be new is taken."""


class StoreAway(StoreError):
    """It does not serve now and may do so later: no connection, a standby, safe mode. Nothing was done."""


class Lost(StoreError):
    """It was asked and the answer did not come: nobody knows whether it was done."""


class Unusable(Exception):
    """A checkpoint, request or path must not be used; the text says why."""


class Unprovable(Exception):
    """Going on could give a wrong output: the attempt ends here."""


class Discredited(Unprovable):
    """The same, and what was found speaks against the checkpoint it rests on."""
