"""The desk: the gate on a cluster, driven by the loop after each tick.

Law: it changes nothing on the cluster; it holds reservations with an expiry, never a command. What changes
the gate is written down first and counts then (``Book``), so that a death at any point loses nothing that
was answered. Nobody waits or holds: nothing is asked of the cluster. What cannot be seen is not judged: no
round, no expiry, no end while the ResourceManager does not answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from yarnctl.daemon.clerk import Answer, Clerk
from yarnctl.daemon.lessons import Lessons
from yarnctl.daemon.loads import Look, look, tag_of
from yarnctl.daemon.sizing import Size, Sizing
from yarnctl.daemon.window import Asking, Errand, Refusal, Window, Withdrawing
from yarnctl.deciding.admission.book import UNDECIDED, Admission, Book
from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionTaken,
    GateSet,
)
from yarnctl.deciding.admission.gate import decide, expired, granted_in
from yarnctl.deciding.admission.records import DEFAULT_CHOICES, Choices, Estimate, Plan, Request
from yarnctl.deciding.records import Record
from yarnctl.errors import YarnctlError
from yarnctl.hadoop import wire
from yarnctl.hadoop.problems import Missing
from yarnctl.hadoop.resource_manager import ENDED, same_queue

_LOG = logging.getLogger("yarnctl.daemon")

LOOK_EVERY_MS = 1_000
REST_EVERY_MS = 5_000
"""So often while nobody waits and all that was admitted runs."""
GONE_AFTER_MS = 10_000
"""So long the ResourceManager must not know an application before it counts as gone."""
ASKED_ABOUT_MAX = 8
"""So many applications that are no longer listed are asked for after one tick."""
PLANS_EVERY_MS = 10_000
"""So often new predictions for those that wait are written down, if nothing else changes."""
ESTIMATE_MS = 3_000
"""So long a request waits for an estimate."""
WAITING_MAX = 1_000
ERRANDS_MAX = 32
"""So much of what lies at the window is done after one tick: each is written to the disk."""

WITHDRAWN, LEFT = "withdrawn by who asked", "nobody has asked for it for {} s: nobody waits any more"
NOT_SUBMITTED = "nothing was submitted with its tag within {} s"


class Manager(Protocol):
    """What the desk needs of :class:`yarnctl.hadoop.resource_manager.ResourceManager`."""

    def applications(self) -> Sequence[wire.Application]:
        """Return the unfinished applications."""
        ...

    def tagged(self, tag: str) -> Sequence[wire.Application]:
        """Return those with a tag, also ended ones."""
        ...

    def application(self, application: str) -> wire.Application:
        """Return one; Missing if it is not known."""
        ...


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What the desk was told: which allocator, and whose ``queues`` (none: all)."""

    allocator: str
    instance: str
    queues: tuple[str, ...] = ()
    choices: Choices = DEFAULT_CHOICES
    lease_ms: int = 120_000


