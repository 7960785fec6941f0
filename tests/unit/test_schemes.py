"""The schemes: what each does with one crowded cluster, and YARN's own preemption step by step.

The story: eight slots, research fills them, production comes 20 s later with a whole cluster's
worth of reduces. Every run is played under all invariants.
"""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from emulator.cluster.entities import AM, MAP, REDUCE, Container
from emulator.cluster.preemption import TUNED, CapacityPreemption, PreemptionConfig
from emulator.cluster.timing import PAPER
from emulator.invariants import RunWatch, check_all, check_end
from emulator.virtual.run import Result, Run, Setup, run_scheme
from emulator.virtual.schemes import BY_DEFAULT, SCHEMES, queues_of
from tests.property.playing import UNTIL_MS
from tests.property.stories import job
from yarnctl.deciding.settings import DEFAULT
from yarnctl.deciding.settings import PAPER as PAPER_SETTINGS
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job
from yarnctl.units import Resources

SLOTS = 8
RESEARCH = job("r", "research", 0, 2, 9, reduce_ms=tuple(range(30_000, 39_000, 1000)))
PRODUCTION = job("p", "production", 20_000, 2, 6)
SETUP = Setup(
    nodes=2, node_size=Resources(4096, 4), timing=PAPER,
    settings=msgspec.structs.replace(DEFAULT, cost_guard=False, settle_ms=0), caps=(0.5, 0.5), seed=5,
)  # fmt: skip


class Told:
    """A played run: its result, and the most slots each class ever held."""

    def __init__(
        self, name: str, jobs: tuple[Job, ...] = (RESEARCH, PRODUCTION), setup: Setup = SETUP
    ) -> None:
        scheme = SCHEMES[name]
        self.run = Run(setup, jobs, scheme, MemoryJournal() if scheme.eviction else None)
        self.watch = RunWatch(self.run)
        self.most: dict[str, int] = {}
        self.first_kill_ms: int | None = None
        self.killed: list[Container] = []
        self.result: Result = self.run.go(self.look, UNTIL_MS)
        check_end(self.watch)

    def look(self) -> None:
        check_all(self.watch)
        for name, queue in self.run.cluster.rm.scheduler.queues.items():
            self.most[name] = max(self.most.get(name, 0), queue.used_vcores)
        kills = self.run.preemption.kills if self.run.preemption else 0
        if kills and self.first_kill_ms is None:
            self.first_kill_ms = self.watch.kernel.now_ms
        for master in self.run.cluster.masters:
            self.killed += [each for each in master.app.mail_ended if each not in self.killed]

    def took_ms(self, name: str) -> int:
        return next(job.completion_ms for job in self.result.jobs if job.name == name)


@cache
def told(name: str) -> Told:
    return Told(name)


# --- the eight schemes ------------------------------------------------------------------------


def test_the_table_has_the_eight_schemes_and_each_differs_only_in_its_record():
    first = ["ideal", "hard-cap", "soft-cap", "kill", "yarn", "yarn-tuned", "natjam"]
    assert list(BY_DEFAULT) == first
    assert list(SCHEMES) == [*first, "mix"]
    queues = {name: queues_of(scheme, (0.95, 0.05), (0.8, 0.2), 0.5) for name, scheme in SCHEMES.items()}
    capped = {name for name, (_, research) in queues.items() if research.capacity_ratio == 0.2}
    assert capped == {"hard-cap", "soft-cap"}
    assert {name for name, (_, research) in queues.items() if research.maximum_ratio < 1} == {"hard-cap"}
    assert {name for name, scheme in SCHEMES.items() if scheme.eviction} == {"kill", "natjam", "mix"}
    assert {name for name, scheme in SCHEMES.items() if scheme.preemption} == {"yarn", "yarn-tuned"}


