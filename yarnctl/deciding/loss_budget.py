"""The loss budget: how much work may be lost, how much was, and what is left.

A payer may lose, in a window, at most a part of the container time that it held in that window.

* **Held** is container time times its size (MiB-ms): of each application the difference of YARN's counter
  (memorySeconds) between two samples that both show it. What an application held before the first sample that
  shows it, after the last one, or before a daemon's first sample does not count. Samples are also taken while
  no application has pending requests.
* **The window** ends with the snapshot that is decided on and begins with the oldest kept sample inside it;
  one sample a minute is kept (:mod:`yarnctl.deciding.held_windows`).
* **A new base.** A counter that fell makes that sample the first one of its payers. Another ResourceManager,
  a clock that was set back and another daemon make the next sample the first one of all payers.
* **A charge** is made by the decision, before a task is killed, and counts until it is as old as the window,
  also over a new base and in the next daemon. It is dropped if the kill was refused or came too late; any
  other fact only makes it larger, by what the task computed until it ended.

Held time is an input of the step (``Observation.held``); the charges are a fold over the journal. After a
restart less may be lost than before, never more. Refetching (of ended reduces) has a budget of its own by the
same rule. The payer is the job itself if its tag has a budget, else its queue; a user's budget, where there
is one, bounds that user's losses beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.case import Pick
from yarnctl.deciding.held_windows import is_user, payer_of, user_owner
from yarnctl.deciding.levers import Lever, LeverKind, LeverPull
from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.model import HeldTime, JobConsent
from yarnctl.deciding.settings import LeverSettings
from yarnctl.units import Resources

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

    ``saved_ms``: how much sooner its container is free than if that task had ended by itself, as predicted
    then (0: when it would have ended is not known).
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


class LossState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The charges of a loss budget, as a value."""

    charges: tuple[Charge, ...] = ()


class BudgetTerms:
    """What each payer may lose of its container time, and over which window."""

    def __init__(self, lever_settings: LeverSettings, consents: Mapping[str, float] = NO_CONSENTS) -> None:
        self._rules, self._consents = lever_settings, consents
        self._own = {payer_of(rule): (rule.may_lose_ratio, rule.window_ms) for rule in lever_settings.budgets}

    def of(self, payer: str) -> tuple[float, int]:
        """Return the part that a payer may lose, and its window in ms."""
        if payer in self._consents:
            return self._consents[payer], self._rules.window_ms
        return self._own.get(payer, (self._rules.may_lose_ratio, self._rules.window_ms))

    def payers(self, charge: Charge) -> Iterator[tuple[str, int]]:
        """Yield whose budgets a charge uses, with their windows."""
        if charge.kind == "end":
            yield charge.queue, self._rules.window_ms
            return
        yield charge.queue, self.of(charge.queue)[1]
        user = user_owner(charge.user)
        if user in self._own:
            yield user, self._own[user][1]


class LossBudget:
    """The charges inside the longest window, oldest first; ``left`` is computed when it is read."""

    def __init__(self, state: LossState | None = None) -> None:
        self.charges: dict[str, Charge] = {each.order: each for each in (state or LossState()).charges}

    def state(self) -> LossState:
        """Return all of it as a value."""
        return LossState(tuple(self.charges.values()))

    def retire(self, now_ms: int, lever_settings: LeverSettings) -> None:
        """Drop the charges that are as old as the longest window."""
        ends_ms = now_ms - max(
            lever_settings.window_ms, *(rule.window_ms for rule in lever_settings.budgets), 0
        )
        old = takewhile(lambda each: each.at_ms <= ends_ms, self.charges.values())
        for order in [each.order for each in old]:
            del self.charges[order]

    def charge(
        self, order: str, at_ms: int, size: Resources, pull: LeverPull | None, remaining_ms: int = -1
    ) -> None:
        """Charge a kill, or an end, before it is performed; other levers cost nothing here.

        ``remaining_ms``: what its task had left (-1: not known).
        """
        if pull is not None and pull.lever.kind in CHARGED:
            lever = pull.lever
            amount_ms, task = charged_ms(lever), task_of(lever.unit)
            saved_ms = max(0, remaining_ms - lever.free_in_ms) if remaining_ms >= 0 else 0
            self.charges[order] = Charge(
                order, task, at_ms, pull.queue, pull.user, lever.kind, size[0], amount_ms, saved_ms
            )

    def moved(self, order: str, event: Event, at_ms: int) -> None:
        """An order moved: a killed map computed until its end; a kill that was refused cost nothing."""
        before = self.charges.get(order)
        if before is None:
            return
        if event in ("refused", "completed"):
            del self.charges[order]
        elif event in ("ended-as-ordered", "ended-otherwise", "simulated") and before.kind == "kill":
            self.charges[order] = before._replace(lost_ms=before.lost_ms + max(0, at_ms - before.at_ms))

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.charges = {name: each._replace(at_ms=each.at_ms - by_ms) for name, each in self.charges.items()}

    def left(
        self,
        now_ms: int,
        held: Iterable[HeldTime],
        lever_settings: LeverSettings,
        consents: Mapping[str, float] = NO_CONSENTS,
    ) -> LossLeft:
        """Return what may be lost and fetched again; ``held``: in the windows that end at ``now_ms``.

        ``consents``: the part that each tagged job allows of its own container time.
        """
        terms = BudgetTerms(lever_settings, consents)
        left: dict[tuple[str, LeverKind], int] = {
            (payer_of(rule), "kill"): 0 for rule in lever_settings.budgets if rule.kind == "user"
        }
        for payer, window_ms, mib_ms in held:
            ratio, own_ms = terms.of(payer)
            if window_ms == own_ms:
                left[payer, "kill"] = int(mib_ms * ratio)
            if window_ms == lever_settings.window_ms and not is_user(payer):
                left[payer, "end"] = int(mib_ms * lever_settings.may_refetch_ratio)
        for each in self.charges.values():
            for payer, window_ms in terms.payers(each):
                if each.at_ms > now_ms - window_ms:
                    key = payer, budget_of(each.kind)
                    left[key] = left.get(key, 0) - each.mib_ms
        recent = [each for each in self.charges.values() if each.at_ms > now_ms - lever_settings.window_ms]
        return LossLeft(left, killed_of(each for each in recent if each.kind == "kill"))


