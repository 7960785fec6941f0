"""Which campaign a bench writes into: an unfinished one that is still open, or a new one.

Law: a file that is in the index is closed, finished or not; and nothing is ever written over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from yarn_research.campaigns.campaign import FOLDER, Campaign, all_of
from yarn_research.campaigns.index import entries
from yarnctl.errors import BadInput


def goes_on(began: Campaign, schemes: Sequence[str], rounds: int, folder: Path = FOLDER) -> Campaign:
    """Return the newest open, unfinished campaign of the same commit and configuration, else the new one.

    A campaign that would take the name of another is refused.
    """
    closed = entries(folder)
    for found in reversed(all_of(began.kind, folder)):
        is_open = f"{found.name}.json" not in closed
        if is_open and _same(found, began) and found.unfinished(schemes, rounds):
            found.rounds = rounds
            return found
    if (folder / f"{began.name}.json").exists():
        remedy = "wait a minute: it is named by the minute"
        raise BadInput(began.name, "a campaign of this name is there already", remedy)
    return began


def _same(one: Campaign, other: Campaign) -> bool:
    """Say whether runs of both may stand in one file."""
    if one.commit is None:
        return False
    fields = ("commit", "uncommitted", "configuration", "versions", "machine")
    return all(getattr(one, name) == getattr(other, name) for name in fields)
