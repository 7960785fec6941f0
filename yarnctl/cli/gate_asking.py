"""One admission request of a job, from sending it to the verdict.

Law: a request is repeated under one key, so that a lost answer requests nothing twice. A command that ends
withdraws its request; where it cannot, the daemon does so when the lease is over. A daemon that is away for a
limited time (a restart) is waited for: it has recorded which requests wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage, GateOut
from yarnctl.cli.asking import Busy, Unanswered, ask, part, send, shown
from yarnctl.errors import BadInput, Unreachable, YarnctlError

PATH = "v1/admissions"
UNDECIDED = "undecided"
"""The code of a plan on which no round has decided yet."""
TRIES = 3
"""The interval of tries while no daemon has answered yet."""
PAUSE_S = 1.0
UNREACHABLE_S = 60.0
"""So long a daemon may be unreachable while a request waits."""
SLOW_S = 1.5
"""After so long without an answer it is said what is waited for."""
FIRST_MS, WAIT_MAX_MS = 1_500, 10_000
"""How long an answer may take: the first, in which the first round is held, and all others."""
ROUND_MS = 3_000
"""By then the first round has been held, if the daemon is well."""
ANSWER_SLACK_S = 15.0
WITHDRAW_S = 5.0


class ProgressReport(Protocol):
    """Prints what the request waits for, once until it changes."""

    def waits(self, seen: AdmissionOut, problem: str) -> None:
        """Report an answer, and what the gate itself waits for."""

    def waiting(self, problem: str) -> None:
        """Report why the daemon has not accepted the request yet."""

    def unreachable(self, said: str) -> None:
        """Report that the daemon does not answer, or another program does."""

    def back(self, said: str) -> None:
        """Report that it answers again."""


class GateRequest:
    """One job that asks at the gate of the daemon at ``url``. ``raw`` is the daemon's last answer."""

    def __init__(self, url: str, request: Mapping[str, Any], key: str, tell: ProgressReport) -> None:
        self.url = url
        self._body = {**request, "request_key": key}
        self._report = tell
        self._interval_s = threading.Event()
        self._met = False
        self._unreachable_since_s: float | None = None
        self.raw: dict[str, Any] = {}
        self.latest: AdmissionOut | None = None

    def begin(self, wait: bool = True) -> AdmissionOut:
        """Ask, until it is written down; without ``wait`` not longer than a daemon needs that is well.

        Raises BadInput (a gate that is off, a token that is missing), Unreachable (Busy: it cannot take it).
        """
        tries = 0
        while True:
            tries += 1
            try:
                with Meanwhile(self._why_not_yet, self._report.waiting):
                    return self._answered_again(send("POST", self.url, PATH, body=self._body))
            except Busy as error:
                if not wait:
                    raise
                self._answered()
                self._report.waiting(self._why_not_yet() or error.reason)
            except Unreachable as error:
                self._met |= not isinstance(error, Unanswered) or error.connected
                if tries >= TRIES and not (wait and self._met):
                    raise
                if wait and self._met:
                    self._missed(error)
            self._interval_s.wait(PAUSE_S)

    def decided(self, wait: bool = True) -> AdmissionOut:
        """Wait until it is decided; without ``wait`` for one round."""
        seen = self.latest
        assert seen is not None
        wait_ms = FIRST_MS if wait else ROUND_MS
        if wait and seen.state == "waiting" and seen.plan.reason_code != UNDECIDED:
            self._report.waits(seen, self._problem())
        while seen.state == "waiting":
            asked_s = time.monotonic()
            try:
                seen = self._renewed(seen, wait_ms)
                if seen.state == "waiting" and wait:
                    self._report.waits(seen, self._problem())
            except Unreachable as error:
                if not wait:
                    raise
                self._missed(error)
            if not wait:
                break
            wait_ms = min(WAIT_MAX_MS, max(1_000, seen.lease_ms // 3))
            if seen.state == "waiting" and time.monotonic() - asked_s < PAUSE_S:
                self._interval_s.wait(PAUSE_S)  # where too many wait, it is answered at once
        return seen

    def _missed(self, error: Unreachable) -> None:
        """Report an unreachable daemon; raise the error when it has lasted too long."""
        now_s = time.monotonic()
        since_s = self._unreachable_since_s = (
            now_s if self._unreachable_since_s is None else self._unreachable_since_s
        )
        if now_s - since_s > UNREACHABLE_S:
            raise error
        address = urlsplit(self.url).netloc
        silent = f"{address} does not answer ({error.reason})" if isinstance(error, Unanswered) else ""
        self._report.unreachable(silent or str(error))

    def _answered(self) -> None:
        self._met = True
        if self._unreachable_since_s is not None:
            self._unreachable_since_s = None
            self._report.back(f"{urlsplit(self.url).netloc} answers again")

    def _problem(self) -> str:
        """Return what keeps the gate from deciding, as far as it is known."""
        gate = gate_at(self.url)
        return "" if gate is None else gate.problem or self._unmeasured(gate)

    def _why_not_yet(self) -> str:
        return self._problem() or "the daemon has not come to it yet"

    @staticmethod
    def _unmeasured(gate: GateOut) -> str:
        return "how large the cluster is is not known yet" if gate.capacity is None else ""

    def withdraw(self) -> str:
        """Take the request back; "" or why that could not be done (then the lease ends it)."""
        if not self.is_open:
            return ""
        assert self.latest is not None
        try:
            withdraw(self.url, self.latest.id)
        except YarnctlError as error:
            return str(getattr(error, "reason", error))
        return ""

    @property
    def is_open(self) -> bool:
        """Say whether there is something to take back."""
        return self.latest is not None and self.latest.state in ("waiting", "admitted")

    def _renewed(self, seen: AdmissionOut, wait_ms: int) -> AdmissionOut:
        path, answer_s = f"{PATH}/{part(seen.id)}/renew", wait_ms / 1000 + ANSWER_SLACK_S
        return self._answered_again(send("POST", self.url, path, {"wait_ms": wait_ms}, answer_s=answer_s))

    def _answered_again(self, answer: dict[str, Any]) -> AdmissionOut:
        self.raw = answer
        self.latest = shown(AdmissionOut, answer, self.url)
        self._answered()
        return self.latest


class Meanwhile:
    """If the block takes long, find out why (in a thread of its own) and report it."""

    def __init__(self, why: Callable[[], str], tell: Callable[[str], None]) -> None:
        self._why, self._report = why, tell
        self._lock = threading.Lock()
        self._over = False
        self._timer = threading.Timer(SLOW_S, self._ask)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True

    def _ask(self) -> None:
        why = self._why()
        with self._lock:
            if not self._over:
                self._report(why)


def withdraw(url: str, admission: str) -> dict[str, Any]:
    """Take an admission back and return it as it is then.

    Raises Different (not known), BadInput (its application runs; the token), Unreachable.
    """
    return send("DELETE", url, f"{PATH}/{part(admission)}", answer_s=WITHDRAW_S)


def gate_at(url: str) -> GateOut | None:
    """Return the gate of the daemon at ``url``; None if there is none, or it is unreachable."""
    try:
        return shown(AdmissionPage, ask(url, PATH, {"limit": 1}), url).gate
    except YarnctlError:
        return None


def containers_of_last_run(
    url: str, user: str, kind: str, is_same: Callable[[str], bool], remedy: str
) -> int:
    """Return with how many containers the user's last job of this kind and name asked.

    Raises BadInput where that is unknown (with ``remedy``), Unreachable.
    """
    page = shown(AdmissionPage, ask(url, PATH, {"user": user, "limit": 500}), url)
    for each in page.items:
        if each.request.kind == kind and is_same(each.request.name):
            return each.request.containers
    raise BadInput("--containers", "nobody knows how many containers the job can use at once", remedy)
