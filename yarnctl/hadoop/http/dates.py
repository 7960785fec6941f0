"""What time a daemon believes it is: the Date of its answer, beside our own clock.

Law: not better than a second, which is the header's grain; no Date, or one that cannot be read, is None:
unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime

import requests

from yarnctl.hadoop.http.auth import Identity, session_auth
from yarnctl.hadoop.http.session import Limits, open_session

MANAGER_INFO = "/ws/v1/cluster/info"
HISTORY_INFO = "/ws/v1/history/info"


def ahead_ms(
    url: str, identity: Identity, limits: Limits, clock_ms: Callable[[], int], ca_file: str = ""
) -> int | None:
    """Return a daemon's clock minus ours at the middle of one call, in ms; None if it is not told."""
    try:
        with open_session(limits, session_auth(identity), ca_file) as session:
            before = clock_ms()
            answer = session.get(url, timeout=limits.pair(), stream=True)
            after = clock_ms()
            date = answer.headers.get("Date", "")
            answer.close()
        return int(parsedate_to_datetime(date).timestamp() * 1000) - (before + after) // 2 if date else None
    except (requests.RequestException, OSError, ValueError, TypeError):
        return None
