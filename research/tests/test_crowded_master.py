"""The master of a small cluster: launches share cores, asks wait for the next heartbeat, masters linger.

Each test plays a whole small cluster under all invariants and claims what came of it.
"""

from __future__ import annotations

import msgspec
import pytest

from emulator.cluster.app_master import AppMaster
from emulator.cluster.entities import AM, MAP, NEVER, REDUCE, Container
from emulator.cluster.faults import MasterDead, NodeLost, TaskDead
from emulator.cluster.pending_tasks import REDUCE_PRIORITY
from emulator.cluster.timing import HADOOP3, PAPER, Timing
from emulator.invariants import RunWatch, check_all, check_end
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.stories import PRODUCTION, RESEARCH, bare, job, tell
from yarn_research.campaigns.shared_cpu import SharedCpuMaster, shared_cpu
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job
from yarnctl.units import Resources

CROWDED = msgspec.structs.replace(shared_cpu(PAPER), launch_ms=200, launch_cpu_ms=1000, machine_nodes=100)


class Seen:
    """Every container of a story, with the first instant for which its work was planned."""

    def __init__(self, *jobs: Job, timing: Timing, nodes: int = 2, **other: object) -> None:
        self.containers: dict[int, Container] = {}
        self.works_at_ms: dict[int, int] = {}

        def look(watch: RunWatch) -> None:
            for container in watch.live_now():
                self.containers.setdefault(container.number, container)
                if container.work_at_ms != NEVER:
                    self.works_at_ms.setdefault(container.number, container.work_at_ms)

        self.watch = tell(bare(*jobs, timing=timing, nodes=nodes, **other), look)  # type: ignore[arg-type]
        check_end(self.watch)

    def of(self, kind: int) -> list[Container]:
        return [each for each in self.containers.values() if each.kind == kind and each.task >= 0]

    def spans(self, kind: int) -> list[int]:
        """Return from launch to work, ms, in the order of the grants."""
        return [self.works_at_ms[each.number] - each.launched_at_ms for each in self.of(kind)]

    @property
    def master(self) -> AppMaster:
        return self.watch.masters[0]


# --- launches share cores ---------------------------------------------------------------------


def test_without_the_option_there_is_no_crowd():
    assert type(Seen(job("j", "research", 0, 1, 1), timing=PAPER).master) is AppMaster


@pytest.mark.parametrize(("maps", "span_ms"), [(1, 700), (2, 1200), (4, 2200)])
def test_launches_that_begin_together_share_the_cores(maps, span_ms):
    seen = Seen(job("j", "research", 0, maps, 0), timing=CROWDED)
    assert seen.spans(MAP) == [span_ms] * maps
    for a_map in seen.of(MAP):
        assert a_map.finish_at_ms == a_map.launched_at_ms + span_ms + 2000


def test_one_launch_may_be_kept_to_one_core():
    timing = msgspec.structs.replace(CROWDED, launch_width=1)
    assert Seen(job("j", "research", 0, 1, 0), timing=timing).spans(MAP) == [1200]


def test_nodes_on_other_machines_share_nothing():
    timing = msgspec.structs.replace(CROWDED, machine_nodes=1)
    seen = Seen(job("j", "research", 0, 5, 0), timing=timing)
    for node in (0, 1):
        spans = [
            span for each, span in zip(seen.of(MAP), seen.spans(MAP), strict=True) if each.node.index == node
        ]
        assert spans == [200 + 500 * len(spans)] * len(spans)


def test_jobs_share_one_machine_too():
    both = (job("j", "research", 0, 2, 0), job("k", "production", 0, 2, 0))
    assert max(Seen(*both, timing=CROWDED).spans(MAP)) > 1200


def test_reduces_work_once_they_are_up_and_all_maps_are_done():
    seen = Seen(job("j", "research", 0, 1, 3), timing=CROWDED)
    for reduce, span_ms in zip(seen.of(REDUCE), seen.spans(REDUCE), strict=True):
        assert span_ms >= 200 + 500 + seen.master.job.shuffle_ms
        assert (
            reduce.finish_at_ms == seen.works_at_ms[reduce.number] + reduce.length_ms + PAPER.task_commit_ms
        )


def test_reduces_that_are_up_before_the_last_map_wait_for_it():
    uneven = job("j", "research", 0, 2, 2, map_ms=(1000, 20_000))
    seen = Seen(uneven, timing=CROWDED)
    last_ms = max(each.finish_at_ms for each in seen.of(MAP))
    assert {seen.works_at_ms[each.number] for each in seen.of(REDUCE)} == {last_ms + uneven.shuffle_ms}


