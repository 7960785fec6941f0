"""Serving: the app on its own uvicorn, in a thread beside the loop.

It listens when ``serve_in_thread`` returns, or an error has the reason; stopping waits for the thread. Beyond
loopback it listens only with a token, or if reading without one is allowed explicitly. Slow clients lose
their connection, and many connections do not block other clients (:mod:`yarnctl.listening.connections`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from functools import partial

import uvicorn
from fastapi import FastAPI

from yarnctl.errors import BadInput
from yarnctl.listening.connections import Bounds, protocol
from yarnctl.listening.names import is_loopback
from yarnctl.service.security.tls import Tls
from yarnctl.service.security.tokens import Tokens
from yarnctl.service.watching import Watch

_LOG = logging.getLogger("yarnctl.daemon")

CONNECTIONS_MAX = 256  # Above this number the longest idle or incomplete connection is closed
HEAD_S = 10.0
BODY_S = 10.0
ANSWER_READ_S = 30.0
BOUNDS = Bounds(HEAD_S, BODY_S, answer_read_s=ANSWER_READ_S, connections_max=CONNECTIONS_MAX)
STOP_S = 2  # When the service stops, how long open requests may still take

PORT_MAX = 65_535


def parse_listen(text: str) -> tuple[str, int]:
    """Read ``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` (loopback). Raises BadInput."""
    host, separator, port = text.strip().rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise BadInput("--listen", f"{text!r} is not HOST:PORT", "write it like 127.0.0.1:8188")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadInput("--listen", f"{text!r} is ambiguous", f"write an IPv6 address as [{host}]:{port}")
    return host or "127.0.0.1", int(port)


def require_safe(
    host: str, token: str | Tokens | None, open_reads: bool = False, *, has_tls: bool = False
) -> None:
    """Raise BadInput for an address beyond loopback without a token or without TLS, unless reads are open.

    ``has_tls``: the server, or a trusted proxy in front of it, has a certificate.
    """
    if is_loopback(host) or open_reads:
        return
    if not token:
        raise BadInput(
            "--listen",
            f"{host} is reachable from other machines, and no token is set",
            "set a token (--tokens, --token-file) or --open-reads, or listen on 127.0.0.1",
        )
    if not has_tls:
        raise BadInput(
            "--listen",
            f"{host} is reachable from other machines, and tokens would be sent without TLS",
            "set --tls-certificate and --tls-key, or listen on 127.0.0.1 behind a proxy",
        )


class _Server(uvicorn.Server):
    """uvicorn on given sockets, with a bound on the time of a TLS handshake, which it does not have itself.

    A connection is counted after its handshake, so a silent one must not hold its file for long.
    """

    def __init__(self, config: uvicorn.Config, handshake_s: float) -> None:
        super().__init__(config)
        self._handshake_s = handshake_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        loop, config = asyncio.get_running_loop(), self.config
        made = partial(  # type: ignore[call-arg]  # as uvicorn itself
            config.http_protocol_class,
            config=config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        self.servers = [
            await loop.create_server(
                made,
                sock=each,
                ssl=config.ssl,
                backlog=config.backlog,
                ssl_handshake_timeout=(self._handshake_s or None) if config.ssl else None,
            )
            for each in sockets or ()
        ]
        self.started = True


class Handle:
    """A running service: ``url`` is its address, ``stop`` ends it."""

    def __init__(
        self,
        server: uvicorn.Server,
        thread: threading.Thread,
        listener: socket.socket,
        tls: Tls | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._server = server
        self._thread = thread
        self._listener = listener
        self._tls = tls
        address = listener.getsockname()
        self.host: str = address[0]
        self.port: int = address[1]

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self._tls is None else 'https'}://{host}:{self.port}"

    @property
    def is_alive(self) -> bool:
        """Whether the thread still serves."""
        return self._thread.is_alive()

    def reload(self) -> None:
        """Use the certificate's files as they are now; a pair that cannot be used is logged and not used."""
        if self._tls is None:
            return
        try:
            self._tls.reload()
        except BadInput as error:
            _LOG.error("the certificate is not reloaded, the old one stays in use: %s", error)
        else:
            _LOG.warning("certificate reloaded: %s", self._tls.files.certificate)

    def stop(self) -> None:
        """End streams, finish open requests within ``STOP_S`` seconds, close, and wait for the thread."""
        if self._watch is not None:
            self._watch.close()
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


def serve_in_thread(
    app: FastAPI,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    token: str | Tokens | None = None,
    open_reads: bool = False,
    bounds: Bounds = BOUNDS,
    tls: Tls | None = None,
    proxies: tuple[str, ...] = (),
) -> Handle:
    """Serve on an address (port 0: any free port) and return when it listens.

    ``token`` and ``open_reads`` are the app's; beyond loopback one of them must be set. ``proxies``: the
    addresses whose forwarded headers count. Raises BadInput.
    """
    require_safe(host, token, open_reads, has_tls=tls is not None or bool(proxies))
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # yarnctl logs the address itself
    listener = _listen(host, port)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        ssl_context_factory=None if tls is None else lambda *_: tls.context,
        http=protocol(bounds),
        timeout_keep_alive=30,
        timeout_graceful_shutdown=STOP_S,
    )
    server = _Server(config, bounds.head_s)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="yarnctl-service", daemon=True
    )
    thread.start()
    return Handle(server, thread, listener, tls, getattr(app.state, "watch", None))


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket: connections from now on wait for the thread, and are answered."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(CONNECTIONS_MAX)
    except OSError as error:
        listener.close()
        problem = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise BadInput("--listen", problem, "choose another address or port") from None
    return listener
