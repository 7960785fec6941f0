"""Authenticate requests to Hadoop by a plain name, a Kerberos ticket, or a gateway's password.

No secret is put into a URL except one delegation token per client: else the NameNode would make one for each
file. With ``simple`` authentication the name is sent as ``user.name`` (facts, section
1.5: a stock cluster accepts it unchecked). With ``kerberos`` the ticket cache of the process (``kinit``, or
  the keytab of ``KRB5_CLIENT_KTNAME``) is used through SPNEGO, by an optional package that is imported only
  then.

With ``basic`` a gateway checks user and password (HTTP Basic). The password is read from a file that no
other user can read, and sent over TLS only, to the addresses of options, environment and file.

A ticket goes only to hosts that options, Hadoop's files or the ResourceManager's own configuration name. No
answer of an application (``trackingUrl``, a redirect below /proxy/) adds a host, and redirects are followed
to configured addresses only.
"""

from __future__ import annotations

import base64
import importlib
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from requests.auth import AuthBase

from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import Rejected, explain
from yarnctl.hadoop.http.session import FOREIGN, passed_s

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

TOKEN_KEPT_S = 6 * 3600.0  # For one delegation token; the NameNode accepts it for a day (facts)

OVER_HTTP = "use an https address, or set token_over_http = true (YARNCTL_TOKEN_OVER_HTTP=1)"
"""The remedy if a delegation token would be sent over plain HTTP."""

PASSWORD_BYTES_MAX = 4096
REJECTED_KEPT_S = 60.0
Method = Literal["simple", "kerberos", "basic"]


class Identity(msgspec.Struct, frozen=True):
    """The identity of the caller. ``user`` "" with ``simple``: the cluster's static user.

    ``token_over_http``: a delegation token may be sent over plain HTTP, where it can be read on the way.
    ``password_file``: the file with the password of ``basic``.
    """

    user: str = ""
    method: Method = "simple"
    token_over_http: bool = False
    password_file: str = ""

    def query(self) -> dict[str, str]:
        """Return the query parameters that name the caller."""
        return {"user.name": self.user} if self.user and self.method == "simple" else {}


class Ticket(AuthBase):
    """Signs requests with the process's ticket, from any thread.

    The package keeps one exchange per host in its object; threads that shared it would reject each other's
    answers.
    """

    def __init__(self, make: Callable[[], AuthBase]) -> None:
        self._make = make
        self._own = threading.local()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Register the hook that answers a daemon's request for a ticket."""
        if not hasattr(self._own, "auth"):
            self._own.auth = self._make()
        signed: PreparedRequest = self._own.auth(request)
        return signed


