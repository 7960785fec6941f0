"""Asking a running daemon: what the commands that show it have in common.

Law: they read the daemon's API and nothing else, and end in one line without an answer. Only requests to the
gate change anything (``send``).
What comes from a cluster is printed without its control characters.
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

if TYPE_CHECKING:
    from yarnctl.hadoop.http.session import ExchangeFailed, Fault

DEFAULT_URL = "http://127.0.0.1:8188"
CREDENTIALS_ENV = "YARNCTL_TOKEN_FILE"
"""The environment's name for the file with the caller's token: for writes, and where reading needs it."""
CONNECT_MS = 3_000
ANSWER_S = 10.0
WHOLE_ANSWER_MS = 60_000
ANSWER_MAX_BYTES = 64 * 2**20
PAGE = 500
SHOWN_MAX = 200

NO_CONNECTION: dict[Fault, str] = {
    "connect-timeout": f"no connection within {CONNECT_MS / 1000:g} s",
    "tls": "TLS fails: {}",
    "unknown-host": "no such host is known",
    "refused": "{}",
    "no-connection": "{}",
}
ENDED_EARLY = "the connection ended before the answer did"
BROKEN_OFF: dict[Fault, str] = {
    "timeout": "nothing was heard in time",
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
    """No answer came; ``reason`` in a few words. If ``connected``, the request may have arrived."""

    def __init__(self, address: str, reason: str, connected: bool) -> None:
        remedy = "is 'yarnctl run' running, with --listen? else give --url"
        super().__init__(f"{address}: no answer ({reason}); {remedy}")
        self.reason = reason
        self.connected = connected


class Busy(Unreachable):
    """The daemon works and cannot do it now (503); ``reason`` is its message."""

    def __init__(self, address: str, reason: str, remedy: str) -> None:
        super().__init__(f"{address}: {reason}; {remedy}")
        self.reason = reason


class Repriced(BadInput):
    """What was chosen of a quote does not hold any more (409); ``quote`` is the one of now, as answered."""

    def __init__(self, where: str, problem: str, remedy: str, quote: Answer) -> None:
        super().__init__(where, problem, remedy)
        self.quote = quote


def url_option(function: Function) -> Function:
    """Give a command ``--url URL`` (``YARNCTL_URL``)."""
    add_url = click.option(
        "--url",
        envvar="YARNCTL_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Where the daemon listens (yarnctl run --listen); if it wants a token for reading, name its file"
        f" in {CREDENTIALS_ENV}. [env: YARNCTL_URL]",
    )
    return add_url(function)


def showing_options(function: Function) -> Function:
    """Give a command ``--url``, ``-o`` and ``--watch``; with the last it is run again every so often."""

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
        help="Show it again every so many seconds, until interrupted.",
    )
    return url_option(output_option(add_watch(watched)))


def limit_option(function: Function) -> Function:
    """Give a command ``--limit N``."""
    kind = click.IntRange(min=1, max=1_000_000)
    about = "How many to show at most."
    add_limit = click.option("--limit", type=kind, default=100, show_default=True, help=about)
    return add_limit(function)


# --- asking -------------------------------------------------------------------------------------------


def ask(url: str, path: str, parameters: Mapping[str, object] | None = None) -> Answer:
    """Return the daemon's answer to one GET; raises as :func:`send` does."""
    return send("GET", url, path, parameters)


def send(
    method: str,
    url: str,
    path: str,
    parameters: Mapping[str, object] | None = None,
    body: dict[str, Any] | None = None,
    answer_s: float = ANSWER_S,
) -> Answer:
    """Return the daemon's answer to one request, which it gives within ``answer_s``.

    Raises BadInput for an address or a filter that cannot be, Different (exit status 1) for a thing that
    is not known, Unreachable without an answer, or with one that is not this API's: then a change may have
    been made (Busy and Unanswered say more).
    """
    from yarnctl.hadoop.http.session import CallLimits, ExchangeFailed, exchange, open_session

    address = f"{_checked(url)}/{path}"
    known = {name: value for name, value in (parameters or {}).items() if value is not None}
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
        with open_session(limits) as session:  # no proxy: a daemon is called directly
            got = exchange(session, limits, method, place, media | _credentials(), content)
    except ExchangeFailed as problem:
        raise _unanswered(address, problem) from None
    return _read(address, got.status, got.body)


