"""What the task runner costs while nobody asks: the same reducer with and without it.

Law: both sides read the same file through a pipe that is fed as Java feeds it and write to a pipe that is
read to its end; their outputs must be equal, or nothing was measured. Pairs are interleaved, and the ratio
is that of each pair: what else the machine does hits both sides. Two reducers: ``cat`` (as fast as a reducer
can be, so the worst case) and a sum in Python (typical). The row is the typical one; ``cat`` is in details.
The runner works beside the reducer, so the ratio of wall times is that of a machine with a free core; what
it costs where there is none is told by the processor times of both sides (``..._cpu_s``), and by the load.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from yarn_research.bench.row import Row, spread
from yarnctl.task_runner.shipped import RUNNER

TARGET_RATIO = 1.05
FULL_MB, QUICK_MB = 1000, 100
PAIRS, QUICK_PAIRS = 3, 3
PIPE_BLOCK_BYTES = 1 << 17
SUM = """
import itertools, sys
read, write = sys.stdin.buffer, sys.stdout.buffer
for key, group in itertools.groupby(read, lambda line: line.partition(b"\\t")[0]):
    write.write(b"%s\\t%d\\n" % (key, sum(int(line.partition(b"\\t")[2]) for line in group)))
"""
REDUCERS = {"cat": ("cat",), "python-sum": (sys.executable, "-IS", "-c", SUM)}


class Side(NamedTuple):
    """One measured run."""

    wall_s: float
    cpu_s: float
    digest: str
    bytes_out: int


def write_input(path: Path, mb: int) -> int:
    """Write sorted lines, 1 to 40 values a key, some 30 bytes each; return how many bytes."""
    block, written, key = [], 0, 0
    with path.open("wb") as file:
        while written < mb * 1_000_000:
            for value in range(1 + key * 7919 % 40):
                block.append(b"user%012d\t%012d\n" % (key, key * 31 + value))
            key += 1
            if len(block) > 20_000:
                written += file.write(b"".join(block))
                block.clear()
    return written


def environment(folder: Path, number: int) -> dict[str, str]:
    """Return what Hadoop hands down to an attempt; each is the first of a task of its own."""
    task = f"1_0001_r_{number:06d}"
    return {
        **os.environ,
        "mapreduce_job_id": "job_1_0001",
        "mapreduce_task_id": f"task_{task}",
        "mapreduce_task_attempt_id": f"attempt_{task}_0",
        "mapreduce_task_ismap": "false",
        "mapreduce_reduce_speculative": "false",
        "mapreduce_task_partition": "0",
        "mapreduce_task_output_dir": str(folder / "out"),
        "CONTAINER_ID": "container_1_0001_01_000002",
        "YARNCTL_STORE": f"file://{folder}/store",
        "TMPDIR": str(folder),
    }


def feed(source: Path, sink: int) -> None:
    """Write a file into a pipe in blocks, as PipeMapRed's buffered stream does."""
    with source.open("rb", buffering=0) as file, os.fdopen(sink, "wb", buffering=0) as pipe:
        while block := file.read(PIPE_BLOCK_BYTES):
            view = memoryview(block)
            while view:
                view = view[pipe.write(view) :]


def run(command: list[str], source: Path, env: dict[str, str]) -> Side:
    """Run one side over the whole input; raise if it fails."""
    began_s = time.perf_counter()
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    feeder = threading.Thread(target=feed, args=(source, os.dup(process.stdin.fileno())), daemon=True)
    process.stdin.close()
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()), daemon=True)  # type: ignore[union-attr]
    feeder.start()
    reader.start()
    digest, size = hashlib.blake2b(), 0
    while block := os.read(process.stdout.fileno(), PIPE_BLOCK_BYTES):
        digest.update(block)
        size += len(block)
    _, status, used = os.wait4(process.pid, 0)  # the use of the whole tree: the runner waits for its child
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began_s
    feeder.join()
    reader.join()
    if status or b"without the task runner" in errors[0] or b"no longer be suspended" in errors[0]:
        raise RuntimeError(f"{command}: status {status}: {errors[0][-500:].decode(errors='replace')}")
    return Side(wall_s, used.ru_utime + used.ru_stime, digest.hexdigest(), size)


def measure(name: str, source: Path, folder: Path, pairs: int) -> dict[str, Any]:
    """Run a reducer bare and with the runner, turn by turn; return both and the median ratio of the pairs."""
    bare = list(REDUCERS[name])
    wrapped = ["sh", str(RUNNER), "--restartable", "--", *bare]
    sides: dict[str, list[Side]] = {"bare": [], "runner": []}
    for number in range(pairs + 1):
        order = (("bare", bare), ("runner", wrapped))
        for side, command in order if number % 2 else reversed(order):
            found = run(command, source, environment(folder, number))
            if number:  # the first pair warms caches
                sides[side].append(found)
    if len({(one.digest, one.bytes_out) for side in sides.values() for one in side}) != 1:
        raise RuntimeError(f"{name}: the outputs differ")
    ratios = [ours.wall_s / bare.wall_s for ours, bare in zip(sides["runner"], sides["bare"], strict=True)]
    return {
        "ratio": median(ratios),
        "ratios": [round(ratio, 4) for ratio in ratios],
        **{f"{side}_s": spread([one.wall_s for one in found]) for side, found in sides.items()},
        **{f"{side}_cpu_s": spread([one.cpu_s for one in found]) for side, found in sides.items()},
    }


def runner_overhead(mb: int = FULL_MB, pairs: int = PAIRS) -> Row:
    """Measure both reducers over ``mb`` million bytes."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="runner-overhead-") as name:
        folder = Path(name)
        size = write_input(folder / "input", mb)
        (folder / "empty").touch()
        start = measure("cat", folder / "empty", folder, pairs)
        found = {reducer: measure(reducer, folder / "input", folder, pairs) for reducer in REDUCERS}
    typical = found["python-sum"]
    return Row(
        name="runner-overhead",
        what=f"a summing Python reducer over {mb} MB: with the task runner and no request, against without",
        ours=typical["runner_s"]["median"] * 1000,
        baseline=typical["bare_s"]["median"] * 1000,
        ratio=typical["ratio"],
        target=f"<= {TARGET_RATIO}",
        holds=typical["ratio"] <= TARGET_RATIO,
        unit="ms",
        details={
            "start_ms": round((start["runner_s"]["median"] - start["bare_s"]["median"]) * 1000),
            "input_bytes": size,
            "load_before": load,
            "load_after": os.getloadavg()[0],
            **found,
        },
    )


def main() -> None:
    """``python -m yarn_research.bench.runner_overhead [--quick]``: measure and print one row as JSON."""
    import msgspec

    parser = argparse.ArgumentParser(prog="python -m yarn_research.bench.runner_overhead")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_MB} MB instead of {FULL_MB}")
    given = parser.parse_args()
    row = runner_overhead(QUICK_MB, QUICK_PAIRS) if given.quick else runner_overhead()
    print(msgspec.json.format(msgspec.json.encode(row), indent=2).decode())


if __name__ == "__main__":
    main()
