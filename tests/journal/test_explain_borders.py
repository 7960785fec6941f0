"""What an explanation says at the borders: nothing kept or known, a refused action, an order never asked.

The records are made by hand, one order each, for a run of the emulator comes to none of these.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.daemon.at_the_desk import AtTheDesk
from yarnctl.deciding.admission.entries import AdmissionRound
from yarnctl.deciding.case import Pick, RefusedTask
from yarnctl.deciding.model import (
    Accepted,
    Kill,
    Outcome,
    Refused,
    Release,
    Suspend,
    TaskView,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.demand import ClusterFull
from yarnctl.deciding.reasons.modes import NotEnforcing
from yarnctl.deciding.reasons.orders import ContainerHasEnded, NoPendingRequests, NoProgress
from yarnctl.deciding.reasons.outcomes import ClientFault, KillNotAllowed
from yarnctl.deciding.records import (
    FORMAT,
    Decision,
    Header,
    Performed,
    Record,
    SavedLost,
    Transition,
    Trigger,
    performed,
)
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.explaining.story import OrderStory
from yarnctl.journal.rendering import instant
from yarnctl.units import Resources

SIZE, ORDER = Resources(1024, 1), "o-000001"
ASKER, VICTIM = "application_1_000002", "application_1_000001"
HEADER = Header(FORMAT, msgspec.structs.replace(DEFAULT, eviction="suspend"), ())


def pick(number: int = 1, since_ms: int = 10_000) -> Pick:
    """Return a task of the victim that is to be stopped."""
    task = TaskView(
        f"attempt_{number}", f"container_{number}", "n1", SIZE, "reduce", 5_000, 700, since_ms, 0, True, False
    )
    return Pick(VICTIM, task, (-1,), (5_000,), SIZE, 1)


def decided(*picks: Pick, number: int = 1, **fields: Any) -> Decision:
    """Return a decision at 50 s that takes these tasks, which become orders from o-000001 on."""
    known: dict[str, Any] = {
        "number": number, "at_ms": 50_000,
        "trigger": Trigger(ASKER, "root.production", (), 1, 0, 0, len(picks), ClusterFull()),
        "total": Resources(8192, 8), "orders": tuple(f"o-{place:06}" for place in range(1, len(picks) + 1)),
        "groups": tuple(ASKER for _ in picks), "picks": picks, "handed_back": (), "unmet": 0,
        "refused_jobs": (), "refused_tasks": (),
    }  # fmt: skip
    return Decision(**known | fields)


def moved(source: str, event: str, target: str, at_ms: int = 60_000, **fields: Any) -> Transition:
    return Transition(order=ORDER, source=source, event=event, target=target, at_ms=at_ms, **fields)  # type: ignore[arg-type]  # drawn from strings


NAMES = (ORDER, VICTIM, "attempt_1", "container_1")
SUSPEND, RELEASE = Suspend(*NAMES, 1, 90_000), Release(*NAMES, 1)
KILL, WITHDRAW = Kill(*NAMES), Withdraw(*NAMES)
SAVED = moved("suspending", "manifest", "checkpointed", keys_done=9)
FREED = moved("checkpointed", "ended-as-ordered", "freed", why=ContainerHasEnded("suspended"))


def done(action: Suspend | Release | Kill | Withdraw, outcome: Outcome) -> Performed:
    return performed(55_000, action, outcome)


def story_of(*records: Record) -> OrderStory:
    (story,) = explain((HEADER, *records), ORDER).orders
    return story


def text_of(*records: Record, wanted: str = ORDER) -> str:
    return "\n".join(in_words(explain((HEADER, *records), wanted)))


# --- what was done and what it cost ---------------------------------------------------------------


@pytest.mark.parametrize(("told", "known"), [(-1, None), (0, 0), (1, 1)])
def test_a_checkpoint_of_no_keys_is_known_to_hold_none(told: int, known: int | None) -> None:
    saved = moved("suspending", "manifest", "checkpointed", keys_done=told)
    assert story_of(decided(pick()), saved).keys_done == known
    assert ("0 keys kept" in text_of(decided(pick()), saved)) is (known == 0)


def test_what_was_done_before_it_was_stopped_lost_nothing() -> None:
    ended = moved("suspending", "completed", "completed", why=ContainerHasEnded("completed"))
    story = story_of(decided(pick()), ended)
    assert (story.verb, story.lost_work_ms) == ("", 0)


@pytest.mark.parametrize(
    ("outcome", "verb"),
    [(Accepted(), "released"), (Unknown(), "released"), (Refused(ClientFault("gone")), "suspended")],
)
def test_a_release_that_was_refused_released_nothing(outcome: Outcome, verb: str) -> None:
    records = (decided(pick()), SAVED, done(RELEASE, outcome), FREED)
    assert story_of(*records).verb == verb
    assert f"cost     {verb} (suspension 1), no work lost" in text_of(*records)


@pytest.mark.parametrize(
    ("action", "withheld"), [(SUSPEND, True), (KILL, True), (RELEASE, False), (WITHDRAW, False)]
)
def test_an_order_was_never_asked_if_its_first_request_was_withheld(action: Any, withheld: bool) -> None:
    """A release or withdrawal that is withheld follows a request that was sent."""
    records = (decided(pick()), done(action, Withheld(NotEnforcing())))
    assert (story_of(*records).sent == "withheld") is withheld
    text = text_of(*records)
    assert ("result   none: the order was not sent\n" in text) is withheld
    assert ("cost     none: the order was not sent" in text) is withheld
    said = explain((HEADER, *records), VICTIM).rendered
    assert said == (["1 order was not sent"] if withheld else [])


def test_a_refused_request_says_why() -> None:
    story = story_of(decided(pick()), done(KILL, Refused(KillNotAllowed())))
    assert (story.sent, story.sent_at_ms) == ("refused", 55_000)
    assert story.sent_why == "the settings do not allow yarnctl to kill the task; its work would be lost"


def test_an_order_of_before_that_is_withheld_is_not_looked_for() -> None:
    """A controller begins anew: what it knows no order of changes no story."""
    again = (decided(pick()), HEADER, done(SUSPEND, Withheld(NotEnforcing())))
    assert story_of(*again).sent == ""


def test_an_order_never_asked_that_has_an_end_tells_it() -> None:
    withheld = done(SUSPEND, Withheld(NotEnforcing()))
    end = moved("suspending", "not-needed", "withdrawn", why=NoPendingRequests())
    text = text_of(decided(pick()), withheld, end)
    assert (
        "result   none: the order was not sent (withdrawn: no production application has pending requests)"
        in text
    )


@pytest.mark.parametrize("outcome", [Refused(ClientFault("gone")), Unknown()])
def test_a_kill_that_has_not_arrived_has_not_stopped_it_so_far(outcome: Outcome) -> None:
    end = moved("suspending", "kill", "killed", why=NoProgress(1))
    assert "cost     not stopped yet (order: suspend), killed after 10 s" in text_of(
        decided(pick()), end, done(KILL, outcome)
    )


def test_of_a_task_that_had_not_begun_nothing_is_known_since_when() -> None:
    """It is shown as beginning at the instant of the look."""
    text = text_of(decided(pick(since_ms=50_000)), done(KILL, Accepted()))
    assert "killed, 0 ms of work lost (it had processed no new keys)" in text


def test_work_of_unknown_size_counts_as_none_in_the_sum() -> None:
    lost = SavedLost(
        order=ORDER, attempt="attempt_2", at_ms=70_000, keys_lost=7, generation_expected=1, generation_found=0
    )
    (tally,) = explain((HEADER, decided(pick()), SAVED, FREED, lost), VICTIM).tallies
    assert tally.lost_work_ms == 0
    unseen = moved("suspending", "epoch-changed", "lost")
    (tally,) = explain((HEADER, decided(pick(), pick(2)), unseen), VICTIM).tallies
    assert (tally.orders, tally.lost_work_ms) == (2, 0)


@pytest.mark.parametrize(("wanted", "role"), [("attempt_2", "attempt"), ("container_2", "container")])
def test_a_task_that_was_handed_back_is_told_so(wanted: str, role: str) -> None:
    found = explain((HEADER, decided(pick(), handed_back=(pick(2),))), wanted)
    assert found.roles == [role]
    (refused,) = found.refused
    assert (refused.at_ms, refused.decision, refused.requester) == (50_000, 1, ASKER)
    assert (refused.why, refused.key) == ("handed back: it does not complete a container", (5_000,))
    assert explain((HEADER, decided(pick(), handed_back=(pick(2),))), "attempt_1").refused == []


def test_who_was_passed_over_is_said_once_and_only_if_somebody_was() -> None:
    passed = (RefusedTask(VICTIM, "attempt_9", (9_000,), "next", "container_9", "n1"),)
    assert "  not  " not in text_of(decided(pick(), pick(2)), wanted=VICTIM)
    text = text_of(decided(pick(), pick(2), refused_tasks=passed), wanted=VICTIM)
    assert text.count("not      attempt_9: next") == text.count("not      as for o-000001") == 1


@pytest.mark.parametrize(("count", "end"), [(1, "key 9000"), (3, "; 2 more until 52000 ms")])
def test_refusals_that_are_equal_become_one_line(count: int, end: str) -> None:
    passed = (RefusedTask(VICTIM, "attempt_9", (9_000,), "already-ordered", "container_9", "n1"),)
    records = [
        decided(number=each + 1, at_ms=50_000 + 1000 * each, refused_tasks=passed) for each in range(count)
    ]
    (line,) = (line for line in text_of(*records, wanted="attempt_9").splitlines() if "decision 1" in line)
    assert line.rstrip(")").endswith(end)


# --- at the gate --------------------------------------------------------------------------------------


def admitted(holding: dict[str, int]) -> str:
    """Return what is told of an admission while these applications hold containers past the gate."""
    desk = AtTheDesk()
    for name, containers in holding.items():
        desk.yarn.run(name, containers, user="bob")
    desk.ask(5)
    return explain(desk.records, "adm-a1b2-1").admissions[-1].text


@pytest.mark.parametrize(
    ("holding", "words"),
    [
        ({"a_1": 1, "a_2": 5, "a_3": 3}, "9 held without admission: a_2 5, a_3 3, a_1 1)"),
        ({"a_1": 1, "a_2": 5, "a_3": 3, "a_4": 1}, "10 held without admission: a_2 5, a_3 3, a_1 1, ...)"),
    ],
)
def test_the_largest_of_those_past_the_gate_are_named(holding: dict[str, int], words: str) -> None:
    assert words in admitted(holding)


def test_a_round_that_changes_nothing_for_it_is_not_told() -> None:
    """Of an application whose admission another round leaves as it was, that round tells nothing."""
    desk = AtTheDesk()
    first = desk.ask(3)
    desk.submit(first)
    desk.go(2_000)
    before = len(explain(desk.records, "application_1_0001").admissions)
    rounds = sum(isinstance(record, AdmissionRound) for record in desk.records)
    desk.ask(2)
    assert sum(isinstance(record, AdmissionRound) for record in desk.records) > rounds
    assert len(explain(desk.records, "application_1_0001").admissions) == before


def test_the_end_of_another_admission_is_not_told() -> None:
    desk = AtTheDesk()
    first, other = desk.ask(2), desk.ask(1)
    desk.withdraw(other.admission)
    assert desk.state(other) == "withdrawn"
    told = [each.text for each in explain(desk.records, first.admission).admissions]
    assert told
    assert not any("withdrawn" in each for each in told)
    assert any("withdrawn" in each.text for each in explain(desk.records, other.admission).admissions)


@pytest.mark.parametrize(("at_ms", "is_span"), [(10**11 - 1, True), (10**11, False)])
def test_an_instant_before_march_1973_is_one_of_a_virtual_run(at_ms: int, is_span: bool) -> None:
    assert (instant(at_ms) == f"at {at_ms} ms") is is_span
