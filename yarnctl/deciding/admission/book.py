"""The admission store: every admission from request to end, and the gate, folded from the journal.

Only records change it, and the same records give the same store: the controller writes a record, then the
store applies it. ``take`` checks nothing; ``problem`` returns why a record cannot come next, and repeats a
round.

::

    waiting ──round──► admitted ──started──► running ──ended
       │  └──round──► rejected  └─expired ──started (late)──┘
       └─withdrawn (admitted, too)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args

import msgspec

from yarnctl.deciding.admission import entries
from yarnctl.deciding.admission import gate as gating
from yarnctl.deciding.admission.clock_set_back import (
    accounts_set_back,
    gate_set_back,
    plan_set_back,
    request_set_back,
    reservation_set_back,
)
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.pricing import accounts as paying
from yarnctl.deciding.admission.pricing.accounts import AccountRecord, Accounts, Used
from yarnctl.deciding.admission.records import Plan, Request, Reservation, State
from yarnctl.deciding.reasons.verdicts import ClosedReason, PlanReason, Undecided

OPEN: tuple[State, ...] = ("waiting", "admitted", "running")
CLOSABLE: dict[str, tuple[State, ...]] = {
    "withdrawn": ("waiting", "admitted"),
    "expired": ("admitted",),
    "ended": ("running",),
}
"""From which states an admission may be closed as what."""

CLOSED_MAX = 1_000
"""How many ended admissions are kept: for requests repeated with their key, and for display."""
DROPPED_AT_ONCE = 200
UNLEARNED_MAX = 200
"""How many ended applications may wait for their feedback; of more, the oldest are left out."""

PENDING_FOR_MAX_MS = 600_000
"""The longest time from a request to its record; its deadline counts from the request."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """One admission. ``admission`` is its id; ``key`` the sender's own name of it ("": none).

    ``plan`` is the newest verdict, ``reservation`` the result of it (kept after its end, for an application
    that comes late); ``why`` is the reason of its end.
    """

    admission: str
    name: str
    user: str
    queue: str
    request: Request
    plan: Plan
    key: str = ""
    state: State = "waiting"
    reservation: Reservation | None = None
    application: str = ""
    why: ClosedReason | PlanReason | None = None
    changed_at_ms: int = 0

    @property
    def sequence(self) -> int:
        """Its position in the total order."""
        return self.request.sequence


class BookState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All parts of an admission store; ``opened`` in the order in which they were opened last."""

    gate: Gate | None = None
    admissions: tuple[Admission, ...] = ()
    opened: tuple[str, ...] = ()
    numbered: int = 0
    now_ms: int = 0
    trained: bool = False
    unlearned: Mapping[str, str] = {}
    accounts: Accounts = paying.NO_ACCOUNTS
    outcomes: Mapping[str, Used] = {}
    started_at_ms: Mapping[str, int] = {}
    ran_ms: Mapping[str, int] = {}


