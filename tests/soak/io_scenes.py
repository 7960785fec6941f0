"""Attempts of the real task runner whose calls for I/O are counted, and one of them made to fail.

Law: what runs is the runner as it is shipped, in a process of its own under ``io_tracer`` (which sees every
call at the kernel's border), with a reducer that is a process too, on a folder or on WebHDFS. A scene is a
reducer, a phase and a store; nothing of it depends on chance or on the time of day.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tests.runner.namenode import Server
from tests.runner.running import Job, runner

PATIENCE_S = 120.0
"""After so long an attempt hangs: Hadoop's time-out would fail it."""
PART = "part-00000"
TRACER = Path(__file__).with_name("io_tracer.c")
WORDS = "import os, sys\nkey, total, seen = None, 0, 0\n"
SUM = """
def done():
    sys.stdout.write("%s\\t%d %s\\n" % (key, total, "x" * 40))
    sys.stdout.flush()
    DONE
for line in sys.stdin:
    name, _, value = line.rstrip("\\n").partition("\\t")
    if name != key:
        if key is not None:
            done()
        key, total, seen = name, 0, seen + 1
    total += int(value)
if key is not None:
    done()
"""
BEFORE_STATE = """
if os.path.exists("state"):
    seen = int(open("state").read())
"""
AFTER_STATE = """
if os.path.exists(os.environ.get("YARNCTL_SUSPENDING", "none")):
    with open("state", "w") as file:
        file.write(str(seen))
else:
    sys.stdout.write("GROUPS\\t%d\\n" % seen)
"""
BUFFERED = SUM.replace("    sys.stdout.flush()\n", "")  # all output comes when it is drained
COUNT = 'sys.stderr.write("reporter:counter:soak,groups,1\\nreporter:counter:soak,total,%d\\n" % total)'
SIDE = 'open(os.path.join(os.environ["mapreduce_task_output_dir"], "side-" + key), "w").write(str(total))'
REDUCERS = {
    "plain": WORDS + SUM.replace("DONE", ""),
    "state": WORDS + BEFORE_STATE + BUFFERED.replace("DONE", "") + AFTER_STATE,
    "counters": WORDS + SUM.replace("DONE", COUNT),
    "side": WORDS + SUM.replace("DONE", SIDE),
}
KEEPING = ("--save", "cat state && rm state", "--load", "cat > state")
PHASES = {
    "plain": (),
    "suspend": ("--suspend-at", "8,24", "--release-wait-ms", "0"),
    "leave": ("--suspend-at", "16", "--exit-when-saved"),
    "resume": (),
}
"""Options of the attempt that is disturbed: never suspended; suspended twice and going on in place; suspended
and ended there; going on from a checkpoint that an attempt before has left."""
SHOWS = {
    "plain": ("phase=end",),
    "suspend": ("ckpt=saved gen=1", "ckpt=saved gen=2"),
    "leave": ("ckpt=saved gen=1",),
    "resume": ("phase=replay",),
}
"""What an attempt without a fault says in its log, else a scene shows nothing."""
STORES = ("folder", "hdfs")
INPUT = "".join(
    f"key{at:03d}\t{value}\n" for at in range(40) for value in range(1 + at % 3)
).encode()  # fmt: skip


class Scene(NamedTuple):
    """What is disturbed."""

    reducer: str
    phase: str
    store: str

    def __str__(self) -> str:
        return "-".join(self)


SCENES = tuple(Scene(*words) for words in product(REDUCERS, PHASES, STORES))


class Fault(NamedTuple):
    """The use-th call of this name fails in this way."""

    kind: str
    call: str
    use: int


NONE = Fault("none", "none", 1)


class Ended(NamedTuple):
    """What an attempt has left behind. ``status`` -1: it hung. ``uses``: how often each call was used."""

    status: int
    output: bytes
    side: dict[str, bytes]
    counters: dict[str, int]
    log: str
    uses: dict[str, int]
    unknown: tuple[int, ...]
    fired: int


