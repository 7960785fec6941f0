"""Workloads whose output can be compared byte for byte: what is read, how it is reduced, at which pace.

Law: a reducer's output depends on its input only, never on the order of the values of one key (the shuffle
gives another one at every attempt), except where the job sorts by it. Every reducer logs each key group it
begins (``rig.read_log``) and keeps the pace of ``SOAK_PAUSE_MS`` a group; an undisturbed run may set 0.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from emulator.live.wire.submitted_job import StreamingJob
from tests.soak.rig import GROUP_LOG

QUICK_MASTER = MappingProxyType({"yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": "100"})
"""A master that beats ten times as often as Hadoop's default."""
PAUSE = "SOAK_PAUSE_MS"
ELSEWHERE_AT = "SOAK_ELSEWHERE"
"""The environment entry that names a folder outside of the job's output."""
PRELUDE = f"""
import hashlib, itertools, os, sys, time
LOG = os.open(os.environ["{GROUP_LOG}"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
ATTEMPT, PAUSE_S = os.environ["mapreduce_task_attempt_id"], int(os.environ["{PAUSE}"]) / 1000
out = sys.stdout.buffer

def begin(key):
    os.write(LOG, b"%s %d %s\\n" % (ATTEMPT.encode(), time.time() * 1000, key.hex().encode()))
    time.sleep(PAUSE_S)

def count(name, amount):
    os.write(2, f"reporter:counter:soak,{{name}},{{amount}}\\n".encode())

def split(line):
    key, _, value = line.rstrip(b"\\n").partition(b"\\t")
    return key, value

def groups(lines, counted=True):
    for key, group in itertools.groupby(map(split, lines), lambda record: record[0]):
        begin(key)
        values = [value for _, value in group]
        count("groups", 1)
        if counted:
            count("values", len(values))
        yield key, values
"""
SUM = """
for key, values in groups(sys.stdin.buffer):
    out.write(b"%s\\t%d\\n" % (key, sum(map(int, values))))
    out.flush()
"""
SUM_COMBINED = """
for key, values in groups(sys.stdin.buffer, counted=False):  # how often they are combined is open
    count("total", sum(map(int, values)))
    out.write(b"%s\\t%d\\n" % (key, sum(map(int, values))))
"""
BUFFERING = """
def lines():  # takes full blocks only, and gives its output away at the end
    rest = b""
    for block in iter(lambda: sys.stdin.buffer.read(1 << 16), b""):
        *whole, rest = (rest + block).split(b"\\n")
        yield from whole
    if rest:
        yield rest

held = [b"%s\\t%d %d\\n" % (key, len(values), sum(map(len, values))) for key, values in groups(lines())]
out.write(b"".join(held))
"""
SILENT = """
for key, values in groups(sys.stdin.buffer):
    count("bytes", sum(map(len, values)))
"""
LONG = """
for key, values in groups(sys.stdin.buffer):
    for value in sorted(values):
        out.write(b"%s\\t%s %s\\n" % (key, hashlib.md5(value).hexdigest().encode(), value[: len(value) // 2]))
"""
BINARY = """
for key, values in groups(sys.stdin.buffer):
    out.write(key + b"\\t" + hashlib.sha256(b"\\n".join(sorted(values))).digest() + min(values) + b"\\n")
"""
SECONDARY = """
def records():
    for line in sys.stdin.buffer:
        name, _, rest = line.rstrip(b"\\n").partition(b"\\t")
        yield name, rest

for name, group in itertools.groupby(records(), lambda record: record[0]):
    begin(name)
    digest, first, before = hashlib.sha256(), None, b""
    for _, rest in group:
        first = first or rest
        assert rest >= before, (name, before, rest)
        digest.update(rest)
        before = rest
        count("sorted", 1)
    out.write(b"%s\\t%s %s %s\\n" % (name, first, before, digest.hexdigest().encode()))
    out.flush()
"""
STATEFUL = """
total = int(open("state").read()) if os.path.exists("state") else 0
for key, values in groups(sys.stdin.buffer):
    total += sum(map(int, values))
    out.write(b"%s\\t%d\\n" % (key, total))
    out.flush()
if os.path.exists(os.environ.get("YARNCTL_SUSPENDING", "none")):
    with open("state", "w") as file:
        file.write(str(total))
else:
    out.write(b"~total\\t%d\\n" % total)
"""
COUNTING = """
for key, values in groups(sys.stdin.buffer):
    for value in values:
        count("of %d" % (int(value) % 7), 1)
        count("sum", int(value) - 500)
    os.write(2, b"\\rreporter:counter:soak,after a return,1,\\n" * len(values))
    out.write(b"%s\\t%d\\n" % (key, len(values)))
"""
SIDE_FILES = """
folder = os.environ["mapreduce_task_output_dir"].removeprefix("file:")
for key, values in groups(sys.stdin.buffer):
    with open(os.path.join(folder, "side-" + key.decode()), "wb") as file:
        file.write(b"%d" % sum(map(int, values)))
    out.write(b"%s\\t%d\\n" % (key, len(values)))
    out.flush()
"""
ELSEWHERE = """
folder = os.environ["SOAK_ELSEWHERE"]
os.makedirs(folder, exist_ok=True)
for key, values in groups(sys.stdin.buffer):
    with open(os.path.join(folder, key.decode()), "wb") as file:
        file.write(b"%d" % sum(map(int, values)))
    out.write(b"%s\\t%d\\n" % (key, len(values)))
    out.flush()
"""
KEEPING = "--save 'cat state && rm state' --load 'cat > state'"
COMBINE = """
import itertools, sys
for key, group in itertools.groupby(sys.stdin.buffer, lambda line: line.partition(b"\\t")[0]):
    total = sum(int(line.partition(b"\\t")[2]) for line in group)
    sys.stdout.buffer.write(b"%s\\t%d\\n" % (key, total))
"""