class AdmissionStore:
    """``admissions`` by id, in their order; ``gate`` None: none has been set yet.

    ``opened``: the ids of those that have not ended. ``unlearned``: application -> admission, of ended ones
    whose feedback is to be fetched; ``trained``: the gate has learned from the past. ``outcomes``: how paid
    admissions ended, until they are settled. Of placed ones: ``started_at_ms`` is when their application was
    observed first, until they have taught, ``ran_ms`` their time from start to end. ``version`` grows with
    every change.
    """

    def __init__(self, state: BookState | None = None) -> None:
        state = BookState() if state is None else state
        self.gate = state.gate
        self.admissions = {each.admission: each for each in state.admissions}
        self.numbered = state.numbered
        self.now_ms = state.now_ms
        self.version = 0
        self.trained = state.trained
        self.opened: dict[str, None] = dict.fromkeys(state.opened)
        self.unlearned = dict(state.unlearned)
        self.accounts = state.accounts
        self.outcomes = dict(state.outcomes)
        self.started_at_ms = dict(state.started_at_ms)
        self.ran_ms = dict(state.ran_ms)
        self._ids = {each.sequence: each.admission for each in state.admissions}
        self._keys = {each.key: each.admission for each in state.admissions if each.key}
        started = (each for each in state.admissions if each.application)
        self._applications = {each.application: each.admission for each in started}

    def left(self) -> BookState:
        """Return the store as a value."""
        return BookState(
            gate=self.gate,
            admissions=tuple(self.admissions.values()),
            opened=tuple(self.opened),
            numbered=self.numbered,
            now_ms=self.now_ms,
            trained=self.trained,
            unlearned=dict(self.unlearned),
            accounts=self.accounts,
            outcomes=dict(self.outcomes),
            started_at_ms=dict(self.started_at_ms),
            ran_ms=dict(self.ran_ms),
        )

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that are behind the gate; none: all."""
        if self.gate is None:
            return ()
        return tuple(dict.fromkeys(queue for pool in self.gate.pools for queue in pool.queues))

    @property
    def sells(self) -> bool:
        """Whether deadlines have a price."""
        return self.gate is not None and MECHANISMS[self.gate.mechanism].sells

    @property
    def container_mib(self) -> int:
        """The size of the gate's containers, of its first pool; 0 while there is no gate."""
        return 0 if self.gate is None else self.gate.pools[0].container_mib

    def queue_of(self, admission: Admission) -> str:
        """Return the queue that an admission goes to: of one that was placed, the first of its pool's."""
        pools = () if self.gate is None or not admission.plan.pool else self.gate.pools
        pool = next((each for each in pools if each.name == admission.plan.pool), None)
        return admission.queue if pool is None or not pool.queues else pool.queues[0]

    def by_key(self, key: str) -> Admission | None:
        """Return the admission requested with this key, as far as it is kept."""
        return self.admissions.get(self._keys.get(key, "")) if key else None

    def by_application(self, application: str) -> Admission | None:
        """Return the admission of an application."""
        return self.admissions.get(self._applications.get(application, ""))

    def open(self, *states: State) -> list[Admission]:
        """Return the admissions that have not ended, in one of these states (none named: any)."""
        found = [self.admissions[name] for name in self.opened]
        return [each for each in found if each.state in states] if states else found

    def counted(self, state: State) -> int:
        """Return how many admissions that have not ended are in a state."""
        return len(self.open(state))

    def balances(self) -> dict[str, int]:
        """Return what each account may spend."""
        return {name: each.balance_mtokens for name, each in self.accounts.accounts.items()}

    def has_changed(self, plans: Sequence[Plan]) -> tuple[Plan, ...]:
        """Return the plans that are new for waiting requests."""
        return tuple(plan for plan in plans if self._plan(plan.sequence) != plan)

    def _plan(self, sequence: int) -> Plan | None:
        found = self.admissions.get(self._ids.get(sequence, ""))
        return None if found is None else found.plan

    def take(self, record: object) -> None:
        """Apply the next record; an impossible one is left out, and one of another kind has no effect."""
        taker = self._appliers.get(type(record))
        if taker is not None:
            taker(self, record)
            self.now_ms = max(self.now_ms, record.at_ms)  # type: ignore[attr-defined]
            self.version += 1

    def _set(self, record: entries.GateSet) -> None:
        if record.mechanism not in MECHANISMS or not record.pools:
            return
        before = self.gate
        fresh = gating.opened(record.mechanism, record.pools, record.choices)
        same = before is not None and (before.mechanism, before.choices) == (fresh.mechanism, fresh.choices)
        kept = before or fresh
        self.gate = msgspec.structs.replace(
            fresh,
            memory=kept.memory if same else fresh.memory,
            waiting=kept.waiting,
            reserved=kept.reserved,
            promised=kept.promised if same else fresh.promised,
        )
        self.trained = self.trained and same

    def _set_back(self, record: entries.ClockSetBack) -> None:
        """Move all instants that count time; what has ended keeps them, but for what is still to come."""
        by_ms = record.by_ms
        self.now_ms -= by_ms
        self.gate = None if self.gate is None else gate_set_back(self.gate, by_ms)
        self.accounts = accounts_set_back(self.accounts, by_ms)
        self.started_at_ms = {name: at_ms - by_ms for name, at_ms in self.started_at_ms.items()}
        unlearned = set(self.unlearned.values())
        for name, each in self.admissions.items():
            if name in self.opened or each.state == "expired" or name in unlearned:
                held = each.reservation
                self.admissions[name] = msgspec.structs.replace(
                    each,
                    request=request_set_back(each.request, by_ms),
                    plan=plan_set_back(each.plan, by_ms),
                    reservation=None if held is None else reservation_set_back(held, by_ms),
                    changed_at_ms=each.changed_at_ms - by_ms,
                )

    def _asked(self, record: entries.AdmissionAsked) -> None:
        if self.gate is None:
            return
        request, name = record.request, record.admission
        plan = Plan(request.sequence, "defer", 0, request.due_ms, Undecided())
        self.admissions[name] = Admission(
            admission=name,
            name=record.name,
            user=record.user,
            queue=record.queue,
            request=request,
            plan=plan,
            key=record.key,
            changed_at_ms=record.at_ms,
        )
        self.opened[name] = None
        self.numbered = max(self.numbered, request.sequence)
        self._ids[request.sequence] = name
        if record.key:
            self._keys[record.key] = name
        self.gate = gating.submit(self.gate, request)
        self._drop_old()

    def _round(self, record: entries.AdmissionRound) -> None:
        if self.gate is None:
            return
        self.gate = gating.expected_end(self.gate, record.at_ms, record.plans, record.granted, record.loads)
        granted = {each.request.sequence: each for each in record.granted}
        states: dict[str, State] = {"admit": "admitted", "reject": "rejected", "defer": "waiting"}
        for plan in record.plans:
            found = self.admissions.get(self._ids.get(plan.sequence, ""))
            if found is not None and found.state == "waiting":
                changed = msgspec.structs.replace(
                    found,
                    changed_at_ms=record.at_ms if plan.verdict != "defer" else found.changed_at_ms,
                    plan=plan,
                    state=states[plan.verdict],
                    reservation=granted.get(plan.sequence, found.reservation),
                    why=plan.reason if plan.verdict == "reject" else None,
                )
                self._put(changed)

    def _started(self, record: entries.AdmissionStarted) -> None:
        found = self.admissions.get(record.admission)
        if found is None or self.gate is None or found.reservation is None:
            return
        reservation = msgspec.structs.replace(found.reservation, application=record.application)
        others = tuple(each for each in self.gate.reserved if each.request.sequence != found.sequence)
        if found.state == "admitted":
            self.gate = gating.running(self.gate, found.sequence, record.application, record.at_ms)
        else:  # it came late: its containers are reserved again, whatever was admitted meanwhile
            self.gate = msgspec.structs.replace(self.gate, reserved=(*others, reservation))
        self._applications[record.application] = found.admission
        if found.request.alternatives is not None:
            self.started_at_ms[found.admission] = record.at_ms
        changed = msgspec.structs.replace(
            found,
            changed_at_ms=record.at_ms,
            state="running",
            reservation=reservation,
            application=record.application,
            why=None,
        )
        self._put(changed)

    def _closed(self, record: entries.AdmissionClosed) -> None:
        found = self.admissions.get(record.admission)
        if found is None or self.gate is None or found.state not in CLOSABLE.get(record.state, ()):
            return
        self.gate = gating.withdraw(self.gate, found.sequence)
        if record.state == "ended":
            self.unlearned[found.application] = found.admission
            if found.admission in self.accounts.payments:
                self.outcomes[found.admission] = Used("late" if _is_late(found, record) else "ran")
            while len(self.unlearned) > UNLEARNED_MAX:
                del self.unlearned[next(iter(self.unlearned))]
        changed = msgspec.structs.replace(
            found, changed_at_ms=record.at_ms, state=record.state, why=record.why
        )
        self._put(changed)

    def _learned(self, record: entries.GateLearned) -> None:
        self.unlearned.pop(record.application, None)
        started_ms = self.started_at_ms.pop(self._applications.get(record.application, ""), None)
        if self.gate is None:
            return
        if not record.application:
            self.trained = True
        for finished in record.finished:
            self.gate = gating.learned(self.gate, finished)
            found = self.by_application(record.application)
            if found is not None and found.admission in self.outcomes:
                ended = self.outcomes[found.admission]
                self.outcomes[found.admission] = paying.with_usage(ended, found.reservation, finished)
            if found is not None and started_ms is not None and finished.elapsed_ms is not None:
                start_ms = started_ms if found.plan.start_at_ms is None else found.plan.start_at_ms
                self.ran_ms[found.admission] = max(0, started_ms - start_ms) + finished.elapsed_ms

    def _paid(self, record: AccountRecord) -> None:
        with suppress(paying.ImpossibleRecord):
            self.accounts = paying.after(self.accounts, record)
        if isinstance(record, paying.TokensRefunded):
            self.outcomes.pop(record.admission, None)

    _appliers: dict[type, Callable[[AdmissionStore, Any], None]] = {  # noqa: RUF012
        entries.GateSet: _set,
        entries.ClockSetBack: _set_back,
        entries.AdmissionAsked: _asked,
        entries.AdmissionRound: _round,
        entries.AdmissionStarted: _started,
        entries.AdmissionClosed: _closed,
        entries.GateLearned: _learned,
        **dict.fromkeys(get_args(AccountRecord), _paid),
    }

    def _put(self, admission: Admission) -> None:
        self.admissions[admission.admission] = admission
        if admission.state in OPEN:
            self.opened[admission.admission] = None
        else:
            self.opened.pop(admission.admission, None)

    def _drop_old(self) -> None:
        """Drop the oldest ended admissions."""
        if len(self.admissions) - len(self.opened) < CLOSED_MAX + DROPPED_AT_ONCE:
            return
        over = [each for each in self.admissions.values() if each.state not in OPEN]
        for each in over[: max(0, len(over) - CLOSED_MAX)]:
            del self.admissions[each.admission]
            self._ids.pop(each.sequence, None)
            self._applications.pop(each.application, None)
            self.started_at_ms.pop(each.admission, None)
            self.ran_ms.pop(each.admission, None)
            if self._keys.get(each.key) == each.admission:
                del self._keys[each.key]
        self.accounts = paying.without_settled(self.accounts, self.admissions)

    def problem(self, record: object) -> str:
        """Return why a record cannot come next, "" if it can. Before :meth:`take`.

        A round is repeated with the backlog that it was given, and must give the same plans.
        """
        if isinstance(record, entries.GateSet):
            return _set_problem(record)
        if isinstance(record, AccountRecord):
            return paying.problem(self.accounts, record)
        if isinstance(record, entries.ClockSetBack):
            if record.by_ms > 0 and record.at_ms >= self.now_ms - record.by_ms:
                return ""
            return f"a clock set back by {record.by_ms} ms to {record.at_ms} ms, after {self.now_ms} ms"
        checker = _CHECKERS.get(type(record))
        if checker is None:
            return ""
        return "an admission, and no gate was set before it" if self.gate is None else checker(self, record)


