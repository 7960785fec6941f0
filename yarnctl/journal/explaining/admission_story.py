"""Admissions: all that a journal records of one admission, or of that of an application.

Law: as of all explanations: made of the records in one pass, and nothing is added. What a later deadline
would have cost is computed anew from the recorded inputs of the round, where these give the recorded price.
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionTaken,
    ClockSetBack,
    GateLearned,
)
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.offering import cheaper_later, decided_price
from yarnctl.deciding.admission.placement_options import Alternatives
from yarnctl.deciding.admission.pricing.accounts import TokensCharged, TokensRefunded
from yarnctl.deciding.admission.pricing.prices import ITSELF
from yarnctl.deciding.admission.records import Plan
from yarnctl.deciding.records import Record
from yarnctl.journal.explaining.story import AdmissionStory
from yarnctl.journal.rendering import text, tokens_text, when

LOADS_SHOWN = 3


class _Decided(NamedTuple):
    """A round's inputs, and its decision on one request."""

    before: Gate
    record: AdmissionRound
    plan: Plan


class AdmissionStories:
    """Collects ``stories`` of the admission ``wanted``, or of that which the application of this id used."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.stories: list[AdmissionStory] = []
        self._store = AdmissionStore()
        self._own = ""
        self._rounds: dict[str, _Decided] = {}

    def apply(self, record: Record) -> None:
        """Read one record."""
        if isinstance(record, AdmissionTaken) and self.wanted in (record.admission, record.application):
            self._running(record)
        before, gate = self._store.admissions.get(self._own or self.wanted), self._store.gate
        self._store.take(record)
        self._keep_round(gate, record)
        now = self._store.admissions.get(self._own or self.wanted)
        if isinstance(record, AdmissionAsked) and record.admission == self.wanted:
            self._requested(record)
        elif isinstance(record, AdmissionRound) and now is not None and before is not now:
            pooled = next((loads for name, loads in record.pool_loads if name == now.plan.pool), ())
            self._tell(record.at_ms, now.admission, self._decision(now) + _backlog(pooled or record.loads))
        elif isinstance(record, ClockSetBack) and now is not None and before is not now:
            told = f"the clock was set back by {record.by_ms // 1000} s: the deadline stays, other times move"
            self._tell(record.at_ms, now.admission, told)
        elif isinstance(record, TokensCharged | TokensRefunded) and now is not None:
            if record.admission == now.admission:
                self._tell(record.at_ms, record.admission, _paid(record))
        elif isinstance(record, AdmissionClosed) and now is not None and record.admission == now.admission:
            self._tell(record.at_ms, record.admission, f"{record.state}: {text(record.why)}")
        elif (
            isinstance(record, GateLearned)
            and now is not None
            and record.application == now.application != ""
        ):
            told = _feedback(record) + _ran(now.plan, self._store.ran_ms.get(now.admission))
            self._tell(record.at_ms, now.admission, told)

    def _tell(self, at_ms: int, admission: str, told: str) -> None:
        self.stories.append(AdmissionStory(at_ms=at_ms, admission=admission, told=told))

    def _requested(self, record: AdmissionAsked) -> None:
        request, budget = record.request, record.request.budget
        where = f" in {record.queue}" if record.queue else ""
        told = f"{record.user} asked for {record.name}{where}: {request.tasks} containers at most"
        if request.alternatives is not None:
            told += _options(request.alternatives)
        if request.deadline_ms is not None or budget is None:
            told += f", {request.deadline_ms} ms to its deadline at {request.deadline_at_ms} ms"
        if budget is not None:
            told += f", for {tokens_text(budget.most_mtokens)} of {budget.account} at most"
        if request.estimate is not None:
            estimate = request.estimate
            told += (
                f"; it computes {estimate.mean_ms} container-ms (+- {estimate.stdev_ms}, {estimate.source})"
            )
        self._tell(record.at_ms, record.admission, told)

    def _running(self, record: AdmissionTaken) -> None:
        found = self._store.admissions.get(record.admission)
        if found is not None and not self.stories:
            self._before(found)
        self._own = record.admission
        self._tell(record.at_ms, record.admission, f"taken by {record.application}")

    def _before(self, found: Admission) -> None:
        """Add what came before an admission's application was known."""
        request = found.request
        asked = AdmissionAsked(
            request.submitted_at_ms, found.admission, found.name, found.user, found.queue, request, found.key
        )
        self._requested(asked)
        if found.reservation is not None:
            self._tell(found.reservation.from_ms, found.admission, self._decision(found))

    # --- prices ---------------------------------------------------------------------------------

    def _keep_round(self, gate: Gate | None, record: Record) -> None:
        """Keep the inputs of each round that decided on a price, until its job runs or it is over."""
        if isinstance(record, AdmissionRound) and gate is not None:
            promised = [each for each in self._store.open("waiting", "admitted") if each.reservation]
            names = {each.sequence: each.admission for each in promised}
            wanted = self._store.admissions.get(self.wanted)
            if wanted is not None:
                names[wanted.sequence] = wanted.admission
            for plan in record.plans:
                if plan.sequence in names and decided_price(plan) is not None:
                    # it is sold in one round, and may start in a later one
                    self._rounds.setdefault(names[plan.sequence], _Decided(gate, record, plan))
        elif isinstance(record, AdmissionTaken | AdmissionClosed):
            self._rounds.pop(record.admission, None)

    def _decision(self, found: Admission) -> str:
        """Tell a decision; of one about a price its terms, and what would have been cheaper."""
        told = _verdict(found.plan) + _placed(found.plan)
        if found.plan.price_mtokens is not None:
            told += self._price(found)
        decided = self._rounds.get(found.admission)
        later = [] if decided is None else cheaper_later(*decided)
        if not later:
            return told
        offers = ", ".join(
            f"{tokens_text(each.price_mtokens)} by {when(each.deadline_at_ms)}" for each in later
        )
        return f"{told}; a later deadline was cheaper: {offers}"

    def _price(self, found: Admission) -> str:
        """Tell a price term by term: the job itself, then whose slack becomes less."""
        plan = found.plan
        terms = ", ".join(
            f"{tokens_text(amount)} "
            f"{'for itself' if who == ITSELF else f'for the slack of {self._whose(found, who)}'}"
            for who, amount in plan.because
        )
        late = ""
        if plan.late_ratio is not None:
            late = f"; it is late with a chance of at most {plan.late_ratio * 100:g}%"
        return f"; promised by {when(plan.deadline_at_ms)} for {terms}{late}"

    def _whose(self, found: Admission, who: str) -> str:
        """Name an admission that a price has by its number, with its job's name where that is known."""
        name = f"{found.admission.rpartition('-')[0]}-{who}"
        other = self._store.admissions.get(name)
        return f"number {who}" if other is None else f"{name} ({other.name})"


