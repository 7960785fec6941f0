"""Real containers: own group, output in files, SIGTERM then SIGKILL, nothing outlives its node."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from emulator.live.node.process_supervisor import Group, ProcessSupervisor, living, stat_fields
from emulator.live.node.processes import Process, Processes, clean_environment, open_processes

PATIENCE_S = 60.0


def run(test: Callable[[Processes], Awaitable[None]]) -> None:
    """Run a test with its processes, and see that the end leaves none."""

    async def whole() -> None:
        processes = await open_processes()
        try:
            await asyncio.wait_for(test(processes), PATIENCE_S)
        finally:
            await asyncio.wait_for(processes.close(), PATIENCE_S)

    asyncio.run(whole())


class Container:
    """A started container and its end."""

    def __init__(self, processes: Processes, folder: Path, *argv: str, name: str = "c1") -> None:
        self.folder = folder
        self.over: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self.process: Process = processes.start(
            name, argv, clean_environment({"NAME": name}), folder, self._gone
        )

    def _gone(self, status: int, diagnostics: str) -> None:
        self.over.set_result((status, diagnostics))

    async def said(self, text: str, stream: str = "stdout") -> str:
        """Wait until its output holds a text; return all of it."""
        path = self.folder / stream
        while True:
            found = path.read_text() if path.exists() else ""
            if text in found:
                return found
            assert not self.over.done(), f"ended with {self.over.result()} and said {found!r}"
            await asyncio.sleep(0.005)


def python(source: str) -> tuple[str, ...]:
    return sys.executable, "-I", "-S", "-u", "-c", source


def test_exit_status_and_output(tmp_path: Path) -> None:
    async def test(processes: Processes) -> None:
        program = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")
        container = Container(processes, tmp_path / "c1", *program)
        assert await container.over == (7, "")
        assert (container.folder / "stdout").read_text() == "out\n"
        assert (container.folder / "stderr").read_text() == "err\n"

    run(test)


def test_a_session_of_its_own_with_the_environment_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARN_SECRET", "ours")

    async def test(processes: Processes) -> None:
        source = (
            "import os, signal; print(os.getpid() == os.getpgid(0) == os.getsid(0));"
            "print(sorted(os.environ));"
            "print(os.getcwd()); print(signal.pthread_sigmask(signal.SIG_BLOCK, []));"
            "print([signal.getsignal(number) != signal.SIG_IGN for number in (1, 2, 15)])"
        )
        container = Container(processes, tmp_path / "c1", *python(source))
        assert (await container.over)[0] == 0
        lines = (container.folder / "stdout").read_text().splitlines()
        assert lines[0] == "True"
        assert set(eval(lines[1])) - {"LC_CTYPE"} == {"HOME", "LANG", "NAME", "PATH"}
        assert lines[2] == str(tmp_path / "c1")
        assert lines[3] == "{<Signals.SIGQUIT: 3>}"  # as under a JVM
        assert lines[4] == "[True, True, True]"

    run(test)


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    async def test(processes: Processes) -> None:
        container = Container(processes, tmp_path / "c1", "/no/such/program")
        status, why = await container.over
        assert status == 127
        assert "/no/such/program" in why

    run(test)


STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGQUIT):
    signal.signal(number, lambda n, _: print(signal.Signals(n).name))
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGQUIT})
child = os.fork()
print("ready" if child else "child ready")
while True:
    time.sleep(60)
"""


def test_the_end_is_sigterm_to_the_group_then_sigkill(tmp_path: Path) -> None:
    async def test(processes: Processes) -> None:
        container = Container(processes, tmp_path / "c1", *python(STUBBORN))
        await container.said("child ready")
        await container.said("ready\n")
        while container.process.pid == 0:
            await asyncio.sleep(0)
        group = container.process.pid
        assert len(living(group)) == 2
        container.process.end()
        assert await container.over == (128 + signal.SIGKILL, "")
        assert living(group) == []
        assert (container.folder / "stdout").read_text().count("SIGTERM") == 2

    run(test)


def test_the_doorbell_reaches_every_process_of_the_group(tmp_path: Path) -> None:
    async def test(processes: Processes) -> None:
        container = Container(processes, tmp_path / "c1", *python(STUBBORN))
        await container.said("child ready")
        await container.said("ready\n")
        container.process.notify("OUTPUT_THREAD_DUMP")
        while (await container.said("SIGQUIT")).count("SIGQUIT") < 2:
            await asyncio.sleep(0.005)
        assert not container.over.done()
        container.process.notify("FORCEFUL_SHUTDOWN")
        assert await container.over == (128 + signal.SIGKILL, "")

    run(test)


