"""A slice of the campaign ``campaigns``: some random ones, and every check of theirs seen red.

Of the first four, one has the real task runner and a ``yarnctl run`` of its own; with ``--thorough``, as in
CI, there are a hundred, thirty of them with both. The first twenty have every kind of fault in them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tests.soak import fault_campaign
from tests.soak.campaigns import ALL_KINDS_RUNS, run_all, summary_of
from tests.soak.fault_campaign import Verdict, run_campaign
from tests.soak.fault_checks import CHECKS, Asked, Left, expected_parts, ledger_agrees, read_records
from tests.soak.fault_plan import (
    BOTH,
    BOTH_IN_TURN,
    CAMPAIGN_KINDS,
    IN_TURN,
    KILL_ANYWHERE,
    KINDS,
    Campaign,
    campaign_of,
)
from tests.soak.fault_web import KillAsked
from tests.soak.rig import clock_ms
from tests.soak.workloads import WORKLOADS, job_of, write_input
from tests.thoroughness import is_thorough
from yarnctl.deciding.model import Accepted, Release
from yarnctl.deciding.reasons.orders import ApplicationHasEnded
from yarnctl.deciding.records import Decision, Transition, performed

RUNS, SEED = 100 if is_thorough() else 4, 1
JOBS, AT_ONCE = 2, 13


def test_campaigns_lose_and_double_nothing(tmp_path: Path) -> None:
    seeds = list(range(SEED, SEED + RUNS))
    played = summary_of(SEED, RUNS, run_all(seeds, tmp_path, JOBS, AT_ONCE))
    assert {one.seed: one.breaches for one in played.verdicts if one.breaches} == {}
    assert played.is_clean, (played.lost, played.never_struck)
    assert len(played.verdicts) == RUNS
    assert played.checkpoints > RUNS // 5
    assert played.recovered > 0
    assert played.both == 3 * RUNS // 10
    assert sum(played.played.values()) == RUNS
    assert all(one.struck.get(KILL_ANYWHERE) for one in played.verdicts if one.kind == BOTH)
    tame = [msgspec.structs.replace(one, struck={**one.struck, "nm": 0}) for one in played.verdicts]
    struck, missed = (
        set(summary_of(SEED, ALL_KINDS_RUNS, one).never_struck) for one in (played.verdicts, tame)
    )
    assert missed - struck == {"nm"}
    assert not msgspec.structs.replace(played, never_struck=["nm"]).is_clean
    assert summary_of(SEED, RUNS, played.verdicts[1:]).lost == [SEED]


def test_a_campaign_is_a_function_of_its_seed() -> None:
    seeds = range(SEED, SEED + max(RUNS, ALL_KINDS_RUNS))
    campaigns = [campaign_of(seed) for seed in seeds]
    assert campaigns == [campaign_of(seed) for seed in seeds]
    assert {fault.kind for one in campaigns for fault in one.faults} == set(KINDS)
    assert all(1 <= len(one.faults) <= 4 for one in campaigns)
    assert any(one.processes for one in campaigns)
    assert {"before-append", "nm", "http-500"} <= set(IN_TURN)


def test_three_of_ten_campaigns_have_real_tasks_and_a_yarnctl_of_their_own() -> None:
    drawn = [campaign_of(seed) for seed in range(2000)]
    for first in range(0, 1001, 7):
        assert sum(one.kind == BOTH for one in drawn[first : first + 1000]) == 300
    both = [one for one in drawn if one.kind == BOTH]
    assert all(one.processes and one.program for one in both)
    assert all(KILL_ANYWHERE in {fault.kind for fault in one.faults} for one in both)
    assert {fault.kind for one in both[:30] for fault in one.faults} == {KILL_ANYWHERE, *BOTH_IN_TURN}
    assert {one.kind for one in drawn[1:101]} == set(CAMPAIGN_KINDS)


def test_a_job_that_is_over_too_soon_is_not_taken_for_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_campaign, "STRETCHES", (1,))
    narrow = msgspec.structs.replace(QUIET, reduces=2, reduce_ms=100, keys=1)  # of six rooms it fills two
    (breach,) = run_campaign(narrow, tmp_path / "campaign").breaches["ended"]
    assert breach.startswith("TooShort")


def test_it_is_played_again_twice_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modelled: Left
) -> None:
    played: list[int] = []

    def play(on: SimpleNamespace, _: Verdict) -> None:
        played.append(on.campaign.reduce_ms)
        if len(played) < 3:
            raise fault_campaign.TooShort("over")

    def staged(campaign: Campaign, _: Path) -> AbstractContextManager[SimpleNamespace]:
        return nullcontext(SimpleNamespace(campaign=campaign, struck=Counter()))

    monkeypatch.setattr(fault_campaign, "stage", staged)
    monkeypatch.setattr(fault_campaign, "_play", play)
    monkeypatch.setattr(fault_campaign, "_look_back", lambda _: modelled)
    verdict = run_campaign(QUIET, tmp_path / "campaign")
    assert (verdict.breaches, verdict.stretch) == ({}, 4)
    assert played == [4000, 8000, 16_000]


def test_the_summary_says_how_many_of_each_kind_were_played() -> None:
    drawn = [campaign_of(seed) for seed in range(1, 11)]
    verdicts = [Verdict(seed=one.seed, kind=one.kind, faults=[]) for one in drawn]
    summary = summary_of(1, 10, verdicts[1:])  # one died with its process: it was not played
    assert list(summary.played) == list(CAMPAIGN_KINDS)
    assert sum(summary.played.values()) == 9
    assert summary.both == summary.played[BOTH] == 3


# --- each check, seen red ---------------------------------------------------------------------------

QUIET = Campaign(
    seed=0, processes=False, program=False, nodes=2, slots=3, reduces=7, reduce_ms=4000, keys=40,
    production=2, hold_ms=30_000, faults=(),
)  # fmt: skip


@pytest.fixture(scope="module")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """What a campaign without any fault has left behind; its files stay as long as the tests run.

    Where a busy machine lets a job end before the last decision, it is played again with longer reduces.
    """
    folder = tmp_path_factory.mktemp("quiet")
    for stretch in fault_campaign.STRETCHES:
        kept: list[Left] = []
        longer = msgspec.structs.replace(QUIET, reduce_ms=QUIET.reduce_ms * stretch)
        verdict: Verdict = run_campaign(longer, folder / f"campaign-{stretch}", kept.append)
        assert verdict.breaches == {}
        if verdict.recovery == "decided":
            break
    assert verdict.recovery == "decided"
    assert verdict.orders["granted"] > 0, verdict
    yield kept[0]
    shutil.rmtree(folder, ignore_errors=True)


def of_processes(left: Left, folder: Path) -> Left:
    """The same as if real reducers had done it: files with output, and what they logged."""
    work = WORKLOADS["sum"]._replace(keys=30, reduces=2)
    job = job_of(work, write_input(work, folder, "1"), folder / "research")
    Path(job.output).mkdir()
    Path(job.output, "_SUCCESS").touch()
    for name, data in expected_parts(job).items():
        Path(job.output, name).write_bytes(data)
    lines = (f"{one.attempt} {one.raw['created_at_ms']} {one.last_key.hex()}\n" for one in left.manifests)
    (folder / "research" / "groups").write_text("".join(lines), encoding="ascii")
    research = msgspec.structs.replace(left.research, job=job, folder=folder / "research")
    campaign = msgspec.structs.replace(left.campaign, processes=True)
    return left._replace(campaign=campaign, jobs=[research, *left.jobs[1:]])


def _failed(left: Left) -> Left:
    return left._replace(endings={**left.endings, left.research.application: ("FAILED", "planted")})


def _short(left: Left) -> Left:
    """A group is lost: the last line of a part, or the last key of a modelled reduce."""
    if left.campaign.processes:
        part = sorted((left.research.folder / "out").glob("part-*"))[0]
        part.write_bytes(b"".join(part.read_bytes().splitlines(keepends=True)[:-1]))
        return left
    log = left.masters[left.research.application][-1].actor.keys
    task, pieces = next((task, kept) for task, kept in log._pieces.items() if kept)
    pieces[0] = pieces[0]._replace(to_key=pieces[0].to_key - 1)
    pieces.append(pieces[-1]._replace(from_key=pieces[-1].to_key + 2, to_key=pieces[-1].to_key + 2))
    assert log.pieces(task) != tuple(pieces)
    return left


def _again(left: Left) -> Left:
    """A later attempt begins where the checkpoint before it did not end."""
    first = left.manifests[0]
    if left.campaign.processes:
        with (left.research.folder / "groups").open("a", encoding="ascii") as log:
            name = first.attempt.rpartition("_")[0]
            log.write(f"{name}_900 1 {first.last_key.hex()}\n")
        return left
    raw = {**first.raw, "previous_generation": 7}
    return left._replace(manifests=[first._replace(raw=raw), *left.manifests[1:]])


def _twice(left: Left) -> Left:
    return left._replace(manifests=[*left.manifests, left.manifests[0]])


def _unwritten(left: Left) -> Left:
    """Something was done that the journal does not know: it was performed before it was written down."""
    return left._replace(records=[one for one in left.records if not isinstance(one, Decision)])


def _lossy(left: Left) -> Left:
    """An attempt is killed that never saved anything (its manifests are not there)."""
    named = {one.attempt for one in left.manifests}
    killed = next(one for one in left.kills if one.attempt in named)
    task = killed.attempt.rpartition("_")[0].replace("attempt_", "task_")
    others = [one for one in left.manifests if task not in one.attempt.replace("attempt_", "task_")]
    return left._replace(manifests=others, kills=[KillAsked(killed.attempt, clock_ms(), 200)])


def _standing(left: Left) -> Left:
    """A request stands after its order was given up, and its attempt lives on."""
    decision = next(one for one in left.records if isinstance(one, Decision))
    order, attempt = decision.orders[0], decision.picks[0].task.attempt
    over = next(one for one in left.attempts if one.id == attempt)
    move = Transition(
        order=order, source="suspending", event="give-up", target="given_up", at_ms=over.finished_at_ms - 5000
    )
    manifests = [one for one in left.manifests if left.order_of(one.raw["order"]) != order]
    asked = [Asked(f"{left.instance}-{order}", attempt, False)]
    return left._replace(records=[*left.records, move], asked=asked, manifests=manifests)


def _changed(left: Left) -> Left:
    """A line of the journal is gone."""
    copy = left.journal.with_suffix(".changed")
    lines = left.journal.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join(lines[:2] + lines[3:]))
    return left._replace(journal=copy, records=read_records(copy))


def _disagreeing(left: Left) -> Left:
    """The journal says that an attempt completed, and it was killed."""
    order = next(
        one.order for one in left.records if isinstance(one, Transition) and one.event == "ended-as-ordered"
    )
    move = Transition(order=order, source="checkpointed", event="completed", target="completed", at_ms=1)
    return left._replace(records=[*left.records, move])


def _closed_by_the_end(left: Left, status: str = "SUCCEEDED") -> Left:
    """The journal closes an order because the job has ended; its attempt was killed in the meantime."""
    job = left.research.application
    doubted = _disagreeing(left)
    move = doubted.records[-1]
    assert isinstance(move, Transition)
    closed = msgspec.structs.replace(move, why=ApplicationHasEnded(job))
    records = [*doubted.records[:-1], closed]
    return doubted._replace(records=records, endings={**left.endings, job: (status, "")})


def _blind(left: Left) -> Left:
    names = ("o-999999", "application_1_1", "attempt_1_1_r_000000_0", "container_1_1_01_000002")
    return left._replace(records=[*left.records, performed(1, Release(*names, 1), Accepted())])


DOCTORED: dict[str, Callable[[Left], Left]] = {
    "every_job_succeeded": _failed, "orders_have_one_effect": _twice, "orders_are_in_the_journal": _unwritten,
    "kills_lose_nothing": _lossy, "no_request_is_left": _standing, "journal_replays": _changed,
    "ledger_agrees": _disagreeing, "releases_follow_checkpoints": _blind, "nothing_computed_again": _again,
    "output_is_whole": _short,
}  # fmt: skip
"""Check -> what makes it red; those that change files stand last."""


def test_every_check_can_fail(modelled: Left, tmp_path: Path) -> None:
    assert set(DOCTORED) == set(CHECKS)
    for left in (of_processes(modelled, tmp_path), modelled):
        for name, doctor in DOCTORED.items():
            assert CHECKS[name](left) == [], name
            assert CHECKS[name](doctor(left)) != [], name
    assert ledger_agrees(_closed_by_the_end(modelled)) == []
    assert ledger_agrees(_closed_by_the_end(modelled, "UNDEFINED")) != []
    torn = tmp_path / "journal"
    torn.write_bytes(modelled.journal.read_bytes()[:-20])
    assert read_records(torn) == modelled.records
