"""Which records of accounts are due: charges of what was promised, refunds of what is over, refills.

Law: pure, and told by the store alone: a death between two records loses none, for what was not written
is due again. The writer of the journal writes them before anything else is decided: so a promise is
paid before the next one is made, once, out of the balance that the round has seen.
"""

from __future__ import annotations

from yarnctl.deciding.admission.book import OPEN, Admission, AdmissionStore
from yarnctl.deciding.admission.pricing.accounts import (
    AccountRecord,
    TokensCharged,
    Used,
    refill_due,
    settle,
)
from yarnctl.deciding.admission.records import Budget, Refund


def due_record(store: AdmissionStore, now_ms: int, *, learning: bool = True) -> AccountRecord | None:
    """Return the next record that is due, None if none is.

    ``learning``: what a job used is still asked for after it has ended, and its refund waits for that.
    """
    for each in store.open():
        charge = _charge(store, each, now_ms)
        if charge is not None:
            return charge
    for name, payment in store.accounts.payments.items():
        if payment.refunded_mtokens is not None:
            continue
        found = store.admissions.get(name)
        if found is not None and (found.state in OPEN or (learning and found.application in store.unlearned)):
            continue
        refund = settle(store.accounts, now_ms, name, *_ended(store, found))
        if refund is not None:
            return refund
    for name in store.accounts.accounts:
        refill = refill_due(store.accounts, name, now_ms)
        if refill is not None:
            return refill
    return None


def _charge(store: AdmissionStore, each: Admission, now_ms: int) -> TokensCharged | None:
    """Return the charge of a promise; one that came late, after it was paid back, is not paid again."""
    price, budget = each.plan.price_mtokens, each.request.budget
    if price is None or each.reservation is None or not isinstance(budget, Budget):
        return None
    if each.admission in store.accounts.payments:
        return None
    return TokensCharged(now_ms, budget.account, each.admission, price, each.key)


def _ended(store: AdmissionStore, found: Admission | None) -> tuple[Used, Refund]:
    """Return how it ended, and which refund its request chose; none for what is dropped."""
    if found is None or not isinstance(found.request.budget, Budget):
        return Used("ran"), "none"
    if found.state != "ended":
        return Used("not-run"), found.request.budget.refund
    return store.outcomes.get(found.admission, Used("ran")), found.request.budget.refund
