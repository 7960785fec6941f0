"""Asking the gate: one request of a job that waits, from the question to the verdict.

Law: a question is repeated under one key, so that a lost answer asks nothing twice. Who leaves withdraws;
who cannot is withdrawn by the daemon, whose lease ends. A daemon that is away for a while (a restart) is
waited for: it has written down who waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from yarnctl.cli.asking import ask, part, send, shown
from yarnctl.errors import BadInput, Unreachable, YarnctlError

PATH = "v1/admissions"
TRIES = 3
PAUSE_S = 1.0
SILENCE_S = 60.0
"""So long may a daemon be away while somebody waits."""
WAIT_MAX_MS = 20_000
ROUND_MS = 3_000
"""By then the first round has been held, if the daemon is well."""
ANSWER_SLACK_S = 15.0
WITHDRAW_S = 5.0

State = Literal["waiting", "admitted", "taken", "rejected", "expired", "withdrawn", "ended"]


class Estimate(msgspec.Struct, frozen=True):
    """What the daemon reckons with, in container-ms."""

    mean_ms: int
    stdev_ms: int
    source: str


class Asked(msgspec.Struct, frozen=True):
    """What was asked for, as far as it is read here."""

    name: str
    containers: int
    deadline_ms: int
    estimate: Estimate | None = None


class Plan(msgspec.Struct, frozen=True):
    """The verdict with what follows from it; instants on the daemon's clock."""

    verdict: Literal["admit", "defer", "reject"]
    containers: int
    deadline_at_ms: int
    reason: str
    start_at_ms: int | None = None
    finish_at_ms: int | None = None


class Admission(msgspec.Struct, frozen=True):
    """One admission, as far as it is read here."""

    id: str
    state: State
    request: Asked
    plan: Plan
    why: str = ""
    lease_ms: int = 120_000
    tags: list[str] = []
    settings: dict[str, str] = {}


class GateSeen(msgspec.Struct, frozen=True):
    """What the gate says of itself."""

    allocator: str
    capacity: int | None = None


class Page(msgspec.Struct, frozen=True):
    """Admissions, newest first."""

    items: list[Admission]
    gate: GateSeen | None = None


class Asking:
    """One job that asks at the gate of the daemon at ``url``. ``raw`` is the daemon's last answer."""

    def __init__(self, url: str, request: Mapping[str, Any], key: str) -> None:
        self.url = url
        self._body = {**request, "request_key": key}
        self._pace = threading.Event()
        self.raw: dict[str, Any] = {}
        self.seen: Admission | None = None

    def begin(self) -> Admission:
        """Ask; raises BadInput (a gate that is off, a token that is missing), Unreachable."""
        for left in range(TRIES - 1, -1, -1):
            try:
                return self._heard(send("POST", self.url, PATH, body=self._body))
            except Unreachable:
                if not left:
                    raise
                self._pace.wait(PAUSE_S)
        raise AssertionError("the last try answers or raises")

    def decided(self, tell: Callable[[Admission], object], wait: bool = True) -> Admission:
        """Wait until it is decided; without ``wait`` for one round. ``tell`` hears of each answer."""
        seen = self.seen
        assert seen is not None
        silent_since_s: float | None = None
        while seen.state == "waiting":
            tell(seen)
            wait_ms = min(WAIT_MAX_MS, max(1_000, seen.lease_ms // 3)) if wait else ROUND_MS
            try:
                seen = self._renewed(seen, wait_ms)
                silent_since_s = None
            except Unreachable:
                silent_since_s = silent_since_s or time.monotonic()
                if not wait or time.monotonic() - silent_since_s > SILENCE_S:
                    raise
                self._pace.wait(PAUSE_S)
            if not wait:
                break
        return seen

    def withdraw(self) -> str:
        """Take the request back; "" or why that could not be done (then the lease ends it)."""
        if self.seen is None or self.seen.state not in ("waiting", "admitted"):
            return ""
        try:
            send("DELETE", self.url, f"{PATH}/{part(self.seen.id)}", answer_s=WITHDRAW_S)
        except YarnctlError as error:
            return str(error)
        return ""

    def _renewed(self, seen: Admission, wait_ms: int) -> Admission:
        path, answer_s = f"{PATH}/{part(seen.id)}/renew", wait_ms / 1000 + ANSWER_SLACK_S
        return self._heard(send("POST", self.url, path, {"wait_ms": wait_ms}, answer_s=answer_s))

    def _heard(self, answer: dict[str, Any]) -> Admission:
        self.raw = answer
        self.seen = shown(Admission, answer, self.url)
        return self.seen


def capacity(url: str) -> int | None:
    """Return the gate's containers; None if nobody says."""
    try:
        gate = shown(Page, ask(url, PATH, {"limit": 1}), url).gate
    except YarnctlError:
        return None
    return gate.capacity if gate is not None else None


def containers_of_last_run(url: str, user: str, is_same: Callable[[str], bool]) -> int:
    """Return with how many containers the user's last job of this name asked.

    Raises BadInput where nobody knows, Unreachable.
    """
    page = shown(Page, ask(url, PATH, {"user": user, "limit": 500}), url)
    for each in page.items:
        if is_same(each.request.name):
            return each.request.containers
    remedy = (
        "give --containers N: its maps or its reduces, whichever are more, and one for its master"
        " (or -D mapreduce.job.maps=N)"
    )
    raise BadInput("--containers", "nobody knows how many containers the job can use at once", remedy)
