"""Orders: read from the store by a thread of their own, answered and held for by the main thread.

An order that was withdrawn is neither begun nor answered. A store that does not answer blocks the watcher's
thread, never the data.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from typing import Sequence

from yarnctl.task_runner.runner.attempt import AttemptState
from yarnctl.task_runner.runner.protocol.manifests import SCHEMA, Request, canonical, read_request
from yarnctl.task_runner.runner.protocol.stores import Entry, Store, StoreError, Unusable, check_owner
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore

BELL_EVERY_S = 0.2  # At most so often the store is polled because of datagrams

BELL_WRONG_MAX = 100  # After so many datagrams without the secret no more are read


class Bell:
    """A faster doorbell: a datagram with the secret that the status line shows (``bell=PORT-SECRET``).

    YARN passes a signal on with the node's next heartbeat, on average after half a second. The datagram says
    nothing: it only has the store polled, as the signal does. What is wrong is dropped unread, and where none
    arrives the signal comes.
    """

    def __init__(self) -> None:
        import socket

        self._secret = os.urandom(8).hex()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("", 0))
        self.handle = self._socket.fileno()
        self.name = f"{self._socket.getsockname()[1]}-{self._secret}"
        self._wrong = 0
        self._next_s = 0.0

    def rang(self) -> bool:
        """Read one datagram; say whether it has the secret (at most once in ``BELL_EVERY_S``)."""
        try:
            said = self._socket.recv(64)
        except OSError:
            said = b""
        if said != b"yarnctl " + self._secret.encode():
            self._wrong += 1
            return False
        time.sleep(max(0.0, self._next_s - time.monotonic()))
        self._next_s = time.monotonic() + BELL_EVERY_S
        return True

    @property
    def is_spoilt(self) -> bool:
        """Say whether too many datagrams without the secret came."""
        return self._wrong >= BELL_WRONG_MAX


class Watcher(threading.Thread):
    """Polls for requests when a doorbell rings, and every ``poll_ms`` until the signal came once.

    The doorbell is a pipe that the interpreter writes signal numbers to, so it works whatever the main
    thread is doing. Where requests are in HDFS a datagram rings, too.
    """

    def __init__(self, store: Store, attempt: AttemptState) -> None:
        super().__init__(daemon=True, name="watcher")
        self.requests = store
        self.attempt = attempt
        self.doorbell_r, self.doorbell_w = os.pipe()
        for end in (self.doorbell_r, self.doorbell_w):
            os.set_blocking(end, False)
        self.bell: Bell | None = None
        self.rang = False
        self.seen: set[str] = set()
        self.noted: set[str] = set()

    def listen(self) -> None:
        """Take SIGQUIT as the doorbell; a Java parent hands it down blocked."""
        signal.signal(signal.SIGQUIT, lambda *_: None)
        signal.set_wakeup_fd(self.doorbell_w, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGQUIT})
        if self.attempt.settings.bell and isinstance(self.requests, WebHdfsStore):
            with contextlib.suppress(OSError):  # no such socket here: the signal is enough
                self.bell = Bell()
                self.attempt.bell = self.bell.name

    def run(self) -> None:
        """Poll once at the start (a ring may have come too early), then when there is a cause."""
        doorbell = select.poll()
        doorbell.register(self.doorbell_r, select.POLLIN)
        bell = self.bell
        if bell is not None:
            doorbell.register(bell.handle, select.POLLIN)
        again = not self.poll()
        while True:
            ready = dict(doorbell.poll(self._wait_ms(again)))
            if bell is not None and bell.handle in ready and not bell.rang():
                if bell.is_spoilt:
                    doorbell.unregister(bell.handle)
                    bell = None
                if self.doorbell_r not in ready:
                    continue
            try:
                rung = os.read(self.doorbell_r, 4096)
            except OSError:  # nothing there, or it could not be read: the store is polled in any case
                rung = b""
            self.rang = self.rang or bytes((signal.SIGQUIT,)) in rung
            again = not self.poll()

    def poll(self) -> bool:
        """Hand new requests to the main thread; return False if the store did not answer."""
        try:
            self._poll()
        except Unusable as why:
            self._note_once(str(why))
        except Exception as why:  # whatever it is, this thread must go on
            self._note_once(str(why) if isinstance(why, StoreError) else repr(why))
            return False
        return True

    def _wait_ms(self, again: bool) -> float | None:
        spread_ratio = time.monotonic_ns() % 1000 / 1000  # so that a job's attempts do not poll all at once
        if again:
            return 1000 + spread_ratio * 1000
        poll_ms = self.attempt.settings.poll_ms
        return None if self.rang or not poll_ms else poll_ms * (1 + spread_ratio / 3)

    def _poll(self) -> None:
        task, owners = self.attempt.task, self.attempt.settings.request_owners
        folder = f"{task.job}/{task.attempt}"
        entries = self.requests.list(folder)
        if not entries:
            return
        above = self.requests.entry(folder)
        if above is not None:
            check_owner(above, owners, folder)
        for entry in entries:  # before the requests: a withdrawn order is not to be begun
            order, _, kind = entry.name.partition(".withdrawn")
            if not kind and order != entry.name and order not in self.attempt.withdrawn:
                check_owner(entry, owners, entry.name)
                self.attempt.withdrawn.add(order)
                self.attempt.wakeup.wake()
        for entry in entries:
            if entry.name.endswith(".request.json") and entry.name not in self.seen:
                self.seen.add(entry.name)
                self._deliver(folder, entry, owners)

    def _deliver(self, folder: str, entry: Entry, owners: Sequence[str]) -> None:
        try:
            check_owner(entry, owners, entry.name)
            data = self.requests.read_small(f"{folder}/{entry.name}")
            self.attempt.requests.append(read_request(data, entry.name, self.attempt.task))
            self.attempt.wakeup.wake()
        except Unusable as why:
            self._note_once(f"request rejected: {why}")
        except Exception:
            self.seen.discard(entry.name)
            raise

    def _note_once(self, line: str) -> None:
        if line not in self.noted:
            self.noted.add(line)
            self.attempt.errors.note(line)


class OrderAnswers:
    """Answers orders that lead to no new generation, and holds for those that ended in a valid one."""

    def __init__(self, attempt: AttemptState) -> None:
        self._attempt = attempt

    def is_withdrawn(self, request: Request) -> bool:
        """Say whether an order was withdrawn."""
        return request.order in self._attempt.withdrawn

    def answer(self, request: Request, kind: str, reason: str) -> None:
        """Write an answer that is no manifest."""
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
        """Answer every order that came too late."""
        while self._attempt.requests:
            self.answer(self._attempt.requests.popleft(), "completing", why)

    def unchanged(self, request: Request) -> None:
        """Answer that the valid generation holds all that was done, and hold."""
        self._still_valid(request)
        self.hold(request)

    def all_unchanged(self) -> None:
        """Answer and hold for every order that has come while no work is done."""
        while self._attempt.requests:
            self.unchanged(self._attempt.requests.popleft())

    def hold(self, request: Request) -> None:
        """Wait to be killed; go on when the time of each order is over, or it is withdrawn.

        The status names the last order that came and still holds.
        """
        attempt, lines = self._attempt, self._attempt.lines
        holders, before = attempt.holders, attempt.phase
        self._begin_hold(request)
        while True:
            # hold also for the orders that have come meanwhile
            while self._attempt.requests:
                late = self._attempt.requests.popleft()
                if not self.is_withdrawn(late):
                    self._still_valid(late)
                    self._begin_hold(late)
            now_s, named = time.monotonic(), lines.for_order()
            for order, until_s in list(holders.items()):
                if now_s >= until_s or order in self._attempt.withdrawn:
                    del holders[order]
            if not holders:
                break
            if lines.for_order() != named:
                lines.enter("hold", lines.for_order())
            attempt.wakeup.wait(-1, 0, min(lines.every_s, min(holders.values()) - now_s))
            lines.keep_alive()
        if before in ("skip", "replay", "run"):
            lines.enter(before)

    def _still_valid(self, request: Request) -> None:
        self.answer(request, "unchanged", f"generation {self._attempt.generation} still valid")

    def _begin_hold(self, request: Request) -> None:
        hold_ms = self._attempt.settings.hold_ms if request.hold_ms is None else request.hold_ms
        self._attempt.holders[request.order] = time.monotonic() + hold_ms / 1000
        self._attempt.lines.enter("hold", self._attempt.lines.for_order())
