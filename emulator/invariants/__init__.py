"""Invariants: what must be true of an emulated cluster after every single event.

Law: an invariant is a public function of one of the modules named here: a generator of stories, one for each
way in which it is broken. Called by its name in :data:`INVARIANTS` or :data:`AT_END`, in which they stand in
the order in which they are checked, it raises InvariantBroken with that name and the first story. It reads
the actors, changes nothing and is never caught. What compares with the event before finds it in the watch.
For every name a test plants a bug and expects exactly that name.

::

    watch = RunWatch(run)
    run.go(after_each=lambda: check_all(watch))
    check_end(watch)
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from types import ModuleType

from emulator.invariants import (
    deciding,
    demand_laws,
    ending,
    kernel_and_nodes,
    losses,
    masters,
    queue_laws,
    suspending,
)
from emulator.invariants.watched_run import RunWatch, Stories
from yarnctl.errors import InvariantBroken

__all__ = ["AT_END", "INVARIANTS", "Invariant", "RunWatch", "Stories", "check_all", "check_end"]

Law = Callable[[RunWatch], Stories]
Invariant = Callable[[RunWatch], None]


def _invariants_of(*modules: ModuleType) -> dict[str, Invariant]:
    """Return the laws of these modules as invariants, by name, in the order in which they are written."""
    return dict(
        _raising(law)
        for module in modules
        for name, law in vars(module).items()
        if isfunction(law) and law.__module__ == module.__name__ and not name.startswith("_")
    )


def _raising(law: Law) -> tuple[str, Invariant]:
    name = law.__name__.replace("_", "-")

    def invariant(watch: RunWatch) -> None:
        for story in law(watch):
            raise InvariantBroken(name, f"at {watch.kernel.now_ms} ms: {story}")

    invariant.__doc__ = law.__doc__
    return name, invariant


INVARIANTS = _invariants_of(kernel_and_nodes, queue_laws, demand_laws, masters, suspending, deciding, losses)
"""What holds after every event."""

AT_END = _invariants_of(ending)
"""What holds once every job is done."""


def check_all(watch: RunWatch) -> None:
    """Check every invariant of :data:`INVARIANTS`, after every event, and keep the state for the next."""
    watch.observe()
    for invariant in INVARIANTS.values():
        invariant(watch)
    watch.remember()
    watch.checks += 1


def check_end(watch: RunWatch) -> None:
    """Check :data:`AT_END`: what holds once every job is done."""
    watch.observe()
    for invariant in AT_END.values():
        invariant(watch)
