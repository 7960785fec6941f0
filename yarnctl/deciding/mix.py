"""The mix: the cheapest levers that free a container in time.

Law: ``choose_mix`` is a function, and a task that is neither picked, awaited, shown nor compared changes
nothing in its choice: so the journal holds these alone. For each request, among levers that free a container
within ``room_within_ms``: the least lost work, then the least overhead, then the paper's job and task
policies, then the attempt. Where a second has a price (:mod:`yarnctl.deciding.waiting_worth`): first the sum
of lost work, overhead and what the time until the container is free costs; an executor that loses nothing
costs nothing. A whole request is met on one node; several small containers of a node are combined so that
their sum is the least (exactly, for up to ``EXACT_MAX`` of them). What a budget does not allow is left out by
name. A task that ends by itself in time is awaited: no order, but its container counts as coming until the
instant that was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from yarnctl.deciding.case import Case, Choice, Pick, RefusedJob, RefusedTask
from yarnctl.deciding.levers import AwaitedTask, LeverKind, LeverPull, kills_max
from yarnctl.deciding.loss_budget import CHARGED, charged_ms, task_of
from yarnctl.deciding.offers import Cost, LeverOffers, MixInput, Option
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings
from yarnctl.deciding.waiting_worth import NO_PRICE, SecondPrice
from yarnctl.units import NOTHING, Resources, fits, minus, plus

EXACT_MAX = 14
"""So many containers of a node, the cheapest of them, are combined in every way."""


class Mixing:
    """The working state of one choice. Nothing of it outlives :func:`choose_mix`."""

    def __init__(self, case: Case, settings: Settings, mix_input: MixInput) -> None:
        self.case, self.settings, self.given = case, settings, mix_input
        self.offers = LeverOffers(case, settings, mix_input)
        self.left = mix_input.left.copy()
        self.trials = mix_input.trials
        assert settings.levers is not None
        self.kills_max = kills_max(settings.levers)
        self.picked_of = [0] * len(case.jobs)
        self.free: dict[str, Resources] = {}
        self.used: set[str] = set()
        self.rescaled: set[int] = set()
        """Jobs that lose workers by this choice: their cost is paid, however many leave."""
        self.picks: list[tuple[Option, Resources, int]] = []
        self.last_on: dict[str, tuple[bool, int]] = {}
        """Node -> whether the option that completed its last container is a pick, and its place."""
        self.awaited: list[tuple[Option, int]] = []
        self.compared: dict[str, None] = {}
        self._by_node: dict[str, list[Option]] = {}
        self._sorted_in = 0
        self._next, self._combines = 0, False

    # --- meeting requests---------------------------------------------------------------------------

    def meet(self, size: Resources, wanted: int) -> int:
        """Meet as many of ``wanted`` requests of one size as there are levers for; return the unmet."""
        wanted = self._from_free(size, wanted, self.free)
        self._next, self._combines = 0, False
        while wanted:
            found = self._single(size)
            if self._combines:
                group = self._group(size)
                if group and (not found or self._total(group) < self._total(found)):
                    found = group
            if not found:
                return wanted
            self._use(found, size)
            # On other nodes nothing fits this size: what fitted was used before.
            wanted = self._from_free(size, wanted - 1, (found[0].task.node,))
        return 0

    def _single(self, size: Resources) -> list[Option]:
        """Return the cheapest option whose container alone is large enough.

        Of smaller ones before it together may be cheaper; of those behind it not even one is.
        """
        offers, used, place = self.offers, self.used, self._next
        while (option := offers.at(place)) is not None:
            if not fits(size, option.task.size):
                self._combines = True
            elif option.attempt not in used and self._allows(option):
                break
            place += 1
        self._next = place
        return [] if option is None else [option]

    def _group(self, size: Resources) -> list[Option]:
        """Return the cheapest combination of small containers of one node, of those offered so far."""
        for option in self.offers.offered[self._sorted_in :]:
            self._by_node.setdefault(option.task.node, []).append(option)
        self._sorted_in = len(self.offers.offered)
        best: list[Option] = []
        for node, options in self._by_node.items():
            usable = [
                each
                for each in options
                if each.attempt not in self.used and each.lever.kind != "rescale" and self._allowed((each,))
            ]
            free = self.free.get(node, self.case.free.get(node, NOTHING))
            found = cheapest_cover(size, free, usable, self._allowed, self.case.second)
            if len(usable) > EXACT_MAX:
                self.compare(usable)
            if found and (not best or self._key(found) < self._key(best)):
                best = found
        return best

    def _total(self, options: list[Option]) -> Cost:
        return _cost_of(options, self.case.second)

    def _key(self, options: list[Option]) -> _GroupKey:
        return _group_key(options, self.case.second)

    def compare(self, options: Iterable[Option]) -> None:
        """Note options of which not all were combined: without one of them others would have been."""
        self.compared.update((option.attempt, None) for option in options)

    def _allows(self, option: Option) -> bool:
        """Return what ``_allowed`` returns for one option; this is asked for every pick."""
        kind = option.lever.kind
        if kind == "wait":
            return True
        if self.picked_of[option.job] >= self.case.jobs[option.job].giving:
            return False
        if kind == "suspend" and self.trials == 0:
            return False
        if kind not in CHARGED:
            return True
        if kind == "kill" and self._twice((option,)):
            return False
        return self.left.allows((self._charge(self._unpaid(option)),))

    def _allowed(self, options: Iterable[Option]) -> bool:
        """Return whether budgets allow these: of lost work, and of a job's containers under order."""
        options = list(options)
        if len({option.attempt for option in options}) < len(options):
            return False  # two levers of one task
        if self._twice(options) or self._on_trial(options):
            return False
        more: dict[int, int] = {}
        for option in options:
            if option.lever.kind != "wait":
                more[option.job] = more.get(option.job, 0) + 1
        for index, count in more.items():
            if self.picked_of[index] + count > self.case.jobs[index].giving:
                return False
        return self.left.allows(
            self._charge(option) for option in map(self._unpaid, options) if option.lever.kind in CHARGED
        )

    def _on_trial(self, options: list[Option]) -> bool:
        """Return whether a suspension is among these, and none may be tried now."""
        return self.trials == 0 and any(option.lever.kind == "suspend" for option in options)

    def _unpaid(self, option: Option) -> Option:
        """Return an option at what it adds: what workers cost is paid by the first of its job that leaves.

        No combination has two workers (which of them leave is not known, and so which node becomes free).
        """
        if option.lever.kind != "rescale" or option.job not in self.rescaled:
            return option
        return option._replace(lever=option.lever._replace(lost_ms=0, overhead_ms=0))

    def over(self, option: Option) -> Reason:
        """Return why an option is not allowed: a trial, a kill, a budget, or its job gives no more."""
        if self._on_trial([option]):
            return "on-trial"
        if self._twice([option]):
            return "killed-lately"
        queue, user, kind, amount = self._charge(option)
        owner = self.left.exceeded([(queue, user, kind, amount)]) if kind in CHARGED else None
        if owner is None:
            return "job-budget"
        if owner == _name(self.case, option.job):
            return "job-loss-budget"
        return "loss-budget" if owner == queue else "user-loss-budget"

    def _twice(self, options: Iterable[Option]) -> bool:
        """Return whether another attempt of one of these tasks was killed already, or is by this choice."""
        these: set[str] = set()
        for option in options:
            if option.lever.kind == "kill":
                task = task_of(option.attempt)
                if task in these or not self.left.may_kill(task, self.kills_max):
                    return True
                these.add(task)
        return False

    def _charge(self, option: Option) -> tuple[str, str, LeverKind, int]:
        """Return what an option uses of whose budgets: queue, user, lever, MiB-ms."""
        queue, user = self.given.queue_and_user[_name(self.case, option.job)]
        return queue, user, option.lever.kind, charged_ms(option.lever) * option.task.size[0]

    def _use(self, options: list[Option], size: Resources) -> None:
        """Take these options: the last of a node completes the container."""
        node = options[0].task.node
        free = self.free.get(node, self.case.free.get(node, NOTHING))
        options = [self._unpaid(option) for option in options]
        for option in options:
            free = plus(free, option.task.size)
            self.used.add(option.attempt)
            if option.lever.kind == "rescale":
                self.rescaled.add(option.job)
            if option.lever.kind == "wait":
                continue
            self.picked_of[option.job] += 1
            if option.lever.kind in CHARGED:
                queue, user, kind, amount = self._charge(option)
                self.left.take(queue, user, kind, amount, task_of(option.attempt))
        if self.trials and any(option.lever.kind == "suspend" for option in options):
            self.trials = 0
        self.free[node] = minus(free, size)
        ordered = [option for option in options if option.lever.kind != "wait"]
        for place, option in enumerate(ordered):
            self.picks.append((option, size, int(place == len(ordered) - 1)))
        waits = [option for option in options if option.lever.kind == "wait"]
        for place, option in enumerate(waits):
            self.awaited.append((option, int(not ordered and place == len(waits) - 1)))
        self.last_on[node] = (bool(ordered), len(self.picks if ordered else self.awaited) - 1)

    def _from_free(self, size: Resources, wanted: int, nodes: Iterable[str]) -> int:
        """Meet requests from what earlier options leave over (a larger container than was requested)."""
        for node in nodes:
            while wanted and fits(size, self.free[node]):
                self.free[node] = minus(self.free[node], size)
                is_pick, place = self.last_on[node]
                if is_pick:
                    option, requested, serves = self.picks[place]
                    self.picks[place] = (option, requested, serves + 1)
                else:
                    awaited, serves = self.awaited[place]
                    self.awaited[place] = (awaited, serves + 1)
                wanted -= 1
        return wanted


