"""What a framework is here: how its command lines are read, and what a gate gives a job of it.

Law: see the package. A module of this package is a framework: its functions and names are those of
:class:`Framework`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Submission(Protocol):
    """One command line that submits a job, taken apart."""

    @property
    def queue_default(self) -> str:
        """The queue it goes to where it names none."""

    @property
    def user_option(self) -> str | None:
        """Whose job it is, if the command line says so."""

    def settings(self) -> dict[str, str]:
        """Return what the command line sets."""

    def words(self, more: Mapping[str, str]) -> list[str]:
        """Return the command line with these settings; what it said of them before is left out."""


class Framework(Protocol):
    """How jobs of one framework are submitted.

    ``NAME`` and ``QUEUE`` are the settings that hold a job's name and queue; ``UNNAMED`` is what a job is
    called that has no name.
    """

    NAME: str
    QUEUE: str
    UNNAMED: str

    def command_of(self, words: Sequence[str]) -> Submission:
        """Take a command line apart; BadInput if it submits no such job."""

    def most_containers(self, settings: Mapping[str, str]) -> int | None:
        """Return the most containers the job can use at once, its master included; None if it is not said."""

    def tags_of(self, settings: Mapping[str, str]) -> list[str]:
        """Return the user's own tags; BadInput where they leave no room for the gate's, or speak for it."""

    def given(self, containers: int) -> dict[str, str]:
        """Return the settings by which a job holds so many containers at most."""

    def settled(
        self, own: Mapping[str, str], given: Mapping[str, str], tags: Sequence[str]
    ) -> tuple[dict[str, str], list[str]]:
        """Return the settings to submit with, and notes; BadInput names what contradicts the gate."""
