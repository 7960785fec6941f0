"""Queues beyond production and research, limits of users, and workloads that name a queue.

Law: an entry says what it changes and nothing else; without entries a scenario is what it was before
there were any. The two own queues have their guarantees from ``shares`` and ``caps``; a table with
their name gives them limits only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from emulator.cluster.entities import QueueConfig
from emulator.scenario.record import QueueEntry, Scenario, Where
from emulator.virtual.schemes import SCHEMES, LeafLimits
from emulator.workload.job import JobClass
from emulator.workload.spec import parse_spec
from emulator.workload.trace_file import is_name
from yarnctl.errors import BadInput

OWN: tuple[JobClass, ...] = ("production", "research")
"""The queues that every scheme has, by the class of jobs that goes there."""

MAX_FACTOR = 1000
MAX_USERS = 10_000


# --- checking -------------------------------------------------------------------------------


def shown(value: object) -> str:
    """Return a number as text; Python itself refuses to print one of thousands of digits."""
    return "a number this large" if isinstance(value, int) and value.bit_length() > 100 else str(value)


def within(where: Where, field: str, value: float, low: int, high: int) -> None:
    """Raise BadInput unless a value is within both bounds."""
    if not low <= value <= high:
        raise BadInput(where(field), f"{shown(value)} is not within {low} to {high}")


def known(where: Where, field: str, value: str, names: Mapping[str, object]) -> None:
    """Raise BadInput unless a name is one of those that there are."""
    if value not in names:
        raise BadInput(where(field), f"unknown: {value[:40]!r}", f"one of {', '.join(names)}")


def names_of(scenario: Scenario) -> dict[str, None]:
    """Return the names of all queues of a scenario."""
    return dict.fromkeys((*OWN, *(entry.name for entry in scenario.queues)))


def check_queues(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first queue that no scheduler can have."""
    if scenario.queues and scenario.mode == "deadlines":
        remedy = 'remove [[queues]], or give mode = "queues"'
        raise BadInput(where("queues[0]"), "under mode deadlines there is one queue for all", remedy)
    seen: dict[str, None] = {}
    for index, entry in enumerate(scenario.queues):
        _check_queue(entry, lambda field, index=index: where(f"queues[{index}].{field}"))  # type: ignore[misc]
        if entry.name in seen:
            problem = f"{entry.name!r} stands twice"
            raise BadInput(where(f"queues[{index}].name"), problem, "give each queue one table")
        seen[entry.name] = None
    _check_sums(scenario, where)


def _check_queue(entry: QueueEntry, where: Callable[[str], str]) -> None:
    if not is_name(entry.name) or entry.name in ("root", "default"):
        problem = f"{entry.name[:40]!r} cannot name a queue"
        raise BadInput(where("name"), problem, "give 1 to 200 characters without blanks; not root or default")
    for field in ("guaranteed_ratio", "maximum_ratio", "am_ratio"):
        value = getattr(entry, field)
        if value is not None and not 0 < value <= 1:
            raise BadInput(where(field), f"{value} is not above 0 and at most 1", "give a part of the whole")
    factor = entry.user_limit_factor
    if factor is not None and not 0 < factor <= MAX_FACTOR:
        remedy = "1.0 lets a user hold the queue's guarantee"
        raise BadInput(
            where("user_limit_factor"), f"{factor} is not above 0 and at most {MAX_FACTOR}", remedy
        )
    if entry.name in OWN:
        for field in ("guaranteed_ratio", "role"):
            if getattr(entry, field) is not None:
                remedy = "give shares and caps" if field == "guaranteed_ratio" else "leave it out"
                raise BadInput(where(field), f"{entry.name} has its own already", remedy)
    elif entry.guaranteed_ratio is None:
        raise BadInput(
            where("guaranteed_ratio"), "is missing", "give the part of the cluster it is guaranteed"
        )
    elif entry.maximum_ratio is not None and entry.maximum_ratio < entry.guaranteed_ratio:
        problem = f"{entry.maximum_ratio} is below the guarantee, {entry.guaranteed_ratio}"
        raise BadInput(where("maximum_ratio"), problem, "give at least as much")


