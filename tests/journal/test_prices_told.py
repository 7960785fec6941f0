"""explain tells what an admission paid, term by term, and replay holds every round of a market again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.frozen.admission_stories import at_a_price
from tests.unit.daemon.test_market_desk import ESTIMATE, market
from yarnctl.daemon.admission.request_queue import QuoteRequest
from yarnctl.deciding.admission.entries import AdmissionRound
from yarnctl.deciding.admission.records import Budget
from yarnctl.deciding.records import Record
from yarnctl.errors import Different
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rendering import tokens_text
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
    assert "asked for job in root.production: 9 containers at most, 180000 ms to its deadline" in told
    assert "for 1000000 tokens of analytics at most" in told
    assert "for itself" in told
    assert "it is late with a chance of at most 5%" in told
    assert "analytics paid " in told
    assert "analytics was paid back " in told


def test_whoever_has_less_slack_is_named(tmp_path: Path) -> None:
    there = market()
    for minutes in (9, 2):
        there.ask(10, minutes, estimate=ESTIMATE, budget=Budget("analytics", 10**9))
    told = words(written(tmp_path, there.records), "adm-a1b2-2")
    assert "tokens for itself, " in told
    assert "tokens for the slack of number 1; it is late" in told


def test_who_is_rejected_is_told_what_would_have_been_cheaper(journal: Path) -> None:
    told = words(journal, "adm-a1b2-2")
    assert "and 1 token at most were agreed; within these it could be done by " in told
    assert "paid" not in told


def test_who_paid_is_told_what_a_later_deadline_would_have_cost_then(tmp_path: Path) -> None:
    """As the quote just before said: the later deadlines of its curve, with the same prices."""
    there = market()
    wanted: dict[str, Any] = {
        "name": "job",
        "user": "ann",
        "queue": "root.production",
        "account": "analytics",
    }
    shown = there.hand(QuoteRequest(containers=10, estimate=ESTIMATE, **wanted))
    there.tick()
    assert isinstance(shown.answer, str)
    quoted = there.desk.shown().quotes[shown.answer].points
    there.ask(10, None, estimate=ESTIMATE, budget=Budget("analytics", 10**9))
    told = words(written(tmp_path, there.records), "adm-a1b2-1")
    paid = there.book.admissions["adm-a1b2-1"].plan.price_mtokens
    assert paid is not None
    (line,) = [each for each in told.splitlines() if "it would have cost less later: " in each]
    later = [each for each in quoted if each.price_mtokens < paid][:3]
    assert len(later) == 3
    assert line.count(" by ") >= 3
    for each in later:
        assert tokens_text(each.price_mtokens) in line
    assert "it would have cost less" not in words(written(_new(tmp_path), at_a_price()), "adm-a1b2-2")


def _new(folder: Path) -> Path:
    (folder / "rejected").mkdir()
    return folder / "rejected"


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
