"""The runner's status line, and the remaining time computed from it.

Law: the job writes the line, and it is used only for ranking, never to end a task. Java's progress does not
give the remaining time (facts, section 11); the runner's position does: bytes its child has read, of bytes
that are known. If the line lacks a value, the result is "unknown" (-1), not a guess.

``yarnctl phase=run groups=12 done=3400 known=9000 all=1 gen=2 can=1 ran=2500 base=900``; lines that begin a
phase have fewer words, so the last value of each word is kept for each attempt. The reducer's own status
follows after `` | `` and is never read, whatever it looks like.

The remaining time is computed from::

    position   done: the bytes the child has taken (not those that Java, or the runner, is ahead)
    total      known, where the runner has seen the end of its input (all=1); before that, known and Java's
               buffers (by its counter of groups), divided by the part of all that Java has read
    speed      bytes since base in ran ms of the child at work, by the runner's own clock; the rate of
               earlier attempts at the task counts as ``STEADY_MS`` more, so that a start does not fluctuate
    remaining  (total - done) / speed, less the time since the line was first seen (at most ``QUIET_MS``:
               an attempt without a new line for longer than that counts as not progressing)
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.frameworks.mapreduce.rest import TaskAttempt

STEADY_MS = 10_000
QUIET_MS = 10_000
JAVA_AHEAD_MAX = 192 * 1024  # Java buffers 128 KiB, and a pipe 64 KiB (facts, sections 4.1 and 11)
WORKING = ("run", "finish")
SAVING = ("finish", "drain", "save")
LINE_MAX = 1000
WHY = " why="
JAVA_PHASE = " > reduce"  # The phase that Java appends to every status
BAR = " | "  # The separator between the runner's words and the reducer's


class Status(NamedTuple):
    """The values of one status line; -1 and "" for a missing value."""

    phase: str = ""
    groups: int = -1
    done: int = -1
    known: int = -1
    all: int = -1
    gen: int = -1
    can: int = -1
    ckpt: str = ""
    order: str = ""
    ran: int = -1
    base: int = -1
    back: int = -1
    why: str = ""
    bell: str = ""


_NUMBERS = ("groups", "done", "known", "all", "gen", "can", "ran", "base", "back")
_WORDS = (*_NUMBERS, "phase", "ckpt", "order", "bell")


def parse(text: str) -> Status | None:
    """Return the values of a status line; None if the runner did not write it."""
    own, _, words_of_why = own_part(text).partition(WHY)
    first, *words = own.split()[:40] or [""]
    if first != "yarnctl":
        return None
    found: dict[str, str | int] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            break  # a sentence: words in it that look like ours are foreign text
        if name in found or name not in _WORDS:
            continue
        if name in _NUMBERS:
            if value.isascii() and value.isdigit() and len(value) <= 18:
                found[name] = int(value)
        else:
            found[name] = value
    if words_of_why and found.get("can") == 0:
        found["why"] = words_of_why.removesuffix(JAVA_PHASE)
    return Status(**found) if found else None  # type: ignore[arg-type]  # numbers and words as declared


def own_part(text: str) -> str:
    """Return the runner's own part of a status."""
    return text[:LINE_MAX].partition(BAR)[0]


def needs_java_counters(attempt: TaskAttempt, progress: Progress | None) -> bool:
    """Return whether Java's counters make a reduce's total more exact, because its buffers are a large part.

    By its newest status; ``progress``: what is kept of the attempt, for a line that does not tell.
    """
    status = parse(attempt.status)
    if status is not None and status.done >= 0 and status.known >= 0:
        known, ended = status.known, status.all > 0
    elif progress is not None:
        known, ended = progress.known, progress._all > 0
    else:
        return False
    return not ended and 0 <= known < 64 * JAVA_AHEAD_MAX


