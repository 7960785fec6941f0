"""The choices that Figs 4 to 6 are compared under: each does what its name says, and ours is unchanged."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import pytest

from emulator.cluster.entities import Container
from emulator.cluster.task import SavedReduce
from emulator.cluster.timing import PAPER
from emulator.virtual.run import Run, run_scheme
from emulator.virtual.schemes import SCHEMES
from tests.golden.tables import GUARD_FREE, candidate, case, task, with_
from yarn_research.papers.natjam_micro import Lab
from yarn_research.papers.natjam_variants import VariantMaster, VariantTiming, legacy_remaining_ms, variant
from yarn_research.papers.paper_natjam import ALTERNATIVES
from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES
from yarnctl.deciding.selector import choose

NOBODY: Any = None
"""Where an actor is needed that is not asked."""


def returned(**choices: str) -> list[int]:
    """Return the tasks of Research-XL in the order in which they came back, under random eviction."""
    lab = Lab(timing=variant(PAPER, **choices))
    run = Run(lab.setup(3, task_policy="random"), lab.pair("s"), SCHEMES["natjam"])
    master = run.cluster.masters
    came: list[int] = []

    def look() -> None:
        research = next((each for each in master if each.job.job_class == "research"), None)
        running = research.running.values() if research else ()
        came.extend(one.task for one in running if one.resumed and one.task not in came)

    run.go(look)
    return came


def test_the_first_choices_are_ours():
    lab = Lab()
    setup = lab.setup(1)
    same = msgspec.structs.replace(setup, timing=variant(PAPER))
    assert isinstance(same.timing, VariantTiming)
    assert run_scheme(same, lab.pair("s"), SCHEMES["natjam"]) == run_scheme(
        setup, lab.pair("s"), SCHEMES["natjam"]
    )


def test_suspended_reduces_come_back_in_the_order_that_was_chosen():
    first, last = returned(), returned(resume_order="suspended last")
    assert sorted(first) == sorted(last)
    assert len(first) > 5
    assert first != last
    assert len({tuple(first), tuple(last), tuple(returned(resume_order="longest"))}) == 3


class Waiting(VariantMaster):
    """A master that asks nobody: only its queue is looked at."""

    def _ask(self, priority: int, count: int) -> None:
        pass


@pytest.mark.parametrize(
    ("order", "queue"),
    [
        ("suspended first", [2, 0, 1]),
        ("suspended last", [1, 0, 2]),
        ("longest", [0, 2, 1]),
        ("index", [0, 1, 2]),
    ],
)
def test_the_queue_of_suspended_reduces(order, queue):
    lab = Lab(timing=variant(PAPER, resume_order=order))
    run = Run(lab.setup(0), lab.pair("s"), SCHEMES["natjam"])
    job = msgspec.structs.replace(
        lab.pair("s")[0], reduce_ms=(9000, 1000, 5000), reduce_keys=(9, 1, 5), map_ms=()
    )
    master = Waiting(job, NOBODY, run.cluster, order)
    master.pending.unassigned = {3: deque(), 10: deque()}
    for task_number in (2, 0, 1):
        master.store[task_number] = SavedReduce(1, 0)
        master.pending.add_reduce(task_number)
    assert list(master.pending.unassigned[3]) == queue


def test_the_legacy_estimate_is_that_of_the_facts():
    """3eL / (2L + e) in all, at age e of a task of length L whose shuffle takes no time."""
    one = Container(1, NOBODY, NOBODY, 1024, 1, 10, 0, launched_at_ms=0, work_at_ms=0, length_ms=100_000)
    for age_ms in (10_000, 50_000, 90_000):
        whole = 3 * age_ms * 100_000 / (2 * 100_000 + age_ms)
        assert legacy_remaining_ms(one, age_ms, 100_000) == pytest.approx(whole - age_ms, abs=2)
    assert legacy_remaining_ms(one, 0, 100_000) == 0


def test_mr_once_takes_all_from_one_job():
    jobs = [candidate("a", 5), candidate("b", 5)]
    tasks = {name: [task(f"{name}.{n}") for n in range(4)] for name in ("a", "b")}
    given = {}
    for policy in ("MR", "MR-once"):
        choice = choose(case(jobs, 3, tasks), with_(GUARD_FREE, job_policy=policy))
        given[policy] = [pick.application for pick in choice.picks]
    assert given == {"MR": ["a", "b", "a"], "MR-once": ["a", "a", "a"]}
    assert not set(COMPARED_JOB_POLICIES) & set(JOB_POLICIES), "no command line offers it"


def test_every_alternative_differs_from_ours():
    ours = Lab(runs=1)
    labs = [variation(ours) for _, others in ALTERNATIVES.values() for variation in others.values()]
    assert len({msgspec.json.encode(lab) for lab in (ours, *labs)}) == 1 + len(labs)


@pytest.mark.parametrize("lengths", ["shuffled", "drawn"])
def test_other_lengths_keep_the_longest_and_differ_from_run_to_run(lengths):
    ours, lab = Lab(runs=2), Lab(runs=2, lengths=lengths)
    (plain, _), cells = ours.cells("natjam", ours.pair("s")), lab.cells("natjam", lab.pair("s"))
    assert cells[0].jobs != cells[1].jobs
    for cell in cells:
        for job, table in zip(cell.jobs, plain.jobs, strict=True):
            assert max(job.reduce_ms) == max(table.reduce_ms)
            assert min(job.reduce_ms) >= max(job.reduce_ms) // 2
            assert (sorted(job.reduce_ms) == sorted(table.reduce_ms)) == (lengths == "shuffled")
