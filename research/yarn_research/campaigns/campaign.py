"""A campaign: runs that were made for one comparison, with all that is known of how they were made.

Law: one file a campaign, and what stands in it is never changed or removed; a later campaign is a file of its
own beside it. A ratio is taken against the campaign's own runs of each job alone. What is not known is null
and named under ``unknown``. A run that is not counted stays in the file and says why (``left_out``).
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.campaigns.provenance import ROOT
from yarnctl.errors import BadInput

FOLDER = ROOT / "research" / "records"
KIND = "fig4-hadoop"
JOBS = ("production", "research")


class Campaign(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole file. ``configuration.schemes`` holds each scheme as ``yarn_research.campaigns.schemes.Scheme`` has it.

    ``uncommitted``: files that differed from ``commit``. ``order``: how the runs followed each other.
    ``source``: where a campaign was taken from that was not written by the bench. ``ranges``: of runs whose
    single times were not kept, only how many there were, and the least and the most.
    """

    name: str
    kind: str
    began: str | None
    commit: str | None
    uncommitted: list[str] | None
    machine: dict[str, Any] | None
    versions: dict[str, Any]
    configuration: dict[str, Any]
    order: str | None
    rounds: int | None
    unknown: list[str] = []
    source: str | None = None
    notes: list[str] = []
    ranges: dict[str, dict[str, Any]] = {}
    runs: list[dict[str, Any]] = []

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return FOLDER / f"{self.name}.json"

    def of(self, scheme: str) -> list[dict[str, Any]]:
        """Return the counted runs of a scheme, in order."""
        return [run for run in self.counted() if run["scheme"] == scheme]

    def counted(self) -> list[dict[str, Any]]:
        """Return the runs that figures are taken from."""
        return [run for run in self.runs if not run.get("left_out")]

    def schemes(self) -> list[str]:
        """Return the schemes of counted runs, in the order of their first run."""
        return list(dict.fromkeys(run["scheme"] for run in self.counted()))

    def alone_s(self, job: str) -> float | None:
        """Return a job's median when it ran alone in this campaign."""
        return self.median_s(f"{job}-alone", job)

    def median_s(self, scheme: str, job: str) -> float | None:
        """Return the median completion time of a job under a scheme; None where it never ran."""
        times = self.times_s(scheme, job)
        return statistics.median(times) if times else None

    def times_s(self, scheme: str, job: str) -> list[float]:
        """Return the completion times of a job under a scheme, as far as they are known."""
        found = (run.get(f"{job}_s") for run in self.of(scheme))
        return [each for each in found if each is not None]

    def ratio(self, scheme: str, job: str) -> float | None:
        """Return the median against the job alone, both of this campaign."""
        middle, alone = self.median_s(scheme, job), self.alone_s(job)
        return middle / alone if middle and alone else None

    def unfinished(self, schemes: Sequence[str], rounds: int) -> bool:
        """Say whether a scheme has fewer runs than asked for."""
        return any(len(self.of(scheme)) < rounds for scheme in schemes)


def read(path: Path) -> Campaign:
    """Read a campaign's file; raises BadInput where it is absent or of another form."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Campaign)
    except FileNotFoundError:
        raise BadInput(path.name, "campaign file not found", f"name a file of {FOLDER.name}/") from None
    except msgspec.DecodeError as error:
        raise BadInput(path.name, str(error)) from error


def named(name: str, folder: Path = FOLDER) -> Campaign:
    """Return a campaign by its name."""
    return read(folder / f"{name}.json")


def all_of(kind: str = KIND, folder: Path = FOLDER) -> list[Campaign]:
    """Return every campaign of a kind, the oldest first."""
    found = [read(path) for path in sorted(folder.glob("*.json")) if kind_of(path) == kind]
    return sorted(found, key=lambda campaign: campaign.name)


def kind_of(path: Path) -> str | None:
    """Return what a file of results says it is; None for a file from before there were campaigns."""
    document = json.loads(path.read_bytes())
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind if isinstance(kind, str) else None


def write(campaign: Campaign, folder: Path = FOLDER) -> Path:
    """Write a campaign, a line for each run, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{campaign.name}.json"
    head = msgspec.to_builtins(campaign)
    runs = head.pop("runs")
    text = json.dumps(head, indent=1, ensure_ascii=False)[:-2]
    lines = ",\n".join(f"  {json.dumps(run, ensure_ascii=False)}" for run in runs)
    beside = path.with_suffix(".new")
    beside.write_text(f'{text},\n "runs": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    os.replace(beside, path)
    return path
