"""What submitting has in common for all frameworks: its interface, and checks of granted settings and tags.

The checks: the white list, numbers, the user's own tags. Of tunables only values that the user has listed are
accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from yarnctl.errors import BadInput
from yarnctl.hadoop.wire.tags import (
    ADMISSION_TAG,
    DEADLINE,
    DEADLINE_TAG,
    TAGS_MAX,
    drain_tags,
    tags_in,
    without_ours,
)

Tunables = Mapping[str, Sequence[str]]  # Settings that yarnctl chooses, each with its possible values
NO_TUNABLES: Tunables = {}
NUMBER = r"[0-9]{1,9}"
QUEUE_NAME = r"[A-Za-z0-9_.-]{1,200}"
_TAG = re.compile(rf"{DEADLINE_TAG}[0-9]{{1,13}}|{ADMISSION_TAG}[A-Za-z0-9-]{{1,70}}")


class Submission(Protocol):
    """A parsed command line that submits a job."""

    @property
    def queue_default(self) -> str:
        """The queue of a job without a queue setting."""

    @property
    def name_default(self) -> str:
        """The name in YARN of a job without a name setting."""

    @property
    def user_option(self) -> str | None:
        """The job's user in the command line, if any."""

    def settings(self) -> dict[str, str]:
        """Return the settings of the command line."""

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with the settings ``more`` in place of its own values."""


class Submitter(Protocol):
    """How jobs of one framework are submitted.

    ``NAME``, ``QUEUE``, ``TAGS``: the settings of a job's name, queue and tags. ``UNNAMED``: the name of all
    jobs without one. ``MOST_REMEDY``: how to give the maximum number of containers of a job, for errors.
    """

    NAME: str
    QUEUE: str
    TAGS: str
    UNNAMED: str
    MOST_REMEDY: str

    def command_of(self, words: Sequence[str]) -> Submission:
        """Parse a command line; raises BadInput if it does not submit such a job."""

    def most_containers(self, settings: Mapping[str, str]) -> int | None:
        """Return the most containers that the job can use at once, with its master's; None: unknown."""

    def tags_of(self, settings: Mapping[str, str]) -> list[str]:
        """Return the user's own tags; BadInput where they are too many, or one is reserved for the daemon."""

    def given(self, containers: int) -> dict[str, str]:
        """Return the settings that limit a job to ``containers``, with its master's."""

    def settled(
        self,
        own: Mapping[str, str],
        given: Mapping[str, str],
        tags: Sequence[str],
        tunables: Tunables = NO_TUNABLES,
    ) -> tuple[dict[str, str], list[str]]:
        """Return the settings to submit with, and notes; BadInput names a contradicting setting."""


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


def unwrapped_tags(own: str, where: str) -> list[str]:
    """Return a user's tags; raises BadInput if they have those of ``yarnctl wrap``."""
    tags = tags_in(own)
    kept = without_ours(tags)
    if len(kept) < len(tags):
        raise BadInput(f"{where}={own[:60]}", "is wrapped already", "wrap the original command")
    return kept


def with_drain_tags(
    own: Sequence[str], route: str, min_executors: int, where: str, charge: str = "expected"
) -> str:
    """Return the value of the tags' setting: the user's and those that allow draining; raises BadInput."""
    found = [*own, *drain_tags(route, min_executors, charge)]
    if len(found) > TAGS_MAX:
        raise BadInput(where, f"exceeds YARN's maximum of {TAGS_MAX} tags", "remove some")
    return ",".join(found)
