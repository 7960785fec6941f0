"""An application of Spark whose tasks sleep: ``spark_sleep.py TASKS SECONDS``; it fails if one is missing."""

import sys
import time

from pyspark.sql import SparkSession  # type: ignore[import-not-found]  # it is on the nodes


def main():
    """Run the tasks, and compare what they return."""
    tasks, task_s = int(sys.argv[1]), float(sys.argv[2])

    def work(number):
        time.sleep(task_s)
        return number * number

    spark = SparkSession.builder.getOrCreate()
    found = spark.sparkContext.parallelize(range(tasks), tasks).map(work).sum()
    spark.stop()
    if found != sum(number * number for number in range(tasks)):
        sys.exit(f"wrong: {found}")


if __name__ == "__main__":
    main()
