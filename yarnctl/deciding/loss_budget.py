"""The loss budget: how much work may be lost, how much was, and what is left.

Law: a fold over the journal. A charge is made by the decision, before anything is killed, and stays unless
the kill was refused or came too late; a later fact only makes it larger, by what the task computed until it
ended. So what is left never comes from a loss that might still happen, and a restart finds the same. What was
held is what the host counted since it began to watch: what it did not see gives no budget. Amounts are
MiB-ms: container time times its size, so that containers of different sizes add up.

Whose budget a loss uses: a job that says by its tag what it allows has one of its own, of what it has held
itself, and stands under its id where others have their queue's name; else its queue's. A user's budget, where
there is one, bounds all that is lost of that user's beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.case import Pick
from yarnctl.deciding.levers import Lever, LeverKind, LeverPull
from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.model import HeldTime, JobConsent
from yarnctl.deciding.settings import LeverSettings
from yarnctl.units import Resources

SAMPLES_OF_WINDOW = 120
"""A window is measured by about so many samples; what is older than the window by less counts still."""


NO_CONSENTS: Mapping[str, float] = MappingProxyType({})

CHARGED: tuple[LeverKind, ...] = ("kill", "end", "drain", "rescale")


def charged_ms(lever: Lever) -> int:
    """Return what a lever charges: lost work of a kill or a drain, what an ended reduce does again."""
    return lever.overhead_ms if lever.kind == "end" else lever.lost_ms


def budget_of(kind: LeverKind) -> LeverKind:
    """Return by which lever's name a budget is kept: all that lose work use that of kills."""
    return "kill" if kind in ("drain", "rescale") else kind


def task_of(attempt: str) -> str:
    """Return the task of an attempt (Hadoop's ids end in the attempt's number)."""
    return attempt.rpartition("_")[0]


class Charge(NamedTuple):
    """What an order of ``at_ms`` loses (or fetches again); ``task``: the one whose attempt ends.

    ``saved_ms``: how much sooner its room comes than if that task had ended by itself, as predicted then (0:
    when it would have ended is not known).
    """

    order: str
    task: str
    at_ms: int
    queue: str
    user: str
    kind: LeverKind
    memory_mib: int
    lost_ms: int
    saved_ms: int = 0

    @property
    def mib_ms(self) -> int:
        """Return the amount."""
        return self.lost_ms * self.memory_mib


class UsageSample(NamedTuple):
    """What was held at one instant."""

    at_ms: int
    held: tuple[HeldTime, ...]


