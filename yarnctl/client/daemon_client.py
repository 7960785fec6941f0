"""The client: one method for each operation of the OpenAPI document, by the operation's id.

```python
address = DaemonAddress("https://yarnctl.example:8188", token="...", authorities="/etc/ssl/site.pem")
client = DaemonClient(address)
for application in client.applications(waiting=True).items:
    print(application.application, application.waiting.text)
```

Every method raises BadInput (address, parameter, permission), Different (unknown object) and Unreachable
(no usable answer; a change may have been made). Lists join all pages, up to ``limit`` items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage
from yarnctl.api.cluster_answers import (
    Application,
    Commanded,
    Health,
    OccupancySample,
    Readiness,
    SnapshotOut,
)
from yarnctl.api.decision_answers import DecisionDetail, Explained, RefusalOut
from yarnctl.api.event_answers import EventOut
from yarnctl.api.market_answers import AccountList, AccountOut, QuoteOut
from yarnctl.api.order_answers import BudgetOut, CheckpointOut, DecisionSummary, ReclaimList, TimeLostOut
from yarnctl.api.paged import Page
from yarnctl.api.placement_answers import RunPage
from yarnctl.api.report_answers import ReportOut
from yarnctl.api.status_answers import StatusOut
from yarnctl.api.what_if_answers import WhatIfOut
from yarnctl.client.requesting import ANSWER_S, SHOWN_MAX, DaemonAddress, Unanswered, received, send
from yarnctl.errors import BadInput, Unreachable
from yarnctl.units import decode_vector

PAGE_MAX = 500  # Items that the daemon returns in one answer
LIMIT = 1_000_000
EVENTS_WAIT_MS = 20_000
WHAT_IF_S = 40.0

Kind = TypeVar("Kind", bound=msgspec.Struct)
Pages = TypeVar("Pages", bound="Page[Any] | AdmissionPage | RunPage")
Given = Mapping[str, object]


class DaemonClient:
    """A client of one daemon. It keeps no connection, so threads can share it."""

    def __init__(self, daemon: DaemonAddress) -> None:
        self.daemon = daemon

    # --- the loop ---------------------------------------------------------------------------------

    def healthz(self) -> Health:
        """Return that the loop publishes; raises Busy if it is stuck or has stopped."""
        return self._get(Health, "healthz")

    def readyz(self) -> Readiness:
        """Return that the cluster answers; raises Busy if not."""
        return self._get(Readiness, "readyz")

    def get_metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self._text("metrics", {}, 0)

    def pause_loop(self, why: str, for_ms: int | None = None) -> Commanded:
        """Pause the loop after the current tick; with ``for_ms`` the pause ends by itself."""
        return self._post(Commanded, "v1/loop/pause", {"why": why, "for_ms": for_ms})

    def continue_loop(self) -> Commanded:
        """End the operator's pause and the pauses of all queues."""
        return self._post(Commanded, "v1/loop/continue")

    def resume_queue(self, queue: str) -> Commanded:
        """End the pause of one queue, by its path or the end of its path."""
        return self._post(Commanded, f"v1/queues/{part(queue)}/resume")

    # --- the cluster and the orders ---------------------------------------------------------------

    def status(self) -> StatusOut:
        """Return the daemon on one screen."""
        return self._get(StatusOut, "v1/status")

    def what_if(self, question: Given) -> WhatIfOut:
        """Return what the controller would do: the fields of ``WhatIfQuestion`` in the OpenAPI document."""
        return self._read(WhatIfOut, send(self.daemon, "POST", "v1/what-if", None, question, WHAT_IF_S))

    def snapshot(self, since: int | None = None, wait_ms: int | None = None) -> SnapshotOut:
        """Return the summary; with a version ``since`` and ``wait_ms`` as soon as there is a newer one."""
        return self._get(SnapshotOut, "v1/snapshot", {"since": since, "wait_ms": wait_ms}, wait_ms or 0)

    def applications(
        self,
        queue: str | None = None,
        user: str | None = None,
        waiting: bool | None = None,
        limit: int = LIMIT,
    ) -> Page[Application]:
        """Return the unfinished applications, by id."""
        filters = {"queue": queue, "user": user, "waiting": waiting}
        return self._pages(Page[Application], "v1/applications", filters, limit)

    def reclaims(
        self,
        queue: str | None = None,
        victim: str | None = None,
        state: str | None = None,
        retired: bool = False,
        limit: int = LIMIT,
    ) -> Page[ReclaimList]:
        """Return the reclaim lists, by application."""
        filters = {"queue": queue, "victim": victim, "state": state, "retired": retired}
        return self._pages(Page[ReclaimList], "v1/reclaims", filters, limit)

    def reclaims_of(
        self, application: str, victim: str | None = None, state: str | None = None, retired: bool = True
    ) -> ReclaimList:
        """Return the reclaim list of one application."""
        filters = {"victim": victim, "state": state, "retired": retired}
        return self._get(ReclaimList, f"v1/reclaims/{part(application)}", filters)

    def decisions(
        self,
        application: str | None = None,
        queue: str | None = None,
        victim: str | None = None,
        state: str | None = None,
        limit: int = LIMIT,
    ) -> Page[DecisionSummary]:
        """Return the newest decisions, newest first."""
        filters = {"application": application, "queue": queue, "victim": victim, "state": state}
        return self._pages(Page[DecisionSummary], "v1/decisions", filters, limit)

    def decision(self, number: int) -> DecisionDetail:
        """Return one decision with its candidates."""
        return self._get(DecisionDetail, f"v1/decisions/{number}")

    def refusals(
        self, application: str | None = None, queue: str | None = None, limit: int = LIMIT
    ) -> Page[RefusalOut]:
        """Return the newest refusals, newest first."""
        filters = {"application": application, "queue": queue}
        return self._pages(Page[RefusalOut], "v1/refusals", filters, limit)

    def explanation(self, wanted: str) -> Explained:
        """Return all that the daemon remembers of an application, container, attempt, order or decision."""
        return self._get(Explained, f"v1/explanations/{part(wanted)}")

    def checkpoints(
        self, application: str | None = None, attempt: str | None = None, limit: int = LIMIT
    ) -> Page[CheckpointOut]:
        """Return the newest checkpoints, newest first."""
        filters = {"application": application, "attempt": attempt}
        return self._pages(Page[CheckpointOut], "v1/checkpoints", filters, limit)

    def budgets(self, limit: int = LIMIT) -> Page[BudgetOut]:
        """Return the loss budgets."""
        return self._pages(Page[BudgetOut], "v1/budgets", {}, limit)

    def time_lost(self, limit: int = LIMIT) -> Page[TimeLostOut]:
        """Return for which causes production waited."""
        return self._pages(Page[TimeLostOut], "v1/time-lost", {}, limit)

    def report(self, since_ms: int | None = None) -> ReportOut:
        """Return what orders brought and cost since an instant (None: since a day before now)."""
        return self._get(ReportOut, "v1/report", {"since_ms": since_ms})

    def occupancy(self, since_ms: int | None = None, until_ms: int | None = None) -> Page[OccupancySample]:
        """Return the usage by role over time, oldest first."""
        return self._get(Page[OccupancySample], "v1/occupancy", {"since_ms": since_ms, "until_ms": until_ms})

    def events(self, cursor: str | None = None, limit: int | None = None) -> Iterator[EventOut]:
        """Yield what happens after ``cursor`` ("0": from the oldest that is kept; None: from now on).

        Without ``limit`` it ends only with an error. A lost connection continues at the last event.
        """
        left, wait_ms = limit, 0
        while left is None or left > 0:
            # An answer is read when it has ended: so it ends where the log ends, or with the next event
            most = 1 if wait_ms else PAGE_MAX
            given = {"cursor": cursor, "limit": min(most, left or most), "wait_ms": wait_ms}
            try:
                text = self._text("v1/events", given, wait_ms)
            except Unanswered as problem:
                if cursor is None or not problem.connected:
                    raise
                continue
            wait_ms = EVENTS_WAIT_MS
            for line in text.split("\n"):
                name, _, value = line.partition(": ")
                if name == "" and value.startswith("from "):
                    cursor = value.removeprefix("from ")
                elif name == "data" and value != "{}":
                    event = self._read(EventOut, msgspec.json.decode(value))
                    cursor, wait_ms = event.cursor, 0
                    left = None if left is None else left - 1
                    yield event

    # --- admissions and the market ----------------------------------------------------------------

    def admissions(
        self, state: str | None = None, user: str | None = None, queue: str | None = None, limit: int = LIMIT
    ) -> AdmissionPage:
        """Return open admissions and the last ended ones, newest first, and the gate."""
        filters = {"state": state, "user": user, "queue": queue}
        return self._pages(AdmissionPage, "v1/admissions", filters, limit)

    def get_admission(self, admission: str, wait_ms: int | None = None) -> AdmissionOut:
        """Return one admission, with ``wait_ms`` as soon as it no longer waits."""
        path = f"v1/admissions/{part(admission)}"
        return self._get(AdmissionOut, path, {"wait_ms": wait_ms}, wait_ms or 0)

    def request_admission(self, request: Given) -> AdmissionOut:
        """Request an admission: the fields of ``AdmissionRequest`` in the OpenAPI document."""
        return self._post(AdmissionOut, "v1/admissions", request)

    def renew_admission(self, admission: str, wait_ms: int = 0) -> AdmissionOut:
        """Renew the lease of a waiting admission, and wait for its decision."""
        path, answer_s = f"v1/admissions/{part(admission)}/renew", wait_ms / 1000 + ANSWER_S
        return self._read(AdmissionOut, send(self.daemon, "POST", path, {"wait_ms": wait_ms}, None, answer_s))

    def withdraw_admission(self, admission: str, answer_s: float = ANSWER_S) -> AdmissionOut:
        """Withdraw an admission, unless its application is in YARN already."""
        path = f"v1/admissions/{part(admission)}"
        return self._read(AdmissionOut, send(self.daemon, "DELETE", path, answer_s=answer_s))

    def runs(self, application: str | None = None, limit: int = LIMIT) -> RunPage:
        """Return the known runs of applications, by which their times are predicted."""
        return self._pages(RunPage, "v1/runs", {"application": application}, limit)

    def quote(self, job: Given) -> QuoteOut:
        """Price deadlines of a job: the fields of ``QuoteIn`` in the OpenAPI document."""
        return self._post(QuoteOut, "v1/quotes", job)

    def accounts(self) -> AccountList:
        """Return the accounts, by name."""
        return self._get(AccountList, "v1/accounts")

    def get_account(self, account: str) -> AccountOut:
        """Return one account."""
        return self._get(AccountOut, f"v1/accounts/{part(account)}")

    def open_account(self, name: str, daily_mtokens: int = 0, cap_mtokens: int = 0) -> AccountOut:
        """Open an account."""
        account = {"name": name, "daily_mtokens": daily_mtokens, "cap_mtokens": cap_mtokens}
        return self._post(AccountOut, "v1/accounts", account)

    def credit_account(self, account: str, mtokens: int) -> AccountOut:
        """Credit tokens to an account."""
        return self._post(AccountOut, f"v1/accounts/{part(account)}/credit", {"mtokens": mtokens})

    # --- answers ----------------------------------------------------------------------------------

    def _get(self, kind: type[Kind], path: str, parameters: Given | None = None, wait_ms: int = 0) -> Kind:
        answer_s = ANSWER_S + wait_ms / 1000
        return self._read(kind, send(self.daemon, "GET", path, parameters, None, answer_s))

    def _post(self, kind: type[Kind], path: str, body: Given | None = None) -> Kind:
        return self._read(kind, send(self.daemon, "POST", path, None, body))

    def _text(self, path: str, parameters: Given, wait_ms: int) -> str:
        answer_s = ANSWER_S + wait_ms / 1000
        got = received(self.daemon, "GET", path, parameters, None, answer_s)
        if got.status != 200:
            send(self.daemon, "GET", path, parameters, None, answer_s)  # raises the error
        return got.body.decode()

    def _pages(self, kind: type[Pages], path: str, filters: Given, limit: int) -> Pages:
        page = self._get(kind, path, {**filters, "limit": min(PAGE_MAX, limit)})
        items = page.items
        while page.next is not None and len(items) < limit:
            more = {**filters, "limit": min(PAGE_MAX, limit - len(items)), "cursor": page.next}
            page = self._get(kind, path, more)
            if not page.items:
                break
            items = [*items, *page.items]
        return msgspec.structs.replace(page, items=items)

    def _read(self, kind: type[Kind], answer: object) -> Kind:
        try:
            return msgspec.convert(answer, kind, strict=False, dec_hook=decode_vector)
        except msgspec.ValidationError as error:
            problem = f"{self.daemon.url}: unexpected answer ({error})"
            raise Unreachable(f"{problem}; use the same version of yarnctl for daemon and command") from None


def part(name: str) -> str:
    """Return an id as one part of a path; raises BadInput."""
    if not name.strip() or name in (".", "..") or len(name) > SHOWN_MAX:
        raise BadInput(
            "ID", f"invalid ID {name[:40]!r}", "see yarnctl reclaims, decisions, apps and admissions"
        )
    return quote(name, safe="")
