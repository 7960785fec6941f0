"""The interface of a framework: parsing its command lines, and adding granted settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Tunables = Mapping[str, Sequence[str]]  # Settings that yarnctl chooses, each with its possible values
NO_TUNABLES: Tunables = {}


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


class Framework(Protocol):
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
