"""The allocators against their algorithms, line by line, by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from yarnctl.deciding.admission.mechanisms import MECHANISMS, SIZINGS, Memory, OwnChoices
from yarnctl.deciding.admission.mechanisms.justice import JusticeChoices, ends_late, fraction
from yarnctl.deciding.admission.mechanisms.oracle import NO_DROP_FS, REACTIVE_FS, SharerChoices
from yarnctl.deciding.admission.mechanisms.pythia import PythiaChoices
from yarnctl.deciding.admission.records import Estimate, Finished, Request
from yarnctl.deciding.admission.rounds import Grant, hold
from yarnctl.deciding.admission.sizing import NoMemory, Order, queue_key, required_ratio

PYTHIA, JUSTICE, ORACLE = SIZINGS["pythia"], SIZINGS["justice"], SIZINGS["oracle"]


def request(sequence: int = 0, tasks: int = 10, deadline_ms: int = 100, **fields) -> Request:
    return Request(sequence, fields.pop("at_ms", 0), deadline_ms, tasks, **fields)


def finished(work_ms: int, tasks: int, deadline_ms: int, containers: int, **fields) -> Finished:
    ratio = fields.pop("ratio", containers / min(tasks, 100))
    return Finished(work_ms, tasks, deadline_ms, containers, 100, ratio, fields.pop("met", True))


def test_what_a_job_would_have_needed():
    # 600 container-ms within 100 ms: 6 CPUs of the 10 it could use
    assert required_ratio(finished(600, 10, 100, 10)) == 0.6
    # 400 tasks on 100 containers: maxCPUs is the capacity
    assert required_ratio(finished(5000, 400, 100, 100)) == 0.5


def learned(allocator, *jobs: Finished, choices: Any = None) -> Any:
    memory = allocator.memory
    for each in jobs:
        memory = allocator.learn(memory, each, choices or allocator.choices)
    return memory


def terms(allocator, memory: Any, asked: Request, now_ms: int = 0, choices: Any = None):
    return allocator.terms(memory, asked, now_ms, 100, choices or allocator.choices)


def test_pythia_admits_all_until_something_has_finished():
    assert terms(PYTHIA, PYTHIA.memory, request(tasks=500))[:2] == (100, 1)


def test_pythia_s_fraction_only_grows():
    memory = learned(PYTHIA, finished(600, 10, 100, 10), finished(100, 10, 100, 10))
    assert memory.most == 0.6
    assert terms(PYTHIA, memory, request(tasks=9)).containers == 6, "0.6 x 9 = 5.4, rounded up"


def test_pythia_takes_a_part_of_what_can_be_reached_or_of_what_was_requested():
    memory = learned(PYTHIA, finished(500, 10, 100, 10))
    assert terms(PYTHIA, memory, request(tasks=300)).containers == 50
    assert (
        terms(PYTHIA, memory, request(tasks=300), choices=PythiaChoices(reach="requested")).containers == 100
    )


@pytest.mark.parametrize(
    ("waited_ms", "containers", "why"),
    [(0, 5, "half"), (20, 7, "0.5 x 100 / 80 = 0.625"), (50, 10, "all of them just do"), (51, 0, "too late")],
)
def test_time_in_the_queue_makes_a_job_wider_until_it_is_hopeless(waited_ms, containers, why):
    memory = learned(PYTHIA, finished(500, 10, 100, 10))
    assert terms(PYTHIA, memory, request(), waited_ms).containers == containers, why


def test_time_in_the_queue_may_be_ignored_until_the_deadline():
    memory, ignored = learned(PYTHIA, finished(500, 10, 100, 10)), PythiaChoices(queue_time="ignored")
    assert terms(PYTHIA, memory, request(), 99, ignored).containers == 5
    assert terms(PYTHIA, memory, request(), 100, ignored).containers == 0


def test_oracle_takes_exactly_what_is_needed_and_not_without_knowing():
    asked = request(estimate=Estimate(601, 0, "trace"))
    assert terms(ORACLE, ORACLE.memory, asked).containers == 7, "601 / 100 rounded up"
    assert terms(ORACLE, ORACLE.memory, asked, 39).containers == 10, "601 / 61"
    assert terms(ORACLE, ORACLE.memory, asked, 40).containers == 0, "601 / 60 is more than ten"
    assert terms(ORACLE, ORACLE.memory, request()).containers == 0


# --- Justice ----------------------------------------------------------------------------------


def test_justice_needs_two_finished_jobs():
    one = learned(JUSTICE, finished(500, 10, 100, 10))
    assert terms(JUSTICE, one, request())[:2] == (10, 1)
    two = learned(JUSTICE, finished(500, 10, 100, 10), finished(400, 10, 100, 10))
    assert terms(JUSTICE, two, request()).least > 1


def test_justice_s_fraction_by_hand():
    # ratios 0.5 and 0.4, both given 1.0: errors -0.5 and -0.6
    memory = learned(JUSTICE, finished(500, 10, 100, 10), finished(400, 10, 100, 10))
    assert (memory.least, memory.most, memory.last, memory.last_met) == (0.4, 0.5, 1.0, True)
    # met: (1.0 + 0.4) / 2 = 0.7, corrected by -0.55: 0.15, raised to the least ever needed
    assert fraction(memory, JusticeChoices()) == 0.4
    # the text's sign: 0.7 + 0.55, cut to 1
    surplus = JusticeChoices(errors="surplus")
    jobs = (finished(500, 10, 100, 10), finished(400, 10, 100, 10))
    assert fraction(learned(JUSTICE, *jobs, choices=surplus), surplus) == 1.0


def test_a_miss_pulls_towards_the_largest_ratio():
    jobs = (finished(900, 10, 100, 9), finished(300, 10, 100, 2, met=False))
    memory = learned(JUSTICE, *jobs)
    # errors 0.0 and 0.1; (0.2 + 0.9) / 2 + 0.05
    assert fraction(memory, JusticeChoices()) == pytest.approx(0.6)


def test_exponential_weights_make_the_newest_error_count_most():
    choices = JusticeChoices(weighting="exponential", smoothing_ratio=0.25)
    jobs = (finished(900, 10, 100, 8), finished(300, 10, 100, 2, met=False))
    memory = learned(JUSTICE, *jobs, choices=choices)
    assert memory.smoothed == pytest.approx(0.25 * 0.1 + 0.75 * 0.1)
    assert fraction(memory, choices) == pytest.approx((0.2 + 0.9) / 2 + 0.1)


def test_what_the_last_fraction_was_estimated_or_observed():
    small = finished(50, 1, 100, 1, ratio=0.6)
    assert learned(JUSTICE, small).last == 0.6
    assert learned(JUSTICE, small, choices=JusticeChoices(fraction="observed")).last == 1.0


@pytest.mark.parametrize(("threshold", "ended"), [(0, True), (9, True), (10, False), (None, False)])
def test_justice_ends_late_jobs_above_a_threshold(threshold, ended):
    assert ends_late(request(tasks=10), JusticeChoices(drop_above_tasks=threshold)) is ended


@pytest.mark.parametrize(("tasks", "now_ms", "containers"), [(10, 0, 10), (9, 1, 9), (10, 1, 0)])
def test_justice_s_first_jobs_end_above_a_threshold_once_they_are_late(tasks, now_ms, containers):
    asked, choices = request(tasks=tasks), JusticeChoices(drop_above_tasks=9)
    assert JUSTICE.terms is not None
    found = JUSTICE.terms(JUSTICE.memory, asked, now_ms * asked.due_ms, 40, choices)
    assert found.containers == containers


# --- the queue and a round --------------------------------------------------------------------


def test_orders_of_the_queue():
    wide, narrow = request(0, tasks=9, deadline_ms=100), request(1, tasks=2, deadline_ms=50)
    loose = request(2, tasks=2, deadline_ms=80)
    firsts: tuple[tuple[Order, int], ...] = (("tasks", 2), ("earliest", 1))
    for order, first in firsts:
        keys = {queue_key(order, each, 1, 0): each.sequence for each in (wide, narrow, loose)}
        assert keys[min(keys)] == first
    assert queue_key("ratio", wide, 4, 20) == (0.05, 0, 0)
    assert queue_key("ratio", narrow, 4, 50) == (float("inf"), 0, 1)


def test_a_round_passes_over_who_does_not_fit():
    memory = learned(PYTHIA, finished(1000, 10, 100, 10))  # all of what they can use
    waiting = [request(0, tasks=60), request(1, tasks=30), request(2, tasks=50)]
    found = hold(PYTHIA, memory, waiting, 85, 0, 100, PYTHIA.choices)
    assert found.admitted == [Grant(waiting[1], 30, 1.0), Grant(waiting[2], 50, 1.0)]
    assert found.rejected == []


def test_before_anything_is_known_a_job_takes_what_there_is():
    found = hold(PYTHIA, PYTHIA.memory, [request(0, tasks=60)], 7, 0, 100, PYTHIA.choices)
    assert found.admitted == [Grant(request(0, tasks=60), 7, 7 / 60)]


def test_reactive_turns_away_who_is_late_and_no_drop_does_not():
    waiting = [request(0, deadline_ms=5), request(1, tasks=3)]
    reactive = hold(REACTIVE_FS, NoMemory(), waiting, 4, 5, 100, SharerChoices())
    assert [each.request.sequence for each in reactive.admitted] == [1]
    assert [each.sequence for each, _ in reactive.rejected] == [0]
    no_drop = hold(NO_DROP_FS, NoMemory(), waiting, 4, 5, 100, SharerChoices())
    assert [(each.request.sequence, each.containers) for each in no_drop.admitted] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_memory_and_choices_of_each_mechanism_are_told_apart_when_written_down(name):
    mechanism = MECHANISMS[name]
    memory = mechanism.learn(
        mechanism.begin(mechanism.choices), finished(500, 10, 100, 10), mechanism.choices
    )
    assert msgspec.json.decode(msgspec.json.encode(memory), type=Memory) == memory
    assert msgspec.json.decode(msgspec.json.encode(mechanism.choices), type=OwnChoices) == mechanism.choices


def test_every_allocator_cites_its_source_and_knows_its_name():
    for name, allocator in SIZINGS.items():
        assert allocator.name == name
        assert "PYTHIA" in allocator.paper or "Justice" in allocator.paper


def test_memory_can_be_written_down():
    memory = learned(JUSTICE, finished(500, 10, 100, 10), finished(300, 7, 100, 2, met=False))
    assert msgspec.json.decode(msgspec.json.encode(memory), type=Memory) == memory
