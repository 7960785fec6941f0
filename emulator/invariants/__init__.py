"""Invariants: what must be true of an emulated cluster after every single event.

Law: an invariant is a generator of stories, one for each way in which it is broken; called by its
name in :data:`INVARIANTS` or :data:`AT_END` it raises InvariantBroken with that name and the first
story. It reads the actors, changes nothing and is never caught. What compares with the event
before finds it in the watch. For every name a test plants a bug and expects exactly that name.

::

    watch = Watch(run)
    run.go(after_each=lambda: check_all(watch))
    check_end(watch)
"""

from __future__ import annotations

from emulator.invariants.laws import AT_END, INVARIANTS, Invariant, check_all, check_end
from emulator.invariants.watched_run import Stories, Watch, Watched

__all__ = ["AT_END", "INVARIANTS", "Invariant", "Stories", "Watch", "Watched", "check_all", "check_end"]
