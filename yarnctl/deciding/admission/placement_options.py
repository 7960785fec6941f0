"""What an application that exists for several frameworks may be run as, and what was not chosen of it.

Times are predicted outside (``yarnctl.prediction``): a request carries at most ``OPTIONS_MAX`` options and no
model, so that replay needs none.
"""

from __future__ import annotations

import msgspec

from yarnctl.deciding.reasons.placements import PlacementReason

OPTIONS_MAX = 64
"""So many options a request may carry."""
Settings = tuple[tuple[str, str], ...]
"""Names and values, in the order of the names."""


class PlacementOption(msgspec.Struct, frozen=True, omit_defaults=True):
    """A framework with so many containers and these settings: how long it takes, and at most (ms).

    ``containers`` include its master's. ``pool`` "": any that takes its kind. ``late_ratio``: the chance to
    take longer than ``upper_ms`` (None: not certified, from too few runs).
    """

    kind: str
    containers: int
    predicted_ms: int
    upper_ms: int
    settings: Settings = ()
    pool: str = ""
    late_ratio: float | None = None


class Alternatives(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a request may be run as. ``application`` with ``features``: what its run will be known as.

    ``lacking``: kinds of which there are too few runs for an option.
    """

    options: tuple[PlacementOption, ...]
    application: str = ""
    features: tuple[tuple[str, float], ...] = ()
    lacking: tuple[str, ...] = ()


class NotPlaced(msgspec.Struct, frozen=True, omit_defaults=True):
    """An option at a start that was not chosen, and why; as the plan keeps it."""

    kind: str
    pool: str
    containers: int
    start_at_ms: int
    reason: PlacementReason
