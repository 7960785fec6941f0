"""MRM over random stories: every promise is kept, every price is paid once, and no token is lost or made.

A story is played on records alone: requests, rounds, what is due from accounts, jobs that are submitted when
their turn comes, are served (earliest deadline first) and end. In some stories each job has a master, which
holds a container from then on until it ends. A story is killed after any of its records and continues from
the lines. The laws are functions of a seed; a planted bug replaces one function, and the law
that should fail must fail on the same seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from yarnctl.deciding.admission import payments
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import Pool
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionStarted,
    GateLearned,
    GateSet,
)
from yarnctl.deciding.admission.gate import decide, granted_in
from yarnctl.deciding.admission.mechanisms import mrm, promises, turns
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices
from yarnctl.deciding.admission.pricing import accounts
from yarnctl.deciding.admission.pricing.accounts import (
    AccountSet,
    TokensCharged,
    TokensGranted,
    TokensRefunded,
)
from yarnctl.deciding.admission.pricing.timeline import judged
from yarnctl.deciding.admission.records import (
    Budget,
    DueClaim,
    Estimate,
    Finished,
    Phase,
    Phases,
    Refund,
    Request,
)
from yarnctl.deciding.reasons.verdicts import EndedAs, WithdrawnByRequester
from yarnctl.deciding.records import Record, decode, encode

SEEDS = range(80)
NARROW = (280,)
"""A story in which a later place for narrow jobs breaks a promise that the earliest keeps."""
EACH_RECORD = 4
"""Of so many seeds the story is killed after each of its records, of the others after six."""
NAMES = ("analytics", "research")
STEPS = 40
LAST_MS = 20_000


class Died(Exception):
    """The process ends here."""


class MarketStory:
    """A random story of one seed. ``left_ms`` is what each admitted job has still to compute, in truth."""

    def __init__(self, seed: int, dies_after: int | None = None) -> None:
        self.chance = random.Random(seed)
        self.capacity = self.chance.choice((1, 1, 2, 5))
        choices: tuple[Refund, ...] = ("none", "unused", "late", "both")
        self.refund = self.chance.choice(choices)
        self.dies_after = dies_after
        self.lines: list[bytes] = []
        self.store = AdmissionStore()
        self.left_ms: dict[str, int] = {}
        self.now_ms = 0

    def write(self, record: Record) -> None:
        assert self.store.problem(record) == ""
        self.lines.append(encode(record))
        if len(self.lines) == self.dies_after:
            raise Died
        self.store.take(record)
        balanced(self.store)

    def again(self) -> None:
        self.dies_after = None
        self.store = AdmissionStore()
        for line in self.lines:
            record = decode(line)
            assert self.store.problem(record) == ""
            self.store.take(record)
        open_now = {each.admission: claim_of(each).work_ms for each in self.store.open("admitted", "running")}
        self.left_ms = {name: self.left_ms.get(name, work_ms) for name, work_ms in open_now.items()}
        for name in [name for name, left_ms in self.left_ms.items() if not left_ms]:
            self.end(name)
        for application in list(self.store.unlearned):
            self.write(GateLearned(self.now_ms, application, ()))

    def play(self) -> None:
        if self.store.gate is None:
            self.write(GateSet(self.now_ms, "mrm", (Pool("", self.capacity, 1024),), MrmChoices(job_ms=50)))
        for name in NAMES:
            if name not in self.store.accounts.accounts:
                self.write(AccountSet(self.now_ms, name))
            self.write(TokensGranted(self.now_ms, name, self.chance.randint(0, 400)))
        for _ in range(STEPS):
            self.step()
        self.finish()

    def step(self) -> None:
        self.settle()
        what = self.chance.random()
        if what < 0.5:
            self.ask()
        elif what < 0.55 and (waiting := [*self.store.open("admitted"), *self.sold()]):
            gone = self.chance.choice(waiting)
            self.write(AdmissionClosed(self.now_ms, gone.admission, "withdrawn", WithdrawnByRequester()))
            self.left_ms.pop(gone.admission, None)
        else:
            self.run(self.chance.randint(1, 60))

    def sold(self) -> list[Admission]:
        """Return those whose deadline is sold and whose turn has not come."""
        return [each for each in self.store.open("waiting") if each.reservation is not None]

    def settle(self) -> None:
        for record in payments.due_records(self.store, self.now_ms):
            self.write(record)

    def ask(self) -> None:
        number = self.store.numbered + 1
        deadline_ms = self.chance.choice((None, self.chance.randint(1, 400)))
        request = Request(
            number, self.now_ms, deadline_ms, self.chance.randint(1, self.capacity), self.estimate(),
            budget=Budget(self.chance.choice(NAMES), self.chance.randint(1, 300), self.refund),
        )  # fmt: skip
        self.write(AdmissionAsked(self.now_ms, f"adm-0a-{number}", "job", "ann", "root.a", request))
        self.hold_round()

    def estimate(self) -> Estimate:
        return Estimate(self.chance.randint(1, 120), 0, "me")

    def hold_round(self) -> None:
        gate = self.store.gate
        assert gate is not None
        after, plans = decide(gate, self.now_ms, (), self.store.balances())
        changed = self.store.has_changed(plans)
        granted = granted_in(gate, after)
        if granted or any(plan.verdict != "defer" for plan in changed):
            self.write(AdmissionRound(self.now_ms, (), changed, granted))
        for each in self.store.open("admitted"):
            self.left_ms.setdefault(each.admission, self.work_ms(each))
        self.settle()

    def work_ms(self, each: Admission) -> int:
        return claim_of(each).work_ms

    def run(self, span_ms: int) -> None:
        """Serve the earliest deadline first, millisecond by millisecond; each promise is kept."""
        for _ in range(span_ms):
            if self.sold():
                self.hold_round()
            running = sorted(
                (each for each in self.store.open("admitted", "running") if each.admission in self.left_ms),
                key=lambda each: (claim_of(each).until_ms, each.sequence),
            )
            free, given = self.capacity - self.masters(running), dict[str, int]()
            for each in running:
                share = max(0, min(free, self.most(each), self.left_ms[each.admission]))
                given[each.admission] = share
                free -= share
                if (share or self.has_masters) and each.state == "admitted":
                    self.write(
                        AdmissionStarted(self.now_ms, each.admission, f"application_1_{each.sequence}")
                    )
            self.now_ms += 1
            for name, share in given.items():
                self.left_ms[name] -= share
            for name in [name for name, left_ms in self.left_ms.items() if not left_ms]:
                if self.is_over(name):
                    self.end(name)

    def is_over(self, name: str) -> bool:
        """Say whether a job ends whose work is done."""
        return True

    def lasted_ms(self, name: str) -> int:
        """Return how much longer a job lasts than its work."""
        return 0

    has_masters = False

    def masters(self, running: list[Admission]) -> int:
        """Return how many containers masters hold."""
        return 0

    def most(self, each: Admission) -> int:
        return claim_of(each).most

    def end(self, name: str) -> None:
        found = self.store.admissions[name]
        assert self.now_ms - self.lasted_ms(name) <= claim_of(found).until_ms, "a promise is broken"
        assert claim_of(found).until_ms + claim_of(found).latency_ms <= found.plan.deadline_at_ms
        application = f"application_1_{found.sequence}"
        if found.state == "admitted":
            self.write(AdmissionStarted(self.now_ms, name, application))
        self.write(AdmissionClosed(self.now_ms, name, "ended", EndedAs("FINISHED")))
        claim = claim_of(found)
        used_ms = self.chance.randint(1, claim.work_ms)
        del self.left_ms[name]
        learned = Finished(used_ms, claim.most, 1, claim.most, self.capacity, 1.0, met=True)
        self.write(GateLearned(self.now_ms, application, (learned,)))

    def finish(self) -> None:
        while self.left_ms or self.sold():
            assert self.now_ms < LAST_MS, "a job is never served"
            self.run(50)
        self.settle()


class MasterStory(MarketStory):
    """A story whose jobs have masters: each holds a container from its turn until its job's end.

    That is up to its latency after its work is done.
    """

    has_masters = True

    def __init__(self, seed: int, dies_after: int | None = None) -> None:
        super().__init__(seed, dies_after)
        self.capacity = self.chance.choice((2, 3, 6, 13))
        self.tails: dict[str, tuple[int, int]] = {}

    def estimate(self) -> Estimate:
        kinds = [
            Phase("map", self.chance.randint(1, 12), self.chance.randint(1, 12), 0),
            Phase("reduce", self.chance.randint(1, 3), self.chance.randint(1, 12), 0),
        ]
        return Estimate(
            1, 0, "me", Phases(tuple(kinds), self.chance.randint(0, 5), self.chance.randint(0, 5))
        )

    def work_ms(self, each: Admission) -> int:
        return claim_of(each).work_ms - claim_of(each).master_ms

    def is_over(self, name: str) -> bool:
        begun_ms, lasts_ms = self.tails.setdefault(
            name, (self.now_ms, self.chance.randint(0, claim_of(self.store.admissions[name]).latency_ms))
        )
        return self.now_ms >= begun_ms + lasts_ms

    def lasted_ms(self, name: str) -> int:
        return self.now_ms - self.tails[name][0]

    def masters(self, running: list[Admission]) -> int:
        return len(running)

    def most(self, each: Admission) -> int:
        return max(1, min(self.capacity, claim_of(each).most) - 1)


def claim_of(each) -> DueClaim:
    assert each.reservation is not None
    assert isinstance(each.reservation.claim, DueClaim)
    return each.reservation.claim


def balanced(store: AdmissionStore) -> None:
    for account in store.accounts.accounts.values():
        assert 0 <= account.spent_mtokens <= account.given_mtokens, "a balance below 0, or tokens were made"
        assert account.balance_mtokens >= 0
    spent = sum(each.spent_mtokens for each in store.accounts.accounts.values())
    kept = sum(each.mtokens - (each.refunded_mtokens or 0) for each in store.accounts.payments.values())
    assert spent == kept, "what was spent is not what payments keep"


def paid_once(story: MarketStory) -> None:
    """Each promise is charged its price once, and settled once; who was refused pays nothing."""
    records = [decode(line) for line in story.lines]
    charged = {each.admission: each.mtokens for each in records if isinstance(each, TokensCharged)}
    assert len(charged) == sum(isinstance(each, TokensCharged) for each in records)
    plans = [plan for each in records if isinstance(each, AdmissionRound) for plan in each.plans]
    promised = {f"adm-0a-{plan.sequence}": plan for plan in plans if plan.price_mtokens is not None}
    assert charged == {name: plan.price_mtokens for name, plan in promised.items()}
    settled = [each.admission for each in records if isinstance(each, TokensRefunded)]
    assert sorted(settled) == sorted(charged)
    for plan in promised.values():
        assert sum(amount for _, amount in plan.because) == plan.price_mtokens
        assert all(amount > 0 for _, amount in plan.because)


def promises_are_kept(seed: int) -> None:
    story = MarketStory(seed)
    story.play()
    paid_once(story)


def promises_are_kept_beside_masters(seed: int) -> None:
    story = MasterStory(seed)
    story.play()
    paid_once(story)


def no_death_loses_a_token(seed: int) -> None:
    whole = MarketStory(seed)
    whole.play()
    deaths = range(1, len(whole.lines) + 1)
    for dies_after in deaths if seed < EACH_RECORD else random.Random(seed).sample(deaths, 6):
        story = MarketStory(seed, dies_after)
        with pytest.raises(Died):
            story.play()
        story.again()
        story.settle()
        if any(each.state == "waiting" for each in story.store.open()):
            story.hold_round()
        story.finish()
        paid_once(story)


LAWS = (promises_are_kept, promises_are_kept_beside_masters, no_death_loses_a_token)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("seed", [*SEEDS, *NARROW])
def test_law(law: Callable[[int], None], seed: int) -> None:
    law(seed)


def _half(store, each, now_ms):
    charge = CHARGE(store, each, now_ms)
    return charge and msgspec.structs.replace(charge, mtokens=charge.mtokens // 2)


def _more_back(accounts_, at_ms, admission, used, choice="both"):
    paid = accounts_.payments[admission]
    return TokensRefunded(at_ms, paid.account, admission, paid.mtokens + 1)


def _unbounded(offered, request, budget, balance):
    return request.deadline_at_ms or offered.earliest_ms


def _too_early(offered, request, budget, balance):
    found = AGREED(offered, request, budget, balance)
    return found - 1 if isinstance(found, int) else found


def _as_masters_are(now, job):
    return judged(now.free, now.dues, now.now_ms, job)


AGREED, CHARGE = mrm._agreed, payments._charge
BUGS = {
    "a deadline 1 ms before the earliest": (mrm, "_agreed", _too_early, promises_are_kept),
    "nobody looks at balances": (mrm, "_agreed", _unbounded, promises_are_kept),
    "what others have to do is forgotten": (promises, "_left",
        lambda seen: {str(each.request.sequence): 0 for each in seen.reserved}, promises_are_kept),
    "masters that wait hold nothing": (promises, "masters_load", lambda *_: (),
        promises_are_kept_beside_masters),
    "a master comes early whatever it breaks": (turns, "broken", lambda *_: (),
        promises_are_kept_beside_masters),
    "who is promised later does not delay masters": (promises.Market, "tried", _as_masters_are,
        promises_are_kept_beside_masters),
    "nobody's turn comes": (turns, "_is_its_turn", lambda *_: False, promises_are_kept),
    "charged half of its price": (payments, "_charge", _half, promises_are_kept),
    "more goes back than was paid": (payments, "settle", _more_back, promises_are_kept),
    "each is served by its own deadline": (mrm.Priced, "serve_by_ms",
        lambda offered, deadline_at_ms: deadline_at_ms, promises_are_kept),
    "prices are rounded down": (mrm, "price_mtokens", int, promises_are_kept),
}  # fmt: skip


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, name, instead, law = BUGS[bug]
    monkeypatch.setattr(holder, name, instead)
    with pytest.raises((AssertionError, accounts.ImpossibleRecord)):
        _on_all_seeds(law)


def _on_all_seeds(law: Callable[[int], None]) -> None:
    for seed in (*NARROW, *SEEDS):
        law(seed)
