"""Which runs the soak of Spark plays: every combination in a drawn order, and how many executors leave.

Law: pure; the plan is research/notes/spark.md's, and the same for everyone. Signal: one to three of four executors
leave; plugin: one to all four, and then to fallback storage (the job is suspended whole).
"""

from __future__ import annotations

import random
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

from tests.hadoop.spark_draining import Program, Work, event_log_in
from yarnctl.frameworks.spark.configuration import Route

EXECUTORS = 4
MAPS, KEYS, MAP_S, KEY_S = 12, 24, 0.4, 1.2
TASKS_BEGUN = 5
"""In a stage the order is given when so many of its tasks have begun: then the first have ended."""

Mode = Literal["client", "cluster"]
Allocation = Literal["static", "dynamic"]
When = Literal["between", "within"]


class Planned(NamedTuple):
    """One run; ``leaving`` executors are asked at once (0: an undisturbed run)."""

    number: int
    program: Program
    mode: Mode
    allocation: Allocation
    route: Route
    when: When
    leaving: int

    @property
    def is_whole(self) -> bool:
        """Whether all executors leave."""
        return self.leaving == EXECUTORS

    @property
    def work(self) -> Work:
        """What the application computes."""
        return Work(self.program, MAPS, KEYS, MAP_S, KEY_S)


def planned() -> list[Planned]:
    """Return all runs in their order: 64 with an order, and four undisturbed ones."""
    draws = random.Random("spark-soak")
    every: list[tuple[Any, ...]] = list(product(*map(get_args, (Program, Mode, Allocation, Route, When))))
    draws.shuffle(every)
    found: list[Planned] = []
    for row in every:
        most = EXECUTORS if row[3] == "plugin" else EXECUTORS - 1
        found.append(Planned._make((len(found) + 1, *row, draws.randint(1, most))))
    for program, mode in zip(get_args(Program), get_args(Mode) * 2, strict=True):
        found.append(Planned(len(found) + 1, program, mode, "static", "plugin", "between", 0))
    return found


def settings_of(run: Planned, events: str) -> list[str]:
    """Return the settings of a run's application; ``events``: a folder for its event log."""
    found = event_log_in(events)
    if run.allocation == "dynamic":
        found += [
            "spark.dynamicAllocation.enabled=true",
            "spark.dynamicAllocation.shuffleTracking.enabled=true",
            "spark.dynamicAllocation.minExecutors=1",
            f"spark.dynamicAllocation.initialExecutors={EXECUTORS}",
            f"spark.dynamicAllocation.maxExecutors={EXECUTORS}",
        ]
    return found
