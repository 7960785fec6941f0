"""The process supervisor: starts the processes of a NodeManager's containers and ends them.

Law: nothing outlives the supervisor's owner, and a container has ended only when no process of its group
is left. It stands alone (standard library, one thread, so that fork is safe) and is spoken to in lines
of JSON over a socket that it inherits as stdin:

    {"start": ID, "argv": [...], "env": {...}, "folder": PATH}   stdout and stderr go to files in folder
    {"signal": ID, "number": N}                                  to the whole process group
    {"end": ID}                                                  SIGTERM to the group, 250 ms, SIGKILL

and it answers

    {"started": ID, "pid": N}
    {"ended": ID, "status": N, "diagnostics": TEXT}              exit code, or 128 + the signal's number

Every container has a session of its own, SIGQUIT blocked (as under a JVM, which passes its own mask
on), and is killed with the supervisor (PR_SET_PDEATHSIG). Orphans become children of the supervisor
(PR_SET_CHILD_SUBREAPER), which kills all there is as soon as the other end of the socket is closed, also by
``kill -9``.
"""

from __future__ import annotations

import ctypes
import heapq
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any

GRACE_S = 0.25
"""Between SIGTERM and SIGKILL (yarn.nodemanager.sleep-delay-before-sigkill.ms)."""

STATUS_NOT_STARTED = 127
LONGEST_LINE = 16 * 1024 * 1024
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


class Group:
    """One container: its leader's pid is the number of its process group and of its session."""

    __slots__ = ("name", "pid", "status", "stopping", "watched")

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.status: int | None = None
        self.stopping = False
        self.watched: set[int] = set()