class Password(AuthBase):
    """Signs requests with HTTP Basic. Raises Rejected, and sends nothing, for an address without TLS.

    ``addresses``: only their hosts get the password (empty: every address is one of options or files). A
    request to another host, to which a gateway redirects the bytes of a file, is sent without it.

    After a rejection the file is read again. If it has not changed, nothing is sent for ``REJECTED_KEPT_S``:
    a directory may lock the account of a user with many rejected passwords. An application's own program
    behind the gateway rejects nothing: it could stop all requests.
    """

    def __init__(
        self,
        user: str,
        file: str,
        clock: Callable[[], float] = passed_s,
        addresses: Iterable[str] = (),
    ) -> None:
        self._user, self._file, self._clock = user, file, clock
        self._places = {_place(address) for address in addresses}
        self._lock = threading.Lock()
        self._password = read_password(file)
        self._until_s = 0.0

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header. (It stays at this host: a redirect to another one is sent without it.)"""
        url = request.url or ""
        if self._places and _place(url) not in self._places:
            return request
        if not url.startswith("https:"):
            place = url.partition("?")[0]
            raise Rejected(explain(place, "a password would be sent over plain HTTP", "https"))
        word = base64.b64encode(self._user.encode() + b":" + self._current(url)).decode()
        request.headers["Authorization"] = f"Basic {word}"
        request.register_hook("response", self._answered)
        return request

    def _current(self, url: str) -> bytes:
        with self._lock:
            if self._until_s:
                password = read_password(self._file)
                if password == self._password and self._clock() < self._until_s:
                    wait = f"the same is sent again after {REJECTED_KEPT_S:g} s"
                    fix = f"correct user or {self._file[:200]}; {wait}"
                    raise Rejected(
                        explain(url, "the gateway rejected the user and the password", "", fix), 401
                    )
                self._password, self._until_s = password, 0.0
            return self._password

    def _answered(self, response: Response, *_: Any, **__: Any) -> None:
        if response.status_code == 401 and not FOREIGN.match(urlsplit(response.url).path):
            with self._lock:
                self._until_s = self._clock() + REJECTED_KEPT_S


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def read_password(file: str) -> bytes:
    """Return the first line of a file that only its owner can read, in bytes; raises BadInput.

    The owner must be this user or root. The message never has the content.
    """
    where = f"password_file {file[:200]}"
    try:
        with open(file, "rb") as opened:
            status = os.fstat(opened.fileno())
            text = opened.read(PASSWORD_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise BadInput(
            where, f"cannot be read ({type(error).__name__})", "check its path and owner"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(where, "not a regular file", "write the password to a file with mode 600")
    if status.st_mode & 0o077 or status.st_uid not in (os.geteuid(), 0):
        problem = f"other users may read it (mode {stat.S_IMODE(status.st_mode):o}, uid {status.st_uid})"
        raise BadInput(where, problem, f"run chmod 600 {file[:200]} as this daemon's user")
    password = text.removesuffix(b"\n").removesuffix(b"\r")
    if not password or len(text) > PASSWORD_BYTES_MAX or any(byte < 32 or byte == 127 for byte in password):
        problem = "empty, too long, or not one line of text"
        raise BadInput(where, problem, "write the password as its only line")
    return password


def session_auth(identity: Identity, addresses: Iterable[str] = ()) -> AuthBase | None:
    """Return the signer of each request (None: not signed).

    ``addresses``: the only ones whose hosts get a password, where a library chooses the target of a request.

    Raises BadInput if Kerberos' package is missing, or the password cannot be used.
    """
    if identity.method == "simple":
        return None
    if identity.method == "basic":
        return Password(identity.user, identity.password_file, addresses=addresses)
    try:
        package = importlib.import_module("requests_gssapi")
    except (ImportError, OSError) as error:  # OSError: the Kerberos libraries themselves are missing
        raise BadInput(
            "authentication = kerberos",
            f"the package requests-gssapi cannot be used ({type(error).__name__})",
            "install it with: pip install 'yarnctl[kerberos]' (needs the Kerberos libraries), and run kinit",
        ) from None
    # It logs a traceback for an expired ticket, an error for every 404. The 401's error has the cause.
    logging.getLogger("requests_gssapi").setLevel(logging.CRITICAL + 1)
    return Ticket(lambda: package.HTTPSPNEGOAuth(mutual_authentication=package.OPTIONAL))


class Delegation(AuthBase):
    """Adds one delegation token to every call of WebHDFS that has none, until one is refused or it is old.

    ``fetch`` gets a token from the NameNode ("": it gives none; if it raises, nothing is sent). Raises
    Rejected for an address without TLS, unless ``over_http``: the token is a part of the URL.
    """

    def __init__(
        self, fetch: Callable[[], str], clock: Callable[[], float] = passed_s, *, over_http: bool = False
    ) -> None:
        self._fetch = fetch
        self._over_http = over_http
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._until_s = 0.0

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the token, and register a hook that detects its refusal."""
        url = request.url or ""
        place, query = url.partition("?")[0], urlsplit(url).query
        if not self._over_http and not url.startswith("https:"):
            raise Rejected(
                explain(place, "a delegation token would be sent over plain HTTP", "https", OVER_HTTP)
            )
        if "delegation" not in parse_qs(query):  # a DataNode's address comes with it
            token = self._current()
            if token:
                request.url = f"{url}{'&' if query else '?'}delegation={quote(token, safe='')}"
        request.register_hook("response", self._answered)
        return request

    def _current(self) -> str:
        with self._lock:
            if self._clock() >= self._until_s:
                self._token = self._fetch()
                self._until_s = self._clock() + TOKEN_KEPT_S
            return self._token

    def _answered(self, response: Response, *_: Any, **__: Any) -> None:
        """Drop the token if it may be the cause of a refusal: the next call fetches another."""
        if response.status_code in (401, 403):
            with self._lock:
                self._until_s = 0.0
