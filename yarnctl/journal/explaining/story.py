"""Stories: what a journal records of one order, one refusal, one application.

A story is data, the same for text and JSON. Instants are ms on the host's clock, spans ms; "" or None: the
journal does not record it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from yarnctl.deciding.case import RefusedJob, RefusedTask
from yarnctl.deciding.levers import Lever
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.order import OrderVerb
from yarnctl.deciding.records import ApplicationName
from yarnctl.units import Resources

Verb = Literal["", "suspended", "released", "killed", "left", "ended"]
"""How an attempt ended. "ended": not by yarnctl, or it failed, or its node was lost; "": it continued,
completed first, or the journal has no end of it."""


Sent = Literal["", "accepted", "refused", "unknown", "withheld"]
"""The outcome of an order's request."""


class Ran(msgspec.Struct, frozen=True):
    """The attempt, application and node of a container."""

    application: str
    attempt: str
    container: str
    node: str


class CameBackStory(msgspec.Struct, kw_only=True, frozen=True):
    """A suspended task processed new keys again, in ``attempt``: its resume cost, in ms."""

    attempt: str
    at_ms: int
    cost_ms: int
    leave_ms: int
    launch_ms: int
    shuffle_ms: int
    skip_ms: int


class SavedLostStory(msgspec.Struct, kw_only=True, frozen=True):
    """``attempt`` did not use the checkpoint: it started from an older generation (0: from none).

    ``keys_lost``: the keys in the checkpoint, None if not reported; fewer if it used an older one.
    """

    attempt: str
    at_ms: int
    keys_lost: int | None
    generation_expected: int
    generation_found: int


class OrderStory(msgspec.Struct, kw_only=True):
    """One order from decision to end. Keys: the smallest is chosen first.

    * ``requester``: the application that it serves now; ``first_requester``: the one of its decision, because
      of ``trigger``, which was short of ``shortfall`` containers. ``serves`` of its requests are met once all
      of ``group`` are free. ``names``: of the applications here that decisions name.
    * ``order_verb``: what the order demands; ``lever``: of a mix, with its predicted time and cost.
      ``bound_ms``: the lost work that is not exceeded with a chance of 95 %.
      ``observed``: made by a daemon that only observes.
    * ``sent``: the outcome of its request at ``sent_at_ms`` ("": none yet), which ``sent_why`` explains.
    * ``state``: after the last event; ``why``: its reason as text, or the event, ``reason_code`` as code.
    * ``progress_at_ms``: when the attempt was last known to be alive.
    * ``lost_work_ms``: the attempt's work since it last started on new keys, up to the accepted kill, or else
      up to the observed end; None: not recorded.
    * ``exchanged_for``: the order given to ``requester`` when another application received the container.
    * ``predicted_cost_ms``: predicted resume cost. ``total``: the cluster's size, for keys that are shares.
    * ``left``, ``left_node``: the container that the application ended instead, where it chose.
    """

    order: str
    decision: int
    requester: str
    first_requester: str
    names: Mapping[str, ApplicationName] = {}
    trigger: str = ""
    shortfall: int = 0
    victim: str
    attempt: str
    container: str
    node: str
    size: Resources
    serves: int
    group: str
    order_verb: OrderVerb
    observed: bool
    ordered_at_ms: int
    progress_at_ms: int
    generation: int
    job_policy: str = ""
    job_key: tuple[int, ...] = ()
    task_policy: str = ""
    task_key: tuple[int, ...] = ()
    remaining_ms: int
    predicted_cost_ms: int
    total: Resources | None = None
    came_back: CameBackStory | None = None
    saved_lost: SavedLostStory | None = None
    working_since_ms: int | None = None
    next_jobs: tuple[RefusedJob, ...] = ()
    next_tasks: tuple[RefusedTask, ...] = ()
    transfers: tuple[str, ...] = ()
    sent: Sent = ""
    sent_at_ms: int | None = None
    sent_why: str = ""
    state: State = "ordered"
    why: str = ""
    reason_code: str = ""
    verb: Verb = ""
    lost_work_ms: int | None = 0
    keys_done: int | None = None
    checkpointed_at_ms: int | None = None
    freed_at_ms: int | None = None
    settled_at_ms: int | None = None
    receiver_container: str = ""
    receiver_application: str = ""
    exchanged_for: str = ""
    lever: Lever | msgspec.UnsetType = msgspec.UNSET
    bound_ms: int | msgspec.UnsetType = msgspec.UNSET
    left: str | msgspec.UnsetType = msgspec.UNSET
    left_node: str | msgspec.UnsetType = msgspec.UNSET


def named(application: str, names: Mapping[str, ApplicationName]) -> str:
    """Return an application's id, with its name, user and queue if they are known."""
    known = names.get(application)
    if known is None:
        return application
    return f"{application} ({known.name or 'unnamed'}, user {known.user}, queue {known.queue})"


class RefusalStory(msgspec.Struct, kw_only=True, frozen=True):
    """One occasion on which the id was considered and not chosen, or was the application without an order.

    Programs compare ``reason_code``; ``why`` is the code or a sentence. ``policy``: the policy of the key;
    ``total``: the cluster's size, where the record has it.
    """

    at_ms: int
    decision: int | None
    requester: str
    why: str
    key: tuple[int, ...] = ()
    policy: str = ""
    total: Resources | None = None
    reason_code: str = ""


class PriorityStory(msgspec.Struct, kw_only=True, frozen=True):
    """A priority given to an application as the ``place``-th most urgent (from 1)."""

    at_ms: int
    place: int
    urgency_ms: int
    priority: int


class AdmissionStory(msgspec.Struct, kw_only=True, frozen=True):
    """One change of an admission."""

    at_ms: int
    admission: str
    text: str


class Tally(msgspec.Struct, kw_only=True):
    """An application's sent orders in sum: those for it (``requester``), or those against it (``victim``).

    ``others`` counts orders by the application on the other side, ``states`` by state, ``verbs`` by how the
    attempt ended ("not stopped": it did not). ``lost_work_ms``: the sum of the known values.
    """

    role: Literal["requester", "victim"]
    orders: int = 0
    others: dict[str, int]
    states: dict[str, int]
    verbs: dict[str, int]
    lost_work_ms: int = 0


class Explanation(msgspec.Struct, kw_only=True):
    """All that a journal records of one id; ``roles``: the kinds of thing that it names.

    ``rendered``: sentences about it as a whole.
    """

    id: str
    roles: list[str]
    ran: Ran | None
    tallies: list[Tally]
    orders: list[OrderStory]
    refused: list[RefusalStory]
    priorities: list[PriorityStory]
    admissions: list[AdmissionStory] = []
    rendered: list[str] = []

    @property
    def found(self) -> bool:
        """Return whether the journal has the id at all."""
        return bool(self.roles)
