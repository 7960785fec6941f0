"""Wake task runners by a datagram: YARN passes a signal on with a node's next heartbeat only.

Law: a datagram does nothing but let a runner read its requests, and may be lost: the signal is sent as well.

* The host is that of YARN's node. Only port and secret are the job's own words, and they are checked: a job
  can have a short text sent to a port of the node that it runs on, nothing else.
* A host name that resolves slowly delays no order. While too many datagrams wait, further ones are dropped.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore

_LOG = logging.getLogger("yarnctl.attach")

_BELL = re.compile(r"([1-9][0-9]{3,4})-([0-9a-f]{16})")
THREADS, WAITING_MAX = 4, 64


class Bells:
    """Sends datagrams in threads of its own. ``address_of`` returns a host's IPv4 address; raises OSError."""

    def __init__(self, address_of: Callable[[str], str] = socket.gethostbyname) -> None:
        self.address_of = address_of
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="bell")
        self._free = BoundedSemaphore(WAITING_MAX)

    def ring(self, node: str, bell: str) -> None:
        """Send a datagram to a runner on ``node`` (host:port); nothing if ``bell`` is not PORT-SECRET."""
        match = _BELL.fullmatch(bell)
        host = node.rpartition(":")[0]
        if match is None or not host or not 1024 <= int(match[1]) < 1 << 16:
            return
        if self._free.acquire(blocking=False):
            self._pool.submit(self._send, host, int(match[1]), match[2])

    def _send(self, host: str, port: int, secret: str) -> None:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                out.setblocking(False)
                out.sendto(f"yarnctl {secret}".encode("ascii"), (self.address_of(host), port))
        except (OSError, UnicodeError) as problem:
            _LOG.debug("no datagram to %s: %s", host, problem)
        finally:
            self._free.release()
