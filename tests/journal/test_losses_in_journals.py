"""A loss budget outlives its controller: the same is left by the journal, and by a state within it."""

from __future__ import annotations

import msgspec
import pytest

from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES
from tests.golden.mix_tables import NOW_MS, mix_settings, rules
from tests.golden.tables import app, cluster, seen, task, with_
from tests.property.playing import require_replayed
from tests.property.stories import STORIES, job, mix, tell, three_nodes
from tests.unit.deciding.test_mix import HELD as FREE_TO_LOSE
from tests.unit.deciding.test_mix import MIX, SHARES, a_map
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.held_windows import MARK_MS
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger_state import LedgerState
from yarnctl.deciding.loss_budget import LossState
from yarnctl.deciding.model import Accepted, HeldTime, JobConsent, Kill
from yarnctl.deciding.records import Decision, Record, State, decode, encode
from yarnctl.deciding.settings import LeverSettings
from yarnctl.errors import Different
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.exporting.export_rows import COLUMNS, ExportRows
from yarnctl.journal.file import Line
from yarnctl.journal.fold import Fold, ledger_of

HOUR_MS = 3_600_000
TAGGED = JobConsent("r", "u", 1.0)
HELD = (HeldTime("r", HOUR_MS, 10**9),)


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


def test_a_journal_with_prices_decides_again_to_the_byte_and_a_state_has_the_observed_spans():
    run = mix(second_worth_ratio=5.0, kills_max=3)
    records = list(tell(run).records)
    journal = MemoryJournal()
    journal.append(records)
    require_replayed(journal)
    assert run.controller is not None
    times = run.controller.ledger.times.by_kind
    assert times
    place = len(records) // 2
    left = decode(encode(folded(records[:place]).state()))
    assert isinstance(left, State)
    assert left.ledger.lever_times
    assert folded(records[place:], folded([left])).ledger.times.by_kind == times


def test_spans_that_a_state_kept_by_verb_are_read_as_those_of_the_lever_of_that_name():
    old = msgspec.json.decode(
        b'{"lever_times":[["suspend",8,4000,9,5],["kill",2,900,0,5],["drain",2,-50,0,5]]}', type=LedgerState
    )
    means = {kind: each.mean_ms for kind, each in ledger_of(old, mix_settings()).times.by_kind.items()}
    assert means == {"suspend": 4000, "kill": 900, "drain": -50}


def test_how_long_a_key_group_takes_is_an_input_and_stays_with_the_order():
    settings = with_(
        mix_settings(rules(second_worth_ratio=1.0, room_within_ms=60_000)),
        model_scheduler=False,
        in_flight_ratio_max=1.0,
    )
    controller = Controller(settings, validate=True)
    reduces = [task("r1_0", cost_ms=1000), task("r2_0", cost_ms=1000)]
    snapshot = cluster(app("r", "research", 3), app("p", "production", 1, 1), guaranteed=SHARES)
    look = seen(snapshot, {"r": reduces}, now_ms=NOW_MS)
    step = controller.step(msgspec.structs.replace(look, group_ms={"r1_0": 6500, "r2_0": 20_000}))
    records = list(step.records)
    [order] = controller.ledger.open.values()
    assert (order.attempt, order.verb, order.group_ms) == ("r1_0", "suspend", 6500)
    assert order.predicted_ms(settings) == 4000 + 6500
    [observed] = [each for each in records if isinstance(each, Observed)]
    assert observed.group_ms["r1_0"] == 6500
    for action in step.actions:
        records += controller.settle(action, Accepted())
    journal = MemoryJournal()
    journal.append(records)
    require_replayed(journal)
    left = decode(encode(folded(records).state()))
    assert isinstance(left, State)
    assert [each.group_ms for each in folded([left]).ledger.open.values()] == [6500]


def drained(bound_ms: dict[str, int]) -> list[Record]:
    """Return the journal of one drain: of two executors the first is expected to lose less."""
    controller = Controller(MIX, validate=True)
    executors = [
        task(name, 3000, kind="executor", since_ms=NOW_MS - lost_ms, cost_ms=9000)
        for name, lost_ms in (("e1", 1500), ("e2", 2000))
    ]
    snapshot = cluster(app("r", "research", 3), app("p", "production", 1, 1), guaranteed=SHARES)
    look = seen(snapshot, {"r": executors}, now_ms=NOW_MS)
    step = controller.step(msgspec.structs.replace(look, held=FREE_TO_LOSE, bound_ms=bound_ms))
    records = list(step.records)
    for action in step.actions:
        records += controller.settle(action, Accepted())
    journal = MemoryJournal()
    journal.append(records)
    require_replayed(journal)
    return [decode(encode(each)) for each in records]


def decided(records: list[Record]) -> tuple[list[Record], Decision]:
    """Return what was decided, without the bound, and the decision."""
    [decision] = [each for each in records if isinstance(each, Decision)]
    rest = [each for each in records if not isinstance(each, Decision | Observed)]
    return [*rest, msgspec.structs.replace(decision, bound_ms={})], decision


@pytest.mark.parametrize("bound_ms", [{"e1": 8000, "e2": 2000}, {"e1": 1, "e2": 10**12}, {"e2": 9000}])
def test_bound_of_lost_work_is_written_and_changes_no_choice(bound_ms):
    same, decision = decided(drained(bound_ms))
    assert same == decided(drained({}))[0]
    assert decision.picks[0].task.attempt == "e1"
    assert decision.bound_ms == ({"o-000001": bound_ms["e1"]} if "e1" in bound_ms else {})


