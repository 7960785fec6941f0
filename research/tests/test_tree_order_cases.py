"""What a ResourceManager 3.4.2 granted after one container was freed, as seen on the rig, case by case.

``tree_order_cases.json``: states of random trees (``campaigns.tree_order``) in which the forecast or the
emulator's scheduler expected something else before they followed the rule that each case names.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from yarn_research.campaigns.tree_order import forecast
from yarn_research.campaigns.tree_order_draws import TreeDraw
from yarn_research.campaigns.tree_order_states import EmulatedTree
from yarnctl.deciding.model import Snapshot
from yarnctl.units import decode_vector

CASES = json.loads((Path(__file__).parent / "tree_order_cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[row["case"] for row in CASES])
def test_grants_are_those_of_a_resource_manager(case):
    snapshot = msgspec.convert(case["snapshot"], Snapshot, dec_hook=decode_vector)
    emulated = EmulatedTree(TreeDraw(case["seed"], wide=case.get("wide", False)), case["state"])
    assert forecast(snapshot, case["freed"]) == Counter(case["granted"])
    assert emulated.free(case["freed"]["container"]) == Counter(case["granted"])
