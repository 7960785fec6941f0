"""The scenario: one frozen record of everything that decides what comes out of a run.

Law: same scenario, same jobs, same bytes of results. A scenario is read from TOML; a key that is not
understood is refused with its line. See ``docs/scenarios`` for commented ones.
"""

from __future__ import annotations

from emulator.scenario.checking import check
from emulator.scenario.from_toml import read_scenario
from emulator.scenario.preparing import jobs, node_size, prepare, settings, setup
from emulator.scenario.record import TIMINGS, Prepared, Scenario, Tuning

__all__ = [
    "TIMINGS",
    "Prepared",
    "Scenario",
    "Tuning",
    "check",
    "jobs",
    "node_size",
    "prepare",
    "read_scenario",
    "settings",
    "setup",
]
