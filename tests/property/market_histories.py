"""Random histories of a market, and its laws: tokens are conserved, and nothing is served unpaid.

A history is what users, YARN, the operator and crashes do to the admission controller of the daemon. The laws
are judged by the lines of the journal as JSON, and by what the cluster of the test knows: none of the
product's accounts, payments or stores is asked. A violation is an AssertionError.
"""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

from tests.unit.daemon.at_the_desk import START_MS, AtTheDesk, Killed, Past, Yarn, asking
from yarnctl.daemon.admission.backlog import tag_of
from yarnctl.daemon.admission.request_queue import AccountCommand, WithdrawRequest
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.deciding.admission import payments
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.records import Budget, Estimate, Finished, Refund
from yarnctl.deciding.model import Action, Observation, ObservationRequest, Outcome, Snapshot, Withheld
from yarnctl.deciding.policies import FOREVER_MS
from yarnctl.deciding.prioritising import Prioritiser
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.outcomes import Observing
from yarnctl.deciding.records import Record, decode, encode
from yarnctl.deciding.settings import Settings
from yarnctl.hadoop.wire import views
from yarnctl.loop import ClusterIdentity
from yarnctl.units import Resources

PAYERS = {"ann": "analytics", "bob": "research"}
REFUNDS: tuple[Refund, ...] = ("none", "unused", "late", "both")
STEPS = 16
JUMPS_MS = (1, 1, 250, 1_100, 1_100, 5_100, 30_000, 65_000)
"""How far the clock goes in a step: less than a poll, a poll, a reservation's span."""
REPLAYED_EACH = 8
"""The records of one history of so many are compared with what was due, as replay does."""
SOLD = Settings(mode="deadlines", deadlines="sold")
SLOT = Resources(1024, 1)


class Laws:
    """The oracle: reads each line of the journal, and compares it with ``yarn``, the test's own cluster."""

    def __init__(self, yarn: Yarn) -> None:
        self.yarn = yarn
        self.balances: dict[str, int] = {}
        self.given = 0
        self.asked: dict[str, dict[str, Any]] = {}
        self.plans: dict[str, dict[str, Any]] = {}
        self.claims: dict[str, dict[str, Any]] = {}
        self.charged: dict[str, tuple[str, int]] = {}
        self.settled: dict[str, int] = {}
        self.taken: dict[str, str] = {}
        self.closed: dict[str, str] = {}
        self.used_ms: dict[str, int] = {}

    def read(self, line: bytes) -> None:
        """Read one line of the journal; raises AssertionError where it breaks a law."""
        record = json.loads(line)
        reader = getattr(self, "_" + record["type"].replace("-", "_"), None)
        if reader is not None:
            reader(record)
        assert min(self.balances.values(), default=0) >= 0, "a balance below 0"

    def _account_set(self, record: dict[str, Any]) -> None:
        self.balances.setdefault(record["account"], 0)

    def _tokens_granted(self, record: dict[str, Any]) -> None:
        assert record["mtokens"] > 0
        self.given += record["mtokens"]
        self.balances[record["account"]] += record["mtokens"]

    def _tokens_refilled(self, record: dict[str, Any]) -> None:
        self._tokens_granted(record)

    def _tokens_charged(self, record: dict[str, Any]) -> None:
        name = record["admission"]
        assert name not in self.charged, f"{name} is charged twice"
        assert name not in self.closed, f"{name} is charged after its end"
        assert record["mtokens"] == self.plans[name]["price_mtokens"] > 0, f"{name} pays another price"
        assert record["account"] == self.asked[name]["budget"]["account"], f"{name}: another account pays"
        self.charged[name] = record["account"], record["mtokens"]
        self.balances[record["account"]] -= record["mtokens"]

    def _tokens_refunded(self, record: dict[str, Any]) -> None:
        name = record["admission"]
        account, price = self.charged[name]
        assert name not in self.settled, f"{name} is settled twice"
        assert record["account"] == account, f"{name}: another account is paid back"
        assert record["mtokens"] == self._due_back(name, price), f"{name} ({self.closed.get(name)})"
        self.settled[name] = record["mtokens"]
        self.balances[account] += record["mtokens"]

    def _due_back(self, name: str, price: int) -> int:
        """Return what an admission is paid back, by the test's own cluster."""
        choice, state = self.asked[name]["budget"].get("refund", "both"), self.closed[name]
        if state != "ended":
            return price
        ended_at_ms = self.yarn.ended_at_ms[self.taken[name]]
        if ended_at_ms > self.plans[name]["deadline_at_ms"] and choice in ("late", "both"):
            return price
        work_ms, used_ms = self.claims[name]["work_ms"], self.used_ms.get(name)
        if choice in ("unused", "both") and used_ms is not None:
            return price * max(0, work_ms - used_ms) // work_ms
        return 0

    def _admission_asked(self, record: dict[str, Any]) -> None:
        estimate = record["request"].get("estimate") or {}
        assert estimate.get("given_by") != "user", "a price by its payer's own estimate"
        self.asked[record["admission"]] = {**record["request"], "user": record["user"]}

    def _admission_round(self, record: dict[str, Any]) -> None:
        names = {request["sequence"]: name for name, request in self.asked.items()}
        for plan in record["plans"]:
            if plan.get("price_mtokens") is not None:
                self.plans[names[plan["sequence"]]] = plan
        for held in record["granted"]:
            self.claims[names[held["request"]["sequence"]]] = held["claim"]

    def _admission_started(self, record: dict[str, Any]) -> None:
        name, application = record["admission"], record["application"]
        assert name not in self.closed, f"{name} is claimed after its end"
        assert application in self.submitted(name), f"{application} is not that of {name}"
        self.taken[name] = application

    def _admission_closed(self, record: dict[str, Any]) -> None:
        name = record["admission"]
        assert name not in self.closed, f"{name} ends twice"
        if record["state"] == "ended":
            assert self.taken[name] in self.yarn.ended_at_ms, f"{name} has not ended"
        elif name in self.charged:
            assert not self.submitted(name), f"{name} is {record['state']}, and its application is in YARN"
        self.closed[name] = record["state"]

    def _gate_learned(self, record: dict[str, Any]) -> None:
        names = {application: name for name, application in self.taken.items()}
        for finished in record["finished"]:
            self.used_ms[names[record["application"]]] = finished.get("computed_ms", finished["work_ms"])

    def submitted(self, name: str) -> list[str]:
        """Return the applications of an admission that its own user has submitted, also ended ones."""
        tag, user = tag_of(name).lower(), self.asked[name]["user"]
        rows = self.yarn.rows.values()
        return [row.application for row in rows if tag in row.tags.split(",") and row.user == user]

    def served(self) -> dict[str, int]:
        """Return by when each application with a paid, claimed admission is to be served."""
        return {
            application: self.claims[name]["until_ms"]
            for name, application in self.taken.items()
            if name in self.charged and name not in self.settled and name not in self.closed
        }

    def require_conserved(self, balances: dict[str, int]) -> None:
        """Compare the product's balances with these; no token is made or lost."""
        kept = sum(price for _, price in self.charged.values()) - sum(self.settled.values())
        assert sum(self.balances.values()) + kept == self.given, "tokens are made or lost"
        assert balances == self.balances, "the product's balances are others"


