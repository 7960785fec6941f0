"""Small jobs of four kinds, and what is kept of each that has run: one line of a file.

Law: the set follows from its seed. A file of rows belongs to one set (its first line says which): each job
that has ended is a line at once, and is not run again. A line that the end of a program cut short is dropped;
anything else that does not fit is refused by its number, and the file stays as it is.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from yarn_research.market.job_features import JobFeatures, RecordedRun, features_of
from yarnctl.errors import BadInput

Type = Literal["wordcount", "pi", "grep", "sort"]
TYPES: tuple[Type, ...] = get_args(Type)
MAPS, REDUCES = (1, 2, 3, 4), (1, 2)
PI_STEPS = (1, 2, 4)
KEPT_PERCENT = {"grep": (0.1, 100), "sort": (100, 100)}
"""What loadgen keeps of the records after the maps and after the reduces (MRM section 6.1)."""


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is chosen beforehand. ``block_bytes``: text for each map; ``samples``: the fewest of a pi map."""

    jobs: int = 128
    seed: int = 1
    at_once: int = 2
    block_bytes: int = 16 << 20
    blocks: int = 6
    samples: int = 5_000_000

    def checked(self) -> Terms:
        """Return these terms; raises BadInput where no set follows from them."""
        if self.jobs < 2 * len(TYPES) or self.jobs % len(TYPES):
            raise BadInput(
                "--jobs", f"{self.jobs} must be a multiple of {len(TYPES)}, at least {2 * len(TYPES)}"
            )
        if self.at_once < 1:
            raise BadInput("--at-once", f"{self.at_once} is less than 1")
        return self


class SmallJob(NamedTuple):
    """One job: ``blocks`` of the text that its maps read; ``samples`` of each map of pi."""

    name: str
    type: Type
    maps: int
    reduces: int
    blocks: tuple[int, ...] = ()
    samples: int = 0


class Task(NamedTuple):
    """One task: ``MAP`` or ``REDUCE``, instants in ms since 1970."""

    type: str
    started_at_ms: int
    finished_at_ms: int


class EstimateRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One job that has ended: instants in ms since 1970, by YARN (``elapsed_ms``) and by the history server.

    ``attempts_lost``: attempts at its tasks that failed or were killed. ``load_before``: the machine's.
    """

    name: str
    type: Type
    maps: int
    reduces: int
    samples: int
    state: str
    application: str
    elapsed_ms: int
    started_at_ms: int
    finished_at_ms: int
    attempts_lost: int
    tasks: tuple[Task, ...]
    counters: dict[str, int]
    load_before: tuple[float, ...]
    load_after: tuple[float, ...]

    @property
    def features(self) -> JobFeatures:
        """MRM's four features, from the counters."""
        return features_of(self.maps, self.reduces, self.counters)

    @property
    def map_ms(self) -> int:
        """From the start of the first map to the end of the last."""
        maps = [task for task in self.tasks if task.type == "MAP"]
        return max(task.finished_at_ms for task in maps) - min(task.started_at_ms for task in maps)

    @property
    def reduce_ms(self) -> int:
        """From the end of the last map to the job's: shuffle, reduces and commit."""
        return self.finished_at_ms - max(task.finished_at_ms for task in self.tasks if task.type == "MAP")

    @property
    def recorded(self) -> RecordedRun:
        """The run as models are given it."""
        return RecordedRun(self.features, self.map_ms, self.reduce_ms, self.attempts_lost)


def small_jobs(terms: Terms) -> tuple[SmallJob, ...]:
    """Return the set: as many of each kind, maps and reduces evenly, in an order that is drawn."""
    chance = random.Random(f"estimates-{terms.seed}")
    found = []
    for kind in TYPES:
        shapes = itertools.cycle(itertools.product(MAPS, REDUCES))
        for number, (maps, reduces) in zip(range(terms.jobs // len(TYPES)), shapes, strict=False):
            name = f"{kind}-{number:03d}"
            if kind == "pi":
                found.append(SmallJob(name, kind, maps, 1, (), terms.samples * chance.choice(PI_STEPS)))
            else:
                blocks = tuple(sorted(chance.sample(range(terms.blocks), maps)))
                found.append(SmallJob(name, kind, maps, reduces, blocks))
    chance.shuffle(found)
    return tuple(found)


def block_of(terms: Terms, number: int) -> bytes:
    """Return one block of text: lines of ten words, some frequent and most rare."""
    chance = random.Random(f"text-{terms.seed}-{number}")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5000)]
    weights = list(itertools.accumulate(1 / place for place in range(1, len(words) + 1)))
    lines: list[str] = []
    size = 0
    while size < terms.block_bytes:
        lines.append(" ".join(chance.choices(words, cum_weights=weights, k=10)))
        size += len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()[: terms.block_bytes]


class RowsFile:
    """The file of rows of one set. ``head`` is what its first line says; opening writes it where it is new.

    Raises BadInput where the file holds another set, or a line that cannot be read.
    """

    def __init__(self, path: Path, terms: Terms, head: Mapping[str, Any]) -> None:
        self.path = path
        self.head: dict[str, Any]
        self.rows: list[EstimateRow] = []
        known = {job.name: job for job in small_jobs(terms)}
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = [line for line in lines if line.endswith(b"\n")]
        if not whole:
            self.head = {**head, "terms": msgspec.to_builtins(terms)}
            self._write(self.head, "wb")
            return
        self.head = self._read(whole[0], dict[str, Any], 1)
        if self.head.get("terms") != msgspec.to_builtins(terms):
            told = f"holds another set: {msgspec.json.encode(self.head.get('terms')).decode()[:300]}"
            raise BadInput(str(path), told, "name another file with --rows, or give the same options")
        for number, line in enumerate(whole[1:], 2):
            row = self._read(line, EstimateRow, number)
            job = known.pop(row.name, None)
            if job is None or (row.type, row.maps, row.reduces) != (job.type, job.maps, job.reduces):
                told = f"line {number}: {row.name!r} is not of this set, or stands here twice"
                raise BadInput(str(path), told, "name another file with --rows")
            self.rows.append(row)
        if len(whole) < len(lines):
            with path.open("r+b") as file:
                file.truncate(sum(map(len, whole)))

    def add(self, row: EstimateRow) -> None:
        """Append a row; it is on the disk when this returns."""
        self._write(row, "ab")
        self.rows.append(row)

    def left(self, jobs: Sequence[SmallJob]) -> list[SmallJob]:
        """Return the jobs that have no row, in order."""
        done = {row.name for row in self.rows}
        return [job for job in jobs if job.name not in done]

    def _read(self, line: bytes, kind: type[Any], number: int) -> Any:
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            told = f"line {number} is not a row of results: {error}"
            raise BadInput(str(self.path), told, "name another file with --rows") from error

    def _write(self, what: Any, mode: str) -> None:
        with self.path.open(mode) as file:
            file.write(msgspec.json.encode(what) + b"\n")
            file.flush()
            os.fsync(file.fileno())
