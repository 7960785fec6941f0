"""The market's bench: a curve of 64 deadlines beside 1,000 promises.

Law: both sides answer the same; a bench whose sides disagree stops.
"""

from __future__ import annotations

import math
import random

from yarn_research.bench.row import Row, cpu_ms, spread
from yarn_research.market.price_functions import Offered, because
from yarnctl.deciding.admission.capacity import Load, profile
from yarnctl.deciding.admission.pricing.prices import curve, earliest_finish, standing
from yarnctl.deciding.admission.pricing.timeline import Due

CAPACITY, POINTS, WORK_MS, MEAN_MS = 200, 64, 800_000, 500_000.0
CURVE_MS, CURVE_RATIO = 20, 50


def market_curve(promises: int = 1000, runs: int = 15) -> Row:
    """A quote: state, curve and terms at 64 deadlines, beside the same from the start for each."""
    chance = random.Random(1)
    free = profile(
        CAPACITY, [Load("fixed", 1, 0, chance.randint(1000, 600_000)) for _ in range(CAPACITY // 2)]
    )
    dues, work_ms = [], 0
    for each in range(promises):
        part_ms = chance.randint(10_000, 2_000_000)
        work_ms += part_ms
        due_ms = int(work_ms / CAPACITY * 1.1 + 60_000 + chance.random() * 300_000)
        dues.append(Due(f"adm-{each}", part_ms, chance.choice((1, 5, 50, 200)), due_ms))
    at_ms: list[int] = []

    def ours():
        state = standing(free, dues, 0, MEAN_MS)
        told = curve(state, WORK_MS, 2.0)
        from_ms = earliest_finish(state, WORK_MS)
        at_ms[:] = [from_ms + (dues[-1].due_at_ms - from_ms) * each // (POINTS - 1) for each in range(POINTS)]
        return [(told.price(at), told.because(at)) for at in at_ms]

    def each_anew():
        found = []
        for at in at_ms:
            terms = because(standing(free, dues, 0, MEAN_MS), Offered(WORK_MS, at, 2.0))
            found.append((math.fsum(amount for _, amount in terms), terms))
        return found

    for (price, terms), (paid, reasons) in zip(ours(), each_anew(), strict=True):
        if terms != reasons or abs(price - paid) > 1e-9 * paid:
            raise SystemExit("market-curve: the two sides disagree")
    quick, slow = [], []
    for _ in range(runs):
        quick.append(cpu_ms(ours))
        slow.append(cpu_ms(each_anew))
    us, them = spread(quick)["median"], spread(slow)["median"]
    return Row(
        name="market-curve",
        what=f"{POINTS} deadlines, prices and terms, {promises} promised, beside each anew (same answers)",
        ours=us,
        baseline=them,
        ratio=them / us,
        target=f">= {CURVE_RATIO}",
        holds=them / us >= CURVE_RATIO and us <= CURVE_MS,
        unit="ms",
        details={"ours_ms": spread(quick), "anew_ms": spread(slow), "at_most_ms": CURVE_MS},
    )
