"""A framework that yarnctl does not know, in some 60 lines: the loop drains its containers for production."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, container
from yarnctl.attach.connection.application_guard import ReadAnswer
from yarnctl.attach.eligibility.settings_reader import Drainable, ExecutorReader
from yarnctl.attach.observing.cluster_state import Held, sizes_of
from yarnctl.attach.observing.victims import NUMBER_MAX, ObservedVictim, Victim, sound
from yarnctl.attach.orders.connected import Connected, Removal, RemoveReason, TrackedOrder
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Accepted, OrderAction, Outcome, TaskView
from yarnctl.deciding.records import Decision, Transition
from yarnctl.deciding.settings import DEFAULT, LeverSettings
from yarnctl.frameworks.framework import Parts, observed
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.decoders import Unreadable
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import tick
from yarnctl.units import times

TOY, PRODUCTION = application(8), application(2)
MASTER = container(8, 1)


class Toy:
    """All containers of an application but its master's may leave within 2 s, at no cost, by one order."""

    KIND = "TOY"

    def __init__(self) -> None:
        self.left: list[str] = []

    def is_tagged(self, tags: Sequence[str]) -> bool:
        return "toy-may-leave" in tags

    def judge(self, application: str, tags: Sequence[str]) -> Drainable:
        return Drainable("toy", min_executors=0)

    def is_name(self, application: str, name: str) -> bool:
        return name.startswith(application.replace("application", "container"))

    def connect(self, parts: Parts) -> Connected:
        self.parts, self.reader = parts, ExecutorReader(parts.connection, self.KIND, self, parts.reasons)
        return Connected(self.reader, self, self)

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        return observed(self.parts, self.reader.allowed, victims, str, self._victim)

    def _victim(self, application: str, held: Held, answer: ReadAnswer[str]) -> Victim:
        now_ms, may_leave = self.parts.connection.clock(), not self.parts.are_leaving(application)
        tasks = (
            TaskView(
                attempt=name, container=name, node=row.node, size=row.size, kind="executor",
                remaining_ms=2000, resume_cost_ms=0, since_ms=now_ms, generation=0, checkpointable=may_leave,
                resumed=False,
            )
            for name, row in held.containers.items() if name != MASTER
        )  # fmt: skip
        return Victim(tuple(sorted(tasks)), sizes_of(held.containers.values()))

    def remove_reasons(self, wanted: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        return {one.order: Removal("ordered to", is_drained=True) for one in wanted}

    def perform(self, action: OrderAction, one: TrackedOrder) -> Outcome:
        one.released_at_ms = self.parts.connection.clock()
        self.left.append(one.container)
        return Accepted()


def run(tags: str, seconds: int = 20) -> tuple[Toy, MemoryJournal]:
    """Run the loop on a full cluster: the toy holds four of five slots, production waits for two."""
    toy, journal = Toy(), MemoryJournal()
    settings = msgspec.structs.replace(
        DEFAULT,
        preempting_queues=("root.production",),
        preemptable_queues=("root.research",),
        levers=LeverSettings(room_within_ms=12_000, suspend_ms=3000, leave_ms=2000),
    )
    controller = Controller(settings, validate=True)
    with FakeCluster() as cluster:
        cluster.nodes = {"n1:1": times(SLOT, 5)}
        app = cluster.add(App(8, "research", kind="Toy", tags=tags))
        app.containers = {container(8, place): ("n1:1", 0) for place in range(1, 5)}
        production = cluster.add(App(2, "production", user="bob", asks=[(20, SLOT, 2)]))
        production.containers[container(2, 1)] = ("n1:1", 0)
        port = cluster.port(frameworks={Toy.KIND: toy}, levers=True)
        until_ms = cluster.now_ms + seconds * 1000
        while cluster.now_ms < until_ms:
            cluster.now_ms = max(cluster.now_ms + 250, tick(controller, port, journal))
            free = 5 - len(app.containers) - len(production.containers)
            for _ in range(free):  # YARN grants what was free when the loop looked
                production.containers[container(2, len(production.containers) + 1)] = ("n1:1", 0)
            production.asks = [(20, SLOT, 3 - len(production.containers))]
            for name in toy.left:
                app.containers.pop(name, None)
        port.close()
    return toy, journal


def test_containers_of_an_unknown_framework_serve_production():
    toy, journal = run("toy-may-leave")
    assert len(set(toy.left)) == len(toy.left) == 2, "as many as production waits for, each once"
    decided = [record for record in journal.records if isinstance(record, Decision)]
    assert [pull and pull.lever.kind for record in decided for pull in record.pulls] == ["drain", "drain"]
    states = [record.target for record in journal.records if isinstance(record, Transition)]
    assert states.count("granted") == 2


def test_without_the_submitters_tag_none_is_ordered_to_leave():
    assert run("another")[0].left == []


@pytest.mark.parametrize(
    ("number", "is_sound"), [(-2, False), (-1, True), (NUMBER_MAX, True), (NUMBER_MAX + 1, False)]
)
@pytest.mark.parametrize("field", ["remaining_ms", "resume_cost_ms"])
def test_numbers_of_an_unknown_framework_have_bounds(field, number, is_sound):
    task = TaskView("a", "c", "n1:1", SLOT, "executor", 0, 0, 0, 0, True, False)
    victim = Victim((task._replace(**{field: number}),), None)
    held = Held({"c": yarn.ContainerRow("c", SLOT.memory_mib, SLOT.vcores, "n1:1")})
    if is_sound:
        assert sound(victim, held) == victim
    else:
        with pytest.raises(Unreadable, match="outside of -1"):
            sound(victim, held)


def test_bound_of_lost_work_has_a_bound_itself():
    held = Held({})
    victim = Victim((), None, {"a": NUMBER_MAX})
    assert sound(victim, held) == victim
    with pytest.raises(Unreadable, match="bounds lost work by more"):
        sound(victim._replace(bound_ms={"a": NUMBER_MAX + 1}), held)
