"""Admissions in the journal: any part of it gives the book that was, and a changed round is noticed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from tests.unit.daemon.at_the_desk import AtTheDesk, Killed, Past, Yarn, asking
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.admission.request_queue import WithdrawRequest
from yarnctl.deciding.admission.book import AdmissionStore, BookState
from yarnctl.deciding.admission.entries import (
    AdmissionAsked,
    AdmissionClosed,
    AdmissionRound,
    AdmissionStarted,
    GateLearned,
)
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.records import Record
from yarnctl.errors import Different
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.replay import replay

LESSON = Finished(90_000, 10, 30_000, 5, 10, 0.5, True)


def facts(book: AdmissionStore) -> dict[str, object]:
    return {name: value for name, value in vars(book).items() if name != "version"}


class Story(AtTheDesk):
    """What happens at a desk, drawn at random; ``books`` are those after each record."""

    def __init__(self, allocator: str, steps: Sequence[tuple[str, int, int]], **given: Any) -> None:
        super().__init__(allocator, **given)
        self.steps = steps
        self.books = [facts_copied(self.book)]

    def write(self, record: Record) -> None:
        self.books[-1] = facts_copied(self.book)
        super().write(record)
        self.books.append({})

    def play(self) -> None:
        for step, who, amount in self.steps:
            self.step(step, who, amount)
        self.books[-1] = facts_copied(self.book)

    def step(self, step: str, who: int, amount: int) -> None:
        names = list(self.book.admissions)
        chosen = self.book.admissions[names[who % len(names)]] if names else None
        if step == "ask":
            estimate = Estimate(amount * 60_000, amount * 1_000, "me") if who % 2 else None
            self.hand(
                asking(1 + amount, 1 + who % 20, estimate=estimate, key=f"k{who % 7}" if who % 3 else "")
            )
        elif step == "load":
            self.yarn.run(f"application_9_{who % 4:04}", amount, user="bob")
        elif step == "away":
            self.yarn.away = bool(who % 2)
        elif step == "size":
            self.yarn.size = msgspec.structs.replace(self.yarn.size, capacity=amount)
        elif step == "wait":
            self.go(1_000 * amount * (1 + who % 8))
        elif step == "back":
            self.now_ms -= 7_000 * amount * (1 + who)
        elif chosen is None:
            pass
        elif step == "submit":
            self.submit(chosen, f"application_1_{chosen.sequence:04}")
        elif step == "withdraw":
            self.hand(WithdrawRequest(chosen.admission))
        elif step == "end" and chosen.application in self.yarn.listed:
            self.yarn.end(chosen.application)
            if who % 2:
                self.past.jobs[chosen.application] = msgspec.structs.replace(
                    LESSON, work_ms=1_000 * (1 + amount)
                )
        self.tick()


def facts_copied(book: AdmissionStore) -> dict[str, object]:
    """Return all that a book knows, as a value of its own (everything in it is frozen)."""
    return {name: dict(value) if isinstance(value, dict) else value for name, value in facts(book).items()}


KINDS = ("ask", "ask", "submit", "end", "withdraw", "wait", "load", "away", "size", "back")
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 30), st.integers(0, 12)), max_size=25)
ALLOCATORS = st.sampled_from(["pythia", "justice", "oracle", "reactive_fs", "no_drop_fs"])


def journal(path: Path, records: Sequence[Record]) -> Path:
    path.unlink(missing_ok=True)
    with JournalFile(path, durable=False) as file:
        file.append(records)
    return path


@given(STEPS, ALLOCATORS)
@settings(max_examples=examples(300), deadline=None)
def test_every_part_of_a_journal_gives_the_book_that_was_there(steps, allocator):
    story = Story(allocator, steps)
    story.play()
    read_again = AdmissionStore()
    for place, record in enumerate(story.records[1:]):
        assert facts(read_again) == story.books[place]
        assert read_again.problem(record) == ""
        read_again.take(record)
        if place % 5 == 0:  # a file ends here: all goes over that is not derived
            read_again = AdmissionStore(
                msgspec.json.decode(msgspec.json.encode(read_again.left()), type=BookState)
            )
    assert facts(read_again) == story.books[-1] == facts(story.book)
    gate = read_again.gate
    if gate is not None:
        states = {each.sequence: each.state for each in read_again.admissions.values()}
        assert {states[each.sequence] for each in gate.waiting} <= {"waiting"}
        assert {states[each.request.sequence] for each in gate.reserved} <= {"admitted", "running"}


@given(STEPS, STEPS, ALLOCATORS, st.integers(1, 60))
@settings(max_examples=examples(300), deadline=None)
def test_a_death_at_any_point_loses_nothing_that_was_answered(first, then, allocator, dies_at):
    story = Story(allocator, first)
    story.dies_at = dies_at
    with contextlib.suppress(Killed):
        story.play()
    answered = dict(story.book.admissions)
    again = Story(
        allocator, then, yarn=story.yarn, past=story.past, records=story.records, now_ms=story.now_ms - 5_000
    )
    assert again.book.admissions == answered
    again.play()
    names = [record.admission for record in again.records if isinstance(record, AdmissionAsked)]
    assert len(set(names)) == len(names)
    whole = AdmissionStore()
    for record in again.records[1:]:
        assert whole.problem(record) == ""
        whole.take(record)
    assert facts(whole) == facts(again.book)


@given(STEPS, ALLOCATORS)
@settings(max_examples=examples(200), deadline=None)
def test_what_is_let_in_fits_into_what_is_free(steps, allocator):
    story = Story(allocator, steps)
    story.play()
    book = AdmissionStore()
    for record in story.records[1:]:
        if isinstance(record, AdmissionRound) and record.granted:
            assert book.gate is not None
            held = sum(each.containers for each in book.gate.reserved)
            held += sum(load.containers for load in record.loads)
            assert held + sum(each.containers for each in record.granted) <= book.gate.capacity
        book.take(record)


# --- the journal's file -----------------------------------------------------------------------------------


def played() -> Story:
    """A story with one of every record."""
    past = Past()
    past.before = (LESSON,)
    story = Story("pythia", (), past=past, yarn=Yarn())
    first, second = story.ask(9, key="k"), story.ask(10, minutes=30)
    story.submit(first)
    story.go(2_000)
    story.yarn.end("application_1_0001")
    past.jobs["application_1_0001"] = LESSON
    story.go(10_000)
    assert (story.state(first), story.state(second)) == ("ended", "admitted")
    story.withdraw(second.admission)
    kinds = {type(record) for record in story.records}
    assert kinds >= {AdmissionAsked, AdmissionRound, AdmissionStarted, AdmissionClosed, GateLearned}
    return story


def test_it_is_rebuilt_and_replayed(tmp_path):
    story = played()
    path = journal(tmp_path / "journal.jsonl", story.records)
    found = rebuild(path)
    assert found is not None
    assert facts(found.book) == facts(story.book)
    assert replay(read(path, closed=True), "j").records == len(story.records)


def planted() -> dict[str, tuple[type, dict[str, Any], str]]:
    """Changes of one record each, and what is said of them."""
    return {
        "a plan": (AdmissionRound, {"plans": lambda old: (plan_of(old),)}, "a plan was"),
        "a load": (AdmissionRound, {"loads": lambda old: (("x", 9, 0, 1 << 53),)}, "a plan was"),
        "a grant": (AdmissionRound, {"granted": lambda old: ()}, "granted was"),
        "a number": (AdmissionAsked, {"admission": lambda old: "adm-a1b2-9"},
            "adm-a1b2-9 is not the name of number 1"),
        "a time": (AdmissionAsked, {"at_ms": lambda old: old.at_ms - 1}, "was submitted at"),
        "who took": (AdmissionStarted, {"admission": lambda old: "adm-a1b2-7"}, "starts, and it is"),
        "an end": (AdmissionClosed, {"state": lambda old: "expired"}, "is expired, and it was running"),
        "a lesson": (GateLearned, {"application": lambda old: "application_1_0005"}, "did not end before"),
    }  # fmt: skip


def plan_of(old: AdmissionRound) -> object:
    return msgspec.structs.replace(old.plans[0], containers=old.plans[0].containers + 1)


@pytest.mark.parametrize("name", planted())
def test_a_planted_change_is_noticed(tmp_path, name):
    kind, change, said = planted()[name]
    records = list(played().records)
    place = next(place for place, record in enumerate(records) if isinstance(record, kind))
    changed = {field: make(records[place]) for field, make in change.items()}
    records[place] = msgspec.structs.replace(records[place], **changed)
    records[place] = msgspec.json.decode(msgspec.json.encode(records[place]), type=kind)
    with pytest.raises(Different, match=said):
        replay(read(journal(tmp_path / "journal.jsonl", records)), "j")


def test_a_record_that_is_missing_is_noticed(tmp_path):
    records = played().records
    noticed = 0
    for place in range(1, len(records)):
        left = [*records[:place], *records[place + 1 :]]
        try:
            replay(read(journal(tmp_path / f"{place}.jsonl", left)), "j")
        except Different:
            noticed += 1
        else:
            assert isinstance(records[place], AdmissionClosed | AdmissionRound | GateLearned), place
    assert noticed >= 6


def test_rounds_follow_each_other_in_time():
    instants: list[int] = [record.at_ms for record in played().records[1:]]  # type: ignore[union-attr]
    assert all(before <= after for before, after in pairwise(instants))


def test_an_admission_is_explained_from_the_question_to_the_lesson():
    story = played()
    there = explain(story.records, "adm-a1b2-1")
    assert there.roles == ["admission"]
    words = "\n".join(in_words(there))
    for word in (
        "user ann requested job in root.production, at most 9 containers",
        "admitted with 3 containers",
        "running as application_1_0001",
        "ended: FINISHED",
        "used for estimates: 90 s of container time in 3 containers, deadline met",
    ):
        assert word in words
    by_application = explain(story.records, "application_1_0001")
    assert by_application.roles == ["application"]
    assert [each.text for each in by_application.admissions] == [each.text for each in there.admissions]
    assert not explain(story.records, "adm-a1b2-9").found


def test_a_name_obeys_no_terminal_commands(tmp_path, capsys):
    story = Story("pythia", ())
    story.ask(5, name="job\x9b31m\x1b[31m")
    path = journal(tmp_path / "journal.jsonl", story.records)
    assert exit_status_of(PROGRAM, ["explain", "adm-a1b2-1", "--journal", str(path)]) == 0
    told = capsys.readouterr().out
    assert "job\\x9b31m\\x1b[31m" in told
    assert all(each.isprintable() or each == "\n" for each in told)


def test_who_waits_is_told_who_holds_what():
    story = Story("pythia", ())
    story.yarn.run("application_9_0001", 10, user="bob")
    story.ask(5)
    told = explain(story.records, "adm-a1b2-1").admissions[-1].text
    assert told.startswith("waiting: ")
    assert "10 held without admission: application_9_0001 10" in told