def test_hard_cap_keeps_both_in_their_halves_soft_cap_lets_research_have_it_all():
    assert told("hard-cap").most == {"production": SLOTS // 2, "research": SLOTS // 2}
    assert told("soft-cap").most["research"] == SLOTS


def test_ideal_is_each_class_alone():
    ideal = run_scheme(SETUP, (RESEARCH, PRODUCTION), SCHEMES["ideal"])
    alone = [Told("soft-cap", (each,)).took_ms(each.name) for each in (RESEARCH, PRODUCTION)]
    assert sorted(each.completion_ms for each in ideal.jobs) == sorted(alone)
    assert (ideal.suspensions, ideal.kills, ideal.lost_work_ms) == (0, 0, 0)


@pytest.mark.parametrize("name", ["natjam", "kill", "yarn-tuned"])
def test_taking_containers_brings_production_near_to_its_ideal(name):
    alone_ms = Told("soft-cap", (PRODUCTION,)).took_ms("p")
    assert told(name).took_ms("p") < (told("soft-cap").took_ms("p") + alone_ms) / 2


def test_research_is_hardly_later_under_natjam_than_untouched_and_much_later_when_killed():
    untouched, natjam, kill = (told(name).took_ms("r") for name in ("soft-cap", "natjam", "kill"))
    assert untouched < natjam < kill


@pytest.mark.parametrize(
    ("name", "loses", "kills", "suspends"),
    [("hard-cap", False, False, False), ("soft-cap", False, False, False), ("natjam", False, False, True),
     ("kill", True, True, False), ("yarn-tuned", True, True, False)],
)  # fmt: skip
def test_who_loses_work_and_how(name, loses, kills, suspends):
    result = told(name).result
    assert (result.lost_work_ms > 0, result.kills > 0, result.suspensions > 0) == (loses, kills, suspends)


def test_the_same_run_twice_is_the_same_to_the_byte():
    first, second = Told("natjam"), told("natjam")
    assert first.result == second.result
    assert first.run.journal.encoded() == second.run.journal.encoded()  # type: ignore[attr-defined]


def test_the_profile_paper_plays_too():
    setup = msgspec.structs.replace(SETUP, settings=PAPER_SETTINGS)
    result = Told("natjam", setup=setup).result
    assert result.suspensions > 0
    assert result.lost_work_ms == 0


# --- YARN's own preemption --------------------------------------------------------------------


def crowd(config: PreemptionConfig, pending: int = 4) -> CapacityPreemption:
    """A 40-slot cluster that research has filled; production's AM has the last slot and waits for more."""
    setup = msgspec.structs.replace(SETUP, nodes=10, shares=(0.5, 0.5))
    research = job("r", "research", 0, 0, 38, reduce_ms=(500_000,) * 38, reduce_keys=(1,) * 38)
    production = job("p", "production", 30_000, 0, pending, reduce_ms=(500_000,) * pending)
    run = Run(setup, (research, production), SCHEMES["soft-cap"])
    run.cluster.kernel.run(50_000)
    return CapacityPreemption(run.cluster, config)


def test_defaults_mark_first_and_kill_what_stayed_marked_for_fifteen_seconds():
    policy = crowd(PreemptionConfig())
    policy.run(50_000)
    marked = dict(policy.marked_at_ms)
    assert policy.kills == 0
    assert len(marked) == 1  # a natural termination factor of 0.2 of what is owed, at most a tenth a round
    policy.run(53_000)
    policy.run(64_999)
    assert policy.kills == 0
    assert policy.marked_at_ms.items() >= marked.items()
    policy.run(65_000)
    assert policy.kills == 1


def test_tuned_takes_all_that_is_owed_after_one_second():
    policy = crowd(TUNED)
    policy.run(50_000)
    owed = len(policy.marked_at_ms)
    assert owed == 4
    policy.run(51_000)
    assert policy.kills == owed


def test_what_is_no_longer_owed_loses_its_mark():
    policy = crowd(PreemptionConfig())
    policy.run(50_000)
    scheduler = policy.cluster.rm.scheduler
    for app in {container.app for container in scheduler.live.values()}:
        scheduler.clear_asks(app)
    policy.run(53_000)
    assert policy.marked_at_ms == {}


def test_excused_queue_keeps_its_marks_and_no_container_dies_until_it_is_allowed_again():
    """As measured on a ResourceManager: the clock of an old mark goes on, and there is no new wait."""
    excused: set[str] = set()
    policy = CapacityPreemption(
        crowd(PreemptionConfig()).cluster, PreemptionConfig(), lambda queue: queue.name in excused
    )
    policy.run(50_000)
    assert policy.marked_at_ms
    excused.add("research")
    for at_ms in range(53_000, 74_000, 3_000):
        policy.run(at_ms)
    assert policy.kills == 0
    excused.clear()
    policy.run(74_000)
    assert policy.kills == 1


@pytest.mark.parametrize(
    ("pending", "ideal"), [(4, {"production": 5, "research": 35}), (30, {"production": 20, "research": 20})]
)
def test_the_ideal_share_is_the_guarantee_and_what_others_leave(pending, ideal):
    policy = crowd(TUNED, pending)
    assert {name: mib // 1024 for name, mib in policy.ideal_mib().items()} == ideal


def test_inside_the_dead_zone_nothing_is_taken():
    policy = crowd(TUNED, 30)
    queue = policy.cluster.rm.scheduler.queues["research"]
    beyond = queue.used_mib - queue.guaranteed.memory_mib
    ratio = beyond / queue.guaranteed.memory_mib
    policy.config = msgspec.structs.replace(TUNED, max_ignored_over_capacity_ratio=ratio + 0.01)
    policy.run(50_000)
    assert policy.marked_at_ms == {}
    policy.config = msgspec.structs.replace(TUNED, max_ignored_over_capacity_ratio=ratio - 0.01)
    policy.run(50_000)
    assert policy.marked_at_ms != {}


def test_maps_before_reduces_newest_first_and_never_a_master():
    setup = msgspec.structs.replace(SETUP, nodes=3)
    research = job("r", "research", 0, 3, 8, map_ms=(2000, 2000, 400_000), reduce_ms=(400_000,) * 8)
    run = Run(setup, (research,), SCHEMES["soft-cap"])
    run.cluster.kernel.run(30_000)
    policy = CapacityPreemption(run.cluster, TUNED)
    order = policy._running(run.cluster.rm.scheduler.queues["research"])
    assert [each.kind for each in order] == [MAP] + [REDUCE] * 8
    numbers = [each.number for each in order[1:]]
    assert numbers == sorted(numbers, reverse=True)
    assert all(each.kind != AM for each in order)


def test_in_a_whole_run_the_defaults_kill_fifteen_seconds_later_than_tuned():
    wait_ms = PreemptionConfig().max_wait_before_kill_ms
    came_ms = PRODUCTION.submitted_at_ms + PAPER.submit_ms
    tuned_ms, default_ms = (told(name).first_kill_ms for name in ("yarn-tuned", "yarn"))
    assert tuned_ms is not None
    assert came_ms + TUNED.max_wait_before_kill_ms <= tuned_ms < came_ms + wait_ms
    assert default_ms is None or default_ms >= came_ms + wait_ms
