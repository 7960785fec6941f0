"""Attaching: from a configuration to a port, with bounds that suit a loop of a few hundred ms.

Law: nothing is sent here. A master that hangs must not keep the loop waiting for long, so calls of the
loop are bounded tighter than those of single commands, and are not repeated inside the client.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yarnctl.attach.connection.settings import Attachment
from yarnctl.attach.observing.predicted_demand import FirstAsksOf
from yarnctl.attach.port import AttachedPort
from yarnctl.config import Cluster
from yarnctl.hadoop.app_master import AppMaster
from yarnctl.hadoop.http.session import Limits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs

MASTER_BYTES = 64 << 20
HDFS_BYTES = 32 << 20
"""Of a listing of a folder that belongs to a job's owner (some 100,000 files), and of one small file."""


def loop_limits(limits: Limits) -> Limits:
    """Return bounds for calls of the loop: no repeats, 5 s for an answer at most."""
    return msgspec.structs.replace(
        limits,
        connect_ms=min(limits.connect_ms, 2_000),
        silence_ms=min(limits.silence_ms, 4_000),
        answer_ms=min(limits.answer_ms, 5_000),
        retries=0,
    )


def hdfs_limits(limits: Limits) -> Limits:
    """Return bounds for the loop's calls to HDFS."""
    return msgspec.structs.replace(loop_limits(limits), answer_bytes=HDFS_BYTES)


def attach(
    cluster: Cluster,
    attachment: Attachment,
    clock: Callable[[], int],
    first_asks: FirstAsksOf = lambda _: (),
) -> AttachedPort:
    """Return a port onto ``cluster``; ``name_nodes`` of both count as addresses of its HDFS."""
    limits = loop_limits(cluster.limits)
    manager = Transport(cluster.resource_managers, cluster.identity, limits, ca_file=cluster.ca_file)
    masters = Transport(
        cluster.resource_managers,
        cluster.identity,
        msgspec.structs.replace(limits, answer_bytes=MASTER_BYTES),
        ca_file=cluster.ca_file,
    )
    hdfs = None
    if cluster.name_nodes:
        bounds = hdfs_limits(cluster.limits)
        hdfs = WebHdfs(cluster.name_nodes, cluster.identity, bounds, bulk=bounds, ca_file=cluster.ca_file)
    known = tuple(dict.fromkeys([*attachment.name_nodes, *cluster.name_nodes]))
    told = msgspec.structs.replace(attachment, name_nodes=known)
    return AttachedPort(
        ResourceManager(manager), lambda name: AppMaster(masters, name), hdfs, told, clock, first_asks
    )
