"""The loss budget: how much work may be lost, how much was, and what is left.

Law: a fold over the journal. A charge is made by the decision, before anything is killed, and stays unless
the kill was refused or came too late; a later fact only makes it larger, by what the task computed until it
ended. So what is left never comes from a loss that might still happen, and a restart finds the same. What was
held is what the host counted since it began to watch: what it did not see gives no budget. Amounts are
MiB-ms: container time times its size, so that containers of different sizes add up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.case import Pick
from yarnctl.deciding.levers import Lever, LeverKind, LeverPull
from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.model import HeldTime
from yarnctl.deciding.settings import LeverSettings
from yarnctl.units import Resources

SAMPLES_OF_WINDOW = 120
"""A window is measured by about so many samples; what is older than the window by less counts still."""


CHARGED: tuple[LeverKind, ...] = ("kill", "end")


def charged_ms(lever: Lever) -> int:
    """Return what a lever charges: lost work of a kill, what an ended reduce does again."""
    return lever.lost_ms if lever.kind == "kill" else lever.overhead_ms


def task_of(attempt: str) -> str:
    """Return the task of an attempt (Hadoop's ids end in the attempt's number)."""
    return attempt.rpartition("_")[0]


class Charge(NamedTuple):
    """What an order of ``at_ms`` loses (or fetches again); ``task``: the one whose attempt ends."""

    order: str
    task: str
    at_ms: int
    queue: str
    user: str
    kind: LeverKind
    memory_mib: int
    lost_ms: int

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
        if self.samples and _is_less(held, self.samples[-1].held):
            self.samples.clear()
        spacing_ms = rules.window_ms // SAMPLES_OF_WINDOW
        if len(self.samples) > 1 and at_ms - self.samples[-2].at_ms < spacing_ms:
            self.samples.pop()
        self.samples.append(UsageSample(at_ms, held))
        while len(self.samples) > 1 and self.samples[1].at_ms <= at_ms - rules.window_ms:
            self.samples.popleft()
        for name in [name for name, each in self.charges.items() if each.at_ms <= at_ms - rules.window_ms]:
            del self.charges[name]

    def charge(self, order: str, at_ms: int, size: Resources, pull: LeverPull | None) -> None:
        """Charge a kill, or an end, before it is performed; other levers cost nothing here."""
        if pull is not None and pull.lever.kind in CHARGED:
            lever = pull.lever
            amount_ms, task = charged_ms(lever), task_of(lever.unit)
            made = Charge(order, task, at_ms, pull.queue, pull.user, lever.kind, size[0], amount_ms)
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

    def left(self, now_ms: int, held: tuple[HeldTime, ...], rules: LeverSettings) -> LossLeft:
        """Return what may be lost and fetched again now; ``held`` as of now (none: as sampled last)."""
        begins_ms = now_ms - rules.window_ms
        left: dict[tuple[str, LeverKind], int] = {}
        for queue, mib_ms in self._used(now_ms, held, begins_ms).items():
            left[queue, "kill"] = int(mib_ms * rules.may_lose_ratio)
            left[queue, "end"] = int(mib_ms * rules.may_refetch_ratio)
        recent = [each for each in self.charges.values() if each.at_ms > begins_ms]
        for each in recent:
            left[each.queue, each.kind] = left.get((each.queue, each.kind), 0) - each.mib_ms
        return LossLeft(left, (each.task for each in recent if each.kind == "kill"))

    def _used(self, now_ms: int, held: tuple[HeldTime, ...], begins_ms: int) -> dict[str, int]:
        """Return what each queue held since ``begins_ms``; between two samples usage counts as even."""
        known = self.samples[-1] if self.samples else UsageSample(now_ms, ())
        latest = UsageSample(now_ms, held) if held else known
        if _is_less(latest.held, known.held):
            return _by_queue(latest.held)
        used = _by_queue(latest.held)
        before = [each for each in self.samples if each.at_ms <= begins_ms]
        if not before:
            return used
        after = next((each for each in self.samples if each.at_ms > begins_ms), latest)
        base, span_ms = _by_queue(before[-1].held), max(1, after.at_ms - before[-1].at_ms)
        part_ms = min(begins_ms - before[-1].at_ms, span_ms)
        for queue, mib_ms in _by_queue(after.held).items():
            first = base.get(queue, 0)
            used[queue] = used.get(queue, 0) - first - (mib_ms - first) * part_ms // span_ms
        return used


class LossLeft:
    """What is left during one choice, by queue and lever: taken by picks as they are made.

    ``killed``: tasks of which an attempt was killed in the window, or by this choice: none is killed again.
    """

    def __init__(self, left: Mapping[tuple[str, LeverKind], int], killed: Iterable[str] = ()) -> None:
        self._left = dict(left)
        self.killed = dict.fromkeys(killed)

    def allows(self, pulls: Iterable[tuple[str, LeverKind, int]]) -> bool:
        """Return whether all of these amounts (queue, lever, MiB-ms) may be used together."""
        needed: dict[tuple[str, LeverKind], int] = {}
        for queue, kind, mib_ms in pulls:
            needed[queue, kind] = needed.get((queue, kind), 0) + mib_ms
        return all(mib_ms <= max(self._left.get(name, 0), 0) for name, mib_ms in needed.items())

    def take(self, queue: str, kind: LeverKind, mib_ms: int, task: str) -> None:
        """Use an amount, for an attempt of ``task``."""
        self._left[queue, kind] = self._left.get((queue, kind), 0) - mib_ms
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
                self.take(pull.queue, pull.lever.kind, amount, task_of(pull.lever.unit))

    def copy(self) -> LossLeft:
        """Return another that is used apart."""
        return LossLeft(self._left, self.killed)


def _by_queue(held: tuple[HeldTime, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in held:
        found[each.queue] = found.get(each.queue, 0) + each.mib_ms
    return found


def _is_less(held: tuple[HeldTime, ...], before: tuple[HeldTime, ...]) -> bool:
    now = {(each.queue, each.user): each.mib_ms for each in held}
    return any(now.get((each.queue, each.user), 0) < each.mib_ms for each in before)
