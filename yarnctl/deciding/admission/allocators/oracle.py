"""Oracle: the fewest containers that meet the deadline, known beforehand, job by job.

Law: it needs an estimate that is the truth; it has no global view and is not optimal.
Source: PYTHIA section III and Justice section 3, "Oracle", in words only.
"""

from __future__ import annotations

from yarnctl.deciding.admission.allocators.allocator import Allocator, Memory
from yarnctl.deciding.admission.records import Choices, Request, Terms

HOPELESS = Terms(0, 0, "the deadline can no longer be met, whatever it is given")
UNKNOWN = Terms(0, 0, "nobody knows how much it computes, and this allocator must")


def terms(memory: Memory, request: Request, now_ms: int, capacity: int, choices: Choices) -> Terms:
    """Return ceil(work / time left): exact, in integers.

    "Allocates the minimum number of resources that a job requires to meet its deadline ... queues
    the job until the resources become available or until its deadline ... is no longer achievable."
    """
    if request.estimate is None:
        return UNKNOWN
    left_ms = request.deadline_at_ms - now_ms
    if left_ms <= 0:
        return HOPELESS
    containers = max(1, -(-request.estimate.mean_ms // left_ms))
    if containers > min(request.tasks, capacity):
        return HOPELESS
    return Terms(containers, containers)


ORACLE = Allocator(
    name="oracle",
    paper="PYTHIA III and Justice 3 'Oracle'",
    terms=terms,
    order="ratio",
    needs_estimate=True,
)
