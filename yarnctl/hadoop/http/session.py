"""The HTTP client of yarnctl: sessions and single exchanges, each with bounds on time and size.

No call can hang or fill the memory, and no other module of yarnctl opens an HTTP connection (except the task
runner, which has its own client). Time-outs of sockets alone do not ensure this: a server that sends one byte
now and then keeps every single read short. So the reader under each answer has a deadline for the whole of
it, headers included, and counts its bytes. Only GET and HEAD are sent again after an answer was lost; a
connection that could not be opened is tried again for every method. ``Retry-After`` is not obeyed, the
environment's proxies and ``.netrc`` are not used, and one session serves one user: the ``hadoop.auth`` cookie
would override ``user.name``.

What an application's own program answers has a tighter bound: within :func:`allowed` all exchanges of a
thread share one :class:`Allowance` of time and bytes. An unrequested compressed answer is refused before
unpacking.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from http.cookiejar import Cookie, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec
import requests
import urllib3.exceptions
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.retry import Retry

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from urllib.request import Request

    from requests.auth import AuthBase

HEADERS = {"User-Agent": "yarnctl", "X-XSRF-Header": "yarnctl"}  # The headers of every request
FOREIGN = re.compile(r"(?!.*/webhdfs/v1/)(/[^/]+)*?/proxy/(redirect/)?application_")
"""The paths of a ResourceManager, perhaps behind a gateway, at which programs of applications answer."""
HEADER_SLACK = 1 << 20  # The most bytes of headers and framing beyond the body's bound
CHUNK_BYTES, LONG_CHUNK_BYTES = 1 << 20, 32 << 20
POOL_MAX = 32  # Connections to one address that are kept for the next call

# fmt: off
Fault = Literal[
    "too-long", "refused", "unknown-host", "no-connection", "connect-timeout", "tls", "timeout",
    "compression", "cut-off", "protocol", "broken", "no-http", "other",
]
# fmt: on
"""The kinds of faults that prevent a whole answer."""


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of every call in ms: ``read_timeout_ms`` for the next byte, ``answer_ms`` for the answer.

    One call to one address lasts at most ``(retries + 1) * (connect_ms + answer_ms)`` and the back-off.
    """

    connect_ms: int = 3_000
    read_timeout_ms: int = 10_000
    answer_ms: int = 20_000
    answer_bytes: int = 256 << 20
    retries: int = 2
    backoff_ms: int = 200
    redirects: int = 4

    def pair(self) -> tuple[float, float]:
        """The pair of time-outs that requests expects, in seconds."""
        return self.connect_ms / 1000, min(self.read_timeout_ms, self.answer_ms) / 1000


class TooLarge(OSError):
    """An answer is longer than its bound."""


class ByteReserve:
    """The bytes that the long answers of all applications together may use at a time."""

    def __init__(self, size_bytes: int) -> None:
        self._lock = threading.Lock()
        self._left_bytes = size_bytes

    def take(self, count_bytes: int) -> bool:
        """Reserve bytes; False if not enough are left."""
        with self._lock:
            if count_bytes > self._left_bytes:
                return False
            self._left_bytes -= count_bytes
            return True

    def give_back(self, count_bytes: int) -> None:
        """Return reserved bytes."""
        with self._lock:
            self._left_bytes += count_bytes


FREE_BYTES = 2 << 20  # The bytes of one allowance; further bytes come from the reserve


