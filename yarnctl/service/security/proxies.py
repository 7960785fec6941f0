"""A proxy in front: the addresses whose forwarded headers count, and the prefix of the paths behind it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from yarnctl.errors import BadInput
from yarnctl.listening.names import is_loopback
from yarnctl.service.security.asgi import App, Receive, Scope, Send

_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def checked_proxies(given: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses and networks of ``--trusted-proxy``; raises BadInput for another value."""
    proxies = tuple(each.strip() for each in given)
    for each in proxies:
        try:
            network = ipaddress.ip_network(each)
        except ValueError:
            problem, remedy = "is not an IP address or network", "write it like 10.0.0.5 or 10.0.0.0/28"
            raise BadInput("--trusted-proxy", f"{each[:80]!r} {problem}", remedy) from None
        if not network.prefixlen:
            problem = f"{each} contains every host: any client could forge its address"
            raise BadInput("--trusted-proxy", problem, "name the proxies")
    return proxies


def checked_prefix(given: str) -> str:
    """Return ``--path-prefix`` without a slash at its end; raises BadInput for what is no path."""
    prefix = given.strip().rstrip("/")
    if prefix and (not _PREFIX.fullmatch(prefix) or "/../" in f"{prefix}/" or "/./" in f"{prefix}/"):
        raise BadInput("--path-prefix", f"{given[:80]!r} is not a path", "write it like /yarnctl")
    return prefix


def is_private(scope: Scope) -> bool:
    """Return whether nobody on the network reads a request: it came over TLS, or from this machine."""
    client = scope.get("client")
    return scope.get("scheme") == "https" or client is None or is_loopback(client[0])


class Prefixed:
    """ASGI middleware: answers the paths below ``prefix``, and those from which the proxy removed it.

    It leaves ``root_path`` empty: the router would remove it from the path once more, and so answer another
    path than the one that :class:`Guards` checked.
    """

    def __init__(self, app: App, prefix: str) -> None:
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with the path that the routes know."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if path == self.prefix:  # the page's links are relative to the folder
                name = self.prefix.rpartition("/")[2]
                head = [(b"location", f"{name}/".encode()), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": 307, "headers": head})
                await send({"type": "http.response.body"})
                return
            if path.startswith(f"{self.prefix}/"):
                scope["path"] = path[len(self.prefix) :]
        await self.app(scope, receive, send)
