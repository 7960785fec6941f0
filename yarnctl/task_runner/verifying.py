"""Tests the promise ``--restartable``: suspends a reducer at random key groups of a sorted sample.

It runs the real task runner with a local store, and compares every byte of the output. This finds a reducer
that prints at its start or end, or counts across groups, because each suspension shows in the output.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from yarnctl.errors import BadInput
from yarnctl.task_runner.runner.protocol.job_conf import Conf, read_rule
from yarnctl.task_runner.runner.protocol.key_rule import KeyRule, Scanner
from yarnctl.task_runner.runner.protocol.stores import EXIT_SUSPENDED, Unusable
from yarnctl.task_runner.shipped import shipped_runner

SHOWN_BYTES = 80
KINDS = {"counter": "counter lines", "status": "status lines"}
BLOCK_BYTES = 1 << 20
TASK = "1_0001_r_000000"


class Verdict(msgspec.Struct, frozen=True):
    """The result: ``story``: the first difference or ""; ``reported``: the reducer's lines to Hadoop."""

    groups: int
    rounds: int
    suspensions: int
    story: str
    reported: str = ""

    @property
    def holds(self) -> bool:
        """Whether the output was equal after each suspension."""
        return not self.story


class Limits(NamedTuple):
    """Limits of one run of the user's code. ``memory_mib``: address space of a process, 0: no limit."""

    time_s: int = 300
    memory_mib: int = 4096


USUAL = Limits()