class Shown:
    """A port that shows the applications of the test's cluster, with the deadlines of their tags."""

    def __init__(self, yarn: Yarn) -> None:
        self.yarn = yarn
        self.now_ms = 0

    def identify(self) -> ClusterIdentity:
        return ClusterIdentity("1", 1)

    def perform(self, action: Action) -> Outcome:
        return Withheld(Observing())

    def observe(self, request: ObservationRequest) -> Observation:
        rows = [self.yarn.rows[name] for name in sorted(self.yarn.listed)]
        applications = tuple(
            views.application_view(row, queue="production", rank=rank, am_size=SLOT, task_size=SLOT)
            for rank, row in enumerate(rows)
        )
        snapshot = Snapshot(
            total=SLOT, largest_node=SLOT, queues=(), applications=applications, free_by_node={}
        )
        return Observation(now_ms=self.now_ms, as_of_ms=self.now_ms, snapshot=snapshot)


class Desk(AtTheDesk):
    """A desk with its laws, and the ranks that its daemon gives; dies before or after a record is written."""

    def __init__(self, laws: Laws, past: Past, records: list[Record], now_ms: int) -> None:
        self.laws = laws
        self.dies_written = False
        super().__init__("mrm", yarn=laws.yarn, past=past, records=records, now_ms=now_ms)
        self.port = Shown(laws.yarn)
        sold = partial(payments.sold_deadlines, self.book)
        gate = WriteGuard(None, lambda: None, Misdirection())
        self.guarded = GuardedPort(self.port, gate, enforce=True, sold=sold)
        self.prioritiser = Prioritiser(SOLD)

    def write(self, record: Record) -> None:
        dies = self.dies_at is not None and len(self.records) >= self.dies_at
        if dies and not self.dies_written:
            raise Killed
        line = encode(record)
        self.records.append(decode(line))
        self.laws.read(line)
        if dies:
            raise Killed

    def tick(self, ms: int = 500) -> None:
        super().tick(ms)
        self.laws.require_conserved(self.book.balances())
        self._rank()

    def _rank(self) -> None:
        """Rank as the daemon does: by deadline is served what is paid and claimed, and nothing else."""
        self.port.now_ms = self.now_ms
        seen = self.guarded.observe(ObservationRequest(cluster=True)).snapshot
        assert seen is not None
        served, there = self.laws.served(), self.laws.yarn.listed
        by_deadline = {
            view.application: view.deadline_at_ms
            for view in seen.applications
            if view.deadline_at_ms is not None
        }
        sold = {name: at_ms for name, at_ms in served.items() if name in there}
        assert by_deadline == sold, "other deadlines rank than were sold"
        found = self.prioritiser.update(seen, self.now_ms, self.now_ms)
        for row in () if found is None else found[0].order:
            if row.urgency_ms < FOREVER_MS:
                assert row.application in served, f"{row.application} is ranked, and nothing is paid"
            else:
                assert row.priority == 0, f"{row.application} has a priority, and nothing is paid"


