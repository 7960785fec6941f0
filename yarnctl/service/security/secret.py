"""Secrets: what is kept of one, and where a request carries it.

Law: never logged, never repeated in an answer; compared as digests only
(:mod:`yarnctl.service.security.tokens`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_BEARER = "bearer "


def bearer_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return what the one Authorization header carries as a bearer, "" if there is none (or are several)."""
    given = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
    if len(given) != 1 or not given[0].lower().startswith(_BEARER):
        return ""
    return given[0][len(_BEARER) :].strip()


def digest(secret: str) -> bytes:
    """Return what stands for a secret where it is kept and compared."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
