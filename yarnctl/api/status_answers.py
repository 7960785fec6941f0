"""The answer with the daemon's state on one screen."""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.api.cluster_answers import ChangeOut, ClusterOut, Loop
from yarnctl.api.order_answers import BudgetOut
from yarnctl.api.paged import Count


class StatusOut(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon now.

    ``leads``: whether it has the lock (null: it only observes, and needs none). ``lock``: where the lock is
    ("": none is needed); ``leader``: the other daemon that has it, with its host ("": none was seen).
    ``changes``: what it lowered and has not restored. ``pending``: containers that production requests.
    """

    yarnctl: str
    now_ms: int
    loop: Loop
    leads: bool | None
    lock: Literal["", "hdfs", "zookeeper"]
    leader: str
    cluster: ClusterOut | None
    pending: Count
    open_orders: Count
    changes: list[ChangeOut]
    budgets: list[BudgetOut]
