"""Convert answers of a daemon to errors.

::

    YarnctlError
    ├── Unreachable             no usable answer
    │   ├── BadAnswer           an answer that is not in Hadoop's form
    │   ├── Standby             a standby daemon answers, and no active one is known
    │   ├── SafeMode            HDFS is in safe mode: it can be read, but not written
    │   └── Uncertain           a change was sent and not answered: it may have been made
    └── Rejected                the daemon understood and refused (HTTP 4xx, or 5xx to a change)
        ├── Missing             the requested thing does not exist (404)
        ├── ExistsAlready       the file exists already (exclusive create, rename)
        └── Altered             the daemon accepted a change but made another one

A status alone proves nothing (facts, section 9): a standby, a gateway and a proxy all answer 200 with pages.
An answer counts only if its type is JSON and it has the requested shape. An error's message names the URL,
what was expected and what to do, and never a secret: user info, query values and anything like a token are
left out.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder, Unreadable

EXCERPT = 160  # Characters of a foreign text that a message may quote

_SECRET = re.compile(
    r"(?i)\b(delegation|token|signature|hadoop\.auth|password|passwd|secret|authorization)(\"?\s*[=:]\s*)"
    r"(?:\"[^\"]*\"|(?:(?:basic|bearer|negotiate)\s+)?[^\s&,;<>\"]+)"
)
_USER_INFO = re.compile(r"(?<=//)[^/@\s]+@")


class BadAnswer(Unreachable):
    """An answer that is not Hadoop's: HTML, an incomplete body, another service."""


class Standby(Unreachable):
    """A standby answers and no active daemon is known to it."""


class SafeMode(Unreachable):
    """HDFS is in safe mode and rejects changes until that ends."""


class Uncertain(Unreachable):
    """A change was sent and not answered; only reading the state again shows whether it was made."""


