"""The client of an application's own program through YARN's web proxy (facts, section 2).

A master that does not answer (not started, ended, restarting) gives ``Absent``, never an exception. Any
answer that is not JSON, and every redirect, means Absent: for a master that has ended, the proxy returns its
own pages. Only a refused or uncertain *change* raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.http.answers import HttpAnswer, Missing, Rejected, Uncertain, explain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder

Made = TypeVar("Made")

_APPLICATION = re.compile(r"application_[0-9]+_[0-9]+")


class Absent(msgspec.Struct, frozen=True):
    """Why a master has not answered, as text; ``at``: addresses that could not be reached, ``fault``: why."""

    why: str
    at: str = ""
    fault: str = ""


def absent(transport: Transport, problem: Unreachable | Rejected) -> Absent:
    """Return the reason of a failed request to a master."""
    return Absent(str(problem), " and ".join(transport.addresses), problem.fault or str(problem))


def approved(transport: Transport, application: str) -> dict[str, str]:
    """Return the query that passes the proxy's warning page; raises BadInput for an invalid id."""
    if _APPLICATION.fullmatch(application) is None:
        raise BadInput(
            f"id {application[:60]!r}", "not an application id", "use the form application_<time>_<number>"
        )
    if transport.identity.method == "simple":
        return {}
    transport.keep_cookie(f"checked_{application}", "true", f"/proxy/{application}")
    return {"proxyapproved": "true"}  # else the proxy warns all but the owner


class ProxiedClient:
    """An application's own program, at a path behind YARN's web proxy. The constructor sends nothing."""

    def __init__(self, transport: Transport, application: str, path: str) -> None:
        self._query = approved(transport, application)
        self.application = application
        self._transport = transport
        self._root = f"/proxy/{application}{path}"

    def _read(
        self, path: str, decoder: OneDecoder[Any] | ListDecoder[Any], query: dict[str, str] | None = None
    ) -> Any:
        try:
            return self._transport.read(self._root + path, decoder, {**self._query, **(query or {})})
        except (Unreachable, Rejected) as problem:
            return absent(self._transport, problem)

    def _made(self, to: Callable[[Any], Made], answer: Any) -> Made | Absent:
        """Return an answer of ``_read`` converted by ``to``."""
        return answer if isinstance(answer, Absent) else to(answer)

    def _put(self, path: str, body: bytes) -> HttpAnswer | Absent:
        """Send a change; Absent: it was not made. Raises Rejected and Uncertain."""
        try:
            answer = self._transport.change("PUT", self._root + path, body, query=self._query)
        except Uncertain:
            raise
        except (Missing, Unreachable) as problem:
            return Absent(str(problem))
        if answer.status >= 300 or "html" in answer.kind:
            return Absent(explain(answer.url, f"HTTP {answer.status} {answer.kind}", "the program's JSON"))
        return answer
