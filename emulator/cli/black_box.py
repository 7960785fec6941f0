"""``yarn-emulator spark-submit`` and ``yarn-emulator flink``: submit a black box as these programs do.

Exit statuses are those of the real programs. spark-submit waits and returns 1 unless the application
succeeded; flink returns 0 when it runs.
"""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

import click

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from emulator.live.jobs.black_box import BlackBox
    from emulator.live.jobs.submission_client import Client

RM = "YARN_EMULATOR_RM"
"""The environment entry that names the ResourceManager, as HADOOP_CONF_DIR does for the real programs."""
AS_TYPED = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": ["--help"]}


@click.command("spark-submit", context_settings=AS_TYPED)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def spark_submit(words: tuple[str, ...]) -> int:
    """Submit the WORDS of spark-submit with the file modelled:ALONE_S+SHARED_S, and wait for the end."""
    from emulator.cli.submit import ProgressLine
    from emulator.live.jobs.black_box import spark_box

    client, name = _submitted(spark_box(words))
    row = client.wait(name, 0.5, ProgressLine())
    click.echo(f"{name} {row.get('finalStatus', '')}")
    return 0 if row.get("finalStatus") == "SUCCEEDED" else 1


@click.command("flink", context_settings=AS_TYPED)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def flink(words: tuple[str, ...]) -> int:
    """Submit the WORDS of flink with the jar modelled:ALONE_S+SHARED_S, and return when it runs."""
    import time

    from emulator.live.jobs.black_box import flink_box
    from emulator.live.jobs.submission_client import FINAL_STATES

    client, name = _submitted(flink_box(words))
    while (state := client.application(name).get("state")) != "RUNNING":
        if state in FINAL_STATES:
            return 0 if state == "FINISHED" else 1
        time.sleep(0.5)  # the pace of a poll: REST has nothing to wait on
    return 0


def _submitted(box: BlackBox) -> tuple[Client, str]:
    """Submit a black box as its user; return the client and the application's id."""
    from emulator.live.jobs.submission_client import Client, checkpoint_environment

    rm = os.environ.get(RM)
    if not rm:
        raise BadInput(RM, "is not set", "set it to the ResourceManager's address, http://HOST:PORT")
    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    client = Client(rm, user)
    entries = checkpoint_environment(client.webhdfs()) if box.route == "plugin" else {}
    name = client.submit(box.job(user, entries), box.queue, box.tags, box.priority, kind=box.kind)
    click.echo(f"submitted {name}", err=True)
    return client, name
