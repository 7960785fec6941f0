"""Which records of accounts are due: charges of what was promised, refunds of what is over, refills.

Computed from the store alone: a crash between two records loses none, for what was not written
is due again. The writer of the journal writes them before anything else is decided: so a promise is
paid before the next one is made, once, out of the balance that the round has seen.
"""

from __future__ import annotations

from yarnctl.deciding.admission.book import OPEN, Admission, AdmissionStore
from yarnctl.deciding.admission.pricing import accounts as paying
from yarnctl.deciding.admission.records import Refund


def due_records(
    store: AdmissionStore, now_ms: int, *, learning: bool = True
) -> tuple[paying.AccountRecord, ...]:
    """Return the records that are due, in order; each can follow the ones before it.

    A charge that its account cannot pay is not due: its admission stays unpaid, and is served as such.
    ``learning``: what a job used is still to be read after it has ended, and its refund waits for that.
    """
    accounts, due = store.accounts, list[paying.AccountRecord]()
    for each in store.open():
        charge = _charge(store, each, now_ms)
        if charge is not None and not paying.problem(accounts, charge):
            accounts = paying.after(accounts, charge)
            due.append(charge)
    for name in store.accounts.payments:
        found = store.admissions.get(name)
        if found is not None and (found.state in OPEN or (learning and found.application in store.unlearned)):
            continue
        used, choice = _ended(store, found)
        refund = paying.settle(accounts, now_ms, name, used, choice)
        if refund is not None:
            accounts = paying.after(accounts, refund)
            due.append(refund)
    refills = (paying.refill_due(accounts, name, now_ms) for name in accounts.accounts)
    return (*due, *(refill for refill in refills if refill is not None))


def sold_deadlines(store: AdmissionStore) -> dict[str, int]:
    """Return by when YARN is to serve each application with a paid, claimed admission: no other is ranked.

    What its tags say does not count; a paid back admission counts no more.
    """
    payments = store.accounts.payments
    return {
        each.application: each.reservation.until_ms
        for each in store.open("running")
        if each.reservation is not None
        and each.admission in payments
        and payments[each.admission].refunded_mtokens is None
    }


def payment_problem(store: AdmissionStore, record: object) -> str:
    """Return why a charge or a refund is not the one that was due, "" if it is; before it is applied."""
    if isinstance(record, paying.TokensCharged):
        found = store.admissions.get(record.admission)
        due: paying.TokensCharged | paying.TokensRefunded | None = None
        due = None if found is None else _charge(store, found, record.at_ms)
    elif isinstance(record, paying.TokensRefunded):
        found = store.admissions.get(record.admission)
        open_now = found is not None and found.state in OPEN
        used, choice = _ended(store, found)
        due = (
            None if open_now else paying.settle(store.accounts, record.at_ms, record.admission, used, choice)
        )
    else:
        return ""
    due_text = "nothing" if due is None else f"{due.mtokens} of {due.account}"
    found_text = f"{record.mtokens} of {record.account}"
    return "" if record == due else f"{record.admission}: {found_text}, due is {due_text}"


def _charge(store: AdmissionStore, admission: Admission, now_ms: int) -> paying.TokensCharged | None:
    """Return the charge of a promise; one that came late, after it was paid back, is not paid again."""
    price, budget = admission.plan.price_mtokens, admission.request.budget
    if price is None or admission.reservation is None or budget is None:
        return None
    if admission.admission in store.accounts.payments:
        return None
    return paying.TokensCharged(now_ms, budget.account, admission.admission, price, admission.key)


def _ended(store: AdmissionStore, admission: Admission | None) -> tuple[paying.Used, Refund]:
    """Return how it ended, and which refund its request chose; none for what is dropped."""
    if admission is None or admission.request.budget is None:
        return paying.Used("ran"), "none"
    if admission.state != "ended":
        return paying.Used("not-run"), admission.request.budget.refund
    return store.outcomes.get(admission.admission, paying.Used("ran")), admission.request.budget.refund
