"""Checks of granted settings and tags, for every framework: the white list, numbers, the user's own tags.

Of tunables only values that the user has listed are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from yarnctl.errors import BadInput
from yarnctl.hadoop.wire.mapreduce import ADMISSION_TAG, DEADLINE, DEADLINE_TAG, TAGS_MAX, tags_in
from yarnctl.submitting.framework import Tunables

NUMBER = r"[0-9]{1,9}"
QUEUE_NAME = r"[A-Za-z0-9_.-]{1,200}"
_TAG = re.compile(rf"{DEADLINE_TAG}[0-9]{{1,13}}|{ADMISSION_TAG}[A-Za-z0-9-]{{1,70}}")


def refuse_unlisted(
    white_list: Mapping[str, str], given: Mapping[str, str], tags: Sequence[str], tunables: Tunables
) -> None:
    """Raise BadInput for a setting that may not be granted. ``white_list``: name -> pattern of the value."""
    odd = [
        name
        for name, value in given.items()
        if value not in tunables.get(name, ()) and not re.fullmatch(white_list.get(name, "(?!)"), value)
    ]
    odd += [tag for tag in tags if not _TAG.fullmatch(tag)]
    if odd:
        problem = f"{odd[0][:60]!r} was granted, which a daemon does not do"
        raise BadInput("--url", problem, "check that it is the address of your daemon")


def own_tags(text: str, where: str) -> list[str]:
    """Return a user's tags; BadInput where they are too many, or one is reserved for the daemon."""
    tags = list(tags_in(text))
    where = f"{where}={text[:60]}"
    if any(tag.lower().startswith(ADMISSION_TAG) for tag in tags):
        raise BadInput(where, f"tags {ADMISSION_TAG}... are reserved for the daemon", "remove the tag")
    if len([tag for tag in tags if not DEADLINE.fullmatch(tag)]) > TAGS_MAX - 2:
        problem = f"too many tags: YARN accepts {TAGS_MAX}, and yarnctl adds 2"
        raise BadInput(where, problem, "remove some")
    return tags


def with_tags(own: Sequence[str], tags: Sequence[str]) -> str:
    """Return the value of the tags' setting: the user's without deadlines, and the granted ones."""
    return ",".join([*(tag for tag in own if not DEADLINE.fullmatch(tag)), *tags])


def number_in(settings: Mapping[str, str], name: str, where: str) -> int | None:
    """Return a setting as a whole number; None if it is not set. Raises BadInput for another value."""
    text = settings.get(name)
    if text is None:
        return None
    if not re.fullmatch(NUMBER, text.strip()):
        raise BadInput(f"{where}{name}={text[:40]}", "is not a whole number", "use a number from 0")
    return int(text)


def count_in(settings: Mapping[str, str], name: str, where: str) -> int | None:
    """Return a setting as a whole number above 0, None if not set; BadInput for another value."""
    found = number_in(settings, name, where)
    if found == 0:
        raise BadInput(f"{where}{name}=0", "is not above 0", "use a number from 1")
    return found


def own_value(own: str, given: str, name: str) -> str:
    """Return the note that the user's value has precedence over the granted one."""
    return f"{name}={own} is kept; the admission assumes {given}"
