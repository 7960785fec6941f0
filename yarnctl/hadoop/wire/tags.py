"""Parse an application's tags: deadline, admission, opting out, what it may lose, how it may be drained.

An invalid tag allows less, never more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

TAGS_MAX, TAG_MAX = 10, 100  # YARN's limits: tags, and characters of each; it lowers their case
ADMISSION_TAG = "yarnctl-admission-"  # Before an admission's id, in its application's tag
DEADLINE_TAG = "deadline:"
DEADLINE = re.compile(DEADLINE_TAG + r"([0-9]{1,13})", re.IGNORECASE)
"""A deadline: seconds since the epoch, or ms if 13 digits."""


def deadline_tag(at_ms: int) -> str:
    """Return the tag of a deadline (ms since the epoch)."""
    return f"{DEADLINE_TAG}{at_ms}"


def deadline_in(tag: str) -> int | None:
    """Return a tag's deadline, in ms since the epoch; None if it has none."""
    match = DEADLINE.fullmatch(tag)
    if match is None:
        return None
    return int(match[1]) if len(match[1]) == 13 else int(match[1]) * 1000


def deadline_tag_ms(tags: Sequence[str]) -> int | None:
    """Return the instant of the tag ``deadline:`` (seconds, or ms if 13 digits)."""
    found = (deadline_in(tag) for tag in tags)
    return next((at_ms for at_ms in found if at_ms is not None), None)


def tags_in(text: str) -> tuple[str, ...]:
    """Return the tags of a list with commas, as YARN and frameworks write it."""
    return tuple(tag for tag in map(str.strip, text.split(",")) if tag)


_LEAVE_ALONE = re.compile("yarnctl.?leave.*", re.IGNORECASE)


def leave_alone_tag(tags: Sequence[str]) -> str | None:
    """Return the tag by which an application opts out, None if there is none.

    It is written ``yarnctl-leave-alone``. Every tag that begins like it counts: a misspelt one opts out, too.
    """
    return next((tag for tag in tags if _LEAVE_ALONE.fullmatch(tag)), None)


MAY_LOSE_TAG = "yarnctl-may-lose:"
_PART = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?)(%?)", re.ASCII)


def may_lose_tag_ratio(tags: Sequence[str]) -> float | None:
    """Return the ratio of its container time that a job permits to lose (``yarnctl-may-lose:2%``, ``:0.02``).

    None: no such tag. A tag outside of 0 to 100 % counts as 0; the least of several tags counts.
    """
    found = [_part(tag[len(MAY_LOSE_TAG) :]) for tag in tags if tag.lower().startswith(MAY_LOSE_TAG)]
    return min(found, default=None)


def _part(text: str) -> float:
    match = _PART.fullmatch(text)
    part = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    return part if part <= 1 else 0.0


DRAIN_TAG = "yarnctl-drain:"  # The prefix before the route: the submitter allows draining
MIN_EXECUTORS_TAG = "yarnctl-min-executors:"  # The prefix before the number of executors that stay

CHARGE_TAG = "yarnctl-charge:"  # The prefix before ``bound``: drains are charged the bound of their loss


def charges_bound(tags: Sequence[str]) -> bool:
    """Return whether drains are charged the bound of their loss; any other word than ``expected`` counts."""
    told = [tag[len(CHARGE_TAG) :].lower() for tag in tags if tag.lower().startswith(CHARGE_TAG)]
    return any(each != "expected" for each in told)


def routes_in(tags: Sequence[str]) -> set[str]:
    """Return the routes that tags allow."""
    return {tag[len(DRAIN_TAG) :] for tag in tags if tag.lower().startswith(DRAIN_TAG)}


def min_executors_of(tags: Sequence[str]) -> int:
    """Return how many executors stay: one, or the largest tag's number (an invalid one: a million)."""
    told = [tag[len(MIN_EXECUTORS_TAG) :] for tag in tags if tag.lower().startswith(MIN_EXECUTORS_TAG)]
    return max((int(each) if re.fullmatch("[0-9]{1,6}", each) else 1_000_000 for each in told), default=1)


def drain_tags(route: str, min_executors: int, charge: str = "expected") -> list[str]:
    """Return the tags that tell the daemon the route, the minimum of executors and the charge of a drain."""
    more = [f"{MIN_EXECUTORS_TAG}{min_executors}"] if min_executors > 1 else []
    more += [f"{CHARGE_TAG}{charge}"] if charge != "expected" else []
    return [f"{DRAIN_TAG}{route}", *more]


def without_ours(tags: Sequence[str]) -> list[str]:
    """Return the other tags."""
    return [tag for tag in tags if not tag.lower().startswith((DRAIN_TAG, MIN_EXECUTORS_TAG, CHARGE_TAG))]
