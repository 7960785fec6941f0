"""Recorded run times: tables of others, one application under many configurations; packaged or read in place.

Law: a reader depends on its table's columns and nothing else; censored rows (not completed, or cut off at
600 s) are left out. Rows of one configuration share a number, so that a split never parts repetitions.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

CUT_OFF_S = 600.0
"""Where the lynceus tables end a training."""

INSTANCES = {
    "small": (1, 2.0),
    "medium": (2, 4.0),
    "large": (2, 8.0),
    "xlarge": (4, 16.0),
    "2xlarge": (8, 32.0),
}
MEMORY = {"c4": 3.75 / 8, "r4": 15.25 / 8}
"""vCPUs and GiB of EC2 types by size; the families c4 and r4 have less and more memory."""


RowReader = Callable[[dict[str, str]], tuple[list[float], float] | None]
_COLUMNS = "the tables have the columns that research/yarn_research/data/runtimes/README.md names"
PACKAGED = Path(__file__).parents[1] / "data" / "runtimes"
"""Those whose licence allows it: scout and Bell (the README beside them)."""


class Table(NamedTuple):
    """One recorded table: features by row, durations in seconds, and the number of the configuration."""

    name: str
    features: NDArray[np.float64]
    duration_s: NDArray[np.float64]
    configuration: NDArray[np.int64]


def source_note(folder: Path | None, known: list[Table]) -> str:
    """Say which tables were read."""
    if folder is not None:
        return f"{len(known)} tables of --runtimes"
    return f"{len(known)} packaged tables (scout, Bell); --runtimes names a folder with others"


def tables(folder: Path | None) -> list[Table]:
    """Read every table below a folder (None: the packaged ones); raises BadInput where there is none."""
    folder = folder or PACKAGED
    readers: dict[str, RowReader] = {
        "bell/*.csv": _bell,
        "c3o/*.tsv": _c3o,
        "scout/*.csv": _scout,
        "lynceus/*.csv": _lynceus,
    }
    found = [
        _table(path, reader) for pattern, reader in readers.items() for path in sorted(folder.glob(pattern))
    ]
    if not found:
        remedy = "name a folder with the tables of scout, bell, c3o or lynceus"
        raise BadInput(f"--runtimes {folder}", "holds no recorded run times", remedy)
    return found


def _table(path: Path, reader: RowReader) -> Table:
    read = (_run(f"{path}:{line}", told, reader) for line, told in enumerate(_rows(path), 2))
    rows = [each for each in read if each is not None]
    if not rows:
        raise BadInput(str(path), "has no run that was finished", _COLUMNS)
    numbers: dict[tuple[float, ...], int] = {}
    configuration = [numbers.setdefault(tuple(features), len(numbers)) for features, _ in rows]
    return Table(
        f"{path.parent.name}/{path.stem}",
        np.array([features for features, _ in rows]),
        np.array([duration_s for _, duration_s in rows]),
        np.array(configuration),
    )


def _run(where: str, told: dict[str, str], reader: RowReader) -> tuple[list[float], float] | None:
    """Return one row's features and duration; None for one that was cut off."""
    try:
        found = reader(told)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadInput(where, f"is not a row of this table ({error!r})", _COLUMNS) from None
    if found is not None and not (found[1] > 0 and all(map(math.isfinite, (*found[0], found[1])))):
        raise BadInput(where, "has a number that is not finite, or a run time that is not above 0", _COLUMNS)
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(str(path), f"cannot be read ({type(error).__name__})", _COLUMNS) from None


def _bell(row: dict[str, str]) -> tuple[list[float], float]:
    return [float(row["Nodes"])], float(row["Runtime"]) / 1000


def _c3o(row: dict[str, str]) -> tuple[list[float], float]:
    left_out = {"machine_type", "gross_runtime"}
    features = [float(value) for name, value in row.items() if name not in left_out]
    return features, float(row["gross_runtime"])


def _scout(row: dict[str, str]) -> tuple[list[float], float] | None:
    if row["completed"] != "true":
        return None
    sizes = {"small": 0.0, "large": 1.0, "huge": 2.0, "bigdata": 3.0}
    return [float(row["nodes"]), *_instance(row["instance_type"]), sizes[row["size"]]], float(
        row["elapsed_s"]
    )


def _lynceus(row: dict[str, str]) -> tuple[list[float], float] | None:
    duration_s = float(row["training_time"])
    if duration_s >= CUT_OFF_S:
        return None
    workers = float(row["n_workers"])
    learning = -np.log10(float(row["learning_rate"]))
    asynchronous = float(row["synchronism"] == "async")
    return (
        [workers, learning, float(row["batch_size"]), asynchronous, *_instance(row["vm_flavor"])],
        duration_s,
    )


def _instance(name: str) -> tuple[float, float]:
    family, _, size = name.partition(".")
    cores, memory = INSTANCES[size]
    return float(cores), memory * MEMORY.get(family, 1.0)


class Repeated(NamedTuple):
    """Jobs that ran several times alike: duration, and mean and s.d. of the configuration's other runs."""

    duration: NDArray[np.float64]
    mean: NDArray[np.float64]
    stdev: NDArray[np.float64]


def repeated(found: list[Table]) -> Repeated:
    """Return every row with at least three other runs, each table in units of its mean duration."""
    columns: list[tuple[float, float, float]] = []
    for table in found:
        scaled = table.duration_s / table.duration_s.mean()
        for number in range(int(table.configuration.max()) + 1):
            alike = scaled[table.configuration == number]
            if len(alike) < 4:
                continue
            for place, each in enumerate(alike):
                others = np.delete(alike, place)
                columns.append((float(each), float(others.mean()), float(others.std(ddof=1))))
    return Repeated(*(np.array(column) for column in zip(*columns, strict=True)))
