"""Suspends reduces of running jobs at random moments by yarnctl's own port: request, manifest, kill.

Law: nothing is done here that the daemon would not do, and in its order (``AttachedPort``: Suspend, facts,
Release or Withdraw); only *who* and *when* come from a seeded plan instead of from somebody's demand.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.soak.rig import LiveCluster, Seen, clock_ms, task_of_attempt, wait_until
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    ManifestSeen,
    ObservationRequest,
    Outcome,
    Release,
    Suspend,
    Withdraw,
)

TIMEOUT_MS = 12_000
"""As the controller's: so long an order may stay without a manifest."""
RETRY_MS = 300


class Asked(msgspec.Struct):
    """One request and what became of it; instants in ms since the epoch, 0: did not happen.

    ``ending``: suspended (its container was handed back, nothing lost), completed (it was at its end),
    withdrawn, or how else its container ended.
    """

    order: str
    attempt: str
    container: str
    ordered_at_ms: int
    manifest_at_ms: int = 0
    released_at_ms: int = 0
    ended_at_ms: int = 0
    groups_done: int = 0
    generation: int = 0
    ending: str = ""
    said: str = ""

    @property
    def is_new(self) -> bool:
        """Say whether a new generation was saved; else an older one still said everything."""
        return bool(self.manifest_at_ms) and not self.said.startswith("unchanged")


@dataclass
class TaskPlan:
    """What is still to happen to one reduce task."""

    left: int
    generation: int = 0
    attempt: str = ""
    due_at_ms: int = 0
    order: Asked | None = None
    done: list[Asked] = field(default_factory=list)


@dataclass
class Victim:
    """One job under the plan: its reduces are suspended ``times`` times, at moments drawn from ``chance``.

    The first of ``reduces`` takes what the others leave. ``work_ms`` is about how long an undisturbed reduce
    works, ``pause_ms`` how long on one key group.
    """

    application: str
    chance: random.Random
    times: int
    work_ms: int
    pause_ms: int
    reduces: int = 1
    tasks: dict[str, TaskPlan] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def plan_of(self, attempt: str) -> TaskPlan:
        task = task_of_attempt(attempt)
        if task not in self.tasks:
            share, first = divmod(self.times, self.reduces)
            self.tasks[task] = TaskPlan(share + first if task.endswith("_000000") else share)
        return self.tasks[task]

    def delay_ms(self, plan: TaskPlan) -> int:
        """Draw how long the next attempt is left alone, so that all that is to come fits into its work."""
        done = max((one.groups_done for one in plan.done), default=0)
        left_ms = max(50, self.work_ms - done * self.pause_ms)
        return int(self.chance.uniform(0, left_ms * min(0.85, 2 / (plan.left + 1))))


class Suspender:
    """All victims of one cluster; call :meth:`tick` now and then, from one thread."""

    def __init__(self, cluster: LiveCluster, port: AttachedPort, clock: Callable[[], int] = clock_ms) -> None:
        self.cluster = cluster
        self.port = port
        self.victims: list[Victim] = []
        self._clock = clock
        self._orders: dict[str, tuple[Victim, TaskPlan, Asked]] = {}
        wait_until(self._may_act, "yarnctl free to act on a cluster that it has just met")

    def _may_act(self) -> bool:
        self.port.observe(ObservationRequest())
        return not self.port.permission.why_nothing()

    def tick(self) -> None:
        """Look at everybody once and do what is due."""
        for victim in self.victims:
            for seen in self.cluster.reduces(victim.application):
                self._look(victim, seen)
        if self._orders:
            observed = self.port.observe(ObservationRequest(cluster=False, orders=tuple(self._orders)))
            for fact in observed.facts:
                self._take(fact)
            for entry in list(self._orders.values()):
                self._answered(*entry)

    def drop(self, victim: Victim) -> None:
        """Forget a job that is over."""
        self.victims.remove(victim)
        for name, (whose, plan, asked) in list(self._orders.items()):
            if whose is victim:
                self._close(name, plan, asked, "completed")

    # --- asking -------------------------------------------------------------------------------

    def _look(self, victim: Victim, seen: Seen) -> None:
        plan = victim.plan_of(seen.attempt)
        if seen.state != "RUNNING" or plan.order is not None or not plan.left:
            return
        now_ms = self._clock()
        if seen.attempt != plan.attempt:
            plan.attempt, plan.due_at_ms = seen.attempt, now_ms + victim.delay_ms(plan)
        if now_ms >= plan.due_at_ms:
            self._ask(victim, plan, seen)

    def _ask(self, victim: Victim, plan: TaskPlan, seen: Seen) -> None:
        name = f"o-{seen.attempt.removeprefix('attempt_')}-{plan.left}"
        asked = Asked(name, seen.attempt, seen.container, self._clock())
        outcome = self.port.perform(
            Suspend(name, victim.application, seen.attempt, seen.container, plan.generation + 1,
                asked.ordered_at_ms + TIMEOUT_MS)
        )  # fmt: skip
        if isinstance(outcome, Accepted):
            plan.order = asked
            self._orders[name] = (victim, plan, asked)
        else:
            victim.notes.append(f"{name}: {why_of(outcome)}")
            plan.due_at_ms = asked.ordered_at_ms + RETRY_MS

    # --- hearing ------------------------------------------------------------------------------

    def _take(self, fact: Any) -> None:
        if isinstance(fact, ManifestSeen) and fact.order in self._orders:
            victim, plan, asked = self._orders[fact.order]
            asked.manifest_at_ms, asked.groups_done = fact.at_ms, fact.keys_done
            asked.generation = plan.generation = max(plan.generation, fact.generation)
            self._release(victim, asked)
        elif isinstance(fact, ContainerEnded):
            for name, (_, plan, asked) in list(self._orders.items()):
                if asked.container == fact.container:
                    asked.ended_at_ms = fact.at_ms
                    self._close(name, plan, asked, fact.ending)

    def _release(self, victim: Victim, asked: Asked) -> None:
        outcome = self.port.perform(
            Release(asked.order, victim.application, asked.attempt, asked.container, asked.generation)
        )
        asked.released_at_ms = self._clock()
        if not isinstance(outcome, Accepted):
            victim.notes.append(f"{asked.order}: not released: {why_of(outcome)}")
            self._withdraw(victim, asked)

    def _withdraw(self, victim: Victim, asked: Asked) -> None:
        outcome = self.port.perform(Withdraw(asked.order, victim.application, asked.attempt, asked.container))
        if not isinstance(outcome, Accepted):
            victim.notes.append(f"{asked.order}: not withdrawn: {why_of(outcome)}")
        _, plan, _ = self._orders[asked.order]
        self._close(asked.order, plan, asked, "withdrawn")

    def _answered(self, victim: Victim, plan: TaskPlan, asked: Asked) -> None:
        asked.said = self.port.notes.get(asked.order, "")
        if asked.order not in self._orders or asked.manifest_at_ms:
            return
        late = self._clock() - asked.ordered_at_ms > TIMEOUT_MS
        if late or asked.said.startswith(("unchanged", "refused", "completing")):
            self._withdraw(victim, asked)

    def _close(self, name: str, plan: TaskPlan, asked: Asked, ending: str) -> None:
        asked.ending = ending
        plan.done.append(asked)
        plan.left -= 1
        plan.order, plan.attempt = None, plan.attempt if ending != "withdrawn" else ""
        del self._orders[name]


def why_of(outcome: Outcome) -> str:
    return f"{type(outcome).__name__}: {getattr(outcome, 'why', '')}"
