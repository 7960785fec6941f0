"""A Spark application whose every call of user code leaves a mark: cached maps, a grouping, the cache again.

Arguments: a folder on this machine, the seconds of a map, of a key, and where the result is written. The
folder has a file ``map-N``, ``key-N`` or ``again-N`` for each call, with a byte for each time; ``stage-NAME``
tells what has begun.
"""

import hashlib
import os
import sys
import time

from pyspark import StorageLevel  # type: ignore[import-not-found]  # it is on the nodes
from pyspark.sql import SparkSession  # type: ignore[import-not-found]

MAPS, KEYS = 24, 72
folder, map_s, key_s, out = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]


def mark(kind, number):
    with open(os.path.join(folder, f"{kind}-{number}"), "ab", buffering=0) as file:
        file.write(b"x")


def slow_map(number):
    mark("map", number)
    time.sleep(map_s)
    return [(key, number * 1000 + key) for key in range(KEYS)]


def slow_key(pair):
    mark("key", pair[0])
    time.sleep(key_s)
    return pair[0], hashlib.md5(str(sorted(pair[1])).encode()).hexdigest()


def again(pairs):
    mark("again", pairs[0][1])
    return len(pairs)


spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
base = context.parallelize(range(MAPS), MAPS).map(slow_map).persist(StorageLevel.MEMORY_AND_DISK)
base.count()
mark("stage", "keys")
grouped = sorted(base.flatMap(lambda pairs: pairs).groupByKey(MAPS).map(slow_key).collect())
mark("stage", "again")
total = base.map(again).sum()
digest = hashlib.md5(repr((grouped, total)).encode()).hexdigest()
with open(out + ".part", "w") as file:
    file.write(digest)
os.rename(out + ".part", out)
spark.stop()
