"""Send one request to a daemon with one or more addresses; return one answer or one error.

Daemons that replace each other (ResourceManagers, NameNodes) are one list of addresses: the one that answered
last is tried first; after a standby, no answer or an unusable answer the request is sent to the next. A
change (PUT, POST, DELETE) is sent to the next only if it surely did not arrive; otherwise it is Uncertain.

A standby answers in many ways (facts, section 9): 307 with Location (followed, with method and body, to a
configured address and to no other), 307 with Refresh only, 200 with the text "There is no active RM right
now", an HTML page, 403 with a StandbyException from a NameNode.

Below ``/proxy/`` an application's own program answers. It is not trusted: its redirects are not followed,
because they could send our name to any address, and its cookies are not kept (``session``). An address may
have a path, which a gateway puts before the daemon's paths (``gateway``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.answers import (
    JSON,
    BadAnswer,
    HttpAnswer,
    SafeMode,
    Standby,
    Uncertain,
    decoded,
    explain,
    judge,
    safe_url,
)
from yarnctl.hadoop.http.auth import Identity, session_auth
from yarnctl.hadoop.http.gateway import normal_base, placed
from yarnctl.hadoop.http.request_counts import REQUESTS, Result
from yarnctl.hadoop.http.session import (
    FOREIGN,
    CallLimits,
    ExchangeFailed,
    Fault,
    Received,
    exchange,
    open_session,
)
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder

if TYPE_CHECKING:
    import requests

MANAGER_INFO = "/ws/v1/cluster/info"
HISTORY_INFO = "/ws/v1/history/info"

T = TypeVar("T")

FAULT_WORDS: dict[Fault, str] = {
    "too-long": "the answer is too long",
    "refused": "connection refused",
    "unknown-host": "this host cannot resolve the host name",
    "no-connection": "no connection",
    "connect-timeout": "no connection in time",
    "tls": "no trusted TLS connection (check the scheme and ca_file)",
    "timeout": "no whole answer in time",
    "compression": "the compressed answer is damaged",
    "cut-off": "the answer is incomplete",
    "protocol": "the connection broke or does not speak HTTP",
    "broken": "the connection broke",
    "no-http": "the answer is not HTTP",
    "other": "no answer",
}


class Transport:
    """A daemon at one or more addresses, for one caller; sends nothing when made. Raises BadInput.

    ``before_read`` is called before each read, so that a caller with many of them keeps a pace.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        identity: Identity | None = None,
        limits: CallLimits | None = None,
        *,
        daemon: str = "ResourceManager",
        ca_file: str = "",
        before_read: Callable[[], None] = lambda: None,
    ) -> None:
        self.addresses = tuple(_checked(address, daemon) for address in addresses)
        if not self.addresses:
            raise BadInput(
                f"{daemon} addresses", "empty list", "set at least one, for example http://host:8088"
            )
        self.identity = identity or Identity()
        self.limits = limits or CallLimits()
        self.daemon = daemon
        self._before_read = before_read
        self._auth, self._ca_file = session_auth(self.identity), ca_file
        self._cookies: dict[tuple[str, str], str] = {}
        self._sessions = {base: self._session(base) for base in self.addresses}
        self._pinned = self.addresses[0]

    def __enter__(self) -> Transport:
        """Return the transport, which is open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the sessions."""
        self.close()

    @property
    def pinned(self) -> str:
        """The address that is tried first."""
        return self._pinned

    def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            session.close()

    def _session(self, base: str) -> requests.Session:
        session = open_session(self.limits, self._auth, self._ca_file)
        for (name, path), value in list(self._cookies.items()):  # another thread may keep one
            _set_cookie(session, base, name, value, path)
        return session

    def move_to(self, addresses: Sequence[str], daemon: str) -> None:
        """Send requests to other addresses from now on; running ones end where they are.

        With Kerberos they get the ticket: they must come from options, files or a daemon's configuration.
        """
        wanted = tuple(_checked(address, daemon) for address in addresses)
        fresh = {base: self._session(base) for base in wanted if base not in self._sessions}
        self._sessions = {**self._sessions, **fresh}
        self.addresses, self.daemon, self._pinned = wanted, daemon, wanted[0]

    def keep_cookie(self, name: str, value: str, path: str) -> None:
        """Send this cookie below ``path`` from now on."""
        self._cookies[name, path] = value
        for base, session in self._sessions.items():
            _set_cookie(session, base, name, value, path)

    @overload
    def read(
        self,
        path: str,
        decoder: OneDecoder[T],
        query: Mapping[str, str] | None = None,
        unusable: Callable[[T], str] | None = None,
    ) -> T: ...

    @overload
    def read(self, path: str, decoder: ListDecoder[T], query: Mapping[str, str] | None = None) -> list[T]: ...

    def read(
        self,
        path: str,
        decoder: OneDecoder[Any] | ListDecoder[Any],
        query: Mapping[str, str] | None = None,
        unusable: Callable[[Any], str] | None = None,
    ) -> Any:
        """GET ``path`` and return the JSON as decoded by ``decoder``.

        ``unusable`` may return why an answer does not count (then the next address is tried). Raises
        Unreachable, BadAnswer, Standby, Rejected.
        """
        self._before_read()

        def take(answer: HttpAnswer) -> Any:
            value = decoded(answer, decoder)
            why = unusable(value) if unusable is not None else ""
            if why:
                raise Standby(explain(answer.url, why))
            return value

        return self._ask("GET", path, query or {}, b"", "", take)

    def fetch(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> HttpAnswer:
        """GET ``path`` and return the answer unchanged, also redirects except 307 and 308."""
        return self._ask("GET", path, query or {}, b"", "", lambda answer: answer, accept)

    def change(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        media: str = JSON,
        query: Mapping[str, str] | None = None,
        *,
        follow: bool = True,
    ) -> HttpAnswer:
        """PUT, POST or DELETE; returns a 2xx or a redirect (307 and 308 too, without ``follow``).

        Raises Rejected (the daemon refused), Uncertain (possibly done), Unreachable (not done).
        """
        return self._ask(method, path, query or {}, body, media, lambda answer: answer, follow=follow)

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        media: str,
        take: Callable[[HttpAnswer], T],
        accept: str = JSON,
        *,
        follow: bool = True,
    ) -> T:
        # A loop reads often, and compressing thousands of applications costs the ResourceManager much.
        headers = {"Accept": accept, "Accept-Encoding": "gzip" if self.limits.retries else "identity"}
        if media:
            headers["Content-Type"] = media
        problems: list[Unreachable] = []
        first = self._pinned
        for base in (first, *(one for one in self.addresses if one != first)):
            try:
                answer, at = self._redirected(base, method, path, query, body, headers, follow)
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
        if safe:  # the active one refused
            raise safe[0]
        story = "; ".join(str(one) for one in problems)
        raise kind(f"all {len(problems)} {self.daemon} addresses failed: {story}")

    def _redirected(
        self,
        base: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        headers: dict[str, str],
        follow: bool,
    ) -> tuple[HttpAnswer, str]:
        """Try one address, follow 307 and 308 with method and body kept; return answer and address."""
        session = self._sessions[base]
        url = placed(base, path)
        for _ in range(self.limits.redirects + 1):
            asked = _with_query(url, {**query, **self.identity.query()})
            answer = self._send(session, method, asked, body, headers)
            if answer.status not in (307, 308) or not follow:
                judge(answer, method, self.daemon)
                return answer, next((one for one in self.addresses if url.startswith(one + "/")), base)
            url, query = self._next(url, answer), {}
        raise BadAnswer(explain(url, "too many redirects", "an answer", "check the addresses of the daemons"))

    def _next(self, url: str, answer: HttpAnswer) -> str:
        """Return the target of a 307 or 308, if it may be followed."""
        if FOREIGN.match(urlsplit(url).path):
            raise BadAnswer(
                explain(url, "the application's own program redirects", "no redirect", "not followed")
            )
        if not answer.location:
            raise Standby(
                explain(
                    url,
                    f"this {self.daemon} is in standby and reports no active one",
                    "",
                    "list all addresses, or wait",
                )
            )
        try:
            target = urljoin(url, answer.location)
            parts = urlsplit(target)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or "@" in parts.netloc:
            raise BadAnswer(explain(url, "redirected to an invalid address", "http or https"))
        if url.startswith("https:") and parts.scheme == "http":
            raise BadAnswer(
                explain(url, f"redirected from https to {safe_url(target)}", "https", "not followed")
            )
        if not any(target.startswith(one + "/") for one in self.addresses):
            remedy = f"add this address if it is a {self.daemon}"
            raise Standby(
                explain(
                    url,
                    f"redirected to {parts.netloc}, which is not in the list of addresses",
                    "an address of the list",
                    remedy,
                )
            )
        return target

    def ahead_ms(self, path: str, clock_ms: Callable[[], int]) -> int | None:
        """Return the daemon's clock minus the local one, in ms (precision 1 s); None: not known."""
        base = self._pinned
        try:
            before = clock_ms()
            got = exchange(self._sessions[base], self.limits, "GET", placed(base, path), {}, b"")
            after = clock_ms()
            told = parsedate_to_datetime(got.headers.get("Date", ""))
            return int(told.timestamp() * 1000) - (before + after) // 2
        except (ExchangeFailed, ValueError, TypeError, OverflowError):
            return None

    def _send(
        self, session: requests.Session, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> HttpAnswer:
        try:
            try:
                got = self._exchange(session, method, url, body, headers)
            except ExchangeFailed as problem:
                if method != "GET" or not problem.is_closed:
                    raise
                # A daemon may close a kept connection at any time; nothing of an answer had come.
                got = self._exchange(session, method, url, body, headers)
        except ExchangeFailed as problem:
            raise self._explained(url, method, problem) from None
        return _answer(got, url)

    def _exchange(
        self, session: requests.Session, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> Received:
        began_s = time.monotonic()
        result: Result = "failed"
        try:
            got = exchange(session, self.limits, method, url, headers, body)
            result = "answered" if got.status < 400 else "rejected" if got.status < 500 else "failed"
            return got
        finally:
            REQUESTS.add(self.daemon, url, result, time.monotonic() - began_s)

    def _explained(self, url: str, method: str, failed: ExchangeFailed) -> Unreachable:
        """Return our error, without the library's text (it may quote the whole URL)."""
        what = FAULT_WORDS[failed.fault]
        if failed.fault == "too-long" and method == "GET":
            bound = f"at most {self.limits.answer_bytes} bytes"
            return BadAnswer(explain(url, what, bound, "raise answer_bytes if the answer is valid"))
        if method != "GET" and failed.is_sent:
            story = f"{method} was sent, but not answered: {what}"
            return Uncertain(explain(url, story, "an answer", "check the state before you repeat it"))
        return unreached(url, failed, f"a {self.daemon}")


def unreached(url: str, failed: ExchangeFailed, expected: str) -> Unreachable:
    """Return the error of a request that did not arrive, or that got no answer and changes nothing."""
    words, kind = FAULT_WORDS[failed.fault], failed.fault
    found = Unreachable(explain(url, words, expected, _BY_DNS if kind == "unknown-host" else _REACH))
    found.fault, found.kind = words, kind if kind in NO_CONNECTION else ""
    return found


def connection_fault(base: str, limits: CallLimits, ca_file: str = "") -> Fault | None:
    """Return why no connection to an address is possible, None if one is; sends neither name nor ticket."""
    with open_session(limits, None, ca_file) as session:
        try:
            exchange(session, limits, "GET", f"{base}/", {}, b"")
        except ExchangeFailed as problem:
            return problem.fault
    return None


NO_CONNECTION: frozenset[Fault] = frozenset(
    {"unknown-host", "refused", "no-connection", "connect-timeout", "tls"}
)
"""The remedies for a host that could not be reached."""
_REACH = "check that the daemon runs and that this host can reach it"
_BY_DNS = "add the name to DNS or to /etc/hosts of this host"


def _answer(received: Received, url: str) -> HttpAnswer:
    kind = received.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return HttpAnswer(
        received.status,
        kind,
        received.body,
        safe_url(url),
        received.headers.get("Location", ""),
        received.headers.get("WWW-Authenticate", ""),
    )


def _set_cookie(session: requests.Session, base: str, name: str, value: str, path: str) -> None:
    parts = urlsplit(base)
    session.cookies.set(name, value, domain=parts.hostname or "", path=parts.path + path)


def _checked(address: str, daemon: str) -> str:
    """Return the address as ``normal_base`` does; raises BadInput for an invalid base URL."""
    where, remedy = f"{daemon} address {safe_url(address)}", "use the form http://host:8088"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadInput(where, "not a URL", remedy) from None
    if "@" in parts.netloc:
        raise BadInput(where, "contains user info", "remove it; set user, Kerberos or password_file instead")
    if not usable or parts.query or parts.fragment or any(letter.isspace() for letter in address):
        raise BadInput(where, "not an address of a daemon", remedy)
    return normal_base(address)


def _with_query(url: str, query: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    present = {key for key, _ in parse_qsl(parts.query, keep_blank_values=True)}
    extra = urlencode([(key, value) for key, value in query.items() if key not in present])
    joined = "&".join(part for part in (parts.query, extra) if part)
    return parts._replace(query=joined, fragment="").geturl()
