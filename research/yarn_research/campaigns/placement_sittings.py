"""A campaign of placement in several sittings: what one has played is given to the next, on another machine.

Law: a sitting begins where the last one ended, with its profile, its arrivals and its runs, at the same
commit and with the same terms, and says on which machine it ran. Nothing that was played is played again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from yarn_research.campaigns.placement_judging import PlacedRun, PlayedRun
from yarn_research.campaigns.placement_terms import PlacedArrival
from yarnctl.cli.runs import keep_run
from yarnctl.errors import BadInput
from yarnctl.prediction.application_runs import KnownRun


class Sitting(msgspec.Struct, frozen=True):
    """When and where a part was played; ``rounds`` were complete at its end."""

    began: str
    machine: dict[str, Any]
    rounds: int


HEAD = ("kind", "began", "commit", "uncommitted", "machine", "load_before", "versions")
"""What a file of results says first (``yarn_research.campaigns.provenance.head``)."""


class Left(msgspec.Struct, frozen=True):
    """What the sittings before have left; without a sitting, a part of the profile and nothing else."""

    kind: str
    began: str
    commit: str | None
    uncommitted: list[str] | None
    machine: dict[str, Any]
    load_before: list[float]
    versions: dict[str, Any]
    terms: dict[str, Any]
    coming: list[list[dict[str, Any]]]
    profile: tuple[KnownRun, ...]
    played: tuple[PlayedRun, ...]
    sittings: tuple[Sitting, ...]


def left_by(file: Path) -> Left:
    """Read what was left; raises BadInput for something else."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Left)
    except (OSError, msgspec.MsgspecError) as error:
        problem = f"is not an unfinished placement campaign: {error}"
        raise BadInput(str(file), problem, "name the --output of one") from error


def restore(left: Left, folder: Path) -> None:
    """Write the files of a campaign's folder as the last sitting left them; a folder in use stays."""
    if (folder / "campaign.json").exists():
        return
    for known_run in left.profile:
        keep_run(folder / "runs.jsonl", known_run)
    for each in left.played:
        known = msgspec.structs.asdict(each)
        run = PlacedRun(**{name: known[name] for name in PlacedRun.__struct_fields__})
        (folder / f"{each.round + 1}-{each.scheme}.json").write_bytes(msgspec.json.encode(run))
    head = {name: getattr(left, name) for name in HEAD}
    begun = {"head": head, "terms": left.terms}
    (folder / "campaign.json").write_bytes(msgspec.json.encode(begun))


def by_name(coming: list[list[PlacedArrival]]) -> list[list[dict[str, Any]]]:
    """Return who comes, without the folder of their files."""
    return [[each._replace(file=Path(each.file).stem)._asdict() for each in one] for one in coming]