def ask_all(url: str, path: str, parameters: Mapping[str, object], limit: int) -> Answer:
    """Return one answer with all pages of a list together, up to ``limit`` items."""
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
    """Return an id as one part of a path."""
    if not name.strip() or name in (".", "..") or len(name) > SHOWN_MAX:
        raise BadInput("ID", "is no id", "see yarnctl reclaims, decisions, apps and admissions")
    return quote(name, safe="")


def shown(kind: type[Show], answer: object, url: str) -> Show:
    """Return an answer as its struct of :mod:`yarnctl.api`; Unreachable if it is none."""
    try:
        return msgspec.convert(answer, kind, strict=False)
    except msgspec.ValidationError as error:
        told = f"{url}: answers, but not as this yarnctl's daemon does ({error})"
        raise Unreachable(f"{told}; use one version on both sides") from None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or any(each.isspace() for each in url) or parts.query or parts.fragment:
        raise BadInput("--url", f"{url!r} is no address", f"use for instance {DEFAULT_URL}")
    return url.rstrip("/")


def _credentials() -> dict[str, str]:
    """Return the header that carries the token, if YARNCTL_TOKEN_FILE names a file that holds it."""
    file = os.environ.get(CREDENTIALS_ENV)
    if not file:
        return {}
    from yarnctl.service.security.tokens import read_secret

    token = read_secret(Path(file), f"{CREDENTIALS_ENV}={file}")
    return {"Authorization": f"Bearer {token}"}


def _unanswered(address: str, problem: ExchangeFailed) -> Unreachable:
    """Say in a few words why no answer came."""
    said = problem.said[:SHOWN_MAX]
    if problem.fault == "too-long":
        return Unreachable(f"{address}: answers more than {ANSWER_MAX_BYTES} bytes; this is no yarnctl")
    if problem.fault in NO_CONNECTION:
        return Unanswered(address, NO_CONNECTION[problem.fault].format(said), connected=False)
    return Unanswered(address, BROKEN_OFF.get(problem.fault, said), connected=True)


def _read(address: str, status: int, content: bytes) -> Answer:
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise Unreachable(f"{address}: answers {status} without JSON; is this a yarnctl? see --url")
    if status in (200, 202):
        return answer
    error = answer.get("error")
    if not isinstance(error, dict):
        raise Unreachable(f"{address}: answers {status}; is this a yarnctl? see --url")
    message, remedy = (str(error.get(name, ""))[: 2 * SHOWN_MAX] for name in ("message", "next"))
    if status == 401:
        raise BadInput(address, message, f"name the file with your token in {CREDENTIALS_ENV}")
    if status == 404:
        raise Different(f"{address}: {message}; {remedy}")
    if status == 409 and isinstance(answer.get("quote"), dict):
        raise Repriced(address, message, remedy, answer["quote"])
    if status < 500:
        raise BadInput(address, message, remedy)
    if status == 503:
        raise Busy(address, message, remedy)
    raise Unreachable(f"{address}: {message}; {remedy}")


def _items(page: Answer, url: str) -> list[Any]:
    items = page.get("items")
    if not isinstance(items, list):
        raise Unreachable(f"{url}: answers without items; is this a yarnctl? see --url")
    return list(items)


# --- words --------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def short(queue: str) -> str:
    """Return a queue's full path for a table: without ``root``, which all have."""
    return plain(queue.removeprefix("root."))


def ago(then_ms: int | None, now_ms: int) -> str:
    """Say how long ago an instant was."""
    return "-" if then_ms is None else f"{max(0, now_ms - then_ms) / 1000:.1f} s"


def span(span_ms: int | None) -> str:
    """Say a span; -1 or None: unknown."""
    return "-" if span_ms is None or span_ms < 0 else f"{span_ms / 1000:.1f} s"


def counted(states: Mapping[State, int]) -> str:
    """Say how many there are of each."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(states.items())) or "-"
