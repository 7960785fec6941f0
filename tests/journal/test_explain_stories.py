"""Explain answers for an application, a container, an attempt, an order: on journals of real runs.

Each journal is written by the emulator under one scheme; what a story says is held against the run's
own figures.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import get_args

import msgspec
import pytest

from emulator.cluster.faults import StoreDown
from emulator.scenario import Scenario, Tuning, prepare, setup
from emulator.virtual.run import run_scheme
from emulator.virtual.schemes import SCHEMES
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.case import RefusedTask
from yarnctl.deciding.model import Accepted, Kill, Refused, Unknown
from yarnctl.deciding.policies import FOREVER_MS, JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.reasons.demand import NoTaskMayStop
from yarnctl.deciding.reasons.orders import ContainerHasEnded, NoPendingRequests, NoProgress, RequestGone
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import (
    Decision,
    Header,
    Ranked,
    Ranking,
    Refusal,
    Resumed,
    Return,
    SavedLost,
    Transition,
    performed,
)
from yarnctl.deciding.releaser import REASONS, Reason
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.explaining.explanation_text import POLICIES, key_words
from yarnctl.journal.file import JournalFile
from yarnctl.journal.rendering import instant, said, span
from yarnctl.short_ids import ids_in
from yarnctl.units import Resources

HURRIED, VICTIM = "application_1_000002", "application_1_000001"
pytestmark = pytest.mark.xdist_group("explain stories")  # what is made once for all is made in one worker

SMALL = Scenario(
    production="synthetic:production-s", research="synthetic:research-xl", nodes=6, slots=8, schemes=("kill",)
)
STORE_DOWN = StoreDown(at_ms=50_000, until_ms=90_000)


def played(scheme: str, **fields):
    """Return the records of one run, and what came of it."""
    prepared = prepare(msgspec.structs.replace(SMALL, **fields))
    journal = MemoryJournal()
    result = run_scheme(setup(prepared.scenario), prepared.jobs, SCHEMES[scheme], journal)
    return tuple(journal.records), result


@pytest.fixture(scope="module")
def suspended():
    return played("natjam")


@pytest.fixture(scope="module")
def killed():
    return played("kill")


@pytest.fixture(scope="module")
def timed_out():
    return played("natjam", faults=(STORE_DOWN,), tuning=Tuning(kill_timeout_ms=3000, on_timeout="kill"))


@pytest.fixture(scope="module")
def given_up():
    return played("natjam", faults=(STORE_DOWN,), tuning=Tuning(kill_timeout_ms=3000))


def decisions_of(records):
    return [record for record in records if isinstance(record, Decision)]


def text_of(records, wanted: str) -> str:
    return "\n".join(in_words(explain(records, wanted)))


# --- what it cost -----------------------------------------------------------------------------


def test_a_suspended_victim_lost_nothing(suspended):
    records, result = suspended
    found = explain(records, VICTIM)
    assert {story.verb for story in found.orders} == {"released"}
    (tally,) = found.tallies
    assert (tally.role, tally.orders, tally.lost_work_ms) == ("victim", result.suspensions, 0)
    assert "cost     released (suspension 1), no work lost, " in text_of(records, "o-000001")


def test_what_coming_back_was_to_cost_and_did_stand_side_by_side(suspended):
    """In virtual time the one is known from the other, but for the heartbeats in between."""
    records, _ = suspended
    told = [record for record in records if isinstance(record, Return)]
    assert told
    for record in told:
        (story,) = explain(records, record.order).orders
        back = story.came_back
        assert back is not None
        assert (back.cost_ms, back.attempt) == (record.cost_ms, record.attempt)
        assert back.attempt.rpartition("_")[0] == story.attempt.rpartition("_")[0] != back.attempt
        parts = (back.leave_ms, back.launch_ms, back.shuffle_ms, back.skip_ms)
        assert back.cost_ms == sum(parts)
        assert story.predicted_cost_ms == record.predicted_ms
        assert abs(record.predicted_ms - record.cost_ms) < 5000
    text = text_of(records, told[0].order)
    assert (
        f"resume   predicted cost {span(told[0].predicted_ms)}, measured {span(told[0].cost_ms)} (leave "
        in text
    )


def test_a_killed_victim_says_so_and_what_it_lost(killed):
    records, result = killed
    found = explain(records, VICTIM)
    assert {story.verb for story in found.orders} == {"killed"}
    assert len(found.orders) == result.kills > 0
    assert found.tallies[0].lost_work_ms == result.lost_work_ms > 0
    story = found.orders[0]
    text = text_of(records, story.order)
    since_ms = story.working_since_ms
    assert (
        f"cost     killed, {span(story.lost_work_ms or 0)} of work lost (since {since_ms} ms), freed" in text
    )
    assert "suspension" not in text


def test_a_kill_after_a_time_out_is_a_kill(timed_out):
    records, result = timed_out
    stories = explain(records, VICTIM).orders
    ended = [story for story in stories if story.state == "killed"]
    assert len(ended) == result.kills > 0
    assert sum(story.lost_work_ms or 0 for story in stories) == result.lost_work_ms > 0
    text = text_of(records, ended[0].attempt)
    assert "result   killed: no progress for 3 s" in text
    assert f"cost     killed, {span(ended[0].lost_work_ms or 0)} of work lost" in text


def test_what_was_given_up_goes_on_and_loses_nothing(given_up):
    records, _ = given_up
    story = next(story for story in explain(records, VICTIM).orders if story.state == "given_up")
    text = text_of(records, story.order)
    assert "result   given up: no progress for 3 s" in text
    assert "cost     not stopped, no work lost, given up after" in text
    assert "suspension" not in text


@pytest.fixture(scope="module")
def crowded():
    """Many jobs of both classes: orders are withdrawn, exchanged, and rooms are taken by others."""
    return played(
        "natjam", production="packaged:fb2009@18-19", research="packaged:fb2009@21-22", production_peak=1.0,
        research_peak=1.5, nodes=20,
    )  # fmt: skip


def stories_of(records):
    """Return the story of every order of a journal."""
    names = [name for record in decisions_of(records) for name in record.orders]
    return [explain(records, name).orders[0] for name in names[:60]]


def test_withdrawn_taken_and_exchanged_orders_are_told(crowded):
    records, _ = crowded
    told: dict[tuple[str, str], Transition] = {}
    for record in records:
        if isinstance(record, Transition) and record.target in ("withdrawn", "misdirected"):
            told.setdefault((record.target, record.source), record)
    withdrawn = told["withdrawn", "suspending"]
    text = text_of(records, withdrawn.order)
    assert f"result   withdrawn: {said(withdrawn.why)}" in text
    assert "cost     not stopped, no work lost, withdrawn after" in text
    taken = told["misdirected", "freed"]
    (story,) = explain(records, taken.order).orders
    text = text_of(records, taken.order)
    assert "\n  result   misdirected\n" in text
    assert (
        f"freed    {taken.application} received {taken.container}; the order was for {story.requester}"
        in text
    )
    assert "application" in explain(records, taken.application).roles
    assert taken.order in text_of(records, taken.container)
    exchanged = [each for each in stories_of(records) if each.exchanged_for]
    assert exchanged
    text = text_of(records, exchanged[0].order)
    assert f"; {exchanged[0].requester} was given {exchanged[0].exchanged_for} in exchange" in text


def test_nothing_repeats_itself(suspended, killed, crowded):
    for records, _ in (suspended, killed, crowded):
        text = text_of(records, VICTIM)
        for story in stories_of(records):
            assert f"{story.state}: {story.state}" not in text
    text = text_of(suspended[0], "o-000001")
    assert "\n  result   granted\n" in text
    assert f"\n  freed    {HURRIED} received container_" in text


# --- who, and for whom --------------------------------------------------------------------------


def test_a_hurried_application_names_who_gave_for_it(suspended):
    records, result = suspended
    found = explain(records, HURRIED)
    (tally,) = found.tallies
    assert (tally.role, tally.others) == ("requester", {VICTIM: result.suspensions})
    lines = in_words(found)
    orders = result.suspensions
    assert lines[0] == f"{HURRIED} (application)"
    assert lines[1] == (
        f"  {orders} containers ordered for it, from {VICTIM} ({orders}): {orders} released;"
        f" {orders} granted; 0 ms of work lost"
    )
    named = "application_1_000002 (p-production-s, user hadoop, queue production)"
    assert f" for {named}, 1 container short (pending requests fit on no node)" in lines[3]


def test_a_victim_names_for_whom_it_gave(killed):
    records, result = killed
    line = in_words(explain(records, VICTIM))[1]
    assert line.startswith(f"  {result.kills} containers ordered from it, for {HURRIED} ({result.kills}):")
    assert line.endswith(f"; {span(result.lost_work_ms)} of work lost")


def test_an_application_that_was_taken_from_was_not_left_alone(suspended):
    """It stands among the next ones with its key after the pick, which is no refusal."""
    found = explain(suspended[0], VICTIM)
    assert not [refused for refused in found.refused if refused.why == "next"]


def test_of_one_decision_the_next_ones_are_named_once(suspended):
    records, _ = suspended
    decision = next(each for each in decisions_of(records) if len(each.orders) > 1)
    text = text_of(records, HURRIED)
    assert f"not      as for {decision.orders[0]}" in text


def test_an_application_that_asked_in_vain(crowded):
    records, _ = crowded
    refusal = next(record for record in records if isinstance(record, Refusal))
    text = text_of(records, refusal.trigger.application)
    assert "requests without an order:" in text
    assert f"at {refusal.at_ms} ms no decision for {refusal.trigger.application}: {said(refusal.why)}" in text


# --- containers -----------------------------------------------------------------------------------


def passed_over(records):
    """Return a task, with its application, that was ranked and never taken."""
    taken = {pick.task.attempt for record in decisions_of(records) for pick in record.picks}
    for record in decisions_of(records):
        for refused in record.refused_tasks:
            if refused.attempt not in taken:
                return refused
    raise AssertionError("every task that was shown was taken")


def test_the_container_of_a_task_that_was_passed_over(suspended):
    records, _ = suspended
    task = passed_over(records)
    by_container, by_attempt = explain(records, task.container), explain(records, task.attempt)
    assert (by_container.roles, by_container.orders) == (["container"], [])
    assert by_container.refused == by_attempt.refused
    assert {each.why for each in by_container.refused} >= {task.why}
    heading, *_ = in_words(by_container)
    assert heading == f"{task.container} (container of {task.attempt}, {VICTIM}, on {task.node})"


def test_the_container_of_a_task_that_was_ranked_before_it_was_taken(suspended):
    records, _ = suspended
    first = decisions_of(records)[0].refused_tasks[0].attempt
    story = explain(records, first).orders[0]
    found = explain(records, story.container)
    assert found.roles == ["container"]
    assert [each.order for each in found.orders] == [story.order]
    assert found.refused == explain(records, first).refused != []


def test_a_refusal_without_containers_is_found_once_a_case_names_it(suspended):
    """A refusal's record names attempts only; the container is learnt from a later decision."""
    records, _ = suspended
    header, decision = records[0], decisions_of(records)[0]
    pick = decision.picks[0]
    refusal = Refusal(
        decision.at_ms - 1000,
        decision.trigger,
        NoTaskMayStop(),
        (),
        (RefusedTask(pick.application, pick.task.attempt, (7,), "just-resumed"),),
    )
    found = explain((header, refusal, decision), pick.task.container)
    assert [(each.at_ms, each.why) for each in found.refused] == [(refusal.at_ms, "just-resumed")]
    assert found.roles == ["container"]