class Desked(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of the desk: the gate, and every admission that is kept, newest first."""

    allocator: str
    capacity: int | None
    container_mib: int | None
    waiting: int
    reserved: int
    learned: int
    problem: str
    lease_ms: int
    admissions: tuple[Admission, ...] = ()


class Desk:
    """``size`` tells how large the cluster is (raises YarnctlError), ``book`` is what the journal left.

    ``clerk`` None: nothing is learned, nothing is estimated. All methods but the window's are the loop's.
    """

    def __init__(
        self,
        terms: Terms,
        manager: Manager,
        size: Callable[[], Size],
        window: Window,
        *,
        book: Book | None = None,
        clerk: Clerk | None = None,
    ) -> None:
        self.terms = terms
        self.window = window
        self.book = book or Book()
        self._manager = manager
        self._sizing = Sizing(size)
        self._clerk = clerk
        self._estimates: dict[Errand, Answer] = {}
        self._answers: dict[Errand, str | Refusal] = {}
        self._leases: dict[str, int] = {}
        self._look: Look | None = None
        self._blind = False
        self._looked_at_ms: int | None = None
        self._planned_at_ms = 0
        self._gone: dict[str, int] = {}
        self._said: set[tuple[str, str]] = set()
        self._lessons = None if clerk is None else Lessons(clerk, self.book)
        self._problem = ""
        self._shown: tuple[int, str, Desked] | None = None

    # --- after each tick ------------------------------------------------------------------------

    def follow(self, write: Callable[[Record], None], now_ms: int, *, paused: bool = False) -> None:
        """After a tick: take what lies at the window, look if it is time to, hold a round.

        While ``paused`` nobody is let in or turned away.
        """
        now_ms = max(now_ms, self.book.now_ms)
        errands = self.window.handed()
        active = bool(errands or self.book.opened)
        if active or self.book.gate is None:
            self._measure(write, now_ms)
        if self._lessons is not None:
            self._lessons.follow(lambda record: self._note(write, record), now_ms)
        if active and self.book.gate is not None:
            self._work(write, now_ms, errands, paused)

    def _work(
        self, write: Callable[[Record], None], now_ms: int, errands: Sequence[Errand], paused: bool
    ) -> None:
        for errand in errands[:ERRANDS_MAX]:
            self._errand(write, now_ms, errand)
        if len(errands) > ERRANDS_MAX:
            self.window.wake()
        self._keep_leases(write, now_ms)
        fresh = self._see(write, now_ms)
        if self._look is None or paused or (self._lessons and self._lessons.is_training(now_ms)):
            return
        if fresh or self._undecided():
            self._hold_round(write, now_ms, self._look.loads)

    def _note(self, write: Callable[[Record], None], record: Record) -> None:
        """Write down, then let it count."""
        write(record)
        self.book.take(record)

    def _measure(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Set the gate where the cluster's size, or what we were told, is new."""
        terms, gate, book = self.terms, self.book.gate, self.book
        size = self._sizing.look(None if gate is None else Size(gate.capacity, book.container_mib), now_ms)
        if size is None:
            return
        wanted = (terms.allocator, size.capacity, size.container_mib, terms.queues, terms.choices)
        if gate is not None and wanted == (
            gate.allocator,
            gate.capacity,
            book.container_mib,
            book.queues,
            gate.choices,
        ):
            return
        self._note(write, GateSet(now_ms, *wanted))

    # --- the window ---------------------------------------------------------------------------------

    def _errand(self, write: Callable[[Record], None], now_ms: int, errand: Errand) -> None:
        if errand in self._answers:
            return
        wanted = errand.wanted
        if isinstance(wanted, Withdrawing):
            self._answers[errand] = self._withdraw(write, now_ms, wanted.admission)
            return
        known = self.book.by_key(wanted.key)
        if known is not None:
            same = _same(wanted, known)
            self._answers[errand] = known.admission if same else _key_used(wanted.key)
        elif refusal := self._refusal(wanted):
            self._answers[errand] = refusal
        elif (estimate := self._estimate(errand, wanted, now_ms)) is not None:
            self._answers[errand] = self._ask(write, now_ms, wanted, *estimate)

    def _refusal(self, wanted: Asking) -> Refusal | None:
        queues = self.book.queues
        if queues and not any(same_queue(wanted.queue, one) for one in queues):
            told = f"queue {wanted.queue} is not behind this gate"
            return Refusal("queue-not-gated", told, f"use one of {', '.join(queues)}")
        if self.book.counted("waiting") >= WAITING_MAX:
            return Refusal("desk-full", f"{WAITING_MAX} requests wait already", "try again later")
        return None

    def _estimate(self, errand: Errand, wanted: Asking, now_ms: int) -> tuple[Estimate | None] | None:
        """Return the estimate there is, if any; None: it is still being asked for."""
        if wanted.estimate is not None or self._clerk is None:
            return (wanted.estimate,)
        asked = self._estimates.get(errand)
        if asked is None:
            errand.at_ms = now_ms
            name, user = wanted.name, wanted.user
            asked = self._estimates[errand] = self._clerk.ask(lambda history: history.estimate(name, user))
        if not asked.done and now_ms - (errand.at_ms or 0) < ESTIMATE_MS:
            return None
        del self._estimates[errand]
        found = asked.value if asked.done else None
        return (found if isinstance(found, Estimate) and found.mean_ms > 0 else None,)

    def _ask(
        self, write: Callable[[Record], None], now_ms: int, wanted: Asking, estimate: Estimate | None
    ) -> str:
        number = self.book.numbered + 1
        name = f"adm-{self.terms.instance}-{number}"
        request = Request(number, now_ms, wanted.deadline_ms, wanted.containers, estimate, wanted.kind)
        self._note(
            write,
            AdmissionAsked(now_ms, name, wanted.name, wanted.user, wanted.queue, request, wanted.key),
        )
        self._leases[name] = now_ms
        return name

    def _withdraw(self, write: Callable[[Record], None], now_ms: int, name: str) -> str | Refusal:
        found = self.book.admissions.get(name)
        if found is None:
            told = f"admission {name} is not known"
            return Refusal("not-found", told, "GET /v1/admissions lists them")
        if found.state == "taken":
            told = f"it runs as {found.application}"
            return Refusal("already-taken", told, "end the application; what it holds is free then")
        if found.state in ("waiting", "admitted"):
            self._note(write, AdmissionClosed(now_ms, name, "withdrawn", WITHDRAWN))
        return name

    def _keep_leases(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Withdraw what nobody waits for any more; after a start every lease begins anew."""
        for name, until_ms in self.window.renewals().items():
            self._leases[name] = max(self._leases.get(name, 0), until_ms)
        waiting = {each.admission for each in self.book.open("waiting")}
        self._leases = {name: at_ms for name, at_ms in self._leases.items() if name in waiting}
        for name in sorted(waiting):
            if now_ms - self._leases.setdefault(name, now_ms) > self.terms.lease_ms:
                why = LEFT.format(self.terms.lease_ms // 1000)
                self._note(write, AdmissionClosed(now_ms, name, "withdrawn", why))

    # --- the cluster ------------------------------------------------------------------------------

    def _see(self, write: Callable[[Record], None], now_ms: int) -> bool:
        """Look at the applications if it is time to; note who has taken what, ended, or never came."""
        if not self.book.open():
            return False
        busy = bool(self.book.open("waiting", "admitted"))
        every_ms = LOOK_EVERY_MS if busy and not self._blind else REST_EVERY_MS
        if self._looked_at_ms is not None and now_ms - self._looked_at_ms < every_ms:
            return False
        self._looked_at_ms, self._blind = now_ms, True
        try:
            rows = self._manager.applications()
        except YarnctlError as error:
            self._look, self._problem = None, f"the applications cannot be seen: {error}"
            return False
        self._problem, self._blind = "", False
        self._look = look(rows, self.book, self.terms.instance, now_ms, self.book.queues)
        self._take(write, now_ms, self._look)
        self._end(write, now_ms, self._look.there)
        self._expire(write, now_ms)
        return True

    def _expire(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Let go of what nobody has taken; one that ran and ended while nobody looked has been taken."""
        gate = self.book.gate
        late = {each.request.sequence for each in expired(gate, now_ms)} if gate is not None else set()
        names = [each for each in self.book.open("admitted") if each.sequence in late]
        for each in names[:ASKED_ABOUT_MAX]:
            try:
                rows = self._manager.tagged(tag_of(each.admission))
            except YarnctlError as error:
                self._problem = str(error)
                return
            claims = look(rows, self.book, self.terms.instance, now_ms, self.book.queues).claims
            took = next((one.application for one in claims if not one.why), "")
            if took:
                self._note(write, AdmissionTaken(now_ms, each.admission, took))
            elif each.reservation is not None:
                held_ms = each.reservation.expires_at_ms - each.reservation.from_ms
                why = NOT_SUBMITTED.format(held_ms // 1000)
                self._note(write, AdmissionClosed(now_ms, each.admission, "expired", why))

    def _take(self, write: Callable[[Record], None], now_ms: int, seen: Look) -> None:
        for claim in seen.claims:
            if not claim.why:
                self._note(write, AdmissionTaken(now_ms, claim.admission, claim.application))
                _LOG.info("%s runs as %s", claim.admission, claim.application)
            elif (claim.application, claim.why) not in self._said:
                self._said.add((claim.application, claim.why))
                _LOG.warning("%s may not take %s: %s", claim.application, claim.admission, claim.why)
        self._said = {said for said in self._said if said[0] in seen.there}

    def _end(self, write: Callable[[Record], None], now_ms: int, there: frozenset[str]) -> None:
        """Note which applications have ended: not because they are not listed, but because YARN says so."""
        missed = [each for each in self.book.open("taken") if each.application not in there]
        self._gone = {
            name: at_ms for name, at_ms in self._gone.items() if name in {e.application for e in missed}
        }
        asked = sorted(missed, key=lambda each: (each.application in self._gone, each.sequence))
        for each in asked[:ASKED_ABOUT_MAX]:
            why = self._ended(each.application, now_ms)
            if why:
                self._note(write, AdmissionClosed(now_ms, each.admission, "ended", why))

    def _ended(self, application: str, now_ms: int) -> str:
        """Say how an application ended, "" if it did not (or nobody can tell)."""
        try:
            state = self._manager.application(application).state
        except Missing:
            gone_at_ms = self._gone.setdefault(application, now_ms)
            long_gone = now_ms - gone_at_ms >= GONE_AFTER_MS
            return "the ResourceManager does not know it any more" if long_gone else ""
        except YarnctlError as error:
            self._problem = str(error)
            return ""
        return state if state in ENDED else ""

    # --- rounds -------------------------------------------------------------------------------------

    def _undecided(self) -> bool:
        """Say whether somebody has come since the last round."""
        return any(each.plan.reason == UNDECIDED for each in self.book.open("waiting"))

    def _hold_round(self, write: Callable[[Record], None], now_ms: int, loads: tuple[Load, ...]) -> None:
        """Hold a round; it is written down if anything has come of it."""
        gate = self.book.gate
        if gate is None or not gate.waiting:
            return
        after, decided = decide(gate, now_ms, loads)
        plans = self.book.news(decided)
        if not self._is_news(plans, now_ms):
            return
        self._planned_at_ms = now_ms
        self._note(write, AdmissionRound(now_ms, loads, plans, granted_in(gate, after)))
        for plan in plans:
            if plan.verdict != "defer":
                name = f"adm-{self.terms.instance}-{plan.sequence}"
                _LOG.info("%s: %s, %d containers: %s", name, plan.verdict, plan.containers, plan.reason)

    def _is_news(self, plans: Sequence[Plan], now_ms: int) -> bool:
        """Say whether to write it down now: a verdict at once, what is only foreseen now and then."""
        if any(plan.verdict != "defer" for plan in plans) or self._undecided():
            return True
        return bool(plans) and now_ms - self._planned_at_ms >= PLANS_EVERY_MS

    # --- telling ------------------------------------------------------------------------------------

    def shown(self) -> Desked:
        """Return what is to be published."""
        book, gate = self.book, self.book.gate
        problem = self._problem or self._sizing.problem
        if self._shown is not None and self._shown[:2] == (book.version, problem):
            return self._shown[2]
        desked = Desked(
            allocator=self.terms.allocator,
            capacity=None if gate is None else gate.capacity,
            container_mib=None if gate is None else book.container_mib,
            waiting=book.counted("waiting"),
            reserved=0 if gate is None else sum(each.containers for each in gate.reserved),
            learned=0 if gate is None else gate.memory.completed,
            problem=problem,
            lease_ms=self.terms.lease_ms,
            admissions=tuple(reversed(book.admissions.values())),
        )
        self._shown = (book.version, problem, desked)
        return desked

    def published(self) -> None:
        """After :meth:`shown` is published: answer those whose errands are done, wake those that wait."""
        answers, self._answers = self._answers, {}
        self.window.announce(answers)

    def stop(self) -> None:
        """Let all that wait go; reservations stay, in the journal."""
        self.window.close()
        if self._clerk is not None:
            self._clerk.close()


def _same(wanted: Asking, known: Admission) -> bool:
    """Say whether a repeated request asks for what it asked for before."""
    before = known.request
    return (wanted.name, wanted.user, wanted.queue, wanted.containers, wanted.deadline_ms, wanted.kind) == (
        known.name,
        known.user,
        known.queue,
        before.tasks,
        before.deadline_ms,
        before.kind,
    )


def _key_used(key: str) -> Refusal:
    told = f"request_key {key} was used for another request"
    return Refusal("request-key-used", told, "use a new one for each request")
