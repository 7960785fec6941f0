"""A yarnctl that dies: in this process at a chosen point, or as a process of its own by SIGKILL.

Law: a crash is as ``kill -9``: from that instant on nothing is written, sent or given up, not even by the
code that would tidy up; only what the operating system closes is closed. A restart is what ``yarnctl run``
does: the same pieces, in the same order, on the same state directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import msgspec

from tests.soak.fault_plan import CrashPoint
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.daemon.daemon_lock import DaemonLock
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.running import Plan, clock_ms, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.model import Action, Observation, ObservationRequest, Outcome
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.records import Performed, Record
from yarnctl.journal.file import JournalFile
from yarnctl.journal.rebuild import rebuild, repair

SOURCES = str(Path(__file__).resolve().parents[2])
END_S = 60.0
UNREACHABLE = 3
"""The exit status of a program that cannot reach the cluster as it begins; whoever supervises it goes on."""


class Crash(BaseException):
    """The process is gone. Not an Exception: nothing may catch it and go on."""


class Trap:
    """Where the daemon dies next. Once it has died, whatever it tries dies, too."""

    def __init__(self, struck: Counter[str]) -> None:
        self._struck = struck
        self._point = ""
        self._left = 0
        self.dead = False

    def set(self, point: str, nth: int) -> None:
        """Die at the nth moment of this kind from now on."""
        self._left, self._point = nth, point

    def clear(self) -> None:
        """Do not die any more."""
        self._point = ""

    def check(self) -> None:
        if self.dead:
            raise Crash("dead")

    def at(self, point: CrashPoint) -> None:
        """Such a moment has come."""
        self.check()
        if self.is_due(point):
            self.die(point)

    def is_due(self, point: CrashPoint) -> bool:
        """Count a moment of a kind; say whether it is the last."""
        if point != self._point:
            return False
        self._left -= 1
        return self._left <= 0

    def die(self, point: str) -> None:
        self._struck[point] += 1
        self._point, self.dead = "", True
        raise Crash(point)


class TrappedJournal:
    """A journal whose writer may die before, in the middle of, or after an append."""

    def __init__(self, journal: JournalFile, trap: Trap) -> None:
        self._journal, self._trap = journal, trap

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""
        self._trap.check()
        is_outcome = bool(records) and isinstance(records[0], Performed)
        if not is_outcome:
            self._trap.at("before-append")
        if self._trap.is_due("torn-append"):
            whole = b"".join(map(self._journal.chain.seal, records))
            self._journal.file.write(whole[: max(1, len(whole) - 20)])
            self._journal.file.flush()
            self._trap.die("torn-append")
        self._journal.append(records)
        self._trap.at("after-outcome" if is_outcome else "after-append")


class TrappedLock:
    """The lock in HDFS of a holder that may be dead: then it is neither renewed nor given up."""

    def __init__(self, lock: DaemonLock, trap: Trap) -> None:
        self._lock, self._trap = lock, trap
        self.kind, self.every_ms, self.on_free = lock.kind, lock.every_ms, lock.on_free

    @property
    def leader(self) -> str:
        """The other holder that was found."""
        return self._lock.leader

    @property
    def held(self) -> bool:
        """Whether it is held; anybody may look, also at the dead."""
        return self._lock.held

    @property
    def has_rival(self) -> bool:
        """Whether another holder was found."""
        return self._lock.has_rival

    def acquire(self) -> bool:
        self._trap.check()
        return self._lock.acquire()

    def renew(self) -> bool:
        self._trap.check()
        return self._lock.renew()

    def release(self) -> None:
        self._trap.check()
        self._lock.release()


class TrappedPort:
    """A port whose user may die right after an action; all else is the attached port's."""

    def __init__(self, port: AttachedPort, trap: Trap) -> None:
        self._port = port
        self._trap = trap
        self.permission, self.queue_settings = port.permission, port.queue_settings
        self.restorer, self.activities = port.restorer, port.activities
        self.identify, self.observe_soon = port.identify, port.observe_soon
        self.adopt, self.expect, self.left_alone = port.adopt, port.expect, port.left_alone
        self.announce, self.has_news = port.announce, port.has_news
        self.use_budgets = port.use_budgets
        self.tasks_of, self.node_load = port.tasks_of, port.node_load

    def observe(self, request: ObservationRequest) -> Observation:
        self._trap.check()
        return self._port.observe(request)

    @property
    def last_problem(self) -> ModeReason | None:
        """Return why the cluster could not be seen last."""
        return self._port.last_problem

    def perform(self, action: Action) -> Outcome:
        self._trap.check()
        outcome = self._port.perform(action)
        self._trap.at("after-perform")
        return outcome