# --- odd ends -----------------------------------------------------------------------------------


def begun(records):
    """Return the header, the first decision and its first order."""
    header, decision = records[0], decisions_of(records)[0]
    assert isinstance(header, Header)
    return header, decision, decision.orders[0]


def moved(order, source, event, target, **fields):
    return Transition(order=order, source=source, event=event, target=target, at_ms=60_000, **fields)


def test_an_order_without_an_end(suspended):
    header, decision, order = begun(suspended[0])
    text = "\n".join(in_words(explain((header, decision), order)))
    assert "result   the order is open: ordered" in text
    assert "cost     not stopped yet (order: suspend)" in text


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ({"event": "ended-otherwise", "target": "lost", "why": ContainerHasEnded("lost")},
         "ended, not by yarnctl, {lost} of work lost (since {since} ms)"),
        ({"event": "completed", "target": "completed", "why": ContainerHasEnded("completed")},
         "completed before it stopped, no work lost"),
        ({"event": "epoch-changed", "target": "lost", "why": RequestGone()}, "end not observed"),
    ],
)  # fmt: skip
def test_ends_that_nobody_ordered(suspended, end, words):
    header, decision, order = begun(suspended[0])
    since_ms = decision.picks[0].task.since_ms
    found = explain((header, decision, moved(order, "suspending", **end)), order)
    text = "\n".join(in_words(found))
    assert f"result   {end['target']}: {said(end['why'])}" in text
    assert (
        f"cost     {words.format(lost=span(60_000 - since_ms), since=since_ms)}, {end['target']} after"
        in text
    )


