"""Sessions: requests with a bound on time and on size, whatever the other side does.

Law: no call made through a session can hang or fill the memory. A time-out of sockets alone does not
hold this: a server that sends one byte now and then keeps every single read short. So the reader
under each answer carries a deadline for the whole of it, headers included, and counts its bytes.
Only GET and HEAD are sent again after an answer was lost; a connection that could not be opened is
tried again for every method. ``Retry-After`` is not obeyed, the environment's proxies and ``.netrc``
are not used, and one session serves one user: the ``hadoop.auth`` cookie would win over ``user.name``.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from http.cookiejar import Cookie, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.retry import Retry

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from urllib.request import Request

    from requests.auth import AuthBase

HEADERS = {"User-Agent": "yarnctl", "X-XSRF-Header": "yarnctl"}
"""What every request carries."""
FOREIGN = "/proxy/"
"""Below this path of a ResourceManager programs of applications answer."""
HEADER_SLACK = 1 << 20
"""Bytes that headers and framing may take on top of the body's bound."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of every call; spans in milliseconds.

    ``silence_ms`` is the longest wait for the next byte, ``answer_ms`` for a whole answer. One call
    to one address lasts at most ``(retries + 1) * (connect_ms + answer_ms)`` and the back-off.
    """

    connect_ms: int = 3_000
    silence_ms: int = 10_000
    answer_ms: int = 20_000
    answer_bytes: int = 256 << 20
    retries: int = 2
    backoff_ms: int = 200
    redirects: int = 4

    def pair(self) -> tuple[float, float]:
        """The pair of time-outs that requests takes, in seconds."""
        return self.connect_ms / 1000, min(self.silence_ms, self.answer_ms) / 1000


class TooLarge(OSError):
    """An answer is longer than its bound."""


class _MeteredReader(io.RawIOBase):
    """The socket's reader with a deadline for all reads together and a count of bytes."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, limits: Limits) -> None:
        super().__init__()
        self._raw = raw
        self._socket = sock
        self._limits = limits
        self._deadline = time.monotonic() + limits.answer_ms / 1000
        self._left = limits.answer_bytes + HEADER_SLACK

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read some bytes within what is left of time and size."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the whole answer took longer than {self._limits.answer_ms} ms")
        self._socket.settimeout(min(left, self._limits.silence_ms / 1000))
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise TooLarge(f"the answer is longer than {self._limits.answer_bytes} bytes")
        return count

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def metered(limits: Limits) -> type[http.client.HTTPResponse]:
    """Make the class of answers whose reader keeps ``limits``."""

    class MeteredResponse(http.client.HTTPResponse):
        def __init__(
            self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
        ) -> None:
            super().__init__(sock, debuglevel, method, url)
            raw = self.fp.detach()
            self.fp = io.BufferedReader(_MeteredReader(raw, sock, limits))

    return MeteredResponse


def _pools(limits: Limits) -> dict[str, type]:
    """Make the connection pools whose connections use metered answers."""
    silence_s = limits.silence_ms / 1000

    class Plain(HTTPConnection):
        response_class = metered(limits)

        def putrequest(self, *args: Any, **kwargs: Any) -> None:
            if self.sock is not None:
                self.sock.settimeout(silence_s)  # the last answer may have left a shorter one
            super().putrequest(*args, **kwargs)

    class Secure(HTTPSConnection):
        response_class = metered(limits)

        def putrequest(self, *args: Any, **kwargs: Any) -> None:
            if self.sock is not None:
                self.sock.settimeout(silence_s)
            super().putrequest(*args, **kwargs)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


class _BoundedAdapter(HTTPAdapter):
    """requests' adapter with our pools, our retries, and time-outs even where none were given."""

    def __init__(self, limits: Limits) -> None:
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
            )
        )

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
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
        return not path.startswith(FOREIGN) and super().set_ok(cookie, request)


class _Straight(requests.Session):
    """A session that hands redirects back: requests would parse (and trust) each Location at once."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class _Following(requests.Session):
    """A session that follows redirects; one that leads nowhere is no answer."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        if resp.status_code in (301, 302, 303, 307, 308) and "Location" not in resp.headers:
            raise requests.exceptions.InvalidHeader("a redirect without a Location")
        return super().get_redirect_target(resp)


def _authorities(ca_file: str) -> bool | str:
    """Return what requests is to trust; a file that it would only trip over later is refused now."""
    if not ca_file:
        return True
    try:
        ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:
        fix = "name a PEM file with the certificates of the authorities (keytool -exportcert -rfc)"
        raise BadInput(f"ca_file {ca_file[:200]}", f"cannot be used ({type(error).__name__})", fix) from None
    return ca_file


def open_session(
    limits: Limits, auth: AuthBase | None = None, ca_file: str = "", *, follow: bool = False
) -> requests.Session:
    """Make a session for one user; nothing is sent yet.

    ``ca_file``: trust these authorities only; BadInput if none can be read from it. ``follow``: redirects
    are followed by requests itself.
    """
    session = _Following() if follow else _Straight()
    session.trust_env = False
    session.max_redirects = limits.redirects
    session.auth = auth
    session.cookies.set_policy(_OwnCookies())
    session.verify = _authorities(ca_file)
    session.headers.update(HEADERS)
    adapter = _BoundedAdapter(limits)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
