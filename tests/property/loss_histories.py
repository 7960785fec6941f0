"""Random histories of what research holds and what production has cost it, and a second opinion on budgets.

Law: :class:`Oracle` has nothing of the product. It knows the true life of each container, the instants at
which the cluster was observed, and the rule of docs/levers.md; it adds lifetimes up. :class:`Product` is the
port's counting (:class:`HeldTimes`) and the loss budget, fed with the counters that YARN would show. A
history is a function of its number: seconds are whole, so that counters are exact, and so are the parts that
may be lost (halves of halves).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal, NamedTuple

import msgspec

from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.observing.held_time import HeldTimes
from yarnctl.deciding.levers import Lever, LeverPull
from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.loss_budget import LossBudget, LossLeft, LossState
from yarnctl.deciding.queue_names import NamedQueues
from yarnctl.deciding.settings import LeverSettings, LossRule
from yarnctl.hadoop.wire import yarn
from yarnctl.units import Resources

Kind = Literal["kill", "end"]
QUEUES = ("research", "batch")
WINDOWS_S = (60, 600, 3600, 86_400, 7 * 86_400)
GAPS_S = (1, 1, 3, 10, 10, 60, 60, 600, 3600, 86_400)
MOVES: tuple[Event, ...] = ("refused", "completed", "ended-as-ordered", "ended-otherwise", "give-up")
RATIOS = (1 / 64, 1 / 4, 1.0)


@dataclass
class Application:
    """One application. ``containers``: from, until (s) and MiB; ``tag``: the part of it that may be lost."""

    name: str
    queue: str
    user: str
    tag: float | None
    containers: tuple[tuple[int, int, int], ...]

    @property
    def begins_s(self) -> int:
        return min(one[0] for one in self.containers)

    @property
    def ends_s(self) -> int:
        return max(one[1] for one in self.containers)

    def held_mib_s(self, from_s: int, until_s: int) -> int:
        """Return the container time of a span."""
        return sum(
            mib * max(0, min(end_s, until_s) - max(begin_s, from_s))
            for begin_s, end_s, mib in self.containers
        )


class Rule(NamedTuple):
    """What a payer may lose, over which window."""

    ratio: float
    window_s: int


@dataclass
class Terms:
    """The rules of a history; the usual window is of an hour unless drawn otherwise."""

    usual: Rule
    queues: dict[str, Rule] = field(default_factory=dict)
    users: dict[str, Rule] = field(default_factory=dict)
    refetch: float = 1 / 4

    @property
    def shortest_s(self) -> int:
        return min(each.window_s for each in (self.usual, *self.queues.values(), *self.users.values()))


class Loss(NamedTuple):
    """A loss that was decided: of ``amount`` MiB-ms."""

    at_s: int
    application: Application
    kind: Kind
    amount: int


class Oracle:
    """What may be lost, by the lives of all containers."""

    def __init__(self, terms: Terms, applications: list[Application]) -> None:
        self.terms, self.applications = terms, applications
        self.losses: dict[str, Loss] = {}
        self.observed_s: list[int] = []
        self.shown: dict[str, set[int]] = {}
        self.sampled_s: list[int] = []
        self.fell_s: dict[str, int] = {}

    def another_base(self) -> None:
        """Another daemon, or another ResourceManager: nothing of before counts, but all losses do."""
        self.observed_s, self.shown, self.sampled_s, self.fell_s = [], {}, [], {}

    def observe(self, now_s: int, shown: set[str], fallen: set[str]) -> None:
        """Note which applications' counters were shown, and which of them fell."""
        self.observed_s.append(now_s)
        for name in shown:
            self.shown.setdefault(name, set()).add(now_s)
        for each in self.applications:
            if each.name in fallen:
                self.fell_s.update(dict.fromkeys(self.payers(each), now_s))
        every_s = self.terms.shortest_s / 720
        if fallen or not self.sampled_s or now_s - self.sampled_s[-1] >= every_s:
            self.sampled_s.append(now_s)

    @staticmethod
    def spacing_s(window_s: int) -> float:
        """A sample a minute is kept; a sixtieth of shorter windows, a 720th of long ones."""
        return max(window_s / 720, min(60.0, window_s / 60))

    def payers(self, of: Application) -> tuple[str, ...]:
        """Return whose an application's container time is: no payer's if it is not preemptable."""
        if of.queue not in QUEUES:
            return ()
        own = of.queue if of.tag is None else of.name
        return (own, f"user {of.user}") if of.user in self.terms.users else (own,)

    def held_mib_s(self, payer: str, window_s: int, now_s: int) -> int:
        """Return what was held from the oldest kept sample inside the window to the newest sample."""
        kept: dict[int, int] = {}
        for at_s in self.sampled_s:
            kept.setdefault(int(at_s // self.spacing_s(window_s)), at_s)
        inside = [at_s for at_s in kept.values() if at_s >= now_s - window_s]
        if not inside:
            return 0
        from_s, until_s = max(inside[0], self.fell_s.get(payer, 0)), self.sampled_s[-1]
        spans = [
            span
            for span in zip(self.observed_s, self.observed_s[1:], strict=False)
            if from_s <= span[0] and span[1] <= until_s
        ]
        return sum(
            each.held_mib_s(*span)
            for each in self.applications
            if payer in self.payers(each)
            for span in spans
            if self.shown.get(each.name, set()).issuperset(span)
        )

    def left(self, of: Application, kind: Kind, now_s: int) -> int:
        """Return how many MiB-ms may be lost of an application now, by all whose budget it uses."""
        terms, (own, *user) = self.terms, self.payers(of)
        if kind == "end":
            return self._left(own, kind, Rule(terms.refetch, terms.usual.window_s), now_s)
        rule = (
            terms.queues.get(of.queue, terms.usual) if of.tag is None else terms.usual._replace(ratio=of.tag)
        )
        rules = {own: rule, **dict.fromkeys(user, terms.users.get(of.user, rule))}
        return min(self._left(payer, kind, rule, now_s) for payer, rule in rules.items())

    def _left(self, payer: str, kind: Kind, rule: Rule, now_s: int) -> int:
        lost = sum(
            each.amount
            for each in self.losses.values()
            if each.kind == kind
            and payer in self.payers(each.application)
            and each.at_s > now_s - rule.window_s
        )
        return int(self.held_mib_s(payer, rule.window_s, now_s) * 1000 * rule.ratio) - lost


class Product:
    """The product's counting and budget, of one daemon after another."""

    def __init__(self, terms: Terms) -> None:
        rules = [
            LossRule("queue", name, one.ratio, one.window_s * 1000) for name, one in terms.queues.items()
        ]
        rules += [LossRule("user", name, one.ratio, one.window_s * 1000) for name, one in terms.users.items()]
        self.rules = LeverSettings(
            room_within_ms=4000, suspend_ms=4000, leave_ms=1000, may_lose_ratio=terms.usual.ratio,
            may_refetch_ratio=terms.refetch, window_ms=terms.usual.window_s * 1000, budgets=tuple(rules),
        )  # fmt: skip
        self.losses = LossBudget()
        self.begin()

    def begin(self) -> None:
        """Begin another daemon: only what the journal holds is left."""
        settings = Attachment(
            preemptable_queues=QUEUES, budgets=self.rules.budgets, loss_window_ms=self.rules.window_ms
        )
        names = QueueNames(NamedQueues((), QUEUES, "queues"))
        names.preemptable = frozenset(QUEUES)
        self.held = HeldTimes(settings, names)
        left = msgspec.json.encode(self.losses.state())
        self.losses = LossBudget(msgspec.json.decode(left, type=LossState))

    def observe(self, now_s: int, rows: list[yarn.AppInfo]) -> None:
        self.held.update(now_s * 1000, rows)
        self.losses.retire(now_s * 1000, self.rules)

    def left(self, now_s: int) -> LossLeft:
        consents = {each.application: each.may_lose_ratio for each in self.held.consents()}
        return self.losses.left(now_s * 1000, self.held.held(now_s * 1000), self.rules, consents)

    def may_lose(self, of: Application, kind: Kind, amount: int, now_s: int) -> bool:
        return self.left(now_s).allows([(self._payer(of), of.user, kind, amount)])

    @staticmethod
    def _payer(of: Application) -> str:
        return of.queue if of.tag is None else of.name

    def lose(self, order: str, loss: Loss) -> None:
        lost_ms, overhead_ms = (loss.amount, 0) if loss.kind == "kill" else (0, loss.amount)
        lever = Lever(f"{order}_0", loss.kind, 0, lost_ms, overhead_ms, "run-again")
        pull = LeverPull(lever, self._payer(loss.application), loss.application.user)
        self.losses.charge(order, loss.at_s * 1000, Resources(1, 1), pull)


class Verdict(NamedTuple):
    """How a history ended. ``overspent``: allowed against the rule; ``rejected``: refused against it."""

    overspent: int
    rejected: int
    allowed: int
    refused: int
    story: str = ""


class History:
    """One random history, played by both sides; the product's answers are what happens."""

    def __init__(self, number: int) -> None:
        self.draw = Random(number)
        self.now_s = self.begins_s = self.draw.randrange(10**6, 2 * 10**6)
        usual = Rule(self.draw.choice(RATIOS), self.draw.choice((3600, 3600, *WINDOWS_S)))
        self.terms = Terms(usual, self._some(QUEUES[:1]), self._some(("ann",)))
        self.applications = [self._application(number) for number in range(self.draw.randint(2, 6))]
        self.oracle, self.product = Oracle(self.terms, self.applications), Product(self.terms)
        self.offsets_s: dict[str, int] = {}
        self.last_s: dict[str, int] = {}
        self.falls: set[str] = set()
        self.number_of_orders = 0
        self.counts = [0, 0, 0, 0]
        self.story = ""

    def _some(self, names: tuple[str, ...]) -> dict[str, Rule]:
        draw = self.draw
        return {
            each: Rule(draw.choice(RATIOS), draw.choice(WINDOWS_S)) for each in names if draw.random() < 0.4
        }

    def _application(self, number: int) -> Application:
        draw, containers = self.draw, []
        spread_s = draw.choice((100, 4000, 90_000, 400_000))
        for _ in range(draw.randint(1, 4)):
            from_s = self.now_s + draw.randrange(-spread_s, spread_s)
            until_s = from_s + draw.choice((10, 100, 3600, 90_000, 400_000))
            containers.append((from_s, until_s, draw.choice((1, 512, 1024))))
        tag = draw.choice((0.0, 1 / 4)) if draw.random() < 0.3 else None
        queue = draw.choice(("research", "research", "batch", "production"))
        return Application(
            f"application_1_{number}", queue, draw.choice(("ann", "bob")), tag, tuple(containers)
        )

    # --- what happens -------------------------------------------------------------------------------

    def play(self, events: int = 40) -> Verdict:
        happens = (self._lose, self._lose, self._lose, self._move, self._fall, self._restart, self._failover)
        for _ in range(events):
            if self.draw.random() < 0.1:
                self._quiet()
            self.now_s += self.draw.choice(GAPS_S)
            self._observe()
            if self.draw.random() < 0.5:
                self.draw.choice(happens)()
        overspent, rejected, allowed, refused = self.counts
        return Verdict(overspent, rejected, allowed, refused, self.story)

    def _quiet(self) -> None:
        """Nothing waits for a while: the port observes by itself."""
        every_s = self.draw.choice((5, 60, 60, 600))
        for _ in range(self.draw.randint(1, 30)):
            self.now_s += every_s
            self._observe()

    def _alive(self) -> Iterator[Application]:
        for each in self.applications:
            if each.begins_s <= self.now_s < each.ends_s:
                yield each

    def _observe(self) -> None:
        rows, shown, fallen = [], set[str](), set[str]()
        for each in self._alive():
            true_s = each.held_mib_s(each.begins_s, self.now_s)
            count_s, before_s = true_s + self.offsets_s.get(each.name, 0), self.last_s.get(each.name, 0)
            if each.name in self.falls and before_s:
                count_s = self.draw.randrange(before_s)
                self.offsets_s[each.name] = count_s - true_s
            is_hidden = self.draw.random() < 0.03
            if not is_hidden:
                shown.add(each.name)
                if count_s < self.last_s.get(each.name, 0) and each.queue in QUEUES:
                    fallen.add(each.name)
            tags = "" if each.tag is None else f"yarnctl-may-lose:{each.tag}"
            mib_seconds = -1 if is_hidden else count_s
            rows.append(
                yarn.AppInfo(each.name, each.user, queue=each.queue, tags=tags, mib_seconds=mib_seconds)
            )
            self.last_s.pop(each.name, None)
            if not is_hidden:
                self.last_s[each.name] = count_s
        self.falls.clear()
        self.oracle.observe(self.now_s, shown, fallen)
        self.product.observe(self.now_s, rows)

    def _fall(self) -> None:
        """The next observation shows some counters lower than the last one."""
        self.falls = {each.name for each in self._alive() if self.draw.random() < 0.5}

    def _restart(self) -> None:
        self._another_base()
        self.product.begin()

    def _failover(self) -> None:
        """Another ResourceManager counts anything, and perhaps all of a container's life."""
        self._another_base()
        self.offsets_s = {each.name: self.draw.choice((0, 10**6)) for each in self.applications}
        self.product.held.restart()

    def _another_base(self) -> None:
        self.oracle.another_base()
        self.last_s.clear()
        self.falls.clear()

    def _lose(self) -> None:
        """Production needs room: both sides are asked whether so much may be lost of an application."""
        for of in [each for each in self._alive() if each.queue in QUEUES]:
            kind: Kind = self.draw.choice(("kill", "kill", "end"))
            left = self.oracle.left(of, kind, self.now_s)
            amount = max(1, self.draw.choice((left, left + 1, left // 2, self.draw.randrange(10**7))))
            may, must = self.product.may_lose(of, kind, amount, self.now_s), amount <= left
            self.counts[0] += may and not must
            self.counts[1] += must and not may
            self.counts[2] += may
            self.counts[3] += not may
            if may != must and not self.story:
                self.story = f"after {self.now_s - self.begins_s} s {kind} {amount} of {of}: {left} are left"
            if may:
                self.number_of_orders += 1
                order, loss = f"o-{self.number_of_orders}", Loss(self.now_s, of, kind, amount)
                self.product.lose(order, loss)
                self.oracle.losses[order] = loss

    def _move(self) -> None:
        """An order was refused, came too late, or its task has ended: until then it computed."""
        if not self.oracle.losses:
            return
        order = self.draw.choice(list(self.oracle.losses))
        event = self.draw.choice(MOVES)
        loss = self.oracle.losses[order]
        if order in self.product.losses.charges:  # else it is forgotten
            self.product.losses.moved(order, event, self.now_s * 1000)
        if event in ("refused", "completed"):
            del self.oracle.losses[order]
        elif event.startswith("ended") and loss.kind == "kill":
            more = 1000 * (self.now_s - loss.at_s)
            self.oracle.losses[order] = loss._replace(amount=loss.amount + more)