class History:
    """The history of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.past = Past()
        self.laws = Laws(Yarn())
        self.desk = Desk(self.laws, self.past, [], START_MS)
        self.crashes = 0

    def play(self) -> None:
        """Play it to its end: then everything has ended, and is settled."""
        self.tick(2_100)
        for user in PAYERS:
            for credit_mtokens in (None, self.chance.randint(1, 900_000)):
                self._hand(AccountCommand(account=PAYERS[user], credit_mtokens=credit_mtokens))
                self.tick(1)
        for _ in range(STEPS):
            self._step()
        self._finish()

    def tick(self, ms: int) -> None:
        """Let time pass; who dies starts again from the records."""
        try:
            self.desk.tick(ms)
        except Killed:
            self._again()

    def _again(self) -> None:
        self.crashes += 1
        kept = self.desk
        self.desk = Desk(self.laws, self.past, kept.records, kept.now_ms)

    def _hand(self, wanted: Any) -> None:
        self.desk.hand(wanted)

    def _step(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choices(
                (self._ask, self._submit, self._forge, self._end, self._withdraw), (4, 4, 1, 4, 1)
            )[0]()
        drawn = self.chance.random()
        if drawn < 0.1:
            self.laws.yarn.away = not self.laws.yarn.away
        elif drawn < 0.25:
            self.desk.dies_at = len(self.desk.records) + self.chance.randint(0, 3)
            self.desk.dies_written = self.chance.random() < 0.5
        elif drawn < 0.3:
            self._again()
        self.tick(self.chance.choice(JUMPS_MS))

    def _ask(self) -> None:
        """Request a deadline: several payers may do so at once, some twice with one key."""
        user = self.chance.choice(list(PAYERS))
        given_by: Any = self.chance.choice(("operator", "operator", "operator", "user"))
        estimate = Estimate(self.chance.randint(1, 120_000), 0, "me", given_by=given_by)
        budget = Budget(PAYERS[user], self.chance.randint(1, 300_000), self.chance.choice(REFUNDS))
        wanted = asking(
            self.chance.randint(1, 10), self.chance.choice((None, 0.3, 1.0, 2.0, 10.0)), user=user,
            estimate=estimate, budget=budget, key=f"k{self.chance.randint(0, 99)}",
        )  # fmt: skip
        for _ in range(self.chance.choice((1, 1, 2))):
            self._hand(wanted)

    def _known(self) -> str | None:
        return self.chance.choice(list(self.laws.asked)) if self.laws.asked else None

    def _run(self, name: str, user: str, deadline_at_ms: int) -> None:
        number = len(self.laws.yarn.rows) + 1
        tags = f"deadline:{deadline_at_ms}," + (tag_of(name).lower() if name else "other")
        self.laws.yarn.run(
            f"application_1_{number:04d}", 1, user=user, tags=tags, submitted_at_ms=self.desk.now_ms
        )

    def _submit(self) -> None:
        """Submit the job of an admission, in whatever state that is."""
        name = self._known()
        if name is not None:
            self._run(name, self.laws.asked[name]["user"], self.desk.now_ms + self.chance.randint(1, 90_000))

    def _forge(self) -> None:
        """Submit with a deadline and no admission, or with one of another user's."""
        name = self._known() if self.chance.random() < 0.5 else None
        self._run(name or "", "eve", self.desk.now_ms + 1_000)

    def _end(self) -> None:
        """End an application; its history may say whatever it likes, or nothing."""
        if not self.laws.yarn.listed:
            return
        name = self.chance.choice(sorted(self.laws.yarn.listed))
        self.laws.yarn.end(name, at_ms=self.desk.now_ms)
        if self.chance.random() < 0.7:
            used_ms = self.chance.randint(1, 200_000)
            self.past.jobs[name] = Finished(used_ms, 4, 600_000, 4, 10, 1.0, self.chance.random() < 0.5)

    def _withdraw(self) -> None:
        name = self._known()
        if name is not None:
            self._hand(WithdrawRequest(name))

    def _finish(self) -> None:
        yarn = self.laws.yarn
        yarn.away = False
        for ms in (6_000, 130_000, 6_000, 130_000, 6_000):
            for name in sorted(yarn.listed):
                yarn.end(name, at_ms=self.desk.now_ms)
            self.tick(ms)
        for _ in range(4 * len(yarn.rows) + 8):
            if not self.desk.book.opened and not self.desk.book.unlearned:
                break
            self.tick(1_000_000)
        for _ in range(3):
            self.tick(1)
        open_now = set(self.laws.charged) - set(self.laws.settled)
        assert not open_now, f"not settled: {open_now}"
        if self.seed % REPLAYED_EACH == 0:
            require_replayed(self.desk.records)


def require_replayed(records: list[Record]) -> None:
    store = AdmissionStore()
    for record in records:
        told = store.problem(record) or payments.payment_problem(store, record)
        assert not told, told
        store.take(record)


def play(seed: int) -> History:
    """Play the history of one seed; raises AssertionError where a law is broken."""
    history = History(seed)
    history.play()
    return history
