"""Golden tables of borders: where a rule begins and ends. No test noticed when one of these was changed.

Unless said otherwise: production is guaranteed 95, research 5; everything is full; sizes are slots.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import (
    GUARD_FREE,
    app,
    candidate,
    case,
    cluster,
    picked,
    row,
    seen,
    size,
    task,
    with_,
)
from yarnctl.deciding.case import Candidate, Pick
from yarnctl.deciding.controller import Controller, Remembered
from yarnctl.deciding.forecast import QueueModel, over_guarantee
from yarnctl.deciding.ledger import Ledger, oldest_freed, oldest_running
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    CameBack,
    ContainerEnded,
    ContainerGranted,
    ManifestSeen,
    QueueView,
    SetPriority,
    Suspend,
)
from yarnctl.deciding.order import Order, OrderNames, new_order
from yarnctl.deciding.planning import beyond, excess_orders, in_suspend_order
from yarnctl.deciding.policies import FOREVER_MS, JobUsage
from yarnctl.deciding.preemptor import DemandInput, demand, is_preemptable
from yarnctl.deciding.prioritising import in_order, ranked
from yarnctl.deciding.queue_hold import QueueLimits, capping
from yarnctl.deciding.records import Refusal, Requests, Return, Transition
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.deciding.settlement import Settlement
from yarnctl.units import Resources, dominant


def needs(snapshot, settings=DEFAULT, doubted=None):
    """Return {application: containers that must be made room for}."""
    found = demand(DemandInput(snapshot, 0, 0, (), doubted or {}), Ledger(), settings)
    return {
        wish.application.application: sum(n.containers for n in wish.shortfalls)
        for wish in found.applications
    }


def suspended(step):
    return sum(isinstance(action, Suspend) for action in step.actions)


# --- how many may be in flight ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "least", "first", "second", "picks"),
    [
        (0.1, 1, 3, 4, 5),  # 10 % of 50 are 5: what the first requester is given counts for the second
        (0.1, 1, 5, 4, 5),  # nothing is left for the second
        (0.1, 1, 2, 2, 4),  # both fit
        (0.01, 0, 3, 4, 1),  # 1 % of 50 is none: but room for one is never refused while nothing is in flight
        (1.0, 0, 3, 4, 7),  # no cap
    ],
)
def test_the_cap_holds_for_all_askers_of_one_look_together(ratio, least, first, second, picks):
    settings = with_(GUARD_FREE, in_flight_ratio_max=ratio, in_flight_least=least)
    requesters = [app("p1", "production", 1, first), app("p2", "production", 1, second, rank=1)]
    steps = Controller(settings, validate=True)
    step = steps.step(seen(cluster(app("r1", "research", 50), *requesters), {"r1": row("r1", 49)}))
    assert suspended(step) == picks


@pytest.mark.parametrize(
    ("least", "picks"),
    [
        (1, 2),  # an ask of two slots takes two tasks: nothing was in flight, so it is made room for
        (3, 2),  # the second ask would make four of three
        (4, 4),
    ],
)
def test_the_cap_counts_containers_and_never_splits_an_ask(least, picks):
    settings = with_(GUARD_FREE, in_flight_ratio_max=0.0, in_flight_least=least)
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 2, ask=2))
    step = Controller(settings, validate=True).step(seen(snapshot, {"r1": row("r1", 49)}))
    assert suspended(step) == picks


# --- what a queue gives -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "slots", "pending", "need"),
    [
        (6, 2, 1, {}),  # one task of two slots less, and it stands at 4 of 5
        (8, 2, 3, {"p1": 1}),  # 8 - 2 = 6; another one would leave 4
        (7, 2, 3, {"p1": 1}),  # 7 - 2 = 5 is the guarantee itself
        (10, 1, 9, {"p1": 5}),  # along a run of single slots: five, and then it stands at its guarantee
        (10, 1, 5, {"p1": 5}),
    ],
)
def test_a_queue_gives_only_what_it_has_beyond_its_guarantee(used, slots, pending, need):
    """Production would be served first all the while: only the guarantee of research ends the run."""
    research = app("r1", "research", used // slots, slots=slots)
    if used % slots:
        research = msgspec.structs.replace(research, used=size(used))
    snapshot = cluster(research, app("p1", "production", 2, pending, ask=slots), total=100)
    assert needs(snapshot) == need


@pytest.mark.parametrize(
    ("production", "research", "need"),
    [
        # (guaranteed, used) of production and research before; one slot at a time
        ((20, 10), (10, 21), {"p1": 11}),  # at last 10 of 10 against 20 of 20, a tie: production is larger
        ((10, 10), (20, 42), {"p1": 7}),  # the eighth: 34 of 20 against 17 of 10, a tie: research is larger
        ((20, 20), (10, 18), {"p1": 5}),  # 13 of 10 against 24 of 20; the sixth: 12 of 10 against 25 of 20
        ((10, 17), (20, 35), {}),  # the first is a tie already, and research is larger
        ((20, 34), (10, 18), {"p1": 1}),  # the first is a tie, and production is larger
    ],
)
def test_who_would_be_served_after_the_giver_has_lost_its_room(production, research, need):
    guaranteed = {"production": production[0], "research": research[0]}
    rows = [app("r1", "research", research[1]), app("p1", "production", production[1], 20)]
    assert needs(cluster(*rows, guaranteed=guaranteed, largest_node=8)) == need


def queue(name, guaranteed, used):
    return QueueModel(QueueView(queue=name, guaranteed=guaranteed, maximum=size(100), used=used))


@pytest.mark.parametrize(
    ("queues", "order"),
    [
        ([("a", 10, 5), ("b", 20, 5)], "b a"),  # lowest used / guaranteed
        ([("a", 10, 5), ("b", 20, 10)], "b a"),  # equal: the larger guarantee
        ([("b", 10, 5), ("a", 10, 5)], "a b"),  # equal in both: the name
        ([("a", 0, 0), ("b", 10, 99)], "b a"),  # without a guarantee: last
        ([("a", 0, 2), ("b", 0, 1)], "b a"),  # ... and among those who uses less memory
    ],
)
def test_the_serving_order_of_queues(queues, order):
    models = [queue(name, size(guaranteed), size(used)) for name, guaranteed, used in queues]
    assert " ".join(model.view.queue for model in sorted(models, key=QueueModel.key)) == order


@pytest.mark.parametrize(
    ("used", "over"),
    [
        (Resources(6144, 3), True),  # more memory than it is guaranteed is enough
        (Resources(3072, 6), True),  # or more cores
        (Resources(5632, 5), False),  # 10 % more are within the tolerance
        (Resources(5633, 5), True),
    ],
)
def test_a_queue_is_over_its_guarantee_in_any_component(used, over):
    view = QueueView(queue="research", guaranteed=size(5), maximum=size(100), used=used)
    assert over_guarantee(view, used, 100_000) is over


# --- who asks, who gives ----------------------------------------------------------------------


@pytest.mark.parametrize(("doubted", "need"), [(0, {"p1": 3}), (1, {"p1": 2}), (3, {}), (4, {})])
def test_no_room_is_made_for_an_ask_that_may_be_an_echo(doubted, need):
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 3))
    assert needs(snapshot, doubted={"p1": doubted}) == need


@pytest.mark.parametrize(
    ("settings", "givers"),
    [
        (DEFAULT, "c"),  # b is less urgent, too, but YARN serves it first: it would take its room back
        (PAPER, "b c"),  # the paper's rule knows nothing of that
    ],
)
def test_with_deadlines_who_is_served_before_the_asker_keeps_its_room(settings, givers):
    rows = [
        app("a", "default", 1, 1, rank=5, deadline=1000),
        app("b", "default", 5, rank=1, deadline=2000),
        app("c", "default", 5, rank=9, deadline=3000),
        app("d", "default", 5, rank=9, deadline=1000),  # as urgent as the requester
    ]
    look = DemandInput(cluster(*rows, guaranteed={"default": 100}), 0, 0)
    settings = with_(settings, mode="deadlines", job_policy="MDF")
    jobs = [candidate(name, 5) for name in "bcd"]
    found = is_preemptable(jobs, look, settings, rows[0])
    assert " ".join(job.usage.application for job in found) == givers


# --- after a restart --------------------------------------------------------------------------


def an_order(number=1, requester="p1", *, serves=1, ask=1, at_ms=0, node="n1", settings=DEFAULT, group=""):
    name = f"o-{number:06d}"
    pick = Pick("r1", task(f"r1.{number}", node=node), (), (), size(ask), serves)
    return new_order(pick, OrderNames(name, group or name, 1), requester, at_ms, settings, None)


@pytest.mark.parametrize(
    ("age_ms", "sent_again"),
    [
        (0, True),
        (11_999, True),
        (12_000, False),  # as old as the time-out: whoever was to stop has long been given up
        (20_000, False),
    ],
)
def test_a_request_that_is_too_old_is_not_sent_again_after_a_restart(age_ms, sent_again):
    ledger = Ledger()
    ledger.add(an_order(at_ms=1000))
    request = Suspend("o-000001", "r1", "r1.1", "r1.1c", 1, 13_000)
    ledger.due = [request]
    steps = Controller(DEFAULT, remembered=Remembered(ledger, 1000))
    step = steps.step(seen(None, now_ms=1000 + age_ms))
    asked = [action for record in step.records if isinstance(record, Requests) for action in record.actions]
    assert (request in asked) is sent_again
    assert (request in step.actions) is sent_again


# --- the ledger -------------------------------------------------------------------------------


def freed(ledger, order, at_ms):
    ledger.add(order)
    ledger.happen(order.order, "ended-as-ordered", at_ms)
    return ledger.open[order.order]


@pytest.mark.parametrize(
    ("as_of_ms", "coming", "spoken_for"),
    [
        (99, 1, 0),  # freed since: the snapshot still shows its container
        (100, 0, 1),  # the room stands free in the snapshot
        (101, 0, 1),
    ],
)
def test_room_that_came_free_after_the_snapshot_is_still_coming(as_of_ms, coming, spoken_for):
    ledger = Ledger()
    freed(ledger, an_order(), 100)
    assert len(list(ledger.expected_room(as_of_ms))) == coming
    assert len(list(ledger.freed_unassigned(as_of_ms))) == spoken_for


def test_an_order_promises_as_many_asks_as_its_room_completes():
    """One large container, two small asks; they stay promised to looks older than the grant."""
    ledger = Ledger()
    freed(ledger, an_order(serves=2), 100)
    assert ledger.promised("p1") == 2
    ledger.happen("o-000001", "granted", 200)
    assert (ledger.promised("p1"), ledger.promised("p1", 199), ledger.promised("p1", 200)) == (0, 2, 0)


@pytest.mark.parametrize(
    ("ending", "came"),
    [
        ("killed", 1),  # others killed it: its room is free, in looks from before it is still held
        ("failed", 1),
        ("lost", 0),  # the node is lost, and its room with it
    ],
)
@pytest.mark.parametrize("verb", ["suspend", "kill after a time-out"])
def test_the_room_of_a_lost_node_does_not_come(ending, came, verb):
    settings = with_(DEFAULT, on_timeout="kill")
    work = Settlement(Ledger(), settings, releases_itself=False)
    work.ledger.add(an_order())
    if verb != "suspend":
        work.time_out(20_000)
        assert [order.state for order in work.ledger.settled.values()] == ["killed"]
    work.take([ContainerEnded("r1.1c", "r1", "n1", ending, 20_100)])
    assert len(list(work.ledger.expected_room(20_099))) == came
    assert len(list(work.ledger.expected_room(20_100))) == 0


# --- room that nobody was seen to get ---------------------------------------------------------


@pytest.mark.parametrize(
    ("freed_at_ms", "seen_at_ms", "waits", "told"),
    [
        (0, 11_000, 1, True),
        (0, 2000, 1, False),  # that look is older than ``look_age_max_ms``
        (0, 11_000, 0, False),  # it waits for nothing
        (0, 7001, 1, True),
        (0, 7000, 1, False),  # 5 s old: too old to say anything of now
    ],
)
def test_an_asker_still_waits_if_it_was_seen_to_lately(freed_at_ms, seen_at_ms, waits, told):
    assert unclaimed_why(freed_at_ms, seen_at_ms, waits, DEFAULT).requester_waits is told


@pytest.mark.parametrize(("seen_after_ms", "told"), [(1999, False), (2000, True)])
def test_a_look_soon_after_the_room_came_free_says_nothing_of_who_waits(seen_after_ms, told):
    """The scheduler needs a moment, ``expire_ms``, to give free room away."""
    settings = with_(DEFAULT, kill_timeout_ms=3000)
    assert unclaimed_why(0, seen_after_ms, 1, settings).requester_waits is told


def unclaimed_why(freed_at_ms, seen_at_ms, waits, settings):
    work = Settlement(Ledger(), settings, releases_itself=False)
    freed(work.ledger, an_order(), freed_at_ms)
    work.pending, work.pending_at_ms = {"p1": waits}, seen_at_ms
    (record,) = work.time_out(freed_at_ms + settings.kill_timeout_ms).records
    assert isinstance(record, Transition)
    assert record.event == "unclaimed"
    return record.why


# --- surplus ----------------------------------------------------------------------------------


def entered(*orders: Order) -> Ledger:
    ledger = Ledger()
    for order in orders:
        ledger.add(order)
    return ledger


SURPLUS = [
    # orders (requester, serves)      due                     moved to              taken back
    ([("p1", 1), ("p1", 1)], {"p1": 2}, {}, []),  # all are due
    ([("p1", 1), ("p1", 1)], {"p1": 1}, {}, ["o-000002"]),  # the youngest is handed back
    ([("p1", 1), ("p1", 1)], {"p1": 0, "p2": 1}, {"o-000001": "p2"}, ["o-000002"]),  # p2 lacks one, not two
    ([("p1", 1), ("p1", 1)], {"p1": 0, "p2": 1, "p3": 1}, {"o-000001": "p2", "o-000002": "p3"}, []),
    ([("p1", 2)], {"p1": 0, "p2": 1}, {}, ["o-000001"]),  # it would bring p2 more than it lacks
    ([("p1", 2)], {"p1": 0, "p2": 2}, {"o-000001": "p2"}, []),
    ([("p1", 2)], {"p1": 1}, {}, []),  # half of it is due: nothing can be handed back
    ([("p1", 1), ("p2", 1)], {"p1": 0, "p2": 2}, {"o-000001": "p2"}, []),
    ([("p1", 1), ("p2", 1)], {"p1": 0, "p2": 1}, {}, ["o-000001"]),  # p2 has what it is due
    ([("p1", 1)], {}, {}, ["o-000001"]),  # it waits for nothing any more
]


@pytest.mark.parametrize(("orders", "due", "moves", "back"), SURPLUS)
def test_what_is_beyond_need_goes_to_who_lacks_it_or_back(orders, due, moves, back):
    ledger = entered(
        *(an_order(n, requester, serves=serves) for n, (requester, serves) in enumerate(orders, 1))
    )
    found = beyond(due, 0, ledger)
    assert {order.order: requester for order, requester in found.moves} == moves
    assert [order.order for order in found.excess] == back


def test_room_that_is_free_is_neither_moved_nor_taken_back():
    """Freed after the snapshot, it is still coming in it; but nobody can be asked to go on any more."""
    ledger = entered(an_order(1), an_order(2))
    ledger.happen("o-000001", "ended-as-ordered", 500)
    found = beyond({"p1": 0, "p2": 2}, 400, ledger)
    assert [(order.order, requester) for order, requester in found.moves] == [("o-000002", "p2")]
    assert found.excess == ()
    found = beyond({"p1": 1}, 400, ledger)  # ... and it meets what is due
    assert [order.order for order in found.excess] == ["o-000002"]
    assert beyond({"p1": 1}, 500, ledger).excess == ()  # free in the snapshot, it is no room to come


def test_an_ask_that_has_been_met_since_is_not_due_again():
    """The snapshot of 1000 shows two asks; one was met at 1050: of the two orders left one is too many."""
    ledger = entered(an_order(1), an_order(2), an_order(3))
    work = Settlement(ledger, DEFAULT, releases_itself=False)
    granted = ContainerGranted("new", "p1", "n1", size(1), 1050)
    work.take([ContainerEnded("r1.1c", "r1", "n1", "suspended", 1020), granted])
    assert ledger.settled["o-000001"].state == "granted"
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 2))
    found = excess_orders(DemandInput(snapshot, 1000, 1100), ledger, DEFAULT)
    assert [order.order for order in found.excess] == ["o-000003"]


# --- the selector -----------------------------------------------------------------------------


def shares(name, memory_slots, vcores, task_vcores):
    used = Resources(1024 * memory_slots, vcores)
    usage = JobUsage(name, dominant(used, size(100)), 9, 8, 0, None, FOREVER_MS, 0)
    return Candidate(usage, used, 8, Resources(1024, task_vcores))


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ((10, 40, 4), (10, 37, 4), "a b a b"),  # cores decide: 40, 37, 36, 33
        ((40, 10, 1), (37, 10, 1), "a a a a"),  # memory decides: 40, 39, 38, then 37 = 37 and the id
        ((10, 40, 4), (38, 10, 1), "a b b a"),  # 40 cores; 36 cores against 38 memory; 37; 36 = 36 and the id
    ],
)
def test_after_each_pick_the_share_that_is_larger_decides(first, second, order):
    """Most resources first: the dominant share of what the job has left, not its memory alone."""
    jobs = [shares("a", *first), shares("b", *second)]
    tasks = {
        job.usage.application: tuple(
            task(f"{job.usage.application}.{n}", 50_000 + n)._replace(size=job.task_size) for n in range(8)
        )
        for job in jobs
    }
    wanted = case(jobs, [(1, 4)], tasks)
    wanted = msgspec.structs.replace(wanted, needs=(wanted.needs[0]._replace(size=Resources(1024, 1)),))
    picks = choose(wanted, with_(GUARD_FREE, job_policy="MR", in_flight_ratio_max=1.0)).picks
    assert " ".join(pick.application for pick in picks)[:7] == order


def sized(name, memory_slots, vcores, remaining_ms):
    return task(name, remaining_ms)._replace(size=Resources(1024 * memory_slots, vcores))


NEEDLESS = [
    # (memory, cores) in the order in which they are picked   asked   picked            handed back
    ([(1, 1), (2, 2)], (2, 2), ["b"], ["a"]),  # the second is enough by itself
    ([(1, 1), (1, 1)], (2, 2), ["a", "b"], []),  # both are needed
    ([(1, 2), (2, 1)], (2, 2), ["a", "b"], []),  # without the first one core would be missing
    ([(2, 1), (1, 2)], (2, 2), ["a", "b"], []),  # without the first memory would be missing
    ([(1, 1), (1, 1), (2, 2)], (3, 3), ["a", "c"], ["b"]),  # the latest that is not needed goes first
    ([(1, 1), (1, 1)], (4, 4), [], ["b", "a"]),  # it is not enough: all are handed back
]


@pytest.mark.parametrize(("sizes", "asked", "picks", "back"), NEEDLESS)
def test_what_completes_no_room_is_handed_back(sizes, asked, picks, back):
    tasks = [
        sized(name, each[0], each[1], n) for n, (name, each) in enumerate(zip("abc", sizes, strict=False))
    ]
    wanted = case([candidate("r1", len(tasks) + 1)], [(1, 1)], {"r1": tasks})
    need = wanted.needs[0]._replace(size=Resources(1024 * asked[0], asked[1]))
    found = choose(msgspec.structs.replace(wanted, needs=(need,)), GUARD_FREE)
    assert picked(found) == picks
    assert sorted((pick.task.attempt for pick in found.handed_back), reverse=True) == back


@pytest.mark.parametrize("idle", [1, 3])
def test_choose_smaller_request_takes_the_latest_pick_that_serves_none(idle):
    """The tasks do not complete the large request; the latest alone serves the small one."""
    tasks = [task(f"r1.{each + 1}", each) for each in range(idle)]
    found = choose(case([candidate("r1", idle + 1)], [(4, 1), (1, 1)], {"r1": tasks}), GUARD_FREE)
    assert picked(found) == [f"r1.{idle}"]
    assert (found.picks[0].request_size, found.picks[0].serves, found.unmet) == (size(1), 1, 1)
    assert len(found.handed_back) == idle - 1


# --- holding a queue --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guaranteed", "maximum", "held_at"),
    [
        (0.05, 1.0, 0.05),
        (0.05, 0.05, None),  # it cannot grow anyway
        (0.5, 0.4, None),  # a maximum below the guarantee is not raised
    ],
)
def test_a_queue_that_cannot_grow_is_not_held(guaranteed, maximum, held_at):
    found = capping("research", QueueLimits(guaranteed, maximum))
    assert (None if found is None else float(found.now)) == held_at
    assert found is None or (found.target, float(found.before)) == ("research", maximum)


# --- facts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("granted_at_ms", "state"), [(1019, "freed"), (1020, "granted")])
def test_a_grant_that_is_older_than_the_room_was_of_other_room(granted_at_ms, state):
    work = Settlement(entered(an_order()), DEFAULT, releases_itself=False)
    work.take([ContainerEnded("r1.1c", "r1", "n1", "suspended", 1020)])
    work.take([ContainerGranted("new", "p2", "n1", size(1), granted_at_ms)])
    found = work.ledger.open.get("o-000001") or work.ledger.settled["o-000001"]
    assert (
        found.state == {"granted": "misdirected", "freed": "freed"}[state]
    )  # p2 has no order: it took the room


def test_what_is_transferred_for_room_given_is_still_to_end():
    """p1 is given p2's room; its own oldest order that is not freed, of that size, goes to p2."""
    ledger = entered(an_order(1), an_order(2, "p2"), an_order(3))
    ledger.happen("o-000001", "ended-as-ordered", 10)
    assert oldest_freed(ledger, "p1", size(1)) == ledger.open["o-000001"]
    assert oldest_running(ledger, "p1", size(1)) == ledger.open["o-000003"]
    assert oldest_running(ledger, "p1", size(2)) is None


