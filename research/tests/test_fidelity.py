"""The fit of the emulator to a cluster: it finds again what an emulated cluster was made with.

A recorded run is made from an emulated one, with the same columns as ``tests/hadoop/overhead.timetable``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click
import msgspec
import pytest

from emulator.cluster.app_master import AppMaster
from emulator.cluster.entities import AM, MAP, NEVER, REDUCE, Container
from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Run
from yarn_research.campaigns import fidelity, spans
from yarn_research.campaigns.campaign import KIND, Campaign
from yarn_research.campaigns.fidelity import Calibration, jobs_of, setup_of, twin
from yarn_research.campaigns.schemes import ALL, SCHEMES, VARIANTS
from yarn_research.campaigns.shared_cpu import shared_cpu
from yarn_research.campaigns.spans import Fit, Launch
from yarnctl.cli import PROGRAM
from yarnctl.errors import BadInput

TRUE = Fit(
    msgspec.structs.replace(
        shared_cpu(HADOOP3),
        submit_ms=400,
        am_start_ms=5000,
        launch_ms=400,
        launch_cpu_ms=2400,
        machine_nodes=3,
        asks_after_beat=True,
        beats_at_exit=True,
        am_linger_ms=5000,
        task_commit_ms=130,
        job_commit_ms=900,
        drain_ms=600,
        resume_ms=300,
        skip_ratio=0.0,
    ),
    map_ms=300,
    plain_ratio=1.004,
    wrapped_ratio=1.02,
    launch_error_ratio=0.0,
)


class Recorder:
    """What a cluster's history would say of an emulated run."""

    def __init__(self, scheme: str, arrives_ms: int = 46_000, seed: int = 1) -> None:
        benched = ALL[scheme]
        self.scheme = scheme
        self.run = Run(setup_of(TRUE, benched, seed), jobs_of(TRUE, benched, arrives_ms), twin(benched))
        self.containers: dict[int, Container] = {}
        self.works_at_ms: dict[int, int] = {}
        self.result = self.run.go(self._look)

    def _look(self) -> None:
        for container in self.run.cluster.rm.scheduler.live.values():
            self.containers[container.number] = container
            if container.work_at_ms != NEVER:
                self.works_at_ms.setdefault(container.number, container.work_at_ms)

    def recorded(self) -> dict[str, Any]:
        found: dict[str, Any] = {"scheme": self.scheme, "suspensions": self.result.suspensions}
        for master in self.run.cluster.masters:
            name, zero_ms = master.job.name, master.app.submitted_at_ms
            (am,) = self._of(master, AM)
            found[f"{name}_am_wait_s"] = (am.granted_at_ms - zero_ms) / 1000
            found[f"{name}_started_ms"] = zero_ms
            found[f"{name}_twice"] = 0
            found[f"{name}_s"] = ((master.app.finished_at_ms or 0) - zero_ms) / 1000
            found[f"{name}_timetable"] = self._timetable(master, am, zero_ms)
        return found

    def _of(self, master: AppMaster, kind: int) -> list[Container]:
        return [each for each in self.containers.values() if each.app is master.app and each.kind == kind]

    def _timetable(self, master: AppMaster, am: Container, zero_ms: int) -> dict[str, Any]:
        tasks: dict[int, list[Any]] = {}
        for each in self._of(master, REDUCE):
            tasks.setdefault(each.task, []).append(self._row(each, zero_ms))
        return {
            "master_ms": am.granted_at_ms + TRUE.timing.am_start_ms - zero_ms,
            "maps": [
                (each.launched_at_ms - zero_ms, each.finish_at_ms - zero_ms) for each in self._of(master, MAP)
            ],
            "reduces": list(tasks.values()),
            "ended_ms": (master.app.finished_at_ms or 0) - zero_ms,
        }

    def _row(self, each: Container, zero_ms: int) -> tuple[int | str, ...]:
        exit_ms = each.exit_at_ms - TRUE.timing.exit_ms
        first_ms = self.works_at_ms.get(each.number, zero_ms - 1)
        if each.terminal_state == "completed":
            last_ms, state = exit_ms - TRUE.timing.task_commit_ms, "SUCCEEDED"
        else:
            last_ms, state = exit_ms - TRUE.timing.drain_ms - TRUE.timing.upload_ms, "KILLED"
        began_ms = each.launched_at_ms
        return *(at_ms - zero_ms for at_ms in (began_ms, 0, 0, first_ms, last_ms, exit_ms)), state


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Any]]:
    return {scheme: Recorder(scheme).recorded() for scheme in ("yarnctl", "soft-cap", "research-alone")}


@pytest.mark.parametrize("scheme", ["yarnctl", "soft-cap", "research-alone"])
def test_what_the_cluster_was_made_with_is_found_again(recorded, scheme):
    found = spans.fit([recorded[scheme]])
    true, timing = TRUE.timing, found.timing
    assert timing.launch_ms == pytest.approx(true.launch_ms, abs=100)
    assert timing.launch_cpu_ms == pytest.approx(true.launch_cpu_ms, rel=0.03)
    assert found.launch_error_ratio < 0.01
    assert found.map_ms == pytest.approx(TRUE.map_ms, abs=100)
    assert timing.task_commit_ms == true.task_commit_ms
    assert timing.job_commit_ms == true.job_commit_ms
    assert timing.submit_ms + timing.am_start_ms == pytest.approx(true.submit_ms + true.am_start_ms, abs=700)
    assert found.plain_ratio == pytest.approx(TRUE.plain_ratio, abs=0.001)