class Allowance:
    """The bounds of all exchanges under it together: time until ``deadline_s`` (monotonic), and bytes."""

    def __init__(self, deadline_s: float, size_bytes: int, reserve: ByteReserve) -> None:
        self.deadline_s = deadline_s
        self._left_bytes = size_bytes
        self._free_bytes = FREE_BYTES
        self._reserve = reserve
        self._reserved_bytes = 0
        self._lock = threading.Lock()

    def take(self, count_bytes: int) -> None:
        """Count bytes that came; raises TooLarge if they are too many."""
        with self._lock:
            self._left_bytes -= count_bytes
            beyond_bytes = count_bytes - self._free_bytes
            self._free_bytes = max(0, -beyond_bytes)
            if self._left_bytes < 0 or (beyond_bytes > 0 and not self._reserve.take(beyond_bytes)):
                self._left_bytes = -1
                raise TooLarge("the answers of this application exceed the limit of bytes")
            self._reserved_bytes += max(0, beyond_bytes)

    def within(self, limits: CallLimits) -> CallLimits:
        """Return the bounds of one exchange; raises ExchangeFailed if no time is left."""
        left_ms = int((self.deadline_s - time.monotonic()) * 1000)
        if left_ms <= 0:
            raise ExchangeFailed("timeout", "no time is left", is_sent=False, is_closed=False)
        return msgspec.structs.replace(
            limits,
            connect_ms=min(limits.connect_ms, left_ms),
            read_timeout_ms=min(limits.read_timeout_ms, left_ms),
            answer_ms=min(limits.answer_ms, left_ms),
        )

    def close(self) -> None:
        """Return the reserved bytes."""
        with self._lock:
            self._reserve.give_back(self._reserved_bytes)
            self._reserved_bytes = 0


_ALLOWANCE: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


@contextlib.contextmanager
def allowed(allowance: Allowance) -> Iterator[None]:
    """Bound all exchanges of this thread, and of those that run in a copy of its context."""
    token = _ALLOWANCE.set(allowance)
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


class _MeteredReader(io.RawIOBase):
    """The socket's reader with a deadline for all reads together and a count of bytes."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, limits: CallLimits) -> None:
        super().__init__()
        self._raw = raw
        self._socket = sock
        self._limits = limits
        self._deadline = time.monotonic() + limits.answer_ms / 1000
        self._left = limits.answer_bytes + HEADER_SLACK
        self._allowance = _ALLOWANCE.get()
        if self._allowance is not None:
            self._deadline = min(self._deadline, self._allowance.deadline_s)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read some bytes within what is left of time and size."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the whole answer took longer than {self._limits.answer_ms / 1000:g} s")
        self._socket.settimeout(min(left, self._limits.read_timeout_ms / 1000))
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise TooLarge(f"the answer is longer than {self._limits.answer_bytes} bytes")
        if self._allowance is not None:
            self._allowance.take(count or 0)
        return count

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def metered(limits: CallLimits) -> type[http.client.HTTPResponse]:
    """Make the class of answers whose reader keeps ``limits``."""

    class MeteredResponse(http.client.HTTPResponse):
        def __init__(
            self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
        ) -> None:
            super().__init__(sock, debuglevel, method, url)
            raw = self.fp.detach()
            self.fp = io.BufferedReader(_MeteredReader(raw, sock, limits))

    return MeteredResponse


def _pools(limits: CallLimits) -> dict[str, type]:
    """Make the connection pools whose connections use metered answers."""

    class Metered(HTTPConnection):
        response_class = metered(limits)

        def putrequest(
            self, method: str, url: str, skip_host: bool = False, skip_accept_encoding: bool = False
        ) -> None:
            if self.sock is not None:  # the last answer may have set a shorter one
                self.sock.settimeout(limits.read_timeout_ms / 1000)
            super().putrequest(method, url, skip_host, skip_accept_encoding)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Metered

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = type("Secure", (Metered, HTTPSConnection), {})

    return {"http": PlainPool, "https": SecurePool}


class _BoundedAdapter(HTTPAdapter):
    """The adapter of requests with the pools, retries and time-outs of :class:`CallLimits`."""

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        super().__init__(
            max_retries=Retry(
                total=limits.retries,
                redirect=0,
                status_forcelist=(502, 503, 504),
                allowed_methods=("GET", "HEAD"),
                backoff_factor=limits.backoff_ms / 1000,
                backoff_max=2,
                raise_on_status=False,
                respect_retry_after_header=False,
            ),
            pool_maxsize=POOL_MAX,
        )

    def init_poolmanager(
        self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any
    ) -> None:
        super().init_poolmanager(connections, maxsize, block, **pool_kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools(self._limits)

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: dict[str, str] | None = None,
    ) -> requests.Response:
        return super().send(request, stream, timeout or self._limits.pair(), verify, cert, proxies)


class _OwnCookies(DefaultCookiePolicy):
    """Keeps no cookie that an application's own program sets: it would be sent along to all others."""

    def set_ok(self, cookie: Cookie, request: Request) -> bool:
        path = urlsplit(request.get_full_url()).path
        return not FOREIGN.match(path) and super().set_ok(cookie, request)


