"""The states of an order, as a table.

::

          accepted              manifest              ended-as-ordered        granted
    ordered ------> suspending ---------> checkpointed ---------------> freed --------> GRANTED
      |               |                     |                            |
      |               |                     |                            +-- misdirected -> MISDIRECTED
      |               |                     |                            +-- unclaimed ---> LOST
      |               |                     |                            +-- not-needed,
      |               |                     |                            |   requester-ended -> WITHDRAWN
      |               |                     |                            +-- epoch-changed> LOST
      +- refused      |          refused ---+  --> WITHDRAWN  (the Suspend, or the Release)
      +- not-needed --+                     |  --> WITHDRAWN  (picks that are not needed)
      +- requester-ended -------------------+  --> WITHDRAWN
      +- give-up -----+---------------------+  --> GIVEN_UP   (time-out: the task is left alone)
      +- kill --------+---------------------+  --> KILLED     (time-out, if so configured)
      +- completed ---+---------------------+  --> COMPLETED  (it finished by itself first)
      +- ended-otherwise -------------------+  --> LOST       (killed from outside, the node died)
      +- epoch-changed ---------------------+  --> LOST
      |
      |    not-needed, requester-ended
      +- simulated -> simulated -> WITHDRAWN  (not sent: only observed, and the predicted time has passed)

``epoch-changed`` happens only while a journal is read: a container is under order again, and the end of its
order was not recorded.

The table is total: an event that is not in it leaves the order's state unchanged, and a settled order
(capitals) never moves again. So duplicate, late and foreign facts are harmless. A manifest or an end may
overtake the answer to the request (``ordered`` accepts them too): only facts prove effects.
"""

from __future__ import annotations

from typing import Literal

State = Literal[
    "ordered",
    "suspending",
    "checkpointed",
    "freed",
    "granted",
    "given_up",
    "killed",
    "completed",
    "lost",
    "withdrawn",
    "misdirected",
    "simulated",
]

Event = Literal[
    "accepted",
    "refused",
    "progress",
    "manifest",
    "ended-as-ordered",
    "ended-otherwise",
    "completed",
    "granted",
    "misdirected",
    "unclaimed",
    "not-needed",
    "requester-ended",
    "give-up",
    "kill",
    "epoch-changed",
    "simulated",
]

OPEN: tuple[State, ...] = ("ordered", "suspending", "checkpointed", "freed", "simulated")
"""States that still count; all others are settled."""

RUNNING: tuple[State, ...] = ("ordered", "suspending", "checkpointed")
"""States in which the container has not been observed to end."""

RECALLABLE: tuple[State, ...] = ("ordered", "suspending")
"""States in which the request can still be withdrawn without waste."""

_BEFORE_FREED: dict[Event, State] = {
    "ended-as-ordered": "freed",
    "ended-otherwise": "lost",
    "completed": "completed",
    "requester-ended": "withdrawn",
    "give-up": "given_up",
    "kill": "killed",
    "epoch-changed": "lost",
}

TABLE: dict[State, dict[Event, State]] = {
    "ordered": {
        **_BEFORE_FREED,
        "accepted": "suspending",
        "progress": "suspending",
        "refused": "withdrawn",
        "not-needed": "withdrawn",
        "manifest": "checkpointed",
        "simulated": "simulated",
    },
    "suspending": {
        **_BEFORE_FREED,
        "progress": "suspending",
        "not-needed": "withdrawn",
        "manifest": "checkpointed",
    },
    "checkpointed": {**_BEFORE_FREED, "refused": "withdrawn"},
    "freed": {
        "granted": "granted",
        "misdirected": "misdirected",
        "unclaimed": "lost",
        "not-needed": "withdrawn",
        "requester-ended": "withdrawn",
        "epoch-changed": "lost",
    },
    "granted": {},
    "given_up": {},
    "killed": {},
    "completed": {},
    "lost": {},
    "withdrawn": {},
    "misdirected": {},
    "simulated": {"not-needed": "withdrawn", "requester-ended": "withdrawn", "epoch-changed": "lost"},
}
