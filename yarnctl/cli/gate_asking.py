"""One admission request of a job, from sending it to the decision.

* A request is repeated under one key, so that a lost answer does not make a second request.
* A command that ends withdraws its request; where it cannot, the daemon does when the lease expires.
* The command waits for an unreachable daemon for a limited time: a restart keeps recorded requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from yarnctl.api.admission_answers import AdmissionOut, GateOut
from yarnctl.cli.asking import client_at
from yarnctl.client.requesting import Busy, Unanswered
from yarnctl.errors import BadInput, Unreachable, YarnctlError

UNDECIDED = "undecided"  # The reason code of a plan before the first decision
TRIES = 3  # The number of tries while no daemon has answered yet
PAUSE_S = 1.0  # The pause between two tries
UNREACHABLE_S = 60.0  # The maximum time that a daemon may be unreachable while a request waits
SLOW_S = 1.5  # After this time without an answer, the reason is reported
FIRST_MS, WAIT_MAX_MS = 1_500, 10_000  # The daemon may hold back its first and later answers
ROUND_MS = 3_000  # A daemon without problems has decided for the first time by then
WITHDRAW_S = 5.0


class ProgressReport(Protocol):
    """Prints what the request waits for, whenever that changes."""

    def waits(self, admission: AdmissionOut, problem: str) -> None:
        """Report an answer, and what admission control itself waits for."""

    def waiting(self, problem: str) -> None:
        """Report why the daemon has not recorded the request yet."""

    def unreachable(self, problem: str) -> None:
        """Report that the daemon does not answer, or another program does."""

    def back(self, note: str) -> None:
        """Report that it answers again."""


class GateRequest:
    """One admission request to the daemon at ``url``; ``latest`` is its last answer."""

    def __init__(self, url: str, body: Mapping[str, Any], key: str, report: ProgressReport) -> None:
        self.url = url
        self._client = client_at(url)
        self._body = {**body, "request_key": key}
        self._report = report
        self._interval_s = threading.Event()
        self._met = False
        self._unreachable_since_s: float | None = None
        self.latest: AdmissionOut | None = None

    def begin(self, wait: bool = True) -> AdmissionOut:
        """Send the request until it is recorded; without ``wait`` only ``TRIES`` times.

        Raises BadInput (admission control disabled, token missing), Unreachable (Busy: not accepted now).
        """
        tries = 0
        while True:
            tries += 1
            try:
                with Meanwhile(self._why_not_yet, self._report.waiting):
                    return self._answered_again(self._client.request_admission(self._body))
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
        """Wait for the decision and return the admission; without ``wait`` for one round only."""
        admission = self.latest
        assert admission is not None
        wait_ms = FIRST_MS if wait else ROUND_MS
        if wait and admission.state == "waiting" and admission.plan.reason_code != UNDECIDED:
            self._report.waits(admission, self._problem())
        while admission.state == "waiting":
            sent_s = time.monotonic()
            try:
                admission = self._answered_again(self._client.renew_admission(admission.id, wait_ms))
                if admission.state == "waiting" and wait:
                    self._report.waits(admission, self._problem())
            except Unreachable as error:
                if not wait:
                    raise
                self._missed(error)
            if not wait:
                break
            wait_ms = min(WAIT_MAX_MS, max(1_000, admission.lease_ms // 3))
            if admission.state == "waiting" and time.monotonic() - sent_s < PAUSE_S:
                self._interval_s.wait(PAUSE_S)  # with too many waiting requests, the daemon answers at once
        return admission

    def _missed(self, unreachable: Unreachable) -> None:
        """Report an unreachable daemon; raise the error after ``UNREACHABLE_S``."""
        now_s = time.monotonic()
        since_s = self._unreachable_since_s = (
            now_s if self._unreachable_since_s is None else self._unreachable_since_s
        )
        if now_s - since_s > UNREACHABLE_S:
            raise unreachable
        address = urlsplit(self.url).netloc
        silent = (
            f"{address} does not answer ({unreachable.reason})" if isinstance(unreachable, Unanswered) else ""
        )
        self._report.unreachable(silent or str(unreachable))

    def _answered(self) -> None:
        self._met = True
        if self._unreachable_since_s is not None:
            self._unreachable_since_s = None
            self._report.back(f"{urlsplit(self.url).netloc} answers again")

    def _problem(self) -> str:
        gate = gate_at(self.url)
        return "" if gate is None else gate.problem or self._unmeasured(gate)

    def _why_not_yet(self) -> str:
        return self._problem() or "the daemon has not processed it yet"

    @staticmethod
    def _unmeasured(gate: GateOut) -> str:
        return "cluster size not known yet" if gate.capacity is None else ""

    def withdraw(self) -> str:
        """Withdraw the request; return "", or why that failed (then it expires with its lease)."""
        if not self.is_open:
            return ""
        assert self.latest is not None
        try:
            self._client.withdraw_admission(self.latest.id, WITHDRAW_S)
        except YarnctlError as error:
            return str(getattr(error, "reason", error))
        return ""

    @property
    def is_open(self) -> bool:
        """Whether there is a request to withdraw."""
        return self.latest is not None and self.latest.state in ("waiting", "admitted")

    def _answered_again(self, admission: AdmissionOut) -> AdmissionOut:
        self.latest = admission
        self._answered()
        return admission


class Meanwhile:
    """Reports the reason if the block takes longer than ``SLOW_S``; a separate thread finds it."""

    def __init__(self, why: Callable[[], str], report: Callable[[str], None]) -> None:
        self._why, self._report = why, report
        self._lock = threading.Lock()
        self._over = False
        self._timer = threading.Timer(SLOW_S, self._find_reason)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True

    def _find_reason(self) -> None:
        why = self._why()
        with self._lock:
            if not self._over:
                self._report(why)


def gate_at(url: str) -> GateOut | None:
    """Return the state of admission control at ``url``; None if disabled or the daemon is unreachable."""
    try:
        return client_at(url).admissions(limit=1).gate
    except YarnctlError:
        return None


def containers_of_last_run(
    url: str, user: str, kind: str, is_same: Callable[[str], bool], remedy: str
) -> int:
    """Return the containers that the user's last such job requested; raises BadInput, Unreachable."""
    page = client_at(url).admissions(user=user, limit=500)
    for each in page.items:
        if each.request.kind == kind and is_same(each.request.name):
            return each.request.containers
    raise BadInput("--containers", "is missing, and the job's size is unknown", remedy)
