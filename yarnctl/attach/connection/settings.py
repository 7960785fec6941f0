"""What an attached port is told: whose queues, where requests lie, what it may do, how much it may ask.

Law: the defaults observe and change nothing. Queues are named as ``views.Leaf`` names them: by the last
name where that is the only such leaf, otherwise by the path.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

import msgspec

from yarnctl.hadoop.resource_manager import same_queue


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one attached port; spans in ms.

    ``name_nodes``: every address (``host:port`` or URL) under which jobs may name the HDFS that the port
    writes to. ``store_root``: checkpoints must lie below it ("" anywhere in that HDFS). ``requests_owner``
    is who we are to that HDFS. ``instance`` names the daemon whose orders these are (see :meth:`name_of`).

    How much one look may cost: ``asks_max`` hurried and ``others_max`` other applications whose sizes are
    asked for, ``proofs_max`` jobs whose configuration is read, ``tasks_max`` attempts of one job,
    ``counters_max`` attempts whose counters are asked for,
    ``tracked_max`` applications whose containers are watched while orders are open, ``look_bytes`` of the
    files that lie in one task's folder.

    ``ahead_max``: how many containers of its first wave are foreseen for a hurried job whose master starts.

    What coming back costs as long as nothing has shown it: ``leave_ms`` from an order to the container's end,
    ``launch_ms`` from the grant of the next one to the attempt's start, ``start_ms`` its process's start,
    ``skip_ms`` and ``skip_bytes_per_ms`` its way to where it was. Each ``return_look_ms`` it is looked
    whether a suspended task is back.
    """

    preempting_queues: tuple[str, ...] = ("production",)
    preemptable_queues: tuple[str, ...] = ("research",)
    mode: Literal["queues", "deadlines"] = "queues"

    requests_root: str = "/yarnctl/requests"
    requests_owner: str = "yarnctl"
    store_root: str = ""
    name_nodes: tuple[str, ...] = ()
    instance: str = ""

    enforce: bool = False
    allow_kill: bool = False
    allow_priority: bool = False
    allow_queue_cap: bool = False
    predicted_max: int = 0

    asks_max: int = 50
    others_max: int = 20
    eligibility_reads_max: int = 8
    tasks_max: int = 500
    tracked_max: int = 64
    counters_max: int = 16
    calls_at_once: int = 8
    observation_bytes: int = 16 << 20

    suspend_ms: int = 2_000
    launch_ms: int = 1_500
    start_ms: int = 2_000
    skip_ms: int = 500
    skip_bytes_per_ms: int = 50_000
    resume_poll_ms: int = 3_000
    release_wait_margin_ms: int = 5_000
    stable_observations: int = 3
    configuration_age_ms: int = 60_000
    eligibility_retry_ms: int = 5_000
    quarantine_ms: int = 60_000
    attempt_poll_ms: int = 1_000
    terminal_state_wait_ms: int = 3_000

    def is_preempting(self, queue: str) -> bool:
        """Say whether a queue's applications may ask for room (with deadlines every one's may)."""
        return self.mode == "deadlines" or any(same_queue(queue, one) for one in self.preempting_queues)

    def is_preemptable(self, queue: str) -> bool:
        """Say whether a queue's applications may be asked for containers at all."""
        return any(same_queue(queue, one) for one in self.preemptable_queues)

    def name_of(self, order: str) -> str:
        """Return an order's name on the cluster, in requests and manifests: no other daemon uses it.

        A controller counts its orders from 1. A checkpoint that was made for another daemon, or for this one
        before its journal was lost, is thus never taken for an answer.
        """
        return f"{self.instance}-{order}" if self.instance else order

    def may_give(self, queue: str) -> bool:
        """Say whether a queue's applications may have to give (with deadlines every one's may)."""
        return self.mode == "deadlines" or self.is_preemptable(queue)

    @property
    def hosts(self) -> frozenset[str]:
        """Return ``host:port`` of every address of the HDFS, in lower case."""
        return frozenset(host_of(one) for one in self.name_nodes)


def host_of(address: str) -> str:
    """Return ``host:port`` of an address with or without a scheme."""
    return (urlsplit(address).netloc if "//" in address else address).rpartition("@")[2].lower()