def _check_sums(scenario: Scenario, where: Where) -> None:
    """Guarantees make at most the whole cluster, under the shares and, where a scheme has them, the caps."""
    more = math.fsum(entry.guaranteed_ratio or 0 for entry in scenario.queues)
    used = ["shares"]
    if any(SCHEMES[name].caps for name in scenario.schemes if name in SCHEMES):
        used.append("caps")
    for field in used if more else ():
        total = more + sum(getattr(scenario, field))
        if total > 1 + 1e-9:
            problem = f"with those of [[queues]] the guarantees make {total:g} of the cluster"
            raise BadInput(where(field), problem, f"give {field} that leave {more:g} to the other queues")


def check_workloads(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first workload that cannot be loaded or has no queue to go to."""
    for index, entry in enumerate(scenario.workloads):
        place = f"workloads[{index}]"
        try:
            parse_spec(entry.spec)
        except BadInput as error:
            raise BadInput(where(f"{place}.spec"), f"{error.where}: {error.problem}", error.remedy) from None
        if entry.queue is not None:
            if scenario.mode == "deadlines":
                problem = "under mode deadlines there is one queue for all"
                raise BadInput(where(f"{place}.queue"), problem, "leave it out")
            known(where, f"{place}.queue", entry.queue, names_of(scenario))
        within(where, f"{place}.users", len(entry.users), 0, MAX_USERS)
        for user in entry.users:
            if not is_name(user):
                problem = f"{user[:40]!r} cannot name a user"
                raise BadInput(where(f"{place}.users"), problem, "give 1 to 200 characters without blanks")
        if entry.peak is not None and not 0 < entry.peak < math.inf:
            raise BadInput(where(f"{place}.peak"), f"{entry.peak} is not a positive number", "1.0 fills it")


# --- what comes of it -----------------------------------------------------------------------


def more_queues(scenario: Scenario) -> tuple[QueueConfig, ...]:
    """Return the queues beyond production and research, as the scheduler has them."""
    return tuple(
        QueueConfig(
            name=entry.name,
            capacity_ratio=entry.guaranteed_ratio or 0.0,
            maximum_ratio=1.0 if entry.maximum_ratio is None else entry.maximum_ratio,
            am_ratio=scenario.am_ratio if entry.am_ratio is None else entry.am_ratio,
            user_limit_factor=entry.user_limit_factor,
            hurried=entry.role == "hurried",
        )
        for entry in scenario.queues
        if entry.name not in OWN
    )


def limits(scenario: Scenario) -> tuple[LeafLimits, ...]:
    """Return the limits given to production and research."""
    return tuple(
        LeafLimits(
            name=entry.name,
            maximum_ratio=entry.maximum_ratio,
            am_ratio=entry.am_ratio,
            user_limit_factor=entry.user_limit_factor,
        )
        for entry in scenario.queues
        if entry.name in OWN
    )


def with_role(scenario: Scenario, role: str) -> tuple[str, ...]:
    """Return the further queues of a role, in the order in which they are written."""
    return tuple(entry.name for entry in scenario.queues if entry.role == role)


def notes_on(scenario: Scenario) -> tuple[str, ...]:
    """Say each queue of the scenario's own in a line."""
    notes = []
    for entry in scenario.queues:
        parts: list[str] = [] if entry.role is None else [entry.role]
        for field in ("guaranteed_ratio", "maximum_ratio", "am_ratio", "user_limit_factor"):
            value = getattr(entry, field)
            if value is not None:
                parts.append(f"{field} {value:g}")
        notes.append(f"queue {entry.name}: {', '.join(parts) or 'no limits'}")
    return tuple(notes)
