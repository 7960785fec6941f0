"""Limits: how far a virtual clock may run.

Law: whatever enters a workload lies within a leap year, so that no run lasts for ever and no
number overflows; what lies outside is a mistake in a unit, and is refused where it stands.
"""

from __future__ import annotations

DAY_MS = 86_400_000
LONGEST_DAYS = 366
LONGEST_MS = LONGEST_DAYS * DAY_MS
"""No instant of a workload is later, no task and no shuffle longer."""

LONGEST_SAID = f"{LONGEST_DAYS} days"
