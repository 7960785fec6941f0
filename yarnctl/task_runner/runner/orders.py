"""Orders: heard by a thread that looks into the store, answered and held for by the main thread.

Law: an order that was withdrawn is neither begun nor answered. A store that hangs hangs the thread of the
watcher, never the data. A hold ends when the time of each of its orders is over, or they were withdrawn.
"""

from __future__ import annotations

import collections
import os
import random
import select
import signal
import threading
import time
from typing import Sequence

from yarnctl.task_runner.runner.attempt import AttemptState, StatusLines
from yarnctl.task_runner.runner.child import Wakeup
from yarnctl.task_runner.runner.protocol.failures import StoreError, Unusable
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, Request, canonical, read_request
from yarnctl.task_runner.runner.protocol.stores import Entry, Store, check_owner


class Inbox:
    """The orders that wait for the main thread, and the names of those that were withdrawn."""

    def __init__(self, wakeup: Wakeup) -> None:
        self.waiting: collections.deque[Request] = collections.deque()
        self.withdrawn: set[str] = set()
        self._wakeup = wakeup

    def add(self, request: Request) -> None:
        """Hand an order to the main thread."""
        self.waiting.append(request)
        self._wakeup.wake()

    def withdraw(self, order: str) -> None:
        """Note that an order was taken back."""
        self.withdrawn.add(order)
        self._wakeup.wake()


class Watcher(threading.Thread):
    """Looks for requests when the doorbell rings, and now and then until it rang once.

    The bell is a pipe that the interpreter writes signal numbers to, so it is heard whatever the
    main thread is doing.
    """

    def __init__(self, store: Store, attempt: AttemptState, inbox: Inbox) -> None:
        super().__init__(daemon=True, name="watcher")
        self.store = store
        self.task = attempt.task
        self.settings = attempt.settings
        self.errors = attempt.errors
        self.inbox = inbox
        self.bell_r, self.bell_w = os.pipe()
        for end in (self.bell_r, self.bell_w):
            os.set_blocking(end, False)
        self.heard = False
        self.seen: set[str] = set()
        self.complained: set[str] = set()

    def listen(self) -> None:
        """Take SIGQUIT as the doorbell; a Java parent hands it down blocked."""
        signal.signal(signal.SIGQUIT, lambda *_: None)
        signal.set_wakeup_fd(self.bell_w, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGQUIT})

    def run(self) -> None:
        """Look once at the start (a ring may have come too early), then when there is a cause."""
        bell = select.poll()
        bell.register(self.bell_r, select.POLLIN)
        again = not self.look()
        while True:
            bell.poll(self._wait_ms(again))
            try:
                rung = os.read(self.bell_r, 4096)
            except OSError:  # nothing there, or it could not be read: the store is looked at in any case
                rung = b""
            self.heard = self.heard or bytes((signal.SIGQUIT,)) in rung
            again = not self.look()

    def look(self) -> bool:
        """Hand new requests to the main thread; return False if the store could not be asked."""
        try:
            self._look()
        except Unusable as why:
            self._complain(str(why))
        except Exception as why:  # whatever it is, this thread must go on listening
            self._complain(str(why) if isinstance(why, StoreError) else repr(why))
            return False
        return True

    def _wait_ms(self, again: bool) -> float | None:
        if again:
            return 1000 + random.random() * 1000
        poll_ms = self.settings.poll_ms
        return None if self.heard or not poll_ms else poll_ms * (1 + random.random() / 3)

    def _look(self) -> None:
        folder = f"{self.task.job}/{self.task.attempt}"
        entries = self.store.list(folder)
        if not entries:
            return
        owners = self.settings.request_owners
        above = self.store.entry(folder)
        if above is not None:
            check_owner(above, owners, folder)
        for entry in entries:  # before the requests: what is taken back is not to be begun
            order, _, kind = entry.name.partition(".withdrawn")
            if not kind and order != entry.name and order not in self.inbox.withdrawn:
                check_owner(entry, owners, entry.name)
                self.inbox.withdraw(order)
        for entry in entries:
            if entry.name.endswith(".request.json") and entry.name not in self.seen:
                self.seen.add(entry.name)
                self._deliver(folder, entry, owners)

    def _deliver(self, folder: str, entry: Entry, owners: Sequence[str]) -> None:
        try:
            check_owner(entry, owners, entry.name)
            data = self.store.read_small(f"{folder}/{entry.name}")
            self.inbox.add(read_request(data, entry.name, self.task))
        except Unusable as why:
            self._complain(f"request refused: {why}")
        except Exception:
            self.seen.discard(entry.name)
            raise

    def _complain(self, line: str) -> None:
        """Say something in the log, each line once."""
        if line not in self.complained:
            self.complained.add(line)
            self.errors.note(line)


