"""The daemon's token: how it is compared, and where a request carries it.

Law: compared in a time that tells nothing of it, never logged, never repeated in an answer.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

_BEARER = "bearer "


def is_same(given: str, expected: str) -> bool:
    """Compare two secrets in a time that tells nothing of either, not even the length."""
    return hmac.compare_digest(_digest(given), _digest(expected))


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return what the one Authorization header carries as a bearer, "" if there is none (or are several)."""
    given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    if len(given) != 1 or not given[0].lower().startswith(_BEARER):
        return ""
    return given[0][len(_BEARER) :].strip()


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
