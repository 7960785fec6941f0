"""The frameworks whose containers can leave by an order. A new one is a folder and a line here."""

from __future__ import annotations

from yarnctl.frameworks.flink.ordering import Flink
from yarnctl.frameworks.framework import Framework
from yarnctl.frameworks.mapreduce.ordering import MapReduce
from yarnctl.frameworks.spark.ordering import Spark
from yarnctl.hadoop.http.transport import Transport


def all_frameworks(masters: Transport) -> dict[str, Framework]:
    """Return all frameworks by kind; ``masters`` reaches applications behind YARN's web proxy."""
    found: tuple[Framework, ...] = (MapReduce(masters), Spark(masters), Flink(masters))
    return {each.KIND: each for each in found}
