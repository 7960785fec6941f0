"""``yarn-emulator nm``: one or many NodeManagers that heartbeat to a ``yarn-emulator rm`` over HTTP.

It prints one line on stdout when all nodes are registered. Everything else goes to stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from emulator.cli.live_options import SLOT_MIB, allow_host_option, containers_option, work_option
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from emulator.live.node.node_manager import LiveNode

DEFAULT_SLOTS = 4


@click.command("nm")
@click.option("--rm", required=True, metavar="URL", help="Address of yarn-emulator rm (or serve).")
@click.option(
    "--count",
    default=1,
    show_default=True,
    type=click.IntRange(1, 20_000),
    metavar="N",
    help="Number of nodes.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Number of containers (1024 MiB, 1 vcore) of a node.  [default: 4]",
)
@click.option(
    "--memory-mib", type=click.IntRange(1, 1 << 30), metavar="M", help="Memory of a node, instead of --slots."
)
@click.option(
    "--vcores", type=click.IntRange(1, 1 << 20), metavar="V", help="Vcores of a node, with --memory-mib."
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="H", help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0: any free one.",
)
@click.option("--name", metavar="H", help="Host name of the nodes for masters.  [default: --host]")
@click.option("--rack", default="/default-rack", show_default=True, metavar="PATH", help="Rack of the nodes.")
@allow_host_option
@containers_option("process: tasks are real processes; modelled: they only take time.")
@work_option("Folder that all processes of the cluster share.")
@click.option("--json", "as_json", is_flag=True, help="Print the nodes as one line of JSON.")
def command(
    rm: str,
    count: int,
    slots: int | None,
    memory_mib: int | None,
    vcores: int | None,
    host: str,
    port: int,
    name: str | None,
    rack: str,
    allow_hosts: tuple[str, ...],
    containers: str,
    work: Path,
    as_json: bool,
) -> None:
    """Run one or many NodeManagers. They register with --rm, and again after it has restarted."""
    from yarnctl.listening.names import checked_names

    size_mib, cores = node_size(slots, memory_mib, vcores)

    from emulator.live.programs.node_program import NodePlan, run_nodes
    from emulator.live.wire.http_client import Address
    from emulator.live.wire.http_server import bind

    url = Address(rm).url
    work.mkdir(parents=True, exist_ok=True)
    plan = NodePlan(
        rm=url,
        work=work.absolute(),
        count=count,
        memory_mib=size_mib,
        vcores=cores,
        host=name or reachable(host),
        rack=rack,
        processes=containers == "process",
        allow_hosts=checked_names(allow_hosts),
    )
    listener = bind(host, port)

    def say(text: str) -> None:
        click.echo(f"yarn-emulator nm: {text}", err=True)

    run_nodes(plan, listener, say, lambda ready: report_ready(ready, url, as_json))


def node_size(slots: int | None, memory_mib: int | None, vcores: int | None) -> tuple[int, int]:
    """Return a node's size in MiB and vcores, given as slots or by itself. Raises BadInput."""
    if memory_mib is None and vcores is None:
        number = DEFAULT_SLOTS if slots is None else slots
        return number * SLOT_MIB, number
    if slots is not None:
        raise BadInput(
            "--slots", "cannot be combined with --memory-mib and --vcores", "give one or the other"
        )
    if memory_mib is None or vcores is None:
        raise BadInput("--memory-mib, --vcores", "one is missing", "give both, or --slots")
    return memory_mib, vcores


def reachable(host: str) -> str:
    """Return the host that others reach a listener at; a wildcard address is loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # recognised, not bound


def report_ready(nodes: list[LiveNode], rm: str, as_json: bool) -> None:
    """Print that all nodes are registered."""
    if as_json:
        import msgspec

        line = {"ready": True, "rm": rm, "nodes": [node.name for node in nodes]}
        line["address"] = nodes[0].shape.address
        click.echo(msgspec.json.encode(line).decode())
    else:
        first, others = nodes[0].name, f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        click.echo(f"{first}{others} registered at {rm}")
