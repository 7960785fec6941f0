"""What a mechanism is: a record of pure functions that decide on all who wait at once.

Law: a mechanism holds nothing and is given everything: its memory, its choices and what a round sees go in, a
new memory or a round's answer come out. A quote is a round on one request more, of which nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from yarnctl.deciding.admission.capacity import Load, Pool
from yarnctl.deciding.admission.records import Finished, Plan, Request, Reservation


class Seen(NamedTuple):
    """What a round is given: who waits (in order), what is reserved, what others hold, pools and time."""

    waiting: tuple[Request, ...]
    reserved: tuple[Reservation, ...]
    loads: tuple[Load, ...]
    pools: tuple[Pool, ...]
    now_ms: int


class Round(NamedTuple):
    """What a round gives: a plan for everybody who waited, in order, and what is reserved from now on."""

    plans: tuple[Plan, ...]
    granted: tuple[Reservation, ...]


class Mechanism(NamedTuple):
    """One way to decide on admission.

    ``begin`` returns what it knows before anything has finished, ``learn`` what it knows after one job more,
    ``round`` its answer to all that wait. ``choices`` are our readings of its paper, of its own type, as its
    memory is. ``needs_estimate``: it turns away whose work nobody knows; ``needs_deadline``: who names none.
    """

    name: str
    paper: str
    choices: Any
    begin: Callable[[Any], Any]
    learn: Callable[[Any, Finished, Any], Any]
    round: Callable[[Any, Any, Seen], Round]
    needs_estimate: bool = False
    needs_deadline: bool = True
    learns: bool = False
