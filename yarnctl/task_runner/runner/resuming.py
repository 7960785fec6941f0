"""Resuming: an attempt continues from a checkpoint: what is done is skipped, what was written is replayed.

Saved output and state are fetched and checked before anything is skipped, both or neither. Nothing is written
before the skipped keys are those that were done; else the checkpoint is set aside and all input comes again.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
from typing import Callable, Iterator, TypeVar

from yarnctl.task_runner.runner.attempt import STATUS_EVERY_S, AttemptState
from yarnctl.task_runner.runner.child import PIPE_ATOMIC_BYTES, Leave
from yarnctl.task_runner.runner.feeding import ChildLife
from yarnctl.task_runner.runner.orders import OrderAnswers
from yarnctl.task_runner.runner.protocol.generations import find_checkpoint, set_aside
from yarnctl.task_runner.runner.protocol.key_rule import Scanner
from yarnctl.task_runner.runner.protocol.manifests import Manifest, Part, attempt_number
from yarnctl.task_runner.runner.protocol.stores import (
    EXIT_UNPROVABLE,
    Spool,
    StoreAway,
    StoreError,
    Unprovable,
    Unusable,
    check_owner,
    check_root,
)

WAIT_FIRST_S, WAIT_MOST_S = 0.5, 10.0
T = TypeVar("T")


def retried(
    asked: Callable[[], T],
    wait_s: float,
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> T:
    """Return what a call that changes nothing gives; raise StoreAway when ``wait_s`` is over.

    An unavailable store is tried again as HDFS's own client does: after growing pauses, for a bounded time.
    Meanwhile it is reported that the task waits. ``clock`` and ``pause`` are given by tests.
    """
    ends_s, pause_s = clock() + wait_s, WAIT_FIRST_S
    while True:
        try:
            return asked()
        except StoreAway as why:
            left_s = ends_s - clock()
            if left_s <= 0:
                raise
            report(str(why))
            pause(min(pause_s, left_s))
            pause_s = min(pause_s * 2, WAIT_MOST_S)


class Resuming:
    """Finds the newest usable checkpoint and continues from it."""

    def __init__(self, attempt: AttemptState, life: ChildLife, answers: OrderAnswers) -> None:
        self._attempt = attempt
        self._life = life
        self._answers = answers
        self._skipped = Spool(attempt.settings.spool_limit_bytes)

    # -- finding ---------------------------------------------------------------------------

    def open_store(self) -> None:
        """Make the task's folder, refuse what is not safe there, and find a checkpoint."""

        def opened() -> None:
            store, task = self._attempt.store, self._attempt.task
            check_root(store)
            store.make_folder(task.folder)
            for path in (task.job, task.folder):
                entry = store.entry(path)
                if entry is not None:
                    check_owner(entry, (store.user,), path)
            self._find_checkpoint()

        self._retried(opened)

    def _retried(self, asked: Callable[[], T]) -> T:
        """Return a call's result; an attempt that may resume waits for an unavailable store."""
        attempt = self._attempt
        may_resume = attempt_number(attempt.task.attempt) > 0
        wait_s = attempt.settings.store_wait_s if may_resume else 0.0
        return retried(asked, wait_s, attempt.lines.report_waiting)

    def _find_checkpoint(self) -> None:
        """Find the newest usable checkpoint; log why others are not used."""
        attempt = self._attempt
        owners = (attempt.store.user,)
        found = find_checkpoint(attempt.store, attempt.task, attempt.settings.rule, attempt.words, owners)
        for why in found.refused:
            attempt.errors.note(f"not used: {why}")
        attempt.manifest = found.manifest
        attempt.highest_generation = found.highest_generation

    def put_aside(self, manifest: Manifest, why: str) -> None:
        """Record in the log and in the store that a checkpoint must not be used."""
        attempt = self._attempt
        attempt.errors.note(f"generation {manifest.generation} is set aside: {why}")
        try:
            set_aside(attempt.store, attempt.task, manifest, why)
        except StoreError as error:
            attempt.errors.note(f"this could not be recorded: {error}")

    # -- going on --------------------------------------------------------------------------

    def resume(self, manifest: Manifest) -> bool:
        """Skip by a checkpoint and replay it; False: it is set aside and all input is there again."""
        attempt = self._attempt
        fetched = self._fetch(manifest)
        if fetched is None:
            return self.resume(attempt.manifest) if attempt.manifest is not None else False
        self._attempt.lines.enter("skip")
        why = self._skip(manifest)
        if why:
            self._give_up(manifest, why)
            return False
        self._skipped.clear()
        attempt.resumed = True
        output, attempt.reducer_state = fetched
        self._replay(manifest, output)
        self._life.start()
        return True

    def _give_up(self, manifest: Manifest, why: str) -> None:
        """Set a checkpoint aside whose groups are not those of the input, and begin from zero."""
        attempt = self._attempt
        self.put_aside(manifest, why)
        attempt.manifest = None
        attempt.scanner = Scanner(attempt.settings.rule)
        if self._skipped.failed:
            raise Unprovable(f"skipped input is needed again, but was not stored: {self._skipped.failed}")
        attempt.input.begin_again(self._skipped)

    def _fetch(self, manifest: Manifest) -> tuple[Spool, bytes | None] | None:
        attempt = self._attempt
        self._attempt.lines.enter("fetch")
        try:
            return self._retried(lambda: self._fetched(manifest))
        except StoreError as why:
            attempt.errors.note(f"generation {manifest.generation} is not used: {why}")
            attempt.manifest = None
        except Unusable as why:
            self.put_aside(manifest, str(why))
            attempt.manifest = None
            try:
                self._find_checkpoint()
            except (Unusable, StoreError) as error:
                attempt.errors.note(f"no other checkpoint is used: {error}")
        return None

    def _fetched(self, manifest: Manifest) -> tuple[Spool, bytes | None]:
        """Return the output and the state that a checkpoint holds."""
        saved = Spool(sys.maxsize)
        if (manifest.state is None) != (not self._attempt.settings.save):
            raise Unusable("made with another --save setting than this attempt's")
        for part in manifest.parts:
            for piece in self._checked_pieces(part):
                saved.add(piece)
                self._attempt.lines.keep_alive()
        state = None if manifest.state is None else b"".join(self._checked_pieces(manifest.state))
        if saved.failed:
            raise StoreError(f"the local disk: {saved.failed}")
        return saved, state

    def _checked_pieces(self, part: Part) -> Iterator[bytes]:
        """Yield a file's bytes, and raise Unusable after the last if they are not what was saved."""
        digest, size_bytes = hashlib.sha256(), 0
        for piece in self._attempt.store.read(f"{self._attempt.task.folder}/{part.name}"):
            digest.update(piece)
            size_bytes += len(piece)
            yield piece
        if (size_bytes, digest.hexdigest()) != (part.bytes, part.sha256):
            raise Unusable(f"{part.name}: content differs from what was saved")

    def _skip(self, manifest: Manifest) -> str:
        """Pass over the groups that are done; return what does not match, empty if all does."""
        scanner, task_input = self._attempt.scanner, self._attempt.input
        found = False
        while not found:
            self._answers.all_unchanged()
            rest = task_input.buffer[task_input.at :]
            taken, found = scanner.take_groups(rest, manifest.groups_done, final=task_input.ended)
            if taken:
                self._skipped.add(rest[:taken])
                task_input.at += taken
            self._attempt.lines.keep_alive()
            if not scanner.sorted:
                return "keys are not sorted by bytes"
            if found:
                break
            if task_input.ended:
                done = manifest.groups_done
                return f"the input ended after {scanner.groups} groups, but the checkpoint covers {done}"
            task_input.fill(STATUS_EVERY_S)
        here = (scanner.groups, scanner.digest(), scanner.key)
        there = (manifest.groups_done, manifest.keys_digest, manifest.last_key)
        differs = f"the first {manifest.groups_done} keys differ from those of the checkpoint"
        return "" if here == there else differs

    def _replay(self, manifest: Manifest, spool: Spool) -> None:
        """Write counters and output of the attempts before; requests are answered in between."""
        attempt = self._attempt
        self._attempt.lines.enter("replay")
        attempt.past_counters = manifest.counters
        for group, inside in sorted(manifest.counters.items()):
            for name, amount in sorted(inside.items()):
                attempt.errors.count(group, name, amount)
        for piece in spool.pieces():
            view = memoryview(piece)
            while view:
                self._answers.all_unchanged()
                if attempt.wakeup.wait(1, select.POLLOUT, STATUS_EVERY_S):
                    try:
                        view = view[os.write(1, view[:PIPE_ATOMIC_BYTES]) :]
                    except BrokenPipeError:
                        raise Leave(EXIT_UNPROVABLE) from None
                self._attempt.lines.keep_alive()
        spool.clear()
