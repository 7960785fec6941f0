"""The replay: one server, with the prices that decide on a cluster.

A slow model of section 6.3, written anew for the tests, gives the same answers (research/tests/test_market_model.py).
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarn_research.market import from_finish
from yarn_research.market.priced_jobs import MarketOrder, PricedJobs
from yarnctl.deciding.admission.capacity import Profile
from yarnctl.deciding.admission.pricing.prices import curve, earliest_finish, standing, within
from yarnctl.deciding.admission.pricing.timeline import Due

if TYPE_CHECKING:
    from numpy.typing import NDArray

ONE = Profile((0,), (1,))


class Sold(NamedTuple):
    """The result of each job: its end, what it was promised, its slack, price, and which jobs waited."""

    ended_ms: NDArray[np.int64]
    deadline_ms: NDArray[np.int64]
    slack_ms: NDArray[np.int64]
    price: NDArray[np.float64]
    saw_tolerant: NDArray[np.bool_]


def nothing_sold(count: int) -> Sold:
    """Return columns to be filled."""
    return Sold(
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.float64),
        np.zeros(count, dtype=np.bool_),
    )


class Waiting(NamedTuple):
    """A job in the system, in the order in which it is served: by rank, then by arrival."""

    rank: int
    job: int


class Server:
    """One server and its queue; the first runs."""

    def __init__(self, jobs: PricedJobs, sold: Sold) -> None:
        self.jobs, self.sold = jobs, sold
        self.rest_ms = jobs.duration_ms.tolist()
        self.left_ms = jobs.estimate_ms.tolist()
        self.queue: list[Waiting] = []
        self.finishes_ms: dict[int, int] = {}
        self.now_ms = 0

    def advance(self, until_ms: int, preemptive: bool) -> None:
        """Serve until an instant."""
        while self.queue:
            first = self.queue[0].job
            ends_ms = self.now_ms + self.rest_ms[first]
            ran_ms = min(ends_ms, until_ms) - self.now_ms
            self.rest_ms[first] -= ran_ms
            self.left_ms[first] = max(0, self.left_ms[first] - ran_ms)
            self.now_ms += ran_ms
            if self.rest_ms[first]:
                return
            self.sold.ended_ms[first] = ends_ms
            del self.queue[0]
            if not preemptive and self.queue:
                self.queue[0] = self.queue[0]._replace(rank=-1)  # what has begun is not overtaken
        self.now_ms = until_ms


def replay(asked: MarketOrder, jobs: PricedJobs) -> Sold:
    """Replay the jobs under a scheduler."""
    sold = nothing_sold(len(jobs.arrived_ms))
    server = Server(jobs, sold)
    mean_ms = jobs.mean_ms
    for job, at_ms in enumerate(jobs.arrived_ms.tolist()):
        server.advance(at_ms, asked.scheduler == "mrm")
        waits = [each.job for each in server.queue[1:]]
        sold.saw_tolerant[job] = any(not jobs.sensitive[each] for each in waits)
        if asked.scheduler == "mrm":
            rank = _bought(server, job, asked, mean_ms)
        else:
            rank = _ranked(server, job, asked)
        insort(server.queue, Waiting(rank if server.queue or asked.scheduler == "mrm" else -1, job))
    server.advance(1 << 60, asked.scheduler == "mrm")
    return sold


def _bought(server: Server, job: int, asked: MarketOrder, mean_ms: float) -> int:
    """Let the user choose the earliest deadline within the budget; return it."""
    jobs, sold = server.jobs, server.sold
    dues = [Due(str(each.job), server.left_ms[each.job], 1, each.rank) for each in server.queue]
    runs = [dues[0].who] if dues and asked.readings.queue == "waiting" else []
    state = standing(ONE, dues, server.now_ms, mean_ms, runs)
    work_ms = int(jobs.estimate_ms[job])
    budget = (asked.alpha if jobs.sensitive[job] else asked.tolerant) * work_ms
    if asked.readings.slack_from == "finish":
        finishes_ms = [server.finishes_ms[int(who)] for who in state.who]
        server.finishes_ms[job] = earliest_finish(state, work_ms)
        point = from_finish.within(state, finishes_ms, work_ms, asked.kappa, budget)
    else:
        point = within(curve(state, work_ms, asked.kappa), budget)
    sold.deadline_ms[job], sold.slack_ms[job] = point.deadline_at_ms, point.slack_ms
    sold.price[job] = point.price
    return point.deadline_at_ms


def _ranked(server: Server, job: int, asked: MarketOrder) -> int:
    """Promise the end of what is ahead now, and of the job; return its class."""
    jobs, sold = server.jobs, server.sold
    rank = 1 if asked.scheduler == "priority" and not jobs.sensitive[job] else 0
    ahead_ms = sum(server.left_ms[each.job] for each in server.queue if each.rank <= rank)
    sold.deadline_ms[job] = server.now_ms + ahead_ms + int(jobs.estimate_ms[job])
    return rank
