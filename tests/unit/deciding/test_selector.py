"""The selector against slow, plain statements of what it does, over random cases."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.tables import candidate, case, size, task, with_
from yarnctl.deciding import selector
from yarnctl.deciding.case import Case, Choice
from yarnctl.deciding.order import name_orders
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.releaser import Reason, objections
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import DEFAULT, PAPER, Settings
from yarnctl.units import NOTHING, decode_vector, dominant, fits, minus, plus

NOW_MS = 50_000


def prune(case: Case, choice: Choice) -> Case:
    """Return the part of ``case`` that led to ``choice``.

    Kept are the jobs that were hit and those shown as refused, of the former the tasks picked,
    handed back or shown, and the room of the nodes touched. Nothing else can have mattered: what
    was never at the head of an order leaves the head as it was.
    """
    keep_jobs = dict.fromkeys(choice.hit)
    keep_jobs.update((refused.application, None) for refused in choice.refused_jobs)
    keep_tasks = {pick.task.attempt for pick in choice.picks}
    keep_tasks.update(pick.task.attempt for pick in choice.handed_back)
    keep_tasks.update(refused.attempt for refused in choice.refused_tasks)
    nodes = {pick.task.node for pick in choice.picks}
    nodes.update(pick.task.node for pick in choice.handed_back)
    tasks = {
        application: tuple(task for task in case.tasks[application] if task.attempt in keep_tasks)
        for application in sorted(keep_jobs)
        if application in case.tasks
    }
    looked_at = {task.node for row in tasks.values() for task in row} if case.reserved else set()
    shown = {refused.attempt for refused in choice.refused_tasks}
    closed = {refused.application for refused in choice.refused_jobs}
    return msgspec.structs.replace(
        case,
        free={node: case.free[node] for node in sorted(nodes) if node in case.free},
        jobs=tuple(job for job in case.jobs if job.usage.application in keep_jobs),
        tasks=tasks,
        barred={attempt: case.barred[attempt] for attempt in sorted(shown) if attempt in case.barred},
        closed={name: case.closed[name] for name in sorted(closed) if name in case.closed},
        reserved={node: case.reserved[node] for node in sorted(looked_at) if node in case.reserved},
    )


@st.composite
def tasks_of(draw, name, equal):
    count = draw(st.integers(0, 6))
    return [
        task(f"{name}.{n}", draw(st.sampled_from([-1, 0, 10, 10, 20_000, 30_000, 40_000])),
            node=draw(st.sampled_from(["n1", "n2", "n3"])), slots=1 if equal else draw(st.integers(1, 4)),
            kind=draw(st.sampled_from(["reduce", "reduce", "reduce", "map", "am"])),
            since_ms=draw(st.sampled_from([0, 49_000])), generation=draw(st.integers(0, 9)),
            able=draw(st.integers(0, 4)) > 0, resumed=draw(st.booleans()))
        for n in range(count)
    ]  # fmt: skip


@st.composite
def cases(draw, equal=False):
    names = [f"j{n}" for n in range(draw(st.integers(0, 6)))]
    tasks = {name: draw(tasks_of(name, equal)) for name in names}
    jobs = [
        candidate(name, len(tasks[name]) + draw(st.integers(0, 2)),
            deadline=draw(st.sampled_from([None, 100, 200])), submitted=draw(st.integers(0, 2)),
            laxity=draw(st.integers(-5, 5)), budget=draw(st.sampled_from([0, 2, 100])))
        for name in names
    ]  # fmt: skip
    wanted = [(1, draw(st.integers(0, 12)))]
    if not equal:
        wanted = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), max_size=3))
    every = [row.attempt for rows in tasks.values() for row in rows]
    barred: dict[str, Reason] = {name: "already-ordered" for name in every if draw(st.integers(0, 9)) == 0}
    closed: dict[str, Reason] = {name: "unreachable" for name in names if draw(st.integers(0, 9)) == 0}
    room = {} if equal else {"n1": draw(st.integers(0, 2)), "n2": draw(st.integers(0, 2))}
    made = case(
        jobs, wanted, tasks, number=draw(st.integers(1, 99)), now_ms=NOW_MS, room=room, barred=barred,
        closed=closed,
    )  # fmt: skip
    reserved = {} if equal or draw(st.booleans()) else {"n1": "zz", "n7": "zz"}
    return msgspec.structs.replace(made, reserved=reserved)


@st.composite
def ways(draw):
    return with_(
        draw(st.sampled_from([DEFAULT, PAPER])), job_policy=draw(st.sampled_from(sorted(JOB_POLICIES))),
        task_policy=draw(st.sampled_from(sorted(TASK_POLICIES))), kill_maps=draw(st.booleans()),
        seed=draw(st.integers(0, 5)), refused_shown=draw(st.integers(0, 3)),
    )  # fmt: skip


@given(cases(), ways())
def test_choosing_from_the_pruned_case_gives_the_same_choice(full, settings):
    choice = choose(full, settings)
    pruned = prune(full, choice)
    again = choose(pruned, settings)
    for field in ("picks", "handed_back", "unmet", "refused_jobs", "refused_tasks"):
        assert getattr(again, field) == getattr(choice, field)
    assert prune(pruned, again) == pruned  # nothing more could have been left out
    assert len(pruned.jobs) <= len(full.jobs)


@given(cases(), ways())
def test_a_pruned_case_survives_the_journal(full, settings):
    pruned = prune(full, choose(full, settings))
    read = msgspec.json.decode(msgspec.json.encode(pruned), type=Case, dec_hook=decode_vector)
    assert choose(read, settings).picks == choose(full, settings).picks


def plainly(full: Case, settings: Settings) -> list[str]:
    """MR, LR, MDF, MLF and SRT, LRT for equal sizes, word by word: sort everything for every pick."""
    objection = objections(full.now_ms, settings, full.barred)
    job_key, task_key = JOB_POLICIES[settings.job_policy].key, TASK_POLICIES[settings.task_policy].key
    left = {
        name: sorted(
            (row for row in rows if not objection(row)), key=lambda row: (task_key(row, 0, 0), row.attempt)
        )
        for name, rows in full.tasks.items()
    }
    taken = dict.fromkeys(left, 0)
    picks: list[str] = []
    while len(picks) < sum(need.containers for need in full.needs):
        ranked = []
        for job in full.jobs:
            name, gone = job.usage.application, taken[job.usage.application]
            able = left[name] and gone < min(job.usage.releasable, job.budget) and name not in full.closed
            if able:
                share = dominant(minus(job.used, size(gone)), full.total)
                usage = job.usage._replace(share=share, releasable=job.usage.releasable - gone)
                ranked.append((job_key(usage, 0, 0), name))
        if not ranked:
            break
        name = min(ranked)[1]
        picks.append(left[name].pop(0).attempt)
        taken[name] += 1
    return picks


@given(cases(equal=True), ways().filter(lambda way: way.job_policy != "PR" and way.task_policy != "random"))
def test_the_heap_picks_what_sorting_everything_each_time_picks(full, settings):
    assert [pick.task.attempt for pick in choose(full, settings).picks] == plainly(full, settings)


@given(cases(), ways())
def test_every_met_ask_has_its_room_on_one_node_and_no_pick_is_needless(full, settings):
    choice = choose(full, settings)
    room = dict(full.free)
    for pick in choice.picks:
        room[pick.task.node] = plus(room.get(pick.task.node, NOTHING), pick.task.size)
    asks = [need.size for need in full.needs for _ in range(need.containers)]
    assert sum(pick.serves for pick in choice.picks) <= len(asks) - choice.unmet
    for pick in choice.picks:
        if pick.serves:  # further asks that it serves may be smaller
            assert fits(pick.request_size, room[pick.task.node])
            room[pick.task.node] = minus(room[pick.task.node], pick.request_size)
    _, groups = name_orders(choice.picks, 0)
    served = {group for group, pick in zip(groups, choice.picks, strict=True) if pick.serves}
    assert served == set(groups)
    assert not {p.task.attempt for p in choice.picks} & {p.task.attempt for p in choice.handed_back}


@given(cases(), ways())
def test_keys_made_in_bulk_are_the_policies_keys(full, settings):
    """The shortcuts (share_sign, remaining_sign, the partial order of large jobs) change nothing."""
    shortcut = choose(full, settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            JOB_POLICIES, settings.job_policy, JOB_POLICIES[settings.job_policy]._replace(share_sign=0)
        )
        patch.setitem(
            TASK_POLICIES,
            settings.task_policy,
            TASK_POLICIES[settings.task_policy]._replace(remaining_sign=0),
        )
        assert choose(full, settings) == shortcut


@given(
    st.lists(st.integers(0, 400), min_size=130, max_size=400),
    st.integers(1, 200),
    st.sampled_from(["SRT", "LRT"]),
    st.integers(1, 3),
)
def test_large_jobs_are_ordered_as_far_as_needed(remaining, wanted, policy, modulus):
    rows = [task(f"a.{n:03d}", 10_000 + ms, able=n % modulus == 0) for n, ms in enumerate(remaining)]
    full = case([candidate("a", len(rows) + 1, total=1000)], wanted, {"a": rows})
    settings = with_(DEFAULT, task_policy=policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selector, "_LARGE", 1)
        partly = choose(full, settings)
        patch.setattr(selector, "_LARGE", 10_000)
        assert choose(full, settings) == partly


def test_unobserved_jobs_are_named_and_their_picks_are_provisional():
    full = case([candidate("a", 9), candidate("b", 8)], 4, {"b": [task("b.1")]})
    choice = choose(full, DEFAULT)
    assert choice.missing == ("a",)
    assert choice.hit == ("a", "b")


@pytest.mark.parametrize(("slots", "hit"), [(1, ("a", "b")), (4, ("a",))])
def test_unobserved_jobs_count_with_their_typical_task(slots, hit):
    """One job of four-slot tasks is expected to make room for four one-slot asks."""
    full = case([candidate("a", 2, slots=slots), candidate("b", 2, slots=1)], 2, {})
    assert choose(full, DEFAULT).hit == hit
