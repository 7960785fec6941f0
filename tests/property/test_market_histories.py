"""Money over random histories of the daemon's market: a slice; planted bugs are seen, each by the law for it.

All of 10^5 histories are played by ``python -m tests.soak market``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.property.market_histories import play
from yarnctl.daemon.admission.admission_controller import AdmissionController
from yarnctl.daemon.admission.market_desk import MarketDesk
from yarnctl.daemon.guards import GuardedPort
from yarnctl.deciding import prioritising
from yarnctl.deciding.admission import book
from yarnctl.deciding.admission.entries import AdmissionClosed
from yarnctl.deciding.reasons.verdicts import LeaseOver

SEEDS = range(100)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_laws_hold_over_random_histories() -> None:
    """Tokens conserved, no balance below 0, what is ranked is paid; the slice has seen what may go wrong."""
    played = [play(seed) for seed in SEEDS]
    states = {state for each in played for state in each.laws.closed.values()}
    assert states == {"ended", "expired", "withdrawn"}
    assert sum(each.crashes for each in played) > len(SEEDS)
    assert sum(len(each.laws.charged) for each in played) > 2 * len(SEEDS)
    assert sum(len(each.laws.taken) for each in played) > len(SEEDS)


def _late_when_noticed(found: Any, record: Any) -> bool:
    return bool(record.at_ms > found.plan.deadline_at_ms)


def _lease_over(self: Any, write: Any, now_ms: int, found: Any) -> None:
    self._note(write, AdmissionClosed(now_ms, found.admission, "withdrawn", LeaseOver(1)))


def _tag_for_an_admission(self: Any, snapshot: Any) -> Any:
    """The deadline of a tag counts, wherever an admission of its application is sold."""
    sold = self._sold()
    told = {view.application: view.deadline_at_ms for view in snapshot.applications}
    return prioritising.with_deadlines(snapshot, {name: told[name] for name in sold if name in told})


BUGS = {
    "a withdrawal is believed": (AdmissionController, "_in_use", lambda *_: None,
        "its application is in YARN"),
    "a lease that ends is believed": (AdmissionController, "_end_lease", _lease_over,
        "its application is in YARN"),
    "a tag ranks": (GuardedPort, "with_deadlines", lambda self, snapshot: snapshot, "other deadlines rank"),
    "the tag of a paid application ranks": (GuardedPort, "with_deadlines", _tag_for_an_admission,
        "other deadlines rank"),
    "what is not paid has a level": (prioritising, "level", lambda place, *_: 10 - place, "nothing is paid"),
    "a payer's estimate is believed": (MarketDesk, "is_untrusted", lambda *_: False,
        "its payer's own estimate"),
    "late when noticed": (book, "_is_late", _late_when_noticed, "ended"),
}  # fmt: skip


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    holder, name, instead, told = BUGS[bug]
    monkeypatch.setattr(holder, name, instead)
    with pytest.raises(AssertionError, match=told):
        _play_all()


def _play_all() -> None:
    for seed in SEEDS:
        play(seed)
