"""What an invariant is called, and what it says when it is broken.

Law: a law is a generator of stories, one for each way in which it is broken; its name is the
function's. Called as an invariant it raises InvariantBroken with that name and the first story.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from emulator.cluster.entities import Container
from yarnctl.errors import InvariantBroken

if TYPE_CHECKING:
    from emulator.invariants.watched_run import Watch

Stories = Iterator[str]

Law = Callable[["Watch"], Stories]
Invariant = Callable[["Watch"], None]


def named(*laws: Law) -> dict[str, Invariant]:
    """Return the laws as invariants, by name, in this order."""
    return dict(_raising(law) for law in laws)


def _raising(law: Law) -> tuple[str, Invariant]:
    name = law.__name__.replace("_", "-")

    def invariant(watch: Watch) -> None:
        for story in law(watch):
            raise InvariantBroken(name, f"at {watch.kernel.now_ms} ms: {story}")

    invariant.__doc__ = law.__doc__
    return name, invariant


def name_of(container: Container) -> str:
    """Name a container in a story."""
    return f"container {container.number} (job {container.app.number}, task {container.task})"
