"""Requests: their user, their parameters, and what of a request may be trusted.

Law: what comes in is judged here, in YARN's words: 400 for what makes no sense, 415 for another content type.
Authentication is Hadoop's pseudo kind: ``user.name`` is the user, no name is ``dr.who`` (facts 1.5).
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from emulator.live.wire.web import HttpProblem, WebRequest, too_large

T = TypeVar("T")

NOBODY = "dr.who"
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9._@/-]{0,254}\$?")
LARGEST_SMALL_BODY = 1 << 20


def bad(message: str) -> HttpProblem:
    """Return YARN's 400."""
    return HttpProblem(400, "BadRequestException", f"java.lang.Exception: {message}")


def missing(message: str) -> HttpProblem:
    """Return YARN's 404."""
    return HttpProblem(404, "NotFoundException", f"java.lang.Exception: {message}")


def caller(request: WebRequest) -> str:
    """Return the user of the request."""
    name = request.query.get("user.name", "")
    if name and not _USER.fullmatch(name):
        raise HttpProblem(403, "AuthorizationException", "the user's name cannot be used")
    return name or NOBODY


def whole(request: WebRequest, name: str, default: int) -> int:
    """Return a query's whole number, at least 0."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise bad(f"{name} is not a number of at least 0")
    return int(text)


def words(request: WebRequest, name: str) -> frozenset[str]:
    """Return the words of a query that are separated by commas."""
    return frozenset(word for word in request.query.get(name, "").split(",") if word.strip())


def media(request: WebRequest) -> str:
    """Return the content type without its parameters."""
    return request.header("content-type").partition(";")[0].strip().lower()


def body_of(request: WebRequest, kind: type[T], limit_bytes: int = LARGEST_SMALL_BODY) -> T:
    """Return a JSON body; 415 for another content type, 400 for what is not the struct."""
    if media(request) != "application/json":
        raise HttpProblem(
            415, "NotSupportedException", "the body must come with Content-Type: application/json"
        )
    if len(request.body) > limit_bytes:
        raise too_large(limit_bytes)
    try:
        value: Any = msgspec.json.decode(request.body, type=kind, strict=False)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise bad(f"the body cannot be read: {error}") from None
    return value  # type: ignore[no-any-return]  # decoded as kind
