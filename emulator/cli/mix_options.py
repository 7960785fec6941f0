"""Options of the scheme ``mix``: what may be lost, and how soon a lever must give room."""

from __future__ import annotations

import click

may_lose_option = click.option(
    "--may-lose",
    default="0%",
    show_default=True,
    metavar="P",
    help="Of mix: how much of research's container time of the last hour may be lost, like 2%.",
)
room_within_option = click.option(
    "--room-within",
    metavar="SPAN",
    help="Of mix: how soon a lever must give room, like 3s.  [default: as a suspension does]",
)
