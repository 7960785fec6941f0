"""A start takes manifest, state and saved output together or none of them; a drain loses no state.

Law: whatever fails, the output is that of an undisturbed run, or the attempt's status is not 0.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.running import RUNNER, Job, grouped, python
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, EXIT_UNPROVABLE

COUNTING = """
import os, sys
total = int(open('state').read()) if os.path.exists('state') else 0
key = None
for line in sys.stdin.buffer:
    name = line.rstrip(b"\\n").split(b"\\t")[0]
    if name != key:
        total += 1
        key = name
        sys.stdout.write('%s %d %s\\n' % (name.decode(), total, 'x' * 200))
if os.path.exists(os.environ.get('YARNCTL_SUSPENDING', 'none')):
    open('state', 'w').write(str(total))
else:
    sys.stdout.write('TOTAL %d\\n' % total)
"""
KEEPING = ("--save", "cat state; rm state", "--load", "cat > state")
DATA = b"".join(b"k%06d\tv\n" % number for number in range(2000))


def undisturbed(folder: Path) -> bytes:
    folder.mkdir()
    status, output = Job(folder).run(DATA, python(COUNTING), promise=False)
    assert (status, output[-11:]) == (0, b"TOTAL 2000\n")
    return output


def limited(folder: Path, line: str) -> str:
    """Return a program that does ``line`` in a shell and then becomes this Python."""
    path = folder / "python-limited"
    path.write_text(f'#!/bin/sh\n{line}\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_no_state_is_loaded_where_the_saved_output_cannot_be_kept(tmp_path):
    wanted = undisturbed(tmp_path / "alone")
    job = Job(tmp_path)
    status, _ = job.run(DATA, python(COUNTING), *KEEPING, "--suspend-at", "1000", "--exit-when-saved")
    assert status == EXIT_SUSPENDED
    job.python = limited(tmp_path, "ulimit -f 100")  # of 512 bytes: the saved output has 207 kB
    assert job.run(DATA, python(COUNTING), *KEEPING) == (0, wanted)
    assert b"generation 1 is not used: the local disk" in job.stderr


def test_a_drain_whose_output_cannot_be_kept_gives_the_state_back(tmp_path):
    wanted = undisturbed(tmp_path / "alone")
    job = Job(tmp_path)
    options = (*KEEPING, "--spool-limit-mib", "0", "--suspend-at", "10")
    assert job.run(DATA, python(COUNTING), *options) == (0, wanted)
    assert b"ckpt=refused" in job.stderr
    assert not list(tmp_path.glob("yarnctl-suspending-*"))


def test_a_checkpoint_without_state_is_not_for_a_reducer_with_state(tmp_path):
    wanted = undisturbed(tmp_path / "alone")
    job = Job(tmp_path)
    job.run(DATA, python(COUNTING), "--suspend-at", "1000", "--exit-when-saved")
    assert job.run(DATA, python(COUNTING), *KEEPING) == (0, wanted)
    assert b"set aside: made with another --save setting" in job.stderr


LEAVING = """
import os, sys, time
name = os.environ['YARNCTL_SUSPENDING']
os.read(0, 1)
while not os.path.exists(name):
    time.sleep(0.001)
