"""MRM's choices and memory: what a market is set to, and what it has learned."""

from __future__ import annotations

import msgspec


class MrmChoices(msgspec.Struct, frozen=True, tag_field="mechanism", tag="mrm"):
    """``kappa`` of Eq 13; ``late_ratio``: the chance that a job computes more than was kept free for it.

    ``job_ms`` stands for the mean work of a job (m of Eq 13) until a job has finished.
    """

    kappa: float = 1.0
    late_ratio: float = 0.05
    job_ms: int = 600_000


class MrmMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="mrm"):
    """How many jobs have finished, and what they computed in all."""

    completed: int = 0
    work_ms: int = 0
