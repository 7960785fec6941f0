"""A file of results: a bench goes on with it, a judge reads it.

Law: what one sitting has played is not played again. A file is gone on with at its own commit only; something
else is refused by its name, and left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from yarnctl.command_line import complain, print_json
from yarnctl.errors import BadInput


class WithHead(Protocol):
    """What such a file holds: ``head`` is of its first sitting (``yarn_research.campaigns.provenance.head``)."""

    head: dict[str, Any]


K = TypeVar("K", bound=WithHead)


def gone_on(file: Path, new: K) -> K:
    """Return what a file holds, else ``new``; raises BadInput where it was another commit's."""
    if not file.exists():
        return new
    try:
        found = msgspec.json.decode(file.read_bytes(), type=type(new))
    except msgspec.MsgspecError as error:
        raise BadInput(str(file), f"is not a results file of {new.head['kind']}: {error}") from error
    for name in ("commit", "uncommitted"):
        if found.head[name] != new.head[name]:
            raise BadInput(str(file), f"was begun at {name} {found.head[name]}", "name another file")
    return found


def keep(file: Path, held: object) -> None:
    """Write what was played, as it is now."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(held), indent=1) + b"\n")


def read_kept(file: str) -> dict[str, Any]:
    """Return what a file holds; raises OSError or msgspec.MsgspecError."""
    return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Any])


def tell(arguments: Sequence[str], kind: str, judge: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Judge the file that is named, print what came out as JSON; return the exit status.

    ``judge`` is given what the file holds; where that is something else, the file is bad input. ``kind`` is
    how such files are called.
    """
    try:
        (file,) = arguments
        held = read_kept(file)
        told = {"campaign": Path(file).stem, "commit": held["head"]["commit"], **judge(held)}
    except (OSError, ValueError, TypeError, KeyError, msgspec.MsgspecError) as error:
        remedy = f"name research/records/{kind}-...json"
        problem = BadInput("FILE", f"is not a results file of {kind}: {error}", remedy)
        return complain(str(problem), problem.exit_status)
    print_json(told)
    return 0
