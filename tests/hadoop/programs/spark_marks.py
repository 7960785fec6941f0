"""A Spark application whose every call of user code leaves a mark, in one of five shapes.

Arguments: the shape, a folder on this machine, how many maps and keys, the seconds of a map, of a key, how
many reduce tasks of RDDs share the keys (of SQL Spark's own setting says it), and where the result is
written. The folder has a file ``map-N``, ``key-PARTITION-N`` or ``again-N`` for each call, with a byte for
each time. Before the second use of what was made it makes ``pause-1`` and waits for a file ``go``. A file
``hurry`` lets keys take no time.

``groups``: a cached RDD and groupByKey; ``reduced``: the same and reduceByKey; ``sql``: a cached DataFrame
and an aggregation; ``join``: the same, two aggregations joined by sorting and merging; ``scan``: groupByKey
of what slow maps write, with nothing cached and nothing used twice. With adaptive execution off a key's
partition is the same in each attempt.
"""

import hashlib
import os
import sys
import time

from pyspark import StorageLevel, TaskContext  # type: ignore[import-not-found]  # it is on the nodes
from pyspark.sql import SparkSession  # type: ignore[import-not-found]
from pyspark.sql import functions as f

shape, folder, out = sys.argv[1], sys.argv[2], sys.argv[8]
MAPS, KEYS = (int(word) for word in sys.argv[3:5])
map_s, key_s = (float(word) for word in sys.argv[5:7])
REDUCES = int(sys.argv[7])


def mark(name):
    with open(os.path.join(folder, name), "ab", buffering=0) as file:
        file.write(b"x")


def marked_key(key):
    mark(f"key-{TaskContext.get().partitionId()}-{key}")
    time.sleep(0 if os.path.exists(os.path.join(folder, "hurry")) else key_s)


def slow_map(number):
    mark(f"map-{number}")
    time.sleep(map_s)
    return [(key, number * 1000 + key) for key in range(KEYS)]


def row_value(number):
    """A row's number is its map's times KEYS and its key; the first row of a map is slow."""
    if number % KEYS == 0:
        mark(f"map-{number // KEYS}")
        time.sleep(map_s)
    return number // KEYS * 1000 + number % KEYS


def slow_sum(key, total):
    marked_key(key)
    return total


def slow_group(pair):
    marked_key(pair[0])
    return pair[0], hashlib.md5(str(sorted(pair[1])).encode()).hexdigest()


def slow_total(pair):
    return pair[0], slow_sum(*pair)


def again(pairs):
    mark(f"again-{pairs[0][1]}")
    return len(pairs)


def pause():
    mark("pause-1")
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.1)


def with_rdds(context):
    base = context.parallelize(range(MAPS), MAPS).map(slow_map).persist(StorageLevel.MEMORY_AND_DISK)
    base.count()
    pairs = base.flatMap(lambda held: held)
    if shape == "groups":
        shuffled, slow = pairs.groupByKey(REDUCES), slow_group
    else:
        shuffled, slow = pairs.reduceByKey(lambda one, other: one + other, REDUCES), slow_total
    found = sorted(shuffled.map(slow).collect())
    pause()
    return found, shuffled.count(), base.map(again).sum()


def with_scan(context):
    pairs = context.parallelize(range(MAPS), MAPS).flatMap(slow_map)
    return sorted(pairs.groupByKey(REDUCES).map(slow_group).collect()), KEYS, MAPS * KEYS


def cached(session, name):
    value = f.udf(row_value, "long").asNondeterministic()
    rows = session.range(0, MAPS * KEYS, 1, MAPS)
    made = rows.select((f.col("id") % KEYS).alias("key"), value("id").alias(name))
    return made.persist(StorageLevel.MEMORY_AND_DISK)


def with_frames(session):
    left = cached(session, "value")
    left.count()
    slow = f.udf(slow_sum, "long").asNondeterministic()
    if shape == "sql":
        summed = left.groupBy("key").agg(f.sum("value").alias("total"))
    else:
        right = left.groupBy("key").agg(f.count("value").alias("count")).hint("merge")
        summed = left.groupBy("key").agg(f.sum("value").alias("value")).join(right, "key")
        summed = summed.select("key", (f.col("value") + f.col("count")).alias("total"))
    rows = summed.select("key", slow("key", "total").alias("total")).collect()
    pause()
    return sorted((row["key"], row["total"]) for row in rows), KEYS, left.count()


spark = SparkSession.builder.getOrCreate()
if shape == "scan":
    result = with_scan(spark.sparkContext)
else:
    result = with_rdds(spark.sparkContext) if shape in ("groups", "reduced") else with_frames(spark)
digest = hashlib.md5(repr(result).encode()).hexdigest()
with open(out + ".part", "w") as file:
    file.write(digest)
os.rename(out + ".part", out)
spark.stop()