class OrderAnswers:
    """Answers orders that lead to no new generation, and holds for those that ended in a valid one."""

    def __init__(self, attempt: AttemptState, inbox: Inbox, lines: StatusLines) -> None:
        self.inbox = inbox
        self._attempt = attempt
        self._lines = lines

    def is_withdrawn(self, request: Request) -> bool:
        """Say whether an order was taken back."""
        return request.order in self.inbox.withdrawn

    def answer(self, request: Request, kind: str, reason: str) -> None:
        """Leave an answer that is no manifest."""
        attempt = self._attempt
        store, task = attempt.store, attempt.task
        attempt.errors.status(f"ckpt={kind} gen={attempt.generation} order={request.order} {reason}")
        fields = {"schema": SCHEMA, "order": request.order, "attempt": task.attempt}
        data = canonical({**fields, "answer": kind, "generation": attempt.generation, "reason": reason})
        name = f"{task.folder}/answer-{request.order}-{task.attempt}.json"
        try:
            store.make_folder(task.folder)
            store.create(f"{name}.tmp", len(data), [data])
            store.rename(f"{name}.tmp", name)
        except StoreError as error:
            attempt.errors.note(f"answer not written: {error}")

    def completing(self, why: str) -> None:
        """Answer those who come too late."""
        while self.inbox.waiting:
            self.answer(self.inbox.waiting.popleft(), "completing", why)

    def unchanged(self, request: Request) -> None:
        """Answer that the valid generation still says everything, and hold."""
        self._still_valid(request)
        self.hold(request)

    def all_unchanged(self) -> None:
        """Answer and hold for every order that has come while no work is done."""
        while self.inbox.waiting:
            self.unchanged(self.inbox.waiting.popleft())

    def hold(self, request: Request) -> None:
        """Wait to be killed; go on when nobody does.

        An order that comes meanwhile has a hold of its own: it is over when each is over or withdrawn,
        and the status names the last that came and still holds.
        """
        attempt, holders, before = self._attempt, self._attempt.holders, self._attempt.phase
        self._begin_hold(request)
        while True:
            self._hear_more()
            now_s, named = time.monotonic(), self._lines.for_order()
            for order, until_s in list(holders.items()):
                if now_s >= until_s or order in self.inbox.withdrawn:
                    del holders[order]
            if not holders:
                break
            if self._lines.for_order() != named:
                self._lines.enter("hold", self._lines.for_order())
            left_s = min(holders.values()) - now_s
            attempt.wakeup.wait(-1, 0, min(self._lines.every_s, left_s))
            self._lines.beat()
        if before in ("skip", "replay", "run"):
            self._lines.enter(before)

    def _hear_more(self) -> None:
        """Hold also for the orders that have come meanwhile."""
        while self.inbox.waiting:
            late = self.inbox.waiting.popleft()
            if not self.is_withdrawn(late):
                self._still_valid(late)
                self._begin_hold(late)

    def _still_valid(self, request: Request) -> None:
        self.answer(request, "unchanged", f"generation {self._attempt.generation} still valid")

    def _begin_hold(self, request: Request) -> None:
        """Hold for an order, and say so."""
        hold_ms = self._attempt.settings.hold_ms if request.hold_ms is None else request.hold_ms
        self._attempt.holders[request.order] = time.monotonic() + hold_ms / 1000
        self._lines.enter("hold", self._lines.for_order())
