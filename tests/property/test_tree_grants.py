"""yarnctl's forecast of a tree of queues against the emulator's scheduler, on random trees."""

from __future__ import annotations

from collections import Counter

from tests.property.tree_grants import compare

TREES = 40


def test_containers_of_one_size_go_to_the_application_that_is_foreseen():
    """What differs are ratios that are equal but for the cut of a guarantee."""
    counts = Counter[str]()
    for seed in range(TREES):
        compare(seed, (1,), counts)
    assert counts["grants"] > 5 * TREES
    assert counts["grants foreseen"] >= 0.99 * counts["grants"], counts


def test_containers_of_several_sizes_differ_where_a_node_is_reserved():
    """The forecast cannot know the order of heartbeats, which decides the node of a new reservation."""
    counts = Counter[str]()
    for seed in range(TREES):
        compare(seed, (1, 2, 3), counts)
    assert counts["reserving"] > TREES
    assert counts["different, plain"] <= 0.01 * counts["changes"], counts
    assert counts["grants foreseen"] >= 0.97 * counts["grants"], counts