class _SharedCookies(requests.cookies.RequestsCookieJar):
    """Cookies that one thread may read while another one keeps a new one."""

    def __iter__(self) -> Iterator[Any]:
        with self._cookies_lock:
            return iter(list(super().__iter__()))


class _NoRedirects(requests.Session):
    """A session that returns redirects: requests would parse (and trust) each Location at once."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class _FollowingRedirects(requests.Session):
    """A session that follows redirects; a redirect without a target is an error."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        if resp.status_code in (301, 302, 303, 307, 308) and "Location" not in resp.headers:
            raise requests.exceptions.InvalidHeader("a redirect without a Location")
        return super().get_redirect_target(resp)


def _authorities(ca_file: str) -> bool | str:
    """Return the trusted authorities for requests; raises BadInput for a file that cannot be used."""
    if not ca_file:
        return True
    try:
        ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        fix = "set it to a PEM file with the certificates of the authorities (keytool -exportcert -rfc)"
        raise BadInput(f"ca_file {ca_file[:200]}", f"cannot be used ({type(error).__name__})", fix) from None
    return ca_file


def passed_ns() -> int:
    """Return the time of a monotonic clock in ns that also counts while the machine is suspended.

    ``time.monotonic`` (used only where a system has no other clock) does not advance while a machine is
    suspended: after a wake-up a process would count a lease as its own that has expired for others.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return time.monotonic_ns()


def passed_s() -> float:
    """Return the same in seconds."""
    return passed_ns() / 1_000_000_000


def open_session(
    limits: CallLimits, auth: AuthBase | None = None, ca_file: str = "", *, follow: bool = False
) -> requests.Session:
    """Make a session for one user; nothing is sent yet.

    ``ca_file``: trust these authorities only; BadInput if none can be read. ``follow``: redirects are
    followed.
    """
    session = _FollowingRedirects() if follow else _NoRedirects()
    session.trust_env = False
    session.max_redirects = limits.redirects
    session.auth = auth
    session.cookies = _SharedCookies(_OwnCookies())
    session.verify = _authorities(ca_file)
    session.headers.update(HEADERS)
    adapter = _BoundedAdapter(limits)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


# --- one exchange -------------------------------------------------------------------------------------


class Received(NamedTuple):
    """A whole answer; ``body`` is decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ExchangeFailed(Exception):
    """No whole answer was received. ``said``: the system's or the library's text, perhaps with the URL.

    ``is_sent``: the request may have arrived. ``is_closed``: a connection that was open already was closed
    before anything of an answer came.
    """

    def __init__(self, fault: Fault, said: str, *, is_sent: bool, is_closed: bool) -> None:
        super().__init__(fault)
        self.fault = fault
        self.said = said
        self.is_sent = is_sent
        self.is_closed = is_closed


