"""The market at the desk: quotes, refusals by name, payments through restarts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.daemon.at_the_desk import MINUTE, AtTheDesk, Killed, asking
from yarnctl.daemon.admission import market_desk
from yarnctl.daemon.admission.backlog import tag_of
from yarnctl.daemon.admission.market_desk import Quote
from yarnctl.daemon.admission.request_queue import AccountCommand, QuoteRequest, Refusal, WithdrawRequest
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.entries import AdmissionRound
from yarnctl.deciding.admission.pricing.accounts import TokensCharged, TokensGranted, TokensRefunded
from yarnctl.deciding.admission.records import Budget, Estimate, Finished
from yarnctl.deciding.admission.rounds import Promised
from yarnctl.deciding.reasons.verdicts import AwaitsTurn, CostsMore

WORK_MS = 600_000
ESTIMATE = Estimate(WORK_MS, 0, "me")
MOST = 10**9


def market(tokens_m: int = 5_000_000, **given: Any) -> AtTheDesk:
    there = AtTheDesk("mrm", **given)
    there.go(4_000)
    for wanted in (AccountCommand(account="analytics"), credit(tokens_m)):
        errand = there.hand(wanted)
        there.tick()
        assert errand.answer == "analytics"
    return there


def credit(mtokens: int, account: str = "analytics") -> AccountCommand:
    return AccountCommand(account=account, credit_mtokens=mtokens)


def priced(containers: int = 10, minutes: float | None = 2, most: int = MOST, **fields: Any) -> Any:
    known = {"estimate": ESTIMATE, "budget": Budget("analytics", most), **fields}
    return asking(containers, minutes, **known)


def balance(there: AtTheDesk) -> int:
    return there.book.balances()["analytics"]


def quote(there: AtTheDesk, **fields: Any) -> Quote:
    known: dict[str, Any] = {"name": "job", "user": "ann", "queue": "root.production", "containers": 10}
    errand = there.hand(QuoteRequest(**{**known, "account": "analytics", "estimate": ESTIMATE, **fields}))
    there.tick()
    assert isinstance(errand.answer, str), errand.answer
    return there.desk.shown().quotes[errand.answer]


def test_a_quote_is_a_curve_that_never_rises_and_holds_nothing() -> None:
    there = market()
    written = len(there.records)
    made = quote(there, points=6)
    assert len(there.records) == written
    assert made.earliest_at_ms == there.now_ms + MINUTE
    prices = [point.price_mtokens for point in made.points]
    assert len(prices) == 6
    assert prices == sorted(prices, reverse=True)
    assert prices[0] == WORK_MS
    assert made.points[0].because == (("itself", WORK_MS),)
    assert made.balance_mtokens == 5_000_000
    assert made.valid_until_ms == there.now_ms + MINUTE


def test_a_quote_names_whose_slack_becomes_less_by_its_admission() -> None:
    there = market()
    first = there.ask(10, 10, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    made = quote(there)
    assert first.admission in dict(made.points[0].because)


def test_who_agrees_is_admitted_at_once_and_charged_once_under_one_key() -> None:
    there = market()
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST), key="k1")
    assert asked.state == "admitted"
    assert asked.plan.price_mtokens is not None
    again = there.hand(priced(key="k1"))
    there.tick()
    assert again.answer == asked.admission
    assert balance(there) == 5_000_000 - asked.plan.price_mtokens
    assert sum(isinstance(each, TokensCharged) for each in there.records) == 1


REFUSED = [
    ({"minutes": 0.5}, "too-early", "ten containers need a minute"),
    ({"budget": Budget("nobody", 1)}, "no-account", "no such account"),
    ({"estimate": None}, "no-estimate", "nobody knows its work"),
    ({"estimate": Estimate(1, 0, "me", given_by="user")}, "estimate-needs-operate", "its payer's estimate"),
    ({"quote": "quo-a1b2-99"}, "quote-moved", "no such quote"),
]


@pytest.mark.parametrize(("fields", "code", "claim"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_is_refused_is_named_not_written_down_and_not_charged(
    fields: dict[str, Any], code: str, claim: str
) -> None:
    there = market(history=False)
    written = len(there.records)
    assert there.refused(priced(**fields)) == code
    assert len(there.records) == written


def test_a_quote_of_its_payers_estimate_is_refused() -> None:
    there = market()
    wanted = QuoteRequest(
        name="job", user="ann", queue="root.production", containers=10, account="analytics",
        estimate=Estimate(1, 0, "me", given_by="user"),
    )  # fmt: skip
    assert there.refused(wanted) == "estimate-needs-operate"


def test_a_users_estimate_is_believed_where_deadlines_have_no_price() -> None:
    there = AtTheDesk()
    found = there.ask(5, estimate=Estimate(600_000, 0, "me", given_by="user"))
    assert (found.state, found.request.estimate is not None) == ("admitted", True)


def test_a_quote_that_has_become_dearer_is_refused_and_one_that_holds_is_taken() -> None:
    there = market()
    made = quote(there)
    taken = there.hand(priced(minutes=2, quote=made.id))
    there.tick()
    assert isinstance(taken.answer, str)
    assert there.refused(priced(minutes=2.5, quote=made.id, key="two")) == "quote-moved"


def test_a_quote_of_another_user_is_not_chosen_from() -> None:
    there = market()
    made = quote(there)
    assert there.refused(priced(quote=made.id, user="bob")) == "quote-moved"


def test_a_quote_of_another_name_is_not_chosen_from() -> None:
    there = market()
    made = quote(there, name="nightly")
    assert there.refused(priced(quote=made.id, name="job")) == "quote-moved"


def test_a_quote_is_too_old_after_a_minute() -> None:
    there = market()
    made = quote(there)
    there.go(MINUTE + 500)
    assert there.refused(priced(quote=made.id)) == "quote-moved"


def test_a_budget_alone_buys_no_later_deadline_than_it_was_quoted() -> None:
    there = market()
    made = quote(there)
    cheap = made.points[2]
    fields: dict[str, Any] = {
        "minutes": None,
        "budget": Budget("analytics", cheap.price_mtokens),
        "quote": made.id,
    }
    there.tick(5_000)
    kept = there.hand(priced(key="kept", **fields))
    there.tick()
    assert isinstance(kept.answer, str), "only time has passed, and all deadlines with it"
    moved = there.hand(priced(key="moved", **fields))
    there.tick()
    assert isinstance(moved.answer, Refusal)
    assert moved.answer.code == "quote-moved"
    anew = there.desk.shown().quotes[moved.answer.quote]
    assert anew.points[0].price_mtokens > made.points[0].price_mtokens


def test_who_asks_too_early_gets_the_curve_with_the_refusal() -> None:
    there = market()
    errand = there.hand(priced(minutes=0.5))
    there.tick()
    assert isinstance(errand.answer, Refusal)
    assert there.desk.shown().quotes[errand.answer.quote].earliest_at_ms == there.now_ms + MINUTE


def test_a_job_that_comes_after_its_promise_was_given_up_runs_without_one() -> None:
    there = market()
    late = there.ask(10, 3, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    there.go(70_000)
    assert there.book.admissions[late.admission].state == "expired"
    there.yarn.run("application_1_0001", 5, tags=tag_of(late.admission))
    there.ask(5, 10, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    there.go(10_000)
    assert there.book.admissions[late.admission].state == "expired"
    assert late.request.sequence not in {each.request.sequence for each in there.gate.reserved}
    assert there.book.by_application("application_1_0001") is None


@pytest.mark.parametrize(("suspendable", "wait_ms"), [(True, MINUTE), (False, 2 * MINUTE)])
def test_the_earliest_deadline_waits_for_what_cannot_be_suspended(suspendable: bool, wait_ms: int) -> None:
    there = market()
    patient = there.ask(10, 600, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    there.yarn.run("application_1_0001", 10, tags=tag_of(patient.admission))
    there.go(2_000)
    assert there.book.admissions[patient.admission].state == "running"
    there.suspendable = {"application_1_0001"} if suspendable else set()
    made = quote(there)
    assert abs(made.earliest_at_ms - there.now_ms - wait_ms) <= 3_000
    asked = there.ask(10, 2.5, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    (told,) = [r for r in there.records if isinstance(r, AdmissionRound) and asked.plan in r.plans]
    assert told.blocking == (() if suspendable else (patient.request.sequence,))
    store = AdmissionStore()
    for record in there.records:
        assert store.problem(record) == ""
        store.take(record)
    assert store.left() == there.book.left()


def test_a_job_that_is_not_submitted_yet_has_all_its_work_to_do() -> None:
    there = market()
    first = there.ask(10, 10, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    there.go(40_000)
    assert quote(there).points[0].because[1:], "it is still to come"
    there.yarn.run("application_1_0001", 10, tags=tag_of(first.admission))
    there.go(1_000)
    there.suspendable = {"application_1_0001"}
    there.ask(10, 20, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    assert isinstance(there.gate.promised, Promised)
    left = {due.who: due.work_ms for due in there.gate.promised.dues}
    assert WORK_MS - 30_000 <= left[str(first.request.sequence)] <= WORK_MS


def test_more_than_was_agreed_is_rejected_with_what_it_would_cost() -> None:
    there = market()
    asked = there.ask(10, 1.5, estimate=ESTIMATE, budget=Budget("analytics", 1_000))
    assert asked.state == "rejected"
    assert isinstance(asked.why, CostsMore)
    assert balance(there) == 5_000_000


def test_an_account_is_opened_once_and_only_known_ones_get_tokens() -> None:
    there = market()
    assert there.refused(AccountCommand(account="analytics")) == "account-known"
    assert there.refused(credit(5, "nobody")) == "no-account"


def test_who_withdraws_or_never_comes_is_paid_back() -> None:
    there = market()
    first = there.ask(10, 10, estimate=ESTIMATE, budget=Budget("analytics", MOST, "none"))
    assert balance(there) < 5_000_000
    there.withdraw(first.admission)
    there.tick()
    assert balance(there) == 5_000_000
    there.ask(10, 10, estimate=ESTIMATE, budget=Budget("analytics", MOST, "none"))
    there.go(70_000)
    assert balance(there) == 5_000_000


REFUNDS = [
    ("none", WORK_MS // 2, True, 0, "the paper: nothing"),
    ("both", WORK_MS // 2, True, WORK_MS // 2, "half was used"),
    ("unused", WORK_MS, True, 0, "all was used"),
    ("late", WORK_MS // 2, True, 0, "in time"),
    ("both", WORK_MS, False, WORK_MS, "late: all"),
    ("unused", WORK_MS // 2, False, WORK_MS // 2, "late, but only what was not used"),
]


@pytest.mark.parametrize(
    ("choice", "used_ms", "met", "back", "claim"), REFUNDS, ids=[row[4] for row in REFUNDS]
)
def test_what_comes_back_of_a_job_that_ran(
    choice: Any, used_ms: int, met: bool, back: int, claim: str
) -> None:
    there = market()
    asked = there.ask(10, 1.01, estimate=ESTIMATE, budget=Budget("analytics", MOST, choice))
    price = asked.plan.price_mtokens
    assert price is not None
    running = there.submit(asked)
    there.go(2_000 if met else 70_000)
    there.past.jobs[running] = Finished(used_ms, 10, 60_000, 10, 10, 1.0, met)
    there.yarn.end(running)
    there.go(20_000)
    refunds = [each.mtokens for each in there.records if isinstance(each, TokensRefunded)]
    assert refunds == [price * back // WORK_MS]
    assert balance(there) == 5_000_000 - price + refunds[0]


def test_a_death_between_a_promise_and_its_charge_charges_it_once() -> None:
    whole = market()
    whole.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    before = sum(1 for each in whole.records[: whole.records.index(charge_of(whole))])
    there = market()
    there.dies_at = before
    with pytest.raises(Killed):
        there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    assert not any(isinstance(each, TokensCharged) for each in there.records)
    again = AtTheDesk("mrm", yarn=there.yarn, past=there.past, records=there.records, now_ms=there.now_ms)
    again.tick()
    assert sum(isinstance(each, TokensCharged) for each in again.records) == 1
    assert balance(again) == balance(whole)


def charge_of(there: AtTheDesk) -> TokensCharged:
    return next(each for each in there.records if isinstance(each, TokensCharged))


def test_no_quote_where_deadlines_have_no_price() -> None:
    there = AtTheDesk("justice")
    there.tick()
    errand = there.hand(
        QuoteRequest(name="job", user="ann", queue="root.production", containers=1, account="analytics")
    )
    there.go(1_500)
    assert isinstance(errand.answer, Refusal)
    assert errand.answer.code == "no-account"


def test_an_operator_gives_tokens_by_a_record() -> None:
    there = market(7)
    assert [each.mtokens for each in there.records if isinstance(each, TokensGranted)] == [7]


# --- what the cluster knows better than a client -------------------------------------------------


def withdrawn(there: AtTheDesk, admission: str) -> str | Refusal | None:
    """Return the answer to a withdrawal that is executed before the next poll."""
    errand = there.hand(WithdrawRequest(admission))
    there.tick(1)
    return errand.answer


def sold_later(there: AtTheDesk) -> Admission:
    """Return an admission that is paid and waits for its turn."""
    there.ask(10, 60, estimate=ESTIMATE, budget=Budget("analytics", MOST), key="first")
    found = there.ask(10, 90, estimate=ESTIMATE, budget=Budget("analytics", MOST), key="second")
    assert (found.state, isinstance(found.plan.reason, AwaitsTurn)) == ("waiting", True)
    return found


def test_withdraw_after_submission_claims_the_application() -> None:
    """A client submits, and withdraws before the next poll: the price is not paid back."""
    there = market()
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    running = there.submit(asked)
    answer = withdrawn(there, asked.admission)
    assert isinstance(answer, Refusal)
    assert answer.code == "already-running"
    there.go(5_000)
    assert (there.state(asked), there.book.admissions[asked.admission].application) == ("running", running)
    assert balance(there) == 5_000_000 - (asked.plan.price_mtokens or 0)


def test_withdraw_after_the_end_claims_the_application() -> None:
    """The application has run and ended between two polls."""
    there = market()
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST, "none"))
    there.yarn.end(there.submit(asked), at_ms=there.now_ms)
    assert isinstance(withdrawn(there, asked.admission), Refusal)
    there.go(60_000)
    assert there.state(asked) == "ended"
    assert balance(there) == 5_000_000 - (asked.plan.price_mtokens or 0)


def test_withdraw_is_refused_while_the_manager_is_unreachable() -> None:
    there = market()
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    there.yarn.away = True
    answer = withdrawn(there, asked.admission)
    assert isinstance(answer, Refusal)
    assert answer.code == "cluster-unreachable"
    there.go(10_000)
    assert there.state(asked) == "admitted"
    assert balance(there) == 5_000_000 - (asked.plan.price_mtokens or 0)
    there.yarn.away = False
    there.go(6_000)
    there.withdraw(asked.admission)
    there.tick()
    assert (there.state(asked), balance(there)) == ("withdrawn", 5_000_000)


def test_withdraw_before_its_turn_is_refused_while_its_application_is_in_yarn() -> None:
    there = market()
    asked = sold_later(there)
    held = balance(there)
    there.submit(asked, "application_1_0009")
    assert isinstance(withdrawn(there, asked.admission), Refusal)
    assert (there.state(asked), balance(there)) == ("waiting", held)


def test_lease_over_before_its_turn_is_paid_back() -> None:
    there = market(lease_ms=10_000)
    asked = sold_later(there)
    held = balance(there)
    there.go(20_000)
    assert (there.state(asked), balance(there)) == ("withdrawn", held + (asked.plan.price_mtokens or 0))


def test_lease_over_before_its_turn_pays_nothing_back_while_its_application_is_in_yarn() -> None:
    there = market(lease_ms=10_000)
    asked = sold_later(there)
    there.submit(asked, "application_1_0009")
    held = balance(there)
    there.go(20_000)
    assert (there.state(asked), balance(there)) == ("waiting", held)


OUTAGES = [
    pytest.param(True, -5_000, True, 0, id="in time, without history"),
    pytest.param(True, 5_000, True, 1, id="late, without history"),
    pytest.param(False, -5_000, False, 0, id="in time, history: late"),
    pytest.param(False, 5_000, True, 1, id="late, history: in time"),
]


@pytest.mark.parametrize(("off", "after_ms", "met", "parts_back"), OUTAGES)
def test_lateness_is_judged_by_the_finish_time_of_yarn(
    off: bool, after_ms: int, met: bool, parts_back: int
) -> None:
    """The daemon is down from before the deadline to ten minutes after it."""
    there = market(history=not off)
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST, "late"))
    price = asked.plan.price_mtokens or 0
    running = there.submit(asked)
    there.go(2_000)
    there.yarn.end(running, at_ms=asked.plan.deadline_at_ms + after_ms)
    there.past.jobs[running] = Finished(WORK_MS, 10, 120_000, 10, 10, 1.0, met)
    now_ms = asked.plan.deadline_at_ms + 600_000
    again = AtTheDesk(
        "mrm", yarn=there.yarn, past=there.past, records=there.records, now_ms=now_ms, history=not off
    )
    again.go(20_000)
    back = [each.mtokens for each in again.records if isinstance(each, TokensRefunded)]
    assert back == [price * parts_back]


CLOCKS = [
    (-3_600_000, False, 1, "an hour behind: it was listed as unfinished after its deadline"),
    (3_600_000, True, 0, "an hour ahead: its end was noticed before its deadline"),
    (None, False, 1, "without the right to see the finish time, late"),
    (None, True, 0, "without the right to see the finish time, in time"),
]


@pytest.mark.parametrize(("apart_ms", "met", "parts_back", "_"), CLOCKS, ids=[row[3] for row in CLOCKS])
def test_a_finish_time_is_bounded_by_what_was_seen(
    apart_ms: int | None, met: bool, parts_back: int, _: str
) -> None:
    there = market(history=False)
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST, "late"))
    running = there.submit(asked)
    there.go(60_000 if met else 150_000)
    there.yarn.end(running, at_ms=0 if apart_ms is None else there.now_ms + apart_ms)
    there.go(20_000)
    back = [each.mtokens for each in there.records if isinstance(each, TokensRefunded)]
    assert back == [(asked.plan.price_mtokens or 0) * parts_back]


def test_an_application_that_yarn_has_forgotten_is_not_late_by_that() -> None:
    """The daemon is down over the deadline; the ResourceManager does not know the application any more."""
    there = market(history=False)
    asked = there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST, "late"))
    running = there.submit(asked)
    there.go(2_000)
    there.yarn.forget(running)
    again = AtTheDesk(
        "mrm", yarn=there.yarn, records=there.records, now_ms=there.now_ms + 600_000, history=False
    )
    again.go(30_000)
    assert again.state(asked) == "ended"
    assert [each.mtokens for each in again.records if isinstance(each, TokensRefunded)] == [0]


def test_settle_writes_no_charge_that_cannot_follow() -> None:
    """A journal without the tokens that a charge needs; the impossible charge is due for ever."""
    there = market()
    there.ask(10, 2, estimate=ESTIMATE, budget=Budget("analytics", MOST))
    kept = [each for each in there.records if not isinstance(each, TokensGranted | TokensCharged)]
    again = AtTheDesk("mrm", yarn=there.yarn, records=kept, now_ms=there.now_ms)
    again.dies_at = len(kept) + 20
    again.go(5_000)
    assert not any(isinstance(each, TokensCharged) for each in again.records)


def test_quotes_of_one_user_push_out_no_quote_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_desk, "QUOTES_MAX", 10)
    there = market()
    made = quote(there)
    for _ in range(20):
        quote(there, user="bob", name="other")
    assert len(there.desk.shown().quotes) <= 10
    assert isinstance(chosen(there, made.id), str)


def chosen(there: AtTheDesk, quoted: str) -> str | Refusal | None:
    """Return the answer to a request that chooses from a quote."""
    errand = there.hand(priced(minutes=2, quote=quoted))
    there.tick(1)
    return errand.answer


def test_a_deadline_tag_past_the_gate_does_not_shorten_its_load() -> None:
    """An application without an admission says that it ends in five minutes: nothing is sold by that."""
    there = market()
    there.yarn.run("application_1_0009", 10, user="eve", tags=f"deadline:{there.now_ms + 300_000}")
    there.go(6_000)
    assert there.refused(priced(minutes=30)) == "too-early"
