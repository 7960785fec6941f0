"""NoDrop FS (Justice's Baseline FS) and Reactive FS: fair sharing without admission control.

Law: neither looks at a deadline before it has passed. PYTHIA section III and Justice section 3
describe both in words only: what is free is shared among those that wait, greedily ("jobs that
require large fractions of the total resource pool receive everything they ask for, causing
jobs that arrive later to block or be under-served", Justice 5.1), and an allocation is kept
until the job ends.
"""

from __future__ import annotations

import msgspec

from yarnctl.deciding.admission.records import Order, Request, Sharing
from yarnctl.deciding.admission.sizing import NoMemory, Sizing


class SharerChoices(msgspec.Struct, frozen=True, tag_field="mechanism", tag="sharing"):
    """How fair sharing is read: see :class:`yarnctl.deciding.admission.records.Choices`."""

    order: Order = "papers"
    sharing: Sharing = "held"


def ended_at_deadline(request: Request, choices: SharerChoices) -> bool:
    """Reactive FS: "when a job exceeds its deadline, this allocator reacts and terminates the job"."""
    return True


NO_DROP_FS = Sizing(
    name="no_drop_fs",
    paper="PYTHIA III 'NoDrop FS'; Justice 3 'Baseline FS'",
    memory=NoMemory(),
    choices=SharerChoices(),
    terms=None,
)
REACTIVE_FS = Sizing(
    name="reactive_fs",
    paper="PYTHIA III and Justice 3 'Reactive FS'",
    memory=NoMemory(),
    choices=SharerChoices(),
    terms=None,
    ends_late=ended_at_deadline,
    drops_late=True,
)
