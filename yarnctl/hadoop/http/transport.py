"""The transport: one question to a daemon that may have stand-ins, one answer or one clear error.

Law: nothing is sent before the first call; every call ends in bounded time (``session``). Daemons that
stand in for each other (ResourceManagers, NameNodes) are one list of addresses: the one that answered
last is asked first, and a standby, a silent one or one that answers rubbish passes the question on. A
change (PUT, POST, DELETE) is passed on only if it surely did not arrive; otherwise it is Uncertain.

A standby speaks in many ways (facts, section 9): 307 with Location (followed, with method and body, to an
address that we were told of and to no other), 307 with Refresh only, 200 with the text "There is no active RM
right now", an HTML page, 403 with a StandbyException from a NameNode.

Below ``/proxy/`` an application's own program answers. It is not trusted: its redirects are not followed, for
they would carry our name to wherever it likes, and its cookies are not kept (``session``).
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import requests
import urllib3.exceptions

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.answers import JSON, Answer, decoded, judge
from yarnctl.hadoop.http.auth import Identity, session_auth
from yarnctl.hadoop.http.problems import BadAnswer, SafeMode, Standby, Uncertain, explain, safe_url
from yarnctl.hadoop.http.session import FOREIGN, Limits, TooLarge, open_session
from yarnctl.hadoop.wire.decoders import Many, One

T = TypeVar("T")

_CHUNK = 1 << 20
_FAULTS = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    UnicodeError,
)


class Transport:
    """A daemon at one or more addresses, as one caller sees it.

    ``daemon`` is its name for messages. Raises BadInput for an address that cannot be used, and for
    Kerberos without its package; never touches the network by itself.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        identity: Identity | None = None,
        limits: Limits | None = None,
        *,
        daemon: str = "ResourceManager",
        ca_file: str = "",
    ) -> None:
        self.addresses = tuple(_checked(address, daemon) for address in addresses)
        if not self.addresses:
            raise BadInput(f"{daemon} addresses", "none given", "name at least one, like http://host:8088")
        self.identity = identity or Identity()
        self.limits = limits or Limits()
        self.daemon = daemon
        auth = session_auth(self.identity)
        self._sessions = {base: open_session(self.limits, auth, ca_file) for base in self.addresses}
        self._pinned = self.addresses[0]

    def __enter__(self) -> Transport:
        """Return itself: the sessions are open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the sessions."""
        self.close()

    @property
    def pinned(self) -> str:
        """The address that is asked first."""
        return self._pinned

    def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            session.close()

    def carry_cookie(self, name: str, value: str, path: str) -> None:
        """Send this cookie below ``path`` from now on."""
        for base, session in self._sessions.items():
            session.cookies.set(name, value, domain=urlsplit(base).hostname or "", path=path)

    def read(
        self,
        path: str,
        shape: One[T] | Many[Any],
        query: Mapping[str, str] | None = None,
        unusable: Callable[[Any], str] | None = None,
    ) -> Any:
        """GET ``path`` and return what ``shape`` makes of the JSON.

        ``unusable`` may say why an answer does not count (the next address is asked then). Raises
        Unreachable, BadAnswer, Standby, Rejected.
        """

        def take(answer: Answer) -> Any:
            value = decoded(answer, shape)
            why = unusable(value) if unusable is not None else ""
            if why:
                raise Standby(explain(answer.url, why))
            return value

        return self._ask("GET", path, query or {}, b"", "", take)

    def fetch(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> Answer:
        """GET ``path`` and return the answer as it is, redirects (but 307 and 308) included."""
        return self._ask("GET", path, query or {}, b"", "", lambda answer: answer, accept)

    def change(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        media: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """PUT, POST or DELETE; returns the answer of a 2xx or of a redirect other than 307 and 308.

        Raises Rejected (the daemon said no), Uncertain (nobody knows), Unreachable (surely not done).
        """
        return self._ask(method, path, query or {}, body, media, lambda answer: answer)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        media: str,
        take: Callable[[Answer], T],
        accept: str = JSON,
    ) -> T:
        """Put the question to each address in turn, the pinned one first."""
        # A loop asks often, and compressing thousands of applications costs the ResourceManager much.
        headers = {"Accept": accept, "Accept-Encoding": "gzip" if self.limits.retries else "identity"}
        if media:
            headers["Content-Type"] = media
        problems: list[Unreachable] = []
        first = self._pinned
        for base in (first, *(one for one in self.addresses if one != first)):
            try:
                answer, at = self._follow(base, method, path, query, body, headers)
                value = take(answer)
            except Uncertain:
                raise
            except Unreachable as problem:
                problems.append(problem)
                continue
            self._pinned = at
            return value
        if len(problems) == 1:
            raise problems[0]
        kind = Standby if all(isinstance(one, Standby) for one in problems) else Unreachable
        safe = [one for one in problems if isinstance(one, SafeMode)]
        if safe:  # said by the active one
            raise safe[0]
        story = "; ".join(str(one) for one in problems)
        raise kind(f"none of {len(problems)} {self.daemon} addresses is of use: {story}")

    def _follow(
        self,
        base: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        headers: dict[str, str],
    ) -> tuple[Answer, str]:
        """Ask one address and follow 307 and 308 with method and body kept; say who answered."""
        session = self._sessions[base]
        url = f"{base}{path}"
        for _ in range(self.limits.redirects + 1):
            asked = _with_query(url, {**query, **self.identity.query()})
            answer = self._send(session, method, asked, body, headers)
            if answer.status not in (307, 308):
                judge(answer, method, self.daemon)
                return answer, self._owner(url, base)
            url, query = self._next(url, answer), {}
        raise BadAnswer(
            explain(url, "redirects without an end", "an answer", "check the addresses of the daemons")
        )

    def _next(self, url: str, answer: Answer) -> str:
        """Return where a 307 or 308 leads, if it may be followed."""
        if urlsplit(url).path.startswith(FOREIGN):
            raise BadAnswer(
                explain(url, "the application's own program redirects", "no redirect", "not followed")
            )
        if not answer.location:
            raise Standby(
                explain(
                    url, f"a standby {self.daemon} that knows no active one", "", "name all of them, or wait"
                )
            )
        try:
            target = urljoin(url, answer.location)
            parts = urlsplit(target)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or "@" in parts.netloc:
            raise BadAnswer(explain(url, "redirected to an address that cannot be used", "http or https"))
        if url.startswith("https:") and parts.scheme == "http":
            raise BadAnswer(
                explain(url, f"redirected from https to {safe_url(target)}", "https", "not followed")
            )
        if not any(target.startswith(one + "/") for one in self.addresses):
            remedy = f"name it too if it is a {self.daemon}"
            raise Standby(
                explain(url, f"redirected to {parts.netloc}, which nobody named", "a known address", remedy)
            )
        return target

    def _owner(self, url: str, base: str) -> str:
        """Return the configured address that ``url`` belongs to (``base`` if to none)."""
        return next((one for one in self.addresses if url.startswith(one + "/")), base)

    def _send(
        self, session: requests.Session, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> Answer:
        try:
            try:
                return self._exchange(session, method, url, body, headers)
            except requests.ConnectionError as fault:
                if method != "GET" or not _closed_unanswered(fault):
                    raise
                # A daemon may close a kept connection at any time; nothing of an answer had come.
                return self._exchange(session, method, url, body, headers)
        except _FAULTS as fault:
            raise self._fault(url, method, fault) from None

    def _exchange(
        self, session: requests.Session, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> Answer:
        response = session.request(
            method,
            url,
            data=body or None,
            headers=headers,
            timeout=self.limits.pair(),
            allow_redirects=False,
            stream=True,
        )
        with response:
            return self._whole(url, response)

    def _whole(self, url: str, response: requests.Response) -> Answer:
        """Read the body within its bound (decompressed) and close the books on this exchange."""
        parts, size = [], 0
        while chunk := response.raw.read(_CHUNK, decode_content=True):
            size += len(chunk)
            if size > self.limits.answer_bytes:
                raise TooLarge(f"longer than {self.limits.answer_bytes} bytes")
            parts.append(chunk)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        location = response.headers.get("Location", "")
        return Answer(response.status_code, kind, b"".join(parts), safe_url(url), location)

    def _fault(self, url: str, method: str, fault: BaseException) -> Unreachable:
        """Turn a library's exception into ours, without its text (it may quote the whole URL)."""
        chain = list(_chain(fault))
        what = next(
            (words for kind, words in _WORDS if any(isinstance(one, kind) for one in chain)), "no answer"
        )
        if what == _TOO_LONG and method == "GET":
            bound = f"at most {self.limits.answer_bytes} bytes"
            return BadAnswer(explain(url, what, bound, "raise answer_bytes if this is right"))
        if method != "GET" and not any(isinstance(one, _NOT_SENT) for one in chain):
            return Uncertain(
                explain(
                    url, f"{method} was sent and then: {what}", "an answer", "look again before repeating it"
                )
            )
        return Unreachable(
            explain(url, what, f"a {self.daemon}", "check that it runs and that this host may reach it")
        )


_TOO_LONG = "the answer is too long"
_NOT_SENT = (
    requests.exceptions.ConnectTimeout,
    requests.exceptions.InvalidURL,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ConnectTimeoutError,
    urllib3.exceptions.NameResolutionError,
    urllib3.exceptions.LocationValueError,
    ssl.SSLCertVerificationError,
)
_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (TooLarge, _TOO_LONG),
    (ConnectionRefusedError, "connection refused"),
    (urllib3.exceptions.NameResolutionError, "the host's name is not known"),
    (urllib3.exceptions.NewConnectionError, "no connection"),
    (urllib3.exceptions.ConnectTimeoutError, "no connection in time"),
    (urllib3.exceptions.SSLError, "no trusted TLS connection (check the scheme and ca_file)"),
    (urllib3.exceptions.ReadTimeoutError, "no whole answer in time"),
    (TimeoutError, "no whole answer in time"),
    (urllib3.exceptions.DecodeError, "the answer's compression is broken"),
    (urllib3.exceptions.IncompleteRead, "the answer ends in its middle"),
    (http.client.IncompleteRead, "the answer ends in its middle"),
    (urllib3.exceptions.ProtocolError, "the connection broke or does not speak HTTP"),
    (ConnectionError, "the connection broke"),
    (http.client.HTTPException, "the answer is no HTTP"),
)


def _closed_unanswered(fault: BaseException) -> bool:
    """Say whether a connection was closed before anything of an answer had come."""
    return any(isinstance(one, http.client.RemoteDisconnected) for one in _chain(fault))


def is_refused(fault: BaseException) -> bool:
    """Say whether a library's exception means that the connection was refused."""
    return any(isinstance(one, ConnectionRefusedError) for one in _chain(fault))


def _chain(fault: BaseException) -> list[BaseException]:
    """Collect an exception with all that caused it or is wrapped in it."""
    found: list[BaseException] = []
    waiting: list[Any] = [fault]
    while waiting and len(found) < 30:
        one = waiting.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def _checked(address: str, daemon: str) -> str:
    """Return the address without a slash at its end; raises BadInput if it is no base URL."""
    where, remedy = f"{daemon} address {safe_url(address)}", "write it like http://host:8088"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadInput(where, "is no URL", remedy) from None
    if "@" in parts.netloc:
        raise BadInput(where, "carries user info", "leave it out; say who you are with user or kerberos")
    if not usable or parts.query or parts.fragment or any(letter.isspace() for letter in address):
        raise BadInput(where, "is no address of a daemon", remedy)
    return address.rstrip("/")


def _with_query(url: str, query: Mapping[str, str]) -> str:
    """Add the parameters that the URL does not carry yet."""
    parts = urlsplit(url)
    present = {key for key, _ in parse_qsl(parts.query, keep_blank_values=True)}
    extra = urlencode([(key, value) for key, value in query.items() if key not in present])
    joined = "&".join(part for part in (parts.query, extra) if part)
    return parts._replace(query=joined, fragment="").geturl()
