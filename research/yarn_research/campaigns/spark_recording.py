"""What a real driver of Spark answers in the middle of a stage: recorded for the tests of its records.

``python -m yarn_research.campaigns.spark_recording FILE`` starts a Hadoop and an application, and writes FILE.

Law: what names the machine is left out: of the settings only those of ``KEPT`` are kept, and paths begin at
the project's folder.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.contract.drivers import answers
from tests.hadoop.artifacts import SPARK
from tests.hadoop.attached import prepare
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, SparkJob

PROJECT = Path(__file__).parents[3]
KEPT = (
    *("spark.decommission.", "spark.storage.decommission.", "spark.executor.decommission."),
    *("spark.executorEnv.BASH_ENV", "spark.app.startTime", "spark.yarn.tags", "spark.executor.cores"),
)


def kept(found: dict[str, Any]) -> dict[str, Any]:
    """Return answers with those settings alone that name no machine."""
    pairs = found["environment"]["sparkProperties"]
    return found | {"environment": {"sparkProperties": [pair for pair in pairs if pair[0].startswith(KEPT)]}}


def main(arguments: Sequence[str]) -> int:
    """Record, and write the file."""
    (output,) = arguments
    with (
        tempfile.TemporaryDirectory(prefix="yarnctl-spark-") as folder,
        Cluster(SHAPE, Path(folder) / "hadoop") as cluster,
    ):
        prepare(cluster)
        with SparkJob(cluster, Path(folder) / "spark") as job:
            job.until_marked("key", 20)
            found = kept(answers(job.driver))
    told = {"spark": SPARK["pyspark"], "application": job.name, "answers": found}
    text = json.dumps(told, indent=1).replace(f"{PROJECT}/", "")
    Path(output).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