class LossState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of a loss budget, as a value."""

    samples: tuple[UsageSample, ...] = ()
    charges: tuple[Charge, ...] = ()


class LossBudget:
    """Charges and usage of the last window; ``left`` is computed when it is asked for."""

    def __init__(self, left: LossState | None = None) -> None:
        left = left or LossState()
        self.samples: deque[UsageSample] = deque(left.samples)
        self.charges: dict[str, Charge] = {each.order: each for each in left.charges}

    def state(self) -> LossState:
        """Return all of it as a value."""
        return LossState(tuple(self.samples), tuple(self.charges.values()))

    def held(self, at_ms: int, held: tuple[HeldTime, ...], rules: LeverSettings) -> None:
        """Note what was held so far. A counter that is lower than before began anew: the past is dropped."""
        if not held:
            return
        longest_ms = max(rules.window_ms, *(rule.window_ms for rule in rules.rules), 0)
        if self.samples and _is_less(held, self.samples[-1].held):
            self.samples.clear()
        spacing_ms = rules.window_ms // SAMPLES_OF_WINDOW
        if len(self.samples) > 1 and at_ms - self.samples[-2].at_ms < spacing_ms:
            self.samples.pop()
        self.samples.append(UsageSample(at_ms, held))
        while len(self.samples) > 1 and self.samples[1].at_ms <= at_ms - longest_ms:
            self.samples.popleft()
        for name in [name for name, each in self.charges.items() if each.at_ms <= at_ms - longest_ms]:
            del self.charges[name]

    def charge(
        self, order: str, at_ms: int, size: Resources, pull: LeverPull | None, remaining_ms: int = -1
    ) -> None:
        """Charge a kill, or an end, before it is performed; other levers cost nothing here.

        ``remaining_ms``: what its task had left (-1: not known).
        """
        if pull is not None and pull.lever.kind in CHARGED:
            lever = pull.lever
            amount_ms, task = charged_ms(lever), task_of(lever.unit)
            saved_ms = max(0, remaining_ms - lever.room_in_ms) if remaining_ms >= 0 else 0
            payer = (pull.queue, pull.user)
            made = Charge(order, task, at_ms, *payer, lever.kind, size[0], amount_ms, saved_ms)
            self.charges[order] = made

    def moved(self, order: str, event: Event, at_ms: int) -> None:
        """An order moved: a killed map computed until its end; a kill that was refused cost nothing."""
        before = self.charges.get(order)
        if before is None:
            return
        if event in ("refused", "completed"):
            del self.charges[order]
        elif event in ("ended-as-ordered", "ended-otherwise") and before.kind == "kill":
            self.charges[order] = before._replace(lost_ms=before.lost_ms + max(0, at_ms - before.at_ms))

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.samples = deque(each._replace(at_ms=each.at_ms - by_ms) for each in self.samples)
        self.charges = {name: each._replace(at_ms=each.at_ms - by_ms) for name, each in self.charges.items()}

    def left(
        self,
        now_ms: int,
        held: tuple[HeldTime, ...],
        rules: LeverSettings,
        consents: Mapping[str, float] = NO_CONSENTS,
    ) -> LossLeft:
        """Return what may be lost and fetched again now; ``held`` as of now (none: as sampled last).

        ``consents``: the part that each tagged job allows of its own container time.
        """
        used = {
            window_ms: self._used(now_ms, held, now_ms - window_ms)
            for window_ms in {rules.window_ms, *(rule.window_ms for rule in rules.rules)}
        }
        left: dict[tuple[str, LeverKind], int] = {}
        for queue in dict.fromkeys(queue for queue, _ in used[rules.window_ms]):
            ratio, window_ms = terms_of(queue, rules, consents)
            left[queue, "kill"] = int(_sum(used[window_ms], queue=queue) * ratio)
            left[queue, "end"] = int(_sum(used[rules.window_ms], queue=queue) * rules.may_refetch_ratio)
        for rule in (rule for rule in rules.rules if rule.kind == "user"):
            held_mib_ms = _sum(used[rule.window_ms], user=rule.name)
            left[user_owner(rule.name), "kill"] = int(held_mib_ms * rule.may_lose_ratio)
        for each in self.charges.values():
            for owner, window_ms in self._owners(each, rules, consents):
                if each.at_ms > now_ms - window_ms:
                    key = owner, budget_of(each.kind)
                    left[key] = left.get(key, 0) - each.mib_ms
        recent = [each for each in self.charges.values() if each.at_ms > now_ms - rules.window_ms]
        return LossLeft(left, (each.task for each in recent if each.kind == "kill"))

    @staticmethod
    def _owners(
        charge: Charge, rules: LeverSettings, consents: Mapping[str, float]
    ) -> Iterator[tuple[str, int]]:
        """Yield whose budgets a charge uses, with their windows."""
        if charge.kind == "end":
            yield charge.queue, rules.window_ms
            return
        yield charge.queue, terms_of(charge.queue, rules, consents)[1]
        for rule in rules.rules:
            if (rule.kind, rule.name) == ("user", charge.user):
                yield user_owner(rule.name), rule.window_ms

    def _used(self, now_ms: int, held: tuple[HeldTime, ...], begins_ms: int) -> dict[tuple[str, str], int]:
        """Return what each payer held since ``begins_ms``; between two samples usage counts as even."""
        known = self.samples[-1] if self.samples else UsageSample(now_ms, ())
        latest = UsageSample(now_ms, held) if held else known
        if _is_less(latest.held, known.held):
            return _by_payer(latest.held)
        used = _by_payer(latest.held)
        before = [each for each in self.samples if each.at_ms <= begins_ms]
        if not before:
            return used
        after = next((each for each in self.samples if each.at_ms > begins_ms), latest)
        base, span_ms = _by_payer(before[-1].held), max(1, after.at_ms - before[-1].at_ms)
        part_ms = min(begins_ms - before[-1].at_ms, span_ms)
        for payer, mib_ms in _by_payer(after.held).items():
            first = base.get(payer, 0)
            used[payer] = used.get(payer, 0) - first - (mib_ms - first) * part_ms // span_ms
        return used


class BudgetStanding(NamedTuple):
    """How a budget stands: what was lost over its window and what may be lost still, in MiB-ms.

    ``kind`` and ``name`` say whose it is. ``containers`` gave room, and ``waiting_saved_ms`` is how much
    sooner than by waiting for their tasks, in sum, as predicted.
    """

    kind: Literal["queue", "user", "job"]
    name: str
    user: str
    may_lose_ratio: float
    window_ms: int
    lost_mib_ms: int
    left_mib_ms: int
    lost_ms: int
    containers: int
    waiting_saved_ms: int


def standings(
    losses: LossBudget,
    now_ms: int,
    rules: LeverSettings,
    queues: Iterable[str],
    consents: Iterable[JobConsent] = (),
) -> list[BudgetStanding]:
    """Return how each budget stands: of the queues, of users that have one, of the tagged jobs."""
    jobs = {each.application: each for each in consents}
    ratios = {name: each.may_lose_ratio for name, each in jobs.items()}
    left = losses.left(now_ms, (), rules, ratios)
    whose: list[tuple[Literal["queue", "user", "job"], str, str, float, int]] = []
    whose += [("queue", name, "", *terms_of(name, rules, ratios)) for name in queues]
    whose += [
        ("user", rule.name, rule.name, rule.may_lose_ratio, rule.window_ms)
        for rule in rules.rules
        if rule.kind == "user"
    ]
    whose += [("job", name, each.user, each.may_lose_ratio, rules.window_ms) for name, each in jobs.items()]
    found = []
    for kind, name, user, ratio, window_ms in whose:
        mine = [
            each
            for each in losses.charges.values()
            if budget_of(each.kind) == "kill"
            and each.at_ms > now_ms - window_ms
            and name == (each.user if kind == "user" else each.queue)
        ]
        owner = user_owner(name) if kind == "user" else name
        found.append(
            BudgetStanding(
                kind,
                name,
                user,
                ratio,
                window_ms,
                sum(each.mib_ms for each in mine),
                max(0, left.amount(owner, "kill")),
                sum(each.lost_ms for each in mine),
                len(mine),
                sum(each.saved_ms for each in mine),
            )
        )
    return found


def terms_of(queue: str, rules: LeverSettings, consents: Mapping[str, float]) -> tuple[float, int]:
    """Return the part that may be lost of what a queue, or a tagged job, held, and over which window."""
    if queue in consents:
        return consents[queue], rules.window_ms
    for rule in rules.rules:
        if (rule.kind, rule.name) == ("queue", queue):
            return rule.may_lose_ratio, rule.window_ms
    return rules.may_lose_ratio, rules.window_ms


def with_jobs(held: tuple[HeldTime, ...], consents: Iterable[JobConsent]) -> tuple[HeldTime, ...]:
    """Return what was held by queue and user, and by each tagged job, whose id then stands for a queue."""
    return (*held, *(HeldTime(each.application, each.user, each.mib_ms) for each in consents))


def user_owner(user: str) -> str:
    """Return under which name a user's own budget is kept (no queue's name has a colon)."""
    return f"user:{user}"


class LossLeft:
    """What is left during one choice, by queue and lever: taken by picks as they are made.

    ``killed``: tasks of which an attempt was killed in the window, or by this choice: none is killed again.
    """

    def __init__(self, left: Mapping[tuple[str, LeverKind], int], killed: Iterable[str] = ()) -> None:
        self._left = dict(left)
        self.killed = dict.fromkeys(killed)

    def allows(self, pulls: Iterable[tuple[str, str, LeverKind, int]]) -> bool:
        """Return whether all of these amounts (queue, user, lever, MiB-ms) may be used together."""
        return self.exceeded(pulls) is None

    def exceeded(self, pulls: Iterable[tuple[str, str, LeverKind, int]]) -> str | None:
        """Return whose budget these amounts exceed (the queue's, else the user's); None: nobody's."""
        needed: dict[tuple[str, LeverKind], int] = {}
        for queue, user, lever, mib_ms in pulls:
            kind = budget_of(lever)
            for owner in self._payers(queue, user, kind):
                needed[owner, kind] = needed.get((owner, kind), 0) + mib_ms
        over = (
            owner for (owner, kind), mib_ms in needed.items() if mib_ms > max(self.amount(owner, kind), 0)
        )
        return next(over, None)

    def _payers(self, queue: str, user: str, kind: LeverKind) -> Iterator[str]:
        yield queue
        if (user_owner(user), kind) in self._left:
            yield user_owner(user)

    def take(self, queue: str, user: str, kind: LeverKind, mib_ms: int, task: str) -> None:
        """Use an amount, for an attempt of ``task``."""
        for owner in self._payers(queue, user, budget_of(kind)):
            key = owner, budget_of(kind)
            self._left[key] = self._left.get(key, 0) - mib_ms
        if kind == "kill":
            self.killed[task] = None

    def amount(self, queue: str, kind: LeverKind) -> int:
        """Return how much is left (below 0: a later fact made a charge larger)."""
        return self._left.get((queue, kind), 0)

    def use(self, pulls: Iterable[LeverPull], picks: Iterable[Pick]) -> None:
        """Use what the picks of a choice charge."""
        for pull, pick in zip(pulls, picks, strict=True):
            if pull.lever.kind in CHARGED:
                amount = charged_ms(pull.lever) * pick.task.size[0]
                self.take(pull.queue, pull.user, pull.lever.kind, amount, task_of(pull.lever.unit))

    def copy(self) -> LossLeft:
        """Return another that is used apart."""
        return LossLeft(self._left, self.killed)


def _by_payer(held: tuple[HeldTime, ...]) -> dict[tuple[str, str], int]:
    return {(each.queue, each.user): each.mib_ms for each in held}


def _sum(used: Mapping[tuple[str, str], int], queue: str = "", user: str = "") -> int:
    """Return what one queue, or one user, held."""
    return sum(mib_ms for (of, who), mib_ms in used.items() if queue == of or (user and user == who))


def _is_less(held: tuple[HeldTime, ...], before: tuple[HeldTime, ...]) -> bool:
    """Return whether a counter fell; one that is not there any more (a job that ended) tells nothing."""
    now = _by_payer(held)
    return any(now.get((each.queue, each.user), each.mib_ms) < each.mib_ms for each in before)