Lines = Callable[[random.Random, int], Iterator[bytes]]


def numbers(chance: random.Random, keys: int) -> Iterator[bytes]:
    for _ in range(keys * 6):
        yield b"key%05d\t%d" % (chance.randrange(keys), chance.randrange(1000))


def wide(chance: random.Random, keys: int) -> Iterator[bytes]:
    """Give about 4 KiB of values a key: a block of 64 KiB holds many keys."""
    for key in range(keys):
        for _ in range(chance.randint(2, 12)):
            yield b"key%05d\t%s" % (key, b"v" * chance.randint(100, 900))


def long_lines(chance: random.Random, keys: int) -> Iterator[bytes]:
    """Give one line of 10 MB for every third key, and short ones."""
    for key in range(keys):
        yield b"key%03d\tshort" % key
        if key % 3 == 0:
            yield b"key%03d\t%s" % (key, chance.randbytes(1000).hex().encode() * 5000)


def binary(chance: random.Random, keys: int) -> Iterator[bytes]:
    """Give keys and values of any bytes but line ends: short, empty, many bytes, no UTF-8."""
    clean = bytes.maketrans(b"\r\n", b"\0\xff")
    names = [b"", b"\xff", "schlüssel".encode(), b"\x80\x81"]
    names += [
        chance.randbytes(chance.randint(1, 9)).translate(clean).replace(b"\t", b"\v") for _ in range(keys)
    ]
    for name in names:
        for _ in range(chance.randint(1, 4)):
            yield name + b"\t" + chance.randbytes(chance.randint(0, 300)).translate(clean)


def secondary(chance: random.Random, keys: int) -> Iterator[bytes]:
    """Give records of two key fields: grouped by the first, sorted by both."""
    for key in range(keys):
        for rank in chance.sample(range(10_000), chance.randint(1, 9)):
            yield b"key%05d\t%05d\tvalue %d" % (key, rank, chance.randrange(100))


