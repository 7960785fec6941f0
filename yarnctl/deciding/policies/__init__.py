"""Eviction policies: plain dictionaries of pure, cited key functions.

Law: command lines, scenarios, replay and property tests read these two dictionaries and nothing
else. ``COMPARED_JOB_POLICIES`` is for the paper's table of alternatives alone.
"""

from yarnctl.deciding.policies.jobs import (
    COMPARED_JOB_POLICIES,
    FOREVER_MS,
    JOB_POLICIES,
    JobPolicy,
    JobUsage,
    laxity_ms,
)
from yarnctl.deciding.policies.tasks import TASK_POLICIES, TaskPolicy

__all__ = [
    "COMPARED_JOB_POLICIES",
    "FOREVER_MS",
    "JOB_POLICIES",
    "TASK_POLICIES",
    "JobPolicy",
    "JobUsage",
    "TaskPolicy",
    "laxity_ms",
]
