"""Random states in which yarnctl decides and the emulator grants; three faults of the model are seen.

The figures of 10,000 states: ``python -m tests.soak in-vain 10000``.
"""

from __future__ import annotations

from collections import Counter

from tests.property.acted_states import act
from tests.soak.in_vain import counted

STATES = 100


def counts_of(seeds: range) -> Counter[str]:
    counts = Counter[str]()
    for seed in seeds:
        counted(counts, act(seed))
    return counts


def test_freed_containers_are_granted_to_their_requesters():
    counts = counts_of(range(1, STATES + 1))
    assert counts["orders"] > STATES / 2
    assert counts["in vain"] <= 0.1 * counts["orders"], counts
    assert counts["missed"] <= 0.3 * counts["idle while production waits"], counts
