"""NoDrop FS (Justice's Baseline FS) and Reactive FS: fair sharing without admission control.

Law: neither looks at a deadline before it has passed. PYTHIA section III and Justice section 3
describe both in words only: what is free is shared among those that wait, greedily ("jobs that
require large fractions of the total resource pool receive everything they ask for, causing
jobs that arrive later to block or be under-served", Justice 5.1), and an allocation is kept
until the job ends.
"""

from __future__ import annotations

from yarnctl.deciding.admission.allocators.allocator import Allocator
from yarnctl.deciding.admission.records import Choices, Request


def ended_at_deadline(request: Request, choices: Choices) -> bool:
    """Reactive FS: "when a job exceeds its deadline, this allocator reacts and terminates the job"."""
    return True


NO_DROP_FS = Allocator(name="no_drop_fs", paper="PYTHIA III 'NoDrop FS'; Justice 3 'Baseline FS'", terms=None)
REACTIVE_FS = Allocator(
    name="reactive_fs",
    paper="PYTHIA III and Justice 3 'Reactive FS'",
    terms=None,
    ends_late=ended_at_deadline,
    drops_late=True,
)
