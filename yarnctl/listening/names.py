"""Check the Host and Origin headers of requests to a server.

Only names that the server was given are answered, so that a foreign name which is pointed at its address (DNS
rebinding) reaches nothing, and a page of another origin neither. On loopback these are loopback's names;
beyond loopback every IP address as well, because a rebound name cannot send an address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple

from yarnctl.errors import BadInput

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
ANY_ADDRESS = "*.ip"  # The name that stands for every IP address
KNOWN_MAX = 256  # The most values of Host remembered as good

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?|\[[0-9a-f:.]{2,45}\]")


class RefusedRequest(NamedTuple):
    """The reason why a request is rejected: HTTP status, code, sentence."""

    status: int
    code: str
    problem: str


BAD_HOST = RefusedRequest(421, "bad-host", "the Host header is not a name of this server (--allow-host)")
BAD_ORIGIN = RefusedRequest(
    403, "foreign-origin", "the Origin header is not a name of this server (--allow-host)"
)


class Answered:
    """The names that one server answers; ``why_not`` is called for every request."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self._known: set[bytes] = set()

    def why_not(self, headers: list[tuple[bytes, bytes]]) -> RefusedRequest | None:
        """Return why a request with these headers (names in small letters) is refused, None: it is not."""
        told = dict(headers)  # the usual request is judged by two look-ups
        if told.get(b"host") in self._known and b"origin" not in told and len(told) == len(headers):
            return None
        return self._judged(headers)

    def _judged(self, headers: Iterable[tuple[bytes, bytes]]) -> RefusedRequest | None:
        hosts, host, origin = 0, b"", None
        for name, value in headers:
            if name == b"host":
                hosts += 1
                host = value
            elif name == b"origin":
                origin = value if origin is None else b"several"
        if hosts != 1 or not self._is_known(host):
            return BAD_HOST
        if origin is not None and not self._is_own(origin.decode("latin-1"), host.decode("latin-1")):
            return BAD_ORIGIN
        return None

    def _is_known(self, host: bytes) -> bool:
        if host not in self._known and not is_answered(name_of(host.decode("latin-1")), self.names):
            return False
        if len(self._known) < KNOWN_MAX:
            self._known.add(host)
        return True

    def _is_own(self, origin: str, host: str) -> bool:
        scheme, found, place = origin.strip().lower().partition("://")
        if not found or scheme not in ("http", "https"):
            return False
        return place == host.strip().lower() or name_of(place) in self.names - LOOPBACK_NAMES


def name_of(host: str) -> str:
    """Return the name in a Host header, without port, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def is_answered(name: str, names: frozenset[str]) -> bool:
    """Return whether a name from a Host header is one of ``names``."""
    if name in names:
        return True
    if ANY_ADDRESS not in names:
        return False
    try:
        ipaddress.ip_address(name[1:-1] if name.startswith("[") else name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether an address or name can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_names(allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the names of ``--allow-host`` in small letters; raises BadInput for an invalid name."""
    names = tuple(name.strip().lower() for name in allowed)
    for name in names:
        if not _NAME.fullmatch(name):
            remedy = "use a name without a port, for example yarnctl.example.org"
            raise BadInput("--allow-host", f"{name[:80]!r} is not a host name", remedy)
    return names


def names_for(host: str, allowed: Iterable[str] = ()) -> frozenset[str]:
    """Return the names to answer on ``host`` (beyond loopback also every IP) and ``allowed``; or BadInput."""
    own = checked_names(allowed)
    names = LOOPBACK_NAMES | set(own) | {f"[{host}]" if ":" in host else host.lower()}
    return names if is_loopback(host) else names | {ANY_ADDRESS}
