"""The scenario: one frozen record of everything that decides what comes out of a run.

Law: same scenario, same jobs, same bytes of results. ``identity`` is a hash over all that
decides (the cluster, the rules, the jobs themselves) and over nothing else: no path, no
wall-clock, no version, and not which schemes are asked for, since none changes another's result.

A scenario is read from TOML; a key that is not understood is refused with its line. See
``docs/scenarios`` for commented ones.
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from emulator.faults import Fault, NodeSlow
from emulator.schemes import SCHEMES
from emulator.timing import HADOOP3, PAPER, Timing
from emulator.workload.job import ONE_SLOT, Job, JobClass
from emulator.workload.scaling import scale_to_load
from emulator.workload.spec import Loaded, load, merge, with_load
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.settings import PROFILES, Settings
from yarnctl.errors import BadInput
from yarnctl.units import Resources, times

if TYPE_CHECKING:
    from emulator.virtual_host import Setup

TIMINGS: dict[str, Timing] = {"hadoop3": HADOOP3, "paper": PAPER}

MAX_NODES = 100_000
MAX_SLOTS = 1000
MAX_SEED = 2**63 - 1

Where = Callable[[str], str]
"""Says where a field of the scenario was given: a file with its line, or an option."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the controller that differ from the profile's (None: as the profile has it)."""

    tick_ms: int | None = None
    open_tick_ms: int | None = None
    kill_timeout_ms: int | None = None
    on_timeout: Literal["give-up", "kill"] | None = None
    expire_ms: int | None = None
    utilisation_tolerance_ratio: float | None = None
    kill_maps: bool | None = None
    model_scheduler: bool | None = None
    cost_guard: bool | None = None
    settle_ms: int | None = None
    task_suspensions_max: int | None = None
    job_open_ratio_max: float | None = None
    refused_shown: int | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster, a workload and the rules.

    ``production`` and ``research`` are SPECs (see ``emulator.workload.spec``), at least one is
    given. A node has ``slots`` containers of one slot, or ``node_memory_mib`` and ``node_vcores``.
    ``*_peak`` scales task counts until the peak offered load is that (None: as recorded), as
    section 6 of the paper does with 1.0 and 1.5; ``load`` then multiplies arrival rates.
    ``shares`` and ``caps`` are (production, research) parts of the cluster: guarantees, and the
    partitions of the capped schemes.

    ``am_ratio`` is the part of a queue's maximum that its masters may hold (YARN's
    maximum-am-resource-percent). Every master takes a whole container, as in the paper: at 1.0
    the masters of waiting jobs can take every container, and then no task runs. At 0.5 half of
    the room is always left to tasks.
    """

    nodes: int
    slots: int | None = None
    node_memory_mib: int | None = None
    node_vcores: int | None = None
    production: str | None = None
    research: str | None = None
    production_peak: float | None = None
    research_peak: float | None = None
    load: float = 1.0
    schemes: tuple[str, ...] = tuple(SCHEMES)
    job_policy: str = "MR"
    task_policy: str = "SRT"
    profile: str = "default"
    timing: str = "hadoop3"
    mode: Literal["queues", "deadlines"] = "queues"
    shares: tuple[float, float] = (0.95, 0.05)
    caps: tuple[float, float] = (0.8, 0.2)
    am_ratio: float = 0.5
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    tuning: Tuning = Tuning()


class Prepared(NamedTuple):
    """A checked scenario with its jobs, what was noted about them, and its identity."""

    scenario: Scenario
    jobs: tuple[Job, ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...]
    identity: str


# --- reading --------------------------------------------------------------------------------


def read_scenario(path: Path) -> tuple[Scenario, Where]:
    """Read a scenario file. Raises BadInput naming file, line and field."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "not UTF-8 text", "give a scenario in TOML") from None
    where = _where_in(path, text)
    try:
        scenario = msgspec.convert(tomllib.loads(text), Scenario)
    except tomllib.TOMLDecodeError as error:
        raise _torn(path, error) from None
    except msgspec.ValidationError as error:
        raise _refused(where, error) from None
    check(scenario, where)
    return scenario, where


def _where_in(path: Path, text: str) -> Where:
    lines = text.splitlines()

    def where(field: str) -> str:
        key = re.compile(rf"\s*\[*\s*[\"']?{re.escape(field)}[\"']?\s*[=\].]")
        found = next((number for number, line in enumerate(lines, 1) if key.match(line)), None)
        return f"{path}, field {field}" if found is None else f"{path}:{found}, field {field}"

    return where


def _torn(path: Path, error: tomllib.TOMLDecodeError) -> BadInput:
    found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
    problem = str(error)[: found.start()].strip() if found else str(error)
    place = f"{path}:{found.group(1)}" if found else str(path)
    return BadInput(place, f"not TOML: {problem}", "a scenario holds lines like nodes = 7")


