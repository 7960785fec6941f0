"""The mix attached to a live cluster: production gets room from maps of a job without the task runner.

Law: what was done is read from the journal, what it cost from the cluster's own attempts.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import ReplayedJob, play
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import Case, attached, read_records
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.model import HeldTime, Kill
from yarnctl.deciding.records import Decision, Record, Requests, Transition

SPEED = 5.0
CASE = Case(
    "mix",
    nodes=2,
    slots=4,
    jobs=(job("research", 0, [60] * 9, [4]), job("production", 12, [5], [3])),
)
"""Research's master and seven maps fill the cluster; production needs two containers."""


class Lived(NamedTuple):
    """What came of it."""

    rows: dict[str, ReplayedJob]
    records: list[Record]
    journal: Path


def live(folder: Path, *words: str) -> Lived:
    """Run the case with the mix."""
    with attached(CASE, folder, SPEED, *words) as url:
        rows = play(Client(url, "harness"), CASE.jobs, SPEED)
    journal = folder / "state" / "journal.jsonl"
    return Lived({row.name: row for row in rows}, read_records(journal), journal)


def kills(lived: Lived) -> list[Kill]:
    requests = [each for each in lived.records if isinstance(each, Requests)]
    return [action for each in requests for action in each.actions if isinstance(action, Kill)]


@pytest.fixture(scope="module")
def fifth(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return live(tmp_path_factory.mktemp("fifth"), "--may-lose", "40%")


@pytest.mark.xdist_group("mix-live")
def test_production_gets_room_from_a_killed_map_and_research_still_succeeds(fifth: Lived) -> None:
    assert {row.final_status for row in fifth.rows.values()} == {"SUCCEEDED"}
    killed = kills(fifth)
    assert killed
    assert all("_m_" in each.attempt for each in killed)
    granted = [each for each in fifth.records if isinstance(each, Transition) and each.target == "granted"]
    assert granted
    assert all(each.application == fifth.rows["production"].application for each in granted)


@pytest.mark.xdist_group("mix-live")
def test_each_decision_says_which_lever_and_stays_within_the_budget(fifth: Lived) -> None:
    decisions = [each for each in fifth.records if isinstance(each, Decision) and each.picks]
    pulls = [each.levers for each in decisions]
    levers = [pull.lever for each in pulls for pull in each]
    assert {lever.kind for lever in levers} == {"kill"}
    held_mib_ms = 0
    for each in fifth.records:
        for one in getattr(each, "held", ()):
            assert isinstance(one, HeldTime)
            assert one.payer == "root.research"
            assert one.mib_ms >= held_mib_ms, "the window is longer than this life"
            held_mib_ms = one.mib_ms
    lost_mib_ms = sum(lever.lost_ms for lever in levers) * 1024
    assert 0 < lost_mib_ms <= 0.4 * held_mib_ms


@pytest.mark.xdist_group("mix-live")
def test_the_journal_replays_and_explains_the_lever(fifth: Lived, capfd: pytest.CaptureFixture[str]) -> None:
    from yarnctl.cli import PROGRAM

    assert exit_status_of(PROGRAM, ["replay", str(fifth.journal)]) == 0
    capfd.readouterr()
    order = kills(fifth)[0].order
    assert exit_status_of(PROGRAM, ["explain", order, "--journal", str(fifth.journal)]) == 0
    assert "kill" in capfd.readouterr().out


@pytest.mark.xdist_group("mix-live")
def test_with_nothing_to_lose_no_map_is_killed(tmp_path: Path) -> None:
    lived = live(tmp_path, "--may-lose", "0%")
    assert kills(lived) == []
    assert {row.final_status for row in lived.rows.values()} == {"SUCCEEDED"}