def _asked_problem(store: AdmissionStore, record: entries.AdmissionAsked) -> str:
    request = record.request
    if request.sequence != store.numbered + 1:
        return f"{record.admission} is number {request.sequence}, due is {store.numbered + 1}"
    if not record.admission.endswith(f"-{request.sequence}") or record.admission in store.admissions:
        return f"{record.admission} is not the name of number {request.sequence}"
    if not 0 <= record.at_ms - request.submitted_at_ms <= PENDING_FOR_MAX_MS:
        return f"{record.admission} at {record.at_ms} ms was submitted at {request.submitted_at_ms} ms"
    if store.sells and request.estimate is not None and request.estimate.given_by == "user":
        return f"{record.admission} has its user's own estimate, and deadlines have a price"
    return f"{record.key} was asked with before" if store.by_key(record.key) is not None else ""


def _round_problem(store: AdmissionStore, record: entries.AdmissionRound) -> str:
    gate = store.gate
    assert gate is not None
    balances, blocking, pooled = store.balances(), record.blocking, record.pool_loads
    after, decided = gating.decide(gate, record.at_ms, record.loads, balances, blocking, pooled)
    plans = store.has_changed(decided)
    for was, now in zip(record.plans, plans, strict=False):
        if was != now:
            return f"a plan was {_state_text(was)}, is now {_state_text(now)}"
    if len(record.plans) != len(plans):
        return f"there were {len(record.plans)} new plans, there are now {len(plans)}"
    granted = gating.granted_in(gate, after)
    return (
        ""
        if granted == record.granted
        else f"granted was {_state_text(record.granted)}, is {_state_text(granted)}"
    )