def bounded(
    argv: Sequence[str], limits: Limits, stdin: BinaryIO, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command within limits; raise BadInput where it takes longer. All that it started ends with it."""
    if limits.memory_mib:
        argv = ["/bin/sh", "-c", f'ulimit -v {limits.memory_mib << 10}; exec "$@"', "sh", *argv]
    with subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limits.time_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise BadInput(
                "--verify",
                f"a run of the reducer took longer than {limits.time_s} s",
                "use a smaller sample, or a larger --time-limit-s",
            ) from None
        return subprocess.CompletedProcess(argv, process.returncode, out, err)


def environment(settings: Mapping[str, str], store: Path, attempt: int) -> dict[str, str]:
    """Return what Hadoop would set for an attempt of a job with these settings."""
    conf = {
        **settings,
        "mapreduce.job.id": "job_1_0001",
        "mapreduce.task.id": f"task_{TASK}",
        "mapreduce.task.attempt.id": f"attempt_{TASK}_{attempt}",
        "mapreduce.task.ismap": "false",
        "mapreduce.reduce.speculative": "false",
        "mapreduce.task.partition": "0",
        "mapreduce.task.output.dir": f"file:{store}/out/attempt_{TASK}_{attempt}",
    }
    named = {
        "".join(c if c.isascii() and c.isalnum() else "_" for c in name): value
        for name, value in conf.items()
    }
    ours = {"CONTAINER_ID": f"container_1_0001_01_{attempt + 2:06d}", "YARNCTL_STORE": f"file://{store}"}
    return {**os.environ, **named, **ours}


def count_groups(sample: Path, rule: KeyRule) -> int:
    """Return the number of key groups; BadInput unless the sample is sorted by bytes and has several."""
    scanner = Scanner(rule)
    with sample.open("rb") as stream:
        for block in iter(lambda: stream.read(BLOCK_BYTES), b""):
            scanner.take(block)
    scanner.finish()
    if not scanner.sorted:
        raise BadInput(str(sample), "keys are not sorted by bytes", "sort it with LC_ALL=C sort")
    if scanner.groups < 2:
        raise BadInput(str(sample), f"has only {scanner.groups} key groups", "use a sample with several")
    return scanner.groups


def verify(
    sample: Path,
    reducer: Sequence[str],
    group_fields: int = 0,
    settings: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    rounds: int = 8,
    seed: int = 1,
    limits: Limits = USUAL,
) -> Verdict:
    """Run the reducer unsuspended, then ``rounds`` times with random suspensions; compare. Or BadInput."""
    settings = settings or {}
    try:
        named = environment(settings, Path("/"), 0)
        groups = count_groups(sample, read_rule(Conf(named), group_fields))
    except Unusable as why:
        raise BadInput("--group-fields", str(why)) from why
    promises = ["--restartable", *(["--group-fields", str(group_fields)] if group_fields else []), *options]
    draw = random.Random(seed)
    prefix = settings.get("stream.stderr.reporter.prefix", "reporter:")
    wanted, reported = undisturbed(sample, reducer, limits, prefix)
    suspensions = 0
    for number in range(rounds):
        last = 1 if number == 0 else draw.randint(1, min(4, groups - 1))
        cuts = sorted(draw.sample(range(1, groups), last))
        with tempfile.TemporaryDirectory(prefix="yarnctl-verify-") as folder:
            got = interrupted(sample, reducer, cuts, promises, settings, Path(folder), limits)
        suspensions += len(cuts)
        story = difference(wanted, got, cuts, groups)
        if story:
            return Verdict(groups, number + 1, suspensions, story, reported)
    return Verdict(groups, rounds, suspensions, "", reported)


def undisturbed(
    sample: Path, reducer: Sequence[str], limits: Limits, prefix: str = "reporter:"
) -> tuple[bytes, str]:
    """Return an unsuspended reducer's output and its number of lines to Hadoop; pass on its other errors."""
    found = shutil.which(reducer[0])
    if found is None:
        raise BadInput(reducer[0], "No such file or directory", "use a command that runs on this host")
    with sample.open("rb") as stream:
        done = bounded([found, *reducer[1:]], limits, stream)
    lines = done.stderr.splitlines(keepends=True)
    mark = prefix.encode()
    sys.stderr.write(b"".join(line for line in lines if not line.startswith(mark)).decode("utf-8", "replace"))
    if done.returncode:
        raise BadInput(reducer[0], f"exits with {done.returncode} on the sample without any suspension")
    return done.stdout, counted(lines, mark)


def counted(lines: Sequence[bytes], mark: bytes) -> str:
    """Say how many lines of each kind the reducer wrote to Hadoop, nothing if none."""
    kinds = {name: sum(line.startswith(mark + name.encode() + b":") for line in lines) for name in KINDS}
    told = ", ".join(f"{number} {KINDS[name]}" for name, number in kinds.items() if number)
    return f"the reducer wrote {told}" if told else ""


def interrupted(
    sample: Path,
    reducer: Sequence[str],
    cuts: Sequence[int],
    promises: Sequence[str],
    settings: Mapping[str, str],
    folder: Path,
    limits: Limits,
) -> bytes | str:
    """Return what the last attempt writes when each one before was suspended; text names what failed."""
    for attempt, cut in enumerate([*cuts, 0]):
        where = (
            ["--suspend-at", str(cut), "--exit-when-saved", "--poll-ms", "0"] if cut else ["--poll-ms", "0"]
        )
        argv = [sys.executable, "-IS", str(shipped_runner()), *promises, *where, "--", *reducer]
        env = environment(settings, folder, attempt)
        work = folder / f"out/attempt_{TASK}_{attempt}"
        work.mkdir(parents=True)
        (work / "part-00000").touch()
        with sample.open("rb") as stream:
            done = bounded(argv, limits, stream, env)
        if done.returncode != (EXIT_SUSPENDED if cut else 0):
            said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
            last = "; ".join(line for line in said[-6:] if not line.startswith("reporter:status:"))
            which = f"the attempt to be suspended after group {cut}" if cut else "the last attempt"
            return f"{which} ended with status {done.returncode}: {last}"
    return done.stdout


def difference(wanted: bytes, got: bytes | str, cuts: Sequence[int], groups: int) -> str:
    """Return a description of the first difference, empty if there is none."""
    where = f"suspended after group {', '.join(map(str, cuts))} of {groups}"
    if isinstance(got, str):
        return f"{where}: {got}"
    if got == wanted:
        return ""
    at = next((at for at, pair in enumerate(zip(wanted, got, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(wanted), len(got)) if at is None else at
    start = wanted.rfind(b"\n", 0, at) + 1
    line = wanted.count(b"\n", 0, at) + 1
    first = f"{shown(wanted[start:])} without suspension, {shown(got[start:])} when suspended"
    sizes = f"{len(wanted)} and {len(got)} bytes"
    likely = (
        "the reducer may keep state between groups, print at its start or end, "
        "or group by other fields than promised"
    )
    return f"{where}, the output differs from line {line} on: {first} ({sizes}); {likely}"


def shown(data: bytes) -> str:
    """Return the first line of some bytes as it can be printed."""
    line = data.split(b"\n", 1)[0][:SHOWN_BYTES]
    return repr(line.decode("utf-8", "replace")) if data else "nothing"
