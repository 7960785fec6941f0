"""What the modelled scheduler foresees is what the emulated scheduler does.

Each story is a cluster in which a wrong forecast shows at once: room that goes to somebody else,
or production that waits although room could be made for it.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from emulator.cluster.entities import QueueConfig
from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from yarnctl.deciding.records import Decision, Transition
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job
from yarnctl.units import Resources


def reduces(name, job_class, at_s, count, length_s=300, **more):
    return Job(
        name=name, job_class=job_class, submitted_at_ms=at_s * 1000, map_ms=(1000,),
        reduce_ms=(length_s * 1000,) * count, reduce_keys=(length_s * 10,) * count, **more,
    )  # fmt: skip


def maps(name, at_s, count, **more):
    return Job(
        name=name, job_class="production", submitted_at_ms=at_s * 1000, map_ms=(20_000,) * count, **more
    )


def play(jobs, **setup):
    journal = MemoryJournal()
    made = Setup(nodes=4, node_size=Resources(4096, 4), timing=HADOOP3, settings=DEFAULT)
    made = msgspec.structs.replace(made, **setup)
    result = Run(made, tuple(jobs), SCHEMES["natjam"], journal).go()
    ends = Counter(record.event for record in journal.records if isinstance(record, Transition))
    return {job.name: job.completion_ms / 1000 for job in result.jobs}, ends, journal.records


def test_a_queue_that_comes_first_is_not_fed_by_our_evictions():
    """The queue etl (60 % guaranteed, nothing used) takes any room first: no eviction may feed it."""
    etl = QueueConfig(name="etl", capacity_ratio=0.6)
    jobs = [reduces("r", "research", 0, 14), maps("e", 60, 4, queue="etl"), maps("p", 60, 4)]
    times, ends, _ = play(jobs, shares=(0.35, 0.05), more_queues=(etl,), am_ratio=1.0)
    assert ends["misdirected"] == 0
    assert times["p"] < 320 + 60


@pytest.mark.parametrize("am_ratio", [0.5, 0.25])
def test_a_master_that_may_start_gets_its_room(am_ratio):
    """Three production jobs under a masters' limit: each activated master is made room for at once."""
    jobs = [reduces("r", "research", 0, 15), *(maps(f"p{i}", 60, 1) for i in range(3))]
    times, _, _ = play(jobs, am_ratio=am_ratio)
    assert max(times[f"p{i}"] for i in range(3)) < 150


def test_a_user_at_the_limit_is_still_given_the_container_that_crosses_it():
    """As in YARN: production's only user may hold its guarantee and one container more."""
    jobs = [reduces("r", "research", 0, 15), maps("p", 60, 2)]
    times, _, records = play(jobs, am_ratio=1.0)
    assert any(isinstance(record, Decision) for record in records)
    assert times["p"] < 100


def test_a_victim_queue_keeps_its_guarantee():
    """Research is guaranteed half: production may not push it below."""
    jobs = [reduces("r", "research", 0, 15), maps("p", 60, 16)]
    _, _, records = play(jobs, shares=(0.5, 0.5), am_ratio=1.0)
    first = next(record for record in records if isinstance(record, Decision))
    taken = [
        record for record in records if isinstance(record, Decision) and record.at_ms < first.at_ms + 15_000
    ]
    assert sum(len(record.picks) for record in taken) <= 8


def test_a_large_victim_is_not_taken_for_a_small_ask_that_it_would_take_back():
    """Killed, it would be first in line for its own room again, for ever."""
    jobs = [
        reduces("r", "research", 0, 2, length_s=60, reduce_size=Resources(3072, 1)),
        maps("p0", 12, 1),
        maps("p1", 12, 1),
    ]
    times, _, records = play(jobs, nodes=1, node_size=Resources(6144, 6), shares=(0.5, 0.5))
    assert set(times) == {"r", "p0", "p1"}
    assert sum(len(record.picks) for record in records if isinstance(record, Decision)) <= 2
