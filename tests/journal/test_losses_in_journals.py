"""A loss budget outlives its controller: the same is left by the journal, and by a state within it."""

from __future__ import annotations

from emulator.virtual.run import Run
from tests.property.playing import require_replayed
from tests.property.stories import STORIES, tell
from yarnctl.deciding.loss_budget import LossState
from yarnctl.deciding.records import Record, State, decode, encode
from yarnctl.deciding.settings import LeverSettings
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.fold import Fold


def told() -> tuple[Run, list[Record]]:
    run = STORIES["mix"]()
    assert isinstance(run, Run)
    watch = tell(run)
    return run, list(watch.records)


def losses(fold: Fold) -> tuple[LossState, dict[str, int]]:
    return fold.ledger.losses.state(), fold.ledger.awaited.until_ms


def folded(records: list[Record], fold: Fold | None = None) -> Fold:
    found = fold or Fold()
    for record in records:
        found.apply(record)
    return found


def test_a_crash_after_any_record_leaves_what_a_restart_finds():
    """A state is written at any record, read again, and gone on from: nothing that is left differs."""
    run, records = told()
    assert run.controller is not None
    whole = folded(records)
    for place in range(len(records) + 1):
        before = folded(records[:place])
        left = decode(encode(before.state()))
        assert isinstance(left, State)
        again = folded([left])
        assert losses(again) == losses(before)
        assert losses(folded(records[place:], again)) == losses(whole)
    assert losses(whole)[0] == run.controller.ledger.losses.state()


def test_what_is_left_after_a_restart_is_what_was_left_before():
    run, records = told()
    assert run.controller is not None
    settings = run.controller.settings
    assert isinstance(settings.levers, LeverSettings)
    now_ms, own = run.controller.now_ms, run.controller.ledger.losses
    left = own.left(now_ms, (), settings.levers)
    again = folded(records).ledger.losses.left(now_ms, (), settings.levers)
    for kind in ("kill", "end"):
        assert again.amount("research", kind) == left.amount("research", kind)
    assert list(again.killed) == list(left.killed)
    assert left.killed


def test_the_journal_of_a_mix_decides_again_to_the_byte():
    _, records = told()
    journal = MemoryJournal()
    journal.append(records)
    require_replayed(journal)
