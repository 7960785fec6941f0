"""``python -m yarn_research.campaigns.failover_daemon FILE run ...``: ``yarnctl``, stopped right before a call.

FILE holds a method and a pattern of the address. The first call that fits removes the file and stops the process
(SIGSTOP), after all checks and before its first byte is sent. When it continues it opens a new connection: the
server may have closed the old one meanwhile.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from pathlib import Path

from urllib3.connection import HTTPConnection


def stop_before(file: Path) -> None:
    """Stop this process before the first call that fits."""
    send, once = HTTPConnection.request, threading.Lock()

    def request(self: HTTPConnection, method: str, url: str, *rest, **named) -> None:
        with once:
            if method != "GET" and file.exists():
                wanted, pattern = file.read_text().split(" ", 1)
                if method == wanted and re.search(pattern, url):
                    file.unlink()
                    self.close()
                    os.kill(os.getpid(), signal.SIGSTOP)
        send(self, method, url, *rest, **named)

    HTTPConnection.request = request  # type: ignore[method-assign]


if __name__ == "__main__":
    stop_before(Path(sys.argv.pop(1)))
    from yarnctl.cli import main

    main()
