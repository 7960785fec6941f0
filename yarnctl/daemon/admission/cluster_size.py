"""Sizing: how large the cluster is, as far as that can be relied on.

Law: what a ResourceManager tells that has just begun is too little, and too little turns people away who
could be served. So the first size is seen twice, a larger one counts at once, a smaller one when it has
lasted.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yarnctl.deciding.reasons.verdicts import GateReason, NoRoomForContainer, SizeUnseen
from yarnctl.errors import YarnctlError

EVERY_MS = 10_000
AGAIN_MS = 5_000
"""So long after nobody has answered."""
TWICE_MS = 1_000
SHRINK_AFTER_MS = 60_000


class Size(msgspec.Struct, frozen=True):
    """How large the cluster is, in containers of ``container_mib``; ``told``: by a person, it stands."""

    capacity: int
    container_mib: int
    told: bool = False


class Sizing:
    """``measure`` asks the cluster (raises YarnctlError); ``problem`` says why that led to nothing."""

    def __init__(self, measure: Callable[[], Size]) -> None:
        self.measure = measure
        self.problem: GateReason | None = None
        self._again_at_ms = 0
        self._candidate: tuple[Size, int] | None = None

    def look(self, known: Size | None, now_ms: int) -> Size | None:
        """Return the size that counts from now on; None: it is not time to look, or none does yet."""
        if now_ms < self._again_at_ms:
            return None
        try:
            found = self.measure()
        except YarnctlError as error:
            self._again_at_ms = now_ms + AGAIN_MS
            self.problem = SizeUnseen(str(error))
            return None
        self.problem = None
        self._again_at_ms = now_ms + EVERY_MS if known is not None else now_ms
        return found if found.told else self._settled(found, known, now_ms)

    def _settled(self, found: Size, known: Size | None, now_ms: int) -> Size | None:
        if found.capacity <= 0:
            self._candidate, self.problem = None, NoRoomForContainer()
            return known
        wait_ms = TWICE_MS
        if known is not None and known.container_mib == found.container_mib:
            if found.capacity >= known.capacity:
                self._candidate = None
                return found
            wait_ms = SHRINK_AFTER_MS
        if self._candidate is None or self._candidate[0] != found:
            self._candidate = (found, now_ms)
        if now_ms - self._candidate[1] < wait_ms:
            return known
        self._candidate = None
        return found
