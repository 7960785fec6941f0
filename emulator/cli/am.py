"""``yarn-emulator am``: the ApplicationMaster of one job.

A NodeManager starts it. The ResourceManager and the job's file determine what it does.
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.errors import BadInput


@click.command("am")
@click.option("--rm", required=True, metavar="URL", help="Address of the ResourceManager.")
@click.option("--application", required=True, metavar="ID", help="application_<epoch>_<number>.")
@click.option(
    "--attempt", required=True, type=click.IntRange(1), metavar="N", help="Number of the master's attempt."
)
@click.option("--container", required=True, metavar="ID", help="Container of the master.")
@click.option(
    "--job", required=True, type=click.Path(path_type=Path), metavar="FILE", help="File of the submitted job."
)
@click.option(
    "--work",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder that all processes of the cluster share.",
)
@click.option("--user", default="hadoop", show_default=True, help="Owner of the job.")
@click.option(
    "--node", default="", metavar="HOST:PORT", help="Node of the master; other hosts reach it there."
)
def command(
    rm: str, application: str, attempt: int, container: str, job: Path, work: Path, user: str, node: str
) -> int:
    """Run one ApplicationMaster. It requests containers from --rm and runs the job's tasks in them."""
    import re

    import msgspec

    from emulator.live.programs.master_program import MasterProgram, run_master
    from emulator.live.wire.http_server import bind
    from emulator.live.wire.messages import MasterLaunch
    from emulator.live.wire.submitted_job import read_job

    if not re.fullmatch(r"application_[0-9]+_[0-9]+", application):
        raise BadInput("--application", "is not an application id", "expected application_<epoch>_<number>")
    try:
        data = job.read_bytes()
    except OSError as error:
        raise BadInput(f"--job {job}", error.strerror or "cannot be read") from error
    read_job(data)
    launch = MasterLaunch(
        container=container,
        application=application,
        attempt=attempt,
        memory_mib=0,
        vcores=0,
        user=user,
        job=msgspec.Raw(data),
    )
    host, address = where(node)
    listener = bind(address, 0)
    url = f"http://{host}:{listener.getsockname()[1]}"

    def say(text: str) -> None:
        click.echo(f"yarn-emulator am: {text}", err=True)

    return run_master(MasterProgram(launch, rm, work, host, address, url, say), listener)


def where(node: str) -> tuple[str, str]:
    """Return the host others reach a master of this node at, and the address it listens at.

    A node that is known by another name than loopback's is one of several machines: all its addresses.
    """
    host = node.rpartition(":")[0].strip("[]")
    if host in ("", "localhost") or host.startswith("127.") or host == "::1":
        return "127.0.0.1", "127.0.0.1"
    import socket

    try:
        return host, socket.gethostbyname(host)
    except OSError:  # many nodes of one process: their names are no hosts
        return "127.0.0.1", "127.0.0.1"
