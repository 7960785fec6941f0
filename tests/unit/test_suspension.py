"""Suspending: what is saved, what is done twice (nothing), and what becomes of requests that fail.

The story of most tests: one job with one reduce of 24 keys in 12 s, so a key takes 500 ms; the
reduce is asked to stop at a given time after it began, and what came of it is compared with the
job left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from emulator.cluster.entities import (
    DRAINING,
    NEVER,
    NOT_REQUESTED,
    REDUCE,
    RELEASE_WAIT,
    REQUESTED,
    Container,
)
from emulator.cluster.faults import Fault, MasterDead, NodeLost, StoreDown
from emulator.cluster.task import key_end_ms, keys_done
from emulator.cluster.timing import HADOOP3, PAPER, Timing
from emulator.invariants import RunWatch, check_end
from emulator.virtual.port import VirtualPort
from tests.property.playing import Meddled
from tests.property.stories import bare, job, tell
from yarnctl.deciding.model import Accepted, ManifestSeen, Refused, UploadProgressed
from yarnctl.deciding.reasons.outcomes import MasterDown, NotInReducePhase

ONE = job("j", "research", 0, 0, 1)
KEY_MS = 500


class Told(NamedTuple):
    """One deed of a story: at ``at_ms`` after the reduce began, this is done to it."""

    after_ms: int
    what: str
    order: str = "o-1"


class Played:
    """A played story: its reduces in order, and what each deed was answered."""

    def __init__(self, *deeds: Told, timing: Timing = HADOOP3, faults: tuple[Fault, ...] = ()) -> None:
        self.answers: list[Any] = []
        self.stages: list[int] = []
        self.reduces: list[Container] = []
        self.facts: list[Any] = []
        self.done = 0
        self.began_ms = NEVER
        self.deeds = deeds
        self.stage = bare(ONE, timing=timing, nodes=3, faults=faults)
        if any(deed.what == "kill" for deed in deeds):
            self.stage.faults = ((0, "kill", 0),)  # so that the watch expects lost work
        self.watch = tell(self.stage, self.look)
        check_end(self.watch)
        self.master = self.watch.masters[0]
        self.facts += self.watch.rm.facts

    def look(self, watch: RunWatch) -> None:
        for container in watch.live_now():
            if container.kind == REDUCE and container.task == 0 and container not in self.reduces:
                self.reduces.append(container)
                self.plan()

    def plan(self) -> None:
        """Put in the deeds once the first reduce knows when it begins."""
        if len(self.reduces) > 1:
            return
        self.began_ms = self.reduces[0].work_at_ms
        for deed in self.deeds:
            self.stage.cluster.kernel.at(self.reduces[0].work_at_ms + deed.after_ms, self.act, deed)

    def act(self, deed: Told) -> None:
        self.stages.append(self.reduces[0].stage)
        self.answers.append(DEEDS[deed.what](self.stage, self.reduces[0], deed.order))

    @property
    def finished_ms(self) -> int:
        assert self.master.app.finished_at_ms is not None
        return self.master.app.finished_at_ms

    def pieces(self) -> list[tuple[int, ...]]:
        return [tuple(piece) for piece in self.master.keys.pieces(0)]


DEEDS: dict[str, Callable[[Meddled, Container, str], Any]] = {
    "suspend": lambda stage, reduce, order: stage.cluster.suspension.request(reduce, order),
    "withdraw": lambda stage, reduce, order: stage.cluster.suspension.withdraw(reduce, order),
    "release": lambda stage, reduce, order: stage.cluster.suspension.release(reduce, order),
    "look": lambda stage, reduce, order: VirtualPort(stage.cluster)._tasks(
        reduce.app, stage.cluster.kernel.now_ms
    ),
    "kill": lambda stage, reduce, order: reduce.app.master.kill(
        reduce, "killed", stage.cluster.kernel.now_ms
    ),
}

SAVED_MS = 4500
"""After this long every request that is heard has been saved (heartbeat, drain, key, upload)."""

SUSPEND = Told(3000, "suspend")
SUSPENDED = (SUSPEND, Told(3000 + SAVED_MS, "release"))


@pytest.fixture(scope="module")
def alone() -> Played:
    return Played()


# --- the way it should go ---------------------------------------------------------------------


def test_a_suspended_reduce_goes_on_at_its_key_and_nothing_is_done_twice():
    played = Played(*SUSPENDED)
    first, second = played.reduces
    assert (first.terminal_state, second.terminal_state, second.resumed) == ("suspended", "completed", True)
    cut = first.to_key
    assert 0 < cut < 24
    assert (second.from_key, second.log_from_key) == (cut, cut)
    assert played.pieces() == [(0, 0, cut), (1, cut, 24)]
    assert (played.master.lost_ms, played.master.suspensions) == (0, 1)


def test_the_resumed_reduce_pays_shuffle_skip_and_return_and_works_the_rest():
    played = Played(*SUSPENDED)
    _, second = played.reduces
    done_ms = second.from_key * KEY_MS
    returns_ms = ONE.shuffle_ms + HADOOP3.resume_ms + round(done_ms * HADOOP3.skip_ratio)
    assert second.work_at_ms == second.launched_at_ms + HADOOP3.launch_ms + returns_ms
    assert second.finish_at_ms == second.work_at_ms + 12_000 - done_ms + HADOOP3.task_commit_ms
    assert played.master.overhead_ms == HADOOP3.launch_ms + returns_ms


def test_it_stops_at_the_first_key_border_after_the_drain():
    played = Played(*SUSPENDED)
    heard = next(fact for fact in played.facts if isinstance(fact, UploadProgressed))
    seen = next(fact for fact in played.facts if isinstance(fact, ManifestSeen))
    reduce = played.reduces[0]
    border_ms = reduce.work_at_ms + reduce.to_key * KEY_MS
    stop_ms = heard.at_ms + HADOOP3.drain_ms
    assert border_ms - KEY_MS < stop_ms <= border_ms
    assert seen.at_ms == border_ms + HADOOP3.upload_ms
    assert (seen.generation, seen.keys_done, seen.order) == (1, reduce.to_key, "o-1")


def test_the_doorbell_is_heard_on_the_nodes_next_heartbeat():
    played = Played(*SUSPENDED)
    reduce = played.reduces[0]
    (heard,) = [fact for fact in played.facts if isinstance(fact, UploadProgressed)]
    assert 0 < heard.at_ms - (reduce.work_at_ms + 3000) <= HADOOP3.nm_heartbeat_ms
    assert (heard.at_ms - reduce.node.phase_ms) % HADOOP3.nm_heartbeat_ms == 0


def test_under_natjam_the_task_asks_by_itself_and_releases_itself():
    played = Played(SUSPEND, timing=PAPER)
    first, second = played.reduces
    assert first.terminal_state == "suspended"
    assert second.priority == PAPER.resume_priority == 3
    (heard,) = [fact for fact in played.facts if isinstance(fact, UploadProgressed)]
    asked_ms = first.work_at_ms + 3000
    assert 0 < heard.at_ms - asked_ms <= PAPER.am_heartbeat_ms + PAPER.suspend_poll_ms


def test_a_second_checkpoint_is_a_second_generation():
    played = Played(
        SUSPEND, Told(7000, "withdraw"), Told(9000, "suspend", "o-2"), Told(12_500, "release", "o-2")
    )
    manifests = [fact for fact in played.facts if isinstance(fact, ManifestSeen)]
    assert [fact.generation for fact in manifests] == [1, 2]
    assert manifests[0].keys_done < manifests[1].keys_done
    one, two = (fact.keys_done for fact in manifests)
    assert played.pieces() == [(0, 0, one), (0, one, two), (1, two, 24)]


# --- not suspending is always allowed ---------------------------------------------------------


def test_withdrawn_before_it_is_heard_it_has_cost_nothing(alone):
    played = Played(SUSPEND, Told(3001, "withdraw"))
    assert played.stages == [NOT_REQUESTED, REQUESTED]
    assert played.finished_ms == alone.finished_ms
    assert played.reduces[0].order == ""
    assert played.pieces() == [(0, 0, 24)]


def test_withdrawn_while_it_drains_it_saves_and_goes_on_at_once(alone):
    """As the task runner does: its child has ended by then, what it has done may as well be kept."""
    played = Played(SUSPEND, Told(4100, "withdraw"), Told(4200, "withdraw"))
    assert played.stages[1] == DRAINING
    (reduce,) = played.reduces
    (seen,) = [fact for fact in played.facts if isinstance(fact, ManifestSeen)]
    assert played.pieces() == [(0, 0, seen.keys_done), (0, seen.keys_done, 24)]
    heard_ms = reduce.node.next_beat_ms(played.began_ms + 4101, HADOOP3.nm_heartbeat_ms)
    assert reduce.work_at_ms == max(heard_ms, seen.at_ms) + HADOOP3.restart_ms
    assert played.finished_ms - alone.finished_ms == played.master.overhead_ms
    assert isinstance(played.answers[2], Accepted)


def test_withdrawn_while_the_store_is_down_it_goes_on_unsaved(alone):
    down = StoreDown(0, 600_000)
    played = Played(SUSPEND, Told(7000, "withdraw"), faults=(down,))
    assert played.pieces() == [(0, 0, 24)]
    assert played.master.store == {}
    assert HADOOP3.restart_ms < played.finished_ms - alone.finished_ms == played.master.overhead_ms


def test_withdrawn_while_it_holds_it_goes_on_and_what_it_saved_stays_saved(alone):
    played = Played(SUSPEND, Told(3000 + SAVED_MS, "withdraw"))
    assert played.stages[1] == RELEASE_WAIT
    assert len(played.reduces) == 1
    cut = played.master.store[0].keys_done
    assert played.pieces() == [(0, 0, cut), (0, cut, 24)]
    assert played.finished_ms - alone.finished_ms == played.master.overhead_ms > HADOOP3.restart_ms


def test_gone_on_in_place_it_is_shown_as_one_that_came_back():
    """As its runner shows it: work on new keys began anew, behind a checkpoint."""
    played = Played(Told(2000, "look"), SUSPEND, Told(3000 + SAVED_MS, "withdraw"), Told(9500, "look"))
    (before,), (after,) = played.answers[0], played.answers[3]
    assert (before.resumed, before.generation, before.since_ms) == (False, 0, played.began_ms)
    assert (after.resumed, after.generation) == (True, 1)
    assert after.since_ms == played.reduces[0].work_at_ms > played.began_ms


def test_a_hold_that_nobody_ends_ends_by_itself():
    timing = msgspec.structs.replace(HADOOP3, release_wait_ms=5000)
    played = Played(SUSPEND, Told(30_000, "release"), timing=timing)
    manifest = next(fact for fact in played.facts if isinstance(fact, ManifestSeen))
    (reduce,) = played.reduces
    assert reduce.work_at_ms == manifest.at_ms + 5000 + timing.restart_ms
    assert (reduce.from_key, reduce.terminal_state) == (manifest.keys_done, "completed")
    assert played.master.lost_ms == 0


def test_while_the_store_is_down_nothing_is_given_up_and_it_saves_when_it_is_back():
    down = StoreDown(0, 60_000)
    played = Played(SUSPEND, Told(7500, "release"), Told(60_000, "release"), faults=(down,))
    manifest = next(fact for fact in played.facts if isinstance(fact, ManifestSeen))
    assert played.stages[1] == DRAINING
    assert isinstance(played.answers[1], Refused)
    assert down.until_ms <= manifest.at_ms < down.until_ms + 1000
    assert played.master.lost_ms == 0


@pytest.mark.parametrize(
    ("after_ms", "why"),
    [
        (-100, NotInReducePhase()),  # still in shuffle
        (12_000, NotInReducePhase()),  # committing
    ],
)
def test_only_an_attempt_on_new_keys_can_be_asked(alone, after_ms, why):
    played = Played(Told(after_ms, "suspend"))
    assert played.answers == [Refused(why)]
    assert played.finished_ms == alone.finished_ms


def test_the_same_order_twice_is_once_and_another_order_is_refused():
    played = Played(SUSPEND, Told(3100, "suspend"), Told(3200, "suspend", "o-2"), SUSPENDED[1])
    assert [type(answer) for answer in played.answers] == [Accepted, Accepted, Refused, Accepted]
    assert played.master.suspensions == 1


def test_release_needs_a_manifest_of_this_very_order():
    played = Played(SUSPEND, Told(3100, "release"), Told(3000 + SAVED_MS, "release", "o-2"), SUSPENDED[1])
    assert [type(answer) for answer in played.answers] == [Accepted, Refused, Refused, Accepted]


def test_asked_with_its_last_key_begun_it_completes_by_itself(alone):
    played = Played(Told(11_600, "suspend"))
    assert played.answers == [Accepted()]
    assert played.facts == []
    assert played.finished_ms == alone.finished_ms


# --- and when something fails -----------------------------------------------------------------


def test_killed_while_it_holds_it_loses_nothing():
    played = Played(SUSPEND, Told(3000 + SAVED_MS, "kill"))
    first, second = played.reduces
    assert (first.terminal_state, first.stage) == ("killed", RELEASE_WAIT)
    assert second.from_key == first.to_key
    assert played.master.lost_ms == 0


def test_killed_after_it_went_on_it_loses_what_it_had_not_saved():
    played = Played(SUSPEND, Told(3000 + SAVED_MS, "withdraw"), Told(10_000, "kill"))
    first, second = played.reduces
    assert second.from_key == played.master.store[0].keys_done
    began_ms = played.began_ms
    heard_ms = first.node.next_beat_ms(began_ms + 3000 + SAVED_MS + 1, HADOOP3.nm_heartbeat_ms)
    worked_ms = began_ms + 10_000 - heard_ms - HADOOP3.restart_ms
    assert (first.terminal_state, played.master.lost_ms) == ("killed", worked_ms)


@pytest.mark.parametrize("timing", [HADOOP3, PAPER])
def test_on_a_node_that_has_died_a_request_is_taken_and_never_heard(timing):
    plain = Played(timing=timing).reduces[0]
    assert plain.node.index > 0
    lost = NodeLost(plain.work_at_ms + 1000, plain.node.index)
    played = Played(SUSPEND, timing=timing, faults=(lost,))
    assert played.answers == [Accepted()]
    assert not any(isinstance(fact, ManifestSeen | UploadProgressed) for fact in played.facts)
    assert (played.reduces[0].terminal_state, played.reduces[1].from_key) == ("lost", 0)


@pytest.mark.parametrize("after_ms", [3800, 4500, 7000])
def test_withdrawn_on_a_node_that_has_died_nothing_goes_on(after_ms):
    plain = Played().reduces[0]
    lost = NodeLost(plain.work_at_ms + after_ms, plain.node.index)
    played = Played(SUSPEND, Told(8000, "withdraw"), faults=(lost,))
    assert played.reduces[0].finish_at_ms == NEVER
    assert played.reduces[0].terminal_state == "lost"


def test_without_its_master_an_attempt_is_neither_asked_nor_released():
    plain = Played()
    am = plain.master.app.am_container
    assert am is not None
    index = am.node.index
    reduce = plain.reduces[0]
    assert index != reduce.node.index
    faults = (NodeLost(reduce.work_at_ms + 7000, index),)
    played = Played(SUSPEND, Told(8000, "release"), Told(8001, "suspend", "o-2"), faults=faults)
    assert played.answers == [Accepted(), Refused(MasterDown()), Refused(MasterDown())]


def test_a_restarted_master_finds_the_checkpoint_and_goes_on_there():
    plain = Played().reduces[0]
    played = Played(SUSPEND, faults=(MasterDead(plain.work_at_ms + 8000, 0),))
    first, second = played.reduces
    assert (first.terminal_state, first.stage) == ("killed", RELEASE_WAIT)
    assert (second.resumed, second.from_key) == (True, first.to_key)
    assert played.master.lost_ms == 0


@pytest.mark.parametrize(("keys", "length_ms"), [(24, 12_000), (7, 1000), (10, 3), (3, 10), (1, 5), (5, 0)])
def test_keys_done_is_the_number_of_keys_whose_end_has_come(keys, length_ms):
    (container,) = Played().reduces
    container.length_ms = length_ms
    for from_key in range(keys + 1):
        container.from_key, container.work_at_ms = from_key, 1000
        begun_ms = 1000 - key_end_ms(from_key, keys, length_ms)
        for now_ms in range(1001, 1003 + length_ms, max(1, length_ms // 97)):
            ended = [key for key in range(keys + 1) if begun_ms + key_end_ms(key, keys, length_ms) <= now_ms]
            assert keys_done(container, now_ms, keys) == max(ended)