open('state', 'w').write('0')  # and no summary, though it has not read everything
"""


def test_a_reducer_that_leaves_while_it_is_drained_has_given_its_summary_away(tmp_path):
    job = Job(tmp_path)
    assert job.run(grouped(9, 3), python(LEAVING), *KEEPING, "--suspend-at", "5")[0] == EXIT_UNPROVABLE
    assert b"closed its input while it was suspended" in job.stderr


def test_output_that_nobody_took_is_no_success(tmp_path):
    job = Job(tmp_path)
    attempt = job.start(python("import sys; sys.stdin.read(); sys.stdout.write('all\\n')"))
    attempt.stdout.close()
    attempt.process.stdout = None
    attempt.feed(b"a\t1\n")
    attempt.end_input()
    assert attempt.finish()[0] == EXIT_UNPROVABLE
    assert b"output was not forwarded" in attempt.log


@pytest.mark.parametrize("during", ["--save", "--load"])
def test_the_doorbell_ends_no_command_that_keeps_state(tmp_path, during):
    wanted = undisturbed(tmp_path / "alone")
    rung = {each: f"kill -QUIT -$PPID; {command}" if each == during else command for each, command in PAIRS}
    options = [word for pair in rung.items() for word in pair]
    job = Job(tmp_path)
    assert job.run(DATA, python(COUNTING), *options, "--suspend-at", "10", "--release-wait-ms", "0") == (
        0,
        wanted,
    )
    assert b"ckpt=saved" in job.stderr


PAIRS = tuple(zip(KEEPING[::2], KEEPING[1::2], strict=True))


def test_a_failed_reducer_fails_where_ends_of_children_are_ignored(tmp_path):
    """A process may be started with SIGCHLD ignored; the system then keeps no status."""
    ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    again = f"{ignoring}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    job = Job(tmp_path, python=limited(tmp_path, f"exec {sys.executable} -c '{again}' \"$@\""))
    assert job.run(b"a\t1\n", python("import sys; sys.stdin.read(); sys.exit(3)"))[0] == 3


def test_a_local_store_that_takes_half_a_write_has_not_taken_it(tmp_path):
    program = """
import importlib.util, sys
place = importlib.util.spec_from_file_location("yarnctl_task", sys.argv[1])
task = importlib.util.module_from_spec(place)
sys.modules["yarnctl_task"] = task
place.loader.exec_module(task)
try:
    task.LocalStore(sys.argv[2]).create("file", 100_000, [bytes(100_000)])
except task.StoreError as error:
    print("refused")
"""
    short = limited(tmp_path, "ulimit -f 100")
    done = subprocess.run([short, "-c", program, str(RUNNER), str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "refused\n", done


def test_what_the_reducer_has_started_ends_with_the_runner(tmp_path):
    """The kernel ends the whole group, so also a program that neither reads nor writes.

    Input comes once the lifeline is set; a runner that is killed before leaves a program without any.
    """
    os.mkfifo(tmp_path / "alive")
    attempt = Job(tmp_path).start(["sh", "-c", "read line; sh -c 'echo up; exec sleep 600' > alive & wait"])
    attempt.feed(b"a\t1\n")
    with (tmp_path / "alive").open("rb", buffering=0) as alive:
        assert alive.read(3) == b"up\n"
        attempt.process.send_signal(signal.SIGKILL)
        assert alive.read() == b""  # closed: nobody holds the other end any more
    attempt.finish()


def test_a_doorbell_while_the_reducer_starts_is_neither_lost_nor_fatal(tmp_path):
    """SIGQUIT is blocked in what is started, so that a ring to the whole group never ends it."""
    job = Job(tmp_path)
    program = "import os, signal, sys; sys.stdin.read(); os.kill(os.getpid(), signal.SIGQUIT); print('well')"
    assert job.run(b"a\t1\n", python(program)) == (0, b"well\n")


def test_no_code_of_ours_runs_between_fork_and_exec():
    assert "preexec_fn" not in RUNNER.read_text()


@pytest.mark.parametrize("program", ["sys.stderr.write('reporter:counter:g,n,1\\n')", "pass"])
def test_counters_that_nobody_could_write_fail_the_attempt(tmp_path, program):
    """/dev/full takes nothing; what is only told in the log may be lost."""
    job = Job(tmp_path)
    job.python = limited(tmp_path, f'exec {sys.executable} "$@" 2> /dev/full')
    status, output = job.run(b"a\t1\n", python(f"import sys; sys.stdout.write(sys.stdin.read()); {program}"))
    assert (status, output) == (EXIT_UNPROVABLE if "counter" in program else 0, b"a\t1\n")
