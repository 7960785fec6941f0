"""The flood of the acceptance row, small: health checks are answered, however long they take here."""

from __future__ import annotations

from tests.service.flood import measure
from yarnctl.service.serving import CONNECTIONS_MAX


def test_health_checks_are_answered_in_a_flood_of_slow_connections() -> None:
    told = measure("yarnctl", slow=CONNECTIONS_MAX + 50, checks=3)
    assert told["answered"] == 3
    assert told["cut_off"] >= 50
