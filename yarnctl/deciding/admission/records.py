"""The inputs and outputs of admission: requests, estimates, offer bounds, verdicts, plans.

Work is in container-ms (one container for one millisecond), instants are integer milliseconds, deadlines are
spans from submission; a verdict always carries a plan and a reason. A request needs a number of containers,
whatever its framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import FOREVER_MS
from yarnctl.deciding.admission.placement_options import Alternatives, NotPlaced, Settings
from yarnctl.deciding.reasons.verdicts import PlanReason

Verdict = Literal["admit", "defer", "reject"]
State = Literal["waiting", "admitted", "running", "rejected", "expired", "withdrawn", "ended"]
"""The state of an admission; :mod:`yarnctl.deciding.admission.book` has the transitions."""

Refund = Literal["none", "unused", "late", "both"]
"""What is refunded of a job that ran: nothing (the paper), what it did not use, all if late, both."""


class Phase(msgspec.Struct, frozen=True):
    """Tasks of one kind that run beside each other: how many, and how long each holds its container.

    ``stdev_ms`` is the standard deviation of a run's mean task, between runs.
    """

    kind: str
    tasks: int
    mean_ms: int
    stdev_ms: int


class Phases(msgspec.Struct, frozen=True):
    """What a job does, one phase after the other: ``kinds`` in order (maps before reduces).

    ``master_ms``: the time beside all tasks that its master takes (start, commit); ``submit_ms``: from the
    verdict to the start of the master.
    """

    kinds: tuple[Phase, ...]
    master_ms: int
    submit_ms: int


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much computation a job needs, in container-ms: mean, standard deviation, where from.

    Made outside (a trace, a history server, a fit). ``source`` names its maker, "trace" being the truth of a
    replay. ``phases``: its parts, where they are known; ``mean_ms`` suffices for any number of containers,
    and is more than they add up to. ``given_by``: the caller that sent it with the request (None: none did);
    a user's is not believed where deadlines have a price.
    """

    mean_ms: int
    stdev_ms: int
    source: str
    phases: Phases | None = None
    given_by: Literal["operator", "user"] | None = None


class Budget(msgspec.Struct, frozen=True):
    """What a request may cost: at most ``most_mtokens``, of one account; what is refunded at its end.

    1 milli-token is 1 container-ms.
    """

    account: str
    most_mtokens: int
    refund: Refund = "both"


class Request(msgspec.Struct, frozen=True):
    """One request for admission.

    * ``sequence``: its rank in the total order of submissions, and its identity.
    * ``deadline_ms``: a span from ``submitted_at_ms`` (None: it has none).
    * ``tasks``: the most containers it can use at once (PYTHIA II.A: "the maximum parallelization possible").
    * ``kind``: the framework. Whether it is suspended follows from YARN's application type.
    * ``application``: its id, once known.
    * ``budget``: set where deadlines have a price; without a deadline it buys the earliest it can.
    * ``alternatives``: its options, where applications are placed.
    * ``set_back_ms``: how much ``submitted_at_ms`` was moved back with the clock; the deadline stays.
    """

    sequence: int
    submitted_at_ms: int
    deadline_ms: int | None
    tasks: int
    estimate: Estimate | None = None
    kind: str = "mapreduce"
    application: str = ""
    budget: Budget | None = None
    alternatives: Alternatives | None = None
    set_back_ms: int = 0

    @property
    def deadline_at_ms(self) -> int | None:
        """The instant of the deadline, if there is one."""
        if self.deadline_ms is None:
            return None
        return self.submitted_at_ms + self.set_back_ms + self.deadline_ms

    @property
    def due_ms(self) -> int:
        """The instant of the deadline; infinitely late for a request without one."""
        at_ms = self.deadline_at_ms
        return FOREVER_MS if at_ms is None else at_ms

    @property
    def span_ms(self) -> int:
        """The time from submission to deadline, as requested; infinite where there is none."""
        return FOREVER_MS if self.deadline_ms is None else self.deadline_ms


