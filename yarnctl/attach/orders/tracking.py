"""Track orders: report what has happened to each container under order, as facts, each once.

Facts have the time of the poll, ends before grants. An end is reported only when YARN's list of live
containers lacks the container, with the reason that its framework shows. An unknown fact is reported later,
not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from yarnctl.attach.connection.application_rows import kind_of
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.observing.cluster_state import Held, LiveContainers
from yarnctl.attach.orders.connected import Connected, LeavingObserver, Removal, RemoveReason, TrackedOrder
from yarnctl.deciding.model import ApplicationEnded, ContainerEnded, ContainerGranted, Ending, Fact

LINGER_MS = 60_000  # The time for which a killed attempt is polled after its order: its container ends later


class OrderTracking:
    """All tracked orders, and the facts about them.

    ``frameworks``: by kind. ``observer_of``: the observer of an application's framework, if that is in use.
    """

    def __init__(
        self,
        connection: Connection,
        live: LiveContainers,
        frameworks: Mapping[str, Connected],
        observer_of: Callable[[str], LeavingObserver | None],
    ) -> None:
        self._frameworks, self._observer_of = frameworks, observer_of
        self._connection = connection
        self._live = live
        self._calls = connection.calls
        self._settings = connection.settings
        self._clock = connection.clock
        self.orders: dict[str, TrackedOrder] = {}
        self._turns: dict[str, int] = {}
        self._turn = count()
        self._announced: set[str] = set()
        self._ended_applications: set[str] = set()

    def announce(self, orders: Iterable[str]) -> None:
        """Note the order of orders that are about to begin in several threads: facts keep it."""
        for order in orders:
            self._turns.setdefault(order, next(self._turn))
            self._announced.add(order)

    def is_announced(self, order: str) -> bool:
        """Return whether an order was announced since the last observation."""
        return order in self._announced

    def begin(
        self, order: str, application: str, attempt: str, container: str, generation: int, verb: str
    ) -> TrackedOrder | None:
        """Track an order, or return the tracked one; None if the ids do not belong together."""
        known = self.orders.get(order)
        if known is not None:
            same = (known.application, known.attempt, known.container) == (application, attempt, container)
            return known if same else None
        kind = self._kind_of(application, attempt, verb)
        if kind is None:
            return None
        name = self._settings.name_of(order)
        tracked = self._frameworks[kind].record(
            order, name, kind, application, attempt, container, generation, verb
        )
        tracked.ordered_at_ms = self._clock()
        self._turns.setdefault(order, next(self._turn))
        self.orders[order] = tracked
        return tracked

    def _kind_of(self, application: str, attempt: str, verb: str) -> str | None:
        """Return the kind of the framework that knows an order's verb and name; None: no framework does."""
        row = self._connection.rows.get(application)
        for kind in self._frameworks if row is None else (kind_of(row),):
            found = self._frameworks.get(kind)
            if found and verb in found.reader.verbs and found.orders.is_name(application, attempt):
                return kind
        return None

    def are_leaving(self, application: str) -> bool:
        """Return whether executors of an application are under order and have not ended."""
        return any(
            one.verb == "drain" and not one.ended
            for one in self.orders.values()
            if one.application == application
        )

    def retain(self, open_orders: Iterable[str]) -> None:
        """Stop tracking settled orders, except those of killed attempts that have not ended yet."""
        wanted, now_ms = set(open_orders), self._clock()
        for name in [name for name in self.orders if name not in wanted]:
            one = self.orders[name]
            if one.ended or not one.killed_at_ms or now_ms - one.killed_at_ms > LINGER_MS:
                del self.orders[name]
        self._announced.clear()
        self._turns = {name: self._turns[name] for name in self.orders}
        self.orders = dict(sorted(self.orders.items(), key=lambda each: self._turns[each[0]]))

    def poll(self, tracked: Iterable[str], new: Iterable[str]) -> list[Fact]:
        """Return the facts since the last poll. ``tracked``: applications to poll for containers.

        A grant is remembered once it is reported: not by a poll that fails, and not while it is unknown how
        a container on its node has ended, because the grant may use that container.
        """
        running = [one for one in self.orders.values() if not one.ended]
        victims = list(dict.fromkeys(one.application for one in running))
        names = list(dict.fromkeys([*tracked, *victims]))
        listed = seen = self._live.observe(names)
        grants = self._live.grants(seen, new)
        if grants and victims:
            # A grant may use a container that ended after its application was polled, or that was freed for
            # a requester that has ended since.
            empty = [name for name, held in seen.items() if isinstance(held, Held) and not held.containers]
            seen = {**seen, **self._live.observe_anew(dict.fromkeys([*victims, *empty]))}
        facts: list[Fact] = []
        for each in self._frameworks.values():
            if each.saved_work is not None:
                facts += each.saved_work.poll(running, seen)
        facts += self._terminal_states(running, seen)
        unknown = {one.node for one in running if one.ended_seen_at_ms and not one.ended}
        now_ms = self._clock()
        later = set()
        for application, container in grants:
            if container.node in unknown:
                later.add(container.container)
                continue
            facts.append(
                ContainerGranted(container.container, application, container.node, container.size, now_ms)
            )
        facts += self._ended(seen)
        self._live.remember(listed, but=later)
        return facts

    def _ended(self, seen: Mapping[str, Held | Problem]) -> list[Fact]:
        now_ms, facts = self._clock(), list[Fact]()
        for name, held in sorted(seen.items()):
            if isinstance(held, Held) and held.ended and name not in self._ended_applications:
                self._ended_applications.add(name)
                facts.append(ApplicationEnded(name, now_ms))
        return facts

    def _terminal_states(
        self, running: Sequence[TrackedOrder], seen: Mapping[str, Held | Problem]
    ) -> list[Fact]:
        # Where the application chooses which container leaves, orders name containers by their ids.
        if by_number := [one for one in running if one.attempt == one.container]:
            for one in by_number:
                held = seen.get(one.application)
                if isinstance(held, Held) and not (one.others or one.left):  # of a daemon before this one
                    one.others = {row.container: row.node for row in held.containers.values()}
            bind(by_number, seen)
        gone = [one for one in running if self._is_over(one, seen.get(one.application))]
        if not gone:
            return []
        rejoining = self._connection.is_rejoining
        nodes = None if rejoining else self._calls.each(lambda _key: self._connection.node_names(), [0])[0]
        reasons = self._remove_reasons(gone)
        facts: list[Fact] = []
        for one in gone:
            now_ms = self._clock()
            # While nodes register again, a container that is not listed may live: its master knows.
            one.ended_seen_at_ms = now_ms if rejoining else one.ended_seen_at_ms or now_ms
            is_lost = isinstance(nodes, frozenset) and bool(one.node) and one.node not in nodes
            ending = self._ending(one, now_ms, reasons.get(one.order), is_lost=is_lost)
            if ending is not None:
                one.ended = True
                saved_work = self._frameworks[one.kind].saved_work
                if ending == "suspended" and saved_work is not None:
                    saved_work.left(one)
                facts.append(
                    ContainerEnded(
                        one.left or one.container,
                        one.application,
                        one.node,
                        ending,
                        now_ms,
                        one.order if one.left not in ("", one.container) else "",
                    )
                )
        return facts

    def _is_over(self, tracked: TrackedOrder, held: Held | Problem | None) -> bool:
        if not isinstance(held, Held) or held.ended:
            return False
        container = held.containers.get(tracked.left or tracked.container)
        if container is not None:
            tracked.node = tracked.node or container.node
            tracked.ended_seen_at_ms = 0
        return container is None

    def _remove_reasons(self, gone: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        observers = {one.order: self._observer_of(one.application) for one in gone}
        found: dict[str, RemoveReason] = {}
        for observer in dict.fromkeys(observers.values()):
            if observer is not None:
                found |= observer.remove_reasons([one for one in gone if observers[one.order] is observer])
        return found

    def _ending(
        self, tracked: TrackedOrder, now_ms: int, reason: RemoveReason, *, is_lost: bool
    ) -> Ending | None:
        """Return how a container ended, None if not known yet; ``is_lost``: its node is not alive."""
        if isinstance(reason, Removal) and reason.otherwise == "completed":
            return "completed"
        if is_lost:
            return "lost"
        if isinstance(reason, Removal):
            tracked.note = reason.why[:200] or tracked.note
            return "suspended" if tracked.released_at_ms and reason.is_drained else reason.otherwise
        return "lost" if now_ms - tracked.ended_seen_at_ms >= self._settings.terminal_state_wait_ms else None


def bind(orders: Sequence[TrackedOrder], seen: Mapping[str, Held | Problem]) -> None:
    """Assign a container that has ended to each order whose application chooses which containers leave.

    If the container that an order names has ended, it fulfils the order. Otherwise another container that
    the application held at the time of the order does, if no other order names it; one fulfils one order.
    """
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        if one.container not in held.containers:
            fulfil(one, one.container, orders)
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        named = {each.container for each in orders if not each.left}
        gone = sorted(one.others.keys() - held.containers.keys() - named)
        if gone:
            fulfil(one, gone[0], orders)


def fulfil(tracked: TrackedOrder, container: str, orders: Sequence[TrackedOrder]) -> None:
    """Let a container fulfil one order, and no other order."""
    tracked.left, tracked.node = container, tracked.others.get(container, tracked.node)
    for each in orders:
        each.others.pop(container, None)
