"""What a round offered to one request: the prices of its deadlines, computed anew from the round's inputs.

The journal has the deadline that was decided on and its price, and not the curve. Where the inputs do not
give the recorded price back, records before them are missing, and nothing is offered.
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.deciding.admission.entries import AdmissionRound
from yarnctl.deciding.admission.gate import Gate, expired
from yarnctl.deciding.admission.mechanisms.mrm import Priced, deadlines, priced
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices, MrmMemory, market
from yarnctl.deciding.admission.records import Plan
from yarnctl.deciding.admission.rounds import Seen
from yarnctl.deciding.reasons.verdicts import CannotPay, CostsMore

TRIED = 5
"""So many deadlines are priced, each several times as far behind the decided one as the last."""


class Cheaper(NamedTuple):
    """A later deadline, and the lower price that it had."""

    deadline_at_ms: int
    price_mtokens: int


def decided_price(plan: Plan) -> Cheaper | None:
    """Return the deadline that was decided on with its price; None: no price was decided on."""
    if plan.price_mtokens is not None:
        return Cheaper(plan.deadline_at_ms, plan.price_mtokens)
    if isinstance(plan.reason, CostsMore | CannotPay):
        return Cheaper(plan.reason.deadline_at_ms, plan.reason.price_mtokens)
    return None


def cheaper_later(
    gate_before: Gate, admission_round: AdmissionRound, plan: Plan, most: int = 3
) -> list[Cheaper]:
    """Return up to ``most`` later deadlines that would have cost less, each less than the one before.

    ``gate_before`` is the gate before the round, ``plan`` the round's decision on the request.
    """
    decided, offered = decided_price(plan), _offered(gate_before, admission_round, plan.sequence)
    if decided is None or offered is None:
        return []
    if offered.price_mtokens(decided.deadline_at_ms) != decided.price_mtokens:
        return []
    found = [decided]
    for at_ms in deadlines(offered._replace(earliest_ms=decided.deadline_at_ms), TRIED)[1:]:
        price = offered.price_mtokens(at_ms)
        if price < found[-1].price_mtokens:
            found.append(Cheaper(at_ms, price))
    return found[1 : most + 1]


def _offered(gate_before: Gate, admission_round: AdmissionRound, sequence: int) -> Priced | None:
    """Return what each deadline of a request cost, after those that were decided on before it."""
    choices, memory = gate_before.choices, gate_before.memory
    request = next((each for each in gate_before.waiting if each.sequence == sequence), None)
    if request is None or request.estimate is None:
        return None
    if not isinstance(choices, MrmChoices) or not isinstance(memory, MrmMemory):
        return None
    late = {each.request.sequence for each in expired(gate_before, admission_round.at_ms)}
    kept = [each for each in gate_before.reserved if each.request.sequence not in late]
    if any(each.request.sequence == sequence for each in kept):
        return None  # it was sold in an earlier round
    order = {each.sequence: place for place, each in enumerate(gate_before.waiting)}
    known = {each.request.sequence for each in kept}
    first = [
        each
        for each in admission_round.granted
        if each.request.sequence not in known and order.get(each.request.sequence, -1) < order[sequence]
    ]
    seen = Seen(
        (),
        (*kept, *first),
        admission_round.loads,
        gate_before.pools,
        admission_round.at_ms,
        promised=gate_before.promised,
        blocking=admission_round.blocking,
    )
    found = market(memory, choices, seen)
    return priced(found, str(sequence), request.estimate, request.tasks, choices)
