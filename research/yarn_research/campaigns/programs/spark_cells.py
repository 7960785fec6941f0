"""A session of PySpark: for each file ``cell-K`` in a folder it writes ``result-K``; a file ``end`` ends it.

``spark_cells.py FOLDER``. Each cell reads what one shuffle wrote at the session's begin, and makes another.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession  # type: ignore[import-not-found]  # it is on the nodes


def joined(pairs):
    return ",".join(sorted(f"{key}:{total}" for key, total in pairs))


def slow(number):
    time.sleep(1)
    return number


def main():
    """Compute cells until the end."""
    folder = Path(sys.argv[1])
    context = SparkSession.builder.getOrCreate().sparkContext
    pairs = context.parallelize(range(20), 20).flatMap(lambda n: [(key, n * 1000 + key) for key in range(40)])
    kept = pairs.groupByKey(20).mapValues(sum)
    cell = 1
    while not (folder / "end").exists():
        if not (folder / f"cell-{cell}").exists():
            time.sleep(0.1)
            continue
        number = cell
        fresh = context.parallelize(range(200), 20).map(lambda n, number=number: (n % 7, n * number))
        wait = context.parallelize(range(20), 20).map(slow).sum()
        told = (
            f"{joined(kept.collect())} {joined(fresh.reduceByKey(lambda a, b: a + b, 20).collect())} {wait}"
        )
        (folder / f"part-{cell}").write_text(told)
        (folder / f"part-{cell}").rename(folder / f"result-{cell}")
        cell += 1
    context.stop()


if __name__ == "__main__":
    main()
