"""What every framework asks of a gate's settings and of tags: the white list, numbers, the user's own tags.

Law: see the package. A name that is on no white list, or a value that does not look like one of it, is
refused with the address of the gate; of tunables only what the user has named is taken.
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
    """Refuse what a gate may not set. ``white_list``: name -> pattern of the whole value."""
    odd = [
        name
        for name, value in given.items()
        if value not in tunables.get(name, ()) and not re.fullmatch(white_list.get(name, "(?!)"), value)
    ]
    odd += [tag for tag in tags if not _TAG.fullmatch(tag)]
    if odd:
        raise BadInput("--url", f"a gate does not give {odd[0][:60]!r}", "is this your daemon?")


def own_tags(text: str, where: str) -> list[str]:
    """Return a user's tags; BadInput where they leave no room for the gate's, or forge one."""
    tags = list(tags_in(text))
    where = f"{where}={text[:60]}"
    if any(tag.lower().startswith(ADMISSION_TAG) for tag in tags):
        raise BadInput(where, f"a tag {ADMISSION_TAG}... is the gate's to give", "leave it away")
    if len([tag for tag in tags if not DEADLINE.fullmatch(tag)]) > TAGS_MAX - 2:
        raise BadInput(where, f"YARN takes {TAGS_MAX} tags, and the gate adds two", "leave some away")
    return tags


def with_tags(own: Sequence[str], tags: Sequence[str]) -> str:
    """Return the value of the setting of tags: the user's, less deadlines, and the gate's."""
    return ",".join([*(tag for tag in own if not DEADLINE.fullmatch(tag)), *tags])


def number_in(settings: Mapping[str, str], name: str, where: str) -> int | None:
    """Return a setting that is a whole number; None if it is not set, BadInput if it is none."""
    text = settings.get(name)
    if text is None:
        return None
    if not re.fullmatch(NUMBER, text.strip()):
        raise BadInput(f"{where}{name}={text[:40]}", "is no whole number")
    return int(text)


def count_in(settings: Mapping[str, str], name: str, where: str) -> int | None:
    """Return a setting that counts something there must be one of; BadInput for 0."""
    found = number_in(settings, name, where)
    if found == 0:
        raise BadInput(f"{where}{name}=0", "is no number above 0")
    return found


def own_value(own: str, given: str, name: str) -> str:
    """Return a note: the user's value stays."""
    return f"{name}={own} stays as it was said; the gate reckons with {given}"
