"""``yarnctl monitoring``: write the alert rules for Prometheus and the board for Grafana."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from yarnctl.errors import BadInput

FILES = ("alerts.yaml", "board.json")
"""Files of the folder ``yarnctl/monitoring``."""


@click.command()
@click.option(
    "--write",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files; it is created if it is missing.",
)
@click.option("--force", is_flag=True, help="Replace files that differ.")
def command(folder: Path, force: bool) -> None:
    """Write alert rules for Prometheus (alerts.yaml) and a board for Grafana (board.json) to a folder."""
    source = files("yarnctl").joinpath("monitoring")
    contents = {name: source.joinpath(name).read_bytes() for name in FILES}
    try:
        for name, content in contents.items():
            if not force and (folder / name).exists() and (folder / name).read_bytes() != content:
                raise BadInput(str(folder / name), "exists and differs", "use --force to replace it")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            beside = folder / f".{name}.new"
            beside.write_bytes(content)
            beside.replace(folder / name)
            click.echo(folder / name)
    except OSError as error:
        raise BadInput("--write", str(error), "use a folder that you may write") from None
