"""The readings of PYTHIA and Justice that can be replayed: ours, which the product has, and the papers' others."""

from __future__ import annotations

import msgspec

from yarnctl.deciding.admission.mechanisms import SIZINGS, OwnChoices
from yarnctl.deciding.admission.mechanisms.justice import Errors, Fraction, Weighting
from yarnctl.deciding.admission.mechanisms.oracle import Sharing
from yarnctl.deciding.admission.mechanisms.pythia import QueueTime, Reach
from yarnctl.deciding.admission.sizing import Order


class Choices(msgspec.Struct, frozen=True):
    """Where the papers contradict themselves or leave a question open: our reading first, the other on offer.

    These are the choices for all mechanisms at once; each has its own part of them (:func:`choices_of`).

    ``order``: of the queue. ``papers`` uses for each mechanism what is nearest to its paper: ``tasks`` for
    PYTHIA (II.B: "a small number of tasks and greatest time-to-deadline"), ``ratio`` for Justice (Alg. 4 line
    10: reqCpus / TTD; its sections 2.2 and 3 say ``tasks`` and "longer computation times", which are not
    known beforehand) and for Oracle ("fewer required resources and longer time until the deadline").
    ``earliest`` is shortest time-to-deadline, of which both papers say that it performs similarly.

    ``sharing``: what the fair sharers share. ``held``: what is free, among those that wait; a job
    keeps what it got (both papers: "greedy allocation", jobs that "receive everything they ask for,
    causing jobs that arrive later to block"). ``rebalanced``: all there is, among all, again after
    every event, as a scheduler that preempts at once would.

    ``reach``: PYTHIA's fraction is one of min(tasks, capacity) by Alg. 1 line 4 (``reachable``),
    but is multiplied with the requested tasks by section II.B (``requested``). Justice the same:
    Alg. 4 line 27 against section 2.1.

    ``queue_time``: both papers say of jobs in the queue that deadlines are reduced by the time
    that has passed and allocations computed again; Justice gives the formula (line 26),
    ``stretched``. PYTHIA gives none; ``ignored`` only drops what is past its deadline.

    ``errors``: what Justice adds to its fraction. Alg. 1 line 10 has minReqRate - LastCPUFrac,
    ``shortfall``; its text (2.1) "the difference between the allocation fraction and the ideal
    minimum fraction", ``surplus``, which drives the fraction away from what is required, to 1.

    ``fraction``: what LastCPUFrac is. Alg. 1 line 8 has the observed numCPUsAllocd / maxCPUs,
    ``observed``; section 2.1 speaks of "the allocation fraction" that was computed, ``estimated``.
    They differ for small jobs: one task cannot get less than all, whatever its fraction. As such
    jobs are the most, ``observed`` makes the average error negative for ever, the fraction that of
    the loosest deadline, and nearly every large job with a tighter one misses it.

    ``weighting``: Justice's smoothed average of errors: the same weight to all, or exponential
    with ``smoothing_ratio`` for the newest (the paper names no constant).

    ``drop_above_tasks``: Justice ends a running job at its missed deadline if it requested more
    tasks than this (2.2: "selectively ... a configurable threshold", not given: 100 is ours); 0
    ends every one (section 3: "as are any jobs that exceed their deadlines"), None ends none.
    """

    order: Order = "papers"
    sharing: Sharing = "held"
    reach: Reach = "reachable"
    queue_time: QueueTime = "stretched"
    errors: Errors = "shortfall"
    fraction: Fraction = "estimated"
    weighting: Weighting = "equal"
    smoothing_ratio: float = 0.5
    drop_above_tasks: int | None = 100


DEFAULT_CHOICES = Choices()
"""Our reading of every contradiction."""


def choices_of(name: str, choices: Choices) -> OwnChoices:
    """Return a mechanism's own part of the choices for all of them."""
    own = SIZINGS[name].choices
    changes = {field: getattr(choices, field) for field in own.__struct_fields__}
    found: OwnChoices = msgspec.structs.replace(own, **changes)
    return found
