"""What the study shows: ratios paired within rounds, their intervals, lost work, the claims of research/notes/study.md.

``python -m yarn_research.campaigns.study_judging FILE...`` judges kept sittings together, if they are of one commit.

Law: pure but for that. A round that is not whole does not count. A claim holds when the interval's upper end
keeps it where eight rounds are planned, else when the median does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import msgspec

from emulator.virtual.lever_tally import LATE_FACTOR
from yarn_research.campaigns.study_loads import ALONE, JAVA, LOADS, PRICED
from yarnctl.command_line import complain, print_json
from yarnctl.errors import BadInput, YarnctlError

DRAWS = 10_000
MANY = 8
"""From so many rounds on an interval is drawn; else there are the least and the most."""
OUTER_RATIO = 0.025
LATE_RATIO = 0.1
"""So many levers may come after 1.25 times what was predicted."""

Run = dict[str, Any]


class Paired(msgspec.Struct, frozen=True):
    """Ratios of one scheme over another, by round; ``low`` and ``high`` are the interval, or the range."""

    rounds: int
    median: float
    low: float
    high: float
    is_interval: bool


class StudyClaim(msgspec.Struct, frozen=True):
    """``ours`` is None and ``holds`` False where the runs are not there."""

    load: str
    claim: str
    bound: float
    ours: float | None
    upper: float | None
    rounds: int
    holds: bool


def counted(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of whole rounds."""
    schemes: dict[tuple[str, int], set[str]] = {}
    kept = [run for run in runs if "left_out" not in run]
    for run in kept:
        schemes.setdefault((run["load"], run["round"]), set()).add(run["scheme"])
    return [run for run in kept if schemes[run["load"], run["round"]] == set(LOADS[run["load"]].schemes)]


def took_s(run: Run, job: str) -> float | None:
    """Return a class's completion time in a run, s: production's is the mean of its jobs."""
    if job == "production":
        return fmean(each["took_s"] for each in run["production"]) if run["production"] else None
    found: float | None = run["research"]["took_s"] if "research" in run else None
    return found


def lost_s(run: Run) -> float | None:
    """Return research's lost work in a run, s of container time; None where no research ran."""
    if "research" not in run:
        return None
    is_java = LOADS[run["load"]].research.work == JAVA
    found = sum(run["research"]["ended_s"].values()) if is_java else run["research"]["again_s"]
    return float(found)


def paired(runs: Sequence[Run], load: str, job: str, scheme: str, base: str) -> Paired | None:
    """Return a scheme's time over another's, paired within rounds; None where a round has both nowhere."""
    base = f"{job}-alone" if base == "alone" else base
    by = {(run["round"], run["scheme"]): took_s(run, job) for run in counted(runs) if run["load"] == load}
    ratios = []
    for number in sorted({number for number, _ in by}):
        ours, theirs = by.get((number, scheme)), by.get((number, base))
        if ours is not None and theirs:
            ratios.append(ours / theirs)
    return _figure(ratios) if ratios else None


