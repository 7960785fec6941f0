"""Records of accounts in a journal: folded, kept by a state, replayed, and refused where they cannot follow.

Law: a balance is what the records say, whichever of them a file begins with.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.daemon.at_the_desk import AtTheDesk
from yarnctl.daemon.admission.request_queue import AccountCommand
from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.admission.entries import AdmissionAsked
from yarnctl.deciding.admission.pricing.accounts import (
    AccountRecord,
    AccountSet,
    TokensCharged,
    TokensGranted,
    TokensRefilled,
    TokensRefunded,
)
from yarnctl.deciding.admission.records import (
    Budget,
    DueClaim,
    Estimate,
    Plan,
    Rectangle,
    Request,
    Reservation,
)
from yarnctl.deciding.reasons.verdicts import Undecided
from yarnctl.deciding.records import Record, State, decode, encode
from yarnctl.journal.fold import Fold
from yarnctl.journal.replay import BETWEEN_STEPS

STORY: tuple[AccountRecord, ...] = (
    AccountSet(1, "analytics", daily_mtokens=10, cap_mtokens=100),
    TokensGranted(2, "analytics", 90),
    TokensCharged(3, "analytics", "adm-0a0a0a0a-1", 40, "key-1"),
    TokensRefunded(4, "analytics", "adm-0a0a0a0a-1", 15),
    TokensRefilled(86_400_001, "analytics", 10, 86_400_001),
)


def test_the_records_of_accounts_are_lines_of_the_journal_and_a_fold_has_their_balances() -> None:
    fold = Fold()
    for record in STORY:
        assert decode(encode(record)) == record
        assert fold.book.problem(record) == ""
        fold.apply(record)
    assert fold.book.accounts.accounts["analytics"].balance_mtokens == 90 - 40 + 15 + 10
    assert fold.book.accounts.payments["adm-0a0a0a0a-1"].key == "key-1"


@pytest.mark.parametrize("after", range(len(STORY) + 1))
def test_a_state_at_the_head_of_a_file_keeps_balances_and_payments(after: int) -> None:
    whole, first = Fold(), Fold()
    for place, record in enumerate(STORY):
        whole.apply(record)
        if place < after:
            first.apply(record)
    state = decode(encode(first.state()))
    assert isinstance(state, State)
    rest = Fold()
    rest.apply(state)
    for record in STORY[after:]:
        rest.apply(record)
    assert rest.book.accounts == whole.book.accounts


def test_a_journal_without_accounts_has_no_word_of_them() -> None:
    told = encode(Fold().state())
    assert b"accounts" not in told
    assert b"outcomes" not in told


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (TokensGranted(1, "nobody", 5), "account 'nobody': TokensGranted cannot follow"),
        (TokensCharged(1, "analytics", "adm-0a0a0a0a-1", 101), "paid already, or more than there is"),
        (TokensRefunded(1, "analytics", "adm-0a0a0a0a-1", 1), "not paid from there, or settled already"),
        (TokensRefilled(1, "analytics", 1, 0), "these days are refilled already"),
    ],
)
def test_a_record_that_cannot_follow_is_named_and_changes_nothing(
    record: AccountRecord, problem: str
) -> None:
    store = AdmissionStore()
    store.take(AccountSet(0, "analytics"))
    store.take(TokensGranted(0, "analytics", 100))
    before = store.accounts
    assert problem in store.problem(record)
    store.take(record)
    assert store.accounts == before


SALE = Budget("analytics", 10**9)


def paid_story() -> list[Record]:
    """Return a desk's records of one deadline that is paid, missed and paid back."""
    there = AtTheDesk("mrm", history=False)
    there.go(4_000)
    for credit_mtokens in (None, 10**7):
        there.hand(AccountCommand(account="analytics", credit_mtokens=credit_mtokens))
        there.tick()
    estimate = Estimate(600_000, 0, "me")
    running = there.submit(there.ask(10, 2, estimate=estimate, budget=SALE))
    there.go(150_000)
    there.yarn.end(running)
    there.go(10_000)
    return there.records


@pytest.mark.parametrize("kind", [TokensCharged, TokensRefunded])
@pytest.mark.parametrize(("mtokens", "told"), [(0, ""), (-1, "due is 300000 of analytics")])
def test_a_charge_or_refund_of_another_amount_than_was_due_is_refused(
    kind: type[TokensCharged | TokensRefunded], mtokens: int, told: str
) -> None:
    fold = Fold()
    for record in paid_story():
        if isinstance(record, kind):
            changed = msgspec.structs.replace(record, mtokens=record.mtokens + mtokens)
            assert fold.problem(changed).endswith(told)
            assert bool(fold.problem(changed)) == bool(told)
            return
        assert fold.problem(record) == ""
        fold.apply(record)
    raise AssertionError(f"no {kind.__name__}")


def test_an_admission_with_its_users_own_estimate_is_refused_where_deadlines_have_a_price() -> None:
    fold = Fold()
    for record in paid_story():
        if isinstance(record, AdmissionAsked):
            estimate = Estimate(1, 0, "history", given_by="user")
            request = msgspec.structs.replace(record.request, estimate=estimate)
            changed = msgspec.structs.replace(record, request=request)
            assert "has its user's own estimate" in fold.problem(changed)
            return
        fold.apply(record)


def test_an_unknown_kind_is_refused_by_its_name() -> None:
    with pytest.raises(msgspec.ValidationError, match="tokens-burnt"):
        decode(b'{"type":"tokens-burnt","at_ms":1,"account":"analytics","mtokens":1}')


def test_replay_lets_them_stand_between_steps() -> None:
    assert {type(record) for record in STORY} <= set(BETWEEN_STEPS)


def test_a_due_is_a_claim_beside_the_rectangle_and_told_apart_by_its_tag() -> None:
    request = Request(1, 0, 60_000, 4)
    due = Reservation(request, DueClaim(work_ms=100, most=4, from_ms=5, until_ms=60_000), 1.0, 60_000)
    held = Reservation(request, Rectangle(containers=4, from_ms=5, until_ms=60_000), 1.0, 60_000)
    told = msgspec.json.encode([due, held])
    assert b'"claim":"due"' in told
    assert b'"claim":"rectangle"' in told
    assert msgspec.json.decode(told, type=list[Reservation]) == [due, held]
    assert (due.containers, due.from_ms, due.until_ms) == (4, 5, 60_000)


def test_a_plan_without_a_price_writes_none_of_its_terms() -> None:
    plan = msgspec.json.encode(Plan(1, "defer", 0, 60_000, Undecided()))
    assert not any(word in plan for word in (b"price_mtokens", b"late_ratio", b"because"))
