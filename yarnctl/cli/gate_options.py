"""The options of the gate: ``--admission`` and what belongs to it, for ``yarnctl run``.

Law: nothing is opened here; a mechanism that is not known, and what no mechanism can take, are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.daemon.admission.building import AdmissionOptions
    from yarnctl.daemon.admission.pool_files import PoolSettings
    from yarnctl.deciding.admission.mechanisms.mrm_terms import MrmChoices
    from yarnctl.deciding.admission.records import Choices

Function = Callable[..., Any]

DEFAULT_ALLOCATOR = "justice"
KAPPA_MAX = 1_000_000
LATE_RATIO_MAX = 0.5
"""From here on a promise would be kept by less than half of the jobs."""
_OF_THE_GATE = (
    "admission_queues",
    "admission_capacity",
    "admission_container_mib",
    "admission_kappa",
    "admission_late_ratio",
    "pools",
    "runs",
)


def admission_options(command: Function) -> Function:
    """Add ``--admission`` and what belongs to it: the arguments of :func:`admitting_of`."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def admitting_of(given: dict[str, Any]) -> AdmissionOptions | None:
    """Return the gate's options, None without ``--admission``; raises BadInput naming the option."""
    name = given["admission"]
    if name is None:
        for option in [*_OF_THE_GATE, *([] if given["predicted_demand"] else ["history"])]:
            if given[option] not in (None, "", ()):
                told = "says something of a gate, and there is none"
                raise BadInput(_named(option), told, "give --admission, too")
        return None
    from yarnctl.daemon.admission.building import AdmissionOptions

    require_mechanism(name)
    pools = pools_of(given)
    if name == "mrm" and given["mode"] != "deadlines":
        told = "promises deadlines, which YARN keeps only if they are served in their order"
        raise BadInput("--admission mrm", told, "give --mode deadlines (and --allow-priority), too")
    _require_runs(given["runs"])
    return AdmissionOptions(
        allocator=name,
        queues=given["admission_queues"],
        capacity=given["admission_capacity"],
        container_mib=given["admission_container_mib"],
        history=history_of(given),
        lease_ms=given["admission_lease_s"] * 1000,
        choices=choices_of_gate(given),
        pools=pools,
        runs=given["runs"],
    )


def _named(argument: str) -> str:
    """Return the option of an argument; a repeatable one has its argument in the plural."""
    return "--" + argument.replace("_", "-").replace("queues", "queue")


def _require_runs(file: Path | None) -> None:
    """Raise BadInput for a file of runs that cannot be read, or without the extra that predicts from it."""
    if file is None:
        return
    if not file.is_file():
        raise BadInput(f"--runs {file}", "is no file", "yarnctl runs import --store FILE makes one")
    from yarnctl.cli.runs import kept_runs
    from yarnctl.extras import require_extra

    kept_runs(file)
    require_extra("prediction")


def pools_of(given: dict[str, Any]) -> tuple[PoolSettings, ...]:
    """Return the pools of a gate that places applications; raises BadInput naming the option."""
    from yarnctl.deciding.admission.mechanisms import MECHANISMS

    name, places = given["admission"], MECHANISMS[given["admission"]].places
    for option in ("pools", "runs"):
        if not places and given[option] is not None:
            told = f"says where applications are placed, and --admission {name} places none"
            raise BadInput(f"--{option}", told, "give --admission orion, or leave it away")
    if not places:
        return ()
    if given["pools"] is None:
        raise BadInput(f"--admission {name}", "places applications in pools", "give --pools FILE, too")
    for option in ("admission_queues", "admission_capacity", "admission_container_mib"):
        if given[option]:
            raise BadInput(_named(option), "is each pool's own to say", "write it into the file of --pools")
    from yarnctl.daemon.admission.pool_files import read_pools
    from yarnctl.submitting import FRAMEWORKS

    pools = read_pools(given["pools"])
    odd = next((kind for pool in pools for kind in pool.kinds if kind not in FRAMEWORKS), None)
    if odd is not None:
        raise BadInput(
            f"--pools {given['pools']}", f"kind {odd!r} is no framework", f"use {', '.join(FRAMEWORKS)}"
        )
    return pools


def require_mechanism(name: str) -> None:
    """Raise BadInput for an allocator that there is not, naming those that there are."""
    from yarnctl.deciding.admission.mechanisms import MECHANISMS

    if name not in MECHANISMS:
        raise BadInput("--admission", f"no allocator {name[:60]!r}", f"use one of {', '.join(MECHANISMS)}")


