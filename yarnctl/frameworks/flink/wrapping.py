"""Flink: settings with which a running job can be rescaled to fewer workers (docs/flink.md).

A setting of the user that prevents this is rejected by name. Only streaming jobs can be rescaled: a batch job
gets a restart strategy, so that it survives the loss of a container, and no tag. Facts: docs/facts/flink.md,
4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.errors import BadInput
from yarnctl.frameworks.flink.rest import (
    ADAPTIVE,
    CHECKPOINTS,
    DELAY,
    GONE,
    IDLE,
    ROUTE,
    SCHEDULER,
    TIMEOUT,
    TIMEOUT_MAX_MS,
    duration_ms,
)
from yarnctl.frameworks.flink.submission import TAGS, FlinkWords
from yarnctl.frameworks.submitting import unwrapped_tags, with_drain_tags

RUNTIME_MODE = "execution.runtime-mode"
RESTARTS = "restart-strategy.type"
_ADAPTIVE = "jobmanager.adaptive-scheduler."
SOON = {
    f"{_ADAPTIVE}scaling-interval.min": "5s",
    f"{_ADAPTIVE}resource-stabilization-timeout": "2s",
    f"{_ADAPTIVE}executing.cooldown-after-rescaling": "5s",
    f"{_ADAPTIVE}submission.resource-stabilization-timeout": "2s",
    f"{_ADAPTIVE}executing.resource-stabilization-timeout": "2s",
    DELAY: "5s",
}
"""Shorter than Flink's defaults of 10 to 60 s; the user's values have precedence. Two names of 1.x, then
those of 2.x (FLINK-36015): neither version rejects the other's.
"""
BATCH = {
    RESTARTS: "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "1s",
}
"""Without a restart strategy a batch job fails when it loses a container."""


def wrap(words: Sequence[str], min_executors: int, is_batch: bool) -> tuple[list[str], list[str]]:
    """Return the command line of a job that can be rescaled, and notes; BadInput names what prevents it."""
    line = FlinkWords(words)
    own = line.settings()
    kept = unwrapped_tags(own.get(TAGS, ""), f"-D{TAGS}")
    if is_batch or own.get(RUNTIME_MODE, "").upper() == "BATCH":
        more = {} if RESTARTS in own else BATCH
        return line.words(more), ["batch jobs cannot be rescaled; yarnctl does not preempt this job"]
    if own.get(SCHEDULER, ADAPTIVE).lower() != ADAPTIVE:
        problem = f"only the {ADAPTIVE} scheduler can rescale"
        raise BadInput(f"-D{SCHEDULER}={own[SCHEDULER][:60]}", problem, f"remove {SCHEDULER}")
    for name in (IDLE, GONE):
        if name in own and not 0 <= duration_ms(own[name]) <= TIMEOUT_MAX_MS:
            problem = f"delays the release of containers; the maximum is {TIMEOUT_MAX_MS // 1000} s"
            raise BadInput(f"-D{name}={own[name][:60]}", problem, f"remove {name}")
    ours = {SCHEDULER: ADAPTIVE, IDLE: TIMEOUT, GONE: TIMEOUT, **SOON}
    more = {name: value for name, value in ours.items() if name not in own}
    more[TAGS] = with_drain_tags(kept, ROUTE, min_executors, f"-D{TAGS}")
    notes = []
    if CHECKPOINTS not in own:
        notes.append(f"-D{CHECKPOINTS} is not set; without checkpoints yarnctl does not preempt this job")
    return line.words(more), notes
