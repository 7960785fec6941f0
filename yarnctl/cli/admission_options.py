"""The gate's options of ``yarnctl run``, and what they mean.

Law: as in ``cli.cluster``: nothing is opened here, and what cannot be meant is refused before anything else.
The allocators' names come from their registry, read only when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.daemon.admission.building import Admitting

Function = Callable[..., Any]

DEFAULT_ALLOCATOR = "justice"


def admission_options(command: Function) -> Function:
    """Add ``--admission`` and what belongs to it: the arguments of :func:`admitting_of`."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def admitting_of(given: dict[str, Any]) -> Admitting | None:
    """Return what the gate was told, None without ``--admission``; raises BadInput naming the option."""
    name = given["admission"]
    if name is None:
        of_the_gate = ["admission_queues", "admission_capacity", "admission_container_mib"]
        for option in [*of_the_gate, *([] if given["ahead"] else ["history"])]:
            if given[option]:
                told = "--" + option.replace("_", "-").removesuffix("s")
                raise BadInput(told, "says something of a gate, and there is none", "give --admission, too")
        return None
    from yarnctl.daemon.admission.building import Admitting
    from yarnctl.deciding.admission.mechanisms import MECHANISMS

    if name not in MECHANISMS:
        raise BadInput("--admission", f"no allocator {name!r}", f"use one of {', '.join(MECHANISMS)}")
    return Admitting(
        allocator=name,
        queues=given["admission_queues"],
        capacity=given["admission_capacity"],
        container_mib=given["admission_container_mib"],
        history=history_of(given),
        lease_ms=given["admission_lease_s"] * 1000,
    )


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
        " Off unless given.",
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
        "--history",
        metavar="URL",
        help="JobHistoryServer that the gate and --ahead learn from, or off (then the gate learns nothing)."
        "  [found in the ResourceManager's /conf or HADOOP_CONF_DIR]",
    ),
)
