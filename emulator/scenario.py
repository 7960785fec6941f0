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
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from emulator.faults import Fault, NodeSlow
from emulator.schemes import SCHEMES
from emulator.timing import HADOOP3, PAPER, Timing
from emulator.workload.job import ONE_SLOT, Job, JobClass
from emulator.workload.limits import DAY_MS, LONGEST_MS
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
MAX_RATIO = 1000
MAX_COUNT = 10**9
MAX_SPAN_MS = 10 * 366 * DAY_MS

Where = Callable[[str], str]
"""Says where a field of the scenario was given: a file with its line, or an option.

A field is named as in ``nodes``, ``tuning.tick_ms`` or ``faults[2].at_ms``.
"""


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
    """A checked scenario with its jobs, what was noted about them, and its identity.

    ``validate``: every invariant is checked after every event; it decides no result.
    """

    scenario: Scenario
    jobs: tuple[Job, ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...]
    identity: str
    validate: bool = False


# --- reading --------------------------------------------------------------------------------


def read_scenario(path: Path) -> tuple[Scenario, Where]:
    """Read a scenario file. Raises BadInput naming file, line and field."""
    text = _text(path)
    where = _where_in(path, text)
    try:
        scenario = msgspec.convert(tomllib.loads(text), Scenario)
    except tomllib.TOMLDecodeError as error:
        raise _torn(path, error) from None
    except msgspec.ValidationError as error:
        raise _refused(where, error) from None
    except RecursionError:
        raise BadInput(str(path), "not TOML: nested too deeply", _LIKE) from None
    except (ValueError, OverflowError):
        raise BadInput(str(path), "not TOML: a number has too many digits", _LIKE) from None
    check(scenario, where)
    return scenario, where


_LIKE = "a scenario holds lines like nodes = 7"
_HEADER = re.compile(r"\s*\[\[?\s*([\w-]+)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*[=.]")
_FIELD = re.compile(r"(\w+)(?:\[(\d+)\])?(?:\.([\w-]+))?")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}", "check the path") from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "not UTF-8 text", "give a scenario in TOML") from None
    except ValueError as error:  # a NUL in the name
        raise BadInput(str(path), f"cannot be read: {error}", "check the path") from None


def _where_in(path: Path, text: str) -> Where:
    lines = _lines_of(text)

    def where(field: str) -> str:
        found = _FIELD.match(field)
        name, index, key = found.groups() if found else (field, None, None)
        number = int(index) + 1 if index else 1
        label = f"field {name}"
        if name == "faults" and index is not None:
            label = f"[[faults]] {number}" + (f", field {key}" if key else "")
        elif name == "tuning" and key is not None:
            label = f"[tuning], field {key}"
        places = (name, number, key or ""), (name, number, ""), ("", 0, name)
        line = next((lines[place] for place in places if place in lines), None)
        return f"{path}, {label}" if line is None else f"{path}:{line}, {label}"

    return where


def _lines_of(text: str) -> dict[tuple[str, int, str], int]:
    """Return the line of each (section, how many of its name so far, key); "" 0 is above all sections."""
    found: dict[tuple[str, int, str], int] = {}
    sections: Counter[str] = Counter()
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.fullmatch(line.rstrip()):
            section = header[1]
            sections[section] += 1
            found[section, sections[section], ""] = number
        elif key := _KEY.match(line):
            found.setdefault((section, sections[section], key[1]), number)
    return found


def _torn(path: Path, error: tomllib.TOMLDecodeError) -> BadInput:
    found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
    problem = str(error)[: found.start()].strip() if found else str(error)
    place = f"{path}:{found.group(1)}" if found else str(path)
    return BadInput(place, f"not TOML: {problem[:200]}", _LIKE)


def _refused(where: Where, error: msgspec.ValidationError) -> BadInput:
    problem, _, place = str(error).partition(" - at ")
    named = re.search(r"field `([^`]+)`", problem)
    inner = place.strip("`").removeprefix("$").lstrip(".")
    field = f"{inner}.{named[1]}" if inner and named else inner or (named[1] if named else "scenario")
    problem = problem[0].lower() + problem[1:200] if "missing required" in problem else problem[:200]
    return BadInput(where(field), problem, _remedy(inner, named is not None and "missing" not in problem))


def _remedy(inner: str, unknown: bool) -> str:
    if inner.startswith("faults") and inner.endswith(".type"):
        return f"one of {', '.join(str(kind.__struct_config__.tag) for kind in get_args(Fault))}"
    if not unknown or inner.startswith("faults"):
        return ""
    fields = Tuning.__struct_fields__ if inner == "tuning" else Scenario.__struct_fields__
    return f"{'[tuning]' if inner == 'tuning' else 'a scenario'} has {', '.join(fields)}"


# --- checking -------------------------------------------------------------------------------


def check(scenario: Scenario, where: Where) -> None:
    """Raise BadInput for the first field that no cluster or controller can have."""
    _check_cluster(scenario, where)
    _check_rules(scenario, where)
    _check_ratios(scenario, where)
    _check_tuning(scenario.tuning, where)
    _check_faults(scenario, where)


def _within(where: Where, field: str, value: float, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(where(field), f"{_shown(value)} is not within {low} to {high}")


def _shown(value: object) -> str:
    """Return a number as text; Python itself refuses to print one of thousands of digits."""
    return "a number this large" if isinstance(value, int) and value.bit_length() > 100 else str(value)


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
        if value is None or isinstance(value, str | bool):
            continue
        most = MAX_SPAN_MS if field.endswith("_ms") else MAX_RATIO if "ratio" in field else MAX_COUNT
        _within(where, f"tuning.{field}", value, 1 if field.endswith("tick_ms") else 0, most)


def _check_faults(scenario: Scenario, where: Where) -> None:
    most = {"at_ms": LONGEST_MS, "until_ms": LONGEST_MS, "node": scenario.nodes - 1, "ratio": MAX_RATIO}
    for index, fault in enumerate(scenario.faults):
        place = f"faults[{index}]"
        for field in fault.__struct_fields__:
            _within(where, f"{place}.{field}", getattr(fault, field), 0, most.get(field, MAX_COUNT))
        until_ms = getattr(fault, "until_ms", None)
        if until_ms is not None and until_ms <= fault.at_ms:
            raise BadInput(where(f"{place}.until_ms"), f"{until_ms} is not after at_ms, {fault.at_ms}")
        if isinstance(fault, NodeSlow) and fault.ratio <= 0:
            raise BadInput(where(f"{place}.ratio"), f"{fault.ratio} is not above 0")


def _check_fault_jobs(scenario: Scenario, found: tuple[Job, ...], where: Where) -> None:
    for index, fault in enumerate(scenario.faults):
        job: int = getattr(fault, "job", 0)
        if job >= len(found):
            problem = f"{job}: the workload has {len(found)} jobs, counted from 0"
            raise BadInput(where(f"faults[{index}].job"), problem, "give a job that there is")


# --- jobs and rules -------------------------------------------------------------------------


def prepare(scenario: Scenario, where: Where = "scenario, field {}".format) -> Prepared:
    """Load the jobs and compute the identity. Raises BadInput for a workload that cannot be used."""
    loaded = [_side(scenario, side) for side in ("production", "research")]
    merged = merge(loaded[0].jobs, loaded[1].jobs)
    _check_fault_jobs(scenario, merged, where)
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