OptionKey = tuple[Cost, tuple[int, ...], tuple[int, ...], str]
_GroupKey = tuple[Cost, int, list[OptionKey]]


def _sorted_by(option: Option) -> OptionKey:
    return option[:4]


def _cost_of(options: Iterable[Option], second: SecondPrice) -> Cost:
    """Return the cost of options together: where a second has a price, the last of them is waited for."""
    lost_ms = overhead_ms = longest_ms = 0
    for option in options:
        lost_ms += option.cost[0]
        overhead_ms += option.cost[1]
        if second.parts:
            wait_ms = min(option.cost[0], second.of(option.lever.free_in_ms))  # an idle executor's is free
            lost_ms -= wait_ms
            longest_ms = max(longest_ms, wait_ms)
    return lost_ms + longest_ms, overhead_ms


def _group_key(options: list[Option], second: SecondPrice) -> _GroupKey:
    return _cost_of(options, second), len(options), [_sorted_by(option) for option in options]


def cheapest_cover(
    size: Resources,
    free: Resources,
    options: list[Option],
    allowed: Callable[[list[Option]], bool],
    second: SecondPrice = NO_PRICE,
) -> list[Option]:
    """Return the options of a node that make up ``size``, with what is ``free`` there, at least cost.

    Empty: none do. The least lost work in sum, then overhead, then the fewest, then their order. Where the
    ``EXACT_MAX`` cheapest do not suffice, the cheapest that do, one after the other, less those not needed.
    """
    options = sorted(options, key=_sorted_by)
    tried = options[:EXACT_MAX]
    suffix = [NOTHING]
    for option in reversed(tried):
        suffix.append(plus(suffix[-1], option.task.size))
    suffix.reverse()
    best: list[Option] = []

    def extend(place: int, have: Resources, chosen: list[Option]) -> None:
        nonlocal best
        if fits(size, have):
            if (not best or _group_key(chosen, second) < _group_key(best, second)) and allowed(chosen):
                best = list(chosen)
            return
        if place == len(tried) or not fits(size, plus(have, suffix[place])):
            return
        if best and _cost_of(chosen, second) > _cost_of(best, second):
            return
        extend(place + 1, plus(have, tried[place].task.size), [*chosen, tried[place]])
        extend(place + 1, have, chosen)

    extend(0, free, [])
    if best or len(options) <= EXACT_MAX:
        return best
    return _one_after_the_other(size, free, options, allowed)


