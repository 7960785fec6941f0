"""Invariants: what must be true of an emulated cluster after every single event.

Law: an invariant is a generator of stories, one for each way in which it is broken; called by its
name in :data:`INVARIANTS` or :data:`AT_END` it raises InvariantBroken with that name and the first
story. It reads the actors, changes nothing and is never caught. What compares with the event
before finds it in the watch. For every name a test plants a bug and expects exactly that name.

::

    watch = RunWatch(run)
    run.go(after_each=lambda: check_all(watch))
    check_end(watch)
"""

from __future__ import annotations

from emulator.invariants.laws import AT_END, INVARIANTS, Invariant, check_all, check_end
from emulator.invariants.watched_run import RunWatch, Stories, WatchedRun

__all__ = ["AT_END", "INVARIANTS", "Invariant", "RunWatch", "Stories", "WatchedRun", "check_all", "check_end"]
