"""Runs the task runner as a node would: real processes, pipes, signals, a local store.

Law: nothing here waits for time to pass. What a test waits for is a line on the runner's standard
error, an end of file or an end of process.
"""

from __future__ import annotations

import os
import py_compile
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

from yarnctl.task_runner.runner.protocol.manifests import (
    SCHEMA,
    Manifest,
    TaskId,
    canonical,
    read_manifest,
    request_name,
)
from yarnctl.task_runner.runner.protocol.stores import LocalStore, Store
from yarnctl.task_runner.shipped import shipped_runner

RUNNER = shipped_runner()
"""Checked: no test runs a file of older sources."""
SUM = """
import sys
key, total = None, 0
for line in sys.stdin.buffer:
    name, _, value = line.rstrip(b"\\n").partition(b"\\t")
    if name != key:
        if key is not None:
            sys.stdout.buffer.write(b"%s\\t%d\\n" % (key, total))
            sys.stdout.buffer.flush()
        key, total = name, 0
    total += int(value or 0)
if key is not None:
    sys.stdout.buffer.write(b"%s\\t%d\\n" % (key, total))
"""


@cache
def compiled() -> Path:
    """Return the shipped file, compiled by the Python that runs the tests."""
    return Path(str(py_compile.compile(str(RUNNER), doraise=True)))


def runner(python: str) -> Path:
    """Return what ``python`` is to run: for the one that runs the tests the compiled file.

    To compile it is almost half of what a start costs; other Pythons, and ``test_pythons``, take the source.
    """
    return compiled() if python == sys.executable else RUNNER


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


