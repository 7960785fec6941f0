"""explain tells what an admission paid, term by term, and replay holds every round of a market again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.frozen.admission_stories import at_a_price
from tests.unit.daemon.at_the_desk import MINUTE, AtTheDesk, asking
from tests.unit.daemon.test_market_desk import ESTIMATE, market
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.entries import AdmissionRound
from yarnctl.deciding.admission.offering import Cheaper, cheaper_later
from yarnctl.deciding.admission.records import Budget, Plan
from yarnctl.deciding.records import Record
from yarnctl.errors import Different
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.replay import replay


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return written(tmp_path, at_a_price())


def written(folder: Path, records: list[Record]) -> Path:
    with JournalFile(folder / "j.jsonl", durable=False) as file:
        file.append(records)
    return folder / "j.jsonl"


def words(journal: Path, admission: str) -> str:
    return "\n".join(in_words(explain((line.record for line in read(journal)), admission)))


def test_a_price_is_told_term_by_term_and_so_is_what_came_back(journal: Path) -> None:
    told = words(journal, "adm-a1b2-1")
    assert "requested job in root.production, at most 9 containers; deadline in 3 min at " in told
    assert "budget 1000000 tokens of account analytics" in told
    assert "tokens for the job" in told
    assert "probability of a late end at most 5%" in told
    assert "account analytics paid " in told
    assert "account analytics was refunded " in told


def test_whoever_has_less_slack_is_named(tmp_path: Path) -> None:
    there = market()
    for minutes in (9, 2):
        there.ask(10, minutes, estimate=ESTIMATE, budget=Budget("analytics", 10**9))
    told = words(written(tmp_path, there.records), "adm-a1b2-2")
    assert "tokens for the job, " in told
    assert "tokens for the slack of adm-a1b2-1 (job); probability of a late end" in told


@pytest.mark.parametrize("budget", [10**9, 60_000], ids=["admitted", "rejected: it costs more"])
def test_what_a_later_deadline_is_told_to_cost_is_what_it_costs_who_asks_for_it(budget: int) -> None:
    def sold(minutes: float, most: int) -> tuple[AtTheDesk, Admission]:
        there = market()
        there.yarn.run("application_9_0001", 3, user="bob")
        there.submit(there.ask(10, 30, estimate=ESTIMATE, budget=Budget("analytics", 10**9)))
        there.go(20_000)
        there.ask(10, 9, estimate=ESTIMATE, budget=Budget("analytics", 10**9))
        return there, there.ask(10, minutes, estimate=ESTIMATE, budget=Budget("analytics", most))

    there, decided = sold(3, budget)
    assert (decided.reservation is not None) is (budget == 10**9)
    later = told_later(there.records, decided.sequence)
    assert len(later) == 3
    for each in later:
        asked = sold((each.deadline_at_ms - decided.request.submitted_at_ms) / MINUTE, 10**9)[1]
        assert asked.plan.deadline_at_ms == each.deadline_at_ms
        assert asked.plan.price_mtokens == each.price_mtokens


def told_later(records: list[Record], sequence: int, decided: Plan | None = None) -> list[Cheaper]:
    """Return the cheaper deadlines of the round that decided on a request; ``decided``: as if so."""
    store = AdmissionStore()
    for record in records:
        if isinstance(record, AdmissionRound) and store.gate is not None:
            for plan in record.plans:
                if plan.sequence == sequence:
                    return cheaper_later(store.gate, record, decided or plan)
        store.take(record)
    raise AssertionError(f"no round decided on number {sequence}")


def test_without_a_price_or_an_offer_nothing_is_told() -> None:
    there = market()
    sold = there.ask(10, 3, estimate=ESTIMATE, budget=Budget("analytics", 10**9))
    assert told_later(there.records, sold.sequence)
    free = msgspec.structs.replace(sold.plan, price_mtokens=None)
    assert told_later(there.records, sold.sequence, free) == []
    nobody = msgspec.structs.replace(sold.plan, sequence=99)
    assert told_later(there.records, sold.sequence, nobody) == []


def test_two_that_are_decided_in_one_round_are_priced_one_after_the_other() -> None:
    there = market()
    both = [asking(10, 3, name=name, estimate=ESTIMATE, budget=Budget("analytics", 10**9)) for name in "ab"]
    for wanted in both:
        there.hand(wanted)
    there.tick()
    rounds = [each for each in there.records if isinstance(each, AdmissionRound) and len(each.granted) == 2]
    assert len(rounds) == 1
    assert [len(told_later(there.records, number)) for number in (1, 2)] == [3, 3]


def test_where_the_records_do_not_give_the_price_again_nothing_is_told(journal: Path, tmp_path: Path) -> None:
    assert "later deadlines were cheaper: " in words(journal, "adm-a1b2-1")
    records = at_a_price()
    place = next(at for at, each in enumerate(records) if isinstance(each, AdmissionRound))
    changed = records[place]
    assert isinstance(changed, AdmissionRound)
    dearer = msgspec.structs.replace(
        changed.plans[0], price_mtokens=(changed.plans[0].price_mtokens or 0) + 1
    )
    records[place] = msgspec.structs.replace(changed, plans=(dearer, *changed.plans[1:]))
    folder = tmp_path / "changed"
    folder.mkdir()
    assert "cheaper" not in words(written(folder, records), "adm-a1b2-1")


def test_an_application_is_told_what_its_admission_would_have_cost_later(journal: Path) -> None:
    assert "later deadlines were cheaper: " in words(journal, "application_1_0002")


def test_who_is_rejected_is_told_what_would_have_been_cheaper(journal: Path) -> None:
    told = words(journal, "adm-a1b2-2")
    assert "above the budget of 1 token; within the budget the earliest is " in told
    assert "paid" not in told


def test_replay_holds_every_round_of_a_market_again(journal: Path, tmp_path: Path) -> None:
    assert replay(read(journal), str(journal)).records
    records = at_a_price()
    place = max(at for at, each in enumerate(records) if isinstance(each, AdmissionRound))
    changed = records[place]
    assert isinstance(changed, AdmissionRound)
    plan = msgspec.structs.replace(changed.plans[0], price_mtokens=1)
    records[place] = msgspec.structs.replace(changed, plans=(plan, *changed.plans[1:]))
    folder = tmp_path / "changed"
    folder.mkdir()
    path = written(folder, records)
    with pytest.raises(Different, match="a plan was"):
        replay(read(path), str(path))
