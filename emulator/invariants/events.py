"""The clock and the events that wait.

Law: that of the package. Each function here is one invariant and bears its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.cluster.entities import NEVER
from emulator.invariants.breaches import Stories

if TYPE_CHECKING:
    from emulator.invariants.watched_run import Watch


def clock_never_goes_back(watch: Watch) -> Stories:
    """Virtual time stands still or goes on."""
    if watch.kernel.now_ms < watch.now_ms:
        yield f"{watch.now_ms} ms, then {watch.kernel.now_ms} ms"


def next_event_is_the_earliest(watch: Watch) -> Stories:
    """The kernel's next instant is the earliest that waits."""
    earliest, told = min(watch.kernel.waiting_ms(), default=None), watch.kernel.next_at_ms()
    if told != earliest:
        yield f"next is {told} ms, waiting is {earliest} ms"


def no_event_at_never(watch: Watch) -> Stories:
    """Nothing is put in for an instant that does not come."""
    latest = max(watch.kernel.waiting_ms(), default=0)
    if latest >= NEVER // 2:
        yield f"an event waits for {latest} ms"
