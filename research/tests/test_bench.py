"""The benchmarks' driver: a bench that breaks, or whose two sides disagree, is not passed over."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

import yarnctl.deciding.controller as controller
from yarn_research.bench import tick
from yarn_research.bench.__main__ import BENCHES, Bench, run_small
from yarn_research.bench.row import Row
from yarnctl.deciding.model import Action

ROW = Row(name="a", what="", ours=1, baseline=1, ratio=1, target="", holds=False, unit="ms")


def test_a_missed_target_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_small(["a"], {"a": Bench(lambda: ROW, lambda: ROW)})
    assert json.loads(capsys.readouterr().out) == {"benches": 1, "ran": 1, "failed": {}}


@pytest.mark.parametrize("problem", [AssertionError("other victims"), SystemExit("the two sides disagree")])
def test_a_bench_whose_sides_disagree_fails_and_the_others_still_run(
    problem: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Row:
        raise problem

    assert not run_small(["a", "b"], {"a": Bench(broken, broken), "b": Bench(lambda: ROW, lambda: ROW)})
    seen = json.loads(capsys.readouterr().out)
    assert (seen["ran"], list(seen["failed"])) == (1, ["a"])


def test_the_full_size_is_not_the_small_one() -> None:
    assert all(bench.small is not bench.full for bench in BENCHES.values())


def test_tick_notices_another_order_of_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain order is written on its own: a step that asks in another order makes the bench fail.

    What is measured plays no part: each call runs without the collection of garbage before it, which walks
    over all that a process of tests holds.
    """

    def reversed_order(actions: Sequence[Action], *_: object) -> tuple[Action, ...]:
        return tuple(reversed(actions))

    def run_once(work: Callable[[], object]) -> float:
        work()
        return 1.0

    size = tick.Size(nodes=20, applications=10, containers=200, wanted=8)
    monkeypatch.setattr(tick, "cpu_ms", run_once)
    tick.measure(0.3, size)
    monkeypatch.setattr(controller, "in_suspend_order", reversed_order)
    with pytest.raises(AssertionError):
        tick.measure(0.3, size)
