"""The runner's status line, and what it says about the time that is left.

Law: the line is the job's own word and is believed only for ranking, never for stopping anything. Java's
progress is not remaining time (facts, section 11); the runner's position is: bytes its child has taken, of
bytes that are known. Where the line is silent the answer is "unknown" (-1), not a guess.

``yarnctl phase=run groups=12 done=3400 known=9000 all=1 gen=2 can=1``; lines that begin a phase hold fewer
words, so the last value of each word is remembered for each attempt.
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.hadoop.wire_mapreduce import TaskAttempt

WORKING = ("run", "finish")
SAVING = ("finish", "drain", "save")
LINE_MAX = 1000


class Status(NamedTuple):
    """One line; -1 and "" where it does not say."""

    phase: str = ""
    groups: int = -1
    done: int = -1
    known: int = -1
    all: int = -1
    gen: int = -1
    can: int = -1
    ckpt: str = ""
    order: str = ""


_NUMBERS = ("groups", "done", "known", "all", "gen", "can")


def parse(text: str) -> Status | None:
    """Return what a status line says; None if it is not the runner's."""
    first, *words = text[:LINE_MAX].split()[:40] or [""]
    if first != "yarnctl":
        return None
    found: dict[str, str | int] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in found or name not in Status._fields:
            continue
        if name in _NUMBERS:
            if value.isascii() and value.isdigit() and len(value) <= 18:
                found[name] = int(value)
        else:
            found[name] = value
    return Status(**found) if found else None  # type: ignore[arg-type]  # numbers and words as declared


class Progress:
    """What is known of one attempt, look by look. Instants in ms, positions in bytes of input."""

    def __init__(self) -> None:
        self.phase = ""
        self.can = -1
        self.generation = 0
        self.since_ms = 0
        self.text = ""
        self._base: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._known = -1
        self._all = 0

    def take(self, row: TaskAttempt, now_ms: int) -> None:
        """Take one look at the attempt."""
        if row.status == self.text and self.text:
            return
        status = parse(row.status)
        if status is None:
            return
        self.text = row.status
        self.can = status.can if status.can >= 0 else self.can
        self.generation = status.gen if status.gen >= 0 else self.generation
        if status.phase:
            self._enter(status.phase, row, now_ms)
        if status.done >= 0:
            self._move(status, row, now_ms)

    def _enter(self, phase: str, row: TaskAttempt, now_ms: int) -> None:
        """Work on new keys begins with the reduce phase, or when the runner is seen at work again.

        Seen for the first time, a resumed attempt began there too, but for its skip.
        """
        if phase in WORKING and self.phase not in WORKING:
            first = not self.phase
            self.since_ms = row.merged_at_ms if first and row.merged_at_ms > 0 else now_ms
            self._base = (0, self.since_ms) if first and self.generation == 0 else None
            self._last = None
        self.phase = phase

    def _move(self, status: Status, row: TaskAttempt, now_ms: int) -> None:
        if self.phase in WORKING:
            place = (status.done, now_ms)
            self._base = self._base or place
            self._last = place
        if status.known >= 0:
            self._known, self._all = status.known, max(0, status.all)

    @property
    def done_bytes(self) -> int:
        """Return how much input the child had taken at the last look (0: not known)."""
        return self._last[0] if self._last else 0

    def rate(self) -> float:
        """Return the speed in bytes per ms while it worked; 0.0 if not known."""
        if self._base is None or self._last is None:
            return 0.0
        taken, passed_ms = self._last[0] - self._base[0], self._last[1] - self._base[1]
        return taken / passed_ms if taken > 0 and passed_ms > 0 else 0.0

    def total_bytes(self, row: TaskAttempt) -> int:
        """Return how much input there is; -1 if nobody can tell.

        Until the runner has seen its end, Java's progress says which part of it Java has handed on: its
        last third is the reduce phase.
        """
        if self._known < 0:
            return -1
        if self._all:
            return self._known
        handed = (row.progress_percent / 100 - 2 / 3) * 3
        return max(self._known, int(self._known / min(1.0, handed))) if handed > 0.01 else -1

    def remaining_ms(self, row: TaskAttempt, now_ms: int, usual_rate: float = 0.0) -> int:
        """Return the remaining work in ms; -1 unknown. ``usual_rate``: bytes per ms of earlier attempts."""
        rate = self.rate() or usual_rate
        total = self.total_bytes(row)
        if self._last is None or rate <= 0 or total < 0:
            return -1
        left_ms = (total - self._last[0]) / rate - (now_ms - self._last[1])
        return max(0, int(min(left_ms, 1e15)))

    @property
    def checkpointable(self) -> bool:
        """Say whether the runner would save now, as far as it has said."""
        return self.phase == "run" and self.can != 0