def _started_problem(store: AdmissionStore, record: entries.AdmissionStarted) -> str:
    found = store.admissions.get(record.admission)
    if found is None or found.state not in ("admitted", "expired"):
        return f"{record.admission} starts, and it is {_state(found)}"
    other = store.by_application(record.application)
    return "" if other is None else f"{record.application} uses {other.admission} already"


def _closed_problem(store: AdmissionStore, record: entries.AdmissionClosed) -> str:
    found = store.admissions.get(record.admission)
    if found is None or found.state not in CLOSABLE.get(record.state, ()):
        return f"{record.admission} is {record.state}, and it was {_state(found)}"
    held = found.reservation
    if record.state == "expired" and held is not None and record.at_ms < held.expires_at_ms:
        return f"{record.admission} expired at {record.at_ms} ms, it was held until {held.expires_at_ms}"
    if record.finished_at_ms is not None and (
        record.state != "ended" or record.finished_at_ms > record.at_ms
    ):
        return f"{record.admission} is {record.state} at {record.at_ms} ms, after {record.finished_at_ms} ms"
    return ""


def _is_late(admission: Admission, record: entries.AdmissionClosed) -> bool:
    """Say whether an application ended after its deadline; only YARN's finish time shows that."""
    ended_at_ms = record.finished_at_ms
    return ended_at_ms is not None and ended_at_ms > admission.plan.deadline_at_ms


