"""Victims' queues held back in virtual time: nothing is taken back, and what was lowered is put back."""

from __future__ import annotations

from emulator.virtual.run import Run
from tests.unit.two_jobs import play
from yarnctl.deciding.model import Restore, SetQueueMaximum
from yarnctl.deciding.queue_hold import CAP_AFTER_MS
from yarnctl.deciding.reasons.orders import DemandOver
from yarnctl.deciding.records import Lowering, Performed, Restoring


def test_a_queue_is_held_at_its_guarantee_and_put_back():
    run, journal = play()
    (lowering,) = [record for record in journal.records if isinstance(record, Lowering)]
    (change,) = lowering.changes
    assert (change.before, change.now) == ("1.0", "0.05")
    assert run.cluster.rm.scheduler.queues["research"].config.maximum_ratio == 1.0
    assert run.queue_cap is not None
    assert not run.queue_cap.capped


def test_it_is_put_back_when_nobody_hurried_has_waited_for_a_while():
    waited_at_ms = [0]

    def look(run: Run) -> None:
        assert run.controller is not None
        if run.controller.ledger.open or run.port.demand(("production",)):
            waited_at_ms[0] = run.cluster.kernel.now_ms

    _, journal = play(also=look)
    (back,) = [
        record for record in journal.records if isinstance(record, Restoring) and record.why == DemandOver()
    ]
    assert CAP_AFTER_MS - 1000 <= back.at_ms - waited_at_ms[0] <= CAP_AFTER_MS + 1000


def test_what_is_changed_is_written_first():
    _, journal = play()
    made: dict[int, SetQueueMaximum | Restore] = {}
    for place, record in enumerate(journal.records):
        if isinstance(record, Lowering):
            (change,) = record.changes
            made[place] = SetQueueMaximum(change.target, float(change.now))
        elif isinstance(record, Restoring):
            made[place] = Restore(record.change)
    assert len(made) == 2
    for place, action in made.items():
        done = journal.records[place + 1]
        assert isinstance(done, Performed)
        assert done.is_of(action)


def test_while_it_is_held_nobody_there_is_given_anything():
    """Without the hold research takes room back between production's waves, and is asked again."""
    held, free = play()[0].result(), play(hold=False, ahead_max=0)[0].result()
    assert held.suspensions == 4
    assert free.suspensions > held.suspensions


def test_without_the_option_nothing_is_held():
    run, journal = play(hold=False, ahead_max=0)
    assert run.queue_cap is None
    assert not [record for record in journal.records if isinstance(record, Lowering)]