@pytest.mark.parametrize("ordered_at_ms", [0, 1000])
def test_leaving_is_counted_from_the_order_to_the_end(ordered_at_ms):
    work = Settlement(entered(an_order(at_ms=ordered_at_ms)), DEFAULT, releases_itself=False)
    work.take([ContainerEnded("r1.1c", "r1", "n1", "suspended", 3000)])
    came_back = work.take([CameBack("o-000001", "r1.1 again", 1, 2, 4, 9000)])
    (told,) = [record for record in came_back.records if isinstance(record, Return)]
    assert (told.leave_ms, told.cost_ms) == (3000 - ordered_at_ms, 3007 - ordered_at_ms)


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (None, "ordered"),  # whoever is still to leave is taken back by surplus, not by this rule
        ("manifest", "checkpointed"),
        ("ended-as-ordered", "withdrawn"),
    ],
)
def test_only_freed_room_is_forgotten_when_its_asker_asks_no_more(event, state):
    work = Settlement(entered(an_order()), DEFAULT, releases_itself=False)
    if event:
        work.ledger.happen("o-000001", event, 0)
    work.forget_unwanted({}, 5000, 5000)
    found = work.ledger.open.get("o-000001") or work.ledger.settled["o-000001"]
    assert found.state == state


def test_a_request_whose_effect_is_seen_is_remembered_no_longer():
    work = Settlement(entered(an_order()), DEFAULT, releases_itself=False)
    (release,) = work.take([ManifestSeen("o-000001", "r1.1", 1, 5, 100)]).actions
    work.ledger.apply(Requests(100, (release,)))
    work.outcome(release, Accepted(), 100)
    work.repeat(200)
    assert list(work.ledger.sent) == ["o-000001"]
    work.take([ContainerEnded("r1.1c", "r1", "n1", "killed", 250)])
    assert work.repeat(300).actions == []
    work.ledger.retire(300)
    assert work.ledger.sent == {}