def test_reduces_that_are_being_launched_when_the_last_map_is_done_come_up_first():
    timing = msgspec.structs.replace(CROWDED, launch_cpu_ms=12_000)
    seen = Seen(job("j", "research", 0, 2, 2, map_ms=(1000, 6000)), timing=timing)
    last_ms = max(each.finish_at_ms for each in seen.of(MAP))
    for reduce, span_ms in zip(seen.of(REDUCE), seen.spans(REDUCE), strict=True):
        assert reduce.launched_at_ms < last_ms
        assert span_ms >= 200 + 6000 + seen.master.job.shuffle_ms
    assert seen.master.overhead_ms == 0


@pytest.mark.parametrize("timing", [CROWDED, msgspec.structs.replace(CROWDED, asks_after_beat=True)])
def test_whatever_dies_on_the_way_every_key_is_done_once(timing):
    """The invariants are checked after every event; a launch is interrupted at each of many instants."""
    for at_ms in range(6000, 16_000, 500):
        for fault in (TaskDead(at_ms, 0, 1), MasterDead(at_ms, 0), NodeLost(at_ms, 1)):
            seen = Seen(job("j", "research", 0, 2, 4), timing=timing, nodes=3, faults=(fault,))
            assert seen.watch.masters[0].reduces_left == 0


def test_what_a_dead_master_was_about_to_ask_for_is_forgotten():
    due: list[int] = []

    def look(watch: RunWatch) -> None:
        for master in watch.masters:
            due.append(master.due(REDUCE_PRIORITY))
            assert master.alive or not due[-1]

    timing = msgspec.structs.replace(CROWDED, asks_after_beat=True)
    for at_ms in range(8000, 12_000, 200):
        tell(bare(job("j", "research", 0, 2, 4), timing=timing, faults=(MasterDead(at_ms, 0),)), look)
    assert 4 in due


def test_a_killed_launch_leaves_its_share_to_the_others():
    def took(faults: tuple[TaskDead, ...]) -> int:
        seen = Seen(job("j", "research", 0, 2, 0), timing=CROWDED, faults=faults)
        return min(seen.works_at_ms[each.number] for each in seen.of(MAP) if each.number in seen.works_at_ms)

    plain = Seen(job("j", "research", 0, 2, 0), timing=CROWDED)
    half_ms = plain.of(MAP)[0].launched_at_ms + 700
    assert took((TaskDead(half_ms, 0, 0),)) == plain.works_at_ms[plain.of(MAP)[0].number] - 250


def test_suspended_tasks_come_back_through_the_crowd():
    timing = msgspec.structs.replace(
        shared_cpu(HADOOP3),
        launch_ms=200,
        launch_cpu_ms=2000,
        machine_nodes=100,
        asks_after_beat=True,
        beats_at_exit=True,
        am_linger_ms=5000,
    )
    setup = Setup(
        nodes=3,
        node_size=Resources(4096, 4),
        timing=timing,
        settings=msgspec.structs.replace(DEFAULT, cost_guard=False, settle_ms=0),
        seed=3,
        validate=True,
    )
    run = Run(setup, (*RESEARCH, PRODUCTION), SCHEMES["natjam"], MemoryJournal())
    watch = RunWatch(run)
    result = run.go(lambda: check_all(watch))
    check_end(watch)
    assert result.suspensions > 0
    assert result.lost_work_ms == 0
    assert all(type(master) is SharedCpuMaster for master in run.cluster.masters)


# --- heartbeats -------------------------------------------------------------------------------


def test_asks_for_reduces_leave_a_heartbeat_later_and_maps_do_not():
    late = msgspec.structs.replace(shared_cpu(PAPER), asks_after_beat=True)
    ours, others = (Seen(job("j", "research", 0, 1, 1), timing=timing) for timing in (late, PAPER))
    assert ours.of(MAP)[0].launched_at_ms == others.of(MAP)[0].launched_at_ms
    later_ms = ours.of(REDUCE)[0].launched_at_ms - others.of(REDUCE)[0].launched_at_ms
    assert later_ms == PAPER.am_heartbeat_ms


def test_a_node_tells_at_once_what_is_done():
    soon = msgspec.structs.replace(shared_cpu(PAPER), beats_at_exit=True)
    maps = Seen(job("j", "research", 0, 3, 1), timing=soon).of(MAP)
    assert [each.released_at_ms - each.exit_at_ms for each in maps] == [0, 0, 0]


def test_a_master_that_lingers_keeps_its_container():
    def free_at_ms(linger_ms: int) -> int:
        timing = msgspec.structs.replace(shared_cpu(PAPER), am_linger_ms=linger_ms)
        seen = Seen(job("j", "research", 0, 1, 0), job("k", "research", 60_000, 1, 0), timing=timing)
        am = seen.of(AM)[0]
        assert am.task == 0
        return am.exit_at_ms - (seen.master.app.finished_at_ms or 0)

    assert (free_at_ms(0), free_at_ms(5000)) == (PAPER.exit_ms, PAPER.exit_ms + 5000)