def _one_after_the_other(
    size: Resources, free: Resources, options: list[Option], allowed: Callable[[list[Option]], bool]
) -> list[Option]:
    """Return the cheapest options that are allowed together until they suffice, less those not needed."""
    chosen: list[Option] = []
    have = free
    for option in options:
        if fits(size, have):
            break
        if allowed([*chosen, option]):
            chosen.append(option)
            have = plus(have, option.task.size)
    if not fits(size, have):
        return []
    for option in reversed(chosen.copy()):
        less = minus(have, option.task.size)
        if fits(size, less):
            chosen.remove(option)
            have = less
    return chosen


# --- the result -------------------------------------------------------------------------------------


def choose_mix(case: Case, settings: Settings, mix_input: MixInput) -> Choice:
    """Choose levers for ``case.needs``, in order: the least lost work, then the least overhead."""
    mixing = Mixing(case, settings, mix_input)
    missing = mixing.offers.missing
    if missing:
        return Choice((), (), sum(need.containers for need in case.needs), (), (), missing, missing)
    unmet = sum(mixing.meet(need.size, need.containers) for need in case.needs)
    return Choice(
        picks=tuple(
            Pick(_name(case, option.job), option.task, option.job_key, option.task_key, requested, serves)
            for option, requested, serves in mixing.picks
        ),
        handed_back=(),
        unmet=unmet,
        refused_jobs=tuple(_closed(case, mixing)),
        refused_tasks=tuple(_refused(case, mixing, settings.refused_shown)),
        hit=tuple(dict.fromkeys(_name(case, option.job) for option, _, _ in mixing.picks)),
        free=mixing.free,
        pulls=tuple(_pull(case, mix_input, option) for option, _, _ in mixing.picks),
        awaited=tuple(_awaited(case, mix_input, option, serves) for option, serves in mixing.awaited),
        compared=tuple(mixing.compared),
    )


