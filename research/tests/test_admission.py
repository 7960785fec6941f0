"""Admission on random traces: no law is broken, nobody beats the optimum; test_admission_model.py has the model.

Law: every check here has been seen red with a planted bug; the last tests plant them.
"""

from __future__ import annotations

import importlib.util
import os
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.optimum import optimum
from tests.thoroughness import examples
from yarn_research.admission.choices import DEFAULT_CHOICES, Choices, choices_of
from yarn_research.admission.event_replay import group_shares, replay
from yarn_research.admission.traces.generator import TR1, generate
from yarn_research.admission.traces.trace import (
    DEADLINES,
    NEVER,
    Optimal,
    ReplayOutcome,
    Trace,
    deadlines_ms,
)
from yarn_research.bench.simpy_admission import Model
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.deciding.admission.mechanisms.oracle import OracleChoices, SharerChoices
from yarnctl.deciding.admission.mechanisms.pythia import PythiaChoices
from yarnctl.deciding.admission.rounds import water_level
from yarnctl.errors import BadInput, InvariantBroken

RANDOM_TRACES = 200
SMALL_TRACES = examples(500)
REBALANCED = Choices(sharing="rebalanced")


def require(module: str, extra: str) -> None:
    """Skip without a tool, saying so; where everything has to be there, fail."""
    if importlib.util.find_spec(module) is None:
        said = f"{module} is not installed (extra {extra!r})"
        if "CI" in os.environ:
            pytest.fail(said)
        pytest.skip(said)


def drawn(seed: int) -> tuple[Trace, np.ndarray, int, Choices]:
    """Draw a trace, deadlines, a capacity and, in every other case, another reading of the papers."""
    chance = random.Random(seed)
    jobs, scale = chance.choice([1, 3, 10, 40, 150, 300]), chance.choice([3, 20, 1000])
    submitted = sorted(chance.randrange(scale * jobs) for _ in range(jobs))
    tasks = [chance.choice([1, 1, 1, 2, 5, chance.randrange(1, 60)]) for _ in range(jobs)]
    work = [max(1, int(each * chance.choice([1, scale * chance.random() * 5 + 1]))) for each in tasks]
    trace = Trace("random", *(np.array(column, dtype=np.int64) for column in (submitted, tasks, work)))
    capacity = chance.choice([1, 2, 5, 13, 40, 100])
    optimal: Optimal = "requested" if chance.random() < 0.3 else "reachable"
    deadline_ms = deadlines_ms(trace, chance.choice(list(DEADLINES)), capacity, seed, optimal)
    choices = Choices(
        order=chance.choice(["papers", "ratio", "tasks", "earliest"]),
        reach=chance.choice(["reachable", "requested"]),
        queue_time=chance.choice(["stretched", "ignored"]),
        errors=chance.choice(["shortfall", "surplus"]),
        fraction=chance.choice(["estimated", "observed"]),
        weighting=chance.choice(["equal", "exponential"]),
        drop_above_tasks=chance.choice([0, 5, None]),
    )
    return trace, deadline_ms, capacity, choices if seed % 2 else DEFAULT_CHOICES


def small(seed: int) -> tuple[Trace, np.ndarray, int]:
    """Draw up to eight jobs so short that every way to place them can be listed."""
    chance = random.Random(seed)
    jobs = chance.randrange(2, 9)
    submitted = sorted(chance.randrange(8) for _ in range(jobs))
    tasks = [chance.randrange(1, 6) for _ in range(jobs)]
    work = [chance.randrange(1, 4 * each + 1) for each in tasks]
    trace = Trace("small", *(np.array(column, dtype=np.int64) for column in (submitted, tasks, work)))
    capacity = chance.randrange(2, 7)
    return trace, deadlines_ms(trace, chance.choice(list(DEADLINES)), capacity, seed), capacity


def most_held(outcome: ReplayOutcome) -> int:
    """Return the most containers held at once, counted from the outcome alone."""
    ran = outcome.containers > 0
    at_ms = np.concatenate((outcome.ended_at_ms[ran], outcome.started_at_ms[ran]))
    change = np.concatenate((-outcome.containers[ran], outcome.containers[ran]))
    order = np.lexsort((change, at_ms))  # at one instant, ends before starts
    return int(np.cumsum(change[order]).max(initial=0))


