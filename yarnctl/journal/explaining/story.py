"""Stories: what a journal records of one order, one refusal, one application.

Law: a story is data and the same for text and JSON. Instants are ms on the host's clock, spans ms;
an empty text or None means that the journal does not record it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.case import RefusedJob
from yarnctl.deciding.levers import Lever
from yarnctl.deciding.order import OrderVerb
from yarnctl.deciding.releaser import Reason
from yarnctl.units import Resources

Verb = Literal["", "suspended", "released", "killed", "left", "ended"]
"""What was done to an attempt. "ended": from outside, or it failed, or its node was lost; "" nothing: it
continued, was done first, or the journal has no end of it."""


class Ran(msgspec.Struct, frozen=True):
    """Which attempt of which application ran in which container; ``node`` is where."""

    application: str
    attempt: str
    container: str
    node: str


class NextTask(NamedTuple):
    """A task of the victim that was not picked, its key, and why."""

    application: str
    attempt: str
    key: tuple[int, ...]
    why: Reason


class CameBackStory(msgspec.Struct, kw_only=True, frozen=True):
    """A suspended task did new keys again in ``attempt``: the resume cost, in ms."""

    attempt: str
    at_ms: int
    cost_ms: int
    leave_ms: int
    launch_ms: int
    shuffle_ms: int
    skip_ms: int


class SavedLostStory(msgspec.Struct, kw_only=True, frozen=True):
    """The checkpoint was not used by ``attempt``, which began at an older generation (0: with nothing).

    ``keys_lost``: the keys in the checkpoint, None if not reported; fewer if an older one was used.
    """

    attempt: str
    at_ms: int
    keys_lost: int | None
    generation_expected: int
    generation_found: int


class OrderStory(msgspec.Struct, kw_only=True):
    """One order from decision to end. Keys: the smaller one is picked first.

    ``asker`` is the asker now, ``first_asker`` the one it was made for, because of ``trigger``.
    ``lost_work_ms`` is what the attempt had done since it last began on new keys, up to the kill that was
    accepted, or else up to the observed end; None: the journal does not record it.
    ``exchanged_for`` is the order that the asker was given when another got this one's room.
    ``predicted_cost_ms`` is the predicted resume cost. ``total`` is the cluster's
    size, by which a key that is a share can be read. ``withheld``: it was decided and no request was sent.
    ``lever``: of a mix, what it pulls, with its predicted time and cost. ``left``, ``left_node``: the
    container that went instead, where its application chose.
    """

    order: str
    decision: int
    asker: str
    first_asker: str
    trigger: str
    need: int
    victim: str
    attempt: str
    container: str
    node: str
    asked_to: OrderVerb
    asked_at_ms: int
    generation: int
    job_policy: str
    job_key: tuple[int, ...]
    task_policy: str
    task_key: tuple[int, ...]
    remaining_ms: int
    predicted_cost_ms: int
    total: Resources | None = None
    came_back: CameBackStory | None = None
    saved_lost: SavedLostStory | None = None
    working_since_ms: int | None
    next_jobs: tuple[RefusedJob, ...]
    next_tasks: tuple[NextTask, ...]
    transfers: list[str]
    state: str = "asked"
    verb: Verb = ""
    lost_work_ms: int | None = 0
    keys_done: int | None = None
    checkpointed_at_ms: int | None = None
    freed_at_ms: int | None = None
    settled_at_ms: int | None = None
    settled_why: str = ""
    room_to_container: str = ""
    room_to_application: str = ""
    exchanged_for: str = ""
    withheld: bool = False
    lever: Lever | msgspec.UnsetType = msgspec.UNSET
    left: str | msgspec.UnsetType = msgspec.UNSET
    left_node: str | msgspec.UnsetType = msgspec.UNSET


class RefusalStory(msgspec.Struct, kw_only=True, frozen=True):
    """One occasion on which the id was considered and left alone, or an asker got no room.

    Programs compare ``reason_code``; ``why`` is it or a sentence.
    ``policy`` made the key; ``total`` is the cluster's size, where the record has it.
    """

    at_ms: int
    decision: int | None
    asker: str
    why: str
    key: tuple[int, ...] = ()
    policy: str = ""
    total: Resources | None = None
    reason_code: str = ""


class PriorityStory(msgspec.Struct, kw_only=True, frozen=True):
    """A priority that an application was to have, being the ``place``-th most urgent (from 1)."""

    at_ms: int
    place: int
    urgency_ms: int
    priority: int


class AdmissionStory(msgspec.Struct, kw_only=True, frozen=True):
    """One change of an admission."""

    at_ms: int
    admission: str
    told: str


class Tally(msgspec.Struct, kw_only=True):
    """An application's orders in sum, as asker or as victim; none without a request.

    ``others`` counts orders by the application on the other side, ``states`` by their states, ``verbs`` by
    what was done ("not stopped": nothing). ``lost_work_ms`` is the sum of the known values.
    """

    role: Literal["asker", "victim"]
    orders: int = 0
    others: dict[str, int]
    states: dict[str, int]
    verbs: dict[str, int]
    lost_work_ms: int = 0


class Explanation(msgspec.Struct, kw_only=True):
    """All that a journal records of one id; ``roles`` are the kinds of thing that it names.

    ``rendered`` are sentences about it as a whole: what a decision was for, what state an application is in.
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
