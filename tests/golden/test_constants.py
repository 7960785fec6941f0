"""Golden tables of what stands by name: numbers, policies' records, what is assumed where nothing is told.

Law: a number that changes makes an older journal replay to something else, so it changes here, too.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
from importlib import import_module
from typing import Any

import msgspec
import pytest

from tests.golden.test_values import STRUCTS
from yarnctl import deciding
from yarnctl.deciding.admission.book import Admission, AdmissionStore
from yarnctl.deciding.admission.mechanisms import SIZINGS
from yarnctl.deciding.admission.mechanisms.justice import JusticeMemory
from yarnctl.deciding.admission.mechanisms.oracle import HOPELESS, UNKNOWN
from yarnctl.deciding.admission.mechanisms.pythia import PAST
from yarnctl.deciding.admission.pricing.accounts import Accounts
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.policies import COMPARED_JOB_POLICIES, JOB_POLICIES, TASK_POLICIES, JobUsage

NUMBERS = {
    # in an admission gate
    "admission.book.CLOSED_MAX": 1000,
    "admission.book.DROPPED_AT_ONCE": 200,
    "admission.book.UNLEARNED_MAX": 200,
    "admission.book.PENDING_FOR_MAX_MS": 600_000,
    "admission.capacity.FOREVER_MS": 2**53 - 1,
    "admission.shared_round.PLANNED_MAX": 20,
    "admission.late.late_promises.LATE_FOR_RATIO": 0.05,
    "admission.late.late_promises.LOOKS": 3,
    "admission.late.late_promises.POINTS_MAX": 400,
    "admission.late.late_promises.QUIET_RATIO": 0.33,
    "admission.late.late_promises.SETUP_RATIO": 0.05,
    "admission.late.late_promises.TASKS_RATIO": 0.9,
    "admission.late.requoting.COMPARED_MAX": 1_600,
    "admission.late.requoting.GRID_MS": 1_000,
    "admission.late.requoting.LATER_MAX": 16,
    "admission.late.requoting.QUOTED_MAX": 20,
    "admission.pricing.accounts.DAY_MS": 86_400_000,
    "admission.shared_round.RESERVED_MS": 60_000,
    # in a mix of levers
    "ledger_state.KEPT_MS": 3_600_000,
    "held_windows.MARK_MS": 60_000,
    "held_windows.MARKS_MIN": 60,
    "held_windows.MARKS_MAX": 720,
    "lever_times.KEPT_MS": 3_600_000,
    "lever_times.SPREADS": 2,
    "lever_times.WEIGHT_MAX": 8,
    "levers.NOT_BEGUN_MS": 2**52,
    "mix.EXACT_MAX": 14,
    "offers._FIRST": -(2**53),
    "offers._LOST": 2**44,
    "offers._NEVER": 2**88,
    "time_lost.GAP_MAX_MS": 60_000,
    "order.LEAVE_MS": 1_500,
    "order.SILENT_TIMES": 3,
    "order.SUSPEND_MS": 4_000,
    "waiting_worth.HOLD_MS": 60_000,
    "waiting_worth.KILLS_MAX": 3,
    "waiting_worth.PARTS": 1000,
    "waiting_worth.ROOM_SUSPENSIONS": 3,
    "waiting_worth.SECOND_WORTH_RATIO": 1.0,
    # in a controller
    "controller.ROUNDS_MAX": 8,
    "governor.FAILED_MAX": 3,
    "governor.FIRST_STOP_MS": 240_000,
    "governor.GAP_MAX_MS": 5_000,
    "governor.HELD_MAX_MS": 3_000,
    "governor.STOP_MAX_MS": 1_920_000,
    "governor.TURNOVER_MS": 10_000,
    "draws.UNIT": 2**40,
    "draws._GOLDEN": 0x9E3779B97F4A7C15,
    "draws._MASK": 2**64 - 1,
    "looks.STALE_MS": 2500,
    "not_granted.LOCALITY_DELAY": 40,
    "not_granted.MORE_HEARTBEATS": 2,
    "forecast.SCALE": 10**9,
    "ledger_state.DOUBLINGS_MAX": 10,
    "foresight.LASTS_MS": 60_000,
    "foresight.MASTER_PRIORITY": 0,
    "foresight.MAP_PRIORITY": 20,
    "foresight.REDUCE_PRIORITY": 10,
    "admission.offering.TRIED": 5,
    "admission.mechanisms.orion.HOUR_S": 3600,
    "admission.mechanisms.orion.REFUSED_MAX": 5,
    "admission.mechanisms.placement_round.OVERDUE_MS": 10_000,
    "admission.placement_options.OPTIONS_MAX": 64,
    "admission.mechanisms.mrm.HORIZON_MS": 31_622_400_000,
    "admission.mechanisms.mrm.UNIT_MIN_MS": 60_000,
    "admission.mechanisms.mrm.WIDEST": 128,
    "admission.mechanisms.promises.EARLY_MASTERS_MAX": 4,
    "admission.mechanisms.promises.EARLY_MASTERS_OF": 12,
    "admission.mechanisms.promises.LATE_FOR_MIN_MS": 60_000,
    "admission.pricing.master_loads.TRIES": 8,
    "queue_hold.RECENT_ORDERS": 10,
    "queue_hold.MISDIRECTED_MAX": 3,
    "queue_hold.FIRST_PAUSE_MS": 300_000,
    "queue_hold.PAUSE_MAX_MS": 3_600_000,
    "queue_hold.GRANTED_TO_FORGET": 10,
    "policies.FOREVER_MS": 2**53 - 1,
    "policies.PPM": 10**6,
    "model.NAME_MAX": 200,
    "preemptor.PPM": 10**6,
    "queue_names.LIKE_MIN_RATIO": 0.6,
    "queue_names.NAME_MAX": 200,
    "queue_names.NEAREST_MAX": 3,
    "queue_names.SHOWN_MAX": 20,
    "queue_hold.CAP_AFTER_MS": 15_000,
    "queue_hold.CAP_UNSERVED_MS": 60_000,
    "regrowing.GROW_AFTER_MS": 15_000,
    "regrowing.GROW_UNSERVED_AFTER_MS": 60_000,
    "regrowing.GROW_AGAIN_MS": 30_000,
    "reasons.rooting.FAULT_MAX": 1000,
    "records.FORMAT": 1,
    "selector._LARGE": 1024,
    "settings.TEN_YEARS_MS": 316_224_000_000,
    "settings.RATIO_MAX": 1000,
    "open_hours.MINUTE_MS": 60_000,
    "open_hours.DAY_MINUTES": 1440,
    "open_hours.WEEK_MINUTES": 10_080,
    "open_hours._MONDAY_MINUTES": 4320,
    "open_hours._WEEK_MS": 604_800_000,
    "carried_out.RETURNING_PRIORITY": 3,
    "planning.REVISIONS_MAX": 4,
    "prioritising.HOLD_MS": 60_000,
    "queue_node.EQUAL": 1_000_000,
    "tree_model.MANY": 1_000_000,
    "what_if.played_forward.LATEST": 2.5,
    "what_if.played_forward.QUIET_ROUNDS_MAX": 6,
    "what_if.played_forward.RESUMING_PRIORITY": 3,
    "what_if.played_forward.ROUNDS_MAX": 60,
    "what_if.played_forward.SOONEST": 0.25,
    "what_if.supposed.MASTER_PRIORITY": 0,
    "what_if.supposed.RETURNING_PRIORITY": 5,
    "what_if.supposed.TASK_PRIORITY": 20,
}


def found_numbers() -> dict[str, float]:
    """Return the numbers that modules of the deciding half assign to names, by "module.NAME"."""
    found: dict[str, float] = {}
    prefix = deciding.__name__ + "."
    for info in pkgutil.walk_packages(deciding.__path__, prefix):
        module = import_module(info.name)
        for node in ast.parse(inspect.getsource(module)).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in [name for each in targets for name in ast.walk(each) if isinstance(name, ast.Name)]:
                value = getattr(module, target.id)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found[f"{info.name.removeprefix(prefix)}.{target.id}"] = value
    return found


def test_every_number_that_has_a_name() -> None:
    assert found_numbers() == NUMBERS


POLICIES = {
    # name: (the key depends on a draw, sign of the share or of the remaining time)
    "MR": (False, -1),
    "LR": (False, 1),
    "PR": (True, 0),
    "MDF": (False, 0),
    "MLF": (False, 0),
    "MR-once": (False, 0),
    "SRT": (False, 1),
    "LRT": (False, -1),
    "random": (True, 0),
}


def test_what_the_selector_may_make_use_of() -> None:
    found = {name: (each.draws, each.share_sign) for name, each in JOB_POLICIES.items()}
    found |= {name: (each.draws, each.share_sign) for name, each in COMPARED_JOB_POLICIES.items()}
    found |= {name: (each.draws, each.remaining_sign) for name, each in TASK_POLICIES.items()}
    assert found == POLICIES


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("MR", (-40,)),
        ("LR", (40,)),
        ("MDF", (-900, -3)),
        ("MLF", (-70, -3)),  # equal laxities: who was submitted last gives first
        ("MR-once", (-40,)),
    ],
)
def test_the_key_of_each_job_policy(name: str, key: tuple[int, ...]) -> None:
    usage = JobUsage("a", 40, 9, 8, 3, 900, 70, 0)
    assert {**JOB_POLICIES, **COMPARED_JOB_POLICIES}[name].key(usage, 0, 0) == key


ALLOCATOR_ROWS = {
    # name: (order of the queue, turns away who is late, needs an estimate, learns)
    "no_drop_fs": ("tasks", False, False, False),
    "reactive_fs": ("tasks", True, False, False),
    "oracle": ("ratio", False, True, False),
    "pythia": ("tasks", False, False, True),
    "justice": ("ratio", False, False, True),
}


def test_what_tells_the_allocators_apart() -> None:
    found = {
        name: (each.order, each.drops_late, each.needs_estimate, each.learns)
        for name, each in SIZINGS.items()
    }
    assert found == ALLOCATOR_ROWS


@pytest.mark.parametrize("terms", [HOPELESS, UNKNOWN, PAST], ids=["hopeless", "unknown", "past"])
def test_who_is_turned_away_is_offered_nothing(terms: Any) -> None:
    assert (terms.containers, terms.least) == (0, 0)
    assert terms.reason


ASSUMED = {
    "AdmissionAsked": {"key": ""},
    "Admission": {"key": "", "state": "waiting", "reservation": None, "application": "", "why": None,
        "changed_at_ms": 0},
    "JusticeMemory": {"completed": 0, "least": 1.0, "most": 0.0, "last": 1.0, "last_met": True, "errors": 0.0,
        "smoothed": 0.0},
    "Order": {"state": "ordered", "freed_at_ms": None, "settled_at_ms": None, "remaining_ms": -1,
        "resume_cost_ms": 0, "observed": False, "group_ms": msgspec.UNSET},
    "Transition": {"why": None, "container": "", "application": "", "keys_done": -1, "left": "",
        "left_node": ""},
}  # fmt: skip


def assumed(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the values of the fields that need not be told."""
    fields = msgspec.structs.fields(struct)
    return {each.name: each.default for each in fields if each.default is not msgspec.NODEFAULT}


