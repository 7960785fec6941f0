"""``yarn-emulator nm``: one or many NodeManagers that heartbeat to a ``yarn-emulator rm`` over HTTP.

Law: one line on stdout once all nodes are registered; everything else goes to stderr.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.live_options import SLOT_MIB, allow_host_option, containers_option, work_option
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.live.node.node_manager import LiveNode

DEFAULT_SLOTS = 4


@dataclass(frozen=True)
class NodeOptions:
    """What each of the nodes is: where it listens, how others reach it, and how large it is."""

    count: int
    slots: int | None
    memory_mib: int | None
    vcores: int | None
    host: str
    port: int
    name: str | None
    rack: str
    containers: str


@click.command("nm")
@click.option("--rm", required=True, metavar="URL", help="Where yarn-emulator rm (or serve) answers.")
@click.option("--count", default=1, show_default=True, type=click.IntRange(1, 20_000), metavar="N")
@click.option(
    "--slots", type=click.IntRange(1, 10_000), metavar="N", help="N x (1024 MiB, 1 vcore).  [default: 4]"
)
@click.option("--memory-mib", type=click.IntRange(1, 1 << 30), metavar="M", help="Instead of --slots.")
@click.option("--vcores", type=click.IntRange(1, 1 << 20), metavar="V", help="With --memory-mib.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="H", help="Address to listen at.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65_535), help="0: any free one.")
@click.option("--name", metavar="H", help="Host name under which masters reach it.  [default: --host]")
@click.option("--rack", default="/default-rack", show_default=True, metavar="PATH")
@allow_host_option
@containers_option("modelled: start no task's process.")
@work_option("The folder that all processes of the cluster share.")
@click.option("--json", "as_json", is_flag=True, help="Say that it is ready as one line of JSON.")
def command(rm: str, work: Path, allow_hosts: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Run one or many NodeManagers. They register at --rm, and again whenever it has forgotten them."""
    from yarnctl.listening.names import checked_names

    nodes = NodeOptions(**given)
    memory_mib, vcores = room(nodes)

    from emulator.live.programs.node_program import NodePlan, run_nodes
    from emulator.live.wire.http_client import Address
    from emulator.live.wire.http_server import bind

    url = Address(rm).url
    work.mkdir(parents=True, exist_ok=True)
    plan = NodePlan(
        rm=url,
        work=work.absolute(),
        count=nodes.count,
        memory_mib=memory_mib,
        vcores=vcores,
        host=nodes.name or reachable(nodes.host),
        rack=nodes.rack,
        processes=nodes.containers == "process",
        allow_hosts=checked_names(allow_hosts),
    )
    listener = bind(nodes.host, nodes.port)

    def say(text: str) -> None:
        click.echo(f"yarn-emulator nm: {text}", err=True)

    run_nodes(plan, listener, say, lambda ready: report_ready(ready, url, as_json))


def room(given: NodeOptions) -> tuple[int, int]:
    """Return a node's size in MiB and vcores from either way to give it."""
    slots, memory_mib, vcores = given.slots, given.memory_mib, given.vcores
    if memory_mib is None and vcores is None:
        number = DEFAULT_SLOTS if slots is None else slots
        return number * SLOT_MIB, number
    if slots is not None:
        raise BadInput("--slots", "does not go with --memory-mib and --vcores", "give one or the other")
    if memory_mib is None or vcores is None:
        raise BadInput("--memory-mib, --vcores", "one is missing", "give both, or --slots")
    return memory_mib, vcores


def reachable(host: str) -> str:
    """Return the host that others reach a listener at; a wildcard address is loopback."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # recognised, not bound


def report_ready(nodes: list[LiveNode], rm: str, as_json: bool) -> None:
    """Print the line that says that all nodes are registered."""
    if as_json:
        import msgspec

        line = {"ready": True, "rm": rm, "nodes": [node.name for node in nodes]}
        line["address"] = nodes[0].shape.address
        click.echo(msgspec.json.encode(line).decode())
    else:
        first, others = nodes[0].name, f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        click.echo(f"{first}{others} registered at {rm}")
