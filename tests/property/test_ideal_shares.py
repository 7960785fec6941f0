"""The ideal shares are those of YARN's policy: a plain second opinion, and what its class computed."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tests.property.plain_shares import PlainPolicy, random_rates, random_tree
from yarnctl.deciding import ideal_shares as module
from yarnctl.deciding.ideal_shares import PreemptionRates, ShareQueue, ideal_shares
from yarnctl.units import NOTHING, Resources, decode_vector

RECORDED = Path(__file__).with_name("ideal_shares.json")


class RecordedShares(msgspec.Struct):
    """One tree, and what PreemptableResourceCalculator of Hadoop 3.4.2 computed: leaf -> ideal, taken."""

    root: ShareQueue
    rates: PreemptionRates
    shares: dict[str, tuple[Resources, Resources]]


def _first_difference(seeds: range) -> int | None:
    for seed in seeds:
        chance = random.Random(seed)
        root, rates = random_tree(chance), random_rates(chance)
        if dict(ideal_shares(root, rates)) != PlainPolicy(root, rates).shares:
            return seed
    return None


def test_shares_equal_a_plain_policy() -> None:
    assert _first_difference(range(300)) is None


@pytest.mark.thorough
def test_shares_equal_a_plain_policy_in_ten_thousand_trees() -> None:
    assert _first_difference(range(300, 10_300)) is None


def test_shares_equal_those_of_the_policys_own_class() -> None:
    cases = msgspec.json.decode(RECORDED.read_bytes(), type=list[RecordedShares], dec_hook=decode_vector)
    assert len(cases) >= 40
    for case in cases:
        assert dict(ideal_shares(case.root, case.rates)) == case.shares
    assert sum(any(taken != NOTHING for _, taken in case.shares.values()) for case in cases) >= 20


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("_smaller", module._larger),
        ("_single", float),
        ("_rounded_down", lambda size, ratio: Resources(round(size[0] * ratio), round(size[1] * ratio))),
        ("_set_weights", lambda queues, evenly: None),
        ("_weighed", lambda size, weight, rates: size),
        ("_given", lambda leaf, total, rates: leaf.preempted),
    ],
)
def test_a_planted_fault_shows_in_the_comparison(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: object
) -> None:
    monkeypatch.setattr(module, name, fault)
    assert _first_difference(range(300)) is not None


def test_a_leaf_over_its_guarantee_below_a_parent_under_its_own_gives_only_to_its_sibling() -> None:
    """docs/facts/hadoop.md, section 5: eng holds less than its guarantee, so only mkt's own sibling gives."""

    def leaf(queue: str, share: int, used: int, pending: int = 0) -> ShareQueue:
        size = Resources(1024 * share, share)
        held, wanted = Resources(1024 * used, used), Resources(1024 * pending, pending)
        return ShareQueue(
            queue=queue,
            guaranteed=size,
            maximum=Resources(40_960, 40),
            used=held,
            capacity_ratio=share / 40,
            pending=wanted,
            unreserved=wanted,
        )

    eng = msgspec.structs.replace(
        leaf("root.eng", 20, 16), children=(leaf("root.eng.prod", 10, 0), leaf("root.eng.lab", 10, 16))
    )
    mkt = leaf("root.mkt", 10, 2, 20)
    res = leaf("root.res", 10, 22)
    root = msgspec.structs.replace(leaf("root", 40, 40), children=(eng, mkt, res))
    shares = ideal_shares(root, module.WHOLE_RATES)
    assert {path for path, share in shares.items() if share.gives != NOTHING} == {"root.res"}
    busy = msgspec.structs.replace(
        eng, children=(leaf("root.eng.prod", 10, 0, 5), leaf("root.eng.lab", 10, 16))
    )
    shares = ideal_shares(msgspec.structs.replace(root, children=(busy, mkt, res)), module.WHOLE_RATES)
    assert {path for path, share in shares.items() if share.gives != NOTHING} == {"root.eng.lab", "root.res"}


def test_a_leaf_over_its_guarantee_of_another_resource_gives() -> None:
    """Leaf a has 6 of 8 GPUs and little memory; b wants its part of them, and holds no GPU at all."""

    def leaf(queue: str, used: Resources, pending: Resources) -> ShareQueue:
        return ShareQueue(
            queue=queue,
            guaranteed=Resources(500, 50, 4),
            maximum=Resources(1000, 100, 8),
            used=used,
            capacity_ratio=0.5,
            pending=pending,
            unreserved=pending,
        )

    children = leaf("root.a", Resources(60, 6, 6), NOTHING), leaf("root.b", NOTHING, Resources(40, 4, 4))
    root = ShareQueue(
        queue="root",
        guaranteed=Resources(1000, 100, 8),
        maximum=Resources(1000, 100, 8),
        used=Resources(60, 6, 6),
        capacity_ratio=1,
        children=children,
    )
    shares = ideal_shares(root, module.WHOLE_RATES)
    assert shares["root.a"].gives[2] > 0
    assert shares["root.b"].gives == NOTHING