def test_a_child_that_outlives_its_leader_is_killed_before_the_end_is_told(tmp_path: Path) -> None:
    source = """
import os, time
if os.fork() == 0:
    print("child", os.getpid())
    time.sleep(3600)
time.sleep(0.05)
os._exit(3)
"""

    async def test(processes: Processes) -> None:
        container = Container(processes, tmp_path / "c1", *python(source))
        status, _ = await container.over
        assert status == 3
        child = int((container.folder / "stdout").read_text().split()[1])
        assert gone(child)

    run(test)


def test_a_group_whose_dead_nobody_reaps_is_over_all_the_same(tmp_path: Path) -> None:
    # The grandchild goes to a session of its own and never waits for its own child, which stays in
    # the container's group: a zombie there. It must neither hold the container nor be waited for.
    source = """
import os, time
if os.fork() == 0:
    group = os.getpgid(0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        time.sleep(3600)
    os.setsid()
    os.write(writing, b"x")
    print("away", os.getpid())
    time.sleep(3600)
time.sleep(0.2)
os._exit(0)
"""

    async def test(processes: Processes) -> None:
        container = Container(processes, tmp_path / "c1", *python(source))
        assert (await container.over)[0] == 0
        away = int((container.folder / "stdout").read_text().split()[1])
        assert not gone(away)  # as under YARN: who leaves the group escapes the kill ...
        (tmp_path / "away").write_text(str(away))

    run(test)
    assert gone(int((tmp_path / "away").read_text()))  # ... but not the NodeManager's end


OWNER = """
import asyncio, os, sys
from pathlib import Path
from emulator.live.node.processes import clean_environment, open_processes

async def main():
    processes = await open_processes()
    source = ("import os, time; os.fork(); os.fork() or os.setsid(); open(str(os.getpid()), 'w').close();"
              "time.sleep(3600)")
    folder = Path(sys.argv[1])
    processes.start("c1", [sys.executable, "-I", "-S", "-c", source], clean_environment({}), folder, print)
    while len([name for name in os.listdir(folder) if name.isdigit()]) < 4 if folder.exists() else True:
        await asyncio.sleep(0.005)
    print(processes.supervisor_pid, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.parametrize("victim", ["owner", "supervisor"])
def test_nothing_outlives_a_killed_nodemanager(tmp_path: Path, victim: str) -> None:
    folder = tmp_path / "c1"
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    supervisor = int(owner.stdout.readline())
    pids = [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
    assert len(pids) == 4
    assert not any(gone(pid) for pid in pids)
    os.kill(owner.pid if victim == "owner" else supervisor, signal.SIGKILL)
    if victim == "owner":
        owner.wait()
        wait_until(lambda: all(map(gone, [*pids, supervisor])))
    else:  # the group is killed, and the owner hears of it; who had left the group has nobody to mind him
        assert owner.stdout.readline() == "-100 the process supervisor of this node's processes was killed\n"
        in_group = [pid for pid in pids if (stat := stat_fields(pid)) is not None and stat[2] != pid]
        wait_until(lambda: all(map(gone, in_group)))
        for pid in pids:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)
        owner.kill()
        owner.wait()


def test_a_supervisor_that_was_killed_is_followed_by_another(tmp_path: Path) -> None:
    async def test(processes: Processes) -> None:
        container = Container(processes, tmp_path / "c1", *python(STUBBORN))
        await container.said("child ready")
        os.kill(processes.supervisor_pid, signal.SIGKILL)
        assert await container.over == (-100, "the process supervisor of this node's processes was killed")
        after = Container(processes, tmp_path / "c2", *python("print('here')"), name="c2")
        assert await after.over == (0, "")
        assert (tmp_path / "c2" / "stdout").read_text() == "here\n"

    run(test)


def test_an_end_is_told_only_when_nobody_is_left_in_the_group() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    last = subprocess.Popen(python("input()"), stdin=subprocess.PIPE, start_new_session=True)
    supervisor = ProcessSupervisor(theirs)
    group = supervisor.groups["c1"] = Group("c1", last.pid)
    group.status = 5
    supervisor._drop(group)
    with pytest.raises(BlockingIOError):
        ours.recv(1)
    last.kill()
    ((key, _),) = supervisor.selector.select(PATIENCE_S)
    supervisor._unwatch(key.data, key.fd)
    supervisor._drop(group)
    assert json.loads(ours.recv(1000)) == {"ended": "c1", "status": 5, "diagnostics": ""}
    last.wait()
    assert last.stdin is not None
    last.stdin.close()
    ours.close()
    theirs.close()


def gone(pid: int) -> bool:
    stat = stat_fields(pid)
    return stat is None or stat[0] in "ZX"


def wait_until(condition: Callable[[], bool]) -> None:
    import time

    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
