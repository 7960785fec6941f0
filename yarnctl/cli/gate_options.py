"""The options of admission control: ``--admission`` and what belongs to it, for ``yarnctl run``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yarnctl.cli.grouped_help import RareOption
from yarnctl.command_line import option_group
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.cli.cluster import Mode
    from yarnctl.daemon.admission.building import AdmissionOptions
    from yarnctl.daemon.admission.pool_files import PoolSettings
    from yarnctl.deciding.admission.mechanisms.promises import MrmChoices

Function = Callable[..., Any]

DEFAULT_ALLOCATOR = "justice"
KAPPA_MAX = 1_000_000
LATE_RATIO_MAX = 0.5  # With a larger chance to be late, less than half of the jobs would meet their deadline
DEFAULT_LEASE_S = 120


class GateOptions(NamedTuple):
    """``--admission`` and what belongs to it; None, "" or empty: not given."""

    admission: str | None = None
    pools: Path | None = None
    runs: Path | None = None
    admission_queues: tuple[str, ...] = ()
    admission_capacity: int | None = None
    admission_container_mib: int | None = None
    admission_lease_s: int = DEFAULT_LEASE_S
    admission_kappa: float | None = None
    admission_late_ratio: float | None = None
    history: str | None = None
    admission_unseen: bool = False


def admission_options(command: Function) -> Function:
    """Add ``--admission`` and what belongs to it; the argument ``gate``."""
    return option_group(GateOptions, "gate", _OPTIONS, section="Admission control")(command)


def admitting_of(gate: GateOptions, mode: Mode, predicts: bool) -> AdmissionOptions | None:
    """Return the settings of admission control, None without ``--admission``; BadInput names the option."""
    if gate.admission is None:
        for name, value in gate._asdict().items():
            if name == "admission_lease_s" or (name == "history" and predicts):
                continue
            if value not in (None, "", (), False):
                raise BadInput(_option_of(name), "requires --admission", "add --admission, or remove it")
        return None
    from yarnctl.daemon.admission.building import AdmissionOptions

    require_mechanism(gate.admission)
    pools = pools_of(gate, gate.admission)
    if gate.admission == "mrm" and mode != "deadlines":
        problem = "requires that YARN serves the earliest deadline first"
        raise BadInput("--admission mrm", problem, "add --mode deadlines (and --allow-priority)")
    _require_runs(gate.runs)
    if gate.admission_unseen:
        from yarnctl.extras import require_extra

        require_extra("prediction")
    return AdmissionOptions(
        allocator=gate.admission,
        queues=gate.admission_queues,
        capacity=gate.admission_capacity,
        container_mib=gate.admission_container_mib,
        history=history_of(gate.history),
        lease_ms=gate.admission_lease_s * 1000,
        choices=choices_of_gate(gate),
        pools=pools,
        runs=gate.runs,
        unseen=gate.admission_unseen,
    )


def _option_of(argument: str) -> str:
    return "--" + argument.replace("_", "-").replace("queues", "queue")


def _require_runs(file: Path | None) -> None:
    if file is None:
        return
    if not file.is_file():
        raise BadInput(
            f"--runs {file}", "file not found", "create it with yarnctl runs import FILE --store RUNS"
        )
    from yarnctl.cli.runs import kept_runs
    from yarnctl.extras import require_extra

    kept_runs(file)
    require_extra("prediction")


def pools_of(gate: GateOptions, allocator: str) -> tuple[PoolSettings, ...]:
    """Return the pools in which an allocator places applications (none: it places none); raises BadInput."""
    from yarnctl.deciding.admission.mechanisms import MECHANISMS

    if not MECHANISMS[allocator].places:
        for option, value in (("--pools", gate.pools), ("--runs", gate.runs)):
            if value is not None:
                problem = f"--admission {allocator} does not place applications"
                raise BadInput(option, problem, "use --admission orion, or remove the option")
        return ()
    if gate.pools is None:
        raise BadInput(f"--admission {allocator}", "requires pools", "add --pools FILE")
    for name in ("admission_queues", "admission_capacity", "admission_container_mib"):
        if getattr(gate, name):
            raise BadInput(_option_of(name), "is set for each pool", "write it into the file of --pools")
    from yarnctl.daemon.admission.pool_files import read_pools
    from yarnctl.frameworks.submissions import FRAMEWORKS

    pools = read_pools(gate.pools)
    odd = next((kind for pool in pools for kind in pool.kinds if kind not in FRAMEWORKS), None)
    if odd is not None:
        raise BadInput(f"--pools {gate.pools}", f"unknown kind {odd!r}", f"use {', '.join(FRAMEWORKS)}")
    return pools


def require_mechanism(name: str) -> None:
    """Raise BadInput for an unknown allocator."""
    from yarnctl.deciding.admission.mechanisms import MECHANISMS

    if name not in MECHANISMS:
        raise BadInput(
            "--admission", f"unknown allocator {name[:60]!r}", f"use one of {', '.join(MECHANISMS)}"
        )


def choices_of_gate(gate: GateOptions) -> MrmChoices | None:
    """Return the mechanism's parameters; raises BadInput for one that it does not have, or out of range."""
    import msgspec

    from yarnctl.deciding.admission.mechanisms.promises import MrmChoices

    kappa, late_ratio = gate.admission_kappa, gate.admission_late_ratio
    if gate.admission != "mrm":
        for option, value in (("--admission-kappa", kappa), ("--admission-late-ratio", late_ratio)):
            if value is not None:
                problem = f"--admission {gate.admission} does not price deadlines"
                raise BadInput(option, problem, "use --admission mrm, or remove the option")
        return None
    if kappa is not None and not 0 < kappa <= KAPPA_MAX:
        raise BadInput(
            "--admission-kappa", f"{kappa} is out of range", f"use more than 0, at most {KAPPA_MAX:,}"
        )
    if late_ratio is not None and not (0 < late_ratio < LATE_RATIO_MAX and 1 - late_ratio < 1):
        problem = f"{late_ratio} is not between 0 and {LATE_RATIO_MAX}"
        raise BadInput("--admission-late-ratio", problem, "0.05 is a chance of one in twenty")
    chosen = {"kappa": kappa, "late_ratio": late_ratio}
    changed = {name: value for name, value in chosen.items() if value is not None}
    return msgspec.structs.replace(MrmChoices(), **changed) if changed else None


