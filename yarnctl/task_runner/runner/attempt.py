"""The attempt: skips, replays, feeds, suspends, holds and goes on.

Law: output is byte for byte that of an undisturbed run, or the exit status is not 0.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import hashlib
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any, Callable, Iterator, Mapping, NamedTuple, NoReturn, Sequence

from yarnctl.task_runner.runner.child import (
    BLOCK_BYTES,
    PIPE_ATOMIC_BYTES,
    SLICE_FAST_BYTES,
    narrow_pipe,
    pipe_capacity,
    resolve,
    run_command,
    start_process,
    unread_bytes,
    waiting_bytes,
    widen_pipe,
)
from yarnctl.task_runner.runner.feeding import READ_AHEAD_BYTES, Pacer, Sender
from yarnctl.task_runner.runner.protocol.failures import (
    EXIT_SUSPENDED,
    EXIT_UNPROVABLE,
    Discredited,
    StoreAway,
    StoreError,
    Unprovable,
    Unusable,
)
from yarnctl.task_runner.runner.protocol.generations import (
    PerhapsSaved,
    find_checkpoint,
    set_aside,
    write_checkpoint,
)
from yarnctl.task_runner.runner.protocol.job_conf import Conf, Settings
from yarnctl.task_runner.runner.protocol.key_rule import Scanner
from yarnctl.task_runner.runner.protocol.manifests import (
    SCHEMA,
    VERSION,
    Counters,
    Manifest,
    Part,
    Request,
    TaskId,
    attempt_number,
    canonical,
    printable,
    read_request,
)
from yarnctl.task_runner.runner.protocol.stores import (
    Entry,
    LocalStore,
    Spool,
    Store,
    check_owner,
    close_quietly,
    spool_folder,
    write_all,
)
from yarnctl.task_runner.runner.protocol.webhdfs_store import WebHdfsStore, open_store
from yarnctl.task_runner.runner.reports import Errors, add_counter

UPLOAD_BYTES_PER_S_GUESS = 20 << 20
WAIT_FIRST_S, WAIT_MOST_S = 0.5, 10.0
STATUS_EVERY_S = 2.0
NOT_SEEN = "the job's own output is not seen"

LOOKS_FOR_PART, LOOKS_FOR_PART_S = 5, 0.1
"""With LazyOutputFormat Java makes the part when it has read the first output."""


class WorkFolder:
    """The attempt's own folder below the job's output: Hadoop commits it, or drops it with a killed attempt.

    What lies there beside the job's own part (side files of the reducer) would be lost with a suspended
    attempt, so such an attempt is never suspended. That we look at the right folder is certain only if the
    job's own part is seen in it: Hadoop makes it before the first line comes (with LazyOutputFormat: before
    the first output).
    """

    def __init__(self, conf: Conf, store: Store) -> None:
        self.url = conf.get("mapreduce.task.output.dir")
        partition = conf.number("mapreduce.task.partition", -1)
        packed = conf.get("mapreduce.output.fileoutputformat.compress") == "true"
        self.own = re.compile(rf"part-{partition:05d}" + (r"(\.[A-Za-z0-9_]{1,20})?" if packed else ""))
        self.store = self._open(store)

    def _open(self, store: Store) -> Store | None:
        """Return the folder as a store of its own; in HDFS it is asked for where the checkpoints are."""
        scheme, found, rest = self.url.partition("://")
        if not found:  # Hadoop writes local paths as file:/folder
            scheme, path = "file", self.url[5:] if self.url.startswith("file:") else self.url
        else:
            path = rest[rest.find("/") :] if "/" in rest else ""
        if not path.startswith("/"):
            return None
        if scheme == "file":
            return LocalStore(path)
        in_hdfs = scheme in ("hdfs", "webhdfs", "swebhdfs") and isinstance(store, WebHdfsStore)
        return store.at_root(path) if in_hdfs else None

    def why_not(self) -> str:
        """Return what forbids a suspension for now, empty if nothing; raise Unusable if it is for good."""
        if self.store is None:
            raise Unusable(f"its work folder cannot be looked at from here: {self.url or 'none is named'}")
        try:
            names = [entry.name for entry in self.store.list("")]
        except StoreError as error:
            return f"its work folder could not be looked at: {error}"
        own = [name for name in names if self.own.fullmatch(name)]
        beside = [name for name in names if name not in own[:1] and name != f".{(own or names)[0]}.crc"]
        if beside:
            told = ", ".join(beside[:3]) + (", ..." if len(beside) > 3 else "")
            raise Unusable(f"side files would be lost: {told} in {self.url}")
        return "" if own else f"{NOT_SEEN} in its work folder: {self.url}"


class Watcher(threading.Thread):
    """Looks for requests when the doorbell rings, and now and then until it rang once.

    The bell is a pipe that the interpreter writes signal numbers to, so it is heard whatever the
    main thread is doing. A store that hangs hangs this thread, never the data.
    """

    def __init__(self, runner: Runner) -> None:
        super().__init__(daemon=True, name="watcher")
        self.runner = runner
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
        """Hand new requests to the runner; return False if the store could not be asked."""
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
        poll_ms = self.runner.settings.poll_ms
        return None if self.heard or not poll_ms else poll_ms * (1 + random.random() / 3)

    def _look(self) -> None:
        runner, task = self.runner, self.runner.task
        folder = f"{task.job}/{task.attempt}"
        entries = runner.requests.list(folder)
        if not entries:
            return
        owners = runner.settings.request_owners
        above = runner.requests.entry(folder)
        if above is not None:
            check_owner(above, owners, folder)
        for entry in entries:  # before the requests: what is taken back is not to be begun
            order, _, kind = entry.name.partition(".withdrawn")
            if not kind and order != entry.name and order not in runner.withdrawn:
                check_owner(entry, owners, entry.name)
                runner.withdrawn.add(order)
                runner.wake()
        for entry in entries:
            if entry.name.endswith(".request.json") and entry.name not in self.seen:
                self.seen.add(entry.name)
                self._deliver(folder, entry, owners)

    def _deliver(self, folder: str, entry: Entry, owners: Sequence[str]) -> None:
        try:
            check_owner(entry, owners, entry.name)
            data = self.runner.requests.read_small(f"{folder}/{entry.name}")
            self.runner.inbox.append(read_request(data, entry.name, self.runner.task))
            self.runner.wake()
        except Unusable as why:
            self._complain(f"request refused: {why}")
        except Exception:
            self.seen.discard(entry.name)
            raise

    def _complain(self, why: str) -> None:
        if why not in self.complained:
            self.complained.add(why)
            self.runner.errors.note(why)


class Child:
    """One run of the original reducer, in a process group of its own, and its two readers."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], output: Spool, runner: Runner) -> None:
        self.output = output
        self.runner = runner
        self.broken = ""  # why what it wrote is not complete
        pipe = subprocess.PIPE
        self.process, self.lifeline = start_process(argv, env, pipe, pipe, pipe)
        assert self.process.stdin
        assert self.process.stdout
        self.input = self.process.stdin.fileno()
        try:
            os.set_blocking(self.input, False)
        except OSError:
            self.kill(signal.SIGKILL)
            raise
        widen_pipe(self.process.stdout.fileno())
        self.begins_at = 0  # where in the task's input
        self.began_s = 0.0
        self.fed_bytes = 0
        self.pipe_bytes = SLICE_FAST_BYTES
        self.one_slot = False
        self.finished: list[str] = []
        for take, source in (
            (self._copy_output, self.process.stdout),
            (self.runner.errors.pass_on, self.process.stderr),
        ):
            threading.Thread(target=self._read, args=(take, source), daemon=True).start()

    def _read(self, copy: Callable[[int], None], source: IO[bytes]) -> None:
        try:
            copy(source.fileno())
        except Exception as error:  # whatever it is, this is not all: the attempt must not succeed
            what = "output" if source is self.process.stdout else "standard error"
            self.broken = f"the reducer's {what} was not passed on: {error!r}"
            close_quietly(source)  # the child learns it as it would without us
        finally:
            self.finished.append(source.name)
            self.runner.wake()

    def _copy_output(self, source: int) -> None:
        for data in iter(lambda: os.read(source, BLOCK_BYTES), b""):
            write_all(1, data)
            self.output.add(data)

    @property
    def reading(self) -> bool:
        """Say whether output may still come."""
        return len(self.finished) < 2

    def close_input(self) -> None:
        """Let the child see the end of its input."""
        assert self.process.stdin
        self.process.stdin.close()

    def kill(self, number: int) -> None:
        """Send a signal to the child and all it started."""
        try:
            os.killpg(self.process.pid, number)
        except OSError:
            return

    def status(self) -> int:
        """Wait for the end and return the status as a shell (and Java) counts it.

        Never 0 where something that the child wrote was not passed on.
        """
        code = self.process.wait()
        self.kill(signal.SIGKILL)  # what it left behind is in no group that YARN knows
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                close_quietly(stream)
        os.close(self.lifeline)
        lost = self.broken or self.runner.errors.lost
        if lost and not code:
            self.runner.errors.note(f"this attempt fails: {lost}")
            return EXIT_UNPROVABLE
        return code if code >= 0 else 128 - code


