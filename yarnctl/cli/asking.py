"""Requests to a running daemon: what the commands that show its state share.

Only admission requests and accounts change anything (``send``). Text from a cluster is printed without
control characters.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import click
import msgspec

from yarnctl.command_line import output_option
from yarnctl.deciding.lifecycle import State
from yarnctl.errors import BadInput, Different, Unreachable
from yarnctl.units import decode_vector

if TYPE_CHECKING:
    from yarnctl.hadoop.http.session import ExchangeFailed, Fault, Received

DEFAULT_URL = "http://127.0.0.1:8188"
CREDENTIALS_ENV = "YARNCTL_TOKEN_FILE"  # The file of the caller's token: for writes, and reads that need one
AUTHORITIES_ENV = "YARNCTL_CA_FILE"  # PEM: whom to trust for https
CERTIFICATE_ENV = "YARNCTL_CERTIFICATE_FILE"  # PEM: the caller's certificate and key
CONNECT_MS = 3_000
ANSWER_S = 10.0
WHOLE_ANSWER_MS = 60_000
ANSWER_MAX_BYTES = 64 * 2**20
PAGE = 500
SHOWN_MAX = 200
CHECK_URL = "check that --url is the address of a yarnctl daemon"
NO_CONNECTION: dict[Fault, str] = {
    "connect-timeout": f"no connection within {CONNECT_MS / 1000:g} s",
    "tls": "TLS fails: {}",
    "unknown-host": "unknown host",
    "refused": "{}",
    "no-connection": "{}",
}
ENDED_EARLY = "connection closed before the answer was complete"
BROKEN_OFF: dict[Fault, str] = {
    "timeout": "timeout",
    "compression": ENDED_EARLY,
    "cut-off": ENDED_EARLY,
    "protocol": ENDED_EARLY,
    "broken": ENDED_EARLY,
    "no-http": ENDED_EARLY,
}

Function = Callable[..., Any]
Answer = dict[str, Any]
Show = TypeVar("Show")


class Unanswered(Unreachable):
    """No answer; ``reason`` in a few words. If ``connected``, the request may have arrived."""

    def __init__(self, address: str, reason: str, connected: bool) -> None:
        remedy = "start 'yarnctl run', or set --url to its --listen address"
        super().__init__(f"{address}: no answer ({reason}); {remedy}")
        self.reason = reason
        self.connected = connected


class Busy(Unreachable):
    """The daemon runs and cannot serve the request now (503); ``reason`` is its message."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(f"{address}: {reason}; {remedy}")
        self.reason = reason


class Repriced(BadInput):
    """The chosen point of a quote is no longer valid (409); ``quote`` is the present quote, as answered."""

    def __init__(self, where: str, problem: str, remedy: str, answer: Answer) -> None:
        super().__init__(where, problem, remedy)
        self.quote = answer


def url_option(function: Function) -> Function:
    """Add ``--url URL`` (``YARNCTL_URL``) to a command."""
    add_url = click.option(
        "--url",
        envvar="YARNCTL_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the daemon (yarnctl run --listen). If it requires a token for reads, set"
        f" {CREDENTIALS_ENV} to the file with the token.  [env: YARNCTL_URL]",
    )
    return add_url(function)


def showing_options(function: Function) -> Function:
    """Add ``--url``, ``-o`` and ``--watch`` to a command; with ``--watch`` it runs periodically."""

    @functools.wraps(function)
    def watched(*args: Any, watch_s: float | None, **kwargs: Any) -> None:
        function(*args, **kwargs)
        never = threading.Event()
        while watch_s is not None:
            never.wait(watch_s)
            if sys.stdout.isatty():
                click.clear()
            function(*args, **kwargs)

    add_watch = click.option(
        "--watch",
        "watch_s",
        type=click.FloatRange(min=0.1, max=3600),
        metavar="SECONDS",
        help="Repeat every SECONDS until interrupted.",
    )
    return url_option(output_option(add_watch(watched)))


def limit_option(function: Function) -> Function:
    """Add ``--limit N`` to a command."""
    kind = click.IntRange(min=1, max=1_000_000)
    about = "Maximum number of rows."
    add_limit = click.option("--limit", type=kind, default=100, show_default=True, help=about)
    return add_limit(function)


def ask(url: str, path: str, parameters: Mapping[str, object] | None = None) -> Answer:
    """Return the daemon's answer to one GET; raises the errors of :func:`send`."""
    return send("GET", url, path, parameters)


def send(
    method: str,
    url: str,
    path: str,
    parameters: Mapping[str, object] | None = None,
    body: dict[str, Any] | None = None,
    answer_s: float = ANSWER_S,
) -> Answer:
    """Return the daemon's answer to one request, given within ``answer_s`` seconds.

    Raises BadInput (address, parameter), Different (unknown object), Unreachable (a change may have been
    made).
    """
    address, got = _exchanged(method, url, path, parameters or {}, body, answer_s)
    return _read(address, got.status, got.body)


def ask_text(url: str, path: str) -> str:
    """Return the daemon's answer to one GET as text; raises the errors of :func:`send`."""
    address, got = _exchanged("GET", url, path, {}, None, ANSWER_S)
    if got.status != 200:
        _read(address, got.status, got.body)
    return got.body.decode("utf-8", "replace")


