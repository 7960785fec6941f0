"""Golden tables of the borders of admission: who is turned away, who starts first, which names are taken."""

from __future__ import annotations

import pytest

from yarnctl.deciding.admission.book import CLOSED_MAX, DROPPED_AT_ONCE, OPEN, UNLEARNED_MAX, AdmissionStore
from yarnctl.deciding.admission.capacity import Pool, profile
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionStarted,
    GateSet,
)
from yarnctl.deciding.admission.gate import decide, granted_in
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.deciding.admission.mechanisms.oracle import SharerChoices
from yarnctl.deciding.admission.records import Estimate, Request
from yarnctl.deciding.admission.shared_round import PLANNED_MAX, Rules, hopeless, plan_spans
from yarnctl.deciding.reasons.verdicts import EndedAs, NeedsMoreThanItCanUse, NeedsMoreThanThereIs

MINUTE = 60_000


def request(sequence: int, tasks: int, minutes: int = 20, **fields: object) -> Request:
    return Request(sequence, 0, minutes * MINUTE, tasks, **fields)  # type: ignore[arg-type]


def rules_of(name: str, capacity: int, choices: object = None) -> Rules:
    return Rules(SIZINGS[name], SIZINGS[name].memory, capacity, choices or SIZINGS[name].choices)


def gate_set(name: str, capacity: int) -> GateSet:
    return GateSet(0, name, (Pool("", capacity, 1024),), SIZINGS[name].choices)


@pytest.mark.parametrize(
    ("allocator", "turned_away"),
    [
        ("pythia", True),
        ("justice", True),
        ("reactive_fs", True),  # it shares, and drops who is late
        ("no_drop_fs", False),  # it turns nobody away
    ],
)
def test_who_turns_the_hopeless_away(allocator, turned_away):
    rules = rules_of(allocator, 8)
    asked = request(1, 40, estimate=Estimate(240 * MINUTE, 0, "history"))
    assert hopeless(rules, asked, 0) == (NeedsMoreThanThereIs(12, 8) if turned_away else None)


def test_whoever_shares_stands_in_the_order_that_was_chosen():
    """Containers / time left: the later deadline first, although it was submitted later."""
    rules = rules_of("no_drop_fs", 1, SharerChoices(order="ratio"))
    five = Estimate(5 * MINUTE, 0, "history")
    waiting = (request(0, 1, 10, estimate=five), request(1, 1, 60, estimate=five))
    found = plan_spans(rules, waiting, profile(1), 0)
    assert {sequence: seen.start_ms for sequence, seen in found.items()} == {0: 5 * MINUTE, 1: 0}


def test_a_start_is_foreseen_for_the_first_twenty():
    rules = rules_of("no_drop_fs", 100)
    waiting = [request(number, 1, estimate=Estimate(MINUTE, 0, "me")) for number in range(PLANNED_MAX + 2)]
    found = plan_spans(rules, waiting, profile(100), 0)
    assert [seen.start_ms for seen in found.values()] == [0] * 20 + [None, None]


def asked(sequence: int, admission: str) -> AdmissionAsked:
    return AdmissionAsked(0, admission, "job", "ann", "production", request(sequence, 1))


@pytest.mark.parametrize(
    ("admission", "sequence", "problem"),
    [
        ("adm-2", 2, ""),
        ("adm-3", 2, "adm-3 is not the name of number 2"),
        ("adm-3", 3, "adm-3 is number 3, due is 2"),
        ("first-2", 2, "first-2 is not the name of number 2"),  # it stands for another one already
    ],
)
def test_the_name_of_an_admission_ends_in_its_number_and_is_new(admission, sequence, problem):
    book = AdmissionStore()
    book.take(gate_set("pythia", 10))
    book.take(asked(1, "first-2"))
    assert book.problem(asked(sequence, admission)) == problem


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (10, NeedsMoreThanItCanUse(12, 10)),
        (11, NeedsMoreThanThereIs(12, 8)),  # more than there are
    ],
)
def test_what_a_job_can_use_is_named_only_where_the_cluster_has_it(tasks, said):
    rules = rules_of("pythia", 10 if tasks == 10 else 8)
    asked = request(1, tasks, estimate=Estimate(240 * MINUTE, 0, "history"))
    assert hopeless(rules, asked, 0) == said


def test_a_gate_has_room_for_one_container_at_least():
    assert AdmissionStore().problem(gate_set("pythia", 0)) == "a capacity of 0 containers"
    assert AdmissionStore().problem(gate_set("pythia", 1)) == ""
    assert OPEN == ("waiting", "admitted", "running")


def admitted(count: int) -> AdmissionStore:
    """Return a book with so many admissions, each admitted in a round at 0 ms."""
    book = AdmissionStore()
    book.take(gate_set("no_drop_fs", count))
    for number in range(1, count + 1):
        book.take(asked(number, f"adm-{number}"))
    assert book.gate is not None
    after, plans = decide(book.gate, 0)
    book.take(AdmissionRound(0, (), plans, granted_in(book.gate, after)))
    return book


def test_what_is_not_there_or_not_so_far_is_not_closed():
    book = admitted(1)
    book.take(AdmissionClosed(1, "adm-9", "withdrawn", EndedAs("over")))
    book.take(AdmissionClosed(1, "adm-1", "ended", EndedAs("over")))  # it was never taken
    assert book.admissions["adm-1"].state == "admitted"
    AdmissionStore().take(AdmissionClosed(1, "adm-1", "withdrawn", EndedAs("over")))


@pytest.mark.parametrize(("at_ms", "problem"), [(59_999, "it was held until 60000"), (60_000, "")])
def test_nothing_expires_before_its_time(at_ms, problem):
    found = admitted(1).problem(AdmissionClosed(at_ms, "adm-1", "expired", EndedAs("over")))
    assert found.endswith(problem)
    assert bool(found) is bool(problem)


def test_of_many_that_ended_the_newest_wait_to_teach():
    book = admitted(UNLEARNED_MAX + 2)
    for number in range(1, UNLEARNED_MAX + 3):
        book.take(AdmissionStarted(1, f"adm-{number}", f"application_1_{number}"))
        book.take(AdmissionClosed(2, f"adm-{number}", "ended", EndedAs("over")))
    assert len(book.unlearned) == UNLEARNED_MAX
    assert next(iter(book.unlearned)) == "application_1_3"


@pytest.mark.parametrize(
    ("ended", "kept"),
    [
        (CLOSED_MAX + DROPPED_AT_ONCE - 1, CLOSED_MAX + DROPPED_AT_ONCE - 1),
        (CLOSED_MAX + DROPPED_AT_ONCE, CLOSED_MAX),
    ],
)
def test_admission_store_drops_the_oldest_that_ended(ended, kept):
    """They are dropped many at once, with the next request; what is open stays."""
    store = admitted(1)
    for number in range(2, ended + 2):
        store.take(asked(number, f"adm-{number}"))
        store.take(AdmissionClosed(0, f"adm-{number}", "withdrawn", EndedAs("over")))
    store.take(asked(ended + 2, f"adm-{ended + 2}"))
    numbers = [each.sequence for each in store.admissions.values()]
    assert numbers == [1, *range(ended + 2 - kept, ended + 3)]
