"""A task's process: what Hadoop streaming does around a user's mapper or reducer.

Law: an attempt's output appears by one rename after the command has ended well, and only if the master
allows it; a failed or killed attempt leaves nothing that counts. The bytes of an output depend on what the
command printed and on nothing else. Standard library only: it starts for every task.

Run as ``python -S -m emulator.live.tasks.streaming`` with the environment entry ``YARN_EMULATOR_TASK`` (see
``emulator.live.tasks.task_specs``), in the container's own folder. The command's environment is that of
streaming: every setting of the job with ``_`` for what is no letter or digit, those of ``-cmdenv``, the
task's own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import IO, Any
from zlib import crc32

from emulator.live.tasks import shuffle
from emulator.live.tasks.user_command import CommandFailed, Piped, Reporter
from emulator.live.wire.umbilical_client import Gone, Umbilical

ENTRY = "YARN_EMULATOR_TASK"
REPORT_EVERY_S = 1.0
LONGEST_SETTING = 100_000
"""A longer value is cut, or the kernel refuses to start the command (E2BIG)."""

TASK_COUNTERS = "org.apache.hadoop.mapreduce.TaskCounter"


class StreamingAttempt:
    """One attempt at one task."""

    def __init__(self, spec: dict[str, Any], job: dict[str, Any]) -> None:
        self.spec = spec
        self.job = job
        self.conf: dict[str, str] = job["conf"]
        self.id: str = spec["attempt"]
        self.is_map = spec["kind"] == "map"
        self.partition = int(spec["task"])
        self.number = int(self.id.rpartition("_")[2])
        self.reporter = Reporter(self.conf.get("stream.stderr.reporter.prefix", "reporter:"))
        self.phase = "map" if self.is_map else "shuffle"
        self.progress = 0.0
        self.running: Piped | None = None
        host, port = spec["umbilical"]
        self.umbilical = Umbilical(host, port, self._lost)

    # --- talking to the master ------------------------------------------------------------

    def _lost(self, why: str) -> None:
        """End at once, the command too: the master has given this attempt up."""
        sys.stderr.write(f"task ends: {why}\n")
        sys.stderr.flush()
        if self.running is not None:
            self.running.kill()
        os._exit(1)

    def begin(self) -> None:
        """Say hello, and report from now on: every second, and at once when the status changes."""
        self.umbilical.begin(self.id, self.spec["token"])
        threading.Thread(target=self._report_on, name="reports", daemon=True).start()

    def _report_on(self) -> None:
        while not self.umbilical.over:
            self.reporter.changed.wait(REPORT_EVERY_S)
            self.reporter.changed.clear()
            try:
                self.report()
            except Gone as gone:
                if not self.umbilical.over:
                    self._lost(str(gone))
                return

    def report(self) -> None:
        """Send this attempt's position."""
        self.umbilical.send({"report": self.state()})

    def state(self) -> dict[str, Any]:
        """Return this attempt's position; ``alive`` rises with everything the command does."""
        return {
            "phase": self.phase,
            "progress": round(min(1.0, self.progress), 4),
            "status": self.reporter.status,
            "counters": self.reporter.snapshot(),
            "alive": self.reporter.progress,
        }

    def enter(self, phase: str, progress: float) -> None:
        """Begin a phase and say so."""
        self.phase, self.progress = phase, progress
        self.reporter.progress += 1
        self.report()

    def count(self, name: str, amount: int) -> None:
        """Add to one of MapReduce's own counters."""
        self.reporter.count(TASK_COUNTERS, name, amount)

    # --- the command ----------------------------------------------------------------------

    def separator(self, name: str) -> bytes:
        """Return a separator of streaming."""
        return self.conf.get(name, "\t").encode("utf-8", "surrogateescape")

    def number_of(self, name: str, default: int) -> int:
        """Return a whole number of the configuration."""
        return int(self.conf.get(name) or default)

    def environment(self) -> dict[str, str]:
        """Return the command's environment."""
        hidden = ("PYTHONPATH", ENTRY)
        env = {name: value for name, value in os.environ.items() if name not in hidden}
        for name, value in {**self.conf, **self.own_settings()}.items():
            env[re.sub(r"[^A-Za-z0-9]", "_", name)] = value[:LONGEST_SETTING].replace("\0", "")
        env.update(self.job["cmdenv"])
        env.setdefault("TMPDIR", os.getcwd())
        return env

    def own_settings(self) -> dict[str, str]:
        """Return what Hadoop sets for one attempt."""
        task = self.id.replace("attempt_", "task_", 1).rpartition("_")[0]
        found = {
            "mapreduce.job.id": self.job["job_id"],
            "mapreduce.task.id": task,
            "mapreduce.task.attempt.id": self.id,
            "mapreduce.task.partition": str(self.partition),
            "mapreduce.task.ismap": "true" if self.is_map else "false",
            "mapreduce.task.output.dir": self.work_folder,
            "mapreduce.job.application.attempt.id": str(self.spec["app_attempt"]),
            "mapreduce.job.maps": str(self.job["maps"]),
            "mapred.job.id": self.job["job_id"],
            "mapred.tip.id": task,
            "mapred.task.id": self.id,
            "mapred.task.partition": str(self.partition),
            "mapred.task.is.map": "true" if self.is_map else "false",
        }
        if self.is_map:
            path, offset, length = self.spec["split"]
            found["mapreduce.map.input.file"] = path
            found["mapreduce.map.input.start"] = str(offset)
            found["mapreduce.map.input.length"] = str(length)
        return found

    @property
    def work_folder(self) -> str:
        """Return where this attempt and its command write until that is committed."""
        return os.path.join(self.job["output"], "_temporary", self.id)

    def argv(self, command: str) -> list[str]:
        """Return a command's words; a program in this folder comes before those on the path."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise CommandFailed(f"{command[:200]!r}: {error}") from error
        if not words:
            raise CommandFailed("the command is empty")
        if "/" not in words[0] and os.path.isfile(words[0]) and os.access(words[0], os.X_OK):
            words[0] = os.path.join(".", words[0])
        return words

    def run(self, command: str, blocks: Iterable[bytes], take: Any) -> None:
        """Run a command over an input to its end."""
        running = self.running = Piped(self.argv(command), self.environment(), self.reporter, take)
        try:
            running.feed(blocks)
            running.finish()
        finally:
            running.kill()
            self.running = None

    def combine(self, blocks: Iterable[bytes]) -> list[shuffle.Record]:
        """Run the combiner over sorted records and return what it printed."""
        records: list[shuffle.Record] = []
        self._collect(self.job["combiner"], blocks, records)
        return records

    def _collect(self, command: str, blocks: Iterable[bytes], sink: Any) -> None:
        """Run a command; its output lines become records of ``sink`` (a list or a MapOutput)."""
        fields = self.number_of("stream.num.map.output.key.fields", 1)
        separator = self.separator("stream.map.output.field.separator")
        lines = shuffle.OutputLines()
        add = sink.extend if isinstance(sink, list) else sink.add

        def take(data: bytes) -> None:
            add(self.altered(shuffle.split_record(line, separator, fields) for line in lines.take(data)))

        held, self.running = self.running, None  # a combiner runs while the mapper still does
        self.run(command, blocks, take)
        self.running = held
        add(self.altered(shuffle.split_record(line, separator, fields) for line in lines.finish()))

    def altered(self, records: Iterable[shuffle.Record]) -> Iterable[shuffle.Record]:
        """Play a fault: the second attempt at one map gives other keys (``emulator.fault.map.other``)."""
        other = self.conf.get("emulator.fault.map.other")
        if not self.is_map or not self.number % 1000 or other != str(self.partition):
            return records
        return ((key + b"~" if crc32(key) % 3 == 0 else key, value) for key, value in records)

    # --- map --------------------------------------------------------------------------------

    def map(self) -> dict[str, Any]:
        """Run a map; return what the master needs of its output."""
        if not self.job["reduces"]:
            return self.map_only()
        fields = shuffle.Fields(*self.partition_fields())
        limit_bytes = self.number_of("mapreduce.task.io.sort.mb", 100) << 20
        path = os.path.join(self.spec["map_folder"], f"{self.id}.out")
        combine = self.combine if self.job["combiner"] else None
        output = shuffle.MapOutput(path, self.job["reduces"], fields, limit_bytes, combine)
        self._collect(self.job["mapper"], self.split_blocks(), output)
        self.progress = 1.0
        self.count("MAP_OUTPUT_RECORDS", output.records)
        self.count("MAP_OUTPUT_BYTES", output.bytes)
        return {"index": output.finish()}

    def partition_fields(self) -> tuple[int, bytes]:
        """Return by how many fields of the key KeyFieldBasedPartitioner goes; 0 for the whole key."""
        found = re.match(r"-k1,([0-9]+)", self.conf.get("mapreduce.partition.keypartitioner.options", ""))
        number = int(found[1]) if found else self.number_of("num.key.fields.for.partition", 0)
        name = "mapreduce.map.output.key.field.separator"
        own = self.separator(name) if name in self.conf else None
        return number, own or self.separator("stream.map.output.field.separator")

    def split_blocks(self) -> Iterator[bytes]:
        """Give the input split, counted."""
        path, offset, length = self.spec["split"]
        done = 0
        for block in shuffle.read_split(path, offset, length):
            self.count("MAP_INPUT_RECORDS", block.count(b"\n"))
            yield block
            done += len(block)
            self.progress = min(1.0, done / max(1, length))

    def map_only(self) -> dict[str, Any]:
        """Run a map of a job without reduces: what it prints is the job's output."""
        self.write_output(self.job["mapper"], self.split_blocks(), "MAP_OUTPUT_RECORDS", "map")
        return {}

    # --- reduce -----------------------------------------------------------------------------

    def reduce(self) -> dict[str, Any]:
        """Run a reduce: fetch, merge, feed, commit."""
        self.enter("shuffle", 0.0)
        indexes = self.fetch()
        self.enter("sort", 1 / 3)
        total_bytes = sum(index.partitions[self.partition][1] for index in indexes)
        self.count("REDUCE_SHUFFLE_BYTES", total_bytes)
        combine = self.combine if self.job["combiner"] else None
        merge = shuffle.Merge(self.id, os.getcwd(), combine)
        records = merge.records_of(indexes, self.partition)
        blocks = shuffle.lines_of(records, self.separator("stream.reduce.input.field.separator"))
        first = next(blocks, None)
        self.enter("reduce", 2 / 3)
        fed = self._counted(first, blocks, total_bytes)
        self.write_output(self.job["reducer"], fed, "REDUCE_OUTPUT_RECORDS", "part", keep=first is not None)
        self.count("REDUCE_INPUT_GROUPS", merge.groups)
        self.count("REDUCE_INPUT_RECORDS", merge.records)
        return {}

    def _counted(self, first: bytes | None, blocks: Iterator[bytes], total_bytes: int) -> Iterator[bytes]:
        done = 0
        block = first
        while block is not None:
            following = next(blocks, None)
            yield block
            done += len(block)
            # Progress is what went into the pipe: all of it, long before the command has read it.
            self.progress = 1.0 if following is None else min(1.0, 2 / 3 + done / max(1, total_bytes) / 3)
            block = following

    def fetch(self) -> list[shuffle.Index]:
        """Wait for the output of every map, the newest where one was run again."""
        newest: dict[int, shuffle.Index] = {}
        maps = int(self.job["maps"])
        while len(newest) < maps:
            told = self.umbilical.maps.get()
            newest[told["task"]] = shuffle.read_index(told["index"])
            self.reporter.progress += 1
            self.progress = len(newest) / maps / 3
        return [newest[task] for task in sorted(newest)]

    # --- output -----------------------------------------------------------------------------

    def write_output(
        self, command: str, blocks: Iterable[bytes], counter: str, kind: str, keep: bool = True
    ) -> None:
        """Run a command and commit what it printed as TextOutputFormat writes it.

        Without any input (``keep`` false) what the command prints is dropped: streaming reads it from the
        first record on only.
        """
        folder = self.work_folder
        os.makedirs(folder, exist_ok=True)
        name = os.path.join(folder, f"part-{self.partition:05d}")
        lines = shuffle.OutputLines()
        with open(name, "wb", shuffle.BLOCK_BYTES) as file:
            shape = TextOutput(self, file, kind == "map")

            def take(data: bytes) -> None:
                if keep:
                    shape.write(lines.take(data))

            self.run(command, blocks, take)
            if keep:
                shape.write(lines.finish())
            file.flush()
            os.fsync(file.fileno())
        self.count(counter, shape.records)
        self.commit(folder)

    def commit(self, folder: str) -> None:
        """Move all files of the work folder to the committed output, if the master allows it."""
        if not self.umbilical.ask({"can_commit": True}).get("commit"):
            raise Gone("the master has not allowed the commit")
        committed = os.path.join(self.job["output"], "_temporary", "committed")
        merge_folders(folder, committed)