class Daemon(Protocol):
    """A yarnctl that can be started, killed and stopped."""

    starts: int

    def start(self) -> None: ...

    @property
    def alive(self) -> bool: ...

    @property
    def ready(self) -> bool:
        """Whether it sees the cluster and may act."""
        ...

    def looked_since(self, at_ms: int) -> str:
        """Say how it is known that it looked at the cluster after an instant, free to act; "": it is not."""
        ...

    def kill(self) -> None: ...

    def stop(self) -> str:
        """End it in peace; return what went wrong, "" if nothing did."""
        ...


class ThreadDaemon:
    """The daemon's own pieces on a thread of this process; ``trap`` says where it dies."""

    def __init__(self, plan: Plan, struck: Counter[str]) -> None:
        self.plan = plan
        self.loop: Loop | None = None
        self.starts = 0
        self.trap = Trap(struck)
        self._struck = struck
        self._thread: threading.Thread | None = None
        self._stopping = False
        self._error = ""

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def ready(self) -> bool:
        """Whether it sees the cluster and may act."""
        status = self.loop.status() if self.loop is not None and self.alive else None
        return status is not None and status.reachable and status.state == "running"

    def looked_since(self, at_ms: int) -> str:
        """Say how it is known that it looked at the cluster after an instant, free to act; "": it is not."""
        if not self.ready or self.loop is None or self.loop.port.last_observation is None:
            return ""
        seen = self.loop.port.last_observation
        return f"looked: {seen.cluster}" if seen.as_of_ms >= at_ms else ""

    def start(self) -> None:
        """Start it, or start it again where it died."""
        if self._thread is not None:
            self._thread.join(END_S)
        self.loop = None  # the one that died has nothing to say, and is not the one to stop
        self._stopping = False
        self.trap = Trap(self._struck)
        self.starts += 1
        self._thread = threading.Thread(target=self._live, name="yarnctl", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            with ExitStack() as stack:
                self._run(stack, self.trap)
        except Crash:
            return
        except BaseException as error:
            self._error = self._error or f"the daemon ended: {type(error).__name__}: {error}"

    def _run(self, stack: ExitStack, trap: Trap) -> None:
        plan = self.plan
        state = stack.enter_context(StateDir(plan.state_dir, lambda: os.urandom(4).hex()))
        repair(state.journal)
        rebuilt = rebuild(state.journal)
        told = msgspec.structs.replace(plan.attachment, instance=state.instance)
        port = attach(plan.cluster, told, clock_ms)
        stack.callback(port.close)
        loop, journal = make_loop(plan, state, TrappedPort(port, trap), rebuilt)
        stack.callback(journal.file.close)
        loop.recorder.journal = TrappedJournal(journal, trap)
        if loop.lock_renewal.lock is not None:
            loop.lock_renewal.lock = loop.guard.lock = TrappedLock(loop.lock_renewal.lock, trap)
        self.loop = loop
        if self._stopping:  # asked while this was being put together
            loop.stop()
        loop.run()
        journal.close()

    def kill(self) -> None:
        """Let it die at the next thing it does."""
        self.trap.dead = True
        if self.loop is not None:
            self.loop.stop()
        if self._thread is not None:
            self._thread.join(END_S)

    def stop(self) -> str:
        self.trap.clear()
        self._stopping = True
        if self.loop is not None:
            self.loop.stop()
        if self._thread is not None:
            self._thread.join(END_S)
        return self._error or ("the daemon does not end" if self.alive else "")


class ProgramDaemon:
    """``yarnctl run`` as a process of its own."""

    def __init__(self, plan: Plan, log: Path) -> None:
        self.plan = plan
        self.starts = 0
        self._log = log
        self._began_bytes = 0
        self._error = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def ready(self) -> bool:
        """Whether it has said, since its last start, that it runs."""
        return self.alive and b"running (enforce)" in self._said()

    def _said(self) -> bytes:
        """Return what it has logged since its last start."""
        return self._log.read_bytes()[self._began_bytes :] if self._log.exists() else b""

    def looked_since(self, at_ms: int) -> str:
        return "runs" if self.ready else ""

    def start(self) -> None:
        """Start it; one that could not reach the cluster as it began has said so, and is started again."""
        if self._process is not None and self._process.returncode not in (-signal.SIGKILL, UNREACHABLE):
            self._error = self._error or self._ended_with()
        self.starts += 1
        self._began_bytes = self._log.stat().st_size if self._log.exists() else 0
        rm = self.plan.cluster.resource_managers[0]
        command = [sys.executable, "-c", "from yarnctl.cli import main; main()", "run", "--rm", rm]
        command += ["--enforce", "--listen", "off", "--state-dir", str(self.plan.state_dir)]
        environment = {**os.environ, "PYTHONPATH": SOURCES}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> str:
        """SIGTERM, and wait for its end in order."""
        if self._process is None:
            return ""
        self._process.terminate()
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"yarnctl run did not end within {END_S:.0f} s of SIGTERM"
        return self._error or ("" if status == 0 else self._ended_with())

    def _ended_with(self) -> str:
        status = self._process.returncode if self._process is not None else 0
        return f"yarnctl run ended with status {status}: {self._log.read_text(errors='replace')[-300:]}"
