"""A streaming query from the rate source to files: ``spark_rate.py FOLDER ROWS_PER_S TRIGGER_S PARTITIONS``.

It writes each batch's progress as a line of JSON to ``FOLDER/progress``, and ends when ``FOLDER/end`` is there.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession  # type: ignore[import-not-found]  # it is on the nodes
from pyspark.sql import functions as f


def slow(value):
    time.sleep(0.01)
    return value


def main():
    """Run the query until the end."""
    folder, rows_per_s, trigger_s, partitions = Path(sys.argv[1]), *(int(word) for word in sys.argv[2:5])
    spark = SparkSession.builder.getOrCreate()
    source = spark.readStream.format("rate").option("rowsPerSecond", rows_per_s)
    rows = source.option("numPartitions", partitions).load().repartition(partitions, f.col("value"))
    query = (
        rows.select(f.udf(slow, "long")("value").alias("value"))
        .writeStream.format("json")
        .option("path", f"file://{folder}/out")
        .option("checkpointLocation", f"file://{folder}/checkpoint")
        .trigger(processingTime=f"{trigger_s} seconds")
        .start()
    )
    told = -1
    with (folder / "progress").open("a") as out:
        while not (folder / "end").exists():
            for each in query.recentProgress:
                if each["batchId"] > told and each["numInputRows"]:
                    out.write(json.dumps({"batch": each["batchId"], "at": each["timestamp"], "rows":
                        each["numInputRows"], "took_ms": each["durationMs"]["triggerExecution"]}) + "\n")  # fmt: skip
                    told = each["batchId"]
            out.flush()
            if query.exception() is not None:
                sys.exit(f"the query ended: {query.exception()}")
            time.sleep(0.2)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
