"""A Spark application that uses processors and shuffles: sums of hashes, by key, a few times over.

Arguments: how many rows, how often. It prints one number.
"""

import sys

from pyspark.sql import SparkSession  # type: ignore[import-not-found]  # it is on the nodes

rows, times = int(sys.argv[1]), int(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
total = 0
for number in range(times):
    found = spark.range(0, rows, 1, 8).selectExpr("id % 100000 AS key", f"hash(id, {number}) AS value")
    found.createOrReplaceTempView("found")
    summed = spark.sql("SELECT key, sum(value) AS value FROM found GROUP BY key")
    total += summed.selectExpr("sum(value % 1000)").collect()[0][0]
print(total)
spark.stop()