class Leave(Exception):
    """The attempt ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Fetched(NamedTuple):
    """What a checkpoint holds, all of it, brought here and checked."""

    output: Spool
    state: bytes | None


class Runner:
    """One attempt: skip, replay, feed, suspend, hold, go on. All decisions are taken in one thread.

    Phases: ``fetch``, ``skip``, ``replay``, ``run``, ``finish`` (a group), ``drain``, ``save``, ``hold``,
    ``end``. Requests come in through ``inbox``; the pipe ``wake`` interrupts every wait.
    """

    def __init__(
        self, settings: Settings, task: TaskId, words: Sequence[str], env: Mapping[str, str]
    ) -> None:
        self.settings = settings
        self.task = task
        self.words = printable(words)  # as given: where the program lies differs between nodes
        self.argv = resolve(words)
        self.env = dict(env)
        self.errors = Errors(settings.reporter_prefix)
        self.store = open_store(settings.store_url, settings.user, settings.secured)
        self.work = WorkFolder(Conf(env), self.store)
        may_resume = attempt_number(task.attempt) > 0
        self.patience = Patience(settings.store_wait_s if may_resume else 0.0, self.say_waiting)
        self.requests = open_store(settings.requests_url, settings.user, settings.secured)
        self.settings = settings._replace(request_owners=settings.request_owners or (self.store.user,))
        self.inbox: collections.deque[Request] = collections.deque()
        self.withdrawn: set[str] = set()
        self.wake_r, self.wake_w = os.pipe()
        for end in (self.wake_r, self.wake_w):
            os.set_blocking(end, False)
        self.scanner = Scanner(settings.rule)
        self.sender = Sender(settings.rule, pipe_capacity(0))
        self.pacer = Pacer()
        self.output = Spool(settings.spool_limit_bytes)
        self.skipped = Spool(settings.spool_limit_bytes)
        self.again: Iterator[bytes] = iter(())
        self.cuts = list(settings.suspend_at)
        self.child: Child | None = None
        self.manifest: Manifest | None = None  # the generation that is valid now
        self.state: bytes | None = None  # what --save gave at the border where the child begins
        self.holders: dict[str, float] = {}  # orders that hold, and until when
        self.resumed = False
        self.highest_generation = 0
        self.past_counters: Counters = {}
        self.phase = "start"
        self.why_not = ""
        self.buffer = b""
        self.at = 0
        self.ended = False
        self.read_bytes = 0
        self.last_position = (-1, -1)
        self.next_status_s = 0.0
        self.began_s = time.monotonic()
        self.back_ms = -1
        self.upload_bytes_per_s = float(UPLOAD_BYTES_PER_S_GUESS)
        self.drain_s = 1.0
        self.suspending_file = ""

    # -- waiting ---------------------------------------------------------------------------

    def wake(self) -> None:
        """Interrupt the main thread's wait; called from any thread."""
        try:
            os.write(self.wake_w, b"!")
        except OSError:  # full, so it will wake; or it failed, and every wait ends by itself
            return

    def wait(self, handle: int, events: int, timeout_s: float | None) -> bool:
        """Wait until a handle is ready (-1: none), somebody wakes us, or time is over; say if ready."""
        waiting = select.poll()
        waiting.register(self.wake_r, select.POLLIN)
        if handle >= 0:
            waiting.register(handle, events)
        found = dict(waiting.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))
        if self.wake_r in found:
            os.read(self.wake_r, 4096)  # only this thread reads it, so something is there
        return handle in found

    def tell(self, keep_alive: bool) -> None:
        """Report the position; while the child works only if it got on, so that a hung one times out."""
        now_s = time.monotonic()
        if now_s < self.next_status_s:
            return
        position = (self.done_bytes(), self.output.bytes)
        if not keep_alive and position == self.last_position and not self.errors.news:
            return
        self.last_position = position
        self.next_status_s = now_s + self.status_every_s
        self.say_position()

    def say_position(self) -> None:
        """Write the position: groups, bytes done by the child, bytes known of, whether that is all."""
        known = self.read_bytes + (0 if self.ended else waiting_bytes(0))
        self.errors.status(
            f"phase={self.phase} groups={self.scanner.groups} done={self.done_bytes()} known={known}"
            f" all={int(self.ended)} gen={self.generation} can={int(not self.why_not)}{self.pace_so_far()}"
            f"{self.came_back()}{self.for_whom()}{self.says_why()}"
        )

    def says_why(self) -> str:
        """Return why this attempt cannot be suspended any more, to the end of the runner's words."""
        return f" why={self.why_not}" if self.why_not else ""

    def say_waiting(self, why: str) -> None:
        """Say that the store is waited for: the task lives."""
        self.errors.status(f"phase=fetch groups=0 gen={self.generation} waits for its store: {why}")

    def pace_so_far(self) -> str:
        """Return since when and from where the child at work has worked: what its speed follows from."""
        if self.child is None or self.phase not in ("run", "finish"):
            return ""
        ran_ms = int((time.monotonic() - self.child.began_s) * 1000)
        return f" ran={ran_ms} base={self.child.begins_at}"

    def came_back(self) -> str:
        """Return how long a resumed attempt took until it was at new keys."""
        return f" back={self.back_ms}" if self.back_ms >= 0 else ""

    def for_whom(self) -> str:
        """Return which order holds: of several the last that came."""
        return f" order={list(self.holders)[-1]}" if self.holders else ""

    def enter(self, phase: str, more: str = "") -> None:
        """Begin a phase and say so."""
        self.phase = phase
        self.errors.status(
            f"phase={phase} groups={self.scanner.groups} gen={self.generation}{more}"
            f"{' can=0' if self.why_not else ''}{self.says_why()}"
        )
        self.next_status_s = time.monotonic() + self.status_every_s

    @property
    def status_every_s(self) -> float:
        """Return how often the position is told; YARN must not think that we hang."""
        return min(STATUS_EVERY_S, self.settings.task_timeout_ms / 6000)

    def done_bytes(self) -> int:
        """Return how much input the child has taken."""
        unread = waiting_bytes(self.child.input) if self.child and self.phase in ("run", "finish") else 0
        return self.scanner.bytes - unread

    @property
    def generation(self) -> int:
        """Return the generation that is valid now, 0 if none."""
        return self.manifest.generation if self.manifest else 0

    # -- input -----------------------------------------------------------------------------

    def fill(self, wait_s: float | None) -> bool:
        """Read input if there is some, into the buffer; return whether anything changed."""
        piece = next(self.again, None)
        if piece is not None:
            self._append(piece)
            return True
        if self.ended or not self.wait(0, select.POLLIN, wait_s):
            return False
        data = os.read(0, BLOCK_BYTES)
        self.read_bytes += len(data)
        self.ended = not data
        self.sender.take(data)
        self._append(data)
        return True

    def _append(self, data: bytes) -> None:
        self.buffer = self.buffer[self.at :] + data if self.at < len(self.buffer) else data
        self.at = 0

    # -- the whole life --------------------------------------------------------------------

    def run(self) -> int:
        """Run the attempt and return its exit status."""
        try:
            if self.manifest is None or not self.resume(self.manifest):
                self.start_child()
            if self.resumed:
                self.back_ms = int((time.monotonic() - self.began_s) * 1000)
            self.enter("run", self.came_back())
            while self.step():
                pass
            return self.end()
        except Leave as leaving:
            return leaving.status
        except Unprovable as why:
            self.errors.note(f"this attempt ends here: {why}")
            if isinstance(why, Discredited) and self.manifest is not None:
                self.put_aside(self.manifest, str(why))
            return EXIT_UNPROVABLE
        except (StoreError, OSError) as why:
            self.errors.note(f"this attempt ends here: {why}")
            return EXIT_UNPROVABLE
        finally:
            if self.child is not None:
                self.child.kill(signal.SIGKILL)
            if self.errors.news:
                self.say_position()  # the reducer's last status is the task's last

    def step(self) -> bool:
        """Do one small thing of the phase ``run``; return False at the end of the input."""
        if self.inbox:
            self.serve(self.inbox.popleft())
        elif self.cuts and not self.why_not:
            self.feed_to_cut()
        elif self.at < len(self.buffer):
            self.feed_some()
        elif self.ended:
            return False
        else:
            self.fill(STATUS_EVERY_S)
        self.tell(keep_alive=False)
        return True

    def start_child(self) -> None:
        """Start the reducer; with --load its state comes first."""
        if self.settings.load and self.state is not None:
            status, _ = run_command(self.settings.load, self.state)
            if status:
                is_saved = self.manifest is not None and self.manifest.groups_done == self.scanner.groups
                kind = Discredited if is_saved else Unprovable
                raise kind(f"--load ended with status {status}")
        if self.settings.save and not self.suspending_file:
            name = os.path.join(os.path.abspath(spool_folder()), f"yarnctl-suspending-{os.getpid()}")
            self.suspending_file = self.env["YARNCTL_SUSPENDING"] = name
        self.take_back_word()
        try:
            self.child = Child(self.argv, self.env, self.output, self)
        except OSError as error:
            self.errors.note(f"{self.argv[0]}: {error.strerror}")
            raise Leave(127 if isinstance(error, FileNotFoundError) else 126) from error
        self.child.begins_at = self.scanner.bytes
        self.child.began_s = time.monotonic()
        self.pacer = Pacer()

    def take_back_word(self) -> None:
        """Remove YARNCTL_SUSPENDING: a child that finds it at its end of input takes itself for suspended."""
        if self.suspending_file:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.suspending_file)

    def end(self) -> int:
        """Let the child finish after the last line and return its status."""
        child = self.child
        assert child is not None
        self.scanner.finish()
        self.check_order()
        self.enter("end")
        self.let_read(child, lambda: self.completing("the input is at its end"))
        child.close_input()
        self.read_out(child, "the input is at its end")
        return child.status()

    def completing(self, why: str) -> None:
        """Answer those who come too late."""
        while self.inbox:
            self.answer(self.inbox.popleft(), "completing", why)

    def let_read(self, child: Child, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until the child has taken all that it was given; it may leave instead.

        Its end of input comes after that. So who has read everything, and who just went away, are not
        mixed up, whether the child itself reads or a program it has started.
        """
        began_s = time.monotonic()
        while unread_bytes(child.input):
            meanwhile()
            nap_s = min(0.01, max(0.0002, (time.monotonic() - began_s) / 8))
            if self.wait(child.input, select.POLLERR, nap_s) or not child.reading:
                self.child_left()
            self.tell(keep_alive=False)
        if self.wait(child.input, select.POLLERR, 0):
            self.child_left()

    def read_out(self, child: Child, why: str) -> None:
        """Wait until the child has written everything."""
        while child.reading:
            self.completing(why)
            self.wait(-1, 0, STATUS_EVERY_S)
            self.tell(keep_alive=False)

    # -- feeding ---------------------------------------------------------------------------

    def feed_some(self) -> None:
        """Hand the child one slice, as large as its speed allows, and account for what it took."""
        child = self.child
        assert child is not None
        if not self.pacer.fast and not self.pipe_is_empty(child):
            return
        size_bytes = BLOCK_BYTES if self.pacer.fast else self.slice_bytes()
        if not self.pacer.fast:
            self.fit_pipe(child, size_bytes)
        data = self.buffer[self.at : self.at + size_bytes]
        try:
            taken = os.write(child.input, data)
        except BlockingIOError:
            self.wait_for_room(child)
            return
        except BrokenPipeError:
            self.child_left()
        self.at += taken
        child.fed_bytes += taken
        self.account(data if taken == len(data) else data[:taken])
        if not self.pacer.fast:
            self.pacer.waiting_since_s = time.monotonic()
            self.last_slice_bytes = taken

    last_slice_bytes = 0

    def slice_bytes(self) -> int:
        """Return a slice's size: whole lines if possible, at least one if it is not very long."""
        wanted = self.pacer.slice_bytes
        end = self.buffer.rfind(b"\n", self.at, self.at + wanted) + 1
        if not end:
            end = self.buffer.find(b"\n", self.at, self.at + SLICE_FAST_BYTES) + 1
        return end - self.at if end else max(wanted, PIPE_ATOMIC_BYTES)

    def pipe_is_empty(self, child: Child) -> bool:
        """Look whether the slice before was taken; if not wait a little (reading ahead) and say no."""
        waited_s = time.monotonic() - self.pacer.waiting_since_s
        if unread_bytes(child.input) == 0:
            if self.last_slice_bytes:
                self.pacer.taken(self.last_slice_bytes, waited_s)
                self.last_slice_bytes = 0
                if self.pacer.fast:
                    child.one_slot = False
                    child.pipe_bytes = widen_pipe(child.input)
            return True
        if len(self.buffer) - self.at < READ_AHEAD_BYTES and self.fill(0):
            return False
        if child.one_slot:
            self.wait_until_taken(child)
        elif self.wait(child.input, select.POLLERR, min(0.01, max(0.0002, waited_s / 8))):
            self.child_left()
        return False

    def fit_pipe(self, child: Child, size_bytes: int) -> None:
        """Make the (empty) pipe narrow for small slices and wide for others, where that can be done."""
        small = size_bytes <= PIPE_ATOMIC_BYTES
        if small and not child.one_slot:
            child.one_slot = self.tells_when_taken and narrow_pipe(child.input)
        elif child.one_slot and not small:
            child.one_slot = False
            child.pipe_bytes = widen_pipe(child.input)

    tells_when_taken = True

    def wait_until_taken(self, child: Child) -> None:
        """Wait until a narrow pipe is empty; one that is said to be although it is not is not relied on."""
        if not self.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            return
        if self.wait(child.input, select.POLLERR, 0):
            self.child_left()
        if unread_bytes(child.input):
            child.one_slot = self.tells_when_taken = False

    def wait_for_room(self, child: Child) -> None:
        """Wait until a child that is fed at full speed takes something."""
        before_bytes, since_s = unread_bytes(child.input), time.monotonic()
        if before_bytes == 0 or self.wait(child.input, select.POLLOUT, STATUS_EVERY_S):
            # The kernel wakes us for every page that is read; a nap lets the child empty half the pipe.
            self.wait(-1, 0, self.pacer.nap_s)
        left_bytes = unread_bytes(child.input)
        self.pacer.napped(left_bytes, child.pipe_bytes)
        self.pacer.stalled(before_bytes - left_bytes, time.monotonic() - since_s)

    def feed_all(self, data: bytes) -> None:
        """Hand the child every byte, without pacing: a group has to be finished."""
        child = self.child
        assert child is not None
        view = memoryview(data)
        while view:
            try:
                taken = os.write(child.input, view)
            except BlockingIOError:
                self.wait(child.input, select.POLLOUT, STATUS_EVERY_S)
                self.tell(keep_alive=False)
                continue
            except BrokenPipeError:
                self.child_left()
            child.fed_bytes += taken
            view = view[taken:]

    def account(self, data: bytes) -> None:
        """Note what the child was given, and whether the attempt can still be suspended."""
        if self.why_not:
            self.scanner.bytes += len(data)
            return
        self.scanner.take(data)
        self.check_order()
        if self.output.failed:
            self.cannot(f"the output cannot be kept: {self.output.failed}")

    def check_order(self) -> None:
        """Stop trusting keys that are not in order; nothing may rest on them."""
        if not self.scanner.sorted and not self.why_not:
            if self.resumed:
                raise Discredited("keys are not in the order of their bytes, and a checkpoint was relied on")
            self.cannot("keys are not in the order of their bytes")

    def cannot(self, why: str) -> None:
        """From now on this attempt only passes bytes through."""
        self.why_not = why
        self.next_status_s, self.last_position = 0.0, (-1, -1)  # it is told at once
        self.output.limit_bytes = -1  # its reader lets go of what is held
        self.errors.note(f"cannot be suspended any more: {why}")

    def child_left(self) -> NoReturn:
        """End as the child did: it closed its input early, and Java must see that as it would."""
        child = self.child
        assert child is not None
        position_bytes = child.begins_at + child.fed_bytes - unread_bytes(child.input)
        child.close_input()
        self.read_out(child, "the reducer has closed its input")
        status = child.status()
        if not status and self.phase == "drain" and self.settings.save:
            raise Unprovable("the reducer closed its input while it was suspended: nobody has its summary")
        if not status and not self.could_leave(position_bytes):
            self.errors.note(
                f"the reducer ended with status 0 having read {position_bytes} bytes; plain Hadoop, with"
                f" {self.sender.sent_bytes} to write before its last flush, meets a broken pipe: it fails"
            )
            status = EXIT_UNPROVABLE
        raise Leave(status)

    def could_leave(self, position_bytes: int) -> bool:
        """Say whether Java without us might have met no broken pipe but at its last flush.

        What Java still writes is looked at and dropped: whether it can end is the question.
        """
        while not self.ended and self.sender.pipe_bytes >= 0 and self.sender.within(position_bytes):
            self.completing("the reducer has closed its input")
            self.at = len(self.buffer)
            self.fill(STATUS_EVERY_S)
        return self.sender.within(position_bytes)

    # -- requests --------------------------------------------------------------------------

    def serve(self, request: Request) -> None:
        """Do what an order asks, in the phases in which the child may be at work."""
        if request.order in self.withdrawn:
            return
        if self.errors.doubt and not self.why_not:
            self.cannot(self.errors.doubt)
        if self.why_not:
            self.answer(request, "refused", self.why_not)
        elif self.nothing_new():
            self.unchanged(request)
        elif why := self.too_large() or self.looked(seen=False):
            self.answer(request, "refused", why)
        else:
            self.suspend(request)

    def nothing_new(self) -> bool:
        """Say whether nothing was done since the valid generation.

        A child that was given nothing is not enough: after a save that failed there are groups before it.
        """
        saved = self.manifest.groups_done if self.manifest else 0
        return self.child is None or (not self.child.fed_bytes and self.scanner.groups == saved)

    def too_large(self) -> str:
        """Return why draining and uploading might take more than half of the time-out."""
        need_s = self.drain_s + self.output.bytes / self.upload_bytes_per_s
        limit_s = self.settings.task_timeout_ms / 2000
        return f"about {need_s:.0f} s to drain and upload, of {limit_s:.0f} s" if need_s > limit_s else ""

    def unchanged(self, request: Request) -> None:
        """Answer that the valid generation still says everything, and hold."""
        self.answer(request, "unchanged", f"generation {self.generation} still valid")
        self.hold(request)

    def answer(self, request: Request, kind: str, reason: str) -> None:
        """Leave an answer that is no manifest."""
        self.errors.status(f"ckpt={kind} gen={self.generation} order={request.order} {reason}")
        fields = {"schema": SCHEMA, "order": request.order, "attempt": self.task.attempt}
        data = canonical({**fields, "answer": kind, "generation": self.generation, "reason": reason})
        name = f"{self.task.folder}/answer-{request.order}-{self.task.attempt}.json"
        try:
            self.store.make_folder(self.task.folder)
            self.store.create(f"{name}.tmp", len(data), [data])
            self.store.rename(f"{name}.tmp", name)
        except StoreError as error:
            self.errors.note(f"answer not written: {error}")

    def hold(self, request: Request) -> None:
        """Wait to be killed; go on when nobody does.

        An order that comes meanwhile has a hold of its own: it is over when each is over or withdrawn,
        and the status names the last that came and still holds.
        """
        before = self.phase
        self.begin_hold(request)
        while True:
            while self.inbox:
                late = self.inbox.popleft()
                if late.order not in self.withdrawn:
                    self.answer(late, "unchanged", f"generation {self.generation} still valid")
                    self.begin_hold(late)
            now_s, named = time.monotonic(), self.for_whom()
            for order, until_s in list(self.holders.items()):
                if now_s >= until_s or order in self.withdrawn:
                    del self.holders[order]
            if not self.holders:
                break
            if self.for_whom() != named:
                self.enter("hold", self.for_whom())
            left_s = min(self.holders.values()) - now_s
            self.wait(-1, 0, min(self.status_every_s, left_s))
            self.tell(keep_alive=True)
        if before in ("skip", "replay", "run"):
            self.enter(before)

    def begin_hold(self, request: Request) -> None:
        """Hold for an order, and say so."""
        hold_ms = self.settings.hold_ms if request.hold_ms is None else request.hold_ms
        self.holders[request.order] = time.monotonic() + hold_ms / 1000
        self.enter("hold", self.for_whom())

    # -- suspending ------------------------------------------------------------------------

    def feed_to_cut(self) -> None:
        """Feed up to the next group number of --suspend-at, and suspend there."""
        limit = max(self.cuts[0], self.scanner.groups)
        if self.feed_groups(limit):
            self.cuts.pop(0)
            self.serve(Request(f"cut-{limit}", 0))
        elif self.ended and self.at == len(self.buffer):
            self.cuts.clear()

    def feed_groups(self, limit: int) -> bool:
        """Feed what is there of the first ``limit`` groups; say whether the next one was met."""
        if self.at < len(self.buffer):
            rest = self.buffer[self.at :]
            taken, found = self.scanner.take_groups(rest, limit, final=self.ended)
            self.at += taken
            self.feed_all(rest[:taken])
            self.check_order()
            if found or self.why_not:
                return found and not self.why_not
        if not self.ended:
            self.fill(STATUS_EVERY_S)
        return False

    def finish_group(self) -> bool:
        """Feed the rest of the current key group; say whether a border was reached before the end."""
        while not self.scanner.settled and not self.why_not:
            if self.at == len(self.buffer):
                if self.ended:
                    return False
                self.fill(STATUS_EVERY_S)
                continue
            end = self.buffer.find(b"\n", self.at) + 1 or len(self.buffer)
            data = self.buffer[self.at : end]
            self.at = end
            self.feed_all(data)
            self.account(data)
        limit = self.scanner.groups
        while not self.why_not:
            if self.feed_groups(limit):
                return True
            if self.ended and self.at == len(self.buffer):
                return False
        return False

    def suspend(self, request: Request) -> None:
        """Finish the group, let the child end, save, hold, and go on in place if nobody kills us."""
        started_s = time.monotonic()
        self.enter("finish", f" order={request.order}")
        if not self.finish_group():
            why = self.why_not or "the input is at its end"
            self.answer(request, "refused" if self.why_not else "completing", why)
            self.enter("run")
            return
        if request.order in self.withdrawn:
            self.enter("run")
            return
        self.drain()
        drained_s = time.monotonic()
        self.drain_s = drained_s - started_s
        self.state = self.taken_state(request)  # in any case: the next child begins with it
        if self.output.failed:
            self.cannot(f"the output cannot be kept: {self.output.failed}")
            self.answer(request, "refused", self.why_not)
        else:
            self.save(request, started_s)
        self.start_child()
        self.enter("run")

    def drain(self) -> None:
        """Close the child's input and read it out; only status 0 after reading everything is an end."""
        child = self.child
        assert child is not None
        self.enter("drain")
        if self.suspending_file:
            with open(self.suspending_file, "wb"):
                pass
        self.let_read(child)
        child.close_input()
        while child.reading:
            self.wait(-1, 0, STATUS_EVERY_S)
            self.tell(keep_alive=False)
        status = child.status()
        if status:
            raise Leave(status)
        self.child = None

    def taken_state(self, request: Request) -> bytes | None:
        """Return the state of a drained child; without it neither this attempt nor another can go on."""
        try:
            return self.saved_state()
        except Unusable as error:
            self.answer(request, "refused", f"not saved: {error}")
            raise Unprovable("the reducer has given its state away and it could not be kept") from error

    def save(self, request: Request, started_s: float) -> None:
        """Write the next generation and hold; where the store fails the work just goes on.

        Where nobody knows whether the manifest is there it is as good as saved for us: its files are, so
        later generations may rest on them, and we hold, because yarnctl may see it and have us killed.
        """
        self.enter("save")
        began_s, word = time.monotonic(), "saved"
        try:
            fields = self.fields(request, began_s - started_s)
            manifest = write_checkpoint(
                self.store, self.task, fields, self.output, self.state, self.beat, self.last_look
            )
        except (StoreError, Unusable) as error:
            if not isinstance(error, PerhapsSaved):
                self.highest_generation += 1  # the name may be half taken
                self.answer(request, "refused", f"not saved: {error}")
                return
            self.errors.note(f"perhaps saved: {error}")
            manifest, word = error.manifest, "unsure"
        took_s = max(time.monotonic() - began_s, 0.001)
        if self.output.bytes > 1 << 20:
            self.upload_bytes_per_s = self.output.bytes / took_s
        self.manifest = manifest
        self.highest_generation = manifest.generation
        self.output.clear()
        self.errors.status(
            f"ckpt={word} gen={manifest.generation} order={request.order} groups={manifest.groups_done}"
            f" bytes={manifest.output_bytes} ms={int((time.monotonic() - started_s) * 1000)}"
        )
        if self.settings.leave_when_saved:
            raise Leave(EXIT_SUSPENDED)
        self.hold(request)

    def looked(self, seen: bool = True) -> str:
        """Look into the work folder; return what forbids a suspension now, empty if nothing does.

        ``seen``: the job's own part must be seen; before output was drained it may not be there yet.
        """
        try:
            for _ in range(LOOKS_FOR_PART if seen else 1):
                why = self.work.why_not()
                if not why.startswith(NOT_SEEN):
                    return why
                if seen:
                    self.wait(-1, 0, LOOKS_FOR_PART_S)
                    self.beat()
            return why if seen else ""
        except Unusable as why:
            self.cannot(str(why))
            return self.why_not

    def last_look(self) -> None:
        """Raise Unusable with what forbids this generation, noticed while its files were written."""
        if self.errors.doubt and not self.why_not:
            self.cannot(self.errors.doubt)
        why = self.why_not or self.looked()
        if why:
            raise Unusable(why)

    def beat(self) -> None:
        """Keep the task alive while bytes go to or come from the store."""
        self.tell(keep_alive=True)

    def saved_state(self) -> bytes | None:
        """Return what --save prints, None where it is not declared."""
        if not self.settings.save:
            return None
        status, state = run_command(self.settings.save)
        self.take_back_word()
        if status:
            raise Unusable(f"--save ended with status {status}")
        return state

    def fields(self, request: Request, drain_s: float) -> dict[str, Any]:
        """Return what the next manifest says."""
        last = self.manifest
        past = [*last.past_containers, str(last.raw["container"])] if last else []
        return {
            "schema": SCHEMA,
            "tool": "yarnctl",
            "version": VERSION,
            "job": self.task.job,
            "task": self.task.task,
            "attempt": self.task.attempt,
            "container": self.task.container,
            "past_containers": list(dict.fromkeys(name for name in past if name != self.task.container)),
            "host": os.uname().nodename,
            "user": self.settings.user,
            "order": request.order,
            "created_at_ms": int(time.time() * 1000),
            "took_ms": {"drain": int(drain_s * 1000)},
            "generation": max(self.highest_generation, self.generation) + 1,
            "previous_generation": self.generation,
            "key_rule": self.settings.rule.as_json(),
            "reducer": self.words,
            "groups_done": self.scanner.groups,
            "keys_digest": self.scanner.digest(),
            "last_key": base64.b64encode(self.scanner.key or b"").decode(),
            "input_bytes": self.scanner.bytes,
            "parts": [part._asdict() for part in last.parts] if last else [],
            "counters": self.all_counters(),
        }

    def all_counters(self) -> Counters:
        """Return user counters since the task's beginning, over all attempts that count."""
        total: Counters = {}
        for counters in (self.past_counters, self.errors.counters):
            for group, inside in counters.items():
                for name, amount in inside.items():
                    add_counter(total, group, name, amount)
        return total

    # -- resuming --------------------------------------------------------------------------

    def resume(self, manifest: Manifest) -> bool:
        """Skip by a checkpoint and replay it; False: it is set aside and all input is there again."""
        fetched = self.fetch(manifest)
        if fetched is None:
            return self.resume(self.manifest) if self.manifest is not None else False
        self.enter("skip")
        why = self.skip(manifest)
        if why:
            self.put_aside(manifest, why)
            self.manifest = None
            self.scanner = Scanner(self.settings.rule)
            if self.skipped.failed:
                raise Unprovable(
                    f"the input was skipped in vain and could not be kept: {self.skipped.failed}"
                )
            self.begin_again()
            return False
        self.skipped.clear()
        self.resumed = True
        self.state = fetched.state
        self.replay(manifest, fetched.output)
        self.start_child()
        return True

    def fetch(self, manifest: Manifest) -> Fetched | None:
        """Bring saved output and state here, checked, before anything is skipped: both or neither."""
        self.enter("fetch")

        def fetched() -> Fetched:
            saved = Spool(sys.maxsize)
            if (manifest.state is None) != (not self.settings.save):
                raise Unusable("made with --save, or without it, other than this attempt")
            for part in manifest.parts:
                for piece in self.checked_pieces(part):
                    saved.add(piece)
                    self.beat()
            state = None if manifest.state is None else b"".join(self.checked_pieces(manifest.state))
            if saved.failed:
                raise StoreError(f"the local disk: {saved.failed}")
            return Fetched(saved, state)

        try:
            found: Fetched = self.patience.call(fetched)
            return found
        except StoreError as why:
            self.errors.note(f"generation {manifest.generation} is not used: {why}")
            self.manifest = None
        except Unusable as why:
            self.put_aside(manifest, str(why))
            self.manifest = None
            try:
                self.look_for_checkpoint()
            except (Unusable, StoreError) as error:
                self.errors.note(f"no other checkpoint is used: {error}")
        return None

    def checked_pieces(self, part: Part) -> Iterator[bytes]:
        """Give a file's bytes, and raise Unusable after the last if they are not what was saved."""
        digest, size_bytes = hashlib.sha256(), 0
        for piece in self.store.read(f"{self.task.folder}/{part.name}"):
            digest.update(piece)
            size_bytes += len(piece)
            yield piece
        if (size_bytes, digest.hexdigest()) != (part.bytes, part.sha256):
            raise Unusable(f"{part.name}: its bytes are not those that were saved")

    def skip(self, manifest: Manifest) -> str:
        """Pass over the groups that are done; return what does not match, empty if all does."""
        found = False
        while not found:
            while self.inbox:
                self.unchanged(self.inbox.popleft())
            rest = self.buffer[self.at :]
            taken, found = self.scanner.take_groups(rest, manifest.groups_done, final=self.ended)
            if taken:
                self.skipped.add(rest[:taken])
                self.at += taken
            self.beat()
            if not self.scanner.sorted:
                return "keys are not in the order of their bytes"
            if found:
                break
            if self.ended:
                return f"the input ended after {self.scanner.groups} groups, {manifest.groups_done} were done"
            self.fill(STATUS_EVERY_S)
        here = (self.scanner.groups, self.scanner.digest(), self.scanner.key)
        there = (manifest.groups_done, manifest.keys_digest, manifest.last_key)
        return "" if here == there else f"the first {manifest.groups_done} keys are not those that were done"

    def replay(self, manifest: Manifest, saved: Spool) -> None:
        """Write counters and output of the attempts before; requests are answered in between."""
        self.enter("replay")
        self.past_counters = manifest.counters
        for group, inside in sorted(manifest.counters.items()):
            for name, amount in sorted(inside.items()):
                self.errors.count(group, name, amount)
        for piece in saved.pieces():
            view = memoryview(piece)
            while view:
                while self.inbox:
                    self.unchanged(self.inbox.popleft())
                if self.wait(1, select.POLLOUT, STATUS_EVERY_S):
                    try:
                        view = view[os.write(1, view[:PIPE_ATOMIC_BYTES]) :]
                    except BrokenPipeError:
                        raise Leave(EXIT_UNPROVABLE) from None
                self.beat()
        saved.clear()

    def put_aside(self, manifest: Manifest, why: str) -> None:
        """Say that a checkpoint is of no use, in the log and in the store."""
        self.errors.note(f"generation {manifest.generation} is set aside: {why}")
        try:
            set_aside(self.store, self.task, manifest, why)
        except StoreError as error:
            self.errors.note(f"no word of it could be left: {error}")

    def begin_again(self) -> None:
        """Have the skipped input come again before the rest."""
        rest, self.buffer, self.at = self.buffer[self.at :], b"", 0
        self.ended = False  # if it was the end, the end will be read once more

        def again() -> Iterator[bytes]:
            yield from self.skipped.pieces()
            self.skipped.clear()
            if rest:
                yield rest

        self.again = again()

    def look_for_checkpoint(self) -> None:
        """Find the newest usable checkpoint; say why others are not."""
        owners = (self.store.user,)
        found = find_checkpoint(self.store, self.task, self.settings.rule, self.words, owners)
        for why in found.refused:
            self.errors.note(f"not used: {why}")
        self.manifest = found.manifest
        self.highest_generation = found.highest_generation


class Patience:
    """Asks a store again that is away, as HDFS's own client does: after growing pauses, for a bounded time.

    Meanwhile the master is told that the task lives. ``clock`` and ``pause`` are given by tests.
    """

    def __init__(
        self,
        wait_s: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.wait_s = wait_s
        self.say = say
        self.clock = clock
        self.pause = pause

    def call(self, asked: Callable[[], Any]) -> Any:
        """Return what a call that changes nothing gives; raise StoreAway when the time is over."""
        ends_s, pause_s = self.clock() + self.wait_s, WAIT_FIRST_S
        while True:
            try:
                return asked()
            except StoreAway as why:
                left_s = ends_s - self.clock()
                if left_s <= 0:
                    raise
                self.say(str(why))
                self.pause(min(pause_s, left_s))
                pause_s = min(pause_s * 2, WAIT_MOST_S)
