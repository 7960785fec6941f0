"""One request to a daemon and its answer, with bounds on time and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from yarnctl.api.market_answers import QuoteOut
from yarnctl.errors import BadInput, Different, Unreachable

if TYPE_CHECKING:
    from yarnctl.hadoop.http.session import ExchangeFailed, Fault, Received

DEFAULT_URL = "http://127.0.0.1:8188"
CREDENTIALS_ENV = "YARNCTL_TOKEN_FILE"  # The file of the token of a command
CONNECT_MS = 3_000
ANSWER_S = 10.0
WHOLE_ANSWER_MS = 60_000
ANSWER_MAX_BYTES = 64 * 2**20
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

Answer = dict[str, Any]


class DaemonAddress(NamedTuple):
    """Where a daemon listens and how to be known there. ``token`` "": none is sent.

    ``authorities``: PEM file of the authorities to trust for https ("": those of the system).
    ``certificate``: PEM file with the caller's certificate and key ("": none).
    """

    url: str = DEFAULT_URL
    token: str = ""
    authorities: str = ""
    certificate: str = ""


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
    """The chosen point of a quote is no longer valid (409); ``quote`` is the present one."""

    def __init__(self, where: str, problem: str, remedy: str, quote: QuoteOut) -> None:
        super().__init__(where, problem, remedy)
        self.quote = quote


def send(
    daemon: DaemonAddress,
    method: str,
    path: str,
    parameters: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
    answer_s: float = ANSWER_S,
) -> Answer:
    """Return the daemon's answer to one request, given within ``answer_s`` seconds.

    Raises BadInput (address, parameter), Different (unknown object), Unreachable (a change may have been
    made).
    """
    address = f"{_checked(daemon.url)}/{path}"
    got = received(daemon, method, path, parameters, body, answer_s)
    return _read(address, got.status, got.body)


def received(
    daemon: DaemonAddress,
    method: str,
    path: str,
    parameters: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
    answer_s: float = ANSWER_S,
) -> Received:
    """Return the answer to one request as it came; raises BadInput and Unreachable."""
    from yarnctl.hadoop.http.session import CallLimits, ExchangeFailed, exchange, open_session

    address = f"{_checked(daemon.url)}/{path}"
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
    headers = {} if body is None else {"Content-Type": "application/json"}
    if daemon.token:
        headers["Authorization"] = f"Bearer {daemon.token}"
    place = f"{address}?{urlencode(wanted)}" if wanted else address
    try:
        with open_session(limits, ca_file=daemon.authorities) as session:  # no proxy
            session.cert = daemon.certificate or None
            return exchange(session, limits, method, place, headers, content)
    except ExchangeFailed as problem:
        raise _unanswered(address, problem) from None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or any(each.isspace() for each in url) or parts.query or parts.fragment:
        raise BadInput("--url", f"invalid address {url!r}", f"use for example {DEFAULT_URL}")
    return url.rstrip("/")


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
        raise Repriced(address, message, remedy, msgspec.convert(answer["quote"], QuoteOut))
    if status < 500:
        raise BadInput(address, message, remedy)
    if status == 503:
        raise Busy(address, message, remedy)
    raise Unreachable(f"{address}: {message}; {remedy}")