def history_of(history: str | None) -> str:
    """Return the address of the history server, ``off``, or "" (find it); raises BadInput."""
    found = history or ""
    if found and found != "off" and not found.startswith(("http://", "https://")):
        raise BadInput("--history", f"invalid address {found[:80]!r}", "use for example http://jhs:19888")
    return found.rstrip("/")


_OPTIONS = (
    click.option(
        "--admission",
        metavar="ALLOCATOR",
        is_flag=False,
        flag_value=DEFAULT_ALLOCATOR,
        help="Enable admission control for jobs with deadlines (yarnctl admit): justice, pythia, oracle,"
        f" reactive_fs or no_drop_fs; without a value {DEFAULT_ALLOCATOR}. Works also without --enforce."
        " mrm prices deadlines (docs/admission.md); orion and least_loaded place applications that exist for"
        " several frameworks (docs/admission.md).  [default: off]",
    ),
    click.option(
        "--pools",
        type=click.Path(path_type=Path, dir_okay=False),
        help="With --admission orion: TOML file of [[pool]] tables, each a leaf queue (docs/admission.md).",
    ),
    click.option(
        "--runs",
        cls=RareOption,
        type=click.Path(path_type=Path, dir_okay=False),
        help="With --admission orion: file of known runs (see yarnctl runs). Predicts applications that"
        " request placement without options; runs in the journal count, too.",
    ),
    click.option(
        "--admission-queue",
        "admission_queues",
        multiple=True,
        metavar="QUEUE",
        help="Control only this leaf queue (repeatable); its guarantee is the capacity.  [all queues]",
    ),
    click.option(
        "--admission-capacity",
        cls=RareOption,
        type=click.IntRange(1),
        metavar="CONTAINERS",
        help="Number of containers to admit jobs into.  [the nodes' memory divided by a container's]",
    ),
    click.option(
        "--admission-container-mib",
        cls=RareOption,
        type=click.IntRange(1),
        metavar="MIB",
        help="Memory of one container; a larger one counts as several."
        "  [1024, as in MapReduce, or the scheduler's minimum allocation if larger]",
    ),
    click.option(
        "--admission-lease-s",
        cls=RareOption,
        type=click.IntRange(5, 86_400),
        default=DEFAULT_LEASE_S,
        show_default=True,
        help="Withdraw a request that its client has not renewed for this many seconds.",
    ),
    click.option(
        "--admission-unseen",
        cls=RareOption,
        is_flag=True,
        help="Estimate jobs that have never run from all that have; needs the extra prediction.",
    ),
    click.option(
        "--admission-kappa",
        cls=RareOption,
        type=float,
        metavar="K",
        help="With --admission mrm: price in tokens of a container-second of work, and of slack that other"
        " jobs lose; above 0.  [1]",
    ),
    click.option(
        "--admission-late-ratio",
        cls=RareOption,
        type=float,
        metavar="R",
        help="With --admission mrm: accepted chance that a job needs more than it reserved; between 0 and"
        " 0.5. A smaller value gives later, more expensive deadlines, of which fewer are missed.  [0.05]",
    ),
    click.option(
        "--history",
        metavar="URL",
        help="JobHistoryServer from which admission control and --predicted-demand learn, or off (admission"
        " control then learns nothing).  [found in the ResourceManager's /conf or HADOOP_CONF_DIR]",
    ),
)
