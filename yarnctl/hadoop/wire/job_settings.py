"""A MapReduce job's settings and tags, as its submitter writes them and its history tells them.

Law: names only, spelled once. Source: mapred-default.xml of Hadoop 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME, QUEUE, TAGS = "mapreduce.job.name", "mapreduce.job.queuename", "mapreduce.job.tags"
MAPS, REDUCES = "mapreduce.job.maps", "mapreduce.job.reduces"
MAP_LIMIT, REDUCE_LIMIT = "mapreduce.job.running.map.limit", "mapreduce.job.running.reduce.limit"
LIMITS = (MAP_LIMIT, REDUCE_LIMIT)
"""At most so many maps, and so many reduces, run at once; 0: no limit."""
SLOW_START = "mapreduce.job.reduce.slowstart.completedmaps"
MASTER = 1
"""Containers that a job's master takes."""

TAGS_MAX, TAG_MAX = 10, 100
"""What YARN takes: so many tags, each of so many characters. It keeps them in small letters."""
ADMISSION_TAG = "yarnctl-admission-"
"""Before the id of an admission: the tag by which its application is known."""
DEADLINE_TAG = "deadline:"
DEADLINE = re.compile(DEADLINE_TAG + r"([0-9]{1,13})", re.IGNORECASE)
"""A deadline: seconds since the epoch, or ms if 13 digits."""


def deadline_tag(at_ms: int) -> str:
    """Return the tag that names a deadline (ms since the epoch)."""
    return f"{DEADLINE_TAG}{at_ms}"


def deadline_in(tag: str) -> int | None:
    """Return the deadline that a tag names, in ms since the epoch; None if it names none."""
    match = DEADLINE.fullmatch(tag)
    if match is None:
        return None
    return int(match[1]) if len(match[1]) == 13 else int(match[1]) * 1000


def deadline_tag_ms(tags: Sequence[str]) -> int | None:
    """Return the instant that a tag ``deadline:`` names (seconds, or ms if 13 digits)."""
    found = (deadline_in(tag) for tag in tags)
    return next((at_ms for at_ms in found if at_ms is not None), None)
