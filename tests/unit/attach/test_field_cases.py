"""Recorded cases of clusters in the field: what yarnctl decides and says for each (../shared/CASES.md)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.attach.recorded_case import AS_RUN, RecordedCase, checked
from yarnctl.deciding.settings import Settings

MONITOR = "yarn.resourcemanager.scheduler.monitor.enable"


def of(preempting: str, preemptable: str) -> Settings:
    return msgspec.structs.replace(AS_RUN, preempting_queues=(preempting,), preemptable_queues=(preemptable,))


def test_an_observing_daemon_decides_beside_yarns_own_preemption() -> None:
    """c15: its first look shows the same as on a cluster without YARN's preemption."""
    case = RecordedCase("c15-observing-where-yarn-preempts")
    rules = of("root.production", "root.research")
    with case.served():
        beside = case.wanted(rules=rules)
    keys = {row["key"]: row for row in case.answers["/conf"]["properties"]}
    assert keys[MONITOR]["value"] == "true"
    keys[MONITOR]["value"] = "false"
    with case.served():
        alone = case.wanted(rules=rules)
    assert beside == alone
    # 10 containers are requested; orders for a tenth of the 79 research containers may be open at once
    assert [one.need for one in beside] == [int(79 * 0.1)]


def seen(case: str, capfd: Any, production: str, research: str) -> dict[str, str]:
    """Return the finding of queues for two names."""
    with RecordedCase(case).served() as served:
        found = checked(served.url, capfd, "--preempting", production, "--preemptable", research)
    return found["queues"]


def test_each_spelling_of_a_leaf_means_that_leaf(capfd: Any) -> None:
    """c01."""
    by_path = seen("c01-queues-by-path", capfd, "root.production", "root.research")
    assert by_path["severity"] == "ok"
    assert by_path == seen("c01-queues-by-path", capfd, "production", "research")


def test_a_short_name_of_two_leaves_lists_their_paths(capfd: Any) -> None:
    """c02: production's own leaf has the name, too."""
    found = seen("c02-short-name-of-two-leaves", capfd, "root.prod.default", "default")
    assert found["severity"] == "fail"
    assert "root.dev.default" in found["seen"]
    assert "root.prod.default" in found["seen"]


def test_a_parent_without_children_is_no_leaf(capfd: Any) -> None:
    """c03: a parent that makes queues on demand has none yet."""
    with RecordedCase("c03-parents-and-on-demand-queues").served() as served:
        found = checked(served.url, capfd, "--preempting", "production", "--preemptable", "adhoc")
    assert found["queues"]["severity"] == "warn"
    assert found["queues"]["seen"] == "root.production 80 %, root.adhoc has no leaf yet"
    assert found["research-share"]["severity"] == found["production-share"]["severity"] == "ok"
    assert found["research-share"]["seen"] == "root.adhoc has no leaf yet"


@pytest.mark.parametrize("spelling", ["users", "root.users"])
def test_a_parent_stands_for_its_leaves(capfd: Any, spelling: str) -> None:
    """c03: alice's and bob's queues exist already."""
    found = seen("c03-parents-and-on-demand-queues", capfd, "production", spelling)
    assert found["severity"] == "ok"
    assert found["seen"] == "root.production 80 %, root.users.alice 10 %, root.users.bob 10 %"