def _learned_problem(store: AdmissionStore, record: entries.GateLearned) -> str:
    if record.application and record.application not in store.unlearned:
        return f"{record.application} teaches, and it did not end before"
    if not record.application and store.trained:
        return "the gate learns from the past a second time"
    return ""


_CHECKERS: dict[type, Callable[[AdmissionStore, Any], str]] = {
    entries.AdmissionAsked: _asked_problem,
    entries.AdmissionRound: _round_problem,
    entries.AdmissionStarted: _started_problem,
    entries.AdmissionClosed: _closed_problem,
    entries.GateLearned: _learned_problem,
}


def _set_problem(record: entries.GateSet) -> str:
    made = MECHANISMS.get(record.mechanism)
    if made is None:
        return f"no mechanism {record.mechanism!r}"
    if type(record.choices) is not type(made.choices):
        return f"choices of another mechanism than {record.mechanism}"
    pools = record.pools
    if len(pools) != 1 and not made.places:
        return f"{len(pools)} pools, and {record.mechanism} decides on one"
    if not pools or len({each.name for each in pools}) < len(pools):
        return "no pool, or two of one name"
    capacity = min(each.capacity for each in pools)
    return "" if capacity > 0 else f"a capacity of {capacity} containers"


def _state(admission: Admission | None) -> str:
    return "not known" if admission is None else admission.state


def _state_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


STATES: tuple[str, ...] = get_args(State)
