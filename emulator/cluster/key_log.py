"""The key log: which keys of which reduce were done by which attempt.

Law: every key of every reduce is committed exactly once, in order. An attempt may only go on
where saved work ends, saving only ever moves forward, and a commit is refused unless the saved
pieces and the last attempt's own piece cover all keys without gap or overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from yarnctl.errors import InvariantBroken


class Piece(NamedTuple):
    """Keys ``from_key`` (inclusive) to ``to_key`` (exclusive) were done by attempt ``attempt``."""

    attempt: int
    from_key: int
    to_key: int


class KeyLog:
    """The pieces of one job's reduces. A reduce that one attempt did alone costs one integer."""

    __slots__ = ("_keys", "_pieces", "committed")

    def __init__(self, keys: tuple[int, ...]) -> None:
        self._keys = keys
        self._pieces: dict[int, list[Piece]] = {}
        self.committed: list[int] = [-1] * len(keys)
        """The attempt that committed each reduce, -1 while none has."""

    def saved(self, task: int) -> int:
        """Return how many keys of reduce ``task`` are saved: where the next attempt goes on."""
        pieces = self._pieces.get(task)
        return pieces[-1].to_key if pieces else 0

    def save(self, task: int, attempt: int, from_key: int, to_key: int) -> None:
        """Note a checkpoint: ``attempt`` did the keys from ``from_key`` up to ``to_key``."""
        if from_key != self.saved(task):
            raise InvariantBroken(
                "keys-without-gap",
                f"reduce {task}: attempt {attempt} saves from key {from_key}, saved is {self.saved(task)}",
            )
        if not from_key <= to_key <= self._keys[task]:
            raise InvariantBroken("keys-in-range", f"reduce {task}: saves {from_key}..{to_key}")
        self._pieces.setdefault(task, []).append(Piece(attempt, from_key, to_key))

    def commit(self, task: int, attempt: int, from_key: int) -> None:
        """Commit reduce ``task``: ``attempt`` did all keys from ``from_key`` to the end."""
        if self.committed[task] != -1:
            raise InvariantBroken(
                "committed-once", f"reduce {task}: committed by {self.committed[task]} and by {attempt}"
            )
        if from_key != (self.saved(task) if self._pieces else 0):
            raise InvariantBroken(
                "keys-without-gap",
                f"reduce {task}: attempt {attempt} commits from key {from_key}, saved is {self.saved(task)}",
            )
        self.committed[task] = attempt

    def pieces(self, task: int) -> tuple[Piece, ...]:
        """Return all pieces of a committed reduce, in order, the committing attempt's last."""
        saved = tuple(self._pieces.get(task, ()))
        if self.committed[task] == -1:
            return saved
        start = saved[-1].to_key if saved else 0
        return (*saved, Piece(self.committed[task], start, self._keys[task]))