# --- the controller ---------------------------------------------------------------------------


def test_stopping_never_goes_back_in_time():
    steps = Controller(GUARD_FREE, validate=True)
    look = cluster(app("r1", "research", 50), app("p1", "production", 1, 1))
    steps.step(seen(look, {"r1": row("r1", 49)}, now_ms=1000))
    _, record, *_ = steps.stop(400).records
    assert isinstance(record, Transition)
    assert (record.event, record.at_ms) == ("not-needed", 1000)


def test_one_look_asks_for_tasks_eight_times_at_most():
    """Nobody can give a task: job after job is looked at, and then decided without the rest."""
    jobs = [app(f"r{n:02}", "research", 40 - n) for n in range(12)]
    steps = Controller(GUARD_FREE, validate=True)
    step = steps.step(seen(cluster(*jobs, app("p1", "production", 1, 1))))
    rounds = 0
    while step.wake_at_ms == 0:
        rounds += 1
        step = steps.step(seen(None, dict.fromkeys(step.to_observe.victims, ())))
    (refusal,) = [record for record in step.records if isinstance(record, Refusal)]
    assert rounds == 8
    assert {job.why for job in refusal.refused_jobs} >= {"no-task-left"}


def test_a_refusal_is_written_again_for_an_application_that_came_again():
    steps = Controller(GUARD_FREE, validate=True)
    rows = (app("r1", "research", 9), app("p1", "production", 1, 1))
    stuck = cluster(*rows, guaranteed={"production": 1, "research": 20})
    ended = (ApplicationEnded("p1", 1500),)
    written = [
        sum(
            isinstance(record, Refusal)
            for record in steps.step(seen(stuck, now_ms=now_ms, facts=facts)).records
        )
        for now_ms, facts in ((0, ()), (1000, ()), (2000, ended), (3000, ()))
    ]
    assert written == [1, 0, 1, 0]