@pytest.mark.parametrize(
    ("outcome", "verb"), [(Accepted(), "killed"), (Refused(ClientFault("it is gone")), ""), (Unknown(), "")]
)
def test_only_a_kill_that_was_accepted_counts(suspended, outcome, verb):
    header, decision, order = begun(suspended[0])
    pick = decision.picks[0]
    kill = Kill(order, pick.application, pick.task.attempt, pick.task.container)
    end = moved(order, "suspending", "kill", "killed", why=NoProgress(1))
    (story,) = explain((header, decision, end, performed(60_000, kill, outcome)), order).orders
    assert story.verb == verb
    assert bool(story.lost_work_ms) is (verb == "killed")


def test_a_withdrawn_kill_has_still_killed(killed):
    """A kill that was accepted is never taken back, whatever becomes of the order."""
    header, decision, order = begun(killed[0])
    pick = decision.picks[0]
    kill = Kill(order, pick.application, pick.task.attempt, pick.task.container)
    done = performed(decision.at_ms, kill, Accepted())
    end = moved(order, "suspending", "not-needed", "withdrawn", why=NoPendingRequests())
    text = "\n".join(in_words(explain((header, decision, done, end), order)))
    assert "result   withdrawn: no production application has pending requests" in text
    assert "cost     killed, " in text


