"""What is computed of a whole snapshot: once for each, however many callers there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from yarnctl.deciding.model import Snapshot

T = TypeVar("T")


class OfNewest(Generic[T]):
    """Keeps the result for the snapshot of the last call. Any thread may call it."""

    def __init__(self, compute: Callable[[Snapshot], T]) -> None:
        self._compute = compute
        self._kept: tuple[Snapshot, T] | None = None

    def __call__(self, snapshot: Snapshot) -> T:
        """Return the result for a snapshot."""
        kept = self._kept
        if kept is None or kept[0] is not snapshot:
            kept = self._kept = (snapshot, self._compute(snapshot))
        return kept[1]
