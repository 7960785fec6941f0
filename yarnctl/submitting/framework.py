"""The interface of a framework: how its command lines are parsed, and what a gate gives a job of it.

Law: see the package. A module of this package is a framework: its functions and names are those of
:class:`Framework`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Tunables = Mapping[str, Sequence[str]]
"""Settings that a user leaves to yarnctl, each with the values that may be chosen from."""
NO_TUNABLES: Tunables = {}


class Submission(Protocol):
    """One command line that submits a job, parsed."""

    @property
    def queue_default(self) -> str:
        """The queue of a job that names none."""

    @property
    def name_default(self) -> str:
        """The name under which YARN knows a job that names none."""

    @property
    def user_option(self) -> str | None:
        """The job's user, if the command line names one."""

    def settings(self) -> dict[str, str]:
        """Return what the command line sets."""

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with these settings; its own values of them are left out."""


class Framework(Protocol):
    """How jobs of one framework are submitted.

    ``NAME``, ``QUEUE``, ``TAGS``: the settings of a job's name, queue and tags; ``UNNAMED``: that of all jobs
    that have none. ``MOST_REMEDY`` says how to tell the most containers that a job can use.
    """

    NAME: str
    QUEUE: str
    TAGS: str
    UNNAMED: str
    MOST_REMEDY: str

    def command_of(self, words: Sequence[str]) -> Submission:
        """Parse a command line; BadInput if it submits no such job."""

    def most_containers(self, settings: Mapping[str, str]) -> int | None:
        """Return the most containers the job can use at once, its master included; None if not known."""

    def tags_of(self, settings: Mapping[str, str]) -> list[str]:
        """Return the user's own tags; BadInput where they leave no room for the gate's, or forge one."""

    def given(self, containers: int) -> dict[str, str]:
        """Return the settings that limit a job to so many containers."""

    def settled(
        self,
        own: Mapping[str, str],
        given: Mapping[str, str],
        tags: Sequence[str],
        tunables: Tunables = NO_TUNABLES,
    ) -> tuple[dict[str, str], list[str]]:
        """Return the settings to submit with, and notes; BadInput names what contradicts the gate."""
