"""Authenticate requests to Hadoop by a plain name or a Kerberos ticket.

No secret is kept here, and none is put into a URL except one delegation token per client: else the NameNode
would make one for each file. With ``simple`` authentication the name is sent as ``user.name`` (facts, section
1.5: a stock cluster accepts it unchecked). With ``kerberos`` the ticket cache of the process (``kinit``, or
  the keytab of ``KRB5_CLIENT_KTNAME``) is used through SPNEGO, by an optional package that is imported only
  then.

A ticket goes only to hosts that options, Hadoop's files or the ResourceManager's own configuration name. No
answer of an application (``trackingUrl``, a redirect below /proxy/) adds a host, and redirects are followed
to configured addresses only.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from requests.auth import AuthBase

from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import Rejected, explain
from yarnctl.hadoop.http.session import passed_s

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

TOKEN_KEPT_S = 6 * 3600.0  # For one delegation token; the NameNode accepts it for a day (facts)

OVER_HTTP = "use an https address, or set token_over_http = true (YARNCTL_TOKEN_OVER_HTTP=1)"
"""The remedy if a delegation token would be sent over plain HTTP."""

Method = Literal["simple", "kerberos"]


class Identity(msgspec.Struct, frozen=True):
    """The identity of the caller. ``user`` "" with ``simple``: the cluster's static user.

    ``token_over_http``: a delegation token may be sent over plain HTTP, where it can be read on the way.
    """

    user: str = ""
    method: Method = "simple"
    token_over_http: bool = False

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


def session_auth(identity: Identity) -> AuthBase | None:
    """Return the signer of each request (None: not signed); BadInput if Kerberos' package is missing."""
    if identity.method == "simple":
        return None
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