def exchange(
    session: requests.Session,
    limits: CallLimits,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
) -> Received:
    """Send one request and return the whole answer, redirects as they are; raises ExchangeFailed."""
    allowance = _ALLOWANCE.get()
    if allowance is not None:
        limits = allowance.within(limits)
    try:
        response = session.send(
            _prepared(session, method, url, headers, body),
            timeout=limits.pair(),
            allow_redirects=False,
            stream=True,
            verify=session.verify,
            cert=session.cert,
            proxies={},
        )
        with response:
            if allowance is not None and response.headers.get("Content-Encoding", "identity") != "identity":
                raise urllib3.exceptions.DecodeError("compressed")
            return Received(response.status_code, response.headers, _whole(response, limits))
    except _CAUGHT as error:
        raise no_answer(error) from None


_PLAIN_URL = re.compile(r"https?://[a-z0-9.:-]+(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+(\?[A-Za-z0-9_.=&-]*)?")
"""An address in which requests has nothing to change."""


def _prepared(
    session: requests.Session, method: str, url: str, headers: Mapping[str, str], body: bytes
) -> requests.PreparedRequest:
    """Return the request as requests prepares it; a plain one in a fifth of the time: a look sends dozens."""
    if method != "GET" or body or session.auth is not None or not _PLAIN_URL.fullmatch(url):
        return session.prepare_request(requests.Request(method, url, data=body or None, headers=headers))
    found = requests.PreparedRequest()
    found.method, found.url, found.hooks = method, url, {"response": []}
    found.headers = requests.structures.CaseInsensitiveDict({**session.headers, **headers})
    if session.cookies:
        found.prepare_cookies(session.cookies)
    return found


def _whole(response: requests.Response, limits: CallLimits) -> bytes:
    # One read where the length is known: parts that are joined take twice the memory, page by page.
    said_bytes = min(response.raw.length_remaining or 0, LONG_CHUNK_BYTES, limits.answer_bytes + 1)
    parts, size = [], 0
    while chunk := response.raw.read(max(CHUNK_BYTES, said_bytes), decode_content=True):
        size += len(chunk)
        if size > limits.answer_bytes:
            raise TooLarge(f"longer than {limits.answer_bytes} bytes")
        parts.append(chunk)
    return b"".join(parts)


_CAUGHT = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    UnicodeError,
)
_NOT_SENT = (
    requests.exceptions.ConnectTimeout,
    requests.exceptions.InvalidURL,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NameResolutionError,
    urllib3.exceptions.LocationValueError,
    ssl.SSLCertVerificationError,
)
_FAULTS: tuple[tuple[type[BaseException], Fault], ...] = (
    (TooLarge, "too-long"),
    (ConnectionRefusedError, "refused"),
    (urllib3.exceptions.NameResolutionError, "unknown-host"),
    (urllib3.exceptions.NewConnectionError, "no-connection"),
    (urllib3.exceptions.ConnectTimeoutError, "connect-timeout"),
    (urllib3.exceptions.SSLError, "tls"),
    (urllib3.exceptions.ReadTimeoutError, "timeout"),
    (TimeoutError, "timeout"),
    (urllib3.exceptions.DecodeError, "compression"),
    (urllib3.exceptions.IncompleteRead, "cut-off"),
    (http.client.IncompleteRead, "cut-off"),
    (urllib3.exceptions.ProtocolError, "protocol"),
    (ConnectionError, "broken"),
    (http.client.HTTPException, "no-http"),
)


def no_answer(error: BaseException) -> ExchangeFailed:
    """Return our exception for a library's exception."""
    chain = _chain(error)
    found = ((one, fault) for kind, fault in _FAULTS for one in chain if isinstance(one, kind))
    cause, fault = next(found, (error, "other"))
    system = (one.strerror for one in chain if isinstance(one, OSError) and one.strerror)
    said = next(system, "") if fault in ("refused", "no-connection") else str(cause)
    return ExchangeFailed(
        fault,
        said or type(error).__name__,
        is_sent=not any(isinstance(one, _NOT_SENT) for one in chain),
        is_closed=isinstance(error, requests.ConnectionError)
        and any(isinstance(one, http.client.RemoteDisconnected) for one in chain),
    )


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting and len(found) < 30:
        one = waiting.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found
