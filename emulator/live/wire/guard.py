"""The guard of every port on which the live emulator speaks HTTP: it runs commands.

Law: nothing is served without it (:mod:`emulator.live.wire.http_server` puts it before each application).
Only names that the server listens on, advertises or was given are answered, and no page of another origin
(:mod:`yarnctl.listening.names`). It costs a request one look at its headers and no await of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from urllib.parse import urlsplit

from emulator.live.wire.web import Problem, Raw, Receive, Scope, Send, remote_exception, send_reply
from yarnctl.listening.names import BAD_HOST, Answered, RefusedRequest, name_of, names_for

HOST_REMEDY = "use the address it listens at, or start it with --allow-host NAME"
ORIGIN_REMEDY = "ask without an Origin header"


def guarded(web: Raw, host: str, names: Iterable[str] = ()) -> Raw:
    """Return an application behind its guard; the server listens on ``host`` and advertises ``names``."""
    own = frozenset(name.lower() for name in names if name)
    why_not = Answered(names_for(host) | own).why_not
    # Bound once: to look it up for each request would cost as much as the guard itself.
    answer: Raw = web.__call__  # type: ignore[operator]

    def guard(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            refused = why_not(scope["headers"])
            if refused is not None:
                return send_reply(send, remote_exception(_told(refused)))
        return answer(scope, receive, send)

    return guard


def name_in(url: str) -> str:
    """Return the host of a URL as it stands in a Host header, "" if it has none."""
    return name_of(urlsplit(url).netloc.rpartition("@")[2])


def _told(refused: RefusedRequest) -> Problem:
    remedy = HOST_REMEDY if refused is BAD_HOST else ORIGIN_REMEDY
    return Problem(refused.status, "AuthorizationException", f"{refused.problem}; {remedy}")
