"""Answers: what came back, and what it means when it is not what was asked for.

Law: no I/O. A status alone proves nothing (facts, section 9): a standby, a gateway and a proxy all answer
200 with pages. An answer counts only if it claims to be JSON and has the shape that was asked for.
"""

from __future__ import annotations

from typing import Any

import msgspec

from yarnctl.hadoop.http.problems import (
    BadAnswer,
    ExistsAlready,
    Missing,
    Rejected,
    Standby,
    Uncertain,
    excerpt,
    explain,
    is_safe_mode,
    safe_mode,
    safe_url,
)
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder, Unreadable

JSON = "application/json"
XML = "application/xml"
NO_ACTIVE = b"There is no active RM right now"
PASS_ON = ("StandbyException", "RetriableException")


class HttpAnswer(msgspec.Struct, frozen=True):
    """What came back. ``kind`` is the media type without parameters; ``url`` is safe to show."""

    status: int
    kind: str
    body: bytes
    url: str
    location: str = ""

    @property
    def is_json(self) -> bool:
        """Whether the answer claims to be JSON, or claims nothing and looks like it."""
        if self.kind:
            return self.kind.endswith("/json") or self.kind.endswith("+json")
        return self.body[:256].lstrip()[:1] in (b"{", b"[")


def decoded(answer: HttpAnswer, shape: OneDecoder[Any] | ListDecoder[Any]) -> Any:
    """Decode a 200; raises BadAnswer for anything else, in words that say what it looks like."""
    if answer.status != 200:
        raise BadAnswer(explain(answer.url, f"HTTP {answer.status}{_target(answer)}", shape.words))
    if not answer.is_json:
        problem, remedy = _peek(answer)
        raise BadAnswer(explain(answer.url, problem, shape.words, remedy))
    try:
        return shape.read(answer.body)
    except Unreadable as error:
        raise BadAnswer(
            explain(answer.url, excerpt(str(error)), shape.words, "check that this is the right daemon")
        ) from None


def _target(answer: HttpAnswer) -> str:
    return f" to {safe_url(answer.location)}" if answer.location else ""


def _peek(answer: HttpAnswer) -> tuple[str, str]:
    """Say what a page that is not JSON probably is, and what to do about it."""
    text = answer.body[:65536].lower()
    if b"proxyapproved" in text or b"not owned by you" in text or b"warning: the following page" in text:
        return "the proxy's warning page", "log in as the application's owner"
    if b"standby rm" in text or b"can not find any active rm" in text:
        return "a standby's page", "wait, or name the active one"
    if b"<form" in text and (b"password" in text or b"login" in text):
        return "a login page", "set the user or kerberos, or ask the daemon itself and not its gateway"
    what = "an HTML page" if "html" in answer.kind else f"an answer of type {answer.kind or '(none)'}"
    return what, "check that this is the right daemon and port"


def judge(answer: HttpAnswer, method: str, daemon: str) -> None:
    """Raise for an answer that means no, not me, or not now."""
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
        raise BadAnswer(explain(answer.url, problem, "an answer", f"see the {daemon}'s log"))
    if answer.status in (502, 503, 504) and not remote.exception:  # with one, Hadoop itself has said no
        raise Uncertain(explain(answer.url, problem, "an answer", "look again before repeating it"))
    kind: type[Rejected] = Rejected
    if answer.status == 404 or remote.exception in ("FileNotFoundException", "NotFoundException"):
        kind = Missing
    elif remote.exception == "FileAlreadyExistsException":
        kind = ExistsAlready
    raise kind(
        explain(answer.url, problem, "", _REMEDIES.get(answer.status, "")), answer.status, remote.exception
    )


_REMEDIES = {
    401: "say who you are: set user, or authentication = kerberos with a valid ticket (klist, kinit)",
    403: "this caller may not: check the ACLs, and that anonymous callers are allowed or user is set",
    405: "this version or proxy does not allow the method",
    415: "this version wants another content type",
}


def _remote(answer: HttpAnswer) -> yarn.RemoteException:
    """Read Hadoop's error body, if it is one."""
    try:
        return yarn.REMOTE_EXCEPTION.read(answer.body) if answer.is_json else yarn.RemoteException()
    except Unreadable:
        return yarn.RemoteException()
