"""The length table is the one of the paper's generator, bit for bit."""

from itertools import islice

import pytest

from yarnctl.traces.lengths import length_table, next_doubles


def test_the_generator_is_javas():
    # Known values of java.util.Random(42) and (0), as any JVM prints them.
    assert next(next_doubles(42)) == 0.7275636800328681
    assert next(next_doubles(0)) == 0.730967787376657


@pytest.mark.parametrize(("tasks", "mean"), [(47, 0.750), (35, 0.761), (23, 0.757), (11, 0.778)])
def test_the_first_lengths_have_the_means_of_the_papers_four_sizes(tasks, mean):
    assert round(sum(length_table()[:tasks]) / tasks, 3) == mean


def test_the_first_task_is_the_longest_and_none_is_below_half():
    table = length_table()
    assert len(table) == 100
    assert table[0] == 1.0 == max(table)
    assert min(table) > 0.5
    assert table[1:4] == tuple((1 + u) / 2 for u in islice(next_doubles(3), 3))
