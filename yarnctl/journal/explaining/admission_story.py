"""Admissions: all that a journal records of one admission, or of the admission of an application.

Made of the records in one pass. Prices of later deadlines are computed from the recorded inputs of the round,
if these give the recorded price again.
"""

from __future__ import annotations

from yarnctl.deciding.admission import entries
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.offering import cheaper_later, decided_price
from yarnctl.deciding.admission.placement_options import Alternatives
from yarnctl.deciding.admission.pricing.accounts import TokensCharged, TokensRefunded
from yarnctl.deciding.admission.pricing.prices import ITSELF
from yarnctl.deciding.admission.records import Plan
from yarnctl.deciding.records import Record
from yarnctl.journal.explaining.story import AdmissionStory
from yarnctl.journal.rendering import containers, span, text, tokens_text, when

LOADS_SHOWN = 3


class AdmissionStories:
    """Collects ``stories`` of the admission ``wanted``, or of the admission of the application ``wanted``."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.stories: list[AdmissionStory] = []
        self._store = AdmissionStore()
        self._own = ""
        self._rounds: dict[str, tuple[Gate, entries.AdmissionRound, Plan]] = {}
        """By admission: the gate before its last round, the round, and its plan."""

    def apply(self, record: Record) -> None:
        """Read one record."""
        if isinstance(record, entries.AdmissionStarted) and self.wanted in (
            record.admission,
            record.application,
        ):
            self._running(record)
        before, gate = self._store.admissions.get(self._own or self.wanted), self._store.gate
        self._store.take(record)
        self._keep_round(gate, record)
        now = self._store.admissions.get(self._own or self.wanted)
        if isinstance(record, entries.AdmissionAsked) and record.admission == self.wanted:
            self._requested(record)
        elif isinstance(record, entries.AdmissionRound) and now is not None and before is not now:
            pooled = next((loads for name, loads in record.pool_loads if name == now.plan.pool), ())
            self._add(record.at_ms, now.admission, self._decision(now) + _backlog(pooled or record.loads))
        elif isinstance(record, entries.ClockSetBack) and now is not None and before is not now:
            line = f"the clock was set back by {span(record.by_ms)}: the deadline stays, other times move"
            self._add(record.at_ms, now.admission, line)
        elif isinstance(record, TokensCharged | TokensRefunded) and now is not None:
            if record.admission == now.admission:
                self._add(record.at_ms, record.admission, _paid(record))
        elif (
            isinstance(record, entries.AdmissionClosed)
            and now is not None
            and record.admission == now.admission
        ):
            self._add(record.at_ms, record.admission, f"{record.state}: {text(record.why)}")
        elif (
            isinstance(record, entries.GateLearned)
            and now is not None
            and record.application == now.application != ""
        ):
            line = _feedback(record) + _ran(now.plan, self._store.ran_ms.get(now.admission))
            self._add(record.at_ms, now.admission, line)

    def _add(self, at_ms: int, admission: str, line: str) -> None:
        self.stories.append(AdmissionStory(at_ms=at_ms, admission=admission, text=line))

    def _requested(self, record: entries.AdmissionAsked) -> None:
        request, budget = record.request, record.request.budget
        where = f" in {record.queue}" if record.queue else ""
        parts = [f"user {record.user} requested {record.name}{where}, at most {containers(request.tasks)}"]
        if request.alternatives is not None:
            parts.append(_options(request.alternatives))
        if request.deadline_ms is not None or budget is None:
            remaining = "" if request.deadline_ms is None else f" in {span(request.deadline_ms)}"
            parts.append(f"deadline{remaining} at {when(request.due_ms)}")
        if budget is not None:
            parts.append(f"budget {tokens_text(budget.most_mtokens)} of account {budget.account}")
        if request.estimate is not None:
            estimate = request.estimate
            parts.append(
                f"estimated work {span(estimate.mean_ms)} of container time"
                f" (+- {span(estimate.stdev_ms)}, {estimate.source})"
            )
        self._add(record.at_ms, record.admission, "; ".join(parts))

    def _running(self, record: entries.AdmissionStarted) -> None:
        found = self._store.admissions.get(record.admission)
        if found is not None and not self.stories:
            self._before(found)
        self._own = record.admission
        self._add(record.at_ms, record.admission, f"running as {record.application}")

    def _before(self, admission: Admission) -> None:
        """Add the request and the decision, recorded before the admission's application was known."""
        request = admission.request
        requested = entries.AdmissionAsked(
            request.submitted_at_ms,
            admission.admission,
            admission.name,
            admission.user,
            admission.queue,
            request,
            admission.key,
        )
        self._requested(requested)
        if admission.reservation is not None:
            self._add(admission.reservation.from_ms, admission.admission, self._decision(admission))

    # --- prices ---------------------------------------------------------------------------------

    def _keep_round(self, gate: Gate | None, record: Record) -> None:
        """Keep the inputs of each round that decided on a price, until its job runs or it ends."""
        if isinstance(record, entries.AdmissionRound) and gate is not None:
            promised = [each for each in self._store.open("waiting", "admitted") if each.reservation]
            names = {each.sequence: each.admission for each in promised}
            wanted = self._store.admissions.get(self.wanted)
            if wanted is not None:
                names[wanted.sequence] = wanted.admission
            for plan in record.plans:
                if plan.sequence in names and decided_price(plan) is not None:
                    # sold in one round, it can start in a later one
                    self._rounds.setdefault(names[plan.sequence], (gate, record, plan))
        elif isinstance(record, entries.AdmissionStarted | entries.AdmissionClosed):
            self._rounds.pop(record.admission, None)

    def _decision(self, admission: Admission) -> str:
        """Return the line of a decision; with a price, also its terms and cheaper deadlines."""
        line = _verdict(admission.plan) + _placed(admission.plan)
        if admission.plan.price_mtokens is not None:
            line += self._price(admission)
        decided = self._rounds.get(admission.admission)
        if decided is None:
            return line
        before, record, plan = decided
        later = cheaper_later(before, record, plan)
        if not later:
            return line
        offers = ", ".join(
            f"{tokens_text(each.price_mtokens)} by {when(each.deadline_at_ms)}" for each in later
        )
        return f"{line}; later deadlines were cheaper: {offers}"

    def _price(self, admission: Admission) -> str:
        """Return a price by its terms: the job itself, then the admissions with less slack because of it."""
        plan = admission.plan
        causes = {
            term: "the job" if term == ITSELF else f"the slack of {self._admission_name(admission, term)}"
            for term, _ in plan.because
        }
        terms = ", ".join(f"{tokens_text(amount)} for {causes[term]}" for term, amount in plan.because)
        late = ""
        if plan.late_ratio is not None:
            late = f"; probability of a late end at most {plan.late_ratio * 100:g}%"
        return f"; promised by {when(plan.deadline_at_ms)} for {terms}{late}"

    def _admission_name(self, admission: Admission, number: str) -> str:
        """Return the id of the admission with a number, with its job's name, if it is kept."""
        name = f"{admission.admission.rpartition('-')[0]}-{number}"
        other = self._store.admissions.get(name)
        return f"number {number}" if other is None else f"{name} ({other.name})"