@pytest.mark.parametrize("name", sorted(ASSUMED))
def test_what_is_assumed_where_nothing_is_told(name: str) -> None:
    more: list[type[msgspec.Struct]] = [JusticeMemory, Admission]
    structs = {each.__name__: each for each in [*STRUCTS, *more]}
    assert assumed(structs[name]) == ASSUMED[name]


def test_a_book_begins_empty() -> None:
    empty: dict[str, Any] = {
        "gate": None, "admissions": {}, "numbered": 0, "now_ms": 0, "version": 0, "trained": False,
        "opened": {}, "unlearned": {}, "_ids": {}, "_keys": {}, "_applications": {},
        "accounts": Accounts(accounts={}, payments={}), "outcomes": {}, "started_at_ms": {}, "ran_ms": {},
    }  # fmt: skip
    assert vars(AdmissionStore()) == empty
    assert (AdmissionStore().queues, AdmissionStore().container_mib) == ((), 0)
    assert AdmissionStore().problem(object()) == ""


def test_draws_are_the_same_for_ever() -> None:
    """A journal names its seed: with other numbers it would replay to other victims."""
    assert named("application_1_0001") == 3336053021508437573
    assert (uniform(0, 1, 2), uniform(7), uniform(-1, 5)) == (
        17650578182555822980,
        7191089600892374487,
        3846658174030194800,
    )