# --- priorities -------------------------------------------------------------------------------


def test_a_ranking_shows_who_has_a_level_and_who_loses_one():
    """Two levels for four jobs: c has none and had none, d had one and gets 0."""
    settings = with_(GUARD_FREE, mode="deadlines", job_policy="MDF", priority_levels=2)
    rows = [app(name, "default", 1, deadline=n, priority=n == 3) for n, name in enumerate("abcd")]
    changes = [SetPriority("a", 2), SetPriority("b", 1), SetPriority("d", 0)]
    assert [row.application for row in ranked(rows, changes, 0, settings)] == ["a", "b", "d"]
    assert [row.priority for row in ranked(rows, changes, 0, settings)] == [2, 1, 0]


def test_new_jobs_of_equal_laxity_stand_by_submission():
    settings = with_(GUARD_FREE, mode="deadlines", job_policy="MLF")
    rows = [app(name, "default", deadline=100_000, submitted=0) for name in "bca"]
    found = in_order(rows, 0, settings, ("b",))
    assert [view.application for view in found] == ["a", "b", "c"]


# --- the paper's rule -------------------------------------------------------------------------


def test_what_is_promised_fits_nowhere_twice():
    """Three asks, one promised, one slot free: one fits, one must be made room for."""
    ledger = entered(an_order(1))
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 3), free={"n9": 1})
    (wish,) = demand(DemandInput(snapshot, 0, 0), ledger, PAPER).applications
    assert (wish.trigger.placed, wish.trigger.promised, wish.trigger.shortfall) == (1, 1, 1)
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 3), free={"n9": 9})
    assert demand(DemandInput(snapshot, 0, 0), ledger, PAPER).applications == ()


