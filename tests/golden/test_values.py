"""Golden tables of values: records cannot be changed, and what is not told has the value that says so."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from yarnctl.deciding import case, ledger, model, records, settings
from yarnctl.deciding.admission import entries
from yarnctl.deciding.admission import records as admission
from yarnctl.deciding.draws import UNIT, exponential
from yarnctl.deciding.order import Order
from yarnctl.deciding.records import FORMAT, Header, Step, encode
from yarnctl.deciding.settings import DEFAULT, PAPER, TEN_YEARS_MS
from yarnctl.units import Resources

STRUCTS = sorted(
    {
        each
        for module in (admission, case, entries, ledger, model, records, settings)
        for _, each in inspect.getmembers(module, inspect.isclass)
        if issubclass(each, msgspec.Struct) and each is not msgspec.Struct
    }
    | {Step},
    key=lambda each: (each.__module__, each.__name__),
)


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda each: each.__name__)
def test_a_record_cannot_be_changed(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.frozen


def test_how_many_records_there_are() -> None:
    assert len(STRUCTS) > 40


def test_the_format_of_journals() -> None:
    """It is that of 0.1.0; another one is another number."""
    assert FORMAT == 1
    assert encode(Header(FORMAT, DEFAULT, ())).endswith(b'"capabilities":[]}\n')


def test_what_a_record_says_of_what_is_not_known() -> None:
    names: dict[str, Any] = {
        "order": "o-000001", "requester": "p1", "victim": "r1", "attempt": "a", "container": "c", "node": "n",
    }  # fmt: skip
    one = Resources(1024, 1)
    order = Order(
        **names, size=one, request_size=one, serves=1, group="o-000001", generation=1, verb="suspend",
        decision=1, ordered_at_ms=0, progress_at_ms=0,
    )  # fmt: skip
    assert (order.remaining_ms, order.resume_cost_ms, order.observed) == (-1, 0, False)
    assert (order.state, order.freed_at_ms, order.settled_at_ms) == ("ordered", None, None)
    move = records.Transition(
        order="o-000001", source="ordered", event="accepted", target="suspending", at_ms=3
    )
    assert move.keys_done == -1
    view = model.ApplicationView(
        application="a", queue="q", user="u", submitted_at_ms=0, rank=0, containers=1, used=one, am_size=one,
        task_size=one,
    )  # fmt: skip
    told = (
        view.requests, view.activated, view.runner, view.priority, view.deadline_at_ms, view.progress_ratio,
    )  # fmt: skip
    assert told == ((), True, True, 0, None, 0.0)
    assert (view.why_not, view.predicted) == (None, 0)
    queue = model.QueueView(queue="q", guaranteed=one, maximum=one, used=one)
    assert (queue.priority, queue.user_limit, queue.am_limit, queue.am_used) == (0, None, None, (0, 0))


COMMON = {
    "mode": "queues", "preempting_queues": ("production",), "preemptable_queues": ("research",),
    "job_policy": "MR", "task_policy": "SRT", "eviction": "suspend", "tick_ms": 1000,
    "kill_timeout_ms": 12_000, "expire_ms": 2000, "utilisation_tolerance_ratio": 0.1, "kill_maps": False,
    "seed": 0, "refused_shown": 3, "look_age_max_ms": 5000, "release_repeat_ms": 2000, "observe_only": False,
    "in_flight_ratio_max": 1.0, "in_flight_least": 2, "rest_ms": 12_000,
}  # fmt: skip
FROZEN = {
    # name                   default     paper
    "profile": ("default", "paper"),
    "open_tick_ms": (250, 1000),
    "on_timeout": ("give-up", "kill"),
    "model_scheduler": (True, False),
    "cost_guard": (True, False),
    "settle_ms": (30_000, 0),
    "task_suspensions_max": (8, 1_000_000),
    "task_tries_max": (3, 1_000_000),
    "silent_ms": (30_000, 0),
    "job_open_ratio_max": (0.5, 1.0),
    "laxity_margin_ms": (30_000, 0),
    "priority_levels": (10, 1_000_000),
}


@pytest.mark.parametrize(("profile", "place"), [(DEFAULT, 0), (PAPER, 1)], ids=["default", "paper"])
def test_the_two_profiles_are_frozen(profile: settings.Settings, place: int) -> None:
    """A journal tells its settings, but results that were published name the profile only."""
    without = {"levers": None, "deadlines": None, "hours": msgspec.UNSET, "governed": msgspec.UNSET}
    assert (
        msgspec.structs.asdict(profile)
        == COMMON | {name: row[place] for name, row in FROZEN.items()} | without
    )


def test_the_longest_span_that_may_be_set() -> None:
    assert TEN_YEARS_MS == 316_224_000_000  # ten years of 366 days


@pytest.mark.parametrize(
    ("draw", "units"),
    [
        (1 << 63, 0.693147),  # the middle: ln 2
        (0, 37.429948),  # the largest: -ln(2**-54)
        ((1 << 64) - 1, 0.0),
    ],
)
def test_exponential_draws_in_fixed_point(draw: int, units: float) -> None:
    assert UNIT == 1 << 40
    assert round(exponential(draw) / 2**40, 6) == units