def build_tracer(folder: Path) -> Path:
    """Compile the tracer into ``folder`` and return it; RuntimeError says what is missing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError(
            "no C compiler to build tests/soak/io_tracer.c with (Debian: apt install gcc libc6-dev)"
        )
    made = folder / "io_tracer"
    done = subprocess.run([compiler, "-O2", "-Wall", "-o", made, TRACER], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, done.args))}: {done.stderr}")
    return made


class Place:
    """Where attempts of one task run: a folder for each attempt, and one store for all."""

    def __init__(self, folder: Path, tracer: Path, server: Server, program: Path | None = None) -> None:
        self.folder = folder
        self.tracer = tracer
        self.server = server
        self.program = program or runner(sys.executable)
        self.root = f"/{folder.name}"
        folder.mkdir(parents=True)

    def close(self) -> None:
        held = self.server.held
        for kept in (held.files, held.folders, held.modes):
            forget(kept, self.root + "/")
        shutil.rmtree(self.folder)

    def take_store(self, other: Place) -> None:
        """Begin with what another place's store holds."""
        if (other.folder / "store").exists():
            shutil.copytree(other.folder / "store", self.folder / "store")
        held = self.server.held
        copy(held.files, other.root + "/", self.root + "/")
        copy(held.folders, other.root + "/", self.root + "/")

    def attempt(
        self, scene: Scene, number: int, options: Sequence[str] = (), fault: Fault | None = None
    ) -> Ended:
        """Run one attempt over all input; traced if a fault (or ``NONE``) is given."""
        here = self.folder / f"attempt-{number}"
        (here / "out").mkdir(parents=True)
        (here / "out" / PART).touch()  # as Hadoop makes it before the first line comes
        report = self.folder / f"report-{number}"
        argv = self._argv(scene, options)
        if fault is not None:
            store = str(self.folder / "store")
            argv = [
                str(self.tracer), str(report), store, str(here), fault.kind, fault.call, str(fault.use), "--",
                *argv,
            ]  # fmt: skip
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self._env(number, here), cwd=here, start_new_session=True,
        )  # fmt: skip
        try:
            output, errors = process.communicate(INPUT, PATIENCE_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            status = -1
        side = {path.name: path.read_bytes() for path in sorted((here / "out").glob("side-*"))}
        return Ended(
            status, output, side, counted(errors), errors.decode(errors="replace"), *read_report(report)
        )

    def _argv(self, scene: Scene, options: Sequence[str]) -> list[str]:
        store = f"file://{self.folder}/store"
        if scene.store == "hdfs":
            store = f"webhdfs://{self.server.host}{self.root}/store"
        keeping = KEEPING if scene.reducer == "state" else ()
        own = ["--restartable", "--store", store, "--poll-ms", "0", *keeping, *options]
        return [sys.executable, "-IS", str(self.program), *own, "--", *reducer(scene)]

    def _env(self, number: int, here: Path) -> dict[str, str]:
        conf = {
            "HADOOP_USER_NAME": "alice",
            "mapreduce_task_output_dir": str(here / "out"),
            "mapreduce_task_partition": "0",
        }
        job = Job(self.folder, conf)
        own = {
            name: value for name, value in job.env(number).items() if name not in os.environ or name in conf
        }
        return {**own, "PATH": os.environ["PATH"], "TMPDIR": str(here)}


def forget(kept: dict[str, Any], start: str) -> None:
    """Remove every name below a folder."""
    for name in [name for name in list(kept) if name.startswith(start)]:
        del kept[name]


def copy(kept: dict[str, Any], old: str, new: str) -> None:
    """Have every name below one folder below another, too."""
    for name in [name for name in list(kept) if name.startswith(old)]:
        kept[new + name.removeprefix(old)] = kept[name]


def reducer(scene: Scene) -> list[str]:
    return [sys.executable, "-IS", "-c", REDUCERS[scene.reducer]]


def counted(errors: bytes) -> dict[str, int]:
    """Return the sums of the counters in a standard error."""
    found: dict[str, int] = {}
    for line in errors.decode(errors="replace").split("\n"):
        if line.startswith("reporter:counter:"):
            name, _, amount = line.removeprefix("reporter:counter:").rpartition(",")
            found[name] = found.get(name, 0) + (int(amount) if amount.isdigit() else 0)
    return found


def read_report(path: Path) -> tuple[dict[str, int], tuple[int, ...], int]:
    """Return what the tracer has written: uses of each call, unknown calls, and how often it did harm."""
    uses, unknown, fired = {}, [], 0
    for line in path.read_text().splitlines() if path.exists() else ():
        first, second = line.split("\t")
        if first == "unknown":
            unknown.append(int(second))
        elif first == "fired":
            fired = int(second)
        else:
            uses[second] = int(first)
    return uses, tuple(unknown), fired
