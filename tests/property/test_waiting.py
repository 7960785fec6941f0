"""Waiting by cause: over random clusters the causes add up to all that was waited, counted in another way.

The other way is per container: what each application has pending is summed up after every event, and each
container counts from its grant until its process has started or is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from emulator.cluster.entities import AM, MAP, NEVER, Application, Container
from emulator.virtual import waiting
from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES
from emulator.virtual.waiting import CAUSES, Waiting, WaitingCauses
from tests.property.playing import UNTIL_MS
from tests.property.scenarios import Scenario, scenarios
from tests.property.stories import PRODUCTION, RESEARCH, natjam
from tests.thoroughness import examples
from yarnctl.journal.chain import MemoryJournal

SHARED = tuple(name for name, scheme in SCHEMES.items() if not scheme.alone)


class Oracle:
    """Counts, after every event, what waits: no cause, no version, no cache."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.at_ms = 0
        self.pending: Counter[str] = Counter()
        self.waited_ms: Counter[str] = Counter()
        self.containers: dict[int, Container] = {}

    def watch(self) -> None:
        """Count the span since the last event by what was pending then."""
        cluster = self.run.cluster
        now_ms = cluster.kernel.now_ms
        for each, count in self.pending.items():
            self.waited_ms[each] += count * (now_ms - self.at_ms)
        self.at_ms = now_ms
        self.pending = Counter()
        for app in cluster.rm.applications.values():
            self.pending[app.master.job.job_class] += app.pending
        self.containers.update(cluster.rm.scheduler.live)

    def whole_ms(self) -> dict[str, int]:
        """Return what each class waited, up to now."""
        cluster = self.run.cluster
        timing, now_ms = cluster.timing, cluster.kernel.now_ms
        for container in self.containers.values():
            started_ms = container.launched_at_ms + timing.launch_ms
            if container.kind == AM:
                started_ms = container.granted_at_ms + timing.am_start_ms
            elif container.launched_at_ms == NEVER:
                started_ms = NEVER
            elif container.kind == MAP:
                started_ms = container.work_at_ms
            until_ms = min(started_ms, container.exit_at_ms, container.released_at_ms, now_ms)
            job_class = container.app.master.job.job_class
            self.waited_ms[job_class] += max(0, until_ms - container.granted_at_ms)
        return {each: self.waited_ms[each] for each in ("production", "research")}


def waited(run: Run, watch: Callable[[], None] | None = None) -> Waiting:
    """Play a run to its end; return what it counted."""
    result = run.go(watch, UNTIL_MS)
    assert isinstance(result.waiting, dict)
    return result.waiting


def counted(scenario: Scenario) -> tuple[dict[str, int], dict[str, int]]:
    """Play a scenario; return what each class waited by the sum of its causes, and by the oracle."""
    setup, jobs, name = scenario
    run = Run(setup, jobs, SCHEMES[name], MemoryJournal(), sample_ms=60_000)
    oracle = Oracle(run)
    found = waited(run, oracle.watch)
    return {each: sum(causes.values()) for each, causes in found.items()}, oracle.whole_ms()


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(scenarios(SHARED, faulty=True))
def test_the_causes_add_up_to_all_that_was_waited(scenario):
    by_cause, whole = counted(scenario)
    assert by_cause == whole


def crowded(scheme: str, at_ms: int = 20_000) -> Scenario:
    """Return the story in which research has filled the cluster when production comes, under a scheme."""
    return Scenario(
        natjam().setup, (*RESEARCH, msgspec.structs.replace(PRODUCTION, submitted_at_ms=at_ms)), scheme
    )


@pytest.mark.parametrize("scheme", ["soft-cap", "natjam", "yarn-tuned"])
def test_the_causes_of_a_crowded_cluster_add_up(scheme):
    by_cause, whole = counted(crowded(scheme))
    assert by_cause == whole
    assert min(whole.values()) > 0


def forgotten(self: WaitingCauses) -> None:
    """Do not look at containers that were granted."""


def tail_left_out(counts: dict[tuple[str, str], int], app: Application, cause: str, count: int) -> None:
    if cause != "tail":
        ADD(counts, app, cause, count)


ADD = waiting._add
BUGS = {
    "starts are not counted": (WaitingCauses, "_note_granted", forgotten),
    "a cause is left out": (waiting, "_add", tail_left_out),
}


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_planted_bug_makes_the_sums_differ(bug, monkeypatch):
    monkeypatch.setattr(*BUGS[bug])
    by_cause, whole = counted(crowded("soft-cap"))
    assert by_cause != whole


def test_counts_that_are_kept_too_long_make_the_sums_differ(monkeypatch):
    monkeypatch.setattr(WaitingCauses, "_counted", lambda self: self._counts or COUNTED(self))
    by_cause, whole = counted(crowded("soft-cap"))
    assert by_cause != whole


COUNTED = WaitingCauses._counted


@pytest.mark.parametrize(("at_ms", "cause"), [(20_000, "tail"), (14_000, "taken_back")])
def test_without_preemption_production_waits_for_research_to_end(at_ms, cause):
    """Research has the room since before production came, or takes it while production's master starts."""
    setup, jobs, scheme = crowded("soft-cap", at_ms)
    causes = waited(Run(setup, jobs, SCHEMES[scheme], None, sample_ms=60_000))["production"]
    assert set(causes) == set(CAUSES)
    assert causes[cause] > 10_000
    assert [name for name in CAUSES if causes[name] and name != "launch"] == [cause]


def test_what_was_suspended_waits_as_stopped():
    setup, jobs, _ = crowded("natjam")
    run = Run(setup, jobs, SCHEMES["natjam"], MemoryJournal(), sample_ms=60_000)
    found = waited(run)
    assert sum(master.suspensions for master in run.cluster.masters) > 0
    assert found["research"]["stopped"] > 0
    assert found["production"]["stopped"] == 0