def test_a_checkpoint_is_kept_though_its_attempt_is_killed(suspended):
    header, decision, order = begun(suspended[0])
    pick = decision.picks[0]
    kill = Kill(order, pick.application, pick.task.attempt, pick.task.container)
    records = (
        header,
        decision,
        moved(order, "suspending", "manifest", "checkpointed", keys_done=9),
        moved(order, "checkpointed", "kill", "killed", why=NoProgress(1)),
        performed(60_000, kill, Accepted()),
    )
    text = "\n".join(in_words(explain(records, order)))
    assert "killed, work since its checkpoint, if any, is lost, 9 keys kept" in text


def test_an_order_outlives_a_controller_that_is_started_again(suspended):
    header, decision, order = begun(suspended[0])
    end = moved(order, "suspending", "give-up", "given_up", why=NoProgress(1))
    goes_on = Resumed(59_000)
    assert explain((header, decision, header, goes_on, end), order).orders[0].state == "given_up"
    assert explain((header, decision, header, end), order).orders[0].state == "ordered"


@pytest.mark.parametrize(
    ("keys", "found", "cost", "words"),
    [
        (7, 0, "lost 7 keys", "LOST: attempt r_000003_1 did not use the checkpoint of 7 keys"),
        (7, 1, "lost at most 7 keys", "LOST: attempt r_000003_1 did not use the checkpoint of 7 keys"),
        (-1, 0, "lost 9 keys", "LOST: attempt r_000003_1 did not use the checkpoint of 9 keys"),
    ],
)
def test_saved_work_that_was_not_used_is_told_as_lost(suspended, keys, found, cost, words):
    """The keys are those that the runner told, else those of the manifest that was seen."""
    header, decision, order = begun(suspended[0])
    saved = moved(order, "suspending", "manifest", "checkpointed", keys_done=9)
    ended = moved(order, "checkpointed", "ended-as-ordered", "freed", why=ContainerHasEnded("suspended"))
    lost = SavedLost(
        order=order, attempt="r_000003_1", at_ms=70_000, keys_lost=keys, generation_expected=2,
        generation_found=found,
    )  # fmt: skip
    records = (header, decision, saved, ended, lost)
    text = text_of(records, order)
    assert f"cost     suspended (suspension 1), {cost}, 9 keys saved" in text
    assert f"; {words} (it started from generation {found}, not 2)" in text
    assert "no work lost" not in text
    (story,) = explain(records, order).orders
    assert (story.lost_work_ms, story.came_back) == (None, None)
    assert story.saved_lost is not None
    assert story.saved_lost.keys_lost == (keys if keys >= 0 else 9)
    assert "no work lost" in text_of(records[:-1], order)


