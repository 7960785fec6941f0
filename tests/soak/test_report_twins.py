"""A slice of the report's twins, and what the live ones add to it."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.virtual.run import Run
from emulator.virtual.schemes import SCHEMES
from tests.daemon_plans import plan_for
from tests.soak import report_twins_live
from tests.soak.report_twins import Twins, jobs_of, setup_of, twins
from tests.soak.report_twins_live import estimated, played_live, waited
from tests.soak.virtual_live_sides import Case, scaled, told
from yarnctl.api.report_answers import WaitedLess
from yarnctl.daemon.view import natural_ends
from yarnctl.daemon.view.reporting import reported
from yarnctl.errors import Unreachable
from yarnctl.journal.chain import MemoryJournal

FOUND = WaitedLess(least_ms=70_000, estimate_ms=100_000, most_ms=130_000, estimated=80)


@pytest.mark.parametrize(("gain_s", "inside"), [(69.0, False), (70.0, True), (130.0, True), (131.0, False)])
def test_a_gain_is_inside_between_the_bounds(gain_s: float, inside: bool) -> None:
    one = Twins(1, gain_s, FOUND, FOUND)
    assert one.is_inside == inside
    assert one.width_ratio == pytest.approx(30 / gain_s)


def test_the_true_gain_of_virtual_twins_lies_inside_the_interval() -> None:
    one = twins(0, "mix")
    assert one.gain_s > 0
    assert one.is_inside


def test_maps_that_show_their_progress_alone_do_not_make_the_estimate_too_high() -> None:
    """With this seed the gain was outside while a map's start counted as its work."""
    assert twins(6, "mix", by_progress=True).is_inside


def test_an_estimate_of_a_quick_daemon_shortens_the_spans_of_a_hadoop_for_its_time_alone() -> None:
    journal, span_ms = MemoryJournal(), natural_ends.BETWEEN_MS
    Run(setup_of(0, observe=False), jobs_of(0, 4), SCHEMES["mix"], journal).go()
    plain = reported(journal.records, None).waited_less
    assert estimated(journal.records, 1.0) == plain
    assert 0 < estimated(journal.records, 10.0).estimate_ms / 10 < plain.estimate_ms
    assert span_ms == natural_ends.BETWEEN_MS


def test_a_quicker_world_waits_for_answers_as_long_as_any_other(tmp_path: Path) -> None:
    plan = plan_for(*told(Case("none", 1, 1, ()), "http://127.0.0.1:1", tmp_path)).attachment
    quicker = scaled(plan, 10.0)
    assert (quicker.look_wait_ms, quicker.order_wait_ms) == (plan.look_wait_ms, plan.order_wait_ms)
    assert quicker.suspend_ms == plan.suspend_ms / 10


def test_what_waits_is_added_up_past_a_look_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, answered = [], threading.Event()

    def pending(client: Client) -> int:
        looks.append(client)
        if len(looks) == 2:
            raise Unreachable("no answer")
        if len(looks) == 4:
            answered.set()
        return 3

    instants_s = itertools.count()
    monkeypatch.setattr(report_twins_live, "_pending", pending)
    monkeypatch.setattr(report_twins_live, "time", SimpleNamespace(monotonic=lambda: next(instants_s)))
    with waited(Client("http://127.0.0.1:1", "harness")) as sums:
        assert answered.wait(60)
    assert len(sums) >= 3
    assert sums[:3] == [1.5, 3, 3], "half of a second with nothing and with 3, then 3 in each"


@pytest.mark.thorough
@pytest.mark.xdist_group("report-twins-live")
def test_live_production_waits_longer_without_yarnctl(tmp_path: Path) -> None:
    waited_s = []
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        found = played_live(jobs_of(7, 3), 4.0, tmp_path / name, observe=name == "without")
        assert found[1].estimated > 0
        waited_s.append(found[0])
    assert waited_s[0] < waited_s[1]