def test_an_asker_that_finds_room_does_not_stand_before_the_others():
    """p1's ask fits into what is free, p2's and p3's do not."""
    asks = [app(f"p{n}", "production", 1, 1, rank=n, ask=n) for n in (1, 2, 3)]
    snapshot = cluster(app("r1", "research", 50), *asks, free={"n9": 1})
    found = demand(DemandInput(snapshot, 0, 0), Ledger(), PAPER)
    assert [wish.application.application for wish in found.applications] == ["p2", "p3"]


# --- the modelled scheduler, with two queues that give ----------------------------------------


def test_the_queue_that_stands_highest_gives_first():
    """Two preemptable queues: one by one, each time from the one that is furthest over its guarantee."""
    settings = with_(GUARD_FREE, preemptable_queues=("research", "batch"))
    rows = [app("r1", "research", 8), app("b1", "batch", 14), app("p1", "production", 1, 30)]
    guaranteed = {"production": 85, "research": 5, "batch": 10}
    assert needs(cluster(*rows, guaranteed=guaranteed), settings) == {"p1": 7}  # 3 of research, 4 of batch


def test_the_largest_task_of_a_queue_is_of_its_own_running_jobs():
    """Neither another queue's tasks nor a job that holds its master only count."""
    rows = [
        app("r1", "research", 3, slots=2),
        app("r2", "research", 1, slots=5),
        app("p1", "production", 3, slots=7),
    ]
    model = QueueModel(QueueView(queue="research", guaranteed=size(1), maximum=size(9), used=size(6)), rows)
    assert model.largest_task == size(2)