class Job:
    """One reduce task of one job, with as many attempts as a test starts."""

    def __init__(
        self, folder: Path, conf: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> None:
        self.folder = folder
        self.python = python
        self.store = LocalStore(str(folder / "store"))
        self.requests = LocalStore(str(folder / "store/requests"))
        self.conf = dict(conf or {})
        self.attempts = 0
        self.stderr = b""

    def task(self, attempt: int) -> TaskId:
        task = "1_0001_r_000000"
        return TaskId("job_1_0001", f"task_{task}", f"attempt_{task}_{attempt}", f"container_{attempt + 2}")

    def env(self, attempt: int) -> dict[str, str]:
        """Return what Hadoop hands down to an attempt."""
        task = self.task(attempt)
        conf = {
            "mapreduce_job_id": task.job,
            "mapreduce_task_id": task.task,
            "mapreduce_task_attempt_id": task.attempt,
            "mapreduce_task_ismap": "false",
            "mapreduce_reduce_speculative": "false",
            "mapreduce_task_partition": "0",
            "mapreduce_task_output_dir": str(self.work(attempt)),
            "CONTAINER_ID": task.container,
            "TMPDIR": str(self.folder),
            **self.conf,
        }
        return {**os.environ, **conf}

    def work(self, attempt: int) -> Path:
        """Return an attempt's own folder below the job's output."""
        return self.folder / "out/_temporary/0/_temporary" / self.task(attempt).attempt

    def start(
        self,
        reducer: Sequence[str],
        *options: str,
        promise: bool = True,
        stdin: IO[bytes] | int = subprocess.PIPE,
    ) -> Attempt:
        """Start the next attempt; its input is a pipe if nothing else is given."""
        attempt = self.attempts
        self.attempts += 1
        self.work(attempt).mkdir(parents=True, exist_ok=True)
        (self.work(attempt) / "part-00000").touch()  # as Hadoop, before the reducer starts
        return Attempt(self, attempt, [*(["--restartable"] if promise else []), *options], reducer, stdin)

    def run(
        self, data: bytes, reducer: Sequence[str], *options: str, promise: bool = True
    ) -> tuple[int, bytes]:
        """Run the next attempt over all of its input; return its status and output."""
        attempt = self.start(reducer, *options, promise=promise)
        output, self.stderr = attempt.process.communicate(data)
        return attempt.process.returncode, output

    def manifests(self) -> list[Manifest]:
        """Return every manifest of the task, oldest first."""
        task = self.task(0)
        names = [
            entry.name for entry in self.store.list(task.folder) if entry.name.endswith(".manifest.json")
        ]
        return [read_manifest(self.store, task, name) for name in names]

    def path(self, suffix: str) -> Path:
        """Return the newest file in the task's folder whose name ends so."""
        return max((self.folder / "store" / self.task(0).folder).glob(f"*{suffix}"))

    def answers(self) -> list[str]:
        """Return the names of answers, without the attempt."""
        found = (self.folder / "store" / self.task(0).folder).glob("answer-*.json")
        return sorted(path.name for path in found)


class Attempt:
    """A running attempt."""

    stdin: IO[bytes]

    def __init__(
        self,
        job: Job,
        number: int,
        options: Sequence[str],
        reducer: Sequence[str],
        stdin: IO[bytes] | int = subprocess.PIPE,
    ) -> None:
        self.job = job
        self.task = job.task(number)
        store = ["--store", f"file://{job.store.root}", "--poll-ms", "0"]
        argv = [job.python, "-IS", str(runner(job.python)), *store, *options, "--", *reducer]
        self.process = subprocess.Popen(
            argv, env=job.env(number), cwd=job.folder, stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, bufsize=0, start_new_session=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT}) and None,
        )  # fmt: skip
        assert self.process.stdout
        assert self.process.stderr
        self.stdout, self.stderr = self.process.stdout, self.process.stderr
        if self.process.stdin:
            self.stdin = self.process.stdin
        self.log = b""

    def feed(self, data: bytes) -> None:
        """Write input; what does not fit into the pipes must be read meanwhile."""
        self.stdin.write(data)

    def until(self, mark: str) -> str:
        """Read standard error up to the first line that holds ``mark``."""
        for raw in iter(self.stderr.readline, b""):
            self.log += raw
            if mark.encode() in raw:
                return raw.decode()
        raise AssertionError(f"no line with {mark!r} in:\n{self.log.decode()}")

    def ring(self) -> None:
        """Ring the bell, to the whole group as YARN does."""
        os.killpg(self.process.pid, signal.SIGQUIT)

    def request(self, order: str, **more: object) -> None:
        write_request(self.job.requests, self.task, order, **more)
        self.ring()

    def withdraw(self, order: str) -> None:
        """Take a request back and ring."""
        withdraw_request(self.job.requests, self.task, order)
        self.ring()

    def end_input(self) -> None:
        """Close the input here; a process that has it as well may still write."""
        self.stdin.close()
        self.process.stdin = None

    def finish(self) -> tuple[int, bytes]:
        """End the input; return the status and the rest of the output."""
        output, log = self.process.communicate()
        self.log += log
        return self.process.returncode, output

    def kill(self) -> bytes:
        """Kill as YARN does; return what was written to standard output."""
        os.killpg(self.process.pid, signal.SIGTERM)
        return self.finish()[1]


def write_request(store: Store, task: TaskId, order: str, **more: object) -> None:
    """Write a request as yarnctl does: beside, then renamed."""
    data = canonical({"schema": SCHEMA, "order": order, "attempt": task.attempt, **more})
    store.make_folder(f"{task.job}/{task.attempt}")
    hidden = f"{task.job}/{task.attempt}/.{order}.tmp"
    store.create(hidden, len(data), [data])
    store.rename(hidden, request_name(task, order))


def withdraw_request(store: Store, task: TaskId, order: str) -> None:
    store.make_folder(f"{task.job}/{task.attempt}")
    store.create(f"{task.job}/{task.attempt}/{order}.withdrawn", 0, [])


def grouped(groups: int, values: int, key: str = "key{:05d}") -> bytes:
    """Return sorted input: so many keys, up to so many values each."""
    lines = (f"{key.format(at)}\t{at + each}\n" for at in range(groups) for each in range(1 + at % values))
    return "".join(lines).encode()