def _verdict(plan: Plan) -> str:
    why = text(plan.reason)
    if plan.verdict == "admit":
        end = "" if plan.finish_at_ms is None else f"; planned end {when(plan.finish_at_ms)}"
        return f"admitted with {containers(plan.containers)}: {why}{end}"
    if plan.verdict == "reject":
        return f"rejected: {why}"
    start = "" if plan.start_at_ms is None else f"; planned start {when(plan.start_at_ms)}"
    return f"waiting: {why}{start}"


def _placed(plan: Plan) -> str:
    """Return the framework and pool of an application, its run time, and the options not chosen."""
    line = ""
    if plan.kind and plan.predicted_ms is not None:
        settings = ", ".join(f"{name}={value}" for name, value in plan.settings)
        line = f"; runs as {plan.kind} in pool {plan.pool}" + (f" with {settings}" if settings else "")
        line += f"; predicted {span(plan.predicted_ms)}"
        if plan.start_at_ms is not None and plan.finish_at_ms is not None:
            chance = (
                "" if plan.late_ratio is None else f" (exceeded with probability {plan.late_ratio * 100:g}%)"
            )
            line += f", at most {span(plan.finish_at_ms - plan.start_at_ms)}{chance}"
    if not plan.refused:
        return line
    others = "; ".join(
        f"{each.kind} with {each.containers}{f' in {each.pool}' if each.pool else ''} from"
        f" {when(each.start_at_ms)}: {text(each.reason)}"
        for each in plan.refused
    )
    return f"{line}; not chosen: {others}"


def _options(alternatives: Alternatives) -> str:
    kinds = sorted({each.kind for each in alternatives.options})
    options = f"{len(alternatives.options)} options ({', '.join(kinds)})"
    return options + (
        f"; too few known runs on {', '.join(alternatives.lacking)}" if alternatives.lacking else ""
    )


def _ran(plan: Plan, ran_ms: int | None) -> str:
    """Return the run time of a placed application beside the predicted."""
    if ran_ms is None or plan.predicted_ms is None:
        return ""
    at_most = ""
    if plan.start_at_ms is not None and plan.finish_at_ms is not None:
        at_most = f", at most {span(plan.finish_at_ms - plan.start_at_ms)}"
    return f"; run time {span(ran_ms)}, predicted {span(plan.predicted_ms)}{at_most}"


def _paid(record: TokensCharged | TokensRefunded) -> str:
    if isinstance(record, TokensCharged):
        return f"account {record.account} paid {tokens_text(record.mtokens)}"
    return f"account {record.account} was refunded {tokens_text(record.mtokens)}"


def _backlog(loads: tuple[Load, ...]) -> str:
    """Return the largest applications that hold containers without an admission."""
    if not loads:
        return ""
    largest = sorted(loads, key=lambda load: (-load.containers, load.who))[:LOADS_SHOWN]
    named = ", ".join(f"{load.who} {load.containers}" for load in largest)
    held = sum(load.containers for load in loads)
    return f" ({held} held without admission: {named}{', ...' if len(loads) > LOADS_SHOWN else ''})"


def _feedback(record: entries.GateLearned) -> str:
    if not record.finished:
        why = "" if record.why is None else text(record.why)
        return f"not used for estimates: {why}"
    found = record.finished[0]
    met = "met" if found.met else "missed"
    return (
        f"used for estimates: {span(found.work_ms)} of container time in {containers(found.containers)},"
        f" deadline {met}"
    )