def test_a_priority_is_told_when_it_changes(suspended):
    header = suspended[0][0]
    ranks = [
        Ranking(at_ms, (Ranked("other", 1, 0, 9), Ranked(VICTIM, 5, 0, level)))
        for at_ms, level in ((1000, 3), (2000, 3), (3000, 4))
    ]
    found = explain((header, *ranks), VICTIM)
    assert [(each.at_ms, each.place, each.priority) for each in found.priorities] == [
        (1000, 2, 3),
        (3000, 2, 4),
    ]
    assert "  at 3000 ms priority 4, rank 2 (urgency 5 ms)" in in_words(found)


def test_every_reason_has_words():
    assert set(REASONS) == set(get_args(Reason)) - {""}


# --- the command ----------------------------------------------------------------------------------


def test_the_command_tells_the_same_in_text_and_in_json(tmp_path, capsys, killed):
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=False) as journal:
        journal.append(list(killed[0]))
    task = passed_over(killed[0])
    for wanted in (HURRIED, VICTIM, "o-000001", task.container, task.attempt):
        assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), wanted]) == 0
        assert capsys.readouterr().out.splitlines() == in_words(explain(killed[0], wanted))
        assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), wanted, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found == json.loads(msgspec.json.encode(explain(killed[0], wanted)))
    assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), "application_9_000009"]) == 1
    said = capsys.readouterr()
    remedy = "it contains decisions and their candidates only; see yarnctl apps for other jobs"
    assert (said.out, said.err) == ("", f"error: {path}: no record contains application_9_000009; {remedy}\n")


def test_a_journal_finds_an_id_by_its_end(tmp_path, capsys, killed):
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=False) as journal:
        journal.append(list(killed[0]))
    task = passed_over(killed[0])
    for whole in (HURRIED, task.attempt, task.container):
        short = "…" + whole.partition("_")[2]
        assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), short]) == 0
        assert capsys.readouterr().out.splitlines() == in_words(explain(killed[0], whole))
    assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), "0_0"]) == 1
    known = set(ids_in(msgspec.json.encode(killed[0]).decode()))
    ends = Counter(each[-3:] for each in known if each.startswith("attempt_"))
    end, _ = ends.most_common(1)[0]
    assert ends[end] > 1
    assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), end]) == 2
    assert f"error: {end}: is ambiguous: attempt_" in capsys.readouterr().err