def _figure(ratios: Sequence[float]) -> Paired:
    if len(ratios) < MANY:
        return Paired(len(ratios), median(ratios), min(ratios), max(ratios), is_interval=False)
    chance = random.Random(1)
    drawn = sorted(median(chance.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    outer = round(OUTER_RATIO * DRAWS)
    return Paired(len(ratios), median(ratios), drawn[outer], drawn[-1 - outer], is_interval=True)


def of_loads(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row for each load and scheme: times, ratios, lost work."""
    rows = []
    for load in LOADS.values():
        for scheme in load.schemes:
            mine = [run for run in counted(runs) if (run["load"], run["scheme"]) == (load.name, scheme)]
            if mine:
                rows.append(_row(runs, load.name, scheme, mine))
    return rows


def _row(runs: Sequence[Run], load: str, scheme: str, mine: Sequence[Run]) -> dict[str, Any]:
    row: dict[str, Any] = {"load": load, "scheme": scheme, "rounds": len(mine)}
    for job in ("production", "research"):
        times = [each for run in mine if (each := took_s(run, job)) is not None]
        row[f"{job}_s"] = median(times) if times else None
        for base in ("alone", "yarn-tuned"):
            row[f"{job}_over_{base.replace('-', '_')}"] = paired(runs, load, job, scheme, base)
    losses = [each for run in mine if (each := lost_s(run)) is not None]
    row["lost_s_sum"] = sum(losses) if losses else None
    row["twice_sum"] = sum(run["research"]["twice"] for run in mine if "research" in run)
    row["identical"] = is_identical(runs, load, scheme)
    return row


def is_identical(runs: Sequence[Run], load: str, scheme: str) -> bool:
    """Say whether a scheme's outputs are those of the load's other runs, byte for byte."""
    seen: dict[str, list[tuple[str, Any]]] = {}
    for run in (run for run in counted(runs) if run["load"] == load):
        for place, each in enumerate(run["production"]):
            seen.setdefault(f"production {place}", []).append((run["scheme"], each["digests"]))
        if "research" in run:
            seen.setdefault("research", []).append((run["scheme"], run["research"]["digests"]))
    return all(
        found and found == told[0][1] for told in seen.values() for name, found in told if name == scheme
    )


def judged(runs: Sequence[Run]) -> list[StudyClaim]:
    """Return the claims of research/notes/study.md."""
    found = []
    for scheme in ("as-shipped", "mix-2"):
        found.append(_over_tuned(runs, "sleeping", "production", scheme, 1.02))
        found.append(_over_tuned(runs, "sleeping", "research", scheme, 1.0))
    found.append(_over_tuned(runs, "never-ran", "production", "as-shipped", 1.02))
    found.append(_over_tuned(runs, "map-heavy", "production", "mix-2", 1.05))
    found.append(_lost(runs, "map-heavy", "mix-2", 0.25))
    for load in ("processor", "disk", "disk-long"):
        found += [_over_tuned(runs, load, "research", scheme, 1.0) for scheme in ("as-shipped", "mix-2")]
    return [*found, *_priced(runs), *_exact(runs)]


def _priced(runs: Sequence[Run]) -> list[StudyClaim]:
    """Return the claims of research/notes/plan-second-worth.md on a real Hadoop."""
    found = []
    for load in (load.name for load in LOADS.values() if load.schemes == PRICED):
        found.append(_over_tuned(runs, load, "production", "mix-2", 1.0))
        found.append(_over_tuned(runs, load, "research", "mix-2", 1.0))
        found.append(_lost(runs, load, "mix-2", 0.1))
    mine = [run for run in counted(runs) if LOADS[run["load"]].schemes in (PRICED, ALONE)]
    mine = [run for run in mine if run["scheme"] == "mix-2"]
    late = [each["took_ms"] > LATE_FACTOR * each["predicted_ms"] for run in mine for each in run["levers"]]
    ratio = fmean(late) if late else None
    claim = "levers of mix-2 that came late, of all"
    holds = ratio is not None and ratio <= LATE_RATIO
    return [
        *found,
        StudyClaim("paper, short-tasks, nested", claim, LATE_RATIO, ratio, None, len(mine), holds),
    ]


def _over_tuned(runs: Sequence[Run], load: str, job: str, scheme: str, bound: float) -> StudyClaim:
    found = paired(runs, load, job, scheme, "yarn-tuned")
    claim = f"{job} under {scheme} over yarn-tuned"
    if found is None:
        return StudyClaim(load, claim, bound, None, None, 0, holds=False)
    upper = found.high if LOADS[load].rounds >= MANY else found.median
    enough = found.rounds >= LOADS[load].rounds
    return StudyClaim(load, claim, bound, found.median, found.high, found.rounds, enough and upper <= bound)


def _lost(runs: Sequence[Run], load: str, scheme: str, bound: float) -> StudyClaim:
    by = {
        name: [run for run in counted(runs) if (run["load"], run["scheme"]) == (load, name)]
        for name in (scheme, "yarn-tuned")
    }
    ours, theirs = (sum(lost_s(run) or 0 for run in by[name]) for name in (scheme, "yarn-tuned"))
    ratio, rounds = (ours / theirs if theirs else None), len(by[scheme])
    holds = ratio is not None and rounds >= LOADS[load].rounds and ratio <= bound
    return StudyClaim(
        load, f"lost work under {scheme} over yarn-tuned, summed", bound, ratio, None, rounds, holds
    )


def _exact(runs: Sequence[Run]) -> list[StudyClaim]:
    """Return the claims on outputs and on groups that were reduced twice."""
    found = []
    for load in LOADS.values():
        mine = [run for run in counted(runs) if run["load"] == load.name]
        wrong = sum(not is_identical(runs, load.name, scheme) for scheme in load.schemes)
        rounds = len({run["round"] for run in mine})
        found.append(
            StudyClaim(
                load.name, "schemes with another output", 0, wrong, None, rounds, bool(mine) and not wrong
            )
        )
        shipped = [run for run in mine if run["scheme"] == "as-shipped"]
        twice = sum(run["research"]["twice"] for run in shipped)
        found.append(
            StudyClaim(
                load.name,
                "groups reduced twice, as-shipped",
                0,
                twice,
                None,
                len(shipped),
                bool(shipped) and not twice,
            )
        )
    return found


class Kept(msgspec.Struct, frozen=True):
    """What is read of a kept file."""

    head: dict[str, Any]
    runs: list[Run]


def read_kept(files: Sequence[str]) -> tuple[str, list[Run]]:
    """Return commit and runs of kept files; raises BadInput for others, and where commits differ."""
    commits, runs = dict[str, None](), list[Run]()
    for file in files:
        try:
            found = msgspec.json.decode(Path(file).read_bytes(), type=Kept)
            commits[found.head["commit"]] = None
        except (OSError, msgspec.MsgspecError, KeyError) as error:
            raise BadInput(
                file, f"is not a results file of a study: {error}", "name research/records/study-...json"
            ) from error
        runs += found.runs
    if len(commits) != 1:
        raise BadInput("FILE...", f"{len(commits)} commits are in these files", "name files of one commit")
    return next(iter(commits)), runs


def main(arguments: Sequence[str]) -> int:
    """Judge kept sittings; print what came out as JSON."""
    try:
        commit, runs = read_kept(arguments)
    except YarnctlError as error:
        return complain(str(error), error.exit_status)
    by = {f"{each.load}: {each.claim}": each for each in judged(runs)}
    names = ", ".join(Path(file).stem for file in arguments)
    print_json({"campaign": names, "commit": commit, "loads": of_loads(runs), "claims": by})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
