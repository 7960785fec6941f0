"""The ApplicationMaster: maps, slow start, reduces, commit; and what it does when things go wrong.

Each test plays a whole small cluster under all invariants and claims what came of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest

from emulator.cluster.app_master import AppMaster
from emulator.cluster.entities import AM, ENDED, MAP, NEVER, REDUCE, RELEASED, RUNNING, Container
from emulator.cluster.faults import HeartbeatLost, MasterDead, NodeLost, TaskDead
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY, REDUCE_PRIORITY
from emulator.cluster.timing import PAPER
from emulator.invariants import RunWatch, check_end
from tests.property.stories import Stage, bare, job, tell


class Seen:
    """Every container that ever ran in a story, in the order in which they were granted."""

    def __init__(self, stage: Stage, also: Callable[[RunWatch], None] = lambda watch: None) -> None:
        self.containers: dict[int, Container] = {}

        def look(watch: RunWatch) -> None:
            for container in watch.live_now():
                self.containers.setdefault(container.number, container)
            also(watch)

        self.watch = tell(stage, look)
        check_end(self.watch)

    def of(self, kind: int, task: int | None = None) -> list[Container]:
        return [
            each
            for _, each in sorted(self.containers.items())
            if each.kind == kind and each.task >= 0 and (task is None or each.task == task)
        ]

    def master(self, number: int = 1) -> AppMaster:
        return self.watch.masters[number - 1]


# --- a job that is left alone -----------------------------------------------------------------


def test_a_job_alone_takes_its_phases_and_nothing_else():
    seen = Seen(bare(job("j", "research", 0, 1, 1)))
    (am,), (a_map,), (reduce,) = seen.of(AM), seen.of(MAP), seen.of(REDUCE)
    assert am.granted_at_ms >= PAPER.submit_ms
    assert seen.master().phase_ms == am.granted_at_ms + PAPER.am_start_ms
    assert a_map.finish_at_ms == a_map.launched_at_ms + PAPER.launch_ms + 2000
    assert reduce.work_at_ms == reduce.launched_at_ms + PAPER.launch_ms + seen.master().job.shuffle_ms
    assert reduce.finish_at_ms == reduce.work_at_ms + 12_000 + PAPER.task_commit_ms
    assert seen.master().app.finished_at_ms == reduce.finish_at_ms + PAPER.job_commit_ms
    assert (seen.master().lost_ms, seen.master().overhead_ms) == (0, 0)


def test_the_am_launches_only_on_its_own_heartbeat():
    seen = Seen(bare(job("j", "research", 0, 3, 3)))
    for container in seen.of(MAP) + seen.of(REDUCE):
        assert (container.launched_at_ms - seen.master().phase_ms) % PAPER.am_heartbeat_ms == 0
        assert 0 <= container.launched_at_ms - container.granted_at_ms <= PAPER.am_heartbeat_ms


def test_plain_reduces_come_one_per_node_and_heartbeat_maps_all_at_once():
    seen = Seen(bare(job("j", "research", 0, 3, 3), nodes=1))
    assert len({container.granted_at_ms for container in seen.of(MAP)}) == 1
    reduces = [container.granted_at_ms for container in seen.of(REDUCE)]
    assert all(later - earlier >= PAPER.nm_heartbeat_ms for earlier, later in pairwise(reduces))


@pytest.mark.parametrize(("ratio", "maps_done"), [(0.05, 1), (0.5, 2), (1.0, 4)])
def test_slow_start_holds_the_reduces_back(ratio, maps_done):
    done_then: list[int] = []

    def look(watch: RunWatch) -> None:
        master = watch.masters[0] if watch.masters else None
        if master and master.reduces_requested and not done_then:
            done_then.append(len(master.map_node) - master.maps_left)

    timing = msgspec.structs.replace(PAPER, slow_start_ratio=ratio)
    staggered = job("j", "research", 0, 4, 2, map_ms=(1000, 3000, 5000, 7000))
    Seen(bare(staggered, nodes=3, timing=timing), look)
    assert done_then == [maps_done]


def test_reduces_are_not_asked_for_while_a_map_has_no_container():
    def look(watch: RunWatch) -> None:
        for master in watch.masters:
            if master.alive and master.pending.unassigned[MAP_PRIORITY]:
                assert not master.reduces_requested

    seen = Seen(bare(job("j", "research", 0, 7, 2), nodes=1), look)
    last_map = max(container.granted_at_ms for container in seen.of(MAP))
    assert min(container.granted_at_ms for container in seen.of(REDUCE)) > last_map


def test_reduces_in_shuffle_begin_when_the_last_map_is_done():
    uneven = job("j", "research", 0, 2, 2, map_ms=(1000, 20_000))
    seen = Seen(bare(uneven))
    last_ms = max(container.finish_at_ms for container in seen.of(MAP))
    for reduce in seen.of(REDUCE):
        assert reduce.launched_at_ms < last_ms
        assert reduce.work_at_ms == last_ms + uneven.shuffle_ms


@pytest.mark.parametrize(("maps", "reduces"), [(3, 0), (0, 3), (0, 0)])
def test_a_job_may_have_no_maps_no_reduces_or_nothing(maps, reduces):
    seen = Seen(bare(job("j", "research", 0, maps, reduces)))
    assert (len(seen.of(MAP)), len(seen.of(REDUCE))) == (maps, reduces)
    assert seen.master().progress_ratio(seen.watch.kernel.now_ms) == pytest.approx(0.95)


def test_progress_counts_what_running_maps_have_done():
    halfway: list[float] = []

    def look(watch: RunWatch) -> None:
        for each in (each for each in watch.live_now() if each.kind == MAP and each.state == RUNNING):
            if each.work_at_ms != NEVER and not halfway:
                halfway.append(watch.masters[0].progress_ratio(each.work_at_ms + 10_000))

    Seen(bare(job("j", "research", 0, 1, 0, map_ms=(20_000,))), look)
    assert halfway == [pytest.approx(0.05 + 0.9 / 2)]


def test_progress_never_falls_while_nothing_goes_wrong():
    seen_ratio = [0.0]

    def look(watch: RunWatch) -> None:
        if watch.masters and watch.masters[0].alive:
            ratio = watch.masters[0].progress_ratio(watch.kernel.now_ms)
            assert ratio >= seen_ratio[0]
            seen_ratio[0] = ratio

    Seen(bare(job("j", "research", 0, 3, 4)), look)
    assert seen_ratio[0] > 0.9


def test_a_failed_map_asks_at_priority_5_and_is_served_before_the_reduces():
    stage = bare(job("j", "research", 0, 3, 4), nodes=1, faults=(TaskDead(9000, 0, 0),))
    seen = Seen(stage)
    (again,) = [each for each in seen.of(MAP) if each.priority == FAILED_MAP]
    first = next(each for each in seen.of(MAP, again.task) if each is not again)
    assert (again.attempt, first.terminal_state, again.terminal_state) == (1, "failed", "completed")
    assert all(again.granted_at_ms <= reduce.granted_at_ms for reduce in seen.of(REDUCE))
    assert seen.master().lost_ms == 9000 - first.work_at_ms


def test_a_killed_reduce_starts_again_from_its_first_key():
    stage = bare(job("j", "research", 0, 1, 2), meddling=((16_000, "kill", 0),))
    seen = Seen(stage)
    killed, again = seen.of(REDUCE, 0)
    assert (killed.terminal_state, again.terminal_state) == ("killed", "completed")
    assert (again.attempt, again.from_key, again.priority) == (1, 0, REDUCE_PRIORITY)
    assert seen.master().lost_ms == 16_000 - killed.work_at_ms > 0
    assert [piece[:] for piece in seen.master().keys.pieces(0)] == [(1, 0, 24)]


def test_what_the_rm_takes_is_started_again_after_the_next_heartbeat():
    stage = bare(job("j", "research", 0, 1, 2), meddling=((16_000, "preempt", 0),))
    seen = Seen(stage)
    killed, again = seen.of(REDUCE, 0)
    assert (killed.released_at_ms, killed.state) == (16_000, RELEASED)
    assert again.granted_at_ms > 16_000
    # Lost is what it had done when the room was taken, not when the AM heard of it.
    assert seen.master().lost_ms == 16_000 - killed.work_at_ms > 0


def test_maps_that_must_run_again_take_the_room_of_a_reduce_in_shuffle():
    maps = (1000, 1000, 40_000)
    stage = bare(job("j", "research", 0, 3, 4, map_ms=maps), nodes=1, faults=(TaskDead(20_000, 0, 0),))
    seen = Seen(stage)
    (again,) = [each for each in seen.of(MAP) if each.priority == FAILED_MAP]
    given_up = [each for each in seen.of(REDUCE) if each.terminal_state == "killed"]
    assert len(given_up) <= 1
    assert again.granted_at_ms <= 20_000 + 8000
    assert seen.master().lost_ms == 20_000 - min(each.work_at_ms for each in seen.of(MAP, again.task))


# --- masters that fail ------------------------------------------------------------------------


def test_a_restarted_master_keeps_done_maps_and_committed_reduces_and_nothing_that_ran():
    uneven = job("j", "research", 0, 2, 2, reduce_ms=(3000, 20_000))
    seen = Seen(bare(uneven, faults=(MasterDead(24_000, 0),)))
    assert [master.attempt for master in seen.of(AM)] == [1, 2]
    assert len(seen.of(MAP)) == 2
    assert [each.terminal_state for each in seen.of(REDUCE, 0)] == ["completed"]
    assert [each.terminal_state for each in seen.of(REDUCE, 1)] == ["killed", "completed"]
    assert seen.of(AM)[1].granted_at_ms >= 24_000 + PAPER.am_retry_ms


def test_a_master_that_dies_while_its_job_commits_commits_again():
    plain = Seen(bare(job("j", "research", 0, 1, 1)))
    done_ms = plain.of(REDUCE)[0].finish_at_ms
    seen = Seen(bare(job("j", "research", 0, 1, 1), faults=(MasterDead(done_ms + 500, 0),)))
    assert len(seen.of(REDUCE)) == 1
    assert seen.master().app.finished_at_ms == seen.master().phase_ms + PAPER.job_commit_ms


def test_a_container_killed_in_the_mailbox_is_not_freed_twice_when_the_master_dies():
    done: list[int] = []

    def look(watch: RunWatch) -> None:
        mail = [each for master in watch.masters for each in master.app.mail_granted]
        if mail and not done:
            done.append(mail[0].number)
            watch.rm.kill_now(mail[0], "killed", watch.kernel.now_ms)
            watch.cluster._master_dies(mail[0].app.master)

    seen = Seen(bare(job("j", "research", 0, 2, 1)), look)
    assert seen.containers[done[0]].state == RELEASED


def test_what_the_rm_took_is_lost_up_to_then_though_the_master_dies_before_it_hears():
    taken: list[Container] = []

    def look(watch: RunWatch) -> None:
        now_ms = watch.kernel.now_ms
        for container in watch.live_now():
            if not taken and container.kind == REDUCE and now_ms > container.work_at_ms + 2000:
                taken.append(container)
                watch.rm.kill_now(container, "killed", now_ms)
                watch.kernel.at(now_ms + 1, watch.cluster._master_dies, container.app.master)

    jobs = (job("a", "research", 0, 0, 1), job("b", "research", 10_000, 3, 0))
    seen = Seen(bare(*jobs, meddling=((0, "kill", 0),)), look)
    (container,) = taken
    assert container.app.number == 1
    assert seen.master().lost_ms == container.released_at_ms - container.work_at_ms


# --- nodes that fail --------------------------------------------------------------------------


def test_a_lost_node_takes_the_output_of_its_maps_while_reduces_are_left():
    seen = Seen(bare(job("j", "research", 0, 8, 2), nodes=3, faults=(NodeLost(16_000, 1),)))
    on_lost = [each for each in seen.of(MAP) if each.node.index == 1]
    again = [each for each in seen.of(MAP) if each.priority == FAILED_MAP]
    assert len(on_lost) > 0
    assert sorted(each.task for each in again) == sorted(each.task for each in on_lost)
    assert all(each.granted_at_ms >= 16_000 + PAPER.node_expiry_ms for each in again)


def test_a_job_without_reduces_has_its_map_output_safe():
    maps = (1000,) * 7 + (30_000,)
    seen = Seen(bare(job("j", "research", 0, 8, 0, map_ms=maps), nodes=3, faults=(NodeLost(16_000, 1),)))
    done = [each for each in seen.of(MAP) if each.terminal_state == "completed"]
    assert len(done) == 8


def test_a_container_granted_before_its_node_died_does_no_work_though_launched_after():
    """The AM hears of the container after the death: it may launch it, nothing comes of it."""
    plain = Seen(bare(job("j", "research", 0, 6, 1), nodes=3))
    victim = next(
        each for each in plain.of(MAP) if each.node.index and each.launched_at_ms > each.granted_at_ms
    )
    fault = NodeLost(victim.granted_at_ms + 1, victim.node.index)
    assert fault.at_ms <= victim.launched_at_ms
    seen = Seen(bare(job("j", "research", 0, 6, 1), nodes=3, faults=(fault,)))
    dead = seen.containers[victim.number]
    assert (dead.launched_at_ms, dead.terminal_state, dead.finish_at_ms) == (
        victim.launched_at_ms,
        "lost",
        NEVER,
    )


def test_a_master_whose_node_dies_before_it_is_up_never_comes_up_there():
    plain = Seen(bare(job("a", "research", 0, 1, 1), job("b", "research", 10, 1, 1), nodes=3))
    am = next(each for each in plain.of(AM) if each.node.index)
    fault = NodeLost(am.granted_at_ms + 10, am.node.index)
    assert fault.at_ms < am.granted_at_ms + PAPER.am_start_ms
    both = (job("a", "research", 0, 1, 1), job("b", "research", 10, 1, 1))
    seen = Seen(bare(*both, nodes=3, faults=(fault,)))
    again = [each for each in seen.of(AM) if each.app.number == am.app.number]
    assert [each.terminal_state for each in again] == ["lost", "completed"]


def test_a_new_master_is_left_alone_when_the_node_of_the_old_one_is_lost():
    """The old AM's end is never told (silent node, then dead); the new AM runs elsewhere."""
    plain = Seen(bare(job("j", "research", 0, 1, 1), nodes=3))
    index = plain.of(AM)[0].node.index
    faults = (HeartbeatLost(9000, 60_000, index), MasterDead(9500, 0), NodeLost(20_000, index))
    seen = Seen(bare(job("j", "research", 0, 1, 1, reduce_ms=(30_000,)), nodes=3, faults=faults))
    assert [each.attempt for each in seen.of(AM)] == [1, 2]
    assert seen.of(AM)[1].node.index != index
    assert seen.of(AM)[1].state in (RUNNING, ENDED, RELEASED)


def test_what_ends_at_the_instant_of_a_beat_that_has_been_is_told_by_the_next():
    ended: list[Container] = []

    def look(watch: RunWatch) -> None:
        now_ms = watch.kernel.now_ms
        for container in watch.live_now():
            fresh = container.kind == MAP and container.state == RUNNING
            if fresh and container.node.beat_at_ms == now_ms and not ended:
                ended.append(container)
                container.app.master.kill(container, "killed", now_ms)

    staggered = job("a", "research", 0, 3, 1, map_ms=(1000, 5000, 9000))
    seen = Seen(bare(staggered, nodes=1, meddling=((0, "kill", 0),)), look)
    (container,) = ended
    assert container.released_at_ms == container.exit_at_ms + PAPER.nm_heartbeat_ms
    assert len(seen.of(MAP, container.task)) >= 2
