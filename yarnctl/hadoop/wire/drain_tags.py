"""Parse the tags by which a submitter allows draining; an invalid tag allows less, never more."""

from __future__ import annotations

import re
from collections.abc import Sequence

DRAIN_TAG = "yarnctl-drain:"  # The prefix before the route: the submitter allows draining
MIN_EXECUTORS_TAG = "yarnctl-min-executors:"  # The prefix before the number of executors that stay


def routes_in(tags: Sequence[str]) -> set[str]:
    """Return the routes that tags allow."""
    return {tag[len(DRAIN_TAG) :] for tag in tags if tag.lower().startswith(DRAIN_TAG)}


def min_executors_of(tags: Sequence[str]) -> int:
    """Return how many executors stay: one, or the largest tag's number (an invalid one: a million)."""
    told = [tag[len(MIN_EXECUTORS_TAG) :] for tag in tags if tag.lower().startswith(MIN_EXECUTORS_TAG)]
    return max((int(each) if re.fullmatch("[0-9]{1,6}", each) else 1_000_000 for each in told), default=1)


def without_ours(tags: Sequence[str]) -> list[str]:
    """Return the other tags."""
    return [tag for tag in tags if not tag.lower().startswith((DRAIN_TAG, MIN_EXECUTORS_TAG))]
