"""The case: all inputs of one selection of victims, and the choice itself.

Law: :func:`yarnctl.deciding.selector.choose` reads a case and the settings and nothing else. A candidate that
was never at the head of an order has no effect: of the tasks, those picked, removed again and shown suffice.
Jobs are in the order of their ids; no set is ever iterated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.levers import AwaitedTask, LeverPull
from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies import JobUsage
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.waiting_worth import NO_PRICE, SecondPrice
from yarnctl.units import Resources


class Need(NamedTuple):
    """A shortfall: ``containers`` of one size, each on one node."""

    size: Resources
    containers: int


class Candidate(NamedTuple):
    """One running job that may have to give containers.

    ``budget`` is how many more of its tasks may be under order at once; ``task_size`` is used
    as its tasks' size until they have been observed. ``given``: how many its queue gives of it, which limits
    every lever (None: no limit).
    """

    usage: JobUsage
    used: Resources
    budget: int
    task_size: Resources
    given: int | None = None

    @property
    def giving(self) -> int:
        """How many containers may be taken of it, whatever the lever."""
        return self.usage.releasable if self.given is None else min(self.usage.releasable, self.given)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The shortfalls, and the jobs and tasks that may be stopped for them.

    ``free`` is the capacity per node that is not forecast to be assigned. ``tasks`` has an entry per job
    whose tasks have been observed. ``barred`` maps attempts, ``closed`` applications, to the reason for their
    exclusion; ``reserved`` maps nodes to the other applications whose reservation would be given the
    capacity. ``second``: the price of each ms until a requested container is free.
    """

    number: int
    now_ms: int
    total: Resources
    needs: tuple[Need, ...]
    free: Mapping[str, Resources]
    jobs: tuple[Candidate, ...]
    tasks: Mapping[str, tuple[TaskView, ...]]
    barred: Mapping[str, Reason] = {}
    closed: Mapping[str, Reason] = {}
    reserved: Mapping[str, str] = {}
    second: SecondPrice = NO_PRICE


class Pick(NamedTuple):
    """One task to stop, with the keys that put it first.

    ``serves`` counts the requests that this pick completes (0: another pick on the node does);
    ``request_size`` is the size of the first of them, further ones may be smaller.
    """

    application: str
    task: TaskView
    job_key: tuple[int, ...]
    task_key: tuple[int, ...]
    request_size: Resources
    serves: int


class RefusedJob(NamedTuple):
    """A job that was not picked from (again), its key at the end, and why."""

    application: str
    key: tuple[int, ...]
    why: Reason


class RefusedTask(NamedTuple):
    """A task of a picked job that was not picked: its key, why, and its node."""

    application: str
    attempt: str
    key: tuple[int, ...]
    why: Reason
    container: str = ""
    node: str = ""


class Choice(msgspec.Struct, frozen=True):
    """The result for a case.

    ``missing`` names jobs whose tasks must be observed first: if there are any, the picks are
    provisional. ``hit`` names the jobs that were picked from, in the order of their first pick. Of a mix:
    ``pulls[i]`` is the lever of ``picks[i]``, ``awaited`` the tasks that will end by themselves in time;
    ``compared``: further tasks without which the choice could be another.
    """

    picks: tuple[Pick, ...]
    handed_back: tuple[Pick, ...]
    unmet: int
    refused_jobs: tuple[RefusedJob, ...]
    refused_tasks: tuple[RefusedTask, ...]
    hit: tuple[str, ...]
    missing: tuple[str, ...] = ()
    free: Mapping[str, Resources] = {}
    pulls: tuple[LeverPull, ...] = ()
    awaited: tuple[AwaitedTask, ...] = ()
    compared: tuple[str, ...] = ()
