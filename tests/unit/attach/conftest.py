"""Little clusters on which production waits."""

from __future__ import annotations

import gc

import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster
from yarnctl.units import times


@pytest.fixture
def cluster():
    """Research holds both nodes."""
    with FakeCluster() as fake:
        fake.nodes = {"n1:1": times(SLOT, 2), "n2:1": times(SLOT, 2)}
        fake.research(1, ["n1:1", "n1:1", "n2:1", "n2:1"])
        fake.add(
            App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, 1)],
                submitted_at_ms=fake.now_ms)
        )  # fmt: skip
        yield fake


@pytest.fixture
def fake():
    """Research comes with the test."""
    with FakeCluster() as found:
        found.nodes = {"n1:1": times(SLOT, 3), "n2:1": times(SLOT, 3)}
        found.add(App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, 1)]))
        yield found


@pytest.fixture
def no_collection():
    """Collect no garbage: at the bottom of a deep recursion the finalizers of other tests would run.

    They would fail for want of stack, and pytest counts that against the test that happens to run.
    """
    gc.disable()
    yield
    gc.enable()
