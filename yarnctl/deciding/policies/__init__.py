"""Eviction policies: plain dictionaries of pure, cited key functions.

Law: command lines, REST choices, experiment grids and property tests read these two dictionaries
and nothing else.
"""

from yarnctl.deciding.policies.jobs import FOREVER_MS, JOB_POLICIES, JobPolicy, JobUsage, laxity_ms
from yarnctl.deciding.policies.tasks import TASK_POLICIES, TaskPolicy

__all__ = [
    "FOREVER_MS",
    "JOB_POLICIES",
    "TASK_POLICIES",
    "JobPolicy",
    "JobUsage",
    "TaskPolicy",
    "laxity_ms",
]
