"""What can go wrong between us and a Hadoop daemon.

::

    YarnctlError
    ├── Unreachable             nothing usable answers
    │   ├── BadAnswer           something answers, but not in the form Hadoop promises
    │   ├── Standby             a standby daemon answers, and no active one is known
    │   ├── SafeMode            HDFS can be read and not be written, until that ends
    │   └── Uncertain           a change was sent and no answer came: it may have been made
    └── Rejected                the daemon understood and said no (HTTP 4xx, or 5xx to a change)
        ├── Missing             what was asked for does not exist (404)
        ├── Exists              it exists already (exclusive create, rename)
        └── Altered             the daemon said yes and did something else than asked

Law: a message names the URL, what was expected and what to do, in one line, and never a secret:
user info, query values and anything that looks like a token are left out.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from yarnctl.errors import BadInput, Unreachable, YarnctlError

EXCERPT = 160
"""Characters of a foreign text that a message may quote."""

_SECRET = re.compile(
    r"(?i)\b(delegation|token|signature|hadoop\.auth|password|passwd|secret|authorization)(\"?\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|(?:(?:basic|bearer|negotiate)\s+)?[^\s&,;<>\"]+)"
)
_USER_INFO = re.compile(r"(?<=//)[^/@\s]+@")


class BadAnswer(Unreachable):
    """Something answers, but not as Hadoop would: HTML, a torn body, another service."""


class Standby(Unreachable):
    """A standby answers and no active daemon is known to it."""


class SafeMode(Unreachable):
    """HDFS is in safe mode: nothing in it can be changed until that ends."""


class Uncertain(Unreachable):
    """A change was sent and no answer came back; only looking again settles it."""


class Rejected(YarnctlError):
    """The daemon said no; ``status`` is HTTP's, ``remote`` the Java exception's short name."""

    def __init__(self, message: str, status: int = 0, remote: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.remote = remote
        if status == 401:  # the user can correct name and authentication
            self.exit_status = BadInput.exit_status


class Missing(Rejected):
    """What was asked for does not exist (any more)."""


class ExistsAlready(Rejected):
    """It exists already and was not overwritten."""


class Altered(Rejected):
    """The daemon accepted a change but made another one; ``asked`` and ``got`` say which."""

    def __init__(self, message: str, asked: str, got: str) -> None:
        super().__init__(message, 200)
        self.asked = asked
        self.got = got


def safe_url(url: str) -> str:
    """Return ``url`` as a message may show it: no user info, no fragment, of the query only ``op``."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        op = [value for key, value in parse_qsl(parts.query) if key == "op"]
    except ValueError:
        return "(an address that is no URL)"
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    shown = f"{scheme}{host}{parts.path}" + (f"?op={op[0]}" if op else "")
    return "".join(letter if letter.isprintable() else "?" for letter in shown)[:400]


def excerpt(text: str | bytes) -> str:
    """Return the beginning of a foreign text in one printable line, with secrets blotted out."""
    if isinstance(text, bytes):
        text = text[: 8 * EXCERPT].decode("utf-8", "replace")
    line = " ".join(text[: 8 * EXCERPT].split())
    line = _USER_INFO.sub("", _SECRET.sub(r"\1\2***", line))
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= EXCERPT else line[: EXCERPT - 3] + "..."


def explain(url: str, problem: str, expected: str = "", remedy: str = "") -> str:
    """Put a message together: where, what, what was expected, what to do."""
    parts = [problem, f"expected {expected}" if expected else "", remedy]
    return f"{safe_url(url)}: " + "; ".join(part for part in parts if part)


def is_safe_mode(remote: str, text: str) -> bool:
    """Say whether an answer's Java exception means safe mode (in a pair of NameNodes it comes wrapped)."""
    wrapped = remote in ("RetriableException", "IOException", "") and "safe mode" in text.lower()
    return remote == "SafeModeException" or wrapped


def safe_mode(url: str) -> SafeMode:
    """Return the problem, with the command that shows it."""
    remedy = "it goes on when that ends, see: hdfs dfsadmin -safemode get"
    return SafeMode(explain(url, "HDFS is in safe mode, nothing can be written", "", remedy))