def test_what_only_suspending_shows_is_found_where_somebody_was_suspended(recorded):
    found = spans.fit([recorded["yarnctl"]])
    assert found.wrapped_ratio == pytest.approx(TRUE.wrapped_ratio, abs=0.003)
    assert found.timing.resume_ms == pytest.approx(TRUE.timing.resume_ms, abs=100)
    assert found.timing.drain_ms == pytest.approx(TRUE.timing.drain_ms, abs=150)


def campaign_of(runs: Iterable[dict[str, Any]]) -> Campaign:
    """Return recorded runs as a campaign that was told what the bench tells."""
    runs = list(runs)
    schemes = {run["scheme"]: ALL[run["scheme"]]._asdict() for run in runs}
    return Campaign(
        name="recorded",
        kind=KIND,
        began="2026-11-22T00:00:00Z",
        commit=None,
        uncommitted=None,
        machine=None,
        versions={},
        configuration=json.loads(json.dumps({"schemes": schemes})),
        order=None,
        rounds=1,
        runs=runs,
    )


def test_the_others_are_predicted_to_a_percent(recorded):
    runs = [*recorded.values(), Recorder("yarn-tuned").recorded(), Recorder("hard-cap").recorded()]
    campaign = campaign_of(runs)
    fitted_from = Calibration("recorded", "yarnctl")
    rows = fidelity.rows([campaign], fidelity.fitted_on(campaign, "yarnctl"), fitted_from, seeds=5)
    assert {row["scenario"] for row in rows if row["calibrated"]} == {"yarnctl"}
    free = [abs(row["deviation_ratio"]) for row in rows if not row["calibrated"]]
    assert len(free) == 7
    assert sum(free) / len(free) < 0.02


def test_starts_that_were_not_together_explain_no_crowd(recorded):
    """The same launches moved apart: nothing fits them any more."""
    moved = json.loads(json.dumps(recorded["research-alone"]))
    for number, task in enumerate(moved["research_timetable"]["reduces"]):
        for row in task:
            row[:6] = [at_ms + 20_000 * number for at_ms in row[:6]]
    assert spans.fit([moved]).launch_error_ratio > 0.3


def test_a_launch_that_was_ended_leaves_the_crowd():
    one = Launch(0, 5000, 60_000, reduce=True, again=False)
    gone = Launch(0, -1, 500, reduce=True, again=False)
    assert spans.launched([one], 0, 1000) == [500]
    assert spans.launched([one, gone], 0, 1000) == [750, -1]


@pytest.mark.parametrize(
    ("scheme", "emulated"),
    [
        ("production-alone", "soft-cap"),
        ("hard-cap", "hard-cap"),
        ("hard-cap-half", "hard-cap"),
        ("soft-cap-late", "soft-cap"),
        ("yarn-defaults", "yarn"),
        ("yarn-tuned-early", "yarn-tuned"),
        ("yarnctl-lrt", "natjam"),
    ],
)
def test_every_scheme_of_the_bench_has_its_twin(scheme, emulated):
    assert twin(ALL[scheme]).name == emulated


def test_variants_are_run_only_where_they_are_named():
    assert not set(SCHEMES) & set(VARIANTS)
    assert setup_of(TRUE, ALL["yarnctl-lrt"], 0).settings.task_policy == "LRT"
    assert setup_of(TRUE, ALL["yarnctl"], 0).hold
    assert [setup_of(TRUE, ALL[name], 0).ahead_max for name in ("yarnctl", "yarnctl-no-ahead")] == [4, 0]
    assert setup_of(TRUE, ALL["hard-cap-half"], 0).caps == (0.5, 0.5)
    assert not setup_of(TRUE, ALL["yarnctl-no-hold"], 0).hold


def test_what_is_told_and_one_run_has_no_spread(recorded):
    campaign = campaign_of(recorded.values())
    fitted_from = Calibration("recorded", "soft-cap")
    rows = fidelity.rows([campaign], fidelity.fitted_on(campaign, "soft-cap"), fitted_from)
    told = fidelity.told(rows, fitted_from)
    by_calibration = fidelity.by_calibration([campaign])
    assert set(by_calibration) == {f"recorded {scheme}" for scheme in recorded}
    assert by_calibration["recorded soft-cap"]["all"] == told["mean_deviation_ratio"] < 0.02
    assert told["mean_noise_ratio"] is None
    assert told["scenarios"] == 2
    assert told["attached"]["scenarios"] == 1
    assert told["by_campaign"]["recorded"]["predicted"] == told["predicted"]
    assert {row["spread_ratio"] for row in told["rows"]} == {None}


def test_a_scheme_is_taken_as_its_own_campaign_was_told_it(recorded):
    campaign = campaign_of(recorded.values())
    campaign.configuration["schemes"]["yarnctl"]["options"] = ["--in-flight-least", "2"]
    settings = setup_of(TRUE, fidelity.scheme_of(campaign, "yarnctl"), 0)
    assert (settings.settings.in_flight_least, settings.hold) == (2, False)


def test_setup_of_as_shipped_has_the_defaults_of_the_recorded_campaigns():
    settings = setup_of(TRUE, ALL["yarnctl-as-shipped"], 0)
    assert ALL["yarnctl-as-shipped"].options == ()
    assert settings.settings.in_flight_least == fidelity.LEAST_AS_RUN
    assert settings.settings.in_flight_ratio_max == fidelity.IN_FLIGHT_RATIO
    command = PROGRAM.get_command(click.Context(PROGRAM), "run")
    assert command is not None
    defaults = {option.name: option.default for option in command.params}
    assert defaults["in_flight_ratio"] == fidelity.IN_FLIGHT_RATIO


def test_a_calibration_that_was_never_run_is_named():
    with pytest.raises(BadInput, match="no run of soft-cap with its timetable is recorded"):
        fidelity.fitted_on(campaign_of([]), "soft-cap")