def merge_folders(source: str, target: str) -> None:
    """Move a folder's files and folders into another, as FileOutputCommitter merges paths: the last one wins.

    The part comes last: if it is there, all is.
    """
    os.makedirs(target, exist_ok=True)
    for entry in sorted(os.scandir(source), key=lambda entry: (entry.name.startswith("part-"), entry.name)):
        there = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False) and os.path.isdir(there):
            merge_folders(entry.path, there)
        else:
            os.replace(entry.path, there)
    os.rmdir(source)


class TextOutput:
    """Writes lines as streaming and TextOutputFormat do: a line without separator gets one at its end."""

    def __init__(self, attempt: StreamingAttempt, file: IO[bytes], is_map: bool) -> None:
        side = "map" if is_map else "reduce"
        self._from = attempt.separator(f"stream.{side}.output.field.separator")
        self._fields = attempt.number_of(f"stream.num.{side}.output.key.fields", 1)
        self._to = attempt.separator("mapreduce.output.textoutputformat.separator")
        self._file = file
        self.records = 0

    def write(self, lines: list[bytes]) -> None:
        """Write lines."""
        self.records += len(lines)
        if self._from == self._to == b"\t" and self._fields == 1:
            self._file.writelines([line + (b"\n" if b"\t" in line else b"\t\n") for line in lines])
            return
        for line in lines:
            key, value = shuffle.split_record(line, self._from, self._fields)
            self._file.write(b"%b%b%b\n" % (key, self._to, value))