class Workload(NamedTuple):
    """One kind of job. ``keys`` of ``pause_ms`` each are about the time that its reduces work, together.

    ``options`` are the task runner's. ``refused``: words of the reason with which its suspension is refused.
    """

    name: str
    reducer: str
    lines: Lines
    keys: int
    pause_ms: int
    reduces: int = 1
    group_fields: int = 0
    combiner: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    options: str = ""
    refused: str = ""
    compared: tuple[str, ...] = ("REDUCE_INPUT_GROUPS", "REDUCE_INPUT_RECORDS", "REDUCE_OUTPUT_RECORDS")

    @property
    def work_ms(self) -> int:
        return self.keys * self.pause_ms // self.reduces


TWO_FIELDS = (
    ("stream.num.map.output.key.fields", "2"),
    ("mapreduce.partition.keypartitioner.options", "-k1,1"),
)
WORKLOADS = {
    one.name: one
    for one in (
        Workload("sum", SUM, numbers, keys=160, pause_ms=20),
        Workload("slow", SUM, numbers, keys=45, pause_ms=80),
        Workload("buffering", BUFFERING, wide, keys=160, pause_ms=20),
        Workload("silent", SILENT, numbers, keys=80, pause_ms=40),
        Workload("long-lines", LONG, long_lines, keys=12, pause_ms=250),
        Workload("binary", BINARY, binary, keys=80, pause_ms=40),
        Workload("secondary", SECONDARY, secondary, keys=160, pause_ms=40, reduces=2, group_fields=1,
            settings=TWO_FIELDS),
        Workload("combiner", SUM_COMBINED, numbers, keys=160, pause_ms=40, reduces=2, combiner=COMBINE,
            settings=(("mapreduce.job.maps", "4"),),
            compared=("REDUCE_INPUT_GROUPS", "REDUCE_OUTPUT_RECORDS")),
        Workload("stateful", STATEFUL, numbers, keys=80, pause_ms=40, options=KEEPING),
        Workload("counting", COUNTING, numbers, keys=80, pause_ms=40),
        Workload("side-files", SIDE_FILES, numbers, keys=80, pause_ms=40, refused="side files would be lost"),
        Workload("elsewhere", ELSEWHERE, numbers, keys=80, pause_ms=40),
    )
}  # fmt: skip


def write_input(work: Workload, folder: Path, seed: str) -> Path:
    """Write a workload's input below ``folder`` and return it, in an order of its own."""
    chance = random.Random(seed)
    lines = list(work.lines(chance, work.keys))
    chance.shuffle(lines)
    source = folder / f"in-{work.name}"
    source.mkdir(parents=True)
    (source / "lines").write_bytes(b"\n".join(lines) + b"\n")
    return source


def job_of(
    work: Workload,
    source: Path,
    folder: Path,
    pause_ms: int | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> StreamingJob:
    """Return the job without the runner; output in ``folder/out``, log in ``folder/groups``."""
    folder.mkdir(parents=True)
    (folder / "reduce.py").write_text(PRELUDE + work.reducer)
    (folder / "combine.py").write_text(work.combiner)
    python = f"{sys.executable} -S"
    pause = work.pause_ms if pause_ms is None else pause_ms
    return StreamingJob(
        name=work.name,
        inputs=(str(source),),
        output=str(folder / "out"),
        mapper="cat",
        reducer=f"{python} reduce.py",
        combiner=f"{python} combine.py" if work.combiner else "",
        reduces=work.reduces,
        user="alice",
        queue="research",
        settings={
            "mapreduce.job.maps": "1",
            "mapreduce.reduce.speculative": "false",
            **dict(work.settings),
            **settings,
        },
        cmdenv={GROUP_LOG: str(folder / "groups"), PAUSE: str(pause),
            ELSEWHERE_AT: str(folder / "elsewhere")},
        files={name: str(folder / name) for name in ("reduce.py", "combine.py")},
    )  # fmt: skip