def choices_of_gate(given: dict[str, Any]) -> Choices | MrmChoices:
    """Return the mechanism's choices; raises BadInput for one that it does not have, or cannot take."""
    import msgspec

    from yarnctl.deciding.admission.mechanisms.mrm_terms import MrmChoices
    from yarnctl.deciding.admission.records import DEFAULT_CHOICES

    kappa, late_ratio = given["admission_kappa"], given["admission_late_ratio"]
    if given["admission"] != "mrm":
        for option, value in (("--admission-kappa", kappa), ("--admission-late-ratio", late_ratio)):
            if value is not None:
                told = f"says what deadlines cost, and --admission {given['admission']} sells none"
                raise BadInput(option, told, "give --admission mrm, or leave it away")
        return DEFAULT_CHOICES
    if kappa is not None and not 0 < kappa <= KAPPA_MAX:
        raise BadInput("--admission-kappa", f"{kappa} is not above 0 and at most {KAPPA_MAX:,}")
    if late_ratio is not None and not (0 < late_ratio < LATE_RATIO_MAX and 1 - late_ratio < 1):
        told = f"{late_ratio} is not between 0 and {LATE_RATIO_MAX}"
        raise BadInput("--admission-late-ratio", told, "0.05 is a chance of one in twenty")
    chosen = {"kappa": kappa, "late_ratio": late_ratio}
    said = {name: value for name, value in chosen.items() if value is not None}
    return msgspec.structs.replace(MrmChoices(), **said) if said else DEFAULT_CHOICES


def history_of(given: dict[str, Any]) -> str:
    """Return the history server that was named, ``off`` or "" (found); raises BadInput for no address."""
    history: str = given["history"] or ""
    if history and history != "off" and not history.startswith(("http://", "https://")):
        raise BadInput("--history", f"{history[:80]!r} is no address", "use for instance http://jhs:19888")
    return history.rstrip("/")


_OPTIONS = (
    click.option(
        "--admission",
        metavar="ALLOCATOR",
        is_flag=False,
        flag_value=DEFAULT_ALLOCATOR,
        help="Keep a gate for jobs with deadlines (POST /v1/admissions, yarnctl admit): justice, pythia,"
        f" oracle, reactive_fs or no_drop_fs; alone: {DEFAULT_ALLOCATOR}. It works while only observing, too."
        " mrm sells deadlines (docs/market.md); orion and least_loaded place applications that exist for"
        " several frameworks (docs/placement.md). Off unless given.",
    ),
    click.option(
        "--pools",
        type=click.Path(path_type=Path, dir_okay=False),
        help="With --admission orion: TOML file of [[pool]] tables, each a leaf queue (docs/placement.md).",
    ),
    click.option(
        "--runs",
        type=click.Path(path_type=Path, dir_okay=False),
        help="With --admission orion: known runs (as yarnctl runs keeps them) by which applications are"
        " predicted that come without options. Runs that the journal has count, too.",
    ),
    click.option(
        "--admission-queue",
        "admission_queues",
        multiple=True,
        metavar="QUEUE",
        help="Only this leaf queue is behind the gate (repeatable): its guarantee is what may be given."
        "  [all]",
    ),
    click.option(
        "--admission-capacity",
        type=click.IntRange(1),
        metavar="CONTAINERS",
        help="How many containers there are. Else: the nodes' memory, each divided by a container's.",
    ),
    click.option(
        "--admission-container-mib",
        type=click.IntRange(1),
        metavar="MIB",
        help="Memory of one container; larger ones count as several."
        "  [1024, MapReduce's own default, or the scheduler's smallest allocation if that is more]",
    ),
    click.option(
        "--admission-lease-s",
        type=click.IntRange(5, 86_400),
        default=120,
        show_default=True,
        help="A request that nobody has renewed for so long is withdrawn.",
    ),
    click.option(
        "--admission-kappa",
        type=float,
        metavar="K",
        help="With --admission mrm: tokens for a container-second of work, and of slack that others lose;"
        " above 0.  [1]",
    ),
    click.option(
        "--admission-late-ratio",
        type=float,
        metavar="R",
        help="With --admission mrm: the chance that a job computes more than it has room for; between 0 and"
        " 0.5. Smaller: later and dearer deadlines, fewer of them missed.  [0.05]",
    ),
    click.option(
        "--history",
        metavar="URL",
        help="JobHistoryServer that the gate and --predicted-demand learn from, or off (then the gate learns"
        " nothing).  [found in the ResourceManager's /conf or HADOOP_CONF_DIR]",
    ),
)
