"""The applications that are placed on a real Hadoop: input, APP.toml, and whether an output is right.

Law: pure, and the input follows from its seed. An output is judged by what it says (a word count against one
made here, lines against the lines that hold the pattern, pi against its value), not by how the run ended.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal, NamedTuple, get_args

import msgspec

Name = Literal["wordcount", "grep", "pi"]
NAMES: tuple[Name, ...] = get_args(Name)
SIZES = (1, 2)
FILES = 6
"""Files of each input, a task each: as many for one container as for two and three."""
FILE_KIB = 512
"""Text of a file for each step of size."""
RATE_KIB = 24
"""KiB a second that a task of wordcount and grep reads: a file of size 1 takes 21 s."""
SAMPLES = 150_000_000
"""Points of a task of pi for each step of size."""
PI_TOLERANCE = 0.001
"""The standard error of 900 million points is 0.00005."""
VOCABULARY, WORDS_A_LINE = 5_000, 10
SEED = 1
PATTERN = "ka"
"""What grep looks for: some fifth of the lines have it."""


class PlacedApplication(NamedTuple):
    """An application of some size."""

    name: Name
    size: int

    def __str__(self) -> str:
        return f"{self.name}-{self.size}"

    @property
    def features(self) -> dict[str, float]:
        """What is known of it before a run."""
        if self.name == "pi":
            return {"million_samples": FILES * self.size * SAMPLES / 1e6}
        return {"input_mib": FILES * self.size * FILE_KIB / 1024}

    @property
    def folder(self) -> str:
        """The last part of its input's folder; wordcount and grep read the same text."""
        return f"tasks-{self.size}" if self.name == "pi" else f"text-{self.size}"


def applications(names: Sequence[Name] = NAMES, sizes: Sequence[int] = SIZES) -> list[PlacedApplication]:
    return [PlacedApplication(name, size) for name in names for size in sizes]


@cache
def input_files(folder: str) -> tuple[bytes, ...]:
    kind, _, size = folder.partition("-")
    if kind == "tasks":
        return tuple(f"{task} {int(size) * SAMPLES}\n".encode() for task in range(FILES))
    return tuple(_text(int(size) * FILE_KIB << 10, f"{folder}-{number}") for number in range(FILES))


def _text(size: int, seed: str) -> bytes:
    """Return lines of words, some frequent and most rare, of about this many bytes."""
    known, weights = _vocabulary()
    chance = random.Random(f"placement-{SEED}-{seed}")
    lines, held = list[str](), 0
    while held < size:
        lines.append(" ".join(chance.choices(known, cum_weights=weights, k=WORDS_A_LINE)))
        held += len(lines[-1]) + 1
    return ("\n".join(lines) + "\n").encode()


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    chance = random.Random(f"placement-{SEED}")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(VOCABULARY)]
    return words, list(itertools.accumulate(1 / place for place in range(1, VOCABULARY + 1)))


@cache
def expected(application: PlacedApplication) -> Counter[str]:
    """Return the lines of a right output, each with how often; not of pi."""
    lines = b"".join(input_files(application.folder)).decode().splitlines()
    if application.name == "grep":
        return Counter(line for line in lines if PATTERN in line)
    counts = Counter(word for line in lines for word in line.split())
    return Counter(f"{word}\t{count}" for word, count in counts.items())


def is_right(application: PlacedApplication, lines: Iterable[str]) -> bool:
    """Say whether these are the lines of a right output, in any order."""
    if application.name != "pi":
        return Counter(lines) == expected(application)
    told = dict[str, int]()
    for line in lines:
        key, tab, value = line.partition("\t")
        if not tab or not value.isdecimal() or key in told:
            return False
        told[key] = int(value)
    if set(told) != {"inside", "total"} or told["total"] != FILES * application.size * SAMPLES:
        return False
    return abs(4 * told["inside"] / told["total"] - math.pi) <= PI_TOLERANCE


def application_toml(application: PlacedApplication, commands: Mapping[str, Sequence[str]]) -> str:
    def written(value: object) -> str:
        return msgspec.json.encode(value).decode()

    features = ", ".join(f"{name} = {value:g}" for name, value in application.features.items())
    sections = [f"[{kind}]\ncommand = {written(list(words))}\n" for kind, words in commands.items()]
    return f"name = {written(application.name)}\nfeatures = {{ {features} }}\n{''.join(sections)}"