class Finished(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that ran to its end, as resource negotiators log it (the input of TRACK_JOB).

    ``work_ms`` is its computation in container-ms, ``containers`` its containers, ``capacity`` the cluster's;
    ``ratio`` is the part of its containers it was to get, before rounding to whole ones; ``met``: it ended by
    its deadline. ``computed_ms`` is what its containers computed, where ``work_ms`` is what was reserved for
    it; ``elapsed_ms`` is the time from its submission to its end.
    """

    work_ms: int
    tasks: int
    deadline_ms: int
    containers: int
    capacity: int
    ratio: float
    met: bool
    computed_ms: int | None = None
    ended_at_ms: int | None = None
    elapsed_ms: int | None = None

    @property
    def used_ms(self) -> int:
        """What its containers computed; its work where that is not known."""
        return self.work_ms if self.computed_ms is None else self.computed_ms


class Terms(NamedTuple):
    """What a mechanism would give one request now.

    ``containers`` wanted, ``least`` the fewest it accepts (equal, except while nothing is known
    yet); ``ratio`` is the estimated part of min(tasks, capacity) before rounding up, None where
    none was made. Without hope: ``containers`` is 0 and ``reason`` says why.
    """

    containers: int
    least: int
    reason: PlanReason | None = None
    ratio: float | None = None


class Rectangle(msgspec.Struct, frozen=True, tag_field="claim", tag="rectangle"):
    """A claim on capacity: so many containers from an instant until the predicted end."""

    containers: int
    from_ms: int
    until_ms: int

    @property
    def most(self) -> int:
        """The most containers that it is given at any time."""
        return self.containers


class DueClaim(msgspec.Struct, frozen=True, tag_field="claim", tag="due", omit_defaults=True):
    """A claim on capacity: so much work on at most ``most`` containers, done by ``until_ms``, whenever.

    It was promised at ``from_ms``. Every claim has its two instants under the same names. The job ends
    ``latency_ms`` later at most: its longest tasks, its master. ``task_ms`` is its longest task (0: unknown).
    ``master_ms`` is what of the work is its master's container (0: unknown).
    """

    work_ms: int
    most: int
    from_ms: int
    until_ms: int
    latency_ms: int = 0
    task_ms: int = 0
    master_ms: int = 0


Claimed = Rectangle | DueClaim
"""What a reservation may claim; distinguished by the field ``claim``."""


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Containers kept for one admitted request, of the pool ``pool``.

    Until its application is observed (``application`` is not empty), it expires at ``expires_at_ms``;
    then it lasts until the application has ended. ``sold`` is the plan of a job that was promised its
    deadline and may not be submitted yet: its turn or start comes later, and its request waits until then.
    """

    request: Request
    claim: Claimed
    ratio: float
    expires_at_ms: int
    application: str = ""
    pool: str = ""
    sold: Plan | None = None

    @property
    def containers(self) -> int:
        """The most containers that are kept for it."""
        return self.claim.most

    @property
    def from_ms(self) -> int:
        """When its claim begins."""
        return self.claim.from_ms

    @property
    def until_ms(self) -> int:
        """Its predicted end."""
        return self.claim.until_ms


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A verdict with everything that follows from it.

    ``admit``: start at ``start_at_ms`` with ``containers``. ``defer``: the same, by the state now; it is
    decided again whenever a job ends. With a price, its deadline is sold and it is submitted at its turn.
    ``reject``: containers is 0. ``start_at_ms`` and ``finish_at_ms`` are None where they are not known.

    Where deadlines have a price: ``price_mtokens``; ``late_ratio``, the chance that the job computes more
    than was promised; ``because``, the terms of the price: itself, or the sequence of a job with less slack,
    and its part of the price. They add up to the price.

    Where applications are placed: ``kind`` and ``settings`` of the chosen option in ``pool``, its predicted
    time ``predicted_ms`` and cost ``cost_mtokens``, ``late_ratio``, the chance that it takes longer than to
    ``finish_at_ms`` (None: not certified), and ``refused``, the nearest options that were not chosen.
    """

    sequence: int
    verdict: Verdict
    containers: int
    deadline_at_ms: int
    reason: PlanReason
    start_at_ms: int | None = None
    finish_at_ms: int | None = None
    pool: str = ""
    price_mtokens: int | None = None
    late_ratio: float | None = None
    because: tuple[tuple[str, int], ...] = ()
    kind: str = ""
    settings: Settings = ()
    predicted_ms: int | None = None
    cost_mtokens: int | None = None
    refused: tuple[NotPlaced, ...] = ()


def merged(before: Sequence[Reservation], granted: Sequence[Reservation]) -> tuple[Reservation, ...]:
    """Return reservations after a round; what was granted replaces an earlier one of the same request."""
    new = {each.request.sequence: each for each in granted}
    kept = tuple(new.pop(each.request.sequence, each) for each in before)
    return (*kept, *new.values())