class Progress:
    """The state of one attempt, updated by each observation. Times in ms, positions in bytes of input.

    ``why``: why it cannot be suspended any more, in its runner's words ("": no reason given).
    ``known``: bytes of its input (-1: not reported).
    ``bell``: where a datagram wakes its runner ("": nowhere).
    ``back_ms``: its runner's time from its start to the first new key, if it resumed (-1: not known).
    """

    def __init__(self) -> None:
        self.phase = ""
        self.can = -1
        self.why = ""
        self.generation = 0
        self.since_ms = 0
        self.text = ""
        self.back_ms = -1
        self.bell = ""
        self._groups = 0
        self._base: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._reported: tuple[int, int] | None = None
        self.known = -1
        self._all = 0
        self._java_groups = 0

    def apply(self, attempt: TaskAttempt, now_ms: int) -> None:
        """Apply one observation of the attempt."""
        own = own_part(attempt.status)
        if own == self.text and self.text:
            return
        status = parse(own)
        if status is None:
            return
        self.text = own
        self.can = status.can if status.can >= 0 else self.can
        self.why = status.why or self.why
        self.generation = status.gen if status.gen >= 0 else self.generation
        self.bell = status.bell or self.bell
        self.back_ms = status.back if status.back >= 0 else self.back_ms
        if status.phase:
            # Work on new keys begins with the reduce phase, or when the runner works again. At its first
            # observation a resumed attempt, too, counts as at work from there, but for its skip.
            if status.phase in WORKING and self.phase not in WORKING:
                first = not self.phase
                self.since_ms = attempt.merged_at_ms if first and attempt.merged_at_ms > 0 else now_ms
                self._base = (0, self.since_ms) if first and self.generation == 0 else None
                self._last = self._reported = None
            self.phase = status.phase
        if status.done >= 0:
            self._move(status, attempt, now_ms)

    def java_has_read(self, groups: int) -> None:
        """Apply Java's own counter of the groups that it has read."""
        self._java_groups = groups

    def _move(self, status: Status, attempt: TaskAttempt, now_ms: int) -> None:
        if self.phase in WORKING:
            place = (status.done, now_ms)
            self._base = self._base or place
            self._last = place
            self._groups = max(0, status.groups)
            if status.ran >= 0 and status.base >= 0:
                self._reported = (status.done - status.base, status.ran)
                # It cannot have begun later than that; the line may be older than the poll.
                self.since_ms = max(self.since_ms, now_ms - status.ran) if self.generation else self.since_ms
        if status.known >= 0:
            self.known, self._all = status.known, max(0, status.all)

    @property
    def done_bytes(self) -> int:
        """Return the bytes of input that the child had read at the last observation (0: unknown)."""
        return self._last[0] if self._last else 0

    def rate(self, usual: float = 0.0) -> float:
        """Return the speed in bytes per ms while it worked (0.0: unknown); ``usual``: of earlier attempts."""
        taken, passed_ms = self._worked()
        if usual > 0:
            return (max(0, taken) + usual * STEADY_MS) / (max(0, passed_ms) + STEADY_MS)
        return taken / passed_ms if taken > 0 and passed_ms > 0 else 0.0

    def _worked(self) -> tuple[int, int]:
        if self._reported is not None:
            return self._reported
        if self._base is None or self._last is None:
            return 0, 0
        return self._last[0] - self._base[0], self._last[1] - self._base[1]

    def group_ms(self) -> int:
        """Return how long it works on one key group, on average; 0: unknown.

        Until it has ended one, that is at least the time so far.
        """
        taken, passed_ms = self._worked()
        if self._groups <= 0 or taken <= 0 or self._last is None:
            return max(0, passed_ms)
        return max(0, passed_ms) * self._last[0] // (self._groups * taken)

    def total_bytes(self, attempt: TaskAttempt) -> int:
        """Return the total bytes of input; -1 if unknown.

        Until the runner has seen its end, the part that Java has passed on follows from Java's progress: its
        last third is the reduce phase.
        """
        if self.known < 0:
            return -1
        if self._all:
            return self.known
        handed = (attempt.progress_percent / 100 - 2 / 3) * 3
        return int(self._read_by_java() / min(1.0, handed)) if handed > 0.01 else -1

    def _read_by_java(self) -> int:
        """Return the bytes that Java has read: those it has passed on, and those in its buffers."""
        if not (self._java_groups and self._groups and self._last):
            return self.known
        read = self._java_groups * self._last[0] // self._groups
        return min(max(self.known, read), self.known + JAVA_AHEAD_MAX)

    def remaining_ms(self, attempt: TaskAttempt, now_ms: int, usual_rate: float = 0.0) -> int:
        """Return the remaining work in ms; -1 unknown. ``usual_rate``: bytes per ms of earlier attempts."""
        rate = self.rate(usual_rate)
        total = self.total_bytes(attempt)
        if self._last is None or rate <= 0 or total < 0:
            return -1
        left_ms = (total - self._last[0]) / rate - min(now_ms - self._last[1], QUIET_MS)
        return max(0, int(min(left_ms, 1e15)))

    @property
    def checkpointable(self) -> bool:
        """Return whether the runner would save its state now, by its last status."""
        return self.phase == "run" and self.can != 0