def test_a_decision_is_explained_by_its_number(tmp_path, capsys, suspended):
    records, _ = suspended
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=False) as journal:
        journal.append(list(records))
    decision = decisions_of(records)[1]
    assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), str(decision.number)]) == 0
    lines = capsys.readouterr().out.splitlines()
    trigger = decision.trigger
    assert lines[0] == f"{decision.number} (decision)"
    assert lines[1] == (
        f"  at {decision.at_ms} ms for {trigger.application} (p-production-s, user hadoop, queue production):"
        f" {trigger.shortfall} containers short ({said(trigger.why)}), {len(decision.orders)} chosen,"
        f" {decision.unmet} unmet"
    )
    told = {line.partition(":")[0] for line in lines if line.startswith("o-")}
    assert told == set(decision.orders)
    found = explain(records, str(decision.number))
    assert {story.state for story in found.orders} == {"granted"}  # to their end, as an order's own id tells
    assert exit_status_of(PROGRAM, ["explain", "--journal", str(path), "4711"]) == 1


def test_a_job_is_explained_as_its_application(suspended):
    assert explain(suspended[0], VICTIM.replace("application", "job")) == explain(suspended[0], VICTIM)


def test_keys_policies_and_instants_are_said_in_words(suspended):
    records, _ = suspended
    story = explain(records, "o-000001").orders[0]
    assert story.total is not None
    (job_key,), (task_key,) = story.job_key, story.task_key
    percent = -100 * job_key / (story.total[0] * story.total[1])
    text = text_of(records, "o-000001")
    assert (
        f"first by MR: most resources first ({percent:.0f} % of the cluster; key {job_key}); task first"
        f" by SRT: shortest remaining time first ({span(task_key)} left; key {task_key})"
    ) in text


TOTAL = Resources(12_288, 12)


@pytest.mark.parametrize(
    ("policy", "key", "total", "words"),
    [("MR", (-73_728,), TOTAL, "50 % of the cluster; key -73728"),
     ("LR", (73_728,), TOTAL, "50 % of the cluster; key 73728"), ("MR", (-73_728,), None, "key -73728"),
     ("MR", (-73_728,), Resources(12_288, 0), "key -73728"),
     ("SRT", (13_470,), None, "13.5 s left; key 13470"), ("LRT", (-13_470,), None, "13.5 s left; key -13470"),
     ("SRT", (FOREVER_MS,), None, "remaining time unknown; key -"),
     ("MDF", (-FOREVER_MS, -5), None, "no deadline; key -/-5"),
     ("MDF", (-5_000, -5), None, "deadline at 5000 ms; key -5000/-5"),
     ("MLF", (-FOREVER_MS, -5), None, "no deadline; key -/-5"),
     ("MLF", (-2_500, -5), None, "laxity 2.5 s; key -2500/-5"),
     ("MLF", (-90_000, -5), None, "laxity 90 s; key -90000/-5"),
     ("MLF", (2_500, -5), None, "laxity -2.5 s; key 2500/-5"), ("PR", (17,), TOTAL, "key 17"),
     ("", (17,), None, "key 17"), ("MR", (), TOTAL, "no key")],
)  # fmt: skip
def test_a_key_in_words(policy, key, total, words):
    assert key_words(policy, key, total) == words


def test_every_policy_has_a_name_in_words():
    assert set(POLICIES) == {*JOB_POLICIES, *TASK_POLICIES}


def test_an_instant_of_a_live_daemon_is_local_time(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert instant(1_795_290_329_716) == "at 2026-11-22 01:15:29.716"
        assert instant(3_000) == "at 3000 ms"
        assert instant(2**62) == f"at {2**62} ms"
    finally:
        monkeypatch.undo()
        time.tzset()