@pytest.mark.parametrize(
    ("guaranteed", "used", "key"),
    [
        (Resources(1024, 0), Resources(2048, 9), (0, 2_000_000_000, -1024, "q")),  # no cores are guaranteed
        (Resources(0, 1), Resources(2048, 3), (0, 3_000_000_000, 0, "q")),  # no memory is
        (Resources(0, 0), Resources(2048, 3), (1, 2048, 0, "q")),  # nothing is: last
        (Resources(4096, 4), Resources(1024, 3), (0, 750_000_000, -4096, "q")),  # the larger share counts
        (Resources(4096, 4), Resources(3072, 1), (0, 750_000_000, -4096, "q")),
    ],
)
def test_a_queue_is_ranked_by_what_it_is_guaranteed(guaranteed, used, key):
    assert queue("q", guaranteed, used).key() == key


def test_a_job_that_has_nothing_to_release_gives_nothing():
    """Its master is all that is left after what it gives already, whatever its tasks were seen as."""
    empty = candidate("a", 1)
    full = candidate("b", 3)
    tasks = {"a": [task("a.1", 1)], "b": [task("b.1", 2), task("b.2", 3)]}
    assert picked(choose(case([empty, full], 3, tasks), GUARD_FREE)) == ["b.1", "b.2"]


def test_a_task_that_has_nothing_left_is_asked_before_one_of_whom_nobody_knows():
    """Who would end last is asked first; nobody knows is last of all."""
    ledger = Ledger()
    for number, remaining_ms in ((1, -1), (2, 0), (3, 5)):
        order = msgspec.structs.replace(an_order(number, at_ms=100), remaining_ms=remaining_ms)
        ledger.add(order)
    asked = [Suspend(f"o-{n:06d}", "r1", f"r1.{n}", f"r1.{n}c", 1, 0) for n in (1, 2, 3)]
    found = in_suspend_order(asked, ledger, DEFAULT)
    assert list(found) == list(reversed(asked))