def _pull(case: Case, mix_input: MixInput, option: Option) -> LeverPull:
    queue, user = mix_input.queue_and_user[_name(case, option.job)]
    return LeverPull(option.lever, queue, user)


def _name(case: Case, job: int) -> str:
    return case.jobs[job].usage.application


def _awaited(case: Case, mix_input: MixInput, option: Option, serves: int) -> AwaitedTask:
    until_ms = mix_input.awaited_until_ms.get(option.attempt, case.now_ms + option.lever.free_in_ms)
    return AwaitedTask(_name(case, option.job), option.task.container, option.lever, until_ms, serves)


def _closed(case: Case, mixing: Mixing) -> Iterator[RefusedJob]:
    """Name the first few jobs that are excluded."""
    shown = [index for index, job in enumerate(case.jobs) if job.usage.application in case.closed]
    for index in shown[: mixing.settings.refused_shown]:
        name = _name(case, index)
        yield RefusedJob(name, mixing.offers.keys[index], case.closed[name])


def _refused(case: Case, mixing: Mixing, shown: int) -> Iterator[RefusedTask]:
    """Name the next few options by cost, then the first few tasks without a lever, by attempt."""
    place, told = 0, set(mixing.used)
    while shown and (option := mixing.offers.at(place)) is not None:
        place += 1
        if option.attempt in told:
            continue
        told.add(option.attempt)
        why: Reason = "next" if mixing._allowed((option,)) else mixing.over(option)
        name, task = _name(case, option.job), option.task
        yield RefusedTask(name, task.attempt, option.task_key, why, task.container, task.node)
        shown -= 1
    for task, index, reason in mixing.offers.without_lever(mixing.settings.refused_shown):
        yield RefusedTask(_name(case, index), task.attempt, (), reason, task.container, task.node)