def _exchanged(
    method: str,
    url: str,
    path: str,
    parameters: Mapping[str, object],
    body: dict[str, Any] | None,
    answer_s: float,
) -> tuple[str, Received]:
    from yarnctl.hadoop.http.session import CallLimits, ExchangeFailed, exchange, open_session

    address = f"{_checked(url)}/{path}"
    known = {name: value for name, value in parameters.items() if value is not None}
    wanted = {name: str(value).lower() if isinstance(value, bool) else value for name, value in known.items()}
    limits = CallLimits(
        connect_ms=CONNECT_MS,
        read_timeout_ms=int(answer_s * 1000),
        answer_ms=max(WHOLE_ANSWER_MS, int(answer_s * 1000)),
        answer_bytes=ANSWER_MAX_BYTES,
        retries=0,
    )
    content = b"" if body is None else msgspec.json.encode(body)
    media = {} if body is None else {"Content-Type": "application/json"}
    place = f"{address}?{urlencode(wanted)}" if wanted else address
    try:
        with open_session(limits, ca_file=os.environ.get(AUTHORITIES_ENV, "")) as session:  # without proxy
            session.cert = os.environ.get(CERTIFICATE_ENV) or None
            return address, exchange(session, limits, method, place, media | _credentials(), content)
    except ExchangeFailed as problem:
        raise _unanswered(address, problem) from None


def ask_all(url: str, path: str, parameters: Mapping[str, object], limit: int) -> Answer:
    """Return one answer that joins all pages of a list, up to ``limit`` items."""
    page = ask(url, path, {**parameters, "limit": min(PAGE, limit)})
    items = _items(page, url)
    while page.get("next") is not None and len(items) < limit:
        more = {**parameters, "limit": min(PAGE, limit - len(items)), "cursor": page["next"]}
        page = ask(url, path, more)
        fresh = _items(page, url)
        if not fresh:
            break
        items += fresh
    return {**page, "items": items}


def part(name: str) -> str:
    """Return an id as one part of a path; raises BadInput."""
    if not name.strip() or name in (".", "..") or len(name) > SHOWN_MAX:
        raise BadInput(
            "ID", f"invalid ID {name[:40]!r}", "see yarnctl reclaims, decisions, apps and admissions"
        )
    return quote(name, safe="")


def shown(kind: type[Show], answer: object, url: str) -> Show:
    """Return an answer as its struct of :mod:`yarnctl.api`; Unreachable if it has another form."""
    try:
        return msgspec.convert(answer, kind, strict=False, dec_hook=decode_vector)
    except msgspec.ValidationError as error:
        problem = f"{url}: unexpected answer ({error})"
        raise Unreachable(f"{problem}; use the same version of yarnctl for daemon and command") from None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or any(each.isspace() for each in url) or parts.query or parts.fragment:
        raise BadInput("--url", f"invalid address {url!r}", f"use for example {DEFAULT_URL}")
    return url.rstrip("/")


def _credentials() -> dict[str, str]:
    file = os.environ.get(CREDENTIALS_ENV)
    if not file:
        return {}
    from yarnctl.service.security.tokens import read_secret

    token = read_secret(Path(file), f"{CREDENTIALS_ENV}={file}")
    return {"Authorization": f"Bearer {token}"}


def _unanswered(address: str, failed: ExchangeFailed) -> Unreachable:
    reason = failed.said[:SHOWN_MAX]
    if failed.fault == "too-long":
        size = f"more than {ANSWER_MAX_BYTES >> 20} MiB"
        return Unreachable(f"{address}: the answer has {size}; {CHECK_URL}")
    if failed.fault in NO_CONNECTION:
        return Unanswered(address, NO_CONNECTION[failed.fault].format(reason), connected=False)
    return Unanswered(address, BROKEN_OFF.get(failed.fault, reason), connected=True)


def _read(address: str, status: int, content: bytes) -> Answer:
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise Unreachable(f"{address}: answer {status} is not JSON; {CHECK_URL}")
    if status in (200, 202):
        return answer
    error = answer.get("error")
    if not isinstance(error, dict):
        raise Unreachable(f"{address}: unexpected answer {status}; {CHECK_URL}")
    message, remedy = (str(error.get(name, ""))[: 2 * SHOWN_MAX] for name in ("message", "next"))
    if status == 401:
        raise BadInput(address, message, f"set {CREDENTIALS_ENV} to the file with your token")
    if status == 404:
        raise Different(f"{address}: {message}; {remedy}")
    if status == 409 and isinstance(answer.get("quote"), dict):
        raise Repriced(address, message, remedy, answer["quote"])
    if status < 500:
        raise BadInput(address, message, remedy)
    if status == 503:
        raise Busy(address, message, remedy)
    raise Unreachable(f"{address}: {message}; {remedy}")


def _items(answer: Answer, url: str) -> list[Any]:
    items = answer.get("items")
    if not isinstance(items, list):
        raise Unreachable(f"{url}: the answer has no items; {CHECK_URL}")
    return list(items)


def plain(text: str) -> str:
    """Return a text with its control characters escaped."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def job_of(application: str, names: Mapping[str, tuple[str, str, str]]) -> str | None:
    """Return the job's name and user of an application for a table; None: not known."""
    known = names.get(application)
    return None if known is None else plain(f"{known[0] or 'unnamed'} ({known[1]})")


def short(queue: str) -> str:
    """Return a queue's full path without ``root``, for a table."""
    return plain(queue.removeprefix("root."))


def ago(then_ms: int | None, now_ms: int) -> str:
    """Return the age of an instant as text; None: "-"."""
    return "-" if then_ms is None else f"{max(0, now_ms - then_ms) / 1000:.1f} s"


def span(span_ms: int | None) -> str:
    """Return a duration as text; None or -1 (unknown): "-"."""
    return "-" if span_ms is None or span_ms < 0 else f"{span_ms / 1000:.1f} s"


def counted(states: Mapping[State, int]) -> str:
    """Return the number of each state as text; "-" if there are none."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(states.items())) or "-"
