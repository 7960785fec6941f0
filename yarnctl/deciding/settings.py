"""Settings of the controller, and its two frozen profiles.

Law: ``paper`` is Natjam to the letter (section 3.2 of the paper; defaults of facts 2.1) with
every guard off; ``default`` is what touches other people's jobs, with every guard on.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the controller may be told. Spans in ms, ratios in 0..1.

    ``mode`` "queues": hurried queues take from victim queues (Natjam). "deadlines": one queue, the
    most urgent application with pending asks takes from less urgent ones (Natjam-R).
    """

    profile: str = "default"
    mode: Literal["queues", "deadlines"] = "queues"
    hurried_queues: tuple[str, ...] = ("production",)
    victim_queues: tuple[str, ...] = ("research",)
    job_policy: str = "MR"
    task_policy: str = "SRT"
    eviction: Literal["suspend", "kill"] = "suspend"
    tick_ms: int = 1000
    open_tick_ms: int = 250
    kill_timeout_ms: int = 12_000
    on_timeout: Literal["give-up", "kill"] = "give-up"
    expire_ms: int = 2000
    utilisation_tolerance_ratio: float = 0.1
    kill_maps: bool = False
    seed: int = 0
    model_scheduler: bool = True
    cost_guard: bool = True
    settle_ms: int = 30_000
    task_suspensions_max: int = 8
    job_open_ratio_max: float = 1.0
    laxity_margin_ms: int = 30_000
    priority_levels: int = 10
    refused_shown: int = 3


DEFAULT = Settings()

PAPER = Settings(
    profile="paper",
    open_tick_ms=1000,
    on_timeout="kill",
    model_scheduler=False,
    cost_guard=False,
    settle_ms=0,
    task_suspensions_max=1_000_000,
    job_open_ratio_max=1.0,
    laxity_margin_ms=0,
    priority_levels=1_000_000,
)

PROFILES = {"default": DEFAULT, "paper": PAPER}