def require_laws(trace: Trace, outcome: ReplayOutcome, name: str) -> None:
    """Raise AssertionError unless the outcome can be one."""
    ran = outcome.containers > 0
    due_ms = trace.submitted_at_ms + outcome.deadline_ms
    assert most_held(outcome) <= outcome.capacity
    assert (outcome.ended_at_ms >= trace.submitted_at_ms).all(), "everybody's fate is known"
    assert not (outcome.met & ~ran).any(), "nobody both met a deadline and was dropped"
    assert (outcome.started_at_ms[ran] >= trace.submitted_at_ms[ran]).all()
    assert (outcome.started_at_ms[~ran] == NEVER).all()
    assert (outcome.containers <= trace.tasks).all()
    assert (outcome.ended_at_ms[outcome.met] <= due_ms[outcome.met]).all()
    needed_ms = -(-trace.work_ms[ran] // outcome.containers[ran])
    whole = outcome.ended_at_ms[ran] - outcome.started_at_ms[ran] == needed_ms
    assert whole[outcome.met[ran]].all(), "a met deadline means that all work was done"
    assert (whole | (outcome.ended_at_ms[ran] == due_ms[ran])).all(), (
        "who was ended was ended at the deadline"
    )
    if name in ("no_drop_fs", "oracle", "pythia"):
        assert whole.all(), "these end nobody"
    if name == "no_drop_fs":
        assert ran.all(), "it never drops a job"
    if name == "oracle":
        assert (outcome.met == ran).all(), "it lets nobody in who misses"


@pytest.mark.parametrize("name", list(SIZINGS))
def test_no_law_is_broken(name):
    for seed in range(RANDOM_TRACES):
        trace, deadline_ms, capacity, choices = drawn(seed)
        require_laws(trace, replay(trace, deadline_ms, capacity, SIZINGS[name], choices), name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(SIZINGS))
def test_no_law_is_broken_on_all_of_tr1(name):
    trace = generate(TR1, 0)
    for deadlines, capacity in (("Fixed2x", 2250), ("Aria1x3x", 4500)):
        deadline_ms = deadlines_ms(trace, deadlines, capacity)
        require_laws(trace, replay(trace, deadline_ms, capacity, SIZINGS[name]), name)


def test_pythia_as_somebody_else_would_write_it_decides_the_same():
    """A SimPy process per job, sharing no code with the replay."""
    for seed in range(0, RANDOM_TRACES, 2):
        trace, deadline_ms, capacity, choices = drawn(seed)
        columns = (trace.submitted_at_ms, deadline_ms, trace.tasks, trace.work_ms)
        model = Model(list(zip(*(column.tolist() for column in columns), strict=True)), capacity)
        model.env.run()
        outcome = replay(trace, deadline_ms, capacity, SIZINGS["pythia"], choices)
        assert model.started == outcome.started_at_ms.tolist(), f"seed {seed}"
        assert model.containers == outcome.containers.tolist(), f"seed {seed}"


def fluid_ends(trace: Trace, deadline_ms: np.ndarray, capacity: int, reactive: bool) -> list[int]:
    """Return when each job ends if all is shared again every millisecond, in exact fractions."""
    left = [Fraction(int(work)) for work in trace.work_ms]
    due = (trace.submitted_at_ms + deadline_ms).tolist()
    ends, now, step = dict[int, int](), 0, 0
    while len(ends) < len(left):
        while step < len(left) and trace.submitted_at_ms[step] == now:
            step += 1
        there = [job for job in range(step) if job not in ends]
        counts = Counter(min(int(trace.tasks[job]), capacity) for job in there)
        groups = sorted(counts.items())
        shares = dict(zip(sorted(counts), group_shares(groups, capacity), strict=True))
        now += 1
        for job in there:
            demand = min(int(trace.tasks[job]), capacity)
            left[job] -= Fraction(shares[demand], counts[demand])
            if left[job] <= 0 or (reactive and due[job] <= now):
                ends[job] = now
    return [ends[job] for job in range(len(left))]


@pytest.mark.parametrize("name", ["no_drop_fs", "reactive_fs"])
def test_rebalanced_sharing_is_a_fluid(name):
    """Grains are rounded down at each event, so a job may end a few milliseconds later than the fluid says."""
    for seed in range(60):
        trace, deadline_ms, capacity = small(seed)
        longer = Trace("longer", trace.submitted_at_ms, trace.tasks, trace.work_ms * 7)
        ends = fluid_ends(longer, deadline_ms * 7, capacity, name == "reactive_fs")
        found = replay(longer, deadline_ms * 7, capacity, SIZINGS[name], REBALANCED)
        assert np.abs(found.ended_at_ms - ends).max() <= 1, seed


@pytest.mark.parametrize("name", ["no_drop_fs", "reactive_fs"])
def test_laws_of_rebalanced_sharing(name):
    for seed in range(RANDOM_TRACES):
        trace, deadline_ms, capacity, _ = drawn(seed)
        plain = replay(trace, deadline_ms, capacity, SIZINGS[name], REBALANCED)
        assert plain.spent_ms is not None
        assert (plain.spent_ms[plain.met] == trace.work_ms[plain.met]).all()
        assert (plain.ended_at_ms - trace.submitted_at_ms <= deadline_ms)[plain.met].all()
        span_ms = int(plain.ended_at_ms.max() - trace.submitted_at_ms.min())
        assert plain.spent_ms.sum() <= capacity * span_ms
        if name == "no_drop_fs":
            assert (plain.spent_ms == trace.work_ms).all()


def test_rebalanced_sharing_by_hand():
    # two containers: one job alone for 4 ms, then with another of its kind; both want two, and take turns
    columns = ([0, 4], [2, 2], [16, 8])
    trace = Trace("hand", *(np.array(column, dtype=np.int64) for column in columns))
    outcome = replay(trace, np.array([99, 7]), 2, SIZINGS["no_drop_fs"], REBALANCED)
    assert outcome.ended_at_ms.tolist() == [12, 12], "8 + 8 left at 4, one container each"
    outcome = replay(trace, np.array([99, 7]), 2, SIZINGS["reactive_fs"], REBALANCED)
    assert outcome.ended_at_ms.tolist() == [12, 11], "one of 16 is left at 11"


def test_nobody_beats_the_optimum_and_the_oracle_does_not_reach_it():
    require("scipy", "dev")
    below = 0
    for seed in range(SMALL_TRACES):
        trace, deadline_ms, capacity = small(seed)
        best = optimum(trace, deadline_ms, capacity)
        for name, allocator in SIZINGS.items():
            met = int(replay(trace, deadline_ms, capacity, allocator).met.sum())
            assert met <= best, f"{name} meets {met} of {best}, seed {seed}"
            below += name == "oracle" and met < best
    assert below > 0, "the papers' oracle is not optimal"


def test_the_optimum_by_hand():
    require("scipy", "dev")
    # two containers; each job needs both for 2 ms or one for 4 ms, by 4 ms
    trace = Trace("hand", *(np.array(column, dtype=np.int64) for column in ([0, 0, 0], [2, 2, 2], [4, 4, 4])))
    assert optimum(trace, np.array([4, 4, 4]), 2) == 2
    assert optimum(trace, np.array([4, 4, 6]), 2) == 3
    assert optimum(trace, np.array([1, 1, 1]), 2) == 0
    assert optimum(trace, np.array([4, 4, 4]), 3) == 3, "one on its own container, two side by side"


def test_what_is_too_large_for_the_optimum_is_refused():
    columns = ([0] * 9, [1] * 9, [1] * 9)
    nine = Trace("nine", *(np.array(column, dtype=np.int64) for column in columns))
    with pytest.raises(BadInput, match="9 jobs are too many for the exact optimum; at most 8"):
        optimum(nine, np.full(9, 5), 2)
    with pytest.raises(BadInput, match="more than 20000 ways"):
        optimum(nine.head(2), np.full(2, 10**6), 2)


# --- planted bugs -----------------------------------------------------------------------------


def held(outcome: ReplayOutcome, field: str, change: Callable[[np.ndarray], None]) -> ReplayOutcome:
    """Return an outcome with one column changed."""
    columns = {
        name: getattr(outcome, name).copy() for name in ("started_at_ms", "ended_at_ms", "containers", "met")
    }
    change(columns[field])
    return ReplayOutcome(outcome.capacity, outcome.deadline_ms, **columns)


@pytest.mark.parametrize(
    ("field", "value"),
    [("met", True), ("containers", 1000), ("started_at_ms", -5), ("ended_at_ms", -5)],
)
def test_an_outcome_that_cannot_be_is_seen(field, value):
    outcomes = (
        (trace, replay(trace, deadline_ms, capacity, SIZINGS["reactive_fs"], choices))
        for trace, deadline_ms, capacity, choices in map(drawn, range(RANDOM_TRACES))
    )
    trace, outcome = next(each for each in outcomes if (each[1].containers == 0).any() and each[1].met.any())
    require_laws(trace, outcome, "reactive_fs")
    with pytest.raises(AssertionError):
        require_laws(trace, held(outcome, field, lambda column: column.fill(value)), "reactive_fs")


def test_a_schedule_on_more_containers_than_there_are_beats_the_optimum():
    require("scipy", "dev")
    beaten = 0
    for seed in range(40):
        trace, deadline_ms, capacity = small(seed)
        met = int(replay(trace, deadline_ms, capacity + 2, SIZINGS["oracle"]).met.sum())
        beaten += met > optimum(trace, deadline_ms, capacity)
    assert beaten > 0, "else the bound says nothing"


def test_an_allocator_that_gives_what_is_not_there_is_stopped():
    greedy = SIZINGS["pythia"]._replace(terms=lambda memory, request, *_: greedy_terms(request))
    trace = Trace("wide", *(np.array(column, dtype=np.int64) for column in ([0, 1], [2, 2], [9, 9])))
    with pytest.raises(InvariantBroken, match="capacity-not-exceeded"):
        replay(trace, np.array([99, 99]), 3, greedy)


def greedy_terms(request):
    """Ask for the fewest, and take more than there is."""
    from yarnctl.deciding.admission.records import Terms

    return Terms(Greedy(request.tasks), 0)


class Greedy(int):
    """A number of containers that no minimum cuts."""

    def __gt__(self, other: object) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return True


# --- groups of jobs with one demand ---------------------------------------------------------------


def test_groups_by_hand():
    assert group_shares([(1, 3), (5, 2)], 20) == [3, 10]
    assert group_shares([(1, 3), (5, 2), (9, 1)], 12) == [3, 6, 3], "nine left for three jobs"
    assert group_shares([(5, 1), (6, 1), (7, 1)], 4) == [1, 1, 2], "four for three: cumulative rounding"
    assert group_shares([(2, 4)], 3) == [3], "four jobs take turns on three"
    assert group_shares([], 3) == []


@given(st.dictionaries(st.integers(1, 9), st.integers(1, 4), max_size=5), st.integers(1, 60))
def test_groups_lose_nothing_and_nobody_is_far_from_the_level(counts, capacity):
    groups = sorted(counts.items())
    shares = group_shares(groups, capacity)
    assert sum(shares) == min(capacity, sum(demand * jobs for demand, jobs in groups))
    level, _ = water_level(counts, capacity)
    for (demand, jobs), share in zip(groups, shares, strict=True):
        assert share <= demand * jobs
        assert share == demand * jobs or abs(share - level * jobs) <= jobs


# --- choices ----------------------------------------------------------------------------------------


def test_choices_of_each_mechanism_are_its_part():
    choices = Choices(order="earliest", reach="requested", sharing="rebalanced", errors="surplus")
    assert choices_of("pythia", choices) == PythiaChoices(order="earliest", reach="requested")
    assert choices_of("oracle", choices) == OracleChoices(order="earliest")
    assert choices_of("no_drop_fs", choices) == SharerChoices(order="earliest", sharing="rebalanced")
    fields = {field for name in SIZINGS for field in choices_of(name, choices).__struct_fields__}
    assert fields == set(Choices.__struct_fields__), "a choice that no mechanism has"


def test_choices_default_to_the_product():
    for name, sizing in SIZINGS.items():
        assert choices_of(name, DEFAULT_CHOICES) == sizing.choices
