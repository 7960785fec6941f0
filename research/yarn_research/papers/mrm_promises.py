"""MRM's Table 4: deadlines without slack, promised from predicted bounds, and what an emulated cluster keeps.

Law: research/notes/paper.md (section MRM) has what is promised and how it is judged; it was there before the runs.
A promise is made from what is known when the job arrives; the cluster's order does not depend on it.
"""

from __future__ import annotations

import random
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple

import msgspec

from yarn_research.market.job_features import JobFeatures, RecordedRun, training
from yarn_research.market.regressions import fitted
from yarn_research.papers.figures import Figure, PaperClaim, row
from yarn_research.papers.mrm_tables import NOT_REPEATED, NOTES, TWO_SIDED, drawn_run, played
from yarnctl.traces.job import Job

TITLE = "Deadlines without slack"
TABLE_4 = {100: (1.0, 20.1, 104.8), 50: (1.0, 266.4, 105.6), 32: (18.0, 22.9, 135.3)}
"""By inter-arrival time in s: % late, median tardiness in s, median earliness in s."""
AGAIN = {100: 4.1, 50: 3.77, 32: 8.08}
"""Maps that are executed again, a job (section 6.2)."""
RUNS = 2
MOST_LATE = 2.5


class Promised(NamedTuple):
    """One run: what each job was promised and when it ended, s from the run's begin."""

    deadlines_s: list[float]
    ended_s: list[float]

    @property
    def margins_s(self) -> list[float]:
        """How long before its deadline each job ended; negative: late."""
        return [due - end for due, end in zip(self.deadlines_s, self.ended_s, strict=True)]


class PlayedRun(NamedTuple):
    """One emulated run: jobs in the order of arrival, their phases, and when each ended."""

    jobs: tuple[Job, ...]
    phases: list[RecordedRun]
    ended_s: list[float]


def again(jobs: tuple[Job, ...], each_job: float, chance: random.Random) -> tuple[Job, ...]:
    """Let random maps take their time twice, so many a job in the mean."""
    maps = sum(len(job.map_ms) for job in jobs)
    share = each_job * len(jobs) / maps
    return tuple(
        msgspec.structs.replace(
            job, map_ms=tuple(2 * each if chance.random() < share else each for each in job.map_ms)
        )
        for job in jobs
    )


def played_run(seed: int, load_s: int) -> PlayedRun:
    """Draw a run with its re-executions and play it."""
    jobs, features = drawn_run(seed, load_s)
    jobs = again(jobs, AGAIN[load_s], random.Random(f"mrm-again-{seed}-{load_s}"))
    phases, ended_ms = played(jobs, features, seed)
    return PlayedRun(jobs, phases, [each / 1000 for each in ended_ms])


def bounds_s(learned: list[RecordedRun], asked: list[JobFeatures]) -> list[float]:
    """Return each job's bound: of its map phase, and of its reduce phase where it has reduces."""
    with_reduces = [each for each in learned if each.features.reduces]
    found = [0.0] * len(asked)
    for place, runs in enumerate((learned, with_reduces)):
        features, spans_ms = training(runs)
        predict = fitted("gp", features, spans_ms[:, place] / 1000)
        wanted = [n for n, each in enumerate(asked) if place == 0 or each.reduces]
        rows, _ = training([RecordedRun(asked[n], 0, 0) for n in wanted])
        for n, bound in zip(wanted, predict(rows).at(TWO_SIDED), strict=True):
            found[n] += float(bound)
    return found


def promised(run: PlayedRun, bounds: list[float]) -> Promised:
    """Promise every job what is left of the bounds before it, and its own."""
    arrived_s = [job.submitted_at_ms / 1000 for job in run.jobs]
    deadlines_s = []
    for number, now_s in enumerate(arrived_s):
        before = [other for other in range(number) if run.ended_s[other] > now_s]
        left_s = sum(bounds[other] for other in before)
        if before:
            first = before[0]
            free_s = max([arrived_s[first], *(end for end in run.ended_s[:first] if end <= now_s)])
            left_s -= min(bounds[first], now_s - free_s)
        deadlines_s.append(now_s + left_s + bounds[number])
    return Promised(deadlines_s, run.ended_s)


def table_4(seed: int = 0) -> Figure:
    """Promise without slack under three loads."""
    if find_spec("sklearn") is None:
        return Figure("t4", TITLE, (), (), (NOT_REPEATED,))
    played_runs = {
        (load, each): played_run(100 * seed + 10 + each, load) for load in TABLE_4 for each in range(RUNS)
    }
    late: dict[int, float] = {}
    rows = []
    for load, (paper_late, paper_tardy_s, paper_early_s) in TABLE_4.items():
        margins: list[float] = []
        for each in range(RUNS):
            learned = [one for key, run in played_runs.items() if key != (load, each) for one in run.phases]
            run = played_runs[load, each]
            margins += promised(run, bounds_s(learned, [one.features for one in run.phases])).margins_s
        tardy = [-each for each in margins if each < 0]
        late[load] = 100 * len(tardy) / len(margins)
        tardy_s = [median(tardy)] if tardy else []
        early_s = median([each for each in margins if each >= 0])
        rows.append(row(f"{load} s", "% late", paper_late, [late[load]], counts=False))
        if tardy_s:
            rows.append(row(f"{load} s", "median tardiness, s", paper_tardy_s, tardy_s, counts=False))
        rows.append(row(f"{load} s", "median earliness, s", paper_early_s, [early_s], counts=False))
    claims = [
        PaperClaim(f"{load} s: late", f"<= {MOST_LATE:g} %", f"{late[load]:.1f} %", late[load] <= MOST_LATE)
        for load in (100, 50)
    ]
    told = ", ".join(f"{load} s {each:.1f} %" for load, each in late.items())
    claims.append(
        PaperClaim("more late at 32 s than at 50 and 100 s", "yes", told, late[32] > max(late[50], late[100]))
    )
    return Figure("t4", TITLE, tuple(rows), tuple(claims), NOTES)
