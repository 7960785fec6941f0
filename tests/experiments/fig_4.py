"""The scenario that is Natjam's Fig 4: the report must recognise it, in whatever folder it is run."""

from __future__ import annotations

from emulator.scenario import Scenario

FIG_4 = Scenario(
    nodes=6, slots=8, production="synthetic:production-s", research="synthetic:research-xl", profile="paper",
    timing="paper", shares=(0.99, 0.01), caps=(0.25, 0.75), am_ratio=1.0, schemes=("natjam",),
)  # fmt: skip