class Rejected(YarnctlError):
    """The daemon refused a request: HTTP ``status``, Java exception ``remote``, ``fault`` in a few words."""

    fault = ""

    def __init__(self, message: str, status: int = 0, remote: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.remote = remote
        if status == 401:  # name and authentication are the user's input
            self.exit_status = BadInput.exit_status


class Missing(Rejected):
    """The requested thing does not exist (any more)."""


class ExistsAlready(Rejected):
    """The file exists already and was not overwritten."""


class Altered(Rejected):
    """The daemon accepted a change but made another one; ``asked`` and ``got`` are both values."""

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
        return "(an invalid URL)"
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    shown = f"{scheme}{host}{parts.path}" + (f"?op={op[0]}" if op else "")
    if not shown.isprintable():
        shown = "".join(letter if letter.isprintable() else "?" for letter in shown)
    return shown[:400]


def excerpt(text: str | bytes) -> str:
    """Return the beginning of a foreign text in one printable line, without secrets."""
    if isinstance(text, bytes):
        text = text[: 8 * EXCERPT].decode("utf-8", "replace")
    line = " ".join(text[: 8 * EXCERPT].split())
    line = _USER_INFO.sub("", _SECRET.sub(r"\1\2***", line))
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= EXCERPT else line[: EXCERPT - 3] + "..."


def explain(url: str, problem: str, expected: str = "", remedy: str = "") -> str:
    """Compose a message: where, what, what was expected, what to do."""
    parts = [problem, f"expected {expected}" if expected else "", remedy]
    return f"{safe_url(url)}: " + "; ".join(part for part in parts if part)


def is_safe_mode(remote: str, text: str) -> bool:
    """Return whether an answer's Java exception means safe mode (in a pair of NameNodes it comes wrapped)."""
    wrapped = remote in ("RetriableException", "IOException", "") and "safe mode" in text.lower()
    return remote == "SafeModeException" or wrapped


def safe_mode(url: str) -> SafeMode:
    """Return the problem, with the command that shows it."""
    remedy = "wait until hdfs dfsadmin -safemode get prints OFF"
    return SafeMode(explain(url, "HDFS is in safe mode and rejects writes", "", remedy))


JSON = "application/json"
XML = "application/xml"
NO_ACTIVE = b"There is no active RM right now"
PASS_ON = ("StandbyException", "RetriableException")


class HttpAnswer(msgspec.Struct, frozen=True):
    """An answer. ``kind`` is the media type without parameters; ``url`` is safe to show.

    ``challenge``: the authentication that a 401 requires.
    """

    status: int
    kind: str
    body: bytes
    url: str
    location: str = ""
    challenge: str = ""

    @property
    def is_json(self) -> bool:
        """Whether the answer's type is JSON, or it has no type and looks like JSON."""
        if self.kind:
            return self.kind.endswith("/json") or self.kind.endswith("+json")
        return self.body[:256].lstrip()[:1] in (b"{", b"[")


def bad_answer(answer: HttpAnswer, problem: str, expected: str, remedy: str = "") -> BadAnswer:
    """Return the error of an answer that cannot be used."""
    found = BadAnswer(explain(answer.url, problem, expected, remedy))
    found.fault = problem
    return found


def decoded(answer: HttpAnswer, decoder: OneDecoder[Any] | ListDecoder[Any]) -> Any:
    """Decode a 200; raises BadAnswer for anything else, with a description of it."""
    if answer.status != 200:
        remedy = USE_BASIC if KNOX_LOGIN in answer.location else ""
        raise bad_answer(answer, f"HTTP {answer.status}{_target(answer)}", decoder.words, remedy)
    if not answer.is_json:
        problem, remedy = _peek(answer)
        raise bad_answer(answer, problem, decoder.words, remedy)
    try:
        return decoder.read(answer.body)
    except Unreadable as error:
        remedy = "check that this is the right daemon"
        raise bad_answer(answer, excerpt(str(error)), decoder.words, remedy) from None


def _target(answer: HttpAnswer) -> str:
    return f" to {safe_url(answer.location)}" if answer.location else ""


def _peek(answer: HttpAnswer) -> tuple[str, str]:
    """Return the probable kind of a page that is not JSON, and what to do about it."""
    text = answer.body[:65536].lower()
    if b"proxyapproved" in text or b"not owned by you" in text or b"warning: the following page" in text:
        return "the proxy's warning page", "log in as the application's owner"
    if b"standby rm" in text or b"can not find any active rm" in text:
        return "a standby's page", "wait, or use the address of the active daemon"
    if b"<form" in text and (b"password" in text or b"login" in text):
        return (
            "a login page",
            "set the user or Kerberos, or use the address of the daemon instead of a gateway",
        )
    what = "an HTML page" if "html" in answer.kind else f"an answer of type {answer.kind or '(none)'}"
    return what, "check that this is the right daemon and port"


def judge(answer: HttpAnswer, method: str, daemon: str) -> None:
    """Raise an error for a refusal, an answer of a standby, or a temporary state."""
    if answer.body[:256].lstrip().startswith(NO_ACTIVE):
        raise Standby(explain(answer.url, f"no {daemon} is active", "", "wait for the failover to end"))
    if answer.status < 400:
        return
    remote = _remote(answer)
    said = excerpt(remote.message or ("" if "html" in answer.kind else answer.body)) or "(nothing)"
    problem = f"HTTP {answer.status} {remote.exception}: {said}".replace(" :", ":")
    if is_safe_mode(remote.exception, remote.message):
        raise safe_mode(answer.url)
    if remote.exception in PASS_ON:
        raise Standby(explain(answer.url, f"{remote.exception} from a {daemon}", "", "wait for the failover"))
    if answer.status >= 500 and method == "GET":
        raise bad_answer(answer, problem, "an answer", f"see the {daemon}'s log")
    if answer.status in (502, 503, 504) and not remote.exception:  # with one, Hadoop itself refuses
        raise Uncertain(explain(answer.url, problem, "an answer", "check the state before you repeat it"))
    kind: type[Rejected] = Rejected
    if answer.status == 404 or remote.exception in ("FileNotFoundException", "NotFoundException"):
        kind = Missing
    elif remote.exception == "FileAlreadyExistsException":
        kind = ExistsAlready
    is_basic = answer.status == 401 and answer.challenge.lower().startswith("basic")
    said = explain(answer.url, problem, "", _BASIC if is_basic else _REMEDIES.get(answer.status, ""))
    rejected = kind(said, answer.status, remote.exception)
    rejected.fault = problem
    raise rejected


KNOX_LOGIN = "/knoxsso/"
USE_BASIC = "use a topology of Knox with HTTP Basic: KnoxSSO's login page needs a browser"
_BASIC = "set user and password_file: this gateway requires HTTP Basic; check both if they are set"
_REMEDIES = {
    401: "set user, or authentication = kerberos with a valid ticket (klist, kinit)",
    403: "check the ACLs; set user, or allow anonymous callers",
    405: "use another version or address: this daemon or proxy does not support the method",
    415: "use another version: this daemon requires another content type",
}


def _remote(answer: HttpAnswer) -> yarn.RemoteException:
    try:
        return yarn.REMOTE_EXCEPTION.read(answer.body) if answer.is_json else yarn.RemoteException()
    except Unreadable:
        return yarn.RemoteException()
