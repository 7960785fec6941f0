"""What came of the applications that were placed, and which targets hold.

``python -m yarn_research.campaigns.placement_judging FILE`` judges a kept campaign again, and prints JSON.

Law: research/notes/placement.md has the rule, which stood there before the first judged run. Nothing is run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.campaigns.placement_terms import work_s
from yarnctl.command_line import complain, print_json
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.prediction.application_runs import KnownRun

MET_LEAST, TIMES_LEAST_LOADED, LATE_MOST = 0.70, 1.5, 0.10
COLUMNS = ("round", "scheme", "met", "rejected", "late of admitted", "kinds", "right")


class PlacedOutcome(msgspec.Struct, frozen=True):
    """What became of one application: as what it was placed, when it ended, whether its output is right.

    What was rejected has an empty ``kind`` and no end; ``reason`` is the code of what was decided.
    ``right``: it succeeded, and its output says what it should.
    """

    application: str
    yarn: str
    state: str
    kind: str
    containers: int
    predicted_ms: int | None
    cost_mtokens: int | None
    start_at_ms: int | None
    deadline_at_ms: int
    ended_at_ms: int | None
    right: bool
    reason: str

    @property
    def met(self) -> bool:
        """Whether it ended in time, with a right output."""
        return self.right and self.ended_at_ms is not None and self.ended_at_ms <= self.deadline_at_ms


class PlacedRun(msgspec.Struct, frozen=True):
    """One scheme in one round; ``load_before``: the machine's."""

    outcomes: tuple[PlacedOutcome, ...]
    began: str
    load_before: tuple[float, ...]
    load_after: tuple[float, ...]


class PlacementFigures(msgspec.Struct, frozen=True):
    """Figures of a scheme; ``met_ratio`` is of all that came, lateness of those that ran."""

    came: int
    met_ratio: float
    rejected: int
    late_of_admitted_ratio: float
    by_kind: dict[str, int]
    right: bool


class PlacementClaim(msgspec.Struct, frozen=True):
    """A target, what we have, and whether it holds."""

    claim: str
    ours: str
    holds: bool


def figures(outcomes: Sequence[PlacedOutcome]) -> PlacementFigures:
    """Return the figures of what came under one scheme."""
    ran = [each for each in outcomes if each.ended_at_ms is not None]
    kinds = sorted({each.kind for each in ran})
    return PlacementFigures(
        came=len(outcomes),
        met_ratio=sum(each.met for each in outcomes) / max(1, len(outcomes)),
        rejected=sum(each.state == "rejected" for each in outcomes),
        late_of_admitted_ratio=sum(not each.met for each in ran) / max(1, len(ran)),
        by_kind={kind: sum(each.kind == kind for each in ran) for kind in kinds},
        right=all(each.right for each in ran),
    )


def cheapest_kinds(runs: Iterable[KnownRun], prices: Mapping[str, float]) -> set[str]:
    """Return the kinds that are the cheapest for some application by the profile; equal ones all count."""
    found = set[str]()
    for by_kind in work_s(runs, prices).values():
        least = min(by_kind.values())
        found |= {kind for kind, cost in by_kind.items() if cost <= least}
    return found


def judged(
    found: Mapping[str, PlacementFigures], kinds: Iterable[str], cheapest: set[str]
) -> list[PlacementClaim]:
    """Return the targets, of the figures of all rounds by scheme and of the profile's cheapest kinds."""
    orion, other = found["orion"], found["least_loaded"]
    unused = sorted(kind for kind in kinds if not orion.by_kind.get(kind))
    met = f"{orion.met_ratio:.3f}"
    return [
        PlacementClaim(f"orion meets at least {MET_LEAST:g}", met, orion.met_ratio >= MET_LEAST),
        PlacementClaim(
            f"orion meets at least {TIMES_LEAST_LOADED:g} x least_loaded",
            f"{met} against {other.met_ratio:.3f}",
            orion.met_ratio >= TIMES_LEAST_LOADED * other.met_ratio,
        ),
        PlacementClaim(
            f"of what orion admitted at most {LATE_MOST:g} is late",
            f"{orion.late_of_admitted_ratio:.3f}",
            orion.late_of_admitted_ratio <= LATE_MOST,
        ),
        PlacementClaim(
            "orion chose each kind, or its profile has it never as the cheapest",
            f"not chosen: {', '.join(unused) or 'none'}; the cheapest: {', '.join(sorted(cheapest))}",
            not set(unused) & cheapest,
        ),
        PlacementClaim(
            "every output is right",
            ", ".join(f"{name} {'all' if each.right else 'NOT all'}" for name, each in found.items()),
            all(each.right for each in found.values()),
        ),
    ]


class PlayedRun(PlacedRun, frozen=True, kw_only=True):
    """A run as a campaign has it."""

    round: int
    scheme: str


class Campaign(msgspec.Struct, frozen=True):
    """What is judged of a kept campaign; ``prices`` of a container-second by kind, in milli-tokens."""

    commit: str | None
    prices: dict[str, float]
    profile: tuple[KnownRun, ...]
    played: tuple[PlayedRun, ...]

    def figures(self) -> dict[str, PlacementFigures]:
        """Return the figures of all rounds by scheme."""
        found = dict[str, list[PlacedOutcome]]()
        for each in self.played:
            found.setdefault(each.scheme, []).extend(each.outcomes)
        return {scheme: figures(outcomes) for scheme, outcomes in found.items()}

    def claims(self) -> list[PlacementClaim]:
        """Return the targets."""
        return judged(self.figures(), self.prices, cheapest_kinds(self.profile, self.prices))


def table(campaign: Campaign) -> list[tuple[str, ...]]:
    """Return a row for each run, and one for all rounds of a scheme (``COLUMNS``)."""
    each = [(str(one.round + 1), one.scheme, figures(one.outcomes)) for one in campaign.played]
    whole = [("all", scheme, found) for scheme, found in campaign.figures().items()]
    return [
        (
            number,
            scheme,
            f"{found.met_ratio:.2f}",
            str(found.rejected),
            f"{found.late_of_admitted_ratio:.2f}",
            ", ".join(f"{kind} {count}" for kind, count in found.by_kind.items()),
            "all" if found.right else "NOT all",
        )
        for number, scheme, found in (*each, *whole)
    ]


def read_campaign(path: Path) -> Campaign:
    """Read a kept campaign; raises BadInput where it is something else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Campaign)
    except OSError as error:
        raise BadInput(str(path), error.strerror or str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        told = f"is not a results file of placement: {error}"
        raise BadInput(str(path), told, "name research/records/placement-...json") from error


def main(arguments: Sequence[str]) -> int:
    """Judge a kept campaign; print what came out as JSON."""
    try:
        if len(arguments) != 1:
            raise BadInput("FILE", f"{len(arguments)} were named", "name one kept campaign")
        path = Path(arguments[0])
        found = read_campaign(path)
        told: dict[str, Any] = {"campaign": path.stem, "commit": found.commit}
        print_json({**told, "figures": found.figures(), "claims": found.claims()})
    except YarnctlError as error:
        return complain(str(error), error.exit_status)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