class ProcessSupervisor:
    """The loop: lines from the owner, children that ended, graces that ran out."""

    def __init__(self, owner: socket.socket) -> None:
        self.owner = owner
        self.selector = selectors.DefaultSelector()
        self.groups: dict[str, Group] = {}
        self.leaders: dict[int, Group] = {}
        self.graces: list[tuple[float, str]] = []
        self.pid = os.getpid()
        self._unread = b""

    def run(self) -> None:
        """Serve until the owner's end is closed; then kill whatever there is."""
        woken, wake = os.pipe()
        for end in (woken, wake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.selector.register(self.owner, selectors.EVENT_READ, "owner")
        self.selector.register(woken, selectors.EVENT_READ, "children")
        try:
            while self._turn(woken):
                pass
        finally:
            self._kill_all()

    def _turn(self, woken: int) -> bool:
        wait_s = None if not self.graces else max(0.0, self.graces[0][0] - time.monotonic())
        for key, _ in self.selector.select(wait_s):
            if key.data == "owner":
                if not self._read():
                    return False
            elif key.data == "children":
                os.read(woken, 4096)
            else:  # a member of a group whose leader is gone
                self._unwatch(key.data, key.fd)
        self._reap()
        while self.graces and self.graces[0][0] <= time.monotonic():
            group = self.groups.get(heapq.heappop(self.graces)[1])
            if group is not None:
                self._signal(group, signal.SIGKILL)
        for group in [each for each in self.groups.values() if each.status is not None]:
            self._drop(group)
        return True

    def _read(self) -> bool:
        chunk = self.owner.recv(1 << 16)
        if not chunk or len(self._unread) > LONGEST_LINE:
            return False
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            self._apply(json.loads(line))
        return True

    def _apply(self, order: dict[str, Any]) -> None:
        if "start" in order:
            self._start(order)
            return
        group = self.groups.get(order.get("signal") or order.get("end") or "")
        if group is None:
            return
        if "signal" in order:
            self._signal(group, order["number"])
        elif not group.stopping:
            group.stopping = True
            self._signal(group, signal.SIGTERM)
            heapq.heappush(self.graces, (time.monotonic() + GRACE_S, group.name))

    def _report(self, message: dict[str, Any]) -> None:
        try:
            self.owner.sendall(json.dumps(message).encode() + b"\n")
        except OSError:  # the owner is gone: the next turn handles that
            return

    def _start(self, order: dict[str, Any]) -> None:
        name, folder = order["start"], order["folder"]
        try:
            os.makedirs(folder, exist_ok=True)
            with (
                open(os.path.join(folder, "stdout"), "ab") as stdout,
                open(os.path.join(folder, "stderr"), "ab") as stderr,
            ):
                process = subprocess.Popen(  # noqa: S603 - running what was submitted is the purpose
                    order["argv"],
                    env=order["env"],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    preexec_fn=self._in_child,  # safe: there is one thread only
                )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            text = f"{' '.join(order['argv'][:1])}: cannot be started: {error}"
            self._report({"ended": name, "status": STATUS_NOT_STARTED, "diagnostics": text})
            return
        group = Group(name, process.pid)
        process.returncode = 0  # it is reaped here, not by its Popen
        self.groups[name] = self.leaders[process.pid] = group
        self._report({"started": name, "pid": process.pid})

    def _in_child(self) -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != self.pid:  # the supervisor ended before the line above
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGQUIT})

    @staticmethod
    def _signal(group: Group, number: int) -> None:
        if group.status is not None:  # the leader is reaped and its group killed already
            return
        try:
            os.killpg(group.pid, number)
        except ProcessLookupError:
            return

    def _reap(self) -> None:
        """Reap every ended child; a leader last, as its zombie keeps the number of the group to be killed."""
        while True:
            try:
                dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if dead is None:
                return
            group = self.leaders.pop(dead.si_pid, None)
            if group is not None:
                self._signal(group, signal.SIGKILL)
                exited = dead.si_code == os.CLD_EXITED
                group.status = dead.si_status if exited else 128 + dead.si_status
            os.waitpid(dead.si_pid, 0)

    def _drop(self, group: Group) -> None:
        """Report a group's end once it has no process left; else wait for the rest."""
        try:
            os.killpg(group.pid, 0)
        except ProcessLookupError:
            left: list[int] = []
        except PermissionError:
            left = living(group.pid)
        else:
            left = living(group.pid)
        if not left:
            for watcher in list(group.watched):
                self._unwatch(group, watcher)
            del self.groups[group.name]
            self._report({"ended": group.name, "status": group.status, "diagnostics": ""})
        elif not group.watched:
            for pid in left:
                self._watch(group, pid)

    def _watch(self, group: Group, pid: int) -> None:
        try:
            watcher = os.pidfd_open(pid)
        except ProcessLookupError:
            os.kill(self.pid, signal.SIGCHLD)  # ended meanwhile: check again
            return
        group.watched.add(watcher)
        self.selector.register(watcher, selectors.EVENT_READ, group)

    def _unwatch(self, group: Group, watcher: int) -> None:
        self.selector.unregister(watcher)
        group.watched.discard(watcher)
        os.close(watcher)

    def _kill_all(self) -> None:
        """Kill all groups, then the orphans that have left their group, until no process is left."""
        for group in self.groups.values():
            self._signal(group, signal.SIGKILL)
        while True:
            for pid in children(self.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def stat_fields(pid: int) -> tuple[str, int, int] | None:
    """Return a process's state, parent and process group; None if it is gone (proc(5), ``stat``)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return state.decode(), int(parent), int(group)


def processes() -> list[int]:
    """Return the pids of all processes that there are."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def living(group: int) -> list[int]:
    """Return the pids of a process group's members that have not ended (a zombie has)."""
    found = ((pid, stat_fields(pid)) for pid in processes())
    return [pid for pid, stat in found if stat is not None and stat[2] == group and stat[0] not in "ZX"]


def children(parent: int) -> list[int]:
    """Return the pids of a process's children."""
    found = ((pid, stat_fields(pid)) for pid in processes())
    return [pid for pid, stat in found if stat is not None and stat[1] == parent]


def main() -> None:
    """Run as the supervisor of the process at the other end of stdin."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the owner's end ends it. A handler, as what is ignored would stay ignored in containers.
        signal.signal(number, lambda *_: None)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    owner = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    os.set_inheritable(owner.fileno(), False)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, sys.stdin.fileno())
    ProcessSupervisor(owner).run()


if __name__ == "__main__":
    main()
