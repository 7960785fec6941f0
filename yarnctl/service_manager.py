"""Messages to the service manager that started the daemon: systemd's protocol ``sd_notify``.

The loop itself sends them, after each step: a manager that hears nothing knows that the loop does not work.
"""

from __future__ import annotations

import os
import socket


def notify(*lines: str) -> bool:
    """Send lines (``READY=1``, ``WATCHDOG=1``, ``STATUS=...``) as one datagram; False if none was sent.

    It never waits and never fails: a manager that does not read decides by itself, when nothing arrives.
    """
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect("\0" + path[1:] if path.startswith("@") else path)
            sender.send("\n".join(lines).encode(), socket.MSG_DONTWAIT)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return False
    return True