class TaskLoss(NamedTuple):
    """How often a task was killed in the window, and the work, in ms, that it lost by that."""

    kills: int = 0
    lost_ms: int = 0


NO_LOSS = TaskLoss()


def killed_of(charges: Iterable[Charge]) -> dict[str, TaskLoss]:
    """Return what each task lost by the kills among some charges."""
    found: dict[str, TaskLoss] = {}
    for each in charges:
        before = found.get(each.task, NO_LOSS)
        found[each.task] = TaskLoss(before.kills + 1, before.lost_ms + each.lost_ms)
    return found


class BudgetStanding(NamedTuple):
    """How a budget stands: what was lost over its window and what may be lost still, in MiB-ms.

    ``kind`` and ``name`` are its owner. ``containers`` were freed, and ``waiting_saved_ms`` is how much
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
    lever_settings: LeverSettings,
    queues: Iterable[str],
    held: Iterable[HeldTime],
    consents: Iterable[JobConsent] = (),
) -> list[BudgetStanding]:
    """Return how each budget stands: of the queues, of users that have one, of the tagged jobs."""
    jobs = {each.application: each for each in consents}
    ratios = {name: each.may_lose_ratio for name, each in jobs.items()}
    left, terms = losses.left(now_ms, held, lever_settings, ratios), BudgetTerms(lever_settings, ratios)
    charged: dict[str, list[Charge]] = {}
    for each in losses.charges.values():
        for payer, window_ms in terms.payers(each):
            if budget_of(each.kind) == "kill" and each.at_ms > now_ms - window_ms:
                charged.setdefault(payer, []).append(each)

    def standing(kind: Literal["queue", "user", "job"], name: str, user: str) -> BudgetStanding:
        payer = user_owner(name) if kind == "user" else name
        mine = charged.get(payer, ())
        may_lose_ratio, window_ms = terms.of(payer)
        return BudgetStanding(
            kind,
            name,
            user,
            may_lose_ratio,
            window_ms,
            sum(each.mib_ms for each in mine),
            max(0, left.amount(payer, "kill")),
            sum(each.lost_ms for each in mine),
            len(mine),
            sum(each.saved_ms for each in mine),
        )

    users = (rule.name for rule in lever_settings.budgets if rule.kind == "user")
    return [
        *(standing("queue", name, "") for name in queues),
        *(standing("user", name, name) for name in users),
        *(standing("job", name, each.user) for name, each in jobs.items()),
    ]


class LossLeft:
    """What is left during one choice, by queue and lever: used by picks as they are made.

    ``killed``: what tasks lost of which an attempt was killed in the window. ``taken``: the tasks that are
    killed by this choice, none of them again.
    """

    def __init__(
        self,
        left: Mapping[tuple[str, LeverKind], int],
        killed: Mapping[str, TaskLoss] = MappingProxyType({}),
    ) -> None:
        self._left = dict(left)
        self.killed = dict(killed)
        self.taken: dict[str, None] = {}

    def may_kill(self, task: str, kills_max: int) -> bool:
        """Return whether an attempt of a task may be killed once more."""
        return task not in self.taken and self.killed.get(task, NO_LOSS).kills < kills_max

    def allows(self, pulls: Iterable[tuple[str, str, LeverKind, int]]) -> bool:
        """Return whether all of these amounts (queue, user, lever, MiB-ms) may be used together."""
        return self.exceeded(pulls) is None

    def exceeded(self, pulls: Iterable[tuple[str, str, LeverKind, int]]) -> str | None:
        """Return whose budget these amounts exceed (the queue's, else the user's); None: none."""
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
            self.taken[task] = None

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
        other = LossLeft(self._left, self.killed)
        other.taken.update(self.taken)
        return other