def _verdict(plan: Plan) -> str:
    why = text(plan.reason)
    if plan.verdict == "admit":
        return f"admitted with {plan.containers} containers: {why}; to be done at {plan.finish_at_ms} ms"
    if plan.verdict == "reject":
        return f"rejected: {why}"
    start = "" if plan.start_at_ms is None else f"; to start at {plan.start_at_ms} ms as things stand"
    return f"waits: {why}{start}"


def _placed(plan: Plan) -> str:
    """Tell as what an application runs, how long that is expected to take, and what was refused."""
    told = ""
    if plan.kind and plan.predicted_ms is not None:
        settings = ", ".join(f"{name}={value}" for name, value in plan.settings)
        told = f"; as {plan.kind} in pool {plan.pool}" + (f" with {settings}" if settings else "")
        told += f", {plan.predicted_ms} ms predicted"
        if plan.start_at_ms is not None and plan.finish_at_ms is not None:
            chance = "" if plan.late_ratio is None else f" but with a chance of {plan.late_ratio * 100:g}%"
            told += f", {plan.finish_at_ms - plan.start_at_ms} ms at most{chance}"
    if not plan.refused:
        return told
    others = "; ".join(
        f"{each.kind} with {each.containers}{f' in {each.pool}' if each.pool else ''} from"
        f" {when(each.start_at_ms)}: {text(each.reason)}"
        for each in plan.refused
    )
    return f"{told}; next refused: {others}"


def _options(found: Alternatives) -> str:
    kinds = sorted({each.kind for each in found.options})
    told = f", {len(found.options)} options on {', '.join(kinds)}"
    return told + (f"; too few runs are known on {', '.join(found.lacking)}" if found.lacking else "")


def _ran(plan: Plan, ran_ms: int | None) -> str:
    """Tell how long a placed application took, beside what was predicted."""
    if ran_ms is None or plan.predicted_ms is None:
        return ""
    at_most = ""
    if plan.start_at_ms is not None and plan.finish_at_ms is not None:
        at_most = f", {plan.finish_at_ms - plan.start_at_ms} ms at most"
    return f"; it took {ran_ms} ms, predicted were {plan.predicted_ms} ms{at_most}"


def _paid(record: TokensCharged | TokensRefunded) -> str:
    if isinstance(record, TokensCharged):
        return f"{record.account} paid {tokens_text(record.mtokens)}"
    return f"{record.account} was paid back {tokens_text(record.mtokens)}"


def _backlog(loads: tuple[Load, ...]) -> str:
    """Name the largest applications with containers but no admission."""
    if not loads:
        return ""
    largest = sorted(loads, key=lambda load: (-load.containers, load.who))[:LOADS_SHOWN]
    named = ", ".join(f"{load.who} {load.containers}" for load in largest)
    held = sum(load.containers for load in loads)
    return f" (past the gate {held} are held: {named}{', ...' if len(loads) > LOADS_SHOWN else ''})"


def _feedback(record: GateLearned) -> str:
    if not record.finished:
        why = "" if record.why is None else text(record.why)
        return f"nothing was learned from it: {why}"
    found = record.finished[0]
    met = "met" if found.met else "missed"
    return f"learned from: {found.work_ms} container-ms with {found.containers} containers, deadline {met}"
