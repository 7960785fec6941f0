"""Alert rules fire and resolve in a real Prometheus, for faults on the live emulator.

The whole is ``python -m tests.soak alerts``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitoring.promtool import program, rules
from tests.soak.alerts import FAULTS, faster, play


@pytest.mark.xdist_group("alerts-live")
def test_rules_fire_and_resolve(tmp_path: Path) -> None:
    alerts = ("YarnctlNoLeader", "YarnctlClusterUnreachable", "YarnctlQueuePaused")
    assert [seen.alert for seen in play(alerts, tmp_path / "stage", program("prometheus"))] == [*alerts]


def test_every_rule_has_a_fault() -> None:
    assert {*FAULTS} == set(rules())


def test_only_times_are_changed() -> None:
    text = """{groups: [{name: g, rules: [{alert: A, expr: "increase(x[10m]) > 5", for: 2m}]}]}"""
    assert '"expr": "increase(x[5000ms]) > 5", "for": "1000ms"' in faster(text)
