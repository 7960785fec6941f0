"""Estimating: what the history says of the next run of a job, asked for once by all that want to know.

Law: a question that is not answered yet is not asked again; an answer counts for a moment, and what went
wrong is asked again.
"""

from __future__ import annotations

from yarnctl.daemon.admission.feedback import sized
from yarnctl.daemon.admission.history_worker import Answer, Clerk

FRESH_MS = 5_000
"""So long an answer counts from when it was seen first, ..."""
OLD_MS = 300_000
"""... if its question is not so old."""


class _Question:
    """A question of an instant; ``seen_at_ms``: when its answer was seen first (None: not yet)."""

    def __init__(self, answer: Answer, at_ms: int) -> None:
        self.answer = answer
        self.at_ms = at_ms
        self.seen_at_ms: int | None = None

    def counts(self, now_ms: int) -> bool:
        """Say whether its answer is on its way, or still counts."""
        if not self.answer.done:
            return True
        if self.seen_at_ms is None:
            self.seen_at_ms = now_ms
        fresh = now_ms - self.seen_at_ms < FRESH_MS and now_ms - self.at_ms < OLD_MS
        return fresh and not self.answer.problem


class Estimates:
    """Asks ``clerk``; a job is known by its name and its user."""

    def __init__(self, clerk: Clerk) -> None:
        self._clerk = clerk
        self._asked: dict[tuple[str, str], _Question] = {}

    def of(self, name: str, user: str, capacity: int, now_ms: int) -> Answer:
        """Return the answer for a job, which may be on its way; ``capacity``: the cluster's containers."""
        self._asked = {job: each for job, each in self._asked.items() if each.counts(now_ms)}
        found = self._asked.get((name, user))
        if found is None:
            answer = self._clerk.ask(
                lambda history: sized(history, capacity).estimate(name, user), of_a_request=True
            )
            found = self._asked[name, user] = _Question(answer, now_ms)
        return found.answer

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._asked)