def _refused(where: Where, error: msgspec.ValidationError) -> BadInput:
    problem, _, place = str(error).partition(" - at ")
    named = re.search(r"field `([^`]+)`", problem)
    inner = place.strip("`").removeprefix("$").lstrip(".")
    outer = re.split(r"[.\[]", inner, maxsplit=1)[0]
    field = outer or (named.group(1) if named else "scenario")
    detail = f" (at {inner})" if inner and inner != field else ""
    if "missing required" in problem:
        return BadInput(where(field), problem[0].lower() + problem[1:] + detail)
    fields = ", ".join(Scenario.__struct_fields__)
    remedy = f"a scenario has {fields}" if named and not outer else ""
    return BadInput(where(field), problem + detail, remedy)


# --- checking -------------------------------------------------------------------------------


def check(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first field that no cluster or controller can have."""
    _check_cluster(scenario, where)
    _check_rules(scenario, where)
    _check_ratios(scenario, where)
    _check_tuning(scenario.tuning, where)
    _check_faults(scenario, where)


def _within(where: Where, field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(where(field), f"{value} is not within {low} to {high}")


def _known(where: Where, field: str, value: str, known: dict[str, Any]) -> None:
    if value not in known:
        raise BadInput(where(field), f"unknown: {value[:40]!r}", f"one of {', '.join(known)}")


def _check_cluster(scenario: Scenario, where: Where) -> None:
    _within(where, "nodes", scenario.nodes, 1, MAX_NODES)
    sized = scenario.node_memory_mib is not None or scenario.node_vcores is not None
    if scenario.slots is not None and sized:
        raise BadInput(where("slots"), "slots and a node size are both given", "give one of them")
    if scenario.slots is not None:
        _within(where, "slots", scenario.slots, 1, MAX_SLOTS)
    elif scenario.node_memory_mib is None or scenario.node_vcores is None:
        remedy = "give slots, or node_memory_mib and node_vcores"
        raise BadInput(where("slots"), "the node size is missing", remedy)
    else:
        _within(where, "node_memory_mib", scenario.node_memory_mib, 1, 1 << 40)
        _within(where, "node_vcores", scenario.node_vcores, 1, 1 << 20)


def _check_rules(scenario: Scenario, where: Where) -> None:
    if scenario.production is None and scenario.research is None:
        raise BadInput(where("production"), "no workload", "give production, research or both")
    if not scenario.schemes:
        raise BadInput(where("schemes"), "no scheme", f"some of {', '.join(SCHEMES)}")
    for name in scenario.schemes:
        _known(where, "schemes", name, SCHEMES)
    if len(set(scenario.schemes)) < len(scenario.schemes):
        raise BadInput(where("schemes"), "a scheme stands twice")
    _known(where, "job_policy", scenario.job_policy, JOB_POLICIES)
    _known(where, "task_policy", scenario.task_policy, TASK_POLICIES)
    _known(where, "profile", scenario.profile, PROFILES)
    _known(where, "timing", scenario.timing, TIMINGS)
    _within(where, "seed", scenario.seed, 0, MAX_SEED)


def _check_ratios(scenario: Scenario, where: Where) -> None:
    for field in ("load", "production_peak", "research_peak"):
        value = getattr(scenario, field)
        if value is not None and not 0 < value < math.inf:
            raise BadInput(where(field), f"{value} is not a positive number")
    for field in ("shares", "caps"):
        values = getattr(scenario, field)
        if not all(0 < value <= 1 for value in values) or sum(values) > 1 + 1e-9:
            raise BadInput(where(field), f"{list(values)}: parts must be above 0 and make at most 1 together")
    if not 0 < scenario.am_ratio <= 1:
        raise BadInput(where("am_ratio"), f"{scenario.am_ratio} is not above 0 and at most 1")


def _check_tuning(tuning: Tuning, where: Where) -> None:
    for field in tuning.__struct_fields__:
        value = getattr(tuning, field)
        least = 1 if field.endswith("tick_ms") else 0
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and not least <= value < math.inf:
            raise BadInput(where(field), f"{value} is not a number from {least} up")


def _check_faults(scenario: Scenario, where: Where) -> None:
    for number, fault in enumerate(scenario.faults, 1):
        for field in fault.__struct_fields__:
            value = getattr(fault, field)
            if not 0 <= value < math.inf:
                problem = f"fault {number}, field {field}: {value} is not a number from 0 up"
                raise BadInput(where("faults"), problem)
        until_ms = getattr(fault, "until_ms", None)
        if until_ms is not None and until_ms <= fault.at_ms:
            raise BadInput(where("faults"), f"fault {number}, field until_ms: not after at_ms")
        if isinstance(fault, NodeSlow) and fault.ratio <= 0:
            raise BadInput(where("faults"), f"fault {number}, field ratio: must be above 0")


# --- jobs and rules -------------------------------------------------------------------------


def prepare(scenario: Scenario) -> Prepared:
    """Load the jobs and compute the identity. Raises BadInput for a workload that cannot be used."""
    loaded = [_side(scenario, side) for side in ("production", "research")]
    merged = merge(loaded[0].jobs, loaded[1].jobs)
    require_room(scenario, merged)
    return Prepared(
        scenario,
        merged,
        tuple(f"{one.source}: {note}" for one in loaded for note in one.notes),
        tuple(one.source for one in loaded if one.source),
        identity(scenario, merged),
    )


def jobs(scenario: Scenario) -> tuple[Job, ...]:
    """Return the jobs of a scenario, by (submission, name)."""
    return prepare(scenario).jobs


def _side(scenario: Scenario, job_class: JobClass) -> Loaded:
    """Load one class: the source, scaled to its peak, then at the wished arrival rate."""
    text: str | None = getattr(scenario, job_class)
    if text is None:
        return Loaded((), (), "")
    loaded = load(text, job_class, seed=scenario.seed)
    found, notes = loaded.jobs, list(loaded.notes)
    peak: float | None = getattr(scenario, f"{job_class}_peak")
    if peak is not None:
        scaled = scale_to_load(found, slots_of(scenario), peak)
        found = scaled.jobs
        notes.append(
            f"task counts x {scaled.factor:.4g}: peak load {scaled.achieved_load:.2f} (wished {peak:g})"
        )
    if scenario.load != 1.0:
        found = with_load(found, scenario.load)
    return Loaded(found, tuple(notes), loaded.source)


def node_size(scenario: Scenario) -> Resources:
    """Return the size of one node."""
    if scenario.slots is not None:
        return times(ONE_SLOT, scenario.slots)
    return Resources(scenario.node_memory_mib or 0, scenario.node_vcores or 0)


def slots_of(scenario: Scenario) -> int:
    """Return how many containers of one slot the cluster holds."""
    size = node_size(scenario)
    each = min(size.memory_mib // ONE_SLOT.memory_mib, size.vcores // ONE_SLOT.vcores)
    return max(1, each * scenario.nodes)


def require_room(scenario: Scenario, jobs: tuple[Job, ...]) -> None:
    """Raise BadInput if a container of a job fits on no node: before anything is written."""
    from emulator.cluster import Cluster
    from emulator.schemes import queues_of

    Cluster(
        nodes=1,
        node_size=node_size(scenario),
        queues=queues_of(SCHEMES["soft-cap"], scenario.shares, scenario.caps, scenario.am_ratio),
        jobs=jobs,
        timing=TIMINGS[scenario.timing],
        seed=scenario.seed,
    )


def settings(scenario: Scenario) -> Settings:
    """Return the controller's settings: the profile, the policies, and what is tuned."""
    tuned = {name: getattr(scenario.tuning, name) for name in scenario.tuning.__struct_fields__}
    return msgspec.structs.replace(
        PROFILES[scenario.profile],
        mode=scenario.mode,
        job_policy=scenario.job_policy,
        task_policy=scenario.task_policy,
        seed=scenario.seed,
        **{name: value for name, value in tuned.items() if value is not None},
    )


def setup(scenario: Scenario) -> Setup:
    """Return what stays the same between the schemes."""
    from emulator.virtual_host import Setup

    return Setup(
        nodes=scenario.nodes,
        node_size=node_size(scenario),
        timing=TIMINGS[scenario.timing],
        settings=settings(scenario),
        shares=scenario.shares,
        caps=scenario.caps,
        am_ratio=scenario.am_ratio,
        seed=scenario.seed,
        faults=scenario.faults,
    )


# --- identity -------------------------------------------------------------------------------


def identity(scenario: Scenario, jobs: tuple[Job, ...]) -> str:
    """Return sha256 over the canonical JSON of all that decides, as hexadecimal digits."""
    decides = {
        "jobs": hashlib.sha256(msgspec.json.encode(jobs)).hexdigest(),
        "nodes": scenario.nodes,
        "node_size": node_size(scenario),
        "settings": settings(scenario),
        "timing": TIMINGS[scenario.timing],
        "shares": scenario.shares,
        "caps": scenario.caps,
        "am_ratio": scenario.am_ratio,
        "seed": scenario.seed,
        "faults": scenario.faults,
    }
    return hashlib.sha256(msgspec.json.encode(decides, order="sorted")).hexdigest()