def test_bound_of_lost_work_that_is_not_known_takes_no_space():
    assert not any(b"bound_ms" in encode(each) for each in drained({}))


@pytest.mark.parametrize(
    ("bound_ms", "text"),
    [
        ({"e1": 8000}, "1.5 s of work lost, at most 8 s in 95 of 100 drains, 9 s of overhead"),
        ({"e1": 1500}, ", at most 1.5 s of work lost in 95 of 100 drains, 9 s of overhead"),
        ({}, "1.5 s of work lost, 9 s of overhead"),
    ],
)
def test_explain_prints_expected_loss_and_its_bound(bound_ms, text):
    explanation = explain(drained(bound_ms), "o-000001")
    assert text in "\n".join(in_words(explanation))
    [story] = msgspec.to_builtins(explanation)["orders"]
    assert story.get("bound_ms") == bound_ms.get("e1")


@pytest.mark.parametrize("bound_ms", [{"e1": 8000}, {}])
def test_export_has_a_column_for_the_bound(bound_ms):
    rows = ExportRows()
    lines = [Line(number, each, b"") for number, each in enumerate(drained(bound_ms), 1)]
    [order] = [row for line in lines for row in rows.of(line) if row.kind == "orders"]
    values = dict(zip(COLUMNS["orders"], order.values, strict=True))
    assert (values["predicted_lost_ms"], values["predicted_bound_ms"]) == (1500, bound_ms.get("e1"))


def test_without_a_price_no_span_is_kept():
    _, records = told()
    assert folded(records).ledger.times.by_kind == {}


# --- what was held is an input ----------------------------------------------------------------------


def tagged(*held: tuple[HeldTime, ...]) -> tuple[list[Record], list[str]]:
    """Return the journal of steps, and what was killed, where only the job's own tag lets work be lost."""
    levers = rules(may_lose_ratio=0.0)
    settings = with_(mix_settings(levers), model_scheduler=False, in_flight_ratio_max=1.0)
    controller, records, killed = Controller(settings, validate=True), list[Record](), list[str]()
    maps = [a_map(f"r{number}_0", 3) for number in range(1, 9)]
    for place, row in enumerate(held):
        asking = app(f"p{place}", "production", 1, 1, rank=place)
        snapshot = cluster(app("r", "research", len(maps) + 1), asking, guaranteed=SHARES)
        look = seen(snapshot, {"r": maps}, now_ms=NOW_MS + 1000 * place)
        look = msgspec.structs.replace(look, held=row, consents=(TAGGED,) if row else ())
        step = controller.step(look)
        records += step.records
        killed += [each.attempt for each in step.actions if isinstance(each, Kill)]
        for action in step.actions:
            records += controller.settle(action, Accepted())
        maps = [each for each in maps if each.attempt not in killed]
    return records, killed


def test_held_and_consents_are_written_when_they_change_and_replayed_whole():
    records, killed = tagged(HELD, HELD, (), HELD)
    assert killed == ["r1_0", "r2_0", "r3_0"]
    inputs = [each for each in records if isinstance(each, Observed)]
    told = [(each.held, each.consents, each.held_gone, each.consents_gone) for each in inputs]
    nothing, gone = ((), (), (), ()), ((), (), (("r", HOUR_MS),), ("r",))
    assert told == [(HELD, (TAGGED,), (), ()), nothing, gone, (HELD, (TAGGED,), (), ())]
    journal = MemoryJournal()
    journal.append(records)
    require_replayed(journal)


@pytest.mark.parametrize("part", ["held", "consents", "held_gone", "consents_gone"])
def test_no_part_of_what_was_held_may_be_left_out(part: str):
    records, _ = tagged(HELD, HELD, (), HELD)
    journal = MemoryJournal()
    journal.append(
        [msgspec.structs.replace(one, **{part: ()}) if isinstance(one, Observed) else one for one in records]
    )
    with pytest.raises(Different):
        require_replayed(journal)


def after_quiet_days(away_ms: int) -> Run:
    """Research fills three nodes for three days with maps of two hours; production comes that much later."""
    day_ms = 24 * HOUR_MS
    maps = job("r", "research", 0, 500, 0, map_ms=(2 * HOUR_MS,) * 500)
    asks = job("p", "production", 3 * day_ms + away_ms, 0, 4)
    setup = three_nodes(may_lose_ratio=0.02, room_within_ms=4_000)
    return Run(setup, (maps, asks), SCHEMES["mix"], MemoryJournal())


@pytest.mark.parametrize(("away_ms", "may"), [(0, False), (300_000, True), (HOUR_MS, False)])
def test_after_quiet_days_a_budget_is_that_of_an_hour(away_ms: int, may: bool):
    """2 % of twelve containers' hour are 14 minutes: some maps that are minutes old, and no older one."""
    run = after_quiet_days(away_ms)
    run.cluster.kernel.run(3 * 24 * HOUR_MS + away_ms + MARK_MS)
    assert run.controller is not None
    lost_mib_ms = sum(each.mib_ms for each in run.controller.ledger.losses.charges.values())
    assert (0 < lost_mib_ms <= 0.02 * 12 * HOUR_MS * 1024) is may


def test_a_restart_keeps_what_was_lost_and_nothing_of_what_was_held():
    run, records = told()
    assert run.controller is not None
    levers = run.controller.settings.levers
    assert isinstance(levers, LeverSettings)
    again = Controller(run.controller.settings, remembered=folded(records).remembered())
    left = again.ledger.losses.left(run.controller.now_ms, (), levers)
    assert left.amount("research", "kill") < 0