def _dump_on() -> None:
    while True:
        signal.sigwait({signal.SIGQUIT})
        said = [f"Full thread dump {time.strftime('%Y-%m-%d %H:%M:%S')}"]
        said += [f'"{thread.name}"' for thread in threading.enumerate()]
        print("\n".join(said), flush=True)  # noqa: T201 - a JVM prints it to standard output


def main() -> int:
    """Run the task of the environment; return the exit status."""
    spec = json.loads(os.environ[ENTRY])
    with open(spec["job_file"], "rb") as file:
        job = json.load(file)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGQUIT})
    threading.Thread(target=_dump_on, name="dumps", daemon=True).start()
    try:
        files = job["files"]
        for name, path in files.items():
            if not os.path.lexists(name):
                os.symlink(path, name)
        attempt = StreamingAttempt(spec, job)
        attempt.begin()
    except (OSError, Gone) as error:
        sys.stderr.write(f"task ends: {error}\n")
        return 1
    try:
        found = attempt.map() if attempt.is_map else attempt.reduce()
        last: dict[str, Any] = {"done": {**attempt.state(), **found}}
    except Gone as gone:
        sys.stderr.write(f"task ends: {gone}\n")
        return 1
    except CommandFailed as failed:
        last = {"failed": f"Error: java.lang.RuntimeException: {failed}"}
    except Exception:  # whatever it is, the master must be told
        last = {"failed": f"Error: {traceback.format_exc(limit=-3)}"}
    return report_last(attempt, last)


def report_last(attempt: StreamingAttempt, last: dict[str, Any]) -> int:
    """Report to the master how it ended and wait for the acknowledgement."""
    try:
        taken = attempt.umbilical.ask(last)
    except Gone:
        return 1
    attempt.umbilical.over = True
    return 0 if "done" in last and "bye" in taken else 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads may still wait in reads
